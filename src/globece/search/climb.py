"""The search that is used unless another is asked for: chains of moves, climbed in rounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from globece.case.affected import Affected
from globece.case.ordering import content_order, spread_order
from globece.directions.chains import Chain, as_matrix
from globece.errors import check_choice, check_count, keep_checked
from globece.progress import Monitor
from globece.search.protocol import Proposal
from globece.search.rounds import MOST_INPUTS, Pool, Rounds, schedule
from globece.search.stand_in import StandIn, can_stand_in
from globece.space import FloatArray

TURNS = 3  # searches of the trees that stand in for a black box
AFTERWARDS = 0.15  # share of the rays that the black box itself is then searched with
ROUGH_POINTS = 16  # along a black box's ray, while climbing
Effort = Literal["quick", "default", "thorough"]
# As multiples of the usual rays: the first round of two, both of them, and three more (after a single round 85).
EFFORTS: dict[Effort, float] = {"quick": 0.2, "default": 1.0, "thorough": 85.0}


@dataclass(frozen=True, slots=True)
class Climb:
    """Climb chains of moves: the search that is used unless another is asked for.

    For one seed, more directions are never worse than fewer, nor is more effort worse than less, on the inputs that
    the search sees: the best so far is only ever replaced by something better.

    Parameters
    ----------
    max_features
        Most features that a direction may move: people must read the result.
    rays
        Most rays to follow for the first direction, and about 0.4 times as many for each further one; by default as
        many as the kind of model, the affected inputs and the effort warrant. They are spent in rounds, each four times
        the last, and a round that does not fit is left out.
    effort
        ``"quick"`` for a first look, ``"default"``, or ``"thorough"``, seventy times as long or more: for an audit that
        is filed.
    """

    max_features: int = 6
    rays: int | None = None
    effort: Effort = "default"

    def __post_init__(self) -> None:
        keep_checked(
            self,
            max_features=check_count("max_features", self.max_features),
            rays=None if self.rays is None else check_count("rays", self.rays),
            effort=check_choice("effort", self.effort, tuple(EFFORTS)),
        )

    @property
    def described(self) -> str:
        """What it does."""
        return "climbed chains"

    @property
    def most(self) -> None:
        """It finds as many directions as are asked for."""
        return

    def find(
        self, affected: Affected, wanted: int, plateau: float, rng: np.random.Generator, monitor: Monitor
    ) -> Proposal:
        """Climb; see :meth:`globece.search.Search.find`."""
        return _climbed(affected, wanted, plateau, self, int(rng.integers(2**63)), monitor)

    def within(self, rays: int) -> Climb:
        """The same with an allowance of rays, times its effort, unless it was told how many."""
        return self if self.rays is not None else replace(self, rays=max(1, int(rays * EFFORTS[self.effort])))


def _climbed(problem: Affected, wanted: int, plateau: float, settings: Climb, salt: int, monitor: Monitor) -> Proposal:
    """Climb by rounds."""
    ordered, margins = _spread(problem, salt)
    allowance = problem.model.allowance
    usual = allowance.usual(len(ordered.inputs))
    pool = Pool(ordered, problem.model.rough(ROUGH_POINTS).located(ordered.inputs[:MOST_INPUTS]))
    rays: float = settings.rays or usual * EFFORTS[settings.effort]
    if settings.rays is None:  # a round that was begun is finished, so that more effort is never worse
        rays = max(rays, schedule(usual, usual, allowance.rounds)[0])
    search = Rounds(pool, salt, settings.max_features, monitor, margins=margins)
    if can_stand_in(ordered):
        search.given = _with_a_stand_in(ordered, wanted, plateau, settings, salt, monitor)
        usual, rays = usual * AFTERWARDS, rays * AFTERWARDS
    chains = search.run(schedule(usual, rays, allowance.rounds), wanted, plateau)
    return Proposal(problem.cost.normalise(as_matrix(chains, problem.cost)), search.seen, search.headroom(chains))


def _spread(problem: Affected, salt: int) -> tuple[Affected, FloatArray]:
    """The problem with its inputs in an order of which every beginning stands for all, and their margins."""
    order = content_order(problem.inputs, salt)
    # a black box's margins would take calls of the user's model
    margins = problem.model.margin(problem.inputs) if problem.model.exact else np.zeros(len(order))
    order = order[spread_order(margins[order], np.random.default_rng(salt))]
    return replace(problem, inputs=np.ascontiguousarray(problem.inputs[order])), margins[order]


def _with_a_stand_in(
    problem: Affected, wanted: int, plateau: float, settings: Climb, salt: int, monitor: Monitor
) -> list[tuple[Chain, ...]]:
    """The best chains for each number of directions, where trees answer for the model."""
    stand_in = StandIn(problem, salt)
    levels: list[tuple[Chain, ...]] = []
    for turn in range(TURNS):
        trees = stand_in.fitted()
        if trees is None:
            return levels
        usual = trees.allowance.usual(len(problem.inputs))
        margins = trees.margin(problem.inputs)
        search = Rounds(Pool(problem, trees), salt, settings.max_features, monitor, margins=margins)
        last = turn == TURNS - 1
        search.run(schedule(usual, usual, trees.allowance.rounds), wanted if last else 1, plateau if last else 0.0)
        levels = search.levels
        if not last:
            stand_in.ask_along(list(search.found[1]), trees)
    return levels
