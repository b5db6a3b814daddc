"""Tree ensembles of ONNX: their attributes as a table of nodes, and how onnxruntime decides by the sums of leaves.

onnxruntime adds leaves in the order of the trees, in the type of the thresholds, and the base values last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from globece.models.compiling.compose import NotCompiled
from globece.models.compiling.onnx.columns import FLOATS, Columns
from globece.models.compiling.onnx.graph import Node
from globece.models.trees.compiling import Conversion, TreeTable
from globece.models.trees.decision_rule import LARGEST
from globece.models.trees.reading import Function, Reading, flat_table
from globece.space import BoolArray, FloatArray, IntArray

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF = range(8)
MODES = {
    name: mode
    for mode, name in enumerate([*(f"BRANCH_{m}" for m in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")), "LEAF"])
}
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass(frozen=True)
class Forest:
    """An ensemble, and how its outcome follows.

    Attributes
    ----------
    columns
        What it takes.
    reading
        The trees and their sums. Its ``second`` and ``rule`` decide about the label.
    labels
        The classes, or ``None`` where the sums are values.
    why_no_probability
        Why there is no threshold on the probability; empty if there is one.
    """

    columns: Columns
    reading: Reading
    labels: tuple[Any, ...] | None
    why_no_probability: str = ""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of all trees, one after the other; children are indices into them."""

    tree: IntArray
    feature: IntArray
    mode: IntArray
    value: FloatArray
    true: IntArray
    false: IntArray
    missing_true: BoolArray
    weights: FloatArray  # (nodes, outputs)
    weighted: BoolArray  # (nodes, outputs) whether a leaf adds to an output at all


def forest(node: Node, columns: Columns) -> Forest:
    """Read any of the operators, or raise :class:`NotCompiled`."""
    given, dtype = node.attributes, columns.dtype
    if dtype not in FLOATS:
        raise NotCompiled(f"{node} takes {dtype}")
    if node.op == "ai.onnx.ml.TreeEnsemble":
        nodes, base = _nodes_v5(node), np.zeros(0)
        aggregate = ("AVERAGE", "SUM", "MIN", "MAX")[int(given.get("aggregate_function", 1))]
        post = TRANSFORMS[int(given.get("post_transform", 0))]
    else:
        nodes = _nodes_v3(node)
        base = _numbers(given, "base_values")
        aggregate = given.get("aggregate_function", "SUM")
        post = given.get("post_transform", "NONE")
    double = dtype == "float64"
    if double and not any(name.endswith("_as_tensor") or name == "nodes_splits" for name in given):
        raise NotCompiled(f"{node} compares doubles with single thresholds")
    if node.op.endswith("Classifier"):
        return _classifier(node, columns, nodes, base, post, double)
    if aggregate not in ("SUM", "AVERAGE"):
        raise NotCompiled(f"{node} takes the {aggregate} of its trees")
    if post != "NONE":
        raise NotCompiled(f"{node} ends in {post}")
    table = _table(node, nodes, double)
    return Forest(columns, _several(table, base, double, len(table.roots) if aggregate == "AVERAGE" else 1), None)


# -- attributes -------------------------------------------------------------------------------------------------------


def _numbers(given: Any, name: str) -> FloatArray:
    found = given.get(name)
    return np.ravel(np.asarray(given.get(f"{name}_as_tensor", []) if found is None else found)).astype(np.float64)


def _whole(given: Any, name: str) -> IntArray:
    return np.asarray(given.get(name, []), dtype=np.int64)


def _nodes_v3(node: Node) -> Nodes:
    given = node.attributes
    tree, ids = _whole(given, "nodes_treeids"), _whole(given, "nodes_nodeids")
    n = len(tree)
    mode = np.array([MODES[m] for m in given.get("nodes_modes", [])], dtype=np.int64)
    keys = _Keys(node, tree, ids)
    is_class = node.op.endswith("Classifier")
    kind = "class" if is_class else "target"
    labels = given.get("classlabels_strings") or given.get("classlabels_int64s") or []
    width = len(labels) if is_class else int(given.get("n_targets", 1))
    at = keys.find(_whole(given, f"{kind}_treeids"), _whole(given, f"{kind}_nodeids"))
    output, added = _whole(given, f"{kind}_ids"), _numbers(given, f"{kind}_weights")
    inner = mode != LEAF
    true, false = (
        np.where(inner, keys.find(tree, _whole(given, f"nodes_{side}nodeids"), inner), -1) for side in ("true", "false")
    )
    lost = _whole(given, "nodes_missing_value_tracks_true").astype(bool)
    return Nodes(
        tree,
        _whole(given, "nodes_featureids"),
        mode,
        _numbers(given, "nodes_values"),
        true,
        false,
        lost if lost.size else np.zeros(n, bool),
        *_weights(node, n, width, at, output, added),
    )


class _Keys:
    """Nodes by the ids of their tree and of themselves."""

    def __init__(self, node: Node, tree: IntArray, ids: IntArray) -> None:
        self.node = node
        if len(tree) != len(ids) or not len(tree) or min(tree.min(), ids.min()) < 0 or ids.max() > 2**31:
            raise NotCompiled(f"{node} has no nodes that can be numbered")
        self.base = int(ids.max()) + 1
        keys = tree * self.base + ids
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]
        if (np.diff(self.keys) == 0).any():
            raise NotCompiled(f"{node} has two nodes of the same number")

    def find(self, tree: IntArray, ids: IntArray, needed: BoolArray | None = None) -> IntArray:
        """Where these nodes are; those that are not needed may be missing."""
        keys = tree * self.base + ids
        at = np.searchsorted(self.keys, keys).clip(0, len(self.keys) - 1)
        lost = self.keys[at] != keys
        if (lost if needed is None else lost & needed).any():
            raise NotCompiled(f"{self.node} refers to a node that it does not have")
        return np.asarray(self.order[at], dtype=np.int64)


def _weights(
    node: Node, n: int, width: int, at: IntArray, output: IntArray, added: FloatArray
) -> tuple[FloatArray, BoolArray]:
    if not (len(at) == len(output) == len(added)) or (len(output) and not 0 <= output.min() <= output.max() < width):
        raise NotCompiled(f"{node} has weights for outputs that it does not have")
    weights, weighted = np.zeros((n, width)), np.zeros((n, width), dtype=bool)
    if len(np.unique(at * max(width, 1) + output)) != len(at):
        raise NotCompiled(f"{node} adds to one output twice in one leaf")
    weights[at, output], weighted[at, output] = added, True
    return weights, weighted


def _nodes_v5(node: Node) -> Nodes:
    given = node.attributes
    splits, modes = _numbers(given, "nodes_splits"), np.ravel(given["nodes_modes"]).astype(np.int64)
    n, n_leaves = len(modes), len(_whole(given, "leaf_targetids"))
    sides = []
    for side in ("true", "false"):
        is_leaf = _whole(given, f"nodes_{side}leafs").astype(bool)
        sides.append(_whole(given, f"nodes_{side}nodeids") + np.where(is_leaf, n, 0))
    roots = _whole(given, "tree_roots")
    tree = np.full(n + n_leaves, -1)
    waiting = [(int(root), i) for i, root in enumerate(roots)]
    while waiting:  # which tree each node belongs to
        here, i = waiting.pop()
        if not 0 <= here < n + n_leaves or tree[here] >= 0:
            raise NotCompiled(f"{node} has nodes that are no tree")
        tree[here] = i
        if here < n:
            waiting += [(int(sides[0][here]), i), (int(sides[1][here]), i)]
    used = np.flatnonzero(tree >= 0)
    order = used[np.argsort(tree[used], kind="stable")]
    place = np.full(n + n_leaves, -1)
    place[order] = np.arange(len(order))
    blank = np.zeros(n_leaves)

    def all_(inner: NDArray[Any], leaf: Any = 0) -> Any:
        return np.concatenate([inner, np.full(n_leaves, leaf)])[order]

    lost = _whole(given, "nodes_missing_value_tracks_true").astype(bool)
    at = place[np.arange(n, n + n_leaves)]
    kept = at >= 0
    weights = _weights(
        node,
        len(order),
        int(given.get("n_targets", 1)),
        at[kept],
        _whole(given, "leaf_targetids")[kept],
        _numbers(given, "leaf_weights")[kept],
    )
    return Nodes(
        tree[order],
        all_(_whole(given, "nodes_featureids")),
        all_(modes, LEAF),
        np.concatenate([splits, blank])[order],
        place[all_(sides[0])],
        place[all_(sides[1])],
        all_(lost if lost.size else np.zeros(n, bool), False),
        *weights,
    )


# -- the table --------------------------------------------------------------------------------------------------------


def _table(node: Node, nodes: Nodes, double: bool) -> TreeTable:
    """The nodes tree by tree, each tree from its root."""
    n, inner = len(nodes.tree), nodes.mode != LEAF
    sizes_fit = all(len(part) == n for part in (nodes.feature, nodes.mode, nodes.value, nodes.missing_true))
    if not sizes_fit or not np.isfinite(nodes.weights).all() or (nodes.feature[inner] < 0).any():
        raise NotCompiled(f"{node} has attributes that do not fit together")
    if not np.isin(nodes.mode[inner], (LEQ, LT, GTE, GT)).all():
        odd = next(name for name, mode in MODES.items() if mode in nodes.mode[inner] and mode in (EQ, NEQ, MEMBER))
        raise NotCompiled(f"{node} splits by {odd}")
    children = np.concatenate([nodes.true[inner], nodes.false[inner]])
    parents = np.concatenate([np.flatnonzero(inner)] * 2)
    if len(np.unique(children)) != len(children) or (nodes.tree[children] != nodes.tree[parents]).any():
        raise NotCompiled(f"{node} has nodes that are no tree")
    is_root = np.ones(n, dtype=bool)
    is_root[children] = False
    first = np.unique(nodes.tree, return_index=True)[1]
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))  # trees in the order in which they appear
    index = rank[np.unique(nodes.tree, return_inverse=True)[1]]
    if not np.array_equal(np.bincount(index[is_root], minlength=len(first)), np.ones(len(first))):
        raise NotCompiled(f"{node} has a tree without one root")
    _check_reachable(node, nodes, inner, np.flatnonzero(is_root))
    order = np.lexsort((np.arange(n), ~is_root, index))
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    sizes = np.bincount(index)
    begin = (np.cumsum(sizes) - sizes)[index]
    rises = np.isin(nodes.mode, (GTE, GT))  # the true branch takes what is above
    left = np.where(rises, nodes.false, nodes.true)
    right = np.where(rises, nodes.true, nodes.false)
    kind: Any = np.float64 if double else np.float32
    below = np.nextafter(nodes.value.astype(kind), kind(-np.inf)).astype(np.float64)
    columns = {
        "feature": np.where(inner, nodes.feature, -1),
        "edge": np.where(np.isin(nodes.mode, (LT, GTE)), below, nodes.value),
        "missing_left": nodes.missing_true != rises,  # what is missing is not true of any comparison
        "absent": np.zeros(n, dtype=bool),
        "category": np.full(n, -1),
        "left": np.where(inner, place[left] - begin, 0),
        "right": np.where(inner, place[right] - begin, 0),
    }
    columns = {name: column[order] for name, column in columns.items()}
    return flat_table(sizes, columns, nodes.weights[order][~inner[order]], Conversion(single=not double))


def _check_reachable(node: Node, nodes: Nodes, inner: BoolArray, roots: IntArray) -> None:
    """Each node but a root has one parent: what no root reaches goes round in a circle."""
    reached, here = 0, roots
    while here.size:
        reached += here.size
        some = here[inner[here]]
        here = np.concatenate([nodes.true[some], nodes.false[some]])
    if reached != len(inner):
        raise NotCompiled(f"{node} has nodes that are no tree")


# -- decisions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Based:
    """A function of one sum, after the base value is added in the precision of the graph."""

    function: Callable[[FloatArray], Any]
    base: float
    single: bool
    divisor: float = 1.0

    def __call__(self, sums: FloatArray) -> Any:
        kind: Any = np.float32 if self.single else np.float64
        with np.errstate(all="ignore"):
            total = np.asarray(sums).astype(kind)
            if self.divisor != 1.0:
                total = total / kind(self.divisor)
            return self.function((total + kind(self.base)).astype(np.float64))


def _rounded(sums: FloatArray) -> FloatArray:
    """Outputs are float32, whatever is summed."""
    return np.asarray(sums.astype(np.float32), dtype=np.float64)


def _logistic(sums: FloatArray) -> FloatArray:
    """onnxruntime's: of the absolute value, and mirrored."""
    x = sums.astype(np.float32)
    above = np.float32(1.0) / (np.float32(1.0) + np.exp(-np.abs(x), dtype=np.float32))
    return np.asarray(np.where(x < 0, np.float32(1.0) - above, above), dtype=np.float64)


def _above_zero(sums: FloatArray) -> BoolArray:
    return np.asarray(sums > 0.0)


def _above_half(sums: FloatArray) -> BoolArray:
    return np.asarray(sums > 0.5)


def _several(table: TreeTable, base: FloatArray, double: bool, divisor: int = 1, **more: Any) -> Reading:
    """All outputs, with their base values; they are added last, as one more tree would."""
    width = table.outputs.shape[1]
    if width == 1:
        value = _Based(_rounded, float(base.sum()), not double, float(divisor))
        return Reading(table, np.zeros(len(table.roots), np.int64), np.zeros(1), not double, value=value)
    if base.any() and divisor != 1:
        raise NotCompiled("averaged trees with base values are not compiled")
    if base.any():
        table = _with_leaf(table, base)
    return Reading(
        table, np.full(len(table.roots), -1), np.zeros(width), not double, divisor=float(divisor), rule=LARGEST, **more
    )


def _with_leaf(table: TreeTable, outputs: FloatArray) -> TreeTable:
    """The same with one more tree: a single leaf."""
    return TreeTable(
        np.append(table.feature, -1),
        np.append(table.edge, 0.0),
        np.append(table.missing_left, False),
        np.append(table.absent, False),
        np.append(table.category, -1),
        np.append(table.left, len(table.outputs)),
        np.append(table.right, -1),
        np.append(table.roots, len(table.feature)),
        np.vstack([table.outputs, outputs[None]]),
        table.conversion,
        table.categories,
    )


def _classifier(node: Node, columns: Columns, nodes: Nodes, base: FloatArray, post: str, double: bool) -> Forest:
    labels = tuple(node.attributes.get("classlabels_strings") or node.attributes.get("classlabels_int64s") or ())
    if len(labels) < 2:
        raise NotCompiled(f"{node} has {len(labels)} classes")
    table = _table(node, nodes, double)
    if len(labels) == 2:
        return _two_classes(node, columns, nodes, table, base, post, labels)
    is_leaf = np.asarray(nodes.mode == LEAF)
    index = np.unique(nodes.tree[is_leaf], return_inverse=True)[1]
    for weighted in nodes.weighted[is_leaf].T:  # a class that no visited leaf adds to has no score
        if not (np.bincount(index, weights=weighted) == np.bincount(index)).any():
            raise NotCompiled(f"{node} has leaves that add nothing to a class")
    reading = _several(table, base, double, classes=labels, value=_logistic if post == "LOGISTIC" else _rounded)
    if post == "SOFTMAX":
        return Forest(columns, replace(reading, rule=LARGEST, shares=True), labels, _softmax_doubt(double))
    why = "" if post in ("NONE", "LOGISTIC") else f"{node} ends in {post}"
    return Forest(columns, reading, labels, why)


def _softmax_doubt(double: bool) -> str:
    return "a softmax of doubles is rounded to single precision" if double else ""


def _two_classes(
    node: Node, columns: Columns, nodes: Nodes, table: TreeTable, base: FloatArray, post: str, labels: tuple[Any, ...]
) -> Forest:
    """Two classes are decided by one sum, above 0; or above a half if no weight is negative."""
    is_leaf = np.asarray(nodes.mode == LEAF)
    double = not table.conversion.single
    used = np.asarray(nodes.weighted.any(axis=0))
    width_one = int(used.sum()) == 1
    index = 0 if used[0] and not used[1] else 1
    weights = nodes.weights[is_leaf]
    if base.size > 1 or (base.any() and not (width_one and index == 0)):
        raise NotCompiled(f"{node} has {base.size} base values for two classes")
    positive = width_one and bool((nodes.weights[nodes.weighted] >= 0.0).all())
    why = "" if post in ("NONE", "LOGISTIC") else f"{node} ends in {post}"
    if not width_one:
        if not nodes.weighted[is_leaf][:, 1].all():
            raise NotCompiled(f"{node} has leaves that add nothing to the second class")
        if not np.array_equal(weights[:, 0], -weights[:, 1]) or post != "LOGISTIC":
            why = why or f"{node} has scores for two classes that are not one probability"
    elif index == 1 or (post == "NONE" and not positive):
        why = why or f"{node} gives no probability of its first class"
    value: Function = _logistic if post == "LOGISTIC" else _rounded
    start = float(base.sum())
    reading = Reading(
        replace(table, outputs=table.outputs[:, index : index + 1]),
        np.zeros(len(table.roots), np.int64),
        np.zeros(1),
        not double,
        labels,
        _Based(value, start, not double),
        _Based(_above_half if positive else _above_zero, start, not double),
    )
    return Forest(columns, reading, labels, why)
