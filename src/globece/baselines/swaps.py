"""Gains of adding a triple to a rule set, and of replacing each rule by it: a kernel and its plain twin.

For each input the best and the second best worth in R, and the rule that gives the best, determine its worth without
any one rule. So a single pass over a triple's bits gives the gains of adding it and of replacing each rule by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np

from globece.baselines.evaluate import Evaluated
from globece.baselines.item_costs import ItemCosts
from globece.baselines.itemsets import BIT, DE_BRUIJN, Words, unpack
from globece.baselines.objectives import Terms
from globece.space import IntArray


@dataclass(frozen=True, eq=False)
class Standing:
    """State of a rule set: for each input the best and second best worth in it, and the rule that gives the best."""

    rules: tuple[int, ...]
    best: IntArray
    second: IntArray
    owner: IntArray  # index into ``rules``; -1 where no rule serves the input
    total: int  # in UNIT, without the constant

    def without(self, terms: Terms) -> IntArray:
        """Change of the total without each rule."""
        lost = np.zeros(len(self.rules), dtype=np.int64)
        served = self.owner >= 0
        np.add.at(lost, self.owner[served], (self.second - self.best)[served])
        return lost - terms.fixed[list(self.rules)]


class Ledger:
    """Evaluated triples with an objective: computes standings, and gains relative to them."""

    def __init__(self, evaluated: Evaluated, terms: Terms) -> None:
        self.evaluated, self.terms = evaluated, terms
        n_words = evaluated.outer.shape[1]
        self._flips: Words = (
            evaluated.flips if terms.needs_flip else np.full((1, n_words), np.iinfo(np.uint64).max, "u8")
        )
        self._change = evaluated.change_of if terms.needs_flip else np.zeros(len(evaluated), dtype=np.int64)
        # without a weight on cost no items are needed
        self._items = (
            evaluated.ground.changes.items if terms.per_cost else np.empty((len(self._flips), 0), dtype=np.int64)
        )

    def worths(self, triple: int) -> IntArray:
        """Worth of a triple to each input; 0 where it does not serve it."""
        which = np.array([triple])
        bits = self.evaluated.covers(which) if self.terms.needs_flip else self.evaluated.matches(which)
        worth = np.full(self.evaluated.n, self.terms.worth, dtype=np.int64)
        if self.terms.per_cost:
            cost = self.evaluated.costs_of_change(int(self.evaluated.change_of[triple]))
            worth -= np.rint(self.terms.per_cost * cost).astype(np.int64)
        return np.where(unpack(bits[0], self.evaluated.n), worth, 0)

    def standing(self, rules: Sequence[int]) -> Standing:
        """The standing of a rule set."""
        n = self.evaluated.n
        best, second = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        owner = np.full(n, -1, dtype=np.int64)
        for index, triple in enumerate(rules):
            worth = self.worths(triple)
            better = worth > best
            second = np.where(better, best, np.maximum(second, worth))
            owner, best = np.where(better, index, owner), np.maximum(best, worth)
        fixed = int(self.terms.fixed[list(rules)].sum()) if len(rules) else 0
        return Standing(tuple(rules), best, second, owner, int(best.sum()) + fixed)

    def gains(self, standing: Standing, which: IntArray) -> IntArray:
        """Gain of each triple: replacing each rule and, in the last column, added to them all."""
        evaluated, terms = self.evaluated, self.terms
        out = np.zeros((len(which), len(standing.rules) + 1), dtype=np.int64)
        _kernel(
            evaluated.triples.outer[which],
            evaluated.inner_of[which],
            self._change[which],
            evaluated.outer,
            evaluated.inner,
            self._flips,
            self._items,
            evaluated.item_costs,
            evaluated.l2,
            terms.worth,
            terms.per_cost,
            standing.best,
            standing.second,
            standing.owner,
            out,
        )
        out += terms.fixed[which][:, None]
        out[:, :-1] += standing.without(terms)
        return out

    def plain_gains(self, standing: Standing, which: IntArray) -> IntArray:
        """The same as :meth:`gains`, by building each rule set and summing it up."""
        rules = list(standing.rules)
        out = np.empty((len(which), len(rules) + 1), dtype=np.int64)
        for i, triple in enumerate(which):
            for index in range(len(rules) + 1):
                left = rules[:index] + rules[index + 1 :]
                out[i, index] = self.standing([*left, int(triple)]).total - standing.total
        return out


@numba.njit(cache=True, nogil=True)
def _kernel(
    outer_of: IntArray,
    inner_of: IntArray,
    change_of: IntArray,
    outer: Words,
    inner: Words,
    flips: Words,
    items: IntArray,
    item_costs: ItemCosts,
    l2: bool,
    worth: int,
    per_cost: float,
    best: IntArray,
    second: IntArray,
    owner: IntArray,
    out: IntArray,
) -> None:
    place, table, weight, feature, codes = item_costs  # not a function of these: it would not be inlined
    alone = out.shape[1] - 1
    for t in range(len(outer_of)):
        a, b, c = outer_of[t], inner_of[t], change_of[t]
        for w in range(outer.shape[1]):
            word = outer[a, w] & inner[b, w] & flips[c, w]
            while word:
                rest = word & (word - np.uint64(1))
                i = w * 64 + BIT[((word ^ rest) * DE_BRUIJN) >> np.uint64(58)]
                word = rest
                u = worth
                if per_cost > 0.0:
                    cost = 0.0
                    for j in range(items.shape[1]):
                        item = items[c, j]
                        if item < 0:
                            break
                        row = place[item]
                        other = codes[i, feature[item]] != item
                        part = table[row, i] if row >= 0 else weight[item] * other
                        cost += part * part if l2 else part
                    if l2:
                        cost = np.sqrt(cost)
                    u = worth - int(np.rint(per_cost * cost))
                kept = max(best[i], u)
                gain = kept - best[i]
                out[t, alone] += gain
                e = owner[i]
                if e >= 0:
                    # without its rule the input falls back on the second best, unless this triple is better
                    out[t, e] += max(second[i], u) - second[i] - gain
        for e in range(alone):
            out[t, e] += out[t, alone]
