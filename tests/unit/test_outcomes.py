"""Answers that are no outcome, or never the favourable one, are an error: not "nobody is affected"."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

from globece import as_model, explain
from globece.errors import GlobeCEError, InvalidParameterError, ModelError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)


@pytest.mark.parametrize(
    "model",
    [
        MultiOutputClassifier(LogisticRegression()),
        RandomForestClassifier(3),
        KNeighborsClassifier(),
        OneVsRestClassifier(LogisticRegression()),
        MLPClassifier((3,), solver="lbfgs", max_iter=20),
    ],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.filterwarnings("ignore:lbfgs failed")
def test_several_outputs(model: Any) -> None:
    with pytest.raises(GlobeCEError, match=r"2 outcomes for each row \(several outputs or labels\)"):
        explain(model.fit(X, Y), X, favourable=1, rng=0)


def test_several_numbers() -> None:
    with pytest.raises(ModelError, match=r"returned 2 numbers for each row, and favourable='above' needs one"):
        explain(LinearRegression().fit(X, Y), X, threshold=0.5, rng=0)


@pytest.mark.parametrize(
    ("answer", "favourable", "message"),
    [
        (["yes", "no"], 1, "returned text such as 'yes', and favourable is 1"),
        (["1", "0"], 1, "returned text such as '1'"),
        ([1, 0], "1", "returned 1, which is no text, and favourable is the text '1'"),
        ([True, False], "True", "no text"),
        ([b"1", b"0"], "1", "no text"),
        ([1, 0], "above", "a side needs a threshold="),
        ([None, 1], 1, "missing value"),
        ([pd.NA, 1], 1, "missing value"),
        ([[1], [0, 1]], 1, "different lengths"),
        ([{"a": 1}, {"a": 2}], 1, "one outcome per row"),
    ],
)
def test_answers_that_never_are_favourable(answer: list[Any], favourable: Any, message: str) -> None:
    def model(rows: Any) -> Any:
        values = [answer[i % 2] for i in range(len(rows))]
        return values if isinstance(answer[0], list) else np.array(values, dtype=np.array(answer).dtype)

    with pytest.raises(ModelError, match=message):
        explain(model, X, favourable=favourable, rng=0)


@pytest.mark.parametrize("answer", [np.array([1.0, 0.0]), np.array([True, False]), np.array([1, 0], dtype=np.uint8)])
def test_answers_that_are(answer: Any) -> None:
    found = explain(lambda rows: answer[(rows[:, 0] < 0).astype(int)], X, favourable=1, rng=0)
    assert found.n_affected == int((X[:, 0] < 0).sum())


def test_a_class_that_the_model_does_not_have() -> None:
    class Odd(LogisticRegression):
        def predict(self, X: Any) -> Any:
            return np.where(super().predict(X) == 1, "1", "0")

    with pytest.raises(ModelError, match=r"returned '[01]', which is not one of its classes \[0, 1\]"):
        explain(Odd().fit(X, Y[:, 0]), X, rng=0)


@pytest.mark.parametrize("favourable", [np.array([0, 1]), [1], {1}, {"a": 1}, float("nan"), pd.NA, len], ids=repr)
@pytest.mark.parametrize("model", [LogisticRegression().fit(X, Y[:, 0]), lambda rows: (rows[:, 0] > 0).astype(int)])
def test_a_favourable_that_is_no_outcome(model: Any, favourable: Any) -> None:
    with pytest.raises(InvalidParameterError, match="favourable must be one outcome"):
        explain(model, X, favourable=favourable, rng=0)


def test_a_frame_is_no_space() -> None:
    model = LogisticRegression().fit(X, Y[:, 0])
    for space in (pd.DataFrame(X), X, None):
        with pytest.raises(InvalidParameterError, match="space must be a FeatureSpace"):
            as_model(model, space)  # type: ignore[arg-type]
