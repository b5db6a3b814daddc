"""Frequent itemsets: conjunctions of items that enough rows have, found by apriori (Agrawal and Srikant 1994).

Rows are packed bits, one row of words per item, so that the support of a conjunction is an AND and a count. Itemsets
are ordered by length and then by their items, so that nothing depends on hashing order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from globece.errors import InvalidParameterError
from globece.space import BoolArray, IntArray

Words = NDArray[np.uint64]  # (..., words): one bit per row, 64 rows per word
WORD = 64
NO_ITEM = -1  # pads short itemsets
AT_ONCE = 64  # items whose flags are packed at a time

# Position of a word's single set bit by multiplication with a de Bruijn sequence.
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
BIT = np.zeros(64, dtype=np.int64)
with np.errstate(over="ignore"):
    BIT[[int((DE_BRUIJN * np.uint64(1 << i)) >> np.uint64(58)) for i in range(64)]] = np.arange(64)


def pack(flags: BoolArray) -> Words:
    """Booleans as bits, along the last axis, 64 per word; the rest of the last word is 0.

    >>> import numpy as np
    >>> pack(np.array([True, False, True]))
    array([5], dtype=uint64)
    """
    bits = np.packbits(flags, axis=-1, bitorder="little")
    short = -bits.shape[-1] % 8
    if short:
        bits = np.concatenate([bits, np.zeros((*bits.shape[:-1], short), dtype=np.uint8)], axis=-1)
    return np.ascontiguousarray(bits).view(np.dtype("<u8")).astype(np.uint64)


def unpack(words: Words, n: int) -> BoolArray:
    """Bits as booleans again: the first ``n`` along the last axis.

    >>> import numpy as np
    >>> unpack(np.array([5], dtype=np.uint64), 3)
    array([ True, False,  True])
    """
    raw = np.ascontiguousarray(words.astype(np.dtype("<u8"))).view(np.uint8)
    return np.unpackbits(raw, axis=-1, count=n, bitorder="little").astype(bool)


def item_bits(codes: IntArray, n_items: int) -> Words:
    """Which rows have each item, as bits: ``(items, words)``."""
    n = len(codes)
    out = np.zeros((n_items, -(-n // WORD)), dtype=np.uint64)
    for column in codes.T:  # each item belongs to one feature, hence to one column
        known = column[column >= 0]
        if known.size:
            low, high = int(known.min()), int(known.max()) + 1
            for first in range(low, high, AT_ONCE):  # one flag per row and item takes eight times as much as a bit
                some = np.arange(first, min(first + AT_ONCE, high))
                out[some] = pack(column[None, :] == some[:, None])
    return out


@dataclass(frozen=True, eq=False)
class Itemsets:
    """Itemsets, one per row of ``items``, padded with -1; items are in the features' order."""

    items: IntArray  # (n, longest)

    def __len__(self) -> int:
        """Number of itemsets."""
        return len(self.items)

    @property
    def lengths(self) -> IntArray:
        """Number of items in each."""
        return np.asarray((self.items != NO_ITEM).sum(axis=1), dtype=np.int64)

    def members(self, i: int) -> tuple[int, ...]:
        """Items of one itemset."""
        return tuple(int(item) for item in self.items[i] if item != NO_ITEM)

    def features(self, feature_of: IntArray) -> IntArray:
        """Features of each itemset, padded with -1."""
        return np.where(self.items == NO_ITEM, NO_ITEM, feature_of[self.items])

    def bits(self, of_items: Words) -> Words:
        """Which rows have all items of each itemset; all rows have the empty itemset."""
        all_rows = np.full(of_items.shape[1], np.iinfo(np.uint64).max, dtype=np.uint64)
        padded = np.vstack([of_items, all_rows])
        out = np.broadcast_to(all_rows, (len(self), len(all_rows))).copy()
        for column in self.items.T:
            out &= padded[column]  # -1 is the last row: all rows
        return out


def itemsets(listed: Sequence[Sequence[int]]) -> Itemsets:
    """Itemsets from lists of items."""
    longest = max((len(items) for items in listed), default=0)
    table = np.full((len(listed), longest), NO_ITEM, dtype=np.int64)
    for i, items in enumerate(listed):
        table[i, : len(items)] = sorted(items)
    return Itemsets(table)


def frequent(
    of_items: Words, feature_of: IntArray, n_rows: int, *, support: float, max_length: int, limit: int
) -> Itemsets:
    """Itemsets that a share ``support`` of the rows have, at most ``max_length`` long.

    Parameters
    ----------
    of_items
        Which rows have each item.
    feature_of
        The feature of each item; an itemset has at most one item per feature.
    n_rows
        Number of rows.
    support
        Least share of the rows, the paper's p.
    max_length
        Most items in an itemset.
    limit
        Most itemsets before an error is raised.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.array([[0, 2], [0, 2], [1, 2], [0, 3]])
    >>> found = frequent(item_bits(codes, 4), np.array([0, 0, 1, 1]), 4, support=0.5, max_length=2, limit=100)
    >>> [found.members(i) for i in range(len(found))]
    [(0,), (2,), (0, 2)]
    """
    count = np.bitwise_count(of_items).sum(axis=1, dtype=np.int64)
    # count / n, as in mlxtend and the paper: count >= support * n would round differently
    single = np.flatnonzero((count > 0) & (count / max(n_rows, 1) >= support))
    levels = [single[:, None]]
    bits, found = of_items[single], len(single)
    while levels[-1].shape[1] < max_length and len(levels[-1]):
        level = levels[-1]
        prefix_end = _class_ends(level)
        longer: list[IntArray] = []
        kept: list[Words] = []
        for i in range(len(level) - 1):
            others = np.arange(i + 1, prefix_end[i])
            others = others[feature_of[level[others, -1]] != feature_of[level[i, -1]]]
            if not others.size:
                continue
            joint = bits[others] & bits[i]
            enough = np.bitwise_count(joint).sum(axis=1, dtype=np.int64) / n_rows >= support
            enough &= joint.any(axis=1)
            if enough.any():
                tails = level[others[enough], -1]
                longer.append(np.column_stack([np.repeat(level[i][None], len(tails), axis=0), tails]))
                kept.append(joint[enough])
                found += len(tails)
                if found > limit:
                    raise InvalidParameterError(
                        f"support of {support:g} gives more than {limit:,} itemsets, too many for a ground set; "
                        "raise support, use fewer bins, or raise max_itemsets"
                    )
        if not longer:
            break
        levels.append(np.vstack(longer))
        bits = np.vstack(kept)
    longest = levels[-1].shape[1]
    table = np.full((sum(map(len, levels)), longest), NO_ITEM, dtype=np.int64)
    start = 0
    for level in levels:
        table[start : start + len(level), : level.shape[1]] = level
        start += len(level)
    return Itemsets(table)


def _class_ends(level: IntArray) -> IntArray:
    """For each itemset, the end of the run of itemsets that share all its items but the last."""
    if level.shape[1] == 1:
        return np.full(len(level), len(level))
    new = np.flatnonzero((np.diff(level[:, :-1], axis=0) != 0).any(axis=1)) + 1
    ends = np.append(new, len(level))
    return np.asarray(ends[np.searchsorted(new, np.arange(len(level)), side="right")])


def combinations_seen(codes: IntArray, columns: Sequence[int], least: float) -> IntArray:
    """Combinations of items that at least ``least`` rows have in these columns of ``codes``, in order.

    Parameters
    ----------
    codes
        The item of each row and feature.
    columns
        The features.
    least
        Smallest number of rows.
    """
    part = codes[:, list(columns)]
    part = part[(part >= 0).all(axis=1)]
    if not len(part):
        return np.empty((0, len(columns)), dtype=np.int64)
    low = part.min(axis=0)
    span = part.max(axis=0) - low + 1
    if float(np.prod(span.astype(float))) < 2**62:  # a single integer per combination sorts much faster
        radix = np.concatenate([np.cumprod(span[::-1])[::-1][1:], [1]])
        keys, count = np.unique((part - low) @ radix, return_counts=True)
        keys = keys[count >= least]
        return np.asarray((keys[:, None] // radix) % span + low, dtype=np.int64)
    rows, count = np.unique(part, axis=0, return_counts=True)
    return np.asarray(rows[count >= least], dtype=np.int64)
