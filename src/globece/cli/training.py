"""Train a model on the spot: one of a few scikit-learn pipelines over the raw columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from globece.errors import InvalidDataError, ModelError
from globece.space import FeatureSpace

KINDS = ("logistic", "forest", "boosting")
MOST_CLASSES = 20


@dataclass(frozen=True, slots=True)
class Trained:
    """A pipeline, and its accuracy on the rows that it was not trained on."""

    model: Any
    n_train: int
    n_test: int
    accuracy: float
    base_rate: float  # of always saying the most frequent class

    def __str__(self) -> str:
        """As one line for the user."""
        return (
            f"trained on {self.n_train:,} rows; accuracy {self.accuracy:.1%} on the other {self.n_test:,} "
            f"(always saying the most frequent outcome: {self.base_rate:.1%})"
        )


def pipeline(kind: str, space: FeatureSpace, seed: int, *, missing: bool = False) -> Any:
    """A pipeline over the raw columns, not fitted yet.

    Parameters
    ----------
    kind
        One of :data:`KINDS`.
    space
        What the columns are: categorical and ordinal ones are one-hot encoded, unless they are already, and others
        scaled if the kind needs it.
    seed
        For the classifier.
    missing
        Whether numbers may be missing; they become the median.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    classifier = {
        "logistic": lambda: LogisticRegression(max_iter=2000),
        "forest": lambda: RandomForestClassifier(n_estimators=100, min_samples_leaf=5, random_state=seed),
        "boosting": lambda: HistGradientBoostingClassifier(random_state=seed),
    }[kind]()
    categorical = [f.name for f in space.features if f.kind != "continuous" and len(f.sources) == 1]
    encoded = [name for f in space.features if len(f.sources) > 1 for name in f.sources]
    continuous = [f.name for f in space.features if f.kind == "continuous"]
    scale: Any = StandardScaler() if kind == "logistic" else "passthrough"
    number = make_pipeline(SimpleImputer(strategy="median"), scale) if missing else scale
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    parts = [(encode, categorical), (number, continuous), *([("passthrough", encoded)] if encoded else [])]
    return make_pipeline(make_column_transformer(*parts), classifier)


def train(kind: str, X: Any, y: NDArray[Any], space: FeatureSpace, seed: int) -> Trained:
    """Train on 80 % of the rows, chosen by ``seed``, and measure on the others."""
    from sklearn.model_selection import train_test_split

    missing = bool(np.isnan(space.encode(X)).any())
    counts = np.unique(y, return_counts=True)[1]
    try:
        part, rest = train_test_split(
            np.arange(len(y)), test_size=0.2, random_state=seed, stratify=y if counts.min() > 1 else None
        )
        model = pipeline(kind, space, seed, missing=missing).fit(_rows(X, part), y[part])
        accuracy = float(np.mean(model.predict(_rows(X, rest)) == y[rest]))
    except (TypeError, ValueError) as error:
        raise ModelError(f"training {kind} failed: {error}") from error
    frequent = np.unique(y[rest], return_counts=True)[1].max()
    return Trained(model, len(part), len(rest), accuracy, float(frequent / len(rest)))


def outcomes(frame: Any, column: str) -> NDArray[Any]:
    """The outcome column as an array of labels; what cannot be learnt from is an error."""
    series = nw.from_native(frame, eager_only=True)[column]
    missing = int(series.is_null().sum())
    if missing:
        raise InvalidDataError(f"outcome column {column!r} misses {missing:,} value(s); drop those rows first")
    y = np.array(series.to_list())
    classes = np.unique(y)
    if len(classes) < 2:
        raise InvalidDataError(f"outcome column {column!r} is constant: every row has {classes[0]!s}")
    if len(classes) > MOST_CLASSES:
        raise InvalidDataError(
            f"outcome column {column!r} has {len(classes):,} different values; a model is trained on at most "
            f"{MOST_CLASSES} outcomes"
        )
    return y


def _rows(X: Any, which: NDArray[np.int64]) -> Any:
    return nw.from_native(X, eager_only=True)[which.tolist()].to_native()
