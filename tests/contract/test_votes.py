"""Hard votes of models that are followed exactly pass the public contract suite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import globece as gce
from globece.testing.models import ModelCase, ModelContract
from tests.contract.test_models import FRAME, LABEL, TEXT, X, compiled, fitted
from tests.problems import matrix_space, mixed_space

LINEAR = ("linear", LogisticRegression())
TREE = ("tree", DecisionTreeClassifier(max_depth=5, random_state=0))
BOOSTED = ("boosted", HistGradientBoostingClassifier(max_iter=10, random_state=0))
NETWORK = ("network", make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=60, random_state=0)))
VOTES: dict[str, tuple[VotingClassifier, dict[str, Any]]] = {
    "three": (VotingClassifier([LINEAR, TREE, BOOSTED]), {}),
    "three, other class": (VotingClassifier([LINEAR, TREE, BOOSTED]), {"favourable": 0}),
    "weighted": (VotingClassifier([LINEAR, TREE, NETWORK], weights=[1, 3, 1.5]), {}),
    "two, tied": (VotingClassifier([LINEAR, TREE]), {"favourable": 0}),
    "two, tied, second class": (VotingClassifier([TREE, BOOSTED]), {"favourable": 1}),
    "one left out": (VotingClassifier([LINEAR, ("none", "drop"), TREE], weights=[2, 5, 1]), {}),
}


@pytest.mark.parametrize("which", VOTES, scope="class")
class TestVotes(ModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, which: str) -> ModelCase:
        model, wanted = VOTES[which]
        space = matrix_space()
        found = compiled(fitted(model), space, X, **wanted)
        rows = space.encode(X)
        np.testing.assert_array_equal(found.core.favourable(rows), found.original.favourable(rows))
        return ModelCase(found.core, rows[:80], 6, 4, precision=1e-8)


class TestVotesOverRawColumns(ModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls) -> ModelCase:
        encode = make_column_transformer((OneHotEncoder(), TEXT), remainder="passthrough")
        model = make_pipeline(
            encode, VotingClassifier([BOOSTED, ("other", HistGradientBoostingClassifier(max_iter=5))])
        )
        space = mixed_space(FRAME)
        found = compiled(fitted(model, FRAME, LABEL), space, FRAME)
        rows = space.encode(FRAME)
        np.testing.assert_array_equal(found.core.favourable(rows), found.original.favourable(rows))
        return ModelCase(found.core, rows[:80], 6, 4, precision=1e-8)


def test_an_explanation_of_votes_is_exact_and_no_worse_than_a_search() -> None:
    model = fitted(VotingClassifier([LINEAR, TREE, BOOSTED]))
    ex = gce.explain(model, X, favourable=1, effort="quick", rng=0)
    assert ex.provenance.method == "exact"
    assert not ex.provenance.notes
    searched = gce.as_model(model, ex.space, favourable=1, compile=False)
    limit = np.full((ex.n_directions, ex.n_affected), 50.0)
    found = searched.first_flip(ex.inputs, ex.directions, limit)
    both = np.isfinite(found) & np.isfinite(ex.scalars)
    assert both.any()
    assert (ex.scalars[both] <= found[both] * (1 + 1e-6)).all()
