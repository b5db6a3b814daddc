"""Rows that nobody gave, to ask a model something about itself."""

from __future__ import annotations

import numpy as np

from globece.space import Feature, FeatureSpace, FloatArray, IntArray


def _ends(f: Feature) -> tuple[float, float]:
    """Where a column may be: where it was seen, or its range if it may move, or twice as much where that is endless."""
    low, high = f.observed
    if not f.can_move:
        return low, high
    room = (high - low) or 1.0
    return f.low if np.isfinite(f.low) else low - room, f.high if np.isfinite(f.high) else high + room


def values(f: Feature, n: int, rng: np.random.Generator) -> FloatArray:
    """Values of a continuous or ordinal feature: evenly drawn over where it may be, and its very ends."""
    low, high = _ends(f)
    values = rng.uniform(low, high, n)
    values[: n // 8], values[n // 8 : n // 4] = low, high
    values = rng.permutation(values)
    return np.rint(values) if f.whole or f.kind == "ordinal" else values


def codes(f: Feature, n: int, rng: np.random.Generator) -> IntArray:
    """Categories, each as often as any other, in no order."""
    return rng.permutation(np.resize(rng.permutation(f.width), n))


def drawn(space: FeatureSpace, n: int, rng: np.random.Generator) -> FloatArray:
    """Encoded rows drawn column by column from all that the space allows."""
    out = np.zeros((n, space.width))
    for f in space.features:
        if f.is_block:
            out[np.arange(n), f.start + codes(f, n, rng)] = 1.0
        else:
            out[:, f.start] = values(f, n, rng)
    return out
