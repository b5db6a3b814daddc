"""What several figures draw on: the axes of a display, an axis of costs, one of coverage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from globece.errors import require
from globece.explanation import Explanation
from globece.plots.style import FAINT, INK, MUTED, inches, prepare, set_label, set_title, write_note
from globece.space import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEGEND: dict[str, Any] = {"edgecolor": "none", "fontsize": 8.5, "handlelength": 1.2, "title_fontsize": 8.5}


@dataclass(eq=False)
class Display:
    """A view of a result; ``ax_`` and ``figure_`` are what was drawn on, once ``plot`` was called.

    Attributes
    ----------
    subject
        The model and the rows, which every figure names.
    unit
        What a cost of 1 is, which every axis of costs says.
    """

    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)
    subject: str = field(default="", kw_only=True, repr=False)
    unit: str = field(default="", kw_only=True, repr=False)

    def _begin(self, ax: Axes | None, size: tuple[float, float], note: str | None) -> Axes:
        """The axes given, or new ones; with nothing but the note on them if there is one."""
        self.ax_, self.figure_ = prepare(ax, size, f"{type(self).__name__}.plot")
        if note:
            write_note(self.ax_, note)
        return self.ax_

    def _title(self, ax: Axes, text: str) -> None:
        """The finding, and below it the model and the rows."""
        set_title(ax, f"{text}\n{self.subject}" if self.subject else text)

    def _costs(self, ax: Axes, text: str) -> None:
        """Label the axis of costs, with their unit."""
        set_label(ax, f"{text} ({self.unit})" if self.unit else text)


def subject(ex: Explanation) -> dict[str, str]:
    """What every figure of an explanation says: the model, the rows, and what a cost of 1 is."""
    affected = ex.n_affected + ex.n_unknown
    named = f"{ex.provenance.model}; {ex.n_rows:,} rows, {affected:,} affected"
    return {"subject": named, "unit": ex.cost.unit}


def legend_below(ax: Axes, handles: Sequence[Any], labels: Sequence[str], title: str | None = None) -> None:
    """The one place for a legend: below the axes and their label, where it covers nothing."""
    transforms = require("matplotlib.transforms", extra="plot", caller="a legend")
    width, _ = inches(ax)
    letters = max((len(str(label)) for label in labels), default=1)
    root: Any = ax.figure.canvas.figure
    label = ax.xaxis.label.get_window_extent().y0 if ax.xaxis.label.get_text() else ax.get_window_extent().y0
    below = (label - ax.get_window_extent().y0) / root.dpi - 0.08  # inches
    ax.legend(
        handles,
        labels,
        title=title,
        loc="upper left",
        alignment="left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=ax.transAxes + transforms.ScaledTranslation(0.0, below, root.dpi_scale_trans),
        borderaxespad=0.0,
        ncols=max(1, min(len(labels), int(width / (0.075 * letters + 0.45)))),
        **LEGEND,
    )


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
    ax.xaxis.labelpad = 16  # its label stands below these two lines
    style: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 9, "color": INK, "linespacing": 1.0}
    ax.text(x, -0.025, "no\nrecourse", transform=ax.get_xaxis_transform(), **style)


def round_width(width: float) -> float:
    """The next of 1, 2, 5, 10, ... at or above, whatever the power of ten."""
    power = 10.0 ** np.floor(np.log10(max(width, 1e-9)))
    return float(next(power * m for m in (1, 2, 5, 10) if power * m >= width * (1 - 1e-9)))
