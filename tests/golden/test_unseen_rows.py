"""Directions chosen on the training rows serve unseen ones: the paper's claim, on its four datasets (Section 5)."""

from __future__ import annotations

import numpy as np
import pytest

import globece as gce
from tests.paper_models import load_dataset, paper_problem

pytestmark = pytest.mark.paper_data


@pytest.mark.parametrize("dataset", ["compas", "german_credit", "heloc", "default_credit"])
def test_directions_generalise(dataset: str) -> None:
    paper, data = paper_problem(dataset, "lr"), load_dataset(dataset)
    groups = {name: columns for name, columns in paper.features.items() if columns}
    space = gce.FeatureSpace.from_matrix(paper.x, columns=paper.columns, groups=groups, ranges="unbounded")
    cost = gce.CostModel.bins(space, widths=paper.bin_widths)
    ex = gce.explain(paper.model.to_sklearn(), paper.x, space=space, cost=cost, n_directions=3, rng=0)
    unseen = ex.apply(data.encoded()[data.n_train :])
    assert unseen.coverage >= ex.coverage - 0.02
    paid = np.minimum(unseen.costs.min(axis=0), 10.0)
    error = paid.std() / np.sqrt(len(paid))
    assert unseen.score <= ex.score + max(3 * error, 0.1 * ex.score)
