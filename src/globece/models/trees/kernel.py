"""Rays through trees: the compiled form of an ensemble, and the kernel that follows rays through it.

Along a ray every encoded column moves one way, so the leaf that a tree gives changes only where a split on the path to
it changes its answer. The kernel keeps each tree's leaf, and a heap of the scalars at which a split on some path
changes next; it goes from one such scalar to the next and stops at the first with a favourable outcome. Nothing is
sampled. A scalar on the heap is the smallest double at which :func:`globece.rays.travel` passes the threshold, so the
order of events, and the scalar that is reported, hold for the exact positions that the user's model gets.

The running score is a float64 sum. Where it is too near the boundary to tell on which side the estimator's sum falls,
the leaves are added again in the estimator's order and precision.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from globece.models.trees.decision_rule import DecisionRule, decide, lead
from globece.parallel import over_rows
from globece.space import FloatArray

Int32Array = NDArray[np.int32]
ByteArray = NDArray[np.uint8]

LINEAR, WHOLE, SWITCH = 1, 2, 3  # how a slot moves; 0 where it does not
CHUNK = 32  # rows whose leaves are found together, tree by tree
N_BUCKETS = 64
SMALLEST_DOUBLE, LARGEST_DOUBLE = 5e-324, float(np.finfo(np.float64).max)
ROUNDING = 4e-15  # more than the relative rounding error of `travel` and its inverse
FEW_RAYS = 1024  # not worth another thread


class Trees(NamedTuple):
    """An ensemble over the encoded matrix, as flat arrays.

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


class SpaceArrays(NamedTuple):
    """Ranges of the columns, and columns of the blocks."""

    low: FloatArray  # (columns,)
    high: FloatArray
    whole: ByteArray
    block_start: Int32Array  # (blocks,)
    block_stop: Int32Array


class Located(NamedTuple):
    """Rows with their slots' values and the leaf that each tree gives them."""

    values: FloatArray  # (rows, slots)
    leaves: Int32Array  # (rows, trees)


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


# -- one slot along a ray ------------------------------------------------------------------------------------------


@njit(cache=True, error_model="numpy")
def _above(k: float) -> float:
    """Next double above a non-negative one."""
    return np.int64(np.float64(k).view(np.int64) + 1).view(np.float64)


@njit(cache=True, error_model="numpy")
def _below(k: float) -> float:
    """Next double below a positive one."""
    return np.int64(np.float64(k).view(np.int64) - 1).view(np.float64)


@njit(cache=True, error_model="numpy")
def value_at(k: float, kind: int, x: float, step: float, low: float, high: float, other: float, when: float) -> float:
    """Value of a moving slot at k > 0, operation for operation as :func:`globece.rays.travel` computes it.

    ``x`` is where it starts: for a row outside a range, the end of the range where it enters.
    """
    if kind == SWITCH:
        return other if k >= when else x
    moved = k * step
    if kind == WHOLE:
        moved = math.copysign(np.ceil(abs(moved) - 0.5), step)
    value = x + moved
    if value < low:
        value = low
    if value > high:
        value = high
    return value


@njit(cache=True, error_model="numpy")
def flip_at(
    limit: float, kind: int, x: float, step: float, low: float, high: float, when: float, threshold: float
) -> float:
    """Smallest k at which a slot has passed a threshold; it must do so by ``limit``."""
    if kind == SWITCH:
        return when
    rising = step > 0.0
    if (x > threshold) == rising:
        return SMALLEST_DOUBLE  # passed on entering the range
    if kind == LINEAR:
        # x + moved rounds to above the threshold from half the gap to the next double on
        size = abs(threshold)
        gap = _above(size) - size if threshold >= 0.0 else size - _below(size)
        k = ((threshold - x) + 0.5 * gap) / step
    elif rising:
        k = _above((np.floor(threshold - x) + 0.5) / step)
    else:
        k = _above((np.ceil(x - threshold) - 0.5) / -step)
    if k > 0.0 and k <= limit:
        # That is right to a few units in the last place.
        for _ in range(8):
            if (value_at(k, kind, x, step, low, high, 0.0, 0.0) > threshold) != rising:
                k = _above(k)
                if k > limit:
                    break
            elif (value_at(_below(k), kind, x, step, low, high, 0.0, 0.0) > threshold) == rising:
                k = _below(k)
            else:
                return k
    first, last = np.int64(0), np.float64(limit).view(np.int64)
    while last - first > 1:
        middle = np.int64(first + ((last - first) >> 1))  # the sum may overflow
        if (value_at(middle.view(np.float64), kind, x, step, low, high, 0.0, 0.0) > threshold) == rising:
            last = middle
        else:
            first = middle
    return np.int64(last).view(np.float64)


@njit(cache=True, error_model="numpy")
def _piece(odd_cut: FloatArray, start: int, value: float, category: bool) -> int:
    """Piece of an odd predicate that a value lies in."""
    if category:
        return start + int(value)
    while value > odd_cut[start]:
        start += 1
    return start


# -- rows ----------------------------------------------------------------------------------------------------------


@njit(cache=True, error_model="numpy")
def _find_leaves(
    trees: Trees, space: SpaceArrays, Z: FloatArray, first: int, last: int
) -> tuple[FloatArray, Int32Array]:
    """Slot values of some rows, and the node of each tree's leaf."""
    width, n_blocks, n_trees = Z.shape[1], len(space.block_start), len(trees.roots)
    threshold, slots, children, missing = trees.threshold, trees.slot, trees.child, trees.missing
    odd_slot, odd_start, odd_cut, odd_side = trees.odd_slot, trees.odd_start, trees.odd_cut, trees.odd_side
    values = np.empty((last - first, width + n_blocks))
    for row in range(last - first):
        for c in range(width):
            values[row, c] = Z[first + row, c]
        for b in range(n_blocks):
            best = space.block_start[b]
            for c in range(best + 1, space.block_stop[b]):
                if values[row, c] > values[row, best]:
                    best = c
            values[row, width + b] = best - space.block_start[b]
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
                    side = value == value and odd_side[_piece(odd_cut, odd_start[odd], value, slot >= width)] != 0
                if value != value:
                    side = missing[node] != 0
                node = child + side
                child = children[node]
            leaves[row, tree] = node
    return values, leaves


@njit(cache=True, nogil=True, error_model="numpy")
def _locate_rows(trees: Trees, space: SpaceArrays, Z: FloatArray, first: int, last: int, found: Located) -> None:
    """Slot values and leaves of some rows."""
    for begin in range(first, last, CHUNK):
        end = min(last, begin + CHUNK)
        found.values[begin:end], found.leaves[begin:end] = _find_leaves(trees, space, Z, begin, end)


@njit(cache=True, error_model="numpy")
def _add_up(trees: Trees, rule: DecisionRule, leaves: Int32Array, sums: FloatArray, native: bool) -> None:
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
        _, leaves = _find_leaves(trees, space, Z, begin, min(last, begin + CHUNK))
        for row in range(len(leaves)):
            _add_up(trees, rule, leaves[row], sums, True)
            ahead = lead(rule, sums)
            # rounding may put a tie on either side: `decide` determines the sign
            out[begin + row] = max(ahead, 0.0) if decide(rule, sums) else min(ahead, -SMALLEST_DOUBLE)


# -- rays ----------------------------------------------------------------------------------------------------------


class Motion(NamedTuple):
    """How each slot moves along the current ray; entries of slots that do not move are undefined."""

    kind: Int32Array  # (slots,)
    step: FloatArray
    pace: FloatArray  # k per unit
    low: FloatArray
    high: FloatArray
    origin: FloatArray  # where it starts: its value, or the end of its range where it enters
    other: FloatArray  # value after a switch
    when: FloatArray  # k from which a switch has happened
    final: FloatArray  # value at the limit
    moving: Int32Array  # the slots that move


class Splits(NamedTuple):
    """Splits on a row's paths, as a linked list for each slot."""

    first: Int32Array  # (slots,) -1 where there is none
    following: Int32Array
    node: Int32Array
    tree: Int32Array
    cut: FloatArray


class Events(NamedTuple):
    """Splits that change further along the ray: on a heap those that change soon, in buckets the others."""

    k: FloatArray
    node: Int32Array
    tree: Int32Array
    later_node: Int32Array
    later_tree: Int32Array
    later_next: Int32Array
    bucket: Int32Array  # (buckets,) the first one in it


@njit(cache=True, error_model="numpy")
def _find_splits(trees: Trees, watched: ByteArray, bits: np.uint64, leaves: Int32Array, splits: Splits) -> None:
    """Splits on slots that some direction moves, on the paths to these leaves."""
    first, following, n = splits.first, splits.following, 0
    first[:] = -1
    for tree in range(len(leaves)):
        if trees.path[leaves[tree]] & bits == np.uint64(0):
            continue
        node = trees.parent[leaves[tree]]
        while node >= 0:
            slot = trees.slot[node]
            if slot < 0:
                slot = trees.odd_slot[~slot]
            if watched[slot]:
                splits.node[n], splits.tree[n], splits.cut[n] = node, tree, trees.threshold[node]
                following[n], first[slot] = first[slot], n
                n += 1
            node = trees.parent[node]


@njit(cache=True, error_model="numpy")
def _start_ray(space: SpaceArrays, routes: Routes, d: int, x: FloatArray, limit: float, on: Motion) -> int:
    """Fill in how each slot of a row moves along direction d; return how many do."""
    n, width = 0, len(space.low)
    for q in range(routes.mover_start[d], routes.mover_start[d + 1]):
        c = routes.mover_column[q]
        if x[c] != x[c]:  # missing stays missing
            continue
        kind = WHOLE if space.whole[c] else LINEAR
        step, low, high = routes.mover_step[q], space.low[c], space.high[c]
        if x[c] > high if step > 0.0 else x[c] < low:  # moving away from its range
            continue
        origin = max(x[c], low) if step > 0.0 else min(x[c], high)
        final = value_at(limit, kind, origin, step, low, high, 0.0, 0.0)
        if final != x[c]:
            on.kind[c], on.step[c], on.low[c], on.high[c], on.final[c] = kind, step, low, high, final
            on.origin[c] = origin
            on.pace[c] = 1.0 / abs(step) if abs(step) > 1e-300 else 0.0
            on.moving[n] = c
            n += 1
    for q in range(routes.switch_start[d], routes.switch_start[d + 1]):
        b, target = routes.switch_block[q], routes.switch_target[q]
        code = int(x[width + b])
        bound = routes.bounds[routes.bound_start[q] + code]
        if not bound < limit:
            continue
        for i in range(3):  # the old category, the new category, and the block's slot
            slot = width + b if i == 2 else space.block_start[b] + (code if i == 0 else target)
            after = float(target) if i == 2 else float(i)
            on.kind[slot], on.when[slot], on.other[slot], on.final[slot] = SWITCH, _above(bound), after, after
            on.origin[slot] = x[slot]
            on.moving[n] = slot
            n += 1
    return n


@njit(cache=True, error_model="numpy")
def _push(events: Events, n: int, k: float, node: int, tree: int) -> None:
    """Push an event onto a heap of n."""
    while n > 0:
        up = (n - 1) >> 1
        if events.k[up] <= k:
            break
        events.k[n], events.node[n], events.tree[n] = events.k[up], events.node[up], events.tree[up]
        n = up
    events.k[n], events.node[n], events.tree[n] = k, node, tree


@njit(cache=True, error_model="numpy")
def _pop(events: Events, n: int) -> None:
    """Pop the first event from a heap of n + 1."""
    k, index = events.k[n], 0
    while True:
        down = 2 * index + 1
        if down >= n:
            break
        if down + 1 < n and events.k[down + 1] < events.k[down]:
            down += 1
        if events.k[down] >= k:
            break
        events.k[index], events.node[index], events.tree[index] = events.k[down], events.node[down], events.tree[down]
        index = down
    events.k[index], events.node[index], events.tree[index] = k, events.node[n], events.tree[n]


@njit(cache=True, error_model="numpy")
def _next_cut(trees: Trees, odd: int, width: int, here: float, final: float) -> tuple[float, bool]:
    """The cut at which a slot first changes an odd predicate before its final value, and whether there is one."""
    slot, start = trees.odd_slot[odd], trees.odd_start[odd]
    is_block = slot >= width
    piece = _piece(trees.odd_cut, start, here, is_block)
    last = _piece(trees.odd_cut, start, final, is_block)
    side, onwards = trees.odd_side[piece], 1 if last > piece else -1
    if is_block:
        return 0.0, trees.odd_side[last] != side
    while piece != last:
        piece += onwards
        if trees.odd_side[piece] != side:
            return trees.odd_cut[piece - 1 if onwards > 0 else piece], True
    return 0.0, False


@njit(cache=True, nogil=True, error_model="numpy")
def _follow_rays(
    trees: Trees,
    rule: DecisionRule,
    space: SpaceArrays,
    routes: Routes,
    Z: FloatArray,
    located: Located,
    limit: FloatArray,
    start: FloatArray,
    first: int,
    last: int,
    out: FloatArray,
) -> None:
    """First favourable scalar, not below ``start``, of some rows along every direction.

    ``located`` holds what is known of all rows, or of none.
    """
    width, n_trees, n_slots = Z.shape[1], len(trees.roots), Z.shape[1] + len(space.block_start)
    threshold, slots, children, end = trees.threshold, trees.slot, trees.child, trees.end
    # A split waits at most once: no row comes back to a path that it left, except through odd predicates.
    most = len(threshold) // 2 + 1
    any_odd = len(trees.odd_slot) > 0
    waiting = np.zeros(len(threshold) if any_odd else 0, np.bool_)
    fresh_node, fresh_tree = np.empty(most, np.int32), np.empty(most, np.int32)
    splits = Splits(
        np.empty(n_slots, np.int32),
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(most),
    )
    events = Events(
        np.empty(most),
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(N_BUCKETS, np.int32),
    )
    on = Motion(
        np.zeros(n_slots, np.int32),
        np.empty(n_slots),
        np.empty(n_slots),
        np.empty(n_slots),
        np.empty(n_slots),
        np.empty(n_slots),
        np.empty(n_slots),
        np.empty(n_slots),
        np.empty(n_slots),
        np.empty(2 * n_slots, np.int32),
    )
    kind, step, low, high, other, when, final = on.kind, on.step, on.low, on.high, on.other, on.when, on.final
    origin = on.origin
    event_k, event_node, event_tree, bucket = events.k, events.node, events.tree, events.bucket
    now = np.empty(n_trees, np.int32)
    sums, at_start, running = np.empty(len(rule.start)), np.empty(len(rule.start)), np.empty(len(rule.start))
    bits = np.uint64(0)
    for slot in range(n_slots):
        if routes.watched[slot]:
            bits |= np.uint64(1) << np.uint64(slot & 63)

    known = len(located.leaves) > 0
    begin, values, leaves = 0, located.values, located.leaves
    if not known:
        begin = first - CHUNK
    for at in range(first, last):
        if not known and at >= begin + CHUNK:
            begin = at
            values, leaves = _find_leaves(trees, space, Z, begin, min(last, begin + CHUNK))
        row = at - begin
        x = values[row]
        total_at_start = rule.origin
        for tree in range(n_trees):
            total_at_start += threshold[leaves[row, tree]]
        if not rule.scalar:
            _add_up(trees, rule, leaves[row], at_start, False)
        _find_splits(trees, routes.watched, bits, leaves[row], splits)
        for d in range(len(limit)):
            furthest = min(limit[d, at], LARGEST_DOUBLE)
            earliest = max(start[d, at] if start.size > 1 else start[0, 0], SMALLEST_DOUBLE)
            out[d, at] = np.inf
            if not furthest >= earliest:
                continue
            n_moving = _start_ray(space, routes, d, x, furthest, on)

            # Splits on the row's paths that will change
            n_fresh, n_events, n_later = 0, 0, 0
            for q in range(n_moving):
                slot = on.moving[q]
                item = splits.first[slot]
                while item >= 0:
                    node, cut = splits.node[item], splits.cut[item]
                    if (x[slot] > cut) != (final[slot] > cut) or (any_odd and slots[node] < 0):
                        if any_odd:
                            waiting[node] = True
                        fresh_node[n_fresh], fresh_tree[n_fresh] = node, splits.tree[item]
                        n_fresh += 1
                    item = splits.following[item]

            now[:] = leaves[row]
            running[:] = at_start
            bucket[:] = -1
            total, n_changes, k = total_at_start, n_trees, 0.0
            per_bucket, open_bucket = N_BUCKETS / furthest if furthest > 1e-300 else 0.0, 0
            while True:
                # Favourable at this k?
                ahead = total - rule.boundary if rule.scalar else lead(rule, running)
                slack = rule.band + rule.drift * n_changes
                favourable = ahead > slack
                if not favourable and ahead >= -slack:
                    _add_up(trees, rule, now, sums, True)
                    favourable = decide(rule, sums)
                if favourable and k >= earliest:
                    out[d, at] = k
                    break

                # The next event: fresh splits go onto the heap or into buckets; buckets up to the heap's first open.
                while True:
                    for f in range(n_fresh):
                        node = fresh_node[f]
                        slot = slots[node]
                        if slot >= 0:
                            cut = threshold[node]
                            if kind[slot] == SWITCH:
                                soon = when[slot] * per_bucket
                            else:  # with rounding and half steps, the change comes no earlier than this
                                far = (cut - origin[slot]) if step[slot] > 0.0 else (origin[slot] - cut)
                                far -= ROUNDING * (abs(cut) + abs(origin[slot]))
                                soon = (far - 0.5 if kind[slot] == WHOLE else far) * on.pace[slot] * per_bucket
                            index = int(max(0.0, min(soon, N_BUCKETS - 1.0)))
                            if index > open_bucket:
                                events.later_node[n_later], events.later_tree[n_later] = node, fresh_tree[f]
                                events.later_next[n_later], bucket[index] = bucket[index], n_later
                                n_later += 1
                                continue
                        else:
                            odd = ~slot
                            slot = trees.odd_slot[odd]
                            here = x[slot]
                            if k > 0.0:
                                here = value_at(
                                    k, kind[slot], origin[slot], step[slot], low[slot], high[slot], other[slot],
                                    when[slot],
                                )  # fmt: skip
                            cut, changes = _next_cut(trees, odd, width, here, final[slot])
                            if not changes:
                                waiting[node] = False
                                continue
                        flip = flip_at(
                            furthest, kind[slot], origin[slot], step[slot], low[slot], high[slot], when[slot], cut
                        )
                        _push(events, n_events, flip, node, fresh_tree[f])
                        n_events += 1
                    n_fresh = 0
                    reach = N_BUCKETS - 1.0 if n_events == 0 else min(event_k[0] * per_bucket, N_BUCKETS - 1.0)
                    while open_bucket < int(reach) and n_fresh == 0:
                        open_bucket += 1
                        item = bucket[open_bucket]
                        while item >= 0:
                            fresh_node[n_fresh], fresh_tree[n_fresh] = events.later_node[item], events.later_tree[item]
                            n_fresh += 1
                            item = events.later_next[item]
                    if n_fresh == 0:
                        break
                if favourable and (n_events == 0 or event_k[0] > earliest):
                    out[d, at] = earliest
                    break
                if n_events == 0:
                    break

                # On to the next k: every path that changes there
                k = event_k[0]
                while n_events > 0 and event_k[0] == k:
                    node, tree = event_node[0], event_tree[0]
                    n_events -= 1
                    _pop(events, n_events)
                    if any_odd:
                        waiting[node] = False
                    before = now[tree]
                    child = children[node]
                    if before < child or before >= end[node]:
                        continue  # the path no longer passes this split
                    while child >= 0:
                        slot = slots[node]
                        is_odd = slot < 0
                        if is_odd:
                            slot = trees.odd_slot[~slot]
                        value, changes = x[slot], False
                        if kind[slot] != 0:
                            value = value_at(
                                k, kind[slot], origin[slot], step[slot], low[slot], high[slot], other[slot], when[slot]
                            )
                            if is_odd:
                                changes = value != final[slot]
                            else:
                                changes = (value > threshold[node]) != (final[slot] > threshold[node])
                        if changes and not (any_odd and waiting[node]):
                            if any_odd:
                                waiting[node] = True
                            fresh_node[n_fresh], fresh_tree[n_fresh] = node, tree
                            n_fresh += 1
                        side = value > threshold[node]
                        if value != value:
                            side = trees.missing[node] != 0
                        elif is_odd:
                            piece = _piece(trees.odd_cut, trees.odd_start[~slots[node]], value, slot >= width)
                            side = trees.odd_side[piece] != 0
                        node = child + side
                        child = children[node]
                    if node == before:
                        continue
                    now[tree] = node
                    n_changes += 1
                    if rule.scalar:
                        total += threshold[node] - threshold[before]
                    elif trees.output[tree] >= 0:
                        gained = trees.outputs[slots[node], 0] - trees.outputs[slots[before], 0]
                        running[trees.output[tree]] += gained
                    else:
                        for j in range(len(running)):
                            running[j] += trees.outputs[slots[node], j] - trees.outputs[slots[before], j]

            for q in range(n_moving):
                kind[on.moving[q]] = 0
            if any_odd:
                for index in range(n_events):
                    waiting[event_node[index]] = False
                for index in range(n_fresh):
                    waiting[fresh_node[index]] = False
                for item in range(n_later):
                    waiting[events.later_node[item]] = False


# -- entry points --------------------------------------------------------------------------------------------------


def leads(trees: Trees, rule: DecisionRule, space: SpaceArrays, Z: FloatArray) -> FloatArray:
    """How far each row is on the favourable side; negative where it is not favourable."""
    out = np.empty(len(Z))
    over_rows(len(Z), lambda first, last: _lead_rows(trees, rule, space, Z, first, last, out))
    return out


def nowhere(n: int, n_trees: int, n_slots: int) -> Located:
    """Room for the values and leaves of ``n`` rows."""
    return Located(np.empty((n, n_slots)), np.empty((n, n_trees), np.int32))


def locate(trees: Trees, space: SpaceArrays, Z: FloatArray, found: Located) -> None:
    """Fill in the slot values and leaves of rows."""
    over_rows(len(Z), lambda first, last: _locate_rows(trees, space, Z, first, last, found))


def follow(
    trees: Trees,
    rule: DecisionRule,
    space: SpaceArrays,
    routes: Routes,
    Z: FloatArray,
    limit: FloatArray,
    start: FloatArray,
    located: Located | None = None,
) -> FloatArray:
    """Smallest favourable scalar of each row along each direction; ``inf`` where there is none up to the limit.

    ``start`` is the smallest that counts: one for all rays in a ``(1, 1)`` array, or one each. ``located`` is what
    :func:`locate` found for these rows, if it was asked.
    """
    out, known = np.empty(limit.shape), located or nowhere(0, len(trees.roots), Z.shape[1] + len(space.block_start))

    def work(first: int, last: int) -> None:
        _follow_rays(trees, rule, space, routes, Z, known, limit, start, first, last, out)

    over_rows(len(Z), work, few=max(CHUNK, FEW_RAYS // max(1, len(limit))))
    return out
