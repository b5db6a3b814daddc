"""What several figures draw on: the axes of a display, an axis of costs, one of coverage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from globece.plots.style import FAINT, INK, MUTED, prepare, set_label, write_note
from globece.space import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEGEND: dict[str, Any] = {"edgecolor": "none", "fontsize": 8.5, "handlelength": 1.2, "title_fontsize": 8.5}


@dataclass(eq=False)
class Display:
    """A view of a result; ``ax_`` and ``figure_`` are what was drawn on, once ``plot`` was called."""

    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    def _begin(self, ax: Axes | None, size: tuple[float, float], note: str | None) -> Axes:
        """The axes given, or new ones; with nothing but the note on them if there is one."""
        self.ax_, self.figure_ = prepare(ax, size, f"{type(self).__name__}.plot")
        if note:
            write_note(self.ax_, note)
        return self.ax_


def coverage_axis(ax: Axes) -> None:
    """Make the vertical axis one of coverage."""
    ax.set_ylim(0.0, 1.06)
    ax.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0%", "25%", "50%", "75%", "100%"])
    ax.grid(axis="y", color=FAINT, linewidth=0.8)
    set_label(ax, "coverage of the affected inputs", axis="y")


def cost_axis(ax: Axes, last: float, budget: float | None) -> float:
    """Lay out the axis of costs and return where it ends.

    It goes to the budget. Where everything happens far below, it is broken, and the budget stands beyond the break.
    """
    if budget is None:
        end = last * 1.08
        ax.set_xlim(0, end)
        return end
    broken = last < 0.45 * budget
    end = last * 1.3 if broken else budget
    ax.set_xlim(0, end)
    ticks = [t for t in ax.get_xticks() if 0 <= t <= (last * 1.12 if broken else budget * 1.0001)]
    ax.set_xticks(
        [*ticks, *([end] if broken else [])], [*(f"{t:g}" for t in ticks), *([f"{budget:g}"] if broken else [])]
    )
    dashes: dict[str, Any] = {"linewidth": 1, "linestyle": (0, (4, 3)), "clip_on": False}
    ax.plot([end, end], [0, 1], transform=ax.get_xaxis_transform(), color=MUTED, **dashes)
    ax.annotate(
        "budget",
        (end, 1.0),
        (-3, 0),
        xycoords=ax.get_xaxis_transform(),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=8.5,
        color=MUTED,
    )
    if broken:
        style: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "clip_on": False, "color": MUTED}
        gap = last * 1.21
        for at in (gap, gap + end * 0.012):
            ax.plot([at], [0], marker=(2, 0, -20), markersize=9, linestyle="none", zorder=6, **style)
    return end


def cost_bins(paid: FloatArray, budget: float, width: float | None = None) -> tuple[FloatArray, float]:
    """Edges of bins of costs, centred on the multiples of their width; and the largest cost, or else the budget.

    The width is a round number unless it is given.
    """
    last = float(paid.max()) if paid.size else budget
    width = width or round_width(last / 24)
    return np.asarray((np.arange(int(last / width + 0.5) + 2) - 0.5) * width, dtype=np.float64), last


def no_recourse_label(ax: Axes, x: float) -> None:
    """Write below the axis of costs who stands there: those without recourse."""
    style: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 9, "color": INK, "linespacing": 1.0}
    ax.text(x, -0.025, "no\nrecourse", transform=ax.get_xaxis_transform(), **style)


def round_width(width: float) -> float:
    """The next of 1, 2, 5, 10, ... at or above, whatever the power of ten."""
    power = 10.0 ** np.floor(np.log10(max(width, 1e-9)))
    return float(next(power * m for m in (1, 2, 5, 10) if power * m >= width * (1 - 1e-9)))
