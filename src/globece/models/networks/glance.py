"""Approximate rays through a network, for a search that compares thousands of directions.

The network is evaluated at a few scalars, before and after each switch, and its score is interpolated linearly between
the last unfavourable and the first favourable one. A flip that comes and goes between two scalars is missed: the
directions that a search returns are followed exactly, by :mod:`globece.models.networks.rays`.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from globece.models.networks.layers import Net
from globece.models.networks.moves import (
    ENTERS,
    PLAIN,
    UNCOUNTABLE,
    at_rest_first,
    first_layer,
    just_past,
    lay_out,
    make_plan,
    most_events,
)
from globece.models.networks.scratch import AT, BENDS, COUNT, REST, SLOPE, STAIRS, SWITCH_AT, SWITCHES
from globece.models.networks.units import forward
from globece.parallel import over_rows
from globece.space import FeatureSpace, FloatArray

FEW = 8192  # rays that are not worth another thread
SHARES = np.array([0.02, 0.05, 0.09, 0.13, 0.18, 0.24, 0.31, 0.4, 0.5, 0.62, 0.78, 1.0])  # of the limit: where to look


def glance(
    net: Net, space: FeatureSpace, Z: FloatArray, fill: FloatArray, D: FloatArray, limit: FloatArray
) -> FloatArray:
    """Approximate first scalar at which all outputs are positive: ``(m, n)``, ``inf`` where none was found."""
    plan = make_plan(space, D, net.entry)
    codes = space.block_codes(Z)
    scalar = np.full((len(D), len(Z)), np.inf)
    rows, fills, ends = (np.ascontiguousarray(a) for a in (Z, fill, limit))
    # single precision is enough, and takes half the time
    exit_, bias = net.exit.astype(np.float32), net.bias.astype(np.float32)
    single = (net.entry, net.coarse, net.layout, exit_, bias, net.coarse_leak, net.closed)
    kernel: Any = _rows

    def work(a: int, b: int) -> None:
        kernel(a, b, *single, *plan, rows, fills, codes, ends, scalar)

    if scalar.size:
        over_rows(len(Z), work, few=max(1, FEW // len(D)))
    return scalar


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _next_switch(moves, ids, k):  # type: ignore[no-untyped-def]
    """The first switch at k or later."""
    found = np.inf
    for i in range(ids[COUNT, SWITCHES]):
        if k <= moves[SWITCH_AT, i] < found:
            found = moves[SWITCH_AT, i]
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _along(  # type: ignore[no-untyped-def]
    entry, weights, layout, exit_, bias, leak, closed, first, moves, ids, index, value, units, spare, limit, score
):  # fmt: skip
    """Approximate first favourable scalar of one ray; ``score`` is the one at rest."""
    glides = ids[COUNT, BENDS] + ids[COUNT, STAIRS] > 0
    for o in range(first.shape[1]):
        if first[SLOPE, o] != 0.0:
            glides = True
            break
    k, share = 0.0, 0
    while k < limit:
        switch = _next_switch(moves, ids, k)
        after = limit
        if glides:
            while share < len(SHARES) and SHARES[share] * limit <= k:
                share += 1
            after = SHARES[share] * limit if share < len(SHARES) else limit
        turns = switch < limit and switch <= after
        after = min(switch, after)
        if glides and after > k:
            first_layer(entry, first, moves, ids, after, False, units)
            there = forward(weights, layout, exit_, bias, leak, closed, units, spare, index, value, 0.0)
            if there > 0.0:
                return k + (after - k) * score / (score - there)
            score = there
        if turns:
            first_layer(entry, first, moves, ids, after, True, units)
            score = forward(weights, layout, exit_, bias, leak, closed, units, spare, index, value, 0.0)
            if score > 0.0:
                return just_past(moves, ids, after)
            after = np.nextafter(after, np.inf)
        k = after
    return np.inf


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _rows(  # type: ignore[no-untyped-def]
    begin, end, entry, weights, layout, exit_, bias, leak, closed, movers, columns, steps, low, high, whole, slopes,
    switching, blocks, starts, targets, lower, Z, fill, codes, limit, scalar,
):  # fmt: skip
    """Every direction from each of these rows."""
    layers, outputs = layout.shape[1] - 1, len(closed)
    wide, units, widest = layout[AT, 1], layout[AT, layers], 0
    for layer in range(layers):
        widest = max(widest, layout[AT, layer + 1] - layout[AT, layer])
    events = most_events(movers, switching)
    first, moves, ids = np.zeros((6, wide)), np.zeros((7, events)), np.zeros((7, events), np.int64)
    index, value = np.zeros(widest + 1, np.int64), np.zeros(max(widest, outputs) + 1, np.float32)
    here, spare = np.zeros(units + outputs, np.float32), np.zeros(units, np.float32)
    for r in range(begin, end):
        row, rest = Z[r], first[REST]
        at_rest_first(entry, row, fill, bias, rest)
        here[:wide] = rest
        at_rest = forward(weights, layout, exit_, bias, leak, closed, here, spare, index, value, 0.0)
        changed = False
        for i in range(len(slopes)):
            if at_rest > 0.0:
                scalar[i, r] = np.nextafter(0.0, np.inf)
                continue
            if np.isnan(at_rest):  # a missing value without a replacement
                continue
            m, s = slice(movers[i], movers[i + 1]), slice(switching[i], switching[i + 1])
            if changed:  # the last direction moved what is at rest
                at_rest_first(entry, row, fill, bias, rest)
            kind = lay_out(
                entry, row, codes[r], limit[i, r], columns[m], steps[m], low[m], high[m], whole[m], slopes[i],
                blocks[s], starts[s], targets[s], lower[s], first, moves, ids
            )  # fmt: skip
            changed, score = kind != PLAIN, at_rest
            if kind == UNCOUNTABLE:
                continue
            if kind == ENTERS:
                first_layer(entry, first, moves, ids, 0.0, True, here)
                score = forward(weights, layout, exit_, bias, leak, closed, here, spare, index, value, 0.0)
                if score > 0.0:
                    scalar[i, r] = just_past(moves, ids, 0.0)
                    continue
            scalar[i, r] = _along(
                entry, weights, layout, exit_, bias, leak, closed, first, moves, ids, index, value, here, spare,
                limit[i, r], score,
            )  # fmt: skip
