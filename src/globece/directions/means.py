"""Mean differences: from where the affected inputs are, on average, to where the favourable rows are.

The translations of Plumb et al. (2020) and Ley et al. (2021) match groups of rows; their simplest form is the
difference of the groups' means. It is here as a baseline, for all rows and between clusters of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from globece.case.affected import Affected
from globece.directions.constraints import admissible, as_directions, largest_features, movable_features
from globece.directions.protocol import check_asked, check_cost
from globece.directions.rows import favourable_rows, in_cost_units, mean_row, settled
from globece.errors import check_count, keep_checked
from globece.space import FloatArray

ROWS = 1000  # rows of each outcome that are clustered
SPARSE = (1, 2, 3, 5)


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """Propose the mean favourable row less the mean affected input, for all and between clusters.

    Each difference is also proposed with only the 1, 2, 3 and 5 features that take the largest part in its cost.

    Parameters
    ----------
    n_clusters
        Clusters that the affected inputs, and the favourable rows, are put into; 1 for the overall difference alone.
    cost
        Nominal cost of each direction.

    Examples
    --------
    >>> import numpy as np
    >>> from globece import explain
    >>> X = np.array([[1.0, 3.0], [2.0, 9.0], [3.0, 6.0], [8.0, 5.0], [9.0, 7.0]])
    >>> ex = explain(lambda X: (X[:, 0] >= 7).astype(int), X, generator=MeanDifference(n_clusters=1), rng=0)
    >>> ex.directions.round(3)
    array([[1.6, 0. ]])
    """

    n_clusters: int = 4
    cost: float = 2.0

    def __post_init__(self) -> None:
        keep_checked(self, n_clusters=check_count("n_clusters", self.n_clusters), cost=check_cost(self.cost))

    def propose(self, problem: Affected, n: int, rng: np.random.Generator) -> FloatArray:
        """Return the overall difference, those between clusters, and then their sparser forms."""
        n = check_asked(problem, n, rng)
        movable_features(problem.space)
        seed = int(rng.integers(2**31))
        favourable = favourable_rows(problem, "MeanDifference")
        here = self._centres(problem, problem.inputs, seed)
        there = self._centres(problem, favourable, seed)
        between = (there[:, None, :] - here[None, :, :]).reshape(-1, problem.space.width)
        full = admissible(problem.space, between)
        return as_directions(
            problem, np.vstack([full, *(largest_features(problem, full, m) for m in SPARSE)]), n, self.cost
        )

    def _centres(self, problem: Affected, Z: FloatArray, seed: int) -> FloatArray:
        """Mean of all rows, then of each cluster."""
        centres = [mean_row(Z)]
        some = settled(Z, ROWS)
        points = in_cost_units(problem, some)
        points = np.where(np.isnan(points), mean_row(points), points)
        count = min(self.n_clusters, len(np.unique(points, axis=0)))
        if count > 1:
            from sklearn.cluster import KMeans  # slow to import, and most explanations do without

            labels = KMeans(count, n_init=1, max_iter=30, random_state=seed).fit_predict(points)
            centres += [mean_row(some[labels == c]) for c in range(count)]
        return np.array(centres)
