"""Linear models, exactly: along a ray every margin is a straight line between a few breakpoints.

The favourable side is one or several half-spaces ``W z + b > 0`` that must all hold: one for a binary classifier or a
regressor with a threshold, one per other class for a multi-class one, one per model where several must agree.
Breakpoints are where a range ends, a block switches, or a column passes the edge of a step table. Whole-numbered
features move in many small steps; there the straight line through them, with half a step of slack, tells where it is
worth looking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np

from globece.bundle import Bundle, bundle
from globece.errors import ModelError
from globece.models.base import Allowance, Model
from globece.models.clearance import DOUBLE, rounding_of_chances, rounding_of_columns, unit_of_sum
from globece.models.inputs import Input, Lookup, Number, Steps, centre_of
from globece.models.passing import LARGEST, above, after_steps, pass_edge
from globece.parallel import over_rows
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray

FEW_RAYS = 16_384  # not worth another thread
ROUNDINGS, SUMMED_AT_ONCE = 12.0, 8.0  # that a sum may add up to: some, and more for a long one
FEW_STEPS = 16  # whole steps that are looked at one by one
MOST_LOOKS = 10_000  # stretches of whole steps along one ray: where this is not enough, the answer is NaN


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
        What stands for a missing number, by encoded column.
    tables
        Step tables, where a column enters by steps (binned columns, ordinal codes).
    name
        What to call the model.
    centre, offsets
        Where the steps before the model have their zero, by encoded column, and the margins there: around it nothing
        is lost, however large a column is against its spread.
    unit
        Rounding unit of the model's own arithmetic.
    head
        What making probabilities of the scores may cost, in scores.
    stored
        Largest relative rounding of each column, as it is stored and as the steps before the model compute it.
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

    exact = True
    allowance = Allowance(20.0, 40_000, 1_000_000)

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
        chance: float | None = None,
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
        chance
            Probability that is compared with, where probabilities are made of the margins.

        Raises
        ------
        ValueError
            If an input is no straight line, no step table and no lookup, so that the result would not be linear.
        """
        m = len(coef)
        weights, shift, fill = np.zeros((m, space.width)), np.zeros(m), np.full(space.width, np.nan)
        tables: list[StepTable] = []
        for i, (source, c) in enumerate(zip(inputs, coef.T, strict=True)):
            if isinstance(source, Lookup):
                weights[:, source.start : source.start + len(source.table)] += np.outer(c, source.table)
            elif isinstance(source, Steps):
                tables.append(StepTable(source.column, source.edges, np.outer(c, source.values_), c * source.missing))
            elif source.scale is None or source.shift is None:
                raise ValueError(f"input {i} moves along a curve")
            else:
                weights[:, source.column] += c * source.scale
                shift += c * source.shift
                if source.fill is not None:
                    fill[source.column] = source.fill
        if any(isinstance(s, Number) and s.fill is not None and s.fill != fill[s.column] for s in inputs):
            raise ValueError("one column is filled in two ways")
        fill[~weights.any(axis=0)] = 0.0  # a column without weight may be missing: nothing times NaN would be NaN
        shut = np.zeros(m, dtype=bool) if closed is None else np.asarray(closed, dtype=bool)
        unit, centre = unit_of_sum(space, inputs), centre_of(space, inputs)
        offsets = np.array(intercept, dtype=np.float64)
        for source, c in zip(inputs, coef.T, strict=True):
            if isinstance(source, Number):
                offsets += c * source.values(centre[None])[0]
        return cls(
            space,
            weights,
            np.asarray(intercept, dtype=float) + shift,
            shut,
            fill,
            tuple(tables),
            name,
            centre,
            offsets,
            unit,
            rounding_of_chances(chance, unit),
            rounding_of_columns(space, inputs),
        )

    def margins(self, Z: FloatArray) -> FloatArray:
        """Every half-space's margin of every row: ``(n, m)``."""
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
        # what is reported must hold in whatever order it is summed
        out = self._follow(Z, margins - rounding, directions, limit, start, self._shares)
        if self.space.rounding.any() and np.isinf(out).any():
            # what flips, but nowhere clearly, is not "no recourse": it is left open
            i, j = np.flatnonzero(np.isinf(out).any(axis=1)), np.flatnonzero(np.isinf(out).any(axis=0))
            some = np.ix_(i, j)
            begin = None if start is None else start[some]
            nearly = self._follow(
                Z[j], margins[j], directions[i], limit[some], begin, (0.0, np.zeros(self.space.width))
            )
            out[some] = np.where(np.isinf(out[some]) & np.isfinite(nearly), np.nan, out[some])
        return out

    def _follow(
        self,
        Z: FloatArray,
        base: FloatArray,
        directions: FloatArray,
        limit: FloatArray,
        start: FloatArray | None,
        shares: tuple[float, FloatArray],
    ) -> FloatArray:
        """First scalars at which margins that start from ``base`` are positive, less what rounds on the way."""
        routes = bundle(self.space, directions)
        weights = _Weights.of(self, routes, shares)
        out = np.empty((len(directions), len(Z)))
        begin = np.zeros((1, 1)) if start is None else np.asarray(start)
        walk: Any = _walk
        Z, limit = np.ascontiguousarray(Z), np.ascontiguousarray(limit)

        def work(first: int, last: int) -> None:
            walk(first, last, Z, base, self.closed, limit, begin, *routes, *weights, out)

        over_rows(len(Z), work, few=max(1, FEW_RAYS // max(1, len(directions))))
        return out

    def rounding(self, Z: FloatArray) -> FloatArray:
        """How far rounding can carry each margin of each row: ``(n, m)``.

        By the model's own arithmetic, in whatever order it sums, and by the type that each column has.
        """
        return self._sums(Z)[1]

    def _sums(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Margins, and how far rounding can carry them; row by row, so that no other row changes them."""
        margins, rounding = np.empty((len(Z), len(self.weights))), np.empty((len(Z), len(self.weights)))
        rows = np.ascontiguousarray(Z, dtype=np.float64)
        centre = np.zeros(self.space.width) if self.centre is None else self.centre
        offsets = self.intercepts if self.offsets is None else self.offsets
        kernel: Any = _sum_up
        summed, stored = self._shares

        def work(first: int, last: int) -> None:
            kernel(first, last, rows, self.fill, centre, self.weights, offsets, summed, stored, margins, rounding)

        if len(Z):
            over_rows(len(Z), work, few=FEW_RAYS)
        rounding += self.head
        for table in self.tables:
            margins += table.values(Z).T
            rounding += self._times * self.unit * np.nan_to_num(np.abs(table.added)).max(axis=1)
        return margins, rounding

    @property
    def _times(self) -> float:
        """Roundings that a sum may add up to, in units of what it is summed from."""
        return ROUNDINGS + len(self.space.features) / SUMMED_AT_ONCE

    @property
    def _shares(self) -> tuple[float, FloatArray]:
        """What rounds: a share of what is summed, and of each column's value as it is stored."""
        stored = self.space.rounding if self.stored is None else self.stored
        return self._times * self.unit, 4.0 * DOUBLE + 1.01 * stored


@dataclass(frozen=True, slots=True)
class StepTable:
    """What one column adds to each half-space's margin, by steps."""

    column: int
    edges: FloatArray  # ascending; piece i holds edges[i-1] < z <= edges[i]
    added: FloatArray  # (m, pieces)
    missing: FloatArray  # (m,)

    def values(self, Z: FloatArray) -> FloatArray:
        """What is added for each row: ``(m, n)``."""
        z = Z[:, self.column]
        found = self.added[:, np.searchsorted(self.edges, z, side="left").clip(0, len(self.edges))]
        return np.where(np.isnan(z), self.missing[:, None], found)


class _Weights(NamedTuple):
    """What the moves of a bundle do to each half-space's margin."""

    weight: FloatArray  # (movers, m)
    first_edge: IntArray  # of each mover
    edge: FloatArray
    jump: FloatArray  # (edges, m) what passing an edge upwards adds
    gain: FloatArray  # (switches, most categories, m) what leaving a category for the target adds

    @classmethod
    def of(cls, model: LinearModel, routes: Bundle, shares: tuple[float, FloatArray]) -> _Weights:
        W, m, column = model.weights, len(model.weights), routes.column
        summed, stored = shares
        size = np.abs(W.T)
        # what rounds grows along the way, and counts against each move
        moving = W.T[column] - np.sign(routes.step)[:, None] * (summed + stored[column])[:, None] * size[column]
        tables: dict[int, list[StepTable]] = {}
        for t in model.tables:
            tables.setdefault(t.column, []).append(t)
        mine = [tables.get(int(c), []) for c in column] if tables else [[]] * len(column)
        category = np.minimum(np.arange(routes.bound.shape[1]), routes.size[:, None] - 1)
        there, here = routes.start + routes.target, routes.start[:, None] + category
        grown = summed * np.maximum(size[there][:, None, :] - size[here], 0.0)
        return cls(
            np.ascontiguousarray(moving),
            np.cumsum([0, *(sum(len(t.edges) for t in some) for some in mine)]),
            np.concatenate([np.zeros(0), *(t.edges for some in mine for t in some)]),
            np.vstack([np.zeros((0, m)), *(np.diff(t.added, axis=1).T for some in mine for t in some)]),
            np.ascontiguousarray(W.T[there][:, None, :] - W.T[here] - grown),
        )


# -- the kernel -------------------------------------------------------------------------------------------------------
# Numba counts references to every array that one function hands to another, which would cost more than the work on a
# row. So the walk is one long function, and what it calls takes numbers only.

_END, _EDGE, _SWITCH = 0, 1, 2  # kinds of breakpoint


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum_up(  # type: ignore[no-untyped-def]
    first, last, Z, fill, centre, weights, offsets, summed, stored, margins, rounding
):
    """Margins of rows first to last, and what rounding can do to them: by what is summed, and by what is stored."""
    m, width = weights.shape
    for i in range(first, last):
        for h in range(m):
            total, size, kept = offsets[h], abs(offsets[h]), 0.0
            for j in range(width):
                z = Z[i, j]
                if z != 0.0:
                    if z != z:
                        z = fill[j]
                    part = weights[h, j] * (z - centre[j])
                    total += part
                    size += abs(part)
                    kept += abs(weights[h, j] * z) * stored[j]
                elif centre[j] != 0.0:
                    part = weights[h, j] * centre[j]
                    total -= part
                    size += abs(part)
            margins[i, h], rounding[i, h] = total, summed * size + kept


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _narrow(low: float, high: float, a: float, s: float, closed: bool) -> tuple[float, float]:
    """Narrow the stretch (low, high] to where a + s k is positive."""
    if s > 0.0:
        low = max(low, -a / s * (1.0 + 1e-15))
    elif s < 0.0:
        high = min(high, -a / s)
    elif not (a > 0.0 or (closed and a == 0.0)):
        low = np.inf
    return low, high


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _one_by_one(  # type: ignore[no-untyped-def]
    k, upto, most, c0, c1, moves, whole, step, weight, A, s, closed, B, t
):
    """First favourable k in (k, upto], from one whole step to the next, and how far it looked.

    Between two whole steps the rest is a straight line. The k is ``inf`` for none, and NaN where there are more steps.
    """
    for _ in range(most):
        after = upto
        for j in range(len(A)):
            B[j], t[j] = A[j], s[j]
        for c in range(c0, c1):
            if moves[c] and whole[c]:
                pace = abs(step[c])
                taken = np.ceil(above(k) * pace - 0.5)  # as `rays.travel` counts them
                after = min(after, after_steps(pace, taken + 1.0))
                for j in range(len(A)):
                    B[j] += weight[c, j] * (taken if step[c] > 0 else -taken)
                    t[j] -= weight[c, j] * step[c]
        from_, to = k, after
        for j in range(len(A)):
            from_, to = _narrow(from_, to, B[j], t[j], closed[j])
        if above(from_) < above(to):
            return above(from_), k
        if not after < upto:
            return np.inf, k
        k = after if after > k else above(k)
    return np.nan, k


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _over_steps(  # type: ignore[no-untyped-def]
    low, high, c0, c1, moves, whole, step, weight, A, s, closed, B, t, slack, later
):
    """First favourable k in (low, high], over which whole steps are taken; ``inf`` for none, NaN if undecided.

    A stair of several steps stands for the straight line through it, which it leaves by half a step at most. Where
    these lines leave room, the stretch is narrowed or halved, until the steps in it are few.
    """
    n, m = 0, len(A)
    for _ in range(MOST_LOOKS):
        steps, until = 0.0, min(high, LARGEST)
        for j in range(m):
            B[j], t[j], slack[j] = A[j], s[j], 0.0
        for c in range(c0, c1):
            if moves[c] and whole[c]:
                pace = abs(step[c])
                before, after = np.ceil(above(low) * pace - 0.5), np.ceil(until * pace - 0.5)
                steps += max(after - before, 0.0)
                for j in range(m):
                    if after > before:  # what k * pace may be rounded by counts too
                        slack[j] += abs(weight[c, j]) * (0.5 + 4e-16 * after)
                    else:
                        B[j] += weight[c, j] * (before if step[c] > 0 else -before)
                        t[j] -= weight[c, j] * step[c]
        from_, to = low, high
        for j in range(m):
            from_, to = _narrow(from_, to, B[j] + slack[j], t[j], closed[j])
        if above(from_) < above(to):
            if steps <= FEW_STEPS:
                found, _ = _one_by_one(low, high, 4 * FEW_STEPS, c0, c1, moves, whole, step, weight, A, s, closed, B, t)
                if found != np.inf:
                    return found
            else:
                length = high - low
                low, high = max(low, from_ * (1.0 - 1e-12)), min(high, to * (1.0 + 1e-12))
                if not high - low < 0.5 * length:
                    middle = 0.5 * (low + min(high, LARGEST))
                    if not low < middle < high or n == later.shape[1]:
                        return np.nan
                    later[0, n], later[1, n] = middle, high
                    n += 1
                    high = middle
                continue
        if n == 0:
            return np.inf
        n -= 1
        low, high = later[0, n], later[1, n]
    return np.nan


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _walk(  # type: ignore[no-untyped-def]
    a, b, Z, base, closed, limit, begin, first_mover, mover, column, step, low, high, whole, first_switch, switch,
    block, size, target, bound, weight, first_edge, edge, jump, gain, out,
):  # fmt: skip
    """First favourable scalar of rows a to b along every direction."""
    m, most = base.shape[1], 1
    for d in range(len(out)):
        edges = first_edge[first_mover[d + 1]] - first_edge[first_mover[d]]
        most = max(most, first_mover[d + 1] - first_mover[d] + edges + first_switch[d + 1] - first_switch[d])
    # scratch for all rows: allocating it for each of them would cost more than the row
    at, kind, which, owner = (
        np.empty(most),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    moves, code = np.zeros(len(column), np.bool_), np.zeros(len(block), np.int64)
    A, s, slack, B, t, part = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    later = np.empty((2, 128))
    for d in range(len(out)):
        c0, c1, s0, s1 = first_mover[d], first_mover[d + 1], first_switch[d], first_switch[d + 1]
        any_whole = False
        for c in range(c0, c1):
            any_whole |= whole[c]
        for i in range(a, b):
            out[d, i] = np.inf
            last = limit[d, i]
            k0 = begin[d, i] if begin.shape[1] > 1 or begin.shape[0] > 1 else begin[0, 0]
            if k0 > 0.0:  # the first k that counts lies just beyond k0
                k0 = np.int64(np.float64(k0).view(np.int64) - 1).view(np.float64)
            for j in range(m):
                A[j], s[j], slack[j] = base[i, j], 0.0, 0.0

            # What happens along the ray
            n_events, n_moving = 0, 0
            for c in range(c0, c1):
                x = Z[i, column[c]]
                end, rising = high[c] if step[c] > 0 else low[c], step[c] > 0
                if x < low[c] if rising else x > high[c]:  # it enters its range as soon as it moves
                    inside = low[c] if rising else high[c]
                    for j in range(m):
                        A[j] += weight[c, j] * (inside - x)
                    for e in range(first_edge[c], first_edge[c + 1]):
                        if (x <= edge[e] < inside) if rising else (inside <= edge[e] < x):
                            for j in range(m):
                                A[j] += jump[e, j] if rising else -jump[e, j]
                    x = inside
                moves[c] = x < end if rising else x > end
                if not moves[c]:
                    continue
                n_moving += 1
                for j in range(m):
                    s[j] += weight[c, j] * step[c]
                    if whole[c]:
                        slack[j] += 0.5 * abs(weight[c, j])
                room = abs(end - x)
                if room < np.inf:
                    at[n_events] = after_steps(abs(step[c]), room) if whole[c] else room / abs(step[c])
                    kind[n_events], which[n_events], owner[n_events] = _END, c, c
                    n_events += 1
                for e in range(first_edge[c], first_edge[c + 1]):
                    if (x <= edge[e] < end) if step[c] > 0 else (end <= edge[e] < x):
                        at[n_events] = pass_edge(x, step[c], whole[c], edge[e])
                        kind[n_events], which[n_events], owner[n_events] = _EDGE, e, c
                        n_events += 1
            for q in range(s0, s1):
                code[q] = 0
                for category in range(size[q]):
                    if Z[i, block[q] + category] > 0.5:
                        code[q] = category
                        break
                if bound[q, code[q]] < np.inf:
                    at[n_events] = bound[q, code[q]]
                    kind[n_events], which[n_events], owner[n_events] = _SWITCH, q, q
                    n_events += 1
            for e in range(1, n_events):  # they are few
                k, kind_, which_, owner_, place = at[e], kind[e], which[e], owner[e], e
                while place > 0 and at[place - 1] > k:
                    at[place], kind[place] = at[place - 1], kind[place - 1]
                    which[place], owner[place] = which[place - 1], owner[place - 1]
                    place -= 1
                at[place], kind[place], which[place], owner[place] = k, kind_, which_, owner_

            for event in range(n_events + 1):
                k1 = min(at[event], last) if event < n_events else last
                if k1 > k0:
                    # One stretch (k0, k1] without breakpoints: straight lines, or steps close to them
                    from_, to = k0, k1
                    for j in range(m):
                        from_, to = _narrow(from_, to, A[j] + slack[j], s[j], closed[j])
                    found, upto = above(from_), above(to)
                    if found < upto and any_whole:
                        stepping = False
                        for c in range(c0, c1):
                            stepping |= moves[c] and whole[c]
                        if stepping:
                            nearly = found * (1.0 - 1e-12)
                            near, far = nearly if k0 < nearly < found else k0, min(k1, to * (1.0 + 1e-12))
                            # most flip within a few steps of where they may
                            found, near = _one_by_one(
                                near, far, FEW_STEPS // 2, c0, c1, moves, whole, step, weight, A, s, closed, B, t
                            )
                            if found != found:
                                found = _over_steps(
                                    near, far, c0, c1, moves, whole, step, weight, A, s, closed, B, t, part, later
                                )
                            upto = np.inf
                            if found != found:
                                out[d, i] = np.nan
                                break
                    if found < upto:
                        if found <= last:
                            out[d, i] = found
                        break
                    k0 = k1
                if event == n_events or k0 >= last:
                    break
                c = owner[event]
                if kind[event] == _END:
                    moves[c] = False
                    n_moving -= 1
                    x = max(Z[i, column[c]], low[c]) if step[c] > 0 else min(Z[i, column[c]], high[c])
                    end = high[c] if step[c] > 0 else low[c]
                    for j in range(m):
                        # a slope that was added and taken away again leaves rounding behind: make it nothing
                        s[j] = s[j] - weight[c, j] * step[c] if n_moving else 0.0
                        A[j] += weight[c, j] * (end - x)
                        if whole[c]:
                            slack[j] = slack[j] - 0.5 * abs(weight[c, j]) if n_moving else 0.0
                elif kind[event] == _EDGE:
                    for j in range(m):
                        A[j] += jump[which[event], j] if step[c] > 0 else -jump[which[event], j]
                else:
                    for j in range(m):
                        A[j] += gain[c, code[c], j]
