"""The inverse question: who benefits from a given action, and at what cost?

"A user specifies a CE of interest, and the group of inputs most strongly affected by such a change are identified"
(appendix, "Alternative GCE Approaches").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

import numpy as np

from globece import formatting, rays
from globece.auditing.exchange import EVERYBODY
from globece.auditing.groups import Groups
from globece.auditing.subgroups import Subgroup, best_subgroups
from globece.case.affected import Case
from globece.case.recourse import Numbers
from globece.case.scaling import Scaled
from globece.directions.fixed import direction_of
from globece.explanation import Explanation, Provenance, explanation_of, scaled_along
from globece.kept import freeze
from globece.saving import Shown
from globece.space import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class Benefit:
    """The effect of an action on one group.

    Attributes
    ----------
    n, affected, flipped
        Number of rows, of those with the unfavourable outcome, and of those whom the action gives the favourable one.
    average_cost
        Mean cost of the action for those who flip; ``inf`` if nobody does, 0 if nobody is affected.
    harmed
        Number of rows with the favourable outcome that lose it by the unscaled action.
    """

    n: int
    affected: int
    flipped: int
    average_cost: float
    harmed: int

    @property
    def share(self) -> float:
        """Share of the affected inputs who flip; 1 if nobody is affected."""
        return self.flipped / self.affected if self.affected else 1.0


@dataclass(frozen=True, eq=False)
class Beneficiaries(Shown):
    """Who benefits from an action.

    Attributes
    ----------
    action
        The action.
    scaled
        Whether the action is scaled for each input to what it needs.
    explanation
        The action as a direction over all affected inputs. If it is not scaled, those who flip have scalar 1.
    harmed
        Positions of the rows with the favourable outcome that lose it by the unscaled action.
    groups
        The groups, if any.
    """

    action: Mapping[str, Any]
    scaled: bool
    explanation: Explanation
    harmed: Any
    groups: Groups | None = None

    def __post_init__(self) -> None:
        freeze(self, "harmed")

    @property
    def rows(self) -> Any:
        """Positions of those who flip, among the rows given."""
        return self.explanation.rows[np.isfinite(self.explanation.best_costs)]

    @property
    def overall(self) -> Benefit:
        """The effect on everybody."""
        return self._benefit(np.ones(self.explanation.n_rows, dtype=bool))

    @property
    def by_group(self) -> dict[str, Benefit]:
        """The effect on each group."""
        if self.groups is None:
            return {}
        return {name: self._benefit(self.groups.labels == i) for i, name in enumerate(self.groups.names)}

    def _benefit(self, member: BoolArray) -> Benefit:
        ex = self.explanation
        found = Numbers.of(ex.best_costs[member[ex.rows]], ex.budget)
        harmed = int(member[self.harmed].sum())
        return Benefit(int(member.sum()), found.n_affected, found.n_covered, found.average_cost, harmed)

    def subgroups(self, *, conditions: int = 2, top: int = 5, smallest: int = 30) -> tuple[Subgroup, ...]:
        """The subgroups with the largest shares of inputs that flip, found on one half and tested on the other."""
        ex = self.explanation
        return best_subgroups(ex.space, ex.encoded.dense(), np.isfinite(ex.best_costs), conditions, top, smallest)

    def summary(self) -> str:
        """The result in a few lines."""
        how = "as far as each needs" if self.scaled else "as it is"
        outcome = self.explanation.provenance.favourable
        lines = [f"Favourable outcome: {outcome}. Action {dict(self.action)}, taken {how}:"]
        for name, b in {**self.by_group, EVERYBODY: self.overall}.items():
            cost = f" at an average cost of {b.average_cost:.3f}" if b.flipped else ""
            lines.append(
                f"{name}: {b.flipped:,} of {b.affected:,} affected get the favourable outcome"
                f"{f' ({b.share:.1%})' if b.affected else ''}{cost}"
                + (f"; {b.harmed:,} of the others lose it" if b.harmed else "")
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """For notebooks: the result of each group."""
        head = ("", "Affected", "Get the favourable outcome", "Average cost", "Lose it")
        rows = [
            [
                name,
                f"{b.affected:,}",
                f"{b.flipped:,} ({b.share:.1%})",
                formatting.cost(b.average_cost),
                f"{b.harmed:,}",
            ]
            for name, b in {**self.by_group, EVERYBODY: self.overall}.items()
        ]
        outcome = self.explanation.provenance.favourable
        title = f"Favourable outcome: {outcome}. Action: {dict(self.action)}"
        return f"<p>{escape(title)}</p>{formatting.html_table(head, rows)}"

    def __repr__(self) -> str:
        b = self.overall
        return f"Beneficiaries(action={dict(self.action)!r}, flipped={b.flipped}, affected={b.affected})"


def beneficiaries(
    case: Case,
    action: Mapping[str, Any],
    mode: Literal["fixed", "scaled"],
    groups: Groups | None,
    provenance: Provenance,
) -> Beneficiaries:
    """Find who benefits from an action; see :func:`globece.who_benefits`."""
    direction = case.space.check_directions([direction_of(case.space, action, "action")])
    provenance = replace(provenance, candidates=1)
    if mode == "scaled":
        explanation = scaled_along(case, direction, provenance)
    else:
        explanation = explanation_of(case, direction, _unscaled(case, direction[0]), provenance)
    others = np.flatnonzero(case.favourable)
    lost = [np.zeros(0, dtype=bool)]
    for _, Z in case.rows[others].chunks():
        lost.append(~case.model.favourable(rays.positions(case.space, Z, direction[0], 1.0)))
    return Beneficiaries(dict(action), mode == "scaled", explanation, others[np.concatenate(lost)], groups)


def _unscaled(case: Case, delta: FloatArray) -> Scaled:
    """Who flips at k = 1 within the budget."""
    scalar, cost = np.full((1, len(case.inputs)), np.inf), np.full((1, len(case.inputs)), np.inf)
    for part, Z in case.inputs.chunks():
        flips = case.model.favourable(rays.positions(case.space, Z, delta, 1.0))
        paid = rays.cost_at(case.cost, Z, delta, np.ones(len(Z)))
        counts = flips & (paid <= case.budget * (1 + rays.BUDGET_SLACK))
        scalar[0, part], cost[0, part] = np.where(counts, 1.0, np.inf), np.where(counts, paid, np.inf)
    return Scaled(scalar, cost)
