"""Helpers for all figures: colours, text that fits, formatted numbers, plain axes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from globece.errors import check_instance, require
from globece.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#5E4FA2")
INK, MUTED, FAINT, NOBODY = "#222222", "#666666", "#DDDDDD", "#8A8A8A"
MINUS = "\N{MINUS SIGN}"


def colour(direction: int) -> str:
    """Colour of a direction, the same in every figure."""
    return PALETTE[direction % len(PALETTE)]


# -- words -------------------------------------------------------------------------------------------------------------


def nobody_affected(ex: Explanation) -> str | None:
    """The note if nobody is affected; ``None`` if somebody is."""
    if not ex.is_empty:
        return None
    return f"Nobody is affected: all {ex.n_rows:,} rows have the favourable outcome already."


def nobody_covered(ex: Explanation) -> str | None:
    """The note if no affected input is covered; ``None`` if one is."""
    if ex.n_covered:
        return None
    return f"None of the {ex.n_affected:,} affected inputs has recourse within the budget of {ex.budget:g}."


def number_text(value: float) -> str:
    """About four digits; whole numbers in full."""
    if value == round(value) and abs(value) < 1e15:
        text = f"{value:,.0f}"
    else:
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return text.replace("-", MINUS) if "e" not in text else text


def signed_text(value: float) -> str:
    """Three digits, with a sign."""
    shown = float(f"{value:.3g}")
    return ("+" if shown > 0 else "") + number_text(shown)


def steps_text(amount: float) -> str:
    """The unit of an ordinal feature."""
    return " step" if abs(amount) == 1 else " steps"


def share_text(share: float) -> str:
    """A share as a whole percentage."""
    return f"{share:.0%}" if share >= 0.01 else "under 1%"


# -- axes --------------------------------------------------------------------------------------------------------------


def check_axes(ax: Axes | None, caller: str) -> None:
    """Raise if these are not matplotlib axes."""
    if ax is not None:
        check_instance("ax", ax, require("matplotlib.axes", extra="plot", caller=caller).Axes, "of matplotlib")


def prepare(ax: Axes | None, size: tuple[float, float], caller: str) -> tuple[Axes, Figure]:
    """The axes given, or those of a new figure; without a frame."""
    plt = require("matplotlib.pyplot", extra="plot", caller=caller)
    check_axes(ax, caller)
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    assert ax is not None
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(color=MUTED, labelcolor=INK, labelsize=9)
    ax.set_axisbelow(True)
    return ax, ax.figure  # type: ignore[return-value]


def write_note(ax: Axes, note: str) -> None:
    """Write a note in the middle of the axes, and nothing else."""
    ax.set_axis_off()
    lines = wrap(note, max(0.8 * inches(ax)[0], 1.0), 11)
    ax.text(
        0.5,
        0.5,
        "\n".join(lines),
        transform=ax.transAxes,
        ha="center",
        va="center",
        fontsize=11,
        color=MUTED,
        parse_math=False,
    )


def set_title(ax: Axes, text: str) -> None:
    """Write a title above the axes, at the left."""
    ax.set_title(
        "\n".join(wrap(text, inches(ax)[0], 10.5)), loc="left", fontsize=10.5, color=INK, pad=8, parse_math=False
    )


def set_label(ax: Axes, text: str, *, axis: Literal["x", "y"] = "x") -> None:
    """Label an axis, on several lines if it is short."""
    lines = "\n".join(wrap(text, inches(ax)[axis == "y"], 9.5))
    (ax.set_xlabel if axis == "x" else ax.set_ylabel)(lines, fontsize=9.5, color=INK)


def write(ax: Axes, x: float, y: float, text: str, *, size: float = 9, color: str = INK, **more: Any) -> None:
    """Write text without interpreting mathematics."""
    ax.text(x, y, text, fontsize=size, color=color, parse_math=False, **more)


def inches(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes, once the figure has laid them out."""
    root = ax.figure.canvas.figure
    engine = root.get_layout_engine()
    if engine is not None:
        engine.execute(root)
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return float(box.width), float(box.height)


# -- text that fits ----------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Escape a tick label, so that matplotlib does not interpret mathematics."""
    return text.replace("$", r"\$")


BREAKS = re.compile(r"(?<=[\s\-_/=])|(?<=[a-z])(?=[A-Z])|(?<=[.:])(?=[A-Za-z])")


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width of one line of text in inches, with a small margin for hinting."""
    textpath = require("matplotlib.textpath", extra="plot", caller="a display")
    fonts = require("matplotlib.font_manager", extra="plot", caller="a display")
    font = fonts.FontProperties(size=size, weight="bold" if bold else "normal")
    return float(textpath.text_to_path.get_text_width_height_descent(text, font, False)[0]) * 1.04 / 72.0


def wrap(text: str, width: float, size: float, bold: bool = False) -> list[str]:
    """Break text into lines that fit: at spaces, hyphens, underscores and capitals, or else anywhere."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in BREAKS.split(paragraph):
            if line and text_width((line + piece).rstrip(), size, bold) > width:
                lines.append(line.rstrip())
                line = ""
            line += piece
            while len(line) > 1 and text_width(line.rstrip(), size, bold) > width:
                fits = next(
                    n for n in range(len(line) - 1, 0, -1) if n == 1 or text_width(line[:n], size, bold) <= width
                )
                lines.append(line[:fits])
                line = line[fits:]
        lines.append(line.rstrip())
    return lines
