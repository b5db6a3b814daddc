"""The exact minimum costs of the paper's logistic regressions, over any change and without ranges."""

from __future__ import annotations

import pytest

from globece import as_model
from globece.bounds import lower_bound
from globece.directions import Affected
from paper.cases import case
from paper.reference import LEAST, LOCAL

pytestmark = pytest.mark.paper_data


def problem_of(dataset: str, kind: str) -> Affected:
    on = case(dataset, kind)
    return Affected(as_model(on.own, on.space, rows=on.rows), on.rows[on.affected], on.cost, 10.0)


@pytest.mark.parametrize("dataset", LEAST)
def test_minimum_costs_of_the_logistic_regressions(dataset: str) -> None:
    bound = lower_bound(problem_of(dataset, "lr"))
    assert bound.exact
    assert bound.mean == pytest.approx(LEAST[dataset], abs=0.0005)


@pytest.mark.parametrize("dataset", LOCAL)
def test_bounds_of_the_tree_ensembles_are_below_what_was_found(dataset: str) -> None:
    assert 0.2 < lower_bound(problem_of(dataset, "xgb")).mean < LOCAL[dataset]
