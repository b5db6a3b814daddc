"""Whether our runs of a method agree with a figure that somebody else found for it, within sampling noise.

The rule: a figure agrees if it lies within the range of our seeds, or within the 95 % prediction interval for one more
seed (Student's t; of the logarithm for costs, which are skewed) and beyond the range by at most half its width: one
run far off must not make everything agree. Both are widened by what rounding and the paper's grid of scalars alone may
do, half a point of coverage and 3 % of cost. Where the other side's own range over seeds is known, it must overlap.
Coverage and cost must both agree. A method with nothing random in it has one run, and only the widening.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

POINTS, SHARE = 0.5, 0.03

Range = tuple[float, float]


class Agreement(NamedTuple):
    """Whether coverage and cost agree, each."""

    coverage: bool
    cost: bool

    @property
    def both(self) -> bool:
        return self.coverage and self.cost


def agreement(coverages: Sequence[float], costs: Sequence[float], coverage: Range, cost: Range) -> Agreement:
    """Compare runs, coverage in %, with the range that another's coverage and cost lie in."""
    if not coverages or not costs:
        return Agreement(False, False)
    slack = SHARE * sum(cost) / 2
    return Agreement(_overlap(expected(coverages), coverage, POINTS), _overlap(expected_costs(costs), cost, slack))


def _overlap(ours: Range, other: Range, slack: float) -> bool:
    return other[0] <= ours[1] + slack and other[1] >= ours[0] - slack


def expected(runs: Sequence[float]) -> Range:
    """Where one more run may lie."""
    from scipy.stats import t

    values = np.asarray(runs, dtype=float)
    low, high, away = float(values.min()), float(values.max()), 0.0
    if len(values) > 1:
        away = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) * np.sqrt(1 + 1 / len(values)))
    beyond, mean = (high - low) / 2, float(values.mean())
    return min(low, max(mean - away, low - beyond)), max(high, min(mean + away, high + beyond))


def expected_costs(runs: Sequence[float]) -> Range:
    """The same for costs, which are above 0 and skewed."""
    low, high = expected(np.log(runs).tolist())
    return float(np.exp(low)), float(np.exp(high))


def mean_interval(runs: Sequence[float]) -> tuple[float, float, float]:
    """Mean over seeds, and its 95 % interval by Student's t."""
    from scipy.stats import t

    values = np.asarray(runs, dtype=float)
    mean = float(values.mean())
    if len(values) < 2:
        return mean, mean, mean
    away = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - away, mean + away
