"""The compiled form of a tree ensemble, as flat arrays for kernels."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from globece.space import FloatArray

MOST_STEPS = 8  # of a walk: of deeper trees many leaves are reached earlier
Int32Array = NDArray[np.int32]
ByteArray = NDArray[np.uint8]
AnyArray = TypeVar("AnyArray", bound=NDArray[Any])
Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


class Trees(NamedTuple):
    """An ensemble over the encoded matrix.

    A *slot* is what a split tests: an encoded column or, after those, the category of a block. The two children of a
    node are adjacent and its descendants contiguous, so that ``child[i] <= leaf < end[i]`` tells whether the path to a
    leaf passes node i.
    """

    threshold: FloatArray  # (nodes,) a value above it goes to the second child; at a leaf the score it adds
    slot: Int32Array  # (nodes,) slot tested; ~odd for an odd predicate; at a leaf its row of `outputs`
    child: Int32Array  # (nodes,) first child; -1 at a leaf
    missing: ByteArray  # (nodes,) 1 where a missing value goes to the second child
    parent: Int32Array  # (nodes,) -1 at a root
    end: Int32Array  # (nodes,) one past the last descendant
    path: NDArray[np.uint64]  # (nodes,) slots on the path from the root, as bits (modulo 64)
    roots: Int32Array  # (trees,)
    output: Int32Array  # (trees,) the output a tree adds to; -1 if its leaves hold all outputs
    outputs: FloatArray  # (leaves, outputs or 1)
    # An odd predicate is not a single comparison: it sends each of several pieces (or categories) to one child.
    odd_slot: Int32Array  # (odd,)
    odd_start: Int32Array  # (odd + 1,)
    odd_cut: FloatArray  # (pieces,) largest value of the piece
    odd_side: ByteArray  # (pieces,) 1 for the second child


class Walk(NamedTuple):
    """Shallow trees, for going down them in a fixed number of steps without asking where a leaf is.

    A leaf's child is itself, and no value is above its cut. So no branch depends on a row, and the processor need not
    guess.
    """

    root: Int32Array  # (trees,)
    steps: Int32Array  # (trees,) to the deepest leaf
    output: Int32Array  # (trees,) the output a tree adds to
    cut: FloatArray  # (nodes,) inf at a leaf
    slot: Int32Array  # (nodes,) 0 at a leaf
    child: Int32Array  # (nodes,) itself at a leaf
    missing: ByteArray  # (nodes,) 0 at a leaf
    score: NDArray[Any]  # (nodes,) what a leaf adds, in the precision of the sums

    @classmethod
    def of(cls, trees: Trees, precision: type) -> Walk | None:
        """The walk down an ensemble; ``None`` where trees are deep, ask odd questions or have several outputs."""
        leaf = trees.child < 0
        depth = depths(trees)
        if (trees.slot[~leaf] < 0).any() or depth.max(initial=0) > MOST_STEPS or trees.outputs.shape[1] > 1:
            return None
        score: NDArray[Any] = np.zeros(len(leaf), precision)
        score[leaf] = trees.outputs[trees.slot[leaf], 0]
        return cls(
            trees.roots,
            np.maximum.reduceat(depth, trees.roots).astype(np.int32) if len(trees.roots) else trees.roots,
            np.maximum(trees.output, 0),
            np.where(leaf, np.inf, trees.threshold),
            np.where(leaf, 0, trees.slot).astype(np.int32),
            np.where(leaf, np.arange(len(leaf)), trees.child).astype(np.int32),
            np.where(leaf, 0, trees.missing).astype(np.uint8),
            score,
        )


def without_idle(trees: Trees) -> Trees:
    """The same without trees of one leaf that adds 0: boosting goes on where nothing is left to learn."""
    leaf = trees.child[trees.roots] < 0
    idle = leaf & ~trees.outputs[np.where(leaf, trees.slot[trees.roots], 0)].any(axis=1)
    if not idle.any() or idle.all():
        return trees
    kept = np.ones(len(trees.child), bool)
    kept[trees.roots[idle]] = False
    place = (np.cumsum(np.append(0, kept))).astype(np.int32)  # of each node, and of the end
    child, parent = trees.child[kept], trees.parent[kept]
    return trees._replace(
        threshold=trees.threshold[kept],
        slot=trees.slot[kept],
        child=np.where(child < 0, -1, place[child]).astype(np.int32),
        missing=trees.missing[kept],
        parent=np.where(parent < 0, -1, place[parent]).astype(np.int32),
        end=place[trees.end[kept]],
        path=trees.path[kept],
        roots=place[trees.roots[~idle]],
        output=trees.output[~idle],
    )


def depths(trees: Trees) -> NDArray[np.int64]:
    """How many splits are above each node."""
    depth, above = np.zeros(len(trees.child), np.int64), trees.parent
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, trees.parent[above], -1)
    return depth


class Ranks(NamedTuple):
    """Splits ranked by the slot they test and by their threshold: those that a moving slot passes, in their order."""

    rank: Int32Array  # (nodes,) -1 at a leaf
    node: Int32Array  # (splits,)
    tree: Int32Array  # (splits,)
    cut: FloatArray  # (splits,)
    first: Int32Array  # (slots + 1,) rank of each slot's first split
    longest: int  # most splits on all paths of one row

    @classmethod
    def of(cls, trees: Trees, n_slots: int) -> Ranks:
        """Rank the splits of an ensemble."""
        inner = np.flatnonzero(trees.child >= 0)
        slot = trees.slot[inner].copy()
        slot[slot < 0] = trees.odd_slot[~slot[slot < 0]]
        order = np.lexsort((trees.threshold[inner], slot))
        node = inner[order].astype(np.int32)
        rank = np.full(len(trees.child), -1, np.int32)
        rank[node] = np.arange(len(node))
        first = np.searchsorted(slot[order], np.arange(n_slots + 1)).astype(np.int32)
        tree = (np.searchsorted(trees.roots, node, side="right") - 1).astype(np.int32)
        longest = int(np.maximum.reduceat(depths(trees), trees.roots).sum()) if len(trees.roots) else 0
        return cls(rank, node, tree, trees.threshold[node], first, longest)


class SpaceArrays(NamedTuple):
    """Ranges of the columns, and columns of the blocks."""

    low: FloatArray  # (columns,)
    high: FloatArray
    whole: ByteArray
    block_start: Int32Array  # (blocks,)
    block_stop: Int32Array


class Located(NamedTuple):
    """What the ensemble says about some rows."""

    values: FloatArray  # (rows, slots) what splits test
    leaves: Int32Array  # (rows, trees) the leaf that each tree gives them
    total: FloatArray  # (rows,) sum of the leaves' scores
    splits: Int32Array  # (rows, longest) ranks of the splits on their paths, ascending
    first: Int32Array  # (rows, slots + 1) where those on each slot begin

    @classmethod
    def room(cls, n: int, n_trees: int, n_slots: int, longest: int) -> Located:
        """Room for what is said about ``n`` rows."""
        return cls(
            np.empty((n, n_slots)),
            np.empty((n, n_trees), np.int32),
            np.empty(n),
            np.empty((n, longest), np.int32),
            np.empty((n, n_slots + 1), np.int32),
        )

    def part(self, rows: slice) -> Located:
        """What is said about some of them."""
        return Located(self.values[rows], self.leaves[rows], self.total[rows], self.splits[rows], self.first[rows])


class Routes(NamedTuple):
    """What each direction moves: ``start[d]`` to ``start[d + 1]`` belong to direction d."""

    mover_start: Int32Array
    mover_column: Int32Array
    mover_step: FloatArray
    switch_start: Int32Array
    switch_block: Int32Array
    switch_target: Int32Array
    bound_start: Int32Array  # (switches,) of each switch, into `bounds`
    bounds: FloatArray  # by category: it switches past this k
    watched: ByteArray  # (slots,) 1 where some direction may move it


def read_only(array: AnyArray) -> AnyArray:
    """The same array, to be read only."""
    view = array.view()
    view.flags.writeable = False
    return view


def frozen(arrays: Arrays) -> Arrays:
    """The same with read-only arrays: Numba treats writeable ones as another type, and would compile twice."""
    kind: Any = type(arrays)
    return cast(Arrays, kind(*(read_only(a) if isinstance(a, np.ndarray) else a for a in arrays)))
