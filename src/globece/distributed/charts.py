"""The rules chart of one direction, drawn from counts that add up.

The covered inputs are counted by their scalar: between two breakpoints of the direction, and there in steps of less
than a hundredth of it. A row of the chart ends at breakpoints, and is then the same as of all inputs together; a
direction without breakpoints has none to end at, and an end within a step moves to the end of that step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from globece import rays
from globece.compact import Rows
from globece.costs import CostModel
from globece.distributed.sums import as_text, exact_sums, from_text, rounded
from globece.rules import ChartRow, Move, RulesChart, additions, row_ends, rules_between
from globece.space import FloatArray, IntArray

STEP = 45  # bits of a double that a step leaves out: 128 steps from one power of two to the next
SHIFT = 19  # bits that the number of a step takes


@dataclass(frozen=True, slots=True)
class Step:
    """The covered inputs whose scalars lie within one step.

    Attributes
    ----------
    count
        How many they are.
    paid
        What they pay in all, exactly.
    reach
        The largest scalar.
    amounts, prices
        For each continuous or ordinal feature that moves, how far it moves at most, and what that costs at most.
    """

    count: int
    paid: int
    reach: float
    amounts: tuple[float, ...]
    prices: tuple[float, ...]

    def __add__(self, other: Step) -> Step:
        """Of the inputs of both."""
        return Step(
            self.count + other.count,
            self.paid + other.paid,
            max(self.reach, other.reach),
            tuple(map(max, self.amounts, other.amounts)),
            tuple(map(max, self.prices, other.prices)),
        )


@dataclass(frozen=True, slots=True)
class Along:
    """The covered inputs along one direction, by step; the steps ascend with the scalar."""

    steps: Mapping[int, Step]

    @classmethod
    def none(cls) -> Along:
        """Of no inputs."""
        return cls({})

    @classmethod
    def of(cls, cost: CostModel, delta: FloatArray, inputs: Rows, scalars: FloatArray, costs: FloatArray) -> Along:
        """From the minimum scalars and costs of affected inputs, ``inf`` for no recourse."""
        covered = np.flatnonzero(np.isfinite(scalars))
        if not covered.size:
            return cls({})
        k = scalars[covered]
        keys, index, count = np.unique(
            step_of(rays.breakpoints(cost.space, delta), k), return_inverse=True, return_counts=True
        )
        order = np.argsort(index, kind="stable")
        starts = np.concatenate([[0], np.cumsum(count)[:-1]])

        def largest(values: FloatArray) -> list[float]:
            found: list[float] = np.maximum.reduceat(values[order], starts).tolist()
            return found

        amounts, prices = [], []
        for f, step in rays.movers(cost.space, delta):
            x = inputs.feature(f)[covered]
            there = rays.travel(f, x, step, k)
            amounts.append(largest(np.nan_to_num(np.abs(there - x), nan=0.0)))
            prices.append(largest(cost.change(f, x, there)))
        paid, reach = exact_sums(costs[covered], index.astype(np.int64), len(keys)), largest(k)
        return cls(
            {
                int(key): Step(
                    int(count[i]), paid[i], reach[i], tuple(a[i] for a in amounts), tuple(p[i] for p in prices)
                )
                for i, key in enumerate(keys)
            }
        )

    def __add__(self, other: Along) -> Along:
        """Of the inputs of both."""
        found = {**self.steps, **other.steps}
        for key in self.steps.keys() & other.steps.keys():
            found[key] = self.steps[key] + other.steps[key]
        return Along(dict(sorted(found.items())))

    @property
    def count(self) -> int:
        """How many inputs the direction covers."""
        return sum(s.count for s in self.steps.values())

    @property
    def average(self) -> float:
        """What they pay on average; ``inf`` if there are none."""
        n = self.count
        return rounded(sum(s.paid for s in self.steps.values())) / n if n else float("inf")

    def to_dict(self) -> list[Any]:
        """As plain data."""
        return [
            [key, s.count, as_text(s.paid), s.reach, list(s.amounts), list(s.prices)]
            for key, s in sorted(self.steps.items())
        ]

    @classmethod
    def from_dict(cls, data: list[Any]) -> Along:
        """From what :meth:`to_dict` returned."""
        return cls({key: Step(n, from_text(paid), reach, tuple(a), tuple(p)) for key, n, paid, reach, a, p in data})


def step_of(bounds: FloatArray, scalars: FloatArray) -> IntArray:
    """The step of each scalar.

    >>> found = step_of(np.array([1.0]), np.array([0.5, 0.501, 1.0, 1.001]))
    >>> (np.diff(found) > 0).tolist()
    [False, True, True]
    """
    within = np.ascontiguousarray(scalars, dtype=np.float64).view(np.int64) >> STEP
    return (np.searchsorted(bounds, scalars, side="left").astype(np.int64) << SHIFT) | within


def chart(cost: CostModel, delta: FloatArray, along: Along, affected: int, *, rows: int = 5) -> RulesChart:
    """The cumulative rules chart of one direction; see :func:`globece.rules.rules_chart`.

    Parameters
    ----------
    cost, delta
        The cost model and the direction.
    along
        Its covered inputs.
    affected
        How many inputs are affected.
    rows
        Most rows to show.
    """
    space, steps = cost.space, [s for _, s in sorted(along.steps.items())]
    added = additions(space, delta)
    reach = steps[-1].reach if steps else 0.0
    bounds = rays.breakpoints(space, delta)
    if reach:
        bounds = bounds[bounds < reach]
    if bounds.size:
        ends = np.unique(np.linspace(0, len(bounds) - 1, min(rows, len(bounds))).round().astype(int))
        edges = row_ends(bounds, ends)
        if steps and steps[0].reach <= bounds[0]:
            edges = np.concatenate([bounds[:1], edges])
    elif added and reach:
        edges = _snapped(np.linspace(0.0, reach, rows + 1)[1:], sorted(along.steps), steps)
    else:
        edges = np.array([np.inf])
    edges[-1] = np.inf
    needed = reach or np.inf
    chart, low, before = [], 0.0, 0
    for high in np.unique(edges):
        upto = sum(s.reach <= high for s in steps)
        rules = rules_between(space, delta, low, min(high, needed))
        if not rules and upto == before and high < np.inf:
            continue
        new, so_far = steps[before:upto], steps[:upto]
        count = sum(s.count for s in new), sum(s.count for s in so_far)
        chart.append(
            ChartRow(
                rules=rules,
                low=low,
                high=float(high),
                reach=so_far[-1].reach if so_far else 0.0,
                new_coverage=count[0] / affected if affected else 0.0,
                new_cost=_average(new),
                coverage=count[1] / affected if affected else 0.0,
                cost=_average(so_far),
                moves=_moves(cost, delta, so_far),
            )
        )
        low, before = float(high), upto
    return RulesChart(tuple(chart), added, "equal")


def _snapped(edges: FloatArray, keys: list[int], steps: list[Step]) -> FloatArray:
    """Ends of rows, those that lie within a step moved to its largest scalar."""
    begins = (np.array(keys, dtype=np.int64) % (1 << SHIFT) << STEP).view(np.float64)
    reaches = np.array([s.reach for s in steps])
    last = np.searchsorted(begins, edges, side="right") - 1  # the last step that begins before each end
    return np.where(last >= 0, np.maximum(edges, reaches[np.maximum(last, 0)]), edges)


def _average(steps: list[Step]) -> float:
    count = sum(s.count for s in steps)
    return rounded(sum(s.paid for s in steps)) / count if count else float("inf")


def _moves(cost: CostModel, delta: FloatArray, steps: list[Step]) -> tuple[Move, ...]:
    """How far each feature moves at most, the most expensive first."""
    found = []
    for i, (f, step) in enumerate(rays.movers(cost.space, delta)):
        amount = max((s.amounts[i] for s in steps), default=0.0)
        price = max((s.prices[i] for s in steps), default=0.0)
        if amount > 0.0:
            found.append(Move(f.name, float(np.sign(step) * amount), price, f.kind == "ordinal"))
    return tuple(sorted(found, key=lambda move: -move.cost))
