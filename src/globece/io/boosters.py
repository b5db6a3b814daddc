"""Load XGBoost's, LightGBM's and CatBoost's own files: trees, numbers and names, and no code.

Their native readers trust what they read. So what a file claims is looked at before: that it is whole, and that its
trees are trees.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from globece.errors import FileFormatError, ModelError, require
from globece.io.apart import DIED, Apart
from globece.io.booster_checks import check_catboost, check_lightgbm, check_xgboost, rewritten
from globece.io.files import first_line
from globece.models.trees import ubjson
from globece.space import FloatArray

DAMAGED = (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError)
NEWER = "if it was saved by a newer release, update it"

# -- XGBoost ------------------------------------------------------------------------------------------------------


def load_xgboost(file: Path) -> Any:
    """An ``XGBClassifier``, ``XGBRegressor`` or ``XGBRanker`` out of ``.json`` or ``.ubj``."""
    xgboost = require("xgboost", extra="trees", caller=f"load_model({file.name!r})")
    raw = file.read_bytes()
    document = _document(file, raw)
    check_xgboost(document, file)
    objective = str(document["learner"]["objective"]["name"])
    estimator = {"binary": xgboost.XGBClassifier, "multi": xgboost.XGBClassifier, "rank": xgboost.XGBRanker}
    try:
        model = estimator.get(objective.partition(":")[0], xgboost.XGBRegressor)()
        model.load_model(bytearray(raw))
        model.get_booster().save_config()
    except (xgboost.core.XGBoostError, OverflowError, *DAMAGED) as error:
        raise FileFormatError(
            f"{file} is not a model that XGBoost {xgboost.__version__} can read; {NEWER} ({first_line(error)})"
        ) from error
    return model


def _document(file: Path, raw: bytes) -> dict[str, Any]:
    try:
        content = json.loads(raw) if file.suffix.lower() == ".json" else ubjson.loads(raw)
    except (ValueError, RecursionError, ModelError) as error:
        kind = "JSON" if file.suffix.lower() == ".json" else "UBJSON"
        raise FileFormatError(f"{file} is not {kind}: {first_line(error)}") from error
    if not isinstance(content, dict) or not isinstance(content.get("learner"), dict):
        raise FileFormatError(
            f"{file} is not an XGBoost model: it has no 'learner'; save one with model.save_model({file.name!r})"
        )
    return content


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
    categories_
        The categories of each categorical column, if it was trained on a pandas frame with such columns.
    """

    booster_: Any
    objective: str
    feature_names_in_: tuple[str, ...]
    categories_: dict[str, tuple[Any, ...]] = field(default_factory=dict, kw_only=True)

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


def load_lightgbm(file: Path) -> LightGBMClassifier | LightGBMRegressor:
    """A classifier or a regressor out of ``.txt``."""
    lightgbm = require("lightgbm", extra="trees", caller=f"load_model({file.name!r})")
    text = file.read_bytes().decode("utf-8", errors="replace")
    header = check_lightgbm(text, file)
    try:
        booster = lightgbm.Booster(model_str=rewritten(text))
        names = tuple(booster.feature_name())
        lists = booster.pandas_categorical or []
        n_classes = int(header.get("num_class", "1"))
    except (lightgbm.basic.LightGBMError, RecursionError, *DAMAGED) as error:
        raise FileFormatError(
            f"{file} is not a model that LightGBM {lightgbm.__version__} can read; {NEWER} ({first_line(error)})"
        ) from error
    objective = header.get("objective", "none").split(" ")[0]
    more: dict[str, Any] = {"categories_": _pandas_categories(text, header, names, lists, file)}
    if objective == "binary":
        return LightGBMClassifier(booster, objective, names, **more)
    if objective in ("multiclass", "multiclassova"):
        return LightGBMClassifier(booster, objective, names, n_classes, **more)
    return LightGBMRegressor(booster, objective, names, **more)


def _pandas_categories(
    text: str, header: dict[str, str], names: tuple[str, ...], lists: Any, file: Path
) -> dict[str, tuple[Any, ...]]:
    """Which column each of the file's lists of categories belongs to: they are listed in the order of the columns."""
    if not isinstance(lists, list) or not all(isinstance(values, list) for values in lists):
        raise FileFormatError(f"{file} lists its categories as {type(lists).__name__}; save the model again")
    if not lists:
        return {}
    named = re.search(r"^\[categorical_feature: ([\d,]+)\]$", text, flags=re.MULTILINE)
    if named:
        found = [int(i) for i in named.group(1).split(",") if i]
    else:  # what LightGBM writes about the values of a column: [1:5] of numbers, 1:2:5 of categories
        infos = header.get("feature_infos", "").split(" ")
        found = [i for i, info in enumerate(infos) if info != "none" and not info.startswith("[")]
    if len(found) != len(lists) or max(found) >= len(names):
        raise FileFormatError(
            f"{file} has {len(lists)} lists of categories and {len(found)} categorical columns; save the model again "
            "with the parameters that it was trained with"
        )
    return {names[i]: tuple(values) for i, values in zip(found, lists, strict=True)}


# -- CatBoost -----------------------------------------------------------------------------------------------------

CLASSIFYING = ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll")
RANKING = ("YetiRank", "PairLogit", "QueryRMSE", "QuerySoftMax", "StochasticRank", "LambdaMart", "QueryCrossEntropy")


# In a process of its own, what is done with a model later: read it, ask for its parts, predict rows of odd values. A
# whole model predicts rows of its own kinds, as lists and as a frame. It may refuse missing numbers, and not each can
# be written as JSON; but none may crash.
TRIAL = """
import contextlib, os, random, tempfile
from catboost import CatBoost
ROWS = 300  # CatBoost predicts blocks of 128 rows in another way than a few, and looks categories up by their hashes
draw = random.Random(0)
def work(raw):
    model = CatBoost().load_model(blob=raw)
    model.get_all_params()
    model.classes_
    texts, names = {*model.get_cat_feature_indices(), *model.get_text_feature_indices()}, model.feature_names_
    def row(number, text):
        return [text if i in texts else number for i in range(len(names))]
    rows = [row(0.0, ""), row(1e30, "a"), row(-1e30, "b")]
    rows += [row(draw.uniform(-1, 1) * 10.0 ** draw.randint(-3, 6), str(draw.getrandbits(20))) for _ in range(ROWS)]
    if not model.get_embedding_feature_indices():
        model.predict(rows)
        with contextlib.suppress(ImportError):
            import pandas
            model.predict(pandas.DataFrame(rows, columns=names))
    with contextlib.suppress(Exception):
        model.predict([row(float("nan"), "1")] * ROWS)
        model.calc_leaf_indexes(rows)
    with contextlib.suppress(Exception), tempfile.TemporaryDirectory() as folder:
        model.save_model(os.path.join(folder, "model.json"), format="json")
"""
_trial = Apart(TRIAL)


def try_apart(raw: bytes, file: Path) -> None:
    """Raise where another process cannot read and use a model: CatBoost trusts what is inside, and may crash on it."""
    wrong = _trial.wrong_with(raw)
    if wrong == DIED:
        raise FileFormatError(f"{file} is a damaged CatBoost model: reading it makes CatBoost crash; save it again")
    if wrong is not None:
        catboost = require("catboost", extra="catboost", caller=f"load_model({file.name!r})")
        raise FileFormatError(
            f"{file} is not a model that CatBoost {catboost.__version__} can read; {NEWER} ({wrong.splitlines()[0]})"
        )


def load_catboost(file: Path) -> Any:
    """A ``CatBoostClassifier``, ``CatBoostRegressor`` or ``CatBoostRanker`` out of ``.cbm``."""
    catboost = require("catboost", extra="catboost", caller=f"load_model({file.name!r})")
    raw = file.read_bytes()
    check_catboost(raw, file)
    try_apart(raw, file)
    try:
        plain = catboost.CatBoost().load_model(blob=raw)
        loss = str(plain.get_all_params().get("loss_function", "")).partition(":")[0]
        if loss.startswith(CLASSIFYING):
            kind = catboost.CatBoostClassifier
        else:
            kind = catboost.CatBoostRanker if loss.startswith(RANKING) else catboost.CatBoostRegressor
        return kind().load_model(blob=raw)
    except (catboost.CatBoostError, *DAMAGED) as error:
        raise FileFormatError(
            f"{file} is not a model that CatBoost {catboost.__version__} can read; {NEWER} ({first_line(error)})"
        ) from error
