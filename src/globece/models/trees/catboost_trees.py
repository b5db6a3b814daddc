"""Ensembles of CatBoost, read from its JSON format.

Its trees are oblivious: all nodes of a level share one split. Categories are hashed, and compared with others or looked
up in statistics. What a split says about each category of one column is read off the leaves that CatBoost itself
finds. A statistic over several columns together is not a split on one column: such models stay a black box.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from globece.errors import ModelError
from globece.models.trees.compiling import Category, Conversion
from globece.models.trees.decision_rule import LARGEST
from globece.models.trees.reading import Function, Reading, labels_of, table_of
from globece.space import BoolArray, FloatArray, IntArray


def read_catboost(estimator: Any, categories: Mapping[int, Sequence[Any]] | None = None) -> Reading:
    """Read a fitted estimator of CatBoost.

    Parameters
    ----------
    estimator
        The estimator.
    categories
        The categories of each categorical feature that may occur, by its index; their codes are their indices.
    """
    with tempfile.TemporaryDirectory() as folder:  # CatBoost only writes to files
        path = Path(folder) / "model.json"
        estimator.save_model(str(path), format="json")
        model = json.loads(path.read_text(encoding="utf-8"))
    other = sorted(set(model["features_info"]) - {"float_features", "categorical_features", "ctrs"})
    if other:
        raise ModelError(f"CatBoost's {' and '.join(other)} are not columns with a value each")
    if "oblivious_trees" not in model:
        raise ModelError("CatBoost's trees are supported with grow_policy='SymmetricTree' only")
    scale, start = model["scale_and_bias"]
    if scale != 1:
        raise ModelError(f"CatBoost models with a scale of {scale} are not supported")
    features = {f["feature_index"]: f for f in model["features_info"].get("float_features", [])}
    splits = _CategorySplits.of(estimator, model, categories or {})
    rows, leaves = [], []
    for i, tree in enumerate(model["oblivious_trees"]):
        row, order = _tree(i, tree["splits"] or [], features, splits)  # a tree of one leaf has none
        rows.append(row)
        leaves.append(np.array(tree["leaf_values"], dtype=np.float64).reshape(len(order), -1)[order])
    labels = labels_of(estimator)
    loss = str(model["model_info"].get("params", {}).get("loss_function", {}).get("type"))
    if labels is not None and loss not in CLASSIFYING:
        raise ModelError(f"CatBoost classifiers with the loss {loss} are not supported; only {list(CLASSIFYING)} are")
    if labels is None and len(start) > 1:
        raise ModelError(f"CatBoost's {loss} predicts {len(start)} numbers for each row; only one is supported")
    return Reading(
        table_of(rows, leaves, Conversion(single=True), splits.found),
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


@dataclass
class _CategorySplits:
    """Splits by category: which categories go right, as CatBoost itself says.

    Attributes
    ----------
    feature_of
        The categorical feature of each split by its index; ``None`` for statistics over several features.
    flat
        Index of each categorical feature among all.
    codes
        For each feature the leaves, by category and tree, of a row with this category.
    found
        The splits so far.
    """

    feature_of: dict[int, int | None]
    flat: dict[int, int]
    codes: dict[int, IntArray]
    names: dict[int, str]
    found: list[Category]

    @classmethod
    def of(cls, estimator: Any, model: dict[str, Any], categories: Mapping[int, Sequence[Any]]) -> _CategorySplits:
        info = model["features_info"]
        listed = info.get("categorical_features", [])
        flat = {f["feature_index"]: f["flat_feature_index"] for f in listed}
        names = {f["feature_index"]: str(f.get("feature_id") or f["flat_feature_index"]) for f in listed}
        # splits are numbered: borders of numbers, then single categories, then borders of statistics
        feature_of: dict[int, int | None] = {}
        at = sum(len(f.get("borders") or []) for f in info.get("float_features", []))
        for f in listed:
            for _ in f.get("values") or []:
                feature_of[at] = f["feature_index"]
                at += 1
        for ctr in info.get("ctrs", []):
            parts = ctr["elements"]
            single = len(parts) == 1 and parts[0]["combination_element"] == "cat_feature_value"
            for _ in ctr["borders"]:
                feature_of[at] = parts[0]["cat_feature_index"] if single else None
                at += 1
        used = {
            feature_of.get(s["split_index"])
            for tree in model.get("oblivious_trees", [])
            for s in tree["splits"] or []
            if s["split_type"] != "FloatFeature"
        }
        if None in used:
            raise ModelError(
                "CatBoost has statistics over several columns together, which splits on one column cannot express; "
                "train it with max_ctr_complexity=1 to have it followed exactly"
            )
        lost = [names[i] for i in flat if i in used and flat[i] not in categories]
        if lost:
            raise ModelError(f"CatBoost splits {lost} by category, and they are not plain categorical columns")
        n = len(estimator.feature_names_)
        base = [0.0 if i not in flat.values() else "" for i in range(n)]
        for i in flat.values():
            base[i] = next(iter(categories.get(i, [""])))
        codes: dict[int, IntArray] = {}
        for i in sorted(u for u in used if u is not None):
            rows = [[*base[: flat[i]], value, *base[flat[i] + 1 :]] for value in categories[flat[i]]]
            codes[i] = np.asarray(estimator.calc_leaf_indexes(rows), dtype=np.int64)
        return cls(feature_of, flat, codes, names, [])

    def add(self, tree: int, level: int, split: dict[str, Any]) -> tuple[int, int]:
        """The feature and the number of a split at a level of a tree."""
        feature = self.feature_of[split["split_index"]]
        assert feature is not None
        right = ((self.codes[feature][:, tree] >> level) & 1).astype(bool)
        self.found.append(Category(np.arange(len(right)), ~right, True, True))
        return self.flat[feature], len(self.found) - 1


def _tree(
    i: int, splits: list[dict[str, Any]], features: dict[int, dict[str, Any]], by_category: _CategorySplits
) -> tuple[dict[str, Any], IntArray]:
    """An oblivious tree as a table of nodes, level by level; and the indices of its leaves in CatBoost's order."""
    depth = len(splits)
    n = 2 ** (depth + 1) - 1
    level = np.floor(np.log2(np.arange(n) + 1)).astype(np.int64)
    asked = [_split(i, j, split, features, by_category) for j, split in enumerate(splits)]
    feature, border, above, category = (np.array(part) for part in zip(*asked, (-1, 0.0, True, -1), strict=True))
    # split i is bit i of CatBoost's index of a leaf, and its first split is our root
    path = np.arange(2**depth)
    order = sum((((path >> (depth - 1 - j)) & 1) << j for j in range(depth)), np.zeros(2**depth, dtype=np.int64))
    row = {
        "feature": feature[level],
        "edge": border[level],
        "missing_left": ~above[level],
        "category": category[level],
        "left": 2 * np.arange(n) + 1,
        "right": 2 * np.arange(n) + 2,
    }
    return row, order


def _split(
    i: int, j: int, split: dict[str, Any], features: dict[int, dict[str, Any]], by_category: _CategorySplits
) -> tuple[int, float, bool, int]:
    """A split's feature, its border, whether missing values are above it, and its number among those by category."""
    if split["split_type"] == "FloatFeature":
        f = features[split["float_feature_index"]]
        return f["flat_feature_index"], split["border"], f["nan_value_treatment"] == "AsTrue", -1
    feature, number = by_category.add(i, j, split)
    return feature, 0.0, True, number
