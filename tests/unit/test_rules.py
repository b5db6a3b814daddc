from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from globece import CostModel, Explanation, FeatureSpace, explain, rays
from globece.errors import InvalidParameterError
from globece.rules import RulesChart, additions, rules_at, rules_chart
from tests.problems import approve, mixed_frame, mixed_space

NAMES = [f"v = {i}" for i in range(1, 5)]
FOUR = FeatureSpace.from_matrix(np.eye(4), columns=NAMES, groups={"v": NAMES})
DELTA = np.array([0.0, -1.0, 1.0, 0.5])


@pytest.mark.parametrize(
    ("k", "rule", "alternative"),
    [
        (0.75, "If 2, Then 3", "If Not (1 or 3 or 4), Then 3"),
        (1.5, "If 2 or 1, Then 3", "If Not (3 or 4), Then 3"),
        (2.5, "If Not 3, Then 3", "If Not 3, Then 3"),
    ],
)
def test_the_papers_worked_example(k: float, rule: str, alternative: str) -> None:
    """`tab:categoricalscaling`, column by column; "1 or 2" there is the order of k here."""
    (found,) = rules_at(FOUR, DELTA, k)
    assert str(found) == rule
    assert found.alternative == alternative


def test_at_exactly_the_lower_bound_the_rule_does_not_fire_yet() -> None:
    assert rules_at(FOUR, DELTA, 0.5) == ()
    assert rules_at(FOUR, DELTA, np.nextafter(0.5, 1.0))[0].sources == ("2",)


def test_ties_in_a_block_never_switch() -> None:
    assert rules_at(FOUR, np.array([1.0, 1.0, 1.0, 1.0])) == ()
    (rule,) = rules_at(FOUR, np.array([1.0, 1.0, 0.0, 0.0]))
    assert (rule.sources, rule.target) == (("3", "4"), "1")


def test_continuous_parts_are_additions_in_the_features_own_units() -> None:
    space = mixed_space()
    delta = np.zeros(space.width)
    delta[space["debts"].start], delta[space["school"].start] = -3.0, 1.0
    assert [str(a) for a in additions(space, delta)] == ["-3 per unit", "+1 step(s) per unit"]


def test_the_chart_has_the_papers_shape() -> None:
    """`tab:globecegerman`: rules add up from top to bottom, the Ifs of one feature one after the other."""
    rng = np.random.default_rng(0)
    Z = np.eye(4)[rng.integers(0, 4, 200)]
    # people get recourse by reaching value 3, except every fifth, who has none
    _, bounds = 2, np.array([1.0, 0.5, np.inf, 2.0])
    scalars = np.nextafter(bounds[Z.argmax(axis=1)], np.inf)
    scalars[::5] = np.inf
    costs = np.where(np.isfinite(scalars), 1.0, np.inf)
    chart = rules_chart(CostModel.bins(FOUR), DELTA, Z, scalars, costs)
    assert [str(rule) for row in chart.rows for rule in row.rules] == ["If 2, Then 3", "If 1, Then 3", "If 4, Then 3"]
    assert [row.features for row in chart.rows] == [("v",)] * 3
    assert sum(row.new_coverage for row in chart.rows) == pytest.approx(chart.rows[-1].coverage)
    assert chart.rows[-1].coverage == np.isfinite(costs).mean()
    assert chart.rows[-1].cost == 1.0
    assert all(b.coverage >= a.coverage for a, b in zip(chart.rows, chart.rows[1:], strict=False))
    merged = rules_chart(CostModel.bins(FOUR), DELTA, Z, scalars, costs, rows=1)
    assert [str(rule) for row in merged.rows for rule in row.rules] == ["If Not 3, Then 3"]
    assert merged.rows[-1].coverage == chart.rows[-1].coverage


def test_greedy_rows_never_cost_more_than_equal_ones() -> None:
    """If each input travels to the end of its row, the submodular selection pays at most what equal spacing does."""
    X = mixed_frame(300)
    space = mixed_space(X, immutable=["age", "income", "debts", "school"])
    ex = explain(approve, X, space=space, rng=3)
    for rows in (1, 2, 3):
        paid = []
        for spacing in ("equal", "greedy"):
            chart = ex.rules_chart(rows=rows, spacing=spacing)
            assert chart.rows[-1].coverage == pytest.approx(ex.coverage)
            assert chart.rows[-1].cost == pytest.approx(ex.average_cost)
            paid.append(_travel_cost(ex, chart))
        assert paid[1] <= paid[0] + 1e-9


def _travel_cost(ex: Explanation, chart: RulesChart) -> float:
    total = 0.0
    for row in chart.rows:
        ends = [rule.k for rule in row.rules]
        mine = (ex.scalars[0] > row.low) & (ex.scalars[0] <= row.high) & np.isfinite(ex.scalars[0])
        end = np.nextafter(max(ends), np.inf) if ends else 0.0
        k = np.maximum(ex.scalars[0][mine], end)
        total += rays.cost_at(ex.cost, ex.inputs[mine], ex.directions[0], k).sum()
    return total


@pytest.mark.parametrize("rows", [0, -1, 1.5, "five", None])
def test_rows_given_rubbish_says_so(rows: Any) -> None:
    with pytest.raises(InvalidParameterError, match="rows must be"):
        rules_chart(CostModel.bins(FOUR), DELTA, np.eye(4), np.ones(4), np.ones(4), rows=rows)


def test_spacing_given_rubbish_says_so() -> None:
    with pytest.raises(InvalidParameterError, match="spacing must be one of"):
        rules_chart(CostModel.bins(FOUR), DELTA, np.eye(4), np.ones(4), np.ones(4), spacing="wide")


def test_a_continuous_direction_has_a_chart_too() -> None:
    X = mixed_frame(200)
    ex = explain(approve, X, space=mixed_space(X, immutable=["housing", "job"]), rng=0)
    chart = ex.rules_chart(rows=4)
    assert chart.additions
    assert chart.rows[-1].coverage == ex.coverage
    assert chart.rows[-1].cost == ex.average_cost
    assert "at most" in str(chart)
    assert "per unit" not in str(chart)
    assert "k =" not in str(chart)


@pytest.mark.parametrize("spacing", ["equal", "greedy"])
def test_every_row_says_what_moves_and_by_how_much_at_most(spacing: str) -> None:
    """In the feature's own units, over the inputs covered so far: counted from their counterfactuals."""
    X = mixed_frame(300)
    ex = explain(approve, X, space=mixed_space(X), n_directions=2, rng=0)
    seen = 0
    for i in range(ex.n_directions):
        chart = ex.rules_chart(i, rows=4, spacing=spacing)
        for row, k in zip(chart.rows, [min(row.high, np.finfo(float).max) for row in chart.rows], strict=True):
            mine = ex.scalars[i] <= k
            Z = ex.inputs[mine]
            after = rays.positions(ex.space, Z, ex.directions[i], ex.scalars[i][mine])
            largest = {
                f.name: float(np.nanmax(np.abs(after[:, f.start] - Z[:, f.start]), initial=0.0))
                for f in ex.space.scalars
            }
            told = {move.feature: abs(move.amount) for move in row.moves}
            assert told == pytest.approx({name: most for name, most in largest.items() if most})
            assert [move.cost for move in row.moves] == sorted([move.cost for move in row.moves], reverse=True)
            assert row.lines, "a row is never empty"
            seen += len(told)
    assert seen


def test_entering_a_range_counts_as_a_move() -> None:
    X = np.array([[1.0], [4.0], [5.0], [9.0]])
    space = FeatureSpace.from_matrix(X, ranges={"x0": (4, 9)})
    ex = explain(lambda X: (X[:, 0] >= 4.5).astype(int), X, space=space, rng=0)
    assert ex.rules_chart().rows[-1].moves[0].amount == pytest.approx(3.5)


def test_many_features_are_counted_with_what_they_cost_at_most() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (50, 40))
    space = FeatureSpace.from_matrix(X)
    ex = explain(lambda X: (X.sum(axis=1) > 60).astype(int), X, space=space, rng=0)
    moved = ex.apply(X[:5])
    Z, delta = moved.inputs, np.full(40, 0.01)
    chart = rules_chart(ex.cost, delta, Z, np.full(5, 2.0), np.full(5, 1.0))
    assert len(chart.rows[-1].moves) == 40
    assert [line.feature for line in chart.rows[-1].lines][-1] == "32 more features"
    assert "at most" in chart.rows[-1].lines[-1].text
