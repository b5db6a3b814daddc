"""What the subcommands show: results as tables on standard output, figures and JSON in files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Protocol

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

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


class _Display(Protocol):
    figure_: Any

    def plot(self) -> Any: ...


def results() -> Console:
    """A console for results: standard output, as wide as the terminal."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # an old code page has no arrows
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else WIDTH, highlight=False, markup=False)


def say(text: str) -> None:
    """Tell the user something that is not a result: on standard error."""
    Console(file=sys.stderr, highlight=False, markup=False, soft_wrap=True).print(text)


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
    table = _table(None)
    for name in ("Coverage", "Average cost", "Without recourse"):
        table.add_column(name, justify="right")
    for i in range(ex.n_directions):
        alone = ex.rules_chart(i).rows[-1]
        without = ex.n_affected - round(alone.coverage * ex.n_affected)
        table.add_row(f"Direction {i + 1} alone", f"{alone.coverage:.1%}", _cost(alone.cost), f"{without:,}")
    table.add_section()
    together = (f"{ex.coverage:.1%}", _cost(ex.average_cost), f"{ex.n_without_recourse:,}")
    table.add_row(f"All {ex.n_directions} directions", *together, style="bold")
    return table


def chart(ex: Explanation, direction: int) -> Table:
    """The cumulative rules chart of one direction."""
    display = RulesChartDisplay.from_explanation(ex, direction)
    table = _table(f"Direction {direction + 1}: rules add up from top to bottom", "Feature")
    table.add_column("New rule added")
    for name in ("New inputs", "Cost", "All inputs", "Cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for row, lines in zip(display.rows, display.lines, strict=True):
        feature, rule = Text(), Text()
        for i, line in enumerate(lines):
            style = "dim" if line.aside else ""
            end = "\n" if i + 1 < len(lines) else ""
            feature.append(("  " if line.aside else "") + line.feature + end, style)
            rule.append(line.text + end, style)
        table.add_row(
            feature, rule, f"{row.new_coverage:+.1%}", _cost(row.new_cost), f"{row.coverage:.1%}", _cost(row.cost)
        )
    return table


def _table(title: str | None, first: str = "") -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first)
    return table


def _cost(cost: float) -> str:
    return f"{cost:.3f}" if cost < float("inf") else "none"


def check_figures(folder: Path) -> None:
    """Make the folder, and make sure that figures can be drawn, before the long work begins."""
    require("matplotlib", extra="plot", caller="drawing figures").use("Agg")  # no window, also where one could open
    folder.mkdir(parents=True, exist_ok=True)


def write_figures(ex: Explanation, folder: Path, prefix: str = "") -> list[Path]:
    """Draw every view into PNG files, and return their paths."""
    plt = require("matplotlib.pyplot", extra="plot", caller="drawing figures")
    displays: dict[str, _Display] = {
        "profile": ProfileDisplay.from_explanation(ex),
        "minimum-costs": MinimumCostsDisplay.from_explanation(ex),
        "mean-translation": MeanTranslationDisplay.from_explanation(ex),
        "counterfactuals": CounterfactualsDisplay.from_explanation(ex),
    }
    for i in range(ex.n_directions):
        displays[f"rules-{i + 1}"] = RulesChartDisplay.from_explanation(ex, i)
    written = []
    for name, display in displays.items():
        display.plot()
        written.append(folder / f"{prefix}{name}.png")
        display.figure_.savefig(written[-1], dpi=160)
        plt.close(display.figure_)
    return written
