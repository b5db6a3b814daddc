"""skrub's table vectorizer before linear models and trees passes the public contract suite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from skrub import TableVectorizer

from globece.testing.models import ModelCase, ModelContract
from tests.contract.test_models import FRAME, LABEL, compiled, fitted
from tests.problems import mixed_space

MODELS: dict[str, Any] = {
    "boosting": make_pipeline(TableVectorizer(), HistGradientBoostingClassifier(max_iter=20)),
    "forest": make_pipeline(TableVectorizer(), RandomForestClassifier(10, random_state=0)),
    "linear": make_pipeline(TableVectorizer(), LogisticRegression(max_iter=500)),
}


@pytest.mark.parametrize("which", MODELS, scope="class")
class TestTableVectorizer(ModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, which: str) -> ModelCase:
        frame = FRAME.assign(income=FRAME["income"].fillna(1.0)) if which == "linear" else FRAME
        space = mixed_space(frame)
        found = compiled(fitted(MODELS[which], frame, LABEL), space, frame)
        rows = space.encode(frame)
        np.testing.assert_array_equal(found.core.favourable(rows), found.original.favourable(rows))
        return ModelCase(found.core, rows[:100], 5, 3, precision=1e-6)
