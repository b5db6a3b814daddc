"""Networks that cannot be read say why; modules are asked without being changed."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.neural_network import MLPClassifier, MLPRegressor

from globece import FeatureSpace, as_model, explain
from globece.errors import GlobeCEWarning, InvalidParameterError, MissingExtraError, ModelError
from globece.models.decision import decision
from globece.models.inputs import Lookup, Number, Steps, identity
from globece.models.networks.modules import read
from globece.models.networks.network import ReLUNetwork
from globece.models.networks.reading import conditions
from tests.contract.test_models import fitted
from tests.problems import approve_matrix, matrix, matrix_space

torch = pytest.importorskip("torch")
nn: Any = torch.nn

X = matrix(100)


def small(*more: Any, inputs: int = 6, outputs: int = 2) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(inputs, 4), nn.ReLU(), nn.Linear(4, outputs), *more)


def broken(value: float) -> Any:
    module = small()
    with torch.no_grad():
        module[2].weight[0, 1] = value
    return module


def unfixed() -> Any:
    return nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 2))


class Adds(nn.Module):
    """Its layers are known, and what it does between them is not."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, x: Any) -> Any:
        return self.last(x + self.first(x))


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (broken(np.nan), r"1 weight\(s\) in layer 2 that are not finite"),
        (broken(np.inf), "not finite"),
        (small(nn.Tanh()), "layer Tanh of Sequential"),
        (nn.Sequential(nn.Linear(6, 4), nn.Sigmoid(), nn.Linear(4, 2)), "layer Sigmoid .* last layer only"),
        (nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4), nn.Linear(4, 2)), "layer LayerNorm"),
        (nn.Sequential(nn.Linear(6, 4), nn.LeakyReLU(1.5), nn.Linear(4, 2)), r"slope of \[1.5\]"),
        (unfixed(), "running statistics"),
        (small(nn.Softmax(dim=0)), "does not run over the classes"),
        (nn.Sequential(nn.ReLU()), "computes in"),
        (nn.Sequential(nn.BatchNorm1d(6), nn.Linear(4, 2)), "does not fit the one before it"),
        (small().half(), "float16"),
        (Adds(), "run in order, do not give its output"),
        (MLPClassifier(), "not fitted"),
    ],
    ids=str,
)
def test_what_cannot_be_read_says_why(module: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read(module)


def test_a_perceptron_that_bends_everywhere_is_searched() -> None:
    model = fitted(MLPClassifier(4, activation="tanh", solver="lbfgs", random_state=0), X, approve_matrix(X))
    with pytest.warns(GlobeCEWarning, match="activation 'tanh' is not piecewise linear"):
        assert not as_model(model, matrix_space(X), rows=X).exact


def test_several_outputs_of_a_regressor_are_not_followed() -> None:
    model = fitted(MLPRegressor(hidden_layer_sizes=(4,), solver="lbfgs", random_state=0), X, X[:, :2])
    with pytest.raises(ModelError, match="2 outputs"):
        read(model)


def test_another_width_is_refused() -> None:
    with pytest.raises(ModelError, match="takes 5 inputs and its steps give 6"):
        ReLUNetwork.from_model(small(inputs=5), matrix_space(X), identity(6), favourable=1)
    with pytest.warns(GlobeCEWarning, match="takes 5 inputs and its steps give 6"):
        found = as_model(small(inputs=5), matrix_space(X))
    with pytest.raises(ModelError, match="Sequential in call 1"):
        found.favourable(X)


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from globece.models.networks.modules import read_module

    module = small()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"globece\[torch\]"):
        read_module(module)


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        ({"favourable": 2}, InvalidParameterError, r"one of \[0, 1\]"),
        ({"favourable": 1, "threshold": 1.0}, ModelError, "only reached by rounding"),
        ({"favourable": "above", "threshold": 1.0}, ModelError, "one output and a threshold"),
    ],
)
def test_outcomes_that_a_network_does_not_have(wanted: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        conditions(read(small()), wanted["favourable"], wanted.get("threshold"), "Sequential")


def test_a_chance_among_three_classes_is_searched() -> None:
    with pytest.warns(GlobeCEWarning, match="not a linear function"):
        found = as_model(small(outputs=3), matrix_space(X), favourable=2, threshold=0.4, rows=X)
    out = torch.softmax(small(outputs=3)(torch.tensor(X, dtype=torch.float32)), dim=1)[:, 2].detach().numpy()
    clear = np.abs(out - 0.4) > 1e-6
    np.testing.assert_array_equal(found.favourable(X)[clear], (out >= 0.4)[clear])


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_chances_of_one_class(threshold: float) -> None:
    found = as_model(small(outputs=3), matrix_space(X), favourable=1, rows=X)
    assert found.exact
    probabilities = small(nn.Sigmoid(), outputs=3)
    found = as_model(probabilities, matrix_space(X), favourable=1, threshold=threshold, rows=X)
    own = probabilities(torch.tensor(X, dtype=torch.float32))[:, 1].detach().numpy() >= threshold
    np.testing.assert_array_equal(found.favourable(X), own)
    assert found.exact


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([Steps(0, np.array([1.0]), np.array([0.0, 1.0])), *identity(6)[1:]], "'income' is binned"),
        ([Number(0, np.log1p, None, None), *identity(6)[1:]], "not linear in column 'income'"),
        ([Number(0, fill=1.0), Number(0, fill=2.0), *identity(6)[2:]], "'income' is filled in two ways"),
        ([*identity(6)[:5], Lookup(2, np.array([0.0, np.nan, 1.0]))], "'home' is not encoded as a number"),
    ],
)
def test_inputs_that_are_not_straight(inputs: list[Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        ReLUNetwork.from_model(small(), matrix_space(X), inputs, favourable=1)


def test_a_module_is_left_in_training_mode() -> None:
    module = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(), nn.Linear(4, 2))
    module[3].eval()
    modes, mean = [m.training for m in module.modules()], module[1].running_mean.clone()
    found = as_model(module, matrix_space(X), rows=X)
    first = found.favourable(X)
    np.testing.assert_array_equal(found.favourable(X), first)
    assert [m.training for m in module.modules()] == modes
    assert torch.equal(module[1].running_mean, mean)
    assert found.exact


def test_a_few_rows_are_answered_as_among_many() -> None:
    decide = decision(small(), favourable=1)
    many = decide(X, len(X))
    assert [bool(decide(X[i : i + 1], 1)[0]) for i in range(20)] == many[:20].tolist()


@pytest.mark.parametrize("threshold", [-0.1, 1.5])
def test_a_threshold_is_a_probability(threshold: float) -> None:
    with pytest.raises(InvalidParameterError, match=r"probability in \[0, 1\]"):
        decision(small(), threshold=threshold)


def test_frames_of_numbers_are_taken_and_text_is_named() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1, 2], "c": [True, False]})
    assert decision(small(inputs=3))(frame, 2).shape == (2,)
    with pytest.raises(ModelError, match=r"columns \['b'\] hold none"):
        decision(small(inputs=3))(frame.assign(b=["x", "y"]), 2)


def test_outputs_that_are_no_tensor() -> None:
    class Pair(nn.Module):
        def forward(self, x: Any) -> Any:
            return x, x

    with pytest.raises(ModelError, match="returned tuple"):
        decision(Pair())(X, len(X))


def test_an_explanation_of_a_module() -> None:
    module = small()
    space = FeatureSpace.from_matrix(X, columns=list("abcdef"), ranges="unbounded")
    share = as_model(module, space, rows=X).favourable(X).mean()
    wanted = 0 if share > 0.5 else 1
    found = explain(module, X, favourable=wanted, space=space, n_directions=1, rng=0)
    flips = np.isfinite(found.scalars[0])
    assert flips.any()
    after = X[found.rows[flips]] + found.scalars[0][flips, None] * found.directions[0]
    rows = torch.tensor(after, dtype=torch.float32)
    assert (module(rows).argmax(dim=1) == wanted).all()


def test_a_glance_is_near_and_right_about_switches() -> None:
    rng = np.random.default_rng(0)
    space = matrix_space(X)
    network = MLPClassifier((12, 8), random_state=0, max_iter=300).fit(X, approve_matrix(X))
    model = ReLUNetwork.from_model(network, space, identity(space.width), favourable=1)
    Z = space.encode(X)
    Z = Z[~model.favourable(Z)]
    blocks = np.zeros(space.width, dtype=bool)
    for f in space.blocks:
        blocks[f.columns] = True
    D = rng.normal(size=(40, space.width)) * np.where(blocks, 1.0, np.ptp(X, axis=0))
    D[:20, ~blocks] = 0.0  # these only switch
    limit = np.full((len(D), len(Z)), 3.0)
    exact, glanced = model.first_flip(Z, D, limit), model.rough(16).first_flip(Z, D, limit)
    np.testing.assert_allclose(glanced[:20], exact[:20], rtol=1e-6)
    both = np.isfinite(exact[20:]) & np.isfinite(glanced[20:])
    assert both.mean() > 0.1
    assert (np.isfinite(exact[20:]) == np.isfinite(glanced[20:])).mean() > 0.97
    assert np.median(np.abs(glanced[20:][both] / exact[20:][both] - 1)) < 0.1
    assert not (np.isfinite(glanced) & ~np.isfinite(exact)).any()
