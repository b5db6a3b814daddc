"""The inverse question: given an action, who benefits from it, and at what cost?

"A user specifies a CE of interest, and the group of inputs most strongly affected by such a change are identified"
(appendix, "Alternative GCE Approaches").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from globece import rays
from globece.audit.groups import Groups
from globece.audit.subgroups import Subgroup, best_subgroups
from globece.compact import Rows
from globece.directions.fixed import direction_of
from globece.directions.protocol import Problem
from globece.directions.scaling import Scaled, scale
from globece.explanation import Explanation, Provenance
from globece.space import BoolArray, FloatArray
from globece.verification import confirmed

EVERYBODY = "everybody"


@dataclass(frozen=True, slots=True)
class Benefit:
    """What an action does for one group.

    Attributes
    ----------
    n, affected, flipped
        Rows, those with the unfavourable outcome, and those of them whom the action gives the favourable one.
    average_cost
        Mean cost of the action for those who flip; ``nan`` if nobody does.
    harmed
        Rows with the favourable outcome that the action, taken as it is, takes it from.
    """

    n: int
    affected: int
    flipped: int
    average_cost: float
    harmed: int

    @property
    def share(self) -> float:
        """Share of the affected inputs who flip; ``nan`` if nobody is affected."""
        return self.flipped / self.affected if self.affected else float("nan")


@dataclass(frozen=True, eq=False)
class Beneficiaries:
    """Who benefits from an action.

    Attributes
    ----------
    action
        What was asked about.
    scaled
        Whether everybody takes as much of the action as it takes, or all of it.
    explanation
        The action as a direction over all affected inputs. Where it is not scaled, those who flip have scalar 1.
    harmed
        Positions of the rows with the favourable outcome that the action as it is takes it from.
    groups
        The groups, where some were named.
    """

    action: Mapping[str, Any]
    scaled: bool
    explanation: Explanation
    harmed: Any
    groups: Groups | None = None

    @property
    def rows(self) -> Any:
        """Positions of those who flip, among the rows given."""
        return self.explanation.rows[np.isfinite(self.explanation.best_costs)]

    @property
    def overall(self) -> Benefit:
        """What the action does for everybody."""
        return self._benefit(np.ones(self.explanation.n_rows, dtype=bool))

    @property
    def by_group(self) -> dict[str, Benefit]:
        """What it does for each group."""
        if self.groups is None:
            return {}
        return {name: self._benefit(self.groups.labels == i) for i, name in enumerate(self.groups.names)}

    def _benefit(self, member: BoolArray) -> Benefit:
        ex = self.explanation
        cost = ex.best_costs[member[ex.rows]]
        paid = np.sort(cost[np.isfinite(cost)])
        average = float(paid.sum() / paid.size) if paid.size else float("nan")
        return Benefit(int(member.sum()), len(cost), paid.size, average, int(member[self.harmed].sum()))

    def subgroups(self, *, conditions: int = 2, top: int = 5, smallest: int = 30) -> tuple[Subgroup, ...]:
        """The subgroups that benefit most often: of each the share that flips, found on one half, told on the other."""
        ex = self.explanation
        return best_subgroups(ex.space, ex.inputs, np.isfinite(ex.best_costs), conditions, top, smallest)

    def summary(self) -> str:
        """The answer in a few lines."""
        how = "as far as each needs" if self.scaled else "as it is"
        lines = [f"Action {dict(self.action)}, taken {how}:"]
        for name, b in {**self.by_group, EVERYBODY: self.overall}.items():
            cost = f" at an average cost of {b.average_cost:.3f}" if b.flipped else ""
            lines.append(
                f"{name}: {b.flipped:,} of {b.affected:,} affected get the favourable outcome"
                f"{f' ({b.share:.1%})' if b.affected else ''}{cost}"
                + (f"; {b.harmed:,} of the others lose it" if b.harmed else "")
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        b = self.overall
        return f"Beneficiaries(action={dict(self.action)!r}, flipped={b.flipped}, affected={b.affected})"


def benefits(
    problem: Problem,
    favourable: BoolArray,
    action: Mapping[str, Any],
    mode: Literal["fixed", "scaled"],
    groups: Groups | None,
    provenance: Provenance,
) -> Beneficiaries:
    """Find out whom an action helps; see :func:`globece.who_benefits`."""
    direction = problem.space.check_directions([direction_of(problem.space, action, "action")])
    rows = np.flatnonzero(~favourable)
    affected = replace(problem, inputs=problem.inputs[rows])
    if mode == "scaled":
        found = scale(affected, direction) if len(rows) else _nothing()
        found = confirmed(affected, direction, found)
    else:
        found = _as_it_is(affected, direction[0])
    others = np.flatnonzero(favourable)
    after = rays.positions(problem.space, problem.inputs[others], direction[0], 1.0)
    lost = ~problem.model.favourable(after) if len(others) else np.zeros(0, dtype=bool)
    explanation = Explanation(
        space=problem.space,
        cost=problem.cost,
        budget=problem.budget,
        directions=direction,
        encoded=Rows(problem.space, affected.inputs),
        rows=rows,
        n_rows=len(favourable),
        scalars=found.scalar,
        costs=found.cost,
        provenance=replace(provenance, generator="the action given", candidates=1),
        max_scalar=problem.max_scalar,
        model=problem.model,
    )
    return Beneficiaries(dict(action), mode == "scaled", explanation, others[lost], groups)


def _nothing() -> Scaled:
    return Scaled(np.empty((1, 0)), np.empty((1, 0)))


def _as_it_is(problem: Problem, delta: FloatArray) -> Scaled:
    """All of the action, for everybody: who flips at k = 1, within the budget."""
    n = len(problem.inputs)
    if not n:
        return _nothing()
    flips = problem.model.favourable(rays.positions(problem.space, problem.inputs, delta, 1.0))
    paid = rays.cost_at(problem.cost, problem.inputs, delta, np.ones(n))
    counts = flips & (paid <= problem.budget * (1 + rays.BUDGET_SLACK))
    return Scaled(np.where(counts, 1.0, np.inf)[None], np.where(counts, paid, np.inf)[None])
