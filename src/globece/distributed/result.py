"""The result for a large table: the directions, the sample they were found on, and what all rows add up to."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from globece import formatting
from globece.case.recourse import Numbers
from globece.distributed.charts import chart
from globece.distributed.manifest import FOLDER, replace_with
from globece.distributed.sources import Source
from globece.distributed.summary import Summary
from globece.distributed.task import Task
from globece.errors import InvalidParameterError, check_count, wrong
from globece.explanation import Explanation, Profile
from globece.rules import RulesChart
from globece.space import FloatArray

SUMMARY = "summary.json"
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Sampled:
    """How the sample was drawn on which the directions were searched.

    Attributes
    ----------
    rows
        Rows of the sample.
    affected
        Affected inputs among those that were drawn, of which the sample has ``searched``.
    searched
        Affected inputs on which directions were searched, spread evenly over the model's scores where it has any.
    pilot
        Affected inputs that told how many are needed.
    wanted
        Relative half-width that the interval of the score was to have.
    score, low, high
        The score on the sample, with its 95 % interval; of a sample drawn before the directions were chosen, so it is
        a little too low.
    seed
        Of the draw.
    """

    rows: int
    affected: int
    searched: int
    pilot: int
    wanted: float
    score: float
    low: float
    high: float
    seed: int

    def __str__(self) -> str:
        """As a note."""
        return (
            f"directions were searched on {self.searched:,} affected inputs of a sample of {self.rows:,} rows, where "
            f"the score is {self.score:.4g} (95 % interval {self.low:.4g} to {self.high:.4g}, wanted within "
            f"{self.wanted:.1%})"
        )


@dataclass(frozen=True, eq=False)
class Portfolio:
    """Directions, and what they give every row of a large table.

    Attributes
    ----------
    explanation
        The directions on the sample that they were found on, with all its views.
    summary
        Counts and sums over all rows.
    described
        What the rows are, in words.
    method
        ``"exact"`` or ``"searched"``, as for an explanation.
    sampled
        How the sample was drawn; ``None`` where the directions were given.
    path
        The folder with the results by row; ``None`` if they were not kept.
    """

    explanation: Explanation
    summary: Summary
    described: str
    method: str
    sampled: Sampled | None = None
    path: Path | None = field(default=None)

    @classmethod
    def of(
        cls,
        explanation: Explanation,
        task: Task,
        summary: Summary,
        source: Source,
        out: Any,
        sampled: Sampled | None = None,
    ) -> Portfolio:
        """The result, which is written to its folder as well."""
        method = "exact" if task.model.exact else "searched"
        found = cls(
            explanation, summary, source.described, method, sampled, None if out is None else Path(out).absolute()
        )
        if found.path is not None:
            replace_with(found.path / SUMMARY, json.dumps(found.to_dict()).encode())
        return found

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.summary.rows

    @property
    def directions(self) -> FloatArray:
        """One per row."""
        return self.explanation.directions

    @property
    def numbers(self) -> Numbers:
        """Coverage, average cost and score over all affected inputs."""
        return self.summary.everybody.numbers

    @property
    def coverage(self) -> float:
        """Share of the affected inputs with recourse within the budget."""
        return self.numbers.coverage

    @property
    def average_cost(self) -> float:
        """Mean minimum cost over the covered inputs."""
        return self.numbers.average_cost

    @property
    def score(self) -> float:
        """Mean minimum cost over the affected inputs, where no recourse counts as the budget."""
        return self.numbers.score

    def profile(self) -> Profile:
        """Coverage and average cost at 1,001 equally spaced limits on cost."""
        return self.summary.everybody.profile()

    def rules_chart(self, direction: int = 0, *, rows: int = 5) -> RulesChart:
        """The cumulative rules chart of one direction over all rows."""
        i = check_count("direction", direction, low=0)
        if i >= len(self.directions):
            raise wrong("direction", f"below {len(self.directions)}, the number found", direction)
        n = self.summary.everybody.affected
        return chart(
            self.explanation.cost, self.directions[i], self.summary.along[i], n, rows=check_count("rows", rows)
        )

    def dataset(self) -> ds.Dataset:
        """The results by row, as a PyArrow dataset that reads them where they lie."""
        if self.path is None:
            raise InvalidParameterError("the results by row were not kept; name a folder with out=")
        files = sorted((self.path / FOLDER).glob("part-*.parquet"))
        return ds.dataset([str(f) for f in files], format="parquet")

    def rows(self) -> pa.Table:
        """The results by row: identifier, affected, direction (-1: no recourse), scalar and cost, in memory."""
        return self.dataset().to_table()

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain data."""
        p, n = self.explanation.provenance, self.numbers
        columns = self.explanation.space.columns
        sampled = self.sampled
        return {
            "rows": self.n_rows,
            "data": self.described,
            "model": p.model,
            "favourable": p.favourable,
            "method": self.method,
            "budget": self.explanation.budget,
            "affected": n.n_affected,
            "covered": n.n_covered,
            "coverage": n.coverage,
            "average_cost": n.average_cost if np.isfinite(n.average_cost) else None,
            "score": n.score,
            "directions": [
                {columns[i]: float(delta[i]) for i in np.flatnonzero(delta).tolist()} for delta in self.directions
            ],
            "sample": None if sampled is None else {name: getattr(sampled, name) for name in sampled.__slots__},
            "notes": list(self.summary.notes),
            "summary": self.summary.to_dict(),
        }

    def __str__(self) -> str:
        """The result in a few lines."""
        n, p = self.numbers, self.explanation.provenance
        if not n.n_affected:
            return f"Nobody is affected: all {self.n_rows:,} rows have the favourable outcome ({p.favourable})."
        k = len(self.directions)
        lines = [
            f"{n.n_affected:,} of {self.n_rows:,} rows are affected; favourable: {p.favourable}; model: {p.model}.",
            f"{k} direction{'s cover' if k > 1 else ' covers'} {n.coverage:.1%} at an average cost of "
            f"{formatting.cost(n.average_cost)} within a budget of {self.explanation.budget:g} (score {n.score:.3f}).",
            f"{n.n_affected - n.n_covered:,} have no recourse within the budget.",
        ]
        if self.sampled is not None:
            lines.append(f"Note: {self.sampled}.")
        lines += [f"Note: {note}." for note in self.summary.notes]
        if self.path is not None:
            lines.append(f"Results by row: {self.path / FOLDER}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """A short description."""
        n = self.numbers
        return (
            f"Portfolio(n_rows={self.n_rows}, n_directions={len(self.directions)}, n_affected={n.n_affected}, "
            f"coverage={n.coverage:.3f}, average_cost={n.average_cost:.3f}, score={n.score:.3f})"
        )
