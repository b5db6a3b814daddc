"""Bisection over the doubles: the exact double at which a rounded computation changes its result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from globece.space import BoolArray, FloatArray, IntArray


def _rank(values: FloatArray) -> IntArray:
    """Integers in the order of the doubles, consecutive where the doubles are neighbours."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, np.iinfo(np.int64).min - bits)


def _double(ranks: IntArray) -> FloatArray:
    return np.where(ranks >= 0, ranks, np.iinfo(np.int64).min - ranks).view(np.float64)


def last_alike(answer: Callable[[FloatArray], BoolArray], low: FloatArray, high: FloatArray) -> FloatArray:
    """Largest doubles between ``low`` and ``high`` with the same answer as ``low``.

    The answer must change at most once in between; where it does not change, the result is ``high``.

    Examples
    --------
    >>> (z,) = last_alike(lambda z: z.astype(np.float32) < 0.1, np.array([0.0]), np.array([1.0]))
    >>> [bool(np.float32(v) < 0.1) for v in (z, np.nextafter(z, 1.0))]
    [True, False]
    """
    first, last = _rank(low), _rank(high)
    at_low = answer(low)
    first = np.where(answer(high) == at_low, last, first)
    for _ in range(64):
        middle = (first & last) + ((first ^ last) >> 1)  # their mean, rounded down, without overflow
        alike = answer(_double(middle)) == at_low
        first, last = np.where(alike, middle, first), np.where(alike, last, middle)
    return _double(first)
