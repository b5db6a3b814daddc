"""Tree ensembles as their libraries keep them: XGBoost, LightGBM, scikit-learn.

Each reader gives a :class:`Reading`: the trees in one table, and what the library makes of the sums of their leaves,
with its own rounding. An estimator is known by the names of its class and module, so no library is imported for it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from globece.errors import ModelError
from globece.models.tree_compile import Category, Sight, TreeTable
from globece.models.tree_verdict import LARGEST, SOFTMAX_DOUBLE, SOFTMAX_SINGLE
from globece.space import FloatArray, IntArray

Function = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Reading:
    """An ensemble, and what its library makes of the sums of its leaves.

    Attributes
    ----------
    table
        The trees.
    output
        For each tree the output that it adds to; -1 if its leaves hold them all.
    start
        What each output's sum starts from.
    single
        Whether the sums are float32.
    classes
        Labels of a classifier.
    value
        Of one output: the prediction, or a classifier's probability of its second class, by the sum.
    second
        Of one output: whether a classifier predicts its second class, by the sum.
    rule
        Of several outputs: how one is chosen; see :mod:`globece.models.tree_kernel`.
    divisor
        What the sums are divided by, where leaves hold probabilities.
    """

    table: TreeTable
    output: IntArray
    start: FloatArray
    single: bool = False
    classes: tuple[Any, ...] | None = None
    value: Function = lambda sums: sums
    second: Callable[[FloatArray], NDArray[np.bool_]] = lambda sums: sums > 0.0
    rule: int = LARGEST
    divisor: float = 1.0


def supports(estimator: Any) -> bool:
    """Whether :func:`read` knows this kind of estimator.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> supports(DecisionTreeClassifier()), supports(len)
    (True, False)
    """
    return _reader(estimator) is not None


def read(estimator: Any) -> Reading:
    """Read a fitted ensemble; :class:`globece.errors.ModelError` says why one cannot be."""
    reader = _reader(estimator)
    if reader is None:
        raise ModelError(f"{type(estimator).__name__} is not a tree ensemble that can be read")
    return reader(estimator)


def native_categories(estimator: Any, categorical: Sequence[int]) -> dict[int, tuple[Any, ...]]:
    """Features whose categories the estimator knows by their place in a list, and those lists.

    A feature that the estimator splits by category is given to :meth:`globece.models.trees.TreeEnsemble.from_model` as
    these places. One that is not listed here is given as it is: it holds whole numbers already.

    Parameters
    ----------
    estimator
        A fitted ensemble.
    categorical
        The features that the estimator's rows hold as categories (a frame's columns of such a type), ascending.
    """
    reader = _reader(estimator)
    if reader is _lightgbm:
        lists = getattr(estimator, "booster_", estimator).pandas_categorical or []
        return {j: tuple(values) for j, values in zip(categorical, lists, strict=False)}
    if reader is _hist_gradient_boosting and estimator._preprocessor is not None:
        places = np.flatnonzero(estimator.is_categorical_)
        lists = estimator._preprocessor.named_transformers_["encoder"].categories_
        return {int(j): _present(values) for j, values in zip(places, lists, strict=True) if not _whole(values)}
    if reader is _xgboost:
        known = _xgboost_json(estimator)["learner"]["gradient_booster"]
        encodings = known.get("gbtree", known)["model"].get("cats", {}).get("enc", [])
        return {j: _decoded(enc) for j, enc in enumerate(encodings) if enc["values"]}
    return {}


def _reader(estimator: Any) -> Callable[[Any], Reading] | None:
    for base in type(estimator).__mro__:
        reader = READERS.get((base.__module__.split(".")[0], base.__name__))
        if reader is not None:
            return reader
    return None


# -- tables --------------------------------------------------------------------------------------------------------


def _table(
    trees: Iterable[dict[str, Any]], outputs: Sequence[FloatArray], sight: Sight, categories: Sequence[Category] = ()
) -> TreeTable:
    """Put trees one after the other; children come as places within their tree, leaves as -1."""
    if not outputs:
        raise ModelError("the ensemble has no trees")
    columns: dict[str, list[NDArray[Any]]] = {}
    roots, nodes, leaves = [], 0, 0
    for tree in trees:
        n = len(tree["feature"])
        is_leaf = tree["feature"] < 0
        roots.append(nodes)
        filled = {"absent": np.zeros(n, bool), "category": np.full(n, -1), **tree}
        filled["left"] = np.where(is_leaf, leaves + np.cumsum(is_leaf) - 1, filled["left"] + nodes)
        filled["right"] = np.where(is_leaf, -1, filled["right"] + nodes)
        for name, column in filled.items():
            columns.setdefault(name, []).append(column)
        nodes, leaves = nodes + n, leaves + int(is_leaf.sum())
    flat = {name: np.concatenate(parts) for name, parts in columns.items()}
    return TreeTable(
        flat["feature"].astype(np.int64),
        flat["edge"].astype(np.float64),
        flat["missing_left"].astype(bool),
        flat["absent"].astype(bool),
        flat["category"].astype(np.int64),
        flat["left"].astype(np.int64),
        flat["right"].astype(np.int64),
        np.array(roots, dtype=np.int64),
        np.concatenate(outputs).astype(np.float64),
        sight,
        tuple(categories),
    )


def _labels(estimator: Any, n_outputs: int = 1) -> tuple[Any, ...] | None:
    """Classes; those of a bare booster with several outputs are their places."""
    labels = getattr(estimator, "classes_", None)
    if labels is not None:
        return tuple(np.asarray(labels).tolist())
    return tuple(range(n_outputs)) if n_outputs > 1 else None


def _whole(categories: NDArray[Any]) -> bool:
    """Whether categories are whole numbers that a split can name as they are."""
    present = _present(categories)
    return all(isinstance(c, int | float) and c >= 0 and c == int(c) for c in present)


def _present(categories: NDArray[Any]) -> tuple[Any, ...]:
    return tuple(c for c in np.asarray(categories).tolist() if c is not None and c == c)


# -- XGBoost -------------------------------------------------------------------------------------------------------


@njit(cache=True)
def _log(x: Any) -> Any:
    """The C library's logarithm, which for a float32 is the one that XGBoost calls."""
    return math.log(x)


def _exp_single(sums: FloatArray) -> FloatArray:
    return np.exp(sums).astype(np.float32).astype(np.float64)


def _sigmoid_single(sums: FloatArray) -> FloatArray:
    risen = np.exp(np.minimum(-sums, np.float32(88.7))).astype(np.float32) + np.float32(1.0)
    return (np.float32(1.0) / risen).astype(np.float64)


def _logit_single(score: float) -> float:
    b = np.float32(score)
    return -float(_log(np.float32(1.0) / b - np.float32(1.0)))


def _log_single(score: float) -> float:
    return float(_log(np.float32(score)))


# What an objective makes of a sum, and the sum that a base score stands for
XGBOOST_OBJECTIVES: dict[str, tuple[Function, Callable[[float], float]]] = {
    "binary:logistic": (_sigmoid_single, _logit_single),
    "reg:logistic": (_sigmoid_single, _logit_single),
    "binary:logitraw": (lambda s: s, _logit_single),
    "binary:hinge": (lambda s: (s > 0.0).astype(np.float64), float),
    **dict.fromkeys(("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox"), (_exp_single, _log_single)),
    **dict.fromkeys(
        (
            *("reg:squarederror", "reg:squaredlogerror", "reg:absoluteerror", "reg:pseudohubererror"),
            *("reg:quantileerror", "rank:pairwise", "rank:ndcg", "rank:map", "multi:softprob", "multi:softmax"),
        ),
        (lambda s: s, float),
    ),
}


def _xgboost_json(estimator: Any) -> dict[str, Any]:
    booster = estimator.get_booster() if hasattr(estimator, "get_booster") else estimator
    model: dict[str, Any] = json.loads(bytes(booster.save_raw("json")))
    return model


def _xgboost(estimator: Any) -> Reading:
    learner = _xgboost_json(estimator)["learner"]
    objective, params = learner["objective"]["name"], learner["learner_model_param"]
    grown = learner["gradient_booster"]
    if grown["name"] not in ("gbtree", "dart"):
        raise ModelError(f"XGBoost's {grown['name']} has no trees")
    if objective not in XGBOOST_OBJECTIVES:
        raise ModelError(f"XGBoost's objective {objective} is not known here")
    model = grown.get("gbtree", grown)["model"]
    trees, per_tree = model["trees"], model["tree_info"]
    if any(t["tree_param"].get("size_leaf_vector", "1") not in ("0", "1") for t in trees):
        raise ModelError("trees with several outputs in a leaf (multi_output_tree) are not read")
    n_classes = max(1, int(params["num_class"]))
    if max(int(params.get("num_target", "1")), 1) > 1 or set(per_tree) - set(range(n_classes)):
        raise ModelError("XGBoost models with several targets are not read")
    used = len(trees)
    best = getattr(estimator, "best_iteration", None) if hasattr(estimator, "get_booster") else None
    if best is not None:
        forest = n_classes * int(model["gbtree_model_param"].get("num_parallel_tree", "1") or 1)
        used = model.get("iteration_indptr", [forest * i for i in range(used // forest + 1)])[best + 1]
    weights = np.array(grown.get("weight_drop", np.ones(used))[:used], dtype=np.float32)
    value, margin = XGBOOST_OBJECTIVES[objective]
    scores = json.loads(params["base_score"]) if "[" in params["base_score"] else [float(params["base_score"])]
    start = np.array([margin(s) for s in scores])
    missing = getattr(estimator, "missing", np.nan)
    missing = float(np.float32(missing)) if missing is not None else np.nan
    sight = Sight(single=True, absent=(np.inf, -np.inf) if np.isnan(missing) else (missing, missing))
    categories: list[Category] = []
    rows = [_xgboost_tree(t, categories, not np.isnan(missing)) for t in trees[:used]]
    leaves = [
        (np.array(t["split_conditions"], np.float32)[r["feature"] < 0] * w)[:, None]
        for t, r, w in zip(trees, rows, weights, strict=False)
    ]
    return Reading(
        _table(rows, leaves, sight, categories),
        np.array(per_tree[:used], dtype=np.int64),
        np.broadcast_to(start, n_classes).copy(),
        True,
        _labels(estimator, n_classes),
        value,
        lambda sums: value(sums) > 0.5,
        LARGEST if objective == "multi:softmax" else SOFTMAX_SINGLE,
    )


def _xgboost_tree(tree: dict[str, Any], categories: list[Category], absent: bool) -> dict[str, Any]:
    left = np.array(tree["left_children"])
    inner = left >= 0
    condition = np.array(tree["split_conditions"], dtype=np.float32)
    default = np.array(tree["default_left"], dtype=bool)
    category = np.full(len(left), -1)
    for node, at, n in zip(
        tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
    ):
        codes = np.sort(np.array(tree["categories"][at : at + n], dtype=np.int64))
        category[node] = len(categories)
        # the categories that are listed go right
        categories.append(Category(codes, np.zeros(n, bool), True, bool(default[node])))
    return {
        "feature": np.where(inner, tree["split_indices"], -1),
        "edge": np.nextafter(condition, np.float32(-np.inf)),  # below the condition goes left
        "missing_left": default,
        "absent": np.full(len(left), absent) & (category < 0),
        "category": category,
        "left": left,
        "right": np.array(tree["right_children"]),
    }


def _decoded(encoding: dict[str, Any]) -> tuple[Any, ...]:
    """Categories as XGBoost keeps them: numbers, or the bytes of all names with where each starts."""
    offsets, values = encoding.get("offsets", []), encoding["values"]
    if not offsets:
        return tuple(values)
    text = bytes(v & 255 for v in values)
    return tuple(text[a:b].decode() for a, b in pairwise(offsets))


# -- LightGBM ------------------------------------------------------------------------------------------------------

LIGHTGBM_ZERO = float(np.float32(1e-35))


def _each(function: Callable[[float], float]) -> Function:
    """A function of the C library, applied to each; NumPy's own may differ in the last place."""

    def apply(sums: FloatArray) -> FloatArray:
        return np.array([function(s) for s in np.ravel(sums).tolist()])

    return apply


def _exp(x: float) -> float:
    return math.exp(x) if x < 709.78 else math.inf


def _lightgbm_value(objective: str) -> Function:
    name, *options = objective.split() or [""]
    given = dict(option.split(":", 1) for option in options if ":" in option)
    if name in ("binary", "cross_entropy"):
        sigmoid = float(given.get("sigmoid", 1.0))
        return _each(lambda s: 1.0 / (1.0 + _exp(-sigmoid * s)))
    if name in ("poisson", "gamma", "tweedie"):
        return _each(_exp)
    if name == "regression" and "sqrt" in options:
        return lambda s: np.sign(s) * s * s
    if name in ("", *LIGHTGBM_RAW):
        return lambda s: s
    raise ModelError(f"LightGBM's objective {objective!r} is not known here")


LIGHTGBM_RAW = (
    *("regression", "regression_l1", "huber", "fair", "quantile", "mape", "custom", "none"),
    *("lambdarank", "rank_xendcg", "multiclass"),
)


def _lightgbm(estimator: Any) -> Reading:
    booster = getattr(estimator, "booster_", estimator)
    dump = booster.dump_model()
    objective, n_classes = dump.get("objective", ""), dump["num_tree_per_iteration"]
    value = _lightgbm_value(objective)
    categories: list[Category] = []
    rows, leaves = [], []
    for info in dump["tree_info"]:
        tree, outputs = _lightgbm_tree(info["tree_structure"], categories)
        rows.append(tree)
        leaves.append(outputs)
    n_rounds = max(1, len(rows) // n_classes)
    divisor = float(n_rounds) if dump.get("average_output") else 1.0
    if n_classes > 1 and (divisor != 1.0 or not objective.startswith("multiclass ")):
        raise ModelError(f"LightGBM's {objective!r} with several outputs and averaged trees is not read")
    labels = getattr(estimator, "classes_", None)
    if labels is not None and not objective:
        raise ModelError("a LightGBM classifier with an objective of its own gives scores, not classes")

    def report(sums: FloatArray) -> FloatArray:
        return value(sums / divisor)

    sight = Sight(zero=LIGHTGBM_ZERO, absent=(-LIGHTGBM_ZERO, LIGHTGBM_ZERO))
    return Reading(
        _table(rows, leaves, sight, categories),
        np.arange(len(rows)) % n_classes,
        np.zeros(n_classes),
        False,
        _labels(estimator, n_classes),
        report,
        lambda sums: report(sums) > 1.0 - report(sums),
        SOFTMAX_DOUBLE,
    )


def _lightgbm_tree(root: dict[str, Any], categories: list[Category]) -> tuple[dict[str, Any], FloatArray]:
    names = ("feature", "edge", "missing_left", "absent", "category", "left", "right")
    rows: list[list[Any]] = []
    outputs: list[float] = []
    waiting = [(root, -1, 0)]
    while waiting:
        node, parent, side = waiting.pop()
        if parent >= 0:
            rows[parent][5 + side] = len(rows)
        if "split_feature" not in node:
            if "leaf_const" in node or "leaf_coeff" in node:
                raise ModelError("LightGBM's linear trees are not read")
            outputs.append(node["leaf_value"])
            rows.append([-1, 0.0, False, False, -1, 0, 0])
            continue
        category, edge, kind = -1, node["threshold"], node["missing_type"]
        missing_left = node["default_left"]
        if node["decision_type"] == "==":
            codes = np.sort(np.array([int(c) for c in str(edge).split("||")], dtype=np.int64))
            category, edge = len(categories), 0.0
            categories.append(Category(codes, np.ones(len(codes), bool), False, False))
        elif kind == "None":
            missing_left = bool(edge >= 0.0)  # a missing value is taken for 0
        rows.append([node["split_feature"], edge, missing_left, kind == "Zero" and category < 0, category, 0, 0])
        waiting.append((node["right_child"], len(rows) - 1, 1))
        waiting.append((node["left_child"], len(rows) - 1, 0))
    columns = zip(*rows, strict=True)
    return dict(zip(names, map(np.array, columns), strict=True)), np.array(outputs)[:, None]


# -- scikit-learn --------------------------------------------------------------------------------------------------


def _sklearn_tree(tree: Any) -> dict[str, Any]:
    inner = tree.children_left >= 0
    go_left = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count))
    return {
        "feature": np.where(inner, tree.feature, -1),
        "edge": tree.threshold,
        "missing_left": np.asarray(go_left, dtype=bool),
        "left": tree.children_left,
        "right": tree.children_right,
    }


def _forest(estimator: Any) -> Reading:
    """A decision tree, a random forest, extremely randomised trees: the mean of what their leaves hold."""
    if estimator.n_outputs_ != 1:
        raise ModelError(f"{type(estimator).__name__} has {estimator.n_outputs_} outputs; one is read")
    grown = [e.tree_ for e in getattr(estimator, "estimators_", [estimator])]
    n = len(grown)
    rows = [_sklearn_tree(t) for t in grown]
    outputs = [t.value[t.children_left < 0, 0, :] for t in grown]
    return Reading(
        _table(rows, outputs, Sight(single=True)),
        np.full(n, -1),
        np.zeros(outputs[0].shape[1]),
        False,
        _labels(estimator),
        lambda sums: sums / n,
        divisor=float(n),
    )


def _gradient_boosting(estimator: Any) -> Reading:
    if not (isinstance(estimator.init_, str) or type(estimator.init_).__name__.startswith("Dummy")):
        raise ModelError(f"gradient boosting on top of {type(estimator.init_).__name__} is not read")
    start = estimator._raw_predict_init(np.zeros((1, estimator.n_features_in_), dtype=np.float32))[0]
    grown = [e.tree_ for stage in estimator.estimators_ for e in stage]
    outputs = [estimator.learning_rate * t.value[t.children_left < 0, 0, :] for t in grown]
    labels = getattr(estimator, "classes_", None)
    return Reading(
        _table([_sklearn_tree(t) for t in grown], outputs, Sight(single=True)),
        np.arange(len(grown)) % len(start),
        np.asarray(start, dtype=np.float64),
        False,
        _labels(estimator),
        (lambda s: s) if labels is None else _second_chance(estimator._loss),
        lambda sums: sums >= 0.0,
        LARGEST,
    )


def _second_chance(loss: Any) -> Function:
    """Probability of the second class as scikit-learn's loss computes it."""

    def chance(sums: FloatArray) -> FloatArray:
        return np.asarray(loss.predict_proba(np.asarray(sums, dtype=np.float64))[:, 1])

    return chance


def _hist_gradient_boosting(estimator: Any) -> Reading:
    mapper, preprocessor = estimator._bin_mapper, estimator._preprocessor
    known, place_of = mapper.make_known_categories_bitsets()
    # The encoder puts features split by category first and numbers their categories.
    is_categorical = np.zeros(estimator.n_features_in_, bool) if preprocessor is None else estimator.is_categorical_
    original = np.r_[np.flatnonzero(is_categorical), np.flatnonzero(~np.asarray(is_categorical, dtype=bool))]
    lists = [] if preprocessor is None else preprocessor.named_transformers_["encoder"].categories_
    named = [np.array(_present(v) if _whole(v) else range(len(_present(v))), dtype=np.int64) for v in lists]
    categories: list[Category] = []
    rows, leaves = [], []
    for stage in estimator._predictors:
        for predictor in stage:
            nodes = predictor.nodes
            inner = nodes["is_leaf"] == 0
            category = np.full(len(nodes), -1)
            for i in np.flatnonzero(inner & (nodes["is_categorical"] == 1)):
                j, missing_left = int(nodes["feature_idx"][i]), bool(nodes["missing_go_to_left"][i])
                left = _members(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][i]])
                seen = np.union1d(_members(known[place_of[j]]), left)
                codes = named[j][seen] if named else seen
                category[i] = len(categories)
                categories.append(Category(codes, np.isin(seen, left), missing_left, missing_left))
            rows.append(
                {
                    "feature": np.where(inner, original[nodes["feature_idx"]], -1),
                    "edge": nodes["num_threshold"],
                    "missing_left": nodes["missing_go_to_left"].astype(bool),
                    "category": category,
                    "left": nodes["left"],
                    "right": nodes["right"],
                }
            )
            leaves.append(nodes["value"][~inner][:, None])
    n_outputs = estimator.n_trees_per_iteration_
    labels, loss = getattr(estimator, "classes_", None), estimator._loss
    return Reading(
        _table(rows, leaves, Sight(), categories),
        np.arange(len(rows)) % n_outputs,
        np.ravel(estimator._baseline_prediction).astype(np.float64),
        False,
        _labels(estimator),
        (lambda s: np.asarray(loss.link.inverse(s))) if labels is None else _second_chance(loss),
        lambda sums: sums > 0.0,
        LARGEST,
    )


def _members(bitset: NDArray[np.uint32]) -> IntArray:
    """Numbers whose bits are set."""
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(bitset).astype("<u4").view(np.uint8), bitorder="little"))


READERS: dict[tuple[str, str], Callable[[Any], Reading]] = {
    **{
        ("xgboost", name): _xgboost
        for name in ("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor", "XGBRanker", "Booster")
    },
    **{("lightgbm", name): _lightgbm for name in ("LGBMClassifier", "LGBMRegressor", "LGBMRanker", "Booster")},
    **{
        ("sklearn", f"{kind}{task}"): reader
        for kind, reader in (
            *((name, _forest) for name in ("DecisionTree", "ExtraTree", "RandomForest", "ExtraTrees")),
            ("GradientBoosting", _gradient_boosting),
            ("HistGradientBoosting", _hist_gradient_boosting),
        )
        for task in ("Classifier", "Regressor")
    },
}
