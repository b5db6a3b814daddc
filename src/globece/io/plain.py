"""Plain data from outside, read with suspicion: every look says what it expects, and an error says where it was not.

A JSON Schema says the same in public, but checking it needs a package that is no part of the core, and it cannot
compare lengths.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections import Counter
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from globece.errors import FileFormatError, InvalidDataError
from globece.space import FloatArray, IntArray

_Number = TypeVar("_Number", np.float64, np.int64)


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a document, and where it stands.

    Attributes
    ----------
    value
        The value, as :mod:`json` gives it.
    where
        Its place in the document, such as ``space.features[2].low``; empty for the document itself.
    source
        The file it comes from.
    """

    value: Any
    where: str
    source: str

    def fail(self, expected: str) -> NoReturn:
        """Raise, saying what was expected here and what came."""
        got = "null" if self.value is None else reprlib.repr(self.value)  # which is short, however long the value
        raise FileFormatError(f"{self.source}: {self.where or 'the document'} must be {expected}; got {got}")

    def key(self, name: str) -> Node:
        """The value under a key that must be there."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        if name not in self.value:
            raise FileFormatError(
                f"{self.source}: {self.where or 'the document'} lacks the key {name!r}; it has {list(self.value)[:20]}"
            )
        return Node(self.value[name], f"{self.where}.{name}".lstrip("."), self.source)

    def keys(self, *names: str, optional: tuple[str, ...] = ()) -> dict[str, Node]:
        """The values under these keys, all of which must be there but the optional ones, and no others."""
        required = [name for name in names if name not in optional]
        found = {name: self.key(name) for name in required}
        found |= {name: self.key(name) for name in optional if name in self.value}
        allowed = [*required, *optional]
        unknown = [name for name in self.value if name not in allowed]
        if unknown:
            raise FileFormatError(
                f"{self.source}: {self.where or 'the document'} has unknown key(s) {unknown[:5]}; allowed are {allowed}"
            )
        return found

    def entries(self, length: int | None = None, per: str = "") -> list[Any]:
        """A list, of ``length`` entries where that is given: one for each ``per``."""
        if not isinstance(self.value, list):
            self.fail("a list")
        if length is not None and len(self.value) != length:
            raise FileFormatError(
                f"{self.source}: {self.where} must have {length:,} entries, one for each {per}; "
                f"it has {len(self.value):,}"
            )
        return self.value

    def items(self, length: int | None = None, per: str = "") -> list[Node]:
        """The entries of a list, each with its place; see :meth:`entries`."""
        return [Node(v, f"{self.where}[{i}]", self.source) for i, v in enumerate(self.entries(length, per))]

    def text(self) -> str:
        """Text."""
        if not isinstance(self.value, str):
            self.fail("text")
        return self.value

    def texts(self) -> tuple[str, ...]:
        """A list of text."""
        return tuple(item.text() for item in self.items())

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            self.fail("true or false")
        return self.value

    def whole(self, *, low: int = 0, high: float = np.inf) -> int:
        """A whole number within bounds, both included."""
        if type(self.value) is not int or not low <= self.value <= high:
            bounds = f"{low} on" if high == np.inf else f"{low} to {high}"
            self.fail(f"{low}" if low == high else f"a whole number from {bounds}")
        return int(self.value)

    def number(self, *, null: float | None = None, positive: bool = False) -> float:
        """A finite number; ``null`` stands for nothing where it is given."""
        if self.value is None and null is not None:
            return null
        value = _finite(self.value)
        if value is None or (positive and not value > 0):
            self.fail("a finite number" + (" above 0" if positive else "") + (" or null" if null is not None else ""))
        return value

    def choice(self, *allowed: str) -> str:
        """One of these texts."""
        if not isinstance(self.value, str) or self.value not in allowed:
            self.fail(f"one of {list(allowed)}")
        return self.value

    def scalar(self) -> str | int | float | bool | None:
        """One value of any plain type, as the values of a categorical feature are."""
        if isinstance(self.value, (dict, list)) or (isinstance(self.value, float) and _finite(self.value) is None):
            self.fail("text, a finite number, true, false or null")
        value: str | int | float | bool | None = self.value
        return value

    def vector(self, length: int, per: str, *, null: float | None = None) -> FloatArray:
        """Finite numbers, one for each ``per``; ``null`` stands for nothing where it is given."""
        values = self.entries(length, per)
        array = _array(values, {int, float, type(None)}, np.float64)  # NumPy makes None NaN
        if array is None or np.isinf(array).any() or (null is None and np.isnan(array).any()):
            for item in self.items():
                item.number(null=null)  # one of them raises, with its place
            raise AssertionError("a list of numbers is an array of numbers")
        return array if null is None else np.where(np.isnan(array), null, array)

    def matrix(self, shape: tuple[int, int], per: tuple[str, str], *, null: float | None = None) -> FloatArray:
        """A list of vectors as a matrix; see :meth:`vector`."""
        found = [row.vector(shape[1], per[1], null=null) for row in self.items(shape[0], per[0])]
        return np.array(found, dtype=np.float64).reshape(shape)

    def places(self, length: int | None, per: str, below: int) -> IntArray:
        """Whole numbers from 0 up to but not including ``below``."""
        array = _array(self.entries(length, per), {int}, np.int64)
        if array is None or (array.size and not (array.min() >= 0 and array.max() < below)):
            for item in self.items():
                item.whole(high=min(below, 2**63) - 1)  # no array has room for more
            raise AssertionError("a list of places is an array of places")
        return array


def _array(values: list[Any], types: set[type], dtype: type[_Number]) -> NDArray[_Number] | None:
    """An array of values that are all of these types, or nothing; no value is looked at one by one."""
    if not set(map(type, values)) <= types:
        return None
    try:
        return np.array(values, dtype=dtype)
    except OverflowError:  # JSON has whole numbers of any size
        return None


def _finite(value: Any) -> float | None:
    """``value`` as a float, or nothing where it is no finite number; JSON itself can say 1e999."""
    if type(value) not in (int, float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def number(value: float, where: str) -> float:
    """A float as strict JSON can hold it; otherwise raise."""
    made = float(value)
    if not np.isfinite(made):
        raise InvalidDataError(f"{where} is {made}; a result file holds finite numbers only")
    return made


def numbers(values: FloatArray, where: str, *, null: float | None = None) -> list[float | None]:
    """Floats as strict JSON can hold them, with null for the one that ``null`` says."""
    if null is None:
        absent = np.zeros(len(values), dtype=bool)
    else:
        absent = np.isnan(values) if np.isnan(null) else values == null
    wrong = ~np.isfinite(values) & ~absent
    if wrong.any():
        number(values[wrong][0], f"{where}[{int(wrong.argmax())}]")
    listed: list[float | None] = values.tolist()
    for i in np.flatnonzero(absent):
        listed[i] = None
    return listed


def parse(text: str, source: str) -> Node:
    """Parse strict JSON: no NaN, no infinity, no key twice."""
    try:
        return Node(json.loads(text, parse_constant=_refuse, object_pairs_hook=_object), "", source)
    except json.JSONDecodeError as error:
        raise FileFormatError(
            f"{source} is not JSON, or is cut off: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise FileFormatError(f"{source} is not JSON that can be read: it is nested too deeply") from error
    except ValueError as error:
        raise FileFormatError(f"{source} is not strict JSON: {error}") from error


def dump(document: dict[str, Any]) -> str:
    """Write strict JSON with each key of the document on a line of its own.

    The text is ASCII, so its bytes depend on no encoding, and floats are the shortest that read back the same.
    """
    lines = [f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in document.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _refuse(token: str) -> NoReturn:
    raise ValueError(f"{token} is no number of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise ValueError(f"the key {counts.most_common(1)[0][0]!r} comes twice in one object")
    return made
