"""The numbers of any recourse: who is covered, at what cost, and the score; of an explanation as of a set of rules."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from globece.space import FloatArray, IntArray


class Recourse:
    """What several ways cost each affected input, in ``costs``: a row for each way, ``inf`` for no recourse."""

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
        return self.costs.min(axis=0) if len(self.costs) else np.full(self.n_affected, np.inf)

    @property
    def n_covered(self) -> int:
        """Number of affected inputs with recourse within the budget."""
        return int(np.isfinite(self.best_costs).sum())

    @property
    def n_without_recourse(self) -> int:
        """Number of affected inputs without recourse within the budget."""
        return self.n_affected - self.n_covered

    @property
    def coverage(self) -> float:
        """Share of the affected inputs with recourse within the budget, in [0, 1]; 1 if nobody is affected."""
        return self.n_covered / self.n_affected if self.n_affected else 1.0

    @property
    def average_cost(self) -> float:
        """Mean minimum cost over the covered inputs; ``inf`` if nobody is covered, 0 if nobody is affected."""
        if self.is_empty:
            return 0.0
        return mean_cost(self.best_costs[np.isfinite(self.best_costs)])

    @property
    def score(self) -> float:
        """Mean minimum cost over the affected inputs, with no recourse charged at the budget; lower is better."""
        return score(self.best_costs, self.budget)


def score(costs: FloatArray, budget: float) -> float:
    """Mean of the minimum costs, with no recourse charged at the budget; the same in whatever order rows come."""
    if not costs.size:
        return 0.0
    return float(np.sort(np.minimum(costs, budget)).sum() / costs.size)


def mean_cost(costs: FloatArray) -> float:
    """Average of finite costs, the same in whatever order they come; ``inf`` where there are none."""
    return float(np.sort(costs).sum() / costs.size) if costs.size else float("inf")
