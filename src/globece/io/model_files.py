"""Load a trained model from a file, without running code from it unless that is asked for by name.

The boosters' own formats and ONNX hold numbers, names and operators only. skops files name the types that they would
build, and those that are not known to be harmless must be listed. A pickle runs whatever its author wrote.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from globece.errors import FileFormatError, InvalidParameterError, check_flag, check_names
from globece.io.boosters import load_catboost, load_lightgbm, load_xgboost
from globece.io.files import check_file, check_path, first_line
from globece.io.onnx_files import load_onnx
from globece.io.skops_files import load_skops

PICKLES = (".pkl", ".pickle", ".joblib")
ENDINGS = (".json", ".ubj", ".txt", ".cbm", ".onnx", ".skops", *PICKLES)


def load_model(path: str | os.PathLike[str], *, allow_pickle: bool = False, trusted: Iterable[str] = ()) -> Any:
    """Load a model that :func:`globece.explain` takes.

    ===================  ==========================================================================================
    ending               what comes back
    ===================  ==========================================================================================
    ``.json``, ``.ubj``  XGBoost's own formats: an ``XGBClassifier``, ``XGBRegressor`` or ``XGBRanker``
    ``.txt``             LightGBM's own format: a :class:`globece.io.boosters.LightGBMClassifier` or ``Regressor``
    ``.cbm``             CatBoost's own format: a ``CatBoostClassifier``, ``CatBoostRegressor`` or ``CatBoostRanker``
    ``.onnx``            a graph, as an ``OnnxClassifier`` or ``OnnxRegressor``; it is followed exactly where its
                         operators are those of a linear model, trees or a network of ReLUs
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
        Full names of types that a skops file may build in addition to those that skops, or
        :data:`globece.io.skops_files.TRUSTED`, names as harmless.

    Notes
    -----
    Models of boosters that were trained with categories keep them, and take only columns of these. Give a frame that
    was read from a file the same types with :func:`globece.io.trained_types.as_trained`; the command line does.

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
    if ending not in ENDINGS:
        raise FileFormatError(f"cannot tell what kind of model {str(file)!r} is; its name must end in {_allowed()}")
    if ending in PICKLES and not allow_pickle:
        raise InvalidParameterError(
            f"{str(file)!r} is a pickle, and loading it runs code that its author chose; if you trust the file, pass "
            "allow_pickle=True (--allow-pickle on the command line), or save the model as .skops"
        )
    check_file("cannot load a model from", file)
    if file.stat().st_size == 0:
        raise FileFormatError(f"{file} is empty; save the model again")
    if ending == ".skops":
        return load_skops(file, names)
    return _pickle(file) if ending in PICKLES else LOADERS[ending](file)


def _allowed() -> str:
    return ", ".join(ENDINGS)


LOADERS = {
    ".json": load_xgboost,
    ".ubj": load_xgboost,
    ".txt": load_lightgbm,
    ".cbm": load_catboost,
    ".onnx": load_onnx,
}


def _pickle(file: Path) -> Any:
    try:
        if file.suffix.lower() == ".joblib":
            return import_module("joblib").load(file)  # comes with scikit-learn
        with file.open("rb") as stream:
            return pickle.load(stream)
    except OSError:
        raise
    except Exception as error:  # whatever the pickle does
        raise FileFormatError(f"{file} cannot be unpickled: {first_line(error)}") from error
