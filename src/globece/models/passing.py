"""The k at which a moving number passes an edge, to the last double: kernels.

:func:`globece.rays.travel` rounds, so that no formula gives this k exactly. A formula gives a guess, a few of its
neighbours are tried, and where these are not enough, bisection over the doubles decides in at most 64 steps.
"""

from __future__ import annotations

import math

import numba
import numpy as np

LARGEST = float(np.finfo(np.float64).max)
NEIGHBOURS = 8  # doubles that are tried around a guess


@numba.njit(cache=True, nogil=True, error_model="numpy")
def above(k: float) -> float:
    """Next double above a non-negative one."""
    return np.int64(np.float64(k).view(np.int64) + 1).view(np.float64) if k < np.inf else k


@numba.njit(cache=True, nogil=True, error_model="numpy")
def below(k: float) -> float:
    """Next double below a positive one."""
    return np.int64(np.float64(k).view(np.int64) - 1).view(np.float64)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _passed(k: float, x: float, step: float, whole: bool, edge: float) -> bool:
    """Whether x has passed an edge at k, as :func:`globece.rays.travel` rounds: z > edge going up, else z <= edge."""
    moved = k * step
    if whole:
        moved = math.copysign(np.ceil(abs(moved) - 0.5), step)
    return bool(x + moved > edge) if step > 0.0 else bool(x + moved <= edge)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def pass_edge(x: float, step: float, whole: bool, edge: float) -> float:
    """The largest k at which x has not yet passed an edge; ``inf`` if it never does."""
    if whole:
        k = (np.floor(edge - x) + 0.5) / step if step > 0.0 else (np.ceil(x - edge) - 0.5) / -step
    else:
        # x + moved rounds to above the edge from half the gap to the next double on
        size = abs(edge)
        gap = above(size) - size if edge >= 0.0 else size - below(size)
        k = ((edge - x) + 0.5 * gap) / step
    if 0.0 <= k < LARGEST:
        for _ in range(NEIGHBOURS):
            if _passed(k, x, step, whole, edge):
                if k == 0.0:
                    break
                k = below(k)
            elif not _passed(above(k), x, step, whole, edge):
                k = above(k)
            else:
                return float(k)
    if not _passed(LARGEST, x, step, whole, edge):
        return float(np.inf)
    first, last = np.int64(0), np.float64(LARGEST).view(np.int64)
    while last - first > 1:
        middle = np.int64(first + ((last - first) >> 1))  # the sum may overflow
        if _passed(middle.view(np.float64), x, step, whole, edge):
            last = middle
        else:
            first = middle
    return float(np.int64(first).view(np.float64))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def after_steps(size: float, count: float) -> float:
    """The largest k at which :func:`globece.rays.travel` has taken fewer than ``count`` whole steps.

    0 if there is no such k, ``inf`` if that many are never taken.
    """
    if not count > 0.0:
        return 0.0
    k = (np.ceil(count) - 0.5) / size
    if k < LARGEST:
        for _ in range(NEIGHBOURS):
            if np.ceil(k * size - 0.5) >= count:
                k = below(k)
            elif np.ceil(above(k) * size - 0.5) < count:
                k = above(k)
            else:
                return float(k)
    if not np.ceil(LARGEST * size - 0.5) >= count:
        return float(np.inf)
    first, last = np.int64(0), np.float64(LARGEST).view(np.int64)
    while last - first > 1:
        middle = np.int64(first + ((last - first) >> 1))  # the sum may overflow
        if np.ceil(middle.view(np.float64) * size - 0.5) >= count:
            last = middle
        else:
            first = middle
    return float(np.int64(first).view(np.float64))
