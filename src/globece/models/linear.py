"""Linear models, exactly: along a ray every margin is a straight line between a few breakpoints.

The favourable side is one or several half-spaces ``W z + b > 0`` that must all hold: one for a binary classifier or a
regressor with a threshold, one per other class for a multi-class one, one per model where several must agree.
Breakpoints are where a range ends, a block switches, or a column passes the edge of a step table. Whole-numbered
features move in many small steps; there the straight line through them, with half a step of slack, tells where it is
worth looking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np

from globece import rays
from globece.errors import ModelError
from globece.models.inputs import Input, Lookup, Number, Steps
from globece.models.parallel import over_rows
from globece.space import BoolArray, FeatureSpace, FloatArray


@dataclass(frozen=True)
class LinearModel:
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
    """

    space: FeatureSpace
    weights: FloatArray
    intercepts: FloatArray
    closed: BoolArray
    fill: FloatArray
    tables: tuple[StepTable, ...] = ()
    name: str = "linear model"

    exact = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.weights).all() and np.isfinite(self.intercepts).all()):
            raise ModelError(f"{self.name} has weights that are not finite")

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
        return cls(space, weights, np.asarray(intercept, dtype=float) + shift, shut, fill, tuple(tables), name)

    def margins(self, Z: FloatArray) -> FloatArray:
        """Every half-space's margin of every row: ``(n, m)``."""
        filled = np.where(np.isnan(Z), self.fill, Z) if np.isnan(Z).any() else Z
        out = filled @ self.weights.T + self.intercepts
        for table in self.tables:
            out += table.values(Z).T
        return np.asarray(out)

    def margin(self, Z: FloatArray) -> FloatArray:
        """Smallest margin of each row."""
        return np.asarray(self.margins(Z).min(axis=1))

    def favourable(self, Z: FloatArray) -> BoolArray:
        """Whether every half-space holds."""
        M = self.margins(Z)
        return np.asarray(((M > 0) | (self.closed & (M == 0))).all(axis=1))

    def first_flip(self, Z: FloatArray, directions: FloatArray, limit: FloatArray) -> FloatArray:
        """Smallest k at which each row is favourable; see :meth:`globece.models.base.Model.first_flip`."""
        # The user's own sums may be rounded in another order: ask for as much more than 0 as that can make.
        start = self.margins(Z) - self._rounding(Z)
        out = np.full((len(directions), len(Z)), np.inf)
        for i, delta in enumerate(directions):
            plan = _Plan.of(self, delta)
            if plan.is_straight and not np.isnan(Z[:, plan.columns]).any():
                out[i] = self._straight(Z, start, delta, plan, limit[i])
            else:
                self._walk(Z, start, limit[i], plan, out[i])
        return out

    def _rounding(self, Z: FloatArray) -> FloatArray:
        """A bound on how far two ways of summing a margin lie apart: ``(n, m)``."""
        size = np.nan_to_num(np.abs(Z)) @ np.abs(self.weights).T + np.abs(self.intercepts)
        return np.asarray(16.0 * np.finfo(np.float64).eps * size)

    def _walk(self, Z: FloatArray, start: FloatArray, limit: FloatArray, plan: _Plan, out: FloatArray) -> None:
        kernel: Any = _first_flip
        over_rows(len(Z), lambda a, b: kernel(a, b, Z, start, self.closed, limit, *plan.arrays, out))

    def _straight(
        self, Z: FloatArray, start: FloatArray, delta: FloatArray, plan: _Plan, limit: FloatArray
    ) -> FloatArray:
        """No ranges, no steps, no blocks: one division for each half-space."""
        slopes = plan.weights @ plan.steps
        low, high = np.zeros(len(Z)), np.full(len(Z), np.inf)
        for j, slope in enumerate(slopes):
            if slope == 0.0:
                holds = (start[:, j] > 0) | (self.closed[j] & (start[:, j] == 0))
                low = np.where(holds, low, np.inf)
                continue
            root = -start[:, j] / slope
            if slope > 0:
                low = np.maximum(low, root)
            else:
                high = np.minimum(high, root)
        k = np.nextafter(low, np.inf)
        k[(k > limit) | (k >= high)] = np.inf
        # Rounding may leave a row a hair short: step on until its own margins hold.
        waiting = np.flatnonzero(np.isfinite(k))
        for hair in 2.0 ** np.arange(-52, -30):
            moved = Z[waiting][:, plan.columns] + k[waiting, None] * plan.steps - Z[waiting][:, plan.columns]
            M = start[waiting] + moved @ plan.weights.T
            waiting = waiting[~((M > 0) | (self.closed & (M == 0))).all(axis=1)]
            if not waiting.size:
                break
            k[waiting] *= 1.0 + hair
        k[waiting] = np.inf
        return k


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


@dataclass(frozen=True, slots=True)
class _Plan:
    """One direction, made ready for the kernel."""

    columns: Any  # (movers,)
    steps: FloatArray
    low: FloatArray
    high: FloatArray
    whole: BoolArray
    weights: FloatArray  # (m, movers)
    edges: FloatArray  # all movers' edges, one after the other
    edge_starts: Any  # (movers + 1,)
    jumps: FloatArray  # (m, edges) what passing an edge upwards adds
    block_starts: Any  # (blocks,)
    block_sizes: Any
    targets: Any
    bounds: FloatArray  # (blocks, most categories)
    block_weights: FloatArray  # (m, blocks, most categories)
    is_straight: bool = field(default=False)

    @classmethod
    def of(cls, model: LinearModel, delta: FloatArray) -> _Plan:
        space, W = model.space, model.weights
        moving, blocks = list(rays.movers(space, delta)), list(rays.switches(space, delta))
        columns = np.array([f.start for f, _ in moving], dtype=np.int64)
        edges, starts, jumps = [], [0], []
        for c in columns:
            mine = [t for t in model.tables if t.column == c]
            for t in mine:
                edges.append(t.edges)
                jumps.append(np.diff(t.added, axis=1))
            starts.append(starts[-1] + sum(len(t.edges) for t in mine))
        widest = max((s.feature.width for s in blocks), default=1)
        bounds = np.full((len(blocks), widest), np.inf)
        block_weights = np.zeros((len(W), len(blocks), widest))
        for b, s in enumerate(blocks):
            bounds[b, : s.feature.width] = s.bounds
            block_weights[:, b, : s.feature.width] = W[:, s.feature.columns]
        whole = np.array([f.whole for f, _ in moving], dtype=bool)
        low, high = np.array([f.low for f, _ in moving]), np.array([f.high for f, _ in moving])
        open_ended = bool(np.isinf(low).all() and np.isinf(high).all())
        return cls(
            columns,
            np.array([step for _, step in moving]),
            low,
            high,
            whole,
            np.ascontiguousarray(W[:, columns]),
            np.concatenate(edges) if edges else np.zeros(0),
            np.array(starts, dtype=np.int64),
            np.concatenate(jumps, axis=1) if jumps else np.zeros((len(W), 0)),
            np.array([s.feature.start for s in blocks], dtype=np.int64),
            np.array([s.feature.width for s in blocks], dtype=np.int64),
            np.array([s.target for s in blocks], dtype=np.int64),
            bounds,
            block_weights,
            bool(moving) and not blocks and not edges and not whole.any() and open_ended,
        )

    @property
    def arrays(self) -> tuple[Any, ...]:
        return (
            self.columns,
            self.steps,
            self.low,
            self.high,
            self.whole,
            self.weights,
            self.edges,
            self.edge_starts,
            self.jumps,
            self.block_starts,
            self.block_sizes,
            self.targets,
            self.bounds,
            self.block_weights,
        )


# -- the kernel -------------------------------------------------------------------------------------------------------
# Kinds of breakpoint: a mover reaches its range's end, a mover passes an edge, a block switches.
_END, _EDGE, _SWITCH = 0, 1, 2


@numba.njit(cache=True, nogil=True, inline="always")
def _root(A, s, slack, closed, k0, k1):  # type: ignore[no-untyped-def]
    """First k past k0 at which every A + s k + slack is positive, and the k from which one of them no longer is."""
    low, high = k0, k1
    for j in range(len(A)):
        a = A[j] + slack[j]
        if s[j] > 0.0:
            low = max(low, -a / s[j] * (1.0 + 1e-15))
        elif s[j] < 0.0:
            high = min(high, -a / s[j])
        elif not (a > 0.0 or (closed[j] and a == 0.0)):
            low = np.inf
    return np.nextafter(low, np.inf), np.nextafter(high, np.inf)


@numba.njit(cache=True, nogil=True)
def _after_steps(size: float, count: float) -> float:
    """The k beyond which `rays.travel` has taken this many whole steps, rounding included."""
    k = max(count - 0.5, 0.0) / size
    while np.ceil(np.nextafter(k, np.inf) * size - 0.5) < count:
        k = np.nextafter(k, np.inf)
    return k


@numba.njit(cache=True, nogil=True)
def _pass_edge(x: float, step: float, whole: bool, edge: float) -> float:
    """The k beyond which x has passed an edge, rounding included: z > edge going up, z <= edge going down."""
    if whole:
        count = np.floor(edge - x) + 1.0 if step > 0 else np.ceil(x - edge)
        while (x + count <= edge) if step > 0 else (x - count > edge):  # the difference was rounded
            count += 1.0
        return _after_steps(abs(step), count)
    k = (edge - x) / step
    while (x + np.nextafter(k, np.inf) * step <= edge) if step > 0 else (x + np.nextafter(k, np.inf) * step > edge):
        k = np.nextafter(k, np.inf)
    return k


@numba.njit(cache=True, nogil=True)
def _first_flip(  # type: ignore[no-untyped-def]
    a, b, Z, start, closed, limit, columns, steps, low, high, whole, weights, edges, edge_starts, jumps, block_starts,
    block_sizes, targets, bounds, block_weights, out,
):  # fmt: skip
    m, most = start.shape[1], len(columns) + len(edges) + len(targets)
    # scratch for all rows: allocating it for each of them would cost more than the row
    codes, moves = np.zeros(len(targets), dtype=np.int64), np.zeros(len(columns), dtype=np.bool_)
    at, events = np.empty(most), np.empty(3 * most, dtype=np.int64)  # of each: kind, which edge, which mover or block
    A, s, slack, B, t, none = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.zeros(m)
    for i in range(a, b):
        out[i] = _one_row(i, Z, start, closed, limit[i], codes, moves, at, events, A, s, slack, B, t,
                          none, columns, steps, low, high, whole, weights, edges, edge_starts, jumps, block_starts,
                          block_sizes, targets, bounds, block_weights)  # fmt: skip


@numba.njit(cache=True, nogil=True, inline="always")
def _list_event(at, events, n_events, k, kind, which, owner):  # type: ignore[no-untyped-def]
    """Put a breakpoint in its place: they are few, so insertion keeps them sorted."""
    place = n_events
    while place > 0 and at[place - 1] > k:
        at[place] = at[place - 1]
        for entry in range(3):
            events[3 * place + entry] = events[3 * place - 3 + entry]
        place -= 1
    at[place] = k
    events[3 * place], events[3 * place + 1], events[3 * place + 2] = kind, which, owner
    return n_events + 1


@numba.njit(cache=True, nogil=True, inline="always")
def _one_row(  # type: ignore[no-untyped-def]
    i, Z, start, closed, limit, codes, moves, at, events, A, s, slack, B, t, none, columns, steps, low,
    high, whole, weights, edges, edge_starts, jumps, block_starts, block_sizes, targets, bounds, block_weights,
):  # fmt: skip
    m, n_events = start.shape[1], 0
    for j in range(m):
        A[j], s[j], slack[j] = start[i, j], 0.0, 0.0
    n_moving = 0
    for c in range(len(columns)):
        x = Z[i, columns[c]]
        end = max(x, high[c]) if steps[c] > 0 else min(x, low[c])
        moves[c] = not np.isnan(x) and end != x
        if not moves[c]:
            continue
        n_moving += 1
        for j in range(m):
            s[j] += weights[j, c] * steps[c]
            if whole[c]:
                slack[j] += 0.5 * abs(weights[j, c])
        room = abs(end - x)
        if np.isfinite(room):
            k = _after_steps(abs(steps[c]), room) if whole[c] else room / abs(steps[c])
            n_events = _list_event(at, events, n_events, k, _END, c, c)
        for e in range(edge_starts[c], edge_starts[c + 1]):
            if (x <= edges[e] < end) if steps[c] > 0 else (end <= edges[e] < x):
                k = _pass_edge(x, steps[c], whole[c], edges[e])
                n_events = _list_event(at, events, n_events, k, _EDGE, e, c)
    for b in range(len(targets)):
        for code in range(block_sizes[b]):
            if Z[i, block_starts[b] + code] > 0.5:
                codes[b] = code
        if bounds[b, codes[b]] < np.inf:
            n_events = _list_event(at, events, n_events, bounds[b, codes[b]], _SWITCH, b, b)
    k0 = 0.0
    for event in range(n_events + 1):
        k1 = min(at[event], limit) if event < n_events else limit
        if k1 > k0:
            answer = _within(k0, k1, A, s, slack, B, t, none, closed, moves, steps, whole, weights)
            if answer < np.inf:
                return answer if answer <= limit else np.inf
            k0 = k1
        if event == n_events or k0 >= limit:
            break
        kind, which, c = events[3 * event], events[3 * event + 1], events[3 * event + 2]
        if kind == _END:
            moves[c] = False
            n_moving -= 1
        for j in range(m):
            if kind == _END:
                x = Z[i, columns[c]]
                end = max(x, high[c]) if steps[c] > 0 else min(x, low[c])
                # a slope that was added and taken away again leaves rounding behind: make it nothing
                s[j] = s[j] - weights[j, c] * steps[c] if n_moving else 0.0
                A[j] += weights[j, c] * (end - x)
                if whole[c]:
                    slack[j] = slack[j] - 0.5 * abs(weights[j, c]) if n_moving else 0.0
            elif kind == _EDGE:
                A[j] += jumps[j, which] if steps[c] > 0 else -jumps[j, which]
            else:
                A[j] += block_weights[j, c, targets[c]] - block_weights[j, c, codes[c]]
    return np.inf


@numba.njit(cache=True, nogil=True, inline="always")
def _within(k0, k1, A, s, slack, B, t, none, closed, moves, steps, whole, weights):  # type: ignore[no-untyped-def]
    """First favourable k of one stretch (k0, k1] without breakpoints, or inf."""
    m, stepping = len(A), False
    first, last = _root(A, s, slack, closed, k0, k1)
    if not first < last:
        return np.inf
    for c in range(len(moves)):
        stepping |= moves[c] and whole[c]
    if not stepping:
        return first
    # Whole steps: between two of them the rest is a straight line again.
    k = np.nextafter(max(first * (1.0 - 1e-12), k0), np.inf)
    while k <= last:
        after = k1
        for j in range(m):
            B[j], t[j] = A[j], s[j]
        for c in range(len(moves)):
            if moves[c] and whole[c]:
                size = abs(steps[c])
                taken = np.ceil(k * size - 0.5)  # as `rays.travel` counts them
                after = min(after, (taken + 0.5) / size)
                for j in range(m):
                    B[j] += weights[j, c] * np.sign(steps[c]) * taken
                    t[j] -= weights[j, c] * steps[c]
        found, end = _root(B, t, none, closed, k, after)
        if found < end:
            return found
        if not after < np.inf:
            break
        k = max(np.nextafter(after, np.inf), np.nextafter(k, np.inf))
    return np.inf
