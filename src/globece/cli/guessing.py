"""What the columns of a table probably are: guesses with reasons, for a configuration that a person checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from globece.auditing.assumptions import (
    ADVERSE,
    AGE,
    SENSITIVE,
    SENSITIVE_TOGETHER,
    words,
)

MOST_CATEGORIES = 1000  # the space refuses more
MOSTLY_DIFFERENT = 0.5  # share of different values from which text is no category
FEW_ROWS = 50  # up to which that says nothing
MOST_GROUPS = 12
LISTED = 5  # categories in a comment
NUMBERS_OF_ROWS = frozenset({"id", "nr", "no", "number", "index", "key", "uuid", "identifier", "row", "unnamed"})
OUTCOMES = ADVERSE | frozenset(
    {
        "outcome", "target", "label", "class", "y", "decision", "approved", "approval", "accepted", "granted", "hired",
        "admitted", "promoted", "eligible", "qualified", "risk", "good", "favourable", "favorable",
    }
)  # fmt: skip
# Words that make up an order, from lowest to highest.
ORDERS = (
    ("none", "very low", "low", "medium", "moderate", "high", "very high"),
    ("never", "rarely", "seldom", "sometimes", "often", "always"),
    ("very poor", "poor", "bad", "fair", "average", "good", "very good", "excellent"),
    ("xs", "s", "m", "l", "xl"),
    ("tiny", "small", "medium", "large", "huge"),
    ("none", "primary", "secondary", "bachelor", "master", "doctorate"),
)


@dataclass(frozen=True, slots=True)
class Guess:
    """What a column probably is.

    Attributes
    ----------
    name
        The column.
    says
        What a configuration would say about it.
    holds
        What is in it, in words.
    why
        The reason of what is guessed, if anything is.
    sensitive
        Whether nobody should be told to change it.
    n_values
        Number of its different values.
    smallest
        How many rows have its rarest one.
    """

    name: str
    says: dict[str, Any]
    holds: str
    why: str = ""
    sensitive: bool = False
    n_values: int = 0
    smallest: int = 0


def guess_column(frame: Any, name: str) -> Guess:
    """What one column probably is."""
    series = nw.from_native(frame, eager_only=True)[name]
    present = series.drop_nulls()
    n, distinct = len(present), present.n_unique() if len(present) else 0
    missing = len(series) - n
    gaps = f"; {missing:,} missing" if missing else ""
    parts = words(name)
    sensitive = any(p in SENSITIVE for p in parts) or any(all_ <= set(parts) for all_ in SENSITIVE_TOGETHER)
    aged = any(p in AGE for p in parts)
    kind = series.dtype
    if n == 0:
        return Guess(name, {"used": False}, "no values", "there is nothing in it")
    if kind.is_temporal():
        return Guess(
            name, {"used": False}, f"dates{gaps}", "dates are not supported; make it a number of days or years"
        )
    says: dict[str, Any] = {}
    why: list[str] = []
    if kind.is_numeric():
        holds = _numbers(present, kind.is_integer(), distinct) + gaps
        if kind.is_integer() and distinct == n > FEW_ROWS and (set(parts) & NUMBERS_OF_ROWS or _counts(present)):
            return Guess(name, {"used": False}, holds, "each row has another one: it looks like a number of the row")
        if distinct == 2 and not aged:
            says["kind"] = "categorical"
            why.append("two values are a category")
    else:
        values = sorted(str(v) for v in present.unique().to_list())
        holds = f"{distinct:,} categories: {'; '.join(values[:LISTED])}{'; ...' if distinct > LISTED else ''}{gaps}"
        if distinct > MOST_CATEGORIES or (n > FEW_ROWS and distinct > MOSTLY_DIFFERENT * n):
            return Guess(
                name,
                {"used": False},
                f"{distinct:,} different texts{gaps}",
                "too many: it looks like a name or a remark",
            )
        if order := ordered(values):
            why.append(f'if these are ordered: kind = "ordinal", order = {_listed(order)}')
    if sensitive or aged:
        says["may"] = "fixed"
        why.append("nobody should be told to change it")
    else:
        says["may"] = "free"
    smallest = int(present.value_counts(name="n", sort=True)["n"].to_list()[-1]) if sensitive else 0
    return Guess(name, says, holds, "; ".join(why), sensitive, distinct, smallest)


def _numbers(present: Any, whole: bool, distinct: int) -> str:
    low, high = present.min(), present.max()
    what = "whole numbers" if whole else "numbers"
    low, high = (f"{float(f'{value:.3g}'):,.10g}" for value in (low, high))  # as much as tells the size
    return f"{what}, always {low}" if distinct == 1 else f"{what}, about {low} to {high}"


def _counts(present: Any) -> bool:
    """Whether whole numbers count the rows."""
    return bool(present.max() - present.min() == len(present) - 1)


def ordered(values: Sequence[str]) -> list[str]:
    """The values from lowest to highest, if all of them are words of one order.

    Examples
    --------
    >>> ordered(["high", "low", "medium"]), ordered(["own", "rent"])
    (['low', 'medium', 'high'], [])
    """
    for order in ORDERS:
        if len(values) > 2 and all(value.strip().lower() in order for value in values):
            return sorted(values, key=lambda value: order.index(value.strip().lower()))
    return []


def _listed(values: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"


def outcome_candidates(frame: Any) -> list[str]:
    """Columns of two values, those that are named like an outcome first; the last column before the others."""
    table = nw.from_native(frame, eager_only=True)
    two = [name for name in table.columns if table[name].drop_nulls().n_unique() == 2]
    return sorted(two, key=lambda name: (not is_outcome(name), -table.columns.index(name)))


def is_outcome(name: str) -> bool:
    """Whether a column is named like an outcome.

    Examples
    --------
    >>> is_outcome("approved"), is_outcome("two_year_recid"), is_outcome("telephone")
    (True, True, False)
    """
    return any(part in OUTCOMES for part in words(name))
