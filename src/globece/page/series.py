"""Numbers that the page looks up while its budget is dragged: how many are covered at each limit, and what they pay.

The limits are a grid that the slider stops at, so what the page says at a limit is what
:meth:`globece.Explanation.at` says. All affected inputs count, however many there are.

>>> import numpy as np
>>> grid = Grid.of(np.array([0.5, 2.0, np.inf]), 10.0)
>>> grid.end, len(grid.limits) > 1000
(2.5, True)
>>> count, total = paid_within(np.array([0.5, 2.0, np.inf]), grid.limits)
>>> int(count[-1]), float(total[-1])
(2, 2.5)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from globece.page.arrays import Page
from globece.rays import BUDGET_SLACK
from globece.space import FloatArray, IntArray

STEPS = 1000  # of the slider, over the whole budget
COARSE = 100  # limits beyond the charts
ROOM = 1.25  # the charts go this much further than the largest cost


@dataclass(frozen=True, slots=True)
class Grid:
    """Limits on cost: multiples of ``step`` up to ``end``, beyond which nobody pays more; then the budget.

    Attributes
    ----------
    budget, step, end
        The budget, the distance between two limits, and where the charts end.
    points
        How many limits there are up to there; beyond, up to the budget, they are further apart.
    limits
        All limits.
    """

    budget: float
    step: float
    end: float
    points: int
    limits: FloatArray

    @classmethod
    def of(cls, costs: FloatArray, budget: float) -> Grid:
        """A grid for these minimum costs."""
        finite = costs[np.isfinite(costs)]
        last = float(finite.max()) if finite.size else budget
        coarse = budget / STEPS
        many = min(STEPS, max(1, math.ceil(ROOM * last / coarse - 1e-9)))
        fine = math.ceil(STEPS / many)
        n = many * fine
        # whole divisions of the budget, so that no sum of steps drifts away from 0.1, 0.2, ...
        near = budget * np.arange(n + 1) / (STEPS * fine)
        far = budget * np.arange(COARSE + 1) / COARSE
        return cls(budget, budget / (STEPS * fine), float(near[-1]), n + 1, np.concatenate([near, far[far > near[-1]]]))


def paid_within(costs: FloatArray, limits: FloatArray) -> tuple[IntArray, FloatArray]:
    """How many costs are within each limit, and their sum."""
    paid = np.sort(costs[np.isfinite(costs)])
    count = np.searchsorted(paid, limits * (1.0 + BUDGET_SLACK), side="right")
    return count, np.concatenate([[0.0], np.cumsum(paid)])[count]


def series(page: Page, costs: FloatArray, limits: FloatArray) -> dict[str, Any]:
    """The same, as arrays of a page."""
    count, total = paid_within(costs, limits)
    return {"n": len(costs), "count": page.array(count, "u32"), "sum": page.array(total, "f64")}


def largest_within(values: FloatArray, costs: FloatArray, limits: FloatArray) -> FloatArray:
    """The largest value among those whose cost is within each limit; 0 where there are none."""
    mine = np.flatnonzero(np.isfinite(costs))
    order = mine[np.argsort(costs[mine], kind="stable")]
    count = np.searchsorted(costs[order], limits * (1.0 + BUDGET_SLACK), side="right")
    running = np.concatenate([[0.0], np.maximum.accumulate(values[order])]) if order.size else np.zeros(1)
    return np.asarray(running[count])


def histogram(costs: FloatArray, end: float, bins: int = 40) -> tuple[FloatArray, FloatArray]:
    """Edges and counts of the costs up to ``end``, in bins of a round width that starts at a multiple of it."""
    raw = max(end, 1e-12) / bins
    unit = 10.0 ** math.floor(math.log10(raw))
    width = next(m * unit for m in (1, 2, 2.5, 5, 10) if m * unit >= raw * (1 - 1e-9))
    edges = width * (np.arange(math.ceil(end / width - 1e-9) + 2) - 0.5)  # centred on multiples of the width
    counts, _ = np.histogram(costs[np.isfinite(costs)], edges)
    return np.asarray(edges, dtype=np.float64), counts.astype(np.float64)
