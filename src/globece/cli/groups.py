"""Columns that make up groups, out of the text of an option."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from globece.cli.task import Task, names, number
from globece.errors import InvalidParameterError


def columns_of(task: Task) -> list[str]:
    """What groups may be made of: the features, and every other column of DATA."""
    return [*dict.fromkeys([*task.space.names, *nw.from_native(task.frame, eager_only=True).columns])]


def columns(option: str, values: tuple[str, ...], known: list[str]) -> list[Any]:
    """Columns out of ``sex``, ``age:25,45`` and ``age:4``; a name that has a colon in it comes alone."""
    wishes: list[Any] = []
    for value in values:
        name, colon, cut = value.rpartition(":")
        if value in known or not colon:
            wishes += names(option, (value,), known)
            continue
        names(option, (name,), known)
        parts = [number(part.strip()) for part in cut.split(",")]
        if not all(isinstance(part, (int, float)) for part in parts):
            raise InvalidParameterError(f"{option} must cut {name!r} at numbers, as in {name}:25,45; got {value!r}")
        single = len(parts) == 1 and isinstance(parts[0], int) and 2 <= parts[0] <= 10
        wishes.append({name: parts[0] if single else parts})
    return wishes
