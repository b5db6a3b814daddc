"""Rays through trees.

Along a ray every encoded column moves one way, so the leaf that a tree gives changes only where a split on the path to
it changes its answer. The kernel keeps each tree's leaf, and goes from one scalar at which a split on some path changes
to the next, until the first with a favourable outcome. Nothing is sampled, and the order of events is exact.

The splits on a row's own paths are listed by slot and threshold, so each slot that moves passes them in the order of
its list: a *stream*, of which only the next split waits. The splits on the paths that trees change to wait beside them.
What waits is on a heap, by a scalar that is quickly known and not above the exact one, which is computed when a split
gets to the top.

The running score is a float64 sum. Where it is too near the boundary to tell on which side the estimator's sum falls,
the leaves are added again in the estimator's order and precision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from globece.models.trees.decision_rule import DecisionRule, decide, lead
from globece.models.trees.layout import Int32Array, Located, Ranks, Routes, SpaceArrays, Trees
from globece.models.trees.rows import CHUNK, add_scores, add_up, find_leaves, list_splits
from globece.models.trees.slots import (
    LARGEST_DOUBLE,
    LINEAR,
    SMALLEST_DOUBLE,
    SWITCH,
    WHOLE,
    above,
    flip_at,
    next_cut,
    piece,
    soonest,
    value_at,
)
from globece.parallel import over_rows
from globece.space import FloatArray

Int64Array = NDArray[np.int64]
FEW_RAYS = 1024  # not worth another thread


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
            on.kind[slot], on.when[slot], on.other[slot], on.final[slot] = SWITCH, above(bound), after, after
            on.origin[slot], on.step[slot] = x[slot], 0.0
            on.moving[n] = slot
            n += 1
    return n


# What waits is a heap of two arrays, as Numba passes tuples of arrays dearly: scalars, and in one number each the rank
# of a split, whether the scalar is exact, and the stream it came from plus one, or 0.
IS_EXACT, OF_RANK, OF_STREAM = 1, 1, 34  # the lowest bit, and where the others begin
RANK_BITS = (1 << (OF_STREAM - OF_RANK)) - 1


@njit(cache=True, error_model="numpy", inline="always")
def _push(ks: FloatArray, events: Int64Array, n: int, k: float, event: Any) -> None:
    """Push an event onto a heap of n."""
    index = n
    while index > 0:
        up = (index - 1) >> 1
        if ks[up] <= k:
            break
        ks[index], events[index] = ks[up], events[up]
        index = up
    ks[index], events[index] = k, event


@njit(cache=True, error_model="numpy", inline="always")
def _sink(ks: FloatArray, events: Int64Array, n: int, k: float, event: Any) -> None:
    """Put an event into a heap of n in place of the first one."""
    index, down = 0, 1
    while down < n:
        if down + 1 < n and ks[down + 1] < ks[down]:
            down += 1
        if ks[down] >= k:
            break
        ks[index], events[index] = ks[down], events[down]
        index, down = down, 2 * down + 1
    ks[index], events[index] = k, event


@njit(cache=True, error_model="numpy", inline="always")
def _position(cuts: FloatArray, splits: Int32Array, begin: int, end: int, here: float) -> int:
    """Which of some splits, by ascending cuts, is the first that a value is not above."""
    while begin < end:
        middle = (begin + end) >> 1
        if here > cuts[splits[middle]]:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(cache=True, nogil=True, error_model="numpy")
def _follow_rays(
    trees: Trees,
    ranks: Ranks,
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
    node_of, tree_of, cuts, rank_of = ranks.node, ranks.tree, ranks.cut, ranks.rank
    # A split waits at most once: no row comes back to a path that it left, except through odd predicates.
    most = len(threshold) // 2 + 1
    any_odd = len(trees.odd_slot) > 0
    waiting = np.zeros(len(threshold) if any_odd else 0, np.bool_)
    ks, events = np.empty(most), np.empty(most, np.int64)
    stream_at, stream_stop = np.empty(2 * n_slots, np.int32), np.empty(2 * n_slots, np.int32)
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
    origin, pace, moving = on.origin, on.pace, on.moving
    now, moved = np.empty(n_trees, np.int32), np.empty(n_trees, np.int32)  # leaves; trees that gave another at first
    sums, at_start, running = np.empty(len(rule.start)), np.empty(len(rule.start)), np.empty(len(rule.start))
    bits = np.uint64(0)
    for slot in range(n_slots):
        if routes.watched[slot]:
            bits |= np.uint64(1) << np.uint64(slot & 63)

    known = len(located.leaves) > 0
    begin, values, leaves = 0, located.values, located.leaves
    marks = np.zeros(0 if known else len(ranks.node) // 64 + 1, np.uint64)
    splits, first_split = np.empty(0 if known else ranks.longest, np.int32), np.empty(n_slots + 1, np.int32)
    if not known:
        begin = first - CHUNK
    for at in range(first, last):
        if not known and at >= begin + CHUNK:
            begin = at
            values, leaves = find_leaves(trees, space, Z, begin, min(last, begin + CHUNK))
        row = at - begin
        x = values[row]
        for tree in range(n_trees):
            now[tree] = leaves[row, tree]
        if known:
            total_at_start, splits, first_split = located.total[row], located.splits[row], located.first[row]
        else:
            total_at_start = add_scores(trees, rule.origin, leaves[row])
            list_splits(trees, ranks, routes.watched, bits, leaves[row], marks, splits, first_split)
        if not rule.scalar:
            add_up(trees, rule, leaves[row], at_start, False)
        for d in range(len(limit)):
            furthest = min(limit[d, at], LARGEST_DOUBLE)
            earliest = max(start[d, at] if start.size > 1 else start[0, 0], SMALLEST_DOUBLE)
            out[d, at] = np.inf
            if not furthest >= earliest:
                continue
            n_moving = _start_ray(space, routes, d, x, furthest, on)
            for j in range(len(running)):
                running[j] = at_start[j]
            total, n_changes, n_events, k, n_moved = total_at_start, n_trees, 0, 0.0, 0

            # Splits on the row's paths that will change: all of them with odd predicates, otherwise streams of them
            for q in range(n_moving):
                slot = moving[q]
                here, there, one, end_of = x[slot], final[slot], first_split[slot], first_split[slot + 1]
                if not any_odd:
                    item = _position(cuts, splits, one, end_of, here)
                    stream_at[q], stream_stop[q] = (item, end_of) if there > here else (item - 1, one - 1)
                    continue
                for item in range(one, end_of):
                    node, cut = node_of[splits[item]], cuts[splits[item]]
                    changes = (here > cut) != (there > cut)
                    if slots[node] < 0:
                        cut, changes = next_cut(trees, ~slots[node], width, here, there)
                    if changes:
                        waiting[node] = True
                        flip = flip_at(
                            furthest, kind[slot], origin[slot], step[slot], low[slot], high[slot], when[slot], cut
                        )
                        _push(ks, events, n_events, flip, (np.int64(splits[item]) << OF_RANK) | IS_EXACT)
                        n_events += 1

            is_new, favourable, stream = True, False, -1 if any_odd else 0  # a stream whose next split must wait
            while True:
                if 0 <= stream < n_moving:
                    slot, item = moving[stream], stream_at[stream]
                    rises = final[slot] > x[slot]
                    while item != stream_stop[stream]:
                        rank = splits[item]
                        cut = cuts[rank]
                        if (final[slot] > cut) != rises:
                            item = stream_stop[stream]
                            break
                        item += 1 if rises else -1
                        leaf, node = now[tree_of[rank]], node_of[rank]
                        if children[node] <= leaf < end[node]:
                            soon = soonest(kind[slot], origin[slot], step[slot], pace[slot], when[slot], cut)
                            event = (np.int64(stream + 1) << OF_STREAM) | (np.int64(rank) << OF_RANK)
                            _push(ks, events, n_events, soon, event | (IS_EXACT if kind[slot] == SWITCH else 0))
                            n_events += 1
                            break
                    stream_at[stream] = item
                    if k == 0.0 and stream + 1 < n_moving and is_new:
                        stream += 1  # at first, all of them
                        continue
                stream = -1
                if n_events == 0 or ks[0] > k:  # all that changes at this k has changed
                    if is_new:
                        is_new = False
                        ahead = total - rule.boundary if rule.scalar else lead(rule, running)
                        slack = rule.band + rule.drift * n_changes
                        favourable = ahead > slack
                        if not favourable and ahead >= -slack:
                            add_up(trees, rule, now, sums, True)
                            favourable = decide(rule, sums)
                        if favourable and k >= earliest:
                            out[d, at] = k
                            break
                    if n_events == 0:
                        if favourable:
                            out[d, at] = earliest
                        break

                # The first event: dropped if no path passes its split, put back if its scalar is not exact yet
                event = events[0]
                rank = (event >> OF_RANK) & RANK_BITS
                node, tree = node_of[rank], tree_of[rank]
                before = now[tree]
                passes = children[node] <= before < end[node]
                if (passes or any_odd) and not event & IS_EXACT:
                    slot = slots[node]
                    flip = flip_at(
                        furthest, kind[slot], origin[slot], step[slot], low[slot], high[slot], when[slot],
                        threshold[node],
                    )  # fmt: skip
                    _sink(ks, events, n_events, flip, event | IS_EXACT)
                    continue
                if passes or any_odd:
                    if favourable and ks[0] > max(k, earliest):
                        out[d, at] = earliest
                        break
                    k = ks[0]
                n_events -= 1
                _sink(ks, events, n_events, ks[n_events], events[n_events])
                stream = (event >> OF_STREAM) - 1
                if any_odd:
                    waiting[node] = False
                if not passes:
                    continue

                # Down the tree from there
                child = children[node]
                while child >= 0:
                    slot, cut = slots[node], threshold[node]
                    is_odd = slot < 0
                    if is_odd:
                        slot = trees.odd_slot[~slot]
                    value, changes = x[slot], False
                    if kind[slot] != 0:
                        value = value_at(
                            k, kind[slot], origin[slot], step[slot], low[slot], high[slot], other[slot], when[slot]
                        )
                        if not is_odd:
                            changes = (value > cut) != (final[slot] > cut)
                        elif value != final[slot]:
                            cut, changes = next_cut(trees, ~slots[node], width, value, final[slot])
                    if changes and any_odd:
                        if not waiting[node]:
                            waiting[node] = True
                            flip = flip_at(
                                furthest, kind[slot], origin[slot], step[slot], low[slot], high[slot], when[slot], cut
                            )
                            _push(ks, events, n_events, flip, (np.int64(rank_of[node]) << OF_RANK) | IS_EXACT)
                            n_events += 1
                    elif changes:
                        soon = soonest(kind[slot], origin[slot], step[slot], pace[slot], when[slot], cut)
                        event = (np.int64(rank_of[node]) << OF_RANK) | (IS_EXACT if kind[slot] == SWITCH else 0)
                        _push(ks, events, n_events, soon, event)
                        n_events += 1
                    side = value > threshold[node]
                    if value != value:
                        side = trees.missing[node] != 0
                    elif is_odd:
                        found = piece(trees.odd_cut, trees.odd_start[~slots[node]], value, slot >= width)
                        side = trees.odd_side[found] != 0
                    node = child + side
                    child = children[node]
                if node != before:
                    if before == leaves[row, tree] and n_moved < n_trees:
                        moved[n_moved] = tree
                        n_moved += 1
                    now[tree] = node
                    n_changes += 1
                    is_new = True
                    if rule.scalar:
                        total += threshold[node] - threshold[before]
                    elif trees.output[tree] >= 0:
                        gained = trees.outputs[slots[node], 0] - trees.outputs[slots[before], 0]
                        running[trees.output[tree]] += gained
                    else:
                        for j in range(len(running)):
                            running[j] += trees.outputs[slots[node], j] - trees.outputs[slots[before], j]

            for index in range(n_moved):
                now[moved[index]] = leaves[row, moved[index]]
            if n_moved == n_trees:  # with odd predicates a tree may come back to its first leaf, and leave it again
                now[:] = leaves[row]
            for q in range(n_moving):
                kind[moving[q]] = 0
            if any_odd:
                for index in range(n_events):
                    waiting[node_of[(events[index] >> OF_RANK) & RANK_BITS]] = False


def follow(
    trees: Trees,
    ranks: Ranks,
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
    :func:`globece.models.trees.rows.locate` found for these rows, if it was asked.
    """
    out = np.empty(limit.shape)
    known = located or Located.room(0, len(trees.roots), Z.shape[1] + len(space.block_start), ranks.longest)

    def work(first: int, last: int) -> None:
        _follow_rays(trees, ranks, rule, space, routes, Z, known, limit, start, first, last, out)

    over_rows(len(Z), work, few=max(CHUNK, FEW_RAYS // max(1, len(limit))))
    return out
