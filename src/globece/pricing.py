"""Horizons and costs of many rays at once: kernels for :func:`globece.rays.horizon` and :func:`globece.rays.cost_at`.

Those two are the plain twins, and a test checks that both pairs agree. A search scores thousands of directions, and
with exact models the plain versions would take most of its time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from globece.bundle import Bundle
from globece.costs import CostModel
from globece.kept import Kept
from globece.parallel import over_rows
from globece.rays import BUDGET_SLACK, SWITCH_SLACK
from globece.space import FloatArray, IntArray

FEW_RAYS = 32_768  # not worth another thread


class _Prices(NamedTuple):
    """Costs of moving the space's scalar features and blocks."""

    weight: FloatArray  # (scalars,)
    least: FloatArray  # (scalars,) smallest slope of its scale
    first_knot: IntArray  # (scalars + 1,) into the scales' knots; two knots are a straight line
    knot: FloatArray
    level: FloatArray
    block_weight: FloatArray  # (blocks,)
    squared: bool

    @classmethod
    def of(cls, cost: CostModel) -> _Prices:
        return _KEPT.get(cost, lambda: cls._compute(cost))

    @classmethod
    def _compute(cls, cost: CostModel) -> _Prices:
        scales = [cost.scales.get(f.name) for f in cost.space.scalars]
        nothing = np.zeros(0)
        return cls(
            np.array([cost.weight(f) for f in cost.space.scalars], dtype=np.float64),
            np.array([0.0 if s is None else s.least_slope for s in scales], dtype=np.float64),
            np.cumsum([0, *(0 if s is None else len(s.knots) for s in scales)]).astype(np.int64),
            np.concatenate([nothing, *(s.knots for s in scales if s is not None)]),
            np.concatenate([nothing, *(s.levels for s in scales if s is not None)]),
            np.array([cost.weight(f) for f in cost.space.blocks], dtype=np.float64),
            cost.norm == "l2",
        )


_KEPT: Kept[CostModel, _Prices] = Kept()  # thousands of directions are priced by one cost model


def horizons(cost: CostModel, Z: FloatArray, routes: Bundle, budget: float | FloatArray) -> FloatArray:
    """For each direction and row a k beyond which nothing new can happen within the budget, which may be per row."""
    out = np.empty((len(routes.first_mover) - 1, len(Z)))
    return _run(_horizons, cost, Z, routes, np.full(len(Z), budget, dtype=np.float64), out)


def costs_at(cost: CostModel, Z: FloatArray, routes: Bundle, k: FloatArray) -> FloatArray:
    """Cost of moving to k along each direction, ``inf`` where k is: ``(m, n)``."""
    return _run(_costs, cost, Z, routes, k, np.empty(k.shape))


def _run(kernel: Any, cost: CostModel, Z: FloatArray, routes: Bundle, given: FloatArray, out: FloatArray) -> FloatArray:
    prices = _Prices.of(cost)

    def work(a: int, b: int) -> None:
        kernel(a, b, Z, *routes, *prices, given, out)

    over_rows(len(Z), work, few=max(1, FEW_RAYS // max(1, len(out))))
    return out


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _horizons(  # type: ignore[no-untyped-def]
    a, b, Z, first_mover, mover, column, step, low, high, whole, first_switch, switch, start, size, target, bound,
    weight, least, first_knot, knot, level, block_weight, squared, budgets, out,
):  # fmt: skip
    most = 0
    for d in range(len(out)):
        most = max(most, first_mover[d + 1] - first_mover[d])
    rates, ends, rooms = np.empty(most), np.empty(most), np.empty(most)
    most = 0
    for d in range(len(out)):
        most = max(most, first_switch[d + 1] - first_switch[d])
    when, price = np.empty(most), np.empty(most)
    for d in range(len(out)):
        for i in range(a, b):
            last, lag, n, endless, turns = 0.0, 0.0, 0, False, 0
            for c in range(first_mover[d], first_mover[d + 1]):
                x, f = Z[i, column[c]], mover[c]
                if x != x:
                    if abs(high[c] if step[c] > 0 else low[c]) < np.inf:
                        last = max(last, 0.5 * whole[c] / abs(step[c]))
                    late = 0.5 * weight[f] * least[f] * whole[c]
                    lag += late * late if squared else late
                    continue
                if x < low[c] and step[c] > 0:  # it enters its range there
                    x = low[c]
                elif x > high[c] and step[c] < 0:
                    x = high[c]
                end = high[c] if step[c] > 0 else low[c]
                room = max((end - x) if step[c] > 0 else (x - end), 0.0)
                slope = weight[f] * least[f]
                rate, late, at_end = (
                    slope * abs(step[c]),
                    0.5 * slope * whole[c],
                    (room + 0.5 * whole[c]) / abs(step[c]),
                )
                lag += late * late if squared else late
                if room < np.inf:
                    last = max(last, at_end)
                elif rate > 0.0:
                    endless = True
                if rate > 0.0:
                    rates[n], ends[n], rooms[n] = rate, at_end, slope * room
                    n += 1
            for q in range(first_switch[d], first_switch[d + 1]):
                code = 0
                for category in range(size[q]):
                    if Z[i, start[q] + category] > Z[i, start[q] + code]:
                        code = category
                if bound[q, code] < np.inf:
                    last = max(last, bound[q, code])
                    j, paid = turns, block_weight[switch[q]]
                    while j > 0 and when[j - 1] > bound[q, code]:
                        when[j], price[j] = when[j - 1], price[j - 1]
                        j -= 1
                    when[j], price[j] = bound[q, code], paid * paid if squared else paid
                    turns += 1
            # past the last switch, and past rounding at a range's end
            last = np.inf if endless else np.nextafter(last * (1.0 + 1e-9), np.inf)
            # each feature spends at its rate until it ends
            available = budgets[i] * (1.0 + BUDGET_SLACK) + (np.sqrt(lag) if squared else lag)
            left, changed = available * available if squared else available, True
            until = np.inf
            while changed and n > 0:
                rate = 0.0
                for c in range(n):
                    rate += rates[c] * rates[c] if squared else rates[c]
                until = max(left, 0.0) / rate
                until = (np.sqrt(until) if squared else until) * (1.0 + 1e-9)
                changed, kept = False, 0
                for c in range(n):
                    if ends[c] < until:
                        left -= rooms[c] * rooms[c] if squared else rooms[c]
                        changed = True
                    else:
                        rates[kept], ends[kept], rooms[kept] = rates[c], ends[c], rooms[c]
                        kept += 1
                n = kept
                if n == 0:
                    until = np.inf
            # switches alone may spend more than the budget
            spent, available = 0.0, budgets[i] * (1.0 + SWITCH_SLACK)
            available = available * available if squared else available
            for j in range(turns):
                spent += price[j]
                if spent > available:
                    last = min(last, when[j])
                    break
            out[d, i] = min(last, until)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _costs(  # type: ignore[no-untyped-def]
    a, b, Z, first_mover, mover, column, step, low, high, whole, first_switch, switch, start, size, target, bound,
    weight, least, first_knot, knot, level, block_weight, squared, k, out,
):  # fmt: skip
    place = np.empty(2)
    for d in range(len(out)):
        for i in range(a, b):
            at = k[d, i]
            if not at < np.inf:
                out[d, i] = np.inf
                continue
            total = 0.0
            for c in range(first_mover[d], first_mover[d + 1]):
                x, f = Z[i, column[c]], mover[c]
                if x != x or not at > 0.0 or (x > high[c] if step[c] > 0 else x < low[c]):
                    continue  # missing, or moving away from its range
                moved = at * step[c]
                if whole[c]:
                    steps = np.ceil(abs(moved) - 0.5)
                    moved = steps if step[c] > 0 else -steps
                origin = max(x, low[c]) if step[c] > 0 else min(x, high[c])
                after = min(max(origin + moved, low[c]), high[c])
                k0, k1 = first_knot[f], first_knot[f + 1]
                if k1 - k0 < 2:
                    continue
                if k1 - k0 == 2:
                    paid = abs(after - x) * ((level[k1 - 1] - level[k0]) / (knot[k1 - 1] - knot[k0]))
                else:
                    for end in range(2):
                        value, j = x if end == 0 else after, k0
                        while j < k1 - 2 and value >= knot[j + 1]:
                            j += 1
                        slope = (level[j + 1] - level[j]) / (knot[j + 1] - knot[j])
                        place[end] = level[j] + slope * (value - knot[j])
                    paid = abs(place[1] - place[0])
                paid *= weight[f]
                total += paid * paid if squared else paid
            for q in range(first_switch[d], first_switch[d + 1]):
                code = 0
                for category in range(size[q]):
                    if Z[i, start[q] + category] > Z[i, start[q] + code]:
                        code = category
                if at > bound[q, code]:
                    paid = block_weight[switch[q]]
                    total += paid * paid if squared else paid
            out[d, i] = np.sqrt(total) if squared else total
