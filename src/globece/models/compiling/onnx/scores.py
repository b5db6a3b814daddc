"""What a graph computes past its columns: a network's scores or a forest's sums, and the labels that follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from globece.models.compiling.compose import NotCompiled
from globece.models.compiling.onnx.columns import FLOATS, Columns, broadcast
from globece.models.compiling.onnx.forests import Forest
from globece.models.compiling.onnx.graph import Node
from globece.models.networks.layers import Layers
from globece.models.networks.reading import Reading
from globece.models.networks.stack import Stack
from globece.space import FloatArray

HEADS = {"Sigmoid": "probabilities", "Softmax": "shares", "LogSoftmax": "log shares"}


@dataclass(frozen=True)
class Net:
    """Affine maps and bends over some columns.

    Attributes
    ----------
    columns
        What it takes.
    stack
        The maps so far; every operator adds to a copy.
    head
        What follows the last map, as in :data:`HEADS`.
    pair
        Whether a single probability p has become the two columns 1 - p and p.
    complement
        Whether a single probability p has become 1 - p.
    """

    columns: Columns
    stack: Stack
    head: str | None = None
    pair: bool = False
    complement: bool = False

    @property
    def width(self) -> int:
        """Number of columns that come out."""
        return 2 if self.pair else len(self.stack.biases[-1])

    @property
    def precision(self) -> float:
        """Machine epsilon of its arithmetic."""
        return float(np.finfo(self.columns.dtype).eps)

    def reading(self, labels: tuple[Any, ...] | None, *, bare: bool) -> Reading:
        """The network with its labels; ``bare`` scores are compared by our own rules and not by the graph's."""
        layers, powers = _copy(self.stack).finished()
        half = bare and self.head == "probabilities"
        ask = NetAnswer(layers, self.columns.dtype, self.head, None if labels is None else len(labels), half)
        return Reading(layers, powers, ask, labels, self.head, half, self.precision)


@dataclass(frozen=True)
class NetAnswer:
    """A network's outputs in the precision of the graph."""

    layers: Layers
    dtype: str
    head: str | None
    n_classes: int | None
    half_counts: bool

    def __call__(self, V: FloatArray, wanted: str) -> FloatArray:
        kind = np.dtype(self.dtype)
        with np.errstate(all="ignore"):
            V = V.astype(kind)
            for weight, bias, leak in zip(self.layers.weights, self.layers.biases, self.layers.leaks, strict=False):
                V = V @ weight.astype(kind) + bias.astype(kind)
                V = np.where(V > 0, V, leak.astype(kind) * V)
            last = V @ self.layers.weights[-1].astype(kind) + self.layers.biases[-1].astype(kind)
        score = np.asarray(last, dtype=np.float64)
        if self.n_classes is None or wanted == "value":
            return score
        if score.shape[1] > 1:
            if wanted != "probability":
                return score
            return np.asarray(expit(score) if self.head == "probabilities" else softmax(score, axis=1))
        value = score[:, 0]
        if wanted == "probability":
            return np.column_stack([expit(-value), expit(value)])
        second = value >= 0.0 if self.half_counts else value > 0.0
        return np.asarray(np.eye(2)[second.astype(np.int64)])


Scores = Net | Forest


@dataclass(frozen=True)
class Labels:
    """The class of each row: the largest of some scores, under these names."""

    scores: Scores
    names: tuple[Any, ...]


def _copy(stack: Stack) -> Stack:
    return Stack(stack.width, [*stack.weights], [*stack.biases], [*stack.leaks], [*stack.powers])


def net_over(node: Node, value: Columns | Net) -> Net:
    """Columns as the input of a network."""
    if isinstance(value, Net):
        if value.head is not None:
            raise NotCompiled(f"{node} follows {value.head}, which only the end of a network may be")
        return replace(value, stack=_copy(value.stack))
    if value.dtype not in FLOATS:
        raise NotCompiled(f"{node} computes with {value.dtype}")
    return Net(value, Stack(len(value.symbols)))


def affine(node: Node, value: Columns | Net, weight: NDArray[Any], bias: NDArray[Any] | None) -> Net:
    """A matrix and a bias."""
    net = net_over(node, value)
    matrix = np.asarray(weight, dtype=np.float64)
    width = len(net.stack.biases[-1]) if net.stack.biases else net.stack.width
    if matrix.ndim != 2 or matrix.shape[0] != width:
        raise NotCompiled(f"{node} multiplies {width} columns with a constant of shape {matrix.shape}")
    shift = np.zeros(matrix.shape[1]) if bias is None else broadcast(node, bias, matrix.shape[1])
    net.stack.affine(matrix, np.array(shift))
    return net


def shifted(node: Node, net: Net, constant: NDArray[Any], constant_first: bool) -> Net:
    """Each unit by itself: plus, minus, times or divided by a constant."""
    if net.head == "probabilities" and node.op == "Sub" and constant_first and (np.asarray(constant) == 1.0).all():
        if net.pair or net.complement or net.width != 1:
            raise NotCompiled(f"{node} turns several probabilities round")
        return replace(net, complement=True)
    net = net_over(node, net)
    n = len(net.stack.biases[-1])
    c = np.array(broadcast(node, constant, n))
    ones = np.ones(n)
    if node.op == "Add":
        net.stack.scale(ones, (c,))
    elif node.op == "Sub":
        net.stack.scale(-ones if constant_first else ones, (c if constant_first else -c,))
    elif node.op == "Mul":
        net.stack.scale(c, (np.zeros(n),))
    elif not constant_first and (c != 0.0).all():
        net.stack.scale(1.0 / c, (np.zeros(n),))
    else:
        raise NotCompiled(f"{node} is not a straight line")
    return net


def bent(node: Node, value: Columns | Net, slope: NDArray[Any]) -> Net:
    """A (leaky) ReLU."""
    net = net_over(node, value)
    if not net.stack.biases:
        net.stack.identity()
    leak = np.array(broadcast(node, slope, len(net.stack.biases[-1])))
    if not ((leak >= 0.0) & (leak <= 1.0)).all():
        raise NotCompiled(f"{node} has a negative slope of {leak.min():g}; only 0 to 1 is followed")
    net.stack.bend(leak)
    return net


def headed(node: Node, value: Any) -> Net:
    """A sigmoid or a softmax at the end."""
    if not isinstance(value, Net) or value.head is not None:
        raise NotCompiled(f"{node} does not follow a network's scores")
    head = HEADS[node.op]
    if head != "probabilities" and node.attributes.get("axis", -1) not in (1, -1):
        raise NotCompiled(f"{node} does not run over the classes of each row")
    return replace(value, head=head)


def paired(node: Node, values: list[Any]) -> Net:
    """The columns 1 - p and p."""
    if len(values) == 2 and all(isinstance(v, Net) for v in values):
        first, second = values
        assert isinstance(second, Net)
        if first.complement and not second.complement and first.stack is second.stack and second.width == 1:
            return replace(second, pair=True)
    raise NotCompiled(f"{node} joins scores")


def summed_to_one(node: Node, value: Any) -> Any:
    """Shares of a row's sum: the same where they sum to 1 already."""
    if str(node.attributes.get("norm", "MAX")) != "L1":
        raise NotCompiled(f"{node} is not a share of the sum")
    if isinstance(value, Net) and (value.head == "shares" or value.pair or _mirrored(value)):
        return value
    if isinstance(value, Forest) and value.labels is not None and not value.why_no_probability:
        if value.reading.shares or len(value.reading.start) == 1:
            return value
        return replace(value, why_no_probability=f"{node} divides probabilities by their sum")
    raise NotCompiled(f"{node} divides by a sum that is not 1")


def _mirrored(net: Net) -> bool:
    """Whether there are two scores that are each other's opposite."""
    weight, bias = net.stack.weights[-1], net.stack.biases[-1]
    is_two = net.head == "probabilities" and weight.shape[1] == 2
    return is_two and bool((weight[:, 0] == -weight[:, 1]).all() and bias[0] == -bias[1])
