"""Whether a bound is attained, and whether anything refutes it, according to the user's model."""

from __future__ import annotations

from typing import Any

import numpy as np

from globece.case.affected import Affected
from globece.costs import CostModel
from globece.errors import VerificationError
from globece.space import BoolArray, Feature, FeatureSpace, FloatArray, IntArray

EQUAL = 1e-9  # tolerance for equal costs: relative above a cost of 1, absolute below
SAMPLE = 512  # changes on which a compiled model is compared with the user's


def attains(problem: Affected, rows: FloatArray, points: FloatArray, bound: FloatArray) -> BoolArray:
    """Whether each point satisfies the constraints, costs the bound, and is favourable to both models."""
    out = np.zeros(len(rows), dtype=bool)
    known = np.flatnonzero(np.isfinite(bound) & (np.isnan(points) == np.isnan(rows)).all(axis=1))
    if not known.size:
        return out
    Z, after = rows[known], problem.space.settle(points[known])
    paid = problem.cost.between(Z, after)
    same = np.abs(paid - bound[known]) <= EQUAL * np.maximum(1.0, bound[known])
    same &= may_become(problem.space, Z, after)
    if same.any():
        model = problem.model
        out[known[same]] = model.favourable(after[same]) & model.followed.favourable(after[same])
    return out


def may_become(space: FeatureSpace, Z: FloatArray, after: FloatArray) -> BoolArray:
    """Whether the constraints allow each row of ``Z`` to become the same row of ``after``."""
    out = np.ones(len(Z), dtype=bool)
    for f in space.features:
        x, z = Z[:, f.columns], after[:, f.columns]
        stays = ((x == z) | (np.isnan(x) & np.isnan(z))).all(axis=1)
        if not f.can_move:
            out &= stays
        elif f.is_block:
            valid = ((z == 0.0) | (z == 1.0)).all(axis=1) & (z.sum(axis=1) == 1.0)
            out &= stays | (valid & np.array(f.permitted)[z.argmax(axis=1)])
        else:
            before, now = x[:, 0], z[:, 0]
            low, high = rounded_range(f, float(space.rounding[f.start]))
            ok = (now >= low) & (now <= high)
            ok &= f.sense * (now - before) >= 0
            if f.whole:
                steps = now - np.clip(before, f.low, f.high)  # a row outside its range enters it first
                ok &= (np.rint(steps) == steps) | (now == f.low) | (now == f.high)
            if f.kind == "ordinal":
                code = np.nan_to_num(now).astype(np.int64).clip(0, len(f.permitted) - 1)
                ok &= np.array(f.permitted)[code]
            out &= stays | ok
    return out


def rounded_range(feature: Feature, unit: float) -> tuple[float, float]:
    """A feature's range, with its ends rounded outwards to the column's type."""
    low, high = feature.low, feature.high
    return (low - unit * abs(low) if np.isfinite(low) else low), (
        high + unit * abs(high) if np.isfinite(high) else high
    )


def refute(problem: Affected, bound: FloatArray, within: FloatArray | None) -> None:
    """Raise if a known counterfactual, or one of a sample of changes, costs less than its bound.

    Parameters
    ----------
    problem
        The problem whose bounds these are.
    bound
        A bound for each input.
    within
        Cost of a counterfactual of each input that the user's model has confirmed; ``inf`` where none is known.
    """
    name = problem.model.name
    if within is not None:
        wrong = bound > within + EQUAL * np.maximum(1.0, np.where(np.isfinite(within), within, 1.0))
        _raise_if(wrong, name, np.arange(len(bound)), bound, within)
    if not problem.model.is_compiled or not len(bound):
        return
    rows, after = _changes(problem.space, problem.cost, problem.inputs, np.minimum(bound, problem.budget))
    if not len(rows):
        return
    flips, margin = problem.model.favourable(after), problem.model.followed.margin(after)
    differ = flips != problem.model.followed.favourable(after)
    differ &= np.abs(margin) > 1e-6 * np.abs(margin).max(initial=0.0)  # nearer than that it may be rounding
    if differ.any():
        raise VerificationError(
            f"no bound is known: the compiled {name} and {name} itself disagree on {int(differ.sum()):,} of "
            f"{len(rows):,} changes that were tried"
        )
    paid = problem.cost.between(problem.inputs[rows], after)
    _raise_if(flips & (paid < bound[rows] - EQUAL * np.maximum(1.0, paid)), name, rows, bound, paid)


def _raise_if(wrong: BoolArray, name: str, rows: IntArray, bound: FloatArray, paid: FloatArray) -> None:
    """Raise if any change of these rows is wrong: favourable, and cheaper than the row's bound."""
    if wrong.any():
        i = int(np.argmax(wrong))
        raise VerificationError(
            f"no bound is known: the compiled {name} gives input {rows[i]} a bound of {bound[rows[i]]:.6g}, and a "
            f"change that costs {paid[i]:.6g} flips {name} itself; so for {int(wrong.sum()):,} of {len(rows):,} changes"
        )


def _changes(space: FeatureSpace, cost: CostModel, Z: FloatArray, limit: FloatArray) -> tuple[Any, FloatArray]:
    """Random changes of some rows, of one or several features, most of them cheaper than a limit."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(Z), SAMPLE) if len(Z) > SAMPLE else np.resize(np.arange(len(Z)), SAMPLE)
    after = Z[rows].copy()
    if not space.movable:
        return rows[:0], after[:0]
    spent = np.where(np.isfinite(limit[rows]), limit[rows], 10.0) * rng.random(SAMPLE)
    share = 1.0 / rng.integers(1, 4, SAMPLE)  # spread over one, two or three features
    for f in space.movable:
        moves = rng.random(SAMPLE) < np.maximum(share, 1.0 / len(space.movable))
        if f.is_block:
            to = rng.choice(np.flatnonzero(f.permitted), SAMPLE)
            new = np.eye(f.width)[to]
            after[:, f.columns] = np.where(moves[:, None], new, after[:, f.columns])
            continue
        rate = max(float(cost.rates[f.start]), 1e-300)
        sign = np.full(SAMPLE, f.sense) if f.sense else rng.choice([-1.0, 1.0], SAMPLE)
        step = sign * spent * share / rate
        x = after[:, f.start]
        moved = np.clip(np.clip(x, f.low, f.high) + (np.rint(step) if f.whole else step), f.low, f.high)
        fits = moves & np.isfinite(moved) & (f.sense * (moved - x) >= 0)
        after[:, f.start] = np.where(fits, moved, x)
    changed = ~((after == Z[rows]) | np.isnan(after)).all(axis=1)
    return rows[changed], space.settle(after[changed])
