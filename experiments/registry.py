"""All parts of the page, in the order in which it shows them, and which cells a run is to compute."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from experiments import generality, models, results, trained
from experiments.cells import Cell, Part, Run
from experiments.figures import PARTS as FIGURES

PARTS: tuple[Part, ...] = (results.PART, models.PART, trained.PART, *FIGURES, generality.PART)


class UnknownCellError(ValueError):
    """A name that is no cell, nor the beginning of one."""


def chosen(run: Run, only: Sequence[str]) -> list[Cell]:
    """The cells that a run asks for by name or by the beginning of a name, or all that make sense for it.

    Without given models, the table of results is about the trained ones already and is not computed twice.
    """
    cells = [cell for part in PARTS for cell in part.cells if run.models is not None or part is not trained.PART]
    if not only:
        return _in_order(cells)
    unknown = [name for name in only if not any(matches(cell, name) for cell in cells)]
    if unknown:
        raise UnknownCellError(f"unknown cell(s) {unknown}{_hint(unknown[0], cells)}")
    return _in_order([cell for cell in cells if any(matches(cell, name) for name in only)])


def matches(cell: Cell, name: str) -> bool:
    """Whether a cell is meant by a name: its own, or the folders that it lies in."""
    name = name.strip("/")
    return cell.name == name or cell.name.startswith(f"{name}/")


def _hint(name: str, cells: list[Cell]) -> str:
    keys = list(dict.fromkeys(cell.name.split("/")[0] for cell in cells))
    near = get_close_matches(name, [*keys, *(cell.name for cell in cells)], n=3)
    meant = f"; did you mean {' or '.join(near)}?" if near else "."
    return f"{meant} A name is a cell's, such as {cells[0].name}, or its beginning: {', '.join(keys)}"


def _in_order(cells: list[Cell]) -> list[Cell]:
    """Training first, since others need its models; then what takes longest, so that no core waits at the end."""
    return sorted(cells, key=lambda cell: (not cell.name.startswith("models/"), "default_credit" not in cell.name))
