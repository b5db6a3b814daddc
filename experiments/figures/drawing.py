"""Axes in the manner of :mod:`globece.plots`, for figures of several panels.

The library's displays lay a figure out again for every label, to break it where it is long. Here labels are short, and
a figure is laid out once, when it is saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from globece.plots.style import FAINT, INK, prepare

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure that no window holds, with its axes side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = list(figure.subplots(1, columns, squeeze=False).flat)
    for ax in axes:
        prepare(ax, (width, height), "experiments")
    return figure, axes


def name(ax: Axes, title: str = "", *, x: str = "", y: str = "") -> None:
    """Write a title and name the axes, where there is something to write."""
    if title:
        ax.set_title(title, loc="left", fontsize=10.5, color=INK, pad=8)
    if x:
        ax.set_xlabel(x, fontsize=9.5, color=INK)
    if y:
        ax.set_ylabel(y, fontsize=9.5, color=INK)


def lines_across(ax: Axes) -> None:
    """Faint lines to read heights off."""
    ax.grid(axis="y", color=FAINT, linewidth=0.8)


def from_nobody(ax: Axes, label: str = "coverage of the affected inputs") -> None:
    """An upward axis of shares, from nobody to everybody."""
    ax.set_ylim(0.0, 1.05)
    ax.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0%", "25%", "50%", "75%", "100%"])
    lines_across(ax)
    name(ax, y=label)


def in_shares(ax: Axes, label: str) -> None:
    """An upward axis of shares that ends where they end."""
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    lines_across(ax)
    name(ax, y=label)


def legend_below(figure: Figure, ax: Axes) -> None:
    """One legend for all panels, under them, where no line is."""
    lines, names = ax.get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=max(len(names), 1), frameon=False, fontsize=9)
