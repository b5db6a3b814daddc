"""A matrix of minimum costs, and the few rows of it that together cost least."""

from __future__ import annotations

import numpy as np

from globece.space import FloatArray, IntArray


def greedy(costs: FloatArray, budget: float, n: int, plateau: float = 0.0) -> IntArray:
    """Pick up to ``n`` rows of a (candidates, inputs) cost matrix, each lowering the joint score most.

    The first is always picked. Another is picked only while it lowers the score by more than the share ``plateau``.
    """
    capped = np.minimum(costs, budget)
    best = np.full(capped.shape[1], budget)
    chosen: list[int] = []
    for _ in range(min(n, len(capped))):
        totals = np.minimum(capped, best).sum(axis=1)
        pick = int(totals.argmin())
        if chosen and not totals[pick] < best.sum() * (1.0 - plateau):
            break
        chosen.append(pick)
        best = np.minimum(best, capped[pick])
    return np.array(chosen, dtype=np.int64)
