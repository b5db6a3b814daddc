"""Measures of each group, and comparisons between groups, named as in fairlearn's MetricFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from globece.auditing import statistics as st
from globece.auditing.settings import AuditSettings
from globece.case.recourse import Numbers
from globece.space import BoolArray, FloatArray, IntArray

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
EVERYBODY_ELSE = "everybody else"
NOT_A_NUMBER = float("nan")
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
        Of the affected inputs, as for an explanation, under directions chosen on the other half of them; ``nan`` where
        nobody is affected. Recourse bias is a gap here.
    quantiles
        Minimum cost of the affected inputs at 10, 25, 50, 75 and 90 %; ``inf`` where that many have no recourse.
    coverage_interval, average_cost_interval, score_interval
        Bootstrap confidence intervals.
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
        The gap, and its confidence interval.
    p, p_adjusted
        p-value of a two-sided test; and the same corrected for the number of comparisons (Holm).
    detectable
        Smallest gap that the test detects with a power of 80 %; ``nan`` for rejection rates.
    """

    value: float
    low: float
    high: float
    p: float
    p_adjusted: float
    detectable: float = NOT_A_NUMBER


@dataclass(frozen=True, slots=True)
class Comparison:
    """A group against another, or against everybody else; ``gaps`` by measure are the group's minus the other's."""

    group: str
    other: str
    gaps: Mapping[str, Gap]


@dataclass(frozen=True, slots=True)
class Spread:
    """The groups furthest apart in a measure, their gap, and the p-value for any gap between groups."""

    highest: str
    lowest: str
    value: float
    low: float
    high: float
    p: float


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


@dataclass(frozen=True, slots=True)
class Compared:
    """Intervals by measure and group, comparisons, and the spread of each measure."""

    intervals: Mapping[str, tuple[Interval, ...]]
    comparisons: tuple[Comparison, ...]
    spreads: Mapping[str, Spread]


def compare(
    sample: st.Sample, names: Sequence[str], reference: int | None, settings: AuditSettings, seed: int
) -> Compared:
    """Compare the groups of a sample in coverage, average cost and score.

    Two groups are compared with each other; three or more each with everybody else, or with a reference.
    """
    drawn_by, permuted_by = (np.random.default_rng([seed, i]) for i in (0, 1))
    seen, again = sample.sums(), st.resampled(sample, settings.resamples, drawn_by)
    null = st.relabelled(sample, settings.permutations, permuted_by) if len(names) > 1 else seen
    pairs = pairs_of(len(names), reference)
    intervals: dict[str, tuple[Interval, ...]] = {
        m: tuple(st.interval(st.moments(again[:, g].sum(axis=0), m).mean, settings.level) for g in range(len(names)))
        for m in st.MEASURES
    }
    gaps: list[dict[str, Gap]] = [{} for _ in pairs]
    spreads: dict[str, Spread] = {}
    for m in st.MEASURES if pairs else ():
        found = [st.contrast(*_sides(seen, pair), m) for pair in pairs]
        ts = [st.contrast(*_sides(null, pair), m).t for pair in pairs]
        p = np.array([st.p_value(float(f.t[0]), t) for f, t in zip(found, ts, strict=True)])
        for i, (f, q) in enumerate(zip(found, st.holm(p), strict=True)):
            low, high = st.interval(st.contrast(*_sides(again, pairs[i]), m).gap, settings.level)
            least = st.detectable(float(f.error[0]), settings.level / len(pairs))
            gaps[i][m] = Gap(float(f.gap[0]), low, high, float(p[i]), float(q), least)
        largest = np.nan_to_num(np.abs([f.t[0] for f in found]), nan=0.0, posinf=np.inf).max()
        any_p = st.p_value(float(largest), np.nan_to_num(np.abs(np.array(ts)), nan=0.0).max(axis=0))
        spreads[m] = _spread(seen, again, names, m, settings.level, any_p)
    comparisons = tuple(
        Comparison(names[a], EVERYBODY_ELSE if b is None else names[b], g)
        for (a, b), g in zip(pairs, gaps, strict=True)
    )
    return Compared(intervals, comparisons, spreads)


def compare_scores(
    costs: FloatArray, sample: st.Sample, reference: int | None, settings: AuditSettings, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Gaps in score and their corrected p-values under several versions of the costs: ``(versions, comparisons)``.

    Parameters
    ----------
    costs
        One version per row, in the sample's order.
    sample
        The groups of the inputs; its costs are not used.
    reference, settings, seed
        As for :func:`compare`.
    """
    rng, pairs = np.random.default_rng([seed, 3]), pairs_of(sample.n_groups, reference)
    columns = st.charges(costs, sample.budget)
    seen = np.zeros((sample.n_levels, sample.n_groups, 1, columns.shape[1]))
    np.add.at(seen[:, :, 0], (sample.level, sample.label), columns)
    null = st.relabelled(sample, settings.permutations, rng, columns)
    gaps, adjusted = np.empty((2, len(costs), len(pairs)))
    for i in range(len(costs)):
        found = [st.contrast(*_sides(st.of_charges(seen, i), pair), "score") for pair in pairs]
        drawn = [st.contrast(*_sides(st.of_charges(null, i), pair), "score").t for pair in pairs]
        gaps[i] = [float(f.gap[0]) for f in found]
        p = [st.p_value(float(f.t[0]), t) for f, t in zip(found, drawn, strict=True)]
        adjusted[i] = st.holm(np.array(p))
    return gaps, adjusted


def pairs_of(n: int, reference: int | None) -> list[tuple[int, int | None]]:
    """Pairs of groups to compare, by position; ``None`` is everybody else."""
    if n < 2:
        return []
    if reference is not None:
        return [(g, reference) for g in range(n) if g != reference]
    return [(0, 1)] if n == 2 else [(g, None) for g in range(n)]


def _sides(sums: FloatArray, pair: tuple[int, int | None]) -> tuple[FloatArray, FloatArray]:
    a, b = pair
    return sums[:, a], sums.sum(axis=1) - sums[:, a] if b is None else sums[:, b]


def _spread(
    seen: FloatArray, again: FloatArray, names: Sequence[str], measure: st.Measure, level: float, p: float
) -> Spread:
    means = st.moments(seen.sum(axis=0)[:, 0], measure).mean
    known = np.flatnonzero(~np.isnan(means))
    if not known.size:
        return Spread(names[0], names[0], NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER, 1.0)
    top, bottom = known[means[known].argmax()], known[means[known].argmin()]
    if means[top] == means[bottom]:
        top, bottom = known[0], known[-1]
    value = float(st.contrast(seen[:, top], seen[:, bottom], measure).gap[0])
    low, high = st.interval(st.contrast(again[:, top], again[:, bottom], measure).gap, level)
    return Spread(names[top], names[bottom], value, low, high, p)


def rejections(
    affected: BoolArray, label: IntArray, level: IntArray, pairs: Sequence[tuple[int, int | None]], alpha: float
) -> list[Gap]:
    """Gaps in rejection rates over all rows of the groups: model bias."""
    found = []
    for a, b in pairs:
        other = (label >= 0) & (label != a) if b is None else label == b
        found.append(st.rates(affected, level, label == a, other, alpha))
    adjusted = st.holm(np.array([p for *_, p in found]))
    return [Gap(value, low, high, p, float(q)) for (value, low, high, p), q in zip(found, adjusted, strict=True)]
