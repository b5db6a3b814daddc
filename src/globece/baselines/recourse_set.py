"""The result of AReS: a two-level recourse set, with the effects of each rule on the affected inputs.

A :class:`RecourseSet` is frozen and has the same measures as an explanation (coverage, average cost, score), so that
the two can be compared. Its views are plain data, derived without calling the model again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from globece import formatting
from globece.baselines.items import condition_text
from globece.case.recourse import Numbers, Recourse
from globece.compact import Rows
from globece.costs import CostModel
from globece.errors import InvalidDataError, wrong
from globece.explanation import MinimumCosts, Provenance
from globece.kept import FieldsOnly, freeze, read_only
from globece.models.base import Model, check_model
from globece.rays import BUDGET_SLACK
from globece.saving import Saved
from globece.space import BoolArray, Feature, FeatureSpace, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of an If or a Then: a feature has a category, or a number in a bin.

    Attributes
    ----------
    feature
        The feature's name.
    category
        Index of the category, or of the ordinal value; -1 for a bin.
    low, high
        A bin holds the numbers above ``low`` up to ``high``.
    first, last
        A row that moves into the bin gets the nearest number from ``first`` to ``last``. They are equal if rows move
        to the bin's middle, and ``first`` is above ``last`` if rows may not move there.
    """

    feature: str
    category: int = -1
    low: float = -np.inf
    high: float = np.inf
    first: float = np.inf
    last: float = -np.inf

    def holds(self, space: FeatureSpace, Z: FloatArray) -> BoolArray:
        """Which encoded rows satisfy it; a missing number never does."""
        f = space[self.feature]
        if self.category >= 0:
            return np.asarray(space.codes(Z, f) == self.category)
        return np.asarray((Z[:, f.start] > self.low) & (Z[:, f.start] <= self.high))

    def made_true(self, space: FeatureSpace, Z: FloatArray) -> FloatArray:
        """Encoded rows after the change; a row that satisfies it already keeps its value."""
        f, out = space[self.feature], Z.copy()
        if f.is_block:
            out[:, f.columns] = 0.0
            out[:, f.start + self.category] = 1.0
        elif self.category >= 0:
            out[:, f.start] = np.where(np.isnan(Z[:, f.start]), np.nan, float(self.category))
        else:
            x = Z[:, f.start]
            out[:, f.start] = np.where(self.holds(space, Z) | np.isnan(x), x, np.clip(x, self.first, self.last))
        return out

    def may(self, space: FeatureSpace, Z: FloatArray) -> BoolArray:
        """Which encoded rows satisfy it, or may be changed to."""
        f = space[self.feature]
        x = Z[:, f.start]
        able = np.full(len(Z), _reachable(f, self)) & ~np.isnan(x)
        if f.sense and able.any():
            able &= f.sense * (self.made_true(space, Z)[:, f.start] - x) >= 0
        return able | self.holds(space, Z)

    def text(self, space: FeatureSpace, *, name: bool = True) -> str:
        """In words, with or without the feature's name."""
        return condition_text(space[self.feature], self.category, self.low, self.high, name=name)


def _reachable(f: Feature, condition: Condition) -> bool:
    if not f.can_move:
        return False
    if f.is_block:
        return f.permitted[condition.category]
    if condition.category >= 0:
        return f.low <= condition.category <= f.high
    return condition.first <= condition.last


@dataclass(frozen=True, slots=True)
class TwoLevelRule:
    """If the Outer-If holds, If the Inner-If holds, Then make the Then true."""

    outer: tuple[Condition, ...]
    inner: tuple[Condition, ...]
    then: tuple[Condition, ...]

    @property
    def width(self) -> int:
        """Number of conditions in both Ifs."""
        return len(self.outer) + len(self.inner)

    def matches(self, space: FeatureSpace, Z: FloatArray) -> BoolArray:
        """Which encoded rows satisfy both Ifs."""
        out = np.ones(len(Z), dtype=bool)
        for condition in (*self.outer, *self.inner):
            out &= condition.holds(space, Z)
        return out

    def applied(self, space: FeatureSpace, Z: FloatArray) -> FloatArray:
        """Encoded rows after the Then, whether they match or not."""
        for condition in self.then:
            Z = condition.made_true(space, Z)
        return Z

    def may(self, space: FeatureSpace, Z: FloatArray) -> BoolArray:
        """Which encoded rows the constraints allow to follow the Then."""
        out = np.ones(len(Z), dtype=bool)
        for condition in self.then:
            out &= condition.may(space, Z)
        return out

    def text(self, space: FeatureSpace) -> str:
        """The rule as a sentence."""
        parts = [f"If {_joined(space, self.outer)}"] if self.outer else []
        parts += [f"If {_joined(space, self.inner)}", f"Then {_joined(space, self.then)}"]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class GroundSetSummary:
    """What the rule set was chosen from.

    Attributes
    ----------
    method
        ``"AReS"`` or ``"Fast AReS"``.
    size
        Number of triples in the ground set V.
    evaluated
        How many of them were evaluated.
    optimised
        How many were left for the optimisation.
    changes
        Number of distinct changes among those evaluated, on which the model was called.
    accuracy
        acc(V) of those left for the optimisation, which acc(R) cannot exceed.
    objective
        The objective in words.
    trace
        Its value after each step of the optimisation.
    """

    method: str
    size: int
    evaluated: int
    optimised: int
    changes: int
    accuracy: float
    objective: str
    trace: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class GroupRecourse:
    """Recourse of one group of the affected inputs by a rule set."""

    group: str
    n_affected: int
    coverage: float
    average_cost: float
    score: float
    rules: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """One group's recourse by rules, and by an audit's directions.

    Attributes
    ----------
    name
        The group.
    rules
        Its recourse by the rules.
    coverage, average_cost, score
        Its recourse by the audit's directions.
    """

    name: str
    rules: GroupRecourse
    coverage: float
    average_cost: float
    score: float


@dataclass(frozen=True, slots=True)
class RuleCounterfactuals:
    """The covered inputs before and after their cheapest rule, in the user's columns."""

    row: IntArray
    rule: IntArray
    cost: FloatArray
    before: Any
    after: Any


@dataclass(frozen=True, eq=False)
class RecourseSet(FieldsOnly, Recourse, Saved):
    """Two-level rules, and the cost of each for every affected input.

    Attributes
    ----------
    space, cost, budget
        What a row is, what a change costs, and the most that recourse may cost.
    rules
        The rules, in the order in which they were found.
    encoded
        The affected inputs, encoded; :attr:`inputs` is their matrix.
    rows
        Their positions among the rows given.
    n_rows
        How many rows were given.
    matches
        Whether each rule's Ifs hold for each affected input: ``(n_rules, n_affected)``.
    costs
        What each rule costs each affected input; ``inf`` where it does not match or gives no recourse.
    provenance
        Which model, which outcome, how it was found.
    ground_set
        What the rules were chosen from.
    model
        The model, where it is available.
    """

    space: FeatureSpace
    cost: CostModel
    budget: float
    rules: tuple[TwoLevelRule, ...]
    encoded: Rows
    rows: IntArray
    n_rows: int
    matches: BoolArray
    costs: FloatArray
    provenance: Provenance
    ground_set: GroundSetSummary
    model: Model | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        freeze(self, "rows", "matches", "costs")

    # -- numbers -------------------------------------------------------------------------------------------------

    @property
    def n_rules(self) -> int:
        """Number of rules."""
        return len(self.rules)

    @property
    def inputs(self) -> FloatArray:
        """The affected inputs, encoded: ``(n_affected, width)``; a large matrix is computed on each access."""
        return read_only(self.encoded.dense())

    @property
    def subgroups(self) -> tuple[tuple[Condition, ...], ...]:
        """The different Outer-Ifs, in the order of the rules."""
        return tuple(dict.fromkeys(rule.outer for rule in self.rules))

    # -- views ---------------------------------------------------------------------------------------------------

    def minimum_costs(self) -> MinimumCosts:
        """The cheapest rule of each affected input (-1: none), in place of a direction; its scalar is 1."""
        if not self.n_rules:
            nothing = np.full(self.n_affected, np.inf)
            return MinimumCosts(np.full(self.n_affected, -1), nothing, nothing)
        covered = np.isfinite(self.best_costs)
        pick = np.where(covered, self.costs.argmin(axis=0), -1)
        return MinimumCosts(pick, np.where(covered, 1.0, np.inf), self.best_costs)

    def records(self) -> list[dict[str, Any]]:
        """One dictionary per rule: its parts, the shares that it applies to and covers, and its average cost."""
        found = []
        for i, rule in enumerate(self.rules):
            numbers = Numbers.of(self.costs[i], self.budget)
            found.append(
                {
                    "outer": _joined(self.space, rule.outer) or "everybody",
                    "inner": _joined(self.space, rule.inner),
                    "then": _joined(self.space, _changed(rule)),
                    "applies": float(self.matches[i].mean()) if self.n_affected else 0.0,
                    "coverage": numbers.coverage,
                    "average_cost": numbers.average_cost,
                }
            )
        return found

    def by_group(self, feature: str | None = None) -> tuple[GroupRecourse, ...]:
        """Recourse group by group: for the Outer-Ifs, or for the values of a feature among the affected inputs.

        Parameters
        ----------
        feature
            A categorical or ordinal feature. By default the groups are the Outer-Ifs, each with the recourse by its
            rules.
        """
        if feature is None:
            groups = []
            for outer in self.subgroups:
                mine = tuple(i for i, rule in enumerate(self.rules) if rule.outer == outer)
                (inside,) = matches_of((TwoLevelRule(outer, (), ()),), self.space, self.encoded)
                groups.append(self._group(_joined(self.space, outer) or "everybody", inside, mine))
            return tuple(groups)
        f = self.space[feature]
        if f.kind == "continuous":
            raise InvalidDataError(f"feature must be categorical or ordinal to form groups; {feature!r} is continuous")
        codes = self.encoded.feature(f)
        everything = tuple(range(self.n_rules))
        return tuple(
            self._group(f"{feature} = {f.label(category)}", codes == c, everything)
            for c, category in enumerate(f.categories)
            if (codes == c).any()
        )

    def beside(self, audit: Any) -> tuple[SideBySide, ...]:
        """Recourse by these rules and by an audit's directions, for each group of that audit.

        Parameters
        ----------
        audit
            A :class:`globece.Audit` of the same rows.
        """
        labels = getattr(getattr(audit, "groups", None), "labels", None)
        if not isinstance(labels, np.ndarray) or not isinstance(getattr(audit, "by_group", None), Mapping):
            raise wrong("audit", "an Audit of the same rows", audit)
        if len(labels) != self.n_rows:
            raise InvalidDataError(f"audit is of {len(labels):,} rows and these rules are of {self.n_rows:,}")
        everything = tuple(range(self.n_rules))
        return tuple(
            SideBySide(
                name,
                self._group(name, labels[self.rows] == g, everything),
                *(float(getattr(audit.by_group[name], measure)) for measure in ("coverage", "average_cost", "score")),
            )
            for g, name in enumerate(audit.groups.names)
            if name in audit.by_group
        )

    def _group(self, name: str, inside: BoolArray, rules: tuple[int, ...]) -> GroupRecourse:
        costs = self.costs[list(rules)][:, inside] if rules else np.full((1, int(inside.sum())), np.inf)
        found = Numbers.of(costs.min(axis=0), self.budget)
        useful = tuple(i for i in rules if np.isfinite(self.costs[i, inside]).any())
        return GroupRecourse(name, found.n_affected, found.coverage, found.average_cost, found.score, useful)

    def counterfactuals(self) -> RuleCounterfactuals:
        """The covered inputs before and after their cheapest rule, in the user's columns."""
        pick, here = self.minimum_costs().direction, self.encoded
        after = here.values.copy()
        for i, rule in enumerate(self.rules):
            mine = np.flatnonzero(pick == i)
            for part, Z in here[mine].chunks():
                after[mine[part]] = here.pack(rule.applied(self.space, Z))
        covered = np.flatnonzero(pick >= 0)
        return RuleCounterfactuals(
            row=self.rows[covered],
            rule=pick[covered],
            cost=self.best_costs[covered],
            before=here[covered].decode(),
            after=Rows(self.space, after, here.is_compact)[covered].decode(),
        )

    def apply(self, X: Any, *, model: Model | None = None) -> RecourseSet:
        """The same rules on other rows, such as unseen ones.

        Parameters
        ----------
        X
            Rows with the columns that the space was learnt from.
        model
            The model, as :func:`globece.as_model` returns it; by default the one that was explained.
        """
        asked = self.model if model is None else check_model(model, self.space)
        if asked is None:
            raise InvalidDataError("this recourse set was read from a file and has no model; pass model=")
        given = Rows.read(self.space, X)
        if not len(given):
            raise InvalidDataError("the frame has no rows")
        favourable = np.concatenate([asked.favourable(Z) for _, Z in given.chunks()])
        return build(asked, given, favourable, self.cost, self.budget, self.rules, self.provenance, self.ground_set)

    # -- text ----------------------------------------------------------------------------------------------------

    def summary(self) -> str:
        """The rule set in a few lines."""
        p, g = self.provenance, self.ground_set
        if self.is_empty:
            return f"Nobody is affected: all {self.n_rows:,} rows have the favourable outcome ({p.favourable})."
        cost = formatting.cost(self.average_cost)
        lines = [
            f"{self.n_affected:,} of {self.n_rows:,} rows are affected; favourable: {p.favourable}; model: {p.model}.",
            f"{self.n_rules} rule(s) of {g.method} cover {self.coverage:.1%} at an average cost of {cost} within a "
            f"budget of {self.budget:g} (score {self.score:.3f}).",
            f"They are from a ground set of {g.size:,} triples, of which {g.evaluated:,} were evaluated.",
            f"{self.n_without_recourse:,} have no recourse by these rules.",
        ]
        lines += [f"Note: {note}." for note in p.notes]
        return "\n".join(lines)

    def __str__(self) -> str:
        """The rules as AReS shows them, each with its coverage and cost."""
        lines: list[str] = []
        for outer in self.subgroups:
            lines.append(f"If {_joined(self.space, outer) or 'anybody'}:")
            for rule, record in zip(self.rules, self.records(), strict=True):
                if rule.outer == outer:
                    _, inner, then, _, covers, cost = cells(record)
                    lines += [f"    If {inner},", f"    Then {then}  [covers {covers}, cost {cost}]"]
        return "\n".join(lines) if lines else "(no rules)"

    def __repr__(self) -> str:
        """A short description."""
        return (
            f"RecourseSet(n_rules={self.n_rules}, n_affected={self.n_affected}, coverage={self.coverage:.3f}, "
            f"average_cost={self.average_cost:.3f}, score={self.score:.3f})"
        )

    def _repr_html_(self) -> str:
        """For notebooks: the summary and a table of the rules."""
        head = ("If", "If", "Then", "Applies to", "Covers", "Cost")
        lines = [f"<p>{escape(line)}</p>" for line in self.summary().splitlines()]
        return "".join(lines) + formatting.html_table(head, map(cells, self.records()))

    # -- files ---------------------------------------------------------------------------------------------------


def cells(record: Mapping[str, Any]) -> tuple[str, str, str, str, str, str]:
    """What :meth:`RecourseSet.records` says of a rule, as text."""
    outer, inner, then, applies, coverage, cost = record.values()
    return outer, inner, then, formatting.share(applies), formatting.share(coverage), formatting.cost(cost, 2)


def build(
    model: Model,
    given: Rows,
    favourable: BoolArray,
    cost: CostModel,
    budget: float,
    rules: tuple[TwoLevelRule, ...],
    provenance: Provenance,
    ground_set: GroundSetSummary,
) -> RecourseSet:
    """Apply rules to all affected rows, predict every counterfactual, and build the result.

    Parameters
    ----------
    model, given, favourable
        The model, all rows, encoded, and which of them have the favourable outcome already.
    cost, budget
        What a change costs, and the most that recourse may cost.
    rules
        The rules.
    provenance, ground_set
        Where they come from.
    """
    rows = np.flatnonzero(~favourable)
    inputs, space = given[rows], cost.space
    matches = np.zeros((len(rules), len(rows)), dtype=bool)
    costs = np.full((len(rules), len(rows)), np.inf)
    for part, Z in inputs.chunks():
        for i, rule in enumerate(rules):
            matches[i, part] = rule.matches(space, Z)
            able = np.flatnonzero(matches[i, part] & rule.may(space, Z))
            after = rule.applied(space, Z[able])
            paid = cost.between(Z[able], after)
            flips = model.favourable(after) if len(able) else np.zeros(0, dtype=bool)
            good = flips & (paid <= budget * (1 + BUDGET_SLACK))
            costs[i, part][able[good]] = paid[good]
    whole = len(given)
    return RecourseSet(space, cost, budget, rules, inputs, rows, whole, matches, costs, provenance, ground_set, model)


def matches_of(rules: Sequence[TwoLevelRule], space: FeatureSpace, inputs: Rows) -> BoolArray:
    """Whether the Ifs of each rule hold for each input: ``(rules, inputs)``."""
    out = np.zeros((len(rules), len(inputs)), dtype=bool)
    for part, Z in inputs.chunks():
        for i, rule in enumerate(rules):
            out[i, part] = rule.matches(space, Z)
    return out


def _joined(space: FeatureSpace, conditions: Sequence[Condition]) -> str:
    return " and ".join(condition.text(space) for condition in conditions)


def _changed(rule: TwoLevelRule) -> tuple[Condition, ...]:
    """The conditions of the Then that the Inner-If does not state already."""
    stated = {(c.feature, c.category, c.low, c.high) for c in rule.inner}
    return tuple(c for c in rule.then if (c.feature, c.category, c.low, c.high) not in stated)
