"""Run the checks for search artefacts, on a sample of many inputs: the comparisons again, under other conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from globece.auditing import artefact
from globece.auditing import statistics as st
from globece.auditing.artefact import Check, Judged, Terms, Version
from globece.auditing.exchange import judged_costs
from globece.auditing.extra import ROUGH_POINTS
from globece.auditing.measures import Comparison, contrasts
from globece.auditing.pool import CandidateSearch, Pool, gather, within
from globece.auditing.question import Question
from globece.auditing.settings import AuditSettings
from globece.case.ordering import content_order
from globece.case.recourse import score
from globece.case.scaling import Scaled, scale
from globece.errors import TimeLimitError
from globece.progress import TimeUp
from globece.space import FloatArray, IntArray

CHECKED_ON = 4000  # affected inputs, about
CLIMBING = 4  # folds in which more candidates are climbed
EACH = 600  # of each group, where it has so many


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What an audit found so far: the question, the groups that are compared, the pool, costs, comparisons."""

    question: Question
    names: Sequence[str]
    pool: Pool
    cost: FloatArray
    comparisons: tuple[Comparison, ...]
    headline: int


def checks(found: Found, search: CandidateSearch, settings: AuditSettings) -> tuple[Check, ...]:
    """Repeat the comparisons under other conditions."""
    some = _sample(found)
    q = found.question
    if len(some) < len(q.rows):
        q = replace(q, case=q.case.only(some))
    pool = found.pool.only(some)
    versions: list[Version] = [Version("as it is", found.cost[some], "")]
    more: list[Check] = []
    tries: list[tuple[str, Callable[[], Iterable[Version | Check]]]] = [
        ("more candidates", lambda: _more(q, pool, search)),
        ("other costs", lambda: artefact.other_costs(q.case, _further(q, pool))),
        (artefact.BOUND, lambda: [artefact.least(q.case)]),
    ]
    for name, tried in tries:
        try:
            search.monitor.begin()
            search.monitor.found()
            for one in tried():
                if isinstance(one, Check):
                    more.append(one)
                else:
                    versions.append(one)
        except (TimeUp, TimeLimitError) as why:
            search.monitor.interrupt(TimeUp(str(why)))
            more.append(artefact.untried(name, search.monitor))
    results = [_judged(q, found.names, version.cost, settings) for version in versions]
    terms = Terms(
        alpha=st.each_level(settings.level, len(found.comparisons)),
        margin=settings.margin(results[0].overall) / max(results[0].overall, 1e-300),
        names=[f"{c.group} against {c.other}" for c in found.comparisons],
        headline=found.headline,
    )
    checked = [*artefact.checked(versions, results, terms), *more]
    if len(some) < len(found.question.rows):
        note = f"on {len(some):,} of {len(found.question.rows):,} affected inputs, chosen by their content"
        checked = [replace(c, remark=f"{c.remark}; {note}") for c in checked]
    return tuple(checked)


def _sample(found: Found) -> IntArray:
    """All affected inputs, or a sample of many: everybody in small groups, and some of the others."""
    n = len(found.question.rows)
    if n <= CHECKED_ON:
        return np.arange(n)
    order = content_order(found.question.case.inputs.values, 1)
    label = found.question.labels(found.names)[found.question.rows][order]
    rank = np.empty(n, dtype=np.int64)
    for g in np.unique(label):
        mine = np.flatnonzero(label == g)
        rank[mine] = np.arange(len(mine))
    return np.sort(order[(rank < EACH) | (np.arange(n) < CHECKED_ON)])


def _judged(q: Question, names: Sequence[str], cost: FloatArray, settings: AuditSettings) -> Judged:
    sample = q.sample(names, cost)
    scores = {name: score(cost[m], q.case.budget) for name, m in zip(names, q.members(names), strict=True)}
    overall = score(sample.cost, q.case.budget)
    return Judged(contrasts(sample, q.reference_among(names)), overall, scores)


def _more(q: Question, pool: Pool, search: CandidateSearch) -> Iterator[Version]:
    """The same with other candidates added, climbed from another seed."""
    other = replace(search, seed=search.seed + 1)
    again, reached = gather(q.case, (), pool.fold, other, shares=(0.92, 1.0), climbing=CLIMBING)
    if len(reached) < len(pool.fold):
        raise TimeUp
    both = _merged(pool, again)
    remark = f"{len(both.directions)} candidate directions instead of {len(pool.directions)}"
    yield Version("more candidates", judged_costs(both), remark)


def _further(q: Question, pool: Pool) -> Pool:
    """The same pool, followed as far as other costs may need."""
    if not q.case.model.exact:
        return pool
    again = replace(q.case, budget=artefact.FACTOR * q.case.budget)
    parts = [
        scale(again.part(np.arange(part.start, part.stop)), pool.directions, model=q.case.model.thinned(ROUGH_POINTS))
        for part in q.case.inputs.slices()
    ]
    far = Scaled(np.hstack([p.scalar for p in parts]), np.hstack([p.cost for p in parts]))
    return replace(pool, scaled=within(far, q.case.budget), far=far)


def _merged(one: Pool, other: Pool) -> Pool:
    def stacked(a: Scaled, b: Scaled) -> Scaled:
        return Scaled(np.vstack([a.scalar, b.scalar]), np.vstack([a.cost, b.cost]))

    return Pool(
        np.vstack([one.directions, other.directions]),
        stacked(one.scaled, other.scaled),
        stacked(one.far, other.far),
        np.hstack([one.from_fold, other.from_fold]),
        one.fold,
        one.seen + other.seen,
        one.rank,
        one.whole & other.whole,
        one.ahead,
    )
