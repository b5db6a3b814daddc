"""A network's units at two scalars, and how far they can deviate from the chords in between: kernels.

Every unit is known at both ends of a stretch. Where the first layer follows its chords, so do all others until a unit
bends, and the effect of a bend is bounded from layer to layer.
"""

from __future__ import annotations

import numba
import numpy as np

from globece.models.networks.layers import NEGLIGIBLE
from globece.models.networks.scratch import (
    ABOVE,
    AT,
    BEGIN,
    BELOW,
    BEND_AT,
    BEND_COLUMN,
    BEND_STEP,
    BENDS,
    COUNT,
    DIFFERENCE,
    DOWN,
    FAST,
    HALF,
    LARGEST,
    ONE,
    SLOPE,
    SOME_DIFFERENCES,
    SOME_SUMS,
    STAIR_COLUMN,
    STAIR_STEP,
    STAIRS,
    SUM,
    UP,
    WIDER,
    ZERO,
)

# More than the rounding error of an output, relative to its summands. Bounds on bends may be far smaller, and rounding
# would then hide a root from them.
ROUNDING = 1e-12


@numba.njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _add_rows(matrix, begin, width, index, value, count, out):  # type: ignore[no-untyped-def]
    """``out += value @ rows of the matrix``, four rows at a time."""
    t = 0
    while t + 4 <= count:
        i0, i1 = begin + index[t] * width, begin + index[t + 1] * width
        i2, i3 = begin + index[t + 2] * width, begin + index[t + 3] * width
        v0, v1, v2, v3 = value[t], value[t + 1], value[t + 2], value[t + 3]
        r0, r1 = matrix[i0 : i0 + width], matrix[i1 : i1 + width]
        r2, r3 = matrix[i2 : i2 + width], matrix[i3 : i3 + width]
        for o in range(width):
            out[o] += (v0 * r0[o] + v1 * r1[o]) + (v2 * r2[o] + v3 * r3[o])
        t += 4
    while t < count:
        i0, v0 = begin + index[t] * width, value[t]
        r0 = matrix[i0 : i0 + width]
        for o in range(width):
            out[o] += v0 * r0[o]
        t += 1


@numba.njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _add_spreads(matrix, begin, width, index, sums, differences, count, out_sums, out_differences):  # type: ignore[no-untyped-def]
    """``out_sums += sums @ abs(rows)`` and ``out_differences += differences @ rows``, four rows at a time."""
    t = 0
    while t + 4 <= count:
        i0, i1 = begin + index[t] * width, begin + index[t + 1] * width
        i2, i3 = begin + index[t + 2] * width, begin + index[t + 3] * width
        s0, s1, s2, s3 = sums[t], sums[t + 1], sums[t + 2], sums[t + 3]
        d0, d1, d2, d3 = differences[t], differences[t + 1], differences[t + 2], differences[t + 3]
        r0, r1 = matrix[i0 : i0 + width], matrix[i1 : i1 + width]
        r2, r3 = matrix[i2 : i2 + width], matrix[i3 : i3 + width]
        for o in range(width):
            w0, w1, w2, w3 = r0[o], r1[o], r2[o], r3[o]
            out_sums[o] += (s0 * abs(w0) + s1 * abs(w1)) + (s2 * abs(w2) + s3 * abs(w3))
            out_differences[o] += (d0 * w0 + d1 * w1) + (d2 * w2 + d3 * w3)
        t += 4
    while t < count:
        i0, s0, d0 = begin + index[t] * width, sums[t], differences[t]
        r0 = matrix[i0 : i0 + width]
        for o in range(width):
            w0 = r0[o]
            out_sums[o] += s0 * abs(w0)
            out_differences[o] += d0 * w0
        t += 1


@numba.njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def forward(weights, layout, exit_, bias, leak, closed, units, units32, index, value, need):  # type: ignore[no-untyped-def]
    """Compute the later layers and the outputs from the first layer; return the smallest output."""
    layers = layout.shape[1] - 1
    for layer in range(1, layers):
        here, there, end = layout[AT, layer - 1], layout[AT, layer], layout[AT, layer + 1]
        before, slope, count = units[here:there], leak[here:there], 0
        for j in range(there - here):
            p = before[j]
            h = p if p > 0.0 else slope[j] * p
            index[count], value[count] = j, h
            count += h != 0.0
        after = units[there:end]
        after[:] = bias[there:end]
        _add_rows(weights, layout[BEGIN, layer], end - there, index, value, count, after)
    here, there = layout[AT, layers - 1], layout[AT, layers]
    before, slope, smallest = units[here:there], leak[here:there], np.inf
    for m in range(len(closed)):
        row, total = exit_[m], 0.0
        for j in range(there - here):
            p = before[j]
            total += (p if p > 0.0 else slope[j] * p) * row[j]
        total += bias[there + m]
        total -= need
        if total == 0.0 and closed[m]:
            total = 1e-300  # a tie that is favourable
        units[there + m] = total
        smallest = min(smallest, total)
    for j in range(there):
        units32[j] = np.float32(min(max(units[j], -1e30), 1e30))
    return smallest


@numba.njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def bound_spread(coarse, layout, exit_, bias, leak32, bounds, gaps, index, near32, far32, watch):  # type: ignore[no-untyped-def]
    """Bound how far the outputs lie above and below their chords, in ``gaps``; return (is straight, is unbent).

    ``bounds`` holds those of the first layer. With the chord of a unit running from a to b, its ReLU lies on or below
    the chord of its ends, and lowest where the unit crosses 0. If no unit can cross 0, nothing bends: the outputs are
    an affine function of the first layer. This is only determined if ``watch`` is set.
    """
    layers, straight, count, wide, crossed = layout.shape[1] - 1, True, 0, 0, ZERO
    up, down, sums, differences = bounds[UP], bounds[DOWN], bounds[SUM], bounds[DIFFERENCE]
    some_sums, some_differences = bounds[SOME_SUMS], bounds[SOME_DIFFERENCES]
    for layer in range(layers):
        here, there = layout[AT, layer], layout[AT, layer + 1]
        wide = there - here
        a, b, leak = near32[here:there], far32[here:there], leak32[here:there]
        for j in range(wide):
            high, low, u, d = max(a[j], b[j]), min(a[j], b[j]), up[j], down[j]
            over = max(u + min(high, ZERO), ZERO)
            crossing = max(high, ZERO) * min(ONE, (d - low) / (high - low))
            always_on = min(d, high)
            under = always_on if low >= ZERO else crossing
            over = leak[j] * u + (ONE - leak[j]) * over
            under = leak[j] * d + (ONE - leak[j]) * under
            sums[j], differences[j] = over + under, over - under
        if watch and crossed <= ZERO:
            for j in range(wide):
                crossed = max(crossed, (ONE - leak[j]) * min(max(a[j], b[j]) + up[j], down[j] - min(a[j], b[j])))
        count = 0
        for j in range(wide):
            index[count], some_sums[count], some_differences[count] = j, sums[j], differences[j]
            count += sums[j] > NEGLIGIBLE
        if count > 0:
            straight = False
        if layer + 1 < layers:
            after = layout[AT, layer + 2] - there
            for o in range(after):
                sums[o], differences[o] = ZERO, ZERO
            begin = layout[BEGIN, layer + 1]
            _add_spreads(coarse, begin, after, index, some_sums, some_differences, count, sums, differences)
            for o in range(after):
                wider = WIDER * sums[o]
                up[o] = min(max(HALF * (wider + differences[o]), ZERO), LARGEST)
                down[o] = min(max(HALF * (wider - differences[o]), ZERO), LARGEST)
    for m in range(len(exit_)):
        row, total, difference = exit_[m], 0.0, 0.0
        for t in range(count):
            w = row[index[t]]
            total += some_sums[t] * abs(w)
            difference += some_differences[t] * w
        total *= 1.0001
        if total >= 1e28:  # an intermediate bound may have been clipped
            total, difference = 1e300, 0.0
        size = abs(bias[layout[AT, layers] + m])
        for j in range(wide):
            size += np.float64(max(abs(a[j]), abs(b[j]))) * abs(row[j])
        slack = ROUNDING * size
        gaps[ABOVE, m] = max(0.5 * (total + difference), 0.0) + slack
        gaps[BELOW, m] = max(0.5 * (total - difference), 0.0) + slack
    return straight, watch and crossed <= ZERO


@numba.njit(cache=True, nogil=True, error_model="numpy")
def room_left(near, far, outputs, gaps, which, sign):  # type: ignore[no-untyped-def]
    """The part of a stretch, from 0 to 1, over which all shifted chords are positive; none if it ends before 0."""
    first, last = 0.0, 1.0
    for m in range(gaps.shape[1]):
        a, b = near[outputs + m] + sign * gaps[which, m], far[outputs + m] + sign * gaps[which, m]
        if a <= 0.0 and b <= 0.0:
            return 1.0, 0.0
        if a <= 0.0:
            first = max(first, -a / (b - a))
        elif b <= 0.0:
            last = min(last, a / (a - b))
    return first, last


@numba.njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def find_gains(entry, weights, layout, exit_, leak, first, moves, ids, a, near, far, rates, gains):  # type: ignore[no-untyped-def]
    """Where nothing bends: each output's rise per scalar, and with each step of each stair, in ``gains``."""
    layers, stairs = layout.shape[1] - 1, ids[COUNT, STAIRS]
    back, ahead = rates[0], rates[1]
    for m in range(len(exit_)):
        here, there = layout[AT, layers - 1], layout[AT, layers]
        for j in range(there - here):
            on = near[here + j] + far[here + j] > 0.0
            back[j] = exit_[m, j] if on else leak[here + j] * exit_[m, j]
        for layer in range(layers - 1, 0, -1):
            here, there, end = layout[AT, layer - 1], layout[AT, layer], layout[AT, layer + 1]
            begin, wide = layout[BEGIN, layer], end - there
            for j in range(there - here):
                row, total = weights[begin + j * wide : begin + (j + 1) * wide], 0.0
                for o in range(wide):
                    total += row[o] * back[o]
                ahead[j] = total if near[here + j] + far[here + j] > 0.0 else leak[here + j] * total
            back, ahead = ahead, back
        rise = 0.0
        for o in range(entry.shape[1]):
            rise += back[o] * first[SLOPE, o]
        for i in range(ids[COUNT, BENDS]):
            if moves[BEND_AT, i] > a:
                row, step = entry[ids[BEND_COLUMN, i]], moves[BEND_STEP, i]
                for o in range(entry.shape[1]):
                    rise += step * back[o] * row[o]
        gains[m, stairs] = rise
        for i in range(stairs):
            row, total = entry[ids[STAIR_COLUMN, i]], 0.0
            for o in range(entry.shape[1]):
                total += back[o] * row[o]
            gains[m, i] = total if moves[STAIR_STEP, i] > 0.0 else -total
