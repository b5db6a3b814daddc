"""The exact minimum costs of the paper's logistic regressions, over any change and without ranges."""

from __future__ import annotations

import pytest

from globece import CostModel, FeatureSpace, as_model
from globece.bounds import lower_bound
from globece.directions import Affected
from tests.paper_models import Kind, paper_problem

pytestmark = pytest.mark.paper_data

# Mean over the affected inputs, worked out independently of this code.
LEAST = {"compas": 1.068, "german_credit": 1.049, "heloc": 0.407, "default_credit": 0.741}
# What the best change of each input that a local search found costs: no lower bound can be above.
LOCAL = {"compas": 0.61, "german_credit": 0.68, "heloc": 2.03}


def problem_of(dataset: str, kind: Kind) -> Affected:
    given = paper_problem(dataset, kind)
    model = given.model.to_sklearn() if kind == "lr" else given.model
    groups = {name: columns for name, columns in given.features.items() if columns}
    space = FeatureSpace.from_matrix(given.x, columns=given.columns, groups=groups, ranges="unbounded")
    cost = CostModel.bins(space, widths=given.bin_widths)
    return Affected(as_model(model, space, rows=given.x), given.x[given.affected], cost, 10.0)


@pytest.mark.parametrize("dataset", LEAST)
def test_minimum_costs_of_the_logistic_regressions(dataset: str) -> None:
    bound = lower_bound(problem_of(dataset, "lr"))
    assert bound.exact
    assert bound.mean == pytest.approx(LEAST[dataset], abs=0.0005)


@pytest.mark.parametrize("dataset", LOCAL)
def test_bounds_of_the_tree_ensembles_are_below_what_was_found(dataset: str) -> None:
    assert 0.2 < lower_bound(problem_of(dataset, "xgb")).mean < LOCAL[dataset]
