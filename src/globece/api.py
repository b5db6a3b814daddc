"""The front door: a frame and a model in, an explanation or an audit out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from globece.auditing import (
    Audit,
    AuditSettings,
    Beneficiaries,
    CandidateSearch,
    Groups,
    Question,
    beneficiaries,
    check_training,
    find_clusters,
    find_groups,
    guessed_outcome,
    proxies,
    run_audit,
    unconstrained,
    unconstrained_warning,
)
from globece.bounds import quick_mean
from globece.case.affected import Case
from globece.case.fingerprints import fingerprints
from globece.case.ordering import content_order
from globece.case.posing import Given, Seed, check_budget, checked, cost_on, generator_of, pose
from globece.case.verification import trusting
from globece.compact import Rows
from globece.costs import CostModel
from globece.directions.protocol import DirectionGenerator
from globece.errors import GlobeCEWarning, InvalidDataError, InvalidParameterError, check_choice, describe, require
from globece.explanation import Explanation, Provenance, scaled_along, unknown_note
from globece.models.base import Model
from globece.models.devices import counting
from globece.models.robust import Robust
from globece.parallel import compile_timer
from globece.progress import INTERRUPTIONS, SEARCH_SHARE, Monitor, Progress, monitoring, watching
from globece.search import Effort, Search, check_n_directions, find_directions, search_of
from globece.settings import Settings
from globece.space import FeatureSpace
from globece.tables import Table
from globece.version import __version__

FOR_A_GAP = 512  # inputs on which a score is compared with a lower bound


def explain(
    model: Any,
    X: Any,
    *,
    favourable: Any = None,
    threshold: float | None = None,
    space: FeatureSpace | None = None,
    cost: CostModel | None = None,
    n_directions: int | Literal["auto"] = 1,
    budget: float = 10.0,
    search: Search | None = None,
    generator: DirectionGenerator | None = None,
    effort: Effort = "default",
    rng: Seed = None,
    progress: bool | Callable[[Progress], None] = False,
    time_limit: float | None = None,
    settings: Settings | None = None,
    robust: Robust | None = None,
) -> Explanation:
    """Explain a whole model by a few directions along which everybody it turned down can travel.

    Parameters
    ----------
    model
        A fitted estimator, or a function of rows like ``X`` that returns outcomes.
    X
        The rows: a pandas, Polars or PyArrow frame, or a matrix. It is never changed. For a path to Parquet, or a
        PyArrow dataset, the directions are searched on a sample and the result is a
        :class:`globece.distributed.Portfolio`; see :func:`globece.distributed.explain`, which has more parameters.
    favourable
        The outcome people want; by default the positive class. ``provenance.favourable`` says which it was.
    threshold
        A probability for classifiers, a value for regressors and scoring functions.
    space
        What a row is and what may move; inferred from ``X`` when absent.
    cost
        What a change costs; the paper's bins when absent.
    n_directions
        How many directions to find, or ``"auto"``: as many as still lower the score noticeably.
    budget
        The most that recourse may cost.
    search
        How directions are found: a :class:`globece.Climb` (the default), a :class:`globece.Race`, or one of your own.
    generator
        What proposes directions: short for ``search=Race(generator)``.
    effort
        How long to search: ``"quick"``, ``"default"`` or ``"thorough"``; short for ``search=Climb(effort=...)``.
    rng
        A seed or a generator. Same seed, same result.
    progress
        ``True`` for a bar, or a function to report to.
    time_limit
        Seconds in all; about the first 60 % are for the search. When they are over, and on Ctrl-C, the best so far
        is scaled, checked and returned, and ``provenance.complete`` is ``False``. Affected inputs that were not reached
        by then are left out and counted in ``n_unknown``; the others are a random choice. The limit holds to within
        one call of the model (a batch of about a quarter of a second, or three times what a call takes however few
        rows it gets) and two seconds; compiling kernels, on their first use on a machine, is not counted.
    settings
        How to ask the model; see :class:`globece.Settings`.
    robust
        What recourse must survive in addition to the model's own decision: a margin, other models, noise; see
        :class:`globece.Robust`. Who is affected stays the model's own decision. Recourse that
        keeps a margin costs more, also on unseen rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 3.0], [2.0, 9.0], [3.0, 5.0], [8.0, 2.0], [9.0, 7.0]])
    >>> space = FeatureSpace.from_matrix(X, columns=["income", "debt"], immutable=["debt"])
    >>> ex = explain(lambda X: (X[:, 0] >= 7).astype(int), X, space=space, rng=0)
    >>> ex.n_affected, ex.coverage, round(ex.average_cost, 3)
    (3, 1.0, 6.25)
    """
    if _is_stored(X):
        if robust is not None:
            raise InvalidParameterError("robust is not available for rows on disk; explain a sample of them instead")
        distributed: Any = require("globece.distributed", extra="distributed", caller="explain() of rows on disk")
        looking = search if generator is None else search_of(search, generator, effort)
        found: Explanation = distributed.explain(
            model, distributed.sources.dataset(X, "X"), favourable=favourable, threshold=threshold, space=space,
            cost=cost, n_directions=n_directions, budget=budget, search=looking,
            effort=effort if generator is None else "default", rng=rng, progress=progress, time_limit=time_limit,
            settings=settings,
        )  # fmt: skip
        return found
    settings = checked("settings", settings, Settings, Settings)
    looking = search_of(search, generator, effort)
    wanted = check_n_directions(n_directions, looking)
    limit = check_budget(budget)
    given = Given.of(model, X, space)
    cost = cost_on(cost, given.space)
    random = generator_of(rng)
    asked: dict[str, Any] = {"favourable": favourable, "threshold": threshold, "settings": settings, "robust": robust}
    with monitoring(progress, time_limit) as monitor, compile_timer() as uncounted, watching(monitor, uncounted):
        case = pose(model, given, cost=cost, budget=limit, **asked)
        data, decisions = fingerprints(case)  # within the time limit, and before there is anything to lose
        again = deepcopy(random)  # the same draws, should the work be done again

        def work(posed: Case) -> Explanation:
            draws = random if posed is case else again
            return _explained(posed, given, looking, wanted, draws, monitor)

        with counting() as followed:
            ex = trusting(case, work)
    seed, notes = int(rng) if isinstance(rng, (int, np.integer)) else None, (*ex.provenance.notes, *followed.notes)
    return replace(ex, provenance=replace(ex.provenance, seed=seed, data=data, decisions=decisions, notes=notes))


def audit(
    model: Any,
    X: Any,
    *,
    by: Any,
    control: Any = None,
    reference: str | None = None,
    cluster: Any = None,
    training_rows: Literal["all", "some", "none"] | None = None,
    favourable: Any = None,
    threshold: float | None = None,
    space: FeatureSpace | None = None,
    cost: CostModel | None = None,
    n_directions: int | Literal["auto"] = 3,
    budget: float = 10.0,
    search: Search | None = None,
    generator: DirectionGenerator | None = None,
    effort: Effort = "default",
    rng: Seed = None,
    progress: bool | Callable[[Progress], None] = False,
    time_limit: float | None = None,
    settings: Settings | None = None,
    robust: Robust | None = None,
    audit_settings: AuditSettings | None = None,
) -> Audit:
    """Find out whether one group must travel further than another: recourse bias, with intervals and tests.

    All groups share one pool of candidate directions. Everybody is judged by those that were found without them, so
    that searching and choosing do not make a gap. What makes up the groups, or stands for them, is never moved.

    Parameters
    ----------
    model, X, favourable, threshold, space, cost, budget, search, generator, effort, rng, progress, time_limit
        As for :func:`globece.explain`.
    settings, robust
        As for :func:`globece.explain`.
    by
        Who is compared: a column, a list of columns (every combination is a group), bins of a column of numbers
        (``{"age": [25, 45]}``, or ``{"age": 4}`` for quarters), a mapping of names to masks that do not overlap, or
        an array with a label for each row. A column of ``X`` that the model does not take may be named too.
    control
        Groups are compared only within levels of this; in the same forms as ``by``.
    reference
        Name of the group that the others are compared with; two groups are compared with each other by default, and
        of more each with everybody else.
    cluster
        Whose row each row is, where people have several: a column, or an array with a label for each row. Rows of one
        person are kept together and count as related.
    training_rows
        Whether the model was trained on these rows: all, some or none of them. It is only reported.
    n_directions
        Directions that each group, and everybody, may choose; ``"auto"`` for as many as lower the score noticeably.
    audit_settings
        How the groups are judged: level, smallest group, relevant gap; see :class:`globece.AuditSettings`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.uniform(0, 10, 400), np.arange(400) % 2])
    >>> space = FeatureSpace.from_matrix(X, columns=["income", "foreign"])
    >>> au = audit(lambda X: X[:, 0] - X[:, 1] > 6, X, by="foreign", space=space, favourable=True, rng=0)
    >>> au.verdict.conclusion, au.verdict.against
    ('gap, relevance open', 'foreign = 1')
    """
    settings = checked("settings", settings, Settings, Settings)
    audit_settings = checked("audit_settings", audit_settings, AuditSettings, AuditSettings)
    looking = search_of(search, generator, effort)
    wanted = check_n_directions(n_directions, looking)
    limit = check_budget(budget)
    given = Given.of(model, X, space)
    rows, table = given.rows, given.table
    groups = find_groups(by, table, rows, parameter="by", missing=audit_settings.missing)
    if not len(rows):
        raise InvalidDataError("the frame has no rows; an audit compares groups of them")
    if len(groups) < 2:
        raise InvalidParameterError(
            f"by makes one group of all {len(rows):,} rows ({groups.names[0]}); an audit compares two or more"
        )
    levels = None
    if control is not None:
        levels = find_groups(control, table, rows, parameter="control", missing=audit_settings.missing)
        if not any(len(np.unique(groups.labels[levels.labels == i])) > 1 for i in range(len(levels))):
            raise InvalidParameterError(
                f"control leaves nothing to compare: no two groups share a level of {levels.by}; take another"
            )
    if reference is not None:
        groups.index(reference, "reference")
    people = None if cluster is None else find_clusters(cluster, table, rows)
    training = check_training(training_rows)
    given = given.hold([*groups.features, *(levels.features if levels else ())])
    stand_in = proxies(given.rows, _parts(by, groups, table, rows))
    remarks = stand_in.notes(given.space)
    given = replace(given, rows=replace(given.rows, space=stand_in.hold(given.space)))
    if free := unconstrained(given.space):
        remarks.append(unconstrained_warning(free, given.space))
        warnings.warn(remarks[-1], GlobeCEWarning, stacklevel=2)
    cost = cost_on(cost, given.space)
    seed = int(generator_of(rng).integers(2**31))
    asked: dict[str, Any] = {"favourable": favourable, "threshold": threshold, "settings": settings, "robust": robust}
    with monitoring(progress, time_limit) as monitor, compile_timer() as uncounted, watching(monitor, uncounted):
        case = pose(model, given, cost=cost, budget=limit, **asked)
        guessed = None if isinstance(model, tuple) else guessed_outcome(case.model.decide, favourable)
        if guessed:
            warnings.warn(guessed, GlobeCEWarning, stacklevel=2)
        candidates = CandidateSearch(wanted, looking, seed, monitor)
        said: dict[str, Any] = {
            "guessed": guessed,
            "remarks": tuple(remarks),
            "training": training,
            "seed": int(rng) if isinstance(rng, (int, np.integer)) else None,
        }

        def work(case: Case) -> Audit:
            question = Question(case, groups, levels, reference, people, **said)
            return run_audit(question, candidates, audit_settings, _provenance(case.model, looking.described))

        with counting() as followed:
            found = trusting(case, work)
    counted = _counted(found.explained.provenance, case.model, complete=monitor.stopped is None)
    counted = replace(counted, notes=(*counted.notes, *followed.notes))
    return replace(found, explained=replace(found.explained, provenance=counted))


def _parts(by: Any, groups: Groups, table: Table, rows: Rows) -> list[Groups]:
    """The groups of each column, where there are several, or else the groups."""
    if not isinstance(by, (list, tuple)) or len(by) < 2:
        return [groups]
    return [find_groups(part, table, rows, parameter="by", missing="group") for part in by]


def who_benefits(
    model: Any,
    X: Any,
    action: Mapping[str, Any],
    *,
    mode: Literal["fixed", "scaled"] = "fixed",
    by: Any = None,
    favourable: Any = None,
    threshold: float | None = None,
    space: FeatureSpace | None = None,
    cost: CostModel | None = None,
    budget: float = 10.0,
    settings: Settings | None = None,
) -> Beneficiaries:
    """Ask the inverse question: of those turned down, whom does a given action help, and at what cost?

    Parameters
    ----------
    model, X, favourable, threshold, space, cost, budget, settings
        As for :func:`globece.explain`.
    action
        By feature: the category to move to, or a number to add; for an ordinal feature the number of places, or its
        lowest or highest value. What leaves a feature's range ends there.
    mode
        ``"fixed"``: everybody takes all of the action. ``"scaled"``: everybody goes as far along it as it takes, within
        the budget.
    by
        Groups to tell apart, as for :func:`globece.audit`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 3.0], [2.0, 9.0], [3.0, 5.0], [8.0, 2.0], [9.0, 7.0]])
    >>> space = FeatureSpace.from_matrix(X, columns=["income", "debt"])
    >>> def model(X):
    ...     return (X[:, 0] >= 7).astype(int)
    >>> who_benefits(model, X, {"income": +5}, space=space).rows
    array([1, 2])
    >>> who_benefits(model, X, {"income": +5}, space=space, mode="scaled").overall.flipped
    3
    """
    settings = checked("settings", settings, Settings, Settings)
    check_choice("mode", mode, ("fixed", "scaled"))
    if not isinstance(action, Mapping) or not action:
        raise InvalidParameterError(
            f"action must map features to a category or a number to add; got {describe(action)}"
        )
    limit = check_budget(budget)
    given = Given.of(model, X, space)
    groups = None
    if by is not None:
        groups = find_groups(by, given.table, given.rows, parameter="by", missing="group")
        given = given.hold(groups.features)
    case = pose(model, given, favourable=favourable, threshold=threshold, cost=cost, budget=limit, settings=settings)
    found = trusting(case, lambda c: beneficiaries(c, action, mode, groups, _provenance(c.model, "the action given")))
    counted = _counted(found.explanation.provenance, case.model)
    return replace(found, explanation=replace(found.explanation, provenance=counted))


def _is_stored(X: Any) -> bool:
    """Whether rows are given as a path, a PyArrow dataset or a Dask DataFrame."""
    return isinstance(X, (str, os.PathLike)) or hasattr(X, "get_fragments") or hasattr(X, "to_delayed")


def _explained(
    case: Case,
    given: Given,
    search: Search,
    wanted: int | Literal["auto"],
    rng: np.random.Generator,
    monitor: Monitor,
) -> Explanation:
    directions, candidates, notes, headroom = np.empty((0, case.space.width)), 0, ["nobody is affected"], None
    if not case.favourable.all():
        monitor.begin(SEARCH_SHARE)
        found = find_directions(search, case.searched(), wanted, rng, monitor)
        directions, candidates, notes = found.directions, found.candidates, list(found.notes)
        headroom = found.headroom
    provenance = _provenance(case.model, search.described)
    provenance = replace(provenance, candidates=candidates, complete=monitor.stopped is None)
    if case.model.conditions:
        notes.append(f"recourse survives {case.model.conditions}")
    before = _searched_rays(case.model)
    monitor.begin()
    ex = scaled_along(case, directions, provenance, monitor)
    if ex.n_unknown:
        notes = [note for note in notes if not note.startswith("stopped early")]
        notes.append(unknown_note(monitor, ex.n_affected, ex.n_unknown))
    if searched := _searched_rays(case.model) - before:
        notes.append(f"{searched:,} of {ex.scalars.size:,} minimum scalars are searched: the rest are exact")
    if not case.favourable.any() and not ex.n_covered:
        notes.append("the favourable outcome never occurred, neither in the rows given nor in any that was tried")
    if given.left_out:
        notes.append(f"columns that the model does not take were left out: {', '.join(given.left_out)}")
    counted = _counted(provenance, case.model, complete=monitor.stopped is None)
    if headroom is not None:
        headroom = replace(headroom, gap=_gap(case, ex))
    return replace(ex, provenance=replace(counted, notes=tuple(notes), headroom=headroom))


def _gap(case: Case, ex: Explanation) -> float | None:
    """The score divided by a lower bound, on some of the inputs, where the bound takes no time to speak of."""
    if case.model.half_spaces is None or ex.n_unknown or not ex.n_affected:
        return None
    some = np.sort(content_order(ex.encoded.values, 0)[:FOR_A_GAP])
    try:
        bound = quick_mean(case.part(some))
    except INTERRUPTIONS:  # the result is there; only this estimate is not
        return None
    now = float(np.minimum(ex.best_costs[some], ex.budget).mean())
    gap = now / bound if bound else np.inf
    return gap if 0.0 < gap < np.inf else None


def _provenance(model: Model, described: str) -> Provenance:
    return Provenance(
        version=__version__,
        model=model.name,
        method="exact" if model.exact else "searched",
        favourable=model.decide.described,
        generator=described,
        candidates=0,
        model_calls=0,
        model_rows=0,
        clearance=model.rounding_unit,
    )


def _counted(provenance: Provenance, model: Model, *, complete: bool = True) -> Provenance:
    """The same with how often the model was asked by now."""
    calls, asked = sum(t.calls for t in model.tallies), sum(t.rows for t in model.tallies)
    return replace(provenance, model_calls=calls, model_rows=asked, complete=complete)


def _searched_rays(model: Model) -> int:
    """Rays that were searched because the compiled model could not decide them."""
    return sum(t.searched_rays for t in model.tallies)
