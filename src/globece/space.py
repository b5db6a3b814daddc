"""Features, ranges, one-hot blocks, and constraints.

A :class:`FeatureSpace` turns the user's rows into one float64 matrix and back. A continuous or ordinal feature is one
column (an ordinal one holds the position in its order), a categorical feature is a block of 0/1 columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from globece.errors import (
    InvalidDataError,
    InvalidDirectionError,
    InvalidParameterError,
    UnknownFeatureError,
    check_count,
    check_flag,
    check_instance,
    check_list,
    check_mapping,
    check_matrix,
    check_names,
    check_number,
    check_rows,
    clipped,
    describe,
    wrong,
)
from globece.features import UNBOUNDED, BoolArray, Feature, FloatArray, IntArray, Kind
from globece.formatting import html_table
from globece.kept import FieldsOnly
from globece.numbertypes import NumberType
from globece.shaping import codes_of, numbers, one_hot, shape
from globece.tables import MatrixTable, Table, read_table

ORDER = "a list of at least two different values from lowest to highest"


SHOWN = 80  # letters of a feature's values, in a notebook


@dataclass(frozen=True)
class FeatureSpace(FieldsOnly):
    """Features in encoded order, and conversion between the user's rows and the encoded matrix.

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

    def __post_init__(self) -> None:
        if not isinstance(self.features, tuple) or not self.features:
            raise wrong("features", "a tuple of features (see FeatureSpace.from_frame)", self.features)
        for i, feature in enumerate(self.features):
            check_instance(f"features[{i}]", feature, Feature)
        if not callable(getattr(self.table, "build", None)):
            raise wrong("table", "a table (see FeatureSpace.from_frame)", self.table)

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
            For each feature that is one-hot encoded already, its columns. An empty list leaves a column as it is.
        immutable, increasing, decreasing
            Features that may not move, may only rise, may only fall.
        ranges
            ``(low, high)`` by feature, or ``"unbounded"`` by feature or for all; by default the range of the data. A
            row outside of it that moves towards the range enters at the nearest end as soon as it moves, at the cost of
            the whole change; one that would move away stays where it is.
        whole
            Features that move in whole numbers; by default the columns of integer type.
        permitted
            For a categorical or ordinal feature the categories that may be moved to; by default all of them. Those of
            an ordinal feature must be consecutive, and rows outside move as those outside a range do.
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
        ordinal = check_mapping("ordinal", ordinal, "feature to its values from lowest to highest")
        groups = check_mapping("groups", groups, "feature to its columns")
        shaped = shape(
            table,
            categorical=check_names("categorical", categorical),
            ordinal={name: check_list(f"ordinal[{name!r}]", order, ORDER) for name, order in ordinal.items()},
            groups={name: check_names(f"groups[{name!r}]", part, "columns") for name, part in groups.items()},
            whole=None if whole is None else check_names("whole", whole),
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
        """Learn the features of a NumPy matrix, one-hot groups included.

        Parameters
        ----------
        X
            A two-dimensional array of numbers.
        columns
            Names for its columns; ``x0``, ``x1``, ... by default.
        groups
            For each one-hot feature the names of its columns.
        categorical, ordinal, immutable, increasing, decreasing, ranges, whole, permitted, max_categories
            As for :meth:`from_frame`.
        """
        try:
            matrix = X if isinstance(X, np.ndarray) else np.asarray(X)
        except Exception as error:  # anything may happen when an arbitrary object is converted
            raise InvalidDataError(f"X must be a matrix of numbers; got {describe(X)}") from error
        named = read_table(matrix, columns=None if columns is None else check_names("columns", columns, "column names"))
        return cls.from_frame(
            named,
            categorical=categorical,
            ordinal=ordinal,
            groups=groups,
            immutable=immutable,
            increasing=increasing,
            decreasing=decreasing,
            ranges=ranges,
            whole=whole,
            permitted=permitted,
            max_categories=max_categories,
        )

    def constrain(
        self,
        *,
        immutable: Iterable[str] = (),
        increasing: Iterable[str] = (),
        decreasing: Iterable[str] = (),
        ranges: Mapping[str, Any] | str | None = None,
        permitted: Mapping[str, Sequence[Any]] | None = None,
    ) -> FeatureSpace:
        """Return the same space with additional constraints.

        Examples
        --------
        >>> import numpy as np
        >>> space = FeatureSpace.from_matrix(np.arange(6.0).reshape(3, 2))
        >>> space.constrain(immutable=["x0"])["x0"].can_move
        False
        """
        immutable = check_names("immutable", immutable)
        increasing = check_names("increasing", increasing)
        decreasing = check_names("decreasing", decreasing)
        if isinstance(ranges, str) and ranges == UNBOUNDED:
            by_feature: dict[str, Any] = {f.name: UNBOUNDED for f in self.features if f.kind == "continuous"}
        else:
            by_feature = check_mapping(
                "ranges", ranges, f"feature to (low, high) or {UNBOUNDED!r}, or {UNBOUNDED!r} for all"
            )
        permitted = check_mapping("permitted", permitted, "feature to the categories that may be moved to")
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
                changes["low"], changes["high"] = _range(feature, by_feature[name], self.holds(feature))
            if name in permitted:
                changes |= _permitted(feature, permitted[name])
            return dataclasses.replace(feature, **changes)

        return dataclasses.replace(self, features=tuple(constrained(f) for f in self.features))

    # -- features ------------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Feature names, in encoded order."""
        return tuple(f.name for f in self.features)

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

    def _repr_html_(self) -> str:
        """For notebooks: each feature, its values, and how it may move."""
        rows = []
        for f in self.features:
            values = ", ".join(f.label(c) for c in f.categories) if f.categories else f"{f.low:g} to {f.high:g}"
            how = {0: "both ways", 1: "only up", -1: "only down"}[f.sense] if f.can_move else "not at all"
            rows.append([f.name, f.kind, values if len(values) <= SHOWN else values[: SHOWN - 3] + "...", how])
        return html_table(("Feature", "Kind", "Values", "May move"), rows)

    def __getitem__(self, name: str) -> Feature:
        """Return the feature of that name."""
        if not isinstance(name, str):
            raise wrong("feature", f"one of {list(self.names)}", name)
        self._check_known("feature", [name])
        return self.features[self.names.index(name)]

    def _check_known(self, parameter: str, names: Iterable[str]) -> None:
        unknown = sorted({clipped(str(n)) for n in names if n not in self.names})
        if unknown:
            raise UnknownFeatureError(f"{parameter} names unknown feature(s) {unknown}; there are {list(self.names)}")

    # -- column types -----------------------------------------------------------------------------------------------

    def holds(self, feature: Feature) -> NumberType:
        """Type of the column of a continuous feature; double for an integer column that moves in fractions."""
        stored = self.table.number_type(feature.sources[0])
        return stored if stored.is_float or feature.whole else NumberType("float64")

    @cached_property
    def _fractional(self) -> frozenset[str]:
        """Integer or decimal columns that move in fractions: they are always decoded as doubles."""
        numeric = [f for f in self.features if f.kind == "continuous" and not f.whole]
        return frozenset(f.sources[0] for f in numeric if not self.table.number_type(f.sources[0]).is_float)

    @property
    def is_narrow(self) -> bool:
        """Whether steps may compute with some column in less than double precision."""
        return bool(self._narrow)

    @cached_property
    def _narrow(self) -> frozenset[str]:
        """Columns with which NumPy computes in less than double precision: narrow floats, and short integers.

        In a matrix of them all columns, even categorical ones.
        """
        if isinstance(self.table, MatrixTable):
            return frozenset(name for name in self.table.names if self.table.number_type(name).computes_narrowly)
        numeric = [f for f in self.features if f.kind == "continuous"]
        short = {f.sources[0] for f in numeric if self.table.number_type(f.sources[0]).computes_narrowly}
        return frozenset(f.sources[0] for f in self.features if self.rounding[f.start]) | short

    @cached_property
    def rounding(self) -> FloatArray:
        """Largest relative error of each encoded column when it is converted to the user's column type.

        2**-24 for float32, 2**-11 for float16; 0 for doubles, whole numbers and categories, which are not rounded.
        Subnormal numbers have larger errors; :meth:`settle` rounds them exactly.
        """
        out = np.zeros(self.width)
        for f in self.features:
            if f.kind == "continuous":
                out[f.start] = self.table.number_type(f.sources[0]).unit
        out.flags.writeable = False
        return out

    def settle(self, Z: FloatArray) -> FloatArray:
        """The encoded rows after decoding and encoding: narrow floats are rounded; ``Z`` itself if there are none."""
        columns = np.flatnonzero(self.rounding)
        if not columns.size:
            return Z
        out = np.array(Z, dtype=np.float64)
        for j in columns:
            out[:, j] = NumberType("narrow", unit=self.rounding[j]).rounded(out[:, j])
        return out

    # -- encoding ------------------------------------------------------------------------------------------------

    def encode(self, X: Any) -> FloatArray:
        """Turn the user's rows into the encoded matrix; they must have the columns that the space was learnt from."""
        return self.expand(self.compact(X))

    def compact(self, X: Any) -> FloatArray:
        """Turn the user's rows into one column per feature: numbers, positions of ordinal values, category codes."""
        table = read_table(X, columns=self.table.names if isinstance(X, np.ndarray) else None)
        missing = [s for f in self.features for s in f.sources if s not in table.names]
        if missing:
            raise InvalidDataError(f"the frame lacks column(s) {missing}; it has {list(table.names)}")
        out = np.empty((table.n_rows, len(self.features)))
        for i, f in enumerate(self.features):
            if f.kind == "continuous":
                out[:, i] = self._rounded(f, numbers(table, f.sources[0], f.name))
            elif len(f.sources) > 1:
                out[:, i] = one_hot(table, f.sources, f.name).argmax(axis=1)
            else:
                codes = codes_of(table, f)
                out[:, i] = np.where(codes < 0, np.nan, codes)
        return out

    def _rounded(self, feature: Feature, values: FloatArray) -> FloatArray:
        """Numbers rounded to the type of the column that the space was learnt from."""
        holds = self.holds(feature)
        if not holds.unit:
            return values
        holds.check(values, feature.sources[0])
        return holds.rounded(values)

    def expand(self, compact: FloatArray) -> FloatArray:
        """The encoded matrix from the result of :meth:`compact`; that itself where there are no blocks."""
        if not self.blocks:
            return compact
        Z = np.zeros((len(compact), self.width))
        index = [i for i, f in enumerate(self.features) if f.is_block]
        hot = compact[:, index].astype(np.int64) + [f.start for f in self.blocks]
        Z.reshape(-1)[hot + self.width * np.arange(len(Z))[:, None]] = 1.0
        index = [i for i, f in enumerate(self.features) if not f.is_block]
        Z[:, [f.start for f in self.scalars]] = compact[:, index]
        return Z

    def pack(self, Z: FloatArray) -> FloatArray:
        """The inverse of :meth:`expand`."""
        return np.column_stack([self.feature_values(Z, f) for f in self.features])

    def feature_values(self, Z: FloatArray, feature: Feature) -> FloatArray:
        """A feature's column, or the codes of its categories."""
        return self.codes(Z, feature).astype(np.float64) if feature.is_block else np.asarray(Z[:, feature.start])

    def decode(self, Z: FloatArray, *, wide: bool = False) -> Any:
        """Turn an encoded matrix back into rows of the user's type, with the same column types and order.

        With ``wide``, columns of narrow floats and of short integers become doubles with the same (rounded) values.
        """
        Z = self._check_width(Z)
        if check_flag("wide", wide):
            Z = self.settle(Z)
        if self._matrix_columns is not None:
            in_order = (self._matrix_columns == np.arange(self.width)).all()
            return Z.copy() if in_order else np.ascontiguousarray(Z[:, self._matrix_columns])
        columns: dict[str, Any] = {}
        for f in self.features:
            if f.kind == "continuous":
                columns[f.sources[0]] = Z[:, f.start]
            elif len(f.sources) > 1:
                columns.update(zip(f.sources, Z[:, f.columns].T, strict=True))
            else:
                columns[f.sources[0]] = (f.categories, self.codes(Z, f))
        return self.table.build(columns, len(Z), self._fractional | (self._narrow if wide else frozenset()))

    def decode_compact(self, compact: FloatArray) -> Any:
        """Turn the result of :meth:`compact` back into the user's rows."""
        columns: dict[str, Any] = {}
        for i, f in enumerate(self.features):
            values = compact[:, i]
            if f.kind == "continuous":
                columns[f.sources[0]] = values
            elif len(f.sources) > 1:
                columns.update((s, (values == code).astype(np.float64)) for code, s in enumerate(f.sources))
            else:
                columns[f.sources[0]] = (f.categories, np.where(np.isnan(values), -1, values).astype(np.int64))
        return self.table.build(columns, len(compact), self._fractional)

    @cached_property
    def _matrix_columns(self) -> IntArray | None:
        """If rows are a matrix of doubles, the encoded columns that they consist of; ``None`` otherwise."""
        if not isinstance(self.table, MatrixTable) or self.table.matrix.dtype != np.float64:
            return None
        column_of = {s: f.start + i for f in self.features for i, s in enumerate(f.sources)}
        if any(f.kind != "continuous" and len(f.sources) < 2 for f in self.features):
            return None  # categories that are stored as numbers
        return np.array([column_of[name] for name in self.table.names], dtype=np.int64)

    def codes(self, Z: FloatArray, feature: Feature) -> IntArray:
        """Position of each row's category of ``feature``; -1 for a missing ordinal value."""
        if feature.is_block:
            return np.asarray(Z[:, feature.columns].argmax(axis=1), dtype=np.int64)
        position = Z[:, feature.start]
        return np.where(np.isnan(position), -1, position).astype(np.int64)

    def block_codes(self, Z: FloatArray) -> IntArray:
        """Position of each row's category in each block: ``(n, blocks)``."""
        out = np.empty((len(Z), len(self.blocks)), dtype=np.int64)
        for i, f in enumerate(self.blocks):
            out[:, i] = self.codes(Z, f)
        return out

    def round(self, Z: FloatArray) -> FloatArray:
        """Round a matrix to a valid one: one-hot blocks, ranges, whole numbers, ordinal positions.

        The largest column of a block becomes 1; the first of equal ones wins. Along a ray, where a block keeps its
        value at a tie, use :func:`globece.rays.positions`.
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
        return check_matrix("Z", Z, self.width)

    # -- directions ----------------------------------------------------------------------------------------------

    def check_directions(self, directions: Any) -> FloatArray:
        """Return directions as a matrix, one per row, if they satisfy the space's constraints; otherwise raise."""
        D = check_rows("directions", directions)
        if D.shape[1] != self.width:
            raise InvalidDirectionError(f"a direction has {self.width} entries here; got an array of shape {D.shape}")
        if not np.isfinite(D).all():
            raise InvalidDirectionError(f"direction {int((~np.isfinite(D)).any(axis=1).argmax())} is not finite")
        wrong = ~D.any(axis=1)
        for f in self.features:
            if not f.can_move:
                wrong |= D[:, f.columns].any(axis=1)
            elif f.sense:
                wrong |= f.sense * D[:, f.start] < 0
        if wrong.any():
            i = int(wrong.argmax())
            raise InvalidDirectionError(f"direction {i} {self._direction_problem(D[i])}")
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


# -- helpers: each turns one constraint into fields of a Feature --------------------------------------------------


def _sense(feature: Feature, sense: int) -> int:
    if feature.is_block:
        raise InvalidParameterError(
            f"{'increasing' if sense > 0 else 'decreasing'} names {feature.name!r}, whose categories have no order; "
            "declare it ordinal, or say which categories are permitted"
        )
    if feature.sense and feature.sense != sense:
        raise InvalidParameterError(f"{feature.name!r} may only rise and only fall; use immutable for no movement")
    return sense


def _range(feature: Feature, given: Any, holds: NumberType) -> tuple[float, float]:
    if feature.kind != "continuous":
        raise InvalidParameterError(f"ranges names {feature.name!r}, which is {feature.kind}; use permitted instead")
    if isinstance(given, str) and given == UNBOUNDED:
        return holds.span
    called = f"ranges[{feature.name!r}]"
    if not isinstance(given, (list, tuple, np.ndarray)) or len(given) != 2:
        raise wrong(called, f"(low, high) or {UNBOUNDED!r}", given)
    low, high = (check_number(called, end, low=-np.inf, infinite=True) for end in given)
    if not low <= high:
        raise InvalidParameterError(f"{called} must have low <= high; got {describe(given)}")
    low, high = (holds.span[0] if low == -np.inf else low), (holds.span[1] if high == np.inf else high)
    wide = (low != -np.inf and low < holds.low) or (high != np.inf and high > holds.high)
    if wide or high < holds.low or low > holds.high:
        raise InvalidParameterError(
            f"{called} is {describe(given)}, but the column has type {holds.name}, which holds numbers from "
            f"{holds.low:.17g} to {holds.high:.17g}; choose a range within, or give the column a wider type"
        )
    inside = (float(np.ceil(low)), float(np.floor(high))) if feature.whole else holds.inward(low, high)
    if inside[0] > inside[1]:
        what = "whole number" if feature.whole else f"number of type {holds.name}"
        raise InvalidParameterError(f"{called} must hold a {what}; got {describe(given)}")
    return inside


def _permitted(feature: Feature, given: Sequence[Any]) -> dict[str, Any]:
    if feature.kind == "continuous":
        raise InvalidParameterError(f"permitted names {feature.name!r}, which is continuous; use ranges instead")
    allowed = f"a list of some of {feature.categories[:50]}"
    listed = {feature.index(c) for c in check_list(f"permitted[{feature.name!r}]", given, allowed)}
    if None in listed:
        raise wrong(f"permitted[{feature.name!r}]", allowed, given)
    flags = tuple(i in listed for i in range(len(feature.categories)))
    if feature.is_block:
        return {"permitted": flags}
    chosen = np.flatnonzero(flags)
    if not chosen.size or np.ptp(chosen) != chosen.size - 1:
        raise InvalidParameterError(
            f"permitted[{feature.name!r}] must be consecutive values of {list(feature.categories)}; "
            f"got {describe(given)}"
        )
    return {"permitted": flags, "low": float(chosen[0]), "high": float(chosen[-1])}


__all__ = ["UNBOUNDED", "BoolArray", "Feature", "FeatureSpace", "FloatArray", "IntArray", "Kind"]
