"""Columns of every type that the frame libraries have: they come back as they were, or it is said why they cannot."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from globece import Explanation, FeatureSpace, GlobeCEError, audit, explain
from globece.errors import InvalidDataError, InvalidParameterError, UnknownCategoryError
from globece.search import Climb

N = 12
A = np.random.default_rng(0).normal(size=N)
QUICK = Climb(rays=200)


class Colour(enum.Enum):
    """Values that have no order."""

    RED = 1
    BLUE = 2


def repeated(*values: Any) -> list[Any]:
    """Return these values again and again, as many as there are rows."""
    return (list(values) * N)[:N]


def objects(*values: Any) -> pd.Series:
    """Return a pandas column of objects."""
    column = np.empty(N, dtype=object)
    for i, value in enumerate(repeated(*values)):
        column[i] = value
    return pd.Series(column, dtype=object)


def above(X: Any) -> np.ndarray:
    """Decide by the first column alone."""
    return (np.asarray(X["a"]) > 0.3).astype(int)


def in_pandas(column: Any) -> pd.DataFrame:
    """Return a pandas frame with the column beside another."""
    return pd.DataFrame({"a": A, "d": column})


def in_polars(column: pl.Series) -> pl.DataFrame:
    """Return a Polars frame with the column beside another."""
    return pl.DataFrame({"a": A}).with_columns(column.alias("d"))


def in_arrow(column: Any) -> pa.Table:
    """Return a PyArrow table with the column beside another."""
    return pa.table({"a": A, "d": column})


def plain_values(X: Any) -> list[Any]:
    """Return the values of the column, each with its type; missing ones as None."""
    column = X["d"]
    listed = column.to_pylist() if isinstance(X, pa.Table) else column.to_list()
    return [None if v is None or v is pd.NA or v is pd.NaT or v != v else (type(v), v) for v in listed]


NUMBERS: dict[str, Callable[..., Any]] = {
    **{
        f"pandas {dtype}": (lambda dtype=dtype: in_pandas(pd.Series(repeated(1, 0, 2), dtype=dtype)))
        for dtype in [
            "float16",
            "float32",
            ">f8",
            ">f4",
            ">i4",
            "longdouble",
            "int8",
            "Int8",
            "UInt64",
            "Float32",
            "float[pyarrow]",
            "halffloat[pyarrow]",
            "int8[pyarrow]",
        ]
    },
    "pandas Int8 with missing": lambda: in_pandas(pd.Series(repeated(1, None, 3), dtype="Int8")),
    "polars Int128": lambda: in_polars(pl.Series(repeated(1, 0)).cast(pl.Int128)),
    "polars UInt8 with missing": lambda: in_polars(pl.Series(repeated(1, 0, None)).cast(pl.UInt8)),
    "pyarrow uint8": lambda: in_arrow(pa.array(repeated(1, 0, None), pa.uint8())),
    "pyarrow halffloat": lambda: in_arrow(pa.array(repeated(1, 0), pa.float16())),
}
CATEGORIES: dict[str, Callable[..., Any]] = {
    **{
        f"pandas {dtype}": (lambda dtype=dtype: in_pandas(pd.Series(repeated(1, 0, 1), dtype=dtype)))
        for dtype in ["bool", "boolean", "bool[pyarrow]", "string", "string[pyarrow]", "category", "object"]
    },
    "numbers as categories": lambda: in_pandas(pd.Categorical(repeated(1, 2, None))),
    "intervals": lambda: in_pandas(pd.cut(np.arange(N), 3).astype(pd.IntervalDtype())),
    "intervals in order": lambda: in_pandas(pd.cut(np.arange(N), 3)),
    "periods": lambda: in_pandas(pd.period_range("2020", periods=3, freq="M").repeat(4)),
    "one category in order": lambda: in_pandas(pd.Categorical(repeated("x"), ordered=True)),
    "order with missing": lambda: in_pandas(pd.Categorical(repeated("x", "y", None), ordered=True)),
    "1 and '1'": lambda: in_pandas(objects(1, "1")),
    "bytes": lambda: in_pandas(objects(b"a", b"b")),
    "dates": lambda: in_pandas(objects(datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), None)),
    "tuples": lambda: in_pandas(objects((1, 2), (2, 3))),
    "decimals": lambda: in_pandas(objects(decimal.Decimal(1), decimal.Decimal("2.5"))),
    "NumPy's own": lambda: in_pandas(objects(np.int64(1), np.int64(2))),
    "enum": lambda: in_pandas(objects(Colour.RED, Colour.BLUE)),
    "uuid": lambda: in_pandas(objects(uuid.UUID(int=1), uuid.UUID(int=2))),
    "missing of all kinds": lambda: in_pandas(objects("a", None, np.nan, pd.NA, pd.NaT)),
    "text, numbers and flags": lambda: in_pandas(objects("a", 2, 2.5, False, None)),
    "whole numbers beyond all types": lambda: in_pandas(objects(10**30, 5)),
    "polars Categorical": lambda: in_polars(pl.Series(repeated("a", "b", None)).cast(pl.Categorical)),
    "polars Enum": lambda: in_polars(pl.Series(repeated("a", "b")).cast(pl.Enum(["b", "a"]))),
    "polars Boolean": lambda: in_polars(pl.Series(repeated(True, False, None))),
    "polars Object": lambda: in_polars(pl.Series(repeated(1, "a", None), dtype=pl.Object)),
    "polars Object with nan": lambda: in_polars(pl.Series(repeated("a", float("nan")), dtype=pl.Object)),
    "pyarrow bool": lambda: in_arrow(pa.array(repeated(True, False, None))),
    "pyarrow large_string": lambda: in_arrow(pa.array(repeated("a", "b", None), pa.large_string())),
    "pyarrow dictionary": lambda: in_arrow(pa.array(repeated("a", "b", None)).dictionary_encode()),
    "pyarrow dictionary of numbers": lambda: in_arrow(pa.array(repeated(1, 2, None)).dictionary_encode()),
    "pyarrow in chunks": lambda: in_arrow(pa.chunked_array([pa.array(["a"] * 5), pa.array(["b"] * (N - 5))])),
}


@pytest.mark.parametrize("make", NUMBERS.values(), ids=NUMBERS)
def test_numbers_come_back_as_they_were(make: Callable[[], Any]) -> None:
    X = make()
    space = FeatureSpace.from_frame(X)
    assert space["d"].kind == "continuous"
    back = space.decode(space.encode(X))
    assert plain_values(back) == plain_values(X)
    assert explain(above, X, space=space, rng=0, search=QUICK).coverage == 1.0


@pytest.mark.parametrize("make", CATEGORIES.values(), ids=CATEGORIES)
def test_categories_come_back_as_they_were(make: Callable[[], Any]) -> None:
    X = make()
    space = FeatureSpace.from_frame(X)
    assert space["d"].kind in ("categorical", "ordinal")
    back = space.decode(space.encode(X))
    # NumPy's own scalars may come back as Python's
    assert [v and v[1] for v in plain_values(back)] == [v and v[1] for v in plain_values(X)]
    ex = explain(above, X, space=space, rng=0, search=QUICK)
    assert ex.coverage == 1.0
    try:
        text = ex.to_json()
    except GlobeCEError as error:
        assert "which a result file cannot hold" in str(error)  # noqa: PT017
    else:
        found = Explanation.from_json(text).counterfactuals().before
        assert plain_values(found) == plain_values(ex.counterfactuals().before)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "1, True and 1.0": (
        lambda: in_pandas(objects(1, True, 1.0, "a")),
        r"column 'd' holds values that are equal but of different types: 1 \(int\), 1.0 \(float\), True \(bool\)",
    ),
    "0 and False": (lambda: in_pandas(objects(0, False)), r"0 \(int\), False \(bool\)"),
    "within tuples": (lambda: in_pandas(objects((1,), (True,))), r"\(1,\) \(tuple\), \(True,\) \(tuple\)"),
    "timestamps of two kinds": (
        lambda: in_pandas(objects(pd.Timestamp("2020"), datetime.datetime(2020, 1, 1))),
        "equal but of different types",
    ),
    "polars objects": (lambda: in_polars(pl.Series(repeated(1, True), dtype=pl.Object)), "equal but of different"),
    "lists": (lambda: in_pandas(objects([1], [2])), r"'d' holds values that cannot be categories \(of type list"),
    "dictionaries": (lambda: in_pandas(objects({}, {1: 2})), "of type dict"),
    "sets": (lambda: in_pandas(objects({1}, {2})), "of type set"),
    "frozen sets": (lambda: in_pandas(objects(frozenset([1]), frozenset([2]))), "of type frozenset"),
    "arrays": (lambda: in_pandas(objects(np.array([1]), np.array([2]))), "of type ndarray"),
    "sparse numbers": (
        lambda: in_pandas(pd.arrays.SparseArray(repeated(1, 0))),
        r"'d' is sparse \(type Sparse\[int64, 0\]\).*X\['d'\].sparse.to_dense",
    ),
    "sparse fractions": (lambda: in_pandas(pd.arrays.SparseArray(repeated(1.5, np.nan))), "is sparse"),
    "complex": (lambda: in_pandas(np.array(repeated(1j, 2j))), "'d' has type complex128"),
    "timedelta": (lambda: in_pandas(pd.to_timedelta(np.arange(N))), "Duration"),
    "datetime": (lambda: in_pandas(pd.date_range("2020", periods=N, tz="UTC")), "Datetime"),
    "polars List": (lambda: in_polars(pl.Series(repeated([1], [2]))), r"List\(Int64\)"),
    "polars Struct": (lambda: in_polars(pl.Series(repeated({"x": 1}, {"x": 2}))), "Struct"),
    "polars Array": (lambda: in_polars(pl.Series(repeated([1, 2])).cast(pl.Array(pl.Int64, 2))), "Array"),
    "polars Null": (lambda: in_polars(pl.Series([None] * N)), "all 12 are missing"),
    "polars Binary": (lambda: in_polars(pl.Series(repeated(b"a", b"b"))), "Binary"),
    "polars Date": (lambda: in_polars(pl.Series(repeated(datetime.date(2020, 1, 1)))), "Date"),
    "polars Object of lists": (lambda: in_polars(pl.Series(repeated([1]), dtype=pl.Object)), "of type list"),
    "pyarrow list": (lambda: in_arrow(pa.array(repeated([1], [2]))), r"List\(Int64\)"),
    "pyarrow null": (lambda: in_arrow(pa.nulls(N)), "all 12 are missing"),
    "pyarrow run_end_encoded": (
        lambda: in_arrow(pa.RunEndEncodedArray.from_arrays([6, N], ["a", "b"])),
        "run_end_encoded.*cannot be built again",
    ),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("wish", [(), ("d",)], ids=["as it is", "as categories"])
def test_column_that_cannot_be_explained_is_named(make: Callable[[], Any], message: str, wish: tuple[str, ...]) -> None:
    X = make()
    if not wish:
        with pytest.raises(InvalidDataError, match=message):
            explain(above, X, rng=0)
        return
    try:  # dates and bytes may be categories, if somebody says so
        explain(above, X, space=FeatureSpace.from_frame(X, categorical=wish), rng=0, search=QUICK)
    except InvalidDataError as error:
        assert "'d'" in str(error)  # noqa: PT017


def test_equal_value_of_another_type_is_no_known_category() -> None:
    space = FeatureSpace.from_frame(in_pandas(objects(1, "a", 2.5)))
    for other in (True, 1.0):
        with pytest.raises(UnknownCategoryError, match=rf"'d' has unknown category\(ies\) \['{other}'\]"):
            space.encode(in_pandas(objects(other, "a")))
    assert space.encode(in_pandas(objects(1, "a"))).shape == (N, 4)


@pytest.mark.parametrize("dtype", [pa.decimal128(30, 2), pa.decimal256(50, 2)], ids=str)
def test_decimals_of_all_widths_are_numbers(dtype: Any) -> None:
    X = in_arrow(pa.array([decimal.Decimal(i) / 4 for i in range(N)], pa.decimal128(30, 2)).cast(dtype))
    space = FeatureSpace.from_frame(X)
    assert space["d"].kind == "continuous"
    np.testing.assert_array_equal(space.encode(X)[:, 1], np.arange(N) / 4)
    np.testing.assert_array_equal(space.encode(space.decode(space.encode(X))), space.encode(X))


# -- rows and columns of odd shapes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index",
    [
        [f"r{i}" for i in range(N)],
        [1] * N,
        pd.MultiIndex.from_arrays([range(N), range(N)]),
        pd.date_range("2020", periods=N),
        np.arange(N)[::-1],
    ],
    ids=["text", "repeated", "two levels", "dates", "backwards"],
)
def test_index_does_not_matter(index: Any) -> None:
    X = in_pandas(repeated("x", "y"))
    there = explain(above, X.set_index(pd.Index(index)), rng=0, search=QUICK)
    assert there.to_json() == explain(above, X, rng=0, search=QUICK).to_json()


def test_layout_of_a_matrix_does_not_matter() -> None:
    M = np.random.default_rng(0).normal(size=(40, 3))
    model = LogisticRegression().fit(M, M[:, 0] > 0.5)
    ex = explain(model, M, rng=0)
    frozen = M.copy()
    frozen.flags.writeable = False
    for other in (frozen, np.asfortranarray(M), np.repeat(M, 2, axis=0)[::2], M.astype(">f8")):
        found = explain(model, other, rng=0)
        assert found.provenance.method == "exact"
        np.testing.assert_array_equal(found.costs, ex.costs)
        np.testing.assert_array_equal(found.counterfactuals().after, ex.counterfactuals().after)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (pd.DataFrame(np.ones((2, 2)), columns=pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")])), "must be strings"),
        (pd.DataFrame({np.nan: [1, 2]}), "must be strings"),
        (pd.DataFrame(np.ones((2, 2))), "must be strings"),
        (np.ma.masked_greater(np.arange(6.0).reshape(3, 2), 4), r"MaskedArray; pass X.filled\(np.nan\)"),
        (np.empty((0, 2)), "no rows"),
        (np.empty((2, 0)), "no columns"),
        (np.zeros((2, 2), dtype=object), "must hold numbers"),
        (np.zeros((2, 2), dtype=complex), "must hold numbers"),
        (np.zeros((2, 2), dtype="M8[s]"), "must hold numbers"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_rows_that_cannot_be_read_say_why(X: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        FeatureSpace.from_frame(X)


def test_names_of_a_matrix_are_checked() -> None:
    M = np.arange(6.0).reshape(2, 3)
    for columns in (5, "abc", [1, 2, 3]):
        with pytest.raises(InvalidParameterError, match="columns must be a list of column names"):
            FeatureSpace.from_matrix(M, columns=columns)  # type: ignore[arg-type]


def test_no_rows_and_one_row_with_a_space() -> None:
    X = in_pandas(repeated("x", "y"))
    space = FeatureSpace.from_frame(X)
    nobody = explain(above, X.head(0), space=space, rng=0)
    assert (nobody.n_affected, nobody.n_rows) == (0, 0)
    assert explain(above, X[X["a"] <= 0.3].head(1), space=space, rng=0).coverage == 1.0
    with pytest.raises(InvalidDataError, match="no rows"):
        audit(above, X.head(0), by="d", space=space, rng=0)


def test_wider_rows_are_rounded_to_the_columns_of_the_space() -> None:
    space = FeatureSpace.from_frame(pd.DataFrame({"a": A.astype(np.float32)}))
    Z = space.encode(pd.DataFrame({"a": A}))
    np.testing.assert_array_equal(Z[:, 0], A.astype(np.float32))
    with pytest.raises(InvalidDataError, match=r"float32, which cannot hold 1e\+300"):
        space.encode(pd.DataFrame({"a": [1e300]}))
