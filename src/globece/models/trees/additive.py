"""Explainable boosting machines (`interpret`): a table of scores for each feature, and for some pairs of features.

Each table is a tree: it asks for the bin of its first feature, then for that of its second.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from globece.errors import ModelError
from globece.models.trees.compiling import Category, Conversion
from globece.models.trees.decision_rule import LARGEST
from globece.models.trees.reading import Function, Reading, labels_of, table_of
from globece.space import FloatArray

LARGEST_NUMBER = float(np.finfo(np.float64).max)
LINKS = ("logit", "mlogit", "identity")


def read_additive(estimator: Any) -> Reading:
    """An explainable boosting machine, exactly as it predicts."""
    if estimator.link_ not in LINKS:
        raise ModelError(
            f"{type(estimator).__name__} predicts through the link {estimator.link_!r}, not one of {LINKS}"
        )
    start = np.atleast_1d(np.asarray(estimator.intercept_, dtype=np.float64))
    trees, categories = [], list[Category]()
    for features, scores in zip(estimator.term_features_, estimator.term_scores_, strict=True):
        tree = _Tree(categories)
        bins = [_bins(estimator, feature, len(features)) for feature in features]
        tree.grow(list(zip(features, bins, strict=True)), np.asarray(scores, dtype=np.float64))
        trees.append(tree)
    labels = labels_of(estimator)
    return Reading(
        table_of(
            [tree.columns() for tree in trees], [tree.leaves(len(start)) for tree in trees], Conversion(), categories
        ),
        np.full(len(trees), -1),
        start,
        False,
        labels,
        (lambda sums: sums) if labels is None else _probability(estimator),
        lambda sums: sums > 0.0,
        LARGEST,
        shares=len(start) > 1,
    )


def text_categories(estimator: Any) -> dict[int, tuple[str, ...]]:
    """The categories of features that are text, in the order of their codes."""
    kinds = zip(estimator.feature_types_in_, estimator.bins_, strict=True)
    return {j: tuple(levels[0]) for j, (kind, levels) in enumerate(kinds) if kind != "continuous"}


def _bins(estimator: Any, feature: int, together: int) -> Any:
    """Cuts of a number, or the bin of each category, as a term of so many features uses them."""
    levels = estimator.bins_[feature]
    return levels[min(len(levels), together) - 1]


def _probability(estimator: Any) -> Function:
    """Probability of the second class as the library computes it."""
    inverse = sys.modules[type(estimator).__module__].inv_link

    def probability(sums: FloatArray) -> FloatArray:
        return np.asarray(inverse(sums, estimator.link_, estimator.link_param_))[..., 1]

    return probability


@dataclass(slots=True)
class _Tree:
    """A tree that grows, node by node; children are positions."""

    categories: list[Category]
    feature: list[int] = field(default_factory=list)
    edge: list[float] = field(default_factory=list)
    category: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    outputs: list[FloatArray] = field(default_factory=list)

    def grow(self, asked: list[tuple[int, Any]], scores: FloatArray) -> int:
        """Ask for the bin of each feature in turn; the position of the subtree's root comes back.

        A bin of 0 is a missing value, and the last one an unknown category.
        """
        if not asked:
            self.outputs.append(scores)
            return self._node(-1, 0.0)
        (feature, bins), rest = asked[0], asked[1:]
        if isinstance(bins, dict):
            return self._by_category(feature, bins, rest, scores)
        root = self._node(feature, LARGEST_NUMBER)  # numbers go left, missing values right
        self.left[root] = self._by_number(feature, np.asarray(bins), 1, len(bins) + 1, rest, scores)
        self.right[root] = self.grow(rest, scores[0])
        return root

    def _by_number(
        self, feature: int, cuts: FloatArray, low: int, high: int, rest: list[tuple[int, Any]], scores: FloatArray
    ) -> int:
        """The bins from ``low`` to ``high``; bin b + 1 begins at cut b - 1, which is in it."""
        if low == high:
            return self.grow(rest, scores[low])
        middle = (low + high) // 2
        root = self._node(feature, float(np.nextafter(cuts[middle - 1], -np.inf)))
        self.left[root] = self._by_number(feature, cuts, low, middle, rest, scores)
        self.right[root] = self._by_number(feature, cuts, middle + 1, high, rest, scores)
        return root

    def _by_category(self, feature: int, bins: dict[str, int], rest: list[tuple[int, Any]], scores: FloatArray) -> int:
        codes = np.arange(len(bins), dtype=np.int64)
        root = self._split(feature, codes, np.ones(len(codes), bool), other=True)  # missing values go right
        self.right[root] = self.grow(rest, scores[0])
        known = self.left[root] = self._split(feature, codes, np.ones(len(codes), bool), other=False)
        self.right[known] = self.grow(rest, scores[-1])
        self.left[known] = self._among(feature, codes, np.array(list(bins.values())), rest, scores)
        return root

    def _among(
        self, feature: int, codes: NDArray[np.int64], bins: NDArray[np.int64], rest: list[tuple[int, Any]],
        scores: FloatArray,
    ) -> int:  # fmt: skip
        if len(codes) == 1:
            return self.grow(rest, scores[bins[codes[0]]])
        half = len(codes) // 2
        root = self._split(feature, codes, np.arange(len(codes)) < half, other=False)
        self.left[root] = self._among(feature, codes[:half], bins, rest, scores)
        self.right[root] = self._among(feature, codes[half:], bins, rest, scores)
        return root

    def _split(self, feature: int, codes: NDArray[np.int64], left: NDArray[np.bool_], *, other: bool) -> int:
        self.categories.append(Category(codes, left, other, False))
        return self._node(feature, 0.0, len(self.categories) - 1)

    def _node(self, feature: int, edge: float, category: int = -1) -> int:
        self.feature.append(feature)
        self.edge.append(edge)
        self.category.append(category)
        self.left.append(-1)
        self.right.append(-1)
        return len(self.feature) - 1

    def columns(self) -> dict[str, Any]:
        """The columns of a table of nodes."""
        return {
            "feature": np.array(self.feature),
            "edge": np.array(self.edge),
            "missing_left": np.zeros(len(self.feature), bool),
            "category": np.array(self.category),
            "left": np.array(self.left),
            "right": np.array(self.right),
        }

    def leaves(self, n_outputs: int) -> FloatArray:
        """What each leaf adds, in the order of the nodes."""
        return np.array(self.outputs, dtype=np.float64).reshape(-1, n_outputs)
