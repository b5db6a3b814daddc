"""The nearest favourable row that stays favourable with one's own immutable features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from globece.case.affected import Affected
from globece.directions.rows import favourable_rows, in_cost_units, mean_row, settled
from globece.space import FloatArray

ROWS = 5000  # favourable rows to look among


@dataclass(frozen=True, slots=True)
class NearestInOnesShoes:
    """A local method: of the nearest favourable rows the first that is favourable with one's own immutable features.

    Parameters
    ----------
    tries
        Favourable rows that each input tries.
    """

    tries: int = 32

    def counterfactuals(self, problem: Affected, Z: FloatArray) -> FloatArray:
        """What each row would become; NaN where none of the rows tried is favourable for it."""
        rows = settled(favourable_rows(problem, "an audit"), ROWS)
        here, there = in_cost_units(problem, Z), in_cost_units(problem, rows)
        _, first = np.unique(there, axis=0, return_index=True)  # rows that differ in what cannot move are one
        rows, there = rows[first], there[first]
        fill = mean_row(there)  # a missing value is taken for an average one
        here, there = np.where(np.isnan(here), fill, here), np.where(np.isnan(there), fill, there)
        distance = cdist(here, there, "cityblock" if problem.cost.norm == "l1" else "euclidean")
        nearest = np.argsort(distance, axis=1, kind="stable")[:, : self.tries]
        shoes = rows[nearest]  # (inputs, tries, width)
        for f in problem.space.features:
            if not f.can_move:
                shoes[:, :, f.columns] = Z[:, None, f.columns]
        good = problem.model.favourable(shoes.reshape(-1, Z.shape[1])).reshape(nearest.shape)
        found = np.asarray(shoes[np.arange(len(Z)), good.argmax(axis=1)])
        found[~np.asarray(good.any(axis=1))] = np.nan
        return found
