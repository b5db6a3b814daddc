"""Ensembles of XGBoost and LightGBM, read from their serialised form; neither library is imported."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit

from globece.errors import ModelError
from globece.models.trees import ubjson
from globece.models.trees.compiling import Category, Conversion
from globece.models.trees.decision_rule import LARGEST, SOFTMAX_DOUBLE, SOFTMAX_SINGLE
from globece.models.trees.reading import Function, Reading, flat_table, labels_of, table_of
from globece.space import FloatArray

# -- XGBoost -------------------------------------------------------------------------------------------------------


@njit(cache=True)
def _log(x: Any) -> Any:
    """The C library's logarithm; for a float32 it is the one that XGBoost calls."""
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


# For each objective: the prediction from a sum, and the sum from a base score
XGBOOST_OBJECTIVES: dict[str, tuple[Function, Callable[[float], float]]] = {
    "binary:logistic": (_sigmoid_single, _logit_single),
    "reg:logistic": (_sigmoid_single, _logit_single),
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


def xgboost_document(estimator: Any) -> dict[str, Any]:
    """The model as XGBoost writes it, in the layout of its JSON files."""
    booster = estimator.get_booster() if hasattr(estimator, "get_booster") else estimator
    model: dict[str, Any] = ubjson.loads(bytes(booster.save_raw("ubj")))
    return model


def read_xgboost(estimator: Any, *, sparse: bool = False) -> Reading:
    """Read a fitted estimator or a booster of XGBoost; in a sparse matrix, zeros are missing values."""
    learner = xgboost_document(estimator)["learner"]
    objective, params = learner["objective"]["name"], learner["learner_model_param"]
    grown = learner["gradient_booster"]
    if grown["name"] not in ("gbtree", "dart"):
        raise ModelError(f"XGBoost's {grown['name']} has no trees")
    if objective not in XGBOOST_OBJECTIVES:
        raise ModelError(f"XGBoost's objective {objective} is not supported")
    model = grown.get("gbtree", grown)["model"]
    trees, per_tree = model["trees"], model["tree_info"]
    if any(t["tree_param"].get("size_leaf_vector", "1") not in ("0", "1") for t in trees):
        raise ModelError("trees with several outputs in a leaf (multi_output_tree) are not supported")
    n_classes = max(1, int(params["num_class"]))
    if max(int(params.get("num_target", "1")), 1) > 1 or set(per_tree) - set(range(n_classes)):
        raise ModelError("XGBoost models with several targets are not supported")
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
    if sparse:
        if not np.isnan(missing):
            raise ModelError(f"XGBoost with missing={missing:g} is not supported on a sparse matrix")
        missing = 0.0
    conversion = Conversion(single=True, absent=(np.inf, -np.inf) if np.isnan(missing) else (missing, missing))
    columns, categories = _xgboost_columns(trees[:used], not np.isnan(missing))
    sizes = np.array([len(t["left_children"]) for t in trees[:used]])
    outputs = (columns.pop("condition") * np.repeat(weights, sizes))[columns["feature"] < 0]
    return Reading(
        flat_table(sizes, columns, outputs[:, None], conversion, categories),
        np.array(per_tree[:used], dtype=np.int64),
        np.broadcast_to(start, n_classes).copy(),
        True,
        labels_of(estimator, n_classes),
        value,
        lambda sums: value(sums) > 0.5,
        LARGEST if objective == "multi:softmax" else SOFTMAX_SINGLE,
    )


def _xgboost_columns(trees: list[dict[str, Any]], absent: bool) -> tuple[dict[str, Any], list[Category]]:
    """The concatenated nodes of all trees, and the splits by category among them."""

    def joined(name: str) -> Any:
        found = np.concatenate([t[name] for t in trees]) if trees else np.zeros(0)
        return found.astype(found.dtype.newbyteorder("="))

    left, condition, default = joined("left_children"), joined("split_conditions"), joined("default_left").astype(bool)
    condition = condition.astype(np.float32)
    category, categories, first = np.full(len(left), -1), list[Category](), 0
    for tree in trees:
        listed = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
        for node, at, n in listed:
            codes = np.sort(np.array(tree["categories"][at : at + n], dtype=np.int64))
            category[first + node] = len(categories)
            # listed categories go right
            categories.append(Category(codes, np.zeros(n, bool), True, bool(default[first + node])))
        first += len(tree["left_children"])
    columns = {
        "feature": np.where(left >= 0, joined("split_indices"), -1),
        "edge": np.nextafter(condition, np.float32(-np.inf)),  # below the condition goes left
        "missing_left": default,
        "absent": np.full(len(left), absent) & (category < 0),
        "category": category,
        "left": left,
        "right": joined("right_children"),
        "condition": condition,
    }
    return columns, categories


def decoded(encoding: dict[str, Any]) -> tuple[Any, ...]:
    """Categories as XGBoost stores them: numbers, or the bytes of all names with their offsets."""
    offsets, values = (np.asarray(encoding.get(name, [])).tolist() for name in ("offsets", "values"))
    if not offsets:
        return tuple(values)
    text = bytes(v & 255 for v in values)
    return tuple(text[a:b].decode(errors="replace") for a, b in pairwise(offsets))


# -- LightGBM ------------------------------------------------------------------------------------------------------

LIGHTGBM_ZERO = float(np.float32(1e-35))


def _each(function: Callable[[float], float]) -> Function:
    """A function of the C library, applied elementwise; NumPy's version may differ in the last place."""

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
    raise ModelError(f"LightGBM's objective {objective!r} is not supported")


LIGHTGBM_RAW = (
    *("regression", "regression_l1", "huber", "fair", "quantile", "mape", "custom", "none"),
    *("lambdarank", "rank_xendcg", "multiclass"),
)


def read_lightgbm(estimator: Any) -> Reading:
    """Read a fitted estimator or a booster of LightGBM."""
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
        raise ModelError(
            f"LightGBM's {objective!r} has several outputs; only 'multiclass' without averaged trees is supported"
        )
    if hasattr(estimator, "get_params") and estimator.get_params().get("pred_early_stop"):
        raise ModelError("LightGBM with pred_early_stop may skip trees, which is not supported")
    labels = getattr(estimator, "classes_", None)
    if labels is not None and not objective:
        raise ModelError("a LightGBM classifier with a custom objective predicts scores, not classes")

    def report(sums: FloatArray) -> FloatArray:
        return value(sums / divisor)

    conversion = Conversion(zero=LIGHTGBM_ZERO, absent=(-LIGHTGBM_ZERO, LIGHTGBM_ZERO))
    return Reading(
        table_of(rows, leaves, conversion, categories),
        np.arange(len(rows)) % n_classes,
        np.zeros(n_classes),
        False,
        labels_of(estimator, n_classes),
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
            missing_left = bool(edge >= 0.0)  # a missing value is taken as 0
        rows.append([node["split_feature"], edge, missing_left, kind == "Zero" and category < 0, category, 0, 0])
        waiting.append((node["right_child"], len(rows) - 1, 1))
        waiting.append((node["left_child"], len(rows) - 1, 0))
    columns = zip(*rows, strict=True)
    return dict(zip(names, map(np.array, columns), strict=True)), np.array(outputs)[:, None]
