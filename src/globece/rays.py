"""Rays x + k * delta over mixed features: the position and the cost of a row at k. No model is involved.

Along a ray a continuous feature moves in a straight line until its range ends, a whole-numbered one in steps, and a
one-hot block switches once (Theorems 1 and 2 of the paper). `positions` is the one definition of where a row is, and
whatever computes k must agree with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from globece.costs import CostModel
from globece.space import BoolArray, Feature, FeatureSpace, FloatArray, IntArray

# Sums of costs such as 0.1 + 0.2 may exceed the budget by rounding alone.
BUDGET_SLACK = 1e-12
SWITCH_SLACK = 1e-9  # the same for sums in another order


def lower_bounds(delta: FloatArray, permitted: BoolArray | None = None) -> tuple[int, FloatArray]:
    """Theorem 2: the category that a block moves to, and for each category the k past which it switches.

    Parameters
    ----------
    delta
        The direction's entries for one block.
    permitted
        Which categories may be moved to; all by default.

    Returns
    -------
    target, bounds
        Index of the one Then, and k_i = 1 / (delta_target - delta_i); ``inf`` for a category that never switches,
        which is the target itself and every category that is not below it.

    Examples
    --------
    The paper's worked example (appendix, "Scaled Translation Example"):

    >>> import numpy as np
    >>> lower_bounds(np.array([0, -1, 1, 1 / 2]))
    (2, array([1. , 0.5, inf, 2. ]))
    """
    eligible = delta if permitted is None else np.where(permitted, delta, -np.inf)
    target = int(np.argmax(eligible))
    bounds = np.full(len(delta), np.inf)
    if np.isfinite(eligible[target]):
        below = delta < delta[target]
        with np.errstate(over="ignore"):  # entries that nearly tie never switch: their k overflows
            bounds[below] = 1.0 / (delta[target] - delta[below])
    return target, bounds


@dataclass(frozen=True, slots=True)
class Switch:
    """The switch of one block along one direction."""

    feature: Feature
    target: int
    bounds: FloatArray  # (categories,)

    def per_row(self, codes: IntArray) -> FloatArray:
        """The k past which each row switches."""
        return self.bounds[codes]


def switches(space: FeatureSpace, delta: FloatArray) -> Iterator[Switch]:
    """Blocks that a direction moves, each with its target and bounds."""
    for f in space.blocks:
        part = delta[f.columns]
        if f.can_move and part.any():
            target, bounds = lower_bounds(part, np.array(f.permitted))
            if np.isfinite(bounds).any():
                yield Switch(f, target, bounds)


def movers(space: FeatureSpace, delta: FloatArray) -> Iterator[tuple[Feature, float]]:
    """Continuous and ordinal features that a direction moves, each with its entry."""
    for f in space.scalars:
        if delta[f.start] != 0.0 and f.can_move:
            yield f, float(delta[f.start])


def travel(feature: Feature, x: FloatArray, step: float, k: FloatArray) -> FloatArray:
    """Value of one continuous or ordinal feature at k.

    It moves within its range. A row that starts outside and moves towards the range enters it at the nearest end as
    soon as k > 0, and continues from there; one that would move away stays. A whole-numbered feature moves to the
    nearest whole number, and exactly half way it has not moved yet: a tie keeps its value.

    Examples
    --------
    >>> import numpy as np
    >>> space = FeatureSpace.from_matrix(np.array([[1.0], [5.0], [9.0]]), columns=["x"], ranges={"x": (4, 6)})
    >>> [travel(space["x"], np.array([1.0, 5.0, 9.0]), 0.5, np.full(3, k)).tolist() for k in (0.0, 1e-20, 1.0)]
    [[1.0, 5.0, 9.0], [4.0, 5.0, 9.0], [4.5, 5.5, 9.0]]
    """
    moved = k * step
    if feature.whole:
        moved = np.sign(step) * np.ceil(np.abs(moved) - 0.5)
    there = np.minimum(np.maximum(entered(feature, x, step) + moved, feature.low), feature.high)
    moves_away = x > feature.high if step > 0 else x < feature.low
    return np.where((k > 0.0) & ~moves_away, there, x)


def entered(feature: Feature, x: FloatArray, step: float) -> FloatArray:
    """Where a feature starts: its value, or the end of its range at which it enters."""
    return np.maximum(x, feature.low) if step > 0 else np.minimum(x, feature.high)


def positions(space: FeatureSpace, Z: FloatArray, delta: FloatArray, k: FloatArray | float) -> FloatArray:
    """The counterfactual round(x + k * delta) of each row: valid one-hot blocks, in range, whole where it must be.

    Parameters
    ----------
    space, Z, delta
        The space, encoded rows, and one direction.
    k
        One scalar for all rows, or one each. ``inf`` ("no recourse") leaves a row where it is.
    """
    k = np.broadcast_to(np.asarray(k, dtype=np.float64), (len(Z),))
    k = np.where(np.isfinite(k), k, 0.0)
    out = Z.copy()
    for f, step in movers(space, delta):
        out[:, f.start] = travel(f, Z[:, f.start], step, k)
    for s in switches(space, delta):
        rows = np.flatnonzero(k > s.per_row(space.codes(Z, s.feature)))
        out[rows, s.feature.columns] = 0.0
        out[rows, s.feature.start + s.target] = 1.0
    return out


def cost_at(cost: CostModel, Z: FloatArray, delta: FloatArray, k: FloatArray) -> FloatArray:
    """Cost of moving to k, without computing the counterfactuals; ``inf`` where k is."""
    space = cost.space
    finite = np.isfinite(k)
    at = np.where(finite, k, 0.0)
    parts = [cost.change(f, Z[:, f.start], travel(f, Z[:, f.start], step, at)) for f, step in movers(space, delta)]
    for s in switches(space, delta):
        switched = at > s.per_row(space.codes(Z, s.feature))
        parts.append(cost.weight(s.feature) * switched.astype(np.float64))
    return np.where(finite, cost.combine(parts, len(Z)), np.inf)


def breakpoints(space: FeatureSpace, delta: FloatArray) -> FloatArray:
    """All finite lower bounds of a direction, ascending and without repeats: where its rules are added."""
    found = [s.bounds[np.isfinite(s.bounds)] for s in switches(space, delta)]
    return np.unique(np.concatenate(found)) if found else np.zeros(0)


def row_switches(space: FeatureSpace, Z: FloatArray, delta: FloatArray) -> FloatArray:
    """For each row the k past which each block switches; ``inf`` where a block stays: ``(rows, blocks)``."""
    found = [s.per_row(space.codes(Z, s.feature)) for s in switches(space, delta)]
    return np.column_stack(found) if found else np.zeros((len(Z), 0))


def horizon(cost: CostModel, Z: FloatArray, delta: FloatArray, budget: float | FloatArray) -> FloatArray:
    """For each row a k beyond which nothing new can happen within the budget, which may be per row.

    Either the row has moved as far as it can, or its continuous and ordinal features alone have used up the budget, or
    its switches have.
    """
    space = cost.space
    last = np.zeros(len(Z))  # where all features with a finite range have reached its end
    endless = np.zeros(len(Z), dtype=bool)  # whether some feature never does, and costs something
    rates, lags, ends, rooms = [], [], [], []  # least cost per k; a whole step may lag half a unit behind
    for f, step in movers(space, delta):
        x = entered(f, Z[:, f.start], step)
        end = f.high if step > 0 else f.low
        room = np.where(np.isnan(x), 0.0, np.maximum((end - x) * np.sign(step), 0.0))
        slope = cost.weight(f) * cost.scales[f.name].least_slope
        rates.append(np.where(np.isnan(x), 0.0, slope * abs(step)))
        lags.append(np.full(len(Z), 0.5 * slope * f.whole))
        ends.append((room + 0.5 * f.whole) / abs(step))
        with np.errstate(invalid="ignore"):
            rooms.append(slope * room)
        if np.isfinite(end):
            last = np.maximum(last, ends[-1])
        else:
            endless |= rates[-1] > 0
    bounds = row_switches(space, Z, delta)
    if bounds.shape[1]:
        last = np.maximum(last, np.where(np.isfinite(bounds), bounds, 0.0).max(axis=1))
    last = np.nextafter(last * (1 + 1e-9), np.inf)  # past the last switch, and past rounding at a range's end
    overspent = _overspent_by(cost, delta, bounds, budget)
    if not rates:
        return np.minimum(last, overspent)
    until = _spent_by(cost, np.array(rates), np.array(lags), np.array(ends), np.array(rooms), budget)
    return np.minimum(np.where(endless, until, np.minimum(until, last)), overspent)


def _overspent_by(cost: CostModel, delta: FloatArray, bounds: FloatArray, budget: float | FloatArray) -> FloatArray:
    """The k past which switches alone cost more than the budget: ``(rows,)``."""
    weights = np.array([cost.weight(s.feature) for s in switches(cost.space, delta)])
    if not weights.size:
        return np.full(len(bounds), np.inf)
    power, order = 1 if cost.norm == "l1" else 2, np.argsort(bounds, axis=1, kind="stable")
    spent, when = np.cumsum(weights[order] ** power, axis=1), np.take_along_axis(bounds, order, axis=1)
    most = np.broadcast_to(np.asarray(budget * (1 + SWITCH_SLACK)) ** power, len(bounds))
    return np.asarray(np.where(spent > most[:, None], when, np.inf).min(axis=1))


def _spent_by(
    cost: CostModel,
    rates: FloatArray,
    lags: FloatArray,
    ends: FloatArray,
    rooms: FloatArray,
    budget: float | FloatArray,
) -> FloatArray:
    """A k by which features have spent the budget, each at its rate until it ends; ``(features, rows)``."""
    power = 1 if cost.norm == "l1" else 2
    available = budget * (1 + BUDGET_SLACK) + (lags**power).sum(axis=0) ** (1 / power)
    ended = rates <= 0
    while True:
        rate = np.where(ended, 0.0, rates**power).sum(axis=0)
        spent = np.where(ended & (rates > 0), rooms, 0.0) ** power
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.maximum(available**power - spent.sum(axis=0), 0.0)
            until = np.where(rate > 0, (left / rate) ** (1 / power), np.inf) * (1 + 1e-9)
        more = ~ended & (ends < until)
        if not more.any():
            return until
        ended |= more
