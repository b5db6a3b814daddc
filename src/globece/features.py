"""One feature: its columns in the encoded matrix, its values, and how it may move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

Kind = Literal["continuous", "categorical", "ordinal"]
UNBOUNDED = "unbounded"


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature: its columns in the encoded matrix, its values, and how it may move.

    Attributes
    ----------
    name
        The user's name for it.
    kind
        ``"continuous"``, ``"categorical"`` or ``"ordinal"``.
    start, stop
        Its encoded columns, as in a slice.
    categories
        Values of a categorical or ordinal feature in encoded order; ``None`` stands for a missing category.
    permitted
        Whether each category may be moved *to*.
    low, high
        Range of a continuous feature, or of the positions of an ordinal one.
    observed
        Smallest and largest value in the data, whatever the range: the default cost is 1 per tenth of it.
    whole
        Whether it moves in whole numbers.
    sense
        ``+1`` if it may only rise, ``-1`` if it may only fall, ``0`` for both.
    immutable
        Whether it may not move at all.
    sources
        Names of the user's columns that hold it: one, or the columns of a one-hot group.
    """

    name: str
    kind: Kind
    start: int
    stop: int
    categories: tuple[Any, ...] = ()
    permitted: tuple[bool, ...] = ()
    low: float = -np.inf
    high: float = np.inf
    observed: tuple[float, float] = (0.0, 0.0)
    whole: bool = False
    sense: int = 0
    immutable: bool = False
    sources: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return self.stop - self.start

    @property
    def columns(self) -> slice:
        """Its encoded columns."""
        return slice(self.start, self.stop)

    @property
    def is_block(self) -> bool:
        """Whether it is encoded as a block of 0/1 columns."""
        return self.kind == "categorical"

    @property
    def can_move(self) -> bool:
        """Whether any direction may move it.

        A constant feature cannot: the data give neither a range nor a scale for its cost.
        """
        if self.immutable:
            return False
        if self.is_block:
            return self.width > 1 and any(self.permitted)
        return self.observed[1] > self.observed[0] and self.high > self.low

    def index(self, category: Any) -> int | None:
        """Position of a category, or ``None`` if it is unknown."""
        for i, known in enumerate(self.categories):
            if known is category or (isinstance(same := known == category, (bool, np.bool_)) and same):
                return i
        return None

    def label(self, category: Any) -> str:
        """Text for one of its categories."""
        return "(missing)" if category is None else str(category)
