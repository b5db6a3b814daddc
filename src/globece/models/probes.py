"""Synthetic rows on which to probe a model."""

from __future__ import annotations

import numpy as np

from globece.space import Feature, FeatureSpace, FloatArray, IntArray


def _ends(f: Feature) -> tuple[float, float]:
    """Range of a column: the observed one, or the allowed one if it may move, extended where that is infinite."""
    low, high = f.observed
    if not f.can_move:
        return low, high
    room = (high - low) or 1.0
    return f.low if np.isfinite(f.low) else low - room, f.high if np.isfinite(f.high) else high + room


def values(f: Feature, n: int, rng: np.random.Generator) -> FloatArray:
    """Values of a continuous or ordinal feature, drawn uniformly over its range and at its ends."""
    low, high = _ends(f)
    values = rng.uniform(low, high, n)
    values[: n // 8], values[n // 8 : n // 4] = low, high
    values = rng.permutation(values)
    return np.rint(values) if f.whole or f.kind == "ordinal" else values


def codes(f: Feature, n: int, rng: np.random.Generator) -> IntArray:
    """Categories in random order, all about equally often."""
    return rng.permutation(np.resize(rng.permutation(f.width), n))


def drawn(space: FeatureSpace, n: int, rng: np.random.Generator) -> FloatArray:
    """Encoded rows that the space allows, with independently drawn columns."""
    out = np.zeros((n, space.width))
    for f in space.features:
        if f.is_block:
            out[np.arange(n), f.start + codes(f, n, rng)] = 1.0
        else:
            out[:, f.start] = values(f, n, rng)
    return out
