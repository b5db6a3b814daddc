"""Encoded rows that take little memory: one number per feature, expanded into blocks a chunk at a time.

A feature with 900 categories takes 900 columns of the encoded matrix, and one code here. A small matrix is kept as it
is, since expanding would only cost time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from globece.space import BoolArray, Feature, FeatureSpace, FloatArray, IntArray

DENSE = 64 * 2**20  # bytes of a matrix that is kept as it is
CHUNK = 32 * 2**20  # bytes of a matrix that rows are expanded into at a time


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Encoded rows, as a matrix or compact.

    Attributes
    ----------
    space
        The space of the rows.
    values
        The encoded matrix ``(n, width)``; or, if the rows are compact, a column per feature: numbers, positions of
        ordinal features, codes of categories.
    is_compact
        Which of the two.

    Examples
    --------
    >>> import numpy as np
    >>> space = FeatureSpace.from_matrix(np.array([[1.0, 5.0], [2.0, 6.0]]), categorical=["x1"])
    >>> rows = Rows.read(space, np.array([[2.0, 5.0]]))
    >>> len(rows), rows.dense()
    (1, array([[2., 1., 0.]]))
    """

    space: FeatureSpace
    values: FloatArray
    is_compact: bool = False

    @classmethod
    def read(cls, space: FeatureSpace, X: Any) -> Rows:
        """The user's rows, encoded; compact if the matrix would be large."""
        return cls._of(space, space.compact(X))

    @classmethod
    def _of(cls, space: FeatureSpace, values: FloatArray) -> Rows:
        if is_large(space, len(values)):
            return cls(space, values, is_compact=True)
        return cls(space, space.expand(values))

    @classmethod
    def from_features(cls, space: FeatureSpace, n: int, columns: list[FloatArray]) -> Rows:
        """Rows from a column per feature, as :meth:`feature` returns it."""
        values = np.empty((n, len(columns)))
        for i, column in enumerate(columns):
            values[:, i] = column
        return cls._of(space, values)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.values)

    def __getitem__(self, index: slice | IntArray | BoolArray) -> Rows:
        """Some of the rows."""
        return Rows(self.space, self.values[index], self.is_compact)

    def dense(self) -> FloatArray:
        """The encoded matrix."""
        return self.space.expand(self.values) if self.is_compact else self.values

    @property
    def at_once(self) -> int:
        """How many rows are expanded at a time."""
        return max(1, CHUNK // (8 * self.space.width)) if self.is_compact else max(1, len(self))

    def slices(self) -> Iterator[slice]:
        """Parts whose encoded matrices have a bounded size."""
        step = self.at_once
        for start in range(0, len(self), step):
            yield slice(start, min(start + step, len(self)))

    def chunks(self) -> Iterator[tuple[slice, FloatArray]]:
        """The encoded matrix in such parts, each with its slice."""
        for part in self.slices():
            yield part, self[part].dense()

    def some(self, order: IntArray) -> FloatArray:
        """The first rows in an order, as many as are expanded at a time; all of them, unordered, if they are few."""
        if len(self) <= self.at_once:
            return self.dense()
        return self[np.sort(order[: self.at_once])].dense()

    def feature(self, feature: Feature) -> FloatArray:
        """A feature's numbers, positions or codes of categories."""
        if self.is_compact:
            return np.asarray(self.values[:, self.space.features.index(feature)])
        return self.space.feature_values(self.values, feature)

    def by_feature(self) -> FloatArray:
        """One value per feature: numbers, positions of ordinal features, codes of categories."""
        return self.values if self.is_compact else self.space.pack(self.values)

    def pack(self, Z: FloatArray) -> FloatArray:
        """An encoded matrix in the form of these rows' values."""
        return self.space.pack(Z) if self.is_compact else Z

    def decode(self) -> Any:
        """The rows in the user's own columns."""
        return self.space.decode_compact(self.values) if self.is_compact else self.space.decode(self.values)


def is_large(space: FeatureSpace, n: int) -> bool:
    """Whether ``n`` rows are better kept compact: their matrix is large, and most of it is blocks."""
    return 8 * n * space.width > DENSE and space.width >= 2 * len(space.features)
