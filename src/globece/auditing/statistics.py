"""Gaps between groups, with intervals and tests, from one number for each person.

No recourse is a censored value: its cost is only known to exceed the budget. So the score, mean(min(cost, budget)), is
put together from a share (of people without recourse, who count as the budget) and a mean (of what the others pay), and
so is its interval:

1. A *share* has Wilson's interval, which knows that a share of 0 among 30 people may be 10 % of all. Where nobody of a
   side is without recourse, all groups together say how large that share may be: as large as theirs where nobody is
   without recourse, and five times theirs otherwise, if that is less.
2. A *mean* has Student's interval after Hall's correction for skewness (1992), as costs are skewed and groups small.
3. The two, and the two sides of a gap, are combined by their distances from the estimate to each end, whose squares
   add up ("MOVER": Newcombe 1998, Zou and Donner 2008). Each side has its own spread: unequal spreads do no harm.
4. p is the level at which the interval would end at 0: p and the interval cannot contradict each other. With several
   comparisons both are corrected together, by Sidak's inequality, so that all intervals hold at once.

Within levels of a control, sides are compared level by level and averaged with the weights of Mantel and Haenszel,
which favour levels that have many of both. Rows of one person (a cluster) are summed up before they are squared.
Nothing here is random. A number that cannot be computed is NaN, and so is its p.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from globece.space import BoolArray, FloatArray, IntArray

Measure = Literal["coverage", "average_cost", "score"]
MEASURES: tuple[Measure, ...] = ("coverage", "average_cost", "score")
# Sums that differ by rounding only are ties.
TIE = 1e-9
SMALLEST_P = 1e-16
MOST_SKEWED = 2.0  # times Student's half-width, at most, and one over it, at least
TIMES = 5.0  # by which a side's share without recourse may exceed that of all, if none was seen there
ENOUGH = 5  # people with and without recourse from which a correlation within clusters is estimated
Ends = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Minimum costs of affected inputs, with their groups.

    Attributes
    ----------
    cost
        ``inf`` where there is no recourse.
    label
        Group of each, from 0; -1 for none.
    level
        Level of the control columns of each, from 0: groups are compared within levels.
    cluster
        Whose row each is, from 0; ``None`` if each is of another person.
    budget
        What no recourse counts as.
    n_groups
        Number of groups.
    """

    cost: FloatArray
    label: IntArray
    level: IntArray
    cluster: IntArray | None
    budget: float
    n_groups: int

    @property
    def n_unseen(self) -> float:
        """Number of people from which an unseen share without recourse is bounded, on a side that has none."""
        n = len(self.cost) if self.cluster is None else len(np.unique(self.cluster))
        missing = float(np.isinf(self.cost).mean()) if n else 0.0
        if not n or missing == 0.0:
            return float(n)
        most = min(TIMES * (missing + Share(missing, n, 1.0).reach(0.05)[1]), 1.0)
        return float(ndtri(0.025) ** 2 * (1.0 / most - 1.0))

    def ordered(self) -> Sample:
        """The same in an order that does not depend on that of the rows, without those in no group."""
        kept = np.flatnonzero(self.label >= 0)
        keys = [self.cost[kept], self.label[kept], self.level[kept]]
        order = kept[np.lexsort(keys if self.cluster is None else [self.cluster[kept], *keys])]
        cluster = None if self.cluster is None else self.cluster[order]
        return Sample(self.cost[order], self.label[order], self.level[order], cluster, self.budget, self.n_groups)


# -- pieces of an estimate ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean: its standard error, degrees of freedom, and skewness over the square root of their number."""

    error: float
    df: float
    skew: float = 0.0

    def reach(self, alpha: float) -> Ends:
        """Distances to the lower and the upper end of the interval at level ``1 - alpha``."""
        if self.error == 0.0:
            return 0.0, 0.0
        q = -float(stdtrit(self.df, alpha / 2))
        return self.error * self._turned(q), -self.error * self._turned(-q)

    def _turned(self, q: float) -> float:
        """Hall's transformation, turned around."""
        k = self.skew
        if abs(k) < 1e-9:
            return q
        turned = 3.0 / k * (float(np.cbrt(1.0 + k * (q - k / 6.0))) - 1.0)
        size = min(max(turned * np.sign(q), abs(q) / MOST_SKEWED), abs(q) * MOST_SKEWED)
        return float(np.sign(q) * size)


@dataclass(frozen=True, slots=True)
class Share:
    """A share of ``n`` people (the effective number), times a slope."""

    share: float
    n: float
    slope: float

    @property
    def error(self) -> float:
        """Standard error, of Agresti and Coull: not 0 where the share is 0 or 1."""
        near = (self.share * self.n + 2.0) / (self.n + 4.0)
        return abs(self.slope) * float(np.sqrt(near * (1.0 - near) / (self.n + 4.0)))

    def reach(self, alpha: float) -> Ends:
        """Distances to the lower and the upper end of Wilson's interval, times the slope."""
        z2 = float(ndtri(alpha / 2)) ** 2
        middle = (self.share + z2 / (2 * self.n)) / (1 + z2 / self.n)
        half = np.sqrt(z2 * (self.share * (1 - self.share) + z2 / (4 * self.n)) / self.n) / (1 + z2 / self.n)
        below, above = max(self.share - middle + half, 0.0), max(middle + half - self.share, 0.0)
        found = (above, below) if self.slope < 0 else (below, above)
        return abs(self.slope) * float(found[0]), abs(self.slope) * float(found[1])


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number about one side, and the independent pieces of its error.

    Attributes
    ----------
    value
        ``nan`` if it is unknown.
    pieces
        Their errors add up in squares.
    factor
        By which the pieces together are too small, because they depend on each other within clusters.
    low, high
        The range of possible values.
    """

    value: float
    pieces: tuple[Mean | Share | Quantile, ...] = ()
    factor: float = 1.0
    low: float = -np.inf
    high: float = np.inf

    @property
    def known(self) -> bool:
        """Whether it and its error are known."""
        return bool(np.isfinite(self.value) and all(np.isfinite(piece.error) for piece in self.pieces))

    @property
    def error(self) -> float:
        """Standard error."""
        return float(np.sqrt(sum(piece.error**2 for piece in self.pieces)) * self.factor)

    def reach(self, alpha: float) -> Ends:
        """Distances to the lower and the upper end of the interval at level ``1 - alpha``."""
        ends = [piece.reach(alpha) for piece in self.pieces]
        below, above = (float(np.sqrt(sum(e[i] ** 2 for e in ends)) * self.factor) for i in (0, 1))
        return below, above

    def interval(self, alpha: float) -> Ends:
        """The interval at level ``1 - alpha``; ``(nan, nan)`` if it is unknown."""
        if not self.known:
            return np.nan, np.nan
        below, above = self.reach(alpha)
        return max(self.value - below, min(self.low, self.value)), min(self.value + above, max(self.high, self.value))


UNKNOWN = Estimate(np.nan, (Mean(np.nan, np.nan),))


@dataclass(frozen=True, slots=True)
class Contrast:
    """A gap between two sides: one's minus the other's.

    Sides that share people (clusters that cross groups) are taken for unrelated. As rows of one person are alike, the
    gap is then more certain than is said here.
    """

    one: Estimate
    other: Estimate

    @property
    def known(self) -> bool:
        """Whether the gap and its error are known."""
        return self.one.known and self.other.known

    @property
    def value(self) -> float:
        """The gap; exactly 0 where the sides differ by rounding only."""
        gap = self.one.value - self.other.value
        return 0.0 if abs(gap) <= TIE * max(abs(self.one.value), abs(self.other.value)) else gap

    @property
    def error(self) -> float:
        """Standard error."""
        return float(np.hypot(self.one.error, self.other.error))

    def reach(self, alpha: float) -> Ends:
        """Distances to the lower and the upper end of the interval at level ``1 - alpha``."""
        (a_low, a_high), (b_low, b_high) = self.one.reach(alpha), self.other.reach(alpha)
        return float(np.hypot(a_low, b_high)), float(np.hypot(a_high, b_low))

    def interval(self, alpha: float) -> Ends:
        """The interval at level ``1 - alpha``; ``(nan, nan)`` if it is unknown."""
        if not self.known:
            return np.nan, np.nan
        below, above = self.reach(alpha)
        return self.value - below, self.value + above

    def p(self) -> float:
        """Two-sided p-value: the level at which the interval ends at 0; ``nan`` if it is unknown."""
        if not self.known:
            return np.nan
        return 1.0 if self.value == 0.0 else level_at(self.reach, abs(self.value), 0 if self.value > 0 else 1)

    def p_inside(self, margin: float) -> float:
        """p-value of two one-sided tests for a gap within the margin, either way; ``nan`` if it is unknown."""
        if not self.known:
            return np.nan
        if abs(self.value) >= margin:
            return 1.0
        up = level_at(self.reach, margin - self.value, 1)
        down = level_at(self.reach, margin + self.value, 0)
        return max(up, down) / 2

    def power(self, size: float, alpha: float) -> float:
        """Power of the test at level ``alpha`` for a gap of this size, in the direction of the one that was found."""
        if not self.known:
            return 0.0
        if self.error == 0.0:
            return 1.0
        return float(ndtr((size - self.reach(alpha)[0 if self.value >= 0 else 1]) / self.error))

    def detectable(self, alpha: float, probability: float = 0.8) -> float:
        """Smallest gap that the test detects with this probability, in the same direction; ``inf`` if it is unknown."""
        if not self.known:
            return np.inf
        return self.reach(alpha)[0 if self.value >= 0 else 1] + float(ndtri(probability)) * self.error


def level_at(reach: Callable[[float], Ends], distance: float, end: int) -> float:
    """The alpha at which an interval reaches exactly this far, by bisection of its logarithm."""
    low, high = np.log(SMALLEST_P), 0.0
    if reach(SMALLEST_P)[end] <= distance:
        return SMALLEST_P
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if reach(float(np.exp(middle)))[end] > distance else (low, middle)
    return float(np.exp(high))


# -- several comparisons -----------------------------------------------------------------------------------------------


def each_level(alpha: float, n_tests: int) -> float:
    """Level of each of several tests whose intervals shall all hold with probability ``1 - alpha`` (Sidak).

    >>> round(each_level(0.05, 4), 6)
    0.012741
    """
    return float(-np.expm1(np.log1p(-alpha) / max(n_tests, 1)))


def corrected(p: float, n_tests: int) -> float:
    """P of one of several tests, corrected for their number: below alpha exactly where the interval excludes 0.

    >>> corrected(each_level(0.05, 4), 4).__round__(6), corrected(0.3, 1)
    (0.05, 0.3)
    """
    if np.isnan(p):
        return np.nan
    return 1.0 if p >= 1.0 else float(-np.expm1(max(n_tests, 1) * np.log1p(-p)))


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


# -- one side ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The people on one side of a comparison, and how much each counts.

    Attributes
    ----------
    weight
        Of each; they add up to 1.
    level, unit
        Level of each, and which person each row is of: both from 0 without gaps.
    independent
        Whether each row is of another person.
    """

    weight: FloatArray
    level: IntArray
    unit: IntArray
    independent: bool

    @classmethod
    def of(cls, weight: FloatArray, level: IntArray, cluster: IntArray | None) -> Side:
        """From weights, levels and clusters as they are numbered in the whole sample."""
        total = weight.sum()
        level = np.unique(level, return_inverse=True)[1].astype(np.int64)
        unit = np.arange(len(level)) if cluster is None else np.unique(cluster, return_inverse=True)[1].astype(np.int64)
        return cls(weight / total if total > 0 else weight, level, unit, cluster is None)

    def only(self, some: BoolArray) -> Side:
        """Those for whom the mask is true; the others count for nothing."""
        return Side.of(self.weight[some], self.level[some], None if self.independent else self.unit[some])

    @property
    def n_effective(self) -> float:
        """Number of people with equal weights that would be as informative, were the rows of a person unrelated."""
        return float(1.0 / (self.weight**2).sum())

    @property
    def n_least(self) -> float:
        """The same, were the rows of a person all alike."""
        return float(1.0 / (self._by_unit(self.weight) ** 2).sum())

    def mean(self, values: FloatArray) -> float:
        """Weighted mean."""
        return float((self.weight * values).sum())

    def residuals(self, values: FloatArray) -> FloatArray:
        """Values minus the mean of their level, divided so that their squares are right on average."""
        count = np.bincount(self.level).astype(np.float64)
        means = np.bincount(self.level, values) / count
        units = self._units_of_levels().astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = np.where(units > 1, np.sqrt(units / (units - 1)), 0.0)
        left = (values - means[self.level]) * grown[self.level]
        scale = np.abs(values).max(initial=0.0)
        return np.where(np.abs(left) <= TIE * scale, 0.0, left)

    def mean_piece(self, residuals: FloatArray) -> Mean:
        """The error of a weighted mean, from residuals."""
        by_unit = self._by_unit(self.weight * residuals)
        alone = self._units_of_levels() <= 1
        own = self._by_unit(np.where(alone[self.level], 0.0, self.weight))
        lone = self._by_unit(np.where(alone[self.level], self.weight, 0.0))
        if not own.any():  # one person in each level: nothing to tell a spread from
            return Mean(np.nan, np.nan)
        variance = float((by_unit**2).sum())
        skew = float((by_unit**3).sum()) / variance**1.5 if variance > 0 else 0.0
        # people who are alone in their level are taken to vary as the others do
        variance *= 1.0 + float((lone**2).sum() / (own**2).sum())
        all_ = self._by_unit(self.weight)
        df = float((all_**2).sum() ** 2 / (all_**4).sum()) - len(alone)
        if self.independent:
            df = min(df, self._satterthwaite(by_unit))
        return Mean(float(np.sqrt(variance)), max(df, 1.0), skew)

    def _satterthwaite(self, by_unit: FloatArray) -> float:
        """Degrees of freedom of a sum of variances, one per level with two or more people."""
        parts = np.bincount(self.level, by_unit**2)
        spare = np.maximum(np.bincount(self.level) - 1, 1)
        square = float((parts**2 / spare).sum())
        return float(parts.sum()) ** 2 / square if square > 0 else np.inf

    def _by_unit(self, values: FloatArray) -> FloatArray:
        return values if self.independent else np.asarray(np.bincount(self.unit, values), dtype=np.float64)

    def _units_of_levels(self) -> IntArray:
        """Number of people in each level."""
        if self.independent:
            return np.bincount(self.level)
        pairs = np.unique(np.column_stack([self.level, self.unit]), axis=0)
        return np.bincount(pairs[:, 0], minlength=int(self.level.max(initial=-1)) + 1)


def score_of(side: Side, cost: FloatArray, budget: float, *, unseen: float = 0.0, n_unseen: float = 0.0) -> Estimate:
    """The score: what people with recourse pay on average, and the budget for those without.

    Parameters
    ----------
    side, cost, budget
        Who, what they pay, and what no recourse counts as.
    unseen
        What people with recourse are taken to pay where there are none.
    n_unseen
        See :attr:`Sample.n_unseen`.
    """
    bounds = (0.0, budget if budget > 0 else np.inf)
    if not len(cost):
        return UNKNOWN
    covered = np.isfinite(cost)
    charge = np.where(covered, cost, budget)
    value, missing = side.mean(charge), side.mean((~covered).astype(np.float64))
    if len(cost) < 2 or side.n_least < 1.0 + TIE:
        return Estimate(value, UNKNOWN.pieces, 1.0, *bounds)
    paid = side.mean(np.where(covered, cost, 0.0)) / (1.0 - missing) if covered.any() else unseen
    share = share_piece(side, ~covered, budget - paid, n_unseen)
    if not covered.any():
        return Estimate(value, (share,), 1.0, *bounds)
    among = side.only(covered)
    residuals = np.zeros(len(cost))
    residuals[covered] = among.residuals(cost[covered])
    alone = among.mean_piece(residuals[covered])
    if not np.isfinite(alone.error):
        return Estimate(value, UNKNOWN.pieces, 1.0, *bounds)
    mean = Mean(alone.error * (1.0 - missing), alone.df, alone.skew)
    factor = 1.0
    if not side.independent:  # whoever lacks recourse may also pay more in their other rows
        whole = side.mean_piece(side.residuals(charge)).error
        apart = float(np.hypot(mean.error, share.error))
        factor = max(1.0, whole / apart) if np.isfinite(whole) and apart > 0 else 1.0
    return Estimate(value, (mean, share), factor, *bounds)


def share_piece(side: Side, hit: BoolArray, slope: float = 1.0, n_unseen: float = 0.0) -> Share:
    """A share, with the number of people that it effectively comes from."""
    if not hit.any():
        return Share(0.0, max(side.n_least, n_unseen, 1.0), slope)
    hits = hit.astype(np.float64)
    share, n = side.mean(hits), side.n_effective
    if not side.independent:
        n = side.n_least
        if min(hits.sum(), len(hits) - hits.sum()) >= ENOUGH:
            found = side.mean_piece(side.residuals(hits)).error
            if np.isfinite(found) and found > 0:
                n = float(np.clip(share * (1 - share) / found**2, side.n_least, side.n_effective))
    return Share(min(max(share, 0.0), 1.0), max(n, 1.0), slope)


def share_of(side: Side, hit: BoolArray) -> Estimate:
    """The share of those for whom the mask is true."""
    if not len(hit):
        return UNKNOWN
    return Estimate(side.mean(hit.astype(np.float64)), (share_piece(side, hit),), low=0.0, high=1.0)


def coverage_of(side: Side, covered: BoolArray, n_unseen: float) -> Estimate:
    """The share with recourse."""
    if not len(covered):
        return UNKNOWN
    return Estimate(
        side.mean(covered.astype(np.float64)), (share_piece(side, ~covered, -1.0, n_unseen),), 1.0, 0.0, 1.0
    )


def mean_of(side: Side, values: FloatArray) -> Estimate:
    """A mean; unknown if it cannot have an error."""
    if not len(values):
        return UNKNOWN
    return Estimate(side.mean(values), (side.mean_piece(side.residuals(values)),))


@dataclass(frozen=True, slots=True, eq=False)
class Quantile:
    """A quantile, whose ends are the values at the ends of Wilson's interval of its share."""

    values: FloatArray
    weights: FloatArray  # added up
    share: float
    n: float

    @property
    def error(self) -> float:
        """Standard error, as a normal distribution's interval would have it."""
        return sum(self.reach(0.05)) / (2 * -float(ndtri(0.025)))

    def at(self, share: float) -> float:
        """The smallest value that so large a share does not exceed."""
        i = int(np.searchsorted(self.weights, share * (1 - TIE), side="left"))
        return float(self.values[min(i, len(self.values) - 1)])

    def reach(self, alpha: float) -> Ends:
        """Distances to the lower and the upper end of the interval at level ``1 - alpha``."""
        below, above = Share(self.share, self.n, 1.0).reach(alpha)
        here = self.at(self.share)
        return here - self.at(self.share - below), self.at(self.share + above) - here


def quantile_of(side: Side, values: FloatArray, share: float) -> Estimate:
    """The value that a share does not exceed; unknown if it, or an end of its interval, is infinite."""
    if not len(values):
        return UNKNOWN
    order = np.argsort(values, kind="stable")
    piece = Quantile(values[order], np.cumsum(side.weight[order]), share, max(side.n_least, 1.0))
    value = piece.at(share)
    return Estimate(value, (piece,)) if np.isfinite(value) and len(values) > 1 else UNKNOWN


# -- two sides ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two sides, within the levels that have people of both.

    Attributes
    ----------
    members
        Who is on each side: positions in the sample.
    sides
        How much each of them counts.
    left_out
        How many of each side are in levels that the other is not in.
    """

    members: tuple[IntArray, IntArray]
    sides: tuple[Side, Side]
    left_out: tuple[int, int]


def paired(one: BoolArray, other: BoolArray, level: IntArray, cluster: IntArray | None) -> Pair:
    """Pair two sides, given as masks, within levels, with the weights of Mantel and Haenszel."""
    masks = one, other
    n_levels = int(level.max(initial=0)) + 1
    a, b = (np.bincount(level[m], minlength=n_levels).astype(np.float64) for m in masks)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where((a > 0) & (b > 0), a * b / (a + b), 0.0)
    members, sides = [], []
    for mask, count in zip(masks, (a, b), strict=True):
        mine = np.flatnonzero(mask & (weight[level] > 0))
        members.append(mine)
        each = weight[level[mine]] / count[level[mine]]
        sides.append(Side.of(each, level[mine], None if cluster is None else cluster[mine]))
    left = [int(mask.sum()) - len(mine) for mask, mine in zip(masks, members, strict=True)]
    return Pair((members[0], members[1]), (sides[0], sides[1]), (left[0], left[1]))


def contrast(pair: Pair, estimate: Callable[[Side, IntArray], Estimate]) -> Contrast:
    """The gap between the sides of a pair in what ``estimate`` makes of a side and its members."""
    one, other = (estimate(side, members) for side, members in zip(pair.sides, pair.members, strict=True))
    return Contrast(one, other)


def interval(draws: FloatArray, level: float) -> Ends:
    """Percentile interval; ``(nan, nan)`` if no draw is finite."""
    found = draws[np.isfinite(draws)]
    if not found.size:
        return np.nan, np.nan
    low, high = np.quantile(found, [level / 2, 1 - level / 2])
    return float(low), float(high)


def distance(one: FloatArray, other: FloatArray, weights: Sequence[FloatArray] | None = None) -> tuple[float, float]:
    """Largest distance between two cost curves (shares with recourse within a cost), and the cost where it is."""
    costs = np.unique(np.concatenate([one, other]))
    costs = costs[np.isfinite(costs)]
    if not costs.size or not one.size or not other.size:
        return (0.0, np.nan) if one.size and other.size else (np.nan, np.nan)
    curves = []
    for i, values in enumerate((one, other)):
        order = np.argsort(values, kind="stable")
        each = np.full(len(values), 1.0 / len(values)) if weights is None else weights[i]
        total = np.concatenate([[0.0], np.cumsum(each[order])])
        curves.append(total[np.searchsorted(values[order], costs, side="right")])
    apart = np.abs(curves[0] - curves[1])
    where = int(apart.argmax())
    return float(apart[where]), float(costs[where])
