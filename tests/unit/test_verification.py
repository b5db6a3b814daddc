"""The user's own model has the last word, and whoever misread it is not believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import globece
from globece import Climb, FeatureSpace, Settings, as_model, explain, rays
from globece.case.affected import Affected
from globece.case.scaling import scale
from globece.case.verification import Disagreement, confirmed
from globece.errors import GlobeCEWarning, VerificationError
from globece.models.compiling import adapt
from globece.models.compiling.adapt import Compiled
from globece.models.linear.half_spaces import LinearModel
from tests.problems import matrix, matrix_space

X = matrix(200)
y = (X[:, 0] - 0.3 * X[:, 1] > 1).astype(int)


def misread(monkeypatch: pytest.MonkeyPatch, off: float) -> None:
    """Let every compiled model be off, and let the checks before the search not see it."""
    honest = adapt.compile_model

    def compile_model(*args: Any) -> Any:
        core = honest(*args)
        assert isinstance(core, LinearModel)
        assert core.offsets is not None
        return replace(core, intercepts=core.intercepts + off, offsets=core.offsets + off)

    monkeypatch.setattr(adapt, "compile_model", compile_model)
    monkeypatch.setattr(adapt, "check", lambda *args, **more: None)


# Too lenient: counterfactuals do not flip. Too strict: the original flips earlier.
@pytest.mark.parametrize("off", [0.8, -0.8])
def test_a_misread_model_is_searched_with_a_warning(monkeypatch: pytest.MonkeyPatch, off: float) -> None:
    model = LogisticRegression().fit(X, y)
    space = matrix_space(X)
    wanted = explain(model, X, space=space, rng=0, settings=Settings(exact=False))
    misread(monkeypatch, off)
    with pytest.warns(GlobeCEWarning, match="searched as a black box"):
        found = explain(model, X, space=space, rng=0)
    assert found.provenance.method == "searched"
    np.testing.assert_allclose(found.costs, wanted.costs, rtol=1e-5)
    # the same when directions are applied to other rows, and for groups
    honest = explain(model, X, space=space, rng=0, settings=Settings(exact=False))
    compiled = as_model(model, space, rows=X)
    assert isinstance(compiled, Compiled)
    with pytest.warns(GlobeCEWarning, match="searched as a black box"):
        applied = honest.apply(X, model=compiled)
    assert applied.provenance.method == "searched"
    with pytest.warns(GlobeCEWarning, match="searched as a black box"):
        told = globece.who_benefits(model, X, {"income": 1.0}, space=space, mode="scaled")
    assert told.explanation.provenance.method == "searched"


@pytest.mark.filterwarnings("ignore:recourse may change")
def test_a_misread_model_is_searched_in_an_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LogisticRegression().fit(X, y)
    misread(monkeypatch, 0.8)
    old = np.where(X[:, 5] > 25, "old", "young")
    with pytest.warns(GlobeCEWarning, match="searched as a black box"):
        found = globece.audit(model, X, by=old, space=matrix_space(X), favourable=1, rng=0)
    assert found.explanation.provenance.method == "searched"


def test_a_model_that_answers_by_chance_is_an_error() -> None:
    rng = np.random.default_rng(0)
    space = matrix_space(X)
    box = as_model(lambda rows: (rows[:, 0] > 3) & (rng.random(len(rows)) < 0.5), space, favourable=True)
    problem = Affected(box, X[X[:, 0] < 2], globece.CostModel.bins(space), 10.0)
    delta = np.eye(space.width)[:1]
    with pytest.raises(VerificationError, match="does the model answer differently each time"):
        confirmed(problem, delta, scale(problem, delta))


def test_a_model_that_depends_on_the_size_of_its_batch_is_no_error() -> None:
    """It says the same of the same batch, so it does not answer by chance: its counterfactuals are moved further."""
    space, delta = matrix_space(X), np.eye(X.shape[1])[:1]

    def model(rows: Any) -> Any:
        return rows[:, 0] > 3.0 + 0.3 * (len(rows) % 2)

    problem = Affected(as_model(model, space, favourable=True), X[X[:, 0] < 2], globece.CostModel.bins(space), 1000.0)
    scaled = scale(problem, delta)
    early = replace(scaled, scalar=np.where(np.arange(scaled.scalar.size) % 2 == 0, scaled.scalar - 0.2, scaled.scalar))
    found = confirmed(problem, delta, early)
    reached = np.isfinite(found.scalar[0])
    assert reached.mean() > 0.9
    after = problem.inputs[reached] + found.scalar[0, reached, None] * delta
    assert all(model(row[None])[0] for row in after)
    assert model(after).all()
    assert model(after[1:]).all()


def test_short_integers_flip_as_doubles_too() -> None:
    """NumPy's root of an int8 has half precision."""
    rng = np.random.default_rng(0)
    M = rng.integers(0, 90, (200, 2)).astype(np.int8)
    cut = float(np.sqrt(35.0)) + 1e-3  # which the root in half precision exceeds, and that in double does not

    def model(rows: Any) -> Any:
        return np.asarray(np.sqrt(rows[:, 0]), dtype=float) > cut

    row = np.array([[35, 0]], dtype=np.int8)
    assert model(row)[0]
    assert not model(row.astype(float))[0]
    ex = explain(model, M, favourable=True, space=FeatureSpace.from_matrix(M), n_directions=1, rng=0)
    after = ex.counterfactuals().after
    assert after.dtype == np.int8
    assert len(after)
    assert model(after).all()
    assert model(after.astype(float)).all()


def test_disagreement_is_an_error_of_ours() -> None:
    assert issubclass(Disagreement, VerificationError)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 300.0])
@pytest.mark.parametrize("kind", ["linear", "searched"])
def test_counterfactuals_flip_one_by_one_and_in_any_order(dtype: Any, offset: float, kind: str) -> None:
    rng = np.random.default_rng(1)
    M = (rng.normal(size=(300, 5)) + offset).astype(dtype)
    label = (M[:, :3].sum(axis=1) > 3 * offset + 1).astype(int)
    model = LogisticRegression(max_iter=2000).fit(M, label) if kind == "linear" else SVC(kernel="linear").fit(M, label)
    settings = Settings(exact=kind != "searched")
    found = explain(
        model, M, n_directions=2, rng=0, settings=settings, search=Climb(rays=3000), space=FeatureSpace.from_matrix(M)
    )
    after = found.counterfactuals().after
    assert after.dtype == dtype
    assert len(after) > 100
    assert (model.predict(after) == 1).all()
    assert (model.predict(after[::-1]) == 1).all()
    assert all(model.predict(row[None])[0] == 1 for row in after)


class Alone:
    """A model that is stricter about rows that come alone than about rows in a batch, as rounding may be."""

    def __init__(self, stricter: float) -> None:
        self.stricter, self.rows = stricter, 0

    def __call__(self, rows: Any) -> Any:
        self.rows += len(rows)
        return rows[:, 0] > 3.0 + (self.stricter if len(rows) == 1 else 0.0)


@pytest.mark.parametrize("stricter", [1e-9, 1e-3, 0.5])
def test_counterfactuals_of_a_searched_model_flip_alone(stricter: float) -> None:
    model, space = Alone(stricter), matrix_space(X)
    box = as_model(model, space, favourable=True)
    problem = Affected(box, X[X[:, 0] < 2], globece.CostModel.bins(space), 1000.0)
    delta = np.eye(space.width)[:1]
    scaled = confirmed(problem, delta, scale(problem, delta))
    reached = np.isfinite(scaled.scalar[0])
    assert reached.mean() > 0.9
    after = problem.inputs[reached] + scaled.scalar[0, reached, None] * delta
    assert all(model(row[None])[0] for row in after)
    assert model(after).all()
    assert model(after[::-1]).all()
    paid = rays.cost_at(problem.cost, problem.inputs, delta[0], scaled.scalar[0])
    np.testing.assert_allclose(scaled.cost[0], paid)


def test_what_never_flips_alone_is_left_out_with_a_warning() -> None:
    model, space = Alone(np.inf), matrix_space(X)
    problem = Affected(as_model(model, space, favourable=True), X[X[:, 0] < 2], globece.CostModel.bins(space), 1000.0)
    delta = np.eye(space.width)[:1]
    with pytest.warns(GlobeCEWarning, match="alone, in another order or in a batch.*left out"):
        scaled = confirmed(problem, delta, scale(problem, delta))
    assert np.isinf(scaled.scalar).all()
    assert np.isinf(scaled.cost).all()


class Tied:
    """A model that has a tie where the first column is 1: the batch decides there, by its size and order."""

    classes_ = np.array([0, 1])

    def decision_function(self, rows: Any) -> Any:
        noise = 1e-9 * (0.9 + np.cos(len(rows) + np.arange(len(rows))))
        return np.where(rows[:, 1] > 0.5, 1.0, np.where(rows[:, 0] > 0.5, 0.0, -1.0)) + noise

    def predict(self, rows: Any) -> Any:
        return (self.decision_function(rows) > 0.0).astype(int)


def test_ties_that_the_batch_decides_are_no_counterfactuals() -> None:
    """No list of arrangements is complete, so the scores decide."""
    model = Tied()
    space = FeatureSpace.from_matrix(np.array([[0.0, 0.0], [1.0, 1.0]]), whole=["x0", "x1"])
    inputs = np.zeros((40, 2))
    problem = Affected(as_model(model, space, compile=False), inputs, globece.CostModel.bins(space), 1000.0)
    directions = np.eye(2)
    with pytest.warns(GlobeCEWarning, match="alone, in another order or in a batch.*left out"):
        scaled = confirmed(problem, directions, scale(problem, directions))
    assert np.isinf(scaled.scalar[0]).all()
    assert np.isfinite(scaled.scalar[1]).all()


class Jumping:
    """A model in steps, as trees are, that lowers the score of the rows with a flag if it is asked about them alone."""

    classes_ = np.array([0, 1])

    def decision_function(self, rows: Any) -> Any:
        lower = (rows[:, 1] > 0.5) & (rows[:, 0] < 3.0) & (len(rows) == 1)
        return np.where(rows[:, 0] > 5.0, 1.0, np.where(rows[:, 0] > 1.0, 0.02, -0.1)) - lower

    def predict(self, rows: Any) -> Any:
        return (self.decision_function(rows) > 0.0).astype(int)


def test_a_jump_of_one_row_moves_no_other() -> None:
    """How much a score varies from batch to batch is a matter of its row."""
    rows = np.zeros((40, 2))
    rows[7, 1] = 1.0
    space = FeatureSpace.from_matrix(np.vstack([rows, [9.0, 1.0]]), columns=["x", "flag"], immutable=["flag"])
    problem = Affected(as_model(Jumping(), space, compile=False), rows, globece.CostModel.bins(space), 1000.0)
    directions = np.array([[1.0, 0.0]])
    scaled = confirmed(problem, directions, scale(problem, directions))
    assert scaled.scalar[0, 7] >= 3.0
    assert np.delete(scaled.scalar[0], 7).max() < 1.0 + 1e-5


def test_asking_again_costs_little() -> None:
    model, space = Alone(0.0), matrix_space(X)
    problem = Affected(as_model(model, space, favourable=True), X[X[:, 0] < 2], globece.CostModel.bins(space), 1000.0)
    delta = np.eye(space.width)[:1]
    scaled = scale(problem, delta)
    searched, model.rows = model.rows, 0
    confirmed(problem, delta, scaled)
    assert model.rows - len(problem.inputs) < 0.05 * searched


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_counterfactuals_of_a_searched_module_flip_alone_without_padding(timeout: float | None) -> None:
    """Rows are padded to a batch while a module is searched; its user asks about a single one."""
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):  # type: ignore[name-defined]
        def forward(self, rows: Any) -> Any:
            return rows[:, 0] - 3.0 - (1e-3 if len(rows) == 1 else 0.0)

    module, space = Module(), matrix_space(X)
    with pytest.warns(GlobeCEWarning, match="searched as a black box"):
        box = as_model(module, space, timeout=timeout)
    problem = Affected(box, X[X[:, 0] < 2], globece.CostModel.bins(space), 1000.0)
    delta = np.eye(space.width)[:1]
    scaled = confirmed(problem, delta, scale(problem, delta))
    after = problem.inputs + scaled.scalar[0, :, None] * delta
    assert np.isfinite(after).all()
    assert all(module(torch.from_numpy(row[None].astype(np.float32)))[0] > 0 for row in after)
