"""From the options to what a command works on: the rows, the model, and what may move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from globece.auditing.assumptions import check_not_adverse
from globece.cli import output, training
from globece.cli.options import Asked
from globece.errors import InvalidParameterError, UnknownFeatureError
from globece.io.frames import read_frame
from globece.io.model_files import load_model
from globece.io.trained_types import as_trained
from globece.space import FeatureSpace


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
    trains, outcome = asked.model in training.KINDS, asked.outcome
    if trains and outcome is None:
        raise InvalidParameterError(f"--model {asked.model} trains on DATA and needs --outcome, the column to learn")
    model = None if trains else load_model(asked.model, allow_pickle=asked.allow_pickle, trusted=asked.trusted)
    frame = nw.from_native(as_trained(model, read_frame(asked.data)), eager_only=True)
    columns = list(frame.columns)
    if outcome is not None and outcome not in columns:
        raise UnknownFeatureError(f"--outcome names unknown column {outcome!r}; there are {columns}")
    if asked.favourable is None and outcome is not None:
        check_not_adverse(outcome, "--outcome names", "--favourable")
    wanted = _wanted(model, [c for c in columns if c != outcome])
    X = frame.select(wanted).to_native()
    space = FeatureSpace.from_frame(
        X,
        immutable=names("--immutable", asked.immutable, wanted),
        increasing=names("--increasing", asked.increasing, wanted),
        decreasing=names("--decreasing", asked.decreasing, wanted),
        categorical=names("--categorical", asked.categorical, wanted),
    )
    if trains:
        trained = training.train(asked.model, X, training.outcomes(frame, str(outcome)), space, asked.seed)
        output.say(f"{asked.model}: {trained}")
        model = trained.model
    wishes = {
        "favourable": favourable(asked.favourable, model),
        "threshold": asked.threshold,
        "space": space,
        "budget": asked.budget,
        "rng": asked.seed,
        "progress": True,
        "time_limit": asked.time_limit,
    }
    rest = [c for c in columns if c not in wanted]
    return Task(model, X, frame.select([*wanted, *rest]).to_native() if rest else X, space, wishes, trains)


def _wanted(model: Any, available: list[str]) -> list[str]:
    """The columns that the model was trained on, in its order; all of them if it does not say."""
    trained_on = getattr(model, "feature_names_in_", None)
    if trained_on is None:  # CatBoost's name for it; of a matrix they are numbers
        trained_on = getattr(model, "feature_names_", None) or None
        trained_on = None if trained_on == [str(i) for i in range(len(trained_on or ()))] else trained_on
    if trained_on is None:
        return available
    place = {name.replace(" ", "_"): name for name in available} | {name: name for name in available}
    missing = [str(name) for name in trained_on if name not in place]
    if missing:
        raise UnknownFeatureError(f"the model was trained on column(s) {missing}, which DATA lacks; it has {available}")
    chosen = [place[name] for name in trained_on]
    ignored = [name for name in available if name not in chosen]
    if ignored:
        output.say(f"The model was not trained on {ignored}: not used.")
    return chosen


def names(option: str, values: tuple[str, ...], columns: list[str]) -> tuple[str, ...]:
    """Names out of ``a,b`` and of repeated options; a name that has a comma in it comes alone."""
    found: list[str] = []
    for value in values:
        found += [value] if value in columns else [part.strip() for part in value.split(",") if part.strip()]
    unknown = sorted(set(found) - set(columns))
    if unknown:
        raise UnknownFeatureError(f"{option} names unknown feature(s) {unknown}; there are {columns}")
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
