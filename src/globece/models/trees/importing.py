"""Which tree ensembles can be read, and their readers.

An estimator is recognised by its exact class; no library is imported for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from globece.errors import ModelError
from globece.models.known import kind_of, library_class
from globece.models.trees.additive import read_additive, text_categories
from globece.models.trees.boosters import decoded, read_lightgbm, read_xgboost, xgboost_document
from globece.models.trees.catboost_trees import read_catboost
from globece.models.trees.reading import Reading, present, whole
from globece.models.trees.sklearn_trees import (
    read_bagging,
    read_forest,
    read_gradient_boosting,
    read_hist_gradient_boosting,
)


def supports(estimator: Any) -> bool:
    """Whether :func:`read` knows this kind of estimator.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> supports(DecisionTreeClassifier()), supports(len)
    (True, False)
    """
    return reader_of(estimator) is not None


def read(estimator: Any, *, sparse: bool = False, categories: Mapping[int, Sequence[Any]] | None = None) -> Reading:
    """Read a fitted ensemble, or raise :class:`globece.errors.ModelError` with the reason.

    Parameters
    ----------
    estimator
        The ensemble.
    sparse
        Whether it gets a sparse matrix, in which some libraries read absent values as 0 and others as missing.
    categories
        Those of each categorical feature, by its index, for ensembles that keep only hashes of them.
    """
    reader = reader_of(estimator)
    if reader is None:
        raise ModelError(f"{type(estimator).__name__} is not a tree ensemble that can be read")
    if reader is read_catboost:
        return read_catboost(estimator, categories)
    return read_xgboost(estimator, sparse=True) if sparse and reader is read_xgboost else reader(estimator)


def hashes_categories(estimator: Any) -> bool:
    """Whether the estimator keeps only hashes of its categories."""
    return reader_of(estimator) is read_catboost


def native_categories(estimator: Any, categorical: Sequence[int]) -> dict[int, tuple[Any, ...]]:
    """Lists of categories, for features whose categories the estimator encodes by their index in a list.

    :meth:`globece.models.trees.ensemble.TreeEnsemble.from_model` takes these features as indices. Categorical features
    that are not listed here hold whole numbers already.

    Parameters
    ----------
    estimator
        A fitted ensemble.
    categorical
        The features that are categorical columns in the estimator's frames, ascending.
    """
    reader = reader_of(estimator)
    if reader is read_lightgbm:
        lists = getattr(estimator, "booster_", estimator).pandas_categorical or []
        return {j: tuple(values) for j, values in zip(categorical, lists, strict=False)}
    if reader is read_hist_gradient_boosting and estimator._preprocessor is not None:
        features = np.flatnonzero(estimator.is_categorical_)
        lists = estimator._preprocessor.named_transformers_["encoder"].categories_
        return {int(j): present(values) for j, values in zip(features, lists, strict=True) if not whole(values)}
    if reader is read_additive:
        return {j: values for j, values in text_categories(estimator).items() if j in set(categorical)}
    if reader is read_xgboost:
        known = xgboost_document(estimator)["learner"]["gradient_booster"]
        encodings = known.get("gbtree", known)["model"].get("cats", {}).get("enc", [])
        return {j: decoded(enc) for j, enc in enumerate(encodings) if len(enc["values"])}
    return {}


def reader_of(estimator: Any) -> Callable[[Any], Reading] | None:
    """The reader for this kind of estimator, if there is one."""
    known = library_class(estimator)
    if known is None or not kind_of(estimator):
        return None
    return READERS.get((known.__module__.split(".")[0], known.__name__))


READERS: dict[tuple[str, str], Callable[[Any], Reading]] = {
    **{
        ("xgboost", name): read_xgboost
        for name in ("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor", "XGBRanker", "Booster")
    },
    **{("lightgbm", name): read_lightgbm for name in ("LGBMClassifier", "LGBMRegressor", "LGBMRanker", "Booster")},
    **{("globece", f"LightGBM{task}"): read_lightgbm for task in ("Classifier", "Regressor")},  # loaded from files
    ("imblearn", "BalancedRandomForestClassifier"): read_forest,
    **{("interpret", f"ExplainableBoosting{task}"): read_additive for task in ("Classifier", "Regressor")},
    **{("catboost", f"CatBoost{task}"): read_catboost for task in ("Classifier", "Regressor", "Ranker")},
    **{
        ("sklearn", f"{kind}{task}"): reader
        for kind, reader in (
            *((name, read_forest) for name in ("DecisionTree", "ExtraTree", "RandomForest", "ExtraTrees")),
            ("Bagging", read_bagging),
            ("GradientBoosting", read_gradient_boosting),
            ("HistGradientBoosting", read_hist_gradient_boosting),
        )
        for task in ("Classifier", "Regressor")
    },
}
