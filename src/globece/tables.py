"""The user's rows: one small interface over frames of any library and over matrices.

Frames go through narwhals; only the last step of building a frame, where a column gets its *native* type back (a pandas
categorical with its categories, a nullable integer), uses the frame library itself.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from globece.errors import InvalidDataError, InvalidParameterError, describe, require
from globece.numbertypes import NumberType

EXPLAINED = "numbers, text, booleans and categories are supported: convert it to one of these, or drop it"
# A column to build: numbers, or (categories, codes) with code -1 for a missing value.
Column = Any


class Table(Protocol):
    """Rows as the user gave them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers."""
        ...

    def is_integer(self, name: str) -> bool:
        """Whether a column's type holds whole numbers only."""
        ...

    def number_type(self, name: str) -> NumberType:
        """Type of a numeric column."""
        ...

    def declared_order(self, name: str) -> tuple[Any, ...] | None:
        """Order of the categories, where the column's type declares one."""
        ...

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Values as float64, missing ones as NaN."""
        ...

    def categories(self, name: str) -> tuple[Any, ...]:
        """Distinct values, sorted, ``None`` last if any value is missing."""
        ...

    def codes(self, name: str, categories: Sequence[Any]) -> tuple[NDArray[np.int64], list[Any]]:
        """Position of each value among ``categories``, -1 for a missing one without a category; and unknown values."""
        ...

    def check_categories(self, name: str, categories: tuple[Any, ...]) -> None:
        """Raise if such a column cannot be built from these categories."""
        ...

    def empty(self) -> Table:
        """Return the same table without its rows, which is enough to build such tables."""
        ...

    def build(self, columns: Mapping[str, Column], n_rows: int, fractional: Collection[str] = ()) -> Any:
        """Build native rows of this type from numbers and codes.

        Columns named as fractional become doubles; the others keep their type, and a number that it cannot hold is an
        error.
        """
        ...

    def like(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        """Make a frame of the same library; where the kind is a matrix, of the first library that is installed."""
        ...

    def describe(self) -> dict[str, Any]:
        """Type and column names, for result files; :mod:`globece.io.native` adds the native types of a frame."""
        ...


def read_table(X: Any, *, columns: Sequence[str] | None = None) -> Table:
    """Wrap the user's rows as a :class:`Table`, without copying them.

    >>> import numpy as np
    >>> read_table(np.zeros((2, 3))).names
    ('x0', 'x1', 'x2')
    """
    if isinstance(X, (FrameTable, MatrixTable)):
        return X
    if isinstance(X, np.ndarray):
        return _matrix(X, columns)
    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError as error:
        hint = "; collect() a lazy frame first" if hasattr(X, "collect") else ""
        raise InvalidDataError(
            f"X must be a pandas, Polars or PyArrow frame, or a NumPy matrix; got {type(X).__name__}{hint}"
        ) from error
    except ValueError as error:
        # narwhals rejects duplicate column names of pandas frames
        raise InvalidDataError(f"the frame cannot be read: {error}") from error
    names = list(frame.columns)
    repeated = sorted({str(n) for n in names if names.count(n) > 1})
    if repeated:
        raise InvalidDataError(f"column names must be unique; {repeated} occur more than once")
    odd = [n for n in names if not isinstance(n, str)]
    if odd:
        raise InvalidDataError(f"column names must be strings; got {odd[:5]}")
    return FrameTable(frame)


def _matrix(X: NDArray[Any], columns: Sequence[str] | None) -> MatrixTable:
    if isinstance(X, (np.matrix, np.ma.MaskedArray)):
        hint = "X.filled(np.nan)" if np.ma.isMaskedArray(X) else "np.asarray(X)"
        raise InvalidDataError(f"X must be a plain NumPy matrix; got {type(X).__name__}; pass {hint}")
    if X.ndim != 2:
        raise InvalidDataError(f"a matrix has two dimensions; got an array of shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise InvalidDataError(f"a matrix must hold numbers; got dtype {X.dtype}; pass a frame for mixed columns")
    if columns is not None and (isinstance(columns, str) or not isinstance(columns, Collection)):
        raise InvalidParameterError(f"columns must be a list of names; got {describe(columns)}")
    names = tuple(columns) if columns is not None else tuple(f"x{i}" for i in range(X.shape[1]))
    odd = [n for n in names if not isinstance(n, str)]
    if odd:
        raise InvalidDataError(f"column names must be strings; got {odd[:5]}")
    if len(names) != X.shape[1]:
        raise InvalidDataError(f"the matrix has {X.shape[1]} columns; {len(names)} were expected: {list(names)[:20]}")
    if len(set(names)) != len(names):
        raise InvalidDataError(f"column names must be unique; got {list(names)}")
    return MatrixTable(X, names)


@dataclass(frozen=True, slots=True)
class MatrixTable:
    """A NumPy matrix with names for its columns."""

    matrix: NDArray[Any]
    names: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        return len(self.matrix)

    def _values(self, name: str) -> NDArray[Any]:
        values: NDArray[Any] = self.matrix[:, self.names.index(name)]
        return values

    def is_numeric(self, name: str) -> bool:
        return self.matrix.dtype.kind != "b"

    def is_integer(self, name: str) -> bool:
        return self.matrix.dtype.kind in "iu"

    def number_type(self, name: str) -> NumberType:
        return NumberType.of(self.matrix.dtype.name, nullable=False)

    def declared_order(self, name: str) -> tuple[Any, ...] | None:
        return None

    def numbers(self, name: str) -> NDArray[np.float64]:
        return self._values(name).astype(np.float64)

    def categories(self, name: str) -> tuple[Any, ...]:
        values = self._values(name)
        present = values[values == values]
        return (*np.unique(present).tolist(), *([None] if present.size < values.size else []))

    def codes(self, name: str, categories: Sequence[Any]) -> tuple[NDArray[np.int64], list[Any]]:
        values = self._values(name)
        return _look_up(values.tolist(), values != values, categories)

    def check_categories(self, name: str, categories: tuple[Any, ...]) -> None:
        pass

    def empty(self) -> MatrixTable:
        return MatrixTable(self.matrix[:0], self.names)

    def build(self, columns: Mapping[str, Column], n_rows: int, fractional: Collection[str] = ()) -> NDArray[Any]:
        dtype = np.dtype(np.float64) if fractional else self.matrix.dtype
        out = np.empty((n_rows, len(self.names)), dtype=dtype)
        holds = NumberType.of(dtype.name, nullable=False)
        for i, name in enumerate(self.names):
            column = columns[name]
            if isinstance(column, tuple):
                out[:, i] = _categories_as(dtype, column[0], name)[column[1]]  # -1, a missing value, is the last
            else:
                holds.check(column, name)
                out[:, i] = column
        return out

    def like(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        backend: Any = next((name for name in ("pandas", "polars", "pyarrow") if find_spec(name)), None)
        if backend is None:
            require("pandas", extra="frames", caller="a frame of a matrix's results")
        return nw.from_dict(dict(columns), backend=backend).to_native()

    def describe(self) -> dict[str, Any]:
        return {"kind": "matrix", "dtype": str(self.matrix.dtype), "columns": list(self.names)}


@dataclass(frozen=True, slots=True)
class FrameTable:
    """A frame of any library that narwhals supports."""

    frame: nw.DataFrame[Any]
    # Native columns with each category once: rows are built by taking from them.
    palettes: dict[tuple[str, tuple[Any, ...]], Any] = field(default_factory=dict, repr=False, compare=False)
    # Types of columns, types of numbers and empty columns of them: to look these up takes longer than to convert a few
    # rows, and the frame builds its whole schema anew for each.
    dtypes: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    types: dict[str, tuple[NumberType, nw.Series[Any]]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.frame.columns)

    @property
    def n_rows(self) -> int:
        return len(self.frame)

    def _dtype(self, name: str) -> Any:
        if not self.dtypes:
            self.dtypes.update(self.frame.schema)
        return self.dtypes[name]

    def is_numeric(self, name: str) -> bool:
        dtype, native = self._dtype(name), _native_type(self.frame[name])
        if dtype.is_numeric() or (isinstance(native, np.dtype) and native.kind in "iuf"):  # any byte order
            return True
        if str(native).startswith("decimal"):  # Arrow's decimals of any width
            return True
        if dtype in (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Object, nw.Unknown):
            self._refuse_odd(name)
            return False
        raise InvalidDataError(f"column {name!r} has type {dtype}; {EXPLAINED}")

    def _refuse_odd(self, name: str) -> None:
        native = str(_native_type(self.frame[name]))
        if native.startswith(("complex", ">c")):
            raise InvalidDataError(f"column {name!r} has type {native}; {EXPLAINED}")
        if native.startswith("Sparse"):
            raise InvalidDataError(
                f"column {name!r} is sparse (type {native}); make it dense with X[{name!r}].sparse.to_dense()"
            )

    def is_integer(self, name: str) -> bool:
        native = _native_type(self.frame[name])
        return self._dtype(name).is_integer() or (isinstance(native, np.dtype) and native.kind in "iu")

    def number_type(self, name: str) -> NumberType:
        return self._typed(name)[0]

    def _typed(self, name: str) -> tuple[NumberType, nw.Series[Any]]:
        """The type of a column of numbers, and the column without its rows."""
        if name not in self.types:
            series = self.frame[name]
            native = _native_type(series)
            if isinstance(native, np.dtype):
                found = NumberType.of(native.name, nullable=False)
            else:
                found = NumberType.of(str(native if series.dtype == nw.Unknown else series.dtype))
            self.types[name] = (found, series.head(0))
        return self.types[name]

    def declared_order(self, name: str) -> tuple[Any, ...] | None:
        dtype = _native_type(self.frame[name])
        if getattr(dtype, "ordered", False) is True and hasattr(dtype, "categories") and len(dtype.categories) > 1:
            return tuple(dtype.categories.tolist())
        return None

    def numbers(self, name: str) -> NDArray[np.float64]:
        series = self.frame[name]
        if not (self._dtype(name) == nw.Boolean or self.is_numeric(name)):
            raise InvalidDataError(f"column {name!r} must hold numbers; it has type {self._dtype(name)}")
        known = series.dtype.is_numeric() or series.dtype == nw.Boolean
        try:
            values = series.cast(nw.Float64).to_numpy() if known else series.to_numpy()
        except Exception:  # Arrow refuses to round large integers, with various errors
            values = np.array([np.nan if v is None else float(v) for v in series.to_list()])
        if values.dtype != np.float64:  # a nullable column may be converted to objects
            values = np.array([np.nan if v is None or v is not v else v for v in values], dtype=np.float64)
        return np.array(values, dtype=np.float64)

    def categories(self, name: str) -> tuple[Any, ...]:
        self._refuse_odd(name)
        series = self.frame[name]
        missing = _missing(series)
        present = [v for v, m in zip(_values(series), missing.tolist(), strict=True) if not m]
        distinct = _distinct(present, name, typed=series.dtype == nw.Object)
        try:
            ordered = sorted(distinct)
        except TypeError:  # values of different types have no common order
            ordered = sorted(distinct, key=lambda v: (type(v).__name__, str(v)))
        return (*ordered, *([None] if missing.any() else []))

    def codes(self, name: str, categories: Sequence[Any]) -> tuple[NDArray[np.int64], list[Any]]:
        series = self.frame[name]
        if series.dtype == nw.String and (encoded := _each_once(series)) is not None:
            codes, unknown = _look_up(encoded[1], np.zeros(len(encoded[1]), dtype=bool), categories)
            absent = next((i for i, c in enumerate(categories) if c is None), -1)
            return np.append(codes, absent)[encoded[0]], unknown
        values, missing = _values(series), _missing(series)
        if series.dtype != nw.Object:
            return _look_up(values, missing, categories)
        # 1, True and 1.0 are equal, and different to a model: objects are looked up with their types
        _distinct([v for v, m in zip(values, missing.tolist(), strict=True) if not m], name)
        codes, unknown = _look_up(
            [_typed(v) for v in values], missing, [None if c is None else _typed(c) for c in categories]
        )
        return codes, [v for _, v in unknown]

    def check_categories(self, name: str, categories: tuple[Any, ...]) -> None:
        series = self.frame[name]
        try:
            _take(self._palette(name, categories), np.arange(len(categories)), series.to_native())
        except Exception as error:
            raise InvalidDataError(
                f"column {name!r} has type {_native_type(series)}, which cannot be built again "
                f"({type(error).__name__}: {error}); {EXPLAINED}"
            ) from error

    def empty(self) -> FrameTable:
        return FrameTable(self.frame.head(0))

    def build(self, columns: Mapping[str, Column], n_rows: int, fractional: Collection[str] = ()) -> Any:
        built = {}
        for name in self.names:
            column = columns[name]
            if isinstance(column, tuple):
                built[name] = _take(self._palette(name, column[0]), column[1], self.frame[name].to_native())
            else:
                whole, (kind, like) = name not in fractional, self._typed(name)
                if whole:
                    kind.check(column, name)
                built[name] = _numbers_like(like, column, keep_type=whole)
        native = self.frame.to_native()
        return sys.modules["pyarrow"].table(built) if self.frame.implementation.is_pyarrow() else type(native)(built)

    def _palette(self, name: str, categories: tuple[Any, ...]) -> Any:
        key = (name, categories)
        if key not in self.palettes:
            self.palettes[key] = _palette_like(self.frame[name], categories)
        return self.palettes[key]

    def like(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        return nw.from_dict(dict(columns), backend=self.frame.implementation).to_native()

    def describe(self) -> dict[str, Any]:
        return {"kind": "frame", "backend": str(self.frame.implementation), "columns": list(self.names)}


def _native_type(series: nw.Series[Any]) -> Any:
    """A column's native type."""
    native = series.to_native()
    return native.type if series.implementation.is_pyarrow() else native.dtype


def _missing(series: nw.Series[Any]) -> NDArray[np.bool_]:
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    if series.dtype.is_float():
        missing = missing | np.isnan(np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64))
    if series.dtype == nw.Object:
        missing = missing | np.array([isinstance(v, float) and v != v for v in _values(series)], dtype=bool)
    return missing


def _values(series: nw.Series[Any]) -> list[Any]:
    """The values of a column as plain Python objects, without NumPy scalars."""
    if series.dtype not in (nw.Object, nw.Unknown):
        return series.to_list()
    return [v.item() if isinstance(v, np.generic) else v for v in series.to_list()]


def _each_once(series: nw.Series[Any]) -> tuple[NDArray[np.int64], list[str]] | None:
    """A column of text as positions in a list of its values, -1 for a missing one; ``None`` where that is not quick."""
    native = series.to_native()
    if series.implementation.is_pyarrow() and native.nbytes < 2**31:  # more does not fit in one chunk
        encoded = native.combine_chunks().dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return codes.astype(np.int64), encoded.dictionary.to_pylist()
    if series.implementation.is_pandas():
        codes, values = native.factorize()
        return codes.astype(np.int64), values.tolist()
    return None


def _distinct(values: list[Any], name: str, *, typed: bool = True) -> set[Any]:
    """The distinct values of a column; raise if they cannot be categories, or are equal but of different types."""
    try:
        distinct = set(values)
        n_typed = len({_typed(v) for v in values}) if typed else len(distinct)
    except Exception as error:  # lists, dictionaries and sets cannot be hashed, and other objects may raise anything
        kinds = sorted({type(v).__name__ for v in values})[:5]
        raise InvalidDataError(
            f"column {name!r} holds values that cannot be categories (of type {', '.join(kinds)}: {error}); {EXPLAINED}"
        ) from error
    if len(distinct) < n_typed:
        of_type = {key: v for key, v in zip(map(_typed, values), values, strict=True)}
        first = next(v for v in of_type.values() if sum(v == w for w in of_type.values()) > 1)
        same = sorted(f"{w!r} ({type(w).__name__})" for w in of_type.values() if w == first)
        raise InvalidDataError(
            f"column {name!r} holds values that are equal but of different types: {', '.join(same)}; "
            "they may not be the same to a model: convert the column to one type"
        )
    return distinct


def _typed(value: Any) -> tuple[type, Any]:
    """A value with its type, so that 1, True and 1.0 differ."""
    if isinstance(value, tuple):
        return type(value), tuple(map(_typed, value))
    if isinstance(value, frozenset):
        raise TypeError("sets cannot be sorted")
    return type(value), value


def _look_up(
    values: list[Any], missing: NDArray[np.bool_], categories: Sequence[Any]
) -> tuple[NDArray[np.int64], list[Any]]:
    index = {c: i for i, c in enumerate(categories)}
    absent = index.get(None, -1)
    # -2 marks a value that is not among the categories
    codes = np.fromiter(
        (absent if m else index.get(v, -2) for v, m in zip(values, missing, strict=True)), np.int64, len(values)
    )
    unknown = list(dict.fromkeys(values[i] for i in np.flatnonzero(codes == -2)[:1000]))
    return codes, unknown


def _palette_like(like: nw.Series[Any], categories: Sequence[Any]) -> Any:
    """A native column with each category once and a missing value last, with the native type of ``like``.

    For pandas it is the array, which has no index; NumPy's booleans and integers have no missing value.
    """
    native, values = like.to_native(), [*categories, None]
    if like.implementation.is_pandas_like():
        plain = isinstance(native.dtype, np.dtype) and native.dtype.kind in "biu"
        return type(native)(values[:-1] if plain else values, dtype=native.dtype).array
    if like.implementation.is_polars():
        return type(native)(like.name, values, dtype=native.dtype)
    pa = sys.modules["pyarrow"]
    return pa.chunked_array([pa.array(values, type=native.type)])


def _take(palette: Any, codes: NDArray[np.int64], like: Any) -> Any:
    indices = codes % len(palette)  # code -1, a missing value, takes the last
    taken = palette.gather(indices) if hasattr(palette, "gather") else palette.take(indices)
    # pandas would infer a text type from plain objects
    return type(like)(taken, dtype=object) if getattr(like, "dtype", None) == np.dtype(object) else taken


def _numbers_like(like: nw.Series[Any], values: NDArray[np.float64], *, keep_type: bool) -> Any:
    """A native column of these numbers with the native type of ``like``, or of doubles."""
    native = like.to_native()
    if like.implementation.is_pandas_like():
        if isinstance(native.dtype, np.dtype):
            return values.astype(native.dtype if keep_type else np.float64)
        series = type(native)(values.copy())
        return series.astype(native.dtype) if keep_type else series
    if like.implementation.is_polars():
        series = type(native)(like.name, values, nan_to_null=True)
        return series.cast(native.dtype) if keep_type else series
    pa = sys.modules["pyarrow"]
    array = pa.array(values, mask=np.isnan(values))
    return pa.chunked_array([array.cast(native.type) if keep_type else array])


def _categories_as(dtype: np.dtype[Any], categories: Sequence[Any], name: str) -> NDArray[Any]:
    """Categories as numbers of a matrix, with NaN as the last one if the type allows it."""
    listed = [np.nan if c is None else c for c in categories]
    values = np.array([*listed, np.nan] if dtype.kind == "f" else listed, dtype=dtype)
    lost = [c for c, v in zip(listed, values.tolist(), strict=False) if c == c and c != v]
    if lost:
        raise InvalidDataError(f"column {name!r} has category {lost[0]!r}, which a matrix of {dtype} cannot hold")
    return values
