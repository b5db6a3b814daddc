"""The search by rounds: each climbs new chains, polishes those chosen, and exchanges them with all found so far.

Level k holds the best k directions. In every round it climbs one more for what level k - 1 leaves to be done, climbs on
from each of its own with the others in place, and takes the k of all known chains that cost least together. What a
level does depends on the levels below it and on the rounds before, never on how many levels or rounds there are to be,
and it is only ever replaced by something better: more directions, and more rays, are never worse on the inputs seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from globece.case.affected import Affected
from globece.case.ordering import Sample
from globece.case.scaling import scale
from globece.directions.chains import Chain, as_matrix, shortened
from globece.directions.climbing import WIDEST, Climber, Effort, climb, first_moves
from globece.directions.judging import Evaluator
from globece.directions.ranking import kind_of
from globece.models.base import Model
from globece.progress import INTERRUPTIONS, Monitor
from globece.search.choice import exchange, greedy
from globece.search.headroom import Headroom
from globece.space import FloatArray

GROWTH = 4.0  # a round has so many times the rays of the one before
EVENLY = 0.3  # share of a sample in which all inputs count alike; in the rest by what they pay
LEAST_INPUTS = 160  # inputs that judge a round at least
FEW_INPUTS = 512  # of them, those that judge every chain; all judge those that may be chosen
MOST_INPUTS = 8192
PER_INPUT = 6.0  # rays of a round for each input that judges what it chose
STARTS = 5  # single moves from which a chain is climbed
OF_A_CLIMB = 5000  # rays of a climb, where there are enough of them for several
NEW = 0.5  # share of the rays for a new chain, where others are polished
POLISHING = 3.0  # a climb from what is there takes fewer steps, which may be so many times wider
CLOSELY = 192  # inputs on which a chain has been looked at closely
JUDGED = 3  # sets of chains that are judged by more inputs,
JUDGES = 1536  # so many of them, before the best is judged by all inputs of a round
PRUNED_BY = 64  # inputs that say which moves may be left out at all
OF_A_STEP = 1500  # rays of a step or so: with fewer there is one climb
LEAST_LEFT = 0.5  # share of the rays for climbing at least, whatever the first moves took
FURTHER = 0.4  # rays of each further direction, as a share of those of the first


def schedule(usual: float, rays: float, n_rounds: int) -> list[float]:
    """Rays of each round for the first direction: all rounds that fit, or a shorter one.

    Parameters
    ----------
    usual
        The rays of a search that is asked for nothing else; they are those of the first few rounds together.
    rays
        The rays that there are.
    n_rounds
        How many rounds a search with the usual rays has.
    """
    shares = GROWTH ** np.arange(n_rounds)
    rounds = [min(usual * float(shares[0] / shares.sum()), rays)]
    while sum(rounds) + rounds[-1] * GROWTH <= rays * 1.001:
        rounds.append(rounds[-1] * GROWTH)
    return rounds


@dataclass(eq=False)
class Pool:
    """Chains, and what each costs the first inputs, as many as were asked for; capped by the budget."""

    problem: Affected
    model: Model
    known: dict[Chain, FloatArray] = field(default_factory=dict)

    def costs(self, chains: Sequence[Chain], n: int) -> FloatArray:
        """Minimum costs of the first ``n`` inputs: ``(chains, n)``."""
        short: dict[int, list[Chain]] = {}
        for chain in dict.fromkeys(chains):
            have = len(self.known.get(chain, ()))
            if have < n:
                short.setdefault(have, []).append(chain)
        for have, some in short.items():
            part = replace(self.problem, inputs=self.problem.inputs[have:n])
            found = scale(part, as_matrix(some, self.problem.cost), model=self.model).cost
            for chain, cost in zip(some, np.minimum(found, self.problem.budget), strict=True):
                self.known[chain] = np.concatenate([self.known.get(chain, cost[:0]), cost])
        return np.array([self.known[chain][:n] for chain in chains]).reshape(len(chains), n)

    def paid(self, chains: Sequence[Chain], n: int) -> FloatArray:
        """What the first inputs pay with the cheapest of some chains; the budget without any."""
        if not chains:
            return np.full(n, self.problem.budget)
        return np.asarray(self.costs(chains, n).min(axis=0))


@dataclass(eq=False)
class Rounds:
    """The state of a search by rounds.

    Attributes
    ----------
    pool
        What every chain found so far costs.
    salt
        Where all randomness comes from.
    max_features
        Most features in a chain.
    monitor
        Told of progress, and asked whether to stop.
    levels
        The best k chains for each k, from none.
    found
        Chains found at each level.
    starts
        Single moves from which each level has yet to climb.
    given
        Chains for each level to start from, from none, if something is known beforehand.
    start
        The best single move, for want of anything better.
    spent, seen, total
        Rays followed and chains looked at so far, and the rays that there are.
    closely
        What the chains cost that were looked at closely in this round, on the first inputs of its order.
    margins
        The inputs' margins; zeros where asking for them would take calls of the user's model.
    """

    pool: Pool
    salt: int
    max_features: int
    monitor: Monitor
    levels: list[tuple[Chain, ...]] = field(default_factory=lambda: [()])
    found: list[dict[Chain, None]] = field(default_factory=lambda: [{}])
    starts: list[list[Chain]] = field(default_factory=lambda: [[]])
    given: list[tuple[Chain, ...]] = field(default_factory=list)
    start: Chain | None = None
    spent: float = 0.0
    seen: int = 0
    total: int = 0
    closely: dict[Chain, FloatArray] = field(default_factory=dict)
    margins: FloatArray = field(default_factory=lambda: np.zeros(0))

    def run(self, rounds: Sequence[float], wanted: int, plateau: float) -> tuple[Chain, ...]:
        """Go through the rounds; return the best chains."""
        self.total = int(sum(rounds) * (1.0 + FURTHER * (wanted - 1)))
        few = min(FEW_INPUTS, len(self.pool.problem.inputs))
        top = wanted  # levels that are worth another round
        try:
            for number, rays in enumerate(rounds):
                n = self._inputs_of(rays)
                for level in range(1, min(top, wanted) + 1):
                    if number + level > 1 and self.monitor.should_stop():
                        return next(level for level in reversed(self.levels) if level)
                    if len(self.levels[level - 1]) < level - 1:
                        break  # one fewer was not to be bettered already
                    self._improve(level, number, rays * (1.0 if level == 1 else FURTHER), n)
                if plateau:
                    top = self._worthwhile(plateau, few) + 2
            if plateau:
                return self.levels[self._worthwhile(plateau, few)]
            return self._confirmed()
        except INTERRUPTIONS as why:
            if len(self.levels) == 1 or not self.levels[1]:
                if self.start is None:
                    raise
                self.levels[1:] = [(self.start,)]
            self.monitor.interrupt(why)
            return next(level for level in reversed(self.levels) if level)
        finally:
            self.monitor("searching", self.total, self.total)

    def headroom(self, chosen: Sequence[Chain]) -> Headroom | None:
        """What is left to be done after some chains, by what is known already: no ray is followed for it."""
        few, known = min(FEW_INPUTS, len(self.pool.problem.inputs)), self.pool.known
        if not chosen or any(len(known.get(chain, ())) < few for chain in chosen):
            return None
        every = [cost[:few] for cost in known.values() if len(cost) >= few]
        return Headroom.of(
            np.array(every), np.array([known[chain][:few] for chain in chosen]), self.pool.problem.budget
        )

    def _worthwhile(self, plateau: float, n: int) -> int:
        """How many directions lower the score noticeably, one by one or several together."""
        scores = [float(self.pool.paid(level, n).mean()) for level in self.levels]
        best = 1
        for level in range(2, len(scores)):
            if scores[level] < scores[best] * (1.0 - plateau) ** (level - best):
                best = level
        return best

    def _inputs_of(self, rays: float) -> int:
        """How many inputs judge what a round chose."""
        return int(min(len(self.pool.problem.inputs), np.clip(rays / PER_INPUT, LEAST_INPUTS, MOST_INPUTS)))

    def _improve(self, level: int, number: int, rays: float, n: int) -> None:
        """One round of one level."""
        if level == len(self.levels):
            self.levels.append(())
            given = self.given[level] if level < len(self.given) else ()
            self.found.append(dict.fromkeys(given))
            self.starts.append(list(given))
            self.start = self.start or next(iter(given), None)
        below, mine = self.levels[level - 1], self.levels[level]
        evaluator, sample = self._evaluator(level, number, n)
        order = sample.order
        good = {c for chains in self.levels[: level + 1] for c in chains}
        evaluator.against(self.pool.paid(below, n)[order])
        evaluator.proven = frozenset(kind_of(m) for c in good for part in c for m in part)
        try:
            share = NEW if mine and level > 1 else 1.0
            self._climb_new(evaluator, level, number, share * rays)
            for i, chain in enumerate(mine):
                allowance = max(self.spent + rays - evaluator.spent, 0.0) / (len(mine) - i)
                if not allowance or self.monitor.should_stop():
                    break
                others = self.pool.paid([c for j, c in enumerate(mine) if j != i], n)
                self._remember(evaluator)
                evaluator.against(others[order])
                effort = Effort.of(int(POLISHING * allowance), n, 1)
                changed = climb(evaluator, chain, effort, most=self.max_features, allowance=allowance)
                self.found[level][changed] = None
        finally:
            self.spent = evaluator.spent
            self.seen += evaluator.seen
        self._remember(evaluator)
        self.levels[level] = self._chosen(sample, level, n)
        self.found[level] |= dict.fromkeys(self.levels[level])
        self.monitor.found()

    def _evaluator(self, level: int, number: int, n: int) -> tuple[Evaluator, Sample]:
        """Who judges chains in this round of this level: those who have more left to pay come first."""
        below, mine = self.levels[level - 1], self.levels[level]
        rng = np.random.default_rng([self.salt % 2**32, number, level])
        paid = self.pool.paid(below or mine, n)
        weights = np.maximum(EVENLY * paid.mean() + (1.0 - EVENLY) * paid, np.finfo(float).tiny)
        sample = Sample.drawn(weights, paid if below or mine else self.margins[:n], rng)
        part = replace(self.pool.problem, inputs=self.pool.problem.inputs[:n][sample.order])
        self.closely = {}
        evaluator = Evaluator(
            part, np.zeros(0), self.pool.model.located(part.inputs), self.monitor, spent=self.spent, rays=self.total,
            stage="searching", sample=sample,
        )  # fmt: skip
        return evaluator, sample

    def _remember(self, evaluator: Evaluator) -> None:
        """Keep what the chains cost that were looked at closely."""
        for chain, cost in evaluator.closely(min(CLOSELY, len(evaluator.problem.inputs))).items():
            self.closely[chain] = np.minimum(cost, self.closely.get(chain, cost))

    def _climb_new(self, evaluator: Evaluator, level: int, number: int, allowance: float) -> None:
        """Climb one more chain: on from the best that were reached before, and from single moves."""
        n, begin = len(evaluator.problem.inputs), evaluator.spent
        effort = Effort.of(int(allowance / (2 if number else 1)), n, 1)
        if not self.starts[level]:
            self.starts[level] = first_moves(evaluator, effort, STARTS)
            self.start = self.start or self.starts[level][0]
            self.found[level][self.starts[level][0]] = None
            evaluator.monitor.found()
        left = max(begin + allowance - evaluator.spent, LEAST_LEFT * allowance)
        climbs = 1 if level > 1 and left < OF_A_STEP else int(np.clip(left / OF_A_CLIMB, 2, STARTS))
        reached = list(dict.fromkeys(c for part in self.found[1 : level + 1] for c in part)) if number else []
        before = self._distinct(level, reached, (climbs + 1) // 2, min(n, FEW_INPUTS))
        new = self.starts[level][: max(climbs - len(before), int(climbs > 1))]
        del self.starts[level][: len(new)]
        end = evaluator.spent + left
        climbers = [Climber(evaluator, chain, effort, self.max_features) for chain in (*before, *new)]
        while climbers and evaluator.spent < end and not evaluator.monitor.should_stop():
            # the better half goes on, the last one to the end
            turns = len(climbers).bit_length()
            share = (end - evaluator.spent) / turns / len(climbers)
            for climber in climbers:
                climber.climb(share, widest=WIDEST if turns == 1 else 0)
                self.found[level][climber.chain] = None
            if level == 1 and not self.levels[1]:
                self.start = min(climbers, key=lambda c: c.score).chain
            climbers = sorted(climbers, key=lambda c: c.score)[: len(climbers) // 2]

    def _distinct(self, level: int, chains: list[Chain], most: int, n: int) -> list[Chain]:
        """The best of some chains, given those below, that do not move the same things the same way."""
        if not chains:
            return []
        totals = np.minimum(self.pool.costs(chains, n), self.pool.paid(self.levels[level - 1], n)).sum(axis=1)
        best: dict[frozenset[tuple[int, int, float]], Chain] = {}
        for i in np.argsort(totals, kind="stable"):
            best.setdefault(frozenset(kind_of(m) for part in chains[i] for m in part), chains[i])
        return list(best.values())[:most]

    def _chosen(self, sample: Sample, level: int, n: int) -> tuple[Chain, ...]:
        """The best chains for a level, of all that were found there and below."""
        budget, few = self.pool.problem.budget, min(n, FEW_INPUTS)
        below, mine = self.levels[level - 1], self.levels[level]
        every = list(dict.fromkeys(c for part in self.found[: level + 1] for c in part))
        costs, where = self.pool.costs(every, few), {c: i for i, c in enumerate(every)}
        best = every[int(np.minimum(costs, self.pool.paid(below, few)).sum(axis=1).argmin())]
        starts = [greedy(costs, budget, level)]
        if len(mine) == level:
            starts.append(np.array([where[c] for c in mine]))
        sets = [tuple(every[i] for i in exchange(costs, start, budget)) for start in starts]
        sets.append((*below, best))
        if level > 1:
            sets += self._of_all_seen(sample, level, [s for s in (mine, *sets) if len(s) == level])
        # the better ones on few inputs are judged by more, and the best by all, beside what there was
        more = min(n, JUDGES)
        for judges, kept in ((few, JUDGED), (more, 1)):
            sets = sorted(dict.fromkeys(sets), key=lambda s: float(self.pool.paid(s, judges).sum()))[:kept]
        sets = [s for s in dict.fromkeys([mine, below, self._pruned(sets[0], more)]) if s]
        return sets[int(np.argmin([self.pool.paid(s, n).sum() for s in sets]))]

    def _of_all_seen(self, sample: Sample, level: int, sets: Sequence[tuple[Chain, ...]]) -> list[tuple[Chain, ...]]:
        """The best sets among all chains that this round has looked at closely, which costs no ray."""
        every = list(self.closely)
        if len(every) <= level:
            return []
        matrix, budget = np.array(list(self.closely.values())), self.pool.problem.budget
        where = {chain: i for i, chain in enumerate(every)}
        weights = sample.weights(matrix.shape[1])
        starts = [greedy(matrix, budget, level, weights=weights)]
        starts += [np.array([where[c] for c in s]) for s in sets if all(c in where for c in s)]
        found = {tuple(sorted(every[i] for i in exchange(matrix, start, budget, weights))): None for start in starts}
        for chain in {c for s in found for c in s}:
            self.found[level][chain] = None
        return list(found)

    def _confirmed(self) -> tuple[Chain, ...]:
        """The best of the levels; by the model itself, where a rougher one was asked and the inputs are few."""
        problem, levels = self.pool.problem, [level for level in self.levels if level]
        model, n = problem.model, len(problem.inputs)
        is_followed = model.tree_ensemble is not None or model.half_spaces is not None  # exactly, in the search as well
        if len(levels) == 1 or is_followed or not model.exact or n > FEW_INPUTS:
            return levels[-1]
        exact = Pool(problem, model)
        return min(reversed(levels), key=lambda level: float(exact.paid(level, n).sum()))

    def _pruned(self, chains: tuple[Chain, ...], n: int) -> tuple[Chain, ...]:
        """Leave out moves that lower no cost of the first inputs: somebody would have to read them."""
        kept = list(chains)
        for i in range(len(kept)):
            others = self.pool.paid(kept[:i] + kept[i + 1 :], n)
            while kept[i].n_features > 1:
                shorter = [c.canonical() for c in shortened(kept[i])]
                for judges in sorted({min(n, PRUNED_BY), min(n, FEW_INPUTS), n}):  # few inputs tell which do lower it
                    totals = np.minimum(self.pool.costs([kept[i], *shorter], judges), others[:judges]).sum(axis=1)
                    order = np.argsort(totals[1:], kind="stable")
                    shorter = [shorter[j] for j in order if totals[1 + j] <= totals[0]]
                if not shorter:
                    break
                kept[i] = shorter[0]
        return tuple(dict.fromkeys(kept))
