"""Evaluate the ground set: every distinct change is predicted once, and every triple is bit operations from then on.

A counterfactual depends on the change and the row, not on the triple. So the model is called on each distinct change of
the rows that some triple applies it to, several changes per call; outcomes are stored as packed bits, and costs item by
item. A triple covers ``outer & inner & flips``, without calling the model again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numba
import numpy as np

from globece.baselines.ground_set import GroundSet, Triples
from globece.baselines.item_costs import ItemCosts
from globece.baselines.itemsets import BIT, DE_BRUIJN, NO_ITEM, Words, item_bits, pack, unpack
from globece.costs import CostModel
from globece.models.base import Model
from globece.progress import Monitor
from globece.rays import BUDGET_SLACK
from globece.space import BoolArray, FloatArray, IntArray

BATCH_ROWS = 65_536  # most counterfactuals in one call of the model
BATCH_NUMBERS = 2**20  # most numbers in a batch, so that it fits into the processor's cache
CHUNK_WORDS = 4_000_000  # words of bits in one array operation


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Triples of a ground set with their effects on the affected inputs, as bits.

    Attributes
    ----------
    ground
        The ground set.
    triples
        The triples that were evaluated.
    n
        Number of affected inputs.
    outer, inner
        Which inputs match each itemset.
    flips
        For each distinct change the inputs to which it gives the favourable outcome within the budget.
    item_costs
        Cost of each item for each input, before the norm.
    l2
        Whether the features' costs combine as a Euclidean length.
    budget
        The most that recourse may cost.
    complete
        ``False`` if time was up before every change was predicted; the others flip nobody.
    """

    ground: GroundSet
    triples: Triples
    n: int
    outer: Words
    inner: Words
    flips: Words
    item_costs: ItemCosts
    l2: bool
    budget: float
    complete: bool = True

    def __len__(self) -> int:
        """Number of triples evaluated."""
        return len(self.triples.outer)

    @cached_property
    def inner_of(self) -> IntArray:
        """The Inner-If of each triple."""
        return self.ground.pair_inner[self.triples.pair]

    @cached_property
    def change_of(self) -> IntArray:
        """The change that each triple makes."""
        return self.ground.pair_change[self.triples.pair]

    def matches(self, which: IntArray) -> Words:
        """Inputs that match both Ifs of these triples."""
        return np.asarray(self.outer[self.triples.outer[which]] & self.inner[self.inner_of[which]])

    def covers(self, which: IntArray) -> Words:
        """Inputs to which these triples give recourse within the budget."""
        return np.asarray(self.matches(which) & self.flips[self.change_of[which]])

    def chunks(self) -> list[IntArray]:
        """All triples, in parts whose bits take little memory."""
        step = max(1, CHUNK_WORDS // max(self.outer.shape[1], 1))
        return [np.arange(i, min(i + step, len(self))) for i in range(0, len(self), step)]

    @cached_property
    def counts(self) -> IntArray:
        """How many inputs each triple covers."""
        found = [np.bitwise_count(self.covers(part)).sum(axis=1, dtype=np.int64) for part in self.chunks()]
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    @cached_property
    def accuracy(self) -> float:
        """acc(V): share of the affected inputs that some triple covers, an upper bound for rule sets."""
        union = np.zeros(self.outer.shape[1], dtype=np.uint64)
        for part in self.chunks():
            union |= np.bitwise_or.reduce(self.covers(part), axis=0)
        return int(np.bitwise_count(union).sum()) / self.n if self.n else 1.0

    @cached_property
    def average_costs(self) -> FloatArray:
        """Average cost of each triple over the inputs that it covers; ``inf`` where it covers nobody."""
        total = np.zeros(len(self))
        _sum_costs(
            self.triples.outer,
            self.inner_of,
            self.change_of,
            self.outer,
            self.inner,
            self.flips,
            self.ground.changes.items,
            self.item_costs,
            self.l2,
            total,
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.counts > 0, total / self.counts, np.inf)

    def costs_of_change(self, change: int) -> FloatArray:
        """Cost of a change for each input, whether it flips or not."""
        total = np.zeros(self.n)
        for item in self.ground.changes.members(change):
            part = self.item_costs.of_item(item)
            total += part * part if self.l2 else part
        return np.sqrt(total) if self.l2 else total

    def costs(self, triple: int) -> FloatArray:
        """Cost of a triple for each input; ``inf`` where it does not apply or gives no recourse."""
        covered = unpack(self.covers(np.array([triple]))[0], self.n)
        return np.where(covered, self.costs_of_change(int(self.change_of[triple])), np.inf)

    def keep(self, which: IntArray) -> Evaluated:
        """The same with fewer triples."""
        return replace(self, triples=Triples(self.triples.outer[which], self.triples.pair[which]))


def evaluate(
    ground: GroundSet,
    triples: Triples,
    model: Model,
    values: FloatArray,
    cost: CostModel,
    budget: float,
    monitor: Monitor,
    *,
    batch_rows: int = BATCH_ROWS,
) -> Evaluated:
    """Predict every distinct change of these triples once, for the affected inputs that need it.

    Parameters
    ----------
    ground, triples
        The ground set, and those of its triples to evaluate.
    model, values
        The model, and the affected inputs, with one value per feature.
    cost, budget
        What a change costs, and the most that recourse may cost.
    monitor
        Receives progress; when it says stop, changes not predicted yet flip nobody.
    batch_rows
        Most counterfactuals in one call of the model; it does not change results.
    """
    items, n = ground.items, len(values)
    batch_rows = min(batch_rows, max(256, BATCH_NUMBERS // items.space.width))
    codes = items.codes(values)
    of_items = item_bits(codes, len(items))
    outer, inner = ground.outer.bits(of_items), ground.inner.bits(of_items)
    used = np.unique(ground.changes.items[np.unique(ground.pair_change[triples.pair])])
    used = used[used != NO_ITEM]
    may = np.full((len(items), outer.shape[1]), np.iinfo(np.uint64).max, dtype=np.uint64)
    for item in used:
        may[item] = pack(items.allowed(item, values, codes))
    evaluated = Evaluated(
        ground,
        triples,
        n,
        outer,
        inner,
        np.zeros((len(ground.changes), outer.shape[1]), dtype=np.uint64),
        ItemCosts.of(items, used, cost, values, codes),
        cost.norm == "l2",
        budget,
    )
    complete = _predict(evaluated, model, values, may, monitor, batch_rows)
    return evaluated if complete else replace(evaluated, complete=False)


def _predict(
    evaluated: Evaluated, model: Model, values: FloatArray, may: Words, monitor: Monitor, batch_rows: int
) -> bool:
    """Fill in the flips; ``False`` if time was up before the end."""
    ground, changes = evaluated.ground, evaluated.ground.changes
    order = np.argsort(evaluated.change_of, kind="stable")
    bounds = np.flatnonzero(np.diff(evaluated.change_of[order])) + 1
    waiting: list[tuple[int, IntArray]] = []
    rows_waiting = 0
    asked = [part for part in np.split(order, bounds) if part.size]
    step = max(1, CHUNK_WORDS // max(evaluated.outer.shape[1], 1))
    after = np.empty((batch_rows, values.shape[1]))  # one batch of counterfactuals, overwritten by the next

    def ask() -> None:
        nonlocal rows_waiting
        if not waiting:
            return
        start = 0
        for c, rows in waiting:
            part = after[start : start + len(rows)]
            np.take(values, rows, axis=0, out=part, mode="clip")  # clip: other modes allocate a buffer
            ground.items.apply_to(part, changes.members(c))
            start += len(rows)
        answers = model.favourable(ground.items.space.expand(after[:start]))
        start = 0
        for c, rows in waiting:
            flags = np.zeros(evaluated.n, dtype=bool)
            flags[rows] = answers[start : start + len(rows)]
            evaluated.flips[c] |= pack(flags)
            start += len(rows)
        waiting.clear()
        rows_waiting = 0

    try:
        for done, part in enumerate(asked):
            if monitor.should_stop():
                break
            c = int(evaluated.change_of[part[0]])
            need = np.zeros(evaluated.outer.shape[1], dtype=np.uint64)
            for i in range(0, len(part), step):
                need |= np.bitwise_or.reduce(evaluated.matches(part[i : i + step]), axis=0)
            for item in changes.members(c):
                need &= may[item]
            within = evaluated.costs_of_change(c) <= evaluated.budget * (1 + BUDGET_SLACK)
            rows = np.flatnonzero(unpack(need, evaluated.n) & within)
            for piece in pieces(rows, batch_rows):
                if rows_waiting + len(piece) > batch_rows:
                    ask()
                waiting.append((c, piece))
                rows_waiting += len(piece)
            if done % 64 == 0:
                monitor("changes predicted", done, len(asked))
        else:
            ask()
            monitor("changes predicted", len(asked), len(asked))
            return True
    except KeyboardInterrupt:
        monitor.stopped = "interrupted"
    return False


def pieces(order: IntArray, most: int) -> list[IntArray]:
    """Consecutive parts of at most this size."""
    return [order[i : i + most] for i in range(0, len(order), most)]


@numba.njit(cache=True, nogil=True)
def _sum_costs(
    outer_of: IntArray,
    inner_of: IntArray,
    change_of: IntArray,
    outer: Words,
    inner: Words,
    flips: Words,
    items: IntArray,
    item_costs: ItemCosts,
    l2: bool,
    out: FloatArray,
) -> None:
    place, table, weight, feature, codes = item_costs  # not a function of these: it would not be inlined
    for t in range(len(outer_of)):
        a, b, c = outer_of[t], inner_of[t], change_of[t]
        for w in range(outer.shape[1]):
            word = outer[a, w] & inner[b, w] & flips[c, w]
            while word:
                rest = word & (word - np.uint64(1))
                i = w * 64 + BIT[((word ^ rest) * DE_BRUIJN) >> np.uint64(58)]
                word = rest
                cost = 0.0
                for j in range(items.shape[1]):
                    item = items[c, j]
                    if item < 0:
                        break
                    row = place[item]
                    other = codes[i, feature[item]] != item
                    part = table[row, i] if row >= 0 else weight[item] * other
                    cost += part * part if l2 else part
                out[t] += np.sqrt(cost) if l2 else cost


def covered(evaluated: Evaluated, which: IntArray) -> BoolArray:
    """Inputs that at least one of these triples covers."""
    if not len(which):
        return np.zeros(evaluated.n, dtype=bool)
    return unpack(np.bitwise_or.reduce(evaluated.covers(which), axis=0), evaluated.n)
