"""Gradient descent on a torch module (appendix, "Model Specific -- Deep Neural Networks").

The objective is the paper's: over the affected inputs, the mean of the probability of the unfavourable outcome at
round(x + delta), of lambda times the cost, and of a penalty on categories that do not sum to 1. Rounding has no slope,
so the gradient passes a block as if it were a softmax.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from globece.case.affected import Affected
from globece.directions.constraints import as_directions, largest_features, movable_features
from globece.directions.protocol import check_asked, check_cost
from globece.directions.rows import settled
from globece.errors import InvalidParameterError, check_count, check_number, keep_checked, require, wrong
from globece.models.torch_modules import is_module
from globece.space import FeatureSpace, FloatArray

ROWS = 256  # affected inputs that the gradient is taken over
SPARSE = (1, 2, 3, 5)
SPREAD = 10.0  # restarts range from this fraction of lambda to this multiple
SHARPNESS = 4.0  # of the softmax that stands for rounding


@dataclass(frozen=True, slots=True)
class GradientDescent:
    """Descend from several random starts to directions that flip a torch module at little cost.

    Restarts differ in where they start and in lambda, which ranges over a factor of ten either way. Each is proposed as
    it was found half way and at the end, and with only its 1, 2, 3 and 5 largest features. Needs ``torch``:
    ``pip install 'globece[torch]'``.

    Parameters
    ----------
    restarts
        Starting points.
    steps
        Steps of Adam from each.
    lambda_
        Weight of the cost against the probability.
    rate
        Length of a step, in units of cost.
    cost
        Nominal cost of each direction.
    module
        The module, where the model that is explained is not one itself: it takes the same columns, in the same order.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from globece import explain
    >>> net = torch.nn.Linear(2, 2)
    >>> with torch.no_grad():
    ...     _ = net.weight.copy_(torch.tensor([[-1.0, 0.0], [1.0, 0.0]]))
    ...     _ = net.bias.copy_(torch.tensor([6.0, -6.0]))
    >>> X = np.array([[1.0, 3.0], [2.0, 9.0], [3.0, 5.0], [8.0, 2.0], [9.0, 7.0]])
    >>> rich = lambda X: (X[:, 0] >= 6).astype(int)
    >>> explain(rich, X, generator=GradientDescent(module=net, restarts=4), rng=0).directions.round(3)
    array([[1.6, 0. ]])
    """

    restarts: int = 16
    steps: int = 100
    lambda_: float = 0.05
    rate: float = 0.1
    cost: float = 2.0
    module: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        keep_checked(
            self,
            restarts=check_count("restarts", self.restarts, high=10_000),
            steps=check_count("steps", self.steps, high=1_000_000),
            lambda_=check_number("lambda_", self.lambda_, low=1e-9, high=1e9),
            rate=check_number("rate", self.rate, low=1e-9, high=1e9),
            cost=check_cost(self.cost),
        )
        if self.module is not None and not is_module(self.module):
            raise wrong("module", "a torch module", self.module)

    def propose(self, problem: Affected, n: int, rng: np.random.Generator) -> FloatArray:
        """Descend, and return what was found, the full directions before their sparser forms."""
        n = check_asked(problem, n, rng)
        movable_features(problem.space)
        torch = require("torch", extra="torch", caller="GradientDescent")
        module = self._module(problem, torch)
        found = _descend(self, problem, module, torch, rng)
        return as_directions(
            problem, np.vstack([found, *(largest_features(problem, found, m) for m in SPARSE)]), n, self.cost
        )

    def _module(self, problem: Affected, torch: Any) -> Any:
        decide = getattr(problem.model, "decide", None)
        ask = getattr(decide, "ask", None)
        places = (
            self.module,
            getattr(decide, "model", None),
            getattr(ask, "module", None),
            getattr(ask, "__self__", None),
        )
        for module in places:
            if isinstance(module, torch.nn.Module):
                return module
        raise InvalidParameterError(
            f"GradientDescent needs a torch module, and {problem.model.name} is none; "
            "pass it as module=, or take another generator"
        )


def _descend(
    settings: GradientDescent, problem: Affected, module: Any, torch: Any, rng: np.random.Generator
) -> FloatArray:
    """What each restart found, half way and at the end: ``(2 * restarts, width)``."""
    space, count = problem.space, settings.restarts
    own = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(1))

    def tensor(values: FloatArray) -> Any:
        return torch.as_tensor(np.asarray(values), dtype=own.dtype, device=own.device)

    Z = settled(problem.inputs, ROWS)
    rows = tensor(np.nan_to_num(Z, nan=0.0))
    terrain = _Terrain(problem, tensor)
    weights = tensor(settings.lambda_ * np.geomspace(1 / SPREAD, SPREAD, count))
    # in units of cost, so that a step means the same for every column
    moved = tensor(rng.normal(0.0, 0.5, (count, space.width))) * terrain.free
    moved.requires_grad_(True)
    adam = torch.optim.Adam([moved], lr=settings.rate)
    favourable = _favourable_chance(problem, module, torch)
    found = []
    with _steady(module):
        for step in range(1, settings.steps + 1):
            after, paid, split = terrain.travelled(rows, moved, torch)
            probability = favourable(after.reshape(-1, space.width) @ terrain.to_native + terrain.native_start)
            unfavourable = 1.0 - probability.reshape(count, len(rows))
            loss = (unfavourable.mean(dim=1) + weights * paid.mean(dim=1) + split).sum()
            (moved.grad,) = torch.autograd.grad(loss, [moved])
            adam.step()
            with torch.no_grad():
                moved.copy_(terrain.constrained(moved, torch))
            if step in (settings.steps // 2, settings.steps):
                found.append((moved * terrain.per_cost).detach().double().cpu().numpy())
    return np.vstack(found)


@contextmanager
def _steady(module: Any) -> Iterator[None]:
    """Put a module in evaluation mode, and back as it was."""
    training = [m for m in module.modules() if m.training]
    for m in training:
        m.training = False
    try:
        yield
    finally:
        for m in training:
            m.training = True


class _Terrain:
    """The space as tensors: where a row is after a move, and what that cost."""

    def __init__(self, problem: Affected, tensor: Any) -> None:
        space, rates = problem.space, problem.cost.rates
        free, low, high, sense = np.zeros(space.width), *(np.full(space.width, v) for v in (-np.inf, np.inf)), rates * 0
        most = np.full(space.width, np.inf)
        for f in space.movable:
            free[f.columns] = 1.0
            if f.is_block:  # a category that nobody may move to need not hold anybody back
                most[f.columns] = np.where(f.permitted, np.inf, 0.0)
            else:
                low[f.start], high[f.start], sense[f.start] = f.low, f.high, f.sense
        self.problem = problem
        self.free, self.sense, self.most = tensor(free), tensor(sense), tensor(most)
        self.low, self.high = tensor(low), tensor(high)
        self.per_cost = tensor(np.divide(free, rates, out=np.zeros(space.width), where=rates > 0))
        self.scalars = [f.start for f in space.movable if not f.is_block]
        self.blocks = [(f, tensor(np.where(f.permitted, 0.0, -np.inf))) for f in space.movable if f.is_block]
        matrix, start = native_map(space)
        self.to_native, self.native_start = tensor(matrix), tensor(start)

    def constrained(self, moved: Any, torch: Any) -> Any:
        """Moves without what is forbidden."""
        one_way = torch.where(self.sense * moved < 0, torch.zeros_like(moved), moved)
        return torch.minimum(one_way, self.most) * self.free

    def travelled(self, rows: Any, moved: Any, torch: Any) -> tuple[Any, Any, Any]:
        """Where each row is after each move, what it paid, and by how much blocks fail to sum to 1."""
        raw = rows + (moved * self.per_cost)[:, None, :]
        after = torch.minimum(torch.maximum(raw, torch.minimum(rows, self.low)), torch.maximum(rows, self.high))
        paid = moved[:, self.scalars].abs().sum(dim=1, keepdim=True).expand(len(moved), len(rows))
        split = torch.zeros(len(moved), dtype=rows.dtype, device=rows.device)
        parts = [after]
        for f, permitted in self.blocks:
            before, wished = rows[:, f.columns], raw[:, :, f.columns]
            # a row may stay in its category even if nobody may move there
            open_ = torch.where(before > 0, torch.zeros_like(before), permitted)
            soft = torch.softmax(SHARPNESS * wished + open_, dim=2)
            hard = torch.nn.functional.one_hot(soft.argmax(dim=2), f.width).to(soft.dtype)
            block = hard + soft - soft.detach()  # the value of the one, the slope of the other
            paid = paid + self.problem.cost.weight(f) * (1.0 - (block * before).sum(dim=2))
            split = split + (moved * self.per_cost)[:, f.columns].sum(dim=1) ** 2
            parts.append((f, block))
        return _with_blocks(parts, torch), paid, split


def _with_blocks(parts: list[Any], torch: Any) -> Any:
    """Put the blocks into the rows, keeping the gradient."""
    after, *blocks = parts
    columns, at = [], 0
    for f, block in blocks:
        columns += [after[:, :, at : f.start], block]
        at = f.stop
    return torch.cat([*columns, after[:, :, at:]], dim=2)


def native_map(space: FeatureSpace) -> tuple[FloatArray, FloatArray]:
    """The user's own columns as a linear function of the encoded ones: ``Z @ matrix + start``."""
    place = {name: i for i, name in enumerate(space.table.names)}
    matrix, start = np.zeros((space.width, len(place))), np.zeros(len(place))
    for f in space.features:
        if f.kind == "continuous":
            matrix[f.start, place[f.sources[0]]] = 1.0
        elif len(f.sources) > 1:
            for i, source in enumerate(f.sources):
                matrix[f.start + i, place[source]] = 1.0
        else:
            try:
                values = np.array([np.nan if c is None else float(c) for c in f.categories])
            except (TypeError, ValueError) as error:
                raise InvalidParameterError(
                    f"GradientDescent needs numbers in every column, and {f.name!r} holds text; encode it first"
                ) from error
            if f.is_block:
                matrix[f.columns, place[f.sources[0]]] = np.nan_to_num(values)
            else:  # an ordinal feature: a straight line from its lowest value to its highest
                start[place[f.sources[0]]] = values[0]
                matrix[f.start, place[f.sources[0]]] = (values[-1] - values[0]) / (len(values) - 1)
    return matrix, start


def _favourable_chance(problem: Affected, module: Any, torch: Any) -> Any:
    """Probability of the favourable outcome as a function of native rows, as a tensor that has a gradient."""
    decide: Any = getattr(problem.model, "decide", None)
    favourable, threshold = getattr(decide, "favourable", 1), getattr(decide, "threshold", None)
    leaves = [m for m in module.modules() if not list(m.children())]
    last = type(leaves[-1]).__name__ if leaves else ""

    def probability(rows: Any) -> Any:
        out = module(rows)
        out = out.reshape(len(rows), -1)
        if favourable in ("above", "below"):
            sign = 1.0 if favourable == "above" else -1.0
            return torch.sigmoid(sign * (out[:, 0] - threshold) / (out[:, 0].detach().std() + 1e-6))
        if out.shape[1] == 1:
            second = out[:, 0] if last == "Sigmoid" else torch.sigmoid(out[:, 0])
            return second if _column(decide, favourable, 2) == 1 else 1.0 - second
        if last not in ("Softmax", "Sigmoid"):
            out = torch.softmax(out, dim=1)
        return out[:, _column(decide, favourable, out.shape[1])]

    return probability


def _column(decide: Any, favourable: Any, count: int) -> int:
    classes = list(getattr(decide, "classes", None) or range(count))
    return classes.index(favourable) if favourable in classes else count - 1
