"""Verification: every counterfactual is predicted again by the user's model, in the user's columns.

Every counterfactual of a compiled model must be favourable to the original; one that is not is moved slightly further,
since right on the boundary rounding decides. And on some rays the original is called on points before the scalar,
which must not be favourable. If the original disagrees, it was compiled wrongly: :func:`trusting` then repeats the work
with a search that only uses the original, and warns. Counterfactuals of a searched model must also flip in another
batch (:mod:`globece.case.batches`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from globece import rays
from globece.case.affected import Affected, Case
from globece.case.batches import hold_in_any_batch, is_searched
from globece.case.scaling import Scaled, limits
from globece.errors import GlobeCEWarning, VerificationError
from globece.models.compiling.checking import spot_check
from globece.space import BoolArray, FloatArray, IntArray

T = TypeVar("T")
Asked = TypeVar("Asked", Affected, Case)

VERIFY_ROWS = 65_536
FURTHEST = 1e-6  # largest relative increase of a scalar, to get past rounding
ASKED_AGAIN = 4  # times, to tell chance from a model that depends on the batch
ROUNDINGS = 7  # or by 1, 2, 4, ... 64 roundings of a narrow column


class Disagreement(VerificationError):
    """The original and its compiled model disagree."""


def confirmed(problem: Affected, directions: FloatArray, scaled: Scaled) -> Scaled:
    """Scalars and costs that the user's model confirms; a counterfactual that does not flip is an error.

    Raises
    ------
    Disagreement
        If the model was compiled, and the original disagrees.
    VerificationError
        If the model does not predict the same again.
    """
    first = ~verify(problem, directions, scaled)
    scaled, failed = nudge_past_rounding(problem, directions, scaled, first)
    if first.any():  # a random model may pass once, but hardly twice
        moved = replace(scaled, scalar=np.where(first, scaled.scalar, np.inf))
        failed |= ~verify(problem, directions, moved)
    compiled = problem.model.is_compiled
    if failed.any() and is_searched(problem.model) and not compiled and _answers_alike(problem, directions, scaled):
        return hold_in_any_batch(problem, directions, scaled, failed)
    if failed.any():
        i, j = (int(n) for n in np.argwhere(failed)[0])
        reported = int(np.isfinite(scaled.scalar[i]).sum())
        message = (
            f"{int(failed[i].sum()):,} of {reported:,} counterfactuals along direction {i} are not favourable when "
            f"{problem.model.name} predicts them again (first: affected input {j} at k = {scaled.scalar[i, j]!r})"
        )
        if compiled:
            raise Disagreement(message)
        raise VerificationError(f"{message}; does the model answer differently each time?")
    if compiled and scaled.flip is not None and len(problem.inputs):
        differs = spot_check(problem.model, problem.inputs, directions, scaled.flip, limits(problem, directions))
        if differs is not None:
            raise Disagreement(differs)
    return hold_in_any_batch(problem, directions, scaled) if is_searched(problem.model) else scaled


def verify(problem: Affected, directions: FloatArray, scaled: Scaled) -> BoolArray:
    """Whether each counterfactual is favourable to the user's model; ``True`` where there is none."""
    out = np.ones(scaled.scalar.shape, dtype=bool)
    for i, delta in enumerate(directions):
        rows = np.flatnonzero(np.isfinite(scaled.scalar[i]))
        out[i, rows] = _favourable_at(problem, delta, rows, scaled.scalar[i, rows])
    return out


def _answers_alike(problem: Affected, directions: FloatArray, scaled: Scaled) -> bool:
    """Whether the user's model says the same of the same batch: then its answers depend on the batch, not on chance."""
    first, *others = (verify(problem, directions, scaled) for _ in range(ASKED_AGAIN))
    return all(np.array_equal(first, other) for other in others)


def nudge_past_rounding(
    problem: Affected, directions: FloatArray, scaled: Scaled, failed: BoolArray
) -> tuple[Scaled, BoolArray]:
    """Increase the scalars of counterfactuals that failed slightly until they flip; return which still fail.

    Those that then cost more than the budget are no recourse.
    """
    if not failed.any():
        return scaled, failed
    scalar, paid, failed = scaled.scalar.copy(), scaled.cost.copy(), failed.copy()
    for i in np.flatnonzero(failed.any(axis=1)):
        rows = np.flatnonzero(failed[i])
        first, nudges = scalar[i, rows], _nudges(problem, directions[i], rows, scalar[i, rows])
        for j in range(nudges.shape[1]):
            if not rows.size:
                break
            k = first + nudges[:, j]
            flips = _favourable_at(problem, directions[i], rows, k)
            scalar[i, rows[flips]], failed[i, rows[flips]] = k[flips], False
            rows, first, nudges = rows[~flips], first[~flips], nudges[~flips]
        paid[i] = rays.cost_at(problem.cost, problem.inputs, directions[i], scalar[i])
    beyond = paid > problem.budget * (1.0 + rays.BUDGET_SLACK)
    failed &= ~beyond
    return replace(scaled, scalar=np.where(beyond, np.inf, scalar), cost=np.where(beyond, np.inf, paid)), failed


def _nudges(problem: Affected, delta: FloatArray, rows: IntArray, k: FloatArray) -> FloatArray:
    """Amounts to add to each k, ascending: multiples of the rounding of narrow columns, and shares of k."""
    shares = np.maximum(k, 1.0)[:, None] * np.geomspace(1e-12, FURTHEST, 8)
    after = rays.positions(problem.space, problem.inputs[rows], delta, k)
    moving = np.array([f.start for f, _ in rays.movers(problem.space, delta)], dtype=np.int64)
    moving = moving[problem.space.rounding[moving] > 0.0]
    one = np.abs(after[:, moving]) * problem.space.rounding[moving] / np.abs(delta[moving])
    roundings = np.nan_to_num(one).max(axis=1, initial=0.0)[:, None] * 2.0 ** np.arange(ROUNDINGS)
    return np.sort(np.hstack([shares, roundings]), axis=1)


def trusting(asked: Asked, work: Callable[[Asked], T]) -> T:
    """Do some work with a compiled model; if the original disagrees, repeat it with the original alone."""
    try:
        return work(asked)
    except Disagreement as why:
        name = asked.model.name
        warnings.warn(f"{name} is searched as a black box, not followed exactly: {why}", GlobeCEWarning, stacklevel=3)
        return work(replace(asked, model=asked.model.uncompiled()))


def _favourable_at(problem: Affected, delta: FloatArray, rows: IntArray, k: FloatArray) -> BoolArray:
    out = np.empty(len(rows), dtype=bool)
    for start in range(0, len(rows), VERIFY_ROWS):
        part = slice(start, start + VERIFY_ROWS)
        after = rays.positions(problem.space, problem.inputs[rows[part]], delta, k[part])
        out[part] = problem.model.confirms(after)
    return out
