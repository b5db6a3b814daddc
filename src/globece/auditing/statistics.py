"""Gaps between groups with confidence intervals and tests, from each affected input's minimum cost.

No recourse is a censored value: its cost is only known to exceed the budget. Coverage is the share that is not
censored, average cost is the mean over those, and the score is the restricted mean min(cost, budget), which combines
the two. A gap is tested by random permutations of the labels, within halves and within levels of the control columns,
with a studentised statistic, so that the test keeps its level for groups of unequal spread (Janssen 1997, Chung and
Romano 2013). All permutations are summed up as matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from globece.space import BoolArray, FloatArray, IntArray

Measure = Literal["coverage", "average_cost", "score"]
MEASURES: tuple[Measure, ...] = ("coverage", "average_cost", "score")
CHUNK = 4_000_000  # labels drawn at once
# Sums that differ by rounding only are ties, and a tie counts against the gap.
TIE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Minimum costs of affected inputs, with their groups.

    Attributes
    ----------
    cost
        ``inf`` where there is no recourse.
    label
        Group of each, from 0.
    level
        Level of the control columns of each, from 0: groups are compared within levels.
    half
        Half of each: labels are permuted within halves, as each half has its own directions.
    budget
        What no recourse counts as.
    n_groups
        Number of groups.
    """

    cost: FloatArray
    label: IntArray
    level: IntArray
    half: IntArray
    budget: float
    n_groups: int

    @classmethod
    def of(
        cls, cost: FloatArray, label: IntArray, level: IntArray, half: IntArray, budget: float, n_groups: int
    ) -> Sample:
        """Sort the inputs, so that their order does not matter, and leave out those in no group."""
        kept = np.flatnonzero(label >= 0)
        order = kept[np.lexsort((cost[kept], label[kept], half[kept], level[kept]))]
        return cls(cost[order], label[order], level[order], half[order], budget, n_groups)

    @property
    def n_levels(self) -> int:
        """Number of levels of the control columns."""
        return int(self.level.max(initial=0)) + 1

    def columns(self) -> FloatArray:
        """Columns to sum: 1, covered, cost, cost squared, min(cost, budget) and its square. ``(n, 6)``."""
        covered = np.isfinite(self.cost)
        paid, charge = np.where(covered, self.cost, 0.0), np.minimum(self.cost, self.budget)
        return np.column_stack([np.ones(len(self.cost)), covered, paid, paid**2, charge, charge**2])

    def sums(self) -> FloatArray:
        """Sums of the columns by level and group, ``(levels, groups, 1, 6)``."""
        out = np.zeros((self.n_levels, self.n_groups, 1, 6))
        np.add.at(out[:, :, 0], (self.level, self.label), self.columns())
        return out


class Moments(NamedTuple):
    """Number of values, their mean, and the variance of the mean."""

    n: FloatArray
    mean: FloatArray
    variance: FloatArray


def moments(sums: FloatArray, measure: Measure) -> Moments:
    """Mean of a measure from sums, over their last axis."""
    n, first, second = {"coverage": (0, 1, 1), "average_cost": (1, 2, 3), "score": (0, 4, 5)}[measure]
    count = sums[..., n]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = sums[..., first] / count
        spread = np.maximum(sums[..., second] - count * mean**2, 0.0)
        variance = np.where(spread <= TIE * np.maximum(sums[..., second], 1e-300), 0.0, spread) / (count - 1) / count
    return Moments(count, mean, variance)


class Contrast(NamedTuple):
    """A gap, its standard error, and their ratio."""

    gap: FloatArray
    error: FloatArray
    t: FloatArray


def contrast(one: FloatArray, other: FloatArray, measure: Measure) -> Contrast:
    """Compare the sums of two sides within levels, weighted by their numbers of inputs.

    Parameters
    ----------
    one, other
        Sums, ``(levels, draws, 6)``.
    measure
        The measure to compare.
    """
    a, b = moments(one, measure), moments(other, measure)
    weight = np.where((a.n > 0) & (b.n > 0), a.n + b.n, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = weight / weight.sum(axis=0)
        gap = np.where(weight > 0, weight * (a.mean - b.mean), 0.0).sum(axis=0)
        gap = np.where(np.isnan(weight).any(axis=0), np.nan, gap)  # nobody to compare
        error = np.sqrt(np.where(weight > 0, weight**2 * (a.variance + b.variance), 0.0).sum(axis=0))
        gap = np.where(np.abs(gap) <= TIE * (np.abs(a.mean).max(axis=0) + 1e-300), 0.0, gap)
        t = np.where(gap == 0.0, 0.0, gap / error)
    return Contrast(gap, error, t)


def relabelled(sample: Sample, times: int, rng: np.random.Generator, columns: FloatArray | None = None) -> FloatArray:
    """Sums of columns by level and group after random permutations of the labels within halves and levels.

    Returns ``(levels, groups, times, columns)``; the columns are those of the sample by default.
    """
    columns = sample.columns() if columns is None else columns
    out = np.zeros((sample.n_levels, sample.n_groups, times, columns.shape[1]))
    for level, half in np.unique(np.column_stack([sample.level, sample.half]), axis=0):
        block = np.flatnonzero((sample.level == level) & (sample.half == half))
        label, part = sample.label[block].astype(np.int16), columns[block]
        step = max(1, CHUNK // len(block))
        for start in range(0, times, step):
            stop = min(start + step, times)
            drawn = rng.permuted(np.broadcast_to(label, (stop - start, len(block))), axis=1)
            for g in np.unique(label):
                out[level, g, start:stop] += (drawn == g).astype(np.float64) @ part
    return out


def charges(costs: FloatArray, budget: float) -> FloatArray:
    """Columns for many scores: 1, then min(cost, budget) and its square for each row of costs. ``(n, 1 + 2 k)``."""
    charge = np.minimum(costs, budget)
    return np.vstack([np.ones((1, costs.shape[1])), *np.stack([charge, charge**2], axis=1)]).T


def of_charges(sums: FloatArray, which: int) -> FloatArray:
    """Sums of :func:`charges` in the layout of a sample's, for one row of costs; only its score is defined."""
    out = np.zeros((*sums.shape[:-1], 6))
    out[..., 0], out[..., 4], out[..., 5] = sums[..., 0], sums[..., 1 + 2 * which], sums[..., 2 + 2 * which]
    return out


def resampled(sample: Sample, times: int, rng: np.random.Generator) -> FloatArray:
    """Sums by level and group over bootstrap samples of each: ``(levels, groups, times, 6)``."""
    out = np.zeros((sample.n_levels, sample.n_groups, times, 6))
    columns = sample.columns()
    for level, g in np.unique(np.column_stack([sample.level, sample.label]), axis=0):
        part = columns[(sample.level == level) & (sample.label == g)]
        n, step = len(part), max(1, CHUNK // len(part))
        for start in range(0, times, step):
            stop = min(start + step, times)
            drawn = rng.integers(n, size=(stop - start, n)) + n * np.arange(stop - start)[:, None]
            counts = np.bincount(drawn.ravel(), minlength=n * (stop - start)).reshape(-1, n)
            out[level, g, start:stop] = counts @ part
    return out


def p_value(observed: float, drawn: FloatArray) -> float:
    """Two-sided p-value: share of permutations, the observed one included, with at least as large a statistic."""
    if np.isnan(observed):
        return 1.0
    size = np.nan_to_num(np.abs(drawn), nan=0.0)
    reached = size >= abs(observed) * (1.0 - TIE) if np.isfinite(observed) else np.isinf(size)
    return float((1 + reached.sum()) / (1 + len(drawn)))


def holm(p: FloatArray) -> FloatArray:
    """Holm's correction for several tests.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(6)
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p, kind="stable")
    m = len(p)
    raised = np.maximum.accumulate(np.minimum(p[order] * (m - np.arange(m)), 1.0))
    out = np.empty(m)
    out[order] = raised
    return out


def interval(draws: FloatArray, level: float) -> tuple[float, float]:
    """Percentile interval; ``(nan, nan)`` if no draw is finite."""
    found = draws[np.isfinite(draws)]
    if not found.size:
        return np.nan, np.nan
    low, high = np.quantile(found, [level / 2, 1 - level / 2])
    return float(low), float(high)


def power(error: float, size: float, level: float) -> float:
    """Power of a two-sided test at ``level`` for a gap of ``size`` with this standard error."""
    if not np.isfinite(error):
        return 0.0
    if error == 0.0:
        return 1.0
    z = -ndtri(level / 2)
    return float(ndtr(size / error - z) + ndtr(-z - size / error))


def detectable(error: float, level: float, probability: float = 0.8) -> float:
    """Smallest gap that the test detects with this probability."""
    return float((ndtri(probability) - ndtri(level / 2)) * error) if np.isfinite(error) else np.inf


def rates(
    affected: BoolArray, level: IntArray, one: BoolArray, other: BoolArray, alpha: float
) -> tuple[float, float, float, float]:
    """Gap in rejection rates between two sets of rows, its interval, and p (Mantel-Haenszel), stratified by level."""
    gap = error = over = spread = weight = 0.0
    for v in np.unique(level):
        a, b = affected[one & (level == v)], affected[other & (level == v)]
        if not (a.size and b.size):
            continue
        n, w = a.size + b.size, float(a.size + b.size)
        gap += w * (a.mean() - b.mean())
        error += w**2 * (a.mean() * (1 - a.mean()) / a.size + b.mean() * (1 - b.mean()) / b.size)
        pooled = (a.sum() + b.sum()) / n
        over += a.sum() - a.size * pooled
        spread += a.size * b.size / n * pooled * (1 - pooled) * n / max(n - 1, 1)
        weight += w
    if not weight:
        return np.nan, np.nan, np.nan, 1.0
    gap, half = gap / weight, -ndtri(alpha / 2) * np.sqrt(error) / weight
    p = float(2 * ndtr(-abs(over) / np.sqrt(spread))) if spread > 0 else 1.0
    return float(gap), float(gap - half), float(gap + half), p
