from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from globece import FeatureSpace
from globece.errors import InvalidDataError, InvalidParameterError, UnknownCategoryError, UnknownFeatureError
from tests.problems import mixed_frame, mixed_space


def test_kinds_are_inferred_from_the_columns() -> None:
    space = mixed_space()
    assert [f.kind for f in space.features] == [
        "continuous",
        "continuous",
        "categorical",
        "categorical",
        "ordinal",
        "continuous",
    ]
    assert space["job"].categories == ("a", "b", None)
    assert [space[n].whole for n in ("income", "debts", "age", "school")] == [False, True, True, True]
    assert space.columns[2:8] == (
        "housing = free",
        "housing = own",
        "housing = rent",
        "job = a",
        "job = b",
        "job = (missing)",
    )


def test_pandas_types_survive_the_round_trip() -> None:
    X = mixed_frame().assign(
        nullable=pd.array([1, None, 3] * 20, dtype="Int64"),
        small=np.arange(60, dtype=np.float32),
        flag=[True, False] * 30,
        category=pd.Categorical(["x", "y"] * 30, categories=["z", "y", "x"]),
        size=pd.Categorical(["S", "L", "M"] * 20, categories=["S", "M", "L"], ordered=True),
        text=pd.array(["p", None] * 30, dtype="string"),
    )
    space = mixed_space(X)
    assert space["size"].kind == "ordinal"
    pd.testing.assert_frame_equal(space.decode(space.encode(X)), X)


def test_polars_and_pyarrow_types_survive_the_round_trip() -> None:
    frame = pl.DataFrame(
        {
            "age": [20, 30, None],
            "income": [1.5, None, 2.25],
            "city": ["a", None, "b"],
            "ok": [True, False, True],
            "level": [1, 2, 1],
            "enum": pl.Series(["x", "y", "x"], dtype=pl.Enum(["y", "x", "z"])),
            "short": pl.Series([1.0, 2.0, 3.0], dtype=pl.Float32),
        }
    )
    for X in (frame, frame.drop("enum").to_arrow()):
        space = FeatureSpace.from_frame(X, categorical=["level"])
        back = space.decode(space.encode(X))
        assert type(back) is type(X)
        assert back.equals(X)
    assert isinstance(frame.to_arrow(), pa.Table)


def test_a_one_hot_matrix_is_as_welcome_as_a_frame() -> None:
    names = ["sex = F", "age", "sex = M"]
    X = np.array([[1, 30, 0], [0, 40, 1], [1, 50, 0]], dtype=np.float32)
    space = FeatureSpace.from_matrix(X, columns=names, groups={"sex": ["sex = F", "sex = M"], "age": []})
    assert space.names == ("sex", "age")
    assert space["sex"].categories == ("F", "M")
    Z = space.encode(X)
    np.testing.assert_array_equal(Z, [[1, 0, 30], [0, 1, 40], [1, 0, 50]])
    back = space.decode(Z)
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, X)


def test_a_one_hot_frame_keeps_its_columns() -> None:
    X = pd.DataFrame({"a": [1, 0], "n": [0.5, 1.5], "b": [0, 1]})
    space = FeatureSpace.from_frame(X, groups={"letter": ["a", "b"]})
    pd.testing.assert_frame_equal(space.decode(space.encode(X)), X)


def test_round_gives_valid_rows() -> None:
    space = mixed_space()
    Z = space.encode(mixed_frame())
    noisy = Z + np.random.default_rng(0).normal(0.0, 2.0, Z.shape)
    rounded = space.round(noisy)
    for f in space.blocks:
        block = rounded[:, f.columns]
        assert (np.sort(block, axis=1)[:, -1] == 1).all()
        assert (block.sum(axis=1) == 1).all()
    for f in space.scalars:
        column = rounded[:, f.start]
        kept = column[~np.isnan(column)]
        assert kept.min() >= f.low
        assert kept.max() <= f.high
        if f.whole:
            assert (kept == np.rint(kept)).all()
    np.testing.assert_array_equal(space.round(Z), Z)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"immutable": ["sex"]}, r"immutable names unknown feature\(s\) \['sex'\]"),
        ({"immutable": "age"}, "immutable must be a list"),
        ({"increasing": ["housing"]}, "no order"),
        ({"increasing": ["age"], "decreasing": ["age"]}, "both name"),
        ({"ranges": {"age": (90, 10)}}, "low <= high"),
        ({"ranges": {"age": 7}}, r"ranges\['age'\] must be"),
        ({"ranges": {"housing": (0, 1)}}, "use permitted"),
        ({"ranges": "wide"}, "ranges must be"),
        ({"permitted": {"housing": ["castle"]}}, "permitted"),
        ({"permitted": {"age": [1]}}, "use ranges"),
        ({"permitted": {"school": ["low", "high"]}}, "must be consecutive values"),
        ({"whole": ["income"]}, "holds fractions"),
        ({"whole": ["housing"]}, "whole names"),
        ({"categorical": ["nope"]}, "categorical names unknown"),
        ({"groups": {"g": ["age", "debts"]}}, "exactly one 1"),
        ({"groups": {"g": ["age", "nope"]}}, "groups names unknown"),
        ({"groups": {"income": ["age", "debts"]}}, "names of other columns"),
        ({"max_categories": 2}, "categories and at most 2"),
        ({"max_categories": 0}, "max_categories"),
    ],
)
def test_each_parameter_given_rubbish_says_so(constraints: dict, message: str) -> None:
    with pytest.raises((InvalidParameterError, InvalidDataError), match=message):
        mixed_space(**constraints)


def test_constraints_shape_the_features() -> None:
    space = mixed_space(
        immutable=["age"],
        decreasing=["debts"],
        ranges={"income": (0, 9), "debts": "unbounded"},
        permitted={"housing": ["own"], "school": ["mid", "high"]},
    )
    assert not space["age"].can_move
    assert space["debts"].sense == -1
    assert (space["income"].low, space["income"].high) == (0, 9)
    assert space["debts"].low == -np.inf
    assert space["housing"].permitted == (False, True, False)
    assert (space["school"].low, space["school"].high) == (1, 2)


@pytest.mark.parametrize(
    ("frame", "error", "message"),
    [
        (pd.DataFrame({"a": []}), InvalidDataError, "no rows"),
        (pd.DataFrame(index=[0, 1]), InvalidDataError, "no rows|no columns"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), InvalidDataError, "unique|duplicate|Expected unique"),
        (pd.DataFrame({0: [1, 2]}), InvalidDataError, "strings"),
        (pd.DataFrame({"a": [np.nan, np.nan]}), InvalidDataError, "all 2 are missing"),
        (pd.DataFrame({"a": pd.Series([None, None], dtype=object)}), InvalidDataError, "all 2 are missing"),
        (pd.DataFrame({"a": [1.0, np.inf]}), InvalidDataError, "infinite"),
        (pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"])}), InvalidDataError, "Datetime"),
        (pd.DataFrame({"zip": [str(i) for i in range(10_000)]}), InvalidDataError, "10,000 categories"),
        (pl.LazyFrame({"a": [1]}), InvalidDataError, "collect"),
        ([[1, 2]], InvalidDataError, "got list"),
        (np.array([1.0, 2.0]), InvalidDataError, "two dimensions"),
        (np.array([["a"]]), InvalidDataError, "must hold numbers"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_a_frame_that_cannot_be_explained_says_why(frame: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        FeatureSpace.from_frame(frame)


def test_a_new_category_and_a_lost_column_are_named() -> None:
    space = mixed_space()
    X = mixed_frame()
    with pytest.raises(UnknownCategoryError, match=r"'housing'.*castle.*own"):
        space.encode(X.assign(housing="castle"))
    with pytest.raises(UnknownCategoryError, match=r"'housing'.*\(missing\)"):
        space.encode(X.assign(housing=pd.Series([None] * len(X), dtype=object)))
    with pytest.raises(InvalidDataError, match=r"lacks column.*age"):
        space.encode(X.drop(columns="age"))
    with pytest.raises(UnknownFeatureError, match="there are"):
        space["nothing"]


def test_a_constant_column_cannot_move() -> None:
    space = FeatureSpace.from_frame(pd.DataFrame({"same": [3.0, 3.0], "one": ["x", "x"], "n": [1.0, 2.0]}))
    assert [f.name for f in space.movable] == ["n"]


def test_ten_thousand_categories_fit_when_asked_for() -> None:
    X = pd.DataFrame({"zip": [str(i) for i in range(2_000)]})
    assert FeatureSpace.from_frame(X, max_categories=2_000).width == 2_000
