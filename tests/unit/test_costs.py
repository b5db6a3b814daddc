from __future__ import annotations

import numpy as np
import pytest

from globece import CostModel, FeatureSpace, bradley_terry
from globece.errors import InvalidParameterError
from tests.problems import mixed_frame, mixed_space


def test_the_papers_cost_is_one_per_tenth_of_the_range_and_one_per_category() -> None:
    X = np.array([[0.0, 1.0, 0.0], [50.0, 0.0, 1.0]])
    space = FeatureSpace.from_matrix(X, columns=["n", "c = a", "c = b"], groups={"c": ["c = a", "c = b"]})
    cost = CostModel.bins(space)
    assert cost.between(X[:1], X[1:]).tolist() == [11.0]
    assert cost.between(X[:1], np.array([[5.0, 1.0, 0.0]])).tolist() == [1.0]


def test_ordinal_steps_add_up_and_never_cancel() -> None:
    """The reference's ordinal +1 and -1 steps cancelled to cost 0."""
    X = mixed_frame()
    space = mixed_space(X)
    cost = CostModel.bins(space)
    Z = space.encode(X)[:1]
    column = space["school"].start
    up, down = Z.copy(), Z.copy()
    Z[0, column], up[0, column], down[0, column] = 1.0, 2.0, 0.0
    assert cost.between(Z, up) == cost.between(Z, down) == 1.0
    assert cost.between(down, up) == 2.0


def test_l2_is_the_length_of_the_features_costs() -> None:
    X = np.array([[0.0, 0.0], [10.0, 100.0]])
    space = FeatureSpace.from_matrix(X)
    assert CostModel.bins(space, norm="l2").between(X[:1], np.array([[3.0, 40.0]])).tolist() == [5.0]


def test_deciles_count_the_share_of_people_passed() -> None:
    values = np.concatenate([np.linspace(0, 1, 91), np.linspace(10, 100, 10)])[:, None]
    space = FeatureSpace.from_matrix(values, columns=["skewed"], ranges="unbounded")
    cost = CostModel.deciles(space, values)
    low = cost.between(np.array([[0.0]]), np.array([[1.0]]))[0]
    high = cost.between(np.array([[50.0]]), np.array([[51.0]]))[0]
    assert low > 50 * high
    assert cost.between(np.array([[0.0]]), np.array([[100.0]]))[0] == pytest.approx(10.0)
    beyond = cost.between(np.array([[100.0]]), np.array([[150.0]]))[0]
    assert beyond > 0.0


def test_weights_multiply() -> None:
    space = mixed_space()
    Z = space.encode(mixed_frame())
    after = space.round(Z + 1.0)
    plain = CostModel.bins(space).between(Z, after)
    heavy = CostModel.bins(space, weights=dict.fromkeys(space.names, 3.0)).between(Z, after)
    np.testing.assert_allclose(heavy, 3 * plain)


def test_a_missing_number_costs_nothing() -> None:
    space = mixed_space()
    Z = space.encode(mixed_frame())
    assert np.isnan(Z).any()
    assert (CostModel.bins(space).between(Z, Z) == 0.0).all()


def test_bradley_terry_recovers_odds() -> None:
    """With a harder than b in 3 of 4 comparisons the difficulty ratio tends to 3 (Bradley and Terry 1952)."""
    weights = bradley_terry([("b", "a")] * 300 + [("a", "b")] * 100, prior=1e-6)
    assert weights["a"] / weights["b"] == pytest.approx(3.0, rel=1e-3)
    assert weights["a"] * weights["b"] == pytest.approx(1.0)


@pytest.mark.parametrize("pairs", [[], [("a", "a")], ["ab"], [("a", "b", "c")]])
def test_bradley_terry_refuses_what_is_no_comparison(pairs: list) -> None:
    with pytest.raises(InvalidParameterError, match="pairs"):
        bradley_terry(pairs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be"),
        ({"norm": "l3"}, "norm must be one of"),
        ({"weights": {"nope": 1.0}}, "weights names unknown"),
        ({"weights": {"age": -1.0}}, r"weights\['age'\]"),
        ({"weights": {"age": np.inf}}, r"weights\['age'\]"),
        ({"widths": {"age": 0.0}}, r"widths\['age'\]"),
        ({"widths": {"nope": 1.0}}, "widths names unknown"),
    ],
)
def test_each_parameter_given_rubbish_says_so(arguments: dict, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        CostModel.bins(mixed_space(), **arguments)


def test_normalised_directions_share_a_nominal_cost() -> None:
    space = mixed_space()
    cost = CostModel.bins(space)
    D = np.random.default_rng(0).normal(size=(5, space.width))
    np.testing.assert_allclose(cost.nominal(cost.normalise(D, 2.0)), 2.0)
    with pytest.raises(InvalidParameterError, match="no cost to normalise by"):
        cost.normalise(np.zeros((1, space.width)))
