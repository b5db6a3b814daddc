"""Models with what their counterfactuals must survive pass the contract suite too: the first k at which all agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from xgboost import XGBClassifier

import globece as gce
from globece import Robust, as_model
from globece.errors import GlobeCEWarning, InvalidParameterError
from globece.models.compiling.adapt import robust_model
from globece.models.robust import RobustModel
from globece.testing.models import ModelCase, ModelContract
from tests.problems import approve_matrix, matrix, matrix_space

X = matrix(400)
y = approve_matrix(X)
FREE = {"ranges": "unbounded", "whole": []}


def xgb() -> XGBClassifier:
    return XGBClassifier(n_estimators=15, max_depth=3, n_jobs=1)


def again(estimator: Any, n: int) -> tuple[Any, ...]:
    """The same estimator fitted to bootstrapped rows."""
    found = []
    for seed in range(n):
        rows = np.random.default_rng(seed).integers(0, len(X), len(X))
        found.append(type(estimator)(**estimator.get_params()).fit(X[rows], y[rows]))
    return tuple(found)


CASES: dict[str, tuple[Any, Robust, dict[str, Any]]] = {
    "logistic, probability": (LogisticRegression(), Robust(margin=0.2), {}),
    "logistic, logit": (LogisticRegression(), Robust(margin=1.5, scale="logit"), {}),
    "svc, score": (LinearSVC(), Robust(margin=0.3, scale="score"), {}),
    "svc, other class": (LinearSVC(), Robust(margin=0.3, scale="score"), {"favourable": 0}),
    "regression": (LinearRegression(), Robust(margin=0.1, scale="score"), {"threshold": 0.4}),
    "own threshold": (FixedThresholdClassifier(LogisticRegression(), threshold=0.6), Robust(margin=0.1), {}),
    "logistic, models": (LogisticRegression(), Robust(models=again(LogisticRegression(), 3)), {}),
    "trees, models and margin": (xgb(), Robust(margin=0.1, models=again(xgb(), 2)), {}),
    "trees and a line": (xgb(), Robust(models=(LogisticRegression().fit(X, y),)), {}),
    "forest, margin": (RandomForestClassifier(10, random_state=0), Robust(margin=0.2), {}),
    "logistic, noise": (LogisticRegression(), Robust(noise=0.3, draws=4), {}),
    "trees, noise": (xgb(), Robust(noise=0.2, draws=4), {}),
}


def robust_case(name: str, constraints: dict[str, Any]) -> RobustModel:
    estimator, robust, wanted = CASES[name]
    space = matrix_space(X, **constraints)
    box = as_model(estimator.fit(X, y), space, rows=space.encode(X), **wanted)
    return robust_model(box, robust, space.encode(X))


class TestRobust(ModelContract):
    @pytest.fixture(scope="class", params=[(n, c) for n in CASES for c in ("free", "bound")], ids=lambda p: "-".join(p))
    @classmethod
    def case(cls, request: pytest.FixtureRequest) -> ModelCase:
        name, constraints = request.param
        model = robust_case(name, FREE if constraints == "free" else {})
        assert model.exact
        return ModelCase(model, model.space.encode(X)[:150], n_directions=8, n_rays=4)

    def test_outcomes_are_booleans_and_margins_agree(self, case: ModelCase) -> None:
        outcome = case.model.favourable(case.rows)
        assert outcome.dtype == bool
        assert (outcome <= case.model.unconditioned.favourable(case.rows)).all()


def test_a_black_box_among_them_is_searched() -> None:
    other = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    with pytest.warns(GlobeCEWarning, match="searched"):
        ex = gce.explain(
            LogisticRegression().fit(X, y),
            X,
            space=matrix_space(X),
            rng=0,
            robust=Robust(models=(other,)),
        )
    assert ex.provenance.method == "searched"
    assert ex.n_covered
    assert (other.predict(ex.counterfactuals().after) == 1).all()


def test_everybody_affected_stays_affected_and_pays_more() -> None:
    model, space = LogisticRegression().fit(X, y), matrix_space(X)
    plain = gce.explain(model, X, space=space, rng=0)
    robust = gce.explain(model, X, space=space, rng=0, robust=Robust(margin=0.3))
    assert robust.n_affected == plain.n_affected
    assert robust.score > plain.score
    assert model.predict_proba(robust.counterfactuals().after)[:, 1].min() >= 0.8
    assert "a margin of 0.3 (probability)" in robust.summary()


def test_coverage_against_the_margin() -> None:
    model = xgb().fit(X, y)
    ex = gce.explain(model, X, space=matrix_space(X), rng=0)
    found = ex.robustness([0.0, 0.1, 0.2, 0.3])
    assert found.coverage[0] == ex.coverage
    assert found.survival[0] == 1.0
    assert (np.diff(found.coverage) <= 0).all()
    assert (np.diff(found.survival) <= 0).all()
    assert (np.diff(found.score) > 0).all()
    assert found.records()[1]["margin"] == 0.1
    applied = ex.robustness([0.0], models=again(xgb(), 2))
    assert applied.coverage[0] <= ex.coverage


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"margin": -1.0}, "margin"),
        ({"margin": 0.6}, "margin must be below 0.5"),
        ({"margin": 0.1, "scale": "odds"}, "scale"),
        ({"noise": -0.1}, "noise"),
        ({"models": 3}, "models must be a list"),
        ({"models": (LogisticRegression().fit(X[:, :3], y),)}, "features"),
    ],
)
def test_bad_input(wanted: dict[str, Any], message: str) -> None:
    model = LogisticRegression().fit(X, y)
    with pytest.raises(InvalidParameterError, match=message):
        gce.explain(model, X, space=matrix_space(X), rng=0, robust=Robust(**wanted))


def test_margins_are_checked() -> None:
    ex = gce.explain(LogisticRegression().fit(X, y), X, space=matrix_space(X), rng=0)
    with pytest.raises(InvalidParameterError, match="margins"):
        ex.robustness([0.2, 0.1])
    with pytest.raises(InvalidParameterError, match="predict_proba"):
        gce.explain(LinearSVC().fit(X, y), X, space=matrix_space(X), robust=Robust(margin=0.1))
