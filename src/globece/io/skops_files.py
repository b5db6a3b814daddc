"""Load a scikit-learn model from a skops file: its types are listed, and its trees looked at, before any is used.

skops knows scikit-learn's estimators to be harmless, and not what some of them hold. :data:`TRUSTED` names those parts
of scikit-learn's and the boosters' own models. Each is there because loading it copies numbers and names, and using it
computes with them. What calls a function of the file's choosing (``functools.partial``, ``operator.methodcaller``, the
functions of a ``FunctionTransformer``) is not among them, nor is what wraps memory as it is (``KDTree``).
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from globece.errors import FileFormatError, InvalidParameterError, MissingExtraError, ModelError, require
from globece.io.booster_checks import check_catboost, check_lightgbm, check_xgboost
from globece.io.boosters import try_apart
from globece.io.files import first_line
from globece.models.trees import ubjson

TRUSTED = (
    # plain data
    "collections.OrderedDict",
    "numpy.dtype",
    "sklearn.utils._bunch.Bunch",
    # scikit-learn's trees: arrays of nodes, whose children and features are checked
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    # parts of calibrated models, networks and linear models: numbers, and formulas without a choice
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn._loss.loss.HalfTweedieLoss",
    "sklearn._loss.loss.HalfTweedieLossIdentity",
    # how a search or a threshold was tuned: predicting does not use it
    "sklearn.feature_selection._univariate_selection.chi2",
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.feature_selection._univariate_selection.f_regression",
    "sklearn.metrics._classification.balanced_accuracy_score",
    "sklearn.metrics._scorer._CurveScorer",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.metrics._scorer._Scorer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
    # the boosters: parameters, and a model in the library's own format, which is checked
    "catboost.core.CatBoostClassifier",
    "catboost.core.CatBoostRegressor",
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
    "lightgbm.sklearn.LGBMRegressor",
    "xgboost.core.Booster",
    "xgboost.sklearn.XGBClassifier",
    "xgboost.sklearn.XGBRegressor",
    "xgboost.sklearn.XGBRFClassifier",
    "xgboost.sklearn.XGBRFRegressor",
)
LARGEST = 1 << 32  # bytes, unpacked
MOST_FOLDED = 200  # times as large as packed: what is not made to fill the memory


def load_skops(file: Path, trusted: tuple[str, ...]) -> Any:
    """Whatever estimator was saved, if skops, :data:`TRUSTED` or ``trusted`` names each of its types."""
    skops = require("skops.io", extra="onnx", caller=f"load_model({file.name!r})")

    def read(task: Callable[[], Any]) -> Any:
        try:
            return task()
        except (OSError, FileFormatError, MissingExtraError):
            raise
        except ImportError as error:
            raise MissingExtraError(f"{file} needs {error.name or error}, which is not installed") from error
        except Exception as error:  # a damaged file fails in many ways
            raise FileFormatError(
                f"{file} is not a skops file that can be read: {first_line(error)}; if it was saved with newer "
                "releases of skops or scikit-learn, update them"
            ) from error

    raw = file.read_bytes()
    read(lambda: _check_archive(raw, file))
    found = set(read(lambda: skops.get_untrusted_types(data=raw)))
    unknown = sorted(found - set(trusted) - set(TRUSTED))
    if unknown:
        options = " ".join(f"--trusted {name}" for name in unknown)
        raise InvalidParameterError(
            f"{str(file)!r} holds types that are not trusted: {unknown}; if you know them to be harmless, name each in "
            f"trusted=[...] (on the command line: {options})"
        )
    model = read(lambda: skops.loads(raw, trusted=sorted(found)))
    read(lambda: _check_trees(model, file))
    return model


# -- the archive ------------------------------------------------------------------------------------------------------


def _check_archive(raw: bytes, file: Path) -> None:
    """Refuse what unpacks to far more than it is, and boosters that their library could not read safely."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
        if size > min(LARGEST, MOST_FOLDED * len(raw) + (1 << 20)):
            raise FileFormatError(f"{file} would unpack to {size:,} bytes, and has {len(raw):,}")
        schema = json.loads(archive.read("schema.json"))
        for node in _nodes(schema):
            name = f"{node.get('__module__')}.{node.get('__class__')}"
            if name in ("xgboost.core.Booster", "lightgbm.basic.Booster"):
                _check_booster(name, node, archive, file)
            elif name.startswith("catboost.") and node.get("__loader__") == "ObjectNode":
                booster = _bytes(_state(node)["__model"], archive)
                check_catboost(booster, file)
                try_apart(booster, file)


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object that a schema describes."""
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            if "__class__" in here:
                yield here
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here


def _check_booster(name: str, node: dict[str, Any], archive: zipfile.ZipFile, file: Path) -> None:
    state = _state(node)
    if name.startswith("lightgbm"):
        handle = state.get("_handle", state.get("handle"))
        if handle is None:
            raise ValueError("a LightGBM booster without a model")
        check_lightgbm(json.loads(handle["content"]), file)
        return
    try:
        document = ubjson.loads(_bytes(state["handle"], archive))
    except ModelError as error:
        raise FileFormatError(f"{file} holds a damaged XGBoost model: {error}") from error
    check_xgboost(document["Model"], file)


def _state(node: dict[str, Any]) -> dict[str, Any]:
    found = node["content"]["content"]
    if not isinstance(found, dict):
        raise ValueError(f"a {node['__class__']} without a state")
    return found


def _bytes(node: dict[str, Any], archive: zipfile.ZipFile) -> bytes:
    return archive.read(node["file"])


# -- what was built ---------------------------------------------------------------------------------------------------


def _check_trees(model: Any, file: Path) -> None:
    """Refuse trees whose nodes point outside: scikit-learn follows them without looking."""
    waiting, seen = [model], set()
    while waiting:
        here = waiting.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        kind = type(here).__name__
        if kind == "Tree" and type(here).__module__ == "sklearn.tree._tree":
            _check_tree(here.children_left, here.children_right, here.feature, here.n_features, file)
        elif kind == "TreePredictor" and type(here).__module__.startswith("sklearn."):
            _check_predictor(here, file)
        elif isinstance(here, dict):
            waiting += here.values()
        elif isinstance(here, list | tuple):
            waiting += here
        elif isinstance(here, np.ndarray):
            waiting += here.ravel().tolist() if here.dtype == object else []
        elif type(here).__module__.split(".")[0] in ("sklearn", "builtins", "numpy") and hasattr(here, "__dict__"):
            waiting += vars(here).values()


def _check_tree(left: Any, right: Any, feature: Any, n_features: int, file: Path) -> None:
    n, index = len(left), np.arange(len(left))
    inner = left != -1
    ahead = (left > index) & (left < n) & (right > index) & (right < n) & (feature >= 0) & (feature < n_features)
    if not n or not (ahead | ~inner).all():
        raise FileFormatError(f"{file} holds a tree whose nodes point outside of it")


def _check_predictor(tree: Any, file: Path) -> None:
    nodes = tree.nodes
    inner = nodes["is_leaf"] == 0
    left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
    feature = nodes["feature_idx"].astype(np.int64)
    _check_tree(np.where(inner, left, -1), np.where(inner, right, -1), feature, 1 << 31, file)
    by_category = inner & (nodes["is_categorical"] != 0)
    sets = np.asarray(tree.raw_left_cat_bitsets)
    if by_category.any() and nodes["bitset_idx"][by_category].max() >= len(sets):
        raise FileFormatError(f"{file} holds a tree that splits by a set of categories that there is not")
