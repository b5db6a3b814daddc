"""The options that several subcommands share, and the one value that they parse to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click

from globece.cli import output
from globece.errors import InvalidParameterError
from globece.search.climb import EFFORTS

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the shared options parse to; ``data`` and ``model`` are empty where they may be left out."""

    data: str
    model: str
    outcome: str | None
    favourable: str | None
    threshold: float | None
    budget: float
    immutable: tuple[str, ...]
    increasing: tuple[str, ...]
    decreasing: tuple[str, ...]
    categorical: tuple[str, ...]
    seed: int
    json_path: str | None
    allow_pickle: bool
    trusted: tuple[str, ...]
    time_limit: float | None = None
    figures: Path | None = None


def asked(command: Callable[..., None]) -> Callable[..., None]:
    """Call a command with one :class:`Asked`, checked before the long work begins, and its own options."""

    @wraps(command)
    def run(**given: Any) -> None:
        shared = Asked(**{f.name: given.pop(f.name) for f in fields(Asked) if f.name in given})
        if shared.json_path not in (None, "-") and not Path(str(shared.json_path)).resolve().parent.is_dir():
            raise InvalidParameterError(f"--json names {shared.json_path!r}, in a folder that does not exist")
        if shared.figures is not None:
            output.check_figures(shared.figures)
        command(shared, **given)

    return run


def _in_order(*options: Decorator) -> Decorator:
    """Several options as one decorator; help lists them in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def model(*, required: bool) -> Decorator:
    """``--model``, which is empty where it is neither required nor given."""
    text = "Model file, or logistic, forest, boosting to train."
    return click.option("--model", required=required, default=None if required else "", metavar="FILE|KIND", help=text)


outcome = _in_order(
    click.option("--outcome", metavar="COLUMN", help="Column of DATA with the outcomes; the model does not get it."),
    click.option("--favourable", metavar="VALUE", help="The outcome people want.  [default: the positive class]"),
    click.option("--threshold", type=float, metavar="T", help="Least probability, or value, that is favourable."),
)
constraints = _in_order(
    click.option(
        "--budget", type=float, default=10, show_default=True, metavar="COST", help="The most that recourse may cost."
    ),
    click.option("--immutable", multiple=True, metavar="A,B", help="Features that may not move."),
    click.option("--increasing", multiple=True, metavar="A,B", help="Features that may only rise."),
    click.option("--decreasing", multiple=True, metavar="A,B", help="Features that may only fall."),
    click.option("--categorical", multiple=True, metavar="A,B", help="Numeric columns that are categories."),
)
seed = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="Same seed, same result."
)
effort = click.option(
    "--effort", type=click.Choice(list(EFFORTS)), default="default", show_default=True, help="How long to search."
)
time_limit = click.option(
    "--time-limit", type=float, metavar="SECONDS", help="Stop searching then, and take the best so far."
)
json_path = click.option(
    "--json", "json_path", is_flag=False, flag_value="-", metavar="[PATH|-]", help="Write JSON; - is standard output."
)
figures = click.option(
    "--figures", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Draw into this folder."
)
loading = _in_order(
    click.option("--allow-pickle", is_flag=True, help="Load a pickled model. It runs code that its author chose."),
    click.option("--trusted", multiple=True, metavar="TYPE", help="A type that a .skops file may build."),
)
