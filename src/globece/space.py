"""What a row is: features, ranges, one-hot blocks, and what may move.

A :class:`FeatureSpace` turns the user's rows into one float64 matrix and back. A continuous or ordinal feature is one
column (an ordinal one holds the position in its order), a categorical feature is a block of 0/1 columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from globece.errors import (
    InvalidDataError,
    InvalidDirectionError,
    InvalidParameterError,
    UnknownCategoryError,
    UnknownFeatureError,
    check_count,
)
from globece.tables import Table, read_table

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

Kind = Literal["continuous", "categorical", "ordinal"]
UNBOUNDED = "unbounded"


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature: its place in the encoded matrix, its values, and how it may move.

    Attributes
    ----------
    name
        The user's name for it.
    kind
        ``"continuous"``, ``"categorical"`` or ``"ordinal"``.
    start, stop
        Its encoded columns, as in a slice.
    categories
        Values of a categorical or ordinal feature in encoded order; ``None`` stands for a missing category.
    permitted
        Categories that somebody may move *to*; one flag per category.
    low, high
        Range of a continuous feature, or of the positions of an ordinal one.
    observed
        Smallest and largest value in the data, whatever the range: the default cost is per tenth of this.
    whole
        Whether it moves in whole numbers.
    sense
        ``+1`` if it may only rise, ``-1`` if it may only fall, ``0`` if both.
    immutable
        Whether it may not move at all.
    sources
        Names of the user's columns that hold it: one, or the columns of a one-hot group.
    """

    name: str
    kind: Kind
    start: int
    stop: int
    categories: tuple[Any, ...] = ()
    permitted: tuple[bool, ...] = ()
    low: float = -np.inf
    high: float = np.inf
    observed: tuple[float, float] = (0.0, 0.0)
    whole: bool = False
    sense: int = 0
    immutable: bool = False
    sources: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return self.stop - self.start

    @property
    def columns(self) -> slice:
        """Its encoded columns."""
        return slice(self.start, self.stop)

    @property
    def is_block(self) -> bool:
        """Whether it is encoded as a block of 0/1 columns."""
        return self.kind == "categorical"

    @property
    def can_move(self) -> bool:
        """Whether any direction may move it.

        A constant feature cannot: the data gives neither a range to move in nor a scale to price it by.
        """
        if self.immutable:
            return False
        if self.is_block:
            return self.width > 1 and any(self.permitted)
        return self.observed[1] > self.observed[0] and self.high > self.low

    def label(self, category: Any) -> str:
        """Text for one of its categories."""
        return "(missing)" if category is None else str(category)


@dataclass(frozen=True)
class FeatureSpace:
    """Features in encoded order, and the way between the user's rows and the encoded matrix.

    Build one with :meth:`from_frame` or :meth:`from_matrix`.

    Examples
    --------
    >>> import numpy as np
    >>> space = FeatureSpace.from_matrix(
    ...     np.array([[0.0, 20.0], [1.0, 40.0]]), columns=["debt", "age"], increasing=["age"]
    ... )
    >>> space.names
    ('debt', 'age')
    >>> space["age"].sense, space["age"].high
    (1, 40.0)
    """

    features: tuple[Feature, ...]
    table: Table = field(repr=False)

    # -- building ------------------------------------------------------------------------------------------------

    @classmethod
    def from_frame(
        cls,
        X: Any,
        *,
        categorical: Iterable[str] = (),
        ordinal: Mapping[str, Sequence[Any]] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        immutable: Iterable[str] = (),
        increasing: Iterable[str] = (),
        decreasing: Iterable[str] = (),
        ranges: Mapping[str, Any] | str | None = None,
        whole: Iterable[str] | None = None,
        permitted: Mapping[str, Sequence[Any]] | None = None,
        max_categories: int = 1000,
    ) -> FeatureSpace:
        """Learn the features of a pandas, Polars or PyArrow frame.

        Parameters
        ----------
        X
            The rows; every column becomes a feature or part of a group.
        categorical
            Numeric columns to treat as categories. Text, boolean and categorical columns always are.
        ordinal
            For each ordinal feature its values from lowest to highest. An ordered pandas categorical needs no entry.
        groups
            For each already one-hot feature the columns that hold it. An empty list leaves a column as it is.
        immutable, increasing, decreasing
            Features that may not move, may only rise, may only fall.
        ranges
            ``(low, high)`` by feature, or ``"unbounded"`` by feature or for all; by default the range of the data.
        whole
            Features that move in whole numbers; by default the columns of integer type.
        permitted
            For a categorical or ordinal feature the categories that one may move to; by default all of them.
        max_categories
            A feature with more categories than this is an error: group the rare ones first.

        Examples
        --------
        >>> import polars as pl
        >>> X = pl.DataFrame({"age": [20, 30], "housing": ["own", "rent"]})
        >>> space = FeatureSpace.from_frame(X, immutable=["age"])
        >>> space.encode(X)
        array([[20.,  1.,  0.],
               [30.,  0.,  1.]])
        >>> space.decode(space.encode(X)).equals(X)
        True
        """
        table = read_table(X)
        shaped = _shape(
            table,
            categorical=_names("categorical", categorical),
            ordinal=dict(ordinal or {}),
            groups={name: tuple(columns) for name, columns in (groups or {}).items()},
            whole=None if whole is None else _names("whole", whole),
            max_categories=check_count("max_categories", max_categories),
        )
        return cls(tuple(shaped), table.empty()).constrain(
            immutable=immutable,
            increasing=increasing,
            decreasing=decreasing,
            ranges=ranges,
            permitted=permitted,
        )

    @classmethod
    def from_matrix(
        cls,
        X: Any,
        *,
        columns: Sequence[str] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        **constraints: Any,
    ) -> FeatureSpace:
        """Learn the features of a NumPy matrix, one-hot groups included.

        Parameters
        ----------
        X
            A two-dimensional array of numbers.
        columns
            Names for its columns; ``x0``, ``x1``, ... by default.
        groups
            For each one-hot feature the names of its columns.
        **constraints
            Everything else that :meth:`from_frame` takes.
        """
        matrix = np.asarray(X)
        named = read_table(matrix, columns=columns)
        space = cls.from_frame(named, groups=groups, **constraints)
        return space

    def constrain(
        self,
        *,
        immutable: Iterable[str] = (),
        increasing: Iterable[str] = (),
        decreasing: Iterable[str] = (),
        ranges: Mapping[str, Any] | str | None = None,
        permitted: Mapping[str, Sequence[Any]] | None = None,
    ) -> FeatureSpace:
        """Return the same space with further constraints; those it has already are kept.

        Examples
        --------
        >>> import numpy as np
        >>> space = FeatureSpace.from_matrix(np.arange(6.0).reshape(3, 2))
        >>> space.constrain(immutable=["x0"])["x0"].can_move
        False
        """
        immutable = _names("immutable", immutable)
        increasing = _names("increasing", increasing)
        decreasing = _names("decreasing", decreasing)
        if ranges is not None and not isinstance(ranges, Mapping) and ranges != UNBOUNDED:
            raise InvalidParameterError(
                f"ranges must be a mapping of feature to (low, high) or {UNBOUNDED!r}, or {UNBOUNDED!r}; got {ranges!r}"
            )
        by_feature = dict.fromkeys(self._numeric_names, UNBOUNDED) if isinstance(ranges, str) else dict(ranges or {})
        permitted = dict(permitted or {})
        for parameter, names in (
            ("immutable", immutable),
            ("increasing", increasing),
            ("decreasing", decreasing),
            ("ranges", by_feature),
            ("permitted", permitted),
        ):
            self._check_known(parameter, names)
        both = sorted(set(increasing) & set(decreasing))
        if both:
            raise InvalidParameterError(f"increasing and decreasing both name {both}; use immutable for no movement")

        def constrained(feature: Feature) -> Feature:
            changes: dict[str, Any] = {}
            name = feature.name
            if name in immutable:
                changes["immutable"] = True
            if name in increasing or name in decreasing:
                changes["sense"] = _sense(feature, +1 if name in increasing else -1)
            if name in by_feature:
                changes["low"], changes["high"] = _range(feature, by_feature[name])
            if name in permitted:
                changes |= _permitted(feature, permitted[name])
            return dataclasses.replace(feature, **changes)

        return dataclasses.replace(self, features=tuple(constrained(f) for f in self.features))

    # -- looking -------------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Feature names, in encoded order."""
        return tuple(f.name for f in self.features)

    @property
    def _numeric_names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.features if f.kind == "continuous")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the encoded columns: the feature's, or ``feature = category``."""
        names: list[str] = []
        for f in self.features:
            if not f.is_block:
                names.append(f.name)
            elif len(f.sources) == f.width > 1:
                names.extend(f.sources)
            else:
                names.extend(f"{f.name} = {f.label(c)}" for c in f.categories)
        return tuple(names)

    @cached_property
    def width(self) -> int:
        """Number of encoded columns."""
        return self.features[-1].stop

    @cached_property
    def blocks(self) -> tuple[Feature, ...]:
        """The categorical features."""
        return tuple(f for f in self.features if f.is_block)

    @cached_property
    def scalars(self) -> tuple[Feature, ...]:
        """The continuous and ordinal features: one column each."""
        return tuple(f for f in self.features if not f.is_block)

    @cached_property
    def movable(self) -> tuple[Feature, ...]:
        """Features that a direction may move."""
        return tuple(f for f in self.features if f.can_move)

    def __getitem__(self, name: str) -> Feature:
        """Return the feature of that name."""
        self._check_known("feature", [name])
        return self.features[self.names.index(name)]

    def _check_known(self, parameter: str, names: Iterable[str]) -> None:
        unknown = sorted({str(n) for n in names if n not in self.names})
        if unknown:
            raise UnknownFeatureError(f"{parameter} names unknown feature(s) {unknown}; there are {list(self.names)}")

    # -- encoding ------------------------------------------------------------------------------------------------

    def encode(self, X: Any) -> FloatArray:
        """Turn the user's rows into the encoded matrix; the rows must have the columns the space was learnt from."""
        table = read_table(X, columns=self.table.names if isinstance(X, np.ndarray) else None)
        missing = [s for f in self.features for s in f.sources if s not in table.names]
        if missing:
            raise InvalidDataError(f"the frame lacks column(s) {missing}; it has {list(table.names)}")
        Z = np.zeros((table.n_rows, self.width))
        for f in self.features:
            if f.kind == "continuous":
                Z[:, f.start] = _numbers(table, f.sources[0], f.name)
            elif len(f.sources) > 1:
                Z[:, f.columns] = _one_hot(table, f.sources, f.name)
            else:
                codes = _codes(table, f)
                if f.is_block:
                    Z[np.arange(table.n_rows), f.start + codes] = 1.0
                else:
                    Z[:, f.start] = np.where(codes < 0, np.nan, codes)
        return Z

    def decode(self, Z: FloatArray) -> Any:
        """Turn an encoded matrix back into the kind of rows the space was learnt from, column types and order kept."""
        Z = self._check_width(Z)
        columns: dict[str, Any] = {}
        for f in self.features:
            if f.kind == "continuous":
                columns[f.sources[0]] = Z[:, f.start]
            elif len(f.sources) > 1:
                columns.update(zip(f.sources, Z[:, f.columns].T, strict=True))
            else:
                columns[f.sources[0]] = (f.categories, self.codes(Z, f))
        return self.table.build(columns, len(Z))

    def codes(self, Z: FloatArray, feature: Feature) -> IntArray:
        """Position of each row's category of ``feature``; -1 for a missing ordinal value."""
        if feature.is_block:
            return np.asarray(Z[:, feature.columns].argmax(axis=1), dtype=np.int64)
        position = Z[:, feature.start]
        return np.where(np.isnan(position), -1, position).astype(np.int64)

    def round(self, Z: FloatArray) -> FloatArray:
        """Make a matrix a valid one again: one-hot blocks, ranges, whole numbers, ordinal positions.

        The largest column of a block becomes 1 and the first of equal ones wins. Along a ray, where a block keeps
        its value at a tie, use :func:`globece.rays.positions`.
        """
        out = self._check_width(Z).copy()
        for f in self.features:
            if f.is_block:
                winner = out[:, f.columns].argmax(axis=1)
                out[:, f.columns] = 0.0
                out[np.arange(len(out)), f.start + winner] = 1.0
            else:
                column = np.rint(out[:, f.start]) if f.whole else out[:, f.start]
                out[:, f.start] = np.clip(column, f.low, f.high)
        return out

    def _check_width(self, Z: FloatArray) -> FloatArray:
        Z = np.asarray(Z, dtype=np.float64)
        if Z.ndim != 2 or Z.shape[1] != self.width:
            raise InvalidDataError(f"an encoded matrix has {self.width} columns; got an array of shape {Z.shape}")
        return Z

    # -- directions ----------------------------------------------------------------------------------------------

    def check_directions(self, directions: Any) -> FloatArray:
        """Return directions as a matrix, one a row, if they fit the space and break no constraint; otherwise raise."""
        D = np.atleast_2d(np.array(directions, dtype=np.float64))
        if D.ndim != 2 or D.shape[1] != self.width:
            raise InvalidDirectionError(f"a direction has {self.width} entries here; got an array of shape {D.shape}")
        if not np.isfinite(D).all():
            raise InvalidDirectionError(f"direction {int((~np.isfinite(D)).any(axis=1).argmax())} is not finite")
        for i, delta in enumerate(D):
            problem = self._direction_problem(delta)
            if problem:
                raise InvalidDirectionError(f"direction {i} {problem}")
        return D

    def _direction_problem(self, delta: FloatArray) -> str | None:
        if not delta.any():
            return "is zero: it moves nobody"
        for f in self.features:
            part = delta[f.columns]
            if not part.any():
                continue
            if not f.can_move:
                why = "immutable" if f.immutable else "constant"
                return f"moves {f.name!r}, which is {why}"
            if f.sense and f.sense * part[0] < 0:
                return f"moves {f.name!r} {'down' if f.sense > 0 else 'up'}, which it may not"
        return None


# -- helpers: each turns one part of the user's wish into fields of a Feature -------------------------------------


def _names(parameter: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidParameterError(f"{parameter} must be a list of feature names; got {names!r}")
    return tuple(names)


def _sense(feature: Feature, sense: int) -> int:
    if feature.is_block:
        raise InvalidParameterError(
            f"{'increasing' if sense > 0 else 'decreasing'} names {feature.name!r}, whose categories have no order; "
            "declare it ordinal, or say which categories are permitted"
        )
    if feature.sense and feature.sense != sense:
        raise InvalidParameterError(f"{feature.name!r} may only rise and only fall; use immutable for no movement")
    return sense


def _range(feature: Feature, given: Any) -> tuple[float, float]:
    if feature.kind != "continuous":
        raise InvalidParameterError(f"ranges names {feature.name!r}, which is {feature.kind}; use permitted instead")
    if isinstance(given, str) and given == UNBOUNDED:
        return -np.inf, np.inf
    try:
        low, high = (float(v) for v in given)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            f"ranges[{feature.name!r}] must be (low, high) or {UNBOUNDED!r}; got {given!r}"
        ) from error
    if not low <= high:
        raise InvalidParameterError(f"ranges[{feature.name!r}] must have low <= high; got {given!r}")
    return (float(np.ceil(low)), float(np.floor(high))) if feature.whole else (low, high)


def _permitted(feature: Feature, given: Sequence[Any]) -> dict[str, Any]:
    if feature.kind == "continuous":
        raise InvalidParameterError(f"permitted names {feature.name!r}, which is continuous; use ranges instead")
    unknown = [c for c in given if c not in feature.categories]
    if isinstance(given, str) or unknown:
        raise InvalidParameterError(
            f"permitted[{feature.name!r}] must list some of {list(feature.categories)}; got {given!r}"
        )
    flags = tuple(c in given for c in feature.categories)
    if feature.is_block:
        return {"permitted": flags}
    places = np.flatnonzero(flags)
    if not places.size or np.ptp(places) != places.size - 1:
        raise InvalidParameterError(
            f"permitted[{feature.name!r}] must be a run of the order {list(feature.categories)}; got {given!r}"
        )
    return {"permitted": flags, "low": float(places[0]), "high": float(places[-1])}


def _shape(
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
        unknown = sorted({str(n) for n in wanted if n not in table.names})
        if unknown:
            raise UnknownFeatureError(f"{parameter} names unknown column(s) {unknown}; there are {list(table.names)}")
    if len(member) != sum(len(columns) for columns in groups.values()):
        raise InvalidParameterError("groups names a column twice; each column belongs to one feature")
    taken = sorted(name for name, columns in groups.items() if name in table.names and columns and name not in columns)
    if taken:
        raise InvalidParameterError(
            f"groups names feature(s) {taken}, which are columns of their own; choose other names"
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
    _one_hot(table, columns, name)
    prefix = f"{name} = "
    categories = tuple(c.removeprefix(prefix) for c in columns)
    return Feature(
        name, "categorical", start, start + len(columns), categories, (True,) * len(columns), sources=columns
    )


def _ordinal_feature(table: Table, column: str, order: Sequence[Any], start: int) -> Feature:
    categories = tuple(order.tolist() if isinstance(order, np.ndarray) else order)
    if isinstance(order, str) or len(categories) < 2 or len(set(categories)) != len(categories):
        raise InvalidParameterError(
            f"ordinal[{column!r}] must list at least two different values from lowest to highest; got {order!r}"
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
    _codes(table, feature)
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
    n = len(categories)
    return Feature(column, "categorical", start, start + n, categories, (True,) * n, sources=(column,))


def _continuous_feature(table: Table, column: str, start: int, whole: bool) -> Feature:
    values = _numbers(table, column, column)
    present = values[~np.isnan(values)]
    if not present.size:
        raise InvalidDataError(f"column {column!r} has no values: all {table.n_rows:,} are missing; drop it")
    low, high = float(present.min()), float(present.max())
    if whole and (np.rint(present) != present).any():
        raise InvalidDataError(f"whole names {column!r}, which holds fractions such as {present[present % 1 != 0][0]}")
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


def _numbers(table: Table, column: str, feature: str) -> FloatArray:
    values = table.numbers(column)
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise InvalidDataError(
            f"feature {feature!r} has {infinite:,} infinite value(s), first in row {int(np.isinf(values).argmax())}; "
            "numbers must be finite or missing"
        )
    return values


def _one_hot(table: Table, columns: Sequence[str], feature: str) -> FloatArray:
    block = np.column_stack([table.numbers(c) for c in columns])
    bad = ~(((block == 0) | (block == 1)).all(axis=1) & (block.sum(axis=1) == 1))
    if bad.any():
        row = int(bad.argmax())
        raise InvalidDataError(
            f"group {feature!r} must hold exactly one 1 in each row, and 0 elsewhere; "
            f"{int(bad.sum()):,} row(s) do not, first row {row}: {block[row].tolist()}"
        )
    return block


def _codes(table: Table, feature: Feature) -> IntArray:
    codes, unknown = table.codes(feature.sources[0], feature.categories)
    if feature.is_block and (codes == -1).any():  # an ordinal value may be missing; it then stays missing
        unknown.append("(missing)")
    if unknown:
        raise UnknownCategoryError(
            f"feature {feature.name!r} has unknown category(ies) {sorted(map(str, unknown))[:10]}; "
            f"known are {[feature.label(c) for c in feature.categories][:50]}"
        )
    return codes


__all__ = ["UNBOUNDED", "BoolArray", "Feature", "FeatureSpace", "FloatArray", "IntArray", "Kind"]
