"""The minimum cost of one row under a tree ensemble, by branch and bound over ranges of cells.

A *region* is a range of cells of each column and a set of categories of each block. The cost of its cheapest point, the
sum of its cheapest cells, bounds all points in it from below. A leaf is *open* in a region if its box intersects it at
a cost below the best known one; if the open leaves of all trees together cannot reach the favourable outcome, no point
in the region can. Otherwise the region is split on a side of an open leaf that scores higher than the cheapest point's.

There are no solver tolerances: sums of scores are compared with bounds on their rounding errors, and a point whose
score is within these is passed to the models themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from globece.bounds.cells import Int32Array, Reach
from globece.space import FloatArray, IntArray

DONE, PAUSED, ASKING = 0, 1, 2
DEEPEST = 1024  # regions waiting at a time; further ones are given up, with their bounds
ASKED = 64  # points that wait for the models' answer
ROUNDS = 3  # of narrowing a region to the hull of its open leaves
KEPT = 256  # depths at which open leaves are stored


class Forest(NamedTuple):
    """The leaves that one row can reach, tree by tree."""

    first_leaf: IntArray  # (trees + 1,)
    first_side: IntArray  # (leaves + 1,)
    dimension: Int32Array  # (sides,)
    low: Int32Array  # (sides,) first and last cell, among those in reach
    high: Int32Array
    categories: NDArray[np.uint64]  # (sides,)
    score: FloatArray  # (conditions, leaves)
    target: FloatArray  # (conditions,) below it a sum is certainly unfavourable ...
    clear: FloatArray  # (conditions,) ... and from here on certainly favourable


class Search(NamedTuple):
    """State of a search: waiting regions, and what has been found. All arrays are modified in place."""

    low: Int32Array  # (DEEPEST, dimensions)
    high: Int32Array
    categories: NDArray[np.uint64]
    bound: FloatArray  # (DEEPEST,)
    depth: Int32Array
    alive: Int32Array  # (KEPT, leaves) leaves that were open in the last region of each depth
    n_alive: IntArray  # (KEPT,)
    counts: IntArray  # (4,): waiting regions, regions seen, points waiting for an answer, points found
    best: FloatArray  # (2,): least cost found, and least bound of the regions given up
    point: Int32Array  # (dimensions,) cells of the best
    asked: Int32Array  # (ASKED, dimensions)
    price: FloatArray  # (ASKED,)


def forest_of(
    reach: Reach,
    n_cells: IntArray,
    sides: tuple[Int32Array, Int32Array, Int32Array, NDArray[np.uint64], NDArray[np.uint8]],
    leaves: tuple[IntArray, IntArray, FloatArray],
    targets: tuple[FloatArray, FloatArray],
    n_trees: int,
) -> Forest:
    """The leaves whose boxes contain cells in reach, with sides in terms of these cells."""
    # for every cell the number of cells in reach before it
    before = np.concatenate(
        [
            np.append(0, np.cumsum(np.isin(np.arange(n), reach.cell[a:b])))
            for n, a, b in zip(n_cells, reach.start[:-1], reach.start[1:], strict=True)
        ]
        or [np.zeros(1, np.int64)]
    )
    offset = np.cumsum([0, *(n_cells + 1)])[:-1]
    parts: Any = _reduce(*reach, before.astype(np.int64), offset.astype(np.int64), *sides, *leaves, n_trees)
    return Forest._make((*parts, *targets))


@njit(cache=True)
def _reduce(  # type: ignore[no-untyped-def]
    start, cost, value, cell, home, missing, free, block, before, offset, dimension, low, high, categories, absent,
    first_side, tree, score, n_trees,
):  # fmt: skip
    n = len(tree)
    reachable = np.zeros(len(start) - 1, np.uint64)  # categories
    for d in range(len(reachable)):
        if block[d]:
            for c in range(start[d], start[d + 1]):
                reachable[d] |= np.uint64(1) << np.uint64(min(cell[c], 63))
    kept = np.zeros(n, np.bool_)
    n_kept, n_sides = 0, 0
    for i in range(n):
        ok = True
        sides = 0
        for s in range(first_side[i], first_side[i + 1]):
            d = dimension[s]
            if free[d]:
                continue
            if missing[d]:
                ok = ok and absent[s] != 0
                continue
            sides += 1
            if block[d]:
                ok = ok and (categories[s] & reachable[d]) != 0
            elif high[s] < low[s]:
                ok = False
            else:
                ok = ok and before[offset[d] + high[s] + 1] > before[offset[d] + low[s]]
        if ok:
            kept[i] = True
            n_kept += 1
            n_sides += sides
    first_leaf, sides_at = np.zeros(n_trees + 1, np.int64), np.zeros(n_kept + 1, np.int64)
    dims, lo, hi = np.empty(n_sides, np.int32), np.empty(n_sides, np.int32), np.empty(n_sides, np.int32)
    bits, scores = np.empty(n_sides, np.uint64), np.empty((len(score), n_kept))
    i, at = 0, 0
    for leaf in range(n):
        if not kept[leaf]:
            continue
        for s in range(first_side[leaf], first_side[leaf + 1]):
            d = dimension[s]
            if free[d] or missing[d]:
                continue
            dims[at], bits[at] = d, categories[s]
            lo[at], hi[at] = 0, 0
            if not block[d]:
                lo[at] = before[offset[d] + low[s]]
                hi[at] = before[offset[d] + high[s] + 1] - 1
            at += 1
        scores[:, i] = score[:, leaf]
        first_leaf[tree[leaf] + 1] += 1
        i += 1
        sides_at[i] = at
    return np.cumsum(first_leaf), sides_at, dims, lo, hi, bits, scores


def start(reach: Reach, forest: Forest, most: float) -> Search:
    """A search among all points within reach below a cost (squared, for l2)."""
    n = len(reach.home)
    low, high = np.zeros((DEEPEST, n), np.int32), np.zeros((DEEPEST, n), np.int32)
    categories = np.zeros((DEEPEST, n), np.uint64)
    high[0] = np.diff(reach.start) - 1
    for d in np.flatnonzero(reach.block):
        here = reach.cell[reach.start[d] : reach.start[d + 1]]
        categories[0, d] = np.bitwise_or.reduce(np.uint64(1) << np.minimum(here, 63).astype(np.uint64))
    leaves = forest.score.shape[1]
    alive = np.zeros((min(KEPT, DEEPEST), leaves), np.int32)
    return Search(
        low,
        high,
        categories,
        np.zeros(DEEPEST),
        np.zeros(DEEPEST, np.int32),
        alive,
        np.zeros(len(alive), np.int64),
        np.array([1, 0, 0, 0]),
        np.array([most, np.inf]),
        np.full(n, -1, np.int32),
        np.zeros((ASKED, n), np.int32),
        np.zeros(ASKED),
    )


@njit(cache=True, nogil=True)
def _cheapest(start, cost, home, block, d, low, high, categories, homebit):  # type: ignore[no-untyped-def]
    """Least cost of a range of cells of one dimension, or of a set of categories."""
    if block[d]:
        if categories & homebit[d]:
            return 0.0
        return cost[start[d]] if home[d] != 0 else cost[start[d] + 1]  # all other categories cost the same
    if low > home[d]:
        return cost[start[d] + low]
    if high < home[d]:
        return cost[start[d] + high]
    return 0.0


@njit(cache=True, nogil=True)
def run(reach: Reach, forest: Forest, search: Search, loose: NDArray[np.bool_], steps: int) -> int:
    """Examine some regions; return whether the search is done, paused, or waits for answers."""
    start, cost, cell, home = reach.start, reach.cost, reach.cell, reach.home
    block = reach.block
    first_leaf, first_side = forest.first_leaf, forest.first_side
    dims, slo, shi, sbits = forest.dimension, forest.low, forest.high, forest.categories
    n, n_trees, n_conditions = len(home), len(first_leaf) - 1, len(forest.target)
    counts, best = search.counts, search.best
    homebit = np.zeros(n, np.uint64)
    one = np.uint64(1)
    for d in range(n):
        if block[d]:
            homebit[d] = one << np.uint64(min(cell[start[d] + home[d]], 63))
    lo, hi, bits = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.uint64)
    paid, point = np.empty(n), np.empty(n, np.int32)
    n_leaves = forest.score.shape[1]
    open_, tree_of = np.empty(n_leaves, np.int32), np.empty(n_leaves, np.int32)
    for t in range(n_trees):
        for i in range(first_leaf[t], first_leaf[t + 1]):
            tree_of[i] = t
    top, least_at, most_at = np.empty(n_conditions), np.empty(n_conditions), np.empty(n_conditions)
    here_score, tree_top = np.empty(n_conditions), np.empty(n_conditions)
    # the hull of the open leaves of one tree
    seen, hull_lo, hull_hi, hull_bits = (
        np.zeros(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.uint64),
    )  # fmt: skip
    for _ in range(steps):
        if counts[0] == 0:
            return DONE if counts[2] == 0 else ASKING
        if counts[2] == ASKED:
            return ASKING
        counts[0] -= 1
        counts[1] += 1
        at = counts[0]
        if search.bound[at] >= best[0]:
            continue
        lo[:], hi[:], bits[:] = search.low[at], search.high[at], search.categories[at]
        depth = search.depth[at]
        if depth == 0:
            n_open = n_leaves
            for i in range(n_leaves):
                open_[i] = i
        else:
            source = min(depth - 1, len(search.alive) - 1)
            n_open = search.n_alive[source]
            open_[:n_open] = search.alive[source, :n_open]
        # -- narrow the region, and close leaves that cost too much
        dead, base = False, 0.0
        for _round in range(ROUNDS):
            base = 0.0
            for d in range(n):
                if (block[d] and bits[d] == 0) or (not block[d] and lo[d] > hi[d]):
                    dead = True
                    break
                paid[d] = _cheapest(start, cost, home, block, d, lo[d], hi[d], bits[d], homebit)
                base += paid[d]
            if dead or base >= best[0]:
                dead = True
                break
            top[:] = 0.0
            kept, q, narrowed = 0, 0, False
            for t in range(n_trees):
                tree_top[:] = -np.inf
                n_here, begin = 0, kept
                while q < n_open and tree_of[open_[q]] == t:
                    i = open_[q]
                    q += 1
                    extra, ok = base, True
                    for s in range(first_side[i], first_side[i + 1]):
                        d = dims[s]
                        if block[d]:
                            both = bits[d] & sbits[s]
                            if both == 0:
                                ok = False
                                break
                            if paid[d] == 0.0 and both & homebit[d] == 0:
                                extra += _cheapest(start, cost, home, block, d, 0, 0, both, homebit)
                        else:
                            a, b = max(lo[d], slo[s]), min(hi[d], shi[s])
                            if a > b:
                                ok = False
                                break
                            extra += _cheapest(start, cost, home, block, d, a, b, one, homebit) - paid[d]
                    if ok and extra < best[0]:
                        open_[kept] = i
                        kept += 1
                        n_here += 1
                        for j in range(n_conditions):
                            tree_top[j] = max(tree_top[j], forest.score[j, i])
                if n_here == 0:
                    dead = True
                    break
                for j in range(n_conditions):
                    top[j] += tree_top[j]
                # dimensions that all open leaves of this tree restrict
                for p in range(begin, kept):
                    i = open_[p]
                    for s in range(first_side[i], first_side[i + 1]):
                        d = dims[s]
                        if p == begin:
                            seen[d], hull_lo[d], hull_hi[d], hull_bits[d] = 1, slo[s], shi[s], sbits[s]
                        elif seen[d] == p - begin:
                            seen[d] += 1
                            hull_lo[d], hull_hi[d] = min(hull_lo[d], slo[s]), max(hull_hi[d], shi[s])
                            hull_bits[d] |= sbits[s]
                i = open_[begin]
                for s in range(first_side[i], first_side[i + 1]):
                    d = dims[s]
                    if seen[d] == n_here:
                        if block[d]:
                            if bits[d] & ~hull_bits[d]:
                                bits[d] &= hull_bits[d]
                                narrowed = True
                        elif hull_lo[d] > lo[d] or hull_hi[d] < hi[d]:
                            lo[d], hi[d] = max(lo[d], hull_lo[d]), min(hi[d], hull_hi[d])
                            narrowed = True
                    seen[d] = 0
                for p in range(begin, kept):
                    i = open_[p]
                    for s in range(first_side[i], first_side[i + 1]):
                        seen[dims[s]] = 0
            if dead:
                break
            n_open = kept
            for j in range(n_conditions):
                if top[j] < forest.target[j]:
                    dead = True
            if dead or not narrowed:
                break
        if dead:
            continue
        # -- the cheapest point
        base = 0.0
        for d in range(n):
            if (block[d] and bits[d] == 0) or (not block[d] and lo[d] > hi[d]):
                dead = True
                break
            base += _cheapest(start, cost, home, block, d, lo[d], hi[d], bits[d], homebit)
            if not block[d]:
                point[d] = min(max(home[d], lo[d]), hi[d])
            elif bits[d] & homebit[d]:
                point[d] = home[d]
            else:
                for c in range(start[d], start[d + 1]):
                    if (bits[d] >> np.uint64(min(cell[c], 63))) & one:
                        point[d] = c - start[d]
                        break
        if dead or base >= best[0]:
            continue
        least_at[:], most_at[:] = 0.0, 0.0
        widest, pick, outside, ambiguous = -1.0, -1, -1, False
        q = 0
        for t in range(n_trees):
            # scores at the point, and the open leaf that would gain most
            n_in = 0
            begin = q
            for j in range(n_conditions):
                here_score[j] = np.inf
                tree_top[j] = -np.inf
            while q < n_open and tree_of[open_[q]] == t:
                i = open_[q]
                q += 1
                inside = True
                for s in range(first_side[i], first_side[i + 1]):
                    d = dims[s]
                    if block[d]:
                        inside = (sbits[s] >> np.uint64(min(cell[start[d] + point[d]], 63))) & one != 0
                    else:
                        inside = slo[s] <= point[d] <= shi[s]
                    if not inside:
                        break
                if inside:
                    n_in += 1
                    for j in range(n_conditions):
                        here_score[j] = min(here_score[j], forest.score[j, i])
                        tree_top[j] = max(tree_top[j], forest.score[j, i])
                else:
                    outside = i
            if n_in == 0:  # impossible: the leaf of the cheapest point costs nothing more
                dead = True
            ambiguous |= n_in > 1
            for j in range(n_conditions):
                least_at[j] += here_score[j]
                most_at[j] += tree_top[j]
            for p in range(begin, q):
                i = open_[p]
                gain = 0.0
                for j in range(n_conditions):
                    gain += max(forest.score[j, i] - tree_top[j], 0.0)
                if gain > widest and gain > 0.0:
                    widest, pick = gain, i
        if dead:
            best[1] = min(best[1], base)
            continue
        clear, possible = True, True
        for j in range(n_conditions):
            clear = clear and least_at[j] >= forest.clear[j]
            possible = possible and most_at[j] >= forest.target[j]
        if clear:
            best[0] = base
            search.point[:] = point
            counts[3] += 1
            continue
        if possible:  # too near the boundary: the models decide
            search.asked[counts[2]] = point
            search.price[counts[2]] = base
            counts[2] += 1
        # -- split
        if pick < 0:
            pick = outside
        branch, cost_of = -1, -1.0
        if pick >= 0:
            for s in range(first_side[pick], first_side[pick + 1]):
                d = dims[s]
                if block[d]:
                    if (sbits[s] >> np.uint64(min(cell[start[d] + point[d]], 63))) & one == 0:
                        c = _cheapest(start, cost, home, block, d, 0, 0, bits[d] & sbits[s], homebit)
                        if c > cost_of:
                            branch, cost_of = s, c
                elif point[d] < slo[s] or point[d] > shi[s]:
                    a, b = max(lo[d], slo[s]), min(hi[d], shi[s])
                    c = _cheapest(start, cost, home, block, d, a, b, one, homebit)
                    if c > cost_of:
                        branch, cost_of = s, c
        if counts[0] + 2 > DEEPEST:
            best[1] = min(best[1], base)
            continue
        if depth < len(search.alive):
            search.n_alive[depth] = n_open
            search.alive[depth, :n_open] = open_[:n_open]
        near, far = counts[0], counts[0] + 1  # the far part, nearer to the favourable outcome, comes first
        if branch < 0:
            # sides that are wider than their leaves: separate the point's cell
            split = -1
            for d in range(n):
                if loose[d] and not block[d] and lo[d] < hi[d]:
                    split = d
            if split < 0:
                if ambiguous and possible and reach.free.any():
                    best[1] = min(best[1], base)  # the category is not known here
                continue
            d = split
            counts[0] += 2
            for r in (near, far):
                search.low[r], search.high[r], search.categories[r] = lo, hi, bits
                search.bound[r], search.depth[r] = base, depth + 1
            if point[d] == lo[d]:
                search.high[near, d], search.low[far, d] = lo[d], lo[d] + 1
            else:
                search.low[near, d], search.high[far, d] = point[d], point[d] - 1
            continue
        d = dims[branch]
        counts[0] += 2
        for r in (near, far):
            search.low[r], search.high[r], search.categories[r] = lo, hi, bits
            search.bound[r], search.depth[r] = base, depth + 1
        if block[d]:
            search.categories[far, d] = bits[d] & sbits[branch]
            search.categories[near, d] = bits[d] & ~sbits[branch]
        elif point[d] < slo[branch]:
            search.low[far, d], search.high[near, d] = slo[branch], slo[branch] - 1
        else:
            search.high[far, d], search.low[near, d] = shi[branch], shi[branch] + 1
    return PAUSED
