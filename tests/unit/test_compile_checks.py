"""A compiled model is asked where it would differ from the original, before it is used and once it has answered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from globece import FeatureSpace, as_model
from globece.models.adapt import Compiled
from globece.models.blackbox import BlackBox
from globece.models.checking import spot_check
from globece.models.decision import decision

RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {"job": RNG.choice(list("pqrs"), 300), "home": RNG.choice(list("vwxy"), 300), "a": RNG.normal(size=300)}
)


def crossed(rows: pd.DataFrame) -> Any:
    """What no model of one column at a time can say."""
    return (rows["a"] + 2.0 * ((rows["job"] == "q") & (rows["home"] == "y")) > 1.0).astype(int)


def plain(rows: pd.DataFrame) -> Any:
    return (rows["a"] > 1.0).astype(int)


def along(space: FeatureSpace, **moves: Any) -> Any:
    delta = np.zeros(space.width)
    for name, move in moves.items():
        f = space[name]
        delta[f.start + (f.categories.index(move) if f.is_block else 0)] = 1.0 if f.is_block else move
    return delta


class TestSpotCheck:
    space = FeatureSpace.from_frame(X)

    def compiled(self, model: Any) -> Compiled:
        """The model, with a core that knows nothing of the cross."""
        core = as_model((np.array([1.0]), -1.0), FeatureSpace.from_matrix(X[["a"]].to_numpy(), columns=["a"])).core  # type: ignore[union-attr]
        weights = np.zeros((1, self.space.width))
        weights[0, self.space["a"].start] = 1.0
        fill = np.zeros(self.space.width)
        return Compiled(
            BlackBox(decision(model), self.space), replace(core, space=self.space, weights=weights, fill=fill)
        )

    def ask(self, model: Any, **moves: Any) -> str | None:
        compiled = self.compiled(model)
        Z = self.space.encode(X)
        Z = Z[~compiled.favourable(Z)]
        D = np.array([along(self.space, **moves)])
        limit = np.full((1, len(Z)), 3.0)
        return spot_check(compiled, Z, D, compiled.first_flip(Z, D, limit), limit)

    def test_an_earlier_outcome_is_found(self) -> None:
        said = self.ask(crossed, job="q", home="y", a=0.5)
        assert said is not None
        assert "favours affected input" in said

    def test_an_outcome_is_found_where_none_was_said_to_be(self) -> None:
        said = self.ask(crossed, job="q", home="y")
        assert said is not None
        assert "nowhere up to 3" in said

    @pytest.mark.parametrize("moves", [{"a": 0.5}, {"job": "q", "a": 1.0}, {"job": "q"}])
    def test_agreement_is_none(self, moves: dict[str, Any]) -> None:
        assert self.ask(plain, **moves) is None

    def test_nothing_to_ask(self) -> None:
        compiled = self.compiled(plain)
        nobody = np.empty((0, self.space.width))
        assert spot_check(compiled, nobody, np.ones((1, self.space.width)), np.empty((1, 0)), np.empty((1, 0))) is None
        no_directions = np.empty((0, self.space.width))
        Z = self.space.encode(X)
        assert spot_check(compiled, Z, no_directions, np.empty((0, len(Z))), np.empty((0, len(Z)))) is None

    @pytest.mark.parametrize("offset", [0.0, 1e4])
    @pytest.mark.parametrize("model", [LogisticRegression(), DecisionTreeClassifier(max_depth=4)])
    def test_a_narrow_column_is_no_disagreement(self, model: Any, offset: float) -> None:
        rows = (RNG.normal(size=(400, 3)) + offset).astype(np.float32)
        model.fit(rows, rows.sum(axis=1) > 3 * offset)
        space = FeatureSpace.from_matrix(rows)
        found = as_model(model, space, rows=space.encode(rows))
        assert found.exact
        Z = space.encode(rows)
        Z = Z[~found.favourable(Z)]
        D = RNG.normal(size=(4, 3))
        limit = np.full((4, len(Z)), 5.0)
        assert spot_check(found, Z, D, found.first_flip(Z, D, limit), limit, most=2000) is None
