"""Whether our runs of a method agree with a figure that somebody else found for it, within sampling noise.

The rule: a figure agrees if it lies within the range of our seeds, or within the 95 % prediction interval for one more
seed (Student's t), each widened by what rounding and the paper's grid of scalars alone may do: half a point of
coverage and 3 % of cost. Where the other side's own range over seeds is known, it must overlap. Coverage and cost must
both agree. A method with nothing random in it has one run, and only the widening.
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
    middle = sum(cost) / 2
    return Agreement(_within(coverages, coverage, POINTS), _within(costs, cost, SHARE * middle))


def _within(runs: Sequence[float], other: Range, slack: float) -> bool:
    if not runs:
        return False
    low, high = expected(runs)
    return other[0] <= high + slack and other[1] >= low - slack


def expected(runs: Sequence[float]) -> Range:
    """Where one more run would lie: the range of those there are, and the 95 % prediction interval."""
    from scipy.stats import t

    values = np.asarray(runs, dtype=float)
    away = 0.0
    if len(values) > 1:
        away = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) * np.sqrt(1 + 1 / len(values)))
    return float(min(values.min(), values.mean() - away)), float(max(values.max(), values.mean() + away))


def mean_interval(runs: Sequence[float]) -> tuple[float, float, float]:
    """Mean over seeds, and its 95 % interval by Student's t."""
    from scipy.stats import t

    values = np.asarray(runs, dtype=float)
    mean = float(values.mean())
    if len(values) < 2:
        return mean, mean, mean
    away = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - away, mean + away
