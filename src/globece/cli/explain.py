"""``globece explain``: a table and a model in, coverage, cost and rules out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click
import narwhals as nw
import numpy as np

from globece.api import explain as explain_model
from globece.cli import output, training
from globece.errors import InvalidParameterError, UnknownFeatureError
from globece.io.frames import read_frame
from globece.io.model_files import load_model
from globece.space import FeatureSpace


def _directions(ctx: click.Context, param: click.Parameter, value: str) -> int | Literal["auto"]:
    if value == "auto":
        return "auto"
    try:
        return int(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is neither a whole number nor 'auto'", ctx, param) from error


HELP = """Explain what a model says about the rows of DATA, a CSV or Parquet file.

The result tells in which few directions those with the unfavourable outcome can travel, how many of them get the
favourable outcome that way, and at which cost. It goes to standard output, everything else to standard error.

The model is a file (.json or .ubj of XGBoost, .txt of LightGBM, .skops, or a pickle if allowed), or else one of
logistic, forest and boosting: a scikit-learn pipeline that is trained on 80 % of DATA. Ctrl-C ends the search and
shows the best so far.

\b
Examples:
  globece explain loans.csv --model logistic --outcome approved --favourable yes
  globece explain loans.csv --model loans.ubj --outcome approved --directions 3 \\
      --immutable sex,age --increasing savings --figures figures
  globece explain loans.parquet --model loans.skops --json - > loans.json
"""


@click.command(no_args_is_help=True, help=HELP)
@click.argument("data", metavar="DATA")
@click.option("--model", required=True, metavar="FILE|KIND", help="Model file, or logistic, forest, boosting to train.")
@click.option("--outcome", metavar="COLUMN", help="Column of DATA with the outcomes; the model does not get it.")
@click.option("--favourable", metavar="VALUE", help="The outcome people want.  [default: the positive class]")
@click.option("--threshold", type=float, metavar="T", help="Least probability, or value, that is favourable.")
@click.option(
    "--directions", callback=_directions, default="1", show_default=True, metavar="N|auto", help="How many to find."
)
@click.option(
    "--budget", type=float, default=10, show_default=True, metavar="COST", help="The most that recourse may cost."
)
@click.option("--immutable", multiple=True, metavar="A,B", help="Features that may not move.")
@click.option("--increasing", multiple=True, metavar="A,B", help="Features that may only rise.")
@click.option("--decreasing", multiple=True, metavar="A,B", help="Features that may only fall.")
@click.option("--categorical", multiple=True, metavar="A,B", help="Numeric columns that are categories.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="Same seed, same result."
)
@click.option("--time-limit", type=float, metavar="SECONDS", help="Stop searching then, and take the best so far.")
@click.option(
    "--json", "json_path", is_flag=False, flag_value="-", metavar="[PATH|-]", help="Write JSON; - is standard output."
)
@click.option(
    "--figures", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Draw into this folder."
)
@click.option("--allow-pickle", is_flag=True, help="Load a pickled model. It runs code that its author chose.")
@click.option("--trusted", multiple=True, metavar="TYPE", help="A type that a .skops file may build.")
def explain(
    data: str,
    model: str,
    outcome: str | None,
    favourable: str | None,
    threshold: float | None,
    directions: int | Literal["auto"],
    budget: float,
    immutable: tuple[str, ...],
    increasing: tuple[str, ...],
    decreasing: tuple[str, ...],
    categorical: tuple[str, ...],
    seed: int,
    time_limit: float | None,
    json_path: str | None,
    figures: Path | None,
    allow_pickle: bool,
    trusted: tuple[str, ...],
) -> None:
    """``globece explain``."""
    if json_path not in (None, "-") and not Path(str(json_path)).resolve().parent.is_dir():
        raise InvalidParameterError(f"--json names {json_path!r}, in a folder that does not exist")
    if figures is not None:
        output.check_figures(figures)
    task = _prepare(
        data,
        model,
        outcome,
        seed,
        {"allow_pickle": allow_pickle, "trusted": trusted},
        {"immutable": immutable, "increasing": increasing, "decreasing": decreasing, "categorical": categorical},
    )
    ex = explain_model(
        task.model,
        task.X,
        favourable=_favourable(favourable, task.model),
        threshold=threshold,
        space=task.space,
        n_directions=directions,
        budget=budget,
        rng=seed,
        progress=True,
        time_limit=time_limit,
    )
    if json_path == "-":
        click.echo(ex.to_json())
    else:
        output.show(ex, output.results())
        if json_path is not None:
            ex.to_json(json_path)
            output.say(f"JSON written to {json_path}")
    if figures is not None:
        written = output.write_figures(ex, figures)
        output.say(f"{len(written)} figures written to {figures}")


@dataclass(frozen=True, slots=True)
class _Task:
    """What is explained: a model, its rows, and what may move in them."""

    model: Any
    X: Any
    space: FeatureSpace


def _prepare(
    data: str,
    model: str,
    outcome: str | None,
    seed: int,
    loading: dict[str, Any],
    wishes: dict[str, tuple[str, ...]],
) -> _Task:
    trains = model in training.KINDS
    if trains and outcome is None:
        raise InvalidParameterError(f"--model {model} trains on DATA and needs --outcome, the column to learn")
    loaded = None if trains else load_model(model, **loading)
    frame = read_frame(data)
    columns = list(nw.from_native(frame, eager_only=True).columns)
    if outcome is not None and outcome not in columns:
        raise UnknownFeatureError(f"--outcome names unknown column {outcome!r}; there are {columns}")
    wanted = _columns(loaded, [c for c in columns if c != outcome])
    X = nw.from_native(frame, eager_only=True).select(wanted).to_native()
    constraints = {name: _names(f"--{name}", values, wanted) for name, values in wishes.items()}
    space = FeatureSpace.from_frame(X, **constraints)  # type: ignore[arg-type]
    if trains:
        trained = training.train(model, X, training.outcomes(frame, str(outcome)), space, seed)
        output.say(f"{model}: {trained}")
        loaded = trained.model
    return _Task(loaded, X, space)


def _columns(model: Any, available: list[str]) -> list[str]:
    """The columns that the model was trained on, in its order; all of them if it does not say."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return available
    place = {name.replace(" ", "_"): name for name in available} | {name: name for name in available}
    missing = [str(name) for name in names if name not in place]
    if missing:
        raise UnknownFeatureError(f"the model was trained on column(s) {missing}, which DATA lacks; it has {available}")
    chosen = [place[name] for name in names]
    ignored = [name for name in available if name not in chosen]
    if ignored:
        output.say(f"The model was not trained on {ignored}: not used.")
    return chosen


def _names(option: str, values: tuple[str, ...], columns: list[str]) -> tuple[str, ...]:
    """Names out of ``a,b`` and of repeated options; a name that has a comma in it comes alone."""
    names: list[str] = []
    for value in values:
        names += [value] if value in columns else [part.strip() for part in value.split(",") if part.strip()]
    unknown = sorted(set(names) - set(columns))
    if unknown:
        raise UnknownFeatureError(f"{option} names unknown feature(s) {unknown}; there are {columns}")
    return tuple(names)


def _favourable(text: str | None, model: Any) -> Any:
    """The class that the text stands for: classes may be numbers or truth values, and a command line is text."""
    if text is None:
        return None
    classes = getattr(model, "classes_", None)
    if classes is None:
        return _number(text)
    known = np.asarray(classes).tolist()
    for same in (lambda c: str(c) == text, lambda c: str(c).lower() == text.lower(), lambda c: c == _number(text)):
        for c in known:
            if same(c):
                return c
    raise InvalidParameterError(f"--favourable must be one of the model's classes {known}; got {text!r}")


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
