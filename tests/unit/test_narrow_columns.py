"""Columns of narrow floats: a counterfactual flips as the user keeps it, and when the same numbers are doubles."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MaxAbsScaler, MinMaxScaler, RobustScaler
from sklearn.svm import SVC

import globece as gce
from globece.directions import FixedDirections
from globece.errors import GlobeCEWarning

STEPS = {
    "scaled": (MinMaxScaler(),),
    "robust": (RobustScaler(),),
    "imputed": (KNNImputer(n_neighbors=2), MinMaxScaler()),
}
MODELS = {
    "boosting": HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5, random_state=0),
    "forest": RandomForestClassifier(8, random_state=0),
}


@pytest.mark.parametrize("kept", ["float16", "float32"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("before", STEPS)
@pytest.mark.parametrize("matrix", [False, True])
def test_trees_behind_narrow_steps_flip_in_double_precision_too(
    before: str, kind: str, kept: str, matrix: bool
) -> None:
    """Seeds 3101, 144, 50015, 50129 and 50296 of the adversary: up to all of the counterfactuals did not."""
    rng = np.random.default_rng(1)
    X: Any = pd.DataFrame(rng.uniform(0, [7.0, 2.0, 30.0], (300, 3)), columns=list("abc")).astype(kept)
    y = (X["a"] / 7 + X["b"] / 2 + X["c"] / 30 > 1.6).astype(int).to_numpy()
    if matrix:
        X = X.to_numpy()
    model = make_pipeline(*STEPS[before], MODELS[kind]).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GlobeCEWarning)  # imputing by neighbours is searched
        ex = gce.explain(model, X, rng=0, search=gce.Race(gce.UniformSampling(), 8), settings=gce.Settings(grid=32))
    after = ex.counterfactuals().after
    assert len(after) > 50
    assert (model.predict(after) == 1).all()
    assert (model.predict(after.astype("float64")) == 1).all()


def test_whole_numbers_in_a_narrow_type_are_not_rounded() -> None:
    """Seed 50072 of the adversary: a year in half precision, which is whole, made scalars ten times too large."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(1990, 2030, 200), rng.normal(size=200)]).astype("float16")
    model = SVC(kernel="linear").fit(X, X[:, 0] - 2010 + 10 * X[:, 1] > 0)
    found = {}
    for kept in ("float16", "float64"):
        space = gce.FeatureSpace.from_matrix(
            X.astype(kept), columns=["year", "x"], whole=["year"], ranges={"x": (-9, 9)}
        )
        k = gce.as_model(model, space, favourable=True).first_flip(
            space.encode(X.astype(kept)), np.array([[0.0, 1.0]]), np.full((1, 200), 1e4)
        )
        found[kept] = k[0][(model.predict(X) == 0) & np.isfinite(k[0])]
    assert len(found["float16"]) == len(found["float64"]) > 20
    assert np.allclose(found["float16"], found["float64"], rtol=0.01, atol=0.01)


def test_whole_steps_finer_than_rounding_are_followed() -> None:
    """Seed 2110641 of the adversary: a whole number in the millions of millions beside one in half precision.

    No single step of it clears the rounding of the other: rays were searched, and ended up to 1 % late.
    """
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"big": rng.integers(-(10**12), 10**12, 120), "half": rng.normal(size=120).astype("float16")})
    space = gce.FeatureSpace.from_frame(X, ranges="unbounded")
    model = make_pipeline(MaxAbsScaler(), Ridge()).fit(X, 1.0 + (X["big"] / 1e12 + X["half"] > 0.5))
    asked: dict[str, Any] = {"threshold": 1.8, "space": space, "budget": 40.0, "rng": 0}
    one = FixedDirections(space.check_directions(np.array([[1e11, 0.5], [1e11, -0.2], [-1e10, 0.7]])))
    ex = gce.explain(model, X, search=gce.Race(one, 3), n_directions=3, **asked)
    assert ex.model is not None
    assert ex.model.tallies[0].searched_rays == 0
    after = ex.counterfactuals()
    assert len(after.row) > 50
    said = model.predict(after.after)
    assert (said >= 1.8).all()
    # no further than what half precision rounds, 2^-11 of where a row was and of how far it went
    was, now = (rows["half"].to_numpy(dtype=float) for rows in (after.before, after.after))
    share = np.abs(model[1].coef_[1] / model[0].scale_[1]) * (np.abs(was) + np.abs(now - was))
    assert (said - 1.8 < 2.0 * 2.0**-11 * (share + 0.01)).all()


@pytest.mark.parametrize(("beyond", "reported"), [(1.0, False), (1.01, False), (1.1, True)])
def test_what_only_flips_at_the_end_of_its_way_outlives_its_last_digit(beyond: float, reported: bool) -> None:
    """Seed 1091 of the adversary: before the limit a module in single precision may not become sure."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    first = torch.nn.Linear(2, 6)
    with torch.no_grad():  # undoes an offset that is far larger than what it spans
        first.bias -= first.weight @ torch.tensor([0.0, 1.36e6])
    module = torch.nn.Sequential(first, torch.nn.ReLU(), torch.nn.Linear(6, 1)).eval()
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), 1.36e6 + rng.normal(size=400)])
    box: Any = gce.as_model(module, gce.FeatureSpace.from_matrix(X, ranges="unbounded"), compile=False)
    low, found = X[~box.favourable(X)], 0
    for delta in (np.array([[2.0, 0.0]]), np.array([[-2.0, 0.0]])):
        by_decisions = replace(box, steady=False, precision=1e-9)
        by_decisions.__dict__["guide"] = None
        edge = by_decisions.first_flip(low, delta, np.full((1, len(low)), 3.0))[0]
        some = np.isfinite(edge) & (edge > 0)
        k = box.first_flip(low[some], delta, beyond * edge[None, some])[0]
        flips = np.isfinite(k)
        after = (low[some][flips] + k[flips, None] * delta).astype(np.float32)
        found += len(after)
        rows = [after, np.nextafter(after, -np.inf), np.nextafter(after, np.inf)]
        with torch.inference_mode():
            assert all((module(torch.from_numpy(some)) > 0).all() for some in rows)
    assert (found > 0) == reported


@pytest.mark.parametrize("favourable", [0, 1])
def test_a_margin_of_nothing_on_a_whole_stretch_is_decided_by_the_model(favourable: int) -> None:
    """Seed 302098 of the adversary: at exactly 0 libsvm gives the second class, other linear models the first."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 10.0, (300, 3))
    bins = KBinsDiscretizer(2, encode="ordinal", strategy="uniform").fit(X)
    binned, corners = bins.transform(X), np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    plane = SVC(kernel="linear", C=1e6).fit(corners, [0, 1])  # a row with one high value lies right on the boundary
    assert (plane.decision_function(np.eye(3)[:2]) == 0.0).all()
    model = Pipeline([("bins", bins), ("plane", plane)])
    assert len(np.unique(model.predict(X))) == 2
    assert binned.shape == X.shape
    ex = gce.explain(model, X, favourable=favourable, rng=0, search=gce.Race(gce.UniformSampling(), 12))
    searched = ex.apply(X, model=gce.as_model(model, ex.space, favourable=favourable, compile=False))
    both = np.isfinite(ex.scalars)
    assert both.any()
    assert np.array_equal(both, np.isfinite(searched.scalars))
    assert np.allclose(ex.scalars[both], searched.scalars[both], rtol=1e-5)


@pytest.mark.parametrize("kept", ["float16", "float32", "float64"])
def test_recourse_right_at_the_end_of_a_range_is_kept(kept: str) -> None:
    X = np.column_stack([np.linspace(0.0, 5.0, 60), np.zeros(60)]).astype(kept)
    ex = gce.explain(lambda A: (np.asarray(A)[:, 0] >= 5.0).astype(int), X, rng=0, budget=100.0)
    assert (ex.n_affected, ex.coverage) == (59, 1.0)


@pytest.mark.parametrize("other", ["float64", "int64", "float16"])
def test_what_fills_a_narrow_column_has_the_type_of_the_columns_together(other: str) -> None:
    """One wide column makes doubles of all of them, and what fills a gap is not rounded then."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": (50.123 + 3.0 * rng.normal(size=300)).astype("float16"), "b": np.arange(300) % 9})
    X["b"] = X["b"].astype(other)
    y = X["a"].astype(float) - 50 + X["b"].astype(float) > 4
    X.loc[::4, "a"] = np.nan
    model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(X, y)
    space = gce.FeatureSpace.from_frame(X)
    compiled = gce.as_model(model, space, rows=space.encode(X))
    assert compiled.exact
    np.testing.assert_allclose(compiled.margin(space.encode(X)), model.decision_function(X), rtol=0.0, atol=1e-9)
