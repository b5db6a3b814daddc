"""What the subcommands show: results as tables on standard output, figures in files."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from globece import formatting
from globece.errors import require
from globece.explanation import Explanation
from globece.plots import (
    CounterfactualsDisplay,
    MeanTranslationDisplay,
    MinimumCostsDisplay,
    ProfileDisplay,
    RulesChartDisplay,
)

# Of a pipe or a file nobody knows how wide it will be shown.
WIDTH = 110


class Display(Protocol):
    """A view that can be drawn."""

    figure_: Any

    def plot(self) -> Any: ...


class _Console(Console):
    """A console that leaves it to the command what a reader that went away means."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def results() -> Console:
    """A console for results: standard output, as wide as the terminal."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # an old code page has no arrows
    return _Console(file=sys.stdout, width=None if sys.stdout.isatty() else WIDTH, highlight=False, markup=False)


def show(ex: Explanation, console: Console) -> None:
    """Print numbers and the rules chart of each direction."""
    console.print(ex.summary(), soft_wrap=True)
    if ex.is_empty:
        return
    if ex.n_directions > 1:
        console.print(numbers(ex))
    for i in range(ex.n_directions):
        console.print(chart(ex, i))


def numbers(ex: Explanation) -> Table:
    """Coverage and cost, of each direction alone and of all together."""
    made = table(None, ("",), ("Coverage", "Average cost", "Without recourse"), no_wrap=False)
    for i in range(ex.n_directions):
        alone = ex.rules_chart(i).rows[-1]
        without = ex.n_affected - round(alone.coverage * ex.n_affected)
        made.add_row(f"Direction {i + 1} alone", f"{alone.coverage:.1%}", formatting.cost(alone.cost), f"{without:,}")
    made.add_section()
    together = (f"{ex.coverage:.1%}", formatting.cost(ex.average_cost), f"{ex.n_without_recourse:,}")
    made.add_row(f"All {ex.n_directions} directions", *together, style="bold")
    return made


def chart(ex: Explanation, direction: int) -> Table:
    """The cumulative rules chart of one direction."""
    display = RulesChartDisplay.from_explanation(ex, direction)
    title = f"Direction {direction + 1}: rules add up from top to bottom"
    made = table(title, ("Feature", "New rule added"), ("New inputs", "Cost", "All inputs", "Cost"))
    for row, lines in zip(display.rows, display.lines, strict=True):
        feature, rule = Text(), Text()
        for i, line in enumerate(lines):
            style = "dim" if line.aside else ""
            end = "\n" if i + 1 < len(lines) else ""
            feature.append(("  " if line.aside else "") + line.feature + end, style)
            rule.append(line.text + end, style)
        new = (f"{row.new_coverage:+.1%}", formatting.cost(row.new_cost))
        made.add_row(feature, rule, *new, f"{row.coverage:.1%}", formatting.cost(row.cost))
    return made


def table(title: str | None, left: Sequence[str], right: Sequence[str] = (), *, no_wrap: bool = True) -> Table:
    """An empty table with columns of text, then columns of numbers."""
    made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in left:
        made.add_column(name)
    for name in right:
        made.add_column(name, justify="right", no_wrap=no_wrap)
    return made


def check_figures(folder: Path) -> None:
    """Make the folder, and make sure that figures can be drawn, before the long work begins."""
    require("matplotlib", extra="plot", caller="drawing figures").use("Agg")  # no window, also where one could open
    folder.mkdir(parents=True, exist_ok=True)


def displays(ex: Explanation) -> dict[str, Display]:
    """Every view of an explanation by the name of its file."""
    rules = {f"rules-{i + 1}": RulesChartDisplay.from_explanation(ex, i) for i in range(ex.n_directions)}
    return {
        "profile": ProfileDisplay.from_explanation(ex),
        "minimum-costs": MinimumCostsDisplay.from_explanation(ex),
        "mean-translation": MeanTranslationDisplay.from_explanation(ex),
        "counterfactuals": CounterfactualsDisplay.from_explanation(ex),
        **rules,
    }


def draw(views: Mapping[str, Display], folder: Path, prefix: str = "") -> None:
    """Draw views into PNG files."""
    plt = require("matplotlib.pyplot", extra="plot", caller="drawing figures")
    for name, view in views.items():
        view.plot()
        view.figure_.savefig(folder / f"{prefix}{name}.png", dpi=160)
        plt.close(view.figure_)
