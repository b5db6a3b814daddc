"""Tree ensembles behind pipelines over raw columns pass the public contract suite."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from imblearn.ensemble import BalancedRandomForestClassifier
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as make_resampled
from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from globece.testing.models import ModelCase, ModelContract
from tests.contract.test_models import FRAME, FREE, LABEL, NUMBERS, TEXT, compiled, fitted
from tests.problems import mixed_space

CODES = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)


def pipeline(numbers: Any, text: Any, final: Any) -> Any:
    return make_pipeline(make_column_transformer((numbers, NUMBERS), (text, TEXT)), final)


DENSE = OneHotEncoder(sparse_output=False)
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "forest": (pipeline("passthrough", DENSE, RandomForestClassifier(20, random_state=0)), {}),
    "extra trees": (pipeline(StandardScaler(), DENSE, ExtraTreesClassifier(15, random_state=0)), {}),
    "boosting": (
        pipeline(StandardScaler(), DENSE, HistGradientBoostingClassifier(max_iter=30)),
        {"favourable": 0},
    ),
    "ordinal codes": (pipeline("passthrough", CODES, HistGradientBoostingClassifier(max_iter=30)), {"threshold": 0.7}),
    "logarithm": (
        pipeline(FunctionTransformer(np.log1p), DENSE, HistGradientBoostingClassifier(max_iter=30)),
        {},
    ),
    "lightgbm": (
        pipeline("passthrough", DENSE, lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1)),
        {},
    ),
    "xgboost": (pipeline("passthrough", DENSE, xgboost.XGBClassifier(n_estimators=30, n_jobs=1)), {}),
    "xgboost dart": (
        pipeline(StandardScaler(), CODES, xgboost.XGBClassifier(n_estimators=10, booster="dart", n_jobs=1)),
        {},
    ),
    "bagging": (
        pipeline("passthrough", DENSE, BaggingClassifier(DecisionTreeClassifier(max_depth=5), 15, max_features=0.6)),
        {"threshold": 0.4},
    ),
    "bagging, a number": (
        pipeline(StandardScaler(), CODES, BaggingRegressor(DecisionTreeRegressor(max_depth=4), 8, random_state=0)),
        {"threshold": 0.5},
    ),
    "balanced forest": (pipeline("passthrough", DENSE, BalancedRandomForestClassifier(10, random_state=0)), {}),
    "resampled": (
        make_resampled(
            make_column_transformer((SimpleImputer(), NUMBERS), (DENSE, TEXT)),
            RandomOverSampler(random_state=0),
            HistGradientBoostingClassifier(max_iter=20),
        ),
        {},
    ),
    "one tree, a number": (pipeline("passthrough", DENSE, DecisionTreeRegressor(max_depth=6)), {"threshold": 0.5}),
    "friedman": (
        pipeline(FunctionTransformer(np.cbrt), CODES, GradientBoostingClassifier(n_estimators=20)),
        {},
    ),
}


@pytest.mark.parametrize("constraints", [{}, FREE], ids=["bound", "free"], scope="class")
@pytest.mark.parametrize("which", MODELS, scope="class")
class TestTreePipelines(ModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, which: str, constraints: dict) -> ModelCase:
        model, wanted = MODELS[which]
        frame = FRAME.assign(income=FRAME["income"].abs())
        if which == "friedman":
            frame = frame.assign(income=frame["income"].fillna(1.0))
        # without a range a number would fall below 0, where the logarithm itself ends
        space = mixed_space(frame, **({} if which == "logarithm" else constraints))
        found = compiled(fitted(model, frame, LABEL), space, frame, **wanted)
        rows = space.encode(frame)
        np.testing.assert_array_equal(found.core.favourable(rows), found.original.favourable(rows))
        return ModelCase(found.core, rows[:100], 5, 3)


def native(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(
        **{c: frame[c].astype("category") for c in TEXT},
    )


@pytest.mark.parametrize(
    "model",
    [
        lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1, min_child_samples=5),
        xgboost.XGBClassifier(n_estimators=20, enable_categorical=True, n_jobs=1),
        HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype"),
    ],
    ids=["lightgbm", "xgboost", "histogram"],
    scope="class",
)
class TestNativeCategories(ModelContract):
    """Categories that the library splits by itself."""

    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, model: Any) -> ModelCase:
        from globece import FeatureSpace

        frame = native(FRAME)
        space = FeatureSpace.from_frame(frame)
        found = compiled(fitted(model, frame, LABEL), space, frame)
        rows = space.encode(frame)
        np.testing.assert_array_equal(found.core.favourable(rows), found.original.favourable(rows))
        return ModelCase(found.core, rows[:100], 5, 3)


ADDITIVE: dict[str, tuple[Any, dict[str, Any]]] = {
    "explainable boosting": (ExplainableBoostingClassifier(interactions=3, outer_bags=2, max_rounds=60, n_jobs=1), {}),
    "explainable boosting, other class": (
        ExplainableBoostingClassifier(interactions=0, outer_bags=2, max_rounds=60, n_jobs=1),
        {"favourable": 0, "threshold": 0.6},
    ),
    "explainable boosting, a number": (
        ExplainableBoostingRegressor(interactions=1, outer_bags=2, max_rounds=60, n_jobs=1),
        {"favourable": "above", "threshold": 0.5},
    ),
}


@pytest.mark.parametrize("which", ADDITIVE, scope="class")
class TestAdditive(ModelContract):
    """Explainable boosting machines: tables of scores for features and pairs, with missing values."""

    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, which: str) -> ModelCase:
        model, wanted = ADDITIVE[which]
        space = mixed_space(FRAME)
        found = compiled(fitted(model, FRAME, LABEL), space, FRAME, **wanted)
        rows = space.encode(FRAME)
        np.testing.assert_array_equal(found.core.favourable(rows), found.original.favourable(rows))
        return ModelCase(found.core, rows[:100], 5, 3)


def test_several_classes_of_an_explainable_boosting_machine() -> None:
    labels = np.digitize(FRAME["income"].fillna(0.0), FRAME["income"].quantile([0.3, 0.7]))
    model = ExplainableBoostingClassifier(interactions=0, outer_bags=2, max_rounds=60, n_jobs=1)
    space = mixed_space(FRAME)
    found = compiled(fitted(model, FRAME, labels), space, FRAME, favourable=2)
    rows = space.encode(FRAME)
    np.testing.assert_array_equal(found.core.favourable(rows), model.predict(FRAME) == 2)
