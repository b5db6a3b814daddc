"""Tables drawn as text, with columns that are measured and wrapped so that they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from globece.errors import require
from globece.plots.style import (
    FAINT,
    INK,
    MUTED,
    inches,
    prepare,
    text_width,
    wrap,
    write,
    write_note,
)
from globece.rules import ChartRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


TALLEST = 11.0  # inches
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
Columns = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table.

    Attributes
    ----------
    cells
        Text of each cell.
    ruled
        Whether a rule is drawn above it.
    bold
        The cell in bold, if any.
    muted
        Whether it is an aside.
    mark
        The row of a rules chart whose bar is drawn.
    dot
        Colour of a dot before the last cell.
    """

    cells: Sequence[str]
    ruled: bool
    bold: int | None = None
    muted: bool = False
    mark: ChartRow | None = None
    dot: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table drawn as text, in inches: some columns are wrapped, and the font shrinks until it fits."""

    head: Sequence[str]
    body: Sequence[Row]
    wraps: tuple[int, ...]
    title: str
    bar: int | None = None
    colour: str = INK

    def draw(self, ax: Axes | None, caller: str, note: str | None) -> tuple[Axes, Figure]:
        """Draw on the axes given, or on a new figure that is as high as the table."""
        plt = require("matplotlib.pyplot", extra="plot", caller=caller)
        if ax is None:
            height = 1.4 if note else self._layout(7.6, self._size(7.6, TALLEST))[1]
            ax = plt.figure(figsize=(7.6, min(height, TALLEST))).add_axes((0.0, 0.0, 1.0, 1.0))
        ax, figure = prepare(ax, (7.6, 1.4), caller)
        ax.set_axis_off()
        if note:
            write_note(ax, note)
            return ax, figure
        width, height = inches(ax)
        size = self._size(width, height)
        ax.set_xlim(0, width)
        ax.set_ylim(height, 0)
        self._write(ax, self._layout(width, size)[0], size, (width, height))
        return ax, figure

    def _size(self, width: float, height: float) -> float:
        """The largest font size from 9 down to 6 with which everything fits."""
        sizes = np.arange(9.0, 6.0, -0.25).tolist()
        return next((s for s in sizes if self._layout(width, s)[1] <= height * 1.001), 6.0)

    def _layout(self, width: float, size: float) -> tuple[Columns, float]:
        """Left and right of each column, and the total height."""
        gap, edge, line = size / 42, _edge(size), _line(size)
        widths = [
            max(
                text_width(t, size, True)
                for cell in (self.head[j], *(r.cells[j] for r in self.body))
                for t in cell.split("\n")
            )
            for j in range(len(self.head))
        ]
        if self.bar is not None:
            widths[self.bar] = max(min(1.5, 0.2 * width), 6.0 * size / 72)
        room = width - 2 * edge - gap * (len(widths) - 1)
        left = max(room - sum(w for j, w in enumerate(widths) if j not in self.wraps), 0.2 * room)
        # Wrapped columns share what is left: as wide as they need if that fits, else roughly in proportion.
        wanted = np.array([widths[j] for j in self.wraps])
        share = wanted / wanted.sum()
        if wanted.sum() > left:
            share = np.clip(share, 0.36, 1.0)
            share = np.minimum(share / share.sum(), wanted / left)
            share[-1] = 1.0 - share[:-1].sum()
        for j, part in zip(self.wraps, share, strict=True):
            widths[j] = float(part) * left
        columns, x = [], edge
        for w in widths:
            columns.append((x, x + w))
            x += w + gap
        height = self._top(size, width) + 0.6 * line
        height += line * sum(self._lines(row, columns, size) + 0.6 * row.ruled for row in self.body)
        return columns, height

    def _top(self, size: float, width: float) -> float:
        """Where the body begins: below title and head."""
        heads = max(h.count("\n") + 1 for h in self.head)
        return (len(self._title(size, width)) * 1.25 + heads * 0.95 + 1.15) * _line(size)

    def _title(self, size: float, width: float) -> list[str]:
        return wrap(self.title, width - 2 * _edge(size), size + 1.5, True)

    def _lines(self, row: Row, columns: Columns, size: float) -> int:
        return max(len(self._cell(row, j, columns, size)) for j in range(len(self.head)))

    def _cell(self, row: Row, j: int, columns: Columns, size: float) -> list[str]:
        if j not in self.wraps:
            return [row.cells[j]]
        return wrap(row.cells[j], columns[j][1] - columns[j][0] + 0.01, size, j == row.bold)

    def _write(self, ax: Axes, columns: Columns, size: float, extent: tuple[float, float]) -> None:
        line, (left, right) = _line(size), (_edge(size), extent[0] - _edge(size))
        for i, text in enumerate(self._title(size, extent[0])):
            write(ax, left, (1.3 + 1.25 * i) * line, text, size=size + 1.5, weight="bold")
        y = self._top(size, extent[0])
        for j, text in enumerate(self.head):
            for i, part in enumerate(reversed(text.split("\n"))):
                self._put(ax, j, columns, y - (0.4 + 0.95 * i) * line, part, size=size - 0.5, color=MUTED)
        for n, row in enumerate(self.body):
            height = self._lines(row, columns, size) * line
            if row.ruled:
                y += 0.3 * line * (n > 0)
                ax.plot([left, right], [y, y], color=MUTED if n == 0 else FAINT, linewidth=0.8)
                y += 0.3 * line
            if y + height > extent[1]:
                write(ax, left, y + 0.8 * line, f"{ELLIPSIS} and more than fits here", size=size, color=MUTED)
                return
            self._write_row(ax, row, columns, y, size)
            y += height

    def _write_row(self, ax: Axes, row: Row, columns: Columns, y: float, size: float) -> None:
        line = _line(size)
        for j in range(len(self.head)):
            style: dict[str, Any] = {"size": size, "color": MUTED if row.muted and j in self.wraps else INK}
            for i, text in enumerate(self._cell(row, j, columns, size)):
                weight = "bold" if j == row.bold else "normal"
                self._put(ax, j, columns, y + (0.8 + i) * line, text, weight=weight, **style)
        if row.mark is not None and self.bar is not None:
            self._draw_bar(ax, row.mark, columns[self.bar], y, size)
        if row.dot is not None:
            x = columns[-1][1] - text_width(row.cells[-1], size) - size / 80
            ax.plot([x], [y + 0.55 * line], "o", color=row.dot, markersize=size * 0.6)

    def _put(self, ax: Axes, j: int, columns: Columns, y: float, text: str, **style: Any) -> None:
        at_left = j in (0, self.bar, *self.wraps)
        write(ax, columns[j][0 if at_left else 1], y, text, ha="left" if at_left else "right", **style)

    def _draw_bar(self, ax: Axes, row: ChartRow, column: tuple[float, float], y: float, size: float) -> None:
        """A bar for the coverage so far, the new part in full colour, followed by the number."""
        line, start = _line(size), column[0]
        full = column[1] - start - text_width("100.0% ", size)
        middle, height = y + 0.54 * line, 0.6 * line
        before = row.coverage - row.new_coverage
        ax.barh([middle], [full], height, left=start, color="#EEEEEE", linewidth=0)
        ax.barh([middle], [full * before], height, left=start, color=self.colour, alpha=0.4, linewidth=0)
        ax.barh([middle], [full * row.new_coverage], height, left=start + full * before, color=self.colour, linewidth=0)
        write(ax, column[1], y + 0.8 * line, f"{row.coverage:.1%}", size=size, ha="right")


def _line(size: float) -> float:
    """Height of a line in inches."""
    return size * 1.32 / 72


def _edge(size: float) -> float:
    """Margin at both sides of a table in inches."""
    return size / 60
