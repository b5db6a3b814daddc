"""What each of many directions moves, in flat arrays for kernels.

The same as :func:`globece.rays.movers` and :func:`globece.rays.switches` for each direction, in the same order, without
a Python loop over directions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from globece.kept import Kept
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray


class Bundle(NamedTuple):
    """What directions move: ``first[d]`` to ``first[d + 1]`` belong to direction d."""

    first_mover: IntArray
    mover: IntArray  # which of the space's scalar features
    column: IntArray
    step: FloatArray
    low: FloatArray
    high: FloatArray
    whole: BoolArray
    first_switch: IntArray
    switch: IntArray  # which of the space's blocks
    start: IntArray  # first column of that block
    size: IntArray
    target: IntArray
    bound: FloatArray  # (switches, most categories) the k past which each category switches


def bundle(space: FeatureSpace, directions: FloatArray) -> Bundle:
    """What each direction moves.

    Examples
    --------
    >>> space = FeatureSpace.from_matrix(np.array([[0.0, 1.0], [2.0, 5.0]]), columns=["a", "b"])
    >>> moves = bundle(space, np.array([[0.0, 2.0], [1.0, -1.0]]))
    >>> moves.first_mover, moves.column, moves.step
    (array([0, 1, 3]), array([1, 0, 1]), array([ 2.,  1., -1.]))
    """
    # the last one is cached: it is needed for the costs of rays, and again for following them
    last = _LAST.known(space)
    if last is None or not np.array_equal(last[0], directions):
        last = _LAST.keep(space, (directions.copy(), _bundled(space, directions)))
    return last[1]


def _bundled(space: FeatureSpace, directions: FloatArray) -> Bundle:
    m, layout = len(directions), _LAYOUTS.get(space, lambda: _make_layout(space))
    steps = directions[:, layout.column]
    owner, mover = np.nonzero((steps != 0.0) & layout.free)
    parts = directions[:, layout.columns]  # (m, blocks, most categories)
    turner, switch = np.nonzero(((parts != 0.0) & layout.real).any(axis=2) & layout.turns)
    part, real = parts[turner, switch], layout.real[switch]
    eligible = np.where(layout.permitted[switch], part, -np.inf)
    target = eligible.argmax(axis=1)
    top = eligible[np.arange(len(part)), target][:, None]
    bound = np.full(part.shape, np.inf)
    with np.errstate(over="ignore"):  # entries that nearly tie never switch: their k overflows
        np.divide(1.0, top - part, out=bound, where=real & (part < top))
    moves = np.isfinite(bound).any(axis=1)
    turner, switch = turner[moves], switch[moves]
    return Bundle(
        _firsts(owner, m),
        mover,
        layout.column[mover],
        steps[owner, mover],
        layout.low[mover],
        layout.high[mover],
        layout.whole[mover],
        _firsts(turner, m),
        switch,
        layout.start[switch],
        layout.size[switch],
        target[moves],
        bound[moves],
    )


class _Layout(NamedTuple):
    """The space's features as arrays, by scalar feature and by block; blocks are padded to the widest."""

    column: IntArray
    free: BoolArray
    low: FloatArray
    high: FloatArray
    whole: BoolArray
    start: IntArray
    size: IntArray
    turns: BoolArray
    columns: IntArray  # (blocks, most categories)
    real: BoolArray
    permitted: BoolArray


def _make_layout(space: FeatureSpace) -> _Layout:
    scalars, blocks = space.scalars, space.blocks
    widest = max((f.width for f in blocks), default=1)
    start = np.array([f.start for f in blocks], dtype=np.int64)
    size = np.array([f.width for f in blocks], dtype=np.int64)
    category = np.arange(widest)
    real = category < size[:, None]
    permitted = np.zeros(real.shape, dtype=bool)
    permitted[real] = [p for f in blocks for p in f.permitted]
    return _Layout(
        np.array([f.start for f in scalars], dtype=np.int64),
        np.array([f.can_move for f in scalars], dtype=bool),
        np.array([f.low for f in scalars], dtype=np.float64),
        np.array([f.high for f in scalars], dtype=np.float64),
        np.array([f.whole for f in scalars], dtype=bool),
        start,
        size,
        np.array([f.can_move for f in blocks], dtype=bool),
        start[:, None] + np.minimum(category, size[:, None] - 1),
        real,
        permitted,
    )


_LAYOUTS: Kept[FeatureSpace, _Layout] = Kept()  # thousands of bundles share one space
_LAST: Kept[FeatureSpace, tuple[FloatArray, Bundle]] = Kept()


def _firsts(owner: IntArray, m: int) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=m))]).astype(np.int64)
