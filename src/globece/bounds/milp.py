"""The minimum cost of a row under a tree ensemble, as a mixed-integer program (HiGHS, through SciPy).

A binary for each threshold of each column says whether the row ends up above it, a binary for each category whether it
ends up there, and a number in [0, 1] for each leaf whether its tree gives it. Leaves of one tree exclude each other, so
all of those above a threshold together need that threshold's binary. Only what the row can reach within its limit
enters the program.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from globece.bounds.boxes import Boxes, boxes_of, entries, fares_of, landing, places
from globece.bounds.trees import codes_of, contests
from globece.directions.protocol import Problem
from globece.models.tree_verdict import CHANCE_DOUBLE, CHANCE_SINGLE
from globece.models.trees import TreeEnsemble
from globece.space import BoolArray, FloatArray, IntArray

RELATIVE_GAP = 1e-6
SHAVED = 1e-6  # what the solver's tolerances can make
OPTIMAL, INFEASIBLE = 0, 2


@dataclass(frozen=True, slots=True)
class Solved:
    """What was proved for each row."""

    cost: FloatArray  # (n,)
    optimal: BoolArray  # (n,) whether that is the minimum, and not only a bound


def solve_rows(model: TreeEnsemble, problem: Problem, known: FloatArray, within: FloatArray, seconds: float) -> Solved:
    """Solve for every input in turn, until the time is up.

    Parameters
    ----------
    model, problem
        The ensemble, and the inputs to solve for.
    known
        A bound for each input that holds already.
    within
        A cost for each input that is known to do, or the budget: nothing dearer needs a look.
    seconds
        Time for all of them.
    """
    boxes = boxes_of(model.trees, problem.space)
    programs = _Programs(model, problem, boxes)
    cost, optimal = known.copy(), np.zeros(len(known), dtype=bool)
    end, waiting, turn = time.monotonic() + seconds, list(range(len(known))), 0.0
    while waiting:
        # first everybody gets an equal share of the time, then those who need more share what the others left
        share = (end - time.monotonic()) / len(waiting)
        if share < 2.0 * turn or share <= 0:
            break
        turn, cut_off = share, []
        for place, row in enumerate(waiting):
            left = end - time.monotonic()
            if left <= 0:
                break
            found, optimal[row] = programs.solve(row, float(within[row]), left / (len(waiting) - place))
            cost[row] = max(found, cost[row])
            if not optimal[row]:
                cut_off.append(row)
        waiting = [] if programs.relaxed else cut_off
    return Solved(cost, optimal)


class _Programs:
    """The programs of some rows under one ensemble."""

    def __init__(self, model: TreeEnsemble, problem: Problem, boxes: Boxes) -> None:
        self.problem, self.boxes = problem, boxes
        self.l2 = problem.cost.norm == "l2"
        self.fares = fares_of(boxes, problem.cost, problem.inputs)
        self.at, self.codes = places(problem.cost, problem.inputs), codes_of(problem)
        self.contests = list(contests(model, boxes))
        self.scalars = {f.start: f for f in problem.space.scalars}
        # pieces of odd predicates enter as their hull, and a probability among several classes as each pair of them
        self.relaxed = bool((model.trees.odd_slot < problem.space.width).any()) or model.verdict.rule in (
            CHANCE_SINGLE,
            CHANCE_DOUBLE,
        )

    def solve(self, row: int, limit: float, seconds: float) -> tuple[float, bool]:
        """A bound on one row's cost, and whether it is the minimum (or the limit, if that is lower)."""
        x, at, codes = self.problem.inputs[row], self.at[row], self.codes[row]
        most = limit * (1.0 + 1e-6) + 1e-6
        price = entries(self.boxes, self.fares, x, at, codes, self.l2)
        leaves = np.flatnonzero(price <= (most * most if self.l2 else most))
        program = _Program(len(leaves))
        self._add_leaves(program, leaves)
        self._add_columns(program, leaves, x, at)
        self._add_blocks(program, leaves, codes)
        result = program.solve(seconds)
        if result.status == INFEASIBLE:
            return limit, not self.relaxed
        dual = getattr(result, "mip_dual_bound", None)
        if dual is None or not np.isfinite(dual):
            return 0.0, False
        value = max(float(dual) + program.constant, 0.0)
        bound = float(np.sqrt(value)) if self.l2 else value
        return max(bound * (1.0 - SHAVED) - SHAVED, 0.0), result.status == OPTIMAL and not self.relaxed

    def _add_leaves(self, program: _Program, leaves: IntArray) -> None:
        trees = self.boxes.tree[leaves]
        for t in np.unique(trees):
            program.row(((int(i), 1.0) for i in np.flatnonzero(trees == t)), 1.0, 1.0)
        for scores, target in self.contests:
            program.row(((i, float(s)) for i, s in enumerate(scores[leaves])), target, np.inf)

    def _sides(self, leaves: IntArray) -> tuple[IntArray, IntArray]:
        """Sides of these leaves, each with the place of its leaf."""
        first = self.boxes.first
        counts = first[leaves + 1] - first[leaves]
        owner = np.repeat(np.arange(len(leaves)), counts)
        return np.concatenate([np.arange(first[i], first[i + 1]) for i in leaves]), owner

    def _add_columns(self, program: _Program, leaves: IntArray, x: FloatArray, at: FloatArray) -> None:
        sides, owner = self._sides(leaves)
        for column, f in self.scalars.items():
            mine = self.boxes.dimension[sides] == column
            if not mine.any() or np.isnan(x[column]):
                continue
            some, who = sides[mine], owner[mine]
            tree = self.boxes.tree[leaves[who]]
            low, high = self.boxes.low[some], self.boxes.high[some]
            cuts = np.unique(np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]]))
            above = program.binaries(len(cuts))
            if f.can_move:
                up, down = landing(f, cuts, cuts, self.problem.inputs[:, column])
                scale, weight = self.problem.cost.scales[f.name], self.problem.cost.weight(f)
                paid = np.where(cuts >= x[column], weight * scale(up) - at[column], at[column] - weight * scale(down))
                paid = np.maximum(paid, 0.0) ** (2 if self.l2 else 1)
            else:
                paid = np.zeros(len(cuts))  # no leaf in reach asks for a move
            rising = np.flatnonzero(cuts >= x[column])
            falling = np.flatnonzero(cuts < x[column])[::-1]
            for order, sign in ((rising, 1.0), (falling, -1.0)):
                for i, step in zip(order, np.diff(paid[order], prepend=0.0), strict=True):
                    program.objective[above[i]] = sign * float(max(step, 0.0))
                    program.constant += float(max(step, 0.0)) if sign < 0 else 0.0
            for i in range(len(cuts) - 1):
                program.row(((above[i], 1.0), (above[i + 1], -1.0)), 0.0, np.inf)
            for t in np.unique(tree):
                of_tree = tree == t
                for i, cut in enumerate(cuts):
                    if (low[of_tree] == cut).any():
                        members = who[of_tree & (low >= cut)]
                        program.row([*((int(p), 1.0) for p in members), (above[i], -1.0)], -np.inf, 0.0)
                    if (high[of_tree] == cut).any():
                        members = who[of_tree & (high <= cut)]
                        program.row([*((int(p), 1.0) for p in members), (above[i], 1.0)], -np.inf, 1.0)

    def _add_blocks(self, program: _Program, leaves: IntArray, codes: IntArray) -> None:
        sides, owner = self._sides(leaves)
        for b, f in enumerate(self.problem.space.blocks):
            mine = self.boxes.dimension[sides] == self.problem.space.width + b
            if not mine.any() or f.width > 64:
                continue
            held = program.binaries(f.width)
            program.row(((h, 1.0) for h in held), 1.0, 1.0)
            for c, (h, permitted) in enumerate(zip(held, f.permitted, strict=True)):
                if c == codes[b]:
                    price = self.problem.cost.weight(f) ** (2 if self.l2 else 1)
                    program.objective[h] = -price
                    program.constant += price
                elif not (permitted and f.can_move):
                    program.row([(h, 1.0)], 0.0, 0.0)
            some, who = sides[mine], owner[mine]
            tree, bits = self.boxes.tree[leaves[who]], self.boxes.categories[some]
            for t in np.unique(tree):
                for mask in np.unique(bits[tree == t]):
                    members = who[(tree == t) & (bits & ~mask == 0)]
                    allowed = [(h, -1.0) for c, h in enumerate(held) if (int(mask) >> c) & 1]
                    program.row([*((int(p), 1.0) for p in members), *allowed], -np.inf, 0.0)


@dataclass(slots=True)
class _Program:
    """A program as it is put together: leaves first, then binaries."""

    n_leaves: int
    n: int = 0
    constant: float = 0.0
    objective: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    at_row: list[int] = field(default_factory=list)
    at_column: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.n = self.n_leaves

    def binaries(self, count: int) -> list[int]:
        """Add binaries and return their places."""
        self.n += count
        return list(range(self.n - count, self.n))

    def row(self, terms: Iterable[tuple[int, float]], low: float, high: float) -> None:
        """Add a constraint."""
        for column, value in terms:
            self.at_row.append(len(self.low))
            self.at_column.append(column)
            self.value.append(value)
        self.low.append(low)
        self.high.append(high)

    def solve(self, seconds: float) -> Any:
        """Hand it to the solver."""
        c = np.zeros(self.n)
        for column, value in self.objective.items():
            c[column] = value
        A = csr_array((self.value, (self.at_row, self.at_column)), shape=(len(self.low), self.n))
        return milp(
            c,
            integrality=(np.arange(self.n) >= self.n_leaves).astype(int),
            bounds=Bounds(0.0, 1.0),
            constraints=LinearConstraint(A, np.array(self.low), np.array(self.high)),
            options={"time_limit": seconds, "mip_rel_gap": RELATIVE_GAP},
        )
