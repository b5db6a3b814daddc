"""From a library's trees to trees over the encoded matrix.

A library's split compares a rounded number, of a feature that earlier steps have scaled, binned or looked up. Here
every split becomes a question about the encoded matrix, "is ``z`` above this double?", with the same answer for every
double: the threshold is found by bisection over the doubles with the original arithmetic. Splits without such a form,
by sets of categories or by several pieces of a number, become odd predicates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from globece.errors import ModelError
from globece.models.doubles import last_alike
from globece.models.inputs import Input, Lookup, Number, Steps
from globece.models.trees.layout import ByteArray, Int32Array, Trees
from globece.space import BoolArray, Feature, FeatureSpace, FloatArray, IntArray

LARGEST_DOUBLE = float(np.finfo(np.float64).max)
LARGE = 1e38  # floats below this have a next one
WHOLE_DOMAIN = (-LARGEST_DOUBLE, LARGEST_DOUBLE)


@dataclass(frozen=True, slots=True)
class Conversion:
    """How a library converts a number before it compares it.

    Attributes
    ----------
    single
        Whether it is rounded to float32.
    zero
        Numbers up to this absolute value are taken as 0.
    absent
        Lowest and highest number that count as missing, in the splits marked so.
    """

    single: bool = False
    zero: float = -1.0
    absent: tuple[float, float] = (np.inf, -np.inf)

    def __call__(self, values: FloatArray) -> FloatArray:
        """The converted numbers."""
        seen = values.astype(np.float32).astype(np.float64) if self.single else values
        return np.where(np.abs(seen) <= self.zero, 0.0, seen)

    def codes(self, seen: FloatArray) -> IntArray:
        """Category codes of numbers; -1 for none."""
        # C truncates towards zero, and only LightGBM accepts -0.5 as category 0.
        known = (seen > -1.0 if self.zero >= 0 else seen >= 0.0) & (seen < 2.0**31)
        return np.where(known, np.trunc(np.where(known, seen, 0.0)), -1).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Category:
    """A split by category: whether listed, other and missing categories go left."""

    codes: IntArray  # ascending
    left: BoolArray
    other_left: bool
    missing_left: bool

    def goes_left(self, codes: IntArray) -> BoolArray:
        """Whether each of these codes goes left."""
        if not self.codes.size:
            return np.full(codes.shape, self.other_left)
        index = np.searchsorted(self.codes, codes).clip(0, self.codes.size - 1)
        return np.where(self.codes[index] == codes, self.left[index], self.other_left)


@dataclass(frozen=True, slots=True)
class TreeTable:
    """Trees as a library stores them; one entry per node, children by their index in the table.

    Attributes
    ----------
    feature
        The estimator's feature that a node tests; -1 at a leaf.
    edge
        A converted number goes left if it is not above this.
    missing_left
        Whether a missing value goes left.
    absent
        Whether numbers in ``conversion.absent`` count as missing here.
    category
        Index into ``categories`` of a split by category; -1 for a split by number.
    left, right
        Children; at a leaf ``left`` is its row of outputs.
    roots
        One for each tree.
    outputs
        What each leaf adds: one column, or one per output of the ensemble.
    categories, conversion
        See :class:`Category`, :class:`Conversion`.
    """

    feature: IntArray
    edge: FloatArray
    missing_left: BoolArray
    absent: BoolArray
    category: IntArray
    left: IntArray
    right: IntArray
    roots: IntArray
    outputs: FloatArray
    conversion: Conversion
    categories: tuple[Category, ...] = ()


# -- splits as questions about the encoded matrix ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """A split on one slot: which pieces of it go left.

    Attributes
    ----------
    slot
        Encoded column or, after those, a block; see :class:`globece.models.trees.layout.Trees`.
    cuts
        Ascending; the largest value of each piece but the last.
    left
        Whether each piece goes left.
    missing_left
        Whether a missing value does.
    """

    slot: int
    cuts: FloatArray
    left: BoolArray
    missing_left: bool

    def shortened(self) -> Question:
        """The same without cuts at which nothing changes."""
        keep = self.left[1:] != self.left[:-1]
        return Question(self.slot, self.cuts[keep], self.left[np.r_[True, keep]], self.missing_left)


class _SplitCompiler:
    """Turns the splits on one of the estimator's features into questions about the encoded matrix."""

    def __init__(self, space: FeatureSpace, given: Input, conversion: Conversion) -> None:
        self.space, self.input, self.conversion = space, given, conversion
        self.first = given.start if isinstance(given, Lookup) else given.column
        self.feature = next(f for f in space.features if f.start <= self.first < f.stop)
        self.seen_missing = (
            float(conversion(self._values(np.array([np.nan])))[0]) if not self.feature.is_block else np.nan
        )

    def _values(self, z: FloatArray) -> FloatArray:
        """Value of the input where its column is z."""
        if isinstance(self.input, Lookup):
            raise ModelError(f"feature {self.feature.name!r} is categorical, and the trees split it as a number")
        Z = np.zeros((len(z), self.first + 1))
        Z[:, self.first] = z
        with np.errstate(all="ignore"):
            return np.asarray(self.input.values(Z), dtype=np.float64)

    def _seen(self, z: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return self.conversion(self._values(z))

    @property
    def plain(self) -> bool:
        """Whether each split by number is one comparison of one encoded column."""
        return isinstance(self.input, Number) and (self.feature.is_block or self._domain() == WHOLE_DOMAIN)

    def comparisons(
        self, edges: FloatArray, missing_left: BoolArray
    ) -> tuple[FloatArray, BoolArray, BoolArray, BoolArray]:
        """Splits by number on a plain input: thresholds, and whether values below, above and missing go left."""
        if self.feature.is_block:
            below, above = (value <= edges for value in self._seen(np.array([0.0, 1.0])))
            return np.full(len(edges), 0.5), below, above, below
        bottom, top = (np.full(len(edges), end) for end in WHOLE_DOMAIN)
        below, above = self._seen(bottom) <= edges, self._seen(top) <= edges
        missing = missing_left if np.isnan(self.seen_missing) else self.seen_missing <= edges
        return self._pulled_back(edges, *WHOLE_DOMAIN), below, above, missing

    def by_number(self, edges: FloatArray, missing_left: BoolArray, absent: BoolArray) -> list[Question]:
        """Questions for splits by number."""
        low, high = self.conversion.absent

        def left(i: int, seen: FloatArray) -> BoolArray:
            missing = np.isnan(seen) | (bool(absent[i]) & (seen >= low) & (seen <= high))
            return np.asarray(np.where(missing, missing_left[i], seen <= edges[i]))

        around = (float(np.nextafter(low, -np.inf)), high)
        return self._questions(left, [(edges[i], *(around if absent[i] else ())) for i in range(len(edges))])

    def by_category(self, splits: Sequence[Category]) -> list[Question]:
        """Questions for splits by category."""

        def left(i: int, seen: FloatArray) -> BoolArray:
            return np.where(
                np.isnan(seen), splits[i].missing_left, splits[i].goes_left(self.conversion.codes(np.nan_to_num(seen)))
            )

        zero = -1.0 if self.conversion.zero >= 0 else np.nextafter(0.0, -np.inf)
        edges = []
        for split in splits:
            starts = np.where(split.codes == 0, zero, np.nextafter(split.codes.astype(np.float64), -np.inf))
            edges.append(tuple(np.concatenate((starts, np.nextafter(split.codes + 1.0, -np.inf))).tolist()))
        return self._questions(left, edges)

    def _questions(
        self, left: Callable[[int, FloatArray], BoolArray], edges: Sequence[tuple[float, ...]]
    ) -> list[Question]:
        """Questions for splits, given ``left(i, seen)``: whether split i sends these left; changes just above edges."""
        count = range(len(edges))
        if self.feature.is_block:
            seen = self._seen_by_category()
            slot = self.space.width + self.space.blocks.index(self.feature)
            cuts = np.arange(len(seen) - 1.0)
            return [Question(slot, cuts, left(i, seen), True) for i in count]
        missing = [bool(left(i, np.array([self.seen_missing]))[0]) for i in count]
        if isinstance(self.input, Steps):
            seen = self.conversion(self.input.values_)
            return [Question(self.first, self.input.edges, left(i, seen), missing[i]) for i in count]
        bottom, top = self._domain()
        flat = np.unique(np.array([e for group in edges for e in group]))
        at = dict(zip(flat.tolist(), self._pulled_back(flat, bottom, top), strict=True))
        ends = [float(np.nextafter(bottom, -np.inf))] if bottom > -LARGEST_DOUBLE else []
        ends += [top] if top < LARGEST_DOUBLE else []
        asked = []
        for i in count:
            cuts = np.unique(np.array([*(at[e] for e in edges[i] if at[e] < LARGEST_DOUBLE), *ends]))
            pieces = np.r_[cuts, np.nextafter(cuts[-1], np.inf) if cuts.size else 0.5 * bottom + 0.5 * top]
            asked.append(Question(self.first, cuts, left(i, self._seen(pieces)), missing[i]))
        return asked

    def _seen_by_category(self) -> FloatArray:
        if isinstance(self.input, Lookup):
            if self.first != self.feature.start or len(self.input.table) != self.feature.width:
                raise ModelError(
                    f"the {self.feature.width} categories of {self.feature.name!r} are not looked up as one block"
                )
            return self.conversion(np.asarray(self.input.table, dtype=np.float64))
        seen = self._seen(np.array([0.0, 1.0]))
        return np.asarray(seen[(np.arange(self.feature.width) == self.first - self.feature.start).astype(int)])

    def _domain(self) -> tuple[float, float]:
        """Smallest and largest number for which the input's function is defined."""
        ends = np.array([-LARGEST_DOUBLE, LARGEST_DOUBLE])
        known = ~np.isnan(self._values(ends))
        if known.all():
            return WHOLE_DOMAIN
        inside = np.array([*self.feature.observed, np.mean(self.feature.observed), 0.0, 1.0])
        inside = inside[~np.isnan(self._values(inside))][:1]
        if not inside.size:
            raise ModelError(f"the steps before the model give no number for feature {self.feature.name!r}")
        top = last_alike(lambda z: np.isnan(self._values(z)), inside, ends[1:])
        bottom = last_alike(lambda z: np.isnan(self._values(z)), ends[:1], inside)
        return -LARGEST_DOUBLE if known[0] else float(np.nextafter(bottom[0], np.inf)), float(top[0])

    def _pulled_back(self, edges: FloatArray, bottom: float, top: float) -> FloatArray:
        """For each edge the largest z on the same side of it as ``bottom``."""
        if isinstance(self.input, Number) and self.input.forward is None and self.input.narrow != "float16":
            single = self.input.narrow is not None
            if self.conversion == Conversion() and not single:
                return edges.copy()
            if self.conversion in (Conversion(), Conversion(single=True)) and (np.abs(edges) < LARGE).all():
                return _last_rounding_to(edges)
        return last_alike(lambda z: self._seen(z) <= edges, np.full(len(edges), bottom), np.full(len(edges), top))


def _last_rounding_to(edges: FloatArray) -> FloatArray:
    """The largest doubles that, rounded to single precision, are not above these edges.

    >>> (z,) = _last_rounding_to(np.array([0.1]))
    >>> [float(np.float32(v)) <= 0.1 for v in (z, np.nextafter(z, 1.0))]
    [True, False]
    """
    down, up = np.float32(-np.inf), np.float32(np.inf)
    last = edges.astype(np.float32)
    last = np.where(last > edges, np.nextafter(last, down), last)
    half = 0.5 * (last.astype(np.float64) + np.nextafter(last, up).astype(np.float64))
    return np.where(half.astype(np.float32) <= last, half, np.nextafter(half, -np.inf))


# -- assembling the trees ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _CompiledSplits:
    """The compiled form of each kind of split."""

    slot: Int32Array
    threshold: FloatArray
    swapped: BoolArray  # whether the first child is the right one
    missing: BoolArray  # whether a missing value goes to the second child
    always: Int32Array  # 0 where everything goes left, 1 where everything goes right, -1 elsewhere
    odd: dict[tuple[int, bytes, bytes], int]
    odd_slot: list[int]
    odd_cut: list[FloatArray]
    odd_side: list[BoolArray]

    @classmethod
    def blank(cls, n: int) -> _CompiledSplits:
        """Room for n kinds of split."""
        no, never = np.zeros(n, bool), np.full(n, -1, np.int32)
        return cls(np.zeros(n, np.int32), np.full(n, np.inf), no, no.copy(), never, {}, [], [], [])

    def compare(
        self, kinds: IntArray, slot: int, cut: FloatArray, below: BoolArray, above: BoolArray, missing: BoolArray
    ) -> None:
        """Add splits that compare a slot with a cut; if both sides agree, missing values may still differ."""
        self.slot[kinds] = slot
        self.threshold[kinds] = np.where(below == above, np.inf, cut)
        self.swapped[kinds] = ~below
        self.missing[kinds] = missing != below
        self.always[kinds] = np.where((below == above) & (missing == below), (~below).astype(np.int32), -1)

    def ask(self, kind: int, question: Question, space: FeatureSpace) -> None:
        """Add a split for this question."""
        q = question.shortened()
        if q.slot >= space.width and len(q.left) > 1:
            feature = space.blocks[q.slot - space.width]
            left = q.left[np.searchsorted(q.cuts, np.arange(feature.width))]
            every = Question(q.slot, np.arange(feature.width - 1.0), left, True)
            q = _one_against_the_rest(feature, left) or every
        if len(q.left) <= 2:
            cut = q.cuts if q.cuts.size else np.array([np.inf])
            missing = q.left[0] if q.slot >= space.width else q.missing_left
            self.compare(np.array([kind]), q.slot, cut, q.left[:1], q.left[-1:], np.array([missing]))
            return
        key = (q.slot, q.cuts.tobytes(), q.left.tobytes())
        if key not in self.odd:
            self.odd[key] = len(self.odd)
            self.odd_slot.append(q.slot)
            self.odd_cut.append(np.r_[q.cuts, np.inf])
            self.odd_side.append(~q.left)
        self.slot[kind] = ~self.odd[key]
        self.missing[kind] = not q.missing_left

    def odd_arrays(self) -> tuple[Int32Array, Int32Array, FloatArray, ByteArray]:
        """The odd predicates, as :class:`globece.models.trees.layout.Trees` holds them."""
        start = np.cumsum([0, *(len(c) for c in self.odd_cut)]).astype(np.int32)
        cuts = np.concatenate([np.zeros(0), *self.odd_cut])
        sides = np.concatenate([np.zeros(0, bool), *self.odd_side])
        return np.array(self.odd_slot, np.int32), start, cuts, sides.astype(np.uint8)


def compile_trees(
    table: TreeTable, space: FeatureSpace, inputs: Sequence[Input], output: IntArray, scores: FloatArray
) -> Trees:
    """Compile trees over the encoded matrix.

    Parameters
    ----------
    table
        The trees.
    space, inputs
        The space, and the estimator's features as functions of its encoded matrix.
    output
        For each tree the output it adds to, or -1 if its leaves hold them all.
    scores
        For each leaf the score that it adds to the running sum.
    """
    splits = table.feature >= 0
    used = np.unique(table.feature[splits])
    if used.size and used[-1] >= len(inputs):
        raise ModelError(f"the trees test feature {used[-1]} but the rows have {len(inputs)} features")
    kinds, kind_of = _kinds(table)
    compiled = _CompiledSplits.blank(len(kinds))
    for j in used:
        splitter = _SplitCompiler(space, inputs[j], table.conversion)
        mine = np.flatnonzero(table.feature[kinds] == j)
        by_number = table.category[kinds[mine]] < 0
        plain = by_number & ~table.absent[kinds[mine]] & splitter.plain
        if plain.any():
            nodes = kinds[mine[plain]]
            comparisons = splitter.comparisons(table.edge[nodes], table.missing_left[nodes])
            compiled.compare(mine[plain], splitter.first, *comparisons)
        numbers, categories = mine[by_number & ~plain], mine[~by_number]
        nodes = kinds[numbers]
        questions = splitter.by_number(table.edge[nodes], table.missing_left[nodes], table.absent[nodes])
        questions += splitter.by_category([table.categories[table.category[n]] for n in kinds[categories]])
        for i, question in zip([*numbers, *categories], questions, strict=True):
            compiled.ask(i, question, space)
    odd = compiled.odd_arrays()
    threshold, slot, child, missing, parent, end, path, roots = _lay_out(
        (kind_of, table.left, table.right, table.roots, scores),
        (compiled.slot, compiled.threshold, compiled.swapped, compiled.missing, compiled.always, odd[0]),
    )
    outputs = np.ascontiguousarray(table.outputs)
    return Trees(threshold, slot, child, missing, parent, end, path, roots, output.astype(np.int32), outputs, *odd)


def _kinds(table: TreeTable) -> tuple[IntArray, IntArray]:
    """A node for each distinct split; and for each node the index of its split, -1 at a leaf."""
    nodes = np.flatnonzero(table.feature >= 0)
    flags = 2 * table.missing_left[nodes] + table.absent[nodes]
    keys = (table.feature[nodes], table.edge[nodes], flags, table.category[nodes])
    order = np.lexsort(keys)
    new = np.ones(len(order), dtype=bool)
    if len(order):
        new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    kind_of = np.full(len(table.feature), -1, dtype=np.int64)
    kind_of[nodes[order]] = np.cumsum(new) - 1
    return nodes[order][new], kind_of


def _one_against_the_rest(feature: Feature, left: BoolArray) -> Question | None:
    """A question about the one-hot column of the one category that goes to another side than the rest, if any."""
    for side in (True, False):
        if (left == side).sum() == 1:
            column = feature.start + int(np.flatnonzero(left == side)[0])
            return Question(column, np.array([0.5]), np.array([not side, side]), True)
    return None


@njit(cache=True, error_model="numpy")
def _lay_out(nodes: tuple[Any, ...], splits: tuple[Any, ...]) -> tuple[Any, ...]:
    """Order the nodes: the two children of a node adjacent, its descendants contiguous."""
    kind_of, left, right, roots, scores = nodes
    slot_of, threshold_of, swapped, missing_of, always, odd_slot = splits
    most = len(kind_of)
    threshold, slot = np.zeros(most), np.zeros(most, np.int32)
    child, parent = np.full(most, -1, np.int32), np.full(most, -1, np.int32)
    missing, end, path = np.zeros(most, np.uint8), np.zeros(most, np.int32), np.zeros(most, np.uint64)
    placed = np.empty(len(roots), np.int32)
    waiting_node, waiting_index = np.empty(most, np.int64), np.empty(most, np.int64)
    n = 0
    for tree in range(len(roots)):
        placed[tree] = n
        waiting_node[0], waiting_index[0] = roots[tree], n
        waiting, n = 1, n + 1
        while waiting > 0:
            waiting -= 1
            node, index = waiting_node[waiting], waiting_index[waiting]
            while kind_of[node] >= 0 and always[kind_of[node]] >= 0:
                node = right[node] if always[kind_of[node]] == 1 else left[node]
            kind = kind_of[node]
            if kind < 0:
                slot[index] = left[node]
                threshold[index] = scores[left[node]]
                continue
            slot[index] = slot_of[kind]
            threshold[index] = threshold_of[kind]
            missing[index] = 1 if missing_of[kind] else 0
            child[index] = n
            tested = slot_of[kind] if slot_of[kind] >= 0 else odd_slot[~slot_of[kind]]
            for side in range(2):
                parent[n + side] = index
                path[n + side] = path[index] | (np.uint64(1) << np.uint64(tested & 63))
            first, second = (right[node], left[node]) if swapped[kind] else (left[node], right[node])
            waiting_node[waiting], waiting_index[waiting] = second, n + 1
            waiting_node[waiting + 1], waiting_index[waiting + 1] = first, n
            waiting += 2
            n += 2
    for index in range(n - 1, -1, -1):
        end[index] = index + 1
        if child[index] >= 0:
            end[index] = max(end[child[index]], end[child[index] + 1])
    return (
        threshold[:n].copy(),
        slot[:n].copy(),
        child[:n].copy(),
        missing[:n].copy(),
        parent[:n].copy(),
        end[:n].copy(),
        path[:n].copy(),
        placed,
    )
