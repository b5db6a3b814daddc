"""Random tables: every type of column of every kind of frame, at scales and offsets where numbers go wrong.

A table is kept twice: as plain values (numbers with NaN, or objects with None), from which the oracle works, and as the
native frame or matrix that the user would have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

Kind = Literal["number", "whole", "category", "ordinal"]
Values = Mapping[str, NDArray[Any]]

# Types by backend and kind. A matrix has one type for all of its columns.
TYPES: dict[str, dict[Kind, tuple[str, ...]]] = {
    "pandas": {
        "number": ("float64", "float64", "float32", "float16", "Float64", "Float32", "double[pyarrow]"),
        "whole": ("int64", "int32", "int16", "int8", "uint8", "uint16", "Int64", "Int8", "UInt8", "int64[pyarrow]"),
        "category": ("object", "str", "category", "bool", "boolean", "mixed", "codes", "onehot"),
        "ordinal": ("category", "object", "codes"),
    },
    "polars": {
        "number": ("Float64", "Float64", "Float32"),
        "whole": ("Int64", "Int32", "Int16", "Int8", "UInt8", "UInt32"),
        "category": ("String", "Categorical", "Enum", "Boolean", "codes", "onehot"),
        "ordinal": ("String", "codes"),
    },
    "pyarrow": {
        "number": ("double", "float", "halffloat"),
        "whole": ("int64", "int32", "int16", "int8", "uint8"),
        "category": ("string", "dictionary", "bool", "codes"),
        "ordinal": ("string", "codes"),
    },
    "matrix": {
        "number": ("float64", "float64", "float64", "float32", "float32", "float16"),
        "whole": ("int64", "int32", "int8", "uint8"),
        "category": ("onehot", "codes"),
        "ordinal": ("codes",),
    },
}
NULLABLE = ("Float64", "Float32", "Int64", "Int8", "UInt8", "boolean")
FRACTIONS: dict[str, Any] = {"float32": np.float32, "Float32": np.float32, "float": np.float32}
FRACTIONS |= {"float16": np.float16, "halffloat": np.float16}
WORDS = ("own", "rent", "free", "low", "mid", "high", "a", "b", "c", "=x", "</b>", "", "ß", "none", "1", "True")


@dataclass(frozen=True)
class Column:
    """One feature in the user's words.

    Attributes
    ----------
    name, kind
        Its name, and what it is: a number, a whole number, a category or an ordinal value.
    type
        The backend's name for its type; ``"codes"`` are categories kept as whole numbers, ``"onehot"`` several columns.
    values
        Numbers with NaN, or objects with None for a missing one.
    levels
        Categories, in order.
    """

    name: str
    kind: Kind
    type: str
    values: NDArray[Any]
    levels: tuple[Any, ...] = ()

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers that can move by any amount, or by whole steps."""
        return self.kind in ("number", "whole")

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which values are missing."""
        return np.asarray(pd.isna(self.values))

    def narrow(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers as the column's own type holds them."""
        kind = FRACTIONS.get(self.type)
        return values if kind is None else values.astype(kind).astype(np.float64)

    @property
    def limits(self) -> tuple[float, float]:
        """Smallest and largest number that its type holds."""
        name = self.type.lower().removesuffix("[pyarrow]")
        if name.startswith(("int", "uint")):
            return float(np.iinfo(name).min), float(np.iinfo(name).max)
        kind = np.finfo(FRACTIONS.get(self.type, np.float64))
        return float(kind.min), float(kind.max)

    def ulp(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distance between neighbouring numbers of the column's type around these."""
        return np.spacing(np.abs(values).astype(FRACTIONS.get(self.type, np.float64))).astype(np.float64)


@dataclass(frozen=True)
class Table:
    """Rows: plain values by feature, and how to make native rows of them."""

    backend: str
    dtype: str  # of a matrix
    columns: tuple[Column, ...]
    y: NDArray[np.bool_]

    def __getitem__(self, name: str) -> Column:
        return next(c for c in self.columns if c.name == name)

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def values(self) -> dict[str, NDArray[Any]]:
        return {c.name: c.values for c in self.columns}

    @property
    def X(self) -> Any:
        """The native rows."""
        return self.rows(self.values)

    def sources(self, column: Column) -> list[str]:
        """Names of the native columns that hold a feature."""
        if column.type != "onehot":
            return [column.name]
        return [f"{column.name} = {level}" for level in column.levels]

    @property
    def names(self) -> list[str]:
        """Names of all native columns."""
        return [s for c in self.columns for s in self.sources(c)]

    def rows(self, values: Values) -> Any:
        """Native rows with these values."""
        parts: dict[str, tuple[Column, NDArray[Any]]] = {}
        for c in self.columns:
            if c.type == "onehot":
                parts |= {
                    s: (c, (values[c.name] == level).astype(np.float64))
                    for s, level in zip(self.sources(c), c.levels, strict=True)
                }
            else:
                parts[c.name] = (c, values[c.name])
        if self.backend == "matrix":
            return self._matrix(list(parts.values()))
        make = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow}[self.backend]
        columns = {name: make(c, v) for name, (c, v) in parts.items()}
        frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[self.backend]
        return frame(columns)

    def _matrix(self, parts: list[tuple[Column, NDArray[Any]]]) -> NDArray[Any]:
        numbers = [v.astype(np.float64) for _, v in parts]
        dtype = np.dtype(self.dtype)
        fits = dtype.kind == "f" or all((np.rint(v) == v).all() for v in numbers)
        return np.column_stack(numbers).astype(dtype if fits else np.float64)

    def described(self) -> str:
        """The table in a line per column."""
        lines = [f"{self.backend} {self.dtype} {self.n_rows} rows, {self.y.mean():.0%} positive"]
        for c in self.columns[:20]:
            shown = list(c.levels[:8]) if c.levels else [float(np.nanmin(c.values)), float(np.nanmax(c.values))]
            lines.append(f"  {c.name}: {c.kind} as {c.type}, {int(c.missing.sum())} missing, {shown}")
        return "\n".join(lines)


def draw(rng: np.random.Generator, *, large: bool = False) -> Table:
    """A random table: small more often than not, since what fails in a large one nearly always fails in a small one."""
    backend = str(rng.choice(["pandas", "polars", "pyarrow", "matrix"], p=[0.52, 0.11, 0.04, 0.33]))
    dtype = ""
    if backend == "matrix":
        dtype = str(rng.choice([*TYPES["matrix"]["number"], *TYPES["matrix"]["whole"][:3], "uint8", "bool"]))
    shape = rng.random()
    if shape < 0.04:
        n = int(rng.integers(3, 9))
    else:
        n = int(rng.integers(20, 250))
        n = n if large else round(10 * 20 ** ((n - 20) / 230))
    width = int(rng.integers(60, 200)) if shape > 0.97 else int(rng.integers(1, 8))
    columns = tuple(_column(rng, f"f{i}", backend, dtype, n) for i in range(width))
    if rng.random() < 0.15:  # a column twice
        twice = columns[int(rng.integers(width))]
        columns += (Column("again", twice.kind, twice.type, twice.values, twice.levels),)
    if rng.random() < 0.15:  # rows twice
        again = rng.integers(0, n, n)
        columns = tuple(Column(c.name, c.kind, c.type, c.values[again], c.levels) for c in columns)
    return Table(backend, dtype, columns, _labels(rng, columns, n))


def _column(rng: np.random.Generator, name: str, backend: str, dtype: str, n: int) -> Column:
    kinds: tuple[Kind, ...] = ("number", "whole", "category", "ordinal")
    kind = kinds[int(rng.choice(4, p=[0.5, 0.17, 0.25, 0.08]))]
    if dtype == "bool":
        return _categories(rng, name, "category", "bool", n, False)
    if dtype and np.dtype(dtype).kind in "iu" and kind == "number":
        kind = "whole"
    type_ = str(rng.choice(TYPES[backend][kind]))
    if backend == "matrix" and kind in ("number", "whole"):
        type_ = dtype
    gaps = rng.random() < 0.15
    if kind == "number":
        return Column(name, kind, type_, _numbers(rng, type_, n, gaps))
    if kind == "whole":
        nullable = type_ in NULLABLE or backend in ("polars", "pyarrow") or type_.endswith("[pyarrow]")
        return Column(name, kind, type_, _wholes(rng, type_, n, gaps and nullable))
    return _categories(rng, name, kind, type_, n, gaps and backend != "matrix")


def _numbers(rng: np.random.Generator, type_: str, n: int, gaps: bool) -> NDArray[np.float64]:
    base = [rng.normal(size=n), rng.lognormal(size=n), rng.uniform(-1, 1, n), np.round(rng.normal(size=n), 1)]
    values = base[int(rng.integers(4))]
    if rng.random() < 0.04:
        values = np.full(n, values[0])
    digits = {np.float32: 5.0, np.float16: 2.0, None: 8.0}[FRACTIONS.get(type_)]
    if rng.random() < 0.35:
        values = values + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-8, digits)
    if rng.random() < 0.35:
        values = values * 10.0 ** rng.uniform(-0.5 * digits, 0.5 * digits)
    values = Column("", "number", type_, values).narrow(values)
    if gaps:
        values = np.where(rng.random(n) < rng.choice([0.05, 0.4]), np.nan, values)
        values[0] = 1.0 if np.isnan(values).all() else values[0]
    return values


def _wholes(rng: np.random.Generator, type_: str, n: int, gaps: bool) -> NDArray[np.float64]:
    name = type_.lower().removesuffix("[pyarrow]")
    info = np.iinfo(name if name.startswith(("int", "uint")) else "int16")
    kinds = [(0, 7), (18, 90), (0, 1), (1990, 2030), (-50, 50), (info.min, info.max)]
    low, high = kinds[int(rng.choice(6, p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1]))]
    low, high = max(low, info.min), min(high, info.max)
    if low >= high:
        low, high = 0, 7
    if high > 2**53:  # beyond what a double can count
        low, high = -(2**40), 2**40
    values = rng.integers(low, high, n, endpoint=True).astype(np.float64)
    values = np.rint(Column("", "whole", type_, values).narrow(values))
    if gaps:
        values = np.where(rng.random(n) < 0.1, np.nan, values)
        values[0] = 0.0
    return values


def _categories(rng: np.random.Generator, name: str, kind: Kind, type_: str, n: int, gaps: bool) -> Column:
    count = int(rng.integers(2, 6)) if rng.random() < 0.9 else int(rng.integers(20, 60))
    levels: tuple[Any, ...]
    if type_ in ("bool", "boolean", "Boolean"):
        levels = (False, True)
    elif type_ == "mixed":
        levels = ("a", 2, 3.5, "b")[: max(2, min(count, 4))]
    elif type_ == "codes":
        levels = tuple(sorted(rng.choice(np.arange(100), count, replace=False).tolist()))
        gaps = False
    else:
        words = WORDS if count <= len(WORDS) else tuple(f"w{i}" for i in range(count))
        levels = tuple(str(w) for w in rng.choice(words, count, replace=False))
    gaps = gaps and type_ not in ("bool", "onehot", "codes")
    weights = rng.dirichlet(np.full(len(levels), rng.choice([0.3, 3.0])))
    values = np.empty(n, dtype=object)
    values[:] = [levels[i] for i in rng.choice(len(levels), n, p=weights)]
    if gaps:
        values[rng.random(n) < 0.15] = None
    if all(v is None for v in values):
        values[0] = levels[0]
    if kind == "category" and type_ != "onehot":  # levels are those that occur
        levels = tuple(level for level in levels if any(type(v) is type(level) and v == level for v in values))
    return Column(name, kind, type_, values, levels)


def _labels(rng: np.random.Generator, columns: tuple[Column, ...], n: int) -> NDArray[np.bool_]:
    points = 0.3 * rng.normal(size=n)
    for c in columns:
        if c.is_number:
            z = np.nan_to_num((c.values - np.nanmean(c.values)) / (np.nanstd(c.values) or 1.0))
        else:
            effect = dict(zip([*map(repr, c.levels), "None"], rng.normal(size=len(c.levels) + 1), strict=True))
            z = np.array([effect.get(repr(v), 0.0) for v in c.values])
        points += rng.normal() * (z if rng.random() < 0.8 else z * z)
    y = points > np.quantile(points, rng.choice([0.1, 0.5, 0.7, 0.93]))
    y[int(points.argmax())], y[int(points.argmin())] = True, False
    return np.asarray(y)


def _pandas(column: Column, values: NDArray[Any]) -> Any:
    type_ = {"mixed": "object", "codes": "int64", "onehot": "float64"}.get(column.type, column.type)
    if not column.is_number and column.type != "onehot":
        if type_ == "category":
            return pd.Series(pd.Categorical(values, categories=list(column.levels), ordered=column.kind == "ordinal"))
        return pd.Series(list(values), dtype=type_)
    whole = bool((np.rint(values) == values)[~np.isnan(values)].all())
    if column.kind == "whole" and not whole:
        return pd.Series(values)
    if type_ in NULLABLE or type_.endswith("[pyarrow]"):
        made = pd.array([None if np.isnan(v) else (int(v) if column.kind == "whole" else v) for v in values], type_)
        return pd.Series(made)
    return pd.Series(values.astype(type_))


def _polars(column: Column, values: NDArray[Any]) -> Any:
    if column.is_number or column.type in ("codes", "onehot"):
        name = {"codes": "Int64", "onehot": "Float64"}.get(column.type, column.type)
        plain = [None if np.isnan(v) else float(v) for v in values.astype(np.float64)]
        whole = all(v is None or v == int(v) for v in plain)
        series = pl.Series(plain, dtype=pl.Float64)
        return series if column.kind == "whole" and not whole else series.cast(getattr(pl, name))
    kind = pl.Enum(list(column.levels)) if column.type == "Enum" else getattr(pl, column.type)
    return pl.Series(list(values), dtype=kind)


def _pyarrow(column: Column, values: NDArray[Any]) -> Any:
    kinds = {"double": pa.float64(), "float": pa.float32(), "halffloat": pa.float16(), "string": pa.string()}
    kinds |= {f"{u}int{b}": getattr(pa, f"{u}int{b}")() for u in ("", "u") for b in (8, 16, 32, 64)}
    if column.is_number or column.type == "codes":
        plain = values.astype(np.float64)
        array = pa.array(plain, mask=np.isnan(plain))
        whole = bool((np.rint(plain) == plain)[~np.isnan(plain)].all())
        if column.kind == "whole" and not whole:
            return array
        if column.type == "halffloat":
            return pa.array(plain.astype(np.float16), mask=np.isnan(plain))
        return array.cast(pa.int64() if column.type == "codes" else kinds[column.type])
    if column.type == "bool":
        return pa.array(list(values), pa.bool_())
    text = pa.array(list(values), pa.string())
    return text.dictionary_encode() if column.type == "dictionary" else text
