"""A generator's candidates race: all on few rows, the better ones on more, then a greedy choice among the last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from globece import rays
from globece.case.affected import Affected
from globece.case.ordering import content_order
from globece.case.scaling import scale
from globece.directions.protocol import DirectionGenerator, proposed
from globece.errors import InvalidParameterError, check_choice, check_count, describe, keep_checked
from globece.models.base import Model
from globece.progress import INTERRUPTIONS, Monitor, TimeUp
from globece.search.choice import greedy
from globece.space import FloatArray, IntArray

MOST_SAMPLES = 1_000_000
CHUNK = 50  # candidates between two looks at the clock


@dataclass(frozen=True, slots=True)
class Race:
    """Let the candidates of a generator race.

    Parameters
    ----------
    generator
        What proposes directions.
    samples
        Candidate directions to ask it for, n_s; at most 1,000,000.
    select
        ``"scaled"`` judges a candidate by its minimum costs; ``"fixed"`` by its coverage at k = 1, as the paper does.
    """

    generator: DirectionGenerator
    samples: int = 1000
    select: Literal["scaled", "fixed"] = "scaled"

    def __post_init__(self) -> None:
        if isinstance(self.generator, type) or not callable(getattr(self.generator, "propose", None)):
            raise InvalidParameterError(f"generator must have a propose method; got {describe(self.generator)}")
        keep_checked(
            self,
            samples=check_count("samples", self.samples, high=MOST_SAMPLES),
            select=check_choice("select", self.select, ("scaled", "fixed")),
        )

    @property
    def described(self) -> str:
        """Who proposes."""
        return repr(self.generator)

    @property
    def most(self) -> int:
        """No more directions than there are candidates."""
        return self.samples

    def find(
        self, affected: Affected, wanted: int, plateau: float, rng: np.random.Generator, monitor: Monitor
    ) -> tuple[FloatArray, int]:
        """Race; see :meth:`globece.search.Search.find`."""
        salt = int(rng.integers(2**63))
        candidates = proposed(self.generator, affected, self.samples, rng)
        if self.select == "fixed":
            chosen = _cover_at_one(affected, candidates, wanted, monitor)
        else:
            chosen = _race(affected, candidates, wanted, plateau, salt, monitor)
        return candidates[chosen], len(candidates)

    def within(self, rays: int) -> Race:
        """The same: how many candidates race was asked for."""
        return self


def _race(
    problem: Affected, candidates: FloatArray, wanted: int, plateau: float, salt: int, monitor: Monitor
) -> IntArray:
    """Evaluate all candidates on few inputs and the better ones on more; choose greedily among the last ones left."""
    order = content_order(problem.inputs, salt)
    pool, costs = np.arange(len(candidates)), np.empty((0, 0))
    for stage, (rows, points, keep) in enumerate(_rungs(len(order), len(candidates), wanted)):
        part = replace(problem, inputs=problem.inputs[order[:rows]])
        running = pool[_shortlist(costs, problem.budget, wanted, keep)] if stage else pool
        judged = _judge(part, candidates[running], problem.model.rough(points), monitor, f"round {stage + 1}")
        if stage and len(judged) < len(running):
            break  # out of time within this round: the one before still holds
        if not len(judged):
            raise TimeUp if monitor.ran_out else KeyboardInterrupt
        pool, costs = running[: len(judged)], judged
        monitor.found()
        if monitor.should_stop():
            break
    return pool[greedy(costs, problem.budget, wanted, plateau)]


def _cover_at_one(problem: Affected, candidates: FloatArray, wanted: int, monitor: Monitor) -> IntArray:
    """The paper's choice: each time the candidate that flips most of the inputs left at k = 1; of equals the cheaper.

    Flips are kept as bits, one per candidate and input.
    """
    Z, ones = problem.inputs, np.ones(len(problem.inputs))
    bits: list[NDArray[np.uint8]] = []
    mean_cost: list[float] = []
    try:
        for delta in candidates:
            if bits and monitor.should_stop():
                break
            flips = problem.model.favourable(rays.positions(problem.space, Z, delta, 1.0))
            paid = rays.cost_at(problem.cost, Z, delta, ones)[flips]
            mean_cost.append(np.sort(paid).sum() / paid.size if paid.size else np.inf)
            bits.append(np.packbits(flips))
            monitor("directions at k = 1", len(bits), len(candidates))
    except INTERRUPTIONS as why:
        if not bits:
            raise
        monitor.interrupt(why)
    flipped, dearness = np.array(bits[: len(mean_cost)]), np.array(mean_cost[: len(bits)])
    covered = np.zeros_like(flipped[0])
    chosen: list[int] = []
    for _ in range(min(wanted, len(flipped))):
        gain = np.bitwise_count(flipped & ~covered).sum(axis=1, dtype=np.int64)
        pick = int(np.lexsort((dearness, -gain))[0])
        if chosen and gain[pick] == 0:
            break
        chosen.append(pick)
        covered |= flipped[pick]
    return np.array(chosen, dtype=np.int64)


def _rungs(n_inputs: int, n_candidates: int, wanted: int) -> list[tuple[int, int, int]]:
    """Rounds of the race: rows, points along a black box's ray, candidates kept for it."""
    final = max(24, 4 * wanted)
    plan = [(64, 16, n_candidates), (256, 48, max(100, 8 * wanted)), (1024, 128, final)]
    rounds = [plan[0]]
    for rows, points, keep in plan[1:]:
        if rounds[-1][0] < n_inputs or rounds[-1][1] < points:
            rounds.append((rows, points, keep))
    return [(min(rows, n_inputs), points, keep) for rows, points, keep in rounds]


def _judge(problem: Affected, candidates: FloatArray, model: Model, monitor: Monitor, stage: str) -> FloatArray:
    """Minimum costs of candidates, in chunks; fewer rows than candidates where the time was up."""
    done = [np.empty((0, len(problem.inputs)))]
    try:
        for start in range(0, len(candidates), CHUNK):
            if start and monitor.should_stop():
                break
            done.append(scale(problem, candidates[start : start + CHUNK], model=model).cost)
            monitor(f"directions, {stage}", min(start + CHUNK, len(candidates)), len(candidates))
    except INTERRUPTIONS as why:
        monitor.interrupt(why)
    return np.vstack(done)


def _shortlist(costs: FloatArray, budget: float, wanted: int, keep: int) -> IntArray:
    """Candidates worth another look: the best together with each prefix of the greedy choice."""
    capped = np.minimum(costs, budget)
    best = np.full(capped.shape[1], budget)
    kept: list[int] = []
    chosen = greedy(costs, budget, wanted)
    share = -(-keep // len(chosen))
    for pick in chosen:
        totals = np.minimum(capped, best).sum(axis=1)
        kept.extend(np.argsort(totals, kind="stable")[:share].tolist())
        best = np.minimum(best, capped[pick])
    return np.array(sorted(set(kept)), dtype=np.int64)
