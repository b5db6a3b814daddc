"""No recourse is cheaper than its bound, and on problems small enough to try everything the bound is the minimum."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lightgbm import LGBMClassifier
from scipy.optimize import linprog
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from globece import CostModel, FeatureSpace, as_model
from globece.bounds import lower_bound
from globece.case.scaling import scale
from globece.directions import Affected, UniformSampling

COLUMNS = ["a", "b", "h0", "h1", "h2", "s0", "s1", "c"]
GROUPS = {"home": ["h0", "h1", "h2"], "sex": ["s0", "s1"]}
CONSTRAINTS: list[dict[str, Any]] = [
    {"ranges": "unbounded"},
    {},
    {"increasing": ["a"], "permitted": {"home": ["h1", "h2"]}},
    {"immutable": ["sex", "b"], "whole": ["c"]},
    {"ranges": {"a": (-1, 1)}, "decreasing": ["b"], "whole": ["c"]},
]


def rows(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    home, sex = np.eye(3)[rng.integers(0, 3, n)], np.eye(2)[rng.integers(0, 2, n)]
    return np.column_stack([rng.normal(0, 2, n), rng.exponential(1, n), home, sex, rng.integers(0, 6, n)])


def problem_of(model: Any, X: np.ndarray, constraints: dict[str, Any], cost: str, norm: Any, **wanted: Any) -> Affected:
    space = FeatureSpace.from_matrix(X, columns=COLUMNS, groups=GROUPS, **{"whole": [], **constraints})
    weights = {"home": 0.7, "a": 1.5}
    costs = CostModel.deciles(space, X, weights=weights, norm=norm) if cost == "deciles" else None
    costs = costs or CostModel.bins(space, weights=weights, norm=norm)
    Z = space.encode(X)
    asked = as_model(model, space, rows=Z, **wanted)
    return Affected(asked, Z[~asked.favourable(Z)], costs, 10.0)


def labels(X: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed + 100)
    value = X @ rng.normal(size=X.shape[1]) + rng.normal(0, 0.5, len(X)) + 0.5 * np.sin(3 * X[:, 0])
    return (value > np.median(value)).astype(int)


def models(X: np.ndarray, seed: int) -> list[Any]:
    y = labels(X, seed)
    three = np.where(X[:, 0] > 1, 2, y)
    return [
        LogisticRegression(max_iter=2000).fit(X, y),
        LogisticRegression(max_iter=2000).fit(X, three),
        GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0).fit(X, y),
        ExtraTreesClassifier(n_estimators=7, max_depth=3, random_state=0).fit(X, three),
    ]


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 1000),
    constraints=st.sampled_from(CONSTRAINTS),
    cost=st.sampled_from(["bins", "deciles"]),
    norm=st.sampled_from(["l1", "l2"]),
)
def test_no_recourse_is_cheaper_than_its_bound(seed: int, constraints: dict[str, Any], cost: str, norm: str) -> None:
    X = rows(60, seed)
    for model in models(X, seed):
        problem = problem_of(model, X, constraints, cost, norm, favourable=1)
        if not len(problem.inputs):
            continue
        bound = lower_bound(problem).cost
        assert bound.shape == (len(problem.inputs),)
        assert not np.isnan(bound).any()
        D = UniformSampling(n_features=3).propose(problem, 300, np.random.default_rng(seed))
        found = scale(problem, D).cost.min(axis=0)
        assert (bound <= found).all(), (model, (bound - found).max())


# -- linear models, against a linear program for every choice of categories ----------------------------------------


def least_by_program(problem: Affected, w: np.ndarray, b: float, row: np.ndarray) -> float:
    space, cost, best = problem.space, problem.cost, np.inf
    options = []
    for f in space.blocks:
        here = int(row[f.columns].argmax())
        options.append([here] + [c for c in range(f.width) if f.can_move and f.permitted[c] and c != here])
    for choice in product(*options):
        margin, paid = b, 0.0
        for f, c in zip(space.blocks, choice, strict=True):
            margin += w[f.start + c]
            paid += cost.weight(f) * (row[f.start + c] != 1.0)
        low, high, price, gain = [], [], [], []
        for f in space.scalars:
            margin += w[f.start] * row[f.start]
            rate = cost.rates[f.start]
            if f.can_move:
                low += [0.0, 0.0]
                high += [max(f.high - row[f.start], 0.0) * (f.sense >= 0 or 0.0) if f.sense >= 0 else 0.0]
                high += [max(row[f.start] - f.low, 0.0) if f.sense <= 0 else 0.0]
                price += [rate, rate]
                gain += [w[f.start], -w[f.start]]
        found = linprog(price, A_ub=[[-g for g in gain]], b_ub=[margin], bounds=list(zip(low, high, strict=True)))
        if found.status == 0:
            best = min(best, paid + found.fun)
    return best


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), constraints=st.sampled_from(CONSTRAINTS[:3]))
def test_a_linear_models_bound_is_the_minimum(seed: int, constraints: dict[str, Any]) -> None:
    X = rows(40, seed)
    rng = np.random.default_rng(seed)
    w, b = rng.normal(size=8) * [1, 1, 1, 1, 1, 1, 1, 0.3], float(rng.normal() - 1.0)
    problem = problem_of((w, b), X, constraints, "bins", "l1")
    found = lower_bound(problem)
    assert found.exact
    for row, cost in list(zip(problem.inputs, found.cost, strict=True))[:5]:
        assert cost == pytest.approx(least_by_program(problem, w, b, row), rel=1e-6, abs=1e-9)


def test_many_prices_are_relaxed_and_stay_below() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (80, 12))
    X = np.hstack([np.eye(2)[codes[:, i]] for i in range(12)])
    names = [f"f{i}{v}" for i in range(12) for v in "ab"]
    groups = {f"f{i}": names[2 * i : 2 * i + 2] for i in range(12)}
    space = FeatureSpace.from_matrix(X, columns=names, groups=groups)
    w = rng.normal(size=24)
    Z = space.encode(X)
    model = as_model((w, -3.0), space, rows=Z)
    affected = Z[~model.favourable(Z)]
    same = lower_bound(Affected(model, affected, CostModel.bins(space), 10.0))
    weights = {f"f{i}": 1.0 + i * 1e-9 for i in range(12)}  # all different, and as good as the same
    other = lower_bound(Affected(model, affected, CostModel.bins(space, weights=weights), 10.0))
    assert same.exact
    assert not other.exact
    assert (other.cost <= same.cost + 1e-6).all()
    assert other.mean > 0.5 * same.mean


# -- trees, against every place that matters -----------------------------------------------------------------------


def least_by_trying(problem: Affected, row: np.ndarray) -> float:
    space, trees = problem.space, problem.model.core.trees  # type: ignore[attr-defined]
    places: list[list[np.ndarray]] = []
    for f in space.features:
        here = row[f.columns]
        found = [here]
        if f.is_block and f.can_move:
            found += [np.eye(f.width)[c] for c in range(f.width) if f.permitted[c]]
        elif f.can_move:
            cuts = trees.threshold[(trees.child >= 0) & (trees.slot == f.start)]
            values = np.concatenate(
                [np.floor(cuts), np.floor(cuts) + 1] if f.whole else [cuts, np.nextafter(cuts, np.inf)]
            )
            inside = (values >= f.low) & (values <= f.high) & (f.sense * (values - here[0]) >= 0)
            found += [np.array([v]) for v in np.unique(values[inside])]
        places.append(found)
    every = np.array([np.concatenate(point) for point in product(*places)])
    cost = problem.cost.between(np.repeat(row[None], len(every), axis=0), every)
    return float(cost[problem.model.favourable(every)].min(initial=np.inf))


@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_solved_rows_are_the_minimum_and_the_fast_bound_is_below(constraints: dict[str, Any], norm: str) -> None:
    X = rows(80, 3)
    model = GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0).fit(X, labels(X, 3))
    problem = problem_of(model, X, constraints, "bins", norm)
    fast, solved = lower_bound(problem), lower_bound(problem, solve=6)
    assert solved.solved is not None
    assert len(solved.solved) == 6
    assert fast.mean > 0
    for i in solved.solved:
        least = min(least_by_trying(problem, problem.inputs[i]), problem.budget)
        assert fast.cost[i] <= least or np.isinf(fast.cost[i])
        assert min(solved.cost[i], problem.budget) == pytest.approx(least, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    ("model", "norm"),
    [
        (LGBMClassifier(n_estimators=6, min_data_per_group=5, cat_smooth=1, cat_l2=1, n_jobs=1, verbose=-1), "l1"),
        (HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5, categorical_features="from_dtype"), "l2"),
    ],
)
def test_bounds_hold_for_splits_by_category_and_missing_values(model: Any, norm: Any) -> None:
    rng = np.random.default_rng(0)
    income, town = rng.normal(3, 1, 200).round(2), rng.integers(0, 6, 200)
    X = pd.DataFrame({"income": income, "town": pd.Categorical(np.array(list("abcdef"))[town]), "age": town + income})
    X.loc[::9, "income"] = np.nan
    model.fit(X, (income + (town % 2) > 3.5).astype(int))
    space = FeatureSpace.from_frame(X, increasing=["age"], permitted={"town": ["b", "c", "e", "f"]})
    Z = space.encode(X)
    asked = as_model(model, space, rows=Z)
    assert asked.core.trees.odd_slot.size  # type: ignore[union-attr]
    problem = Affected(asked, Z[~asked.favourable(Z)], CostModel.bins(space, norm=norm), 10.0)
    fast, solved = lower_bound(problem), lower_bound(problem, solve=4, time_limit=4.0)
    D = UniformSampling(n_features=4).propose(problem, 300, np.random.default_rng(0))
    found = scale(problem, D).cost.min(axis=0)
    assert fast.mean > 0.0
    assert (fast.cost <= found).all()
    assert (solved.cost <= np.minimum(found, problem.budget) + 1e-9).all()


def test_one_trees_fast_bound_is_the_minimum() -> None:
    X = rows(80, 5)
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, labels(X, 5))
    problem = problem_of(model, X, {"immutable": ["sex"]}, "bins", "l1")
    bound = lower_bound(problem).cost
    for row, cost in list(zip(problem.inputs, bound, strict=True))[:10]:
        assert cost == pytest.approx(least_by_trying(problem, row), rel=1e-6, abs=1e-6)
