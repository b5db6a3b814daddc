"""Linear models: along a ray every margin is piecewise linear with a few breakpoints.

The favourable side is one or several half-spaces ``W z + b > 0`` that must all hold: one for a binary classifier or a
regressor with a threshold, one per other class for a multi-class one, one per model where several must agree.
Breakpoints are where a range ends, a block switches, or a column passes the edge of a step table. Whole-numbered
features move in many small steps; the straight line through these, with half a step of slack, tells where a flip is
possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from globece.bundle import Bundle, bundle
from globece.errors import ModelError
from globece.models import devices
from globece.models.base import Allowance, Model
from globece.models.clearance import DOUBLE, Summed, rounding_of_columns, rounding_of_probabilities, unit_of_sum
from globece.models.cuda.machine import Gpu, Machine
from globece.models.inputs import Input, Lookup, Number, Steps, centre_of
from globece.models.linear import on_cuda
from globece.models.linear.kernel import sum_up, walk
from globece.parallel import over_rows
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray

FEW_RAYS = 16_384  # not worth another thread
FINEST, LARGEST_EXACT = 2.0**20, 2.0**32  # multiples of 1 / FINEST add up exactly as long as they stay this small
UNSURE = 4.0  # times a margin's rounding error: it may be 0 as well
ROUNDINGS, SUMMED_AT_ONCE = 12.0, 8.0  # error bound of a sum, in unit roundoffs, and how fast it grows with its length


@dataclass(frozen=True)
class LinearModel(Model):
    """Half-spaces over the encoded matrix; favourable where all of them hold.

    Attributes
    ----------
    space
        The space of the encoded matrix.
    weights
        One row per half-space, one column per encoded column: ``(m, width)``.
    intercepts
        ``(m,)``.
    closed
        Whether a margin of exactly 0 counts, by half-space: ``(m,)``.
    fill
        Replaces missing numbers, by encoded column.
    tables
        Step tables, where a column enters by steps (binned columns, ordinal codes).
    name
        What to call the model.
    centre, offsets
        The value that the steps before the model map to 0, by encoded column, and the margins there: sums around it
        do not cancel, even for a column that is large compared with its spread.
    unit
        Unit roundoff of the model's arithmetic.
    head
        Largest rounding error of converting scores to probabilities, in scores.
    stored
        Largest relative rounding of each column, in storage and by the steps before the model.
    replaced
        Rounding error of what replaces a missing number, in each half-space: ``(m, width)``; by default, that of any
        number.
    sizes, terms
        What is summed, for a value of 1 of each encoded column: ``(m, width)``, and how many terms at least. By
        default, the weights.
    """

    space: FeatureSpace
    weights: FloatArray
    intercepts: FloatArray
    closed: BoolArray
    fill: FloatArray
    tables: tuple[StepTable, ...] = ()
    name: str = "linear model"
    centre: FloatArray | None = None
    offsets: FloatArray | None = None
    unit: float = DOUBLE
    head: float = 0.0
    stored: FloatArray | None = None
    replaced: FloatArray | None = None
    sizes: FloatArray | None = None
    terms: int = 0

    exact = True
    allowance = Allowance(3.0, 8_000, 1_000_000)

    @property
    def half_spaces(self) -> LinearModel:
        """Itself."""
        return self

    def __post_init__(self) -> None:
        if not (np.isfinite(self.weights).all() and np.isfinite(self.intercepts).all()):
            raise ModelError(f"{self.name} has weights that are not finite")
        if self.weights.shape[1] != self.space.width or (
            self.centre is not None and self.centre.shape != (self.space.width,)
        ):
            raise ModelError(f"{self.name} was compiled for another space: {self.space.width} columns are expected")

    @classmethod
    def compose(
        cls,
        space: FeatureSpace,
        inputs: Sequence[Input],
        coef: FloatArray,
        intercept: FloatArray,
        *,
        closed: BoolArray | None = None,
        name: str = "linear model",
        probability: float | None = None,
        unit: float | None = None,
        summed: Summed | None = None,
    ) -> LinearModel:
        """Compose half-spaces over a model's inputs with the steps that made these inputs.

        Parameters
        ----------
        space, inputs
            The encoded space, and the model's inputs as functions of it.
        coef, intercept
            Half-spaces over the inputs: ``(m, inputs)`` and ``(m,)``.
        closed
            Whether 0 counts as favourable; ``False`` by default.
        name
            What to call the model.
        probability
            Threshold on the probability, where margins are converted to probabilities.
        unit
            Unit roundoff of the estimator's sums; by default that of the columns' types.
        summed
            What the estimator sums, if that is more than ``coef``.

        Raises
        ------
        ValueError
            If an input is neither linear nor a step table nor a lookup.
        """
        m = len(coef)
        weights, shift, fill = np.zeros((m, space.width)), np.zeros(m), np.full(space.width, np.nan)
        size = np.abs(coef) if summed is None else np.maximum(summed.size, np.abs(coef))
        tables: list[StepTable] = []
        sizes = np.zeros((m, space.width))
        for i, (source, c, most) in enumerate(zip(inputs, coef.T, size.T, strict=True)):
            if isinstance(source, Lookup):
                block = slice(source.start, source.start + len(source.table))
                weights[:, block] += np.outer(c, source.table)
                sizes[:, block] += np.abs(np.outer(most, np.nan_to_num(source.table)))
            elif isinstance(source, Steps):
                added = np.outer(c, source.values_)
                largest = most * np.nan_to_num(np.abs(source.values_)).max(initial=0.0)
                tables.append(StepTable(source.column, source.edges, added, c * source.missing, largest))
            elif source.scale is None or source.shift is None:
                raise ValueError(f"input {i} is not linear")
            else:
                weights[:, source.column] += c * source.scale
                sizes[:, source.column] += np.abs(most * source.scale)
                shift += c * source.shift
                if source.fill is not None:
                    fill[source.column] = source.fill
        if any(isinstance(s, Number) and s.fill is not None and s.fill != fill[s.column] for s in inputs):
            raise ValueError("one column is filled in two ways")
        fill[~weights.any(axis=0)] = 0.0  # a column without weight may be missing, but 0 times NaN would be NaN
        unit, centre = unit_of_sum(space, inputs) if unit is None else unit, centre_of(space, inputs)
        offsets = np.array(intercept, dtype=np.float64)
        replaced = np.zeros((m, space.width))
        for source, c in zip(inputs, coef.T, strict=True):
            if isinstance(source, Number):
                offsets += c * source.values(centre[None])[0]
                replaced[:, source.column] += np.abs(c * _off_when_replaced(source, centre))
        return cls(
            space,
            weights,
            np.asarray(intercept, dtype=float) + shift,
            np.zeros(m, dtype=bool) if closed is None else np.asarray(closed, dtype=bool),
            fill,
            tuple(tables),
            name,
            centre,
            offsets,
            unit,
            rounding_of_probabilities(probability, unit),
            rounding_of_columns(space, inputs),
            replaced,
            sizes,
            0 if summed is None else summed.terms,
        )

    def margins(self, Z: FloatArray) -> FloatArray:
        """Margins of all half-spaces for each row: ``(n, m)``."""
        return self._sums(Z)[0]

    def margin(self, Z: FloatArray) -> FloatArray:
        """Smallest margin of each row."""
        return np.asarray(self.margins(Z).min(axis=1))

    def favourable(self, Z: FloatArray) -> BoolArray:
        """Whether every half-space holds."""
        M = self.margins(Z)
        return np.asarray(((M > 0) | (self.closed & (M == 0))).all(axis=1))

    def first_flip(
        self, Z: FloatArray, directions: FloatArray, limit: FloatArray, start: FloatArray | None = None
    ) -> FloatArray:
        """Smallest k at which each row is favourable; see :meth:`globece.models.base.Model.first_flip`."""
        margins, rounding = self._sums(Z)
        narrow = bool(self.space.rounding.any() or (self.stored is not None and self.stored.any()))
        # Where a margin moves in steps it may be 0 on a whole stretch: only the model itself can decide there.
        unsure = UNSURE * rounding
        # the reported k must hold in whatever order the model sums
        out = self._follow(Z, (margins - rounding, unsure), directions, limit, start, self._shares)
        if narrow and np.isinf(out).any():
            # a ray that flips, but nowhere clearly, is not "no recourse": it stays undecided
            i, j = np.flatnonzero(np.isinf(out).any(axis=1)), np.flatnonzero(np.isinf(out).any(axis=0))
            some = np.ix_(i, j)
            begin = None if start is None else start[some]
            base, exactly = (margins[j], np.zeros((j.size, len(self.weights)))), (0.0, np.zeros(self.space.width))
            nearly = self._follow(Z[j], base, directions[i], limit[some], begin, exactly)
            out[some] = np.where(np.isinf(out[some]) & np.isfinite(nearly), np.nan, out[some])
        return out

    def _follow(
        self,
        Z: FloatArray,
        base: tuple[FloatArray, FloatArray],
        directions: FloatArray,
        limit: FloatArray,
        start: FloatArray | None,
        shares: tuple[float, FloatArray],
    ) -> FloatArray:
        """First scalars at which margins that start from ``base`` are positive in spite of rounding along the ray.

        The second array of ``base`` says by how much they may be larger.
        """
        routes = bundle(self.space, directions)
        weights = _Weights.of(self, routes, shares)
        out = np.empty((len(directions), len(Z)))
        begin = np.zeros((1, 1)) if start is None else np.asarray(start)
        machine = self._machine(routes, limit)
        if machine is not None:
            devices.count(limit.size)
            return on_cuda.follow(machine, Z, base, self.closed, limit, begin, routes, weights)
        follow: Any = walk
        Z, limit = np.ascontiguousarray(Z), np.ascontiguousarray(limit)

        def work(first: int, last: int) -> None:
            follow(first, last, Z, *base, self.closed, limit, begin, *routes, *weights, out)

        over_rows(len(Z), work, few=max(1, FEW_RAYS // max(1, len(directions))))
        return out

    def _machine(self, routes: Bundle, limit: FloatArray) -> Machine | None:
        """A GPU, if there is one and these rays pay for it."""
        work = on_cuda.work_of(routes, limit)
        cupy = devices.cupy_for(work, on_cuda.WORTHWHILE) if work else None
        return None if cupy is None else Gpu(cupy)

    def rounding(self, Z: FloatArray) -> FloatArray:
        """Largest rounding error of each margin of each row: ``(n, m)``.

        From the model's arithmetic, in whatever order it sums, and from the type of each column.
        """
        return self._sums(Z)[1]

    def _sums(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Margins and their largest rounding errors; row by row, so that they do not depend on other rows."""
        margins, rounding = np.empty((len(Z), len(self.weights))), np.empty((len(Z), len(self.weights)))
        rows = np.ascontiguousarray(Z, dtype=np.float64)
        offsets = self.intercepts if self.offsets is None else self.offsets
        kernel: Any = sum_up
        summands, (summed, stored) = (self.weights, self._sizes, offsets), self._shares
        centre, replaced = self._centre, self._off_where_filled

        def work(first: int, last: int) -> None:
            kernel(first, last, rows, self.fill, centre, *summands, summed, stored, replaced, margins, rounding)

        if len(Z):
            over_rows(len(Z), work, few=FEW_RAYS)
        rounding += self.head
        for table in self.tables:
            margins += table.values(Z).T
            rounding += summed * table.size
        return margins, rounding

    @cached_property
    def _centre(self) -> FloatArray:
        return np.zeros(self.space.width) if self.centre is None else self.centre

    @cached_property
    def _off_where_filled(self) -> FloatArray:
        """Largest rounding error of each weight's product with what replaces a missing number."""
        filled = np.where(np.isnan(self.fill), 0.0, self.fill)
        if self.replaced is None:
            return np.asarray(np.abs(self.weights * filled) * self._shares[1])
        return np.asarray(np.abs(self.weights * (filled - self._centre)) * self._shares[1] + self.replaced)

    @cached_property
    def _sizes(self) -> FloatArray:
        return np.abs(self.weights) if self.sizes is None else self.sizes

    @property
    def _times(self) -> float:
        """Relative error bound of a sum, in unit roundoffs."""
        n = len(self.space.features) + self.terms
        return min(ROUNDINGS, n + 2.0) + n / SUMMED_AT_ONCE  # a sum of n terms is rounded about n times

    @cached_property
    def _is_exact(self) -> bool:
        """Whether sums are exact in any order: of whole numbers times small multiples of a power of 2."""
        used = [f for f in self.space.features if self._sizes[:, f.columns].any()]
        if self.terms or self.unit > DOUBLE or (self.centre is not None and self.centre.any()):
            return False
        if self.head or not all(f.is_block or (f.whole and np.isfinite([f.low, f.high]).all()) for f in used):
            return False
        tables = [part for t in self.tables for part in (t.added, t.size)]
        parts = np.concatenate([np.ravel(a) for a in (self.weights, self._sizes, self.intercepts, *tables)])
        filled = np.nan_to_num(self.fill)
        most = max([1.0, *(max(map(abs, (f.low, f.high, *f.observed))) for f in used if not f.is_block)])
        largest = max(most, float(np.abs(filled).max(initial=0.0))) * float(np.abs(parts).sum())
        # a table that was not added up from dyadic parts, or a replacement that is no whole number, rounds
        scaled = np.concatenate([parts * FINEST, filled])
        return bool(largest < LARGEST_EXACT and (np.rint(scaled) == scaled).all())

    @cached_property
    def _shares(self) -> tuple[float, FloatArray]:
        """Relative rounding errors: of a sum, and of each column's stored value."""
        if self._is_exact:
            return 0.0, np.zeros(self.space.width)
        stored = self.space.rounding if self.stored is None else self.stored
        return self._times * self.unit, 4.0 * DOUBLE + 1.01 * stored


def _off_when_replaced(source: Number, centre: FloatArray) -> float:
    """How far the value for a missing number is from the line through the centre, in either precision."""
    if source.fill is None or source.scale is None or source.shift is None:
        return 0.0
    known = source.scale * (source.fill - centre[source.column]) + source.values(centre[None])[0]
    found = (source.values(np.full((1, len(centre)), np.nan))[0], source.scale * source.fill + source.shift)
    return float(max(abs(value - known) for value in found))


@dataclass(frozen=True, slots=True)
class StepTable:
    """A step function of one column that is added to each half-space's margin."""

    column: int
    edges: FloatArray  # ascending; piece i holds edges[i-1] < z <= edges[i]
    added: FloatArray  # (m, pieces)
    missing: FloatArray  # (m,)
    largest: FloatArray | None = None  # (m,) what is summed for it, at most

    @property
    def size(self) -> FloatArray:
        """What is summed for it, at most: ``(m,)``."""
        return np.nan_to_num(np.abs(self.added)).max(axis=1) if self.largest is None else self.largest

    def values(self, Z: FloatArray) -> FloatArray:
        """What is added for each row: ``(m, n)``."""
        z = Z[:, self.column]
        found = self.added[:, np.searchsorted(self.edges, z, side="left").clip(0, len(self.edges))]
        return np.where(np.isnan(z), self.missing[:, None], found)


class _Weights(NamedTuple):
    """How the moves of a bundle change each half-space's margin."""

    weight: FloatArray  # (movers, m)
    first_edge: IntArray  # of each mover
    edge: FloatArray
    jump: FloatArray  # (edges, m) what passing an edge upwards adds
    gain: FloatArray  # (switches, most categories, m) what leaving a category for the target adds

    @classmethod
    def of(cls, model: LinearModel, routes: Bundle, shares: tuple[float, FloatArray]) -> _Weights:
        W, m, column = model.weights, len(model.weights), routes.column
        summed, stored = shares
        size, sizes = np.abs(W.T), model._sizes.T
        # rounding errors grow along the ray, and count against each move
        grown = summed * sizes[column] + stored[column][:, None] * size[column]
        moving = W.T[column] - np.sign(routes.step)[:, None] * grown
        tables: dict[int, list[StepTable]] = {}
        for t in model.tables:
            tables.setdefault(t.column, []).append(t)
        mine = [tables.get(int(c), []) for c in column] if tables else [[]] * len(column)
        category = np.minimum(np.arange(routes.bound.shape[1]), routes.size[:, None] - 1)
        there, here = routes.start + routes.target, routes.start[:, None] + category
        grown = summed * np.maximum(sizes[there][:, None, :] - sizes[here], 0.0)
        return cls(
            np.ascontiguousarray(moving),
            np.cumsum([0, *(sum(len(t.edges) for t in some) for some in mine)]),
            np.concatenate([np.zeros(0), *(t.edges for some in mine for t in some)]),
            np.vstack([np.zeros((0, m)), *(np.diff(t.added, axis=1).T for some in mine for t in some)]),
            np.ascontiguousarray(W.T[there][:, None, :] - W.T[here] - grown),
        )
