"""Weight-of-evidence scorecards (`optbinning`) pass the public contract suite, where that is installed.

It is not part of the test environment: its solvers ask for another protobuf than ONNX does.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import globece as gce
from globece.testing.models import ModelCase, ModelContract
from tests.contract.test_models import FRAME, LABEL, NUMBERS, TEXT, compiled, fitted
from tests.problems import mixed_space

optbinning = pytest.importorskip("optbinning")

NAMES = [*NUMBERS, *TEXT]
ROWS = FRAME[NAMES]


def bins() -> Any:
    return optbinning.BinningProcess(NAMES, categorical_variables=TEXT)


MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "pipeline": (lambda: make_pipeline(bins(), LogisticRegression()), {}),
    "pipeline, other class": (lambda: make_pipeline(bins(), LogisticRegression()), {"favourable": 0, "threshold": 0.6}),
    "scorecard": (lambda: optbinning.Scorecard(bins(), LogisticRegression()), {"favourable": 1}),
}


@pytest.mark.parametrize("which", MODELS, scope="class")
class TestScorecards(ModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, which: str) -> ModelCase:
        make, wanted = MODELS[which]
        space = mixed_space(ROWS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library's own
            found = compiled(fitted(make(), ROWS, LABEL), space, ROWS, **wanted)
            rows = space.encode(ROWS)
            np.testing.assert_array_equal(found.core.favourable(rows), found.original.favourable(rows))
        return ModelCase(found.core, rows[:100], 5, 3)


def test_an_explanation_of_a_scorecard_is_exact_and_bounded() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ex = gce.explain(
            fitted(optbinning.Scorecard(bins(), LogisticRegression()), ROWS, LABEL), ROWS, favourable=1, rng=0
        )
        assert ex.provenance.method == "exact"
        assert ex.lower_bound().gap >= 1.0 - 1e-9
