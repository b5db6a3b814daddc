"""The result: n directions with, for every affected input, its minimum scalar and cost under each.

An :class:`Explanation` is frozen. Its views (profile, minimum costs, mean translation, rules chart, counterfactuals)
are plain data derived from it without calling the model again; plots and files are elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np

from globece import formatting, rays
from globece.bounds import LowerBound, lower_bound
from globece.case.affected import Affected, Case
from globece.case.recourse import Recourse, mean_cost
from globece.case.scaling import Scaled, in_reach, scale
from globece.case.verification import confirmed, trusting
from globece.compact import Rows
from globece.costs import CostModel
from globece.errors import (
    InvalidDataError,
    InvalidParameterError,
    check_choice,
    check_count,
    check_number,
    check_numbers,
    wrong,
)
from globece.kept import FieldsOnly, freeze, read_only
from globece.models.base import Model, check_model
from globece.models.blackbox import MOST_POINTS
from globece.models.clearance import DOUBLE
from globece.progress import Monitor
from globece.robustness import Robustness, robustness
from globece.rules import SPACINGS, RulesChart, rules_chart
from globece.saving import Saved
from globece.search.headroom import Headroom
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray
from globece.tables import read_table

SHOWN = 20  # counterfactuals in a notebook
ARRAYS_LIMIT = 2**28  # numbers in Algorithm 1's X': 2 GiB


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where an explanation comes from.

    Attributes
    ----------
    version
        Release of globece.
    model
        Name of the model's class or function.
    method
        ``"exact"`` if minimum scalars come from the model's structure, ``"searched"`` otherwise.
    favourable
        The outcome taken as favourable, in words.
    generator
        What proposed the directions.
    candidates
        Number of directions that were examined.
    model_calls, model_rows
        How often the user's model was called, and on how many rows in total.
    complete
        ``False`` if the search was stopped before its end.
    notes
        Remarks for the reader.
    clearance
        Relative rounding error, of the model's arithmetic and of its columns' types, that every counterfactual
        tolerates: it flips in whatever order sums are rounded. A scalar is larger than the first flip by as much.
    seed
        The seed as it was given; ``None`` if it was not a number, or is not known.
    data, decisions
        Fingerprints of the rows, in whatever order, and of the model's decisions on them; empty if not known.
    headroom
        How much lower the score might still go; ``None`` where the search does not know.
    """

    version: str
    model: str
    method: str
    favourable: str
    generator: str
    candidates: int
    model_calls: int
    model_rows: int
    complete: bool = True
    notes: tuple[str, ...] = ()
    clearance: float = DOUBLE
    seed: int | None = None
    data: str = ""
    decisions: str = ""
    headroom: Headroom | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """Coverage and average cost against a limit on cost: the coverage-cost profile."""

    limit: FloatArray
    coverage: FloatArray
    average_cost: FloatArray


@dataclass(frozen=True, slots=True)
class MinimumCosts:
    """The cheapest direction of each affected input (-1: no recourse), with scalar and cost."""

    direction: IntArray
    scalar: FloatArray
    cost: FloatArray


@dataclass(frozen=True, slots=True)
class MeanTranslation:
    """What the covered inputs change, on average.

    Attributes
    ----------
    features
        Feature names.
    change
        Mean change of each continuous or ordinal feature, in its units; 0 for a categorical one.
    share
        Share of the covered inputs that change the feature at all.
    cost
        Mean cost of the changes in each feature, before the norm.
    """

    features: tuple[str, ...]
    change: FloatArray
    share: FloatArray
    cost: FloatArray


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """The inputs whose minimum cost is at most ``limit``: their share, average cost and number."""

    limit: float
    coverage: float
    average_cost: float
    n_covered: int


@dataclass(frozen=True, slots=True)
class Counterfactuals:
    """The covered inputs before and after, in the user's columns.

    Attributes
    ----------
    row
        Position of each covered input among the rows given.
    direction, scalar, cost
        Its cheapest direction, with scalar and cost.
    before, after
        Frames (or matrices) of the type that was given, one row per covered input.
    """

    row: IntArray
    direction: IntArray
    scalar: FloatArray
    cost: FloatArray
    before: Any
    after: Any

    def _repr_html_(self) -> str:
        """For notebooks: what changes for the first of them, as "before -> after"."""
        columns = read_table(self.before).names
        rows = []
        pairs = zip(_records(self.before), _records(self.after), strict=True)
        for row, cost, (one, other) in list(zip(self.row.tolist(), self.cost.tolist(), pairs, strict=False))[:SHOWN]:
            same = [a == b or (a != a and b != b) for a, b in zip(one, other, strict=True)]
            cells = ["" if s else f"{a} -> {b}" for a, b, s in zip(one, other, same, strict=True)]
            rows.append([f"{row}", formatting.cost(cost), *cells])
        more = len(self.row) - len(rows)
        table = formatting.html_table(("Row", "Cost", *columns), rows)
        return f"{table}<p>and {more:,} more</p>" if more > 0 else table


def _records(frame: Any) -> list[Any]:
    """The rows of a frame, or of a matrix."""
    return list(frame.tolist()) if isinstance(frame, np.ndarray) else nw.from_native(frame, eager_only=True).rows()


@dataclass(frozen=True, slots=True)
class Arrays:
    """The raw output of Algorithm 1: counterfactuals X', predictions Y' and costs C, in (direction, scalar, input)."""

    scalars: FloatArray
    counterfactuals: FloatArray
    predictions: BoolArray
    costs: FloatArray


@dataclass(frozen=True, eq=False)
class Explanation(FieldsOnly, Recourse, Saved):
    """A few directions along which the affected inputs can move, and how far each must go.

    Attributes
    ----------
    space, cost, budget
        What a row is, what a change costs, and the most that recourse may cost.
    directions
        One per row: ``(n_directions, width)``.
    encoded
        The affected inputs, encoded; :attr:`inputs` is their matrix.
    rows
        Their positions among the rows given.
    n_rows
        How many rows were given.
    scalars, costs
        Minimum scalar and its cost by direction and affected input; ``inf`` where there is no recourse.
    provenance
        Which model, which outcome, how it was found.
    model
        The model, where it is available: an explanation read from a file has none.
    n_unknown
        Affected inputs that were not reached before the time was over: nothing is known about them, and no number here
        includes them. The others are a random sample.
    """

    space: FeatureSpace
    cost: CostModel
    budget: float
    directions: FloatArray
    encoded: Rows
    rows: IntArray
    n_rows: int
    scalars: FloatArray
    costs: FloatArray
    provenance: Provenance
    max_scalar: float | None = None
    model: Model | None = field(default=None, repr=False)
    n_unknown: int = 0

    def __post_init__(self) -> None:
        freeze(self, "directions", "rows", "scalars", "costs")

    # -- numbers -------------------------------------------------------------------------------------------------

    @property
    def n_directions(self) -> int:
        """Number of directions."""
        return len(self.directions)

    @property
    def inputs(self) -> FloatArray:
        """The affected inputs, encoded: ``(n_affected, width)``; a large matrix is computed on each access."""
        return read_only(self.encoded.dense())

    # -- views ---------------------------------------------------------------------------------------------------

    def minimum_costs(self) -> MinimumCosts:
        """The cheapest direction of each affected input, with scalar and cost."""
        if not self.n_directions:
            nothing = np.full(self.n_affected, np.inf)
            return MinimumCosts(np.full(self.n_affected, -1), nothing, nothing)
        pick = self.costs.argmin(axis=0)
        each = np.arange(self.n_affected)
        direction = np.where(np.isfinite(self.best_costs), pick, -1)
        return MinimumCosts(direction, self.scalars[pick, each], self.best_costs)

    def profile(self, direction: int | None = None) -> Profile:
        """Coverage and average cost at every limit at which further inputs are covered, by all directions or by one."""
        costs = self.best_costs if direction is None else self.costs[self._direction(direction)]
        paid = np.sort(costs[np.isfinite(costs)])
        limit, last = np.unique(paid, return_index=True)
        count = np.append(last[1:], paid.size) if paid.size else last
        running = np.cumsum(paid)
        average = running[count - 1] / count if paid.size else np.zeros(0)
        start = np.zeros(1)
        return Profile(
            np.concatenate([start, limit]),
            np.concatenate([start, count / max(self.n_affected, 1)]),
            np.concatenate([start, average]),
        )

    def at(self, *, coverage: float | None = None, cost: float | None = None) -> OperatingPoint:
        """The inputs up to a given coverage, or up to a given cost.

        Parameters
        ----------
        coverage
            Share of the affected inputs; the limit is the smallest cost that reaches it.
        cost
            The limit on the cost of each input.
        """
        if (coverage is None) == (cost is None):
            raise InvalidParameterError("at() takes either coverage= or cost=")
        paid = np.sort(self.best_costs)
        if cost is not None:
            limit = check_number("cost", cost, infinite=True)
        else:
            wanted = check_number("coverage", coverage, high=1.0)
            need = int(np.ceil(wanted * self.n_affected - 1e-9))
            limit = float(paid[need - 1]) if need else 0.0
            if not np.isfinite(limit):
                raise InvalidParameterError(
                    f"coverage of {wanted:.1%} is out of reach: {self.coverage:.1%} have recourse within the budget"
                )
        within = paid[paid <= limit]
        share = within.size / self.n_affected if self.n_affected else 1.0
        return OperatingPoint(limit, share, mean_cost(within), within.size)

    def mean_translation(self, direction: int | None = None) -> MeanTranslation:
        """Mean change of each feature over the covered inputs, each taking its cheapest direction or a given one."""
        before, after = self._travelled(direction)
        n = max(len(before), 1)
        change, share, cost = (np.zeros(len(self.space.features)) for _ in range(3))
        for i, f in enumerate(self.space.features):
            x, y = before.feature(f), after.feature(f)
            moved = np.where(np.isnan(x), 0.0, x) != np.where(np.isnan(y), 0.0, y)
            share[i] = moved.sum() / n
            if f.is_block:
                cost[i] = self.cost.weight(f) * share[i]
            else:
                change[i] = np.sort(np.nan_to_num(y - x)).sum() / n
                cost[i] = np.sort(self.cost.change(f, x, y)).sum() / n
        return MeanTranslation(self.space.names, change, share, cost)

    def rules_chart(self, direction: int = 0, *, rows: int = 5, spacing: str = "equal") -> RulesChart:
        """The cumulative rules chart of one direction; see :func:`globece.rules.rules_chart`.

        Its last row has the coverage and average cost of that direction.
        """
        i = self._direction(direction)
        spacing = check_choice("spacing", spacing, SPACINGS)
        mine = self.scalars[i], self.costs[i]
        return rules_chart(self.cost, self.directions[i], self.encoded, *mine, rows=rows, spacing=spacing)

    def counterfactuals(self) -> Counterfactuals:
        """The covered inputs before and after, in the user's columns."""
        best = self.minimum_costs()
        covered = np.flatnonzero(best.direction >= 0)
        before, after = self._travelled(None)
        return Counterfactuals(
            row=self.rows[covered],
            direction=best.direction[covered],
            scalar=best.scalar[covered],
            cost=best.cost[covered],
            before=before.decode(),
            after=after.decode(),
        )

    def to_frame(self) -> Any:
        """One row per affected input: its position, cheapest direction (-1: none), scalar and cost.

        The frame is of the library that was given; for a matrix of pandas, Polars or PyArrow, whichever is installed.
        """
        best = self.minimum_costs()
        return self.space.table.like(
            {"row": self.rows, "direction": best.direction, "scalar": best.scalar, "cost": best.cost}
        )

    def arrays(self, scalars: Any) -> Arrays:
        """The raw arrays X', Y' and C of Algorithm 1 over all directions, these scalars and all affected inputs.

        They take directions x scalars x inputs x columns numbers, and are only computed on request.
        """
        allowed = f"a list of finite numbers >= 0, at most {MOST_POINTS:,} of them"
        k = check_numbers("scalars", scalars, allowed, low=0.0)
        shape = (self.n_directions, len(k), self.n_affected)
        if np.prod([*shape, self.space.width], dtype=float) > ARRAYS_LIMIT:
            raise InvalidParameterError(
                f"X' would hold {shape[0]} x {shape[1]} x {shape[2]:,} x {self.space.width} numbers; "
                f"at most {ARRAYS_LIMIT:,} are allowed: take fewer scalars, or explain fewer rows"
            )
        if len(k) > MOST_POINTS:
            raise wrong("scalars", allowed, scalars)
        model = self._model(None)
        X, inputs = np.empty((*shape, self.space.width)), self.encoded.dense()
        Y, C = np.empty(shape, dtype=bool), np.empty(shape)
        for i, delta in enumerate(self.directions):
            for j, kj in enumerate(k):
                X[i, j] = rays.positions(self.space, inputs, delta, kj)
                Y[i, j] = model.favourable(X[i, j])
                C[i, j] = rays.cost_at(self.cost, inputs, delta, np.full(self.n_affected, kj))
        return Arrays(k, X, Y, C)

    # -- use -----------------------------------------------------------------------------------------------------

    def apply(self, X: Any, *, model: Model | None = None) -> Explanation:
        """Scale the same directions on other rows, such as unseen ones, or a single row.

        Parameters
        ----------
        X
            Rows with the columns that the space was learnt from.
        model
            The model, as :func:`globece.as_model` returns it; by default the one that was explained.
        """
        asked = self._model(model)
        rows = Rows.read(self.space, X)
        if not len(rows):
            raise InvalidDataError("the frame has no rows")
        favourable = np.concatenate([asked.unconditioned.favourable(Z) for _, Z in rows.chunks()])

        def applied(case: Case) -> Explanation:
            notes = (*self.provenance.notes, "directions applied to other rows")
            method = "exact" if case.model.exact else "searched"
            return scaled_along(case, self.directions, replace(self.provenance, notes=notes, method=method))

        return trusting(Case(asked, rows, favourable, self.cost, self.budget, self.max_scalar), applied)

    def robustness(self, margins: Any = None, **asked: Any) -> Robustness:
        """Coverage of these directions against the margin that recourse must keep.

        Parameters
        ----------
        margins
            Margins to try, ascending; by default 0 to 0.4 for probabilities, and 0 to 2 for other scales.
        **asked
            As for :class:`globece.Robust`: ``scale``, ``models``, ``noise``, ``draws``, ``seed``.
        """
        return robustness(self, margins, **asked)

    def lower_bound(self, *, solve: int = 0, time_limit: float = 60.0) -> LowerBound:
        """A lower bound on the cost of recourse of each affected input, whatever it changes.

        Available for linear models and tree ensembles; see :func:`globece.bounds.lower_bound` for the parameters.
        """
        problem = Affected(self._model(None), self.encoded.dense(), self.cost, self.budget)
        found = lower_bound(problem, solve=solve, time_limit=time_limit, within=self.best_costs)
        return replace(found, score=self.score)

    def _direction(self, direction: int) -> int:
        i = check_count("direction", direction, low=0)
        if i >= self.n_directions:
            raise wrong("direction", f"below {self.n_directions}, the number found", direction)
        return i

    def _model(self, model: Model | None) -> Model:
        if model is not None:
            return check_model(model, self.space)
        if self.model is None:
            raise InvalidParameterError("this explanation was read from a file and has no model; pass model=")
        return self.model

    def _travelled(self, direction: int | None) -> tuple[Rows, Rows]:
        """The covered inputs before and after, encoded, along their cheapest directions or along a given one."""
        if direction is None:
            best = self.minimum_costs()
            pick, k = best.direction, best.scalar
        else:
            i = self._direction(direction)
            k = self.scalars[i]
            pick = np.where(np.isfinite(k), i, -1)
        here = self.encoded
        after = here.values.copy()
        for i, delta in enumerate(self.directions):
            mine = np.flatnonzero(pick == i)
            for part, Z in here[mine].chunks():
                after[mine[part]] = here.pack(rays.positions(self.space, Z, delta, k[mine[part]]))
        return here[pick >= 0], Rows(self.space, after, here.is_compact)[pick >= 0]

    # -- text ----------------------------------------------------------------------------------------------------

    def summary(self) -> str:
        """The explanation in a few lines."""
        p = self.provenance
        if self.is_empty:
            return f"Nobody is affected: all {self.n_rows:,} rows have the favourable outcome ({p.favourable})."
        unknown = f", of whom {self.n_unknown:,} are unknown and not counted" if self.n_unknown else ""
        lines = [
            f"{self.n_affected + self.n_unknown:,} of {self.n_rows:,} rows are affected{unknown}; "
            f"favourable: {p.favourable}; model: {p.model}.",
            f"{_directions(self.n_directions)} {self.coverage:.1%} "
            f"at an average cost of {formatting.cost(self.average_cost)} within a budget of {self.budget:g} "
            f"(score {self.score:.3f}).",
            f"{self.n_without_recourse:,} have no recourse within the budget.",
        ]
        if p.clearance > DOUBLE:
            lines.append(f"Counterfactuals keep clear of relative rounding errors of {p.clearance:.1g}.")
        lines += [f"Note: {note}." for note in p.notes]
        return "\n".join(lines)

    def __repr__(self) -> str:
        """A short description."""
        unknown = f", n_unknown={self.n_unknown}" if self.n_unknown else ""
        return (
            f"Explanation(n_directions={self.n_directions}, n_affected={self.n_affected}{unknown}, "
            f"coverage={self.coverage:.3f}, average_cost={self.average_cost:.3f}, score={self.score:.3f})"
        )


def scaled_along(
    case: Case, directions: FloatArray, provenance: Provenance, monitor: Monitor | None = None
) -> Explanation:
    """Scale directions over all affected inputs, verify every counterfactual, and build the explanation.

    Parameters
    ----------
    case
        The case.
    directions
        The directions chosen.
    provenance
        Where they come from.
    monitor
        Says whether the time is up: inputs not reached by then, or on Ctrl-C, are counted as unknown.
    """
    inputs = case.inputs
    scalars, costs = np.empty((len(directions), len(inputs))), np.empty((len(directions), len(inputs)))

    def work(part: IntArray) -> None:
        some = case.part(part)
        scaled = confirmed(some, directions, scale(some, directions))
        scalars[:, part], costs[:, part] = scaled.scalar, scaled.cost

    monitor = monitor or Monitor()
    # size of the first batch: after it the clock is checked, and Ctrl-C has a result to return
    timed, untimed = (64, 16_384) if case.model.exact else (8, 1024)
    first = untimed if monitor.time_limit is None else timed
    reached = in_reach(len(inputs), work, monitor, first=first, most=inputs.at_once)
    if len(reached) < len(inputs):
        case, scalars, costs = case.only(reached), scalars[:, reached], costs[:, reached]
    return explanation_of(case, directions, Scaled(scalars, costs), provenance)


def explanation_of(case: Case, directions: FloatArray, scaled: Scaled, provenance: Provenance) -> Explanation:
    """The explanation of a case from the minimum scalars and costs of its affected inputs."""
    return Explanation(
        space=case.space,
        cost=case.cost,
        budget=case.budget,
        directions=directions,
        encoded=case.inputs,
        rows=case.affected,
        n_rows=len(case.rows),
        scalars=scaled.scalar,
        costs=scaled.cost,
        provenance=provenance,
        max_scalar=case.max_scalar,
        model=case.model,
        n_unknown=len(case.unknown),
    )


def unknown_note(monitor: Monitor, n_reached: int, n_unknown: int) -> str:
    """A note that some affected inputs were not reached."""
    return (
        f"stopped early ({monitor.stopped}): {n_reached:,} of {n_reached + n_unknown:,} affected inputs, chosen at "
        "random, were reached; the others are unknown and not counted"
    )


def _directions(n: int) -> str:
    return "1 direction covers" if n == 1 else f"{n} directions cover"
