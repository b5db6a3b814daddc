"""The audit's answer: frozen, in fairlearn's grammar, with everything that its views and its file need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from globece import formatting
from globece.auditing.artefact import Check
from globece.auditing.exchange import EVERYBODY, Exchange
from globece.auditing.groups import Groups
from globece.auditing.measures import Comparison, Measures, Spread
from globece.auditing.settings import AuditSettings
from globece.auditing.statistics import MEASURES
from globece.auditing.subgroups import Subgroup, worst_subgroups
from globece.auditing.verdict import Verdict
from globece.errors import check_choice, check_instance, check_number
from globece.explanation import Explanation
from globece.kept import freeze
from globece.saving import Saved
from globece.space import FloatArray, IntArray

if TYPE_CHECKING:
    from globece.io.documents import Format

ALL_MEASURES = ("rejection_rate", *MEASURES)


@dataclass(frozen=True, eq=False)
class Audit(Saved):
    """Whether one group's recourse costs more, or covers fewer, than another's.

    Attributes
    ----------
    overall, by_group
        What is measured of everybody, and of each group by name; see :class:`globece.auditing.measures.Measures`.
    comparisons
        Each group against the others, with intervals and tests.
    exchange
        Each group's directions applied to each group.
    checks
        Whether the verdict survives more candidates, other costs, and lower bounds.
    verdict
        What follows from all that.
    explanation
        Every direction that some group, or everybody, chose among all affected inputs, and what it does for each of
        them. ``explanation_of`` gives a group's part.
    own
        Positions of each group's directions, and of everybody's, among those of ``explanation``.
    cost
        Minimum cost of each affected input under all candidates of the other half, which everybody shares; ``inf``
        where there is no recourse. What is measured and tested rests on it.
    half
        Half of each affected input.
    groups, control
        The groups of all rows, and the levels that they were compared within.
    spreads
        For each measure the groups furthest apart.
    settings
        How it was judged.
    seed
        What the random draws started from.
    """

    overall: Measures
    by_group: Mapping[str, Measures]
    comparisons: tuple[Comparison, ...]
    exchange: Exchange
    checks: tuple[Check, ...]
    verdict: Verdict
    explanation: Explanation
    own: Mapping[str, tuple[int, ...]]
    cost: FloatArray
    half: IntArray
    groups: Groups
    control: Groups | None
    spreads: Mapping[str, Spread]
    settings: AuditSettings
    seed: int

    def __post_init__(self) -> None:
        freeze(self, "cost", "half")

    # -- fairlearn's grammar -------------------------------------------------------------------------------------

    def difference(
        self, measure: str = "score", *, method: Literal["between_groups", "to_overall"] = "between_groups"
    ) -> float:
        """Largest difference in a measure, between two groups or between a group and everybody; ``nan`` if none.

        Only groups that are large enough to be judged count. Its interval and p are in ``spreads``.
        """
        values = self._values(measure)
        check_choice("method", method, ("between_groups", "to_overall"))
        if method == "to_overall":
            whole = getattr(self.overall, measure)
            return float(np.abs(values - float(whole)).max()) if values.size else np.nan
        return float(values.max() - values.min()) if values.size else np.nan

    def ratio(
        self, measure: str = "score", *, method: Literal["between_groups", "to_overall"] = "between_groups"
    ) -> float:
        """Smallest ratio of a measure, of one group to another or between a group and everybody; ``nan`` if none.

        1 if all have the same. Only groups that are large enough to be judged count.
        """
        values = self._values(measure)
        check_choice("method", method, ("between_groups", "to_overall"))
        if not values.size:
            return np.nan
        if method == "between_groups":
            return _ratio(float(values.min()), float(values.max()))
        whole = float(getattr(self.overall, measure))
        return min(_ratio(min(value, whole), max(value, whole)) for value in values.tolist())

    def group_max(self, measure: str = "score") -> float:
        """Largest value of a measure among the groups judged."""
        return float(self._values(measure).max()) if self._values(measure).size else np.nan

    def group_min(self, measure: str = "score") -> float:
        """Smallest value of a measure among the groups judged."""
        return float(self._values(measure).min()) if self._values(measure).size else np.nan

    def _values(self, measure: str) -> FloatArray:
        check_choice("measure", measure, ALL_MEASURES)
        found = [float(getattr(m, measure)) for m in self.by_group.values() if m.judged]
        return np.array([value for value in found if not np.isnan(value)], dtype=np.float64)

    def to_frame(self) -> Any:
        """One row per group, and one for everybody; of the kind of frame that was given."""
        rows = {**self.by_group, EVERYBODY: self.overall}
        columns: dict[str, Any] = {"group": np.array(list(rows), dtype=object)}
        for name in ("n", "affected", *ALL_MEASURES, "median_cost", "judged"):
            columns[name] = np.array([getattr(m, name) for m in rows.values()])
        for name in MEASURES:
            for end, side in enumerate(("low", "high")):
                columns[f"{name}_{side}"] = np.array([getattr(m, f"{name}_interval")[end] for m in rows.values()])
        return self.explanation.space.table.like(columns)

    # -- views ---------------------------------------------------------------------------------------------------

    def labels(self) -> IntArray:
        """Group of each affected input; -1 for none."""
        return self.groups.labels[self.explanation.rows]

    def costs_of(self, group: str) -> FloatArray:
        """Minimum costs of a group's affected inputs."""
        return np.asarray(self.cost[self.labels() == self.groups.index(group)])

    def explanation_of(self, group: str) -> Explanation:
        """A group's own directions on its own affected inputs; ``"everybody"`` for all of them."""
        ex = self.explanation
        if not isinstance(group, str) or group != EVERYBODY:
            mine = np.flatnonzero(self.labels() == self.groups.index(group))
        else:
            mine = np.arange(ex.n_affected)
        chosen = np.array(self.own.get(group, self.own[EVERYBODY]), dtype=np.int64)
        return replace(
            ex,
            directions=ex.directions[chosen],
            encoded=ex.encoded[mine],
            rows=ex.rows[mine],
            scalars=ex.scalars[np.ix_(chosen, mine)],
            costs=ex.costs[np.ix_(chosen, mine)],
        )

    def subgroups(self, *, conditions: int = 2, top: int = 5, smallest: int | None = None) -> tuple[Subgroup, ...]:
        """The subgroups with the worst recourse, found on one half and confirmed on the other.

        Parameters
        ----------
        conditions
            Most conditions that describe a subgroup, 1 to 3.
        top
            How many to confirm; their p are corrected for as many.
        smallest
            Fewest affected inputs of a subgroup; by default as for groups.
        """
        least = self.settings.smallest if smallest is None else smallest
        return worst_subgroups(
            self.explanation.space, self.explanation.inputs, self.cost, self.half, self.explanation.budget,
            conditions=conditions, top=top, smallest=least, permutations=self.settings.permutations, seed=self.seed,
        )  # fmt: skip

    def summary(self) -> str:
        """The audit in a few lines: the verdict, and each group's numbers."""
        lines = [str(self.verdict), ""]
        for name, m in {**self.by_group, EVERYBODY: self.overall}.items():
            lines.append(
                f"{name}: {m.affected:,} of {m.n:,} affected ({m.rejection_rate:.1%}); "
                f"coverage {formatting.share(m.coverage)}, average cost {formatting.cost(m.average_cost)}, "
                f"score {formatting.cost(m.score)}{f' ({m.note})' if m.note else ''}"
            )
        lines += [f"Note: {w}." for w in self.verdict.warnings]
        return "\n".join(lines)

    def __repr__(self) -> str:
        v = self.verdict
        against = f", against={v.against!r}" if v.against else ""
        return f"Audit(by={self.groups.by!r}, groups={len(self.groups)}, conclusion={v.conclusion!r}{against})"

    # -- files ---------------------------------------------------------------------------------------------------

    @staticmethod
    def _format() -> Format[Audit]:
        from globece.io.audits import FORMAT

        return FORMAT


def check_exceeds(audit: Audit, gap: float) -> bool:
    """Whether a recourse bias was found whose size exceeds ``gap``: what a gate asks."""
    check_instance("audit", audit, Audit)
    gap = check_number("gap", gap)
    return audit.verdict.against is not None and abs(audit.verdict.size) > gap


def _ratio(smaller: float, larger: float) -> float:
    """Smaller over larger; 1 where they are the same, however small or large."""
    return 1.0 if smaller == larger else smaller / larger
