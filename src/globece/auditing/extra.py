"""Candidates that a climb may miss.

A climb goes move by move, so it misses directions in which only two moves together help. These are searched in three
other ways: in closed form, towards favourable rows, and from other groups' directions with one more category changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from globece.case.affected import Affected
from globece.case.ordering import content_order
from globece.case.scaling import scale
from globece.directions.closed_form import ClosedForm
from globece.directions.local import FromLocal
from globece.directions.rows import favourable_rows, in_cost_units, mean_row, settled
from globece.search import greedy
from globece.space import FloatArray

CLOSED_FORMS = 24
NEAREST = 16
MOST_TURNED = 400  # candidates with one more category changed
ROUNDS = ((32, 24), (192, 24))  # inputs that they are evaluated on, and how many are kept
ROUGH_POINTS = 32  # along a black box's ray
MOST_LEFT = 2000  # inputs among which those without recourse are looked for
FAVOURABLE_ROWS = 5000  # most rows among which the nearest are searched
SOON = 0.01  # scalar at which the category changes, per unit of nominal cost


def unseen(part: Affected, climbed: FloatArray, rng: np.random.Generator) -> list[FloatArray]:
    """Directions in closed form, for linear models, and to the nearest favourable rows, for inputs without recourse."""
    found = [ClosedForm().propose(part, CLOSED_FORMS, rng)] if part.model.unconditioned.half_spaces is not None else []
    rough = part.model.thinned(ROUGH_POINTS)
    if len(part.inputs) > MOST_LEFT:
        part = replace(part, inputs=part.inputs[np.sort(content_order(part.inputs, 3)[:MOST_LEFT])])
    left = np.isinf(scale(part, climbed, model=rough).cost).all(axis=0)
    if left.any() and part.favourable_rows is not None and len(part.favourable_rows):
        rest = replace(part, inputs=part.inputs[left])
        ways = FromLocal(NearestFavourable(), rows=NEAREST).propose(rest, NEAREST, rng)
        if len(ways):
            found.append(ways[greedy(scale(rest, ways, model=rough).cost, part.budget, len(climbed) + 1)])
    return [directions for directions in found if len(directions)]


def one_turn_more(part: Affected, mine: FloatArray, others: FloatArray, n: int, salt: int) -> FloatArray:
    """Other groups' directions with one category changed first, as far as they improve on the group's own.

    For example, if one group needs a permit that others do not, their directions help it once it has the permit.

    Parameters
    ----------
    part
        The group's inputs.
    mine, others
        Directions climbed for the group, and for others.
    n
        Most directions to return.
    salt
        Seed for the choice of inputs to evaluate on.
    """
    turns = [(f, c) for f in part.space.blocks if f.can_move for c in range(f.width) if f.permitted[c]]
    if not turns or not len(others):
        return others[:0]
    bases = part.cost.normalise(others[: max(MOST_TURNED // len(turns), 1)])
    turned = np.repeat(bases, len(turns), axis=0)
    for i, (feature, target) in enumerate(turns * len(bases)):
        turned[i, feature.columns] = 0.0
        turned[i, feature.start + target] = 1.0 / SOON
    order, model = content_order(part.inputs, salt), part.model.thinned(ROUGH_POINTS)
    for rows, keep in ROUNDS:
        some = replace(part, inputs=part.inputs[order[:rows]])
        paid = np.minimum(scale(some, mine, model=model).cost.min(axis=0), part.budget)
        costs = np.minimum(scale(some, turned, model=model).cost, part.budget)
        better = np.argsort(np.minimum(costs, paid).sum(axis=1), kind="stable")[:keep]
        turned, costs = turned[better], costs[better]
    picked: list[int] = []
    for _ in range(n):
        totals = np.minimum(costs, paid).sum(axis=1)
        best = int(totals.argmin())
        if not totals[best] < paid.sum() * (1.0 - 1e-3):
            break
        picked.append(best)
        paid = np.minimum(paid, costs[best])
    return turned[picked]


@dataclass(frozen=True, slots=True)
class NearestFavourable:
    """A local method: the nearest favourable row that stays favourable with the input's immutable features.

    Parameters
    ----------
    tries
        Favourable rows to try for each input.
    """

    tries: int = 32

    def counterfactuals(self, problem: Affected, Z: FloatArray) -> FloatArray:
        """A counterfactual for each row; NaN where none of the rows tried is favourable for it."""
        rows = settled(favourable_rows(problem, "an audit"), FAVOURABLE_ROWS)
        here, there = in_cost_units(problem, Z), in_cost_units(problem, rows)
        _, first = np.unique(there, axis=0, return_index=True)  # rows that only differ in immutable features count once
        rows, there = rows[first], there[first]
        fill = mean_row(there)  # for missing values
        here, there = np.where(np.isnan(here), fill, here), np.where(np.isnan(there), fill, there)
        distance = cdist(here, there, "cityblock" if problem.cost.norm == "l1" else "euclidean")
        nearest = np.argsort(distance, axis=1, kind="stable")[:, : self.tries]
        tried = rows[nearest]  # (inputs, tries, width)
        for f in problem.space.features:
            if not f.can_move:
                tried[:, :, f.columns] = Z[:, None, f.columns]
        good = problem.model.favourable(tried.reshape(-1, Z.shape[1])).reshape(nearest.shape)
        found = np.asarray(tried[np.arange(len(Z)), good.argmax(axis=1)])
        found[~np.asarray(good.any(axis=1))] = np.nan
        return found
