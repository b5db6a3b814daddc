"""Is a bound attained, and does anything refute it? Both are settled with the user's own model."""

from __future__ import annotations

from typing import Any

import numpy as np

from globece.case.affected import Affected
from globece.costs import CostModel
from globece.errors import VerificationError
from globece.space import BoolArray, Feature, FeatureSpace, FloatArray

EQUAL = 1e-9  # relative above a cost of 1, absolute below: costs that are taken to be the same
SAMPLE = 512  # changes on which a compiled model is held against the user's own


def attains(problem: Affected, rows: FloatArray, points: FloatArray, bound: FloatArray) -> BoolArray:
    """Whether each point is one that its row may become, costs the bound, and is favourable, compiled and original."""
    out = np.zeros(len(rows), dtype=bool)
    known = np.flatnonzero(np.isfinite(bound) & (np.isnan(points) == np.isnan(rows)).all(axis=1))
    if not known.size:
        return out
    Z, after = rows[known], problem.space.settle(points[known])
    paid = problem.cost.between(Z, after)
    same = np.abs(paid - bound[known]) <= EQUAL * np.maximum(1.0, bound[known])
    same &= may_become(problem.space, Z, after)
    left = known[same]
    if left.size:
        model = problem.model
        yes = model.favourable(after[same])
        out[left] = yes & model.followed.favourable(after[same])
    return out


def may_become(space: FeatureSpace, Z: FloatArray, after: FloatArray) -> BoolArray:
    """Whether the constraints let each row become the one beside it."""
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
            low, high = settled_range(f, float(space.rounding[f.start]))
            ok = (now >= low) & (now <= high)
            ok &= f.sense * (now - before) >= 0
            if f.whole:
                steps = now - np.clip(before, f.low, f.high)  # a row outside its range enters it first
                ok &= (np.rint(steps) == steps) | (now == f.low) | (now == f.high)
            if f.kind == "ordinal":
                place = np.nan_to_num(now).astype(np.int64).clip(0, len(f.permitted) - 1)
                ok &= np.array(f.permitted)[place]
            out &= stays | ok
    return out


def settled_range(feature: Feature, unit: float) -> tuple[float, float]:
    """A feature's range, its ends rounded to the column's own type outwards."""
    low, high = feature.low, feature.high
    return (low - unit * abs(low) if np.isfinite(low) else low), (
        high + unit * abs(high) if np.isfinite(high) else high
    )


def refute(problem: Affected, bound: FloatArray, within: FloatArray | None) -> None:
    """Raise if a counterfactual is known that costs less than its bound, or if a sample of changes shows one.

    Parameters
    ----------
    problem
        The problem whose bounds these are.
    bound
        A bound for each input.
    within
        What a counterfactual of each input costs that the user's own model has confirmed; ``inf`` where none is known.
    """
    name = problem.model.name
    if within is not None:
        wrong = bound > within + EQUAL * np.maximum(1.0, np.where(np.isfinite(within), within, 1.0))
        if wrong.any():
            i = int(np.argmax(wrong))
            raise VerificationError(
                f"no bound is known: {name} as compiled gives input {i} a bound of {bound[i]:.6g}, and a "
                f"counterfactual of {within[i]:.6g} flips {name} itself; "
                f"so for {int(wrong.sum()):,} of {len(bound):,} inputs"
            )
    if not problem.model.is_compiled or not len(bound):
        return
    rows, after = _changes(problem.space, problem.cost, problem.inputs, np.minimum(bound, problem.budget))
    if not len(rows):
        return
    theirs, margin = problem.model.favourable(after), problem.model.followed.margin(after)
    differ = theirs != problem.model.followed.favourable(after)
    differ &= np.abs(margin) > 1e-6 * np.abs(margin).max(initial=0.0)  # nearer than that it may be rounding
    if differ.any():
        raise VerificationError(
            f"no bound is known: {name} as compiled and {name} itself disagree on {int(differ.sum()):,} of "
            f"{len(rows):,} changes that were tried"
        )
    paid = problem.cost.between(problem.inputs[rows], after)
    wrong = theirs & (paid < bound[rows] - EQUAL * np.maximum(1.0, paid))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise VerificationError(
            f"no bound is known: {name} as compiled gives input {rows[i]} a bound of {bound[rows[i]]:.6g}, and a "
            f"change that costs {paid[i]:.6g} flips {name} itself; "
            f"so for {int(wrong.sum()):,} of {len(rows):,} changes tried"
        )


def _changes(space: FeatureSpace, cost: CostModel, Z: FloatArray, limit: FloatArray) -> tuple[Any, FloatArray]:
    """Random changes of some rows, of one feature or of several together, most of them below a limit."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(Z), SAMPLE) if len(Z) > SAMPLE else np.resize(np.arange(len(Z)), SAMPLE)
    after = Z[rows].copy()
    if not space.movable:
        return rows[:0], after[:0]
    spent = np.where(np.isfinite(limit[rows]), limit[rows], 10.0) * rng.random(SAMPLE)
    share = 1.0 / rng.integers(1, 4, SAMPLE)  # one feature takes it all, or two or three together
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
