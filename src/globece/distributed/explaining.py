"""Explain a table that is larger than memory: directions from a sample, then one pass over all rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from globece import api
from globece.case.posing import Seed, check_budget, check_space, generator_of
from globece.costs import CostModel
from globece.distributed.applying import opened, scaled
from globece.distributed.drawing import Z95, Drawn, Plan, draw
from globece.distributed.engines import Engine, engine_of
from globece.distributed.fingerprints import content
from globece.distributed.manifest import digest, replace_with
from globece.distributed.result import Portfolio, Sampled
from globece.distributed.sampling import FRAMES
from globece.distributed.sources import Source
from globece.distributed.task import Task
from globece.errors import InvalidParameterError, check_choice, check_mapping, check_names, check_number
from globece.explanation import Explanation
from globece.models.base import Model
from globece.models.compiling.adapt import as_model
from globece.progress import Monitor, Progress, monitoring
from globece.search import Effort, Search
from globece.settings import Settings
from globece.space import FeatureSpace

WITHIN = 0.01
SAVED = "explanation.json"
SAMPLED = "sample.json"


def explain(
    model: Any,
    source: Any,
    *,
    out: Any = None,
    row_id: str | None = None,
    client: Any = None,
    jobs: int | None = None,
    favourable: Any = None,
    threshold: float | None = None,
    space: FeatureSpace | None = None,
    cost: CostModel | None = None,
    n_directions: int | Literal["auto"] = 1,
    budget: float = 10.0,
    search: Search | None = None,
    effort: Effort = "default",
    rng: Seed = 0,
    within: float = WITHIN,
    columns: Sequence[str] | None = None,
    constraints: Mapping[str, Any] | None = None,
    frame: str = "pandas",
    progress: bool | Callable[[Progress], None] = False,
    time_limit: float | None = None,
    settings: Settings | None = None,
) -> Portfolio:
    """Explain a model by a few directions on a table that may be larger than memory.

    Directions are searched on a random sample, which is large enough for the score of a first, quick search to be known
    to within 1 %. Then each row is scaled along them, and each counterfactual is predicted again by the model.

    Parameters
    ----------
    model
        As for :func:`globece.explain`.
    source, out, row_id, client, jobs
        As for :func:`globece.distributed.apply`.
    favourable, threshold, space, cost, n_directions, budget, search, effort, settings
        As for :func:`globece.explain`. A space is learnt from all rows when absent.
    rng
        A seed. The same seed gives the same result, however the rows are divided.
    within
        How precisely the sample must tell the score: half the width of its 95 % interval, as a share of the score.
    columns
        The features, if neither a space nor the model says which they are; all columns by default.
    constraints
        For a space that is learnt: what else :meth:`globece.FeatureSpace.from_frame` takes, such as ``immutable``.
    frame
        The kind of frame that the model takes, if no space says so: ``"pandas"``, ``"polars"`` or ``"pyarrow"``.
    progress, time_limit
        As for :func:`globece.explain`; the limit is for the search on the sample.

    Examples
    --------
    >>> import tempfile, numpy as np, pandas as pd
    >>> X = pd.DataFrame({"income": np.arange(1000.0), "debt": np.arange(1000.0) % 7})
    >>> def model(X):
    ...     return (X["income"] - 10 * X["debt"] >= 300).astype(int).to_numpy()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     X.to_parquet(f"{folder}/all.parquet")
    ...     found = explain(model, f"{folder}/all.parquet", effort="quick")
    >>> found.n_rows, found.coverage
    (1000, 1.0)
    """
    plan = Plan(
        model=model,
        space=check_space(space),
        frame=check_choice("frame", frame, FRAMES),
        row_id=row_id,
        within=check_number("within", within, open_low=True, high=1.0),
        seed=seed_of(rng),
        features=None if columns is None else check_names("columns", columns, "columns"),
        constraints=check_mapping("constraints", constraints, "parameter of FeatureSpace.from_frame to its value"),
        wishes={
            "favourable": favourable,
            "threshold": threshold,
            "cost": cost,
            "budget": check_budget(budget),
            "settings": settings,
        },
    )
    table = opened(source, client, row_id)
    engine = engine_of(jobs, table)
    with monitoring(progress, None) as monitor:

        def found_on(drawn: Drawn) -> Explanation:
            monitor("searching directions", 0, 1)
            ex = api.explain(
                model, drawn.X, space=drawn.space, n_directions=n_directions, search=search,
                effort=effort, rng=plan.seed, time_limit=time_limit, **plan.wishes,
            )  # fmt: skip
            monitor("searching directions", 1, 1)
            return ex

        asked = [n_directions, effort, content(search), time_limit]
        ex, sampled = _kept(plan, table, out, asked) or _found(plan, table, engine, monitor, found_on, out, asked)
        task = Task.of(ex, row_id=row_id)
        summary, task = scaled(task, table, engine, ex.encoded, out, monitor)
    return Portfolio.of(ex, task, summary, table, out, sampled)


def seed_of(rng: Any) -> int:
    """A seed that workers and a run that is started again can share."""
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        generator_of(int(rng))
        return int(rng)
    return int(generator_of(rng).integers(2**31))


def interval(ex: Explanation) -> tuple[float, float, float]:
    """The score on a sample, with its 95 % interval."""
    paid = np.minimum(ex.best_costs, ex.budget)
    half = Z95 * float(paid.std(ddof=1)) / np.sqrt(len(paid)) if len(paid) > 1 else float("inf")
    return ex.score, ex.score - half, ex.score + half


def _found(
    plan: Plan,
    source: Source,
    engine: Engine,
    monitor: Monitor,
    work: Callable[[Drawn], Explanation],
    out: Any,
    asked: list[Any],
) -> tuple[Explanation, Sampled]:
    drawn = draw(plan, source, engine, monitor)
    ex = work(drawn)
    sampled = Sampled(ex.n_rows, drawn.affected, ex.n_affected, drawn.pilot, plan.within, *interval(ex), plan.seed)
    notes = (*ex.provenance.notes, str(sampled))
    ex = replace(ex, provenance=replace(ex.provenance, notes=notes))
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        replace_with(folder / SAVED, ex.to_json().encode())
        replace_with(folder / SAMPLED, json.dumps({"of": _of(plan, source, asked), **asdict(sampled)}).encode())
    return ex, sampled


def _kept(plan: Plan, source: Source, out: Any, asked: list[Any]) -> tuple[Explanation, Sampled] | None:
    """The directions that a run which was interrupted had found already, if it was the same run."""
    if out is None or not (Path(out) / SAMPLED).exists():
        return None
    known = json.loads((Path(out) / SAMPLED).read_text(encoding="utf-8"))
    if known.pop("of") != _of(plan, source, asked):
        raise InvalidParameterError(
            f"{out} holds the results of another run: of other rows, another model or other settings; name another "
            "folder, or remove this one"
        )
    ex = Explanation.from_json((Path(out) / SAVED).read_text(encoding="utf-8"))
    model = _model_of(plan, ex)
    if model.favourable(ex.inputs).any():
        raise InvalidParameterError(f"{out} holds results of another model; name another folder, or remove this one")
    return replace(ex, model=model), Sampled(**known)


def _model_of(plan: Plan, ex: Explanation) -> Model:
    """The user's model as it was asked for an explanation that is read from a file."""
    settings = plan.wishes["settings"] or Settings()
    model = as_model(
        plan.model, ex.space, favourable=plan.wishes["favourable"], threshold=plan.wishes["threshold"], rows=ex.inputs,
        compile=settings.exact, grid=settings.grid, scalars=settings.scalars, batch_rows=settings.batch_rows,
        timeout=settings.timeout,
    )  # fmt: skip
    return model.uncompiled() if ex.provenance.method == "searched" else model


def _of(plan: Plan, source: Source, asked: list[Any]) -> str:
    name = getattr(plan.model, "__name__", None) or type(plan.model).__name__
    space = None if plan.space is None else content(plan.space.features)
    wishes = {k: content(v) if k in ("cost", "settings") else repr(v) for k, v in plan.wishes.items()}
    limits = repr(sorted(plan.constraints.items()))
    stamps = [[s.path, s.size, s.written] for s in source.stamps]
    return digest(
        [name, space, plan.frame, plan.row_id, plan.within, plan.seed, wishes, limits, stamps, source.n_rows, asked]
    )
