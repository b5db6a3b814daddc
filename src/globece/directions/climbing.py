"""Greedy chains: from nothing, one move after the other, each the one that lowers the score most, until none does.

Neighbours of the chain at hand race: all of them on few inputs, the better ones on more, and several of the best may be
taken at once. :mod:`globece.directions.judging` judges them, and :mod:`globece.directions.ranking` says which moves are
worth trying at all their times and paces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from globece.case.affected import Affected
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
from globece.directions.judging import Evaluator, in_order
from globece.directions.protocol import check_asked
from globece.directions.ranking import Ranked, kind_of, ranked
from globece.errors import check_count, check_number, keep_checked
from globece.progress import INTERRUPTIONS, Monitor
from globece.space import FloatArray, IntArray

WORTH = 1e-3  # share by which a step must lower the score
FEW_INPUTS = 96  # inputs that decide the last round at least, however few rays there are
FEEBLE = 0.85  # single moves that leave this share of the score are no good start
LEFT = 0.2  # a chain whose score is above this share of the budget leaves people behind: pairs are tried as well
PAIRS_FROM, PAIRS_TO = 24, 24  # first moves of pairs, and second ones for each
REPLACED_PER_NEIGHBOUR = 1  # chains with a feature replaced, for each neighbour that starts
PAIRS_PER_NEIGHBOUR = 2  # no more pairs than this for each neighbour that starts: where rays are dear, fewer
MOST_RAYS = 1e6  # for each input
WIDEST = 1  # how often the view is widened before a climb ends
AT_ONCE = 3  # neighbours that are tried on top of the best one before one of them is taken
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
        is_full = self.most is not None and chain.n_features >= self.most
        if self.wider or is_full:
            some = [every[i] for i in self._order()]
            yield from islice(replacements(chain, some), REPLACED_PER_NEIGHBOUR * view.breadth)
        if self.wider and self.score > LEFT * evaluator.problem.budget:
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
        self.ranked = ranked(self.evaluator, self.chain, self._every, self.ranked, whole=bool(self.wider))
        return self.ranked.order


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
    found = _together(evaluator, chain, [neighbours[c] for c in near], third, most)
    near = _best(evaluator, list(dict.fromkeys([found.canonical(), *near[: effort.keep[1]]])), third, 1)
    return near[0], float(evaluator.scores(near, last)[0])


def _together(evaluator: Evaluator, chain: Chain, near: list[Chain], n_rows: int, most: int | None) -> Chain:
    """The first neighbour of a chain, changed in the ways of the others as well where that is better."""
    found, others = near[0], near[1:]
    while others:
        both = [merged(chain, found, other) for other in others[:AT_ONCE]]
        fit = [i for i, c in enumerate(both) if c and c.n_features and (most is None or c.n_features <= most)]
        tried = [c for i in fit if (c := both[i])]
        scores = evaluator.scores([c.canonical() for c in (found, *tried)], n_rows) if tried else np.zeros(1)
        better = np.flatnonzero(scores[1:] < scores[0])
        if better.size:
            found = tried[better[0]]
        others = others[1 + fit[better[0]] if better.size else AT_ONCE :]
    return found


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
