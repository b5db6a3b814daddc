"""Chains of moves, climbed one after the other and polished together.

Each is climbed for what those before it leave to be done, then each again with the others in place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from globece.case.affected import Affected
from globece.directions.chains import Chain, as_matrix, variations
from globece.directions.climbing import Effort, Evaluator, climb, first_moves, in_order
from globece.errors import check_count, keep_checked
from globece.progress import INTERRUPTIONS, Monitor
from globece.space import FloatArray

SEARCH_ROWS = 8192  # inputs that a climb sees at most
STARTS = 5  # single moves from which a chain is climbed
NEEDLESS = 5e-4  # a move whose loss raises the score by no more than this share is left out
PRUNING = 0.4  # extra share of the rays that pruning may take
FIRST, POLISHING = 0.45, 0.2  # shares of the rays for the first direction, and for polishing all of them together
ROUGH_POINTS = 16  # along a black box's ray, while climbing


@dataclass(frozen=True, slots=True)
class Climb:
    """Climb chains of moves: the search that is used unless another is asked for.

    Parameters
    ----------
    max_features
        Most features that a direction may move: people must read the result.
    rays
        Most rays to follow; by default as many as the kind of model and the affected inputs warrant.
    """

    max_features: int = 6
    rays: int | None = None

    def __post_init__(self) -> None:
        keep_checked(
            self,
            max_features=check_count("max_features", self.max_features),
            rays=None if self.rays is None else check_count("rays", self.rays),
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
    ) -> tuple[FloatArray, int]:
        """Climb; see :meth:`globece.search.Search.find`."""
        return _climbed(affected, wanted, plateau, self, int(rng.integers(2**63)), monitor)

    def within(self, rays: int) -> Climb:
        """The same with an allowance of rays, unless it was told how many."""
        return self if self.rays is not None else replace(self, rays=rays)


def _climbed(
    problem: Affected, wanted: int, plateau: float, settings: Climb, salt: int, monitor: Monitor
) -> tuple[FloatArray, int]:
    """Climb chains one after the other, then polish them together; return directions, and how many were seen."""
    ordered, _ = in_order(problem, salt)
    per_input, least, most = problem.model.allowance
    rays_ = settings.rays or float(np.clip(per_input * len(ordered.inputs), least, most)) * (wanted + 1) / 2
    # where rays are expensive, a chain is not followed over all inputs before the end
    ordered = replace(ordered, inputs=ordered.inputs[: int(np.clip(rays_ / 6, 512, SEARCH_ROWS))])
    n, nothing = len(ordered.inputs), np.full(len(ordered.inputs), problem.budget)
    effort = Effort.of(int(rays_), n, wanted)
    evaluator = Evaluator(ordered, nothing, problem.model.rough(ROUGH_POINTS), monitor, rays=effort.rays)
    first: Chain | None = None
    chains: list[Chain] = []
    costs: list[FloatArray] = []
    try:
        for i in range(wanted):
            evaluator.stage = f"direction {i + 1}"
            share = 1.0 if wanted == 1 else FIRST if i == 0 else (1.0 - FIRST - POLISHING) / (wanted - 1)
            chain = _from_starts(evaluator, effort, settings, share * rays_)
            first = first or chain
            paid = evaluator.costs([chain], n)[0]
            together = np.minimum(evaluator.best, paid)
            if chains and not together.sum() < evaluator.best.sum() * (1.0 - plateau):
                break
            chains.append(chain)
            costs.append(paid)
            monitor.found()
            evaluator.best = together
            evaluator.report(done=True)
            if monitor.should_stop():
                break
        if len(chains) > 1:
            evaluator.stage = "polishing"
            _polish(evaluator, chains, costs, effort, settings, rays_)
        if sum(chain.n_features + 1 for chain in chains) * n <= PRUNING * rays_:
            _prune(evaluator, chains, costs)
    except INTERRUPTIONS as why:
        if first is None:
            raise
        chains = chains or [first]
        monitor.interrupt(why)
    return problem.cost.normalise(as_matrix(chains, problem.cost)), evaluator.seen


def _from_starts(evaluator: Evaluator, effort: Effort, settings: Climb, allowance: float) -> Chain:
    """The best chain that is reached from a few single moves, or the best of these moves."""
    end = evaluator.spent + allowance
    reached: list[Chain] = []
    evaluator.ranked = (None, evaluator.ranked[1])  # what is left to be done has changed
    starts = first_moves(evaluator, effort, STARTS)
    evaluator.monitor.found()
    try:
        for start in starts:
            share = 0.25 if reached else 0.6
            chain, _ = climb(evaluator, start, effort, most=settings.max_features, allowance=share * allowance)
            reached.append(chain)
            if evaluator.spent >= end or evaluator.monitor.should_stop():
                break
        # on few inputs a longer chain may only seem better: all have the last word, where that is no great effort
        n, last = len(evaluator.problem.inputs), list(dict.fromkeys([*reached, *starts[:1]]))
        scores = evaluator.scores(last, n if len(last) * n < 0.5 * allowance else effort.rows[2])
    except INTERRUPTIONS as why:
        evaluator.monitor.interrupt(why)
        return (reached or starts)[0]
    return last[int(scores.argmin())]


def _polish(
    evaluator: Evaluator, chains: list[Chain], costs: list[FloatArray], effort: Effort, settings: Climb, rays_: float
) -> None:
    """Climb on from each chain with the others in place, in turn, while that lowers the score."""
    n, nothing = len(evaluator.problem.inputs), np.full(len(evaluator.problem.inputs), evaluator.problem.budget)
    before = np.inf
    while evaluator.spent < rays_ and not evaluator.monitor.should_stop():
        for i, chain in enumerate(chains):
            evaluator.best, evaluator.ranked = (
                np.min([nothing, *costs[:i], *costs[i + 1 :]], axis=0),
                (None, evaluator.ranked[1]),
            )
            share = max(rays_ - evaluator.spent, 0.0) / (len(chains) - i)
            changed, _ = climb(evaluator, chain, effort, most=settings.max_features, allowance=share)
            if changed != chain:
                paid = evaluator.costs([changed], n)[0]
                if np.minimum(paid, evaluator.best).sum() < np.minimum(costs[i], evaluator.best).sum():
                    chains[i], costs[i] = changed, paid
        after = float(np.min([nothing, *costs], axis=0).sum())
        if not after < before * (1.0 - 1e-3):
            break
        before = after
    evaluator.report(done=True)


def _prune(evaluator: Evaluator, chains: list[Chain], costs: list[FloatArray]) -> None:
    """Leave out moves that nobody needs: on few inputs they did no harm, but somebody would have to read them."""
    n, nothing = len(evaluator.problem.inputs), np.full(len(evaluator.problem.inputs), evaluator.problem.budget)
    for i in range(len(chains)):
        others = np.min([nothing, *costs[:i], *costs[i + 1 :]], axis=0)
        while chains[i].n_features > 1:
            shorter = [c for c in variations(chains[i]) if c.n_features < chains[i].n_features]
            paid = evaluator.costs(shorter, n)
            scores = np.minimum(paid, others).sum(axis=1)
            best = int(scores.argmin())
            if scores[best] > np.minimum(costs[i], others).sum() * (1.0 + NEEDLESS):
                break
            chains[i], costs[i] = shorter[best], paid[best]
