"""Encoded rows in little memory: one number per feature, expanded in chunks, with the same results as one matrix."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from globece import Explanation, FeatureSpace, compact, explain
from globece.baselines import AresSettings, RecourseSet, ares, fast_ares
from globece.case.posing import compiled_on
from globece.compact import Rows
from globece.errors import GlobeCEWarning
from globece.models.blackbox import BlackBox
from globece.models.compiling.adapt import Compiled, as_model
from globece.search import Climb
from tests.problems import approve, mixed_frame, mixed_space

QUICK = Climb(rays=500)


def always_compact(monkeypatch: pytest.MonkeyPatch, rows_at_once: int, width: int) -> None:
    """Keep all rows compact, and expand so many at a time."""
    monkeypatch.setattr(compact, "is_large", lambda space, n: True)
    monkeypatch.setattr(compact, "CHUNK", rows_at_once * 8 * width)


def wide(n: int, n_categories: int = 40, seed: int = 0) -> tuple[Pipeline, pd.DataFrame]:
    """Return a model over a column of many categories and two of numbers, and its rows."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_categories, n)
    X = pd.DataFrame(
        {"zip": [f"z{i:04d}" for i in codes], "a": rng.normal(size=n), "b": rng.integers(0, 50, n), "c": rng.random(n)}
    )
    y = np.random.default_rng(1).normal(size=n_categories)[codes] + X["a"] + 0.02 * X["b"] > 1
    one_hot = ColumnTransformer([("c", OneHotEncoder(handle_unknown="ignore"), ["zip"])], remainder="passthrough")
    return make_pipeline(one_hot, LogisticRegression(max_iter=1_000)).fit(X.head(5_000), y.head(5_000)), X


def as_bytes(frame: Any) -> bytes:
    """Return all values of a frame."""
    return pd.util.hash_pandas_object(frame).to_numpy().tobytes()


def test_expanding_gives_the_matrix_and_packing_gives_it_back() -> None:
    space, X = mixed_space(), mixed_frame()
    short = space.compact(X)
    assert short.shape == (len(X), len(space.features))
    Z = space.encode(X)
    np.testing.assert_array_equal(space.expand(short), Z)
    np.testing.assert_array_equal(space.pack(Z), short)
    pd.testing.assert_frame_equal(space.decode_compact(short), space.decode(Z))


@pytest.mark.parametrize("dtype", [np.float64, np.int8, bool])
def test_one_hot_columns_of_a_matrix_are_one_number_too(dtype: Any) -> None:
    X = np.array([[1, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 1]]).astype(dtype)
    space = FeatureSpace.from_matrix(X, columns=list("abcd"), groups={"g": ["a", "b", "c"]})
    assert space.compact(X)[:, 0].tolist() == [0, 2, 1]
    back = space.decode_compact(space.compact(X))
    assert back.dtype == X.dtype
    np.testing.assert_array_equal(back, X)


def test_rows_behave_like_the_matrix_they_stand_for(monkeypatch: pytest.MonkeyPatch) -> None:
    space, X = mixed_space(), mixed_frame()
    plain = Rows.read(space, X)
    assert not plain.is_compact
    always_compact(monkeypatch, 7, space.width)
    rows = Rows.read(space, X)
    assert rows.is_compact
    assert rows.values.shape[1] == len(space.features)
    for index in (slice(3, 20), np.array([5, 1, 1]), np.arange(len(X)) % 3 == 0):
        np.testing.assert_array_equal(rows[index].dense(), plain[index].dense())
        np.testing.assert_array_equal(rows[index].dense(), plain.values[index])
    parts = list(rows.chunks())
    assert max(len(Z) for _, Z in parts) == 7
    np.testing.assert_array_equal(np.vstack([Z for _, Z in parts]), plain.values)
    np.testing.assert_array_equal(np.concatenate([np.arange(len(X))[part] for part, _ in parts]), np.arange(len(X)))
    for f in space.features:
        np.testing.assert_array_equal(rows.feature(f), plain.feature(f))
    pd.testing.assert_frame_equal(rows.decode(), plain.decode())
    assert len(list(rows[:0].chunks())) == 0


def test_narrow_rows_stay_a_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "DENSE", 0)
    X = np.random.default_rng(0).normal(size=(50, 4))
    rows = Rows.read(FeatureSpace.from_matrix(X), X)
    assert not rows.is_compact
    assert len(list(rows.chunks())) == 1


@pytest.mark.parametrize("rows_at_once", [1_000, 11])
def test_result_does_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch, rows_at_once: int) -> None:
    X, space = mixed_frame(200), mixed_space(mixed_frame(200))
    ex = explain(approve, X, space=space, n_directions=2, rng=0, search=QUICK)
    always_compact(monkeypatch, rows_at_once, space.width)
    again = ex.apply(X)
    assert again.encoded.is_compact
    np.testing.assert_array_equal(again.scalars, ex.scalars)
    np.testing.assert_array_equal(again.costs, ex.costs)
    np.testing.assert_array_equal(again.inputs, ex.inputs)
    assert as_bytes(again.counterfactuals().after) == as_bytes(ex.counterfactuals().after)
    assert again.to_dict()["inputs"] == ex.to_dict()["inputs"]
    for direction in (None, 1):
        one, other = again.mean_translation(direction), ex.mean_translation(direction)
        assert (one.change.tobytes(), one.share.tobytes(), one.cost.tobytes()) == (
            other.change.tobytes(),
            other.share.tobytes(),
            other.cost.tobytes(),
        )
    assert str(again.rules_chart(spacing="greedy")) == str(ex.rules_chart(spacing="greedy"))
    if rows_at_once > len(X):  # the search sees all rows, as it does of a matrix
        assert explain(approve, X, space=space, n_directions=2, rng=0, search=QUICK).to_json() == ex.to_json()


def test_file_is_the_same_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = wide(600)
    ex = explain(model, X, rng=0, search=QUICK)
    text = ex.to_json()
    always_compact(monkeypatch, 100, ex.space.width)
    back = Explanation.from_json(text)
    assert back.encoded.is_compact
    assert back.to_json() == text
    assert as_bytes(back.counterfactuals().after) == as_bytes(ex.counterfactuals().after)


def test_row_order_does_not_matter_where_the_search_sees_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = wide(1_000)
    space = FeatureSpace.from_frame(X)
    always_compact(monkeypatch, 150, space.width)
    order = np.random.default_rng(0).permutation(len(X))
    ex = explain(model, X, space=space, rng=0, search=QUICK)
    other = explain(model, X.iloc[order], space=space, rng=0, search=QUICK)
    assert ex.provenance.method == "exact"
    np.testing.assert_array_equal(other.directions, ex.directions)
    at = np.empty(len(X), dtype=np.int64)
    at[order] = np.arange(len(X))
    where = np.argsort(other.rows)[np.searchsorted(np.sort(other.rows), at[ex.rows])]
    np.testing.assert_array_equal(other.costs[:, where], ex.costs)


def test_compiled_model_is_checked_on_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = wide(1_000)
    space = FeatureSpace.from_frame(X)
    box = as_model(model, space, compile=False)
    assert isinstance(box, BlackBox)
    always_compact(monkeypatch, 100, space.width)
    rows = Rows.read(space, X)
    decided = model.predict(X).astype(bool)
    assert isinstance(compiled_on(box, rows, decided), Compiled)
    decided[517] = ~decided[517]  # as if the original said otherwise of one row
    with pytest.warns(GlobeCEWarning, match=r"gives 1 of 1,000 of the rows given another outcome"):
        assert compiled_on(box, rows, decided) is box


def test_memory_does_not_grow_with_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "DENSE", 4 * 2**20)
    monkeypatch.setattr(compact, "CHUNK", 2 * 2**20)

    def peak(n: int) -> int:
        model, X = wide(n, 300)
        space = FeatureSpace.from_frame(X)
        tracemalloc.start()
        try:
            ex = explain(model, X, space=space, rng=0, search=QUICK)
            ex.mean_translation()
            ex.to_dict()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(2_000)  # what is compiled and cached once
    more = peak(32_000) - peak(8_000)
    assert more < 0.25 * 24_000 * 303 * 8  # a quarter of the matrix of the rows that are added


def test_rules_over_compact_rows_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, space, asked = mixed_frame(200), mixed_space(), AresSettings(support=0.05, bins=4)
    plain = ares(approve, X, space=space, rng=0, ares_settings=asked)
    always_compact(monkeypatch, 7, space.width)
    short = ares(approve, X, space=space, rng=0, ares_settings=asked)
    assert short.encoded.is_compact
    assert short.rules == plain.rules
    for name in ("inputs", "matches", "costs"):
        np.testing.assert_array_equal(getattr(short, name), getattr(plain, name))
    assert short.by_group() == plain.by_group()
    assert short.by_group("job") == plain.by_group("job")
    pd.testing.assert_frame_equal(short.counterfactuals().after, plain.counterfactuals().after)
    assert short.apply(X).score == plain.apply(X).score
    again = RecourseSet.from_json(short.to_json())
    np.testing.assert_array_equal(again.matches, plain.matches)


def test_memory_of_rules_does_not_grow_with_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "DENSE", 4 * 2**20)
    monkeypatch.setattr(compact, "CHUNK", 2 * 2**20)

    def peak(n: int) -> int:
        model, X = wide(n, 300)
        space = FeatureSpace.from_frame(X)
        tracemalloc.start()
        try:
            found = fast_ares(model, X, space=space, rng=0)
            found.counterfactuals()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(2_000)  # what is compiled and cached once
    more = peak(16_000) - peak(4_000)
    assert more < 0.25 * 12_000 * 303 * 8  # a quarter of the matrix of the rows that are added
