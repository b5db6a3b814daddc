"""Evolution: the best of some directions, each improved by an evolution strategy on the entries that it has.

Only the features that a direction moves already are varied, so that a sparse one stays sparse: a continuous feature's
entry, and every entry of a block, since those say which category it moves to and when. The strategy is CMA-ES
(Hansen and Ostermeier 2001) of the package ``cmaes``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from globece.case.affected import Affected
from globece.case.scaling import scale
from globece.directions.climbing import GreedyChains
from globece.directions.constraints import admissible
from globece.directions.judging import in_order
from globece.directions.mixed import Mixed
from globece.directions.protocol import MOST_PROPOSED, DirectionGenerator, check_asked, proposed
from globece.directions.sampling import UniformSampling
from globece.errors import check_count, check_number, keep_checked, require, wrong
from globece.space import BoolArray, FloatArray

MOST_GENERATIONS = 100_000


def _default_start() -> DirectionGenerator:
    return Mixed([GreedyChains(), UniformSampling()], [0.02, 0.98])


@dataclass(frozen=True)
class Evolution:
    """Improve the best of another generator's directions by CMA-ES.

    Needs ``cmaes``: ``pip install 'globece[evolution]'``.

    Parameters
    ----------
    start
        Who proposes the directions to begin with; by default greedy chains and uniform samples.
    samples
        How many of them to judge.
    survivors
        How many of the best to improve.
    generations
        Generations for each.
    inputs
        Affected inputs that judge them.
    spread
        How far the first generation strays, relative to each entry.
    """

    start: DirectionGenerator = field(default_factory=_default_start)
    samples: int = 200
    survivors: int = 4
    generations: int = 20
    inputs: int = 128
    spread: float = 0.3

    def __post_init__(self) -> None:
        if isinstance(self.start, type) or not isinstance(self.start, DirectionGenerator):
            raise wrong("start", "a generator: an object with a propose method", self.start)
        keep_checked(
            self,
            samples=check_count("samples", self.samples, high=MOST_PROPOSED),
            survivors=check_count("survivors", self.survivors),
            generations=check_count("generations", self.generations, high=MOST_GENERATIONS),
            inputs=check_count("inputs", self.inputs),
            spread=check_number("spread", self.spread, low=1e-9, high=1e9),
        )

    def propose(self, problem: Affected, n: int, rng: np.random.Generator) -> FloatArray:
        """The improved directions, then the others by their score, at most ``n``."""
        n = check_asked(problem, n, rng)
        judged, _ = in_order(problem, int(rng.integers(2**63)))
        judged = replace(judged, inputs=judged.inputs[: self.inputs])
        D = problem.cost.normalise(proposed(self.start, problem, self.samples, rng))
        ranked = np.argsort(_scores(judged, D), kind="stable")
        best = [self._evolved(judged, D[i], int(rng.integers(2**31))) for i in ranked[: self.survivors]]
        return np.vstack([*best, D[ranked]])[:n]

    def _evolved(self, problem: Affected, delta: FloatArray, seed: int) -> FloatArray:
        """The best direction of a few generations that start from one; itself, if none is better."""
        cmaes = require("cmaes", extra="evolution", caller="Evolution")
        free = _free_entries(problem, delta)
        rates = problem.cost.rates
        unit = 1.0 / np.maximum(rates[free], 1e-12)  # entries as what they cost: one size for all of them
        mean = delta[free] / unit
        strategy = cmaes.CMA(mean=mean, sigma=self.spread * max(float(np.abs(mean).mean()), 1e-6), seed=seed)
        best, least = delta, float(_scores(problem, delta[None])[0])
        for _ in range(self.generations):
            asked = [strategy.ask() for _ in range(strategy.population_size)]
            tried = np.zeros((len(asked), len(delta)))
            tried[:, free] = np.array(asked) * unit
            tried = admissible(problem.space, tried)
            alive = problem.cost.nominal(tried) > 0
            scores = np.full(len(asked), problem.budget)
            if alive.any():
                scores[alive] = _scores(problem, tried[alive])
            strategy.tell([(a, float(s)) for a, s in zip(asked, scores, strict=True)])
            if scores.min() < least:
                best, least = tried[int(scores.argmin())], float(scores.min())
            if strategy.should_stop():
                break
        return np.asarray(problem.cost.normalise(best)[0])


def _free_entries(problem: Affected, delta: FloatArray) -> BoolArray:
    """Entries of the features that a direction moves."""
    free = np.zeros(len(delta), dtype=bool)
    for f in problem.space.movable:
        free[f.columns] = delta[f.columns].any()
    return free


def _scores(problem: Affected, directions: FloatArray) -> FloatArray:
    return np.asarray(np.minimum(scale(problem, directions).cost, problem.budget).mean(axis=1))
