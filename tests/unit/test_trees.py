"""Tree ensembles: every kind of estimator is followed exactly, judged by its own predictions on its own rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import lightgbm
import numba
import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier
from threadpoolctl import threadpool_limits

from globece import rays
from globece.errors import InvalidParameterError, ModelError
from globece.models.base import Model
from globece.models.decision import decision
from globece.models.inputs import Input, Lookup, Number, Steps, evaluate, identity
from globece.models.trees.ensemble import TreeEnsemble, native_categories, supports
from globece.models.trees.layout import MOST_STEPS, depths, read_only
from globece.models.trees.plain import every_event, plain_favourable, plain_first_flip, plain_sums
from globece.models.trees.rows import leads
from globece.space import FeatureSpace

FloatArray = NDArray[np.float64]

GRID = 2000
N_ROWS, N_DIRECTIONS = 4, 8


# -- data ----------------------------------------------------------------------------------------------------------


def encoded_rows(n: int = 400, *, missing: bool = False, seed: int = 0) -> FloatArray:
    """Two continuous columns, a whole-numbered one, one that may be missing, a block of four and a block of two."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, 10))
    X[:, 0] = rng.normal(50, 20, n)
    X[:, 1] = rng.gamma(2.0, 1e-3, n)
    X[:, 2] = rng.integers(0, 12, n)
    X[:, 3] = np.where(rng.random(n) < 0.3, np.nan if missing else 0.0, rng.normal(size=n))
    X[np.arange(n), 4 + rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])] = 1.0
    X[np.arange(n), 8 + rng.integers(0, 2, n)] = 1.0
    return X


COLUMNS = ["a", "b", "whole", "gaps", "g = p", "g = q", "g = r", "g = s", "h = no", "h = yes"]
GROUPS = {"g": COLUMNS[4:8], "h": COLUMNS[8:]}


def score(X: FloatArray) -> FloatArray:
    gaps = np.nan_to_num(X[:, 3], nan=0.7)
    return X[:, 0] / 20 + 800 * X[:, 1] - X[:, 2] / 3 + gaps + 1.5 * X[:, 5] - X[:, 6] + X[:, 9] * X[:, 2] / 6


def labels(X: FloatArray, n_classes: int = 2, seed: int = 1) -> NDArray[np.int64]:
    noisy = score(X) + np.random.default_rng(seed).normal(0, 0.7, len(X))
    return np.digitize(noisy, np.quantile(noisy, np.linspace(0, 1, n_classes + 1)[1:-1]))


def mixed_frame(n: int = 400, seed: int = 3, missing: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    size = pd.Categorical(rng.choice(["small", "medium", "large"], n), ["small", "medium", "large"], ordered=True)
    frame = pd.DataFrame(
        {
            "income": rng.normal(30, 8, n),
            "purpose": pd.Categorical(rng.choice(list("uvwxyz"), n, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1])),
            "loans": rng.integers(0, 9, n),
            "size": size,
            "town": pd.Categorical(rng.choice(["east", "north", "west"], n)),
        }
    )
    if missing:  # a missing category is a category; a missing number or position stays missing
        for column in ("income", "purpose", "size"):
            frame.loc[rng.random(n) < 0.15, column] = None
    return frame


def frame_labels(X: pd.DataFrame, seed: int = 4) -> NDArray[np.int64]:
    noise = np.random.default_rng(seed).normal(0, 0.4, len(X))
    steps = X["size"].cat.codes.to_numpy() * 0.5
    return ((X["income"] / 10 + X["purpose"].isin(["v", "x", "y"]) - X["loans"] / 4 + steps + noise) > 3).to_numpy() * 1


# -- what is checked of every kind ---------------------------------------------------------------------------------


@dataclass
class Case:
    """A fitted estimator, rows of its own, and how it is to be read."""

    estimator: Any
    X: Any
    space: FeatureSpace
    inputs: tuple[Input, ...]
    favourable: Any = 1
    threshold: float | None = None
    ask: Callable[[Any], Any] | None = None
    model: TreeEnsemble = field(init=False)

    def __post_init__(self) -> None:
        self.model = TreeEnsemble.from_model(
            self.estimator, self.space, self.inputs, favourable=self.favourable, threshold=self.threshold
        )
        self.Z = self.space.encode(self.X)

    def says(self, Z: FloatArray) -> NDArray[np.bool_]:
        """What the estimator itself says about encoded rows."""
        asked = decision(self.ask or self.estimator, favourable=self.favourable, threshold=self.threshold)
        return asked(self.space.decode(Z), len(Z))


def matrix_case(
    estimator: Any, n_classes: int = 2, missing: bool = False, fit: dict[str, Any] | None = None, **how: Any
) -> Case:
    X = encoded_rows(missing=missing)
    y = score(X) if n_classes == 0 else labels(X, n_classes)
    space = FeatureSpace.from_matrix(X, columns=COLUMNS, groups=GROUPS, whole=["whole"])
    return Case(estimator.fit(X, y, **(fit or {})), X, space, identity(space.width), **how)


def random_directions(space: FeatureSpace, n: int, rng: np.random.Generator) -> FloatArray:
    """Directions over a few features each, in proportion to their ranges."""
    D = np.zeros((n, space.width))
    for delta in D:
        movable = [f for f in space.features if f.can_move]
        for i in rng.choice(len(movable), min(len(movable), 2 + int(rng.integers(3))), replace=False):
            f = movable[i]
            if f.is_block:
                delta[f.columns] = rng.random(f.width)
            else:
                entry = rng.normal() * (f.observed[1] - f.observed[0]) / 3
                delta[f.start] = abs(entry) * f.sense if f.sense else entry
    return D


def check_predictions(case: Case) -> None:
    rng = np.random.default_rng(5)
    rows = [case.Z]
    for delta in random_directions(case.space, 4, rng):
        rows.append(rays.positions(case.space, case.Z, delta, rng.random(len(case.Z)) * 2))
    Z = np.vstack(rows)
    says = case.says(Z)
    assert 0.02 < says.mean() < 0.98
    np.testing.assert_array_equal(case.model.favourable(Z), says)
    np.testing.assert_array_equal(case.model.margin(Z) >= 0, says)


def check_rays(case: Case, limit: float = 3.0) -> None:
    """The scalar reported flips the estimator, and no point of a grid, nor any event at all, flips it before."""
    rng = np.random.default_rng(16)
    space, flips = case.space, 0
    unfavourable = np.flatnonzero(~case.says(case.Z))
    for delta in random_directions(space, N_DIRECTIONS, rng):
        Z = case.Z[rng.choice(unfavourable, N_ROWS, replace=False)]
        k = case.model.first_flip(Z, delta[None], np.full((1, len(Z)), limit))[0]
        reached = np.isfinite(k)
        flips += int(reached.sum())
        assert (k[reached] <= limit).all()
        if reached.any():
            assert case.says(rays.positions(space, Z[reached], delta, k[reached])).all()
        grid = np.linspace(0, limit, GRID + 1)[1:]
        every = [np.union1d(grid, every_event(case.model.trees, space, z, delta, limit)) for z in Z]
        before = [
            np.append(e[e < stop], np.nextafter(stop, 0) if np.isfinite(stop) else limit)
            for e, stop in zip(every, k, strict=True)
        ]
        rows = np.repeat(Z, [len(b) for b in before], axis=0)
        assert not case.says(rays.positions(space, rows, delta, np.concatenate(before))).any()
    assert flips > 0


def check_twin(case: Case, limit: float = 2.0) -> None:
    rng = np.random.default_rng(7)
    Z = case.Z[rng.choice(len(case.Z), 6, replace=False)]
    model, space = case.model, case.space
    np.testing.assert_array_equal(plain_favourable(model.trees, model.rule, space, Z), case.model.favourable(Z))
    directions = random_directions(space, 3, rng)
    limits = rng.random((3, 6)) * limit
    found = model.first_flip(Z, directions, limits)
    np.testing.assert_array_equal(found, plain_first_flip(model.trees, model.rule, space, Z, directions, limits))


# -- the kinds -----------------------------------------------------------------------------------------------------


def xgb(kind: str = "Classifier", **params: Any) -> Any:
    settings = {"n_estimators": 25, "max_depth": 4, "learning_rate": 0.3, "n_jobs": 1, "random_state": 0, **params}
    return getattr(xgboost, f"XGB{kind}")(**settings)


def lgbm(kind: str = "Classifier", **params: Any) -> Any:
    settings = {"n_estimators": 20, "num_leaves": 12, "min_child_samples": 8, "n_jobs": 1, "verbose": -1, **params}
    return getattr(lightgbm, f"LGBM{kind}")(random_state=0, **settings)


def early_stopped() -> Case:
    X, more = encoded_rows(), encoded_rows(seed=9)
    space = FeatureSpace.from_matrix(X, columns=COLUMNS, groups=GROUPS, whole=["whole"])
    estimator = xgb(n_estimators=200, learning_rate=0.5, early_stopping_rounds=3)
    estimator.fit(X, labels(X), eval_set=[(more, labels(more))], verbose=False)
    assert estimator.best_iteration < 190
    return Case(estimator, X, space, identity(space.width))


def lightgbm_early_stopped() -> Case:
    X, more = encoded_rows(), encoded_rows(seed=9)
    space = FeatureSpace.from_matrix(X, columns=COLUMNS, groups=GROUPS, whole=["whole"])
    rows = lightgbm.Dataset(X, labels(X))
    booster = lightgbm.train(
        {"objective": "binary", "verbose": -1, "learning_rate": 0.3, "num_threads": 1},
        rows,
        300,
        valid_sets=[lightgbm.Dataset(more, labels(more), reference=rows)],
        callbacks=[lightgbm.early_stopping(3, verbose=False)],
    )
    assert booster.best_iteration < 300
    return Case(booster, X, space, identity(space.width), "above", 0.5)


def bare_xgboost() -> Case:
    case = matrix_case(xgb(), threshold=0.6)
    booster = case.estimator.get_booster()

    def ask(rows: Any) -> Any:
        return booster.predict(xgboost.DMatrix(rows))

    return Case(booster, case.X, case.space, case.inputs, "above", 0.6, ask)


def bare_lightgbm() -> Case:
    case = matrix_case(lgbm())
    return Case(case.estimator.booster_, case.X, case.space, case.inputs, "below", 0.4)


MATRIX_CASES: dict[str, Callable[[], Case]] = {
    "xgboost": lambda: matrix_case(xgb()),
    "xgboost, other class": lambda: matrix_case(xgb(), favourable=0),
    "xgboost, threshold": lambda: matrix_case(xgb(), threshold=0.7),
    "xgboost, threshold on the other class": lambda: matrix_case(xgb(), favourable=0, threshold=0.55),
    "xgboost, missing": lambda: matrix_case(xgb(), missing=True),
    "xgboost, missing by a number": lambda: matrix_case(xgb(missing=0.0)),
    "xgboost, dart": lambda: matrix_case(xgb(booster="dart", rate_drop=0.3, skip_drop=0.2)),
    "xgboost, base score": lambda: matrix_case(xgb(base_score=0.31)),
    "xgboost, early stopping": early_stopped,
    "xgboost, forest": lambda: matrix_case(xgb("RFClassifier", learning_rate=1.0)),
    "xgboost, boosted forest": lambda: matrix_case(xgb(num_parallel_tree=3, subsample=0.5, n_estimators=6)),
    "xgboost, three classes": lambda: matrix_case(xgb(), 3, favourable=1),
    "xgboost, three classes, threshold": lambda: matrix_case(xgb(), 3, favourable=2, threshold=0.5),
    "xgboost, softmax": lambda: matrix_case(xgb(objective="multi:softmax"), 3, favourable=2),
    "xgboost, hinge": lambda: matrix_case(xgb(objective="binary:hinge")),
    "xgboost, regression": lambda: matrix_case(xgb("Regressor"), 0, favourable="above", threshold=3.0),
    "xgboost, regression below": lambda: matrix_case(xgb("Regressor"), 0, favourable="below", threshold=2.0),
    "xgboost, booster": bare_xgboost,
    "lightgbm": lambda: matrix_case(lgbm()),
    "lightgbm, threshold": lambda: matrix_case(lgbm(), favourable=0, threshold=0.6),
    "lightgbm, missing": lambda: matrix_case(lgbm(), missing=True),
    "lightgbm, zero is missing": lambda: matrix_case(lgbm(zero_as_missing=True)),
    "lightgbm, early stopping": lightgbm_early_stopped,
    "lightgbm, dart": lambda: matrix_case(lgbm(boosting_type="dart")),
    "lightgbm, forest": lambda: matrix_case(lgbm(boosting_type="rf", subsample=0.6, subsample_freq=1)),
    "lightgbm, three classes": lambda: matrix_case(lgbm(), 3, favourable=1),
    "lightgbm, three classes, threshold": lambda: matrix_case(lgbm(), 3, favourable=0, threshold=0.45),
    "lightgbm, regression": lambda: matrix_case(lgbm("Regressor"), 0, favourable="above", threshold=3.0),
    "lightgbm, booster": bare_lightgbm,
    "decision tree": lambda: matrix_case(DecisionTreeClassifier(max_depth=5, random_state=0)),
    "decision tree, missing": lambda: matrix_case(DecisionTreeClassifier(max_depth=6, random_state=0), missing=True),
    "decision tree, four classes": lambda: matrix_case(DecisionTreeClassifier(max_depth=5), 4, favourable=2),
    "decision tree, regression": lambda: matrix_case(
        DecisionTreeRegressor(max_depth=5), 0, favourable="above", threshold=3.0
    ),
    "extra tree": lambda: matrix_case(ExtraTreeClassifier(max_depth=6, random_state=0)),
    "random forest": lambda: matrix_case(RandomForestClassifier(20, random_state=0)),  # grown out: many ties
    "random forest, other class": lambda: matrix_case(RandomForestClassifier(10, random_state=1), favourable=0),
    "random forest, missing": lambda: matrix_case(RandomForestClassifier(15, random_state=0), missing=True),
    "random forest, three classes": lambda: matrix_case(
        RandomForestClassifier(12, max_depth=6, random_state=0), 3, favourable=1
    ),
    "random forest, threshold": lambda: matrix_case(RandomForestClassifier(10, random_state=0), threshold=0.6),
    "random forest, regression": lambda: matrix_case(
        RandomForestRegressor(10, max_depth=5, random_state=0), 0, favourable="below", threshold=2.5
    ),
    "extra trees": lambda: matrix_case(ExtraTreesClassifier(15, max_depth=7, random_state=0)),
    "gradient boosting": lambda: matrix_case(GradientBoostingClassifier(n_estimators=20, random_state=0)),
    "gradient boosting, exponential": lambda: matrix_case(
        GradientBoostingClassifier(n_estimators=20, loss="exponential", random_state=0), threshold=0.7
    ),
    "gradient boosting, from zero": lambda: matrix_case(GradientBoostingClassifier(n_estimators=20, init="zero")),
    "gradient boosting, three classes": lambda: matrix_case(
        GradientBoostingClassifier(n_estimators=10, random_state=0), 3, favourable=0
    ),
    "gradient boosting, regression": lambda: matrix_case(
        GradientBoostingRegressor(n_estimators=20, random_state=0), 0, favourable="above", threshold=3.0
    ),
    "hist gradient boosting": lambda: matrix_case(HistGradientBoostingClassifier(max_iter=20)),
    "hist gradient boosting, missing": lambda: matrix_case(
        HistGradientBoostingClassifier(max_iter=20), missing=True, threshold=0.6
    ),
    "hist gradient boosting, three classes": lambda: matrix_case(
        HistGradientBoostingClassifier(max_iter=10), 3, favourable=1
    ),
    "hist gradient boosting, three classes, threshold": lambda: matrix_case(
        HistGradientBoostingClassifier(max_iter=10), 3, favourable=1, threshold=0.4
    ),
    "hist gradient boosting, regression": lambda: matrix_case(
        HistGradientBoostingRegressor(max_iter=20), 0, favourable="above", threshold=3.0
    ),
    "hist gradient boosting, categories by number": lambda: matrix_case(
        HistGradientBoostingClassifier(max_iter=20, categorical_features=[2])
    ),
    "lightgbm, categories by number": lambda: matrix_case(lgbm(), fit={"categorical_feature": [2]}),
    "xgboost, categories by number": lambda: matrix_case(
        xgb(feature_types=["q", "q", "c", *("q" * 7)], enable_categorical=True, max_cat_to_onehot=1)
    ),
}


def frame_case(estimator: Any, missing: bool = False, **constraints: Any) -> Case:
    """A frame whose categories the estimator splits by itself."""
    X = mixed_frame(missing=missing)
    space = FeatureSpace.from_frame(X, **constraints)
    estimator.fit(X, frame_labels(X))
    places = native_categories(estimator, [1, 3, 4])
    inputs: list[Input] = []
    for j, f in enumerate(space.features):
        order = np.array([np.nan if c is None else places[j].index(c) for c in f.categories], dtype=float)
        if f.is_block:
            inputs.append(Lookup(f.start, order))
        elif f.kind == "ordinal":
            inputs.append(Steps(f.start, np.arange(len(order) - 1.0), order))
        else:
            inputs.append(Number(f.start))
    return Case(estimator, X, space, tuple(inputs))


FRAME_CASES: dict[str, Callable[[], Case]] = {
    "xgboost, one category at a time": lambda: frame_case(xgb(enable_categorical=True, max_cat_to_onehot=50)),
    "xgboost, sets of categories": lambda: frame_case(xgb(enable_categorical=True, max_cat_to_onehot=1)),
    "lightgbm, categories": lambda: frame_case(lgbm(min_data_per_group=5, cat_smooth=1)),
    "hist gradient boosting, categories": lambda: frame_case(HistGradientBoostingClassifier(max_iter=20)),
    "xgboost, missing categories": lambda: frame_case(xgb(enable_categorical=True, max_cat_to_onehot=3), missing=True),
    "lightgbm, missing categories": lambda: frame_case(lgbm(min_data_per_group=5, cat_smooth=1), missing=True),
    "hist gradient boosting, missing categories": lambda: frame_case(
        HistGradientBoostingClassifier(max_iter=20), missing=True
    ),
    "xgboost, constrained": lambda: frame_case(
        xgb(enable_categorical=True),
        immutable=["town"],
        increasing=["income"],
        decreasing=["loans"],
        permitted={"purpose": ["u", "v", "w"], "size": ["medium", "large"]},
        ranges={"income": (0, 45)},
    ),
    "lightgbm, unbounded": lambda: frame_case(lgbm(min_data_per_group=5), ranges="unbounded"),
}


class Behind:
    """An estimator behind steps of its own, as a pipeline would be."""

    def __init__(self, estimator: Any, space: FeatureSpace, inputs: tuple[Input, ...]) -> None:
        self.estimator, self.space, self.inputs = estimator, space, inputs

    def predict(self, rows: Any) -> Any:
        return self.estimator.predict(evaluate(self.inputs, self.space.encode(rows)))


def piped_case(estimator: Any, missing: bool = False) -> Case:
    """Scaled, falling, logarithmic, filled, binned and looked-up inputs."""
    X = encoded_rows(missing=missing)
    space = FeatureSpace.from_matrix(X, columns=COLUMNS, groups=GROUPS, whole=["whole"])
    inputs: tuple[Input, ...] = (
        Number(0, lambda z: (z - 49.3) / 17.9, 1 / 17.9, -49.3 / 17.9),
        Number(0, lambda z: -0.37 * z.astype("float32"), -0.37, 0.0),
        Number(1, lambda z: np.log1p(1e3 * z), None, None),
        Number(1, np.log10, None, None),
        Number(2, lambda z: z / 3.0, 1 / 3.0, 0.0),
        Number(3, lambda z: np.cbrt(z), None, None, fill=0.4),
        Number(3),
        Steps(0, np.array([20.0, 40.0, 55.0, 70.0]), np.array([0.0, 1.0, 0.0, 1.0, 0.0])),
        Steps(2, np.array([2.0, 5.0, 7.0, 9.0]), np.array([3.0, 1.0, 4.0, 1.5, 5.0]), missing=2.0),
        Lookup(4, np.array([0.2, 0.9, -0.3, 0.9])),
        Number(5, lambda z: (z - 0.3) / 0.46, 1 / 0.46, -0.3 / 0.46),
        Number(9, lambda z: 1.0 - z, -1.0, 1.0),
    )
    estimator.fit(evaluate(inputs, space.encode(X)), labels(X))
    behind = Behind(estimator, space, inputs)
    return Case(estimator, X, space, inputs, ask=behind.predict)


PIPED_CASES: dict[str, Callable[[], Case]] = {
    "xgboost behind steps": lambda: piped_case(xgb(max_depth=5), missing=True),
    "lightgbm behind steps": lambda: piped_case(lgbm(), missing=True),
    "lightgbm behind steps, zero is missing": lambda: piped_case(lgbm(zero_as_missing=True)),
    "random forest behind steps": lambda: piped_case(RandomForestClassifier(12, random_state=0), missing=True),
    "hist gradient boosting behind steps": lambda: piped_case(HistGradientBoostingClassifier(max_iter=20), True),
}

CASES = MATRIX_CASES | FRAME_CASES | PIPED_CASES


@pytest.fixture(scope="module", params=list(CASES))
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    with threadpool_limits(1):  # scikit-learn's threads are many for so few rows
        yield CASES[request.param]()


def test_decides_as_the_estimator_does(case: Case) -> None:
    check_predictions(case)


def test_first_flip_is_the_first(case: Case) -> None:
    check_rays(case)


def test_kernel_is_its_twin(case: Case) -> None:
    check_twin(case)


def test_walking_down_is_the_search_for_leaves(case: Case) -> None:
    """Shallow trees are walked down in a fixed number of steps; to the last bit it is what the search finds."""
    model, some = case.model, read_only(case.Z)
    walk, whole = model._walk, model._arrays
    inner = model.trees.child >= 0
    shallow = depths(model.trees).max() <= MOST_STEPS and model.trees.outputs.shape[1] == 1
    assert (walk is not None) == (shallow and (model.trees.slot[inner] >= 0).all())
    searched, walked = leads(whole[0], None, *whole[1:], some), leads(whole[0], walk, *whole[1:], some)
    np.testing.assert_array_equal(searched.view(np.int64), walked.view(np.int64))


def test_trees_that_add_nothing_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    params: dict[str, Any] = {"n_estimators": 40, "gamma": 10.0, "reg_alpha": 8.0, "learning_rate": 1.0}
    found = matrix_case(xgb(**params), missing=True)
    assert 0 < found.model.idle < 40
    assert len(found.model.trees.roots) == 40 - found.model.idle
    check_predictions(found)
    check_twin(found)
    monkeypatch.setattr("globece.models.trees.ensemble.without_idle", lambda trees: trees)
    whole = matrix_case(xgb(**params), missing=True).model
    assert whole.idle == 0
    directions = random_directions(found.space, 5, np.random.default_rng(3))
    limit = np.full((5, len(found.Z)), 3.0)
    np.testing.assert_array_equal(found.model.margin(found.Z), whole.margin(found.Z))
    np.testing.assert_array_equal(
        found.model.first_flip(found.Z, directions, limit), whole.first_flip(found.Z, directions, limit)
    )
    assert found.model.allowance == whole.allowance


def catboost_model(kind: str = "Classifier", **params: Any) -> Any:
    import catboost

    settings = {"iterations": 15, "depth": 4, "verbose": 0, "allow_writing_files": False, "random_seed": 0, **params}
    return getattr(catboost, f"CatBoost{kind}")(**settings)


def catboost_regression() -> Case:
    estimator = catboost_model("Regressor")  # it has a list of classes, with none in it
    return matrix_case(estimator, 0, favourable="above", threshold=3.0, ask=lambda rows: estimator.predict(rows))


CATBOOST_CASES: dict[str, Callable[[], Case]] = {
    "two classes": lambda: matrix_case(catboost_model()),
    "threshold": lambda: matrix_case(catboost_model(), favourable=0, threshold=0.6),
    "missing": lambda: matrix_case(catboost_model(nan_mode="Max"), missing=True),
    "three classes": lambda: matrix_case(catboost_model(), 3, favourable=1),
    "regression": lambda: catboost_regression(),
}


@pytest.mark.parametrize("name", CATBOOST_CASES)
def test_catboost(name: str) -> None:
    case = CATBOOST_CASES[name]()
    check_predictions(case)
    check_rays(case)
    check_twin(case)


def test_catboost_with_its_own_categories() -> None:
    X = encoded_rows()
    frame = pd.DataFrame(X, columns=COLUMNS).astype({"whole": int})
    estimator = catboost_model(cat_features=[2]).fit(frame, labels(X))
    space = FeatureSpace.from_matrix(X, columns=COLUMNS, groups=GROUPS)
    with pytest.raises(ModelError, match=r"'whole'. by category, and they are not plain categorical columns"):
        TreeEnsemble.from_model(estimator, space, identity(10), favourable=1)


# -- further -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def boosted() -> Case:
    return MATRIX_CASES["xgboost, missing"]()


def test_is_a_model(boosted: Case) -> None:
    model = boosted.model
    assert isinstance(model, Model)
    assert model.exact
    assert model.name == "XGBClassifier"
    assert model.space is boosted.space


def test_number_of_threads_changes_nothing(boosted: Case) -> None:
    if numba.get_num_threads() < 2:
        pytest.skip("one thread is all there is")
    rng = np.random.default_rng(0)
    directions = random_directions(boosted.space, 20, rng)
    limit = rng.random((20, len(boosted.Z))) * 3
    before = numba.get_num_threads()
    try:
        found = []
        for threads in (1, 2):
            numba.set_num_threads(threads)
            found.append((boosted.model.first_flip(boosted.Z, directions, limit), boosted.model.margin(boosted.Z)))
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_batches_and_order_change_nothing(boosted: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    Z, directions = boosted.Z, random_directions(boosted.space, 7, rng)
    limit = rng.random((7, len(Z))) * 3
    whole = boosted.model.first_flip(Z, directions, limit)
    one_by_one = [boosted.model.first_flip(Z, directions[i : i + 1], limit[i : i + 1])[0] for i in range(7)]
    np.testing.assert_array_equal(whole, one_by_one)
    order = rng.permutation(len(Z))
    np.testing.assert_array_equal(boosted.model.first_flip(Z[order], directions, limit[:, order]), whole[:, order])
    np.testing.assert_array_equal(boosted.model.first_flip(np.asfortranarray(Z), directions, limit), whole)
    monkeypatch.setattr("globece.models.trees.ensemble.BATCH", 33)
    np.testing.assert_array_equal(boosted.model.first_flip(Z, directions, limit), whole)


def test_inputs_are_left_alone(boosted: Case) -> None:
    Z, directions = boosted.Z.copy(), random_directions(boosted.space, 3, np.random.default_rng(0))
    limit = np.full((3, len(Z)), 2.0)
    for array in (Z, directions, limit):
        array.flags.writeable = False
    boosted.model.first_flip(Z, directions, limit)
    boosted.model.margin(Z)


def test_limit_ends_the_search(boosted: Case) -> None:
    rng = np.random.default_rng(2)
    Z, directions = boosted.Z, random_directions(boosted.space, 4, rng)
    far = boosted.model.first_flip(Z, directions, np.full((4, len(Z)), np.inf))
    reached = np.isfinite(far)
    assert reached.any()
    np.testing.assert_array_equal(boosted.model.first_flip(Z, directions, far), far)  # at the limit is within it
    short = np.where(reached, np.nextafter(far, 0.0), 1.0)
    assert not np.isfinite(boosted.model.first_flip(Z, directions, short))[reached].any()
    assert np.isinf(boosted.model.first_flip(Z, directions, np.zeros((4, len(Z))))).all()


def test_favourable_row_flips_at_once(boosted: Case) -> None:
    Z = boosted.Z[boosted.model.favourable(boosted.Z)]
    k = boosted.model.first_flip(Z, random_directions(boosted.space, 1, np.random.default_rng(0)), np.ones((1, len(Z))))
    assert (k == np.nextafter(0.0, 1.0)).all()


def test_no_rows_no_directions(boosted: Case) -> None:
    width = boosted.space.width
    assert boosted.model.first_flip(np.empty((0, width)), np.ones((2, width)), np.empty((2, 0))).shape == (2, 0)
    assert boosted.model.first_flip(boosted.Z, np.empty((0, width)), np.empty((0, len(boosted.Z)))).shape == (0, 400)
    assert boosted.model.margin(np.empty((0, width))).shape == (0,)


def test_survives_pickling(boosted: Case) -> None:
    again = pickle.loads(pickle.dumps(boosted.model))
    np.testing.assert_array_equal(again.margin(boosted.Z), boosted.model.margin(boosted.Z))


def own_sums(case: Case) -> FloatArray:
    """The estimator's own sums."""
    name, estimator = type(case.estimator).__name__, case.estimator
    if name.startswith("XGB"):
        raw = estimator.predict(case.X, output_margin=True)
    elif name.startswith("LGBM"):
        raw = estimator.predict(case.X, raw_score=True)
    elif name.startswith("Hist"):
        raw = estimator._raw_predict(case.X)
    else:
        raw = estimator.decision_function(case.X)
    return np.asarray(raw, dtype=np.float64).reshape(len(case.Z), -1)


@pytest.mark.parametrize(
    "name",
    [
        "xgboost",
        "xgboost, dart",
        "xgboost, base score",
        "xgboost, early stopping",
        "xgboost, boosted forest",
        "xgboost, three classes",
        "xgboost, hinge",
        "lightgbm",
        "lightgbm, dart",
        "lightgbm, three classes",
        "gradient boosting",
        "gradient boosting, three classes",
        "hist gradient boosting, missing",
        "hist gradient boosting, three classes",
    ],
)
def test_sums_to_the_last_bit(name: str) -> None:
    case = MATRIX_CASES[name]()
    model = case.model
    np.testing.assert_array_equal(plain_sums(model.trees, model.rule, case.space, case.Z), own_sums(case))


@pytest.mark.parametrize(
    "objective", ["count:poisson", "reg:gamma", "reg:tweedie", "reg:logistic", "reg:absoluteerror"]
)
def test_xgboost_objectives(objective: str) -> None:
    X = encoded_rows()
    y = np.abs(score(X)) / 10 + 0.1
    y = y / y.max() if objective == "reg:logistic" else y
    estimator = xgb("Regressor", objective=objective).fit(X, y)
    space = FeatureSpace.from_matrix(X, columns=COLUMNS, groups=GROUPS)
    own = estimator.predict(X)
    for threshold in np.quantile(own, [0.2, 0.5]).tolist():
        model = TreeEnsemble.from_model(estimator, space, identity(10), favourable="above", threshold=threshold)
        np.testing.assert_array_equal(model.favourable(X), own >= threshold)


def test_lightgbm_objectives() -> None:
    X = encoded_rows()
    space = FeatureSpace.from_matrix(X, columns=COLUMNS, groups=GROUPS)
    for params in ({"objective": "poisson"}, {"objective": "tweedie"}, {"reg_sqrt": True}, {"objective": "mape"}):
        estimator = lgbm("Regressor", **params).fit(X, np.abs(score(X)) + 0.1)
        own = estimator.predict(X)
        model = TreeEnsemble.from_model(
            estimator, space, identity(10), favourable="below", threshold=float(np.median(own))
        )
        np.testing.assert_array_equal(model.favourable(X), own <= np.median(own))


def test_supports() -> None:
    assert all(supports(e) for e in (xgb(), lgbm(), RandomForestClassifier(), HistGradientBoostingRegressor()))
    assert not any(supports(e) for e in (LogisticRegression(), len, None, DecisionTreeClassifier))

    class Mine(RandomForestClassifier):
        pass

    assert supports(Mine())


def test_what_cannot_be_read_says_why() -> None:
    X = encoded_rows()
    y, space = labels(X), FeatureSpace.from_matrix(X, columns=COLUMNS, groups=GROUPS)

    def compile_(estimator: Any, **how: Any) -> TreeEnsemble:
        return TreeEnsemble.from_model(estimator, space, identity(10), **{"favourable": 1, **how})

    with pytest.raises(ModelError, match="not a tree ensemble"):
        compile_(LogisticRegression())
    with pytest.raises(ModelError, match="no trees"):
        compile_(xgb(booster="gblinear", max_depth=None).fit(X, y))
    with pytest.raises(ModelError, match="linear trees"):
        compile_(lgbm(linear_tree=True).fit(X, y))
    with pytest.raises(ModelError, match="on top of"):
        compile_(GradientBoostingClassifier(n_estimators=2, init=DecisionTreeClassifier(max_depth=1)).fit(X, y))
    with pytest.raises(ModelError, match="2 outputs"):
        compile_(RandomForestClassifier(3).fit(X, np.column_stack([y, y])))
    with pytest.raises(ModelError, match="rows have 3 features"):
        TreeEnsemble.from_model(DecisionTreeClassifier().fit(X, y), space, identity(3), favourable=1)
    with pytest.raises(InvalidParameterError, match="one of DecisionTreeClassifier's classes"):
        compile_(DecisionTreeClassifier().fit(X, y), favourable="yes")
    with pytest.raises(InvalidParameterError, match="'above' or 'below'"):
        compile_(DecisionTreeRegressor().fit(X, y))


def test_constant_trees() -> None:
    """Ensembles that never split, or whose answer is always the same."""
    X = encoded_rows()
    space = FeatureSpace.from_matrix(X, columns=COLUMNS, groups=GROUPS)
    directions, limit = random_directions(space, 2, np.random.default_rng(0)), np.full((2, len(X)), 3.0)
    stumps = DecisionTreeRegressor(max_depth=1, min_impurity_decrease=1e9).fit(X, score(X))
    for threshold, answer in ((1e9, False), (-1e9, True)):
        for estimator in (stumps, RandomForestRegressor(3, max_depth=2).fit(X, score(X))):
            model = TreeEnsemble.from_model(estimator, space, identity(10), favourable="above", threshold=threshold)
            assert (model.favourable(X) == answer).all()
            assert (np.isfinite(model.first_flip(X, directions, limit)) == answer).all()
