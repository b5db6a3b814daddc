"""Candidates that a climb may miss.

A climb goes move by move, so it cannot see where only two moves together help. What it leaves is looked for in three
other ways: in closed form, towards favourable rows, and from what helps others with one more category turned.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from globece.audit.nearest import NearestInOnesShoes
from globece.directions.closed_form import ClosedForm
from globece.directions.local import FromLocal
from globece.directions.protocol import Problem
from globece.directions.scaling import content_order, scale
from globece.models.adapt import Compiled
from globece.models.linear import LinearModel
from globece.models.robust import own
from globece.search import greedy
from globece.space import FloatArray

CLOSED_FORMS = 24
NEAREST = 16
JUDGED_ON = 192  # inputs that judge the candidates made here
MOST_TURNED = 600  # candidates with one more turn
SOON = 0.01  # when it turns, as a share of a unit of cost along the way


def unseen(part: Problem, climbed: FloatArray, rng: np.random.Generator) -> list[FloatArray]:
    """Directions in closed form, for linear models, and to the nearest favourable rows for those without recourse."""
    found = [ClosedForm().propose(part, CLOSED_FORMS, rng)] if is_linear(part) else []
    left = np.isinf(scale(part, climbed).cost).all(axis=0)
    if left.any() and part.favourable_rows is not None and len(part.favourable_rows):
        rest = replace(part, inputs=part.inputs[left])
        ways = FromLocal(NearestInOnesShoes(), rows=NEAREST).propose(rest, NEAREST, rng)
        if len(ways):
            found.append(ways[greedy(scale(rest, ways).cost, part.budget, len(climbed) + 1)])
    return [directions for directions in found if len(directions)]


def one_turn_more(part: Problem, mine: FloatArray, others: FloatArray, n: int, salt: int) -> FloatArray:
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
    most = max(MOST_TURNED // len(turns), 1)
    bases = part.cost.normalise(others[:most])
    made = np.repeat(bases, len(turns), axis=0)
    for i, (feature, target) in enumerate(turns * len(bases)):
        made[i, feature.columns] = 0.0
        made[i, feature.start + target] = 1.0 / SOON
    some = replace(part, inputs=part.inputs[content_order(part.inputs, salt)[:JUDGED_ON]])
    paid = np.minimum(scale(some, mine).cost.min(axis=0), part.budget)
    picked: list[int] = []
    costs = np.minimum(scale(some, made).cost, part.budget)
    for _ in range(n):
        totals = np.minimum(costs, paid).sum(axis=1)
        best = int(totals.argmin())
        if not totals[best] < paid.sum() * (1.0 - 1e-3):
            break
        picked.append(best)
        paid = np.minimum(paid, costs[best])
    return made[picked]


def is_linear(problem: Problem) -> bool:
    """Whether the model is linear, so that closed forms are known."""
    asked = own(problem.model)
    return isinstance(asked.core if isinstance(asked, Compiled) else asked, LinearModel)
