"""Steps and models that look like ones we know and are not, or that nobody can know: all of them deterministic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier


def to_pandas(X: Any) -> Any:
    """Any frame as a pandas frame; a matrix stays one."""
    return X if isinstance(X, (pd.DataFrame, np.ndarray)) else X.to_pandas()


def as_matrix(X: Any) -> NDArray[np.float64]:
    """Any rows of numbers as doubles."""
    return np.asarray(to_pandas(X), dtype=np.float64)


# -- functions for FunctionTransformer: of one column, and of several together ----------------------------------------


def shifted_log(A: Any) -> Any:
    return np.log1p(np.abs(as_matrix(A)))


def waves(A: Any) -> Any:
    return np.sin(3.0 * as_matrix(A))


def squares(A: Any) -> Any:
    return as_matrix(A) ** 2


def rounded(A: Any) -> Any:
    return np.round(as_matrix(A), 1)


def ratios(A: Any) -> Any:
    a = as_matrix(A)
    return a / (1.0 + np.abs(a[:, ::-1]))


def products(A: Any) -> Any:
    a = as_matrix(A)
    return np.column_stack([a, a[:, [0]] * a])


def largest(A: Any) -> Any:
    return as_matrix(A).max(axis=1, keepdims=True)


def sums(A: Any) -> Any:
    return as_matrix(A).sum(axis=1, keepdims=True)


def ranks(A: Any) -> Any:
    return as_matrix(A).argsort(axis=1).argsort(axis=1).astype(float)


def crossed(A: Any) -> Any:
    """Whether every column has the category that comes first in the alphabet: a cross of all of them."""
    text = pd.DataFrame(A).astype(str)
    return (text <= "c").all(axis=1).to_numpy(dtype=float)[:, None]


def lengths(A: Any) -> Any:
    return pd.DataFrame(A).astype(str).map(len).to_numpy(dtype=float)


ONE = (shifted_log, waves, squares, rounded)
SEVERAL = (ratios, products, largest, sums, ranks)
OF_TEXT = (crossed, lengths)


# -- subclasses that override one method, and a namesake --------------------------------------------------------------


class Stubborn(LogisticRegression):
    """Predicts by a rule of its own; coefficients and probabilities say otherwise."""

    def predict(self, X: Any) -> Any:
        probability = self.predict_proba(X)[:, 1]
        return self.classes_[((probability > 0.35) & (probability < 0.9)).astype(int)]


class Bent(LogisticRegression):
    """Bends the decision function that everything else comes from."""

    def decision_function(self, X: Any) -> Any:
        score = super().decision_function(X)
        return score - 0.5 * np.sin(4.0 * score)

    def predict(self, X: Any) -> Any:
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class Cautious(RandomForestClassifier):
    """Asks for three quarters of the votes."""

    def predict(self, X: Any) -> Any:
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.75).astype(int)]


class Contrary(DecisionTreeClassifier):
    """Says the opposite of its tree."""

    def predict(self, X: Any) -> Any:
        return self.classes_[1 - np.searchsorted(self.classes_, super().predict(X))]


class Folding(StandardScaler):
    """Scales, and folds at the mean."""

    def transform(self, X: Any, copy: Any = None) -> Any:
        return np.abs(super().transform(X))


class Tied(OneHotEncoder):
    """Encodes, and multiplies neighbouring columns."""

    def transform(self, X: Any) -> Any:
        made = super().transform(X)
        made = made.toarray() if hasattr(made, "toarray") else np.asarray(made, dtype=float)
        return made * (1.0 + made[:, [0]])


class Second(Pipeline):
    """A pipeline that wants more than its own estimator."""

    def predict(self, X: Any, **params: Any) -> Any:
        probability = self.predict_proba(X)[:, 1]
        return self.classes_[(probability > 0.6).astype(int)]


class Plus(TransformerMixin, BaseEstimator):
    """A transformer of the user's own: each column plus the square of the next."""

    def fit(self, X: Any, y: Any = None) -> Plus:
        a = as_matrix(X)
        self.mean_, self.scale_ = a.mean(axis=0), a.std(axis=0) + 1e-12
        self.n_features_in_ = a.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        a = (as_matrix(X) - self.mean_) / self.scale_
        return a + np.roll(a, 1, axis=1) ** 2


def namesake() -> type:
    """A class called LogisticRegression, with its attributes, which decides by a circle."""

    class LogisticRegression(ClassifierMixin, BaseEstimator):
        def fit(self, X: Any, y: Any) -> Any:
            a = as_matrix(X)
            self.classes_ = np.unique(y)
            self.mean_, self.scale_ = a.mean(axis=0), a.std(axis=0) + 1e-12
            self.coef_, self.intercept_ = np.ones((1, a.shape[1])), np.zeros(1)
            self.n_features_in_ = a.shape[1]
            self.radius_ = float(np.median(self._distance(X)))
            return self

        def _distance(self, X: Any) -> Any:
            return (((as_matrix(X) - self.mean_) / self.scale_) ** 2).sum(axis=1)

        def predict(self, X: Any) -> Any:
            return self.classes_[(self._distance(X) > self.radius_).astype(int)]

    return LogisticRegression


class OnPandas:
    """A model behind a conversion, as users write it where a library does not take their frames."""

    def __init__(self, model: Any) -> None:
        self.model = model
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_

    def predict(self, X: Any) -> Any:
        return self.model.predict(to_pandas(X))

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(to_pandas(X))


class Asking:
    """A plain function of rows: its model's predictions."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, X: Any) -> Any:
        return self.model.predict(to_pandas(X))


class Rule:
    """A function of the named columns of any frame, or of all columns of a matrix: standardised, then one formula."""

    def __init__(self, kind: str, names: list[str], X: Any, weights: NDArray[np.float64]) -> None:
        self.kind, self.names, self.weights = kind, names, weights
        a = self._numbers(X)
        self.mean, self.scale, self.cut = np.nanmean(a, axis=0), np.nanstd(a, axis=0) + 1e-12, 0.0
        self.cut = float(np.median(self._points(X)))

    def _numbers(self, X: Any) -> NDArray[np.float64]:
        return as_matrix(X if isinstance(X, np.ndarray) else to_pandas(X)[self.names])

    def _points(self, X: Any) -> NDArray[np.float64]:
        z = np.nan_to_num((self._numbers(X) - self.mean) / self.scale)
        if self.kind == "plane":
            return (z * self.weights).sum(axis=1)
        if self.kind == "circle":
            return (z * z).sum(axis=1)
        if self.kind == "waves":
            return np.sin(z * self.weights).sum(axis=1)
        return (z * self.weights).max(axis=1)

    def __call__(self, X: Any) -> NDArray[np.int64]:
        return (self._points(X) > self.cut).astype(np.int64)
