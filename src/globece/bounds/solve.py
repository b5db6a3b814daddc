"""The minimum cost of some rows under a tree ensemble, each with the point that attains it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from globece.bounds import branch
from globece.bounds.boxes import boxes_of
from globece.bounds.cells import Grid, Int32Array, Reach, reach_of
from globece.bounds.trees import conditions
from globece.case.affected import Affected
from globece.models.trees.ensemble import TreeEnsemble
from globece.space import BoolArray, FloatArray

WORK = 5_000_000  # sides of leaves that are examined before the clock is checked, roughly
MOST_STEPS = 512  # regions before the clock is checked
KEPT = 2**26  # bytes of paused searches that are kept
WIDER = 1e-9  # relative: how far a search looks beyond a known cost
SHAVED = 1e-12  # relative: allowance for the rounding of costs
TINY = 1e-18


@dataclass(frozen=True, slots=True)
class Solved:
    """The result for each row.

    Attributes
    ----------
    cost
        A bound on the minimum cost.
    finished
        Whether the search was exhaustive, so that no point below the bound is favourable.
    point
        The encoded row that attains the cost; ``nan`` where there is none.
    """

    cost: FloatArray  # (n,)
    finished: BoolArray  # (n,)
    point: FloatArray  # (n, width)


def solve_rows(model: TreeEnsemble, problem: Affected, known: FloatArray, within: FloatArray, seconds: float) -> Solved:
    """Solve for every input in turn, until the time is up.

    Parameters
    ----------
    model, problem
        The ensemble, and the inputs to solve for.
    known
        A valid bound for each input.
    within
        The cost of a known counterfactual for each input, or the budget. Cheaper points are searched first, and more
        expensive ones only if there are none.
    seconds
        Time for all of them; compiling the search, once on each machine, is not counted.
    """
    searches = Searches(model, problem)
    searches.start(0, 0.0).resume(0.0)
    n = len(known)
    cost, finished, point = known.copy(), np.zeros(n, dtype=bool), np.full((n, problem.space.width), np.nan)
    waiting, end = list(range(n)), time.monotonic() + seconds
    started: dict[int, RowSearch] = {}
    while waiting and time.monotonic() < end:
        # every row gets an equal share of the time; those that need more share what the others left
        unfinished: list[int] = []
        for i, row in enumerate(waiting):
            left = end - time.monotonic()
            if left <= 0:
                unfinished += waiting[i:]
                break
            if row not in started:
                started[row] = searches.start(row, float(within[row]))
            search = started[row]
            finished[row] = search.resume(left / (len(waiting) - i))
            cost[row] = max(search.bound, cost[row])
            if finished[row]:
                cost[row] = search.bound
                point[row] = search.found()
                del started[row]
            else:
                unfinished.append(row)
                if len(started) * search.size > KEPT:
                    del started[row]  # it starts again
        waiting = unfinished
    return Solved(cost, finished, point)


class Searches:
    """Data shared by the searches of all rows under one ensemble."""

    def __init__(self, model: TreeEnsemble, problem: Affected) -> None:
        self.model, self.problem = model, problem
        self.boxes = boxes_of(model.trees, problem.space)
        self.grid = Grid.of(self.boxes, model.trees, problem.space)
        sums = list(conditions(model, self.boxes))
        self.scores = np.array([scores for scores, _, _ in sums])
        self.targets = np.array([low for _, low, _ in sums]), np.array([high for _, _, high in sums])
        self.n_cells = np.array(
            [f.width if f.is_block else len(c) + 1 for f, c in zip(self.grid.features, self.grid.cuts, strict=True)],
            dtype=np.int64,
        )
        self.l2 = problem.cost.norm == "l2"

    def start(self, row: int, within: float) -> RowSearch:
        """The search of one row."""
        x = self.problem.inputs[row]
        reach = reach_of(self.grid, self.problem.cost, x, self.problem.space.rounding)
        boxes, grid = self.boxes, self.grid
        forest = branch.forest_of(
            reach,
            self.n_cells,
            (grid.dimension, grid.first_cell, grid.last_cell, boxes.categories, boxes.missing),
            (boxes.first, boxes.tree, self.scores),
            self.targets,
            len(self.model.trees.roots),
        )
        return RowSearch(self, x, reach, forest, within)


class RowSearch:
    """The search of one row, which can be paused and resumed."""

    def __init__(self, shared: Searches, x: FloatArray, reach: Reach, forest: branch.Forest, within: float) -> None:
        self.shared, self.x, self.reach, self.forest = shared, x, reach, forest
        self.within, self.proved = within, 0.0
        self.steps = int(np.clip(WORK // max(1, len(forest.dimension)), 4, MOST_STEPS))
        self.search = self._below(within)

    def _below(self, most: float) -> branch.Search:
        wide = most * (1.0 + WIDER) + TINY
        return branch.start(self.reach, self.forest, wide * wide if self.shared.l2 else wide)

    @property
    def bound(self) -> float:
        """The bound proved so far: nothing cheaper is favourable."""
        waiting, search = int(self.search.counts[0]), self.search
        least = float(min(search.best.min(), search.bound[:waiting].min(initial=np.inf)))
        least = float(np.sqrt(least)) if self.shared.l2 else least
        return max(least * (1.0 - SHAVED), self.proved)

    @property
    def size(self) -> int:
        """Memory in bytes."""
        return sum(part.nbytes for part in (*self.search, *self.forest, *self.reach))

    def resume(self, seconds: float) -> bool:
        """Continue for a while; return whether the search is finished."""
        end = time.monotonic() + seconds
        while True:
            status = branch.run(self.reach, self.forest, self.search, self.shared.grid.loose, self.steps)
            self._ask()
            if status != branch.PAUSED and not self.search.counts[0]:
                if self.search.counts[3] or np.isinf(self.within) or np.isfinite(self.search.best[1]):
                    return True
                # nothing within the limit is favourable: look beyond
                self.proved, self.within = self.bound, np.inf
                self.search = self._below(np.inf)
            if time.monotonic() >= end:
                return False

    def _ask(self) -> None:
        """Pass points too near the boundary to both models: one that is favourable to either counts."""
        search = self.search
        n = int(search.counts[2])
        search.counts[2] = 0
        if n:
            Z = np.array([self.row(point) for point in search.asked[:n]])
            favourable = self.shared.model.favourable(Z) | self.shared.problem.model.favourable(Z)
            for i in np.flatnonzero(favourable):
                if search.price[i] < search.best[0]:
                    search.best[0] = search.price[i]
                    search.point[:] = search.asked[i]
                    search.counts[3] += 1

    def row(self, point: Int32Array) -> FloatArray:
        """The encoded row in these cells."""
        out = self.x.copy()
        for d, f in enumerate(self.shared.grid.features):
            value = self.reach.value[self.reach.start[d] + point[d]]
            if f.is_block:
                out[f.columns] = np.arange(f.width) == value
            else:
                out[f.start] = value
        return out

    def found(self) -> FloatArray:
        """The cheapest favourable row; ``nan`` if there is none, or if a cheaper region was given up."""
        search = self.search
        if not search.counts[3] or search.best[1] < search.best[0]:
            return np.full(len(self.x), np.nan)
        return self.row(search.point)
