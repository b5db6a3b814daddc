"""A network's first layer along a ray: straight lines with bends, jumps and steps."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from globece.bundle import bundle
from globece.models.networks.scratch import (
    BEND,
    BEND_AT,
    BEND_COLUMN,
    BEND_STEP,
    BENDS,
    COUNT,
    DOWN,
    DRIFT,
    EVENT_AT,
    EVENT_KIND,
    EVENT_OF,
    LARGEST,
    LEAST,
    MOST,
    OFF,
    REST,
    SLOPE,
    STAIR,
    STAIR_COLUMN,
    STAIR_END,
    STAIR_MOST,
    STAIR_STEP,
    STAIRS,
    SWITCH,
    SWITCH_AT,
    SWITCH_FROM,
    SWITCH_TO,
    SWITCHES,
    UP,
    WIDER,
    ZERO,
)
from globece.models.passing import above, after_steps
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray

MOST_COUNTED = 2.0**45  # whole steps along one ray
PLAIN, ENTERS, UNCOUNTABLE = 0, 1, 2  # kinds of ray, see `lay_out`


class Plan(NamedTuple):
    """What each direction moves, laid out for the kernels."""

    first: IntArray  # (m + 1,) each direction's first mover
    column: IntArray
    step: FloatArray
    low: FloatArray
    high: FloatArray
    whole: BoolArray
    slope: FloatArray  # (m, units of the first layer) while all movers move freely
    first_block: IntArray  # (m + 1,) each direction's first switching block
    block: IntArray  # which of the codes' columns
    start: IntArray  # its first encoded column
    target: IntArray
    bounds: FloatArray  # (blocks, most categories)


def make_plan(space: FeatureSpace, directions: FloatArray, entry: FloatArray) -> Plan:
    """What each direction moves, laid out for the kernels."""
    moves = bundle(space, directions)
    owner = np.repeat(np.arange(len(directions)), np.diff(moves.first_mover))
    slope = np.zeros((len(directions), entry.shape[1]))
    np.add.at(slope, owner, moves.step[:, None] * entry[moves.column])
    return Plan(
        moves.first_mover,
        moves.column,
        moves.step,
        moves.low,
        moves.high,
        moves.whole,
        slope,
        moves.first_switch,
        moves.switch,
        moves.start,
        moves.target,
        moves.bound,
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def most_events(movers, switching):  # type: ignore[no-untyped-def]
    """Largest number of events along one direction: the size of the scratch arrays."""
    most = 3
    for i in range(len(movers) - 1):
        most = max(most, 2 * (movers[i + 1] - movers[i]) + switching[i + 1] - switching[i])
    return most


@numba.njit(cache=True, nogil=True, error_model="numpy")
def at_rest_first(entry, row, fill, bias, rest):  # type: ignore[no-untyped-def]
    """The first layer before anything moves."""
    wide = len(rest)
    rest[:] = bias[:wide]
    for j in range(len(row)):
        x = fill[j] if np.isnan(row[j]) else row[j]
        if x != 0.0:
            weight = entry[j]
            for o in range(wide):
                rest[o] += x * weight[o]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def steps_taken(k, past, size, most):  # type: ignore[no-untyped-def]
    """Whole steps taken at k, or just past it: the n-th comes just past (n - 0.5) / size."""
    n = np.floor(k * size + 0.5)
    for _ in range(2):  # rounding is off by at most one where steps can be distinguished, see MOST_COUNTED
        if (n + 0.5) / size < k or (past and (n + 0.5) / size <= k):
            n += 1.0
    for _ in range(2):
        if n > 0.0 and ((n - 0.5) / size > k or (not past and (n - 0.5) / size >= k)):
            n -= 1.0
    return min(n, most)


@numba.njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def first_layer(entry, first, moves, ids, k, past, units):  # type: ignore[no-untyped-def]
    """The first layer at k, or just past it."""
    wide, rest, slope = first.shape[1], first[REST], first[SLOPE]
    layer = units[:wide]
    for o in range(wide):
        layer[o] = rest[o] + k * slope[o]
    for i in range(ids[COUNT, BENDS]):
        moved, row = moves[BEND_STEP, i] * min(k, moves[BEND_AT, i]), entry[ids[BEND_COLUMN, i]]
        for o in range(wide):
            layer[o] += moved * row[o]
    for i in range(ids[COUNT, STAIRS]):
        step = moves[STAIR_STEP, i]
        moved, row = steps_taken(k, past, abs(step), moves[STAIR_MOST, i]), entry[ids[STAIR_COLUMN, i]]
        if moved > 0.0:
            moved = moved if step > 0.0 else -moved
            for o in range(wide):
                layer[o] += moved * row[o]
    for i in range(ids[COUNT, SWITCHES]):
        if k > moves[SWITCH_AT, i] or (past and k >= moves[SWITCH_AT, i]):
            to, from_ = entry[ids[SWITCH_TO, i]], entry[ids[SWITCH_FROM, i]]
            for o in range(wide):
                layer[o] += to[o] - from_[o]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def list_events(moves, ids, a, b):  # type: ignore[no-untyped-def]
    """List the events strictly within (a, b); return their number, and how many stairs take several steps."""
    n, climbing = 0, 0
    for i in range(ids[COUNT, BENDS]):
        if a < moves[BEND_AT, i] < b:
            moves[EVENT_AT, n], ids[EVENT_KIND, n], ids[EVENT_OF, n] = moves[BEND_AT, i], BEND, i
            n += 1
    for i in range(ids[COUNT, SWITCHES]):
        if a < moves[SWITCH_AT, i] < b:
            moves[EVENT_AT, n], ids[EVENT_KIND, n], ids[EVENT_OF, n] = moves[SWITCH_AT, i], SWITCH, i
            n += 1
    for i in range(ids[COUNT, STAIRS]):
        size, most = abs(moves[STAIR_STEP, i]), moves[STAIR_MOST, i]
        before, after = steps_taken(a, True, size, most), steps_taken(b, False, size, most)
        if after - before == 1.0:
            moves[EVENT_AT, n], ids[EVENT_KIND, n], ids[EVENT_OF, n] = (before + 0.5) / size, STAIR, i
            n += 1
        elif after > before:
            climbing += 1
    return n, climbing


@numba.njit(cache=True, nogil=True, error_model="numpy")
def middle_of(moves, ids, a, b, n, climbing):  # type: ignore[no-untyped-def]
    """Where to cut (a, b]: at the event nearest to its middle, or else in the middle."""
    middle = 0.5 * (a + b)
    best, cut = np.inf, middle
    for i in range(n):
        at = moves[EVENT_AT, i]
        if abs(at - middle) < best and a < at < b:
            best, cut = abs(at - middle), at
    if climbing:
        for i in range(ids[COUNT, STAIRS]):  # where a stair ends, or else at one of its steps
            at = moves[STAIR_MOST, i] / abs(moves[STAIR_STEP, i])
            if abs(at - middle) < best and a < at < b:
                best, cut = abs(at - middle), at
    if climbing and best == np.inf:
        for i in range(ids[COUNT, STAIRS]):
            size, most = abs(moves[STAIR_STEP, i]), moves[STAIR_MOST, i]
            before, after = steps_taken(a, True, size, most), steps_taken(b, False, size, most)
            if after - before > 1.0:
                at = (min(max(np.rint(middle * size - 0.5), before), after - 1.0) + 0.5) / size
                if abs(at - middle) < best and a < at < b:
                    best, cut = abs(at - middle), at
    return cut


@numba.njit(cache=True, nogil=True, error_model="numpy")
def only_stairs(ids, n):  # type: ignore[no-untyped-def]
    """Whether all events are steps of stairs."""
    others = 0
    for i in range(n):
        others += ids[EVENT_KIND, i] != STAIR
    return others == 0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def bound_first(entry, first, moves, ids, bounds, a, b, near, far, n, climbing):  # type: ignore[no-untyped-def]
    """Bound how far the first layer lies above and below its chords over (a, b], in ``bounds``.

    A stair of several steps is replaced by the straight line through it, from which it differs by half a step at most.
    Everything else is followed from one event to the next.
    """
    wide, up, down = first.shape[1], bounds[UP], bounds[DOWN]
    for o in range(wide):
        up[o], down[o] = ZERO, ZERO
    if n == 0 and climbing == 0:
        return
    drift, off, most, least = first[DRIFT], first[OFF], first[MOST], first[LEAST]
    share = 1.0 / (b - a)
    for o in range(wide):
        drift[o] = first[SLOPE, o] - (far[o] - near[o]) * share
        off[o], most[o], least[o] = 0.0, 0.0, 0.0
    for i in range(ids[COUNT, BENDS]):
        if moves[BEND_AT, i] > a:
            row, step = entry[ids[BEND_COLUMN, i]], moves[BEND_STEP, i]
            for o in range(wide):
                drift[o] += step * row[o]
    if climbing:
        for i in range(ids[COUNT, STAIRS]):
            step, room = moves[STAIR_STEP, i], moves[STAIR_MOST, i]
            size, sign = abs(step), 1.0 if step > 0.0 else -1.0
            before, after = steps_taken(a, True, size, room), steps_taken(b, False, size, room)
            if after - before <= 1.0:
                continue
            lag, lead = before - min(a * size, room), after - min(b * size, room)
            over, under = 0.5 - min(lag, lead), 0.5 + max(lag, lead)
            if sign < 0.0:
                over, under = under, over
            end = room / size
            pace = (lead - lag) * share * sign + (step if end > a else 0.0)
            row = entry[ids[STAIR_COLUMN, i]]
            for o in range(wide):
                w = row[o]
                drift[o] += pace * w
                up[o] += np.float32(over * w if w > 0.0 else -under * w)
                down[o] += np.float32(under * w if w > 0.0 else -over * w)
            if a < end < b:
                moves[EVENT_AT, n], ids[EVENT_KIND, n], ids[EVENT_OF, n] = end, STAIR_END, i
                n += 1
    for i in range(1, n):  # insertion sort: they are few
        at, kind, of = moves[EVENT_AT, i], ids[EVENT_KIND, i], ids[EVENT_OF, i]
        j = i
        while j > 0 and moves[EVENT_AT, j - 1] > at:
            moves[EVENT_AT, j] = moves[EVENT_AT, j - 1]
            ids[EVENT_KIND, j], ids[EVENT_OF, j] = ids[EVENT_KIND, j - 1], ids[EVENT_OF, j - 1]
            j -= 1
        moves[EVENT_AT, j], ids[EVENT_KIND, j], ids[EVENT_OF, j] = at, kind, of
    here = a
    for e in range(n):
        length, kind, i = moves[EVENT_AT, e] - here, ids[EVENT_KIND, e], ids[EVENT_OF, e]
        here = moves[EVENT_AT, e]
        for o in range(wide):
            off[o] += length * drift[o]
            most[o], least[o] = max(most[o], off[o]), min(least[o], off[o])
        if kind in (BEND, STAIR_END):
            step = moves[BEND_STEP, i] if kind == BEND else moves[STAIR_STEP, i]
            row = entry[ids[BEND_COLUMN, i] if kind == BEND else ids[STAIR_COLUMN, i]]
            for o in range(wide):
                drift[o] -= step * row[o]
            continue
        if kind == STAIR:
            sign, row = 1.0 if moves[STAIR_STEP, i] > 0.0 else -1.0, entry[ids[STAIR_COLUMN, i]]
            for o in range(wide):
                off[o] += sign * row[o]
        else:
            to, from_ = entry[ids[SWITCH_TO, i]], entry[ids[SWITCH_FROM, i]]
            for o in range(wide):
                off[o] += to[o] - from_[o]
        for o in range(wide):
            most[o], least[o] = max(most[o], off[o]), min(least[o], off[o])
    for o in range(wide):
        up[o] = min(WIDER * (up[o] + np.float32(most[o])), LARGEST)
        down[o] = min(WIDER * (down[o] - np.float32(least[o])), LARGEST)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def jumps_at(moves, ids, k):  # type: ignore[no-untyped-def]
    """Whether a block switches or a step is taken just past k."""
    for i in range(ids[COUNT, SWITCHES]):
        if moves[SWITCH_AT, i] == k:
            return True
    for i in range(ids[COUNT, STAIRS]):
        size, most = abs(moves[STAIR_STEP, i]), moves[STAIR_MOST, i]
        if steps_taken(k, True, size, most) > steps_taken(k, False, size, most):
            return True
    return False


@numba.njit(cache=True, nogil=True, error_model="numpy")
def just_past(moves, ids, k):  # type: ignore[no-untyped-def]
    """The first scalar past a jump at k, as :func:`globece.rays.positions` rounds."""
    after = np.nextafter(k, np.inf)
    for i in range(ids[COUNT, STAIRS]):
        size, most = abs(moves[STAIR_STEP, i]), moves[STAIR_MOST, i]
        taken = steps_taken(k, True, size, most)
        if taken > steps_taken(k, False, size, most):
            after = max(after, above(after_steps(size, taken)))
    return after


@numba.njit(cache=True, nogil=True, error_model="numpy")
def lay_out(  # type: ignore[no-untyped-def]
    entry, row, codes, limit, columns, steps, low, high, whole, slope, blocks, starts, targets, lower, first, moves, ids
):  # fmt: skip
    """Find the moves of one direction from this row; return ``PLAIN``, ``ENTERS`` or ``UNCOUNTABLE``.

    ``ENTERS``: the row starts outside of a range, and the jump into it is added to the first layer at rest.
    ``UNCOUNTABLE``: there are too many whole steps to distinguish them in double precision.
    """
    bends, stairs, switches, free, kind = 0, 0, 0, True, PLAIN
    for c in range(len(columns)):
        x, step = row[columns[c]], steps[c]
        if x < low[c] if step > 0.0 else x > high[c]:
            inside = low[c] if step > 0.0 else high[c]
            for o in range(first.shape[1]):
                first[REST, o] += (inside - x) * entry[columns[c], o]
            x, kind = inside, ENTERS
        room = high[c] - x if step > 0.0 else x - low[c]
        if np.isnan(x) or room <= 0.0 or whole[c] or room < abs(step) * limit:
            free = False
    if free:
        first[SLOPE, :] = slope
    else:
        first[SLOPE, :] = 0.0
        for c in range(len(columns)):
            column, step = columns[c], steps[c]
            x = row[column]
            if x < low[c] if step > 0.0 else x > high[c]:
                x = low[c] if step > 0.0 else high[c]
            room = high[c] - x if step > 0.0 else x - low[c]
            if np.isnan(x) or room <= 0.0:
                continue
            if whole[c]:
                if min(room, abs(step) * limit) > MOST_COUNTED:
                    return UNCOUNTABLE
                ids[STAIR_COLUMN, stairs] = column
                moves[STAIR_STEP, stairs], moves[STAIR_MOST, stairs] = step, room
                stairs += 1
            elif room < abs(step) * limit:
                ids[BEND_COLUMN, bends] = column
                moves[BEND_STEP, bends], moves[BEND_AT, bends] = step, room / abs(step)
                bends += 1
            else:
                for o in range(first.shape[1]):
                    first[SLOPE, o] += step * entry[column, o]
    for s in range(len(blocks)):
        code = codes[blocks[s]]
        if lower[s, code] < limit:
            moves[SWITCH_AT, switches] = lower[s, code]
            ids[SWITCH_FROM, switches], ids[SWITCH_TO, switches] = starts[s] + code, starts[s] + targets[s]
            switches += 1
    ids[COUNT, BENDS], ids[COUNT, STAIRS], ids[COUNT, SWITCHES] = bends, stairs, switches
    return kind
