"""Summaries of rows that add up: those of two parts of a table make that of both, whatever the parts are.

Every number in a :class:`Summary` is a count, a largest value or an exact sum (:mod:`globece.distributed.sums`), so the
order in which parts are added changes nothing, not even the last digit. None grows with the number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from globece.case.recourse import Numbers
from globece.distributed.charts import Along
from globece.distributed.sums import as_text, exact_sums, from_text, rounded
from globece.distributed.task import EVERYBODY, Outcome, Task
from globece.explanation import Profile
from globece.space import FloatArray, IntArray

MOST_NOTES = 20
BINS = 1000  # of the budget: the limits at which the profile is known


@dataclass(frozen=True, eq=False, slots=True)
class Costs:
    """Minimum costs of some affected inputs, as a histogram over the budget.

    Attributes
    ----------
    budget
        The most that recourse may cost.
    affected
        How many they are.
    counts
        How many pay at most 0, and how many pay within each of ``BINS`` equal parts of the budget.
    sums
        What these pay in all, exactly; a cost past the budget by rounding counts as the budget.
    excess
        By how much such costs are past it.
    squares
        Sum of the squared costs, each rounded first.
    """

    budget: float
    affected: int
    counts: IntArray
    sums: tuple[int, ...]
    excess: int
    squares: int

    @classmethod
    def of(cls, costs: FloatArray, budget: float) -> Costs:
        """From the minimum cost of each affected input, ``inf`` for no recourse.

        Examples
        --------
        >>> Costs.of(np.array([1.0, 3.0, np.inf]), 10.0).numbers
        Numbers(n_affected=3, n_covered=2, coverage=0.6666666666666666, average_cost=2.0, score=4.666666666666667)
        """
        paid = costs[np.isfinite(costs)]
        capped = np.minimum(paid, budget)
        bins = np.searchsorted(limits(budget), capped, side="left").astype(np.int64)
        past = paid - capped
        return cls(
            budget=budget,
            affected=len(costs),
            counts=np.bincount(bins, minlength=BINS + 1),
            sums=tuple(exact_sums(capped, bins, BINS + 1)),
            excess=exact_sums(past[past > 0.0])[0],
            squares=exact_sums(capped * capped)[0],
        )

    def __add__(self, other: Costs) -> Costs:
        """Of all inputs of both."""
        return Costs(
            self.budget,
            self.affected + other.affected,
            self.counts + other.counts,
            tuple(a + b for a, b in zip(self.sums, other.sums, strict=True)),
            self.excess + other.excess,
            self.squares + other.squares,
        )

    @property
    def covered(self) -> int:
        """How many have recourse within the budget."""
        return int(self.counts.sum())

    @property
    def numbers(self) -> Numbers:
        """Coverage, average cost and score: the same as of all costs together."""
        n, covered = self.affected, self.covered
        if not n:
            return Numbers(0, 0, 1.0, 0.0, 0.0)
        paid = sum(self.sums)
        average = rounded(paid + self.excess) / covered if covered else float("inf")
        without = exact_sums(np.array([self.budget]))[0] * (n - covered)
        return Numbers(n, covered, covered / n, average, rounded(paid + without) / n)

    @property
    def variance(self) -> float:
        """Sample variance of what is paid, where no recourse counts as the budget; NaN for fewer than two inputs."""
        n = self.affected
        if n < 2:
            return float("nan")
        without = n - self.covered
        squares = rounded(self.squares) + without * self.budget**2
        return max(squares - n * self.numbers.score**2, 0.0) / (n - 1)

    def profile(self) -> Profile:
        """Coverage and average cost at ``BINS`` equally spaced limits on cost."""
        count, running, total = np.cumsum(self.counts), 0, []
        for part in self.sums:
            running += part
            total.append(rounded(running))
        with np.errstate(invalid="ignore"):
            average = np.where(count > 0, np.array(total) / np.maximum(count, 1), 0.0)
        return Profile(limits(self.budget), count / max(self.affected, 1), average)

    def to_dict(self) -> dict[str, Any]:
        """As plain data; empty bins are left out."""
        used = np.flatnonzero(self.counts).tolist()
        return {
            "affected": self.affected,
            "bins": [[i, int(self.counts[i]), as_text(self.sums[i])] for i in used],
            "excess": as_text(self.excess),
            "squares": as_text(self.squares),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], budget: float) -> Costs:
        """From what :meth:`to_dict` returned."""
        counts, sums = np.zeros(BINS + 1, dtype=np.int64), [0] * (BINS + 1)
        for i, count, total in data["bins"]:
            counts[i], sums[i] = count, from_text(total)
        more = from_text(data["excess"]), from_text(data["squares"])
        return cls(budget, data["affected"], counts, tuple(sums), *more)


def limits(budget: float) -> FloatArray:
    """The limits on cost at which the profile is known."""
    return np.linspace(0.0, budget, BINS + 1)


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """Rows of a group, and what its affected inputs would pay under each set of directions."""

    rows: int
    costs: Mapping[str, Costs]

    def __add__(self, other: Group) -> Group:
        """Of the rows of both."""
        return Group(self.rows + other.rows, {name: c + other.costs[name] for name, c in self.costs.items()})


@dataclass(frozen=True, eq=False, slots=True)
class Summary:
    """What is kept of some rows.

    Attributes
    ----------
    rows
        How many there are.
    everybody
        What the affected inputs pay, each under its cheapest direction.
    groups
        The same by group and set of directions.
    along
        For each direction, what its rules chart is drawn from.
    notes
        Warnings that came up, in alphabetical order; the first few.
    """

    rows: int
    everybody: Costs
    groups: Mapping[str, Group]
    along: tuple[Along, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def none(cls, task: Task) -> Summary:
        """Of no rows."""
        nobody = Costs.of(np.zeros(0), task.budget)
        return cls(0, nobody, {}, tuple(Along.none() for _ in task.directions))

    @classmethod
    def of(cls, task: Task, outcome: Outcome) -> Summary:
        """Of the rows of a batch."""
        least = {name: outcome.least(name) for name in outcome.sets}
        groups = {}
        if outcome.groups is not None:
            labels = outcome.labels()
            for g, name in enumerate(outcome.groups.names):
                mine = labels == g
                paid = {s: Costs.of(costs[mine], task.budget) for s, costs in least.items()}
                groups[name] = Group(int((outcome.groups.labels == g).sum()), paid)
        along = tuple(
            Along.of(task.cost, delta, outcome.inputs, k, paid)
            for delta, k, paid in zip(task.directions, outcome.scalars, outcome.costs, strict=True)
        )
        everybody = Costs.of(least[EVERYBODY], task.budget)
        return cls(len(outcome.affected), everybody, groups, along, _first(outcome.notes))

    def __add__(self, other: Summary) -> Summary:
        """Of the rows of both."""
        groups = {**self.groups, **other.groups}
        for name in self.groups.keys() & other.groups.keys():
            groups[name] = self.groups[name] + other.groups[name]
        return Summary(
            self.rows + other.rows,
            self.everybody + other.everybody,
            dict(sorted(groups.items())),
            tuple(a + b for a, b in zip(self.along, other.along, strict=True)),
            _first((*self.notes, *other.notes)),
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain data: the same summary gives the same text."""
        return {
            "rows": self.rows,
            "budget": self.everybody.budget,
            "everybody": self.everybody.to_dict(),
            "groups": {
                name: {"rows": g.rows, "costs": {s: c.to_dict() for s, c in sorted(g.costs.items())}}
                for name, g in sorted(self.groups.items())
            },
            "along": [a.to_dict() for a in self.along],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Summary:
        """From what :meth:`to_dict` returned."""
        budget = data["budget"]
        groups = {
            name: Group(g["rows"], {s: Costs.from_dict(c, budget) for s, c in g["costs"].items()})
            for name, g in data["groups"].items()
        }
        along = tuple(map(Along.from_dict, data["along"]))
        return cls(data["rows"], Costs.from_dict(data["everybody"], budget), groups, along, tuple(data["notes"]))


def _first(notes: tuple[str, ...]) -> tuple[str, ...]:
    """The first few in alphabetical order: of two parts the same as of their rows together."""
    return tuple(sorted(set(notes))[:MOST_NOTES])
