"""Directions chosen on the training rows serve unseen ones: the paper's claim, on its four datasets (Section 5)."""

from __future__ import annotations

import numpy as np
import pytest

import globece as gce
from paper.cases import case
from paper.data import DATASETS

pytestmark = pytest.mark.paper_data


@pytest.mark.parametrize("dataset", DATASETS)
def test_directions_generalise(dataset: str) -> None:
    on = case(dataset, "lr")
    ex = gce.explain(on.own, on.rows, space=on.space, cost=on.cost, n_directions=3, rng=0)
    unseen = ex.apply(on.test_rows)
    assert unseen.coverage >= ex.coverage - 0.02
    paid = np.minimum(unseen.costs.min(axis=0), 10.0)
    error = paid.std() / np.sqrt(len(paid))
    assert unseen.score <= ex.score + max(3 * error, 0.1 * ex.score)
