"""Every model adapter passes the public contract suite."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

from globece import FeatureSpace, as_model
from globece.errors import GlobeCEWarning
from globece.models.compiling.adapt import Compiled
from globece.testing.models import ModelCase, ModelContract
from tests.problems import approve, approve_matrix, matrix, matrix_space, mixed_frame, mixed_space

X = matrix(400)
y = approve_matrix(X)
noisy = np.where(np.random.default_rng(0).random(400) < 0.1, 1 - y, y)
FRAME = mixed_frame(400)
LABEL = approve(FRAME)
TEXT = ["housing", "job", "school"]
NUMBERS = ["income", "debts", "age"]
FREE = {"ranges": "unbounded", "whole": []}


def fitted(estimator: Any, rows: Any = X, labels: Any = noisy) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(rows, labels)


def compiled(model: Any, space: FeatureSpace, rows: Any, **wanted: Any) -> Compiled:
    found = as_model(model, space, rows=space.encode(rows), **wanted)
    assert isinstance(found, Compiled)
    return found


LINEAR: dict[str, tuple[Any, dict[str, Any]]] = {
    "logistic": (LogisticRegression(), {}),
    "logistic, other class": (LogisticRegression(), {"favourable": 0}),
    "logistic, threshold": (LogisticRegression(), {"threshold": 0.7}),
    "svc": (LinearSVC(), {}),
    "sgd": (SGDClassifier(loss="log_loss", random_state=0), {"threshold": 0.3}),
    "ridge": (RidgeClassifier(), {}),
    "perceptron": (Perceptron(), {}),
    "lda": (LinearDiscriminantAnalysis(), {}),
    "regression": (LinearRegression(), {"threshold": 0.5}),
    "regression below": (LinearRegression(), {"threshold": 0.4, "favourable": "below"}),
    "fixed threshold": (FixedThresholdClassifier(LogisticRegression(), threshold=0.6), {}),
    "fixed threshold, other class": (FixedThresholdClassifier(LogisticRegression(), threshold=0.6), {"favourable": 0}),
    "calibrated": (CalibratedClassifierCV(LogisticRegression(), ensemble=False), {}),
    "calibrated isotonic": (CalibratedClassifierCV(LogisticRegression(), method="isotonic", ensemble=False), {}),
}


@pytest.mark.parametrize(
    "constraints",
    [{"ranges": "unbounded", "whole": []}, {"decreasing": ["debts"]}],
    ids=["free", "bound"],
    scope="class",
)
@pytest.mark.parametrize("which", LINEAR, scope="class")
class TestLinear(ModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, which: str, constraints: dict) -> ModelCase:
        estimator, wanted = LINEAR[which]
        scaled = make_pipeline(StandardScaler(), estimator)
        model = fitted(
            scaled if not isinstance(estimator, (FixedThresholdClassifier, CalibratedClassifierCV)) else estimator
        )
        return ModelCase(compiled(model, matrix_space(X, **constraints), X, **wanted), X, 6, 4)


class TestManyClasses(ModelContract):
    @pytest.fixture(scope="class", params=[0, 1, 2])
    @classmethod
    def case(cls, request: pytest.FixtureRequest) -> ModelCase:
        model = fitted(
            make_pipeline(StandardScaler(), LogisticRegression()), X, np.digitize(X[:, 0] - 0.3 * X[:, 1], [1, 3])
        )
        return ModelCase(compiled(model, matrix_space(X), X, favourable=request.param), X, 6, 4)


class TestCoefAndIntercept(ModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls) -> ModelCase:
        weights = np.array([1.0, -0.4, 1.5, 0.0, 0.3, 0.02])
        return ModelCase(compiled((weights, -4.0), matrix_space(X), X), X, 8, 5)


class TestBlackBox(ModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls) -> ModelCase:
        return ModelCase(as_model(approve_matrix, matrix_space(X), grid=32), X[:60], 3, 2)


def pipeline(numbers: Any, text: Any, final: Any) -> Any:
    return make_pipeline(make_column_transformer((numbers, NUMBERS), (text, TEXT)), final)


FILLED = make_pipeline(SimpleImputer(), StandardScaler())
ONE_HOT = OneHotEncoder(handle_unknown="ignore")
PIPELINES = {
    "standard": pipeline(FILLED, ONE_HOT, LogisticRegression()),
    "drop first": pipeline(FILLED, OneHotEncoder(drop="first"), LogisticRegression()),
    "rare together": pipeline(
        FILLED, OneHotEncoder(min_frequency=140, handle_unknown="infrequent_if_exist"), LogisticRegression()
    ),
    "ordinal codes": pipeline(
        make_pipeline(SimpleImputer(strategy="median"), MinMaxScaler()),
        make_pipeline(SimpleImputer(strategy="most_frequent", missing_values=None), OrdinalEncoder()),
        LogisticRegression(),
    ),
    "robust": pipeline(make_pipeline(SimpleImputer(), RobustScaler()), ONE_HOT, LinearSVC()),
    "largest is one": pipeline(make_pipeline(SimpleImputer(), MaxAbsScaler()), ONE_HOT, RidgeClassifier()),
    "bins": pipeline(
        make_pipeline(
            SimpleImputer(), KBinsDiscretizer(5, encode="onehot-dense", quantile_method="averaged_inverted_cdf")
        ),
        ONE_HOT,
        LogisticRegression(),
    ),
    "bin numbers": pipeline(
        make_pipeline(SimpleImputer(), KBinsDiscretizer(6, encode="ordinal", strategy="uniform")),
        ONE_HOT,
        LogisticRegression(),
    ),
}


@pytest.mark.parametrize("constraints", [{}, FREE], ids=["bound", "free"], scope="class")
@pytest.mark.parametrize("which", PIPELINES, scope="class")
class TestPipelines(ModelContract):
    """Raw text and missing values in, exact scalars out."""

    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, which: str, constraints: dict) -> ModelCase:
        space = mixed_space(FRAME, **constraints)
        model = fitted(PIPELINES[which], FRAME, LABEL)
        found = compiled(model, space, FRAME)
        # the pipeline itself has the last word on frames; the compiled model, which agrees, is quick enough for a grid
        np.testing.assert_array_equal(found.core.favourable(space.encode(FRAME)), model.predict(FRAME) == 1)
        return ModelCase(found.core, space.encode(FRAME)[:80], 5, 3)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            pipeline(make_pipeline(SimpleImputer(), FunctionTransformer(np.square)), ONE_HOT, LogisticRegression()),
            "FunctionTransformer",
        ),
        (
            pipeline(make_pipeline(SimpleImputer(), FunctionTransformer(np.log1p)), ONE_HOT, LogisticRegression()),
            "not linear",
        ),
        (pipeline(FILLED, ONE_HOT, SVC()), "SVC"),
    ],
)
def test_a_step_that_does_not_compile_is_named(model: Any, message: str) -> None:
    fitted(model, FRAME.assign(income=FRAME["income"].abs()), LABEL)
    with pytest.warns(GlobeCEWarning, match=message):
        found = as_model(model, mixed_space(FRAME), rows=None)
    assert not found.exact


def test_a_compiled_model_that_disagrees_is_not_used() -> None:
    """Promise 13: an estimator that says one thing in its weights and another in predict."""

    class Liar(LogisticRegression):
        def predict(self, X: Any) -> Any:
            return 1 - super().predict(X)

    space = matrix_space(X)
    with pytest.warns(GlobeCEWarning, match=r"other outcomes"):
        found = as_model(fitted(Liar()), space, rows=space.encode(X))
    assert not found.exact


def test_frames_with_extra_columns_are_refused() -> None:
    model = fitted(LogisticRegression(), X[:, :5])
    with pytest.warns(GlobeCEWarning, match="takes 5 inputs and its steps give 6"):
        as_model(model, matrix_space(X))


@pytest.mark.parametrize("pair", [(1, 2, 3), ("a", 0), (np.ones((2, 2)), 0.0), (np.array([np.nan]), 0.0)])
def test_a_pair_given_rubbish_says_so(pair: tuple) -> None:
    with pytest.raises(ValueError, match=r"coef|pair"):
        as_model(pair, matrix_space(X))


def test_exact_and_searched_agree() -> None:
    model = fitted(make_pipeline(StandardScaler(), LogisticRegression()))
    space = matrix_space(X)
    exact = compiled(model, space, X)
    searched = as_model(model, space, compile=False)
    D = np.array([[0.5, 0, 0, 0, 0, 0], [0.3, -1.0, 0.4, 0, 0.1, 0]])
    affected = X[~searched.favourable(X)][:80]
    limit = np.full((2, len(affected)), 6.0)
    np.testing.assert_allclose(exact.first_flip(affected, D, limit), searched.first_flip(affected, D, limit), rtol=2e-6)
