"""Where a row is at k, and what it has paid by then: rays x + k * delta over mixed features. No model in here.

Along a ray a continuous feature moves in a straight line until its range ends, a whole-numbered one in steps, and a
one-hot block switches once (Theorems 1 and 2 of the paper). One definition serves everybody: `positions` says where a
row is, and whatever searches for k must agree with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from globece.costs import CostModel
from globece.space import BoolArray, Feature, FeatureSpace, FloatArray, IntArray

# Sums of costs such as 0.1 + 0.2 may exceed the budget by rounding alone.
BUDGET_SLACK = 1e-12


def lower_bounds(delta: FloatArray, permitted: BoolArray | None = None) -> tuple[int, FloatArray]:
    """Theorem 2: the category that a block moves to, and for each category the k that it must exceed to get there.

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
        with np.errstate(over="ignore"):  # two entries that nearly tie switch at a k beyond all numbers: never
            bounds[below] = 1.0 / (delta[target] - delta[below])
    return target, bounds


@dataclass(frozen=True, slots=True)
class Switch:
    """What one block does along one direction."""

    feature: Feature
    target: int
    bounds: FloatArray  # (categories,)

    def per_row(self, codes: IntArray) -> FloatArray:
        """The k that each row must exceed to switch."""
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

    It moves within its range. A row that starts outside and is led towards the range enters it at the nearest end as
    soon as k > 0, and travels on from there; one that is led away does not move. In whole numbers it moves to the
    nearest one, and exactly half way it has not moved yet: a tie keeps its value.

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
    led_away = x > feature.high if step > 0 else x < feature.low
    return np.where((k > 0.0) & ~led_away, there, x)


def entered(feature: Feature, x: FloatArray, step: float) -> FloatArray:
    """Where a feature sets out from: its value, or the nearest end of its range that it is led towards."""
    return np.maximum(x, feature.low) if step > 0 else np.minimum(x, feature.high)


def starts_outside(space: FeatureSpace, Z: FloatArray) -> BoolArray:
    """Which rows have a movable feature outside its range."""
    out = np.zeros(len(Z), dtype=bool)
    for f in space.scalars:
        if f.can_move:
            out |= (Z[:, f.start] < f.low) | (Z[:, f.start] > f.high)
    return out


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
    """Cost of travelling to k, without making the counterfactuals; ``inf`` where k is."""
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
    """For each row the k that it must exceed for each block to switch; ``inf`` where a block stays. (rows, blocks)."""
    found = [s.per_row(space.codes(Z, s.feature)) for s in switches(space, delta)]
    return np.column_stack(found) if found else np.zeros((len(Z), 0))


def horizon(cost: CostModel, Z: FloatArray, delta: FloatArray, budget: float) -> FloatArray:
    """For each row a k beyond which nothing new can happen within the budget.

    Either the row has moved as far as it can, or its continuous features alone have used the budget up.
    """
    space = cost.space
    last = np.zeros(len(Z))  # where everything that has an end has reached it
    rates, lags = [], []  # what each endless feature costs per k at least; a whole step may lag half a unit behind
    for f, step in movers(space, delta):
        x = entered(f, Z[:, f.start], step)
        end = f.high if step > 0 else f.low
        if np.isfinite(end):
            room = np.nan_to_num(np.maximum((end - x) * np.sign(step), 0.0), nan=0.0)
            last = np.maximum(last, (room + 0.5 * f.whole) / abs(step))
        else:
            slope = cost.weight(f) * cost.scales[f.name].least_slope
            rates.append(np.where(np.isnan(x), 0.0, slope * abs(step)))
            lags.append(np.full(len(Z), 0.5 * slope * f.whole))
    bounds = row_switches(space, Z, delta)
    if bounds.shape[1]:
        last = np.maximum(last, np.where(np.isfinite(bounds), bounds, 0.0).max(axis=1))
    last = np.nextafter(last * (1 + 1e-9), np.inf)  # past the last switch, and past rounding at a range's end
    if not rates:
        return last
    rate, lag = cost.combine(rates, len(Z)), cost.combine(lags, len(Z))
    with np.errstate(divide="ignore"):
        spent = (budget + lag) / rate * (1 + 1e-9)
    return np.where(rate > 0, spent, last)
