"""Tree ensembles behind pipelines over raw columns pass the public contract suite."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

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
