"""What the type of a column of numbers can hold: its range, its precision, missing values.

Rows are computed in doubles. What comes back from them to the user's own column must fit the column's type, and a
narrow float rounds it; both are known from the type's name, whatever library it belongs to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

EXACT = 2.0**53  # whole numbers below this are exact as doubles

# Names of the types of floats in pandas, Polars, PyArrow and NumPy, lowercase: bits kept of a number, largest number.
_FLOATS = {
    "float16": (11, 65504.0),
    "halffloat": (11, 65504.0),
    "float32": (24, float(np.finfo(np.float32).max)),
    "float": (24, float(np.finfo(np.float32).max)),
}
_INTEGER = re.compile(r"(u?)int(8|16|32|64|128)$")
_DECIMAL = re.compile(r"decimal\d*\(precision=(\d+), scale=(-?\d+)\)$")


@dataclass(frozen=True, slots=True)
class NumberType:
    """What a column's type can hold.

    Attributes
    ----------
    name
        The type, as its library calls it.
    low, high
        The least and the largest number that it can hold; infinite for doubles, whose range nothing leaves.
    unit
        Largest relative error of a double that is rounded to this type: 2**-24 for float32, 0 where none is made.
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
        """The type of this name; one that is not known is taken for a double.

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
            # the largest number is one less; of 64 bits and more it is no double, and the double below it is
            return cls(name, low, high - 1.0 if bits < 54 else float(np.nextafter(high, 0.0)), 0.0, False, nullable)
        if found := _DECIMAL.match(plain):
            most = float(min(10.0 ** (int(found[1]) - int(found[2])) - 1.0, 2.0**126))
            return cls(name, -most, most, 0.0, False)
        if plain == "bool":
            return cls(name, 0.0, 1.0, 0.0, False, nullable)
        return cls(name)
