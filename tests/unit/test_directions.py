"""What each generator is for: its own idea, on a problem where that idea is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from globece import CostModel, FeatureSpace, Race, as_model, explain
from globece.directions import (
    Affected,
    ClosedForm,
    FixedDirections,
    FromLocal,
    GradientDescent,
    ImportanceSampling,
    ItemsetSampling,
    MeanDifference,
    Mixed,
    UniformSampling,
    nearest_favourable,
)
from globece.directions.constraints import admissible
from globece.directions.gradient import native_map
from globece.directions.protocol import proposed
from globece.errors import InvalidDirectionError, InvalidParameterError, ModelError, UnknownFeatureError
from tests.problems import approve, approve_matrix, matrix, matrix_space, mixed_frame, mixed_space


def problem_of(model: Any, X: Any, space: FeatureSpace, norm: Any = "l1", **wanted: Any) -> Affected:
    Z = space.encode(X)
    asked = as_model(model, space, rows=Z, **wanted)
    favourable = asked.favourable(Z)
    cost = CostModel.bins(space, norm=norm)
    return Affected(asked, Z[~favourable], cost, 10.0, favourable_rows=Z[favourable])


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# -- closed form -------------------------------------------------------------------------------------------------------


def svm(n: int = 400) -> tuple[Any, np.ndarray, FeatureSpace]:
    random = np.random.default_rng(3)
    X = random.normal(size=(n, 4)) * [1.0, 10.0, 0.1, 3.0]
    y = X @ [1.0, -0.05, 4.0, 0.2] + random.normal(0, 0.3, n) > 0.4
    return LinearSVC().fit(X, y), X, FeatureSpace.from_matrix(X, ranges="unbounded")


def test_no_cost_is_below_the_closed_form_of_a_linear_svm_and_its_direction_reaches_it() -> None:
    """Promise 8: ||C delta|| = -y0 / ||C^-1 w|| with l2 costs."""
    model, X, space = svm()
    cost = CostModel.bins(space, norm="l2")
    least = -model.decision_function(X) / np.linalg.norm(model.coef_[0] / cost.rates)
    sampled = explain(model, X, space=space, cost=cost, n_directions=3, rng=0)
    assert sampled.coverage == 1.0
    assert (sampled.best_costs >= least[sampled.rows] * (1 - 1e-9)).all()
    exact = explain(model, X, space=space, cost=cost, generator=ClosedForm(), rng=0)
    np.testing.assert_allclose(exact.best_costs, least[exact.rows], rtol=1e-9)


def test_with_l1_costs_the_column_with_most_weight_per_cost_is_the_cheapest() -> None:
    model, X, space = svm()
    cost = CostModel.bins(space)
    ratio = np.abs(model.coef_[0]) / cost.rates
    ex = explain(model, X, space=space, cost=cost, generator=ClosedForm(), rng=0)
    assert np.flatnonzero(ex.directions[0]).tolist() == [ratio.argmax()]
    np.testing.assert_allclose(ex.best_costs, -model.decision_function(X)[ex.rows] / ratio.max(), rtol=1e-9)


def test_the_closed_form_keeps_to_the_constraints() -> None:
    model, X, space = svm()
    bound = space.constrain(increasing=["x1"], immutable=["x2"])  # w is negative on x1
    (first, *_) = ClosedForm().propose(problem_of(model, X, bound, "l2"), 10, rng())
    assert first[1] == first[2] == 0.0
    assert first[0] > 0


def test_the_closed_form_switches_categories_that_gain_more_than_going_on() -> None:
    X = matrix(400)
    space = matrix_space(X, whole=[], ranges="unbounded")
    model = LogisticRegression(max_iter=5000).fit(X, approve_matrix(X))
    ours = explain(model, X, space=space, n_directions=3, generator=ClosedForm(), rng=0)
    sampled = explain(model, X, space=space, n_directions=3, rng=0)
    assert ours.score <= sampled.score
    assert any(
        delta[space["home"].columns].any() for delta in ClosedForm().propose(problem_of(model, X, space), 5, rng())
    )


def test_the_closed_form_refuses_a_model_that_is_not_linear() -> None:
    with pytest.raises(InvalidParameterError, match=r"ClosedForm needs a linear model.*approve_matrix"):
        explain(approve_matrix, matrix(50), space=matrix_space(), generator=ClosedForm(), rng=0)


def test_several_half_spaces_each_have_a_closed_form() -> None:
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = np.where(X[:, 0] > 0.3, 2, np.where(X[:, 1] > 0, 1, 0))
    model = LogisticRegression().fit(X, y)
    ex = explain(model, X, favourable=2, generator=ClosedForm(), n_directions=2, rng=0)
    assert ex.coverage > 0.95


# -- importance --------------------------------------------------------------------------------------------------------


def shares_of(problem: Affected, D: np.ndarray) -> dict[str, float]:
    return {f.name: float(D[:, f.columns].any(axis=1).mean()) for f in problem.space.features}


def test_important_features_are_drawn_more_often() -> None:
    X = matrix(300)
    problem = problem_of(approve_matrix, X, matrix_space(X))
    given = ImportanceSampling({"income": 3, "age": 1}, n_features=1)
    share = shares_of(problem, given.propose(problem, 4000, rng()))
    assert share["income"] == pytest.approx(0.75, abs=0.03)
    assert share["age"] == pytest.approx(0.25, abs=0.03)
    assert share["debts"] == share["home"] == 0.0


def test_two_important_features_leave_no_room_for_others() -> None:
    X = matrix(300)
    problem = problem_of(approve_matrix, X, matrix_space(X))
    D = ImportanceSampling({"income": 3, "age": 1}, n_features=4).propose(problem, 100, rng())
    assert shares_of(problem, D) == {"income": 1.0, "debts": 0.0, "home": 0.0, "age": 1.0}


@pytest.mark.parametrize("source", ["auto", "permutation"])
def test_importance_is_found_where_it_is(source: str) -> None:
    from xgboost import XGBClassifier

    X = matrix(400)
    label = (X[:, 0] > 3.0).astype(int)  # income alone
    space = matrix_space(X)
    for model in (XGBClassifier(n_estimators=5).fit(X, label), LogisticRegression().fit(X, label), _only_income):
        problem = problem_of(model, X, space)
        weights = ImportanceSampling(source).weights(problem, rng())
        assert space.names[int(weights.argmax())] == "income", model
        assert weights.max() > 2 * np.sort(weights)[-2]


def _only_income(X: np.ndarray) -> np.ndarray:
    return (X[:, 0] > 3.0).astype(int)


def test_the_models_own_importance_counts_a_groups_columns_together() -> None:
    from xgboost import XGBClassifier

    X = matrix(400)
    model = XGBClassifier(n_estimators=5).fit(X, approve_matrix(X))
    weights = ImportanceSampling("model").weights(problem_of(model, X, matrix_space(X)), rng())
    own = model.feature_importances_
    np.testing.assert_allclose(weights, [own[0], own[1], own[2:5].sum(), own[5]], rtol=1e-6)


def test_the_random_share_of_each_value_is_weighted_by_its_own_importance() -> None:
    from xgboost import XGBClassifier

    X = matrix(400)
    model = XGBClassifier(n_estimators=5).fit(X, approve_matrix(X))
    problem = problem_of(model, X, matrix_space(X))
    D = ImportanceSampling(weigh="values").propose(problem, 4000, rng())
    np.testing.assert_allclose(problem.cost.nominal(D), 2.0)
    rates = problem.cost.rates
    share = np.abs(D * rates).mean(axis=0) / np.abs(D * rates).mean(axis=0).sum()
    own = model.feature_importances_
    assert np.corrcoef(share, own)[0, 1] > 0.95
    assert ((share > 0) == (own > 0)).all()
    # numbers by feature are shared out over its values
    given = ImportanceSampling({"income": 3, "home": 3}, weigh="values").propose(problem, 50, rng())
    assert shares_of(problem, given) == {"income": 1.0, "debts": 0.0, "home": 1.0, "age": 0.0}


def test_each_parameter_given_rubbish_says_so() -> None:
    X = matrix(60)
    problem = problem_of(approve_matrix, X, matrix_space(X))
    for make, says in [
        (lambda: ImportanceSampling("gain"), "importance must be a mapping.*'gain'"),
        (lambda: ImportanceSampling({"income": -1}), r"importance\['income'\]"),
        (lambda: ImportanceSampling(n_features=0), "n_features"),
        (lambda: ImportanceSampling(weigh="rows"), "weigh must be one of"),  # type: ignore[arg-type]
        (lambda: ItemsetSampling(min_support=2), "min_support"),
        (lambda: ItemsetSampling(max_length=0), "max_length"),
        (lambda: FromLocal(3), "method must be"),  # type: ignore[arg-type]
        (lambda: FromLocal(nearest_favourable(), rows=0), "rows"),
        (lambda: MeanDifference(n_clusters=0), "n_clusters"),
        (lambda: ClosedForm(cost=0), "cost"),
        (lambda: GradientDescent(steps=0), "steps"),
        (lambda: GradientDescent(lambda_=-1), "lambda_"),
        (lambda: Mixed([]), "generators must list"),
        (lambda: Mixed([UniformSampling()], shares=[1, 2]), "shares must be one per generator"),
        (lambda: Mixed([UniformSampling()], shares=[0]), "shares must not all be 0"),
        (lambda: FixedDirections("abc"), "directions must be rows of numbers"),
        (lambda: FixedDirections([]), "directions must be rows of numbers"),
        (lambda: ImportanceSampling({"home": 0}).propose(problem, 3, rng()), "importance is 0 for every feature"),
        (lambda: ImportanceSampling({"nix": 1}).propose(problem, 3, rng()), "importance names unknown"),
        (lambda: ImportanceSampling("model").propose(problem, 3, rng()), "importance='model' needs"),
    ]:
        with pytest.raises((InvalidParameterError, UnknownFeatureError), match=says):
            make()


# -- rows: itemsets, local methods, means ------------------------------------------------------------------------------


def homeowners(X: pd.DataFrame) -> np.ndarray:
    return ((X["housing"] == "own") & (X["debts"] <= 1)).to_numpy().astype(int)


def test_itemsets_move_towards_what_the_favourable_have_in_common() -> None:
    X = mixed_frame(400)
    space = mixed_space(X)
    problem = problem_of(homeowners, X, space)
    D = ItemsetSampling(max_length=2).propose(problem, 300, rng())
    housing, debts = space["housing"], space["debts"]
    towards = D[:, housing.columns].any(axis=1)
    assert towards.mean() > 0.2
    assert (D[towards][:, housing.columns].argmax(axis=1) == housing.categories.index("own")).all()
    moves = D[D[:, debts.start] != 0, debts.start]
    assert moves.size
    assert (moves < 0).all()
    ex = explain(homeowners, X, space=space, generator=ItemsetSampling(max_length=2), rng=0)
    assert ex.coverage == 1.0


def test_generators_that_need_favourable_rows_say_so() -> None:
    X = mixed_frame(60)
    for generator in (ItemsetSampling(), MeanDifference(), FromLocal(nearest_favourable())):
        with pytest.raises(InvalidParameterError, match="rows with the favourable outcome, and none of the rows given"):
            explain(lambda X: np.zeros(len(X), dtype=int), X, space=mixed_space(X), generator=generator, rng=0)


def test_a_local_methods_way_is_taken_by_everybody() -> None:
    X = mixed_frame(200)
    space = mixed_space(X)

    def buys_a_home(row: pd.DataFrame) -> pd.DataFrame:
        return row.assign(housing="own", debts=0)

    problem = problem_of(homeowners, X, space)
    for delta in FromLocal(buys_a_home).propose(problem, 50, rng()):
        moved = {f.name for f in space.features if delta[f.columns].any()}
        assert moved <= {"housing", "debts"}
    assert explain(homeowners, X, space=space, generator=FromLocal(buys_a_home), rng=0).coverage == 1.0


def test_a_local_method_that_raises_or_finds_nothing_is_named() -> None:
    def broken(row: Any) -> Any:
        raise RuntimeError("no luck")

    problem = problem_of(approve, mixed_frame(60), mixed_space(mixed_frame(60)))
    with pytest.raises(ModelError, match=r"broken raised RuntimeError.*no luck"):
        FromLocal(broken).propose(problem, 5, rng())
    with pytest.raises(InvalidDirectionError, match="FromLocal found no direction"):
        proposed(FromLocal(lambda row: None), problem, 5, rng())


def test_the_nearest_favourable_row_is_the_cheapest_to_become() -> None:
    X = matrix(200)
    problem = problem_of(approve_matrix, X, matrix_space(X))
    assert problem.favourable_rows is not None
    found = nearest_favourable().counterfactuals(problem, problem.inputs[:20])
    for row, near in zip(problem.inputs[:20], found, strict=True):
        every = problem.cost.between(np.repeat(row[None], len(problem.favourable_rows), 0), problem.favourable_rows)
        assert problem.cost.between(row[None], near[None])[0] == pytest.approx(every.min())


def test_the_first_mean_difference_is_that_of_all() -> None:
    X = matrix(300)
    problem = problem_of(approve_matrix, X, matrix_space(X))
    assert problem.favourable_rows is not None
    (first, *others) = MeanDifference().propose(problem, 100, rng())
    wanted = problem.favourable_rows.mean(axis=0) - problem.inputs.mean(axis=0)
    np.testing.assert_allclose(first, problem.cost.normalise(wanted[None], 2.0)[0], rtol=1e-9)
    assert len(others) > 20
    assert len(MeanDifference(n_clusters=1).propose(problem, 100, rng())) <= 5


# -- gradients ---------------------------------------------------------------------------------------------------------


def network(weights: np.ndarray, bias: float) -> Any:
    """Return a module with two logits whose difference is linear, and a dropout that must not be in the way."""
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(len(weights), 2), torch.nn.Dropout(0.9))
    with torch.no_grad():
        net[0].weight.copy_(torch.as_tensor(np.array([-weights, weights]) / 2))
        net[0].bias.copy_(torch.as_tensor([-bias / 2, bias / 2]))
    return net.train()


def test_gradient_descent_finds_what_the_closed_form_knows() -> None:
    model, X, space = svm()
    net = network(model.coef_[0], float(model.intercept_[0]))
    ours = explain(model, X, space=space, generator=GradientDescent(module=net), rng=0)
    best = explain(model, X, space=space, generator=ClosedForm(), rng=0)
    assert ours.score == pytest.approx(best.score, rel=1e-6)
    assert net.training
    assert all(p.grad is None for p in net.parameters())


def test_gradient_descent_switches_categories() -> None:
    pytest.importorskip("torch")
    X = matrix(300)
    space = matrix_space(X, permitted={"home": ["own", "free"]}, immutable=["age"])
    net = network(np.array([0.1, -0.1, 6.0, 0.0, 0.0, 0.0]), -3.0)  # own a home
    problem = problem_of(approve_matrix, X, space)
    D = GradientDescent(module=net, restarts=8, steps=60, lambda_=0.01).propose(problem, 16, rng())
    home = D[8:, space["home"].columns]  # as found at the end
    assert (home.argmax(axis=1) == 0).mean() > 0.8


def test_gradient_descent_needs_a_module() -> None:
    pytest.importorskip("torch")
    with pytest.raises(InvalidParameterError, match=r"GradientDescent needs a torch module.*approve_matrix.*module="):
        explain(approve_matrix, matrix(50), space=matrix_space(), generator=GradientDescent(), rng=0)
    X = mixed_frame(60)
    net = network(np.ones(6), 0.0)
    with pytest.raises(InvalidParameterError, match="'housing' holds text"):
        explain(approve, X, space=mixed_space(X), generator=GradientDescent(module=net), rng=0)


def test_native_columns_are_a_linear_function_of_encoded_ones() -> None:
    X = pd.DataFrame({"a": [1.0, 2.0, 4.0], "level": [10, 20, 30], "code": [3, 7, 3], "b": [0.5, 0.1, 0.2]})
    space = FeatureSpace.from_frame(X, categorical=["code"], ordinal={"level": [10, 20, 30]})
    into, start = native_map(space)
    np.testing.assert_allclose(space.encode(X) @ into + start, X.to_numpy())


# -- fixed and mixed ---------------------------------------------------------------------------------------------------


def test_rules_become_directions() -> None:
    space = mixed_space(permitted={"housing": ["own", "rent"]}, increasing=["age"])
    fixed = FixedDirections.from_rules(space, [{"housing": "own", "income": 1.5}, {"school": "high"}], cost=None)
    first, second = fixed.directions
    assert dict(zip(np.array(space.columns)[first != 0], first[first != 0], strict=True)) == {
        "income": 1.5,
        "housing = own": 2.0,
    }
    assert second[space["school"].start] == 2.0
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"housing": "boat"}, "must be one of"),
        ({"housing": "free"}, "permitted"),
        ({"age": -3}, "'age' down"),
        ({"school": "mid"}, "number of places.*'low' or 'high'"),
        ({"nix": 1}, "unknown feature"),
        ({}, "rules must map"),
        ({"income": "much"}, r"rules\['income'\] must be a number"),
    ]
    for rules, says in wrong:
        with pytest.raises(InvalidParameterError, match=says):
            FixedDirections.from_rules(space, rules)


def test_fixed_directions_are_kept_and_checked() -> None:
    X = matrix(100)
    space = matrix_space(X, immutable=["age"])
    delta = np.array([1.0, 0, 0, 0, 0, 0])
    ex = explain(approve_matrix, X, space=space, generator=FixedDirections(delta, cost=None), rng=0)
    np.testing.assert_array_equal(ex.directions, delta[None])
    assert ex.provenance.generator == "FixedDirections(cost=None)"
    with pytest.raises(InvalidDirectionError, match="'age', which is immutable"):
        explain(approve_matrix, X, space=space, generator=FixedDirections(np.eye(6)[5]), rng=0)


def test_mixed_shares_out_and_hands_on_what_is_left() -> None:
    X = matrix(200)
    problem = problem_of(approve_matrix, X, matrix_space(X))
    fixed, uniform = FixedDirections(np.eye(6)[:1]), UniformSampling(n_features=1)
    D = Mixed([fixed, uniform], shares=[3, 1]).propose(problem, 40, rng())
    assert len(D) == 40
    np.testing.assert_array_equal(D[0], fixed.propose(problem, 1, rng())[0])
    # a member's proposals do not depend on what the others are
    other = Mixed([FixedDirections(np.eye(6)[1:2]), uniform], shares=[3, 1]).propose(problem, 40, rng())
    np.testing.assert_array_equal(D[1:], other[1:])
    even = Mixed([uniform, uniform, uniform]).propose(problem, 10, rng())
    assert len(even) == 10


# -- constraints -------------------------------------------------------------------------------------------------------


def test_a_wish_loses_what_is_forbidden_and_no_more() -> None:
    space = mixed_space(immutable=["job"], decreasing=["debts"], permitted={"housing": ["own"]})
    wish = np.ones(space.width)
    (left,) = admissible(space, wish[None])
    assert not left[space["job"].columns].any()
    assert left[space["debts"].start] == 0.0
    assert left[space["income"].start] == 1.0
    assert not left[space["housing"].columns].any()  # a tie moves nobody
    wish[space["housing"].start + space["housing"].categories.index("own")] = 2.0
    assert admissible(space, wish[None])[0, space["housing"].columns].any()


def test_a_thousand_proposals_are_cheap() -> None:
    """Not a matter of seconds but of calls: nothing here may ask the model."""
    X = matrix(300)
    problem = problem_of(approve_matrix, X, matrix_space(X))
    before = problem.model.decide.tally.calls
    for generator in (UniformSampling(), ImportanceSampling({"income": 1}), ItemsetSampling(), MeanDifference()):
        assert len(generator.propose(problem, 1000, rng())) > 50
    assert problem.model.decide.tally.calls == before


def test_explain_takes_every_generator_and_says_which() -> None:
    X = matrix(200)
    model = LogisticRegression(max_iter=5000).fit(X, approve_matrix(X))
    for generator in (ImportanceSampling(), ClosedForm(), ItemsetSampling(), MeanDifference(), Mixed([ClosedForm()])):
        ex = explain(model, X, space=matrix_space(X), search=Race(generator, 100), rng=0)
        assert ex.provenance.generator == repr(generator)
        assert ex.coverage > 0.3, generator
