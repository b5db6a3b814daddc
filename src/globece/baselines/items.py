"""Items: the values that an If or a Then can name: categories, and bins of continuous features.

To AReS a row consists of its items. A Then leaves a row that has the item unchanged, and moves any other to the middle
of the bin (as in the paper) or to the nearest value in it. Rows are taken with one value per feature (a number, the
position of an ordinal value or the code of a category; see :meth:`globece.space.FeatureSpace.pack`), since a feature of
900 categories takes 900 columns of the encoded matrix.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from globece.costs import CostModel
from globece.errors import check_choice, check_count
from globece.space import BoolArray, Feature, FeatureSpace, FloatArray, IntArray

Binning = Literal["equal", "quantile"]
Target = Literal["middle", "nearest"]
MISSING = -1  # the item of a missing number: no condition names it


@dataclass(frozen=True, slots=True)
class Item:
    """One value of one feature, as a condition names it.

    Attributes
    ----------
    feature
        Index of the feature in the space.
    category
        Index of the category or of the ordinal value; -1 for a bin.
    low, high
        A bin holds the numbers above ``low`` up to ``high``; the outer bins are unbounded.
    first, last
        Smallest and largest value in the bin that may be moved to.
    middle
        Its middle, or the nearest whole number; NaN if the bin may not be moved to.
    """

    feature: int
    category: int = -1
    low: float = -np.inf
    high: float = np.inf
    first: float = np.nan
    last: float = np.nan
    middle: float = np.nan


@dataclass(frozen=True)
class Items:
    """All items of a space, feature by feature.

    Attributes
    ----------
    space
        The space whose values they are.
    listed
        The items in the features' order.
    target
        The value in a bin that a Then sets: its ``"middle"``, or the ``"nearest"`` value in it.
    """

    space: FeatureSpace
    listed: tuple[Item, ...]
    target: Target = "middle"

    @classmethod
    def of(
        cls,
        space: FeatureSpace,
        values: FloatArray,
        *,
        bins: int = 10,
        binning: Binning = "equal",
        target: Target = "middle",
    ) -> Items:
        """Discretise a space: categories stay as they are, numbers are binned.

        Parameters
        ----------
        space
            The space.
        values
            Rows whose range, or whose quantiles, the bins divide: ``(rows, features)``.
        bins
            Number of bins of a continuous feature; fewer if some would coincide.
        binning
            ``"equal"`` for bins of equal width, ``"quantile"`` for bins with about as many rows each.
        target
            The value in a bin that a Then sets.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.array([[0.0], [4.0], [10.0]])
        >>> items = Items.of(FeatureSpace.from_matrix(X, columns=["debt"]), X, bins=2)
        >>> [items.text(i) for i in range(2)]
        ['debt <= 5', 'debt > 5']
        >>> items.codes(X).ravel()
        array([0, 0, 1])
        """
        check_count("bins", bins)
        check_choice("binning", binning, ("equal", "quantile"))
        check_choice("target", target, ("middle", "nearest"))
        listed: list[Item] = []
        for index, f in enumerate(space.features):
            if f.kind == "continuous":
                listed += _bins(index, f, values[:, index], bins, binning)
            else:
                listed += [Item(index, c) for c in range(len(f.categories))]
        return cls(space, tuple(listed), target)

    def __len__(self) -> int:
        """Number of items."""
        return len(self.listed)

    @cached_property
    def feature_of(self) -> IntArray:
        """Index of each item's feature."""
        return np.array([item.feature for item in self.listed], dtype=np.int64)

    @cached_property
    def starts(self) -> IntArray:
        """Each feature's first item, and the number of items at the end."""
        return np.searchsorted(self.feature_of, np.arange(len(self.space.features) + 1))

    def codes(self, values: FloatArray) -> IntArray:
        """The item of each row and feature, -1 where a number is missing: ``(rows, features)``."""
        out = np.empty(values.shape, dtype=np.int64)
        for index, f in enumerate(self.space.features):
            start, stop = self.starts[index : index + 2]
            x = values[:, index]
            if f.kind == "continuous":
                inner = np.array([item.high for item in self.listed[start : stop - 1]])
                place = np.searchsorted(inner, x, side="left")
            else:
                place = np.nan_to_num(x).astype(np.int64)
            out[:, index] = np.where(np.isnan(x), MISSING, start + place)
        return out

    # -- the effect of a Then ------------------------------------------------------------------------------------

    def moved(self, item: int, x: FloatArray) -> FloatArray:
        """Values of the item's feature after it was made true; missing stays missing."""
        it = self.listed[item]
        if it.category >= 0:
            return np.where(np.isnan(x), x, float(it.category))
        inside = ((x > it.low) & (x <= it.high)) | np.isnan(x)
        end = np.clip(x, it.first, it.last) if self.target == "nearest" else np.full(len(x), it.middle)
        return np.where(inside, x, end)

    def apply(self, values: FloatArray, change: Iterable[int]) -> FloatArray:
        """Rows with these items made true."""
        out = values.copy()
        self.apply_to(out, change)
        return out

    def apply_to(self, values: FloatArray, change: Iterable[int]) -> None:
        """Make these items true in place; at most one item per feature."""
        for item in change:
            index = self.listed[item].feature
            values[:, index] = self.moved(item, values[:, index])

    def allowed(self, item: int, values: FloatArray, codes: IntArray) -> BoolArray:
        """Rows that have the item, or that the constraints allow to move there."""
        it = self.listed[item]
        f, code = self.space.features[it.feature], codes[:, it.feature]
        may = np.full(len(values), self.reachable(item)) & (code != MISSING)
        if f.sense and may.any():
            x = values[:, it.feature]
            may &= f.sense * (self.moved(item, x) - x) >= 0
        return np.asarray(may | (code == item))

    def reachable(self, item: int) -> bool:
        """Whether the constraints allow moving to the item at all."""
        it = self.listed[item]
        f = self.space.features[it.feature]
        if not f.can_move:
            return False
        if f.is_block:
            return f.permitted[it.category]
        return f.low <= it.category <= f.high if f.kind == "ordinal" else bool(np.isfinite(it.middle))

    def steps(self) -> BoolArray:
        """Which items of a feature may follow which in a Then: ``(items, items)``; each may follow itself."""
        able = np.array([self.reachable(i) for i in range(len(self))])
        same = self.feature_of[:, None] == self.feature_of[None, :]
        sense = np.array([f.sense for f in self.space.features])[self.feature_of][:, None]
        index = np.arange(len(self))
        way = np.sign(index[None, :] - index[:, None])
        return np.asarray(np.eye(len(self), dtype=bool) | (same & able[None, :] & (sense * way >= 0)))

    def cost(self, cost: CostModel, item: int, values: FloatArray, codes: IntArray) -> FloatArray:
        """Cost of making the item true for each row, before the norm."""
        index = self.listed[item].feature
        f, x = self.space.features[index], values[:, index]
        if f.is_block:
            return np.asarray(cost.weight(f) * (codes[:, index] != item))
        return cost.change(f, x, self.moved(item, x))

    # -- in words ------------------------------------------------------------------------------------------------

    def text(self, item: int, *, name: bool = True) -> str:
        """The item as a condition, with or without the feature's name."""
        it = self.listed[item]
        f = self.space.features[it.feature]
        return condition_text(f, it.category, it.low, it.high, name=name)


def condition_text(feature: Feature, category: int, low: float, high: float, *, name: bool = True) -> str:
    """A condition in words: ``housing = own``, ``20 < age <= 30``, ``age > 70``."""
    lead = f"{feature.name} " if name else ""
    if category >= 0:
        return f"{lead}= {feature.label(feature.categories[category])}"
    if np.isinf(low) and np.isinf(high):
        return f"{lead}any"
    if np.isinf(low):
        return f"{lead}<= {_number(high)}"
    if np.isinf(high):
        return f"{lead}> {_number(low)}"
    return f"{_number(low)} < {feature.name if name else '.'} <= {_number(high)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def _bins(index: int, f: Feature, values: FloatArray, bins: int, binning: str) -> list[Item]:
    known = values[~np.isnan(values)]
    if not known.size:
        return [Item(index)]
    if binning == "equal":
        edges = np.linspace(known.min(), known.max(), bins + 1)
    else:
        edges = np.quantile(known, np.linspace(0.0, 1.0, bins + 1))
    edges = np.unique(edges)
    if len(edges) < 3:
        return [Item(index)]
    last = len(edges) - 2
    return [
        _bin(
            index,
            f,
            -np.inf if i == 0 else float(edges[i]),
            np.inf if i == last else float(edges[i + 1]),
            float(edges[i] + edges[i + 1]) / 2,
        )
        for i in range(last + 1)
    ]


def _bin(index: int, f: Feature, low: float, high: float, middle: float) -> Item:
    """A bin with the values in it that may be moved to: within the range, and whole where the feature is."""
    first: Any = np.floor(low) + 1.0 if f.whole else np.nextafter(low, np.inf)
    first = f.low if low == -np.inf else max(float(first), f.low)
    last = min(float(np.floor(high)) if f.whole else high, f.high)
    if first > last or not f.can_move:
        return Item(index, low=low, high=high)
    middle = float(np.clip(np.rint(middle) if f.whole else middle, first, last))
    return Item(index, -1, low, high, float(first), float(last), middle)
