"""A problem in, n directions out: chains climbed one after the other and polished together, or candidates that race.

Everything is judged by the score (mean minimum cost, with no recourse charged at the budget), so coverage and cost
pull together. Without a generator, chains of moves are climbed: each for what those before it leave to be done, then
each again with the others in place. The candidates of a generator race instead: all of them on few rows, the better
ones on more, and a greedy choice of those that together cover most at least cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from globece import rays
from globece.case.affected import Affected
from globece.case.ordering import content_order
from globece.case.scaling import scale
from globece.directions.chains import Chain, as_matrix, variations
from globece.directions.climbing import Effort, Judge, climb, first_moves, in_order
from globece.directions.constraints import movable_features
from globece.directions.protocol import DirectionGenerator, proposed
from globece.errors import TimeLimitError
from globece.models.base import Model
from globece.progress import INTERRUPTIONS, Monitor, TimeUp
from globece.settings import Settings
from globece.space import FloatArray, IntArray

# One more direction must lower the score by this share to be worth reading.
PLATEAU = 0.02
MOST_DIRECTIONS = 10
CHUNK = 50  # candidates between two looks at the clock


SEARCH_ROWS = 8192  # inputs that a climb sees at most
STARTS = 5  # single moves from which a chain is climbed
NEEDLESS = 5e-4  # a move whose loss raises the score by no more than this share is left out
PRUNING = 0.4  # share of the rays that pruning may take beside
FIRST, POLISHING = 0.45, 0.2  # shares of the rays for the first direction, and for polishing all of them together
ROUGH_POINTS = 16  # along a black box's ray, while climbing


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: directions, and what it did for them."""

    directions: FloatArray
    candidates: int
    notes: tuple[str, ...]


def find_directions(
    problem: Affected,
    generator: DirectionGenerator | None,
    n_directions: int | Literal["auto"],
    settings: Settings,
    rng: np.random.Generator,
    monitor: Monitor,
) -> Found:
    """Find the n directions that together cover most at least cost, by climbing or among a generator's candidates."""
    movable_features(problem.space)
    salt = int(rng.integers(2**63))
    wanted = MOST_DIRECTIONS if n_directions == "auto" else n_directions
    plateau = PLATEAU if n_directions == "auto" else 0.0
    try:
        if generator is None:
            directions, seen = _climbed(problem, wanted, plateau, settings, salt, monitor)
        else:
            candidates = proposed(generator, problem, settings.samples, rng)
            if settings.select == "fixed":
                chosen = _cover_at_one(problem, candidates, wanted, monitor)
            else:
                chosen = _race(problem, candidates, wanted, plateau, salt, monitor)
            directions, seen = candidates[chosen], len(candidates)
    except TimeUp:
        raise TimeLimitError(
            f"time_limit of {monitor.time_limit:g} s was over before {problem.model.name} had judged the first "
            "directions; allow more time, or explain fewer rows"
        ) from None
    notes = []
    if n_directions != "auto" and len(directions) < wanted:
        why = "the search was stopped before" if monitor.stopped else "no other lowers the score"
        notes.append(f"{len(directions)} direction(s) found where {wanted} were asked for: {why}")
    if monitor.stopped:
        notes.append(f"stopped early ({monitor.stopped}): this is the best found until then")
    return Found(directions, seen, tuple(notes))


def _climbed(
    problem: Affected, wanted: int, plateau: float, settings: Settings, salt: int, monitor: Monitor
) -> tuple[FloatArray, int]:
    """Climb chains one after the other, then polish them together; return directions, and how many were seen."""
    ordered, _ = in_order(problem, salt)
    per_input, least, most = problem.model.allowance
    rays_ = settings.rays or float(np.clip(per_input * len(ordered.inputs), least, most)) * (wanted + 1) / 2
    # where rays are dear, a chain is not followed over all inputs before the end
    ordered = replace(ordered, inputs=ordered.inputs[: int(np.clip(rays_ / 6, 512, SEARCH_ROWS))])
    n, nothing = len(ordered.inputs), np.full(len(ordered.inputs), problem.budget)
    effort = Effort.of(int(rays_), n, wanted)
    judge = Judge(ordered, nothing, problem.model.rough(ROUGH_POINTS), monitor, rays=effort.rays)
    first: Chain | None = None
    chains: list[Chain] = []
    costs: list[FloatArray] = []
    try:
        for i in range(wanted):
            judge.stage = f"direction {i + 1}"
            share = 1.0 if wanted == 1 else FIRST if i == 0 else (1.0 - FIRST - POLISHING) / (wanted - 1)
            chain = _from_starts(judge, effort, settings, share * rays_)
            first = first or chain
            paid = judge.costs([chain], n)[0]
            together = np.minimum(judge.best, paid)
            if chains and not together.sum() < judge.best.sum() * (1.0 - plateau):
                break
            chains.append(chain)
            costs.append(paid)
            monitor.found()
            judge.best = together
            judge.report(done=True)
            if monitor.should_stop():
                break
        if len(chains) > 1:
            judge.stage = "polishing"
            _polish(judge, chains, costs, effort, settings, rays_)
        if sum(chain.n_features + 1 for chain in chains) * n <= PRUNING * rays_:
            _prune(judge, chains, costs)
    except INTERRUPTIONS as why:
        if first is None:
            raise
        chains = chains or [first]
        monitor.interrupt(why)
    return problem.cost.normalise(as_matrix(chains, problem.cost)), judge.seen


def _from_starts(judge: Judge, effort: Effort, settings: Settings, allowance: float) -> Chain:
    """The best chain that is reached from a few single moves, or the best of these moves."""
    end = judge.spent + allowance
    reached: list[Chain] = []
    judge.ranked = (None, judge.ranked[1])  # what is left to be done has changed
    starts = first_moves(judge, effort, STARTS)
    judge.monitor.found()
    try:
        for start in starts:
            share = 0.25 if reached else 0.6
            chain, _ = climb(judge, start, effort, most=settings.max_features, allowance=share * allowance)
            reached.append(chain)
            if judge.spent >= end or judge.monitor.should_stop():
                break
        # on few inputs a longer chain may only seem better: all have the last word, where that is no great effort
        n, last = len(judge.problem.inputs), list(dict.fromkeys([*reached, *starts[:1]]))
        scores = judge.scores(last, n if len(last) * n < 0.5 * allowance else effort.rows[2])
    except INTERRUPTIONS as why:
        judge.monitor.interrupt(why)
        return (reached or starts)[0]
    return last[int(scores.argmin())]


def _polish(
    judge: Judge, chains: list[Chain], costs: list[FloatArray], effort: Effort, settings: Settings, rays_: float
) -> None:
    """Climb on from each chain with the others in place, in turn, while that lowers the score."""
    n, nothing = len(judge.problem.inputs), np.full(len(judge.problem.inputs), judge.problem.budget)
    before = np.inf
    while judge.spent < rays_ and not judge.monitor.should_stop():
        for i, chain in enumerate(chains):
            judge.best, judge.ranked = np.min([nothing, *costs[:i], *costs[i + 1 :]], axis=0), (None, judge.ranked[1])
            share = max(rays_ - judge.spent, 0.0) / (len(chains) - i)
            changed, _ = climb(judge, chain, effort, most=settings.max_features, allowance=share)
            if changed != chain:
                paid = judge.costs([changed], n)[0]
                if np.minimum(paid, judge.best).sum() < np.minimum(costs[i], judge.best).sum():
                    chains[i], costs[i] = changed, paid
        after = float(np.min([nothing, *costs], axis=0).sum())
        if not after < before * (1.0 - 1e-3):
            break
        before = after
    judge.report(done=True)


def _prune(judge: Judge, chains: list[Chain], costs: list[FloatArray]) -> None:
    """Leave out moves that nobody needs: on few inputs they did no harm, but somebody would have to read them."""
    n, nothing = len(judge.problem.inputs), np.full(len(judge.problem.inputs), judge.problem.budget)
    for i in range(len(chains)):
        others = np.min([nothing, *costs[:i], *costs[i + 1 :]], axis=0)
        while chains[i].n_features > 1:
            shorter = [c for c in variations(chains[i]) if c.n_features < chains[i].n_features]
            paid = judge.costs(shorter, n)
            scores = np.minimum(paid, others).sum(axis=1)
            best = int(scores.argmin())
            if scores[best] > np.minimum(costs[i], others).sum() * (1.0 + NEEDLESS):
                break
            chains[i], costs[i] = shorter[best], paid[best]


def greedy(costs: FloatArray, budget: float, n: int, plateau: float = 0.0) -> IntArray:
    """Pick up to ``n`` rows of a (candidates, inputs) cost matrix, each lowering the joint score most.

    The first is always picked. Another is picked only while it lowers the score by more than the share ``plateau``.
    """
    capped = np.minimum(costs, budget)
    best = np.full(capped.shape[1], budget)
    chosen: list[int] = []
    for _ in range(min(n, len(capped))):
        totals = np.minimum(capped, best).sum(axis=1)
        pick = int(totals.argmin())
        if chosen and not totals[pick] < best.sum() * (1.0 - plateau):
            break
        chosen.append(pick)
        best = np.minimum(best, capped[pick])
    return np.array(chosen, dtype=np.int64)


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


def _race(
    problem: Affected, candidates: FloatArray, wanted: int, plateau: float, salt: int, monitor: Monitor
) -> IntArray:
    """Judge all candidates on few inputs and the better ones on more; choose greedily among the last ones left."""
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
    """Candidates worth another look: the best beside each prefix of the greedy choice, not only the best alone."""
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
