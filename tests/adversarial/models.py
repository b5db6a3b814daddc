"""Random models to stand at the end of a pipeline: all that the installed libraries offer, kept small."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import catboost
import lightgbm
import numpy as np
import xgboost
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    TweedieRegressor,
)
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVC, LinearSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import all_estimators

from tests.adversarial import oddities

# What takes too long on a small machine, needs another kind of target, or is drawn elsewhere.
LEFT_OUT = {
    "GaussianProcessRegressor",
    "RANSACRegressor",
    "TheilSenRegressor",
    "LabelPropagation",
    "IsotonicRegression",
}
LEFT_OUT |= {"DictionaryLearning", "SparsePCA", "SequentialFeatureSelector"}  # may take minutes to train
LEFT_OUT |= {"MiniBatchDictionaryLearning", "MiniBatchSparsePCA"}  # and fail for a few rows
LEFT_OUT |= {"MultiOutputClassifier", "MultiOutputRegressor", "ClassifierChain", "RegressorChain", "CCA"}
LEFT_OUT |= {"MultiTaskElasticNet", "MultiTaskElasticNetCV", "MultiTaskLasso", "MultiTaskLassoCV", "PLSCanonical"}


@cache
def estimators(kind: str) -> dict[str, Any]:
    """All of scikit-learn's estimators of a kind, by name."""
    return {name: made for name, made in all_estimators(type_filter=kind) if name not in LEFT_OUT}


def small(made: Any, **given: Any) -> Any:
    """An estimator of this class that trains quickly and always the same way."""
    known = inspect.signature(made.__init__).parameters
    limits: dict[str, Any] = {"n_estimators": 8, "max_iter": 60, "cv": 2, "random_state": 0, "n_init": 1}
    limits |= {"n_jobs": None, "n_components": 2}
    limits |= {"estimator": LogisticRegression(), "base_estimator": LogisticRegression()}
    limits |= {"estimators": [("a", LogisticRegression()), ("b", DecisionTreeClassifier(max_depth=2))]}
    needed = {n for n, p in known.items() if p.default is inspect.Parameter.empty}
    optional = {"n_estimators", "max_iter", "cv", "random_state", "n_init"}
    chosen = {k: v for k, v in limits.items() if k in known and (k in optional or k in needed)}
    return made(**(chosen | {k: v for k, v in given.items() if k in known}))


def linear(rng: np.random.Generator) -> Any:
    """A linear classifier."""
    loss = str(rng.choice(["hinge", "log_loss", "modified_huber", "perceptron"]))
    choices = [
        LogisticRegression(C=float(rng.choice([0.1, 1.0, 100.0]))),
        LinearSVC(max_iter=200),
        SGDClassifier(loss=loss, random_state=0, max_iter=50),
        RidgeClassifier(),
        SVC(kernel="linear", max_iter=2000),
    ]
    return choices[int(rng.choice(len(choices), p=[0.5, 0.15, 0.15, 0.1, 0.1]))]


def trees(rng: np.random.Generator) -> Any:
    """A tree, or an ensemble of scikit-learn's trees."""
    depth, n = int(rng.integers(1, 6)), int(rng.integers(2, 12))
    choices = [
        DecisionTreeClassifier(max_depth=depth, random_state=0),
        RandomForestClassifier(n, max_depth=depth, random_state=0),
        ExtraTreesClassifier(n, max_depth=depth, random_state=0),
        GradientBoostingClassifier(n_estimators=n, max_depth=depth, random_state=0),
        HistGradientBoostingClassifier(max_iter=n, max_depth=depth, min_samples_leaf=5, random_state=0),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=n, random_state=0),
        BaggingClassifier(DecisionTreeClassifier(max_depth=depth), n_estimators=n, random_state=0),
    ]
    return choices[int(rng.choice(len(choices), p=[0.2, 0.2, 0.1, 0.2, 0.2, 0.05, 0.05]))]


def boosters(rng: np.random.Generator) -> Any:
    """A model of a boosting library."""
    depth, n = int(rng.integers(1, 5)), int(rng.integers(2, 15))
    which = int(rng.integers(6))
    if which < 2:
        booster = str(rng.choice(["gbtree", "gbtree", "dart", "gblinear"]))
        shape = {} if booster == "gblinear" else {"max_depth": depth}
        return xgboost.XGBClassifier(n_estimators=n, booster=booster, n_jobs=1, random_state=0, **shape)
    if which == 2:
        return xgboost.XGBRFClassifier(n_estimators=n, max_depth=depth, n_jobs=1, random_state=0)
    if which < 5:
        kind = str(rng.choice(["gbdt", "gbdt", "dart", "rf"]))
        more: dict[str, Any] = {"bagging_freq": 1, "bagging_fraction": 0.7} if kind == "rf" else {}
        return lightgbm.LGBMClassifier(
            n_estimators=n, max_depth=depth, boosting_type=kind, min_child_samples=5, n_jobs=1, verbose=-1, **more
        )
    return catboost.CatBoostClassifier(
        iterations=n, depth=depth, verbose=0, allow_writing_files=False, thread_count=1, random_seed=0
    )


def perceptrons(rng: np.random.Generator) -> Any:
    """A multi-layer perceptron."""
    activation = str(rng.choice(["relu", "relu", "identity", "tanh", "logistic"]))
    layers = [(5,), (4, 3), (8,)][int(rng.integers(3))]
    return MLPClassifier(layers, activation=activation, max_iter=30, random_state=0)


def wrapped(rng: np.random.Generator) -> Any:
    """A classifier around another one."""
    inner = [linear, trees][int(rng.integers(2))](rng)
    probable = LogisticRegression() if rng.random() < 0.5 else DecisionTreeClassifier(max_depth=3, random_state=0)
    pair = [("a", LogisticRegression()), ("b", DecisionTreeClassifier(max_depth=2, random_state=0))]
    choices = [
        CalibratedClassifierCV(inner, cv=2, method=str(rng.choice(["sigmoid", "isotonic"]))),
        FixedThresholdClassifier(probable, threshold=float(rng.choice([0.2, 0.5, 0.7]))),
        TunedThresholdClassifierCV(probable, cv=2, random_state=0),
        GridSearchCV(probable, {}, cv=2),
        VotingClassifier(pair, voting=str(rng.choice(["hard", "soft"]))),
        StackingClassifier(pair, cv=2),
        OneVsRestClassifier(probable),
    ]
    return choices[int(rng.integers(len(choices)))]


def odd(rng: np.random.Generator) -> Any:
    """A classifier that is not what it looks like."""
    choices: list[Callable[[], Any]] = [
        lambda: oddities.Stubborn(),
        lambda: oddities.Bent(),
        lambda: oddities.Cautious(n_estimators=5, max_depth=3, random_state=0),
        lambda: oddities.Contrary(max_depth=3, random_state=0),
        lambda: oddities.namesake()(),
    ]
    return choices[int(rng.integers(len(choices)))]()


def any_classifier(rng: np.random.Generator) -> Any:
    """Any of scikit-learn's classifiers."""
    known = estimators("classifier")
    return small(known[str(rng.choice(list(known)))])


def regressors(rng: np.random.Generator) -> Any:
    """A regressor, to be asked with a threshold."""
    n = int(rng.integers(2, 10))
    choices: list[Callable[[], Any]] = [
        lambda: LinearRegression(),
        lambda: Ridge(),
        lambda: PoissonRegressor(),
        lambda: GammaRegressor(),
        lambda: TweedieRegressor(power=float(rng.choice([0.0, 1.0, 1.5])), link=str(rng.choice(["auto", "log"]))),
        lambda: TransformedTargetRegressor(LinearRegression(), func=np.log1p, inverse_func=np.expm1),
        lambda: DecisionTreeRegressor(max_depth=3, random_state=0),
        lambda: xgboost.XGBRegressor(n_estimators=n, max_depth=3, n_jobs=1),
        lambda: lightgbm.LGBMRegressor(n_estimators=n, max_depth=3, min_child_samples=5, n_jobs=1, verbose=-1),
        lambda: catboost.CatBoostRegressor(iterations=n, depth=3, verbose=0, allow_writing_files=False, thread_count=1),
        lambda: MLPRegressor((5,), max_iter=30, random_state=0),
    ]
    if rng.random() < 0.5:
        return choices[int(rng.integers(len(choices)))]()
    known = estimators("regressor")
    return small(known[str(rng.choice(list(known)))])


def detectors(rng: np.random.Generator) -> Any:
    """An outlier detector: 1 for what is usual."""
    return IsolationForest(n_estimators=8, random_state=0) if rng.random() < 0.6 else OneClassSVM()


CLASSIFIERS = (linear, trees, boosters, perceptrons, wrapped, odd, any_classifier)
SHARES = (0.22, 0.2, 0.16, 0.1, 0.1, 0.06, 0.16)
