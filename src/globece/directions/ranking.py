"""Which moves from a chain are worth trying at all their times and paces.

For trees that is seen by trying each at one of them, since their margins move in steps and say little about rays that
go far; for other models it is read from the margins: those that bring the inputs nearest to the favourable side for
their cost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from globece import rays
from globece.bundle import bundle
from globece.case.affected import Affected
from globece.case.scaling import scale
from globece.directions.chains import Chain, Glide, Turn, as_matrix, options, usual, with_move
from globece.directions.judging import Evaluator
from globece.pricing import costs_at
from globece.space import FloatArray, IntArray

RANKING_ROWS = 16  # inputs by which moves are ranked
MOST_TRIED, TRIED_AGAIN = 250, 60  # moves that are ranked by rays, at first and one step later
MARGIN_SHARE = 0.125  # what a margin costs, in rays


class Ranked(NamedTuple):
    """The moves from a chain, the best first, and whether all of them were looked at."""

    chain: Chain
    order: IntArray
    is_whole: bool


def ranked(evaluator: Evaluator, chain: Chain, every: list[Glide | Turn], known: Ranked | None, whole: bool) -> Ranked:
    """Rank the moves from a chain.

    Parameters
    ----------
    evaluator, chain, every
        Who judges, where the chain is, and all moves.
    known
        What was found out at this chain or at the step before.
    whole
        Whether all moves must be looked at.
    """
    if known is not None and known.chain == chain and (known.is_whole or not whole):
        return known
    if evaluator.model.tree_ensemble is None:
        return Ranked(chain, _by_margins(evaluator, chain, every), True)
    before = None if whole or known is None else known.order
    return Ranked(chain, _tried(evaluator, chain, every, before), before is None)


def kind_of(move: Glide | Turn) -> tuple[int, int, float]:
    """What moves where, whatever its pace or time."""
    if isinstance(move, Turn):
        return (0, move.block, float(move.target))
    return (1, move.column, float(np.sign(move.pace)))


def _tried(evaluator: Evaluator, chain: Chain, every: list[Glide | Turn], before: IntArray | None = None) -> IntArray:
    """Moves by what the chain costs with each of them at one of its options; the best first.

    Of many moves only those are tried that the margins put first, or that were first one step ``before``.
    """
    order, most = np.arange(len(every)) if before is None else before, MOST_TRIED if before is None else TRIED_AGAIN
    if before is None and len(every) > most:
        order = _by_margins(evaluator, chain, every)
    some = order[:most]
    chains = [with_move(chain, every[i], usual(options(chain, every[i]))).canonical() for i in some]
    scores = evaluator.scores(chains, min(RANKING_ROWS, len(evaluator.problem.inputs)))
    return np.concatenate([some[np.argsort(scores, kind="stable")], order[most:]])


def _by_margins(evaluator: Evaluator, chain: Chain, every: list[Glide | Turn]) -> IntArray:
    """Moves by what they do for the inputs' margins, for their cost; the best first."""
    problem, n = evaluator.problem, min(RANKING_ROWS, len(evaluator.problem.inputs))
    space, Z, best = problem.space, problem.inputs[:n], evaluator.best[:n]
    here = Z
    if chain.n_features:
        delta = as_matrix([chain], problem.cost)
        k = scale(replace(problem, inputs=Z), delta, model=evaluator.model).scalar[0]
        usual = np.median(k[np.isfinite(k)]) if np.isfinite(k).any() else 1.0
        here = rays.positions(space, Z, delta[0], np.minimum(np.where(np.isfinite(k), k * (1 - 1e-9), usual), usual))
    after, paid = _moved(problem, here, every)
    evaluator.spent += MARGIN_SHARE * (len(every) + 1) * n
    margins = evaluator.model.margin(np.vstack([here, after.reshape(-1, space.width)]))
    short = np.maximum(-margins, 0.0).reshape(-1, n)
    # who pays much under the other directions has most to gain
    gain = evaluator.mean(best * (short[0] - short[1:])) / np.maximum(paid, 0.1)
    return np.argsort(-gain, kind="stable")


def _moved(problem: Affected, Z: FloatArray, every: list[Glide | Turn]) -> tuple[FloatArray, FloatArray]:
    """Rows after each single move, a glide by one unit of cost, ``(moves, rows, width)``; and the mean cost of each."""
    space = problem.space
    after = np.repeat(Z[None], len(every), axis=0)
    gliding = {f.start: f for f in space.scalars}
    for i, move in enumerate(every):
        if isinstance(move, Turn):
            f = space.blocks[move.block]
            after[i][:, f.columns] = 0.0
            after[i][:, f.start + move.target] = 1.0
        else:
            f = gliding[move.column]
            step = move.pace / problem.cost.rates[f.start]
            after[i][:, f.start] = rays.travel(f, Z[:, f.start], step, np.ones(len(Z)))
    alone = [Chain((), (move,)) if isinstance(move, Turn) else Chain((move,)) for move in every]
    directions = as_matrix(alone, problem.cost)
    paid = costs_at(problem.cost, Z, bundle(space, directions), np.ones((len(every), len(Z)))).mean(axis=1)
    return after, np.asarray(paid)
