"""Measures of each group, and comparisons between groups, named as in fairlearn's MetricFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from globece.auditing import statistics as st
from globece.auditing.conclusions import Decision, decided
from globece.auditing.settings import AuditSettings
from globece.case.recourse import Numbers
from globece.space import BoolArray, FloatArray, IntArray

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
EVERYBODY_ELSE = "everybody else"
NOT_A_NUMBER = float("nan")
MOST_PAIRED = 12  # groups of which all pairs are compared, for the two furthest apart within levels of a control
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Measures:
    """Measures of one group, or of everybody.

    Attributes
    ----------
    n, affected
        Number of rows, and of those with the unfavourable outcome.
    rejection_rate
        Share of the rows that are affected: model bias is a gap here.
    coverage, average_cost, score
        Of the affected inputs, as for an explanation, under directions found without them; ``nan`` where nothing is
        known about those affected. Recourse bias is a gap in the score.
    quantiles
        Minimum cost of the affected inputs at 10, 25, 50, 75 and 90 %; ``inf`` where that many have no recourse.
    coverage_interval, average_cost_interval, score_interval, rejection_rate_interval
        Confidence intervals.
    judged
        Whether the group is large enough to be compared.
    note
        Why it is not.
    """

    n: int
    affected: int
    rejection_rate: float
    coverage: float
    average_cost: float
    score: float
    quantiles: tuple[float, ...]
    coverage_interval: Interval = (NOT_A_NUMBER, NOT_A_NUMBER)
    average_cost_interval: Interval = (NOT_A_NUMBER, NOT_A_NUMBER)
    score_interval: Interval = (NOT_A_NUMBER, NOT_A_NUMBER)
    rejection_rate_interval: Interval = (NOT_A_NUMBER, NOT_A_NUMBER)
    judged: bool = True
    note: str = ""

    @property
    def median_cost(self) -> float:
        """Median minimum cost of the affected inputs; ``inf`` if fewer than half of them have recourse."""
        return self.quantiles[QUANTILES.index(0.5)]


@dataclass(frozen=True, slots=True)
class Gap:
    """The difference between two sides in one measure.

    Attributes
    ----------
    value, low, high
        The gap, and its interval; the intervals of all comparisons hold at once.
    p, p_adjusted
        p-value of a two-sided test; and the same corrected for the number of comparisons, which is below the level
        exactly where the interval excludes 0. ``nan`` if it cannot be computed.
    detectable
        Smallest gap that the test detects with a power of 80 %.
    """

    value: float
    low: float
    high: float
    p: float
    p_adjusted: float
    detectable: float = NOT_A_NUMBER

    @classmethod
    def of(cls, contrast: st.Contrast, settings: AuditSettings, n_tests: int) -> Gap:
        """From a contrast, one of several."""
        alpha, p = st.each_level(settings.level, n_tests), contrast.p()
        low, high = contrast.interval(alpha)
        return cls(contrast.value, low, high, p, st.corrected(p, n_tests), contrast.detectable(alpha))


@dataclass(frozen=True, slots=True)
class Comparison:
    """A group against another, or against everybody else.

    Attributes
    ----------
    group, other
        The two sides.
    gaps
        By measure, the group's minus the other's.
    decision
        What follows from the gap in score.
    left_out
        Affected inputs of each side that are not compared, as the other side has nobody in their levels of the control.
    """

    group: str
    other: str
    gaps: Mapping[str, Gap]
    decision: Decision
    left_out: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Spread:
    """The groups furthest apart in a measure, with the values that were compared, their gap, and the p-value for it.

    Within levels of a control the values are averaged over the levels that both groups have. The interval and p are
    corrected for the number of pairs of groups.
    """

    highest: str
    lowest: str
    value: float
    low: float
    high: float
    p: float
    values: tuple[float, float] = (NOT_A_NUMBER, NOT_A_NUMBER)


def measured(n: int, cost: FloatArray, budget: float, *, unknown: int = 0, **more: Any) -> Measures:
    """Measures of a group of ``n`` rows, from the minimum costs of its known affected inputs."""
    numbers, affected, ordered = Numbers.of(cost, budget), len(cost), np.sort(cost)
    # an order statistic, not a mean of two, as one of them may be infinite
    at = [max(int(np.ceil(q * affected)) - 1, 0) for q in QUANTILES]
    quantiles = tuple(float(ordered[i]) if affected else 0.0 for i in at)
    if unknown and not affected:  # nothing is known about those affected
        numbers = Numbers(0, 0, NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER)
        quantiles = (NOT_A_NUMBER,) * len(QUANTILES)
    return Measures(
        n=int(n),
        affected=affected + unknown,
        rejection_rate=(affected + unknown) / n if n else NOT_A_NUMBER,
        coverage=numbers.coverage,
        average_cost=numbers.average_cost,
        score=numbers.score,
        quantiles=quantiles,
        **more,
    )


def estimated(sample: st.Sample, measure: st.Measure, side: st.Side, members: IntArray) -> st.Estimate:
    """A measure of one side."""
    cost = sample.cost[members]
    covered = np.isfinite(cost)
    if measure == "score":
        return st.score_of(side, cost, sample.budget, n_unseen=sample.n_unseen)
    if measure == "coverage":
        return st.coverage_of(side, covered, sample.n_unseen)
    return st.mean_of(side.only(covered), cost[covered])


def intervals_of(sample: st.Sample, mask: BoolArray, level: float) -> dict[str, Interval]:
    """Intervals of the measures of some inputs, whatever their levels of the control."""
    mine = np.flatnonzero(mask)
    if not len(mine):
        return {}
    cluster = None if sample.cluster is None else sample.cluster[mine]
    side = st.Side.of(np.ones(len(mine)), np.zeros(len(mine), dtype=np.int64), cluster)
    return {f"{m}_interval": estimated(sample, m, side, mine).interval(level) for m in st.MEASURES}


@dataclass(frozen=True, slots=True)
class Compared:
    """Intervals of each group's measures, comparisons, and the spread of each measure."""

    intervals: tuple[dict[str, Interval], ...]
    comparisons: tuple[Comparison, ...]
    spreads: Mapping[str, Spread]


def compare(
    sample: st.Sample, names: Sequence[str], reference: int | None, settings: AuditSettings, margin: float
) -> Compared:
    """Compare the groups of a sample in coverage, average cost and score.

    Two groups are compared with each other; three or more each with everybody else, or with a reference.
    """
    pairs = pairs_of(len(names), reference)
    intervals = tuple(intervals_of(sample, sample.label == g, settings.level) for g in range(len(names)))
    comparisons = []
    for a, b in pairs:
        pair = _pair(sample, a, b)
        found = {m: _contrast(sample, m, pair) for m in st.MEASURES}
        gaps: dict[str, Gap] = {m: Gap.of(c, settings, len(pairs)) for m, c in found.items()}
        other = EVERYBODY_ELSE if b is None else names[b]
        decision = decided(found["score"], settings, len(pairs), margin)
        comparisons.append(Comparison(names[a], other, gaps, decision, pair.left_out))
    spreads: dict[str, Spread] = {}
    for m in st.MEASURES if pairs else ():
        spreads[m] = _spread(sample, names, m, settings.level)
    return Compared(intervals, tuple(comparisons), spreads)


def contrasts(sample: st.Sample, reference: int | None) -> list[st.Contrast]:
    """The gap in score of each comparison."""
    pairs = pairs_of(sample.n_groups, reference)
    return [_contrast(sample, "score", _pair(sample, a, b)) for a, b in pairs]


def pairs_of(n: int, reference: int | None) -> list[tuple[int, int | None]]:
    """Pairs of groups to compare, by position; ``None`` is everybody else."""
    if n < 2:
        return []
    if reference is not None:
        return [(g, reference) for g in range(n) if g != reference]
    return [(0, 1)] if n == 2 else [(g, None) for g in range(n)]


def _pair(sample: st.Sample, a: int, b: int | None) -> st.Pair:
    one = sample.label == a
    return st.paired(one, ~one if b is None else sample.label == b, sample.level, sample.cluster)


def _contrast(sample: st.Sample, measure: st.Measure, pair: st.Pair) -> st.Contrast:
    if measure == "average_cost":  # only among those with recourse, so that levels are weighted by these
        return _among_covered(sample, pair)
    return st.contrast(pair, lambda side, members: estimated(sample, measure, side, members))


def _among_covered(sample: st.Sample, pair: st.Pair) -> st.Contrast:
    covered = np.isfinite(sample.cost)
    one, other = np.zeros((2, len(sample.cost)), dtype=bool)
    one[pair.members[0]], other[pair.members[1]] = True, True
    among = st.paired(one & covered, other & covered, sample.level, sample.cluster)
    return st.contrast(among, lambda side, members: st.mean_of(side, sample.cost[members]))


def _spread(sample: st.Sample, names: Sequence[str], measure: st.Measure, level: float) -> Spread:
    """The two groups furthest apart: of all pairs where there are few groups, or else by their own values."""
    n = len(names)
    n_pairs = n * (n - 1) // 2
    if sample.level.any() and n <= MOST_PAIRED:
        pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    else:
        values = np.array([_value(sample, measure, g) for g in range(n)])
        known = np.flatnonzero(np.isfinite(values))
        if not known.size:
            return Spread(names[0], names[0], NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER)
        top, bottom = int(known[values[known].argmax()]), int(known[values[known].argmin()])
        pairs = [(int(known[0]), int(known[-1])) if top == bottom else (top, bottom)]
    found = [(a, b, _contrast(sample, measure, _pair(sample, a, b))) for a, b in pairs]
    a, b, widest = max(found, key=lambda f: -1.0 if np.isnan(f[2].value) else abs(f[2].value))
    if widest.value < 0:
        a, b, widest = b, a, st.Contrast(widest.other, widest.one)
    low, high = widest.interval(st.each_level(level, n_pairs))
    p = st.corrected(widest.p(), n_pairs)
    return Spread(names[a], names[b], widest.value, low, high, p, (widest.one.value, widest.other.value))


def _value(sample: st.Sample, measure: st.Measure, group: int) -> float:
    numbers = Numbers.of(sample.cost[sample.label == group], sample.budget)
    return float(getattr(numbers, measure))


def rejections(
    affected: BoolArray,
    sample: tuple[IntArray, IntArray, IntArray | None],
    pairs: Sequence[tuple[int, int | None]],
    settings: AuditSettings,
) -> list[Gap]:
    """Gaps in rejection rates over all rows of the groups: model bias.

    Parameters
    ----------
    affected
        Which rows have the unfavourable outcome.
    sample
        Group (-1 for none), level of the control, and cluster of each row.
    pairs, settings
        As for :func:`compare`.
    """
    label, level, cluster = sample
    # an order that does not depend on that of the rows
    order = np.lexsort((affected, label, level) if cluster is None else (cluster, affected, label, level))
    affected, label, level = affected[order], label[order], level[order]
    cluster = None if cluster is None else cluster[order]
    found = []
    for a, b in pairs:
        other = (label >= 0) & (label != a) if b is None else label == b
        pair = st.paired(label == a, other, level, cluster)
        gap = st.contrast(pair, lambda side, members: st.share_of(side, affected[members]))
        found.append(Gap.of(gap, settings, len(pairs)))
    return found
