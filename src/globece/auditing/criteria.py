"""What the score alone hides: burden, shares within a cost, cost curves, choice, and results by level of a control.

The score looks at those who are turned down. A group that is turned down twice as often, and whose members then pay as
much, has the same score and twice the *burden*. The other criteria are those of FACTS (Kavouras et al. 2023): equal
effectiveness (coverage, and the share within a cost), equal cost of effectiveness (what it takes until half of a group
has recourse), equal choice of recourse, and the distance between the cost curves. Each has an interval and a test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import kolmogorov

from globece.auditing import statistics as st
from globece.auditing.measures import EVERYBODY_ELSE, Gap, pairs_of
from globece.auditing.question import Question
from globece.auditing.settings import AuditSettings
from globece.explanation import Explanation
from globece.space import BoolArray, FloatArray, IntArray

BURDEN, WITHIN, HALF, CHOICE, DISTANCE = "burden", "share_within", "cost_of_half", "choice", "distance"
CRITERIA = (BURDEN, WITHIN, HALF, CHOICE, DISTANCE)
REJECTION = "rejection_rate"  # of groups that no comparison is about


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion of one comparison.

    Attributes
    ----------
    name
        ``"burden"``: cost of recourse per member, favourable ones included (rejection rate times score).
        ``"share_within"``: share of those affected who have recourse within ``at``.
        ``"cost_of_half"``: cost within which half of those affected have recourse; ``at`` is that share.
        ``"choice"``: how many of the reported directions give a person recourse.
        ``"distance"``: largest distance between the cost curves, which is at cost ``at``.
        ``"rejection_rate"``: share of the rows that are affected, of groups with too few affected inputs (or none) to
        be compared otherwise.
    group, other
        The two sides.
    one, two
        Their values; ``nan`` for a distance.
    gap
        Their difference, or the distance, with interval and test, corrected for the number of comparisons.
    at
        See the names; ``nan`` for the others.
    """

    name: str
    group: str
    other: str
    one: float
    two: float
    gap: Gap
    at: float


@dataclass(frozen=True, slots=True)
class LevelGap:
    """A comparison within one level of the control: affected inputs of both sides, and the gap in score.

    Intervals and p are corrected for the number of comparisons and levels.
    """

    level: str
    group: str
    other: str
    n: tuple[int, int]
    gap: Gap


def criteria(
    q: Question, names: Sequence[str], cost: FloatArray, explanation: Explanation, settings: AuditSettings
) -> tuple[Criterion, ...]:
    """Every criterion of every comparison."""
    pairs = pairs_of(len(names), q.reference_among(names))
    if not pairs:
        return ()
    found: list[Criterion] = []
    affected, everybody = _Affected.of(q, names, cost, explanation), _Everybody.of(q, names, cost)
    for a, b in pairs:
        two = names[a], EVERYBODY_ELSE if b is None else names[b]
        burden = everybody.contrast(a, b)
        found.append(_criterion(BURDEN, two, burden, settings, len(pairs), np.nan))
        pair = st.paired(*_masks(affected.label, a, b), affected.level, affected.cluster)
        for name, estimate, at in affected.estimates():
            found.append(_criterion(name, two, st.contrast(pair, estimate), settings, len(pairs), at))
        found.append(_distance(two, pair, affected.cost, settings, len(pairs)))
    return tuple(found)


def not_compared(q: Question, names: Sequence[str], settings: AuditSettings) -> tuple[Criterion, ...]:
    """Rejection rates of the groups that are not among these, each against everybody else.

    A group with few affected inputs, or none, cannot be compared in recourse: it may be the one that is favoured.
    """
    sizes = dict(zip(q.groups.names, q.groups.sizes.tolist(), strict=True))
    rest = [name for name in q.groups.names if name not in names and sizes[name] >= settings.least()]
    n_tests = len(rest) + len(pairs_of(len(names), q.reference_among(names)))
    hit = ~q.case.favourable
    kept = np.flatnonzero(q.groups.labels >= 0)
    keys = [hit[kept], q.groups.labels[kept], q.levels()[kept]]  # an order that does not depend on that of the rows
    order = kept[np.lexsort(keys if q.cluster is None else [q.cluster[kept], *keys])]
    label, level, affected = q.groups.labels[order], q.levels()[order], hit[order]
    cluster = None if q.cluster is None else q.cluster[order]
    found = []
    for name in rest:
        pair = st.paired(*_masks(label, q.groups.index(name), None), level, cluster)
        gap = st.contrast(pair, lambda side, members: st.share_of(side, affected[members]))
        found.append(_criterion(REJECTION, (name, EVERYBODY_ELSE), gap, settings, n_tests, np.nan))
    return tuple(found)


def by_level(q: Question, names: Sequence[str], cost: FloatArray, settings: AuditSettings) -> tuple[LevelGap, ...]:
    """The gaps in score within each level of the control, where both sides have anybody."""
    if q.control is None:
        return ()
    sample = q.sample(names, cost)
    pairs = pairs_of(len(names), q.reference_among(names))
    labels = [*q.control.names, "(none)"]
    tasks = []
    for v in np.unique(sample.level):
        for a, b in pairs:
            one, two = (mask & (sample.level == v) for mask in _masks(sample.label, a, b))
            if one.any() and two.any():
                tasks.append((labels[int(v)], names[a], EVERYBODY_ELSE if b is None else names[b], one, two))
    found, unseen = [], sample.n_unseen
    for level, group, other, one, two in tasks:
        pair = st.paired(one, two, np.zeros(len(one), dtype=np.int64), sample.cluster)
        gap = st.contrast(pair, lambda side, m: st.score_of(side, sample.cost[m], sample.budget, n_unseen=unseen))
        found.append(LevelGap(level, group, other, (int(one.sum()), int(two.sum())), Gap.of(gap, settings, len(tasks))))
    return tuple(found)


def _masks(label: IntArray, a: int, b: int | None) -> tuple[BoolArray, BoolArray]:
    return label == a, (label >= 0) & (label != a) if b is None else label == b


def _criterion(
    name: str, two: tuple[str, str], contrast: st.Contrast, settings: AuditSettings, n: int, at: float
) -> Criterion:
    return Criterion(name, *two, contrast.one.value, contrast.other.value, Gap.of(contrast, settings, n), at)


@dataclass(frozen=True, slots=True, eq=False)
class _Affected:
    """The affected inputs of the groups, in an order that does not depend on that of the rows."""

    cost: FloatArray
    choice: FloatArray
    label: IntArray
    level: IntArray
    cluster: IntArray | None

    @classmethod
    def of(cls, q: Question, names: Sequence[str], cost: FloatArray, explanation: Explanation) -> _Affected:
        at = q.rows
        choice = np.isfinite(explanation.costs).sum(axis=0).astype(np.float64)
        label, level = q.labels(names)[at], q.levels()[at]
        cluster = None if q.cluster is None else q.cluster[at]
        kept = np.flatnonzero(label >= 0)
        keys = [choice[kept], cost[kept], label[kept], level[kept]]
        order = kept[np.lexsort(keys if cluster is None else [cluster[kept], *keys])]
        of_whom = None if cluster is None else cluster[order]
        return cls(cost[order], choice[order], label[order], level[order], of_whom)

    def estimates(self) -> list[tuple[str, Callable[[st.Side, IntArray], st.Estimate], float]]:
        """For each criterion how it is estimated on one side, and at which cost or share."""
        paid = np.sort(self.cost)
        covered = float(np.isfinite(paid).mean())
        middle = float(paid[(len(paid) - 1) // 2])
        limit = middle if np.isfinite(middle) else float(paid[np.isfinite(paid)].max(initial=0.0))
        share = 0.5 if covered > 0.5 else covered / 2
        return [
            (WITHIN, lambda side, m: st.share_of(side, self.cost[m] <= limit), limit),
            (HALF, lambda side, m: st.quantile_of(side, self.cost[m], share), share),
            (CHOICE, lambda side, m: st.mean_of(side, self.choice[m]), np.nan),
        ]


@dataclass(frozen=True, slots=True, eq=False)
class _Everybody:
    """All rows of the groups whose cost is known: 0 for those who have the favourable outcome already."""

    charge: FloatArray
    affected: BoolArray
    label: IntArray
    level: IntArray
    cluster: IntArray | None

    @classmethod
    def of(cls, q: Question, names: Sequence[str], cost: FloatArray) -> _Everybody:
        charge, affected = np.zeros(len(q.case.rows)), np.zeros(len(q.case.rows), dtype=bool)
        charge[q.rows], affected[q.rows] = np.minimum(cost, q.case.budget), True
        label, level = q.labels(names).copy(), q.levels()
        label[q.case.unknown] = -1
        kept = np.flatnonzero(label >= 0)
        keys = [charge[kept], affected[kept], label[kept], level[kept]]
        order = kept[np.lexsort(keys if q.cluster is None else [q.cluster[kept], *keys])]
        cluster = None if q.cluster is None else q.cluster[order]
        return cls(charge[order], affected[order], label[order], level[order], cluster)

    def contrast(self, a: int, b: int | None) -> st.Contrast:
        """The gap in burden: a mean of costs, where those who are not affected pay nothing."""
        pair = st.paired(*_masks(self.label, a, b), self.level, self.cluster)
        typical = float(self.charge[self.affected].mean()) if self.affected.any() else 0.0

        def burden(side: st.Side, members: IntArray) -> st.Estimate:
            cost = np.where(self.affected[members], self.charge[members], np.inf)
            return st.score_of(side, cost, 0.0, unseen=typical)

        return st.contrast(pair, burden)


def _distance(two: tuple[str, str], pair: st.Pair, cost: FloatArray, settings: AuditSettings, n: int) -> Criterion:
    """The largest distance between two cost curves: with the interval and test of Kolmogorov and Smirnov."""
    (one, other), (a, b) = (cost[m] for m in pair.members), pair.sides
    value, at = st.distance(one, other, (a.weight, b.weight))
    if not np.isfinite(value):
        return Criterion(DISTANCE, *two, np.nan, np.nan, Gap(*[np.nan] * 5), np.nan)
    size = np.sqrt(1.0 / (1.0 / a.n_least + 1.0 / b.n_least))
    p = float(kolmogorov(value * (size + 0.12 + 0.11 / size)))
    alpha = st.each_level(settings.level, n)
    reach = float(np.sqrt(-np.log(alpha / 2) / 2) / size)  # of Dvoretzky, Kiefer and Wolfowitz
    gap = Gap(value, max(value - reach, 0.0), min(value + reach, 1.0), p, st.corrected(p, n), reach)
    return Criterion(DISTANCE, *two, np.nan, np.nan, gap, at)


# -- as a member of another group --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AsOther:
    """What those turned down in a group would pay if only their group were another one, where the model takes it.

    Attributes
    ----------
    group, other
        Their group, and the other one.
    n
        How many were asked.
    own, flipped
        Their score under the reported directions, as they are and as members of the other group: 0 for those who would
        not be turned down at all.
    accepted
        Share of them who would not be turned down.
    gap
        What they pay more than they would, on average: each person is compared with themselves.
    """

    group: str
    other: str
    n: int
    own: float
    flipped: float
    accepted: float
    gap: Gap


def mean_gap(values: FloatArray, cluster: IntArray | None, settings: AuditSettings, n: int) -> Gap:
    """The mean of differences within people, with interval and test."""
    side = st.Side.of(np.ones(len(values)), np.zeros(len(values), dtype=np.int64), cluster)
    zero = st.Estimate(0.0, (st.Mean(0.0, 1.0),))
    return Gap.of(st.Contrast(st.mean_of(side, values), zero), settings, n)
