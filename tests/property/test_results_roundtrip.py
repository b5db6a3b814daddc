"""Whatever an explanation holds comes back from its file, bit by bit, and its file fits the schema."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from jsonschema import Draft202012Validator

from globece import CostModel, Explanation, FeatureSpace
from globece.compact import Rows
from globece.explanation import Provenance
from globece.io.results import FORMAT
from globece.space import FloatArray

VALIDATOR = Draft202012Validator(FORMAT.schema())
NUMBERS = st.floats(-1e100, 1e100)
DESCRIBED: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("version", "model", "method", "favourable", "generator"), st.text(max_size=5)),
    **dict.fromkeys(("candidates", "model_calls", "model_rows"), st.integers(0, 2**70)),
}
CATEGORIES = st.one_of(st.text(max_size=5), st.integers(), NUMBERS, st.booleans(), st.none())


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    n = draw(st.integers(2, 6))

    def column(values: st.SearchStrategy[object]) -> pd.Series:
        first: dict[object, object] = {}  # 1, True and 1.0 in one column are refused
        drawn = draw(st.lists(values, min_size=n, max_size=n))
        return pd.Series([first.setdefault(v, v) for v in drawn], dtype=object)

    first = draw(st.floats(-1e6, 1e6))
    columns = {
        "number": pd.Series(
            [first, *draw(st.lists(st.one_of(NUMBERS, st.just(np.nan)), min_size=n - 1, max_size=n - 1))]
        ),
        "whole": column(st.integers(-(2**53), 2**53)).astype(np.int64),
        "level": column(st.sampled_from(["low", "mid", "high", None])),
        draw(st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"]))): column(CATEGORIES),
    }
    columns = {name: c for name, c in columns.items() if c.notna().any()}
    return pd.DataFrame(columns)


@st.composite
def explanations(draw: st.DrawFn) -> Explanation:
    X = draw(frames())
    ordinal = {"level": ["low", "mid", "high"]} if "level" in X and X["level"].dtype == object else {}
    space = FeatureSpace.from_frame(X, ordinal=ordinal, ranges=draw(st.sampled_from([None, "unbounded"])))
    weights = {name: draw(st.floats(1e-3, 1e3)) for name in space.names}
    cost = CostModel.bins(space, weights=weights, norm=draw(st.sampled_from(["l1", "l2"])))
    directions = draw(hnp.arrays(np.float64, (draw(st.integers(0, 3)), space.width), elements=st.floats(-1e3, 1e3)))
    rows = np.flatnonzero(draw(hnp.arrays(np.bool_, len(X))))
    inputs = Rows.read(space, X)[rows]
    scalars = draw(hnp.arrays(np.float64, (len(directions), len(rows)), elements=st.floats(0, 1e3) | st.just(np.inf)))
    return Explanation(
        space=space,
        cost=cost,
        budget=draw(st.floats(1e-6, 1e300)),
        directions=directions,
        encoded=inputs,
        rows=rows,
        n_rows=len(X),
        scalars=scalars,
        costs=np.where(
            np.isinf(scalars), np.inf, draw(hnp.arrays(np.float64, scalars.shape, elements=st.floats(0, 1e3)))
        ),
        provenance=Provenance(
            **{name: draw(values) for name, values in DESCRIBED.items()},
            complete=draw(st.booleans()),
            notes=tuple(draw(st.lists(st.text(max_size=5), max_size=2))),
        ),
        max_scalar=draw(st.none() | st.floats(1e-300, 1e300)),
    )


def bits(array: FloatArray) -> bytes:
    """All bits of the numbers; a NaN is a NaN, whatever it carries."""
    return np.where(np.isnan(array), np.nan, array).tobytes()


@settings(max_examples=60, deadline=None)
@given(explanations())
def test_everything_comes_back(ex: Explanation) -> None:
    text = ex.to_json()
    VALIDATOR.validate(json.loads(text))
    back = Explanation.from_json(text)
    assert back.to_json() == text
    for name in ("directions", "inputs", "scalars", "costs"):
        assert bits(getattr(back, name)) == bits(getattr(ex, name)), name
    assert back.space.features == ex.space.features
    for ours, theirs in zip(ex.space.features, back.space.features, strict=True):
        assert [type(c) for c in theirs.categories] == [type(c) for c in ours.categories]
    assert back.provenance == ex.provenance
    assert (back.coverage, back.average_cost, back.score) == (ex.coverage, ex.average_cost, ex.score)
    there, here = ex.counterfactuals(), back.counterfactuals()
    pd.testing.assert_frame_equal(there.before, here.before)
    pd.testing.assert_frame_equal(there.after, here.after)
