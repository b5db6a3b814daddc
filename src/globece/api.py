"""The front door: a frame and a model in, an explanation out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from globece.costs import CostModel
from globece.directions.protocol import DirectionGenerator, Problem
from globece.errors import InvalidParameterError, ModelError, check_number
from globece.explanation import Explanation, Provenance, build
from globece.models.adapt import Compiled, as_model, robust_model
from globece.models.blackbox import BlackBox
from globece.models.robust import Robust, RobustModel, tally
from globece.progress import Monitor, Progress, monitoring
from globece.search import Settings, check_n_directions, find_directions
from globece.space import BoolArray, FeatureSpace, FloatArray
from globece.version import __version__

ASK_AT_ONCE = 65_536  # rows that the model gets as they are, to compare with what it says about the encoded ones
Seed = int | np.random.Generator | None


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
    generator: DirectionGenerator | None = None,
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
        The rows: a pandas, Polars or PyArrow frame, or a matrix. It is never changed.
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
    generator
        What proposes directions; when absent, chains of moves are climbed (:mod:`globece.directions.climbing`).
    rng
        A seed or a generator. Same seed, same result.
    progress
        ``True`` for a bar, or a function to report to.
    time_limit
        Seconds for the search. When they are over, and on Ctrl-C, the best so far is scaled, checked and returned,
        and ``provenance.complete`` is ``False``.
    settings
        How hard to search; see :class:`globece.Settings`.
    robust
        What recourse must survive beside the model's own decision: a margin, other models, noise; see
        :class:`globece.Robust`. Who is affected stays the model's own decision.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 3.0], [2.0, 9.0], [3.0, 5.0], [8.0, 2.0], [9.0, 7.0]])
    >>> space = FeatureSpace.from_matrix(X, columns=["income", "debt"], immutable=["debt"])
    >>> ex = explain(lambda X: (X[:, 0] >= 7).astype(int), X, space=space, rng=0)
    >>> ex.n_affected, ex.coverage, round(ex.average_cost, 3)
    (3, 1.0, 6.25)
    """
    settings = _checked("settings", settings or Settings(), Settings)
    wanted = check_n_directions(n_directions, settings)
    limit = check_number("budget", budget, open_low=True)
    if not np.isfinite(limit):
        raise InvalidParameterError(f"budget must be finite; got {budget!r}")
    space = _checked("space", space if space is not None else FeatureSpace.from_frame(X), FeatureSpace)
    cost = _checked("cost", cost if cost is not None else CostModel.bins(space), CostModel)
    unpriced = [f.name for f in space.scalars if f.can_move and f.name not in cost.scales]
    if cost.space.columns != space.columns or unpriced:
        what = f": it prices no change of {unpriced}" if unpriced else ""
        raise InvalidParameterError(f"cost belongs to another space than space; build it from the same one{what}")
    if generator is not None and not isinstance(generator, DirectionGenerator):
        raise InvalidParameterError(f"generator must have a propose method; got {generator!r}")
    random = _rng(rng)
    with monitoring(progress, time_limit) as monitor:
        Z = space.encode(X)
        box = as_model(
            model,
            space,
            favourable=favourable,
            threshold=threshold,
            grid=settings.grid,
            scalars=settings.scalars,
            batch_rows=settings.batch_rows,
            timeout=settings.timeout,
            rows=Z,
            compile=settings.exact,
        )
        decided = _own_rows(box, X, Z)
        asked = box if robust is None else robust_model(box, _checked("robust", robust, Robust), Z)
        problem = Problem(asked, Z, replace(cost, space=space), limit, settings.max_scalar)
        return _explained(problem, decided, generator, wanted, settings, random, monitor)


def _explained(
    problem: Problem,
    favourable: BoolArray,
    generator: DirectionGenerator | None,
    wanted: int | Literal["auto"],
    settings: Settings,
    rng: np.random.Generator,
    monitor: Monitor,
) -> Explanation:
    box = problem.model
    assert isinstance(box, (BlackBox, Compiled, RobustModel))
    directions, candidates, notes = np.empty((0, problem.space.width)), 0, ["nobody is affected"]
    if not favourable.all():
        affected = replace(problem, inputs=problem.inputs[~favourable], favourable_rows=problem.inputs[favourable])
        found = find_directions(affected, generator, wanted, settings, rng, monitor)
        directions, candidates, notes = found.directions, found.candidates, list(found.notes)
    provenance = Provenance(
        version=__version__,
        model=box.name,
        method="exact" if box.exact else "searched",
        favourable=box.decide.described,
        generator="climbed chains" if generator is None else repr(generator),
        candidates=candidates,
        model_calls=0,
        model_rows=0,
        complete=monitor.stopped is None,
        notes=(),
    )
    if isinstance(box, RobustModel):
        notes.append(f"recourse survives {box.robust.described}")
    ex = build(problem, favourable, directions, provenance)
    if not favourable.any() and not ex.n_covered:
        notes.append("the favourable outcome never occurred, neither in the rows given nor in any that was tried")
    calls, rows = tally(box)
    counted = replace(provenance, model_calls=calls, model_rows=rows)
    return replace(ex, provenance=replace(counted, notes=tuple(notes)))


def _own_rows(box: BlackBox | Compiled, X: Any, Z: FloatArray) -> BoolArray:
    """Outcomes of the user's rows, and a check that the encoded rows stand for the same."""
    # A copy, since a model may change what it is given; frames that cannot be changed need none.
    direct = box.decide(X.copy() if hasattr(X, "copy") else X, len(Z)) if len(Z) <= ASK_AT_ONCE else None
    decided = box.favourable(Z)
    if direct is not None and (direct != decided).any():
        differing = int((direct != decided).sum())
        raise ModelError(
            f"{box.name} gives {differing:,} of {len(Z):,} rows another outcome after encode and decode; "
            "does it depend on the index, on something outside the columns, or on chance?"
        )
    return decided


def _rng(rng: Seed) -> np.random.Generator:
    if isinstance(rng, bool) or not isinstance(rng, (int, np.integer, np.random.Generator, type(None))):
        raise InvalidParameterError(f"rng must be a whole number, a numpy Generator or None; got {rng!r}")
    if isinstance(rng, (int, np.integer)) and rng < 0:
        raise InvalidParameterError(f"rng must not be negative; got {rng!r}")
    return np.random.default_rng(rng)


def _checked(name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise InvalidParameterError(f"{name} must be a {kind.__name__}; got {value!r}")
    return value
