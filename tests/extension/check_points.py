"""Run where the extension is installed: the contracts, and that globece finds and uses what it has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from globece_points import OneAtATime, PointsCard, PointsModel

import globece as gce
from globece.case.affected import Affected
from globece.extensions import extension, extensions
from globece.testing import GeneratorCase, GeneratorContract, ModelCase, ModelContract

X = np.random.default_rng(0).uniform(0, 10, size=(120, 3)).round(2)
CARD = PointsCard([[2.0, 5.0], [3.3, 6.1, 8.0], [4.0]], [[0, 10, 25], [0, 5, 20, 30], [0, 12]], 45)
SPACE = gce.FeatureSpace.from_matrix(X, columns=["age", "income", "years"])


class TestPointsModel(ModelContract):
    @pytest.fixture(params=[1, 0])
    def case(self, request: Any) -> ModelCase:
        return ModelCase(PointsModel(CARD, SPACE, request.param), X[:60], n_directions=6, n_rays=4)


class TestOneAtATime(GeneratorContract):
    @pytest.fixture
    def case(self) -> GeneratorCase:
        model = gce.as_model(CARD, SPACE, favourable=1)
        inputs = X[~model.favourable(X)]
        return GeneratorCase(OneAtATime(), Affected(model, inputs, gce.CostModel.bins(SPACE), 10.0))


def test_globece_follows_the_card_exactly() -> None:
    ex = gce.explain(CARD, X, favourable=1, n_directions=2, rng=0)
    assert ex.provenance.method == "exact"
    assert ex.provenance.model == "PointsCard"
    again = gce.explain(CARD, X, favourable=1, n_directions=2, settings=gce.Settings(exact=False), rng=0)
    assert again.provenance.method == "searched"
    assert min(ex.coverage, again.coverage) > 0.9


def test_what_it_has_is_loaded_by_name() -> None:
    assert "points" in extensions("models")
    search = extension("searches", "one-at-a-time")()
    cost = extension("costs", "hours")(SPACE, X)
    ex = gce.explain(CARD, X, favourable=1, space=SPACE, search=search, cost=cost, rng=0)
    plain = gce.explain(CARD, X, favourable=1, space=SPACE, generator=extension("generators", "one-at-a-time")(), rng=0)
    assert (np.count_nonzero(ex.directions, axis=1) == 1).all()
    assert ex.average_cost >= plain.average_cost
