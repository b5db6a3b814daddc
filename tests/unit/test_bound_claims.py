"""What a lower bound claims: exact only where a row attains it, refuted where a counterfactual is cheaper."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from globece import CostModel, FeatureSpace, as_model
from globece.bounds import lower_bound
from globece.bounds.attained import attains, may_become
from globece.bounds.cells import nearest
from globece.directions import Affected
from globece.errors import VerificationError
from globece.models.compiling.adapt import Compiled
from tests.bound_problems import draw, least


def rows(n: int = 120, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3)).round(2)


def problem_of(model: Any, X: Any, budget: float = 10.0, **constraints: Any) -> Affected:
    space = (
        FeatureSpace.from_frame(X, **constraints)
        if hasattr(X, "columns")
        else FeatureSpace.from_matrix(X, **constraints)
    )
    Z = space.encode(X)
    asked = as_model(model, space, rows=Z)
    return Affected(asked, Z[~asked.favourable(Z)], CostModel.bins(space), budget)


@pytest.mark.parametrize("favourable", [0, 1])
def test_votes_that_tie_are_decided_as_the_forest_does(favourable: int) -> None:
    X = rows()[:, :2].round(1)
    forest = RandomForestClassifier(2, max_leaf_nodes=7, random_state=3).fit(X, (X.sum(axis=1) > 0).astype(int))
    space = FeatureSpace.from_matrix(X)
    asked = as_model(forest, space, rows=X, favourable=favourable)
    problem = Affected(asked, X[~asked.favourable(X)][:12], CostModel.bins(space), 10.0)
    found = lower_bound(problem, solve=12)
    assert found.exact
    truth = np.array([least(problem, row) for row in problem.inputs])
    np.testing.assert_allclose(found.cost, truth, rtol=1e-9)
    # a tie is the first class: that decides what somebody pays
    other = np.array([least(problem, row, ties=False) for row in problem.inputs])
    assert (other > truth).any() if favourable == 0 else (other == truth).all()


def test_what_costs_more_than_the_budget_is_its_true_minimum() -> None:
    X = rows()
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, (X[:, 0] > 1).astype(int))
    wide, narrow = problem_of(tree, X), problem_of(tree, X, budget=0.25)
    a, b = lower_bound(wide, solve=200), lower_bound(narrow, solve=200)
    assert a.exact
    assert b.exact
    assert (b.cost > 0.25).any()
    np.testing.assert_allclose(a.cost, b.cost, rtol=1e-9)
    assert b.mean <= 0.25


def test_no_recourse_is_a_proof() -> None:
    X = rows()
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, (X[:, 0] > 0).astype(int))
    stuck = lower_bound(problem_of(tree, X, immutable=["x0"]), solve=200)
    assert np.isinf(stuck.cost).all()
    assert stuck.exact


def test_more_categories_than_are_told_apart_are_not_called_exact() -> None:
    rng = np.random.default_rng(0)
    town = rng.integers(0, 90, 400)
    X = pd.DataFrame({"town": pd.Categorical([f"t{t:02}" for t in town]), "a": rng.normal(size=400)})
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    steps = make_column_transformer((OneHotEncoder(sparse_output=False), ["town"]), remainder="passthrough")
    model = make_pipeline(steps, DecisionTreeClassifier(max_depth=8, random_state=0))
    model.fit(X, ((town % 3 == 0) | (X["a"] > 1)).astype(int))
    problem = problem_of(model, X)
    found = lower_bound(problem, solve=20)
    changed = problem.inputs[:20].copy()
    for c in range(90):
        f = problem.space["town"]
        changed[:, f.columns] = np.eye(90)[c]
        yes = problem.model.favourable(changed)
        assert (found.cost[:20][yes] <= 1.0 + 1e-9).all()
    assert not found.exact


def test_a_missing_value_gets_where_no_number_does() -> None:
    # every split sends missing values its own way, so a leaf for them may have a box without inside
    case = draw(5830, None)
    assert case is not None
    problem = case.problem
    truth = np.array([least(problem, row) for row in problem.inputs])
    assert np.isnan(problem.inputs[:, 0]).any()
    for solve in (0, 4):
        assert (lower_bound(problem, solve=solve).cost <= truth * (1 + 1e-9)).all()


class Sly(LogisticRegression):
    """Says yes where its weights say no."""

    def predict(self, X: Any) -> Any:
        return np.where(np.asarray(X)[:, 1] > 1.5, 1, super().predict(X))


def test_a_bound_that_a_counterfactual_refutes_is_an_error() -> None:
    X = rows()
    model = LogisticRegression().fit(X, (X[:, 0] > 0).astype(int))
    problem = problem_of(model, X)
    honest = lower_bound(problem)
    with pytest.raises(VerificationError, match=r"no bound is known.*LogisticRegression.*flips"):
        lower_bound(problem, within=0.5 * honest.cost)
    assert lower_bound(problem, within=honest.cost * (1 + 1e-13)).exact


def test_a_compiled_model_that_is_not_the_users_is_found_out_by_trying() -> None:
    X = rows()
    y = (X[:, 0] > 0).astype(int)
    problem = problem_of(LogisticRegression().fit(X, y), X)
    sly = Sly().fit(X, y)
    assert isinstance(problem.model, Compiled)
    original = as_model(sly, problem.space, compile=False)
    wrong = Compiled(original, problem.model.core)  # type: ignore[arg-type]
    with pytest.raises(VerificationError, match="no bound is known"):
        lower_bound(replace(problem, model=wrong))


def test_a_point_attains_a_bound_only_if_everything_holds() -> None:
    X = rows()
    model = LogisticRegression().fit(X, (X[:, 0] > 0).astype(int))
    problem = problem_of(model, X, increasing=["x0"])
    row = problem.inputs[:1]
    good = row.copy()
    good[0, 0] = problem.space["x0"].high
    paid = problem.cost.between(row, good)
    assert attains(problem, row, good, paid).all()
    assert not attains(problem, row, good, paid * (1 - 1e-6)).any()
    assert not attains(problem, row, row, np.zeros(1)).any()  # unfavourable
    far = good + np.array([1.0, 0.0, 0.0])  # out of range
    assert not attains(problem, row, far, problem.cost.between(row, far)).any()
    back = row - np.array([0.1, 0.0, 0.0])
    assert not may_become(problem.space, row, back).any()


def test_a_row_outside_its_range_stays_or_enters_it() -> None:
    f = FeatureSpace.from_matrix(np.array([[0.0], [10.0]]), ranges={"x0": (4.0, 6.0)})["x0"]
    cuts = np.array([1.0, 3.0, 5.0])
    for x, expected in ((0.0, [0.0, 4.0, np.nextafter(5.0, 9)]), (9.0, [5.0, 9.0]), (4.5, [4.5, np.nextafter(5.0, 9)])):
        assert nearest(f, x, cuts)[0].tolist() == expected
    whole = replace(f, whole=True)
    assert nearest(whole, 0.0, cuts)[0].tolist() == [0.0, 4.0, 6.0]
    assert nearest(whole, 0.5, cuts)[0].tolist() == [0.5, 4.0, 6.0]
    assert nearest(whole, 4.5, cuts)[0].tolist() == [4.5, 5.5]
    assert nearest(replace(f, sense=-1), 0.0, cuts)[0].tolist() == [0.0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["forest", "linear"])
def test_bounds_hold_where_columns_round(kind: str, dtype: str) -> None:
    X = pd.DataFrame((1013.0 + 5.0 * rows(200)).astype(dtype), columns=list("abc"))
    y = (X["a"] + X["b"] > 2026).astype(int)
    weights = np.array([1.0, 0.9, 0.1])
    forest = RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, y)
    problem = problem_of(forest if kind == "forest" else (weights, -1013.0 * weights.sum()), X)
    Z, model = problem.inputs, problem.model
    assert isinstance(model, Compiled)
    found = lower_bound(problem, solve=len(Z))
    assert found.mean > 0
    # what a column's type makes of values right before the boundary may lie past it
    for i, f in enumerate(problem.space.features):
        low, high = Z[:, i].copy(), np.full(len(Z), f.high)
        reached = np.flatnonzero(model.core.favourable(np.column_stack([*Z.T[:i], high, *Z.T[i + 1 :]])))
        for _ in range(60):
            middle = 0.5 * (low + high)
            yes = model.core.favourable(np.column_stack([*Z.T[:i], middle, *Z.T[i + 1 :]]))
            low, high = np.where(yes, low, middle), np.where(yes, middle, high)
        for hair in (0.0, 1e-8, 5e-8, 1e-7):
            after = Z.copy()
            after[:, i] = high * (1 - hair)
            cost = problem.cost.between(Z, after)
            real = reached[model.favourable(after)[reached]]
            assert (found.cost[real] <= cost[real] * (1 + 1e-9) + 1e-9).all()


def test_the_time_limit_holds_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    X = np.random.default_rng(0).normal(size=(400, 12))
    y = (np.sin(X).sum(axis=1) > 0).astype(int)
    problem = problem_of(RandomForestClassifier(60, max_depth=8, random_state=0).fit(X, y), X)
    lower_bound(problem, solve=1, time_limit=0.01)  # compiled
    began = time.monotonic()
    found = lower_bound(problem, solve=200, time_limit=1.0)
    assert time.monotonic() - began < 5.0
    assert not found.exact
    assert "cut off" in found.method
    said = capfd.readouterr()
    assert said.out == said.err == ""
