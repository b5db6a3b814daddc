"""The result of an audit: frozen, with methods named as in fairlearn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

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

ALL_MEASURES = ("rejection_rate", *MEASURES)


@dataclass(frozen=True, eq=False)
class Audit(Saved):
    """Whether one group's recourse costs more, or covers fewer, than another's.

    Attributes
    ----------
    overall, by_group
        Measures of all rows, and of each group by name; see :class:`globece.auditing.measures.Measures`.
    comparisons
        Each group against the others, with intervals and tests.
    exchange
        Each group's directions applied to each group.
    checks
        Whether the verdict holds with more candidates, other costs, and lower bounds.
    verdict
        The conclusion.
    explanation
        All directions that a group, or everybody, chose on all affected inputs, with their scalars and costs.
        ``explanation_of`` gives a group's part.
    own
        Positions of each group's directions, and of everybody's, among those of ``explanation``.
    cost
        Minimum cost of each affected input under all candidates of the other half, which all groups share; ``inf``
        where there is no recourse. All measures and tests are based on it.
    half
        Half of each affected input.
    groups, control
        The groups of all rows, and the levels within which they were compared.
    spreads
        For each measure the groups furthest apart.
    settings
        Its settings.
    seed
        The seed of all random draws.
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

    # -- as in fairlearn -----------------------------------------------------------------------------------------

    def difference(
        self, measure: str = "score", *, method: Literal["between_groups", "to_overall"] = "between_groups"
    ) -> float:
        """Largest difference in a measure, between two groups or between a group and everybody; ``nan`` if none.

        Only groups that are large enough count. Its interval and p are in ``spreads``.
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

        1 if all are equal. Only groups that are large enough count.
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
        """Largest value of a measure among the groups that are large enough."""
        return float(self._values(measure).max()) if self._values(measure).size else np.nan

    def group_min(self, measure: str = "score") -> float:
        """Smallest value of a measure among the groups that are large enough."""
        return float(self._values(measure).min()) if self._values(measure).size else np.nan

    def _values(self, measure: str) -> FloatArray:
        check_choice("measure", measure, ALL_MEASURES)
        found = [float(getattr(m, measure)) for m in self.by_group.values() if m.judged]
        return np.array([value for value in found if not np.isnan(value)], dtype=np.float64)

    def to_frame(self) -> Any:
        """One row per group, and one for everybody; a frame of the type that was given."""
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
        """The directions chosen for a group, on its affected inputs; ``"everybody"`` for all of them."""
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
            How many to test; their p-values are corrected for that many tests.
        smallest
            Fewest affected inputs of a subgroup; by default as for groups.
        """
        least = self.settings.smallest if smallest is None else smallest
        return worst_subgroups(
            self.explanation.space, self.explanation.inputs, self.cost, self.half, self.explanation.budget,
            conditions=conditions, top=top, smallest=least, permutations=self.settings.permutations, seed=self.seed,
        )  # fmt: skip

    def summary(self) -> str:
        """The audit in a few lines: the verdict, and each group's measures."""
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


def check_exceeds(audit: Audit, gap: float) -> bool:
    """Whether a recourse bias larger than ``gap`` was found, for use in a CI gate."""
    check_instance("audit", audit, Audit)
    gap = check_number("gap", gap)
    return audit.verdict.against is not None and abs(audit.verdict.size) > gap


def _ratio(smaller: float, larger: float) -> float:
    """Smaller over larger; 1 if they are equal, even if both are 0 or infinite."""
    return 1.0 if smaller == larger else smaller / larger
