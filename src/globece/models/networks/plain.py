"""The plain NumPy twin of :mod:`globece.models.networks.rays`: slow and simple."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from globece import rays
from globece.models.networks.layers import Layers
from globece.space import FeatureSpace, FloatArray


def first_flip_plain(
    layers: Layers, space: FeatureSpace, row: FloatArray, fill: FloatArray, delta: FloatArray, limit: float
) -> float:
    """First flip of one ray, found by cutting it at every bend of every unit."""
    edges = [0.0, *_breakpoints(space, row, delta, limit), limit]
    for a, b in pairwise(edges):
        # slightly inside: right at an end, rounding decides whether a whole step has been taken
        inside = np.array([np.nextafter(a * (1.0 + 1e-14), np.inf), b * (1.0 - 1e-14)])
        ends = rays.positions(space, np.repeat(row[None], 2, axis=0), delta, inside)
        first = np.where(np.isnan(ends), fill, ends) @ layers.weights[0] + layers.biases[0]
        found = _first_on_piece(layers, first, a, b)
        if found < np.inf:
            return found
    return np.inf


def _breakpoints(space: FeatureSpace, row: FloatArray, delta: FloatArray, limit: float) -> list[float]:
    found = rays.row_switches(space, row[None], delta)[0].tolist()
    for f, step in rays.movers(space, delta):
        x, size = float(rays.entered(f, row[f.start], step)), abs(step)
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
