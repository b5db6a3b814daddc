"""Measures of the groups: a mapping by name, and a frame of the kind that was given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from globece import formatting
from globece.auditing.criteria import DISTANCE, REJECTION, Criterion
from globece.auditing.exchange import EVERYBODY
from globece.auditing.measures import EVERYBODY_ELSE, Measures
from globece.auditing.statistics import MEASURES
from globece.tables import Table

ALL_MEASURES = ("rejection_rate", *MEASURES)


class ByGroup(Mapping[str, Measures]):
    """Measures of each group by name; ``frame`` has them as a frame, with everybody in the last row.

    Parameters
    ----------
    groups, overall
        Measures of each group, and of everybody.
    criteria
        What the score hides: the values of each group that a comparison names first.
    table
        A table of the kind that was given.
    """

    __slots__ = ("_criteria", "_groups", "_overall", "_table")

    def __init__(
        self, groups: Mapping[str, Measures], overall: Measures, criteria: Sequence[Criterion], table: Table
    ) -> None:
        self._groups, self._overall, self._criteria, self._table = dict(groups), overall, tuple(criteria), table

    def __getitem__(self, name: str) -> Measures:
        return self._groups[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def __eq__(self, other: object) -> bool:
        return dict(self) == dict(other) if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ByGroup({list(self._groups)})"

    @property
    def frame(self) -> Any:
        """One row per group, and one for everybody; a frame of the kind that was given."""
        rows = {**self._groups, EVERYBODY: self._overall}
        columns: dict[str, Any] = {"group": np.array(list(rows), dtype=object)}
        for name in ("n", "affected", *ALL_MEASURES, "median_cost", "judged"):
            columns[name] = np.array([getattr(m, name) for m in rows.values()])
        for name in ALL_MEASURES:
            for end, side in enumerate(("low", "high")):
                columns[f"{name}_{side}"] = np.array([getattr(m, f"{name}_interval")[end] for m in rows.values()])
        for name in dict.fromkeys(c.name for c in self._criteria if c.name not in (DISTANCE, REJECTION)):
            values = self._values(name)
            columns[name] = np.array([values.get(group, np.nan) for group in rows])
        return self._table.like(columns)

    def _values(self, criterion: str) -> dict[str, float]:
        found: dict[str, float] = {}
        for c in self._criteria:
            if c.name == criterion:
                if c.other != EVERYBODY_ELSE:
                    found.setdefault(c.other, c.two)
                found[c.group] = c.one
        return found

    def _repr_html_(self) -> str:
        """For notebooks: the groups as a table."""
        head = ("Group", "Rows", "Affected", "Rejected", "Coverage", "Average cost", "Score", "")
        rows = [
            [
                name,
                f"{m.n:,}",
                f"{m.affected:,}",
                formatting.share(m.rejection_rate),
                formatting.share(m.coverage),
                formatting.cost(m.average_cost, 2),
                formatting.cost(m.score, 2),
                m.note,
            ]
            for name, m in {**self._groups, EVERYBODY: self._overall}.items()
        ]
        return formatting.html_table(head, rows)
