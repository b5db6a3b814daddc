"""Native column types as plain data, and empty tables made of them: how a result file gives back the user's own frame.

A rebuilt table has the library and the column types of the frame that was explained. Where that cannot be had (the
library is not installed, or no longer knows the type), the table is an :class:`AbsentTable`: the explanation still
loads, and only what needs rows in the user's own columns says why it cannot make them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from globece.errors import FileFormatError, GlobeCEError, InvalidDataError, MissingExtraError, require
from globece.io.plain import Node
from globece.numbertypes import NumberType
from globece.tables import Column, FrameTable, MatrixTable, Table

DECIMALS = ("decimal32", "decimal64", "decimal128", "decimal256")


@dataclass(frozen=True, slots=True, eq=False)
class AbsentTable:
    """A table of which only the description is available.

    Attributes
    ----------
    description
        What the file says of it.
    reason
        Why it could not be rebuilt.
    """

    description: dict[str, Any]
    reason: GlobeCEError

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.description["columns"])

    @property
    def n_rows(self) -> int:
        return 0

    def _refuse(self) -> NoReturn:
        raise type(self.reason)(
            "rows cannot be put back into the columns they came from (the rest of the explanation is not concerned): "
            f"{self.reason}"
        )

    def is_numeric(self, name: str) -> bool:
        self._refuse()

    def is_integer(self, name: str) -> bool:
        self._refuse()

    def number_type(self, name: str) -> NumberType:
        described = self.description["types"][self.names.index(name)]
        while isinstance(described.get("of"), dict):
            described = described["of"]
        return NumberType.of(str(described.get("dtype")))

    def declared_order(self, name: str) -> tuple[Any, ...] | None:
        self._refuse()

    def numbers(self, name: str) -> NDArray[np.float64]:
        self._refuse()

    def categories(self, name: str) -> tuple[Any, ...]:
        self._refuse()

    def codes(self, name: str, categories: Sequence[Any]) -> tuple[NDArray[np.int64], list[Any]]:
        self._refuse()

    def check_categories(self, name: str, categories: tuple[Any, ...]) -> None:
        self._refuse()

    def empty(self) -> AbsentTable:
        return self

    def build(self, columns: Mapping[str, Column], n_rows: int, fractional: Collection[str] = ()) -> Any:
        self._refuse()

    def like(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        self._refuse()

    def describe(self) -> dict[str, Any]:
        return self.description


# -- out --------------------------------------------------------------------------------------------------------------


def describe(table: Table) -> dict[str, Any]:
    """Kind, columns and, for a frame, native types of a table."""
    description = table.describe()
    if not isinstance(table, FrameTable):
        return description
    return {**description, "types": [_native(table.frame[name]) for name in table.names]}


def plain_value(value: Any, where: str) -> str | int | float | bool | None:
    """A category as JSON can hold it, its type kept; otherwise raise."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and np.isfinite(value):
        return float(value)
    raise InvalidDataError(
        f"{where} holds {value!r} of type {type(value).__name__}, which a result file cannot hold; "
        "text, finite numbers, booleans and missing values it can: turn the column into text before explaining"
    )


def _native(series: nw.Series[Any]) -> dict[str, Any]:
    native = series.to_native()
    if series.implementation.is_polars():
        return _polars_type(native.dtype)
    if series.implementation.is_pyarrow():
        return _arrow_type(native.type)
    return _pandas_type(native.dtype, f"column {series.name!r}")


def _pandas_type(dtype: Any, where: str) -> dict[str, Any]:
    pd = require("pandas", extra="frames", caller="describing a frame")
    if isinstance(dtype, pd.CategoricalDtype):
        categories = [plain_value(c, where) for c in dtype.categories.tolist()]
        of = _pandas_type(dtype.categories.dtype, where)
        return {"dtype": "category", "ordered": bool(dtype.ordered), "categories": categories, "of": of}
    if isinstance(dtype, pd.StringDtype):
        return {"dtype": "string", "storage": dtype.storage, "missing": "NA" if dtype.na_value is pd.NA else "nan"}
    if isinstance(dtype, pd.ArrowDtype):
        return {"dtype": "arrow", "of": _arrow_type(dtype.pyarrow_dtype)}
    return {"dtype": str(dtype)}


def _polars_type(dtype: Any) -> dict[str, Any]:
    name = dtype.base_type().__name__
    if name == "Enum":
        return {"dtype": name, "categories": dtype.categories.to_list()}
    if name == "Decimal":
        return {"dtype": name, "precision": dtype.precision, "scale": dtype.scale}
    return {"dtype": name}


def _arrow_type(dtype: Any) -> dict[str, Any]:
    pa = require("pyarrow", extra="frames", caller="describing a frame")
    if pa.types.is_dictionary(dtype):
        index, of = _arrow_type(dtype.index_type), _arrow_type(dtype.value_type)
        return {"dtype": "dictionary", "ordered": bool(dtype.ordered), "index": index, "of": of}
    if pa.types.is_decimal(dtype):
        return {"dtype": f"decimal{dtype.bit_width}", "precision": dtype.precision, "scale": dtype.scale}
    return {"dtype": str(dtype)}


# -- back -------------------------------------------------------------------------------------------------------------


def rebuild(node: Node) -> Table:
    """An empty table of the kind described; raise only where the description is not one."""
    if node.key("kind").choice("matrix", "frame") == "matrix":
        return _matrix(node)
    given = node.keys("kind", "backend", "columns", "types")
    backend, names = given["backend"].text(), _names(given["columns"])
    types = given["types"].items(len(names), "column")
    try:
        frame = _frame(backend, dict(zip(names, types, strict=True)))
    except FileFormatError:
        raise
    except MissingExtraError as error:
        return AbsentTable(node.value, error)
    except Exception as error:  # whatever the library objects to, the numbers of the file can still be read
        return AbsentTable(node.value, InvalidDataError(f"{backend} says {type(error).__name__}: {error}"))
    return FrameTable(nw.from_native(frame, eager_only=True))


def _names(node: Node) -> tuple[str, ...]:
    names = node.texts()
    if len(set(names)) != len(names):
        node.fail("different names")
    return names


def tried(table: Table, columns: Mapping[str, Column], n_rows: int) -> Table:
    """The same table if it can build these rows; otherwise one that says why not."""
    if isinstance(table, AbsentTable):
        return table
    try:
        table.build(columns, n_rows)
    except Exception as error:  # as above
        reason = InvalidDataError(f"the categories do not fit the column types ({type(error).__name__}: {error})")
        return AbsentTable(describe(table), reason)
    return table


def _matrix(node: Node) -> MatrixTable:
    given = node.keys("kind", "dtype", "columns")
    dtype, names = given["dtype"], _names(given["columns"])
    try:
        made = np.dtype(dtype.text())
    except (TypeError, ValueError):
        dtype.fail("the name of a NumPy type of numbers")
    if made.kind not in "fiub":
        dtype.fail("the name of a NumPy type of numbers")
    return MatrixTable(np.empty((0, len(names)), dtype=made), names)


def _frame(backend: str, types: Mapping[str, Node]) -> Any:
    if backend not in ("pandas", "polars", "pyarrow"):
        raise InvalidDataError(f"frames of {backend} cannot be rebuilt")
    library = require(backend, extra="frames", caller=f"giving back rows as a {backend} frame")
    if backend == "pandas":
        return library.DataFrame({n: library.Series([], dtype=_to_pandas(library, t)) for n, t in types.items()})
    if backend == "polars":
        return library.DataFrame(schema={n: _to_polars(library, t) for n, t in types.items()})
    return library.schema([(n, _to_arrow(library, t)) for n, t in types.items()]).empty_table()


def _to_pandas(pd: Any, node: Node) -> Any:
    name = node.key("dtype").text()
    if name == "category":
        given = node.keys("dtype", "ordered", "categories", "of")
        values = pd.Index([c.scalar() for c in given["categories"].items()], dtype=_to_pandas(pd, given["of"]))
        return pd.CategoricalDtype(values, ordered=given["ordered"].flag())
    if name == "string":
        given = node.keys("dtype", "storage", "missing")
        return _string_type(pd, given["storage"].text(), given["missing"].choice("NA", "nan"))
    if name == "arrow":
        pa = require("pyarrow", extra="frames", caller="giving back rows as a pandas frame with columns of Arrow")
        return pd.ArrowDtype(_to_arrow(pa, node.keys("dtype", "of")["of"]))
    node.keys("dtype")
    return pd.api.types.pandas_dtype(name)


def _string_type(pd: Any, storage: str, missing: str) -> Any:
    """The type of text, or the nearest there is.

    pandas keeps text in Arrow where that is installed, and before 2.3 text with NaN was a column of objects.
    """
    try:
        return pd.StringDtype(storage) if missing == "NA" else pd.StringDtype(storage, na_value=np.nan)
    except ImportError:
        return _string_type(pd, "python", missing)
    except TypeError:
        return np.dtype(object)


def _to_polars(pl: Any, node: Node) -> Any:
    name = node.key("dtype").text()
    if name == "Enum":
        return pl.Enum(node.keys("dtype", "categories")["categories"].texts())
    if name == "Decimal":
        given = node.keys("dtype", "precision", "scale")
        return pl.Decimal(given["precision"].whole(low=1), given["scale"].whole())
    node.keys("dtype")
    made = getattr(pl, name, None)
    if not (isinstance(made, type) and issubclass(made, pl.DataType)):
        raise InvalidDataError(f"there is no column type {name!r}")
    return made


def _to_arrow(pa: Any, node: Node) -> Any:
    name = node.key("dtype").text()
    if name == "dictionary":
        given = node.keys("dtype", "ordered", "index", "of")
        return pa.dictionary(_to_arrow(pa, given["index"]), _to_arrow(pa, given["of"]), ordered=given["ordered"].flag())
    if name in DECIMALS:
        given = node.keys("dtype", "precision", "scale")
        return getattr(pa, name)(given["precision"].whole(low=1), given["scale"].whole(low=-1000))
    node.keys("dtype")
    return pa.type_for_alias(name)
