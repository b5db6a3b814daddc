"""Figures that are tables: the cumulative rules chart, the first counterfactuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from globece import formatting
from globece.errors import check_count, check_instance
from globece.explanation import Explanation
from globece.plots.axes import Display
from globece.plots.layout import Row, Table
from globece.plots.style import (
    check_axes,
    colour,
    inches,
    nobody_affected,
    nobody_covered,
    number_text,
)
from globece.rules import ChartRow, RuleLine
from globece.space import Feature, FeatureSpace, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NARROW = 5.2  # inches
ARROW = "\N{RIGHTWARDS ARROW}"


_CHART_HEAD = ["New\ninputs", "Cost", "All inputs", "Cost"]


@dataclass(eq=False)
class RulesChartDisplay(Display):
    """The cumulative rules chart of one direction, as a table with a bar for the coverage.

    Attributes
    ----------
    rows
        The chart's rows, without those that add neither a rule nor an input.
    lines
        For each row what it says: its rules, then what else moves and by how much at most.
    direction
        The direction that the chart explains.
    note
        What to write if there is nothing to draw.
    ax_, figure_
        What was drawn on, once ``plot`` was called.
    """

    rows: tuple[ChartRow, ...]
    lines: tuple[tuple[RuleLine, ...], ...]
    direction: int = 0
    note: str | None = None

    @classmethod
    def from_explanation(cls, ex: Explanation, direction: int = 0, *, rows: int = 5, spacing: str = "equal") -> Self:
        """Take the chart of one direction out of an explanation.

        Parameters
        ----------
        ex
            The explanation.
        direction
            Which direction, counted from 0.
        rows, spacing
            As for :meth:`globece.Explanation.rules_chart`.
        """
        check_instance("ex", ex, Explanation)
        direction = check_count("direction", direction, low=0)
        note = nobody_affected(ex)
        if note or not ex.n_directions:
            return cls((), (), direction, note or nobody_covered(ex))
        chart = ex.rules_chart(direction, rows=rows, spacing=spacing)
        if not chart.rows[-1].coverage:
            note = f"Direction {direction + 1} gives nobody recourse within the budget of {ex.budget:g}."
        kept = tuple(row for row in chart.rows if row.rules or row.new_coverage)  # the others say nothing new
        return cls(kept, tuple(row.lines for row in kept), direction, note)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the chart.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure, as high as the chart needs, by default.
        """
        title = f"Direction {self.direction + 1}"
        if not self.note:
            title += f" covers {self.rows[-1].coverage:.1%} at an average cost of {self.rows[-1].cost:.2f}"
        check_axes(ax, "RulesChartDisplay.plot")
        narrow = ax is not None and inches(ax)[0] < NARROW
        table = Table(
            head=[*(["New rule added"] if narrow else ["Feature", "New rule added"]), *_CHART_HEAD],
            body=self._body(narrow),
            wraps=(0,) if narrow else (0, 1),
            bar=3 if narrow else 4,
            title=title,
            colour=colour(self.direction),
        )
        self.ax_, self.figure_ = table.draw(ax, "RulesChartDisplay.plot", self.note)
        return self

    def _body(self, narrow: bool) -> list[Row]:
        """Each feature beside its rule, or above it on a narrow page."""
        body = []
        for row, lines in zip(self.rows, self.lines, strict=True):
            for i, line in enumerate(lines):
                numbers, mark = (_chart_numbers(row), row) if i == 0 else ([""] * 4, None)
                text = [line.feature, line.text]
                if narrow:
                    text = [" ".join(text)] if line.aside else [line.feature]
                body.append(Row([*text, *numbers], i == 0, None if line.aside else 0, line.aside, mark))
                if narrow and not line.aside:
                    body.append(Row([line.text, *[""] * 4], False))
        return body


@dataclass(frozen=True, slots=True)
class Change:
    """One feature of one counterfactual, in words."""

    feature: str
    before: str
    after: str


@dataclass(eq=False)
class CounterfactualsDisplay(Display):
    """The first few covered inputs before and after: a table of what each of them changes.

    Attributes
    ----------
    inputs, directions, costs
        Positions of the inputs shown among the rows given, the direction that each takes, and its cost.
    changes
        What each of them changes; nothing else is listed.
    n_covered
        Number of covered inputs, shown or not.
    note
        What to write if there is nothing to draw.
    ax_, figure_
        What was drawn on, once ``plot`` was called.
    """

    inputs: tuple[int, ...]
    directions: tuple[int, ...]
    costs: tuple[float, ...]
    changes: tuple[tuple[Change, ...], ...]
    n_covered: int
    note: str | None = None

    @classmethod
    def from_explanation(cls, ex: Explanation, *, n: int = 8) -> Self:
        """Take the first ``n`` counterfactuals out of an explanation."""
        check_instance("ex", ex, Explanation)
        n = check_count("n", n)
        note = nobody_affected(ex) or nobody_covered(ex)
        if note:
            return cls((), (), (), (), 0, note)
        found = ex.counterfactuals()
        before, after = ex.space.encode(found.before)[:n], ex.space.encode(found.after)[:n]
        return cls(
            tuple(found.row[:n].tolist()),
            tuple(found.direction[:n].tolist()),
            tuple(found.cost[:n].tolist()),
            tuple(_changes(ex.space, x, y) for x, y in zip(before, after, strict=True)),
            ex.n_covered,
        )

    def plot(self, ax: Axes | None = None, *, most_changes: int = 4) -> Self:
        """Draw the table.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure, as high as the table needs, by default.
        most_changes
            Most features to list for one input; the others are counted.
        """
        most_changes = check_count("most_changes", most_changes)
        several = len(set(self.directions)) > 1
        head = ["Input", "Feature", "Change", "Cost", *(["Direction"] if several else [])]
        body: list[Row] = []
        for row, direction, cost, changes in zip(self.inputs, self.directions, self.costs, self.changes, strict=True):
            lines = [(c.feature, f"{c.before} {ARROW} {c.after}") for c in changes[:most_changes]]
            if len(changes) > most_changes:
                lines.append((f"{len(changes) - most_changes} more features", ""))
            for i, (feature, change) in enumerate(lines or [("(no feature)", "")]):
                first = i == 0
                place, paid, taken = (f"{row:,}", formatting.cost(cost, 2), f"{direction + 1}") if first else ("",) * 3
                cells = [place, feature, change, paid, taken][: len(head)]
                body.append(Row(cells, first, 2, dot=colour(direction) if first and several else None))
        title = f"Counterfactuals: the first {len(self.inputs)} of {self.n_covered:,} covered inputs"
        table = Table(head, body, wraps=(1, 2), title=title)
        self.ax_, self.figure_ = table.draw(ax, "CounterfactualsDisplay.plot", self.note)
        return self


def _chart_numbers(row: ChartRow) -> list[str]:
    return [f"{row.new_coverage:+.1%}", formatting.cost(row.new_cost, 2), "", formatting.cost(row.cost, 2)]


def _changes(space: FeatureSpace, before: FloatArray, after: FloatArray) -> tuple[Change, ...]:
    changes = []
    for f in space.features:
        x, y = before[f.columns], after[f.columns]
        if np.array_equal(x, y, equal_nan=True):
            continue
        changes.append(Change(f.name, _value(f, x), _value(f, y)))
    return tuple(changes)


def _value(feature: Feature, part: FloatArray) -> str:
    if feature.is_block:
        return feature.label(feature.categories[int(part.argmax())])
    if np.isnan(part[0]):
        return "(missing)"
    if feature.kind == "ordinal":
        return feature.label(feature.categories[int(part[0])])
    return number_text(float(part[0]))
