"""Load a trained model from a file, without running code from it unless that is asked for by name.

XGBoost's and LightGBM's own formats hold trees and numbers only. skops files name the types that they would build, and
those that are not known to be harmless must be listed. A pickle runs whatever its author wrote.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from globece.errors import (
    FileFormatError,
    InvalidParameterError,
    MissingExtraError,
    ModelError,
    check_flag,
    check_names,
    require,
)
from globece.io.files import check_file, check_path
from globece.space import FloatArray

PICKLES = (".pkl", ".pickle", ".joblib")
ENDINGS = (".json", ".ubj", ".txt", ".skops", *PICKLES)


def load_model(path: str | os.PathLike[str], *, allow_pickle: bool = False, trusted: Iterable[str] = ()) -> Any:
    """Load a model that :func:`globece.explain` takes.

    ===================  ==========================================================================================
    ending               what comes back
    ===================  ==========================================================================================
    ``.json``, ``.ubj``  XGBoost's own formats: an ``XGBClassifier``, ``XGBRegressor`` or ``XGBRanker``
    ``.txt``             LightGBM's own format: a :class:`LightGBMClassifier` or :class:`LightGBMRegressor`
    ``.skops``           whatever scikit-learn estimator was saved, if its types are known or trusted
    ``.pkl``,            whatever was pickled, if ``allow_pickle`` is set
    ``.pickle``,
    ``.joblib``
    ===================  ==========================================================================================

    Parameters
    ----------
    path
        The file.
    allow_pickle
        Whether a pickle may be loaded. It runs code that its author chose: allow it only for your own files.
    trusted
        Full names of types that a skops file may build in addition to those that skops knows to be harmless.

    Examples
    --------
    >>> load_model("model.pkl")
    Traceback (most recent call last):
    ...
    globece.errors.InvalidParameterError: 'model.pkl' is a pickle, and loading it runs code that its author chose; ...
    """
    allow_pickle = check_flag("allow_pickle", allow_pickle)
    names = check_names("trusted", trusted, "full type names, never True")
    file = Path(check_path("path", path))
    ending = file.suffix.lower()
    if ending == ".onnx":
        raise FileFormatError(f"cannot load {str(file)!r}: ONNX models are not supported yet; allowed: {_allowed()}")
    if ending not in ENDINGS:
        raise FileFormatError(f"cannot tell what kind of model {str(file)!r} is; its name must end in {_allowed()}")
    if ending in PICKLES and not allow_pickle:
        raise InvalidParameterError(
            f"{str(file)!r} is a pickle, and loading it runs code that its author chose; if you trust the file, pass "
            "allow_pickle=True (--allow-pickle on the command line), or save the model as .skops"
        )
    check_file("cannot load a model from", file)
    if ending in (".json", ".ubj"):
        return _xgboost(file)
    if ending == ".txt":
        return _lightgbm(file)
    return _skops(file, names) if ending == ".skops" else _pickle(file)


def _allowed() -> str:
    return ", ".join(ENDINGS)


# -- XGBoost ------------------------------------------------------------------------------------------------------


def _xgboost(file: Path) -> Any:
    xgboost = require("xgboost", extra="trees", caller=f"load_model({file.name!r})")
    if file.suffix.lower() == ".json":
        _check_xgboost_json(file)
    try:
        booster = xgboost.Booster()
        booster.load_model(file)
        objective = str(json.loads(booster.save_config())["learner"]["objective"]["name"])
        kind = objective.partition(":")[0]
        estimator = {"binary": xgboost.XGBClassifier, "multi": xgboost.XGBClassifier, "rank": xgboost.XGBRanker}
        model = estimator.get(kind, xgboost.XGBRegressor)()
        model.load_model(file)
    except (xgboost.core.XGBoostError, KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{file} is not a model that XGBoost {xgboost.__version__} can read") from error
    return model


def _check_xgboost_json(file: Path) -> None:
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{file} is not JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("learner"), dict):
        raise FileFormatError(f"{file} is JSON, but not an XGBoost model: it has no 'learner'")


# -- LightGBM -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _LightGBM:
    """A LightGBM booster that takes frames as well as matrices, and finds its columns by name.

    Attributes
    ----------
    booster_
        The ``lightgbm.Booster``.
    objective
        What it was trained for, as the file says.
    feature_names_in_
        Names of its columns. LightGBM writes an underscore for a space.
    """

    booster_: Any
    objective: str
    feature_names_in_: tuple[str, ...]

    def _scores(self, X: Any) -> FloatArray:
        return np.asarray(self.booster_.predict(self._columns(X)), dtype=np.float64)

    def _columns(self, X: Any) -> Any:
        if isinstance(X, np.ndarray):
            return X
        frame = nw.from_native(X, eager_only=True)
        place = {name.replace(" ", "_"): name for name in frame.columns}
        missing = [name for name in self.feature_names_in_ if name not in place]
        if missing:
            raise ModelError(f"the LightGBM model needs column(s) {missing}; the frame has {list(frame.columns)}")
        chosen = frame.select([place[name] for name in self.feature_names_in_])
        return chosen.to_native() if frame.implementation.is_pandas() else chosen.to_numpy()


@dataclass(frozen=True, eq=False)
class LightGBMClassifier(_LightGBM):
    """A LightGBM classifier out of a file: ``predict`` returns classes, ``predict_proba`` their probabilities.

    The file does not keep the user's labels, so classes are numbered from 0, in the order of the labels at training.
    """

    n_classes: int = 2

    @property
    def classes_(self) -> NDArray[np.int64]:
        """The classes: 0, 1, ..."""
        return np.arange(self.n_classes)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, one per column."""
        scores = self._scores(X)
        return scores if scores.ndim == 2 else np.column_stack([1.0 - scores, scores])

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The most probable class of each row, as ``lightgbm.LGBMClassifier`` chooses it."""
        return np.asarray(self.predict_proba(X).argmax(axis=1), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LightGBMRegressor(_LightGBM):
    """A LightGBM model out of a file that is no classifier: ``predict`` returns its values, to set a threshold on."""

    def predict(self, X: Any) -> FloatArray:
        """The value of each row."""
        return self._scores(X)


def _lightgbm(file: Path) -> LightGBMClassifier | LightGBMRegressor:
    lightgbm = require("lightgbm", extra="trees", caller=f"load_model({file.name!r})")
    text = file.read_bytes().decode("utf-8", errors="replace")
    # LightGBM's own reader prints to standard output, and trusts what it reads: look before.
    if not text.startswith("tree\n") or "\nend of trees" not in text:
        raise FileFormatError(f"{file} is not a whole LightGBM model: it must go from 'tree' to 'end of trees'")
    header = dict(line.partition("=")[::2] for line in text.partition("\n\n")[0].splitlines())
    try:
        booster = lightgbm.Booster(model_str=text)
        names = tuple(booster.feature_name())
        n_classes = int(header.get("num_class", "1"))
    except (lightgbm.basic.LightGBMError, ValueError) as error:
        raise FileFormatError(f"{file} is not a model that LightGBM {lightgbm.__version__} can read") from error
    objective = header.get("objective", "none").split(" ")[0]
    if objective == "binary":
        return LightGBMClassifier(booster, objective, names)
    if objective in ("multiclass", "multiclassova"):
        return LightGBMClassifier(booster, objective, names, n_classes)
    return LightGBMRegressor(booster, objective, names)


# -- scikit-learn -------------------------------------------------------------------------------------------------


def _skops(file: Path, trusted: tuple[str, ...]) -> Any:
    skops = require("skops.io", extra="onnx", caller=f"load_model({file.name!r})")

    def read(task: Callable[[], Any]) -> Any:
        try:
            return task()
        except OSError:
            raise
        except ImportError as error:
            raise MissingExtraError(f"{file} needs {error.name or error}, which is not installed") from error
        except Exception as error:  # a damaged file fails in many ways
            raise FileFormatError(f"{file} is not a skops file that can be read: {_said(error)}") from error

    unknown = sorted(set(read(lambda: skops.get_untrusted_types(file=file))) - set(trusted))
    if unknown:
        raise InvalidParameterError(
            f"{str(file)!r} holds types that are not trusted: {unknown}; if you know them to be harmless, name each in "
            "trusted=[...] (--trusted TYPE on the command line)"
        )
    return read(lambda: skops.load(file, trusted=list(trusted)))


def _pickle(file: Path) -> Any:
    try:
        if file.suffix.lower() == ".joblib":
            return import_module("joblib").load(file)  # comes with scikit-learn
        with file.open("rb") as stream:
            return pickle.load(stream)
    except OSError:
        raise
    except Exception as error:  # whatever the pickle does
        raise FileFormatError(f"{file} cannot be unpickled: {_said(error)}") from error


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
