"""Universal Binary JSON, the binary format of XGBoost's models.

Only what such files contain is supported: objects, arrays (typed or not), strings, numbers, true, false and null. See
https://ubjson.org for the format.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from globece.errors import ModelError

NUMBERS = {
    kind: np.dtype(layout)
    for kind, layout in zip(b"iUIlLdD", (">i1", ">u1", ">i2", ">i4", ">i8", ">f4", ">f8"), strict=True)
}
WORDS = {ord("T"): True, ord("F"): False, ord("Z"): None}
OBJECT, END_OBJECT, ARRAY, END_ARRAY, TYPE, COUNT, STRING, LONG = b"{}[]$#SL"


def loads(raw: bytes) -> Any:
    r"""Parse a document; typed arrays of numbers become NumPy arrays over the bytes.

    >>> loads(b"{U\x01aU\x05U\x01b[$U#U\x02\x07\x08}")
    {'a': 5, 'b': array([7, 8], dtype=uint8)}
    """
    try:
        value, _ = _value(raw, 0)
    except (IndexError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ModelError(f"the model's bytes are not UBJSON: {error}") from error
    return value


def _value(raw: bytes, at: int) -> tuple[Any, int]:
    """The value at this offset, and the offset of the next one."""
    kind = raw[at]
    if kind == OBJECT:
        return _object(raw, at + 1)
    if kind == ARRAY:
        return _array(raw, at + 1)
    if kind == STRING:
        return _text(raw, at + 1)
    if kind in NUMBERS:
        size = NUMBERS[kind].itemsize
        return np.frombuffer(raw, NUMBERS[kind], 1, at + 1)[0].item(), at + 1 + size
    if kind in WORDS:
        return WORDS[kind], at + 1
    raise ValueError(f"byte {kind} at {at} starts no value")


def _whole(raw: bytes, at: int) -> tuple[int, int]:
    """A length, and the offset after it."""
    if raw[at] == LONG:  # the type that XGBoost always uses
        return int.from_bytes(raw[at + 1 : at + 9], "big"), at + 9
    value, after = _value(raw, at)
    return int(value), after


def _text(raw: bytes, at: int) -> tuple[str, int]:
    size, at = _whole(raw, at)
    return raw[at : at + size].decode(), at + size


def _object(raw: bytes, at: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while raw[at] != END_OBJECT:
        name, at = _text(raw, at)
        found[name], at = _value(raw, at)
    return found, at + 1


def _array(raw: bytes, at: int) -> tuple[Any, int]:
    if raw[at] == TYPE:
        layout = NUMBERS.get(raw[at + 1])
        if layout is None or raw[at + 2] != COUNT:
            raise ValueError(f"an array of type {raw[at + 1]} at {at}")
        n, at = _whole(raw, at + 3)
        return np.frombuffer(raw, layout, n, at), at + n * layout.itemsize
    found: list[Any] = []
    if raw[at] == COUNT:
        n, at = _whole(raw, at + 1)
        for _ in range(n):
            value, at = _value(raw, at)
            found.append(value)
        return found, at
    while raw[at] != END_ARRAY:
        value, at = _value(raw, at)
        found.append(value)
    return found, at + 1
