"""Where a ReLU network first turns favourable along a ray: the kernel.

Along a ray the network's first layer is piecewise linear, with a bend where a range ends and a jump where a block
switches or a whole step is taken. The kernel evaluates every unit at both ends of a stretch, hence knows its chord, and
bounds how far the unit can lie above or below it. A stretch on which some output stays negative by these bounds is
discarded; one on which no unit bends is straight, except for steps, and its root is the answer; any other is narrowed
to where the bounds allow a flip, or halved. So most linear pieces of the network are never visited, and none is missed.

:mod:`globece.models.networks.plain` is the plain twin: it cuts the ray at every bend of every unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from globece.models.networks.layers import Net
from globece.models.networks.moves import (
    PLAIN,
    UNCOUNTABLE,
    at_rest_first,
    bound_first,
    first_layer,
    jumps_at,
    just_past,
    lay_out,
    list_events,
    make_plan,
    middle_of,
    most_events,
    only_stairs,
    steps_taken,
)
from globece.models.networks.scratch import (
    ABOVE,
    AT,
    BELOW,
    BENDS,
    COUNT,
    REST,
    SLOPE,
    STAIR_MOST,
    STAIR_STEP,
    STAIRS,
    SWITCHES,
    TAKEN,
)
from globece.models.networks.units import bound_spread, find_gains, forward, room_left
from globece.parallel import over_rows
from globece.space import BoolArray, FeatureSpace, FloatArray

FEW = 2048  # rays that are not worth another thread
# A stretch this short, relative to where it lies, is not cut further; nor one this short relative to the limit.
SHORTEST, NOTHING = 1e-11, 1e-18
# If the far end is favourable, bounds cannot discard the stretch. They are only computed if they may narrow it.
HOPEFUL = 2.0
FAR_ENOUGH = 1e-5  # an answer is increased by this share at most, to exceed rounding errors
KEPT = 24  # far ends whose units are kept while the stretch before them is examined
MOST_STEPS = 10_000  # followed one by one where nothing bends
MOST_LOOKS = 20_000  # stretches along one ray before the answer is NaN
HALVINGS = 80  # from the limit down to NOTHING of it, with some to spare
# rows of `later`: stretches yet to be examined, and whether the units at their far end are kept
_FROM, _TO, _IS_KEPT = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Search:
    """Where to look along each ray, ``(directions, rows)``, and how positive the outputs must be there.

    Attributes
    ----------
    limit
        Largest scalar.
    start
        Scalar up to which a ray is known to be unfavourable, or is skipped.
    need
        What all outputs must exceed: 0 for the network's decision.
    noise
        The answer is increased until the outputs exceed this, ``(rows,)``, if that is near; 0 by default.
    """

    limit: FloatArray
    start: FloatArray
    need: FloatArray
    noise: FloatArray | None = None


def first_flips(
    net: Net, space: FeatureSpace, Z: FloatArray, fill: FloatArray, directions: FloatArray, search: Search
) -> tuple[FloatArray, BoolArray]:
    """First scalar at which all outputs exceed the need, and whether it follows a jump: ``(m, n)`` each.

    The scalar is ``inf`` where there is none, and NaN where the kernel cannot decide.
    """
    plan = make_plan(space, directions, net.entry)
    codes = space.block_codes(Z)
    scalar = np.full((len(directions), len(Z)), np.inf)
    jumped = np.zeros(scalar.shape, dtype=bool)
    Z, fill = np.ascontiguousarray(Z), np.ascontiguousarray(fill)
    noise = np.zeros(len(Z)) if search.noise is None else search.noise
    wanted = [np.ascontiguousarray(w) for w in (search.limit, search.start, search.need, noise)]

    kernel: Any = _rows

    def work(a: int, b: int) -> None:
        kernel(a, b, *net, *plan, Z, fill, codes, *wanted, scalar, jumped)

    if scalar.size:
        over_rows(len(Z), work, few=max(1, FEW // len(directions)))
    return scalar, jumped


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _clear_of_noise(near, far, outputs, a, b, first, noise):  # type: ignore[no-untyped-def]
    """Where every output exceeds the noise on a straight stretch that turns favourable, if that is near.

    The line is followed past the end of the stretch, so that the answer does not depend on how the ray was cut.
    """
    at, move = a + first * (b - a), 0.0
    for m in range(outputs, len(near)):
        rise = far[m] - near[m]
        short = noise - (near[m] + first * rise)
        if short > 0.0:
            move = max(move, short / rise * (b - a)) if rise > 0.0 else np.inf
    return at + min(move, FAR_ENOUGH * at)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _climb(moves, ids, gains, near, values, outputs, a, low, high, noise):  # type: ignore[no-untyped-def]
    """Where nothing bends: first favourable k in [low, high] past a, and whether it follows a step.

    The k is inf where there is none, and -1 where there are too many steps.
    """
    stairs, width = ids[COUNT, STAIRS], len(values)
    steps = 0.0
    for i in range(stairs):
        size, most = abs(moves[STAIR_STEP, i]), moves[STAIR_MOST, i]
        steps += steps_taken(high, False, size, most) - steps_taken(low, True, size, most)
    if steps > MOST_STEPS:
        return -1.0, False
    for m in range(width):
        values[m] = near[outputs + m] + gains[m, stairs] * (low - a)
    for i in range(stairs):
        size, most = abs(moves[STAIR_STEP, i]), moves[STAIR_MOST, i]
        moves[TAKEN, i] = steps_taken(low, True, size, most)
        more = moves[TAKEN, i] - steps_taken(a, True, size, most)
        for m in range(width):
            values[m] += more * gains[m, i]
    k, stepped = low, False
    while True:
        after, enters, leaves, shift = np.inf, k, np.inf, 0.0
        for i in range(stairs):
            if moves[TAKEN, i] < moves[STAIR_MOST, i]:
                after = min(after, (moves[TAKEN, i] + 0.5) / abs(moves[STAIR_STEP, i]))
        for m in range(width):
            value, rise = values[m], gains[m, stairs]
            if value <= 0.0:
                enters = max(enters, k - value / rise) if rise > 0.0 else np.inf
            elif rise < 0.0:
                leaves = min(leaves, k - value / rise)
        if enters == k:
            return (just_past(moves, ids, k) if stepped or jumps_at(moves, ids, k) else k), stepped
        if enters <= min(after, high) and enters < leaves:
            for m in range(width):
                rise = gains[m, stairs]
                short = noise - (values[m] + rise * (enters - k))
                if short > 0.0:
                    shift = max(shift, short / rise) if rise > 0.0 else np.inf
            return enters + min(shift, FAR_ENOUGH * enters), False
        if not after < high:
            return np.inf, False
        for m in range(width):
            values[m] += gains[m, stairs] * (after - k)
        k, stepped = after, True
        for i in range(stairs):
            if (moves[TAKEN, i] + 0.5) / abs(moves[STAIR_STEP, i]) <= k and moves[TAKEN, i] < moves[STAIR_MOST, i]:
                more = min(1.0, moves[STAIR_MOST, i] - moves[TAKEN, i])
                moves[TAKEN, i] += more
                for m in range(width):
                    values[m] += more * gains[m, i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _one_ray(  # type: ignore[no-untyped-def]
    entry, weights, coarse, layout, exit_, bias, leak, leak32, closed, first, moves, ids, bounds, gaps, later, kept,
    index, value, rates, gains, near, near32, far, far32, limit, start, need, noise,
):  # fmt: skip
    """First k in (start, limit] at which all outputs exceed the need, and whether it follows a jump.

    ``near`` holds the units just past ``start``, which is unfavourable. NaN where there are too many stretches.
    """
    outputs, wide = layout[AT, layout.shape[1] - 1], first.shape[1]
    glides = ids[COUNT, BENDS] > 0
    if not glides:
        for o in range(wide):
            if first[SLOPE, o] != 0.0:
                glides = True
                break
    shortest = max(NOTHING * limit, 1e-300)
    a, b, pending, has_far, smallest, hope = start, limit, 0, False, 0.0, 2.0 * HOPEFUL / (limit - start)
    for _ in range(MOST_LOOKS):
        n, climbing = 0, 0
        if ids[COUNT, BENDS] + ids[COUNT, STAIRS] + ids[COUNT, SWITCHES] > 0:
            n, climbing = list_events(moves, ids, a, b)
        done = n == 0 and climbing == 0 and not glides  # nothing moves within
        if not done and not has_far:
            first_layer(entry, first, moves, ids, b, False, far)
            smallest = forward(weights, layout, exit_, bias, leak, closed, far, far32, index, value, need)
            has_far = True
        length = b - a
        if not done and length <= max(SHORTEST * b, shortest):
            if smallest > 0.0:
                return b, False
            done = True
        if not done:
            new_a, new_b, cut = a, b, False
            if smallest > 0.0 and hope * length > HOPEFUL:
                cut, pending, hope = True, 0, min(hope, 64.0 / length)
            else:
                watch = n + climbing > 0 and only_stairs(ids, n)
                bound_first(entry, first, moves, ids, bounds, a, b, near, far, n, climbing)
                straight, unbent = bound_spread(
                    coarse, layout, exit_, bias, leak32, bounds, gaps, index, near32, far32, watch
                )
                opens, closes = room_left(near, far, outputs, gaps, ABOVE, 1.0)
                if opens >= closes:
                    done = True
                elif straight:
                    return min(_clear_of_noise(near, far, outputs, a, b, opens, noise), limit), False
                elif unbent:
                    find_gains(entry, weights, layout, exit_, leak, first, moves, ids, a, near, far, rates, gains)
                    low, high = a + opens * length, a + closes * length if closes < 1.0 else b
                    k, jumped = _climb(moves, ids, gains, near, value[: len(closed)], outputs, a, low, high, noise)
                    if 0.0 <= k < np.inf:
                        return min(k, limit), jumped
                    if k == np.inf and smallest > 0.0:  # rounding, right at the end
                        return b, False
                    done = k == np.inf
                if not done:
                    new_a = a + opens * length
                    new_b = a + closes * length if closes < 1.0 else b
                    certain, until = room_left(near, far, outputs, gaps, BELOW, -1.0)
                    if certain < until or smallest > 0.0:
                        pending = 0  # the flip lies within: later stretches do not matter
                    if certain < min(until, 1.0):
                        new_b = min(new_b, a + certain * length * (1.0 + 1e-12))
                    new_b = max(new_b, new_a + 1e-12 * length)
                    cut = new_b - new_a > 0.5 * length
                    hope = gaps[ABOVE, 0] / max(abs(near[outputs]), abs(far[outputs]), 1e-300) / length
            if cut:
                middle = middle_of(moves, ids, new_a, new_b, n, climbing)
                if pending == later.shape[1]:
                    return np.nan, False
                later[_FROM, pending], later[_TO, pending] = middle, new_b
                later[_IS_KEPT, pending] = 0.0
                if new_b == b and pending < KEPT:
                    later[_IS_KEPT, pending] = 1.0
                    kept[pending, :] = far
                pending += 1
                new_b = middle
            if not done:
                if new_a != a:
                    a = new_a
                    first_layer(entry, first, moves, ids, a, True, near)
                    if forward(weights, layout, exit_, bias, leak, closed, near, near32, index, value, need) > 0.0:
                        return a, False
                if new_b != b:
                    b, has_far = new_b, False
        if done:
            if pending == 0:
                return np.inf, False
            pending -= 1
            met = has_far and b == later[_FROM, pending]
            a, b = later[_FROM, pending], later[_TO, pending]
            if met and not jumps_at(moves, ids, a):
                near, far, near32, far32 = far, near, far32, near32
            else:
                first_layer(entry, first, moves, ids, a, True, near)
                if forward(weights, layout, exit_, bias, leak, closed, near, near32, index, value, need) > 0.0:
                    return just_past(moves, ids, a), True
            has_far = later[_IS_KEPT, pending] > 0.0
            if has_far:
                far[:] = kept[pending]
                smallest = np.inf
                for m in range(outputs, len(far)):
                    smallest = min(smallest, far[m])
                for j in range(outputs):
                    far32[j] = np.float32(min(max(far[j], -1e30), 1e30))
    return np.nan, False


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _rows(  # type: ignore[no-untyped-def]
    begin, end, entry, weights, coarse, layout, exit_, bias, leak, leak32, closed, movers, columns, steps, low, high,
    whole, slopes, switching, blocks, starts, targets, lower, Z, fill, codes, limit, start, need, noise, scalar, jumped,
):  # fmt: skip
    """Every direction from each of these rows."""
    layers, outputs = layout.shape[1] - 1, len(closed)
    wide, units, widest = layout[AT, 1], layout[AT, layers], 0
    for layer in range(layers):
        widest = max(widest, layout[AT, layer + 1] - layout[AT, layer])
    events = most_events(movers, switching)
    first, moves, ids = np.zeros((6, wide)), np.zeros((7, events)), np.zeros((7, events), np.int64)
    bounds, gaps = np.zeros((6, widest + 1), np.float32), np.zeros((2, outputs))
    later, kept = np.zeros((3, HALVINGS + events)), np.zeros((KEPT, units + outputs))
    index, value = np.zeros(widest + 1, np.int64), np.zeros(max(widest, outputs) + 1)
    rates, gains = np.zeros((2, widest)), np.zeros((outputs, events + 1))
    origin, near, far = np.zeros(units + outputs), np.zeros(units + outputs), np.zeros(units + outputs)
    origin32, near32, far32 = np.zeros(units, np.float32), np.zeros(units, np.float32), np.zeros(units, np.float32)
    for r in range(begin, end):
        row, rest = Z[r], first[REST]
        at_rest_first(entry, row, fill, bias, rest)
        origin[:wide] = rest
        at_rest = forward(weights, layout, exit_, bias, leak, closed, origin, origin32, index, value, 0.0)
        changed = False
        for i in range(len(slopes)):
            if not start[i, r] < limit[i, r]:
                continue
            m, s = slice(movers[i], movers[i + 1]), slice(switching[i], switching[i + 1])
            if changed:  # the last direction moved what is at rest
                at_rest_first(entry, row, fill, bias, rest)
            kind = lay_out(
                entry, row, codes[r], limit[i, r], columns[m], steps[m], low[m], high[m], whole[m], slopes[i],
                blocks[s], starts[s], targets[s], lower[s], first, moves, ids
            )  # fmt: skip
            changed = kind != PLAIN
            if kind == UNCOUNTABLE:
                scalar[i, r] = np.nan
                continue
            if start[i, r] == 0.0 and need[i, r] == 0.0 and kind == PLAIN:
                if at_rest > 0.0:  # favourable as it is
                    scalar[i, r] = np.nextafter(0.0, np.inf)
                    continue
                near[:], near32[:] = origin, origin32
            else:
                first_layer(entry, first, moves, ids, start[i, r], True, near)
                here = forward(weights, layout, exit_, bias, leak, closed, near, near32, index, value, need[i, r])
                if here > 0.0:
                    scalar[i, r] = just_past(moves, ids, start[i, r])
                    continue
            scalar[i, r], jumped[i, r] = _one_ray(
                entry, weights, coarse, layout, exit_, bias, leak, leak32, closed, first, moves, ids, bounds, gaps,
                later, kept, index, value, rates, gains, near, near32, far, far32, limit[i, r], start[i, r],
                need[i, r], noise[r],
            )  # fmt: skip
