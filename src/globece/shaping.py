"""From the user's columns to features: the kind of each column, and validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from globece.errors import (
    InvalidDataError,
    InvalidParameterError,
    UnknownCategoryError,
    UnknownFeatureError,
    clipped,
    describe,
)
from globece.features import Feature, FloatArray, IntArray
from globece.numbertypes import EXACT
from globece.tables import Table


def shape(
    table: Table,
    *,
    categorical: tuple[str, ...],
    ordinal: dict[str, Sequence[Any]],
    groups: dict[str, tuple[str, ...]],
    whole: tuple[str, ...] | None,
    max_categories: int,
) -> list[Feature]:
    """Find the features of a table, without constraints."""
    if table.n_rows == 0:
        raise InvalidDataError("the frame has no rows")
    member = {column: name for name, columns in groups.items() for column in columns}
    for parameter, wanted in (("categorical", categorical), ("ordinal", ordinal), ("groups", member)):
        unknown = sorted({clipped(str(n)) for n in wanted if n not in table.names})
        if unknown:
            raise UnknownFeatureError(f"{parameter} names unknown column(s) {unknown}; there are {list(table.names)}")
    if len(member) != sum(len(columns) for columns in groups.values()):
        raise InvalidParameterError("groups names a column twice; each column belongs to one feature")
    taken = sorted(name for name, columns in groups.items() if name in table.names and columns and name not in columns)
    if taken:
        raise InvalidParameterError(
            f"groups names feature(s) {taken}, which are names of other columns; choose other names"
        )
    features: list[Feature] = []
    done: set[str] = set()
    start = 0
    for column in table.names:
        name = member.get(column, column)
        if name in done:
            continue
        done.add(name)
        if column in member and len(groups[name]) > 1:
            feature = _group_feature(table, name, groups[name], start)
        elif (order := ordinal.get(column, table.declared_order(column))) is not None:
            feature = _ordinal_feature(table, column, order, start)
        elif column in categorical or not table.is_numeric(column):
            feature = _categorical_feature(table, column, start, max_categories)
        else:
            is_whole = table.is_integer(column) if whole is None else column in whole
            feature = _continuous_feature(table, column, start, is_whole)
        features.append(feature)
        start = feature.stop
    if not features:
        raise InvalidDataError("the frame has no columns")
    unknown = sorted(set(whole or ()) - {f.name for f in features if f.kind == "continuous"})
    if unknown:
        raise UnknownFeatureError(f"whole names {unknown}; the continuous features are {[f.name for f in features]}")
    return features


def _group_feature(table: Table, name: str, columns: tuple[str, ...], start: int) -> Feature:
    one_hot(table, columns, name)
    prefix = f"{name} = "
    categories = tuple(c.removeprefix(prefix) for c in columns)
    return Feature(
        name, "categorical", start, start + len(columns), categories, (True,) * len(columns), sources=columns
    )


def _ordinal_feature(table: Table, column: str, order: Sequence[Any], start: int) -> Feature:
    categories = tuple(order.tolist() if isinstance(order, np.ndarray) else order)
    if isinstance(order, str) or len(categories) < 2 or len(set(categories)) != len(categories):
        raise InvalidParameterError(
            f"ordinal[{column!r}] must list at least two different values from lowest to highest; got {describe(order)}"
        )
    feature = Feature(
        column,
        "ordinal",
        start,
        start + 1,
        categories,
        (True,) * len(categories),
        low=0.0,
        high=len(categories) - 1.0,
        observed=(0.0, len(categories) - 1.0),
        whole=True,
        sources=(column,),
    )
    codes_of(table, feature)
    table.check_categories(column, categories)
    return feature


def _categorical_feature(table: Table, column: str, start: int, max_categories: int) -> Feature:
    categories = table.categories(column)
    if len(categories) > max_categories:
        raise InvalidDataError(
            f"column {column!r} has {len(categories):,} categories and at most {max_categories:,} are allowed; "
            "group the rare ones, drop the column, or raise max_categories"
        )
    if categories == (None,):
        raise InvalidDataError(f"column {column!r} has no values: all {table.n_rows:,} are missing; drop it")
    table.check_categories(column, categories)
    n = len(categories)
    return Feature(column, "categorical", start, start + n, categories, (True,) * n, sources=(column,))


def _continuous_feature(table: Table, column: str, start: int, whole: bool) -> Feature:
    values = numbers(table, column, column)
    present = values[~np.isnan(values)]
    if not present.size:
        raise InvalidDataError(f"column {column!r} has no values: all {table.n_rows:,} are missing; drop it")
    low, high = float(present.min()), float(present.max())
    if whole and (np.rint(present) != present).any():
        raise InvalidDataError(f"whole names {column!r}, which holds fractions such as {present[present % 1 != 0][0]}")
    if whole and not table.number_type(column).is_float:
        check_exact(table, column, values)
    return Feature(
        column,
        "continuous",
        start,
        start + 1,
        low=low,
        high=high,
        observed=(low, high),
        whole=whole,
        sources=(column,),
    )


def numbers(table: Table, column: str, feature: str) -> FloatArray:
    """A column's numbers, finite or missing."""
    values = table.numbers(column)
    if table.is_integer(column):
        check_exact(table, column, values)
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise InvalidDataError(
            f"feature {feature!r} has {infinite:,} infinite value(s), first in row {int(np.isinf(values).argmax())}; "
            "numbers must be finite or missing"
        )
    return values


def check_exact(table: Table, column: str, values: FloatArray) -> None:
    """Raise if whole numbers are too large to be exact as doubles."""
    large = np.abs(values) >= EXACT
    if large.any():  # the number itself is exact, and the next one is rounded to it
        codes, _ = table.codes(column, (int(EXACT), -int(EXACT)))
        large &= codes < 0
    if large.any():
        raise InvalidDataError(
            f"column {column!r} has type {table.number_type(column).name} and holds {int(large.sum()):,} number(s) "
            f"beyond 2**53, first in row {int(large.argmax())} ({values[large][0]:.17g}), which are not exact as "
            "doubles; if they are identifiers, drop the column or turn it into text, otherwise divide them"
        )


def one_hot(table: Table, columns: Sequence[str], feature: str) -> FloatArray:
    """A group's columns, with exactly one 1 in each row."""
    block = np.column_stack([table.numbers(c) for c in columns])
    bad = ~(((block == 0) | (block == 1)).all(axis=1) & (block.sum(axis=1) == 1))
    if bad.any():
        row = int(bad.argmax())
        raise InvalidDataError(
            f"group {feature!r} must hold exactly one 1 in each row, and 0 elsewhere; "
            f"{int(bad.sum()):,} row(s) do not, first row {row}: {block[row].tolist()}"
        )
    return block


def codes_of(table: Table, feature: Feature) -> IntArray:
    """Positions of a column's categories; an unknown one raises."""
    codes, unknown = table.codes(feature.sources[0], feature.categories)
    if feature.is_block and (codes == -1).any():  # an ordinal value may be missing, and stays so
        unknown.append("(missing)")
    if unknown:
        raise UnknownCategoryError(
            f"feature {feature.name!r} has unknown category(ies) {sorted(map(str, unknown))[:10]}; "
            f"known are {[feature.label(c) for c in feature.categories][:50]}"
        )
    return codes
