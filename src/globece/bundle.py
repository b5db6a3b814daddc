"""Many directions at once, made ready for kernels: what each of them moves, in flat arrays.

It says the same as :func:`globece.rays.movers` and :func:`globece.rays.switches` say of one direction, in the same
order, without a Python loop over directions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray


class Bundle(NamedTuple):
    """What directions move, in lists of unequal length: ``first[d]`` to ``first[d + 1]`` belong to direction d."""

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
    bound: FloatArray  # (switches, most categories) the k that each category must exceed to switch


def bundle(space: FeatureSpace, directions: FloatArray) -> Bundle:
    """Say what each direction moves.

    Examples
    --------
    >>> space = FeatureSpace.from_matrix(np.array([[0.0, 1.0], [2.0, 5.0]]), columns=["a", "b"])
    >>> made = bundle(space, np.array([[0.0, 2.0], [1.0, -1.0]]))
    >>> made.first_mover, made.column, made.step
    (array([0, 1, 3]), array([1, 0, 1]), array([ 2.,  1., -1.]))
    """
    m, scalars = len(directions), space.scalars
    columns = np.array([f.start for f in scalars], dtype=np.int64)
    free = np.array([f.can_move for f in scalars], dtype=bool)
    steps = directions[:, columns] if len(columns) else np.zeros((m, 0))
    owner, mover = np.nonzero((steps != 0.0) & free)
    low, high = np.array([f.low for f in scalars]), np.array([f.high for f in scalars])
    whole = np.array([f.whole for f in scalars], dtype=bool)

    targets, bounds, active = [], [], []
    widest = max((f.width for f in space.blocks), default=1)
    for f in space.blocks:
        part = directions[:, f.columns]
        eligible = np.where(f.permitted, part, -np.inf)
        target = eligible.argmax(axis=1)
        top = eligible.max(axis=1, initial=-np.inf)[:, None]
        bound = np.full((m, widest), np.inf)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # near ties switch beyond all numbers
            bound[:, : f.width] = np.where((part < top) & np.isfinite(top), 1.0 / (top - part), np.inf)
        targets.append(target)
        bounds.append(bound)
        active.append(np.isfinite(bound).any(axis=1) & part.any(axis=1) & f.can_move)
    if space.blocks:
        turner, switch = np.nonzero(np.column_stack(active))
        target, bound = np.column_stack(targets)[turner, switch], np.stack(bounds, axis=1)[turner, switch]
    else:
        turner = switch = target = np.zeros(0, dtype=np.int64)
        bound = np.zeros((0, widest))
    starts = np.array([f.start for f in space.blocks], dtype=np.int64)
    sizes = np.array([f.width for f in space.blocks], dtype=np.int64)
    return Bundle(
        _firsts(owner, m),
        mover,
        columns[mover],
        np.ascontiguousarray(steps[owner, mover]),
        low[mover].astype(np.float64),
        high[mover].astype(np.float64),
        whole[mover],
        _firsts(turner, m),
        switch,
        starts[switch],
        sizes[switch],
        target,
        np.ascontiguousarray(bound),
    )


def _firsts(owner: IntArray, m: int) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=m))]).astype(np.int64)
