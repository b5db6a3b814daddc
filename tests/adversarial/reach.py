"""Rows that somebody could become by any change at all: all of them where they are few, random ones elsewhere."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.adversarial.tables import Column
from tests.adversarial.walk import Rows, Walk

MOST = 3000


def choices(walk: Walk, column: Column, row: int) -> NDArray[Any] | None:
    """Every value that the row may have in this column, its own first; ``None`` if there is no end of them."""
    own = column.values[row : row + 1]
    if column.name in walk.ask.constraints["immutable"] or not walk.space[column.name].can_move:
        return own
    if column.kind == "number" or (column.is_number and not walk.ask.whole[column.name]):
        return None
    if walk.space[column.name].is_block:
        known = np.arange(len(walk.space[column.name].categories))
        levels = walk.levels(column, known)
        given = walk.ask.constraints["permitted"].get(column.name)
        kept = [v for v in levels if given is None or any(v == g or str(v) == str(g) for g in given)]
        others = [v for v in kept if repr(v) != repr(own[0])]
    else:
        x, (low, high) = float(walk.number(column, own)[0]), walk.bounds(column)
        if np.isnan(x):
            return own
        sense = walk.ask.sense(column.name)
        low, high = (x if sense > 0 else low), (x if sense < 0 else high)
        if not np.isfinite(high - low) or high - low > MOST:
            return None
        steps = np.arange(np.ceil(low), high + 1) if high >= low else np.zeros(0)
        steps = steps[steps != x]
        others = list(steps) if column.is_number else list(walk.levels(column, steps.astype(np.int64)))
    out = np.empty(1 + len(others), dtype=object)
    out[:] = [own[0], *others]
    return out.astype(np.float64) if column.is_number else out


def everything(walk: Walk, row: int) -> Rows | None:
    """All rows that this one may become, itself included; ``None`` if they are too many."""
    found = [choices(walk, c, row) for c in walk.table.columns]
    if any(f is None for f in found) or np.prod([len(f) for f in found if f is not None], dtype=float) > MOST:
        return None
    combined = list(product(*(range(len(f)) for f in found if f is not None)))
    index = np.array(combined, dtype=np.int64).reshape(len(combined), -1)
    return {
        c.name: f[index[:, i]] for i, (c, f) in enumerate(zip(walk.table.columns, found, strict=True)) if f is not None
    }


def some(walk: Walk, row: int, n: int, rng: np.random.Generator) -> Rows:
    """Random rows that this one may become; few of its columns change in each."""
    out: Rows = {}
    share = min(0.5, 2.0 / len(walk.table.columns))
    for c in walk.table.columns:
        own = np.repeat(c.values[row : row + 1], n)
        known = choices(walk, c, row)
        drawn = _numbers(walk, c, own, rng) if known is None else known[rng.integers(0, len(known), n)]
        out[c.name] = np.where(rng.random(n) < share, drawn, own)
    return out


def _numbers(walk: Walk, c: Column, own: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    width = float(np.nanmax(c.values) - np.nanmin(c.values)) or 1.0
    low, high = walk.bounds(c)
    x = float(own[0])
    low, high = max(low, min(x, np.nanmin(c.values)) - width), min(high, max(x, np.nanmax(c.values)) + width)
    sense = walk.ask.sense(c.name)
    low, high = (x if sense > 0 else low), (x if sense < 0 else high)
    if np.isnan(x) or not low <= high:
        return own
    near = x + width * rng.normal(size=len(own)) * 10.0 ** rng.uniform(-3, 0, len(own))
    drawn = np.where(rng.random(len(own)) < 0.5, rng.uniform(low, high, len(own)), np.clip(near, low, high))
    if walk.is_whole(c):
        drawn = np.clip(np.rint(drawn), np.ceil(low), np.floor(high))
    return np.clip(c.narrow(drawn), low, high)
