"""Cells: intervals of a feature that no split of an ensemble distinguishes, and the cost for a row to get there.

The splits cut each dimension (a column, or a block of categories) into cells. Within a cell only the value nearest to
the row matters, so each row has finitely many candidate points. A *reach* lists the cells that one row can reach, with
the nearest value and its cost; costs rise on both sides of the row's own cell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from globece.bounds.attained import rounded_range
from globece.bounds.boxes import MOST_CATEGORIES, Boxes
from globece.costs import CostModel
from globece.models.trees.layout import Trees
from globece.space import Feature, FeatureSpace, FloatArray, IntArray

Int32Array = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Grid:
    """The dimensions that an ensemble tests, and the sides of its leaves' boxes as ranges of cells."""

    features: tuple[Feature, ...]  # of each dimension
    cuts: tuple[FloatArray, ...]  # of each; cell i holds cuts[i-1] < z <= cuts[i]; empty for a block
    dimension: Int32Array  # (sides,) index into `features`
    first_cell: Int32Array  # (sides,) for a column
    last_cell: Int32Array
    loose: NDArray[np.bool_]  # (dimensions,) whether a side may be smaller than its range of cells

    @classmethod
    def of(cls, boxes: Boxes, trees: Trees, space: FeatureSpace) -> Grid:
        """Find the cells of an ensemble."""
        columns = {f.start: f for f in space.scalars}
        used = np.unique(boxes.dimension)
        features = tuple(columns[d] if d < space.width else space.blocks[d - space.width] for d in used)
        dimension = np.searchsorted(used, boxes.dimension).astype(np.int32)
        first, last = np.zeros(len(dimension), np.int32), np.zeros(len(dimension), np.int32)
        cuts, loose = [], np.zeros(len(used), dtype=bool)
        for d, f in enumerate(features):
            mine = dimension == d
            if f.is_block:
                cuts.append(np.zeros(0))
                loose[d] = f.width > MOST_CATEGORIES
                continue
            odd = [
                trees.odd_cut[trees.odd_start[i] : trees.odd_start[i + 1]]
                for i in np.flatnonzero(trees.odd_slot == f.start)
            ]
            loose[d] = bool(odd)
            every = np.unique(np.concatenate([boxes.low[mine], boxes.high[mine], *odd]))
            edges = every[np.isfinite(every)]
            cuts.append(edges)
            # an empty box has its last cell before its first
            first[mine] = np.where(np.isneginf(boxes.low[mine]), 0, np.searchsorted(edges, boxes.low[mine]) + 1)
            last[mine] = np.searchsorted(edges, boxes.high[mine])
        return cls(features, tuple(cuts), dimension, first, last, loose)


class Reach(NamedTuple):
    """The cells that one row can reach, dimension by dimension."""

    start: IntArray  # (dimensions + 1,) where each dimension's cells begin
    cost: FloatArray  # (cells,) of a category, or of the nearest value in a cell; squared for l2
    value: FloatArray  # (cells,) category or value
    cell: Int32Array  # (cells,) index among all cells of the dimension
    home: Int32Array  # (dimensions,) the row's own cell, among those within reach
    missing: NDArray[np.uint8]  # (dimensions,) 1 where the value is missing, and stays so
    free: NDArray[np.uint8]  # (dimensions,) 1 for a block with too many categories: changes are taken to cost nothing
    block: NDArray[np.uint8]  # (dimensions,) 1 for a block


def reach_of(grid: Grid, cost: CostModel, x: FloatArray, rounding: FloatArray) -> Reach:
    """List the cells that one row can reach.

    Parameters
    ----------
    grid, cost
        The cells and the prices.
    x
        The row, encoded.
    rounding
        Relative rounding of each encoded column that has a narrower type; a cell may be reached that much earlier.
    """
    values, prices, cells, home, missing = [], [], [], [], np.zeros(len(grid.features), np.uint8)
    free = np.zeros(len(grid.features), np.uint8)
    for d, f in enumerate(grid.features):
        if f.is_block:
            here = int(x[f.columns].argmax())
            free[d] = f.width > MOST_CATEGORIES
            may = np.array([f.can_move and p for p in f.permitted]) & (free[d] == 0)
            may[here] = True
            found = np.flatnonzero(may)
            values.append(found.astype(np.float64))
            prices.append(np.where(found == here, 0.0, cost.weight(f)))
            cells.append(found)
            home.append(int(np.flatnonzero(found == here)[0]))
            continue
        z = float(x[f.start])
        if np.isnan(z):
            missing[d] = 1
            value, cell = np.array([z]), np.zeros(1, dtype=np.int64)
            price = np.zeros(1)
        else:
            unit = float(rounding[f.start])
            low, high = rounded_range(f, unit)
            value, cell = nearest(replace(f, low=low, high=high), z, grid.cuts[d])
            near = value
            if unit:
                toward = 2.0 * unit * np.abs(value)
                near = np.where(value > z, np.maximum(value - toward, z), np.minimum(value + toward, z))
            price = np.where(value == z, 0.0, cost.change(f, np.full(len(value), z), near))
        values.append(value)
        prices.append(price)
        cells.append(cell)
        home.append(0 if np.isnan(z) else int(np.flatnonzero(value == z)[0]))
    paid = np.concatenate([np.zeros(0), *prices])
    return Reach(
        np.cumsum([0, *(len(v) for v in values)]).astype(np.int64),
        paid * paid if cost.norm == "l2" else paid,
        np.concatenate([np.zeros(0), *values]),
        np.concatenate([np.zeros(0), *cells]).astype(np.int32),
        np.array(home, dtype=np.int32),
        missing,
        free,
        np.array([f.is_block for f in grid.features], dtype=np.uint8),
    )


def nearest(f: Feature, x: float, cuts: FloatArray) -> tuple[FloatArray, IntArray]:
    """The value nearest to x in every cell that a row at x can reach, ascending, and the indices of these cells.

    A feature stays where it is or moves within its range, in its allowed sense. A whole-numbered one moves by whole
    steps, from the end of the range if it starts outside, or to an end of the range.
    """
    here = int(np.searchsorted(cuts, x))
    below, above = np.append(-np.inf, cuts), np.append(cuts, np.inf)  # open and closed ends of each cell
    cell = np.arange(len(below))
    up = np.maximum(np.nextafter(below, np.inf), f.low)
    down = np.minimum(above, f.high)
    if f.whole:
        # a row outside its range starts from the end at which it enters
        up = _stepwise(max(x, f.low), up, f.high, rising=True)
        down = _stepwise(min(x, f.high), down, f.low, rising=False)
    rises = (cell > here) & (up > x) & (up > below) & (up <= above) & (up <= f.high) & (f.sense >= 0)
    falls = (cell < here) & (down < x) & (down > below) & (down <= above) & (down >= f.low) & (f.sense <= 0)
    stays = cell == here
    reached = stays | ((rises | falls) & f.can_move)
    value = np.where(stays, x, np.where(cell > here, up, down))
    return value[reached], cell[reached]


def _stepwise(base: float, wanted: FloatArray, end: float, *, rising: bool) -> FloatArray:
    """The first value at or past each wanted one that whole steps reach; the last step is clipped to the range."""
    with np.errstate(invalid="ignore"):
        steps = base + (np.ceil(wanted - base) if rising else np.floor(wanted - base))
        short = steps < wanted if rising else steps > wanted  # the difference was rounded
    steps = np.where(short, steps + (1.0 if rising else -1.0), steps)
    return np.minimum(steps, end) if rising else np.maximum(steps, end)
