"""Caches that live outside of the objects they belong to, so that they are neither compared nor pickled."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class Kept(Generic[Owner, Value]):
    """A cache of one value per object, by identity, for as long as the object lives.

    Examples
    --------
    >>> class Box: ...
    >>> sizes = Kept()
    >>> box = Box()
    >>> sizes.get(box, lambda: 3), sizes.get(box, lambda: 4)
    (3, 3)
    """

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[Any], Value]] = {}

    def get(self, owner: Owner, make: Callable[[], Value]) -> Value:
        """The value of an object, computed on the first call."""
        found = self.known(owner)
        return self.keep(owner, make()) if found is None else found

    def known(self, owner: Owner) -> Value | None:
        """The value of an object, if there is one."""
        entry = self._values.get(id(owner))
        return entry[1] if entry is not None and entry[0]() is owner else None

    def keep(self, owner: Owner, value: Value) -> Value:
        """Set the value of an object."""
        key = id(owner)
        self._values[key] = (weakref.ref(owner, lambda _: self._values.pop(key, None)), value)
        return value


class FieldsOnly:
    """A dataclass that is pickled by its fields, without its cached properties."""

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


def freeze(owner: Any, *names: str) -> None:
    """Make these arrays of a frozen dataclass read-only, without changing the caller's arrays."""
    for name in names:
        array = getattr(owner, name)
        if array.flags.writeable:
            object.__setattr__(owner, name, read_only(array))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The same array, to be read."""
    view = array.view()
    view.flags.writeable = False
    return view
