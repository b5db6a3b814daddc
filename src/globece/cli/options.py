"""The options that several subcommands share, the one value that they parse to, and the configuration behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import Any, Literal

import click
from click.core import ParameterSource

from globece.auditing.basis import TRAINING
from globece.cli import completing, delivery, logs
from globece.cli.config import Config, FeatureWish, read_config
from globece.cli.training import KINDS
from globece.errors import InvalidParameterError
from globece.search.climb import EFFORTS

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
CONFIG = "globece.config"  # where a command's context keeps its configuration


@dataclass(frozen=True, slots=True)
class Asked:
    """What the shared options parse to; ``data`` and ``model`` are empty where they may be left out."""

    data: str = ""
    model: str = ""
    outcome: str | None = None
    favourable: str | None = None
    threshold: float | None = None
    budget: float = 10.0
    immutable: tuple[str, ...] = ()
    increasing: tuple[str, ...] = ()
    decreasing: tuple[str, ...] = ()
    movable: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    seed: int = 0
    encoding: str | None = None
    allow_pickle: bool = False
    trusted: tuple[str, ...] = ()
    time_limit: float | None = None
    json_path: str | None = None
    html: str | None = None
    figures: Path | None = None
    features: Mapping[str, FeatureWish] = field(default_factory=dict)
    scale: str | None = None
    norm: str | None = None
    config: Config = field(default_factory=Config)


def asked_of(given: dict[str, Any], **more: Any) -> Asked:
    """The shared options out of a command's, and what the configuration says beside them; others stay in ``given``."""
    config = current_config()
    names = [f.name for f in fields(Asked) if f.name in given]
    shared = {name: given.pop(name) for name in names}
    for name in ("data", "model"):
        shared[name] = shared.get(name) or ""
    said = {"features": config.features, "scale": config.get("cost", "scale"), "norm": config.get("cost", "norm")}
    return Asked(**{**said, **shared, **more, "config": config})


def asked(command: Callable[..., None]) -> Callable[..., None]:
    """Call a command with one :class:`Asked`, checked before the long work begins, and its own options."""

    @wraps(command)
    def run(**given: Any) -> None:
        shared = asked_of(given)
        delivery.check_outputs(shared)
        command(shared, **given)

    return run


def in_order(*options: Decorator) -> Decorator:
    """Several options as one decorator; help lists them in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# -- the configuration ------------------------------------------------------------------------------------------------


def current_config() -> Config:
    """The configuration of the command that runs; an empty one if none was named."""
    context = click.get_current_context(silent=True)
    found: Config = Config() if context is None else context.meta.get(CONFIG, Config())
    return found


def _configure(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    """Take the defaults of all other options from the configuration, so that the command line wins."""
    if path is None or ctx.resilient_parsing:
        return
    config = read_config(path)
    here = Path(path).resolve().parent
    values = config.options()
    for name in ("data", "model"):  # files lie beside the configuration, wherever the command is called
        if name in values and not (name == "model" and config.get("model", "kind")):
            values[name] = str(here / values[name]) if values[name] else ""
    ctx.meta[CONFIG] = config
    ctx.default_map = {**(ctx.default_map or {}), **values}


def _log_sources(ctx: click.Context) -> None:
    for parameter in ctx.command.params:
        name = parameter.name or ""
        source = ctx.get_parameter_source(name)
        if source not in (None, ParameterSource.DEFAULT):
            where = "configuration" if source is ParameterSource.DEFAULT_MAP else "command line"
            logs.detail(f"{name} = {ctx.params.get(name)!r} ({where})")


config = click.option(
    "--config",
    type=click.Path(),
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_configure,
    help="Take what is not given here from this file; globece init writes one.",
)


def volume(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--quiet`` and ``--verbose``, which every command has."""

    @click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors and warnings.")
    @click.option("-v", "--verbose", count=True, help="Say more; -vv says everything.")
    @wraps(command)
    def run(quiet: bool, verbose: int, **given: Any) -> Any:
        logs.begin(quiet=quiet, verbose=verbose)
        _log_sources(click.get_current_context())
        return command(**given)

    return run


# -- what the commands share ------------------------------------------------------------------------------------------

# A command of DATA takes it from the configuration too, so click does not require it; the command says what is missing.
data = click.argument("data", metavar="DATA", required=False, default="", type=click.Path())
encoding = click.option("--encoding", metavar="NAME", help="Encoding of a CSV file.  [default: utf-8]")


def model(text: str = "Model file, or logistic, forest, boosting to train.") -> Decorator:
    """``--model``, which is empty where it is not given."""
    return click.option("--model", default="", metavar="FILE|KIND", help=text, shell_complete=completing.model)


def _columns(flag: str, text: str, metavar: str = "A,B") -> Decorator:
    return click.option(flag, multiple=True, metavar=metavar, help=text, shell_complete=completing.column)


outcome = in_order(
    click.option(
        "--outcome",
        metavar="COLUMN",
        shell_complete=completing.column,
        help="Column of DATA with the outcomes; the model does not get it.",
    ),
    click.option("--favourable", metavar="VALUE", help="The outcome people want.  [default: the positive class]"),
    click.option("--threshold", type=float, metavar="T", help="Least probability, or value, that is favourable."),
)
constraints = in_order(
    click.option(
        "--budget", type=float, default=10, show_default=True, metavar="COST", help="The most that recourse may cost."
    ),
    _columns("--immutable", "Features that may not move."),
    _columns("--increasing", "Features that may only rise."),
    _columns("--decreasing", "Features that may only fall."),
    _columns("--movable", "Features that may move both ways, whatever the configuration says."),
    _columns("--categorical", "Numeric columns that are categories."),
    _columns("--ignore", "Columns that are not for the model: numbers of rows, names."),
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
html = click.option("--html", type=click.Path(), metavar="PAGE", help="Write the result as a page for the browser.")
figures = click.option(
    "--figures", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Draw into this folder."
)
loading = in_order(
    click.option("--allow-pickle", is_flag=True, help="Load a pickled model. It runs code that its author chose."),
    click.option("--trusted", multiple=True, metavar="TYPE", help="A type that a .skops file may build."),
)
reading = in_order(config, encoding, loading)


def directions(default: int) -> Decorator:
    """``--directions``, a number or ``auto``."""

    def parsed(ctx: click.Context, param: click.Parameter, value: Any) -> int | Literal["auto"]:
        if value == "auto":
            return "auto"
        try:
            return int(value)
        except ValueError as error:
            raise click.BadParameter(f"{value!r} is neither a whole number nor 'auto'", ctx, param) from error

    return click.option(
        "--directions",
        callback=parsed,
        default=str(default),
        show_default=True,
        metavar="N|auto",
        help="How many to find.",
    )


by = _columns("--by", "Group column; several: intersections. age:25,45 and age:4 cut numbers.", "COLUMN")
compared = in_order(
    by,
    _columns("--control", "Compare groups only within levels of this.", "COLUMN"),
    click.option("--reference", metavar="GROUP", help="Compare the other groups with this one."),
    click.option("--level", type=float, default=0.05, show_default=True, metavar="P", help="Level of the tests."),
    click.option("--relevant", type=float, metavar="GAP", help="Smallest gap that matters.  [default: a share]"),
    click.option(
        "--relevant-share",
        type=float,
        default=0.2,
        show_default=True,
        metavar="SHARE",
        help="The same as a share of the overall score.",
    ),
    click.option("--training", type=click.Choice(TRAINING), help="Whether the model was trained on these rows."),
)

clustered = click.option(
    "--cluster",
    metavar="COLUMN",
    shell_complete=completing.column,
    help="Whose row each row is, where people have several.",
)


def need(asked: Asked, command: str, *names: str) -> None:
    """Raise if an option that a command needs was given neither on the command line nor in the configuration."""
    missing = [name for name in names if not getattr(asked, name)]
    if not missing:
        return
    what = {
        "data": "DATA, a CSV, Parquet or Arrow file",
        "model": f"--model, a model file or one of {', '.join(KINDS)}",
    }
    named = " and ".join(what[name] for name in missing)
    where = f" (or in {asked.config.name})" if asked.config.name else ", or a --config that says it"
    raise InvalidParameterError(f"globece {command} needs {named}{where}")
