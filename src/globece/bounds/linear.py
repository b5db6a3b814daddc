"""The minimum cost of crossing a hyperplane, over any change.

With l1 costs this is a knapsack problem: each continuous column offers gain at a constant rate until its range ends,
each block offers one lump of gain at one price. The continuous part is filled greedily; the blocks are few and have few
distinct prices, and among blocks of one price the best s are those with the largest gains, so all cases are tried. With
l2 costs the cost of each continuous column is proportional to its rate. Whole numbers, step tables and non-linear
scales are relaxed: the bound stays valid but is no longer exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from globece.bounds.attained import attains
from globece.case.affected import Affected
from globece.costs import Scale
from globece.models.linear.half_spaces import LinearModel, StepTable
from globece.space import BoolArray, Feature, FeatureSpace, FloatArray, IntArray

MOST_CASES = 1024  # choices of how many blocks of each price; beyond that blocks are relaxed to fractions
STEEPEST = 1e100  # gain per unit of cost right at a step
SHAVED = 1e-12  # relative: allowance for the rounding of costs
PAST = (1.0, 4.0, 64.0, 1024.0)  # distances past the boundary, in rounding errors, at which a point is tried


def linear_bound(model: LinearModel, problem: Affected) -> tuple[FloatArray, BoolArray]:
    """A bound on the cost of each input; and whether it is attained, or proves that there is no recourse."""
    Z, l2 = problem.inputs, problem.cost.norm == "l2"
    margins, slack = model.margins(Z), _slack(model, problem)
    halves = [_Offers.of(model, j, problem) for j in range(len(model.weights))]
    cost = _strictest_half(halves, margins, slack, l2)
    attained = np.isinf(cost)
    if len(halves) == 1 and halves[0].exact:
        for past in PAST:  # right at the boundary, then past it by as much as rounding may require
            left = np.flatnonzero(~attained)
            if not left.size:
                break
            wanted = np.maximum(-margins[left, 0] + past * slack[left, 0], 0.0)
            points = halves[0].some(left).points(wanted, l2, problem.space, Z[left])
            attained[left] = attains(problem, Z[left], points, cost[left])
    return cost, attained


def quick_bound(model: LinearModel, problem: Affected) -> FloatArray:
    """The same bound without a look at whether it is attained, which would take calls of the user's model."""
    halves = [_Offers.of(model, j, problem) for j in range(len(model.weights))]
    return _strictest_half(halves, model.margins(problem.inputs), _slack(model, problem), problem.cost.norm == "l2")


def _strictest_half(halves: Sequence[_Offers], margins: FloatArray, slack: FloatArray, l2: bool) -> FloatArray:
    """The most that any half-space costs."""
    cost = np.zeros(len(margins))
    # allow for the rounding of margins, of the row and of its counterfactual
    need = -(margins + slack) / (1.0 + 32.0 * np.finfo(np.float64).eps)
    for j, half in enumerate(halves):
        cost = np.maximum(cost, half.price(np.maximum(need[:, j], 0.0), l2)[0])
    return np.asarray(cost * (1.0 - SHAVED))


def _slack(model: LinearModel, problem: Affected) -> FloatArray:
    """Largest rounding error of each margin: by sums in another order, and by the types of columns."""
    Z = problem.inputs
    size = np.abs(np.nan_to_num(Z)) @ np.abs(model.weights).T + np.abs(model.intercepts)
    for t in model.tables:
        size = size + np.abs(t.values(Z)).T
    narrow = (2.0 * problem.space.rounding * np.abs(np.nan_to_num(Z))) @ np.abs(model.weights).T
    return np.asarray(np.maximum(model.rounding(Z), 16.0 * np.finfo(np.float64).eps * size) + narrow)


@dataclass(frozen=True, slots=True)
class _Offers:
    """What one half-space can gain from each feature.

    Columns offer a gain of ``rate`` per unit of cost, up to ``most``; blocks offer lumps of gain at a price.
    """

    rate: FloatArray  # (n, columns)
    most: FloatArray  # (n, columns)
    lumps: FloatArray  # (n, blocks)
    prices: FloatArray  # (blocks,)
    exact: bool
    weights: FloatArray  # (columns,) in the margin
    columns: IntArray  # (columns,) indices in the encoded matrix
    targets: IntArray  # (blocks,) encoded column of the best permitted category

    def some(self, rows: IntArray) -> _Offers:
        """The same for some of the rows."""
        return replace(self, rate=self.rate[rows], most=self.most[rows], lumps=self.lumps[rows])

    @classmethod
    def of(cls, model: LinearModel, j: int, problem: Affected) -> _Offers:
        Z, cost, w = problem.inputs, problem.cost, model.weights[j]
        rates, mosts, lumps, prices = [np.zeros((len(Z), 0))], [np.zeros((len(Z), 0))], [np.zeros((len(Z), 0))], []
        columns: list[int] = []
        targets: list[int] = []
        exact = True
        for f in problem.space.movable:
            if f.is_block:
                part = w[f.columns]
                here = part[problem.space.codes(Z, f)]
                best = int(np.where(f.permitted, part, -np.inf).argmax())
                targets.append(f.start + best)
                lumps.append(np.maximum(part[best] - here, 0.0)[:, None])
                prices.append(cost.weight(f))
                continue
            tables = [t for t in model.tables if t.column == f.start]
            if not tables and w[f.start] == 0.0:
                continue
            scale, weight = cost.scales[f.name], cost.weight(f)
            if tables or not scale.is_linear:
                rate, most = _relaxed(f, Z[:, f.start], float(w[f.start]), tables, j, scale, weight)
            else:
                room = _room(f, Z[:, f.start], up=w[f.start] > 0)
                rate = np.full(len(Z), abs(w[f.start]) / (weight * scale.slopes[0]))
                most = np.where(room > 0, abs(w[f.start]) * room, 0.0)
            exact = exact and not (tables or f.whole or not scale.is_linear)
            rates.append(rate[:, None])
            mosts.append(most[:, None])
            columns.append(f.start)
        indices = np.array(columns, dtype=np.int64)
        offers = (np.hstack(rates), np.hstack(mosts), np.hstack(lumps), np.array(prices), exact)
        return cls(*offers, w[indices], indices, np.array(targets, dtype=np.int64))._few_cases()

    def _few_cases(self) -> _Offers:
        """The same, with blocks relaxed to fractions if there are too many ways to choose among them."""
        _, counts = np.unique(self.prices, return_counts=True)
        if np.prod(counts + 1.0) <= MOST_CASES:
            return self
        return replace(
            self,
            rate=np.hstack([self.rate, self.lumps / self.prices]),
            most=np.hstack([self.most, self.lumps]),
            lumps=np.zeros((len(self.lumps), 0)),
            prices=np.zeros(0),
            exact=False,
        )

    def price(self, need: FloatArray, l2: bool) -> tuple[FloatArray, IntArray]:
        """Least cost at which each row gains what it needs, and the case in which it does."""
        fill = _FillL2.of(self.rate, self.most) if l2 else _FillL1.of(self.rate, self.most)
        best, which = np.full(len(need), np.inf), np.zeros(len(need), dtype=np.int64)
        for i, (spent, gained, _) in enumerate(self._cases(l2)):
            paid = spent + fill.price(np.maximum(need - gained, 0.0))
            which = np.where(paid < best, i, which)
            best = np.minimum(best, paid)
        return (np.sqrt(best) if l2 else best), which

    def points(self, need: FloatArray, l2: bool, space: FeatureSpace, Z: FloatArray) -> FloatArray:
        """The cheapest rows that gain what each needs."""
        which = self.price(need, l2)[1]
        out = Z.copy()
        distinct = np.unique(self.prices)
        block_of = {f.start + c: f for f in space.blocks for c in range(f.width)}
        for i, (_, gained, counts) in enumerate(self._cases(l2)):
            rows = np.flatnonzero(which == i)
            if not rows.size:
                continue
            for p, count in zip(distinct, counts, strict=True):
                mine = np.flatnonzero(self.prices == p)
                for b in np.argsort(-self.lumps[np.ix_(rows, mine)], axis=1, kind="stable")[:, :count].T:
                    for block in np.unique(mine[b]):
                        some = rows[mine[b] == block]
                        some = some[self.lumps[some, block] > 0]
                        f = block_of[int(self.targets[block])]
                        out[some, f.columns] = 0.0
                        out[some, self.targets[block]] = 1.0
            gain = _filled(self.rate[rows], self.most[rows], np.maximum(need - gained, 0.0)[rows], l2)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = np.where(gain > 0, gain / self.weights, 0.0)
            out[np.ix_(rows, self.columns)] += step
        for f in space.scalars:
            z = out[:, f.start]
            out[:, f.start] = np.where(z == Z[:, f.start], z, np.clip(z, f.low, f.high))
        return out

    def _cases(self, l2: bool) -> Iterator[tuple[float, FloatArray, tuple[int, ...]]]:
        """All choices of how many blocks of each price: their cost (squared, for l2), largest gains, and numbers."""
        distinct = np.unique(self.prices)
        sums = []
        for p in distinct:
            gains = -np.sort(-self.lumps[:, self.prices == p], axis=1)
            sums.append(np.hstack([np.zeros((len(gains), 1)), np.cumsum(gains, axis=1)]))
        for counts in product(*(range(s.shape[1]) for s in sums)):
            spent = sum((p * p if l2 else p) * c for p, c in zip(distinct, counts, strict=True))
            gained = sum((s[:, c] for s, c in zip(sums, counts, strict=True)), np.zeros(len(self.lumps)))
            yield float(spent), gained, counts


def _filled(rate: FloatArray, most: FloatArray, need: FloatArray, l2: bool) -> FloatArray:
    """Gains of the columns that add up to what is needed at least cost: ``(n, columns)``."""
    most = np.where(rate > 0, most, 0.0)
    if not l2:
        order = np.argsort(-rate, axis=1, kind="stable")
        offered = np.take_along_axis(most, order, axis=1)
        before = np.cumsum(np.hstack([np.zeros((len(need), 1)), offered]), axis=1)[:, :-1]
        taken = np.clip(need[:, None] - before, 0.0, offered)
        out = np.zeros_like(taken)
        np.put_along_axis(out, order, taken, axis=1)
        return np.asarray(out)
    fill = _FillL2.of(rate, most)
    last = (fill.full < need[:, None]).sum(axis=1)[:, None]
    gained, squares = (np.take_along_axis(a, last, axis=1) for a in (fill.gained, fill.squares))
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.where(squares > 0, np.maximum(need[:, None] - gained, 0.0) / squares, np.inf)
        taken = np.where(need[:, None] > 0, np.minimum(level * rate * rate, most), 0.0)
    return np.asarray(np.where(rate > 0, taken, 0.0))


@dataclass(frozen=True, slots=True)
class _FillL1:
    """The continuous part with l1 costs: columns are used up in the order of their rates."""

    rate: FloatArray  # (n, columns + 1), descending; the last is 0
    gained: FloatArray  # by the columns before
    spent: FloatArray

    @classmethod
    def of(cls, rate: FloatArray, most: FloatArray) -> _FillL1:
        order = np.argsort(-rate, axis=1, kind="stable")
        rate, most = np.take_along_axis(rate, order, axis=1), np.take_along_axis(most, order, axis=1)
        none = np.zeros((len(rate), 1))
        cost = np.divide(most, rate, out=np.zeros_like(most), where=rate > 0)
        return cls(
            np.hstack([rate, none]),
            np.hstack([none, np.cumsum(np.where(rate > 0, most, 0.0), axis=1)]),
            np.hstack([none, np.cumsum(cost, axis=1)]),
        )

    def price(self, need: FloatArray) -> FloatArray:
        """Least cost of a gain; ``inf`` where it is more than all columns offer."""
        last = (self.gained[:, 1:] < need[:, None]).sum(axis=1)[:, None]  # columns used up before
        rate, gained, spent = (np.take_along_axis(a, last, axis=1)[:, 0] for a in (self.rate, self.gained, self.spent))
        left = np.maximum(need - gained, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(left > 0, spent + left / rate, np.where(need > 0, spent, 0.0))


@dataclass(frozen=True, slots=True)
class _FillL2:
    """The continuous part with l2 costs, squared: each column in proportion to its rate, until it is used up."""

    gained: FloatArray  # (n, columns + 1) by the columns used up before
    spent: FloatArray  # squared
    squares: FloatArray  # sum of squared rates of the columns not used up
    full: FloatArray  # (n, columns) total gain when one more is used up

    @classmethod
    def of(cls, rate: FloatArray, most: FloatArray) -> _FillL2:
        used_up = np.divide(most, rate * rate, out=np.zeros_like(most), where=rate > 0)
        order = np.argsort(used_up, axis=1, kind="stable")
        rate, most, used_up = (np.take_along_axis(a, order, axis=1) for a in (rate, most, used_up))
        cost = np.divide(most, rate, out=np.zeros_like(most), where=rate > 0)
        none = np.zeros((len(rate), 1))
        gained = np.hstack([none, np.cumsum(np.where(rate > 0, most, 0.0), axis=1)])
        open_ = np.hstack([np.cumsum((rate * rate)[:, ::-1], axis=1)[:, ::-1], none])
        with np.errstate(invalid="ignore"):
            full = np.where(np.isinf(used_up), np.inf, gained[:, :-1] + used_up * open_[:, :-1])
        return cls(gained, np.hstack([none, np.cumsum(cost * cost, axis=1)]), open_, full)

    def price(self, need: FloatArray) -> FloatArray:
        """Least squared cost of a gain."""
        last = (self.full < need[:, None]).sum(axis=1)[:, None]
        gained, spent, squares = (
            np.take_along_axis(a, last, axis=1)[:, 0] for a in (self.gained, self.spent, self.squares)
        )
        left = np.maximum(need - gained, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(left > 0, spent + left * left / squares, np.where(need > 0, spent, 0.0))


def _room(f: Feature, x: FloatArray, *, up: bool) -> FloatArray:
    """How far each row may move up or down; 0 against the allowed sense, or where its value is missing."""
    if f.sense and (f.sense > 0) != up:
        return np.zeros(len(x))
    room = f.high - x if up else x - f.low
    return np.where(np.isnan(x), 0.0, np.maximum(room, 0.0))


def _relaxed(
    f: Feature, x: FloatArray, w: float, tables: list[StepTable], j: int, scale: Scale, weight: float
) -> tuple[FloatArray, FloatArray]:
    """Best gain per unit of cost within reach, and the largest gain: a linear upper bound on the true curve.

    Between edges of the tables and knots of the scale both gain and cost are linear, so the best ratio is at one of
    these, or beyond all of them.
    """
    edges = np.unique(np.concatenate([scale.knots, *(t.edges for t in tables)]))
    ends = [e for e in (f.low, f.high) if np.isfinite(e)]
    # on an edge and just past it, where a step table changes; an ordinal feature only takes its codes
    stops = np.unique(np.concatenate([edges, np.nextafter(edges, np.inf), ends]))
    if f.kind == "ordinal":
        stops = np.arange(f.low, f.high + 1.0)

    def value(z: FloatArray) -> FloatArray:
        """What the column adds to the margin."""
        total = w * z
        for t in tables:
            total = total + t.values(np.broadcast_to(z.reshape(-1, 1), (z.size, t.column + 1)))[j].reshape(z.shape)
        return np.asarray(total)

    start, position = value(x), scale(x)
    rate, most = np.zeros(len(x)), np.zeros(len(x))
    for stop in stops:
        up = stop > x
        room = np.where(up, _room(f, x, up=True), _room(f, x, up=False))
        gain = np.where(np.abs(stop - x) <= room, value(np.full(len(x), stop)) - start, 0.0)
        paid = weight * np.abs(scale(np.full(len(x), stop)) - position)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.fmax(rate, np.where(gain > 0, gain / paid, 0.0))
        most = np.fmax(most, gain)
    unbounded = np.isinf(_room(f, x, up=w > 0)) if w else np.zeros(len(x), bool)
    slope = scale.slopes[1 if w > 0 else 0]
    rate = np.where(unbounded, np.maximum(rate, abs(w) / (weight * slope)), rate)
    return np.minimum(rate, STEEPEST), np.where(unbounded, np.inf, most)
