"""Greedy chains: from nothing, one move after the other, each the one that lowers the score most, until none does.

Neighbours of the chain at hand race: all of them on few inputs, the better ones on more, and several of the best may be
taken at once. Which moves are worth trying at all their options is seen by trying each at one of them, for trees; for
other models it is read from the margins: those that bring the inputs nearest to the favourable side for their cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from globece import rays
from globece.bundle import bundle
from globece.case.affected import Affected
from globece.case.ordering import Sample, content_order
from globece.case.scaling import scale
from globece.directions.chains import (
    Chain,
    Glide,
    Turn,
    additions,
    as_matrix,
    merged,
    moves,
    options,
    replacements,
    variations,
    with_move,
)
from globece.directions.protocol import check_asked
from globece.errors import check_count, check_number, keep_checked
from globece.models.base import Model
from globece.pricing import costs_at
from globece.progress import INTERRUPTIONS, Monitor
from globece.space import FloatArray, IntArray

WORTH = 1e-3  # share by which a step must lower the score
FEW_INPUTS = 96  # inputs that decide the last round at least, however few rays there are
RANKING_ROWS = 16  # inputs by which moves are ranked
MOST_TRIED, TRIED_AGAIN = 250, 60  # moves that are ranked by rays, at first and one step later
MARGIN_SHARE = 0.125  # what a margin costs, in rays
FEEBLE = 0.85  # single moves that leave this share of the score are no good start
LEFT = 0.2  # a chain whose score is above this share of the budget leaves people behind: pairs are tried as well
PAIRS_FROM, PAIRS_TO = 24, 24  # first moves of pairs, and second ones for each
REPLACED_PER_NEIGHBOUR = 1  # chains with a feature replaced, for each neighbour that starts
PAIRS_PER_NEIGHBOUR = 2  # no more pairs than this for each neighbour that starts: where rays are dear, fewer
MOST_RAYS = 1e6  # for each input
WIDEST = 1  # how often the view is widened before a climb ends
FEWEST = 12  # neighbours that start in a step
STEPS = 14  # roughly what a chain takes from nothing to its top: the rays are shared out for that


@dataclass(frozen=True, slots=True)
class Effort:
    """How many rays may be followed, and how they are shared out over a step's rounds.

    Attributes
    ----------
    rays
        Most rays in all; they are checked between steps.
    breadth
        Neighbours that start in a step.
    rows
        Inputs that each round judges them on.
    keep
        Neighbours that go on to each later round.
    is_patient
        Whether more inputs judge the better half of the neighbours, and so on, before few are kept: small gains show
        on many inputs only.
    """

    rays: int
    breadth: int
    rows: tuple[int, int, int, int]
    keep: tuple[int, int] = (8, 3)
    is_patient: bool = False

    @classmethod
    def of(cls, rays_: int, n_inputs: int, n_directions: int) -> Effort:
        """Share rays out over the steps that ``n_directions`` chains take."""
        per_step = rays_ / (STEPS * n_directions)
        first = 32 if per_step >= 2500 else 16
        breadth = int(np.clip(0.45 * per_step / first, FEWEST, 400))
        second = int(np.clip(0.25 * per_step / 8, 2 * first, 1024))
        third = int(np.clip(0.3 * per_step / 3, max(2 * second, FEW_INPUTS), 4096))
        last = int(np.clip(0.3 * per_step, max(2 * third, 2 * FEW_INPUTS), 4096))
        if n_inputs <= 2 * FEW_INPUTS + first:  # few enough for all of them
            third, last = max(2 * second, FEW_INPUTS), n_inputs
        rows = (min(first, n_inputs), min(second, n_inputs), min(third, n_inputs), min(last, n_inputs))
        return cls(int(rays_), breadth, rows)

    def wider(self, times: int, n_inputs: int) -> Effort:
        """The same with more neighbours, judged on more inputs."""
        if not times:
            return self
        factor = 2**times
        more = factor // 2
        rows = (min(more * self.rows[0], n_inputs), min(more * self.rows[1], n_inputs), *self.rows[2:])
        keep = (more * self.keep[0], more * self.keep[1])
        return replace(self, breadth=factor * self.breadth, rows=rows, keep=keep, is_patient=True)

    def within(self, rays_: float) -> Effort:
        """The same with no more neighbours than so many rays are enough for, but with the fewest at least."""
        most = max(int(rays_ / self.rows[0]), FEWEST)
        return self if self.breadth <= most else replace(self, breadth=most)


@dataclass
class Evaluator:
    """Judges chains by what they add to the directions that are there already, on the first inputs of an order.

    Attributes
    ----------
    problem
        What there is to explain, its inputs in the order in which they are used.
    best
        What each input pays under the other directions; the budget where there is no recourse.
    model
        The model that is asked, which may be a rougher one.
    monitor
        Told of progress, and asked whether to stop.
    spent, seen
        Rays followed and chains judged so far.
    rays, stage
        Rays that there are for all stages together, and what this one is called: for reports of progress.
    proven
        Kinds of moves that are tried whatever the ranking says: good chains have them.
    known
        What chains cost the first inputs, as many as were asked about.
    capped
        The same, capped by what each input pays under the other directions.
    sample
        How the order of the inputs was drawn, unless each beginning of it stands for all as it is.
    """

    problem: Affected
    best: FloatArray
    model: Model
    monitor: Monitor
    spent: float = 0.0
    seen: int = 0
    rays: int = 0
    stage: str = "climbing"
    proven: frozenset[tuple[int, int, float]] = frozenset()
    known: dict[Chain, FloatArray] = field(default_factory=dict)
    capped: dict[Chain, FloatArray] = field(default_factory=dict)
    sample: Sample | None = None

    def against(self, best: FloatArray) -> None:
        """Judge chains by what they add to other directions, under which each input pays ``best``."""
        self.best, self.capped = best, {}

    def report(self, done: bool = False) -> None:
        """Say how far the search is."""
        self.monitor(self.stage, self.rays if done else min(int(self.spent), self.rays), self.rays)

    def costs(self, chains: Sequence[Chain], n_rows: int) -> FloatArray:
        """What the first inputs pay with each chain in addition to the other directions; no ray is followed twice.

        A ray is followed no further than an input pays under the other directions.
        """
        budget, caps = self.problem.budget, self.best[:n_rows]
        alone = bool((caps >= budget).all())
        found = self.known if alone else self.capped
        short: dict[int, list[Chain]] = {}
        for chain in dict.fromkeys(chains):
            if not alone and len(self.known.get(chain, ())) > len(found.get(chain, ())):
                found[chain] = np.minimum(self.known[chain], self.best[: len(self.known[chain])])
            have = len(found.get(chain, ()))
            if have < n_rows:
                short.setdefault(have, []).append(chain)
        for have, some in short.items():
            part = replace(self.problem, inputs=self.problem.inputs[have:n_rows])
            within = None if alone else caps[have:]
            costs = scale(part, as_matrix(some, self.problem.cost), model=self.model, within=within).cost
            self.spent += costs.size
            self.seen += len(some) if not have else 0
            for chain, cost in zip(some, np.minimum(costs, caps[have:]), strict=True):
                found[chain] = np.concatenate([found[chain], cost]) if have else cost
        return np.array([found[chain][:n_rows] for chain in chains]).reshape(len(chains), n_rows)

    def closely(self, n_rows: int) -> dict[Chain, FloatArray]:
        """What chains cost the first inputs, of those that so many inputs were asked about, or more, at most.

        Where a ray was not followed to its end that is the budget.
        """
        found = {chain: cost[:n_rows] for chain, cost in self.known.items() if len(cost) >= n_rows}
        caps = self.best[:n_rows]
        for chain, cost in self.capped.items():
            if len(cost) >= n_rows and chain not in found:
                found[chain] = np.where(cost[:n_rows] < caps, cost[:n_rows], self.problem.budget)
        return found

    def scores(self, chains: Sequence[Chain], n_rows: int) -> FloatArray:
        """Mean of what inputs pay with each chain and the other directions, estimated by the first ones."""
        return self.mean(self.costs(chains, n_rows))

    def mean(self, values: FloatArray) -> FloatArray:
        """The mean over all inputs, estimated by values of the first ones along the last axis."""
        return np.asarray(values.mean(axis=-1)) if self.sample is None else self.sample.mean(values)


class Ranked(NamedTuple):
    """The moves from a chain, the best first, and whether all of them were looked at."""

    chain: Chain
    order: IntArray
    is_whole: bool


@dataclass
class Climber:
    """A chain on its way up: each step goes to the best of its neighbours.

    Attributes
    ----------
    evaluator, chain, effort
        Who judges, where it is, and how hard to try.
    most
        Most features in a chain.
    score
        The chain's score on the last round's inputs.
    wider
        How often the view was widened because nothing near was better.
    is_done
        Whether nothing better was found in the widest view.
    ranked
        The moves from some chain, the best first.
    """

    evaluator: Evaluator
    chain: Chain
    effort: Effort
    most: int | None
    score: float = field(init=False)
    wider: int = 0
    is_done: bool = False
    ranked: Ranked | None = None

    def __post_init__(self) -> None:
        some = self.chain.n_features
        self.score = float(self.evaluator.scores([self.chain], self.effort.rows[3])[0]) if some else np.inf
        self._every = moves(self.evaluator.problem.space)

    def climb(self, allowance: float, *, widest: int = WIDEST) -> None:
        """Go on until the rays are spent, or nothing better is found in a view that was widened so often."""
        until = self.evaluator.spent + allowance
        while self.wider <= widest and not self.is_done:
            if self.evaluator.spent >= until or self.evaluator.monitor.should_stop():
                break
            try:
                self._step(until - self.evaluator.spent)
            except INTERRUPTIONS as why:
                if not self.chain.n_features:
                    raise
                self.evaluator.monitor.interrupt(why)
                break

    def _step(self, left: float) -> None:
        evaluator, chain = self.evaluator, self.chain
        view = self.effort.wider(self.wider, len(evaluator.problem.inputs)).within(left)
        neighbours = {c.canonical(): c for c in self._neighbours(view)}
        self.is_done = not neighbours
        if self.is_done:
            return
        found, better = _race(evaluator, chain, neighbours, view, self.most)
        evaluator.report()
        if self.wider:
            better = float(evaluator.scores([found], self.effort.rows[3])[0])
        if better < self.score * (1.0 - WORTH):
            self.chain, self.score, self.wider = found, better, 0
        else:
            self.wider += 1
            self.is_done = self.wider > WIDEST

    def _neighbours(self, view: Effort) -> Iterator[Chain]:
        evaluator, chain, every = self.evaluator, self.chain, self._every
        yield from variations(chain)
        yield from additions(chain, self._promising(view), self.most)
        if self.wider:
            some = [every[i] for i in self._order()]
            yield from islice(replacements(chain, some, self.most), REPLACED_PER_NEIGHBOUR * view.breadth)
            if self.score > LEFT * evaluator.problem.budget:
                yield from _spread(_in_pairs(chain, every, self.most), PAIRS_PER_NEIGHBOUR * view.breadth)

    def _promising(self, view: Effort) -> list[Glide | Turn]:
        """The moves that are worth trying at all their options, and those that good chains have."""
        every, chain = self._every, self.chain
        kinds = {type(move): move for move in every}
        many = {kind: len(options(chain, move)) for kind, move in kinds.items()}
        per_move = sum(many[type(move)] for move in every) / max(len(every), 1)
        wanted = max(4, int(view.breadth / max(per_move, 1.0)))
        if len(every) <= wanted:
            return every
        chosen = set(self._order()[:wanted].tolist())
        chosen |= {i for i, move in enumerate(every) if kind_of(move) in self.evaluator.proven}
        return [every[i] for i in sorted(chosen)]

    def _order(self) -> IntArray:
        """The moves from where the chain is, the best first."""
        evaluator, chain = self.evaluator, self.chain
        known = self.ranked
        if known is None or known.chain != chain or (self.wider and not known.is_whole):
            if evaluator.model.tree_ensemble is None:
                known = Ranked(chain, _ranking(evaluator, chain, self._every), True)
            else:  # their margins move in steps, and say little about rays that go far
                before = None if self.wider or known is None else known.order
                known = Ranked(chain, _tried(evaluator, chain, self._every, before), before is None)
            self.ranked = known
        return known.order


def climb(evaluator: Evaluator, chain: Chain, effort: Effort, *, most: int | None, allowance: float) -> Chain:
    """Improve a chain step by step.

    Parameters
    ----------
    evaluator, chain, effort
        Who judges, where to start, and how hard to try.
    most
        Most features in a chain.
    allowance
        Rays for this climb.
    """
    climber = Climber(evaluator, chain, effort, most)
    climber.climb(allowance)
    return climber.chain


def _race(
    evaluator: Evaluator, chain: Chain, neighbours: dict[Chain, Chain], effort: Effort, most: int | None
) -> tuple[Chain, float]:
    """The best neighbour of a chain, or several of the best at once, and its score on the last round's inputs.

    ``neighbours`` are given by their canonical form, in which they are judged.
    """
    first, second, third, last = effort.rows
    near, n_rows = list(neighbours), first
    while effort.is_patient and len(near) > 2 * effort.keep[0] and 2 * n_rows <= third:
        near, n_rows = _best(evaluator, near, n_rows, len(near) // 2), 2 * n_rows
    near = _best(evaluator, near, n_rows, effort.keep[0])
    near = _best(evaluator, near, max(second, n_rows), len(near))
    found = neighbours[near[0]]
    for other in near[1:]:
        both = merged(chain, found, neighbours[other])
        if both is None or not both.n_features or (most is not None and both.n_features > most):
            continue
        now, then = evaluator.scores([found.canonical(), both.canonical()], third)
        found = both if then < now else found
    near = _best(evaluator, list(dict.fromkeys([found.canonical(), *near[: effort.keep[1]]])), third, 1)
    return near[0], float(evaluator.scores(near, last)[0])


def _best(evaluator: Evaluator, chains: list[Chain], n_rows: int, keep: int) -> list[Chain]:
    """The best of some chains on the first inputs, the best first."""
    scores = evaluator.scores(chains, n_rows)
    return [chains[i] for i in np.argsort(scores, kind="stable")[:keep]]


def first_moves(evaluator: Evaluator, effort: Effort, most: int) -> list[Chain]:
    """Where a climb may start: the best single moves of different features, and pairs where no single one does much."""
    every = moves(evaluator.problem.space)
    singles, scores = _sorted(evaluator, additions(Chain(), every, None), effort, max(4 * most, 12))
    found: dict[int, Chain] = {}
    for chain in singles:
        (feature,) = [t.block for t in chain.turns] or [-1 - g.column for g in chain.glides]
        found.setdefault(feature, chain)
    starts = list(found.values())[:most]
    if scores[0] > max(FEEBLE * evaluator.mean(evaluator.best[: effort.rows[1]]), LEFT * evaluator.problem.budget):
        some = _spread(_in_pairs(Chain(), every, None), PAIRS_PER_NEIGHBOUR * effort.wider(1, 1).breadth)
        try:
            best, paired = _sorted(evaluator, some, effort, 8)
        except INTERRUPTIONS as why:
            evaluator.monitor.interrupt(why)
            return starts
        if some and paired[0] < scores[0]:
            starts = [*best[: max(1, most // 2)], *starts][:most]
    return starts


def _in_pairs(chain: Chain, every: list[Glide | Turn], most: int | None) -> list[Chain]:
    """The chain with two more moves, which may only help together; so many of them, spread over all."""
    if most is not None and chain.n_features + 2 > most:
        return []
    pairs = [two for one in _some_additions(chain, every, PAIRS_FROM) for two in _some_additions(one, every, PAIRS_TO)]
    return list(dict.fromkeys(pairs))


def _some_additions(chain: Chain, every: list[Glide | Turn], n: int) -> list[Chain]:
    """At most ``n`` chains with one more feature, spread over all moves and their options."""
    turning, gliding = {t.block for t in chain.turns}, {g.column for g in chain.glides}
    free = [m for m in every if (m.block not in turning if isinstance(m, Turn) else m.column not in gliding)]
    of = {type(m): options(chain, m) for m in {type(m): m for m in free}.values()}  # the same for each of a kind
    ends = np.cumsum([len(of[type(m)]) for m in free])
    total = int(ends[-1]) if len(free) else 0
    chosen = np.arange(total) if total <= n else np.linspace(0, total - 1, n).astype(int)
    which = np.searchsorted(ends, chosen, side="right")
    return [with_move(chain, free[i], of[type(free[i])][at - ends[i]]) for i, at in zip(which, chosen, strict=True)]


def _spread(chains: list[Chain], n: int) -> list[Chain]:
    """At most n chains, evenly from all."""
    return chains if len(chains) <= n else [chains[i] for i in np.linspace(0, len(chains) - 1, n).astype(int)]


def _sorted(evaluator: Evaluator, chains: list[Chain], effort: Effort, keep: int) -> tuple[list[Chain], FloatArray]:
    """The better chains on the second round's inputs, and their scores, the best first."""
    if not chains:
        return [], np.zeros(0)
    scores = np.zeros(0)
    for rows, left in zip(effort.rows[:2], (keep, len(chains)), strict=True):
        try:
            found = evaluator.scores(chains, rows)
        except INTERRUPTIONS as why:
            if not scores.size:
                raise
            evaluator.monitor.interrupt(why)  # fewer inputs have judged them
            break
        order = np.argsort(found, kind="stable")[:left]
        chains, scores = [chains[i] for i in order], found[order]
    return chains, scores


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
        order = _ranking(evaluator, chain, every)
    some = order[:most]
    chains = [with_move(chain, every[i], _usual(options(chain, every[i]))).canonical() for i in some]
    scores = evaluator.scores(chains, min(RANKING_ROWS, len(evaluator.problem.inputs)))
    return np.concatenate([some[np.argsort(scores, kind="stable")], order[most:]])


def _usual(some: list[float]) -> float:
    """One of the options of a move, rather early or slow."""
    return sorted(some)[len(some) // 3]


def _ranking(evaluator: Evaluator, chain: Chain, every: list[Glide | Turn]) -> IntArray:
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


def in_order(problem: Affected, salt: int) -> tuple[Affected, IntArray]:
    """The problem with its inputs in an order that depends on their content and the salt alone."""
    order = content_order(problem.inputs, salt)
    return replace(problem, inputs=np.ascontiguousarray(problem.inputs[order])), order


@dataclass(frozen=True, slots=True)
class GreedyChains:
    """Propose chains of moves, grown greedily: one after the other, each for what those before leave to be done.

    Parameters
    ----------
    rays_per_input
        Rays to follow for each affected input and chain.
    max_features
        Most features in a chain.
    """

    rays_per_input: float = 40.0
    max_features: int | None = None

    def __post_init__(self) -> None:
        most = self.max_features
        keep_checked(
            self,
            rays_per_input=check_number("rays_per_input", self.rays_per_input, open_low=True, high=MOST_RAYS),
            max_features=None if most is None else check_count("max_features", most),
        )

    def propose(self, problem: Affected, n: int, rng: np.random.Generator) -> FloatArray:
        """Grow at most ``n`` chains; fewer where another would not lower the score."""
        n = check_asked(problem, n, rng)
        ordered, _ = in_order(problem, int(rng.integers(2**63)))
        n_inputs, few = len(ordered.inputs), min(n, 10)
        effort = Effort.of(int(max(self.rays_per_input * n_inputs * few, 1000)), n_inputs, few)
        evaluator = Evaluator(ordered, np.full(n_inputs, problem.budget), problem.model, Monitor(), rays=effort.rays)
        chains: list[Chain] = []
        for _ in range(few):
            chain = climb(evaluator, Chain(), effort, most=self.max_features, allowance=effort.rays / few)
            better = np.minimum(evaluator.best, evaluator.costs([chain], n_inputs)[0])
            if chains and not better.sum() < evaluator.best.sum() * (1.0 - WORTH):
                break
            evaluator.against(better)
            chains.append(chain)
        return problem.cost.normalise(as_matrix(chains, problem.cost))
