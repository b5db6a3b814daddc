"""The result of an audit: frozen, with methods named as in fairlearn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from globece import formatting
from globece.auditing.artefact import Check
from globece.auditing.basis import Basis
from globece.auditing.bygroup import ALL_MEASURES, ByGroup
from globece.auditing.conclusions import CONCLUSIONS
from globece.auditing.criteria import AsOther, Criterion, LevelGap
from globece.auditing.curves import Curve
from globece.auditing.exchange import EVERYBODY, Exchange
from globece.auditing.groups import Groups
from globece.auditing.measures import Comparison, Measures, Spread
from globece.auditing.settings import AuditSettings
from globece.auditing.subgroups import Subgroup, worst_subgroups
from globece.auditing.verdict import Verdict
from globece.errors import InvalidParameterError, check_choice, check_flag, check_instance, check_number
from globece.explanation import Explanation, MeanTranslation
from globece.kept import freeze
from globece.saving import FORMATS, Saved
from globece.space import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Audit(Saved):
    """Whether one group's recourse costs more, or covers fewer, than another's.

    Attributes
    ----------
    overall, by_group
        Measures of all rows, and of each group by name; see :class:`globece.auditing.measures.Measures`.
    comparisons
        Each group against the others, with intervals, tests, and what follows from them: the decision table.
    criteria
        Burden, share within a cost, cost of half, choice and distance of the cost curves, for each comparison.
    by_level
        The gaps in score within each level of the control.
    as_other
        What members of each group would pay as members of another, where the model takes the group.
    exchange
        Each group's directions applied to each group.
    checks
        Whether gaps keep their size with more candidates, other costs, and lower bounds.
    verdict
        The conclusion.
    explained
        All directions that a group, or everybody, chose on all affected inputs, with their scalars and costs; without
        the inputs, if the audit was read from a file that has no members. ``explanation`` gives the same, or raises if
        it has no inputs; ``explanation_of`` gives a group's part.
    own
        Positions of each group's directions, and of everybody's, among those of ``explained``.
    curves, translations
        The cost curve of each group and of everybody, and what recourse changes for them.
    cost
        Minimum cost of each affected input under all candidates that were found without its fold, which all groups
        share; ``inf`` where there is no recourse. All measures and tests are based on it.
    fold
        Fold of each affected input.
    groups, control
        The groups of all rows, and the levels within which they were compared.
    clusters
        Whose row each row is; ``None`` if each is of another person.
    spreads
        For each measure the groups furthest apart.
    settings
        Its settings.
    basis
        What it rests on: everything that changes its answer.
    seed
        The seed of all random draws.
    members
        Whether it has the rows, groups and costs of each person.
    """

    overall: Measures
    by_group: ByGroup
    comparisons: tuple[Comparison, ...]
    criteria: tuple[Criterion, ...]
    by_level: tuple[LevelGap, ...]
    as_other: tuple[AsOther, ...]
    exchange: Exchange
    checks: tuple[Check, ...]
    verdict: Verdict
    explained: Explanation
    own: Mapping[str, tuple[int, ...]]
    curves: Mapping[str, Curve]
    translations: Mapping[str, MeanTranslation]
    cost: FloatArray
    fold: IntArray
    groups: Groups
    control: Groups | None
    clusters: IntArray | None
    spreads: Mapping[str, Spread]
    settings: AuditSettings
    basis: Basis
    seed: int
    members: bool = True

    def __post_init__(self) -> None:
        freeze(self, "cost", "fold", *(() if self.clusters is None else ("clusters",)))

    # -- as in fairlearn -----------------------------------------------------------------------------------------

    def difference(
        self, measure: str = "score", *, method: Literal["between_groups", "to_overall"] = "between_groups"
    ) -> float:
        """Largest difference in a measure, between two groups or between a group and everybody; ``nan`` if none.

        Only groups that are large enough count. Its interval and p are in ``spreads``. With ``control`` it is the
        difference within levels, as in the verdict; there is none to everybody then.
        """
        values = self._values(measure)
        check_choice("method", method, ("between_groups", "to_overall"))
        if self._is_adjusted(measure, method):
            return abs(self.spreads[measure].value) if measure in self.spreads else np.nan
        if method == "to_overall":
            whole = getattr(self.overall, measure)
            return float(np.abs(values - float(whole)).max()) if values.size else np.nan
        return float(values.max() - values.min()) if values.size else np.nan

    def ratio(
        self, measure: str = "score", *, method: Literal["between_groups", "to_overall"] = "between_groups"
    ) -> float:
        """Smallest ratio of a measure, of one group to another or between a group and everybody; ``nan`` if none.

        1 if all are equal. Only groups that are large enough count. With ``control`` it is that of the two groups
        furthest apart within levels.
        """
        values = self._values(measure)
        check_choice("method", method, ("between_groups", "to_overall"))
        if self._is_adjusted(measure, method):
            two = self.spreads[measure].values if measure in self.spreads else (np.nan, np.nan)
            return _ratio(min(two), max(two))
        if not values.size:
            return np.nan
        if method == "between_groups":
            return _ratio(float(values.min()), float(values.max()))
        whole = float(getattr(self.overall, measure))
        return min(_ratio(min(value, whole), max(value, whole)) for value in values.tolist())

    def _is_adjusted(self, measure: str, method: str) -> bool:
        """Whether a difference is taken within levels of the control."""
        if self.control is None or measure == "rejection_rate":
            return False
        if method == "to_overall":
            raise InvalidParameterError(
                "method='to_overall' has no value within levels of a control; take 'between_groups', or see comparisons"
            )
        return True

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

    def decisions(self) -> Any:
        """The decision table: one row per comparison, the worst first; a frame of the type that was given."""
        ranked = sorted(self.comparisons, key=lambda c: CONCLUSIONS.index(c.decision.conclusion))
        columns: dict[str, Any] = {
            "group": [c.group for c in ranked],
            "other": [c.other for c in ranked],
            "conclusion": [c.decision.conclusion for c in ranked],
        }
        named = {name: np.array(values, dtype=object) for name, values in columns.items()}
        for name in ("value", "low", "high", "p_adjusted", "detectable"):
            named["gap" if name == "value" else name] = np.array([getattr(c.gaps["score"], name) for c in ranked])
        for name in ("margin", "p_within", "power"):
            named[name] = np.array([getattr(c.decision, name) for c in ranked])
        return self.explained.space.table.like(named)

    def to_frame(self) -> Any:
        """One row per group, and one for everybody; a frame of the type that was given."""
        return self.by_group.frame

    # -- members -------------------------------------------------------------------------------------------------

    @property
    def explanation(self) -> Explanation:
        """All directions that a group, or everybody, chose on all affected inputs."""
        self._need_members()
        return self.explained

    def _need_members(self) -> None:
        if not self.members:
            raise InvalidParameterError(
                "this audit was read from a file without its members; to_json(path, members=True) keeps each "
                "person's row, group and cost (--members on the command line)"
            )

    def without_members(self) -> Audit:
        """The same without the rows, groups and costs of each person."""
        nobody, none = np.zeros(0, dtype=np.int64), np.zeros((self.explained.n_directions, 0))
        ex = self.explained
        known = ex.n_affected + ex.n_unknown if self.members else ex.n_unknown
        return replace(
            self,
            explained=replace(
                ex, encoded=ex.encoded[nobody], rows=nobody, scalars=none, costs=none, n_unknown=known, model=None
            ),
            cost=none[:0].reshape(0),
            fold=nobody,
            groups=replace(self.groups, labels=nobody),
            control=None if self.control is None else replace(self.control, labels=nobody),
            clusters=None,
            members=False,
        )

    def to_dict(self, *, members: bool = False) -> dict[str, Any]:
        """Return the audit as plain data, as :meth:`to_json` writes it."""
        return FORMATS[Audit].to_dict(self if check_flag("members", members) else self.without_members())

    def to_json(self, path: Any = None, *, members: bool = False) -> str:
        """Write versioned JSON to ``path``, in one piece or not at all, and return it as text.

        Parameters
        ----------
        path
            Where to; ``None`` only returns the text.
        members
            Whether to write the row, group and cost of each person too.
        """
        return FORMATS[Audit].write(self if check_flag("members", members) else self.without_members(), path)

    # -- views ---------------------------------------------------------------------------------------------------

    def labels(self) -> IntArray:
        """Group of each affected input; -1 for none."""
        self._need_members()
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
        return part_of(ex, chosen, mine)

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
        self._need_members()
        without = float(np.isinf(self.cost).mean()) if len(self.cost) else 0.0
        least = self.settings.least(without) if smallest is None else smallest
        return worst_subgroups(
            self.explanation.space, self.explanation.inputs, self.cost, self.fold % 2, self.explanation.budget,
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
        lines += [f"Note: {w}." for w in self.verdict.warnings if w not in self.verdict.text]
        return "\n".join(lines)

    def __repr__(self) -> str:
        v = self.verdict
        against = f", against={v.against!r}" if v.against else ""
        return f"Audit(by={self.groups.by!r}, groups={len(self.groups)}, conclusion={v.conclusion!r}{against})"


def part_of(ex: Explanation, chosen: IntArray, members: IntArray) -> Explanation:
    """An explanation with some of its directions, for some of its affected inputs."""
    return replace(
        ex,
        directions=ex.directions[chosen],
        encoded=ex.encoded[members],
        rows=ex.rows[members],
        scalars=ex.scalars[np.ix_(chosen, members)],
        costs=ex.costs[np.ix_(chosen, members)],
    )


def check_exceeds(audit: Audit, gap: float) -> bool:
    """Whether any group's gap in score is significant and larger than ``gap``, or unknown; see :mod:`.gates`."""
    check_instance("audit", audit, Audit)
    gap = check_number("gap", gap)
    found = [c.gaps["score"] for c in audit.comparisons]
    known = [g for g in found if np.isfinite([g.value, g.p_adjusted]).all()]
    level = audit.settings.level
    return len(known) < len(found) or not found or any(g.p_adjusted < level and abs(g.value) > gap for g in known)


def _ratio(smaller: float, larger: float) -> float:
    """Smaller over larger; 1 if they are equal, even if both are 0 or infinite."""
    return 1.0 if smaller == larger else smaller / larger
