"""Theorems 1 and 2, and everything else that must hold wherever a row stands and wherever it goes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from globece import CostModel, FeatureSpace, rays
from globece.costs import Norm
from tests.problems import directions_in, mixed_frame, mixed_space, scalars

X = mixed_frame()
FREE = mixed_space(X)
BOUND = mixed_space(
    X,
    immutable=["age"],
    decreasing=["debts"],
    increasing=["school"],
    permitted={"housing": ["own", "free"]},
    ranges={"income": (1.0, 4.0)},
)
OPEN = mixed_space(X, ranges="unbounded")
Z = FREE.encode(X)
blocks = arrays(np.float64, st.integers(2, 6), elements=st.floats(-4, 4).map(lambda v: round(v, 2)))


@given(blocks, st.floats(0.01, 50.0))
def test_one_then_per_feature_and_the_switch_comes_past_its_bound(delta: np.ndarray, k: float) -> None:
    """Theorem 1 (one Then), Theorem 2 (k > 1 / (delta_max - delta_i)); a tie keeps its value."""
    target, bounds = rays.lower_bounds(delta)
    after = np.argmax(np.eye(len(delta)) + k * delta, axis=1)
    moved = np.where(k > bounds, target, np.arange(len(delta)))
    # the literal argmax and the bound agree except where rounding makes a tie
    gap = np.abs(k * (delta[target] - delta) - 1.0)
    clear = (gap > 1e-9) & (delta < delta[target])
    np.testing.assert_array_equal(after[clear], moved[clear])
    assert len(set(moved[moved != np.arange(len(delta))].tolist())) <= 1
    assert np.isinf(bounds[target])
    assert np.isinf(bounds[delta >= delta[target]]).all()


@given(blocks)
def test_rules_are_added_in_the_order_of_delta(delta: np.ndarray) -> None:
    """Lemma: k_i <= k_m wherever delta_i <= delta_m."""
    _, bounds = rays.lower_bounds(delta)
    ordered = bounds[np.argsort(delta, kind="stable")]
    assert (ordered[1:] >= ordered[:-1]).all()


@given(directions_in(BOUND), scalars)
def test_constraints_hold_everywhere(delta: np.ndarray, k: float) -> None:
    after = rays.positions(BOUND, Z, delta, k)
    for f in BOUND.features:
        before, now = Z[:, f.columns], after[:, f.columns]
        if f.is_block:
            assert (now.sum(axis=1) == 1).all()
            assert np.isin(now, (0.0, 1.0)).all()
            moved = (before != now).any(axis=1)
            assert np.array(f.permitted)[now[moved].argmax(axis=1)].all()
            assert len(np.unique(now[moved].argmax(axis=1))) <= 1
            continue
        x, y = before[:, 0], now[:, 0]
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
        x, y = x[~np.isnan(x)], y[~np.isnan(y)]
        if f.immutable:
            np.testing.assert_array_equal(x, y)
        assert (f.sense * (y - x) >= 0).all()
        assert (y >= np.minimum(x, f.low)).all()
        assert (y <= np.maximum(x, f.high)).all()
        if f.whole:
            assert (y == np.rint(y)).all()


@given(directions_in(OPEN), scalars, st.sampled_from(["l1", "l2"]))
def test_cost_along_a_ray_is_the_cost_of_the_counterfactual(delta: np.ndarray, k: float, norm: Norm) -> None:
    for space in (OPEN, FREE):
        for cost in (CostModel.bins(space, norm=norm), CostModel.deciles(space, X, norm=norm)):
            along = rays.cost_at(cost, Z, delta, np.full(len(Z), k))
            made = cost.between(Z, rays.positions(space, Z, delta, k))
            np.testing.assert_allclose(along, made, rtol=1e-9, atol=1e-12)


@given(directions_in(FREE), scalars, scalars)
def test_cost_never_falls_along_a_ray(delta: np.ndarray, k: float, more: float) -> None:
    for cost in (CostModel.bins(FREE), CostModel.deciles(FREE, X), CostModel.bins(FREE, norm="l2")):
        near = rays.cost_at(cost, Z, delta, np.full(len(Z), k))
        far = rays.cost_at(cost, Z, delta, np.full(len(Z), k + more))
        assert (far >= near - 1e-12).all()


@settings(max_examples=50)
@given(directions_in(OPEN), st.floats(0.5, 12.0))
def test_nothing_happens_within_the_budget_beyond_the_horizon(delta: np.ndarray, budget: float) -> None:
    for space in (OPEN, FREE, BOUND):
        if space is BOUND:
            delta = np.where([space.features[i].can_move for i in _owner(space)], delta, 0.0)
        for cost in (CostModel.bins(space), CostModel.deciles(space, X), CostModel.bins(space, norm="l2")):
            end = rays.horizon(cost, Z, delta, budget)
            beyond = end * 1.7 + 0.1
            still = (
                (rays.positions(space, Z, delta, end) == rays.positions(space, Z, delta, beyond)) | np.isnan(Z)
            ).all(axis=1)
            assert (still | (rays.cost_at(cost, Z, delta, beyond) > budget)).all()


def _owner(space: FeatureSpace) -> list[int]:
    return [i for i, f in enumerate(space.features) for _ in range(f.width)]


@given(directions_in(FREE), scalars)
def test_inputs_are_not_touched(delta: np.ndarray, k: float) -> None:
    frozen, step = Z.copy(), delta.copy()
    frozen.setflags(write=False)
    step.setflags(write=False)
    rays.positions(FREE, frozen, step, k)
    rays.cost_at(CostModel.bins(FREE), frozen, step, np.full(len(Z), k))
    np.testing.assert_array_equal(frozen, Z)


def test_the_papers_worked_example() -> None:
    """`tab:categoricalscaling`: delta = [0, -1, 1, 1/2] has k = [1, 1/2, inf, 2]."""
    target, bounds = rays.lower_bounds(np.array([0.0, -1.0, 1.0, 0.5]))
    assert target == 2
    np.testing.assert_array_equal(bounds, [1.0, 0.5, np.inf, 2.0])


def test_no_recourse_stays_where_it_is() -> None:
    delta = np.zeros(FREE.width)
    delta[FREE["debts"].start] = -1.0
    k = np.full(len(Z), np.inf)
    np.testing.assert_array_equal(rays.positions(FREE, Z, delta, k), Z)
    assert np.isinf(rays.cost_at(CostModel.bins(FREE), Z, delta, k)).all()
