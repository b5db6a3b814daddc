"""Lower bounds as a user sees them: from an explanation, with its gap, or a clear answer that none is known."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from globece import Explanation, Robust, explain
from globece.bounds import LowerBound
from globece.directions import ClosedForm
from globece.errors import InvalidParameterError
from tests.problems import approve_matrix, matrix, matrix_space

X = matrix(200)
LABEL = approve_matrix(X)


def test_an_explanation_knows_how_near_it_comes() -> None:
    model = LogisticRegression(max_iter=5000).fit(X, LABEL)
    ex = explain(model, X, space=matrix_space(X, whole=[]), n_directions=3, generator=ClosedForm(), rng=0)
    bound = ex.lower_bound()
    assert bound.exact
    assert bound.score == ex.score
    assert (bound.cost <= ex.best_costs).all()
    assert 1.0 <= bound.gap < 1.5
    assert bound.mean == pytest.approx(ex.score / bound.gap)
    assert "minimum over any change" in repr(bound)


def test_whole_numbers_are_relaxed_and_it_says_so() -> None:
    model = LogisticRegression(max_iter=5000).fit(X, LABEL)
    bound = explain(model, X, space=matrix_space(X), rng=0).lower_bound()
    assert not bound.exact
    assert "relaxation" in bound.method


def test_solving_for_some_tightens_the_bound_for_those() -> None:
    model = GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0).fit(X, LABEL)
    ex = explain(model, X, space=matrix_space(X), n_directions=2, rng=0)
    fast, solved = ex.lower_bound(), ex.lower_bound(solve=5)
    assert solved.solved is not None
    assert (solved.cost >= fast.cost).all()
    assert (solved.cost[solved.solved] <= ex.best_costs[solved.solved]).all()
    assert solved.solved_mean <= ex.budget
    with pytest.raises(InvalidParameterError, match="solve="):
        _ = fast.solved_mean
    assert ex.lower_bound(solve=1000).exact


def test_recourse_that_must_last_costs_no_less() -> None:
    model = LogisticRegression(max_iter=5000).fit(X, LABEL)
    space = matrix_space(X, whole=[])
    plain = explain(model, X, space=space, generator=ClosedForm(), rng=0).lower_bound()
    lasting = explain(model, X, space=space, generator=ClosedForm(), rng=0, robust=Robust(margin=0.2))
    bound = lasting.lower_bound()
    assert (bound.cost >= plain.cost).all()
    assert bound.mean > plain.mean
    assert (bound.cost <= lasting.best_costs).all()
    assert "conditions" in bound.method


def test_no_bound_is_known_for_a_black_box() -> None:
    ex = explain(approve_matrix, X, space=matrix_space(X), rng=0)
    with pytest.raises(InvalidParameterError, match=r"linear models and for tree ensembles.*approve_matrix.*BlackBox"):
        ex.lower_bound()


def test_an_explanation_from_a_file_has_no_model_to_bound() -> None:
    ex = explain((np.eye(6)[0], -4.0), X, space=matrix_space(X), rng=0)
    with pytest.raises(InvalidParameterError, match="has no model"):
        Explanation.from_json(ex.to_json()).lower_bound()


@pytest.mark.parametrize("rubbish", [{"solve": -1}, {"solve": 1.5}, {"time_limit": 0}, {"time_limit": "long"}])
def test_each_parameter_given_rubbish_says_so(rubbish: dict[str, object]) -> None:
    ex = explain((np.eye(6)[0], -4.0), X, space=matrix_space(X), rng=0)
    with pytest.raises(InvalidParameterError, match=next(iter(rubbish))):
        ex.lower_bound(**rubbish)  # type: ignore[arg-type]


def test_nobody_affected_and_nobody_with_recourse() -> None:
    nobody = explain((np.eye(6)[0], 100.0), X, space=matrix_space(X), rng=0).lower_bound()
    assert nobody.mean == 0.0
    assert nobody.gap == 1.0
    hopeless = explain((np.eye(6)[0], -1000.0), X, space=matrix_space(X), rng=0).lower_bound()
    assert np.isinf(hopeless.cost).all()
    assert hopeless.mean == 10.0
    assert hopeless.gap == 1.0


def test_the_mean_charges_the_budget_at_most() -> None:
    bound = LowerBound(np.array([1.0, np.inf, 30.0]), "by hand", True, 10.0, score=14.0)
    assert bound.mean == 7.0
    assert bound.gap == 2.0
