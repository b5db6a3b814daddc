"""How one slot moves along a ray, and the scalar at which it passes a threshold.

A scalar is the smallest double at which :func:`globece.rays.travel` passes the threshold, so it holds for the exact
positions that the user's model gets.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from globece.models.trees.layout import Trees
from globece.space import FloatArray

LINEAR, WHOLE, SWITCH = 1, 2, 3  # how a slot moves; 0 where it does not
SMALLEST_DOUBLE, LARGEST_DOUBLE = 5e-324, float(np.finfo(np.float64).max)
ROUNDING = 4e-15  # more than the relative rounding error of `travel` and its inverse


@njit(cache=True, error_model="numpy")
def above(k: float) -> float:
    """Next double above a non-negative one."""
    return np.int64(np.float64(k).view(np.int64) + 1).view(np.float64)


@njit(cache=True, error_model="numpy")
def below(k: float) -> float:
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
        gap = above(size) - size if threshold >= 0.0 else size - below(size)
        k = ((threshold - x) + 0.5 * gap) / step
    elif rising:
        k = above((np.floor(threshold - x) + 0.5) / step)
    else:
        k = above((np.ceil(x - threshold) - 0.5) / -step)
    if k > 0.0 and k <= limit:
        # That is right to a few units in the last place.
        for _ in range(8):
            if (value_at(k, kind, x, step, low, high, 0.0, 0.0) > threshold) != rising:
                k = above(k)
                if k > limit:
                    break
            elif (value_at(below(k), kind, x, step, low, high, 0.0, 0.0) > threshold) == rising:
                k = below(k)
            else:
                return k
    first, last = np.int64(0), np.float64(limit).view(np.int64)
    while last - first > 1:
        middle = np.int64((first + last) >> 1)
        if (value_at(middle.view(np.float64), kind, x, step, low, high, 0.0, 0.0) > threshold) == rising:
            last = middle
        else:
            first = middle
    return np.int64(last).view(np.float64)


@njit(cache=True, error_model="numpy")
def piece(odd_cut: FloatArray, start: int, value: float, category: bool) -> int:
    """Piece of an odd predicate that a value lies in."""
    if category:
        return start + int(value)
    while value > odd_cut[start]:
        start += 1
    return start


@njit(cache=True, error_model="numpy")
def soonest(kind: int, origin: float, step: float, pace: float, when: float, threshold: float) -> float:
    """A scalar that is quickly known, and not above the one of :func:`flip_at`."""
    if kind == SWITCH:
        return when
    far = (threshold - origin) if step > 0.0 else (origin - threshold)
    far -= ROUNDING * (abs(threshold) + abs(origin))  # with rounding and half steps, it comes no earlier than this
    return max(0.0, (far - 0.5 if kind == WHOLE else far) * pace)


@njit(cache=True, error_model="numpy")
def next_cut(trees: Trees, odd: int, width: int, here: float, final: float) -> tuple[float, bool]:
    """The cut at which a slot first changes an odd predicate before its final value, and whether there is one."""
    slot, start = trees.odd_slot[odd], trees.odd_start[odd]
    is_block = slot >= width
    at = piece(trees.odd_cut, start, here, is_block)
    last = piece(trees.odd_cut, start, final, is_block)
    side, onwards = trees.odd_side[at], 1 if last > at else -1
    if is_block:
        return 0.0, trees.odd_side[last] != side
    while at != last:
        at += onwards
        if trees.odd_side[at] != side:
            return trees.odd_cut[at - 1 if onwards > 0 else at], True
    return 0.0, False
