"""Every generator passes the public contract suite, and the suite names one that does not."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from xgboost import XGBClassifier

from globece import CostModel, FeatureSpace, as_model
from globece.directions import (
    Affected,
    ClosedForm,
    Evolution,
    FixedDirections,
    FromLocal,
    GradientDescent,
    GreedyChains,
    ImportanceSampling,
    ItemsetSampling,
    MeanDifference,
    Mixed,
    UniformSampling,
    nearest_favourable,
)
from globece.errors import InvalidDirectionError
from globece.testing import GeneratorCase, GeneratorContract
from tests.problems import MATRIX_WEIGHTS, approve, approve_matrix, matrix, matrix_space, mixed_frame, mixed_space

FRAME = mixed_frame(300)
LABEL = approve(FRAME)
TIGHT = {"immutable": ["job"], "increasing": ["age", "school"], "permitted": {"housing": ["own", "rent"]}}


def problem_of(model: Any, X: Any, space: FeatureSpace, **wanted: Any) -> Affected:
    Z = space.encode(X)
    asked = as_model(model, space, rows=Z, **wanted)
    favourable = asked.favourable(Z)
    return Affected(asked, Z[~favourable], CostModel.bins(space), 10.0, favourable_rows=Z[favourable])


@cache
def frame_problem() -> Affected:
    """Every kind of feature, every kind of constraint, missing values; a black box."""
    return problem_of(approve, FRAME, mixed_space(FRAME, **TIGHT))


@cache
def linear_problem() -> Affected:
    """The same with a linear model that compiles."""
    X = FRAME.assign(income=FRAME["income"].fillna(2.0))
    text = ["housing", "job", "school"]
    steps = make_column_transformer((OneHotEncoder(), text), remainder="passthrough")
    model = make_pipeline(steps, LogisticRegression(max_iter=5000)).fit(X, LABEL)
    return problem_of(model, X, mixed_space(X, **TIGHT))


@cache
def tree_problem() -> Affected:
    X = matrix(300)
    space = matrix_space(X, immutable=["age"], decreasing=["debts"], permitted={"home": ["own", "free"]})
    return problem_of(XGBClassifier(n_estimators=10, max_depth=3).fit(X, approve_matrix(X)), X, space)


def richer(row: Any) -> Any:
    """Return a counterfactual that breaks several constraints on its way, or none."""
    if row["debts"].iloc[0] > 5:
        return None
    return row.assign(income=row["income"] + 2.0, age=row["age"] - 5, housing="own", job="a")


class Shared(GeneratorContract):
    generator: Any = None

    @pytest.fixture(scope="class", params=[frame_problem, tree_problem], ids=["frame", "trees"])
    @classmethod
    def case(cls, request: pytest.FixtureRequest) -> GeneratorCase:
        return GeneratorCase(cls.generator, request.param())


class TestUniformSampling(Shared):
    generator = UniformSampling()


class TestImportanceSampling(Shared):
    generator = ImportanceSampling(n_features=3)


class TestImportanceOfValues(Shared):
    generator = ImportanceSampling(weigh="values")


class TestPermutationImportance(Shared):
    generator = ImportanceSampling("permutation")


class TestItemsetSampling(Shared):
    generator = ItemsetSampling()


class TestNearestFavourable(Shared):
    generator = FromLocal(nearest_favourable())


class TestMeanDifference(Shared):
    generator = MeanDifference()


class TestMixed(Shared):
    generator = Mixed([MeanDifference(), ImportanceSampling(), UniformSampling()], shares=[1, 2, 1])


class TestGreedyChains(Shared):
    generator = GreedyChains(rays_per_input=1)


class TestEvolution(Shared):
    generator = Evolution(start=UniformSampling(), samples=30, survivors=2, generations=4, inputs=32)


class TestFromLocal(GeneratorContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls) -> GeneratorCase:
        return GeneratorCase(FromLocal(richer, rows=20), frame_problem())


class TestClosedForm(GeneratorContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls) -> GeneratorCase:
        return GeneratorCase(ClosedForm(), linear_problem())


class TestGradientDescent(GeneratorContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls) -> GeneratorCase:
        torch = pytest.importorskip("torch")
        net = torch.nn.Linear(6, 1)  # what tests.problems.approve_matrix decides
        with torch.no_grad():
            net.weight.copy_(torch.as_tensor(MATRIX_WEIGHTS[None]))
            net.bias.fill_(-4.0)
        return GeneratorCase(GradientDescent(restarts=4, steps=20, module=net), tree_problem())


class TestFixedDirections(GeneratorContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls) -> GeneratorCase:
        problem = frame_problem()
        rules: list[dict[str, Any]] = [{"housing": "own", "income": 1.0}, {"school": "high"}, {"debts": -2, "age": 1}]
        return GeneratorCase(FixedDirections.from_rules(problem.space, rules), problem)


# -- the suite and the search find those out that do not ---------------------------------------------------------------


class Rogue:
    """Proposes what it is told to."""

    def __init__(self, change: Any) -> None:
        self.change = change

    def propose(self, problem: Affected, n: int, rng: np.random.Generator) -> Any:
        found = UniformSampling().propose(problem, n, rng)
        return self.change(found, problem.space)


def nan(D: Any, space: FeatureSpace) -> Any:
    D[2, 0] = np.nan
    return D


def immutable(D: Any, space: FeatureSpace) -> Any:
    D[:, space["job"].start] = 1.0
    return D


def backwards(D: Any, space: FeatureSpace) -> Any:
    D[:, space["age"].start] = -1.0
    return D


def nothing(D: Any, space: FeatureSpace) -> Any:
    return 0.0 * D


def too_many(D: Any, space: FeatureSpace) -> Any:
    return np.vstack([D, D])


def at_random(D: Any, space: FeatureSpace) -> Any:
    return D * np.random.default_rng().random()


SUITE = GeneratorContract()
FINITE = SUITE.test_proposals_are_finite_move_somebody_and_break_no_constraint


@pytest.mark.parametrize(
    ("change", "test", "says"),
    [
        (nan, FINITE, "Rogue.*direction 2 is not finite"),
        (immutable, FINITE, "Rogue.*'job', which is immutable"),
        (backwards, FINITE, "Rogue.*'age' down"),
        (nothing, FINITE, "Rogue.*is zero"),
        (too_many, SUITE.test_proposals_are_a_matrix_of_at_most_n_rows, "Rogue proposed 128 directions where 64"),
        (at_random, SUITE.test_the_seed_decides, "Rogue gives other directions"),
        (lambda D, space: D[:, :-1], SUITE.test_proposals_are_a_matrix_of_at_most_n_rows, "Rogue.*columns"),
        (lambda D, space: D.tolist(), SUITE.test_proposals_are_a_matrix_of_at_most_n_rows, "Rogue.*list"),
    ],
)
def test_the_suite_names_a_generator_that_breaks_the_contract(change: Any, test: Any, says: str) -> None:
    with pytest.raises((AssertionError, InvalidDirectionError), match=says):
        test(GeneratorCase(Rogue(change), frame_problem()))


def test_the_suite_sees_a_generator_with_an_address_in_its_name() -> None:
    with pytest.raises(AssertionError, match="Rogue describes itself"):
        SUITE.test_it_describes_itself_the_same_way_each_time(GeneratorCase(Rogue(nan), frame_problem()))
