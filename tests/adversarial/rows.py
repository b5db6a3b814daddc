"""Native rows, whatever they are: some of them, their values, their types, the same in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from tests.adversarial.tables import Table


def take(X: Any, index: NDArray[np.int64]) -> Any:
    """Some rows, in this order."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[index].reset_index(drop=True)
    return X.take(pa.array(index)) if isinstance(X, pa.Table) else X[index]


def count(X: Any) -> int:
    """How many rows there are."""
    return int(X.num_rows) if isinstance(X, pa.Table) else len(X)


def types(X: Any) -> list[str]:
    """Native types of the columns."""
    if isinstance(X, pd.DataFrame):
        return [str(t) for t in X.dtypes]
    if isinstance(X, np.ndarray):
        return [str(X.dtype)] * X.shape[1]
    return [str(t) for t in (X.dtypes if isinstance(X, pl.DataFrame) else X.schema.types)]


def column(X: Any, name: str, place: int) -> NDArray[Any]:
    """One native column as plain values: objects, with None for what is missing."""
    if isinstance(X, np.ndarray):
        values = X[:, place].tolist()
    else:
        values = X[name].to_list() if not isinstance(X, pa.Table) else X[name].to_pylist()
    out = np.empty(len(values), dtype=object)
    out[:] = [None if v is None or v is pd.NA or v != v else v for v in values]
    return out


def values(table: Table, X: Any) -> dict[str, NDArray[Any]]:
    """Native rows as plain values by feature: the other way of :meth:`Table.rows`."""
    names = table.names
    out = {}
    for c in table.columns:
        parts = [column(X, s, names.index(s)) for s in table.sources(c)]
        if c.type == "onehot":
            hot = np.array([p.astype(float) for p in parts])
            assert ((hot == 0) | (hot == 1)).all(), f"{c.name} is not 0 or 1"
            assert (hot.sum(axis=0) == 1).all(), f"{c.name} is not one-hot"
            made = np.empty(len(parts[0]), dtype=object)
            made[:] = [c.levels[i] for i in hot.argmax(axis=0)]
            out[c.name] = made
        elif c.is_number:
            out[c.name] = np.array([np.nan if v is None else float(v) for v in parts[0]])
        else:
            known = np.empty(len(parts[0]), dtype=object)
            known[:] = [_level(c.levels, v) for v in parts[0]]
            out[c.name] = known
    return out


def _level(levels: tuple[Any, ...], value: Any) -> Any:
    """The level that a native value stands for: a matrix of doubles says 5.0 where the level is 5."""
    flag = isinstance(value, (bool, np.bool_))
    return next((k for k in levels if k == value and isinstance(k, (bool, np.bool_)) == flag), value)


def widened(X: Any) -> Any:
    """The same rows with every column of fractions in double precision."""
    if isinstance(X, np.ndarray):
        return X.astype(np.float64)
    if isinstance(X, pd.DataFrame):
        narrow = {n: "float64" for n, t in X.dtypes.items() if str(t) in ("float32", "float16")}
        narrow |= {n: "Float64" for n, t in X.dtypes.items() if str(t) == "Float32"}
        return X.astype(narrow)
    if isinstance(X, pl.DataFrame):
        return X.with_columns(pl.col(pl.Float32).cast(pl.Float64))
    fields = [f.with_type(pa.float64()) if pa.types.is_floating(f.type) else f for f in X.schema]
    return X.cast(pa.schema(fields))


def same(X: Any, Y: Any) -> bool:
    """Whether two sets of native rows are equal, types and missing values included."""
    if isinstance(X, np.ndarray):
        return X.dtype == Y.dtype and np.array_equal(X, Y, equal_nan=X.dtype.kind == "f")
    return bool(X.equals(Y))
