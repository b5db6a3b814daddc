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
from globece.models.blackbox import BlackBox
from globece.models.compiling.adapt import Compiled
from globece.models.compiling.checking import check, spot_check
from globece.models.compiling.compose import NotCompiled
from globece.models.decision import decision
from globece.models.linear.half_spaces import LinearModel

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


def of_one_number(space: FeatureSpace) -> LinearModel:
    """A core that looks at column a only."""
    weights = np.zeros((1, space.width))
    weights[0, space["a"].start] = 1.0
    return LinearModel(space, weights, np.array([-1.0]), np.array([False]), np.zeros(space.width))


class TestSpotCheck:
    space = FeatureSpace.from_frame(X)

    def compiled(self, model: Any) -> Compiled:
        """The model, with a core that knows nothing of the cross."""
        return Compiled(BlackBox(decision(model), self.space), of_one_number(self.space))

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
        assert "affected input" in said

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


class TestCheck:
    """A core with one thing wrong is found out, from few rows and from many."""

    @staticmethod
    def parts(rows: pd.DataFrame, model: Any, **how: Any) -> tuple[Any, BlackBox, Any]:
        space = FeatureSpace.from_frame(rows)
        found = as_model(model, space, rows=space.encode(rows), **how)
        assert isinstance(found, Compiled)
        check(found.core, found.original, space.encode(rows))  # as it is, it agrees
        return found.core, found.original, space.encode(rows)

    @pytest.mark.parametrize("rows", [3, 30, 300])
    def test_a_boundary_that_is_off(self, rows: int) -> None:
        numbers = X[["a"]].assign(b=RNG.normal(size=len(X)))
        model = LogisticRegression().fit(numbers, numbers.sum(axis=1) > 0.5)
        numbers = numbers.iloc[np.argsort(numbers.sum(axis=1))]  # so that the boundary runs through the few rows, too
        core, box, Z = self.parts(numbers.iloc[np.linspace(0, len(X) - 1, rows).astype(int)], model)
        for wrong in (0.01, -0.01):
            with pytest.raises(NotCompiled, match="another outcome"):
                check(replace(core, offsets=core.offsets + wrong), box, Z)

    @pytest.mark.parametrize("rows", [4, 300])
    def test_a_weight_that_is_off(self, rows: int) -> None:
        """Too little to change an outcome here, but the rows are in another order."""
        numbers = X[["a"]].assign(b=RNG.normal(size=len(X)))
        model = LogisticRegression(C=0.01).fit(numbers, numbers.sum(axis=1) > 0.5)
        core, box, Z = self.parts(numbers.iloc[:rows], model, threshold=1e-6)
        with pytest.raises(NotCompiled, match="ranks rows differently"):
            check(replace(core, weights=core.weights * np.array([1.0, 1.05])), box, Z)

    @pytest.mark.parametrize("rows", [5, 300])
    def test_a_pair_of_categories_that_is_left_out(self, rows: int) -> None:
        """Nobody among the rows given has both, and the pair changes the outcome of few."""
        frame = X[~((X["job"] == "q") & (X["home"] == "y"))].iloc[:rows]
        frame = pd.concat([frame, frame.iloc[:1].assign(job="q"), frame.iloc[:1].assign(home="y", a=2.0)])
        space = FeatureSpace.from_frame(frame)
        core = of_one_number(space)
        check(core, BlackBox(decision(plain), space), space.encode(frame))
        with pytest.raises(NotCompiled, match="another outcome"):
            check(core, BlackBox(decision(crossed), space), space.encode(frame))

    def test_no_rows_are_no_excuse(self) -> None:
        numbers = X[["a"]].assign(b=RNG.normal(size=len(X)))
        model = LogisticRegression().fit(numbers, numbers.sum(axis=1) > 0.5)
        core, box, _ = self.parts(numbers, model)
        check(core, box)
        with pytest.raises(NotCompiled):
            check(replace(core, weights=-core.weights), box)

    def test_it_asks_little(self) -> None:
        numbers = X[["a"]].assign(b=RNG.normal(size=len(X)))
        model = LogisticRegression().fit(numbers, numbers.sum(axis=1) > 0.5)
        core, box, Z = self.parts(numbers, model)
        calls, rows = box.decide.tally.calls, box.decide.tally.rows
        check(core, box, Z, box.favourable(Z))
        assert box.decide.tally.calls - calls <= 4
        assert box.decide.tally.rows - rows <= 2500
