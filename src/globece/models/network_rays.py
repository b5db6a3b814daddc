"""Where a ReLU network first turns favourable along a ray: the kernel, and its plain-NumPy twin.

Along a ray the network's first layer moves in straight lines, with a bend where a range ends and a jump where a block
switches or a whole step is taken. Between two scalars the kernel knows every unit at both ends, hence the chord between
them, and bounds how far the unit can lie above or below its chord. A stretch over which some output stays negative by
these bounds is done with; one over which no unit bends is straight, and its root is the answer; any other is narrowed
to where the bounds leave room, or halved. So most of the network's pieces are never looked at, and none is missed.

The twin cuts the ray at every bend of every unit, layer by layer, and looks at all pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from globece import rays
from globece.parallel import over_rows
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray

SUBNORMAL = 1e-38  # weights below this are nothing, and slow: they are made nothing
PADDED = 8  # layers are made this wide, or a multiple: whole vectors for the processor
FEW = 2048  # rays that are not worth another thread

# A stretch this short, relative to where it lies, is not cut further; nor one this short relative to the limit.
SHORTEST, NOTHING = 1e-11, 1e-18
# Bounds are computed in single precision and widened by more than that can round.
WIDER = np.float32(1.0001)
NEGLIGIBLE, LARGEST = np.float32(1e-30), np.float32(1e30)
_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
# Where the far end is favourable, a bound cannot clear the stretch. It is only asked if it is likely to narrow it.
HOPEFUL = 2.0
FAR_ENOUGH = 2e-6  # an answer is moved on by this share at most, to be clear of rounding
KEPT = 24  # far ends that are remembered while what lies before them is looked at
HALVINGS = 80  # from the limit down to NOTHING of it, and some


class Net(NamedTuple):
    """A network over the encoded matrix, laid out for the kernel; favourable where all outputs are positive.

    Hidden unit j of layer l has place ``layout[0, l] + j`` wherever units are listed; the outputs follow them.
    """

    entry: FloatArray  # (width, units of the first layer)
    weights: FloatArray  # each later layer as (inputs, units), one after the other
    coarse: NDArray[np.float32]  # the same, for bounds
    layout: IntArray  # (2, layers + 1): where each layer's units begin, and where its matrix does
    exit: FloatArray  # (outputs, units of the last layer)
    bias: FloatArray  # (units + outputs,)
    leak: FloatArray  # (units,) slope below 0
    coarse_leak: NDArray[np.float32]
    closed: BoolArray  # (outputs,) whether an output of exactly 0 is favourable


@dataclass(frozen=True)
class Layers:
    """A network as a reader finds it, input first: affine maps, with a bend at 0 between each two.

    Attributes
    ----------
    weights, biases
        ``(inputs, units)`` and ``(units,)`` for each map.
    leaks
        Slope below 0 of each unit of all maps but the last: 0 for a ReLU, 1 for no bend.
    """

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    leaks: tuple[FloatArray, ...]

    def __call__(self, V: FloatArray) -> FloatArray:
        """Outputs of each row."""
        for weight, bias, leak in zip(self.weights, self.biases, self.leaks, strict=False):
            V = V @ weight + bias
            V = np.where(V > 0.0, V, leak * V)
        return np.asarray(V @ self.weights[-1] + self.biases[-1])

    def before(self, matrix: FloatArray, shift: FloatArray) -> Layers:
        """The same network behind an affine map of its inputs, ``v = z @ matrix + shift``."""
        first, bias = self.weights[0], self.biases[0]
        return Layers((matrix @ first, *self.weights[1:]), (shift @ first + bias, *self.biases[1:]), self.leaks)

    def after(self, matrix: FloatArray, shift: FloatArray) -> Layers:
        """The same network with an affine map of its outputs behind it."""
        last, bias = self.weights[-1], self.biases[-1]
        return Layers((*self.weights[:-1], last @ matrix), (*self.biases[:-1], bias @ matrix + shift), self.leaks)


def compile_net(layers: Layers, closed: BoolArray) -> Net:
    """Lay a network over the encoded matrix out for the kernel."""
    weights, biases, leaks = list(layers.weights), list(layers.biases), list(layers.leaks)
    if not leaks:  # no hidden layer: the outputs become one, without a bend
        weights, biases = [weights[0], np.eye(weights[0].shape[1])], [biases[0], np.zeros(weights[0].shape[1])]
        leaks = [np.ones(weights[0].shape[1])]
    wide = [-(-w.shape[1] // PADDED) * PADDED for w in weights[:-1]]
    at = np.cumsum([0, *wide])
    bias, leak = np.zeros(at[-1] + len(biases[-1])), np.zeros(at[-1])
    for start, b, slope in zip(at, biases, leaks, strict=False):
        bias[start : start + len(b)] = b
        leak[start : start + len(b)] = slope
    bias[at[-1] :] = biases[-1]
    entry = np.zeros((len(weights[0]), wide[0]))
    entry[:, : weights[0].shape[1]] = weights[0]
    padded = []
    for layer in range(1, len(wide)):
        matrix = np.zeros((wide[layer - 1], wide[layer]))
        matrix[: weights[layer].shape[0], : weights[layer].shape[1]] = weights[layer]
        padded.append(matrix.ravel())
    exit_ = np.zeros((weights[-1].shape[1], wide[-1]))
    exit_[:, : len(weights[-1])] = weights[-1].T
    layout = np.array([at, np.cumsum([0, 0, *(len(p) for p in padded)])])
    flat = np.concatenate(padded) if padded else np.zeros(0)
    for tiny in (flat, entry, exit_):
        tiny[np.abs(tiny) < SUBNORMAL] = 0.0
    coarse = flat.astype(np.float32)
    coarse[np.abs(coarse) < NEGLIGIBLE] = 0.0  # their products would be subnormal
    return Net(entry, flat, coarse, layout, exit_, bias, leak, leak.astype(np.float32), np.asarray(closed))


class Plan(NamedTuple):
    """Directions, made ready for the kernel: what each of them moves."""

    first: IntArray  # (m + 1,) each direction's first mover
    column: IntArray
    step: FloatArray
    low: FloatArray
    high: FloatArray
    whole: BoolArray
    slope: FloatArray  # (m, units of the first layer) of the first layer, while all movers move freely
    first_block: IntArray  # (m + 1,) each direction's first switching block
    block: IntArray  # which of the codes' columns
    start: IntArray  # its first encoded column
    target: IntArray
    bounds: FloatArray  # (blocks, most categories)


def make_plan(space: FeatureSpace, directions: FloatArray, entry: FloatArray) -> Plan:
    """What each direction moves, in the order of :func:`globece.rays.movers` and :func:`globece.rays.switches`."""
    moving = [list(rays.movers(space, delta)) for delta in directions]
    switching = [list(rays.switches(space, delta)) for delta in directions]
    movers, blocks = [m for some in moving for m in some], [s for some in switching for s in some]
    place = {f.name: i for i, f in enumerate(space.blocks)}
    bounds = np.full((len(blocks), max((len(s.bounds) for s in blocks), default=1)), np.inf)
    for i, s in enumerate(blocks):
        bounds[i, : len(s.bounds)] = s.bounds
    slope = np.zeros((len(directions), entry.shape[1]))
    for i, some in enumerate(moving):
        for f, step in some:
            slope[i] += step * entry[f.start]
    return Plan(
        np.cumsum([0, *(len(some) for some in moving)]),
        np.array([f.start for f, _ in movers], dtype=np.int64),
        np.array([step for _, step in movers], dtype=np.float64),
        np.array([f.low for f, _ in movers], dtype=np.float64),
        np.array([f.high for f, _ in movers], dtype=np.float64),
        np.array([f.whole for f, _ in movers], dtype=bool),
        slope,
        np.cumsum([0, *(len(some) for some in switching)]),
        np.array([place[s.feature.name] for s in blocks], dtype=np.int64),
        np.array([s.feature.start for s in blocks], dtype=np.int64),
        np.array([s.target for s in blocks], dtype=np.int64),
        bounds,
    )


@dataclass(frozen=True, slots=True)
class Search:
    """Where to look along each ray, ``(directions, rows)``, and how positive the outputs must be there.

    Attributes
    ----------
    limit
        Largest scalar.
    start
        Scalar up to which a ray is known to be unfavourable, or passed over.
    need
        What all outputs must exceed: 0 for the network's own decision.
    noise
        The answer is moved on to where the outputs exceed this share of what they are summed from, if that is near.
    """

    limit: FloatArray
    start: FloatArray
    need: FloatArray
    noise: float = 0.0


def first_flips(
    net: Net, space: FeatureSpace, Z: FloatArray, fill: FloatArray, directions: FloatArray, search: Search
) -> tuple[FloatArray, BoolArray]:
    """First scalar at which all outputs exceed the need, and whether a jump brought it: ``(m, n)`` each."""
    plan = make_plan(space, directions, net.entry)
    codes = np.column_stack([space.codes(Z, f) for f in space.blocks]) if space.blocks else np.zeros((len(Z), 0), int)
    scalar = np.full((len(directions), len(Z)), np.inf)
    jumped = np.zeros(scalar.shape, dtype=bool)
    Z, fill = np.ascontiguousarray(Z), np.ascontiguousarray(fill)
    wanted = [np.ascontiguousarray(w) for w in (search.limit, search.start, search.need)]

    kernel: Any = _rows

    def work(a: int, b: int) -> None:
        kernel(a, b, *net, *plan, Z, fill, codes, *wanted, search.noise, scalar, jumped)

    if scalar.size:
        over_rows(len(Z), work, few=max(1, FEW // len(directions)))
    return scalar, jumped


# -- the kernel -------------------------------------------------------------------------------------------------------
# Numba passes plain arrays for next to nothing and tuples of arrays dearly, so scratch is kept in a few arrays whose
# rows have names, and functions take many arguments.

_FAST = {"contract", "nsz", "reassoc", "nnan"}  # sums may be reordered: the same way on every run
# rows of `layout`
_AT, _BEGIN = 0, 1
# rows of `first`, one entry per unit of the first layer: before anything moves, by what moves straight to the limit
_REST, _SLOPE, _DRIFT, _OFF, _MOST, _LEAST = 0, 1, 2, 3, 4, 5
# rows of `moves` and `ids`: what happens along a ray, and (events) within one stretch of it
_BEND_STEP, _BEND_AT, _STAIR_STEP, _STAIR_MOST, _SWITCH_AT, _EVENT_AT = 0, 1, 2, 3, 4, 5
_BEND_COLUMN, _STAIR_COLUMN, _SWITCH_FROM, _SWITCH_TO, _EVENT_KIND, _EVENT_OF, _COUNT = 0, 1, 2, 3, 4, 5, 6
_BENDS, _STAIRS, _SWITCHES = 0, 1, 2  # columns of ids[_COUNT]
_BEND, _SWITCH, _STAIR, _STAIR_END = 0, 1, 2, 3  # kinds of event
# rows of `bounds`, one entry per unit of a layer: how far it may lie above and below its chord; their sum and
# difference; the same of those units only that leave their chords
_UP, _DOWN, _SUM, _DIFFERENCE, _SOME_SUMS, _SOME_DIFFERENCES = 0, 1, 2, 3, 4, 5
# rows of `gaps`, one entry per output
_ABOVE, _BELOW = 0, 1
# rows of `later`: stretches yet to be looked at, and whether the units at their far end are known
_FROM, _TO, _IS_KEPT = 0, 1, 2


@numba.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
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


@numba.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
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


@numba.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _forward(weights, layout, exit_, bias, leak, closed, units, units32, index, value, need):  # type: ignore[no-untyped-def]
    """Fill the later layers and the outputs in, given the first layer; return the smallest output."""
    layers = layout.shape[1] - 1
    for layer in range(1, layers):
        here, there, end = layout[_AT, layer - 1], layout[_AT, layer], layout[_AT, layer + 1]
        before, slope, count = units[here:there], leak[here:there], 0
        for j in range(there - here):
            p = before[j]
            h = p if p > 0.0 else slope[j] * p
            index[count], value[count] = j, h
            count += h != 0.0
        after = units[there:end]
        after[:] = bias[there:end]
        _add_rows(weights, layout[_BEGIN, layer], end - there, index, value, count, after)
    here, there = layout[_AT, layers - 1], layout[_AT, layers]
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


@numba.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _spread(coarse, layout, exit_, leak32, bounds, gaps, index, near32, far32):  # type: ignore[no-untyped-def]
    """Bound how far the outputs lie above and below their chords, in ``gaps``; return whether all is straight.

    ``bounds`` holds the first layer's. With the chord of a unit running from a to b, its ReLU runs along or below the
    chord of its own ends, and lowest where the unit crosses 0.
    """
    layers, straight, count, wide = layout.shape[1] - 1, True, 0, 0
    up, down, sums, differences = bounds[_UP], bounds[_DOWN], bounds[_SUM], bounds[_DIFFERENCE]
    some_sums, some_differences = bounds[_SOME_SUMS], bounds[_SOME_DIFFERENCES]
    for layer in range(layers):
        here, there = layout[_AT, layer], layout[_AT, layer + 1]
        wide = there - here
        a, b, leak = near32[here:there], far32[here:there], leak32[here:there]
        for j in range(wide):
            high, low, u, d = max(a[j], b[j]), min(a[j], b[j]), up[j], down[j]
            over = max(u + min(high, _ZERO), _ZERO)
            crossing = max(high, _ZERO) * min(_ONE, (d - low) / (high - low))
            always_on = min(d, high)
            under = always_on if low >= _ZERO else crossing
            over = leak[j] * u + (_ONE - leak[j]) * over
            under = leak[j] * d + (_ONE - leak[j]) * under
            sums[j], differences[j] = over + under, over - under
        count = 0
        for j in range(wide):
            index[count], some_sums[count], some_differences[count] = j, sums[j], differences[j]
            count += sums[j] > NEGLIGIBLE
        if count > 0:
            straight = False
        if layer + 1 < layers:
            after = layout[_AT, layer + 2] - there
            for o in range(after):
                sums[o], differences[o] = _ZERO, _ZERO
            begin = layout[_BEGIN, layer + 1]
            _add_spreads(coarse, begin, after, index, some_sums, some_differences, count, sums, differences)
            for o in range(after):
                wider = WIDER * sums[o]
                up[o] = min(max(_HALF * (wider + differences[o]), _ZERO), LARGEST)
                down[o] = min(max(_HALF * (wider - differences[o]), _ZERO), LARGEST)
    for m in range(len(exit_)):
        row, total, difference = exit_[m], 0.0, 0.0
        for t in range(count):
            w = row[index[t]]
            total += some_sums[t] * abs(w)
            difference += some_differences[t] * w
        total *= 1.0001
        if total >= 1e28:  # a bound may have been cut off on the way
            total, difference = 1e300, 0.0
        gaps[_ABOVE, m], gaps[_BELOW, m] = max(0.5 * (total + difference), 0.0), max(0.5 * (total - difference), 0.0)
    return straight


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _room(near, far, outputs, gaps, which, sign):  # type: ignore[no-untyped-def]
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


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _steps(k, past, size, most):  # type: ignore[no-untyped-def]
    """Whole steps taken at k, or just past it: the n-th comes just past (n - 0.5) / size."""
    n = np.floor(k * size + 0.5)
    while (n + 0.5) / size < k or (past and (n + 0.5) / size <= k):
        n += 1.0
    while n > 0.0 and ((n - 0.5) / size > k or (not past and (n - 0.5) / size >= k)):
        n -= 1.0
    return min(n, most)


@numba.njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _first_layer(entry, first, moves, ids, k, past, units):  # type: ignore[no-untyped-def]
    """The first layer at k, or just past it."""
    wide, rest, slope = first.shape[1], first[_REST], first[_SLOPE]
    layer = units[:wide]
    for o in range(wide):
        layer[o] = rest[o] + k * slope[o]
    for i in range(ids[_COUNT, _BENDS]):
        moved, row = moves[_BEND_STEP, i] * min(k, moves[_BEND_AT, i]), entry[ids[_BEND_COLUMN, i]]
        for o in range(wide):
            layer[o] += moved * row[o]
    for i in range(ids[_COUNT, _STAIRS]):
        step = moves[_STAIR_STEP, i]
        moved, row = _steps(k, past, abs(step), moves[_STAIR_MOST, i]), entry[ids[_STAIR_COLUMN, i]]
        if moved > 0.0:
            moved = moved if step > 0.0 else -moved
            for o in range(wide):
                layer[o] += moved * row[o]
    for i in range(ids[_COUNT, _SWITCHES]):
        if k > moves[_SWITCH_AT, i] or (past and k >= moves[_SWITCH_AT, i]):
            to, from_ = entry[ids[_SWITCH_TO, i]], entry[ids[_SWITCH_FROM, i]]
            for o in range(wide):
                layer[o] += to[o] - from_[o]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _events(moves, ids, a, b):  # type: ignore[no-untyped-def]
    """List what happens strictly within (a, b); return how much that is, and how many stairs take several steps."""
    n, climbing = 0, 0
    for i in range(ids[_COUNT, _BENDS]):
        if a < moves[_BEND_AT, i] < b:
            moves[_EVENT_AT, n], ids[_EVENT_KIND, n], ids[_EVENT_OF, n] = moves[_BEND_AT, i], _BEND, i
            n += 1
    for i in range(ids[_COUNT, _SWITCHES]):
        if a < moves[_SWITCH_AT, i] < b:
            moves[_EVENT_AT, n], ids[_EVENT_KIND, n], ids[_EVENT_OF, n] = moves[_SWITCH_AT, i], _SWITCH, i
            n += 1
    for i in range(ids[_COUNT, _STAIRS]):
        size, most = abs(moves[_STAIR_STEP, i]), moves[_STAIR_MOST, i]
        before, after = _steps(a, True, size, most), _steps(b, False, size, most)
        if after - before == 1.0:
            moves[_EVENT_AT, n], ids[_EVENT_KIND, n], ids[_EVENT_OF, n] = (before + 0.5) / size, _STAIR, i
            n += 1
        elif after > before:
            climbing += 1
    return n, climbing


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _middle(moves, ids, a, b, n, climbing):  # type: ignore[no-untyped-def]
    """Where to cut (a, b]: at what happens nearest to its middle, else in the middle."""
    middle = 0.5 * (a + b)
    best, cut = np.inf, middle
    for i in range(n):
        at = moves[_EVENT_AT, i]
        if abs(at - middle) < best and a < at < b:
            best, cut = abs(at - middle), at
    if climbing:
        for i in range(ids[_COUNT, _STAIRS]):
            size, most = abs(moves[_STAIR_STEP, i]), moves[_STAIR_MOST, i]
            before, after = _steps(a, True, size, most), _steps(b, False, size, most)
            if after - before > 1.0:
                at = (min(max(np.rint(middle * size - 0.5), before), after - 1.0) + 0.5) / size
                if abs(at - middle) < best and a < at < b:
                    best, cut = abs(at - middle), at
    return cut


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _first_spread(entry, first, moves, ids, bounds, a, b, near, far, n, climbing):  # type: ignore[no-untyped-def]
    """Bound how far the first layer lies above and below its chords over (a, b], in ``bounds``.

    A stair of several steps stands for the straight line through it, which it leaves by half a step at most. The
    rest is followed from one event to the next.
    """
    wide, up, down = first.shape[1], bounds[_UP], bounds[_DOWN]
    for o in range(wide):
        up[o], down[o] = _ZERO, _ZERO
    if n == 0 and climbing == 0:
        return
    drift, off, most, least = first[_DRIFT], first[_OFF], first[_MOST], first[_LEAST]
    share = 1.0 / (b - a)
    for o in range(wide):
        drift[o] = first[_SLOPE, o] - (far[o] - near[o]) * share
        off[o], most[o], least[o] = 0.0, 0.0, 0.0
    for i in range(ids[_COUNT, _BENDS]):
        if moves[_BEND_AT, i] > a:
            row, step = entry[ids[_BEND_COLUMN, i]], moves[_BEND_STEP, i]
            for o in range(wide):
                drift[o] += step * row[o]
    if climbing:
        for i in range(ids[_COUNT, _STAIRS]):
            step, room = moves[_STAIR_STEP, i], moves[_STAIR_MOST, i]
            size, sign = abs(step), 1.0 if step > 0.0 else -1.0
            before, after = _steps(a, True, size, room), _steps(b, False, size, room)
            if after - before <= 1.0:
                continue
            lag, lead = before - min(a * size, room), after - min(b * size, room)
            over, under = 0.5 - min(lag, lead), 0.5 + max(lag, lead)
            if sign < 0.0:
                over, under = under, over
            end = room / size
            pace = (lead - lag) * share * sign + (step if end > a else 0.0)
            row = entry[ids[_STAIR_COLUMN, i]]
            for o in range(wide):
                w = row[o]
                drift[o] += pace * w
                up[o] += np.float32(over * w if w > 0.0 else -under * w)
                down[o] += np.float32(under * w if w > 0.0 else -over * w)
            if a < end < b:
                moves[_EVENT_AT, n], ids[_EVENT_KIND, n], ids[_EVENT_OF, n] = end, _STAIR_END, i
                n += 1
    for i in range(1, n):  # few: insertion sorts them
        at, kind, of = moves[_EVENT_AT, i], ids[_EVENT_KIND, i], ids[_EVENT_OF, i]
        j = i
        while j > 0 and moves[_EVENT_AT, j - 1] > at:
            moves[_EVENT_AT, j] = moves[_EVENT_AT, j - 1]
            ids[_EVENT_KIND, j], ids[_EVENT_OF, j] = ids[_EVENT_KIND, j - 1], ids[_EVENT_OF, j - 1]
            j -= 1
        moves[_EVENT_AT, j], ids[_EVENT_KIND, j], ids[_EVENT_OF, j] = at, kind, of
    here = a
    for e in range(n):
        length, kind, i = moves[_EVENT_AT, e] - here, ids[_EVENT_KIND, e], ids[_EVENT_OF, e]
        here = moves[_EVENT_AT, e]
        for o in range(wide):
            off[o] += length * drift[o]
            most[o], least[o] = max(most[o], off[o]), min(least[o], off[o])
        if kind in (_BEND, _STAIR_END):
            step = moves[_BEND_STEP, i] if kind == _BEND else moves[_STAIR_STEP, i]
            row = entry[ids[_BEND_COLUMN, i] if kind == _BEND else ids[_STAIR_COLUMN, i]]
            for o in range(wide):
                drift[o] -= step * row[o]
            continue
        if kind == _STAIR:
            sign, row = 1.0 if moves[_STAIR_STEP, i] > 0.0 else -1.0, entry[ids[_STAIR_COLUMN, i]]
            for o in range(wide):
                off[o] += sign * row[o]
        else:
            to, from_ = entry[ids[_SWITCH_TO, i]], entry[ids[_SWITCH_FROM, i]]
            for o in range(wide):
                off[o] += to[o] - from_[o]
        for o in range(wide):
            most[o], least[o] = max(most[o], off[o]), min(least[o], off[o])
    for o in range(wide):
        up[o] = min(WIDER * (up[o] + np.float32(most[o])), LARGEST)
        down[o] = min(WIDER * (down[o] - np.float32(least[o])), LARGEST)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _jumps_at(moves, ids, k):  # type: ignore[no-untyped-def]
    """Whether a block switches or a step is taken just past k."""
    for i in range(ids[_COUNT, _SWITCHES]):
        if moves[_SWITCH_AT, i] == k:
            return True
    for i in range(ids[_COUNT, _STAIRS]):
        size, most = abs(moves[_STAIR_STEP, i]), moves[_STAIR_MOST, i]
        if _steps(k, True, size, most) > _steps(k, False, size, most):
            return True
    return False


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _past(moves, ids, k):  # type: ignore[no-untyped-def]
    """The first scalar past a jump at k, as :func:`globece.rays.positions` rounds."""
    after = np.nextafter(k, np.inf)
    for i in range(ids[_COUNT, _STAIRS]):
        size, most = abs(moves[_STAIR_STEP, i]), moves[_STAIR_MOST, i]
        taken = _steps(k, True, size, most)
        if taken > _steps(k, False, size, most):
            while np.ceil(after * size - 0.5) < taken:
                after = np.nextafter(after, np.inf)
    return after


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _clear_of_noise(near, far, outputs, a, b, first, noise):  # type: ignore[no-untyped-def]
    """On a straight stretch that turns favourable, from where on every output exceeds the noise, if that is near.

    The line is followed past the stretch's end, so that the answer does not depend on how the ray was cut.
    """
    at, move = a + first * (b - a), 0.0
    for m in range(outputs, len(near)):
        rise = far[m] - near[m]
        short = noise - (near[m] + first * rise)
        if short > 0.0:
            move = max(move, short / rise * (b - a)) if rise > 0.0 else np.inf
    return at + min(move, FAR_ENOUGH * at)


@numba.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _size_of_terms(layout, exit_, bias, leak, units):  # type: ignore[no-untyped-def]
    """What the largest output is summed from, without signs: rounding is a share of this."""
    layers = layout.shape[1] - 1
    here, there = layout[_AT, layers - 1], layout[_AT, layers]
    before, slope, largest = units[here:there], leak[here:there], 0.0
    for m in range(len(exit_)):
        row, total = exit_[m], abs(bias[there + m])
        for j in range(there - here):
            p = before[j]
            total += abs((p if p > 0.0 else slope[j] * p) * row[j])
        largest = max(largest, total)
    return largest


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _one_ray(  # type: ignore[no-untyped-def]
    entry, weights, coarse, layout, exit_, bias, leak, leak32, closed, first, moves, ids, bounds, gaps, later, kept,
    index, value, near, near32, far, far32, limit, start, need, noise,
):  # fmt: skip
    """First k in (start, limit] at which all outputs exceed the need, and whether a jump brought it.

    ``near`` holds the units just past ``start``, which is unfavourable.
    """
    outputs, wide = layout[_AT, layout.shape[1] - 1], first.shape[1]
    glides = ids[_COUNT, _BENDS] > 0
    if not glides:
        for o in range(wide):
            if first[_SLOPE, o] != 0.0:
                glides = True
                break
    shortest = max(NOTHING * limit, 1e-300)
    a, b, pending, has_far, smallest, hope = start, limit, 0, False, 0.0, 2.0 * HOPEFUL / (limit - start)
    while True:
        n, climbing = 0, 0
        if ids[_COUNT, _BENDS] + ids[_COUNT, _STAIRS] + ids[_COUNT, _SWITCHES] > 0:
            n, climbing = _events(moves, ids, a, b)
        done = n == 0 and climbing == 0 and not glides  # nothing moves within
        if not done and not has_far:
            _first_layer(entry, first, moves, ids, b, False, far)
            smallest = _forward(weights, layout, exit_, bias, leak, closed, far, far32, index, value, need)
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
                _first_spread(entry, first, moves, ids, bounds, a, b, near, far, n, climbing)
                straight = _spread(coarse, layout, exit_, leak32, bounds, gaps, index, near32, far32)
                opens, closes = _room(near, far, outputs, gaps, _ABOVE, 1.0)
                if opens >= closes:
                    done = True
                elif straight:
                    return min(_clear_of_noise(near, far, outputs, a, b, opens, noise), limit), False
                else:
                    new_a = a + opens * length
                    new_b = a + closes * length if closes < 1.0 else b
                    certain, until = _room(near, far, outputs, gaps, _BELOW, -1.0)
                    if certain < until or smallest > 0.0:
                        pending = 0  # the flip lies within: what comes after does not matter
                    if certain < min(until, 1.0):
                        new_b = min(new_b, a + certain * length * (1.0 + 1e-12))
                    new_b = max(new_b, new_a + 1e-12 * length)
                    cut = new_b - new_a > 0.5 * length
                    hope = gaps[_ABOVE, 0] / max(abs(near[outputs]), abs(far[outputs]), 1e-300) / length
            if cut:
                middle = _middle(moves, ids, new_a, new_b, n, climbing)
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
                    _first_layer(entry, first, moves, ids, a, True, near)
                    if _forward(weights, layout, exit_, bias, leak, closed, near, near32, index, value, need) > 0.0:
                        return a, False
                if new_b != b:
                    b, has_far = new_b, False
        if done:
            if pending == 0:
                return np.inf, False
            pending -= 1
            met = has_far and b == later[_FROM, pending]
            a, b = later[_FROM, pending], later[_TO, pending]
            if met and not _jumps_at(moves, ids, a):
                near, far, near32, far32 = far, near, far32, near32
            else:
                _first_layer(entry, first, moves, ids, a, True, near)
                if _forward(weights, layout, exit_, bias, leak, closed, near, near32, index, value, need) > 0.0:
                    return _past(moves, ids, a), True
            has_far = later[_IS_KEPT, pending] > 0.0
            if has_far:
                far[:] = kept[pending]
                smallest = np.inf
                for m in range(outputs, len(far)):
                    smallest = min(smallest, far[m])
                for j in range(outputs):
                    far32[j] = np.float32(min(max(far[j], -1e30), 1e30))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _lay(  # type: ignore[no-untyped-def]
    entry, row, codes, limit, columns, steps, low, high, whole, slope, blocks, starts, targets, lower, first, moves, ids
):  # fmt: skip
    """Say what happens along one direction from this row."""
    bends, stairs, switches, free = 0, 0, 0, True
    for c in range(len(columns)):
        x, step = row[columns[c]], steps[c]
        room = high[c] - x if step > 0.0 else x - low[c]
        if np.isnan(x) or room <= 0.0 or whole[c] or room < abs(step) * limit:
            free = False
    if free:
        first[_SLOPE, :] = slope
    else:
        first[_SLOPE, :] = 0.0
        for c in range(len(columns)):
            column, step = columns[c], steps[c]
            x = row[column]
            room = high[c] - x if step > 0.0 else x - low[c]
            if np.isnan(x) or room <= 0.0:
                continue
            if whole[c]:
                ids[_STAIR_COLUMN, stairs] = column
                moves[_STAIR_STEP, stairs], moves[_STAIR_MOST, stairs] = step, room
                stairs += 1
            elif room < abs(step) * limit:
                ids[_BEND_COLUMN, bends] = column
                moves[_BEND_STEP, bends], moves[_BEND_AT, bends] = step, room / abs(step)
                bends += 1
            else:
                for o in range(first.shape[1]):
                    first[_SLOPE, o] += step * entry[column, o]
    for s in range(len(blocks)):
        code = codes[blocks[s]]
        if lower[s, code] < limit:
            moves[_SWITCH_AT, switches] = lower[s, code]
            ids[_SWITCH_FROM, switches], ids[_SWITCH_TO, switches] = starts[s] + code, starts[s] + targets[s]
            switches += 1
    ids[_COUNT, _BENDS], ids[_COUNT, _STAIRS], ids[_COUNT, _SWITCHES] = bends, stairs, switches


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _rows(  # type: ignore[no-untyped-def]
    begin, end, entry, weights, coarse, layout, exit_, bias, leak, leak32, closed, movers, columns, steps, low, high,
    whole, slopes, switching, blocks, starts, targets, lower, Z, fill, codes, limit, start, need, noise, scalar, jumped,
):  # fmt: skip
    """Every direction from each of these rows."""
    layers, outputs = layout.shape[1] - 1, len(closed)
    wide, units, widest = layout[_AT, 1], layout[_AT, layers], 0
    for layer in range(layers):
        widest = max(widest, layout[_AT, layer + 1] - layout[_AT, layer])
    events = 3
    for i in range(len(slopes)):
        events = max(events, 2 * (movers[i + 1] - movers[i]) + switching[i + 1] - switching[i])
    first, moves, ids = np.zeros((6, wide)), np.zeros((6, events)), np.zeros((7, events), np.int64)
    bounds, gaps = np.zeros((6, widest + 1), np.float32), np.zeros((2, outputs))
    later, kept = np.zeros((3, HALVINGS + events)), np.zeros((KEPT, units + outputs))
    index, value = np.zeros(widest + 1, np.int64), np.zeros(widest + 1)
    origin, near, far = np.zeros(units + outputs), np.zeros(units + outputs), np.zeros(units + outputs)
    origin32, near32, far32 = np.zeros(units, np.float32), np.zeros(units, np.float32), np.zeros(units, np.float32)
    for r in range(begin, end):
        row, rest = Z[r], first[_REST]
        rest[:] = bias[:wide]
        for j in range(len(row)):
            x = fill[j] if np.isnan(row[j]) else row[j]
            if x != 0.0:
                weight = entry[j]
                for o in range(wide):
                    rest[o] += x * weight[o]
        origin[:wide] = rest
        at_rest = _forward(weights, layout, exit_, bias, leak, closed, origin, origin32, index, value, 0.0)
        size = _size_of_terms(layout, exit_, bias, leak, origin)
        for i in range(len(slopes)):
            if not start[i, r] < limit[i, r]:
                continue
            m, s = slice(movers[i], movers[i + 1]), slice(switching[i], switching[i + 1])
            _lay(entry, row, codes[r], limit[i, r], columns[m], steps[m], low[m], high[m], whole[m], slopes[i],
                 blocks[s], starts[s], targets[s], lower[s], first, moves, ids)  # fmt: skip
            if start[i, r] == 0.0 and need[i, r] == 0.0:
                if at_rest > 0.0:  # favourable as it is
                    scalar[i, r] = np.nextafter(0.0, np.inf)
                    continue
                near[:], near32[:] = origin, origin32
            else:
                _first_layer(entry, first, moves, ids, start[i, r], True, near)
                here = _forward(weights, layout, exit_, bias, leak, closed, near, near32, index, value, need[i, r])
                if here > 0.0:
                    scalar[i, r] = _past(moves, ids, start[i, r])
                    continue
            scalar[i, r], jumped[i, r] = _one_ray(
                entry, weights, coarse, layout, exit_, bias, leak, leak32, closed, first, moves, ids, bounds, gaps,
                later, kept, index, value, near, near32, far, far32, limit[i, r], start[i, r], need[i, r], noise * size,
            )  # fmt: skip


# -- the twin ---------------------------------------------------------------------------------------------------------


def first_flip_plain(
    layers: Layers, space: FeatureSpace, row: FloatArray, fill: FloatArray, delta: FloatArray, limit: float
) -> float:
    """The same for one ray, by cutting it at every bend of every unit: slow, and simple enough to trust."""
    edges = [0.0, *_happenings(space, row, delta, limit), limit]
    for a, b in pairwise(edges):
        ends = rays.positions(space, np.repeat(row[None], 2, axis=0), delta, np.array([np.nextafter(a, np.inf), b]))
        first = np.where(np.isnan(ends), fill, ends) @ layers.weights[0] + layers.biases[0]
        found = _first_on_piece(layers, first, a, b)
        if found < np.inf:
            return found
    return np.inf


def _happenings(space: FeatureSpace, row: FloatArray, delta: FloatArray, limit: float) -> list[float]:
    found = rays.row_switches(space, row[None], delta)[0].tolist()
    for f, step in rays.movers(space, delta):
        x, size = row[f.start], abs(step)
        room = max(f.high - x if step > 0 else x - f.low, 0.0)
        if f.whole and not np.isnan(x):
            found += [(n + 0.5) / size for n in range(int(min(room, limit * size + 1.0)))]
        elif np.isfinite(room):
            found.append(room / size)
    return sorted({k for k in found if 0.0 < k < limit})


def _first_on_piece(layers: Layers, first: FloatArray, a: float, b: float) -> float:
    """First root on a piece over which the first layer is straight from one row of ``first`` to the other."""
    t = np.array([0.0, 1.0])
    values = first
    for depth in range(len(layers.leaks)):
        low, high = values[:-1], values[1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(low * high < 0.0, low / (low - high), np.nan)
        crossed = (t[:-1, None] + share * np.diff(t)[:, None])[~np.isnan(share)]
        t = np.unique(np.concatenate([t, crossed]))
        values = first[0] + t[:, None] * (first[1] - first[0])
        for before in range(depth + 1):
            values = np.where(values > 0.0, values, layers.leaks[before] * values)
            values = values @ layers.weights[before + 1] + layers.biases[before + 1]
    low, high = values[:-1], values[1:]
    if (values[0] > 0.0).all():
        return a
    with np.errstate(divide="ignore", invalid="ignore"):
        root = low / (low - high)
        enters = np.where(low > 0.0, 0.0, np.where(high > 0.0, root, 2.0)).max(axis=1)
        leaves = np.where(high > 0.0, 1.0, np.where(low > 0.0, root, -1.0)).min(axis=1)
    inside = np.flatnonzero(enters < leaves)
    if not inside.size:
        return float(np.inf)
    i = inside[0]
    return float(a + (b - a) * (t[i] + enters[i] * (t[i + 1] - t[i])))
