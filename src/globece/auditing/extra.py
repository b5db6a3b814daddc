"""Candidates that a climb may miss.

A climb goes move by move, so it cannot see where only two moves together help. What it leaves is looked for in three
other ways: in closed form, towards favourable rows, and from what helps others with one more category turned.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from globece.auditing.nearest import NearestInOnesShoes
from globece.case.affected import Affected
from globece.case.ordering import content_order
from globece.case.scaling import scale
from globece.directions.closed_form import ClosedForm
from globece.directions.local import FromLocal
from globece.search import greedy
from globece.space import FloatArray

CLOSED_FORMS = 24
NEAREST = 16
MOST_TURNED = 400  # candidates with one more turn
JUDGED_ON = ((32, 24), (192, 24))  # inputs that judge them, and how many go on
ROUGH_POINTS = 32  # along a black box's ray
SOON = 0.01  # when it turns, as a share of a unit of cost along the way


def unseen(part: Affected, climbed: FloatArray, rng: np.random.Generator) -> list[FloatArray]:
    """Directions in closed form, for linear models, and to the nearest favourable rows for those without recourse."""
    found = [ClosedForm().propose(part, CLOSED_FORMS, rng)] if part.model.own.half_spaces is not None else []
    rough = part.model.thinned(ROUGH_POINTS)
    left = np.isinf(scale(part, climbed, model=rough).cost).all(axis=0)
    if left.any() and part.favourable_rows is not None and len(part.favourable_rows):
        rest = replace(part, inputs=part.inputs[left])
        ways = FromLocal(NearestInOnesShoes(), rows=NEAREST).propose(rest, NEAREST, rng)
        if len(ways):
            found.append(ways[greedy(scale(rest, ways, model=rough).cost, part.budget, len(climbed) + 1)])
    return [directions for directions in found if len(directions)]


def one_turn_more(part: Affected, mine: FloatArray, others: FloatArray, n: int, salt: int) -> FloatArray:
    """Directions of others with one category turned first, as far as they add to one's own.

    Where a group needs a paper that others do not, say, what helps others helps it too, once it has the paper.

    Parameters
    ----------
    part
        With a group's inputs.
    mine, others
        What was climbed for it, and for others.
    n
        Most directions to return.
    salt
        Decides which inputs judge.
    """
    turns = [(f, c) for f in part.space.blocks if f.can_move for c in range(f.width) if f.permitted[c]]
    if not turns or not len(others):
        return others[:0]
    bases = part.cost.normalise(others[: max(MOST_TURNED // len(turns), 1)])
    made = np.repeat(bases, len(turns), axis=0)
    for i, (feature, target) in enumerate(turns * len(bases)):
        made[i, feature.columns] = 0.0
        made[i, feature.start + target] = 1.0 / SOON
    order, model = content_order(part.inputs, salt), part.model.thinned(ROUGH_POINTS)
    for rows, keep in JUDGED_ON:
        some = replace(part, inputs=part.inputs[order[:rows]])
        paid = np.minimum(scale(some, mine, model=model).cost.min(axis=0), part.budget)
        costs = np.minimum(scale(some, made, model=model).cost, part.budget)
        better = np.argsort(np.minimum(costs, paid).sum(axis=1), kind="stable")[:keep]
        made, costs = made[better], costs[better]
    picked: list[int] = []
    for _ in range(n):
        totals = np.minimum(costs, paid).sum(axis=1)
        best = int(totals.argmin())
        if not totals[best] < paid.sum() * (1.0 - 1e-3):
            break
        picked.append(best)
        paid = np.minimum(paid, costs[best])
    return made[picked]
