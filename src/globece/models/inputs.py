"""The inputs of a pipeline's final model, as functions of the encoded matrix.

Scalers and encoders turn the user's columns into the inputs of the last step. Each such input is one of three things,
all of them known along a ray: a monotone function of a number, a step function of a number, or a table lookup for a
category.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from globece.space import FeatureSpace, FloatArray

Function = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Narrow:
    """Rounds numbers to a narrower type."""

    dtype: str

    def __call__(self, z: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(z).astype(self.dtype).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Number:
    """A continuous or ordinal column, moved by a monotone function.

    Attributes
    ----------
    column
        The encoded column.
    forward
        The function as the user's steps compute it, rounding included. It must be monotone.
    scale, shift
        ``forward`` is ``scale * z + shift`` up to rounding; ``None`` if it is not a straight line.
    fill
        Replaces missing values before ``forward``; ``None`` if they stay missing.
    narrow
        The type of the user's column if it is narrower than a double: a number is rounded to it first.
    """

    column: int
    forward: Function | None = None
    scale: float | None = 1.0
    shift: float | None = 0.0
    fill: float | None = None
    narrow: str | None = None

    def values(self, Z: FloatArray) -> FloatArray:
        """Value of this input for each row."""
        z = Z[:, self.column]
        if self.narrow is not None:
            z = Narrow(self.narrow)(z)
        if self.fill is not None:
            z = np.where(np.isnan(z), self.fill, z)
        return z.copy() if self.forward is None else np.asarray(self.forward(z))


@dataclass(frozen=True, slots=True)
class Steps:
    """A continuous or ordinal column, cut into pieces with one value each.

    Attributes
    ----------
    column
        The encoded column.
    edges
        Ascending; piece i holds ``edges[i-1] < z <= edges[i]``.
    values_
        One more than edges.
    missing
        Value for a missing number.
    """

    column: int
    edges: FloatArray
    values_: FloatArray
    missing: float = np.nan

    def values(self, Z: FloatArray) -> FloatArray:
        """Value of this input for each row."""
        z = Z[:, self.column]
        found = self.values_[np.searchsorted(self.edges, z, side="left").clip(0, len(self.edges))]
        return np.where(np.isnan(z), self.missing, found)


@dataclass(frozen=True, slots=True)
class Lookup:
    """A categorical block, with a value for each of its categories."""

    start: int
    table: FloatArray  # (categories,)

    def values(self, Z: FloatArray) -> FloatArray:
        """Value of this input for each row."""
        block = Z[:, self.start : self.start + len(self.table)]
        return np.asarray(self.table[block.argmax(axis=1)])


Input = Number | Steps | Lookup


def evaluate(inputs: Sequence[Input], Z: FloatArray) -> FloatArray:
    """The input matrix of the final model."""
    return np.column_stack([i.values(Z) for i in inputs]) if inputs else np.empty((len(Z), 0))


def identity(width: int) -> tuple[Input, ...]:
    """Inputs of a model that takes the encoded matrix unchanged."""
    return tuple(Number(j) for j in range(width))


def centre_of(space: FeatureSpace, inputs: Sequence[Input]) -> FloatArray:
    """The value that the steps before a model map to 0, by encoded column; whole where the column is."""
    centre = np.zeros(space.width)
    for source in inputs:
        if isinstance(source, Number) and source.scale and source.shift:
            centre[source.column] = -source.shift / source.scale
    for f in space.scalars:
        if f.whole:
            centre[f.start] = np.rint(centre[f.start])
    return np.asarray(space.settle(np.where(np.isfinite(centre), centre, 0.0)[None])[0])
