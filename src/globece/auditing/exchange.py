"""Choices of directions by each group and by everybody, and each group's directions applied to the others.

Everything is read from the pool's matrix of costs. An input is judged by directions that were found and chosen without
its fold.
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
    """Directions of each group applied to each group.

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
    """Candidates chosen without each fold: by each group (``by_group[group][fold]``), and by everybody."""

    by_group: tuple[tuple[IntArray, ...], ...]
    everybody: tuple[IntArray, ...]


def choose(pool: Pool, members: Sequence[IntArray], search: CandidateSearch, budget: float) -> Choice:
    """Choose the best candidates for each group, and for everybody, without each fold."""

    def each(inputs: IntArray) -> tuple[IntArray, ...]:
        inputs = pool.some(inputs)
        if not pool.is_split:
            return (pool.best(inputs, None, search, budget),)
        return tuple(pool.best(inputs[pool.fold[inputs] != f], f, search, budget) for f in range(len(pool.from_fold)))

    return Choice(tuple(each(m) for m in members), each(np.arange(len(pool.fold))))


def cross_fitted(pool: Pool, by_fold: Sequence[IntArray], inputs: IntArray) -> FloatArray:
    """Minimum costs of some inputs, each under the directions that are given for its fold."""
    out = np.full(len(inputs), np.inf)
    for f, chosen in enumerate(by_fold):
        mine = np.flatnonzero(pool.fold[inputs] == f)
        if mine.size and chosen.size:
            out[mine] = pool.cost[np.ix_(chosen, inputs[mine])].min(axis=0)
    return out


def judged_costs(pool: Pool) -> FloatArray:
    """Minimum cost of each input under all candidates that were found without its fold."""
    return cross_fitted(pool, [pool.without(f) for f in range(len(pool.from_fold))], np.arange(len(pool.fold)))


def exchanged(pool: Pool, choice: Choice, names: Sequence[str], members: Sequence[IntArray], budget: float) -> Exchange:
    """Apply each group's directions, and everybody's, to each group, or to some of its many inputs."""
    if not pool.whole.all():
        members = [pool.some(inputs) for inputs in members]
    sources = [*choice.by_group, choice.everybody]
    shape = (len(sources), len(names))
    score, coverage, average_cost = (np.full(shape, NOT_A_NUMBER) for _ in range(3))
    for i, source in enumerate(sources):
        for j, inputs in enumerate(members):
            found = measured(len(inputs), cross_fitted(pool, source, inputs), budget)
            score[i, j], coverage[i, j], average_cost[i, j] = found.score, found.coverage, found.average_cost
    return Exchange((*names, EVERYBODY), tuple(names), score, coverage, average_cost)
