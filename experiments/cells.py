"""What an experiment is: cells that compute numbers, and parts of the page that show them.

A cell computes plain data (what JSON can hold) and is stored under its name as soon as it is done, so that a killed run
goes on where it stopped. A part shows the data of its cells, from what is stored alone: the page can be written again
without computing anything, and a part whose cells are not all there shows those that are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Data = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """How a run was asked for: everything a cell may depend on besides its name."""

    models: Path | None = None  # a folder of given models; none: the paper's models, trained here
    quick: bool = False  # a smoke run: every step, on few rows and samples
    cap: float = 120.0  # seconds for a method that may not end, such as plain AReS on Default Credit


@dataclass(frozen=True)
class Cell:
    """One piece of work, stored and repeatable alone: `results/heloc/xgb`."""

    name: str
    compute: Callable[[Run], Data]
    needs: tuple[str, ...] = ()  # the data sets without which it cannot run


@dataclass(frozen=True)
class Shown:
    """A part as the page shows it: Markdown, and the figures it speaks of, by file name without ending."""

    text: str
    figures: Mapping[str, Figure] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """A section of the page, redrawing one table or figure of the paper."""

    key: str  # the first part of its cells' names: "results"
    title: str
    source: str  # where the paper has it: "tab:results"
    cells: tuple[Cell, ...]
    show: Callable[[Mapping[str, Data]], Shown]  # by cell name; cells that have not run are absent
