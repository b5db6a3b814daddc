"""Stage 3: from the ground set to a small rule set, by local search after Lee et al. (2009).

As in the appendix, rules are added and deleted until that gives no improvement, and only then exchanged. The best move
of its kind is taken each time. Limits on the number of rules and of distinct Outer-Ifs hold throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from globece.baselines.evaluate import Evaluated, covered, pieces
from globece.baselines.objectives import Terms
from globece.baselines.swaps import Ledger, Standing
from globece.progress import Monitor
from globece.space import BoolArray, IntArray

BLOCK = 256  # triples evaluated together
FULL = np.iinfo(np.int64).max // 4


@dataclass(frozen=True, slots=True)
class Limits:
    """The most rules, epsilon 1, and the most distinct Outer-Ifs, epsilon 3."""

    rules: int = 20
    outers: int = 10


@dataclass(frozen=True, slots=True)
class Optimum:
    """A rule set: indices of its triples, the objective after each step, and whether acc(R) reached acc(V)."""

    rules: tuple[int, ...]
    trace: tuple[float, ...]
    at_bound: bool

    @property
    def value(self) -> float:
        """The final value of the objective."""
        return self.trace[-1]


def optimise(
    evaluated: Evaluated,
    terms: Terms,
    limits: Limits,
    monitor: Monitor,
    *,
    exchanges: int = 1,
    repeats: int = 1,
) -> Optimum:
    """Find a good rule set.

    Parameters
    ----------
    evaluated, terms
        Evaluated triples, and the objective over them.
    limits
        Limits on the rule set.
    monitor
        Receives progress; when it says stop, the rule set so far is the result.
    exchanges
        Most rules that one exchange removes for the one that it adds; 0 for no exchanges.
    repeats
        Number of searches, each among the triples that no earlier search has chosen; the best result is returned.
    """
    search = _Search(Ledger(evaluated, terms), limits, monitor, exchanges)
    free = np.ones(len(evaluated), dtype=bool)
    found: list[Optimum] = []
    for _ in range(repeats):
        found.append(search.run(free))
        free[list(found[-1].rules)] = False
        if monitor.stopped or not free.any() or found[-1].at_bound:
            break
    return max(found, key=lambda o: o.value)


class _Search:
    """One local search; keeps bounds on gains, so that few triples need to be evaluated."""

    def __init__(self, ledger: Ledger, limits: Limits, monitor: Monitor, exchanges: int) -> None:
        self.ledger, self.evaluated, self.terms = ledger, ledger.evaluated, ledger.terms
        self.limits, self.monitor, self.exchanges = limits, monitor, exchanges
        self.reachable = round(self.evaluated.accuracy * self.evaluated.n)
        nothing = ledger.standing([])
        parts = [ledger.gains(nothing, part)[:, -1] for part in self.evaluated.chunks()]
        # A gain never grows as the rule set does, so a triple's gain alone bounds all its gains.
        self.alone = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
        self.trace: list[float] = []
        self.latest = nothing

    def run(self, free: BoolArray) -> Optimum:
        self.trace = []
        now = self.note(self.ledger.standing([]))
        bounds = np.where(free, self.alone, -FULL)
        try:
            while not self.monitor.should_stop():
                now = self.add(now, bounds)
                if self.done(now):
                    break
                better = self.delete(now) or self.exchange(now, free, bounds)
                if better is None:
                    break
                self.loosen(bounds, now, better)
                now = self.note(better)
        except KeyboardInterrupt:
            self.monitor.stopped = "interrupted"
        return Optimum(self.latest.rules, tuple(self.trace), self.done(self.latest))

    def note(self, now: Standing) -> Standing:
        self.latest = now  # before the monitor, which may interrupt
        self.trace.append((now.total + self.terms.constant) / self.terms.scale)
        self.monitor("rules", len(now.rules), self.limits.rules)
        return now

    def done(self, now: Standing) -> bool:
        """Whether acc(R) is acc(V), and the objective has no other term."""
        if self.terms.per_cost or (self.terms.fixed != 0).any():
            return False
        return int(covered(self.evaluated, np.array(now.rules, dtype=np.int64)).sum()) == self.reachable

    def fits(self, rules: Sequence[int]) -> BoolArray:
        """Triples that may join these rules."""
        if len(rules) >= self.limits.rules:
            return np.zeros(len(self.evaluated), dtype=bool)
        outer = self.evaluated.triples.outer
        named = np.unique(outer[list(rules)])
        if len(named) < self.limits.outers:
            return np.ones(len(self.evaluated), dtype=bool)
        return np.isin(outer, named)

    def loosen(self, bounds: IntArray, before: Standing, after: Standing) -> None:
        """Make bounds on gains valid for a rule set from which rules were removed.

        f(R - e + x) is at most f(R + x), so no gain grows by more than what the inputs lose by the removed rules.
        """
        kept = [r for r in before.rules if r in after.rules]
        loss = int(before.best.sum()) - int(self.ledger.standing(kept).best.sum())
        known = bounds > -FULL
        bounds[known] = np.minimum(self.alone[known], bounds[known] + loss)
        for rule in before.rules:
            bounds[rule] = self.alone[rule] if rule not in after.rules else 0
        for rule in after.rules:
            bounds[rule] = 0

    def add(self, now: Standing, bounds: IntArray) -> Standing:
        """Add the best triple as long as one improves the objective; updates ``bounds``."""
        while not self.monitor.should_stop():
            may = np.flatnonzero(self.fits(now.rules) & (bounds > 0))
            order = may[np.argsort(-bounds[may], kind="stable")]
            best, pick = 0, -1
            for part in pieces(order, BLOCK):
                if bounds[part[0]] < best or (bounds[part[0]] == best and pick >= 0 and part[0] > pick):
                    break
                gain = self.ledger.gains(now, part)[:, -1]
                bounds[part] = gain
                top = int(gain.max())
                first = int(part[gain == top].min())  # the first in the ground set if several are equal
                if top > best or (top == best and pick >= 0 and first < pick):
                    best, pick = top, first
            if pick < 0:
                break
            now = self.note(self.ledger.standing([*now.rules, pick]))
            bounds[pick] = 0
        return now

    def delete(self, now: Standing) -> Standing | None:
        """Remove the least useful rule, if that does not lower the objective."""
        if len(now.rules) < 2:
            return None
        change = now.without(self.terms)
        index = int(change.argmax())
        if change[index] < 0:
            return None
        return self.ledger.standing([r for i, r in enumerate(now.rules) if i != index])

    def exchange(self, now: Standing, free: BoolArray, bounds: IntArray) -> Standing | None:
        """Replace one or more rules by a single triple, if that improves the objective."""
        for size in range(1, min(self.exchanges, len(now.rules)) + 1):
            best: tuple[int, Standing | None] = (0, None)
            for gone in combinations(range(len(now.rules)), size - 1):
                left = [r for i, r in enumerate(now.rules) if i not in gone]
                base = now if not gone else self.ledger.standing(left)
                limits = bounds if not gone else np.where(free, self.alone, -FULL)
                found = self.swap(base, limits, now.total + best[0])
                if found is not None:
                    best = (found.total - now.total, found)
                if self.monitor.should_stop():
                    break
            if best[1] is not None:
                return best[1]
        return None

    def swap(self, base: Standing, bounds: IntArray, floor: int) -> Standing | None:
        """The best rule set with one rule of ``base`` replaced, if its total is above ``floor``.

        ``bounds`` are on gains of adding to ``base``, and are updated.
        """
        if not base.rules:
            return None
        outer = self.evaluated.triples.outer
        # replacing gains no more than adding, except for the fixed price of the rule replaced
        extra = max(0, int(-self.terms.fixed[list(base.rules)].min()))
        may = np.flatnonzero(bounds > -extra) if extra else np.flatnonzero(bounds > 0)
        may = may[~np.isin(may, base.rules)]
        order = may[np.argsort(-bounds[may], kind="stable")]
        names = [np.unique(outer[[r for r in base.rules if r != gone]]) for gone in base.rules]
        best, move = floor - base.total, (-1, -1)
        for part in pieces(order, BLOCK):
            if bounds[part[0]] + extra <= best:
                break
            gains = self.ledger.gains(base, part)
            bounds[part], gain = gains[:, -1], gains[:, :-1]
            for index, named in enumerate(names):
                if len(named) >= self.limits.outers:
                    gain[~np.isin(outer[part], named), index] = -FULL
            i, at = divmod(int(gain.argmax()), gain.shape[1])
            if gain[i, at] > best:
                best, move = int(gain[i, at]), (int(part[i]), at)
        if move[0] < 0:
            return None
        return self.ledger.standing([move[0] if i == move[1] else r for i, r in enumerate(base.rules)])
