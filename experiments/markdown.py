"""The few pieces of Markdown that parts are written with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.cells import Part
from paper.markdown import table

__all__ = ["missing_rows", "percent", "table"]


def percent(share: float) -> str:
    """A share as the page writes it, never as 100 % where something is left out."""
    text = f"{100 * share:.1f}"
    return "99.9+ %" if text == "100.0" and share < 1 else f"{text} %"


def missing_rows(part: Part, found: Mapping[str, Any]) -> str:
    """Which cells of a part have not been computed, so that a short table is not mistaken for a whole one."""
    absent = [f"`{cell.name}`" for cell in part.cells if cell.name not in found]
    return f"\nNot computed: {', '.join(absent)}.\n" if absent else ""
