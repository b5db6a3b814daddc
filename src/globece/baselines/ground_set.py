"""The ground set V: all valid triples Outer-If / Inner-If / Then, without listing them.

A triple is valid if its Outer-If and Inner-If name different features and together are not wider than allowed, and if
its Then changes something that may be changed. Which Outer-Ifs are compatible with an Inner-If depends only on the
Inner-If's features, so V is a union of products (Outer-Ifs x pairs of Inner-If and Then) and is stored as such: its
size is known at once, and any triple can be retrieved by number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from globece.baselines.items import Items
from globece.baselines.itemsets import NO_ITEM, Itemsets
from globece.errors import InvalidParameterError
from globece.space import BoolArray, IntArray


class Triples(NamedTuple):
    """Triples by number: the Outer-If, and the pair of Inner-If and Then."""

    outer: IntArray
    pair: IntArray


@dataclass(frozen=True, eq=False)
class GroundSet:
    """All valid triples over some itemsets; see :func:`generate`.

    Attributes
    ----------
    items
        The items of the itemsets.
    outer, inner, thens
        Subgroup descriptors SD, and the itemsets of Inner-Ifs and Thens.
    changes
        The distinct changes: the items of a Then that its Inner-If does not have.
    pair_inner, pair_then, pair_change
        Each valid pair of Inner-If and Then, and the change it makes.
    group_features
        The distinct sets of features of Inner-Ifs, ``(groups, features)``.
    group_pairs
        Where each group's pairs begin, and their total number at the end.
    group_outers
        Number of Outer-Ifs compatible with each group.
    max_width
        Most items of an Outer-If and Inner-If together.
    """

    items: Items
    outer: Itemsets
    inner: Itemsets
    thens: Itemsets
    changes: Itemsets
    pair_inner: IntArray
    pair_then: IntArray
    pair_change: IntArray
    group_features: BoolArray
    group_pairs: IntArray
    group_outers: IntArray
    max_width: int

    @property
    def ends(self) -> IntArray:
        """Number of triples up to the end of each group."""
        return np.cumsum(np.diff(self.group_pairs) * self.group_outers)

    def __len__(self) -> int:
        """Number of triples."""
        return int(self.ends[-1]) if len(self.group_outers) else 0

    def outers_of(self, group: int) -> IntArray:
        """Outer-Ifs compatible with a group."""
        return np.flatnonzero(_compatible(self._outer_features, self.group_features[group], self.max_width))

    @cached_property
    def _outer_features(self) -> BoolArray:
        return _features(self.items, self.outer)

    def triples(self, numbers: IntArray) -> Triples:
        """Triples by number, in the order of the numbers."""
        ends = self.ends
        group = np.searchsorted(ends, numbers, side="right")
        within = numbers - np.concatenate([[0], ends])[group]
        pair = self.group_pairs[group] + within // self.group_outers[group]
        outer = np.empty(len(numbers), dtype=np.int64)
        order = np.argsort(group, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
            if part.size:
                g = int(group[part[0]])
                outer[part] = self.outers_of(g)[within[part] % self.group_outers[g]]
        return Triples(outer, pair)


def reduce_rules(items: Items, inner: Itemsets) -> Itemsets:
    """RL-reduction: leave out itemsets whose combination of features occurs only once, as they have no Then.

    The ground set stays the same, since a Then has the features of its Inner-If with other values.
    """
    features = inner.features(items.feature_of)
    _, which, count = np.unique(features, axis=0, return_inverse=True, return_counts=True)
    return Itemsets(inner.items[count[which.ravel()] > 1])


def generate(
    items: Items,
    outer: Itemsets,
    inner: Itemsets,
    thens_for: Callable[[tuple[int, ...]], IntArray],
    *,
    max_width: int,
    match: bool = True,
    max_pairs: int = 5_000_000,
) -> GroundSet:
    """Build the ground set.

    Parameters
    ----------
    items
        The items of the itemsets.
    outer, inner
        Subgroup descriptors, and recourse rules for the Inner-If.
    thens_for
        Returns the Thens for an Inner-If over these features: itemsets as rows, padded with -1.
    max_width
        Most items of an Outer-If and Inner-If together, epsilon 2.
    match
        Whether a Then has the features of its Inner-If; ``thens_for`` must respect it.
    max_pairs
        Most pairs of Inner-If and Then.
    """
    steps, able = items.steps(), np.array([items.reachable(i) for i in range(len(items))])
    outer_features = _features(items, outer)
    features = inner.features(items.feature_of)
    distinct, which = np.unique(features, axis=0, return_inverse=True)
    which = which.ravel()
    tables: list[IntArray] = []  # the Thens of each group
    parts: list[tuple[IntArray, IntArray, IntArray]] = []  # inner, then, change
    group_features, group_outers, starts = [], [], [0]
    n_thens = 0
    for g, row in enumerate(distinct):
        named = tuple(int(f) for f in row if f != NO_ITEM)
        flags = np.zeros(len(items.space.features), dtype=bool)
        flags[list(named)] = True
        outers = int(_compatible(outer_features, flags, max_width).sum())
        if not outers:
            continue
        thens = thens_for(named)
        mine = np.flatnonzero(which == g)
        if not len(thens):
            continue
        found = _pairs(items, inner.items[mine], thens, steps, able, match)
        if not len(found[0]):
            continue
        parts.append((mine[found[0]], found[1] + n_thens, found[2]))
        tables.append(thens)
        n_thens += len(thens)
        group_features.append(flags)
        group_outers.append(outers)
        starts.append(starts[-1] + len(found[0]))
        if starts[-1] > max_pairs:
            raise InvalidParameterError(
                f"the ground set has more than {max_pairs:,} pairs of Inner-If and Then, which is too large; "
                "raise support or then_support, or use fewer bins"
            )
    width = max((p[2].shape[1] for p in parts), default=0)
    changes = np.vstack([_widen(p[2], width) for p in parts]) if parts else np.empty((0, 0), dtype=np.int64)
    distinct_changes, change_of = (
        np.unique(changes, axis=0, return_inverse=True) if len(changes) else (changes, np.empty(0, dtype=np.int64))
    )
    longest = max((t.shape[1] for t in tables), default=0)
    return GroundSet(
        items=items,
        outer=outer,
        inner=inner,
        thens=Itemsets(np.vstack([_widen(t, longest) for t in tables]) if tables else np.empty((0, 0), dtype=np.int64)),
        changes=Itemsets(distinct_changes),
        pair_inner=_joined([p[0] for p in parts]),
        pair_then=_joined([p[1] for p in parts]),
        pair_change=change_of.ravel().astype(np.int64),
        group_features=np.array(group_features, dtype=bool).reshape(len(parts), len(items.space.features)),
        group_pairs=np.array(starts, dtype=np.int64),
        group_outers=np.array(group_outers, dtype=np.int64),
        max_width=max_width,
    )


def _pairs(
    items: Items, inner: IntArray, thens: IntArray, steps: BoolArray, able: BoolArray, match: bool
) -> tuple[IntArray, IntArray, IntArray]:
    """Valid pairs, as indices into both tables, and the change that each makes."""
    if match:  # the same features in the same order: compare column by column
        width = int((inner[0] != NO_ITEM).sum())
        before, after = inner[:, None, :width], thens[None, :, :width]
        valid = steps[before, after].all(axis=2) & (before != after).any(axis=2)
        a, b = np.nonzero(valid)
        change = np.where(inner[a, :width] == thens[b, :width], NO_ITEM, thens[b, :width])
        return a, b, _compact(change)
    known = thens != NO_ITEM
    found_a, found_b, found_change = [], [], []
    for index, row in enumerate(inner):
        by_feature = np.full(len(items.space.features), NO_ITEM)
        by_feature[items.feature_of[row[row != NO_ITEM]]] = row[row != NO_ITEM]
        before = np.where(known, by_feature[items.feature_of[thens]], NO_ITEM)
        change = np.where(before == thens, NO_ITEM, thens)
        moves = change != NO_ITEM
        able_to = np.where(before != NO_ITEM, steps[before, thens], able[thens])
        fine = np.flatnonzero(moves.any(axis=1) & (able_to | ~moves).all(axis=1))
        found_a.append(np.full(len(fine), index))
        found_b.append(fine)
        found_change.append(_compact(change[fine]))
    return _joined(found_a), _joined(found_b), np.vstack(found_change)


def _features(items: Items, outer: Itemsets) -> BoolArray:
    """Which features each itemset names: ``(itemsets, features)``."""
    out = np.zeros((len(outer), len(items.space.features)), dtype=bool)
    for column in outer.items.T:
        known = np.flatnonzero(column != NO_ITEM)
        out[known, items.feature_of[column[known]]] = True
    return out


def _compatible(outer_features: BoolArray, features: BoolArray, max_width: int) -> BoolArray:
    """Outer-Ifs that name none of these features and leave room for them."""
    room = outer_features.sum(axis=1) + int(features.sum()) <= max_width
    return np.asarray(room & ~outer_features[:, features].any(axis=1))


def _compact(change: IntArray) -> IntArray:
    """Itemsets with their padding moved to the end; the items stay in order."""
    order = np.argsort(change == NO_ITEM, axis=1, kind="stable")
    return np.take_along_axis(change, order, axis=1)


def _widen(table: IntArray, width: int) -> IntArray:
    return np.pad(table, ((0, 0), (0, width - table.shape[1])), constant_values=NO_ITEM)


def _joined(parts: list[IntArray]) -> IntArray:
    return np.concatenate(parts).astype(np.int64) if parts else np.empty(0, dtype=np.int64)
