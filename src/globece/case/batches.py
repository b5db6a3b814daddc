"""Whether counterfactuals of a searched model flip in any batch: in another order, and alone.

Sums round differently for one row than for many, and a model with jumps, such as a neighbour chosen among two that are
equally near, turns a last digit into another outcome. A compiled model has an error bound that covers this; a searched
one has to be asked. Every counterfactual is asked in a second arrangement, and some of them alone. If one differs, the
model depends on the batch: then all are asked alone, and those that differ are moved further along their ray. Where the
model has scores, so are those whose score is nearer to the one that decides than it varies from batch to batch: no list
of arrangements is complete. How much it varies is measured row by row, since a model with jumps varies by nothing for
most rows and by a whole jump for a few.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace

import numpy as np

from globece import rays
from globece.case.affected import Affected
from globece.case.scaling import Scaled, limits
from globece.errors import GlobeCEWarning, InvalidDataError, ModelError
from globece.models.base import Model
from globece.models.torch_modules import as_given
from globece.progress import AT_A_TIME, is_timed
from globece.space import BoolArray, FloatArray, IntArray

AT_ONCE = 32_768  # most rows in the second arrangement
ALONE = 32  # counterfactuals of each call that are asked alone, unless the model is known to depend on the batch
PUSHES = 30  # the last one to the end of the ray, and each half as far as the next
ROUNDS = 3  # moved counterfactuals are other company for the rest
STEADY = 8.0  # multiple of the variation of a score that was seen
ARRANGEMENTS = (1, 2, 3, 9, 40)  # batches of the shuffled rows whose scores are compared


def is_searched(model: Model) -> bool:
    """Whether some scalars of the model were found by calling it, so that no error bound covers them."""
    return not model.exact or any(tally.searched_rays for tally in model.tallies)


def hold_in_any_batch(
    problem: Affected, directions: FloatArray, scaled: Scaled, failed: BoolArray | None = None
) -> Scaled:
    """Scalars and costs at which a searched model is favourable in each arrangement in which it was asked.

    Counterfactuals that hold nowhere on their ray are left out, with a warning. Those that have failed already may be
    given.
    """
    where = np.argwhere(np.isfinite(scaled.scalar))
    if not len(where):
        return scaled
    known = any(tally.depends_on_batch for tally in problem.model.tallies)
    some = np.unique(np.linspace(0, len(where) - 1, len(where) if known else ALONE).astype(np.int64))
    after = _positions(problem, directions, scaled.scalar, where)
    fails = ~_in_another_order(problem, after)
    fails[some] |= _fails_alone(problem, after[some], hurry=not known)
    if failed is not None:
        fails |= failed[tuple(where.T)]
    if not fails.any():
        return scaled
    for tally in problem.model.tallies:
        tally.depends_on_batch = True
    cut = _cut(problem, after)
    fails |= _fails_alone(problem, after) | _may_fail(problem, after, cut)
    for _ in range(ROUNDS):
        scaled = _move_further(problem, directions, scaled, where[fails], cut)
        where = np.argwhere(np.isfinite(scaled.scalar))
        fails = _fails_somewhere(problem, _positions(problem, directions, scaled.scalar, where))
        if not fails.any():
            return scaled
    # without some, the rest is another batch
    while fails.any():
        scaled = _leave_out(problem, scaled, where[fails])
        where = np.argwhere(np.isfinite(scaled.scalar))
        fails = _fails_somewhere(problem, _positions(problem, directions, scaled.scalar, where))
    return scaled


def _cut(problem: Affected, after: FloatArray) -> float | None:
    """The score that decides; ``None`` where the model has no scores, or decides by something else."""
    cut = problem.model.uncompiled().cut
    if cut is None:
        return None
    before, found = _scores(problem, problem.inputs), _scores(problem, after)
    if before is None or found is None:
        return None
    slack = STEADY * float(np.ptp(found, axis=0).max())
    if (before.min(axis=0) > cut + slack).any() or (found.max(axis=0) < cut - slack).any():
        return None
    return cut


def _scores(problem: Affected, Z: FloatArray) -> FloatArray | None:
    """Scores of these rows in several arrangements, ``(arrangements, rows)``; ``None`` where there are none."""
    box, rng, found = problem.model.uncompiled(), np.random.default_rng(1), []
    for batches in ARRANGEMENTS if len(Z) else ():
        order, scores = rng.permutation(len(Z)), np.empty(len(Z))
        for part in np.array_split(order, min(batches, len(Z))):
            try:
                some = box.scores(Z[part])
            except (ModelError, InvalidDataError):
                return None
            if some is None:
                return None
            scores[part] = some
        found.append(scores)
    return np.array(found) if found else None


def _may_fail(problem: Affected, after: FloatArray, cut: float | None) -> BoolArray:
    """Whether the score of each row is too near to the one that decides to be above it in every batch."""
    found = None if cut is None else _scores(problem, after)
    if found is None or cut is None:
        return np.zeros(len(after), dtype=bool)
    varies = np.ptp(found, axis=0)
    return np.asarray(found.min(axis=0) < cut + STEADY * np.maximum(varies, np.median(varies)))


def _fails_somewhere(problem: Affected, after: FloatArray) -> BoolArray:
    """Which rows are not favourable in another order, or in this one."""
    return np.asarray(~_in_another_order(problem, after) | ~problem.model.confirms(after))


def _in_another_order(problem: Affected, after: FloatArray) -> BoolArray:
    """Whether each row is favourable among those of other directions, shuffled and in smaller batches."""
    out = np.empty(len(after), dtype=bool)
    order = np.random.default_rng(0).permutation(len(after))
    size = min(AT_ONCE, len(after) // 2 + 1)
    for start in range(0, len(after), size):
        part = order[start : start + size]
        out[part] = problem.model.confirms(after[part])
    return out


def _fails_alone(problem: Affected, after: FloatArray, *, hurry: bool = False) -> BoolArray:
    """Which rows are not favourable by themselves; none if the model takes no single row.

    In a hurry, under a time limit, as many are asked as there is time for in a batch.
    """
    out, began = np.zeros(len(after), dtype=bool), time.monotonic()
    for i in range(len(after)):
        if hurry and is_timed() and time.monotonic() - began > AT_A_TIME:
            break
        try:
            with as_given():
                out[i] = not problem.model.confirms(after[i : i + 1])[0]
        except (ModelError, InvalidDataError):
            break
    return out


def _move_further(
    problem: Affected, directions: FloatArray, scaled: Scaled, where: IntArray, cut: float | None
) -> Scaled:
    """Move these counterfactuals along their rays to where they are favourable alone and together."""
    scalar, cost = scaled.scalar.copy(), scaled.cost.copy()
    first = scalar[tuple(where.T)]
    room = np.maximum(limits(problem, directions)[tuple(where.T)] - first, 0.0)
    left = np.arange(len(where))
    for push in 2.0 ** np.arange(1 - PUSHES, 1):
        scalar[tuple(where[left].T)] = first[left] + push * room[left]
        after = _positions(problem, directions, scalar, where[left])
        fails = ~problem.model.confirms(after) | _may_fail(problem, after, cut)
        fails[~fails] = _fails_alone(problem, after[~fails])
        left = left[fails]
        if not left.size:
            break
    for i in np.unique(where[:, 0]):
        cost[i] = rays.cost_at(problem.cost, problem.inputs, directions[i], scalar[i])
    cost[~np.isfinite(scalar)] = np.inf
    return _leave_out(problem, replace(scaled, scalar=scalar, cost=cost), where[left])


def _leave_out(problem: Affected, scaled: Scaled, where: IntArray) -> Scaled:
    """Without these counterfactuals, which is said, and without those over the budget."""
    scalar, beyond = scaled.scalar.copy(), scaled.cost > problem.budget * (1.0 + rays.BUDGET_SLACK)
    beyond[tuple(where.T)] = True
    if len(where):
        warnings.warn(
            f"{problem.model.name} answers differently for a row alone, in another order or in a batch: {len(where):,} "
            "counterfactuals that it does not always find favourable are left out, and count as no recourse",
            GlobeCEWarning,
            stacklevel=5,
        )
    scalar[beyond] = np.inf
    return replace(scaled, scalar=scalar, cost=np.where(beyond, np.inf, scaled.cost))


def _positions(problem: Affected, directions: FloatArray, scalar: FloatArray, where: IntArray) -> FloatArray:
    """Counterfactuals of some pairs of a direction and an input."""
    out = np.empty((len(where), problem.space.width))
    for i in np.unique(where[:, 0]):
        mine = where[:, 0] == i
        rows = where[mine, 1]
        out[mine] = rays.positions(problem.space, problem.inputs[rows], directions[i], scalar[i, rows])
    return out
