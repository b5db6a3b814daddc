"""An order of rows that depends on their content only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from globece.space import FloatArray, IntArray


def content_order(Z: FloatArray, salt: int) -> IntArray:
    """A random order of rows that depends only on their content and the salt.

    So a subset from its front is the same however the rows were sorted or split. Duplicates are spread out.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.repeat([[0.0], [1.0]], 500, axis=0)
    >>> bool(100 < Z[content_order(Z, 1)[:300], 0].sum() < 200)
    True
    """
    mixed = content_hash(Z, salt)
    order = np.argsort(mixed, kind="stable")
    fresh = np.diff(mixed[order], prepend=mixed[order[:1]] + np.uint64(1)) != 0
    index = np.arange(len(Z))
    repeat = np.empty(len(Z), dtype=np.uint64)  # number of equal rows before each
    repeat[order] = index - np.maximum.accumulate(np.where(fresh, index, 0))
    return np.argsort(_mix(mixed, repeat), kind="stable")


def content_hash(Z: FloatArray, salt: int = 0) -> NDArray[np.uint64]:
    """A number for each row that depends only on its content and the salt."""
    same = np.where(np.isnan(Z), np.nan, np.where(Z == 0.0, 0.0, Z))  # one NaN and one zero
    bits = np.ascontiguousarray(same).view(np.uint64)
    mixed = np.full(len(Z), salt, dtype=np.uint64)
    for column in bits.T:
        mixed = _mix(mixed, column)
    return mixed


def _mix(seed: NDArray[np.uint64], value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014)."""
    with np.errstate(over="ignore"):
        mixed = (seed ^ value) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))
