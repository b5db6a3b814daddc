"""What comes back to a column fits its type: narrow floats round as told, whole numbers never wrap around."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from globece import Explanation, FeatureSpace, explain
from globece.errors import FileFormatError, InvalidDataError, InvalidParameterError
from globece.io import native
from globece.io.native import AbsentTable

TENTHS = np.arange(1, 9) / 10


def frames_of_floats() -> list[Any]:
    """Return one column ``a`` in every type of floats of every library, with its rounding."""
    out = []
    for dtype, unit in (("float64", 0.0), ("float32", 2.0**-24), ("float16", 2.0**-11), (">f4", 2.0**-24)):
        out.append(pytest.param(pd.DataFrame({"a": TENTHS.astype(dtype)}), unit, id=f"pandas {dtype}"))
    for dtype, unit in (
        ("Float32", 2.0**-24),
        ("Float64", 0.0),
        ("float[pyarrow]", 2.0**-24),
        ("halffloat[pyarrow]", 2.0**-11),
    ):
        out.append(pytest.param(pd.DataFrame({"a": pd.Series(TENTHS).astype(dtype)}), unit, id=f"pandas {dtype}"))
    for type_, unit in ((pl.Float32, 2.0**-24), (pl.Float64, 0.0)):
        out.append(pytest.param(pl.DataFrame({"a": pl.Series(TENTHS, dtype=type_)}), unit, id=f"polars {type_}"))
    for dtype, unit in ((pa.float16(), 2.0**-11), (pa.float32(), 2.0**-24), (pa.float64(), 0.0)):
        out.append(pytest.param(pa.table({"a": pa.array(TENTHS).cast(dtype)}), unit, id=f"pyarrow {dtype}"))
    for dtype, unit in (("float64", 0.0), ("float32", 2.0**-24), ("float16", 2.0**-11), (">f4", 2.0**-24)):
        out.append(pytest.param(TENTHS.astype(dtype).reshape(-1, 1), unit, id=f"matrix {dtype}"))
    return out


@pytest.mark.parametrize(("X", "unit"), frames_of_floats())
def test_rounding_is_what_decoding_does(X: Any, unit: float) -> None:
    space = FeatureSpace.from_frame(X)
    assert space.rounding.tolist() == [unit]
    assert not space.rounding.flags.writeable
    Z = np.linspace(0.1, 0.8, 999).reshape(-1, 1)
    settled = space.settle(Z)
    np.testing.assert_array_equal(space.encode(space.decode(Z)), settled)
    if unit:
        error = np.abs(settled - Z) / Z
        assert unit / 4 < error.max() <= unit
    else:
        assert settled is Z


def test_only_columns_of_narrow_floats_round() -> None:
    X = pd.DataFrame(
        {
            "n": np.arange(4, dtype=np.int8),
            "c": list("abab"),
            "f": np.array([0.1, 0.2, 0.3, 0.4], np.float32),
            "o": pd.Categorical(list("xyxy"), ordered=True),
            "d": [0.1, 0.2, 0.3, 0.4],
        }
    )
    space = FeatureSpace.from_frame(X)
    assert space.rounding.tolist() == [0, 0, 0, 2.0**-24, 0, 0]
    M = np.array([[1, 0, 0.5], [0, 1, 0.25]], dtype=np.float32)
    grouped = FeatureSpace.from_matrix(M, columns=["g1", "g2", "v"], groups={"g": ["g1", "g2"]})
    assert grouped.rounding.tolist() == [0, 0, 2.0**-24]


# -- whole numbers ----------------------------------------------------------------------------------------------------


def bytes_of(kind: str) -> Any:
    """Return the numbers 100 to 199 as unsigned bytes, in a column of a kind of frame."""
    values = np.arange(100, 200)
    if kind == "matrix":
        return values.astype(np.uint8).reshape(-1, 1)
    if kind == "polars":
        return pl.DataFrame({"x0": pl.Series(values, dtype=pl.UInt8)})
    if kind == "pyarrow":
        return pa.table({"x0": pa.array(values, pa.uint8())})
    return pd.DataFrame({"x0": pd.Series(values, dtype=kind)})


KINDS = ["uint8", "UInt8", "uint8[pyarrow]", "polars", "pyarrow", "matrix"]


def column(X: Any) -> np.ndarray:
    """Return the only column as doubles."""
    values = X if isinstance(X, np.ndarray) else X["x0"]
    return np.asarray(values).astype(np.float64).ravel()


def dtype_of(X: Any) -> str:
    """Return the type of the only column."""
    if isinstance(X, pa.Table):
        return str(X.schema.field("x0").type)
    return str(X.dtype) if isinstance(X, np.ndarray) else str(X["x0"].dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", [(50, 400), (-1, 150), (300, 500), (0, 1e300)])
def test_range_beyond_the_type_is_an_error(kind: str, given: tuple[float, float]) -> None:
    with pytest.raises(InvalidParameterError, match=r"ranges\['x0'\].*(?i:uint8).*from 0 to 255"):
        FeatureSpace.from_frame(bytes_of(kind), ranges={"x0": given})


@pytest.mark.parametrize("kind", KINDS)
def test_unbounded_reaches_as_far_as_the_type(kind: str) -> None:
    X = bytes_of(kind)
    for ranges in ("unbounded", {"x0": "unbounded"}, {"x0": (-np.inf, np.inf)}):
        space = FeatureSpace.from_frame(X, ranges=ranges)
        assert (space["x0"].low, space["x0"].high) == (0, 255)
    above = explain(lambda R: (column(R) > 250).astype(int), X, space=space, budget=30, rng=0)
    assert above.coverage == 1.0
    found = above.counterfactuals()
    assert set(column(found.after)) == {251.0}
    assert dtype_of(found.after) == dtype_of(X)
    expected = [above.cost.change(space["x0"], np.array([b]), np.array([251.0]))[0] for b in column(found.before)]
    np.testing.assert_allclose(found.cost, expected)
    beyond = explain(lambda R: (column(R) > 255).astype(int), X, space=space, budget=30, rng=0)
    assert beyond.coverage == 0.0


def test_nobody_wraps_around() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(100, 200, 300).astype("uint8"), "b": rng.normal(size=300)})
    space = FeatureSpace.from_frame(X, ranges={"age": (50, 255)}, immutable=["b"])
    ex = explain(lambda R: (R["age"].to_numpy() < 10).astype(int), X, space=space, budget=30, rng=0)
    assert ex.coverage == 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [256.0, -1.0, 3.5, 1e300])
def test_decoding_raises_rather_than_wraps(kind: str, value: float) -> None:
    space = FeatureSpace.from_frame(bytes_of(kind))
    with pytest.raises(InvalidDataError, match=r"column 'x0' has type (?i:uint8), which cannot hold .* \(row 1\)"):
        space.decode(np.array([[1.0], [value]]))


@pytest.mark.parametrize("kind", KINDS)
def test_missing_number_comes_back_or_is_refused(kind: str) -> None:
    space = FeatureSpace.from_frame(bytes_of(kind))
    Z = np.array([[1.0], [np.nan]])
    if kind in ("uint8", "matrix"):
        with pytest.raises(InvalidDataError, match="uint8, which cannot hold a missing value"):
            space.decode(Z)
    else:
        np.testing.assert_array_equal(space.encode(space.decode(Z)), Z)


@pytest.mark.parametrize("kind", KINDS)
def test_type_of_a_decoded_column_does_not_depend_on_the_rows(kind: str) -> None:
    X = bytes_of(kind)
    moving = FeatureSpace.from_frame(X, whole=[], ranges={"x0": (50, 400)})
    types = {dtype_of(moving.decode(np.array(rows))).lower() for rows in ([[100.0]], [[100.5]], [[300.0], [50.25]])}
    assert types <= {"float64", "double"}
    assert len(types) == 1
    np.testing.assert_array_equal(moving.encode(moving.decode(np.array([[300.25]]))), [[300.25]])
    assert dtype_of(FeatureSpace.from_frame(X).decode(np.array([[100.0]]))) == dtype_of(X)


def test_matrix_is_doubles_if_one_column_moves_in_fractions() -> None:
    X = np.arange(8, dtype=np.int16).reshape(4, 2)
    space = FeatureSpace.from_matrix(X, whole=["x0"])
    assert space.decode(space.encode(X)).dtype == np.float64
    assert FeatureSpace.from_matrix(X).decode(space.encode(X)).dtype == np.int16


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int8", -128, 127),
        ("Int16", -(2**15), 2**15 - 1),
        ("uint32", 0, 2**32 - 1),
        ("int32", -(2**31), 2**31 - 1),
        ("int64", -np.inf, np.inf),
        ("UInt64", 0, np.inf),
    ],
)
def test_every_type_of_whole_numbers_has_its_range(dtype: str, low: float, high: float) -> None:
    space = FeatureSpace.from_frame(pd.DataFrame({"n": pd.Series([1, 5, 3], dtype=dtype)}), ranges="unbounded")
    assert (space["n"].low, space["n"].high) == (low, high)
    if np.isfinite(high):
        ends = space.decode(np.array([[low], [high]]))["n"].tolist()
        assert ends == [low, high]
    with pytest.raises(InvalidParameterError, match=dtype):
        space.constrain(ranges={"n": (0, 1e20)})
    with pytest.raises(InvalidDataError, match=dtype):
        space.decode(np.array([[1e20]]))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "Int64", "polars", "pyarrow", "matrix"])
def test_identifiers_beyond_the_doubles_are_an_error(dtype: str) -> None:
    ids = [2**53, 2**53 + 1, 2**53 + 3, 5]
    if dtype == "matrix":
        X: Any = np.array(ids).reshape(-1, 1)
    elif dtype == "polars":
        X = pl.DataFrame({"x0": ids})
    else:
        X = pa.table({"x0": ids}) if dtype == "pyarrow" else pd.DataFrame({"x0": pd.Series(ids, dtype=dtype)})
    with pytest.raises(
        InvalidDataError, match=r"column 'x0' has type .*(?i:int64).* 2 number.* beyond 2\*\*53.*identifiers"
    ):
        FeatureSpace.from_frame(X)
    exact = FeatureSpace.from_frame(X[:1])
    np.testing.assert_array_equal(exact.encode(exact.decode(np.array([[2.0**53]]))), [[2.0**53]])
    space = FeatureSpace.from_frame(X, categorical=["x0"])  # as categories they are exact
    back = space.decode(space.encode(X))
    came = back[:, 0] if dtype == "matrix" else back["x0"]
    assert (came.to_pylist() if dtype == "pyarrow" else came.tolist() if dtype != "polars" else came.to_list()) == ids


def test_categories_that_doubles_cannot_hold_are_an_error_in_a_matrix_of_doubles() -> None:
    X = np.array([[2**53 + 1, 1], [2**53 + 2, 2]])
    space = FeatureSpace.from_matrix(X, categorical=["x0"], whole=[])
    with pytest.raises(InvalidDataError, match=r"'x0' has category 9007199254740993.*float64"):
        space.decode(space.encode(X))


@pytest.mark.parametrize(
    "X",
    [
        pl.DataFrame({"x0": pl.Series(["1.00", "2.00", "7.00"]).cast(pl.Decimal(5, 2))}),
        pa.table({"x0": pa.array([1, 2, 7], pa.int64()).cast(pa.decimal128(21, 2)).cast(pa.decimal128(5, 2))}),
        pd.DataFrame({"x0": pd.Series([1, 2, 7], dtype=pd.ArrowDtype(pa.decimal128(5, 2)))}),
    ],
    ids=["polars", "pyarrow", "pandas"],
)
def test_decimals_are_doubles_unless_they_are_whole(X: Any) -> None:
    space = FeatureSpace.from_frame(X)
    assert dtype_of(space.decode(np.array([[2.0]]))).lower() in ("float64", "double")
    whole = FeatureSpace.from_frame(X, whole=["x0"], ranges="unbounded")
    assert (whole["x0"].low, whole["x0"].high) == (-999, 999)
    assert dtype_of(whole.decode(np.array([[999.0]]))) == dtype_of(X)
    with pytest.raises(InvalidDataError, match=r"Decimal.*cannot hold 1000.0"):
        whole.decode(np.array([[1000.0]]))


# -- narrow floats ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "most"), [("float32", np.finfo(np.float32).max), ("float16", 65504.0)])
def test_narrow_floats_have_a_range_too(dtype: str, most: float) -> None:
    X = pd.DataFrame({"v": np.arange(1, 5).astype(dtype)})
    space = FeatureSpace.from_frame(X, ranges="unbounded")
    assert space["v"].high == (np.inf if dtype == "float32" else most)  # as good as none
    assert np.isfinite(space.decode(np.array([[float(most)]]))["v"]).all()
    with pytest.raises(InvalidParameterError, match=rf"ranges\['v'\] is .*{dtype}"):
        space.constrain(ranges={"v": (0, 1e39)})
    with pytest.raises(InvalidDataError, match=f"{dtype}, which cannot hold 1e"):
        space.decode(np.array([[1e39]]))


def test_a_range_ends_at_numbers_of_the_type() -> None:
    space = FeatureSpace.from_matrix(np.array([[0.25], [0.5]], np.float32), ranges={"x0": (0.1, 0.7)})
    f = space["x0"]
    assert 0.1 <= f.low < 0.1 + 1e-7
    assert 0.7 - 1e-7 < f.high <= 0.7
    Z = np.array([[f.low], [f.high]])
    np.testing.assert_array_equal(space.settle(Z), Z)
    with pytest.raises(InvalidParameterError, match="must hold a number of type float32"):
        space.constrain(ranges={"x0": (0.1, 0.1)})


def test_a_range_without_a_whole_number_is_an_error() -> None:
    with pytest.raises(InvalidParameterError, match=r"must hold a whole number; got \(1.2, 1.8\)"):
        FeatureSpace.from_matrix(np.array([[1], [2]]), ranges={"x0": (1.2, 1.8)})


# -- booleans ---------------------------------------------------------------------------------------------------------


def test_booleans_of_a_matrix_stay_booleans() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((300, 4)) < 0.5
    model = LogisticRegression().fit(X, X[:, :3].sum(axis=1) > 1)
    ex = explain(model, X, rng=0)
    after = ex.counterfactuals().after
    assert [f.kind for f in ex.space.features] == ["categorical"] * 4
    assert ex.space["x0"].categories == (False, True)
    assert ex.provenance.method == "exact"
    assert after.dtype == bool
    assert model.predict(after).all()
    np.testing.assert_array_equal(ex.space.decode(ex.space.encode(X)), X)
    assert Explanation.from_json(ex.to_json()).counterfactuals().after.dtype == bool


def test_one_hot_booleans_of_a_matrix_stay_booleans() -> None:
    X = np.array([[True, False, True], [False, True, True], [True, False, False]])
    space = FeatureSpace.from_matrix(X, columns=["a", "b", "c"], groups={"g": ["a", "b"]})
    back = space.decode(space.encode(X))
    assert back.dtype == bool
    np.testing.assert_array_equal(back, X)


def test_explanation_read_without_its_library_still_knows_the_types() -> None:
    ex = explain(lambda R: (R["x0"].to_numpy() > 150).astype(int), bytes_of("polars"), rng=0)
    table = AbsentTable(native.describe(ex.space.table), InvalidDataError("no polars"))
    space = FeatureSpace(ex.space.features, table)
    assert space.constrain(ranges="unbounded")["x0"].high == 255
    with pytest.raises(InvalidParameterError, match="UInt8"):
        space.constrain(ranges={"x0": (0, 256)})


def test_file_with_numbers_that_do_not_fit_is_refused() -> None:
    ex = explain(lambda R: (R["x0"].to_numpy() > 150).astype(int), bytes_of("uint8"), rng=0)
    document = ex.to_dict()
    document["inputs"][0][0] = 1000
    with pytest.raises(FileFormatError, match="uint8, which cannot hold 1000"):
        Explanation.from_json(json.dumps(document))
