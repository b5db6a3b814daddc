"""Read torch modules: their layers in order, as affine maps with (leaky) ReLUs between them.

A module may run its parts in any order, and do something else as well. So its ``forward`` is traced, and must consist
of its layers in order and nothing else; and what was read is compared with the module's outputs on random rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_softmax, softmax

from globece.errors import ModelError, require
from globece.models import torch_modules
from globece.models.networks.clearance import Powers
from globece.models.networks.layers import Layers
from globece.models.networks.reading import Reading, read_mlp
from globece.models.networks.stack import Stack
from globece.space import FloatArray

PASSING = ("Identity", "Dropout", "AlphaDropout", "FeatureAlphaDropout", "Flatten")
BENDS = ("ReLU", "LeakyReLU", "PReLU")
LEAVES = (*PASSING, *BENDS, *torch_modules.HEADS, "Linear", "BatchNorm1d")
TRIED = 64  # random rows


def read(estimator: Any) -> Reading:
    """Read a network.

    Raises
    ------
    ModelError
        If it is not piecewise linear; the message names the layer that is not.
    """
    found = read_module(estimator) if torch_modules.is_module(estimator) else read_mlp(estimator)
    name = type(estimator).__name__
    for i, (weight, bias) in enumerate(zip(found.layers.weights, found.layers.biases, strict=True)):
        bad = int((~np.isfinite(weight)).sum() + (~np.isfinite(bias)).sum())
        if bad:
            raise ModelError(f"{name} has {bad:,} weight(s) in layer {i + 1} that are not finite")
    return found


def read_module(module: Any) -> Reading:
    """Read a torch module; see :func:`globece.models.networks.reading.read`."""
    torch = require("torch", extra="torch", caller="reading a torch module")
    name = type(module).__name__
    leaves = [leaf for leaf in _leaves(torch, module, name) if _kind(torch, leaf) not in PASSING]
    head = torch_modules.HEADS.get(_kind(torch, leaves[-1])) if leaves else None
    body = leaves if head is None else leaves[:-1]
    kinds = {p.dtype for p in (*module.parameters(), *module.buffers()) if p.is_floating_point()}
    if len(kinds) != 1 or not kinds <= {torch.float32, torch.float64}:
        raise ModelError(
            f"{name} computes in {sorted(map(str, kinds))}; only float32 or float64 throughout is supported"
        )
    layers, powers = _stack(torch, body, name)
    n = layers.weights[-1].shape[1]
    if head in ("shares", "log shares") and (n == 1 or leaves[-1].dim not in (1, -1, None)):
        raise ModelError(f"layer {_kind(torch, leaves[-1])} of {name} does not run over the classes of each row")
    precision = float(torch.finfo(kinds.pop()).eps)
    _check_order(torch, module, name)
    _compare(module, layers, head, precision, name)
    classes = tuple(range(max(n, 2)))
    return Reading(layers, powers, ModuleAnswer(module), classes, head, head == "probabilities", precision)


@dataclass(frozen=True)
class ModuleAnswer:
    """A module's outputs for its inputs."""

    module: Any

    def __call__(self, V: FloatArray, wanted: str) -> FloatArray:
        return torch_modules.Asked(self.module, wanted == "probability", wanted == "value")(V)


def _kind(torch: Any, leaf: Any) -> str:
    """Name of the layer that this is, or that it inherits ``forward`` from."""
    for kind in LEAVES:
        known = getattr(torch.nn, kind)
        if isinstance(leaf, known) and type(leaf).forward is known.forward:
            return kind
    return type(leaf).__name__


def _leaves(torch: Any, module: Any, name: str) -> Iterator[Any]:
    if _kind(torch, module) in LEAVES:
        yield module
        return
    children = list(module.children())
    if not children and not isinstance(module, torch.nn.Sequential):
        raise ModelError(f"layer {type(module).__name__} of {name} is not supported")
    for child in children:
        yield from _leaves(torch, child, name)


def _check_order(torch: Any, module: Any, name: str) -> None:
    """Check that a module runs its layers in order, each once, and nothing else."""
    for part in module.modules():
        if part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part):
            raise ModelError(
                f"{name} has a hook, or a replaced forward, on {type(part).__name__}, and may do anything there"
            )
    listed = list(_leaves(torch, module, name))
    if listed == [module]:
        return

    class Tracer(torch.fx.Tracer):  # type: ignore[misc]
        def is_leaf_module(self, part: Any, qualified_name: str) -> bool:
            return _kind(torch, part) in LEAVES

    try:
        with torch_modules.evaluating(module):
            nodes = list(Tracer().trace(module).nodes)
    except Exception as error:
        raise ModelError(f"the forward of {name} cannot be traced: {error}") from error
    inputs = [node for node in nodes if node.op == "placeholder"]
    steps = [node for node in nodes if node.op not in ("placeholder", "output")]
    other = [str(node.target) for node in steps if node.op != "call_module"]
    before = [*inputs[:1], *steps]
    in_order = len(inputs) == 1 and all(
        node.args == (last,) and not node.kwargs for last, node in zip(before, [*steps, nodes[-1]], strict=True)
    )
    ran = [module.get_submodule(node.target) for node in steps if node.op == "call_module"]
    if other or not in_order or len(ran) != len(listed) or any(a is not b for a, b in zip(ran, listed, strict=True)):
        more = f": its forward also uses {', '.join(other[:3])}" if other else ""
        raise ModelError(f"the layers of {name}, run in order, do not give its output{more}")


def _stack(torch: Any, body: list[Any], name: str) -> tuple[Layers, Powers]:
    widths = [getattr(leaf, "in_features", getattr(leaf, "num_features", None)) for leaf in body]
    width = next((w for w in widths if w is not None), None)
    if width is None:
        raise ModelError(f"{name} has no Linear layer")
    stack = Stack(width)
    for leaf in body:
        kind = _kind(torch, leaf)
        try:
            if kind == "Linear":
                weight = _array(leaf.weight).T
                stack.affine(weight, np.zeros(weight.shape[1]) if leaf.bias is None else _array(leaf.bias))
            elif kind == "BatchNorm1d":
                stack.scale(*_normalising(leaf, name))
            elif kind in BENDS:
                stack.bend(_slope(leaf, kind, name))
            else:
                raise ModelError(f"layer {kind} of {name} is supported as its last layer only")
        except ValueError as error:
            raise ModelError(f"layer {kind} of {name} does not fit the one before it: {error}") from error
    return stack.finished()


def _array(values: Any) -> FloatArray:
    return np.asarray(values.detach().double().cpu().numpy())


def _normalising(leaf: Any, name: str) -> tuple[FloatArray, tuple[FloatArray, ...]]:
    """Scale of each unit, and what is then added to it: the mean and the shift, which may cancel."""
    if leaf.running_mean is None or leaf.running_var is None:
        raise ModelError(f"layer BatchNorm1d of {name} keeps no running statistics: rows depend on each other")
    scale = 1.0 / np.sqrt(_array(leaf.running_var) + leaf.eps)
    shift = np.zeros(len(scale))
    if leaf.affine:
        scale, shift = scale * _array(leaf.weight), _array(leaf.bias)
    return scale, (-_array(leaf.running_mean) * scale, shift)


def _slope(leaf: Any, kind: str, name: str) -> FloatArray:
    slope = np.zeros(1)
    if kind == "LeakyReLU":
        slope = np.array([float(leaf.negative_slope)])
    elif kind == "PReLU":
        slope = _array(leaf.weight)
    if not ((slope >= 0.0) & (slope <= 1.0)).all():
        raise ModelError(f"layer {kind} of {name} has a negative slope of {slope.tolist()}; only 0 to 1 is supported")
    return slope


def _compare(module: Any, layers: Layers, head: str | None, precision: float, name: str) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(TRIED, len(layers.weights[0]))) * np.repeat([1.0, 10.0], TRIED // 2)[:, None]
    try:
        expected = torch_modules.outputs(module, rows)
    except Exception as error:
        raise ModelError(f"{name} raised {type(error).__name__} on {rows.shape[1]} inputs: {error}") from error
    with np.errstate(all="ignore"):
        read = scores = layers(rows.astype(np.float32 if precision > 1e-10 else np.float64).astype(np.float64))
        if head == "probabilities":
            read = expit(scores)
        elif head is not None:
            read = softmax(scores, axis=1) if head == "shares" else log_softmax(scores, axis=1)
        far = 1e3 * precision * float(np.abs(scores).max()) + (0.0 if head is None else 8.0 * precision)
    if not np.isfinite(scores).all():
        return  # weights that are not finite: reported by `read`
    if expected.shape != read.shape or not (np.abs(expected - read) <= far).all():
        raise ModelError(f"the layers of {name}, run in order, do not give its output")
