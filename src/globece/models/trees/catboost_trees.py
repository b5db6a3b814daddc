"""Ensembles of CatBoost over numbers, read from its JSON format.

Its trees are oblivious: all nodes of a level share one split. Native categories are hashed into statistics, which
splits on one column cannot express: such models stay a black box.
"""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from globece.errors import ModelError
from globece.models.trees.compiling import Conversion
from globece.models.trees.decision_rule import LARGEST
from globece.models.trees.reading import Function, Reading, labels_of, table_of
from globece.space import BoolArray, FloatArray, IntArray


def read_catboost(estimator: Any) -> Reading:
    """Read a fitted estimator of CatBoost."""
    with tempfile.TemporaryDirectory() as folder:  # CatBoost only writes to files
        path = Path(folder) / "model.json"
        estimator.save_model(str(path), format="json")
        model = json.loads(path.read_text(encoding="utf-8"))
    other = sorted(set(model["features_info"]) - {"float_features"})
    if other:
        raise ModelError(
            f"CatBoost hashes {' and '.join(other)} into statistics, which splits on one column cannot express"
        )
    if "oblivious_trees" not in model:
        raise ModelError("CatBoost's trees are supported with grow_policy='SymmetricTree' only")
    scale, start = model["scale_and_bias"]
    if scale != 1:
        raise ModelError(f"CatBoost models with a scale of {scale} are not supported")
    features = {f["feature_index"]: f for f in model["features_info"]["float_features"]}
    rows, leaves = [], []
    for tree in model["oblivious_trees"]:
        row, order = _tree(tree["splits"], features)
        rows.append(row)
        leaves.append(np.array(tree["leaf_values"], dtype=np.float64).reshape(len(order), -1)[order])
    labels = labels_of(estimator)
    loss = str(model["model_info"].get("params", {}).get("loss_function", {}).get("type"))
    if labels is not None and loss not in CLASSIFYING:
        raise ModelError(f"CatBoost classifiers with the loss {loss} are not supported; only {list(CLASSIFYING)} are")
    if labels is None and len(start) > 1:
        raise ModelError(f"CatBoost's {loss} predicts {len(start)} numbers for each row; only one is supported")
    return Reading(
        table_of(rows, leaves, Conversion(single=True)),
        np.full(len(rows), -1 if len(start) > 1 else 0),
        np.array(start, dtype=np.float64),
        False,
        labels,
        _value(estimator) if labels is None else _sigmoid,
        _Above(0.0 if labels is None or len(start) > 1 else _logit(estimator.get_probability_threshold())),
        LARGEST,
        shares=loss == "MultiClass",
    )


CLASSIFYING = ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll")


@dataclass(frozen=True)
class _Above:
    """Whether a sum is above a limit."""

    limit: float

    def __call__(self, sums: FloatArray) -> BoolArray:
        return np.asarray(sums > self.limit)


def _logit(probability: float | None) -> float:
    if probability is None or probability == 0.5:
        return 0.0
    if not 0.0 < probability < 1.0:
        raise ModelError(f"CatBoost's probability threshold of {probability:g} is only reached by rounding")
    return -math.log(1.0 / probability - 1.0)


def _sigmoid(sums: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-sums)))


def _value(estimator: Any) -> Function:
    type_of = getattr(estimator, "_get_default_prediction_type", None)  # a ranker has none: it predicts the sum
    kind = "RawFormulaVal" if type_of is None else type_of()
    if kind == "Exponent":
        return lambda sums: np.asarray(np.exp(sums))
    if kind != "RawFormulaVal":
        raise ModelError(f"CatBoost's predictions of type {kind} are not supported")
    return lambda sums: sums


def _tree(splits: list[dict[str, Any]], features: dict[int, dict[str, Any]]) -> tuple[dict[str, Any], IntArray]:
    """An oblivious tree as a table of nodes, level by level; and the indices of its leaves in CatBoost's order."""
    depth = len(splits)
    n = 2 ** (depth + 1) - 1
    level = np.floor(np.log2(np.arange(n) + 1)).astype(np.int64)
    known = [features[s["float_feature_index"]] for s in splits]
    feature = np.array([f["flat_feature_index"] for f in known] + [-1])
    border = np.array([s["border"] for s in splits] + [0.0])
    above = np.array([f["nan_value_treatment"] == "AsTrue" for f in known] + [True])
    # split i is bit i of CatBoost's index of a leaf, and its first split is our root
    path = np.arange(2**depth)
    order = sum((((path >> (depth - 1 - i)) & 1) << i for i in range(depth)), np.zeros(2**depth, dtype=np.int64))
    row = {
        "feature": feature[level],
        "edge": border[level],
        "missing_left": ~above[level],
        "left": 2 * np.arange(n) + 1,
        "right": 2 * np.arange(n) + 2,
    }
    return row, order
