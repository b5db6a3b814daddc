"""Run an audit: halves, one pool of candidates, choices, measures, comparisons, checks, verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from globece.auditing import artefact
from globece.auditing import statistics as st
from globece.auditing.artefact import Check, Version
from globece.auditing.exchange import EVERYBODY, Choice, choose, cross_fitted, exchanged
from globece.auditing.groups import Groups
from globece.auditing.measures import (
    Compared,
    Comparison,
    Interval,
    compare,
    compare_scores,
    measured,
    pairs_of,
    rejections,
)
from globece.auditing.pool import CONFIRMED, FEWEST, CandidateSearch, Pool, first_batch, gather, halves
from globece.auditing.result import Audit
from globece.auditing.settings import AuditSettings
from globece.auditing.verdict import conclude, headline
from globece.case.affected import Case
from globece.case.recourse import score
from globece.case.scaling import Scaled, in_reach, scale
from globece.case.verification import confirmed
from globece.errors import TimeLimitError
from globece.explanation import Explanation, Provenance, explanation_of, unknown_note
from globece.progress import Monitor, TimeUp
from globece.space import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """The question of an audit.

    Attributes
    ----------
    case
        The model, all rows, which of them are affected, and what changes cost.
    groups, control
        The groups, and the levels of the control columns within which they are compared.
    reference
        The group that the others are compared with; everybody else by default.
    """

    case: Case
    groups: Groups
    control: Groups | None = None
    reference: str | None = None

    @property
    def rows(self) -> IntArray:
        """Positions of the affected inputs, except the unknown ones."""
        return self.case.affected

    def n_unknown(self, group: int) -> int:
        """Number of unknown affected inputs of a group."""
        return int((self.groups.labels[self.case.unknown] == group).sum())

    def members(self, names: Sequence[str] | None = None) -> list[IntArray]:
        """Affected inputs of each group, or of the groups named."""
        label = self.groups.labels[self.rows]
        some = self.groups.names if names is None else names
        return [np.flatnonzero(label == self.groups.index(name)) for name in some]

    def levels(self) -> IntArray:
        """Level of the control columns of each row; 0 if there are none."""
        if self.control is None:
            return np.zeros(len(self.case.rows), dtype=np.int64)
        return np.maximum(self.control.labels, 0)


def run_audit(question: Question, search: CandidateSearch, settings: AuditSettings, provenance: Provenance) -> Audit:
    """Answer the question; see :func:`globece.audit`."""
    q, large, pool, choice, final = _directions(question, search, settings)
    case, budget = q.case, q.case.budget
    half = pool.half
    cost = cross_fitted(pool, pool.by_half, np.arange(len(q.rows)))
    compared = _compared(q, large, cost, half, settings, search.seed)
    stopped = _stopped(q, search.monitor)
    provenance = replace(provenance, notes=(*provenance.notes, *stopped))
    notes = [*provenance.notes, *_notes(q, large, half, settings)]
    comparisons = _with_rejections(q, large, compared.comparisons, settings)
    checks: tuple[Check, ...] = ()
    if settings.checks and comparisons and len(q.rows):
        checks = tuple(_checks(q, pool, large, cost, comparisons, search, settings))
    by_group = {
        name: measured(
            int(n), cost[m], budget, unknown=q.n_unknown(i), **_intervals(name, large, len(m), compared, settings)
        )
        for i, (name, n, m) in enumerate(zip(q.groups.names, q.groups.sizes, q.members(), strict=True))
    }
    own, explanation = _explanation(case, pool, final, provenance)
    rests = (
        f"{len(q.rows):,} affected inputs of {len(case.rows):,} rows, grouped by {q.groups.by}",
        f"{len(pool.directions)} candidate directions shared by all groups, of {pool.seen:,} examined; those found on "
        "one half of the inputs are evaluated on the other",
        f"{provenance.method} minimum scalars; cost by {case.cost.kind}, {case.cost.norm}; budget {budget:g}",
        f"{settings.permutations:,} relabellings, {settings.resamples:,} bootstrap samples, Holm's correction",
    )
    return Audit(
        overall=measured(
            len(case.rows),
            cost,
            budget,
            unknown=len(case.unknown),
            **_overall(cost, half, budget, settings, search.seed),
        ),
        by_group=by_group,
        comparisons=comparisons,
        exchange=exchanged(pool, choice, large, q.members(large), budget),
        checks=checks,
        verdict=conclude(comparisons, by_group, checks, settings, rests, notes),
        explanation=explanation,
        own=own,
        cost=cost,
        half=half,
        groups=q.groups,
        control=q.control,
        spreads=compared.spreads,
        settings=settings,
        seed=search.seed,
    )


def _stopped(q: Question, monitor: Monitor) -> list[str]:
    """Notes if the time was over, or the work was interrupted."""
    if len(q.case.unknown):
        return [unknown_note(monitor, len(q.rows), len(q.case.unknown))]
    return [f"stopped early ({monitor.stopped}): fewer directions were examined"] if monitor.stopped else []


def _large(q: Question, settings: AuditSettings) -> list[str]:
    """The groups with enough affected inputs."""
    sizes = {name: len(m) for name, m in zip(q.groups.names, q.members(), strict=True)}
    return [name for name in q.groups.names if sizes[name] >= settings.smallest]


def _directions(
    q: Question, search: CandidateSearch, settings: AuditSettings
) -> tuple[Question, list[str], Pool, Choice, dict[str, IntArray]]:
    """Halves, candidates, and choices on halves and on all inputs; every counterfactual is predicted again.

    Inputs that were not reached in time are unknown in all that is returned.
    """
    n, monitor = len(q.rows), search.monitor
    large = _large(q, settings)
    none = np.zeros(0, dtype=np.int64)
    if not n:
        empty = Scaled(np.empty((0, 0)), np.empty((0, 0)))
        pool = Pool(np.empty((0, q.case.space.width)), empty, empty, np.empty((2, 0), dtype=np.int64), none, 0)
        return q, large, pool, Choice((), (none, none)), {EVERYBODY: none}
    cells = (q.groups.labels * (q.levels().max() + 1) + q.levels())[q.rows]
    half = halves(q.case.inputs.values, cells, search.seed) if n >= FEWEST else np.zeros(n, dtype=np.int64)
    reach = artefact.FACTOR if settings.checks and q.case.model.exact else 1.0
    pool, reached = gather(q.case, q.members(large), half, search, reach)
    q, large = _reached(q, large, reached, search, settings)
    case, members = q.case, q.members(large)
    choice = choose(pool, members, search, case.budget)
    sets = {EVERYBODY: np.arange(len(q.rows)), **dict(zip(large, members, strict=True))}
    final = {name: pool.best(m, None, search, case.budget) for name, m in sets.items()}
    scaled = Scaled(pool.scaled.scalar.copy(), pool.scaled.cost.copy())
    used = np.unique(np.concatenate([*final.values()]))

    def work(part: IntArray) -> None:
        some = case.part(part)
        found = Scaled(scaled.scalar[:, part], scaled.cost[:, part])
        if not some.model.exact:  # only what is reported is searched with all points
            again = scale(some, pool.directions[used])
            found.scalar[used], found.cost[used] = again.scalar, again.cost
        found = confirmed(some, pool.directions, found)
        scaled.scalar[:, part], scaled.cost[:, part] = found.scalar, found.cost

    monitor.begin(CONFIRMED)
    reached = in_reach(len(q.rows), work, monitor, first=first_batch(case, monitor), most=case.inputs.at_once)
    q, large = _reached(q, large, reached, search, settings)
    kept = [i for i, name in enumerate(name for name in sets if name != EVERYBODY) if name in large]
    choice = replace(choice, by_group=tuple(choice.by_group[i] for i in kept))
    final = {name: picked for name, picked in final.items() if name == EVERYBODY or name in large}
    return q, large, replace(pool, scaled=scaled).only(reached), choice, final


def _reached(
    q: Question, large: list[str], reached: IntArray, search: CandidateSearch, settings: AuditSettings
) -> tuple[Question, list[str]]:
    """The question and the large groups, if only some affected inputs were reached."""
    n = len(q.rows)
    if len(reached) == n:
        return q, large
    if len(reached) < FEWEST:
        raise TimeLimitError(
            f"time_limit of {search.monitor.time_limit:g} s was over when {len(reached):,} of {n:,} affected inputs "
            "were reached, too few for an audit; allow more time, or give fewer rows"
        )
    q = replace(q, case=q.case.only(reached))
    return q, _large(q, settings)


def _compared(
    q: Question, large: list[str], cost: FloatArray, half: IntArray, settings: AuditSettings, seed: int
) -> Compared:
    sample = st.Sample.of(cost, _labels(q, large)[q.rows], q.levels()[q.rows], half, q.case.budget, len(large))
    if not large:
        return Compared({m: () for m in st.MEASURES}, (), {})
    return compare(sample, large, _reference(q, large), settings, seed)


def _overall(
    cost: FloatArray, half: IntArray, budget: float, settings: AuditSettings, seed: int
) -> dict[str, Interval]:
    """Confidence intervals of the overall measures."""
    if not len(cost):
        return {}
    none = np.zeros(len(cost), dtype=np.int64)
    drawn = st.resampled(
        st.Sample.of(cost, none, none, half, budget, 1), settings.resamples, np.random.default_rng([seed, 4])
    )
    return {f"{m}_interval": st.interval(st.moments(drawn[0, 0], m).mean, settings.level) for m in st.MEASURES}


def _reference(q: Question, large: list[str]) -> int | None:
    return large.index(q.reference) if q.reference in large else None


def _with_rejections(
    q: Question, large: list[str], comparisons: tuple[Comparison, ...], settings: AuditSettings
) -> tuple[Comparison, ...]:
    """The comparisons, with the gaps in rejection rates added."""
    if not comparisons:
        return ()
    pairs = pairs_of(len(large), _reference(q, large))
    gaps = rejections(~q.case.favourable, _labels(q, large), q.levels(), pairs, settings.level)
    return tuple(replace(c, gaps={"rejection_rate": gap, **c.gaps}) for c, gap in zip(comparisons, gaps, strict=True))


def _intervals(name: str, large: list[str], n: int, compared: Compared, settings: AuditSettings) -> dict[str, object]:
    """Confidence intervals of a group's measures, or why it has none."""
    if name in large:
        i = large.index(name)
        return {f"{m}_interval": compared.intervals[m][i] for m in st.MEASURES}
    why = "nobody is affected" if not n else f"{n} affected: fewer than {settings.smallest}, too few to compare"
    return {"judged": False, "note": why}


def _notes(q: Question, large: list[str], half: IntArray, settings: AuditSettings) -> list[str]:
    notes = []
    if q.case.favourable.all():
        notes.append("nobody is affected")
    elif not half.any():
        notes.append(
            f"fewer than {FEWEST} inputs are affected: directions are evaluated on the inputs that they were chosen on"
        )
    if q.groups.n_outside:
        notes.append(f"{q.groups.n_outside:,} rows are in no group: they only count in the overall measures")
    if q.reference is not None and q.reference not in large:
        notes.append(f"the reference {q.reference} is too small: groups are compared with everybody else instead")
    return notes


def _checks(
    q: Question,
    pool: Pool,
    large: list[str],
    cost: FloatArray,
    comparisons: tuple[Comparison, ...],
    search: CandidateSearch,
    settings: AuditSettings,
) -> list[Check]:
    """Repeat the headline comparison under other conditions."""
    main = headline(comparisons, settings.level)
    assert main is not None
    members = q.members(large)

    def costs_under(other: Pool) -> FloatArray:
        return cross_fitted(other, other.by_half, np.arange(len(q.rows)))

    def more() -> Iterator[Version | Check]:
        again, reached = gather(q.case, (), pool.half, replace(search, seed=search.seed + 1), shares=(0.92, 1.0))
        if len(reached) < len(pool.half):
            raise TimeUp
        both = _merged(pool, again)
        remark = f"{len(both.directions)} candidate directions instead of {len(pool.directions)}"
        yield Version("more candidates", costs_under(both), remark)

    def least() -> Iterator[Version | Check]:
        yield artefact.least(q.case)

    found: list[Version | Check] = [Version("as it is", cost, "")]
    for name, tried in (
        ("more candidates", more),
        ("other costs", lambda: artefact.other_costs(q.case, pool, costs_under)),
        (artefact.BOUND, least),
    ):
        try:
            search.monitor.begin()
            search.monitor.found()
            found += tried()
        except (TimeUp, TimeLimitError) as why:
            search.monitor.interrupt(TimeUp(str(why)))
            found.append(artefact.untried(name, search.monitor))
    unknown = [one for one in found if isinstance(one, Check)]
    versions = [one for one in found if isinstance(one, Version)]
    label, level = _labels(q, large)[q.rows], q.levels()[q.rows]
    costs = np.array([v.cost for v in versions])
    kept = np.flatnonzero(label >= 0)
    # an order that does not depend on that of the rows
    order = kept[np.lexsort((*costs[:, kept], label[kept], pool.half[kept], level[kept]))]
    sample = st.Sample(cost[order], label[order], level[order], pool.half[order], q.case.budget, len(large))
    gaps, p = compare_scores(costs[:, order], sample, _reference(q, large), settings, search.seed)
    scores: list[dict[str, float]] = [
        {name: score(v.cost[m], q.case.budget) for name, m in zip(large, members, strict=True)} for v in versions
    ]
    where = comparisons.index(main)
    return [*artefact.checked(versions, gaps[:, where], p[:, where], scores, settings.level), *unknown]


def _labels(q: Question, large: list[str]) -> IntArray:
    """Group of each row among the large ones; -1 for others."""
    index = {q.groups.index(name): i for i, name in enumerate(large)}
    return np.array([index.get(g, -1) for g in q.groups.labels.tolist()], dtype=np.int64)


def _merged(one: Pool, other: Pool) -> Pool:
    def stacked(a: Scaled, b: Scaled) -> Scaled:
        return Scaled(np.vstack([a.scalar, b.scalar]), np.vstack([a.cost, b.cost]))

    return Pool(
        np.vstack([one.directions, other.directions]),
        stacked(one.scaled, other.scaled),
        stacked(one.far, other.far),
        np.hstack([one.from_half, other.from_half]),
        one.half,
        one.seen + other.seen,
    )


def _explanation(
    case: Case, pool: Pool, final: dict[str, IntArray], provenance: Provenance
) -> tuple[dict[str, tuple[int, ...]], Explanation]:
    """All directions that a group, or everybody, chose on all inputs, as one explanation; and who chose which."""
    kept = np.unique(np.concatenate(list(final.values())))
    chosen_by = {name: tuple(np.searchsorted(kept, picked).tolist()) for name, picked in final.items()}
    scaled = Scaled(pool.scaled.scalar[kept], pool.scaled.cost[kept])
    return chosen_by, explanation_of(case, pool.directions[kept], scaled, replace(provenance, candidates=pool.seen))
