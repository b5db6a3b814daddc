"""An order of rows that depends on their content only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from globece.space import FloatArray, IntArray

HASHED = 4096  # rows at a time, so that they stay in the processor's cache


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
    mixed = np.full(len(Z), salt, dtype=np.uint64)
    for start in range(0, len(Z), HASHED):
        part = Z[start : start + HASHED].T
        same = np.where(np.isnan(part), np.nan, part) + 0.0  # one NaN and one zero
        for column in np.ascontiguousarray(same).view(np.uint64):
            mixed[start : start + HASHED] = _mix(mixed[start : start + HASHED], column)
    return mixed


def _mix(seed: NDArray[np.uint64], value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014)."""
    with np.errstate(over="ignore"):
        mixed = (seed ^ value) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def spread_order(values: FloatArray, rng: np.random.Generator) -> IntArray:
    """An order of which every beginning is spread evenly over the values: a small sample that stands for all.

    Rows are ranked by their values, and taken in the order of the reversed bits of their ranks, which are shifted at
    random. Equal values come in random order.

    Examples
    --------
    >>> values = np.arange(100.0)
    >>> first = values[spread_order(values, np.random.default_rng(0))[:10]]
    >>> bool(np.diff(np.sort(first)).max() <= 20.0)
    True
    """
    n = len(values)
    ranks = np.empty(n, dtype=np.int64)
    ranks[np.lexsort((rng.permutation(n), values))] = np.arange(n)
    bits = max(n - 1, 1).bit_length()
    ranks ^= int(rng.integers(1 << bits))
    keys = np.zeros(n, dtype=np.int64)
    for bit in range(bits):
        keys |= ((ranks >> bit) & 1) << (bits - 1 - bit)
    return np.argsort(keys)


@dataclass(frozen=True, slots=True)
class Sample:
    """An order of rows in which those with more weight tend to come first, and what makes up for that.

    Every beginning of it is a priority sample (Duffield, Lund and Thorup 2007) whose random numbers are spread evenly
    over some values: the :meth:`mean` of a beginning estimates the mean of all rows, without bias towards heavy ones.

    Attributes
    ----------
    order
        The rows.
    share
        Weight of each, in that order.
    reach
        The number at which each enters the sample, ascending.

    Examples
    --------
    >>> values = np.concatenate([np.ones(990), np.full(10, 100.0)])
    >>> sample = Sample.drawn(values, values, np.random.default_rng(0))
    >>> bool((values[sample.order[:64]] == 100.0).sum() >= 9)
    True
    >>> bool(abs(sample.mean(values[sample.order[:64]]) - values.mean()) < 0.1)
    True
    """

    order: IntArray
    share: FloatArray
    reach: FloatArray

    @classmethod
    def drawn(cls, weights: FloatArray, values: FloatArray, rng: np.random.Generator) -> Sample:
        """Draw an order by positive weights, of which every beginning is spread evenly over some values."""
        n = len(weights)
        keys = np.empty(n)
        keys[spread_order(values, rng)] = (np.arange(n) + 0.5) / max(n, 1)
        reach = keys / weights
        order = np.argsort(reach, kind="stable")
        return cls(order, weights[order], reach[order])

    def weights(self, n: int) -> FloatArray:
        """What each of the first ``n`` rows stands for."""
        if n >= len(self.order):
            return np.ones(n)
        return np.asarray(1.0 / np.minimum(1.0, self.share[:n] * self.reach[n]))

    def mean(self, values: FloatArray) -> FloatArray:
        """Estimate the mean over all rows, by values of the first ones along the last axis."""
        weights = self.weights(values.shape[-1])
        return np.asarray(values @ weights / weights.sum())
