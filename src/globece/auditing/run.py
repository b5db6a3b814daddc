"""Run an audit: folds, one pool of candidates, choices, measures, comparisons, checks, verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from globece.auditing import statistics as st
from globece.auditing.artefact import Check
from globece.auditing.basis import Basis, constraints_of, cost_in_words, versions_of
from globece.auditing.bygroup import ByGroup
from globece.auditing.checking import Found, checks
from globece.auditing.criteria import by_level, criteria, not_compared
from globece.auditing.curves import curves_of
from globece.auditing.exchange import EVERYBODY, Choice, choose, exchanged
from globece.auditing.flipping import as_others
from globece.auditing.groups import Groups
from globece.auditing.measures import (
    Compared,
    Measures,
    compare,
    intervals_of,
    measured,
    pairs_of,
    rejections,
)
from globece.auditing.pool import CONFIRMED, FEWEST, CandidateSearch, Pool, first_batch, folds, gather, n_folds
from globece.auditing.question import Question
from globece.auditing.result import Audit, part_of
from globece.auditing.settings import AuditSettings
from globece.auditing.verdict import Evidence, conclude, headline
from globece.case.affected import Affected
from globece.case.fingerprints import fingerprints
from globece.case.recourse import score
from globece.case.scaling import Scaled, in_reach, scale
from globece.case.verification import confirmed
from globece.errors import TimeLimitError
from globece.explanation import Explanation, MeanTranslation, Provenance, explanation_of, unknown_note
from globece.progress import Monitor
from globece.space import BoolArray, FloatArray, IntArray

REACHED = 8  # fewest affected inputs that must be reached in time


@dataclass(frozen=True, slots=True, eq=False)
class Travelled:
    """What was found for the affected inputs.

    Attributes
    ----------
    question
        With only the inputs that were reached in time.
    large
        Groups that have candidates of their own.
    pool, cost
        All candidates, and what each input pays under those found without it.
    choice, final
        Directions chosen without each fold, and on all inputs.
    """

    question: Question
    large: list[str]
    pool: Pool
    cost: FloatArray
    choice: Choice
    final: Mapping[str, IntArray]


def run_audit(question: Question, search: CandidateSearch, settings: AuditSettings, provenance: Provenance) -> Audit:
    """Answer the question; see :func:`globece.audit`."""
    found = _travelled(question, search, settings)
    q, pool, cost, budget = found.question, found.pool, found.cost, found.question.case.budget
    least = settings.least(float(np.isinf(cost).mean()) if len(cost) else 0.0)
    sizes = dict(zip(q.groups.names, map(len, q.members()), strict=True))
    names = [name for name in found.large if sizes[name] >= least]
    provenance = replace(provenance, notes=(*provenance.notes, *_stopped(q, search.monitor)))
    margin = settings.margin(score(q.sample(names, cost).cost, budget)) if names else np.nan
    compared = _compared(q, names, cost, settings, margin)
    comparisons = compared.comparisons
    main = headline(comparisons)
    checked: tuple[Check, ...] = ()
    if settings.checks and main is not None and len(q.rows):
        checked = checks(Found(q, names, pool, cost, comparisons, comparisons.index(main)), search, settings)
    groups = _by_group(q, names, cost, compared, settings, least)
    basis = _basis(q, pool, provenance)
    own, explanation = _explanation(q, pool, found.final, provenance)
    more = (*criteria(q, names, cost, explanation, settings), *not_compared(q, names, settings))
    evidence = Evidence(
        comparisons=comparisons,
        by_group=groups,
        checks=checked,
        settings=settings,
        basis=basis,
        remarks=tuple(_remarks(q, names, pool, provenance)),
        hints=tuple(_hints(q)),
        example=_example(q, explanation),
        criteria=more,
    )
    overall = _overall(q, cost, settings)
    return Audit(
        overall=overall,
        by_group=ByGroup(groups, overall, more, explanation.space.table),
        comparisons=comparisons,
        criteria=more,
        by_level=by_level(q, names, cost, settings),
        as_other=as_others(q, names, explanation, settings),
        exchange=exchanged(pool, _chosen_by(found, names), names, q.members(names), budget),
        checks=checked,
        verdict=conclude(evidence),
        explained=explanation,
        own={name: picked for name, picked in own.items() if name == EVERYBODY or name in names},
        curves=curves_of(cost, {**dict(zip(names, q.members(names), strict=True)), EVERYBODY: None}, budget, settings),
        translations=_translations(q, names, own, explanation),
        cost=cost,
        fold=pool.fold,
        groups=q.groups,
        control=q.control,
        clusters=q.cluster,
        spreads=compared.spreads,
        settings=settings,
        basis=basis,
        seed=search.seed,
    )


def _stopped(q: Question, monitor: Monitor) -> list[str]:
    """Notes if the time was over, or the work was interrupted."""
    if len(q.case.unknown):
        return [unknown_note(monitor, len(q.rows), len(q.case.unknown))]
    return [f"stopped early ({monitor.stopped}): fewer directions were examined"] if monitor.stopped else []


def _large(q: Question, settings: AuditSettings) -> list[str]:
    """The groups with enough affected inputs, as far as can be told before costs are known."""
    sizes = dict(zip(q.groups.names, map(len, q.members()), strict=True))
    return [name for name in q.groups.names if sizes[name] >= settings.least()]


# -- who pays what -----------------------------------------------------------------------------------------------------


def _travelled(q: Question, search: CandidateSearch, settings: AuditSettings) -> Travelled:
    """Folds, candidates and choices; every counterfactual that counts is predicted again.

    Inputs that were not reached in time are unknown in all that is returned.
    """
    n, monitor = len(q.rows), search.monitor
    none = np.zeros(0, dtype=np.int64)
    if not n:
        empty = Scaled(np.empty((0, 0)), np.empty((0, 0)))
        split = np.empty((1, 0), dtype=bool)
        nobody = Pool(np.empty((0, q.case.space.width)), empty, empty, split, none, 0, none, none.astype(bool), none)
        return Travelled(q, _large(q, settings), nobody, np.zeros(0), Choice((), (none,)), {EVERYBODY: none})
    fold = _folds(q, search.seed)
    large = _large(q, settings)
    pool, reached = gather(q.case, q.members(large), fold, search)
    q, large = _reached(q, large, reached, search, settings)
    members = q.members(large)
    choice = choose(pool, members, search, q.case.budget)
    sets = {EVERYBODY: np.arange(len(q.rows)), **dict(zip(large, members, strict=True))}
    final = {name: pool.best(pool.some(m), None, search, q.case.budget) for name, m in sets.items()}
    used = np.unique(np.concatenate([*final.values()]))
    scaled = Scaled(pool.scaled.scalar.copy(), pool.scaled.cost.copy())
    cost = np.empty(len(q.rows))
    case, allowed = q.case, _allowed(pool)

    def work(part: IntArray) -> None:
        some = case.part(part)
        mine = Scaled(scaled.scalar[:, part], scaled.cost[:, part])
        # only what is reported is searched with all points, and followed on everybody
        if not (some.model.exact and (pool.whole[part].all() or np.isin(used, pool.ahead).all())):
            again = scale(some, pool.directions[used])
            mine.scalar[used], mine.cost[used] = again.scalar, again.cost
        needed = np.zeros(mine.cost.shape, dtype=bool)
        needed[used] = True
        barred = allowed[:, pool.fold[part]]
        least = (mine.cost + barred).min(axis=0)
        mine, cost[part] = _confirmed(some, pool.directions, mine, needed, barred)
        lost = np.flatnonzero((cost[part] > least) & ~pool.whole[part])
        if len(lost):  # the least was not confirmed, and those that cost more were not followed
            again = scale(case.part(part[lost]), pool.directions)
            again, cost[part[lost]] = _confirmed(
                case.part(part[lost]), pool.directions, again, needed[:, lost], barred[:, lost]
            )
            mine.scalar[:, lost], mine.cost[:, lost] = again.scalar, again.cost
        scaled.scalar[:, part], scaled.cost[:, part] = mine.scalar, mine.cost

    monitor.begin(CONFIRMED)
    reached = in_reach(len(q.rows), work, monitor, first=first_batch(case, monitor), most=case.inputs.at_once)
    q, kept = _reached(q, large, reached, search, settings)
    choice = replace(choice, by_group=tuple(choice.by_group[large.index(name)] for name in kept))
    final = {name: picked for name, picked in final.items() if name == EVERYBODY or name in kept}
    return Travelled(q, kept, replace(pool, scaled=scaled).only(reached), cost[reached], choice, final)


def _folds(q: Question, seed: int) -> IntArray:
    n = len(q.rows) if q.cluster is None else len(np.unique(q.cluster[q.rows]))
    if n < FEWEST:
        return np.zeros(len(q.rows), dtype=np.int64)
    levels = q.levels()
    cells = (q.groups.labels * (levels.max() + 1) + levels)[q.rows]
    cluster = None if q.cluster is None else q.cluster[q.rows]
    return folds(q.case.inputs.values, cells, seed, n_folds(n), cluster)


def _allowed(pool: Pool) -> FloatArray:
    """0 for the candidates that were found without a fold, infinity for the others: ``(m, folds)``."""
    out = np.full((len(pool.directions), len(pool.from_fold)), np.inf)
    for f in range(len(pool.from_fold)):
        out[pool.without(f), f] = 0.0
    return out


def _confirmed(
    some: Affected, directions: FloatArray, scaled: Scaled, needed: BoolArray, barred: FloatArray
) -> tuple[Scaled, FloatArray]:
    """Confirm what is needed, and what each input pays under the candidates that are not barred for it."""
    each = np.arange(scaled.cost.shape[1])
    done = np.zeros_like(needed)
    while True:
        open_ = scaled.cost + barred
        least = open_.argmin(axis=0)
        needed[least, each] |= np.isfinite(open_[least, each])
        todo = needed & ~done
        if not todo.any():
            return scaled, open_[least, each]
        rows = np.flatnonzero(todo.any(axis=1))
        asked = Scaled(*(np.where(todo[rows], part[rows], np.inf) for part in (scaled.scalar, scaled.cost)))
        again = confirmed(some, directions[rows], asked)
        for before, after in ((scaled.scalar, again.scalar), (scaled.cost, again.cost)):
            before[rows] = np.where(todo[rows], after, before[rows])
        done |= todo


def _reached(
    q: Question, large: list[str], reached: IntArray, search: CandidateSearch, settings: AuditSettings
) -> tuple[Question, list[str]]:
    """The question and the large groups, if only some affected inputs were reached."""
    n = len(q.rows)
    if len(reached) == n:
        return q, large
    if len(reached) < REACHED:
        raise TimeLimitError(
            f"time_limit of {search.monitor.time_limit:g} s was over when {len(reached):,} of {n:,} affected inputs "
            "were reached, too few for an audit; allow more time, or give fewer rows"
        )
    q = replace(q, case=q.case.only(reached))
    return q, _large(q, settings)


def _chosen_by(found: Travelled, names: Sequence[str]) -> Choice:
    return replace(found.choice, by_group=tuple(found.choice.by_group[found.large.index(n)] for n in names))


# -- measures ----------------------------------------------------------------------------------------------------------


def _compared(q: Question, names: list[str], cost: FloatArray, settings: AuditSettings, margin: float) -> Compared:
    if not names:
        return Compared((), (), {})
    reference = q.reference_among(names)
    compared = compare(q.sample(names, cost), names, reference, settings, margin)
    if not compared.comparisons:
        return compared
    label = q.labels(names), q.levels(), q.cluster
    gaps = rejections(~q.case.favourable, label, pairs_of(len(names), reference), settings)
    both = zip(compared.comparisons, gaps, strict=True)
    comparisons = tuple(replace(c, gaps={"rejection_rate": gap, **c.gaps}) for c, gap in both)
    return replace(compared, comparisons=comparisons)


def _by_group(
    q: Question, names: list[str], cost: FloatArray, compared: Compared, settings: AuditSettings, least: int
) -> dict[str, Measures]:
    found = {}
    for i, (name, n, members) in enumerate(zip(q.groups.names, q.groups.sizes, q.members(), strict=True)):
        more: dict[str, object] = {"rejection_rate_interval": _rejected(q, q.groups.labels == i, settings)}
        if name in names:
            more |= compared.intervals[names.index(name)]
        else:
            more |= {"judged": False, "note": _why_not(len(members), q.n_unknown(i), least, settings)}
        found[name] = measured(int(n), cost[members], q.case.budget, unknown=q.n_unknown(i), **more)
    return found


def _why_not(n: int, unknown: int, least: int, settings: AuditSettings) -> str:
    if not n:
        return "nobody is affected" if not unknown else "nobody affected was reached in time"
    why = f"{n} affected: fewer than {least}, too few to compare"
    return f"{why} where some have no recourse" if least > settings.least() else why


def _rejected(q: Question, mask: BoolArray, settings: AuditSettings) -> st.Ends:
    mine = np.flatnonzero(mask)
    if not len(mine):
        return np.nan, np.nan
    hit = ~q.case.favourable[mine]  # in an order that does not depend on that of the rows
    mine = mine[np.argsort(hit, kind="stable") if q.cluster is None else np.lexsort((q.cluster[mine], hit))]
    cluster = None if q.cluster is None else q.cluster[mine]
    side = st.Side.of(np.ones(len(mine)), np.zeros(len(mine), dtype=np.int64), cluster)
    return st.share_of(side, ~q.case.favourable[mine]).interval(settings.level)


def _overall(q: Question, cost: FloatArray, settings: AuditSettings) -> Measures:
    everybody = replace(q, groups=Groups(("all",), np.zeros(len(q.case.rows), dtype=np.int64), ""), control=None)
    sample = everybody.sample(["all"], cost)
    more = intervals_of(sample, sample.label == 0, settings.level)
    more["rejection_rate_interval"] = _rejected(q, np.ones(len(q.case.rows), dtype=bool), settings)
    return measured(len(q.case.rows), cost, q.case.budget, unknown=len(q.case.unknown), **more)


# -- what is said ------------------------------------------------------------------------------------------------------


def _remarks(q: Question, names: list[str], pool: Pool, provenance: Provenance) -> list[str]:
    notes = [*q.remarks, *provenance.notes]
    if not q.case.favourable.all() and not pool.is_split:
        notes.append(
            f"fewer than {FEWEST} people are affected: directions are evaluated on the inputs that they were chosen on"
        )
    if q.groups.n_outside:
        notes.append(f"{q.groups.n_outside:,} rows are in no group: they only count in the overall measures")
    if q.reference is not None and q.reference not in names:
        notes.append(f"the reference {q.reference} is too small: groups are compared with everybody else instead")
    if q.cluster is not None:
        notes += _cluster_notes(q)
    return notes


def _hints(q: Question) -> list[str]:
    """What else the text says."""
    notes = [q.guessed] if q.guessed else []
    if q.case.favourable.all():
        notes.append("nobody is affected")
    full = [
        name
        for i, name in enumerate(q.groups.names)
        if (q.groups.labels == i).any() and not q.case.favourable[q.groups.labels == i].any()
    ]
    if full:
        notes.append(f"everybody is affected in {', '.join(full)}")
    return notes


def _cluster_notes(q: Question) -> list[str]:
    assert q.cluster is not None
    pairs = np.unique(np.column_stack([q.cluster, q.groups.labels]), axis=0)
    crossing = int((np.bincount(pairs[:, 0]) > 1).sum())
    if not crossing:
        return []
    return [
        f"{crossing:,} of {len(np.unique(q.cluster)):,} clusters have rows in several groups: these are taken for "
        "unrelated, which makes gaps less certain, not more"
    ]


def _basis(q: Question, pool: Pool, provenance: Provenance) -> Basis:
    constraints, free = constraints_of(q.case.space)
    data, decisions = fingerprints(q.case)
    return Basis(
        favourable=provenance.favourable,
        guessed=q.guessed is not None,
        model=provenance.model,
        method=provenance.method,
        n_rows=len(q.case.rows),
        affected=len(q.rows) + len(q.case.unknown),
        training=q.training,
        by=q.groups.by,
        control=None if q.control is None else q.control.by,
        clusters=None if q.cluster is None else len(np.unique(q.cluster)),
        constraints=constraints,
        free=free,
        cost=cost_in_words(q.case.cost),
        budget=q.case.budget,
        folds=len(pool.from_fold),
        candidates=len(pool.directions),
        seed=q.seed,
        versions=versions_of(q.case.model),
        data=data,
        model_data=decisions,
    )


def _example(q: Question, explanation: Explanation) -> tuple[str, float]:
    """What a cost of 1 is: of the feature that recourse changes most, or else in general."""
    cost, space = q.case.cost, q.case.space
    if explanation.is_empty or not explanation.n_directions:
        return "", np.nan
    moved = explanation.mean_translation()
    most = [i for i in np.argsort(-moved.cost, kind="stable") if moved.cost[i] > 0]
    for i in most:
        name = moved.features[i]
        if name in cost.scales and cost.scales[name].is_linear:
            rate = cost.weight(space[name]) * cost.scales[name].slopes[0]
            how = "raising" if moved.change[i] > 0 else "lowering"
            return f"{how} {_braced(name)} by {{:.3g}}", float(1.0 / rate)
    for i in most:
        f = space[moved.features[i]]
        rate = float(cost.weight(f))
        if f.is_block:
            return f"changing {_braced(f.name)} {{:.2g}} times", 1.0 / rate
        if cost.kind == "deciles" and f.kind == "continuous":
            return f"passing {{:.0f}} % of the people in {_braced(f.name)}", 10.0 / rate
    return "", np.nan


def _braced(name: str) -> str:
    """A name as a part of a template."""
    return name.replace("{", "{{").replace("}", "}}")


def _translations(
    q: Question, names: Sequence[str], own: Mapping[str, tuple[int, ...]], explanation: Explanation
) -> dict[str, MeanTranslation]:
    """What recourse changes for each group along its own directions."""
    sets = {EVERYBODY: np.arange(len(q.rows)), **dict(zip(names, q.members(names), strict=True))}
    return {
        name: part_of(explanation, np.array(own[name], dtype=np.int64), members).mean_translation()
        for name, members in sets.items()
    }


def _explanation(
    q: Question, pool: Pool, final: Mapping[str, IntArray], provenance: Provenance
) -> tuple[dict[str, tuple[int, ...]], Explanation]:
    """All directions that a group, or everybody, chose on all inputs, as one explanation; and who chose which."""
    kept = np.unique(np.concatenate(list(final.values())))
    chosen_by = {name: tuple(np.searchsorted(kept, picked).tolist()) for name, picked in final.items()}
    scaled = Scaled(pool.scaled.scalar[kept], pool.scaled.cost[kept])
    return chosen_by, explanation_of(q.case, pool.directions[kept], scaled, replace(provenance, candidates=pool.seen))
