"""From the options and the configuration to what a command works on: rows, model, what may move, and its cost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from globece.auditing.assumptions import check_not_adverse
from globece.cli import logs, training
from globece.cli.config import FeatureWish
from globece.cli.options import Asked
from globece.cli.suggestions import did_you_mean, nearest
from globece.costs import CostModel
from globece.errors import InvalidDataError, InvalidParameterError, UnknownFeatureError
from globece.io.csv_files import UTF_8
from globece.io.frames import read_frame
from globece.io.model_files import ENDINGS, load_model
from globece.io.trained_types import as_trained
from globece.space import FeatureSpace

SHOWN = 12  # values of an outcome, in a message


@dataclass(frozen=True, slots=True)
class Task:
    """What is explained.

    Attributes
    ----------
    model, X
        The model, and the columns of DATA that it takes.
    frame
        DATA with the other columns too: the model's first.
    space
        What may move.
    wishes
        What ``explain``, ``audit`` and ``ares`` all take by name.
    trained
        Whether the model was trained on some of the rows.
    """

    model: Any
    X: Any
    frame: Any
    space: FeatureSpace
    wishes: dict[str, Any]
    trained: bool = False


def prepare(asked: Asked) -> Task:
    """Read DATA, and load the model or train it."""
    trains, outcome = asked.model in training.KINDS, asked.outcome or None
    if trains and outcome is None:
        raise InvalidParameterError(
            f"--model {asked.model} trains on DATA and needs --outcome, the column to learn{_set_in(asked, 'column')}"
        )
    start = time.monotonic()
    model = None if trains else load(asked)
    frame = as_trained(model, read_frame(asked.data, encoding=asked.encoding or UTF_8))
    frame = nw.from_native(frame, eager_only=True)
    columns = list(frame.columns)
    logs.note(f"read {asked.data}: {len(frame):,} rows, {len(columns):,} columns; {time.monotonic() - start:.1f} s")
    if outcome is not None and outcome not in columns:
        raise UnknownFeatureError(
            f"--outcome names unknown column {outcome!r}; there are {columns}.{did_you_mean(outcome, columns)}"
        )
    _check_favourable(asked, frame)
    if asked.favourable is None and outcome is not None:
        check_not_adverse(outcome, "--outcome names", "--favourable")
    ignored = ignored_of(asked, columns)
    wanted = wanted_of(model, [c for c in columns if c not in (outcome, *ignored)])
    X = frame.select(wanted).to_native()
    space = space_of(X, asked, [*columns, *(name for name, wish in asked.features.items() if wish.columns)])
    if trains:
        start = time.monotonic()
        trained = training.train(asked.model, X, training.outcomes(frame, str(outcome)), space, asked.seed)
        logs.say(f"{asked.model}: {trained}")
        logs.note(f"training took {time.monotonic() - start:.1f} s")
        model = trained.model
    wishes = {
        "favourable": favourable(asked.favourable, model),
        "threshold": asked.threshold,
        "space": space,
        "cost": cost_of(space, X, asked),
        "budget": asked.budget,
        "rng": asked.seed,
        "progress": not logs.is_quiet(),
        "time_limit": asked.time_limit,
    }
    rest = [c for c in columns if c not in wanted]
    return Task(model, X, frame.select([*wanted, *rest]).to_native() if rest else X, space, wishes, trains)


def load(asked: Asked) -> Any:
    """Load the model file; a slip in the name of a kind is named as one."""
    kind = nearest(asked.model, training.KINDS)
    if kind and not Path(asked.model).suffix and not Path(asked.model).exists():
        raise InvalidParameterError(
            f"--model {asked.model!r} is neither a kind of model to train ({', '.join(training.KINDS)}) nor a model "
            f"file ({', '.join(ENDINGS)}). Did you mean {kind!r}?"
        )
    if not Path(asked.model).suffix:
        raise InvalidParameterError(
            f"--model: cannot tell what kind of model {asked.model!r} is; name a model file that ends in "
            f"{', '.join(ENDINGS)}, or a kind of model to train on DATA: {', '.join(training.KINDS)}"
        )
    start = time.monotonic()
    model = load_model(asked.model, allow_pickle=asked.allow_pickle, trusted=asked.trusted)
    logs.note(f"loaded {asked.model}: {type(model).__name__}; {time.monotonic() - start:.1f} s")
    return model


def _set_in(asked: Asked, key: str) -> str:
    return f"; or set {key} in [outcome] of {asked.config.name}" if asked.config.name else ""


def _check_favourable(asked: Asked, frame: Any) -> None:
    """Raise if a configuration leaves open what only a person can say."""
    if asked.favourable != "":
        return
    values = [] if not asked.outcome else frame[asked.outcome].unique().sort().to_list()
    among = f", one of {values[:SHOWN]}" if 0 < len(values) <= SHOWN else ""
    raise InvalidParameterError(
        f"{asked.config.where('outcome', 'favourable') or '--favourable'}: favourable is empty; say which outcome "
        f"people want{among}, there or with --favourable"
    )


def ignored_of(asked: Asked, columns: list[str]) -> set[str]:
    """The columns to leave out."""
    unused = (name for name, wish in asked.features.items() if wish.used is False)
    return {*names("--ignore", asked.ignore, columns), *unused}


# -- what may move, and its cost --------------------------------------------------------------------------------------


def space_of(X: Any, asked: Asked, known: Iterable[str]) -> FeatureSpace:
    """The feature space that the options and the configuration ask for: an option wins for the features it names."""
    frame = nw.from_native(X, eager_only=True)
    try:
        space = FeatureSpace.from_frame(X, **constraints_of(frame, asked, known))
    except InvalidParameterError as error:
        places = [asked.config.where("features", name) for name in asked.features if repr(name) in str(error)]
        if not places:
            raise
        raise type(error)(f"{error} (the configuration says so in {places[0]})") from error
    for name, wish in asked.features.items():
        shaped = name in space.names and name not in names("--categorical", asked.categorical, list(space.names))
        if shaped and wish.kind is not None and space[name].kind != wish.kind:
            raise InvalidParameterError(
                f"{asked.config.where('features', name, 'kind')}: {name!r} cannot be {wish.kind}: its column makes it "
                f"{space[name].kind}"
            )
    return space


def constraints_of(frame: Any, asked: Asked, known: Iterable[str]) -> dict[str, Any]:
    """What the options and the configuration ask :meth:`FeatureSpace.from_frame` for, by its parameters."""
    wishes = {name: wish for name, wish in asked.features.items() if name in frame.columns or _is_group(wish, frame)}
    for name in asked.features:
        if name not in wishes and name not in known:
            raise UnknownFeatureError(
                f"{asked.config.where('features', name)}: DATA has no column {name!r}."
                f"{did_you_mean(name, frame.columns)} It has {frame.columns}"
            )
    features = [*frame.columns, *(name for name, wish in wishes.items() if wish.columns)]
    categorical = names("--categorical", asked.categorical, features)
    moved = {
        "fixed": names("--immutable", asked.immutable, features),
        "rise": names("--increasing", asked.increasing, features),
        "fall": names("--decreasing", asked.decreasing, features),
        "free": names("--movable", asked.movable, features),
    }
    shaped = {name: wish for name, wish in wishes.items() if name not in categorical}
    free = {
        name: wish
        for name, wish in wishes.items()
        if not any(name in chosen for chosen in moved.values()) and (name in shaped or wish.may == "fixed")
    }
    for name, wish in shaped.items():
        _check_order(name, wish, frame, asked)
    return {
        "categorical": [
            *categorical,
            *(name for name, wish in shaped.items() if wish.kind == "categorical" and not wish.columns),
        ],
        "ordinal": {name: list(wish.order) for name, wish in shaped.items() if wish.order is not None},
        "groups": {name: list(wish.columns) for name, wish in wishes.items() if wish.columns},
        "immutable": [*moved["fixed"], *(name for name, wish in free.items() if wish.may == "fixed")],
        "increasing": [*moved["rise"], *(name for name, wish in free.items() if wish.may == "rise")],
        "decreasing": [*moved["fall"], *(name for name, wish in free.items() if wish.may == "fall")],
        "ranges": {name: wish.range for name, wish in shaped.items() if wish.range is not None},
        "permitted": {name: list(wish.permitted) for name, wish in wishes.items() if wish.permitted is not None},
        "whole": _whole(frame, wishes),
    }


def _check_order(name: str, wish: FeatureWish, frame: Any, asked: Asked) -> None:
    """Raise if an order lacks some of the values that there are."""
    if wish.order is None or name not in frame.columns:
        return
    lacking = sorted(map(str, set(frame[name].drop_nulls().unique().to_list()) - set(wish.order)))
    if lacking:
        raise InvalidParameterError(
            f"{asked.config.where('features', name, 'order')}: the order of {name!r} lacks {lacking[:SHOWN]}, which "
            "DATA has; put each in its place, or make the feature categorical"
        )


def _is_group(wish: FeatureWish, frame: Any) -> bool:
    return bool(wish.columns) and set(wish.columns or ()) <= set(frame.columns)


def _whole(frame: Any, wishes: Mapping[str, FeatureWish]) -> list[str] | None:
    """Features that move in whole numbers, if the configuration says so of any; ``None`` for what the types say."""
    said = {name: wish.whole for name, wish in wishes.items() if wish.whole is not None}
    if not said:
        return None
    by_type = [name for name, kind in frame.schema.items() if kind.is_integer()]
    return [name for name in frame.columns if said.get(name, name in by_type)]


def cost_of(space: FeatureSpace, X: Any, asked: Asked) -> CostModel | None:
    """The cost model that the configuration asks for; ``None`` for the usual one."""
    weights = {name: w.weight for name, w in asked.features.items() if w.weight is not None and name in space.names}
    widths = {name: w.width for name, w in asked.features.items() if w.width is not None and name in space.names}
    norm: Any = asked.norm or "l1"
    if asked.scale == "deciles":
        if widths:
            raise InvalidParameterError(
                f"{asked.config.where('cost', 'scale')}: deciles have no widths of bins ({', '.join(widths)}); take "
                "scale = 'bins', or remove them"
            )
        return CostModel.deciles(space, X, weights=weights, norm=norm)
    if not weights and not widths and norm == "l1":
        return None
    return CostModel.bins(space, widths=widths, weights=weights, norm=norm)


# -- words of the command line ----------------------------------------------------------------------------------------


def wanted_of(model: Any, available: list[str]) -> list[str]:
    """The columns that the model was trained on, in its order; all of them if it does not say."""
    trained_on = getattr(model, "feature_names_in_", None)
    if trained_on is None:  # CatBoost's name for it; of a matrix they are numbers
        trained_on = getattr(model, "feature_names_", None) or None
        trained_on = None if trained_on == [str(i) for i in range(len(trained_on or ()))] else trained_on
    if trained_on is None:
        _check_count(model, available)
        return available
    place = {name.replace(" ", "_"): name for name in available} | {name: name for name in available}
    missing = [str(name) for name in trained_on if name not in place]
    if missing:
        hint = did_you_mean(missing[0], available)
        raise UnknownFeatureError(
            f"the model was trained on column(s) {missing}, which DATA lacks; it has {available}.{hint} Is it the "
            "right model for these data?"
        )
    chosen = [place[name] for name in trained_on]
    ignored = [name for name in available if name not in chosen]
    if ignored:
        logs.say(f"The model was not trained on {ignored}: not used.")
    return chosen


def _check_count(model: Any, available: list[str]) -> None:
    """Raise if a model that does not name its columns takes another number of them."""
    takes = getattr(model, "n_features_in_", None)
    if isinstance(takes, (int, np.integer)) and takes != len(available):
        raise InvalidDataError(
            f"the model takes {takes} columns and does not name them, and DATA has {len(available)}: {available}. Is "
            "it the right model for these data? Leave out what it does not take with --ignore, or name the column of "
            "outcomes with --outcome"
        )


def names(option: str, values: tuple[str, ...], columns: list[str]) -> tuple[str, ...]:
    """Names out of ``a,b`` and of repeated options; a name that has a comma in it comes alone."""
    found: list[str] = []
    for value in values:
        found += [value] if value in columns else [part.strip() for part in value.split(",") if part.strip()]
    unknown = sorted(set(found) - set(columns))
    if unknown:
        hint = did_you_mean(unknown[0], columns)
        raise UnknownFeatureError(f"{option} names unknown feature(s) {unknown}; there are {columns}.{hint}")
    return tuple(found)


def favourable(text: str | None, model: Any) -> Any:
    """The class that the text stands for: classes may be numbers or truth values, and a command line is text."""
    if text is None:
        return None
    classes = getattr(model, "classes_", None)
    if classes is None:
        return number(text)
    known = np.asarray(classes).tolist()
    for same in (lambda c: str(c) == text, lambda c: str(c).lower() == text.lower(), lambda c: c == number(text)):
        for c in known:
            if same(c):
                return c
    raise InvalidParameterError(f"--favourable must be one of the model's classes {known}; got {text!r}")


def number(text: str) -> Any:
    """The number that the text stands for, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
