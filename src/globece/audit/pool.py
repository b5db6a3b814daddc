"""One pool of candidate directions for all groups, and what each of them does for every affected input.

Half of the affected inputs choose directions and the other half judges them, both ways. So each half climbs its own
candidates, for everybody in it and for each group in it, and all candidates are then followed on all inputs, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from globece.audit.nearest import NearestInOnesShoes
from globece.directions.closed_form import ClosedForm
from globece.directions.local import FromLocal
from globece.directions.protocol import DirectionGenerator, Problem
from globece.directions.scaling import Scaled, content_order, scale
from globece.models.adapt import Compiled
from globece.models.linear import LinearModel
from globece.models.robust import own
from globece.progress import Monitor
from globece.rays import BUDGET_SLACK
from globece.search import Settings, find_directions, greedy
from globece.space import FloatArray, IntArray

HALVES = (0, 1)
FEWEST = 8  # affected inputs below which they are not split
CLOSED_FORMS = 24
NEAREST = 16


@dataclass(frozen=True, slots=True)
class Search:
    """How candidates are looked for.

    Attributes
    ----------
    n
        Directions for everybody, and for each group.
    generator, settings
        As for :func:`globece.explain`.
    seed
        The same for everybody and for each group: the same inputs give the same candidates.
    monitor
        Told of progress, and asked whether to stop.
    """

    n: int
    generator: DirectionGenerator | None
    settings: Settings
    seed: int
    monitor: Monitor


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Candidate directions and their minimum scalars and costs.

    Attributes
    ----------
    directions
        Each once, ``(m, width)``.
    scaled
        Minimum scalars and costs, ``(m, n)``.
    far
        The same within a larger budget, for other prices.
    from_half
        Which half's inputs, if any, a candidate was climbed on: ``(2, m)``.
    half
        Half of each affected input.
    seen
        Directions looked at.
    """

    directions: FloatArray
    scaled: Scaled
    far: Scaled
    from_half: IntArray
    half: IntArray
    seen: int

    @property
    def cost(self) -> FloatArray:
        """Minimum costs, ``(m, n)``."""
        return self.scaled.cost

    def best(self, inputs: IntArray, half: int | None, n: int, budget: float) -> IntArray:
        """The ``n`` candidates that together cost these inputs least, of those climbed on one half or of all."""
        mine = np.arange(len(self.directions)) if half is None else np.flatnonzero(self.from_half[half])
        if not len(inputs):
            return mine[:0]
        return mine[greedy(self.cost[np.ix_(mine, inputs)], budget, n)]


def halves(Z: FloatArray, cells: IntArray, salt: int) -> IntArray:
    """Split inputs into two halves, each cell (a group at a level) as evenly as can be.

    The split depends on the inputs' content alone, not on how they are arranged or what the groups are called.
    """
    half = np.zeros(len(Z), dtype=np.int64)
    order = content_order(Z, salt)
    for cell in np.unique(cells):
        mine = order[cells[order] == cell]
        half[mine] = np.arange(len(mine)) % 2
    return half


def gather(problem: Problem, members: Sequence[IntArray], half: IntArray, search: Search, reach: float = 1.0) -> Pool:
    """Climb candidates for everybody and for some groups in each half, and follow all of them on all inputs.

    Parameters
    ----------
    problem
        With the affected inputs.
    members
        Inputs of each group that has candidates of its own.
    half
        Half of each input.
    search
        How to look for candidates.
    reach
        Follow rays up to so many times the budget.
    """
    everybody = np.arange(len(problem.inputs))
    found: list[FloatArray] = []
    origin: list[int] = []
    seen = 0
    for h in np.unique(half).tolist():
        for inputs in (everybody, *members):
            mine = inputs[half[inputs] == h]
            if not mine.size:
                continue
            part = replace(problem, inputs=problem.inputs[mine])
            rng = np.random.default_rng(search.seed)
            got = find_directions(part, search.generator, search.n, search.settings, rng, search.monitor)
            made = [got.directions]
            if search.generator is None:
                made += _more(part, got.directions, rng)
            seen += got.candidates
            found += made
            origin += [h] * sum(map(len, made))
    directions, which = np.unique(problem.cost.normalise(np.vstack(found)), axis=0, return_inverse=True)
    from_half = np.zeros((2, len(directions)), dtype=np.int64)
    from_half[origin, which.ravel()] = 1
    if len(np.unique(half)) == 1:
        from_half[:] = 1
    far = scale(replace(problem, budget=reach * problem.budget), directions)
    return Pool(directions, within(far, problem.budget), far, from_half, half, seen)


def within(scaled: Scaled, budget: float) -> Scaled:
    """The same with what costs more than the budget taken for no recourse."""
    beyond = scaled.cost > budget * (1 + BUDGET_SLACK)
    return Scaled(np.where(beyond, np.inf, scaled.scalar), np.where(beyond, np.inf, scaled.cost))


def _more(part: Problem, climbed: FloatArray, rng: np.random.Generator) -> list[FloatArray]:
    """Candidates that a climb may miss: in closed form, and the ways to the nearest favourable rows.

    A climb goes move by move, so it cannot see where only two moves together help. The inputs it leaves without
    recourse are shown the way to rows that have what they want.
    """
    found = [ClosedForm().propose(part, CLOSED_FORMS, rng)] if _is_linear(part) else []
    left = np.isinf(scale(part, climbed).cost).all(axis=0)
    if left.any() and part.favourable_rows is not None and len(part.favourable_rows):
        rest = replace(part, inputs=part.inputs[left])
        ways = FromLocal(NearestInOnesShoes(), rows=NEAREST).propose(rest, NEAREST, rng)
        if len(ways):
            found.append(ways[greedy(scale(rest, ways).cost, part.budget, len(climbed) + 1)])
    return [directions for directions in found if len(directions)]


def _is_linear(problem: Problem) -> bool:
    asked = own(problem.model)
    return isinstance(asked.core if isinstance(asked, Compiled) else asked, LinearModel)
