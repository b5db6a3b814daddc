"""Rounding of linear models' sums: what they really sum, what replaces missing numbers, and margins of nearly 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler
from sklearn.svm import SVC

from globece import FeatureSpace, as_model, explain
from globece.models.compiling.adapt import Compiled
from globece.models.linear.half_spaces import LinearModel


def rule(weights: list[float], intercept: float) -> LogisticRegression:
    """A classifier with given weights."""
    model = LogisticRegression()
    model.classes_, model.n_features_in_ = np.array([0, 1]), len(weights)
    model.coef_, model.intercept_ = np.array([weights]), np.array([intercept])
    return model


def core_of(model: Any, X: Any, **wanted: Any) -> tuple[LinearModel, Compiled, FeatureSpace]:
    space = FeatureSpace.from_frame(X) if isinstance(X, pd.DataFrame) else FeatureSpace.from_matrix(X)
    found = as_model(model, space, rows=space.encode(X), **wanted)
    assert isinstance(found, Compiled)
    assert isinstance(found.core, LinearModel)
    return found.core, found, space


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
def test_the_rounding_of_a_support_vector_machine_is_that_of_its_sum_over_vectors(offset: float) -> None:
    """Support vectors cancel to a coefficient that is much smaller than they are."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) + offset
    y = ((X - offset) @ [1.0, -1.0, 0.5] + rng.normal(size=300) > 0.0).astype(int)
    model = SVC(kernel="linear", C=10.0, max_iter=20_000).fit(X, y)
    core, _, _ = core_of(model, X)
    Z = rng.normal(size=(2000, 3)) + offset
    off = np.abs(model.decision_function(Z) - core.margin(Z))
    bound = core.rounding(Z)[:, 0]
    assert (off < bound).all()
    assert off.max() > 1e-4 * bound.max()  # and it is no wild guess


@pytest.mark.parametrize("closed", [False, True])
def test_points_that_add_up_exactly_are_followed_exactly(closed: bool) -> None:
    """A scorecard of whole points has no rounding: its ties are decided, not searched."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (60, 3)).astype(float)
    space = FeatureSpace.from_matrix(X, whole=["x0", "x1", "x2"], columns=["x0", "x1", "x2"])
    weights, none = np.array([[2.0, -1.0, 0.5]]), np.zeros(3)
    model = LinearModel(space, weights, np.array([-20.0]), np.array([closed]), none)
    Z = X[~model.favourable(X)]
    (k,) = model.first_flip(Z, np.array([[1.0, 0.0, 0.0]]), np.full((1, len(Z)), 40.0))
    assert not np.isnan(k).any()
    missing = 20.0 - Z @ weights[0]
    steps = np.ceil(missing / 2.0) if closed else np.floor(missing / 2.0) + 1.0
    np.testing.assert_array_equal(np.ceil(k - 0.5), np.where(Z[:, 0] + steps <= X[:, 0].max(), steps, np.inf))
    assert (model.rounding(X) == 0.0).all()


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_ties_on_whole_numbers_are_left_to_the_model(dtype: Any) -> None:
    """Margins of whole rows are multiples of 1/22, and nearly 0 where a row adds up to 40."""
    X = np.array([[31, 31], [9, 9], [31, 9], [9, 31], [20, 22], [35, 8]] * 3, dtype=dtype)
    whole = FeatureSpace.from_matrix(X, columns=["a", "b"], whole=["a", "b"])
    for shift in (0.0, 2e-16, -2e-16):
        model = rule([-1.0 / 22.0, -1.0 / 22.0], 40.0 / 22.0 + shift)
        found = explain(model, X, favourable=1, n_directions=1, rng=0, budget=100.0, space=whole)
        delta, followed = np.array([[-1.0, 0.0]]), as_model(model, whole, favourable=1, rows=whole.encode(X))
        assert found.coverage == 1.0
        affected = X[model.predict(X) == 0].astype(float)
        k = followed.first_flip(affected, delta, np.full((1, len(affected)), 40.0))[0]
        for x, scalar in zip(affected, k, strict=True):
            steps = np.arange(0.0, x[0] - 8.0)
            line = np.column_stack([x[0] - steps, np.full(len(steps), x[1])]).astype(dtype)
            flips = model.predict(line) == 1
            expected = steps[flips.argmax()] if flips.any() else np.inf
            assert np.ceil(scalar - 0.5) == expected, (shift, x, scalar)


@pytest.mark.parametrize("shift", [0.0, 1e-15, -1e-15])
def test_a_switch_to_a_margin_of_nearly_0_is_left_to_the_model(shift: float) -> None:
    X = pd.DataFrame({"home": ["rent", "own", "loan"] * 10, "job": ["a", "b"] * 15})
    y = (X["home"] == "own") & (X["job"] == "a")
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(X, y)
    model[-1].coef_ = np.array([[0.1, 0.2, 0.0, 0.3, 0.0]])  # loan, own, rent, a, b
    model[-1].intercept_ = np.array([-0.3 + shift])
    space = FeatureSpace.from_frame(X)
    found = as_model(model, space, rows=space.encode(X), favourable=True)
    Z = space.encode(pd.DataFrame({"home": ["rent", "loan"], "job": ["b", "b"]}))
    for home, job in (("own", None), ("loan", "a"), ("rent", "a")):
        delta = np.zeros(space.width)
        names = [("home", home), ("job", job)]
        for f in space.features:
            for i, category in enumerate(f.categories):
                delta[f.start + i] = float((f.name, category) in names)
        k = found.first_flip(Z, delta[None], np.full((1, 2), 5.0))[0]
        for row, scalar in zip(Z, k, strict=True):
            after = row.copy()
            for f in space.features:
                if delta[f.columns].any():
                    after[f.columns] = delta[f.columns] == 1.0
            assert np.isfinite(scalar) == found.favourable(after[None])[0]


@pytest.mark.parametrize("shift", [0.0, 1e-15, -1e-15])
def test_a_bin_with_a_margin_of_nearly_0_is_left_to_the_model(shift: float) -> None:
    """Also where the next bin is clear: the answer is not its edge."""
    X = np.linspace(0.0, 10.0, 101)[:, None]
    bins = KBinsDiscretizer(5, encode="onehot-dense", strategy="uniform", quantile_method="averaged_inverted_cdf")
    model = make_pipeline(bins, LogisticRegression()).fit(X, (X[:, 0] > 5.0).astype(int))
    model[-1].coef_, model[-1].intercept_ = np.array([[-0.3, -0.1, 0.3, 0.7, 0.8]]), np.array([-0.3 + shift])
    space = FeatureSpace.from_matrix(X)
    found = as_model(model, space, rows=X)
    k = found.first_flip(X[:10], np.ones((1, 1)), np.full((1, 10), 10.0))[0]
    middle = model.predict(np.array([[5.0]]))[0] == 1
    np.testing.assert_allclose(X[:10, 0] + k, 4.0 if middle else 6.0, atol=1e-3)


@pytest.mark.parametrize("scaler", [RobustScaler, StandardScaler, MinMaxScaler])
@pytest.mark.parametrize("far", [1e4, 2e6])
def test_a_replaced_number_in_a_far_column_of_single_precision_delays_nobody(scaler: Any, far: float) -> None:
    """What replaces it is known: it is rounded once, by so much, and not by any half unit of its type."""
    rng = np.random.default_rng(0)
    offset = np.array([0.0, far, 0.0])
    M = rng.normal(size=(200, 3)) + offset
    y = ((M - offset).sum(axis=1) > 0.0).astype(int)
    M[rng.random(200) < 0.5, 1] = np.nan
    X = M.astype(np.float32)
    model = make_pipeline(SimpleImputer(), scaler(), LogisticRegression()).fit(X, y)
    _, found, space = core_of(model, X, favourable=1)
    Z = space.encode(X)
    Z = Z[np.isnan(Z[:, 1]) & ~found.favourable(Z)]
    delta = np.array([[1.0, 0.0, 0.5]])
    k = found.first_flip(Z, delta, np.full((1, len(Z)), 50.0))[0]
    hit = np.isfinite(k)
    assert hit.mean() > 0.9
    after, before = (Z[hit] + (k[hit] * share)[:, None] * delta for share in (1.0, 1.0 - 1e-4))
    assert (model.predict(after.astype(np.float32)) == 1).all()
    assert (model.predict(after) == 1).all()
    flips_in_both = (model.predict(before.astype(np.float32)) == 1) & (model.predict(before) == 1)
    if scaler is RobustScaler:  # the others really round by that much
        assert flips_in_both.mean() < 0.1


def test_two_scores_that_are_much_alike_are_rounded_apart() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)) + 1000.0
    y = np.digitize(X[:, 0] - 1000.0, [-0.5, 0.5])
    model = LogisticRegression(max_iter=50).fit(X - 1000.0, y)
    model.coef_ = model.coef_ + 1e6  # a common part, which the classes share
    core, _, _ = core_of(model, X, favourable=1)
    scores = model.decision_function(X)
    lead = scores[:, [1]] - scores[:, [0, 2]]
    assert (np.abs(lead - core.margins(X)) < core.rounding(X)).all()
    assert (np.abs(lead - core.margins(X)) > 0.0).any()


def test_a_poisson_model_over_a_replaced_number_is_not_late() -> None:
    rng = np.random.default_rng(1)
    M = rng.normal(size=(120, 2)) + np.array([0.0, -51_685.0])
    y = np.exp(0.5 * M[:, 0] + 0.3)
    M[rng.random(120) < 0.5, 1] = np.nan
    X = M.astype(np.float32)
    model = make_pipeline(SimpleImputer(), MinMaxScaler(), PoissonRegressor()).fit(X, y)
    _, found, space = core_of(model, X, favourable="above", threshold=float(np.median(model.predict(X))))
    Z = space.encode(X)
    Z = Z[np.isnan(Z[:, 1]) & ~found.favourable(Z)]
    k = found.first_flip(Z, np.array([[1.0, 0.0]]), np.full((1, len(Z)), 50.0))[0]
    hit = np.isfinite(k)
    assert hit.mean() > 0.9
    early = Z[hit] + (k[hit] * (1.0 - 2e-4))[:, None] * [1.0, 0.0]
    assert (~found.favourable(early)).mean() > 0.95
