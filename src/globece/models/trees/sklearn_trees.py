"""scikit-learn's trees, forests and gradient boosting."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from globece.errors import ModelError
from globece.models.known import is_kind
from globece.models.trees.compiling import Category, Conversion
from globece.models.trees.decision_rule import LARGEST
from globece.models.trees.reading import Function, Reading, labels_of, present, table_of, whole
from globece.space import FloatArray, IntArray

TREES = tuple(f"{kind}Tree{task}" for kind in ("Decision", "Extra") for task in ("Classifier", "Regressor"))
DUMMIES = ("DummyClassifier", "DummyRegressor")
CONSTANT = ("mean", "median", "quantile", "constant", "prior", "most_frequent")  # others draw at random


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


def read_forest(estimator: Any) -> Reading:
    """A decision tree, a random forest or extremely randomised trees: the mean of their leaves."""
    if estimator.n_outputs_ != 1:
        raise ModelError(f"{type(estimator).__name__} has {estimator.n_outputs_} outputs; only one is supported")
    grown = [e.tree_ for e in getattr(estimator, "estimators_", [estimator])]
    n = len(grown)
    rows = [_sklearn_tree(t) for t in grown]
    outputs = [t.value[t.children_left < 0, 0, :] for t in grown]
    return Reading(
        table_of(rows, outputs, Conversion(single=True)),
        np.full(n, -1),
        np.zeros(outputs[0].shape[1]),
        False,
        labels_of(estimator),
        lambda sums: sums / n,
        divisor=float(n),
    )


def read_bagging(estimator: Any) -> Reading:
    """Bagged decision trees, each over its own features: the mean of their leaves, as for a forest."""
    grown = estimator.estimators_
    if not all(is_kind(tree, "sklearn", TREES) for tree in grown):
        raise ModelError(f"{type(estimator).__name__} averages {type(grown[0]).__name__}s; only trees are supported")
    labels, n = labels_of(estimator), len(grown)
    n_outputs = 1 if labels is None else len(labels)
    rows, outputs = [], []
    for tree, features in zip(grown, estimator.estimators_features_, strict=True):
        row = _sklearn_tree(tree.tree_)
        inner = row["feature"] >= 0
        row["feature"] = np.where(inner, np.asarray(features)[np.where(inner, row["feature"], 0)], -1)
        leaves = tree.tree_.value[~inner, 0, :]
        mine = np.zeros((len(leaves), n_outputs))
        mine[:, [0] if labels is None else np.asarray(tree.classes_, dtype=np.int64)] = leaves  # it may lack a class
        rows.append(row)
        outputs.append(mine)
    return Reading(
        table_of(rows, outputs, Conversion(single=True)),
        np.full(n, -1),
        np.zeros(n_outputs),
        False,
        labels,
        lambda sums: sums / n,
        divisor=float(n),
    )


def read_gradient_boosting(estimator: Any) -> Reading:
    """Gradient boosting: scaled leaves added to a constant initial prediction."""
    first = estimator.init_
    if not (isinstance(first, str) or (is_kind(first, "sklearn", DUMMIES) and first.strategy in CONSTANT)):
        raise ModelError(f"gradient boosting on top of {type(first).__name__} is not supported")
    start = estimator._raw_predict_init(np.zeros((1, estimator.n_features_in_), dtype=np.float32))[0]
    grown = [e.tree_ for stage in estimator.estimators_ for e in stage]
    outputs = [estimator.learning_rate * t.value[t.children_left < 0, 0, :] for t in grown]
    labels = getattr(estimator, "classes_", None)
    return Reading(
        table_of([_sklearn_tree(t) for t in grown], outputs, Conversion(single=True)),
        np.arange(len(grown)) % len(start),
        np.asarray(start, dtype=np.float64),
        False,
        labels_of(estimator),
        (lambda s: s) if labels is None else _second_probability(estimator._loss),
        lambda sums: sums >= 0.0,
        LARGEST,
    )


def _second_probability(loss: Any) -> Function:
    """Probability of the second class as scikit-learn's loss computes it."""

    def probability(sums: FloatArray) -> FloatArray:
        return np.asarray(loss.predict_proba(np.asarray(sums, dtype=np.float64))[:, 1])

    return probability


def read_hist_gradient_boosting(estimator: Any) -> Reading:
    """Histogram-based gradient boosting, including its native splits by category."""
    mapper, preprocessor = estimator._bin_mapper, estimator._preprocessor
    known, index_of = mapper.make_known_categories_bitsets()
    # The encoder puts categorical features first and numbers their categories.
    is_categorical = np.zeros(estimator.n_features_in_, bool) if preprocessor is None else estimator.is_categorical_
    original = np.r_[np.flatnonzero(is_categorical), np.flatnonzero(~np.asarray(is_categorical, dtype=bool))]
    lists = [] if preprocessor is None else preprocessor.named_transformers_["encoder"].categories_
    named = [np.array(present(v) if whole(v) else range(len(present(v))), dtype=np.int64) for v in lists]
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
                seen = np.union1d(_members(known[index_of[j]]), left)
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
        table_of(rows, leaves, Conversion(), categories),
        np.arange(len(rows)) % n_outputs,
        np.ravel(estimator._baseline_prediction).astype(np.float64),
        False,
        labels_of(estimator),
        (lambda s: np.asarray(loss.link.inverse(s))) if labels is None else _second_probability(loss),
        lambda sums: sums > 0.0,
        LARGEST,
    )


def _members(bitset: NDArray[np.uint32]) -> IntArray:
    """Numbers whose bits are set."""
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(bitset).astype("<u4").view(np.uint8), bitorder="little"))
