"""Numeric column types: their range, precision, and missing values.

Rows are computed in doubles. When they are decoded, values must fit the user's column type, and narrow floats round
them; both follow from the name of the type, whatever library it belongs to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from globece.errors import InvalidDataError

EXACT = 2.0**53  # whole numbers below this are exact as doubles

# Names of narrow float types in pandas, Polars, PyArrow and NumPy, in lowercase: bits of precision, largest number.
_FLOATS = {
    "float16": (11, 65504.0),
    "halffloat": (11, 65504.0),
    "float32": (24, float(np.finfo(np.float32).max)),
    "float": (24, float(np.finfo(np.float32).max)),
}
_INTEGER = re.compile(r"(u?)int(8|16|32|64|128)$")
_DECIMAL = re.compile(r"decimal\d*\((?:precision=)?(\d+), (?:scale=)?(-?\d+)\)$")


@dataclass(frozen=True, slots=True)
class NumberType:
    """What a column's type can hold.

    Attributes
    ----------
    name
        The library's name for the type.
    low, high
        The smallest and the largest number that it can hold; infinite for doubles.
    unit
        Largest relative error of rounding a double to this type: 2**-24 for float32, 0 if there is none.
    is_float
        Whether it holds fractions.
    holds_missing
        Whether it can hold a missing value.
    """

    name: str
    low: float = -np.inf
    high: float = np.inf
    unit: float = 0.0
    is_float: bool = True
    holds_missing: bool = True

    @classmethod
    def of(cls, name: str, *, nullable: bool = True) -> NumberType:
        """The type of this name; an unknown one is taken as a double.

        >>> NumberType.of("UInt8").high, NumberType.of("float32").unit == 2.0**-24
        (255.0, True)
        """
        plain = name.lower()
        if plain in _FLOATS:
            bits, most = _FLOATS[plain]
            return cls(name, -most, most, 2.0**-bits)
        if found := _INTEGER.match(plain):
            bits = int(found[2])
            low, high = (0.0, 2.0**bits) if found[1] else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))
            # the largest number is one less; with 64 bits or more that is not a double, and the double below is used
            return cls(name, low, high - 1.0 if bits < 54 else float(np.nextafter(high, 0.0)), 0.0, False, nullable)
        if found := _DECIMAL.match(plain):
            most = float(min(10.0 ** (int(found[1]) - int(found[2])) - 1.0, 2.0**126))
            return cls(name, -most, most, 0.0, False)
        if plain in ("bool", "boolean"):
            return cls(name, 0.0, 1.0, 0.0, False, nullable)
        return cls(name)

    @property
    def computes_narrowly(self) -> bool:
        """Whether NumPy functions of such numbers are in less than double precision, as the root of an int8 is."""
        return bool(self.unit) or (not self.is_float and 1.0 < self.high < 2.0**31 - 1.0)

    @property
    def span(self) -> tuple[float, float]:
        """Range of an unbounded feature of this type; infinite where the type's range is 2**53 or wider."""
        return (self.low if -self.low < EXACT else -np.inf), (self.high if self.high < EXACT else np.inf)

    @property
    def _narrow(self) -> type[np.floating[Any]]:
        return np.float32 if self.unit == 2.0**-24 else np.float16 if self.unit else np.float64

    def rounded(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers after a round trip through a column of this type."""
        return values.astype(self._narrow).astype(np.float64)

    def inward(self, low: float, high: float) -> tuple[float, float]:
        """The smallest and the largest number of this type between two numbers in its range."""
        if not self.unit:
            return low, high
        narrow = self._narrow
        least, most = narrow(low), narrow(high)
        least = np.nextafter(least, narrow(np.inf)) if float(least) < low else least
        most = np.nextafter(most, narrow(-np.inf)) if float(most) > high else most
        return float(least), float(most)

    def check(self, values: NDArray[np.float64], column: str) -> None:
        """Raise if a column of this type cannot hold one of the numbers."""
        missing = np.isnan(values)
        wrong = (values < self.low) | (values > self.high)
        if not self.is_float:
            wrong |= (np.rint(values) != values) & ~missing
        if wrong.any():
            self._refuse(column, f"cannot hold {float(values[wrong][0])!r}", wrong)
        if not (self.is_float or self.holds_missing) and missing.any():
            self._refuse(column, "cannot hold a missing value", missing)

    def _refuse(self, column: str, what: str, where: NDArray[np.bool_]) -> None:
        holds = "numbers" if self.is_float else "whole numbers"
        raise InvalidDataError(
            f"column {column!r} has type {self.name}, which {what} (row {int(where.argmax())}); "
            f"it holds {holds} from {self.low:.17g} to {self.high:.17g}: give the space a wider type, or other values"
        )
