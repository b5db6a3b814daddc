"""Rows that start outside a range: what they move ends inside it, and every model agrees on where they go."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

from globece import CostModel, FeatureSpace, Settings, audit, explain, rays, who_benefits
from globece.bundle import bundle
from globece.costs import Norm
from globece.models.compiling.adapt import Compiled, as_model
from globece.models.networks.network import ReLUNetwork
from globece.models.networks.plain import first_flip_plain
from globece.models.trees.ensemble import TreeEnsemble
from globece.models.trees.plain import plain_first_flip
from globece.pricing import costs_at, horizons
from globece.testing.models import ModelCase, ModelContract
from tests.problems import (
    MATRIX_COLUMNS,
    MATRIX_GROUPS,
    MATRIX_WEIGHTS,
    directions_in,
    matrix,
    mixed_frame,
    mixed_space,
)

NARROW = {"income": (2.5, 3.4), "debts": (2, 4), "age": (40, 50)}
Z = matrix(400)
Z[::17, 0] = np.nan
SPACE = FeatureSpace.from_matrix(Z, columns=MATRIX_COLUMNS, groups=MATRIX_GROUPS, whole=["debts", "age"], ranges=NARROW)
FILLED = np.where(np.isnan(Z), 3.0, Z)
LABEL = (np.median(FILLED @ MATRIX_WEIGHTS) < FILLED @ MATRIX_WEIGHTS).astype(int)


def _compiled(model: Any, rows: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = as_model(model, SPACE, favourable=1, rows=rows)
    assert isinstance(made, Compiled)
    return made


def _linear() -> Any:
    return LogisticRegression(C=0.1, max_iter=5000).fit(FILLED, LABEL), FILLED


def _binned() -> Any:
    bins = KBinsDiscretizer(8, encode="onehot-dense", strategy="uniform", quantile_method="averaged_inverted_cdf")
    steps = ColumnTransformer([("bins", bins, [0, 1, 5]), ("as it is", "passthrough", [2, 3, 4])])
    return make_pipeline(steps, LogisticRegression(max_iter=5000)).fit(FILLED, LABEL), FILLED


def _forest() -> Any:
    return RandomForestClassifier(20, max_depth=5, random_state=0).fit(Z, LABEL), Z


def _boosted() -> Any:
    return GradientBoostingClassifier(n_estimators=30, random_state=0).fit(FILLED, LABEL), FILLED


def _network() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(StandardScaler(), MLPClassifier((12, 8), max_iter=400, random_state=0)).fit(
            FILLED, LABEL
        ), FILLED


KINDS = {"linear": _linear, "binned": _binned, "forest": _forest, "boosted": _boosted, "network": _network}


class TestModels(ModelContract):
    """Every exact kind keeps the contract for rows outside their ranges."""

    @pytest.fixture(params=list(KINDS))
    def case(self, request: pytest.FixtureRequest) -> ModelCase:
        model, rows = KINDS[request.param]()
        compiled = _compiled(model, rows)
        outside = [(rows[:, f.start] < f.low) | (rows[:, f.start] > f.high) for f in SPACE.scalars if f.can_move]
        assert np.any(outside, axis=0).mean() > 0.9
        return ModelCase(compiled, rows, n_directions=12, n_rays=6)


class TestSearched(ModelContract):
    """So does a black box."""

    @pytest.fixture
    def case(self) -> ModelCase:
        model, rows = _boosted()
        return ModelCase(as_model(model, SPACE, favourable=1, compile=False), rows[:80], n_directions=3, n_rays=2)


@given(directions_in(SPACE), st.one_of(st.floats(0.0, 30.0), st.sampled_from([5e-324, 1e-300, 1e300])))
def test_what_moves_ends_inside_and_never_against_its_direction(delta: np.ndarray, k: float) -> None:
    after = rays.positions(SPACE, Z, delta, k)
    for f in SPACE.scalars:
        x, y, step = Z[:, f.start], after[:, f.start], delta[f.start]
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
        known = ~np.isnan(x)
        moved = known & (x != y)
        assert ((y[moved] >= f.low) & (y[moved] <= f.high)).all()
        assert ((y - x)[known] * step >= 0).all()
        led = (x < f.low) if step > 0 else (x > f.high)
        if step and k > 0:
            assert moved[led].all()  # at once, however small the k
        assert not moved[(x > f.high) if step > 0 else (x < f.low)].any()


@given(directions_in(SPACE), st.sampled_from(["l1", "l2"]), st.floats(0.0, 12.0))
@settings(deadline=None)
def test_kernels_price_such_rows_as_their_plain_twins(delta: np.ndarray, norm: Norm, k: float) -> None:
    cost = CostModel.bins(SPACE, norm=norm)
    made = bundle(SPACE, delta[None])
    (limit,) = horizons(cost, Z, made, 10.0)
    np.testing.assert_allclose(limit, rays.horizon(cost, Z, delta, 10.0), rtol=1e-12)
    for at in (np.full(len(Z), k), np.full(len(Z), 5e-324), limit):
        (paid,) = costs_at(cost, Z, made, at[None])
        np.testing.assert_allclose(paid, rays.cost_at(cost, Z, delta, at), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(paid, cost.between(Z, rays.positions(SPACE, Z, delta, at)), rtol=1e-9, atol=1e-12)
    # beyond the horizon nothing changes, or it costs more than the budget
    beyond = rays.positions(SPACE, Z, delta, limit * 3.0 + 1.0)
    changed = (np.nan_to_num(beyond) != np.nan_to_num(rays.positions(SPACE, Z, delta, limit))).any(axis=1)
    assert not changed[cost.between(Z, beyond) <= 10.0].any()


@pytest.mark.parametrize("kind", ["forest", "boosted"])
def test_trees_agree_with_their_plain_twin(kind: str) -> None:
    model, rows = KINDS[kind]()
    core = _compiled(model, rows).core
    assert isinstance(core, TreeEnsemble)
    rng, some = np.random.default_rng(3), rows[:25]
    D = np.where(rng.random((6, SPACE.width)) < 0.6, rng.normal(size=(6, SPACE.width)), 0.0) * 2.0
    limit = np.full((6, len(some)), 9.0)
    np.testing.assert_array_equal(
        core.first_flip(some, D, limit), plain_first_flip(core.trees, core.rule, SPACE, some, D, limit)
    )


def test_networks_agree_with_their_plain_twin() -> None:
    model, rows = _network()
    core = _compiled(model, rows).core
    assert isinstance(core, ReLUNetwork)
    rng, some = np.random.default_rng(4), rows[~core.favourable(rows)][:40]
    D = np.where(rng.random((6, SPACE.width)) < 0.6, rng.normal(size=(6, SPACE.width)), 0.0) * 2.0
    limit = np.full((6, len(some)), 9.0)
    found = core.first_flip(some, D, limit)
    plain = np.array([
        [first_flip_plain(core.layers, SPACE, row, core.fill, delta, 9.0) for row in some] for delta in D
    ])  # fmt: skip
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(plain))
    hit = np.isfinite(plain)
    assert ((found == 5e-324) == (plain == 0.0))[hit].all()
    np.testing.assert_allclose(found[hit], plain[hit], rtol=1e-5, atol=1e-300)
    assert (plain[hit] == 0.0).any(), "nobody flips on entering a range: choose another case"


ORDER = ["9th", "HS", "some-college", "BSc", "MSc", "PhD"]


def _schooled() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"edu": rng.choice(ORDER, 400), "age": rng.integers(20, 60, 400)})
    return X, lambda R: (R["edu"].map(ORDER.index).to_numpy(int) >= 2).astype(int)


def test_permitted_categories_of_an_ordinal_feature_hold() -> None:
    X, model = _schooled()
    wanted = ["BSc", "MSc", "PhD"]
    space = FeatureSpace.from_frame(X, ordinal={"edu": ORDER}, permitted={"edu": wanted}, immutable=["age"])
    ex = explain(model, X, space=space, rng=0)
    after = ex.counterfactuals()
    assert ex.coverage == 1.0
    assert set(after.after["edu"]) == {"BSc"}
    # the whole change is charged
    np.testing.assert_allclose(after.cost, ex.cost.between(space.encode(after.before), space.encode(after.after)))
    helped = who_benefits(model, X, {"edu": +1}, space=space)
    assert helped.overall.flipped == ex.n_affected


def test_a_sense_that_leads_away_keeps_a_row_where_it_is() -> None:
    X, _ = _schooled()
    space = FeatureSpace.from_frame(
        X, ordinal={"edu": ORDER}, permitted={"edu": ["HS", "some-college"]}, decreasing=["edu"], immutable=["age"]
    )
    k = rays.positions(space, space.encode(X), np.array([-1.0, 0.0]), 3.0)[:, 0]
    start = space.encode(X)[:, 0]
    assert (k[start < 1] == start[start < 1]).all()  # below the permitted ones, and may only fall
    assert (k[start >= 1] == 1.0).all()


@pytest.mark.filterwarnings("ignore:recourse may change")
@pytest.mark.parametrize("exact", [True, False])
def test_counterfactuals_and_audits_stay_inside(exact: bool) -> None:
    model, rows = _boosted()
    ex = explain(model, rows, space=SPACE, n_directions=2, budget=40, rng=0, settings=Settings(exact=exact))
    assert ex.n_covered
    found = audit(model, rows, by={"low": Z[:, 1] < 4, "high": Z[:, 1] >= 4},
                  space=SPACE, favourable=1, budget=40, rng=0, settings=Settings(exact=exact))  # fmt: skip
    for one in (ex, found.explanation):
        for i, delta in enumerate(one.directions):
            hit = np.isfinite(one.scalars[i])
            after = rays.positions(SPACE, one.inputs[hit], delta, one.scalars[i, hit])
            for f in SPACE.scalars:
                moved = after[:, f.start] != one.inputs[hit, f.start]
                assert ((after[moved, f.start] >= f.low) & (after[moved, f.start] <= f.high)).all()


@pytest.mark.parametrize("kind", ["linear", "boosted"])
def test_bounds_hold_for_rows_outside(kind: str) -> None:
    model, rows = KINDS[kind]()
    ex = explain(model, rows[:120], space=SPACE, n_directions=3, budget=60, rng=0)
    found = ex.lower_bound(solve=8, time_limit=20.0)
    covered = np.isfinite(ex.best_costs)
    assert covered.any()
    assert (found.cost[covered] <= ex.best_costs[covered] * (1 + 1e-9)).all()


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_random_ranges_hold_for_linear_models(data: st.DataObject) -> None:
    X = mixed_frame(40, seed=data.draw(st.integers(0, 5)))
    low, high = sorted(data.draw(st.tuples(st.floats(0.0, 6.0), st.floats(0.0, 6.0))))
    young, old = sorted(data.draw(st.tuples(st.integers(10, 90), st.integers(10, 90))))
    space = mixed_space(
        X, ranges={"income": (low, high), "age": (young, old)}, permitted={"school": data.draw(_runs())}
    )
    rows = space.encode(X)
    weights = np.array(data.draw(st.lists(st.floats(-2, 2), min_size=space.width, max_size=space.width)))
    delta = data.draw(directions_in(space))
    from globece.models.linear.half_spaces import LinearModel

    model = LinearModel(
        space, weights[None], np.array([-float(np.nanmedian(np.nan_to_num(rows) @ weights)) - 0.5]),
        np.array([False]), np.zeros(space.width),
    )  # fmt: skip
    rows = rows[~model.favourable(rows)]
    limit = rays.horizon(CostModel.bins(space), rows, delta, 20.0)
    (k,) = model.first_flip(rows, delta[None], limit[None])
    grid = np.linspace(0.0, 1.0, 4001)[1:]
    for row, end, found in zip(rows, limit, k, strict=True):
        points = np.r_[5e-324, grid * end]
        margins = model.margin(rays.positions(space, np.repeat(row[None], len(points), axis=0), delta, points))
        clear = margins > 1e-9
        assert found <= (points[clear][0] if clear.any() else np.inf) * (1 + 1e-9)
        if np.isfinite(found):
            assert model.margin(rays.positions(space, row[None], delta, found))[0] > 0.0


def _runs() -> st.SearchStrategy[list[str]]:
    return st.sampled_from([["low"], ["mid"], ["high"], ["low", "mid"], ["mid", "high"], ["low", "mid", "high"]])
