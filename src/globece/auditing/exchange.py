"""Choices of directions by each group and by everybody, and each group's directions applied to the others.

Everything is read from the pool's matrix of costs. Directions chosen on one half are evaluated on the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from globece.auditing.measures import NOT_A_NUMBER, measured
from globece.auditing.pool import CandidateSearch, Pool
from globece.space import FloatArray, IntArray

EVERYBODY = "everybody"


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """Directions of each group applied to each other group.

    Attributes
    ----------
    directions_of
        The rows: the best directions for each group, and for everybody.
    applied_to
        The columns: the groups that they are applied to.
    score, coverage, average_cost
        The resulting measures, ``(rows, columns)``.
    """

    directions_of: tuple[str, ...]
    applied_to: tuple[str, ...]
    score: FloatArray
    coverage: FloatArray
    average_cost: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Candidates chosen on each half: by each group (``by_group[group][half]``), and by everybody."""

    by_group: tuple[tuple[IntArray, IntArray], ...]
    everybody: tuple[IntArray, IntArray]


def choose(pool: Pool, members: Sequence[IntArray], search: CandidateSearch, budget: float) -> Choice:
    """Choose the best candidates for each group, and for everybody, on each half, from the candidates of that half."""

    def both(inputs: IntArray) -> tuple[IntArray, IntArray]:
        if not pool.half.any():  # not split
            best = pool.best(inputs, None, search, budget)
            return best, best
        first, second = (pool.best(inputs[pool.half[inputs] == h], h, search, budget) for h in (0, 1))
        return first, second

    return Choice(tuple(both(m) for m in members), both(np.arange(len(pool.half))))


def cross_fitted(pool: Pool, by_half: tuple[IntArray, IntArray], inputs: IntArray) -> FloatArray:
    """Minimum costs of some inputs, each under the directions of the other half."""
    out = np.full(len(inputs), np.inf)
    for h in (0, 1):
        mine = np.flatnonzero(pool.half[inputs] == h)
        chosen = by_half[1 - h]
        if mine.size and chosen.size:
            out[mine] = pool.cost[np.ix_(chosen, inputs[mine])].min(axis=0)
    return out


def exchanged(pool: Pool, choice: Choice, names: Sequence[str], members: Sequence[IntArray], budget: float) -> Exchange:
    """Apply each group's directions, and everybody's, to each group."""
    sources = [*choice.by_group, choice.everybody]
    shape = (len(sources), len(names))
    score, coverage, average_cost = (np.full(shape, NOT_A_NUMBER) for _ in range(3))
    for i, source in enumerate(sources):
        for j, inputs in enumerate(members):
            found = measured(len(inputs), cross_fitted(pool, source, inputs), budget)
            score[i, j], coverage[i, j], average_cost[i, j] = found.score, found.coverage, found.average_cost
    return Exchange((*names, EVERYBODY), tuple(names), score, coverage, average_cost)
