"""Coverage, average cost and score of any recourse, computed here and nowhere else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from globece.space import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Numbers:
    """Coverage, average cost and score of some affected inputs.

    If nobody is affected, coverage is 1, and average cost and score are 0.

    Attributes
    ----------
    n_affected, n_covered
        Affected inputs, and those of them with recourse within the budget.
    coverage
        Share that is covered, in [0, 1].
    average_cost
        Mean minimum cost over the covered inputs; ``inf`` if nobody is covered.
    score
        Mean minimum cost over all of them, where inputs without recourse count as the budget; lower is better.

    Examples
    --------
    >>> Numbers.of(np.array([1.0, 3.0, np.inf]), budget=10.0)
    Numbers(n_affected=3, n_covered=2, coverage=0.6666666666666666, average_cost=2.0, score=4.666666666666667)
    """

    n_affected: int
    n_covered: int
    coverage: float
    average_cost: float
    score: float

    @classmethod
    def of(cls, costs: FloatArray, budget: float) -> Numbers:
        """From the minimum cost of each affected input, ``inf`` for no recourse."""
        if not costs.size:
            return cls(0, 0, 1.0, 0.0, 0.0)
        paid = costs[np.isfinite(costs)]
        return cls(costs.size, paid.size, paid.size / costs.size, mean_cost(paid), score(costs, budget))


class Recourse:
    """Costs of several directions or rules, one per row of ``costs``, for each affected input; ``inf`` for none."""

    rows: IntArray
    costs: FloatArray
    budget: float

    @property
    def n_affected(self) -> int:
        """Number of affected inputs."""
        return len(self.rows)

    @property
    def is_empty(self) -> bool:
        """Whether nobody is affected: every row given has the favourable outcome already."""
        return self.n_affected == 0

    @cached_property
    def best_costs(self) -> FloatArray:
        """Minimum cost of each affected input; ``inf`` where there is no recourse."""
        least = self.costs.min(axis=0) if len(self.costs) else np.full(self.n_affected, np.inf)
        least.flags.writeable = False
        return least

    @cached_property
    def numbers(self) -> Numbers:
        """Coverage, average cost and score."""
        return Numbers.of(self.best_costs, self.budget)

    @property
    def n_covered(self) -> int:
        """Number of affected inputs with recourse within the budget."""
        return self.numbers.n_covered

    @property
    def n_without_recourse(self) -> int:
        """Number of affected inputs without recourse within the budget."""
        return self.n_affected - self.n_covered

    @property
    def coverage(self) -> float:
        """Share of the affected inputs with recourse within the budget, in [0, 1]; 1 if nobody is affected."""
        return self.numbers.coverage

    @property
    def average_cost(self) -> float:
        """Mean minimum cost over the covered inputs; ``inf`` if nobody is covered, 0 if nobody is affected."""
        return self.numbers.average_cost

    @property
    def score(self) -> float:
        """Mean minimum cost over the affected inputs; those without recourse count as the budget. Lower is better."""
        return self.numbers.score


def score(costs: FloatArray, budget: float) -> float:
    """Mean of the minimum costs, where no recourse counts as the budget; it does not depend on the order of rows."""
    if not costs.size:
        return 0.0
    return _exact_mean(np.minimum(costs, budget))


def mean_cost(costs: FloatArray) -> float:
    """Mean of finite costs, which does not depend on their order; ``inf`` if there are none."""
    return _exact_mean(costs) if costs.size else float("inf")


def _exact_mean(values: FloatArray) -> float:
    """The mean: the sum is rounded once, so it does not depend on how rows are ordered or split."""
    return math.fsum(np.ascontiguousarray(values).data) / len(values)
