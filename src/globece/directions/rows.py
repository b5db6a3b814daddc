"""Rows as generators look at them: in an order of their own, and in units of cost.

Generators that learn from rows must not depend on how these were sorted, so they take them in an order that the
content alone decides.
"""

from __future__ import annotations

import numpy as np

from globece.case.affected import Affected
from globece.costs import ONE_HOT_SHARE
from globece.errors import InvalidParameterError
from globece.space import FloatArray, IntArray


def settled(Z: FloatArray, most: int | None = None) -> FloatArray:
    """The rows in lexicographic order; if there are more than ``most``, every so many-th of them.

    Examples
    --------
    >>> import numpy as np
    >>> settled(np.array([[3.0], [1.0], [2.0]]))
    array([[1.],
           [2.],
           [3.]])
    """
    ordered = Z[settled_order(Z)]
    if most is None or len(ordered) <= most:
        return ordered
    return ordered[np.linspace(0, len(ordered) - 1, most).astype(np.int64)]


def settled_order(Z: FloatArray) -> IntArray:
    """Positions of the rows in lexicographic order."""
    return np.asarray(np.lexsort(Z.T[::-1]), dtype=np.int64)


def mean_row(Z: FloatArray) -> FloatArray:
    """Mean of each column over the values that are not missing; the same in whatever order the rows come."""
    known = np.isfinite(Z)
    total = np.sort(np.where(known, Z, 0.0), axis=0).sum(axis=0)
    return np.asarray(total / np.maximum(known.sum(axis=0), 1))


def in_cost_units(problem: Affected, Z: FloatArray) -> FloatArray:
    """Rows on the scales of the cost model, so that a distance is a cost; what cannot move does not count."""
    out = np.zeros(Z.shape)
    for f in problem.space.movable:
        weight = problem.cost.weight(f)
        if f.is_block:
            out[:, f.columns] = ONE_HOT_SHARE * weight * Z[:, f.columns]
        else:
            out[:, f.start] = weight * problem.cost.scales[f.name](Z[:, f.start])
    return out


def favourable_rows(problem: Affected, caller: str) -> FloatArray:
    """The rows with the favourable outcome; raise if the problem comes without."""
    rows = problem.favourable_rows
    if rows is None or not len(rows):
        have = "the problem comes without any" if rows is None else "none of the rows given has it"
        raise InvalidParameterError(
            f"{caller} learns from rows with the favourable outcome, and {have}; give more rows, or another generator"
        )
    return rows
