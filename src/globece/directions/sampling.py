"""The paper's generator G(B, X, n, n_s, c, n_f, p): random directions at a fixed cost (Section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from globece.case.affected import Affected
from globece.directions.constraints import movable_features
from globece.directions.protocol import LARGEST_POWER, check_asked, check_cost
from globece.errors import check_count, check_number, keep_checked
from globece.space import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class UniformSampling:
    """Sample directions uniformly at a fixed nominal cost.

    Each direction moves ``n_features`` randomly chosen features. All columns of these get a uniform number between 0
    and 1 raised to ``power``, their share of the cost; continuous columns also get a random sign, or the one that they
    may move in. The result is scaled to nominal cost ``cost``.

    Parameters
    ----------
    cost
        The fixed cost c.
    n_features
        Features per direction, n_f.
    power
        The power p, at most 100; a larger one makes directions sparser.
    """

    cost: float = 2.0
    n_features: int = 2
    power: float = 1.0

    def __post_init__(self) -> None:
        keep_checked(
            self,
            cost=check_cost(self.cost),
            n_features=check_count("n_features", self.n_features),
            power=check_number("power", self.power, open_low=True, high=LARGEST_POWER),
        )

    def propose(self, problem: Affected, n: int, rng: np.random.Generator) -> FloatArray:
        """Sample ``n`` directions."""
        n = check_asked(problem, n, rng)
        movable = movable_features(problem.space)
        chosen = rng.random((n, len(movable))).argsort(axis=1)[:, : self.n_features]
        return sampled(problem, chosen, self.power, self.cost, rng)


def sampled(problem: Affected, chosen: IntArray, power: float, cost: float, rng: np.random.Generator) -> FloatArray:
    """Sample a direction for each choice of features.

    Parameters
    ----------
    problem
        What there is to explain.
    chosen
        For each direction the places of its features among the movable ones; -1 for none.
    power, cost
        As for :class:`UniformSampling`.
    rng
        Where the numbers come from.
    """
    space, n = problem.space, len(chosen)
    directions = rng.random((n, space.width)) ** power
    signs = rng.choice(np.array([-1.0, 1.0]), size=(n, space.width))
    moves = np.zeros((n, space.width), dtype=bool)
    for i, f in enumerate(space.movable):
        picked = (chosen == i).any(axis=1)
        moves[picked, f.columns] = f.permitted if f.is_block else True
        if not f.is_block:
            directions[:, f.start] *= f.sense or signs[:, f.start]
    # The numbers are shares of the cost: dividing by what a unit costs turns them into the features' own units.
    rates = np.where(problem.cost.rates > 0, problem.cost.rates, 1.0)
    return problem.cost.normalise(np.where(moves, directions / rates, 0.0), cost)
