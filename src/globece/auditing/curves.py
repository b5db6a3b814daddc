"""Cost curves: the share of a group that has recourse within each cost, in compact form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from globece.auditing.settings import AuditSettings
from globece.space import FloatArray, IntArray

POINTS = 241


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The share of a group that has recourse within each cost, with Wilson's interval at each.

    Attributes
    ----------
    n
        Affected inputs.
    limit
        Costs, the same for all groups.
    share, low, high
        The share within each, and the ends of its interval.
    """

    n: int
    limit: FloatArray
    share: FloatArray
    low: FloatArray
    high: FloatArray


def curves_of(
    cost: FloatArray, members: Mapping[str, IntArray | None], budget: float, settings: AuditSettings
) -> dict[str, Curve]:
    """The curve of each group (of everybody where ``None`` is given), on one grid of costs."""
    paid = cost[np.isfinite(cost)]
    limit = np.linspace(0.0, float(paid.max()) if paid.size else budget, POINTS)
    found = {}
    for name, mine in members.items():
        own = np.sort(cost if mine is None else cost[mine])
        n = len(own)
        share = np.searchsorted(own, limit, side="right") / max(n, 1)
        low, high = _wilson(share, n, settings.level)
        found[name] = Curve(n, limit, share, low, high)
    return found


def _wilson(share: FloatArray, n: int, level: float) -> tuple[FloatArray, FloatArray]:
    if not n:
        return np.zeros(len(share)), np.ones(len(share))
    z2 = float(ndtri(level / 2)) ** 2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (share * (1 - share) + z2 / (4 * n)) / n) / (1 + z2 / n)
    return np.minimum(np.maximum(middle - half, 0.0), share), np.maximum(np.minimum(middle + half, 1.0), share)
