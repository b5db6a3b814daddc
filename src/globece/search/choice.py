"""A matrix of minimum costs, and the few rows of it that together cost least."""

from __future__ import annotations

import numpy as np

from globece.space import FloatArray, IntArray


def greedy(
    costs: FloatArray, budget: float, n: int, plateau: float = 0.0, weights: FloatArray | None = None
) -> IntArray:
    """Pick up to ``n`` rows of a (candidates, inputs) cost matrix, each lowering the joint score most.

    The first is always picked. Another is picked only while it lowers the score by more than the share ``plateau``.
    Each input counts as much as its weight; all alike without weights.
    """
    capped, best = _capped(costs, budget, weights)
    chosen: list[int] = []
    for _ in range(min(n, len(capped))):
        totals = np.minimum(capped, best).sum(axis=1)
        pick = int(totals.argmin())
        if chosen and not totals[pick] < best.sum() * (1.0 - plateau):
            break
        chosen.append(pick)
        best = np.minimum(best, capped[pick])
    return np.array(chosen, dtype=np.int64)


def exchange(costs: FloatArray, chosen: IntArray, budget: float, weights: FloatArray | None = None) -> IntArray:
    """Exchange one chosen row for another while that lowers the joint score; the best exchange first.

    Parameters
    ----------
    costs
        Minimum costs, ``(candidates, inputs)``.
    chosen
        Rows to start from.
    budget
        What no recourse is charged at.
    weights
        How much each input counts; all alike without.
    """
    (capped, most), chosen = _capped(costs, budget, weights), chosen.copy()
    while len(chosen):
        now = capped[chosen].min(axis=0).sum()
        totals = np.empty((len(chosen), len(capped)))
        for i in range(len(chosen)):
            others = np.delete(chosen, i)
            rest = capped[others].min(axis=0) if len(others) else most
            totals[i] = np.minimum(capped, rest).sum(axis=1)
        out, pick = np.unravel_index(int(totals.argmin()), totals.shape)
        if not totals[out, pick] < now * (1.0 - 1e-12):
            break
        chosen[out] = pick
    return chosen


def _capped(costs: FloatArray, budget: float, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Weighted costs, with no recourse charged at the budget; and what each input pays without any direction."""
    capped, most = np.minimum(costs, budget), np.full(costs.shape[1], budget)
    return (capped, most) if weights is None else (capped * weights, most * weights)
