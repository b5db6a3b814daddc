"""Groups from columns, intersections, bins of numbers, masks or labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from globece.compact import Rows
from globece.errors import (
    InvalidDataError,
    InvalidParameterError,
    UnknownFeatureError,
    check_count,
    check_list,
    check_numbers,
    describe,
    wrong,
)
from globece.space import BoolArray, Feature, FloatArray, IntArray
from globece.tables import Table

MISSING = "(missing)"
MOST_VALUES = 10  # a numeric column with more distinct values must be binned
MOST_GROUPS = 200
ALLOWED = (
    "a column, a list of columns, a mapping of columns to bins ({'age': [25, 45]} or {'age': 4}), "
    "a mapping of names to masks, or an array with a label for each row"
)


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Names of groups, and the group of each row.

    Attributes
    ----------
    names
        In the order of the categories, of the bins, or of the masks given.
    labels
        Position of each row's group among the names; -1 for a row in no group. ``(n_rows,)``
    by
        What defines the groups, in words.
    features
        Features that define the groups, which may then not be moved.
    """

    names: tuple[str, ...]
    labels: IntArray
    by: str
    features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.labels.setflags(write=False)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> IntArray:
        """Number of rows of each group."""
        return np.bincount(self.labels[self.labels >= 0], minlength=len(self.names)).astype(np.int64)

    @property
    def n_outside(self) -> int:
        """Number of rows in no group."""
        return int((self.labels < 0).sum())

    def index(self, name: str, parameter: str = "group") -> int:
        """Position of a group; the error for an unknown name lists the known ones."""
        if not isinstance(name, str) or name not in self.names:
            raise wrong(parameter, f"one of the groups {list(self.names)}", name)
        return self.names.index(name)


def find_groups(by: Any, table: Table, rows: Rows, *, parameter: str, missing: str) -> Groups:
    """Form groups.

    Parameters
    ----------
    by
        A column, a list of columns (then every combination is a group), a mapping of columns to bins, a mapping of
        names to masks, or an array of labels.
    table, rows
        The rows, native and encoded.
    parameter
        Name of ``by`` in errors.
    missing
        ``"group"`` treats missing values as a separate group, ``"error"`` raises.
    """
    if isinstance(by, (type, Mapping)) and (isinstance(by, type) or not all(isinstance(k, str) for k in by)):
        raise wrong(parameter, ALLOWED, by)
    if isinstance(by, Mapping) and by and all(_is_mask(v) for v in by.values()):
        return _from_masks(by, len(rows), parameter)
    if _is_labels(by):
        column = _from_labels(np.asarray(by), len(rows), parameter)
        return _joined([column], parameter, missing, described="labels given")
    named = _columns_and_cuts(by, parameter)
    columns = [_column(name, cut, table, rows, parameter) for name, cut in named]
    return _joined(columns, parameter, missing, described=" and ".join(name for name, _ in named))


def find_clusters(cluster: Any, table: Table, rows: Rows) -> IntArray:
    """Whose row each row is, from 0; a column, or an array with a label for each row, none of them missing."""
    allowed = "a column, or an array with a label for each row"
    if isinstance(cluster, str):
        if cluster in rows.space.names:
            values = rows.feature(rows.space[cluster])
        elif cluster not in table.names:
            known = list(dict.fromkeys([*rows.space.names, *table.names]))
            raise UnknownFeatureError(f"cluster names unknown column {describe(cluster)}; there are {known}")
        elif table.is_numeric(cluster):
            values = table.numbers(cluster)
        else:
            codes, _ = table.codes(cluster, [c for c in table.categories(cluster) if c is not None])
            values = np.where(codes < 0, np.nan, codes)
    elif _is_labels(cluster):
        column = _from_labels(np.asarray(cluster), len(rows), "cluster")
        values = np.where(column.codes < 0, np.nan, column.codes)
    else:
        raise wrong("cluster", allowed, cluster)
    missing = int(np.isnan(values).sum())
    if missing:
        raise InvalidDataError(f"cluster is missing in {missing:,} rows; give each of these a label of its own")
    found = np.unique(values, return_inverse=True)[1].astype(np.int64)
    if len(found) and not found.any():
        raise InvalidParameterError(f"cluster says that all {len(rows):,} rows are of one person")
    return found


@dataclass(frozen=True, slots=True)
class _Column:
    """One column as groups: names, the index of each row's group (-1: missing), and the feature, if it is one."""

    names: tuple[str, ...]
    codes: IntArray
    feature: str | None
    name: str


def _is_mask(value: Any) -> bool:
    try:
        return not isinstance(value, (str, int, float)) and value is not None and np.asarray(value).dtype == bool
    except Exception:  # a ragged list, or an object that cannot be converted
        return False


def _is_labels(by: Any) -> bool:
    if isinstance(by, np.ndarray):
        return True
    return hasattr(by, "to_numpy") and not hasattr(by, "columns") and not isinstance(by, (str, Mapping))


def _columns_and_cuts(by: Any, parameter: str) -> list[tuple[str, Any]]:
    """Columns, each with how to bin it."""
    if isinstance(by, str):
        return [(by, None)]
    if isinstance(by, Mapping):
        found = list(by.items())
    elif isinstance(by, Sequence):
        found = [pair for part in by for pair in (part.items() if isinstance(part, Mapping) else [(part, None)])]
    else:
        found = []
    names = [name for name, _ in found]
    if not found or not all(isinstance(name, str) for name in names):
        raise wrong(parameter, ALLOWED, by)
    if len(set(names)) != len(names):
        raise InvalidParameterError(f"{parameter} names a column twice: {names}")
    return found


def _column(name: str, cut: Any, table: Table, rows: Rows, parameter: str) -> _Column:
    space = rows.space
    if name in space.names:
        return _from_feature(space[name], cut, rows, parameter)
    if name not in table.names:
        known = list(dict.fromkeys([*space.names, *table.names]))
        raise UnknownFeatureError(
            f"{parameter} names unknown column {describe(name)}; there are {known}. Groups that are not in a column "
            "can be given as an array of labels, or as a mapping of names to masks"
        )
    if table.is_numeric(name):
        return _from_numbers(name, table.numbers(name), cut, None, parameter)
    _no_cut(name, cut, parameter)
    categories = [c for c in table.categories(name) if c is not None]
    codes, _ = table.codes(name, categories)
    return _Column(tuple(str(c) for c in categories), codes, None, name)


def _from_feature(f: Feature, cut: Any, rows: Rows, parameter: str) -> _Column:
    values = rows.feature(f)
    if f.kind == "continuous":
        return _from_numbers(f.name, values, cut, f.name, parameter)
    _no_cut(f.name, cut, parameter)
    codes = np.where(np.isnan(values), -1, values).astype(np.int64)
    if None in f.categories:
        codes = np.where(codes == f.categories.index(None), -1, codes)
    return _Column(tuple(f.label(c) for c in f.categories), codes, f.name, f.name)


def _from_numbers(name: str, values: FloatArray, cut: Any, feature: str | None, parameter: str) -> _Column:
    known = ~np.isnan(values)
    if cut is None:
        distinct = np.unique(values[known])
        if len(distinct) > MOST_VALUES:
            raise InvalidParameterError(
                f"{parameter} names {name!r}, which has {len(distinct):,} different values: say how to bin it, as in "
                f"{parameter}={{{name!r}: [a, b]}} for bins with these edges or {{{name!r}: 4}} for quarters"
            )
        codes = np.where(known, np.searchsorted(distinct, np.where(known, values, 0.0)), -1)
        return _Column(tuple(f"{name} = {v:g}" for v in distinct), codes, feature, name)
    edges = _edges(name, cut, values[known], parameter)
    names = [f"{name} < {edges[0]:g}"]
    names += [f"{a:g} <= {name} < {b:g}" for a, b in pairwise(edges)]
    names.append(f"{name} >= {edges[-1]:g}")
    codes = np.where(known, np.searchsorted(edges, np.where(known, values, 0.0), side="right"), -1)
    return _Column(tuple(names), codes.astype(np.int64), feature, name)


def _edges(name: str, cut: Any, values: FloatArray, parameter: str) -> FloatArray:
    called, allowed = f"{parameter}[{name!r}]", "ascending edges of bins, or a number of equal shares >= 2"
    if isinstance(cut, (bool, str)):
        raise wrong(called, allowed, cut)
    if hasattr(cut, "__index__") and not getattr(cut, "shape", ()):
        shares = check_count(called, cut, low=2, high=MOST_GROUPS)
        edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, shares + 1)[1:-1])) if values.size else np.zeros(0)
        return edges if edges.size else np.zeros(1)
    edges = check_numbers(called, cut, allowed)
    if not edges.size or (np.diff(edges) <= 0).any():
        raise wrong(called, allowed, cut)
    return np.asarray(edges)


def _no_cut(name: str, cut: Any, parameter: str) -> None:
    if cut is not None:
        raise InvalidParameterError(
            f"{parameter}[{name!r}] gives bins, but {name!r} holds categories; got {describe(cut)}"
        )


def _from_masks(masks: Mapping[Any, Any], n: int, parameter: str) -> Groups:
    labels = np.full(n, -1, dtype=np.int64)
    names: list[str] = []
    for name, given in masks.items():
        mask: BoolArray = np.asarray(given, dtype=bool)
        if mask.shape != (n,):
            raise InvalidParameterError(f"{parameter}[{name!r}] must be a mask of {n:,} rows; got shape {mask.shape}")
        if not mask.any():
            raise InvalidParameterError(f"{parameter}[{name!r}] is a mask without any row")
        taken = labels[mask]
        if (taken >= 0).any():
            other = names[int(taken[taken >= 0][0])]
            raise InvalidParameterError(
                f"{parameter}: the masks {other!r} and {str(name)!r} overlap in {int((taken >= 0).sum()):,} rows; "
                "groups must be disjoint"
            )
        labels[mask] = len(names)
        names.append(str(name))
    if len(names) == 1 and (labels < 0).any():  # one mask: the other rows are the other group
        labels[labels < 0] = 1
        names.append(f"not {names[0]}")
    return Groups(tuple(names), labels, "masks given")


def _from_labels(values: Any, n: int, parameter: str) -> _Column:
    if values.shape != (n,):
        raise InvalidParameterError(f"{parameter} must have a label for each of {n:,} rows; got shape {values.shape}")
    if values.dtype == object:
        check_list(parameter, values, f"an array with a label for each of {n:,} rows")
    absent = np.array([v is None or v != v for v in values.tolist()], dtype=bool)
    present = [str(v) for v in values[~absent].tolist()]
    names = sorted(set(present))
    codes = np.full(n, -1, dtype=np.int64)
    index = {name: i for i, name in enumerate(names)}
    codes[~absent] = [index[name] for name in present]
    return _Column(tuple(names), codes, None, "labels")


def _joined(columns: list[_Column], parameter: str, missing: str, described: str) -> Groups:
    """All combinations of the columns' values that occur."""
    parts: list[tuple[tuple[str, ...], IntArray]] = []
    for column in columns:
        names, codes = column.names, column.codes
        if (codes < 0).any():
            if missing == "error":
                raise InvalidDataError(
                    f"{parameter}: {column.name!r} is missing in {int((codes < 0).sum()):,} rows; missing='group' "
                    "treats them as a separate group"
                )
            codes, names = np.where(codes < 0, len(names), codes), (*names, MISSING)
        parts.append((names, codes))
    mixed = np.zeros(len(parts[0][1]), dtype=np.int64)
    for names, codes in parts:
        mixed = mixed * len(names) + codes
    present, labels = np.unique(mixed, return_inverse=True)
    if len(present) > MOST_GROUPS:
        raise InvalidParameterError(f"{parameter} gives {len(present):,} groups; at most {MOST_GROUPS} are supported")
    joined = []
    for code in present.tolist():
        words: list[str] = []
        for names, _ in reversed(parts):
            code, at = divmod(code, len(names))
            words.append(names[at])
        joined.append(" & ".join(reversed(words)))
    features = tuple(c.feature for c in columns if c.feature is not None)
    return Groups(tuple(joined), labels.astype(np.int64), described, features)
