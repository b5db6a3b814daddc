"""Leaves as boxes: the values of each feature for which a tree gives that leaf, and the cost of getting there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from globece.costs import CostModel
from globece.models.trees.layout import Trees
from globece.space import BoolArray, Feature, FeatureSpace, FloatArray, IntArray

MOST_CATEGORIES = 64  # a block with more is taken to cost nothing: the bound stays valid


class Boxes(NamedTuple):
    """The leaves of an ensemble, tree by tree, and the sides of each one's box.

    A side concerns one *dimension*: the encoded column of a continuous or ordinal feature or, after those, a block.
    """

    leaf: IntArray  # (leaves,) node
    tree: IntArray  # (leaves,)
    first: IntArray  # (leaves + 1,) where each leaf's sides begin
    dimension: IntArray  # (sides,)
    low: FloatArray  # (sides,) values must be above it ...
    high: FloatArray  # (sides,) ... and not above this one
    missing: NDArray[np.uint8]  # (sides,) 1 if missing values are inside
    categories: NDArray[np.uint64]  # (sides,) bits of the categories inside


class EntryCosts(NamedTuple):
    """What it costs to enter each side of a box."""

    up: FloatArray  # (sides,) the value to rise to, and its position on the cost model's scale
    up_at: FloatArray
    down: FloatArray  # (sides,) the value to fall to
    down_at: FloatArray
    lowest: FloatArray  # (columns,) lowest value that may be moved to; inf if it may not fall
    highest: FloatArray  # (columns,) highest value that may be moved to; -inf if it may not rise
    rate: FloatArray  # (columns,) cost per unit on a linear scale; 0 on others
    price: FloatArray  # (blocks,)
    permitted: NDArray[np.uint64]  # (blocks,) bits of the categories that may be moved to


def boxes_of(trees: Trees, space: FeatureSpace) -> Boxes:
    """Find the box of every leaf."""
    block_of = np.full(space.width, -1, dtype=np.int64)
    starts = np.array([f.start for f in space.blocks], dtype=np.int64)
    widths = np.array([f.width for f in space.blocks], dtype=np.int64)
    for b, f in enumerate(space.blocks):
        block_of[f.columns] = b
    arrays = (trees.threshold, trees.slot, trees.child, trees.missing, trees.parent)
    odd = (trees.odd_slot, trees.odd_start, trees.odd_cut, trees.odd_side)
    return Boxes(*_find(*arrays, trees.roots, *odd, block_of, starts, widths))


@njit(cache=True)
def _find(  # type: ignore[no-untyped-def]
    threshold, slot, child, missing, parent, roots, odd_slot, odd_start, odd_cut, odd_side, block_of, starts, widths
):
    width, n = len(block_of), len(child)
    depth = np.zeros(n, np.int64)
    n_leaves, n_sides = 0, 0
    for node in range(n):  # a parent comes before its children
        if parent[node] >= 0:
            depth[node] = depth[parent[node]] + 1
        if child[node] < 0:
            n_leaves += 1
            n_sides += depth[node]
    leaf, tree = np.empty(n_leaves, np.int64), np.empty(n_leaves, np.int64)
    first = np.zeros(n_leaves + 1, np.int64)
    dimension, low, high = np.empty(n_sides, np.int64), np.empty(n_sides), np.empty(n_sides)
    absent, categories = np.empty(n_sides, np.uint8), np.empty(n_sides, np.uint64)
    at, i, t = 0, 0, 0
    one, everything = np.uint64(1), ~np.uint64(0)
    for node in range(n):
        while t + 1 < len(roots) and roots[t + 1] <= node:
            t += 1
        if child[node] >= 0:
            continue
        leaf[i], tree[i] = node, t
        here = node
        while parent[here] >= 0:
            above = parent[here]
            second = here == child[above] + 1
            here = above
            tested, odd = slot[above], -1
            if tested < 0:
                odd = ~tested
                tested = odd_slot[odd]
            # the side of this split
            where, lo, hi, bits = tested, -np.inf, np.inf, everything
            if tested >= width or block_of[tested] >= 0:
                b = tested - width if tested >= width else block_of[tested]
                where = width + b
                if widths[b] <= 64:
                    bits = np.uint64(0)
                    for c in range(widths[b]):
                        if odd >= 0:
                            side = odd_side[odd_start[odd] + c] != 0
                        elif tested >= width:
                            side = c > threshold[above]
                        else:
                            side = (1.0 if starts[b] + c == tested else 0.0) > threshold[above]
                        if side == second:
                            bits |= one << np.uint64(c)
            elif odd >= 0:  # the hull of the pieces on this side
                begin, end = odd_start[odd], odd_start[odd + 1]
                lo, hi = np.inf, -np.inf
                for p in range(begin, end):
                    if (odd_side[p] != 0) == second:
                        lo = min(lo, odd_cut[p - 1] if p > begin else -np.inf)
                        hi = max(hi, odd_cut[p])
            elif second:
                lo = threshold[above]
            else:
                hi = threshold[above]
            found = -1
            for s in range(first[i], at):
                if dimension[s] == where:
                    found = s
            passes = np.uint8(1) if (missing[above] != 0) == second else np.uint8(0)
            if found < 0:
                dimension[at], low[at], high[at], absent[at], categories[at] = where, lo, hi, passes, bits
                at += 1
            else:
                low[found], high[found] = max(low[found], lo), min(high[found], hi)
                absent[found] &= passes
                categories[found] &= bits
        i += 1
        first[i] = at
    return leaf, tree, first, dimension[:at], low[:at], high[:at], absent[:at], categories[:at]


def entry_costs_of(boxes: Boxes, cost: CostModel, Z: FloatArray) -> EntryCosts:
    """Costs of entering every box, for these rows."""
    space = cost.space
    up, down = np.full(len(boxes.low), np.inf), np.full(len(boxes.low), -np.inf)
    up_at, down_at = np.zeros(len(up)), np.zeros(len(up))
    lowest, highest, rate = np.full(space.width, np.inf), np.full(space.width, -np.inf), np.zeros(space.width)
    for f in space.scalars:
        mine = boxes.dimension == f.start
        if not f.can_move:
            continue
        up[mine], down[mine] = landing(f, boxes.low[mine], boxes.high[mine], Z[:, f.start])
        if (unit := 2.0 * float(space.rounding[f.start])) > 0.0:  # a narrow column may round into the box
            with np.errstate(invalid="ignore", over="ignore"):
                up[mine] = np.where(np.isfinite(up[mine]), up[mine] - unit * np.abs(up[mine]), up[mine])
                down[mine] = np.where(np.isfinite(down[mine]), down[mine] + unit * np.abs(down[mine]), down[mine])
        scale, weight = cost.scales[f.name], cost.weight(f)
        with np.errstate(over="ignore"):  # open sides are infinite
            up_at[mine], down_at[mine] = weight * scale(up[mine]), weight * scale(down[mine])
        rate[f.start] = weight * scale.slopes[0] if scale.is_linear else 0.0
        lowest[f.start] = f.low if f.sense <= 0 else np.inf
        highest[f.start] = f.high if f.sense >= 0 else -np.inf
    price = np.array([cost.weight(f) if f.can_move else np.inf for f in space.blocks])
    bits = [_bits(np.array(f.permitted[:MOST_CATEGORIES])) for f in space.blocks]
    return EntryCosts(up, up_at, down, down_at, lowest, highest, rate, price, np.array(bits, dtype=np.uint64))


def landing(f: Feature, low: FloatArray, high: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The first value above each ``low``, and the first not above each ``high``, that these rows can reach."""
    known = x[~np.isnan(x)]
    if f.whole and (np.rint(known) == known).all():  # whole numbers stay whole
        return np.floor(low) + 1.0, np.floor(high)
    return np.nextafter(low, np.inf), high


def _bits(flags: BoolArray) -> int:
    return sum(1 << i for i, flag in enumerate(flags) if flag)


def scale_positions(cost: CostModel, Z: FloatArray) -> FloatArray:
    """Each row's position on the cost model's scales."""
    out = np.zeros(Z.shape)
    for f in cost.space.scalars:
        if f.can_move:
            out[:, f.start] = cost.weight(f) * cost.scales[f.name](Z[:, f.start])
    return out


@njit(cache=True, nogil=True)
def entry(
    boxes: Boxes, entry_costs: EntryCosts, i: int, x: FloatArray, at: FloatArray, codes: IntArray, l2: bool
) -> float:
    """Cost (squared, for l2) at which a row enters the box of leaf i; ``inf`` where it cannot."""
    total = 0.0
    width = len(x)
    for s in range(boxes.first[i], boxes.first[i + 1]):
        d = boxes.dimension[s]
        part = 0.0
        if d >= width:
            b = d - width
            if (boxes.categories[s] >> np.uint64(min(codes[b], 63))) & np.uint64(1) == 0:
                if boxes.categories[s] & entry_costs.permitted[b] == 0:
                    return np.inf
                part = entry_costs.price[b]
        elif x[d] != x[d]:
            if boxes.missing[s] == 0:
                return np.inf
        elif boxes.low[s] >= boxes.high[s]:
            return np.inf  # no number is inside; a missing value may be
        elif x[d] <= boxes.low[s]:
            if entry_costs.up[s] > entry_costs.highest[d]:
                return np.inf
            # a difference of values is more precise than one of positions on the scale
            part = (
                (entry_costs.up[s] - x[d]) * entry_costs.rate[d]
                if entry_costs.rate[d]
                else entry_costs.up_at[s] - at[d]
            )
        elif x[d] > boxes.high[s]:
            if entry_costs.down[s] < entry_costs.lowest[d]:
                return np.inf
            part = (
                (x[d] - entry_costs.down[s]) * entry_costs.rate[d]
                if entry_costs.rate[d]
                else at[d] - entry_costs.down_at[s]
            )
        part = max(part, 0.0)
        total += part * part if l2 else part
    return total


@njit(cache=True, nogil=True)
def sweep(
    boxes: Boxes,
    entry_costs: EntryCosts,
    scores: FloatArray,
    target: float,
    n_trees: int,
    Z: FloatArray,
    at: FloatArray,
    codes: IntArray,
    l2: bool,
    first: int,
    last: int,
    out: FloatArray,
) -> None:
    """Least cost (squared, for l2) at which the best leaves within reach of all trees reach the target.

    It is in this file because it calls :func:`entry`, and Numba's cache of a function only notices changes of the
    function's own file.
    """
    n_leaves = len(scores)
    price, best = np.empty(n_leaves), np.empty(n_trees)
    which = np.empty(n_leaves, np.int64)
    for row in range(first, last):
        best[:] = -np.inf
        for i in range(n_leaves):
            price[i] = entry(boxes, entry_costs, i, Z[row], at[row], codes[row], l2)
            if price[i] == 0.0:
                best[boxes.tree[i]] = max(best[boxes.tree[i]], scores[i])
        total = best.sum()
        out[row] = 0.0
        if total >= target:
            continue
        n = 0  # leaves that would raise their tree
        for i in range(n_leaves):
            if price[i] < np.inf and scores[i] > best[boxes.tree[i]]:
                which[n] = i
                n += 1
        order = np.argsort(price[which[:n]])
        out[row] = np.inf
        for q in order:
            i = which[q]
            gain = scores[i] - best[boxes.tree[i]]
            if gain > 0.0:
                best[boxes.tree[i]] = scores[i]
                total += gain
                if total >= target:
                    out[row] = price[i]
                    break
