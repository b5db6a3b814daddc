"""From any wish to a direction that breaks no constraint: what may not move stays, what is one-way goes that way."""

from __future__ import annotations

import numpy as np

from globece.case.affected import Affected
from globece.errors import InvalidParameterError
from globece.space import Feature, FeatureSpace, FloatArray

# Shares of a direction's cost below this are noise of a subtraction, and would switch a category at a k beyond reach.
LEAST_SHARE = 1e-9
ALIKE = 9  # decimals to which two directions of one cost must agree to be the same


def movable_features(space: FeatureSpace) -> tuple[Feature, ...]:
    """Features that a direction may move; raise if there is none."""
    if not space.movable:
        raise InvalidParameterError(
            "no feature can move: each is immutable or constant; "
            "free one, or learn the space from more rows and pass it as space="
        )
    return space.movable


def admissible(space: FeatureSpace, wishes: FloatArray) -> FloatArray:
    """Take out of each wish what a constraint forbids; one of which nothing is left becomes zero.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 20.0], [1.0, 40.0]])
    >>> space = FeatureSpace.from_matrix(X, columns=["debt", "age"], increasing=["age"])
    >>> admissible(space, np.array([[1.0, -3.0], [0.0, -1.0]]))
    array([[1., 0.],
           [0., 0.]])
    """
    D = np.nan_to_num(np.array(wishes, dtype=np.float64, ndmin=2), nan=0.0)
    for f in space.features:
        part = D[:, f.columns]
        if not f.can_move:
            part[:] = 0.0
        elif f.is_block:
            # the block moves to its largest permitted entry, and those below that entry move there
            part[~(part[:, np.array(f.permitted)].max(axis=1) > part.min(axis=1))] = 0.0
        elif f.sense:
            part[f.sense * part < 0] = 0.0
    return D


def as_directions(problem: Affected, wishes: FloatArray, n: int, cost: float | None) -> FloatArray:
    """Make at most ``n`` different directions of wishes, in their order, each of one nominal cost.

    Parameters
    ----------
    problem
        Whose space and costs hold.
    wishes
        Changes in encoded units, one a row; what a constraint forbids is taken out.
    n
        Most directions to return.
    cost
        Nominal cost of each; ``None`` leaves their lengths as they are.
    """
    D = admissible(problem.space, wishes)
    shares = np.abs(D) * problem.cost.rates
    largest = shares.max(axis=1, initial=0.0)
    D = np.where(shares > LEAST_SHARE * largest[:, None], D, 0.0)[np.isfinite(largest) & (largest > 0)]
    if not len(D):
        return np.empty((0, problem.space.width))
    even = problem.cost.normalise(D, 1.0)
    _, first = np.unique(np.round(even * problem.cost.rates, ALIKE), axis=0, return_index=True)
    kept = np.sort(first)[:n]
    return D[kept] if cost is None else problem.cost.normalise(D[kept], cost)


def largest_features(problem: Affected, wishes: FloatArray, m: int) -> FloatArray:
    """Keep of each wish the m features that take the largest part in its cost."""
    movable = problem.space.movable
    shares = np.abs(wishes) * problem.cost.rates
    by_feature = np.column_stack([shares[:, f.columns].sum(axis=1) for f in movable])
    keep = (-by_feature).argsort(axis=1, kind="stable")[:, :m]
    out = np.zeros_like(wishes)
    for i, f in enumerate(movable):
        rows = (keep == i).any(axis=1)
        out[rows, f.columns] = wishes[rows, f.columns]
    return out
