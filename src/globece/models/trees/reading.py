"""The result of reading an ensemble: trees in one table, and how predictions follow from the sums of leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from globece.errors import ModelError
from globece.models.trees.compiling import Category, Conversion, TreeTable
from globece.models.trees.decision_rule import LARGEST
from globece.space import FloatArray, IntArray

Function = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Reading:
    """An ensemble, and how predictions follow from the sums of its leaves.

    Attributes
    ----------
    table
        The trees.
    output
        For each tree the output that it adds to; -1 if its leaves hold all outputs.
    start
        Initial value of each output's sum.
    single
        Whether the sums are float32.
    classes
        Labels of a classifier.
    value
        With one output: the prediction, or a classifier's probability of its second class, from the sum.
    second
        With one output: whether a classifier predicts its second class, from the sum.
    rule
        With several outputs: how the class is chosen; see :mod:`globece.models.trees.decision_rule`.
    divisor
        Sums are divided by it, where leaves hold probabilities.
    shares
        With several outputs in each leaf: whether probabilities are a softmax over all of them, instead of ``value``
        of each sum.
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
    shares: bool = False


def table_of(
    trees: Iterable[dict[str, Any]],
    outputs: Sequence[FloatArray],
    conversion: Conversion,
    categories: Sequence[Category] = (),
) -> TreeTable:
    """Concatenate trees; children are indices within their tree, and the feature of a leaf is -1."""
    if not outputs:
        raise ModelError("the ensemble has no trees")
    columns: dict[str, list[NDArray[Any]]] = {}
    for tree in trees:
        n = len(tree["feature"])
        for name, column in {"absent": np.zeros(n, bool), "category": np.full(n, -1), **tree}.items():
            columns.setdefault(name, []).append(column)
    sizes = np.array([len(part) for part in columns["feature"]])
    flat = {name: np.concatenate(parts) for name, parts in columns.items()}
    return flat_table(sizes, flat, np.concatenate(outputs), conversion, categories)


def flat_table(
    sizes: IntArray,
    columns: Mapping[str, NDArray[Any]],
    outputs: FloatArray,
    conversion: Conversion,
    categories: Sequence[Category] = (),
) -> TreeTable:
    """The same for trees whose nodes are concatenated already; ``sizes`` are their numbers of nodes."""
    if not len(sizes):
        raise ModelError("the ensemble has no trees")
    roots = np.cumsum(sizes) - sizes
    first, is_leaf = np.repeat(roots, sizes), columns["feature"] < 0
    return TreeTable(
        columns["feature"].astype(np.int64),
        columns["edge"].astype(np.float64),
        columns["missing_left"].astype(bool),
        columns["absent"].astype(bool),
        columns["category"].astype(np.int64),
        np.where(is_leaf, np.cumsum(is_leaf) - 1, columns["left"] + first).astype(np.int64),
        np.where(is_leaf, -1, columns["right"] + first).astype(np.int64),
        roots.astype(np.int64),
        outputs.astype(np.float64),
        conversion,
        tuple(categories),
    )


def labels_of(estimator: Any, n_outputs: int = 1) -> tuple[Any, ...] | None:
    """Classes; those of a bare booster with several outputs are their indices."""
    labels = getattr(estimator, "classes_", None)
    if labels is not None and len(labels):
        return tuple(np.asarray(labels).tolist())
    return tuple(range(n_outputs)) if n_outputs > 1 else None


def whole(categories: NDArray[Any]) -> bool:
    """Whether categories are non-negative whole numbers, which splits refer to directly."""
    return all(isinstance(c, int | float) and c >= 0 and c == int(c) for c in present(categories))


def present(categories: NDArray[Any]) -> tuple[Any, ...]:
    """Categories except missing values."""
    return tuple(c for c in np.asarray(categories).tolist() if c is not None and c == c)
