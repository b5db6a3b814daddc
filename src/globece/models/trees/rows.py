"""What a tree ensemble says about rows: leaves, how far they are on the favourable side, the splits on their paths."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from globece.models.trees.decision_rule import DecisionRule, decide, lead
from globece.models.trees.layout import ByteArray, Int32Array, Located, Ranks, SpaceArrays, Trees, Walk
from globece.models.trees.slots import SMALLEST_DOUBLE, piece
from globece.parallel import over_rows
from globece.space import FloatArray

CHUNK = 32  # rows whose leaves are found together, tree by tree


@njit(cache=True, error_model="numpy")
def _fill_values(space: SpaceArrays, Z: FloatArray, first: int, last: int, values: FloatArray) -> None:
    """Slot values of some rows."""
    width = Z.shape[1]
    for row in range(last - first):
        for c in range(width):
            values[row, c] = Z[first + row, c]
        for b in range(len(space.block_start)):
            best = space.block_start[b]
            for c in range(best + 1, space.block_stop[b]):
                if values[row, c] > values[row, best]:
                    best = c
            values[row, width + b] = best - space.block_start[b]


@njit(cache=True, error_model="numpy")
def find_leaves(
    trees: Trees, space: SpaceArrays, Z: FloatArray, first: int, last: int
) -> tuple[FloatArray, Int32Array]:
    """Slot values of some rows, and the node of each tree's leaf."""
    n_trees, width = len(trees.roots), Z.shape[1]
    threshold, slots, children, missing = trees.threshold, trees.slot, trees.child, trees.missing
    odd_slot, odd_start, odd_cut, odd_side = trees.odd_slot, trees.odd_start, trees.odd_cut, trees.odd_side
    values = np.empty((last - first, width + len(space.block_start)))
    _fill_values(space, Z, first, last, values)
    leaves = np.empty((last - first, n_trees), np.int32)
    for tree in range(n_trees):  # tree by tree, so that its nodes stay in the cache
        root = trees.roots[tree]
        for row in range(last - first):
            node = root
            child = children[node]
            while child >= 0:
                slot = slots[node]
                if slot >= 0:
                    value = values[row, slot]
                    side = value > threshold[node]
                else:
                    odd = ~slot
                    slot = odd_slot[odd]
                    value = values[row, slot]
                    side = value == value and odd_side[piece(odd_cut, odd_start[odd], value, slot >= width)] != 0
                if value != value:
                    side = missing[node] != 0
                node = child + side
                child = children[node]
            leaves[row, tree] = node
    return values, leaves


@njit(cache=True, error_model="numpy")
def list_splits(
    trees: Trees,
    ranks: Ranks,
    watched: ByteArray,
    bits: np.uint64,
    leaves: Int32Array,
    marks: NDArray[np.uint64],
    splits: Int32Array,
    first: Int32Array,
) -> None:
    """List the ranks of the splits on watched slots on the paths to these leaves, ascending.

    ``bits`` are the watched slots as in :attr:`Trees.path`; ``marks`` is room for a bit for each split, all 0.
    """
    for tree in range(len(leaves)):
        if trees.path[leaves[tree]] & bits == np.uint64(0):
            continue
        node = trees.parent[leaves[tree]]
        while node >= 0:
            rank = ranks.rank[node]
            marks[rank >> 6] |= np.uint64(1) << np.uint64(rank & 63)
            node = trees.parent[node]
    n = 0
    for slot in range(len(first) - 1):
        first[slot] = n
        begin, stop = ranks.first[slot], ranks.first[slot + 1]
        if begin == stop or not watched[slot]:
            continue
        for word in range(begin >> 6, ((stop - 1) >> 6) + 1):
            left = marks[word]
            while left != np.uint64(0):
                lowest = left & (~left + np.uint64(1))
                left ^= lowest
                # its exponent as a double is its place
                place = (np.float64(lowest).view(np.int64) >> 52) - 1023
                rank = (word << 6) + place
                if begin <= rank < stop:
                    splits[n] = rank
                    n += 1
    first[len(first) - 1] = n
    marks[:] = 0


@njit(cache=True, error_model="numpy")
def add_scores(trees: Trees, origin: float, leaves: Int32Array) -> float:
    """Sum of the leaves' scores."""
    total = origin
    for tree in range(len(leaves)):
        total += trees.threshold[leaves[tree]]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _locate_rows(
    trees: Trees, ranks: Ranks, origin: float, space: SpaceArrays, Z: FloatArray, first: int, last: int, found: Located
) -> None:
    marks = np.zeros(len(ranks.node) // 64 + 1, np.uint64)
    watched, bits = np.ones(len(ranks.first) - 1, np.uint8), ~np.uint64(0)
    for begin in range(first, last, CHUNK):
        end = min(last, begin + CHUNK)
        found.values[begin:end], found.leaves[begin:end] = find_leaves(trees, space, Z, begin, end)
        for row in range(begin, end):
            found.total[row] = add_scores(trees, origin, found.leaves[row])
            list_splits(trees, ranks, watched, bits, found.leaves[row], marks, found.splits[row], found.first[row])


@njit(cache=True, error_model="numpy")
def add_up(trees: Trees, rule: DecisionRule, leaves: Int32Array, sums: FloatArray, native: bool) -> None:
    """Sums of the leaves' outputs in the estimator's order, and in its precision (``native``) or in float64."""
    for j in range(len(sums)):
        sums[j] = rule.start[j]
    single = native and rule.single
    for tree in range(len(leaves)):
        leaf, output = trees.slot[leaves[tree]], trees.output[tree]
        first = 0 if output < 0 else output
        last = len(sums) if output < 0 else output + 1
        for j in range(first, last):
            if single:
                sums[j] = np.float64(np.float32(sums[j]) + np.float32(trees.outputs[leaf, j - first]))
            else:
                sums[j] += trees.outputs[leaf, j - first]


@njit(cache=True, nogil=True, error_model="numpy")
def _lead_rows(
    trees: Trees, rule: DecisionRule, space: SpaceArrays, Z: FloatArray, first: int, last: int, out: FloatArray
) -> None:
    """How far rows are on the favourable side."""
    sums = np.empty(len(rule.start))
    for begin in range(first, last, CHUNK):
        _, leaves = find_leaves(trees, space, Z, begin, min(last, begin + CHUNK))
        for row in range(len(leaves)):
            add_up(trees, rule, leaves[row], sums, True)
            ahead = lead(rule, sums)
            # rounding may put a tie on either side: `decide` determines the sign
            out[begin + row] = max(ahead, 0.0) if decide(rule, sums) else min(ahead, -SMALLEST_DOUBLE)


@njit(cache=True, nogil=True, error_model="numpy")
def _walk_rows(
    walk: Walk, rule: DecisionRule, space: SpaceArrays, Z: FloatArray, first: int, last: int, out: FloatArray
) -> None:
    """The same as :func:`_lead_rows` where trees are shallow: many times faster than a search for each leaf."""
    root, steps, output, score = walk.root, walk.steps, walk.output, walk.score
    cut, slot, child, missing = walk.cut, walk.slot, walk.child, walk.missing
    n_sums = len(rule.start)
    values = np.empty((CHUNK, Z.shape[1] + len(space.block_start)))
    sums, exact = np.empty((n_sums, CHUNK), score.dtype), np.empty(n_sums)
    for begin in range(first, last, CHUNK):
        n = min(CHUNK, last - begin)
        _fill_values(space, Z, begin, begin + n, values)
        for j in range(n_sums):
            sums[j] = rule.start[j]
        for tree in range(len(root)):
            top, depth, j = np.uint64(root[tree]), steps[tree], output[tree]
            for row in range(n):
                node = top  # without a sign: an index that may be negative is looked at twice
                for _ in range(depth):
                    value = values[row, np.uint64(slot[node])]
                    # sums of comparisons: `or` becomes a branch in some surroundings, which takes three times as long
                    side = np.uint64(value > cut[node]) + (np.uint64(value != value) & np.uint64(missing[node]))
                    node = np.uint64(child[node]) + side
                sums[j, row] += score[node]
        for row in range(n):
            for j in range(n_sums):
                exact[j] = sums[j, row]
            ahead = lead(rule, exact)
            out[begin + row] = max(ahead, 0.0) if decide(rule, exact) else min(ahead, -SMALLEST_DOUBLE)


def leads(trees: Trees, walk: Walk | None, rule: DecisionRule, space: SpaceArrays, Z: FloatArray) -> FloatArray:
    """How far each row is on the favourable side; negative where it is not favourable."""
    out = np.empty(len(Z))

    def work(first: int, last: int) -> None:
        if walk is None:
            _lead_rows(trees, rule, space, Z, first, last, out)
        else:
            _walk_rows(walk, rule, space, Z, first, last, out)

    over_rows(len(Z), work)
    return out


def locate(trees: Trees, ranks: Ranks, rule: DecisionRule, space: SpaceArrays, Z: FloatArray, found: Located) -> None:
    """Fill in what is said about rows."""
    over_rows(
        len(Z), lambda first, last: _locate_rows(trees, ranks, rule.origin, space, Z, first, last, found), few=CHUNK * 8
    )
