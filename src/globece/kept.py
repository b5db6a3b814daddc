"""What is worked out once and kept: beside its owner, never inside it, so that it is neither compared nor pickled."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Generic, TypeVar

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class Kept(Generic[Owner, Value]):
    """Values kept for objects as long as these live, whatever they are equal to.

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
        """What is kept for an object; made, and kept from then on, where there is nothing yet."""
        found = self.known(owner)
        return self.keep(owner, make()) if found is None else found

    def known(self, owner: Owner) -> Value | None:
        """What is kept for an object, if there is something."""
        entry = self._values.get(id(owner))
        return entry[1] if entry is not None and entry[0]() is owner else None

    def keep(self, owner: Owner, value: Value) -> Value:
        """Keep a value for an object, in place of any before."""
        place = id(owner)
        self._values[place] = (weakref.ref(owner, lambda _: self._values.pop(place, None)), value)
        return value


class FieldsOnly:
    """A dataclass that is pickled by its fields, without what its cached properties keep."""

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


def freeze(owner: Any, *names: str) -> None:
    """Make these arrays of a frozen dataclass read-only; the caller's own arrays stay as they are."""
    for name in names:
        array = getattr(owner, name)
        if array.flags.writeable:
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(owner, name, view)
