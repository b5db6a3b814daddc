"""Sums of floats without rounding: neither the order of the rows nor how they are split changes a result.

A float is a whole number of units of 2**-1074, so a sum of floats is a whole number too. Python's integers hold it, and
it is rounded once, at the end.
"""

from __future__ import annotations

import numpy as np

from globece.features import FloatArray, IntArray

UNIT = 1074  # the smallest float is 2**-1074
FRACTION = 52  # bits of a double that are stored
HALF = 26
MOST = 2**26  # floats at a time: the sums of their halves are exact in double precision


def exact_sums(values: FloatArray, index: IntArray | None = None, n: int = 1) -> list[int]:
    """Sum finite floats exactly, in units of 2**-1074.

    Parameters
    ----------
    values
        The floats.
    index
        Which of the sums each belongs to; all to one when absent.
    n
        Number of sums.

    Examples
    --------
    >>> import numpy as np
    >>> rounded(exact_sums(np.array([1e300, 1.0, -1e300]))[0])
    1.0
    >>> [rounded(s) for s in exact_sums(np.array([0.5, 0.1, 0.25]), np.array([0, 1, 0]), 2)]
    [0.75, 0.1]
    """
    sums = [0] * n
    for start in range(0, len(values), MOST):
        part = slice(start, start + MOST)
        _add(sums, values[part], None if index is None else index[part])
    return sums


def _add(sums: list[int], values: FloatArray, index: IntArray | None) -> None:
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    exponent = (bits >> FRACTION) & 0x7FF
    whole = (bits & ((1 << FRACTION) - 1)) | ((exponent > 0).astype(np.int64) << FRACTION)
    np.maximum(exponent, 1, out=exponent)  # subnormal numbers
    np.negative(whole, out=whole, where=bits < 0)
    least = int(exponent.min())
    span = int(exponent.max()) - least + 1
    exponent -= least
    key = exponent if index is None else index * span + exponent
    high = np.bincount(key, weights=whole >> HALF, minlength=len(sums) * span)
    low = np.bincount(key, weights=whole & ((1 << HALF) - 1), minlength=len(sums) * span)
    for i in np.flatnonzero((high != 0.0) | (low != 0.0)).tolist():
        at, shift = divmod(i, span)
        sums[at] += ((int(high[i]) << HALF) + int(low[i])) << (shift + least - 1)


def rounded(total: int) -> float:
    """An exact sum as the nearest float, as :func:`math.fsum` gives it.

    >>> rounded(0)
    0.0
    """
    return total / (1 << UNIT)  # a division of integers is rounded correctly


def as_text(total: int) -> str:
    """An exact sum as text: its odd part in hexadecimal, and the power of two.

    >>> as_text(48), from_text(as_text(48))
    ('3p4', 48)
    """
    power = (total & -total).bit_length() - 1 if total else 0
    return f"{total >> power:x}p{power}"


def from_text(text: str) -> int:
    """The exact sum that :func:`as_text` wrote."""
    odd, power = text.split("p")
    return int(odd, 16) << int(power)
