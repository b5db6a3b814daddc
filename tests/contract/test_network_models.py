"""Networks pass the public contract suite, and networks that cannot be followed say why."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from globece import FeatureSpace, as_model, rays
from globece.errors import GlobeCEWarning
from globece.models.blackbox import BlackBox
from globece.models.compiling.adapt import Compiled
from globece.models.decision import SIDES
from globece.models.torch_modules import HEADS, head_of
from globece.testing.models import GRID, ModelCase, ModelContract
from paper.cases import case as paper_case
from paper.data import DATASETS
from paper.models import load_paper_model
from tests.contract.test_models import FRAME, LABEL, NUMBERS, TEXT, compiled, fitted
from tests.problems import approve_matrix, matrix, matrix_space

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # tests share the cores out themselves
nn: Any = torch.nn

X = matrix(400)
y = approve_matrix(X)
FREE: dict[str, Any] = {"ranges": "unbounded", "whole": []}
BOUND: dict[str, Any] = {"decreasing": ["debts"]}
SINGLE = 1e-5  # share of k that rounding in single precision may cost
# Share of what a score is summed from, of which rounding makes either sign. The stated clearance is 10 standard errors,
# and a fifth more is asked for. A standard error is at most 1.3 roundings, of 2^-24 of that sum: near 0 at least two of
# its terms cancel, and in layers of more than 16 inputs the errors of many terms average out.
UNSURE = 16 * 2.0**-24
HEAD = 1.2 * 4 * 2.0**-24  # and what converting a score to a probability p costs, divided by p (1 - p)


def trained(module: Any, seed: int = 0, steps: int = 60) -> Any:
    """Fit a module roughly, so that both outcomes occur and units bend where the rows are."""
    torch.manual_seed(seed)
    for layer in module.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    rows, mean, spread = torch.tensor(X, dtype=torch.float32), X.mean(axis=0), X.std(axis=0) + 1e-9
    first = next(layer for layer in module.modules() if isinstance(layer, nn.Linear))
    with torch.no_grad():  # raw rows: the first layer takes them to scale
        first.weight /= torch.tensor(spread, dtype=torch.float32)
        first.bias -= first.weight @ torch.tensor(mean, dtype=torch.float32)
    outputs = module(rows).shape[1]
    wanted = torch.tensor(np.digitize(X @ [1.0, -0.4, 1.5, 0.0, 0.3, 0.02], [3.0, 4.0]) if outputs == 3 else y)
    learner = torch.optim.Adam(module.parameters(), lr=0.02)
    module.train()
    for _ in range(steps):
        learner.zero_grad()
        out = module(rows)
        head = type(list(module.modules())[-1]).__name__
        if outputs == 1:
            score = out[:, 0] if head != "Sigmoid" else torch.logit(out[:, 0], eps=1e-6)
            loss = nn.functional.binary_cross_entropy_with_logits(score, wanted.float())
        else:
            score = torch.log(out + 1e-9) if head == "Softmax" else out
            loss = nn.functional.cross_entropy(score, wanted.long())
        loss.backward()
        learner.step()
    return module.eval()


class NetworkContract(ModelContract):
    """The contract, but for what single precision leaves open: a score within the clearance may have either sign.

    How long that lasts along a ray depends on how steeply the score rises, and so on how a module was trained.
    """

    def _nothing_earlier(self, case: ModelCase, row: Any, delta: Any, limit: float, k: float) -> None:
        end = min(limit, k * (1.0 - 1e-9))
        points = np.concatenate([
            np.linspace(0.0, end, GRID + 1)[1:],
            np.nextafter(rays.row_switches(case.model.space, row[None], delta)[0], np.inf),
        ])  # fmt: skip
        points = points[(points < k) & (points <= limit)]
        line = rays.positions(case.model.space, np.repeat(row[None], points.size, axis=0), delta, points)
        flips = case.model.favourable(line)
        clear = flips & (case.model.margin(line) > within_rounding(case.model, line))
        clear &= points < k * (1.0 - case.precision)
        assert not clear.any(), f"flips at {points[clear.argmax()]!r}, reported at {k!r}"


def within_rounding(model: Any, Z: Any) -> Any:
    """Scores of which the clearance leaves the sign open."""
    decide = model.original.decide
    chance = None if decide.favourable in SIDES else decide.threshold
    if chance is None and head_of(decide.model) == "probabilities":
        chance = 0.5
    return UNSURE * summed(model, Z) + (0.0 if chance is None else HEAD / (chance * (1.0 - chance)))


def summed(model: Any, Z: Any) -> Any:
    """What the scores are summed from: the terms of each layer's sums, by how much the score changes with that sum."""
    module, wanted = copy.deepcopy(model.original.decide.model).double(), model.original.decide.favourable
    leaves = [leaf for leaf in module.modules() if isinstance(leaf, (nn.Linear, nn.BatchNorm1d))]
    terms: list[Any] = []
    sums: list[Any] = []

    def seen(leaf: Any, given: Any, out: Any) -> None:
        bias = 0.0 if leaf.bias is None else leaf.bias.abs()
        if isinstance(leaf, nn.Linear):
            terms.append(given[0].abs() @ leaf.weight.abs().T + bias)
        else:
            scale = (leaf.weight / torch.sqrt(leaf.running_var + leaf.eps)).abs()
            terms.append((given[0].abs() + leaf.running_mean.abs()) * scale + bias)
        sums.append(out)

    hooks = [leaf.register_forward_hook(seen) for leaf in leaves]
    head = [leaf for leaf in module.modules() if type(leaf).__name__ in HEADS]
    hooks += [leaf.register_forward_hook(lambda _, given, __: given[0]) for leaf in head]  # scores, not probabilities
    scores = module(torch.tensor(model.core._seen(Z)))
    if scores.shape[1] > 1:
        others = [c for c in range(scores.shape[1]) if c != wanted]
        scores = scores[:, [wanted]] - scores[:, others].amax(dim=1, keepdim=True)
    slopes = torch.autograd.grad(scores.sum(), sums, allow_unused=True)
    for hook in hooks:
        hook.remove()
    carried = [(t * s.abs()).sum(dim=1) for t, s in zip(terms, slopes, strict=True) if s is not None]
    return torch.stack(carried).sum(dim=0).detach().numpy()


class Ordered(nn.Module):
    """No Sequential, but its children run in order."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.bend, self.last = nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2)

    def forward(self, x: Any) -> Any:
        return self.last(self.bend(self.first(x)))


class Shared(Ordered):
    """Its children, run in order, are not what it does."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Sequential(nn.Linear(12, 12), nn.Linear(12, 2))

    def forward(self, x: Any) -> Any:
        return self.last[1](self.bend(self.last[0](self.bend(self.first(x)))))


def plain(*last: Any, outputs: int = 2, bend: Any = None) -> Any:
    return nn.Sequential(
        nn.Linear(6, 16), bend or nn.ReLU(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, outputs), *last
    )


MODULES: dict[str, tuple[Any, dict[str, Any]]] = {
    "two scores": (plain(), {}),
    "two scores, other class": (plain(), {"favourable": 0}),
    "two scores, threshold": (plain(), {"threshold": 0.7}),
    "leaky": (plain(bend=nn.LeakyReLU(0.2)), {}),
    "softmax": (plain(nn.Softmax(dim=1)), {}),
    "softmax, threshold": (plain(nn.Softmax(dim=-1)), {"threshold": 0.6}),
    "log softmax": (plain(nn.LogSoftmax(dim=1)), {"threshold": 0.3, "favourable": 0}),
    "one score": (plain(outputs=1), {}),
    "one score, other class, threshold": (plain(outputs=1), {"favourable": 0, "threshold": 0.4}),
    "sigmoid": (plain(nn.Sigmoid(), outputs=1), {}),
    "sigmoid, other class": (plain(nn.Sigmoid(), outputs=1), {"favourable": 0}),
    "three classes, first": (plain(outputs=3), {"favourable": 0}),
    "three classes, second": (plain(nn.Softmax(dim=1), outputs=3), {"favourable": 1}),
    "three classes, third": (plain(outputs=3), {"favourable": 2}),
    "value above": (plain(outputs=1), {"favourable": "above", "threshold": 0.5}),
    "value below": (plain(outputs=1), {"favourable": "below", "threshold": -0.5}),
    "normalised": (
        nn.Sequential(
            nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 8), nn.PReLU(),
            nn.Linear(8, 2, bias=False),
        ),
        {},
    ),
    "nested": (
        nn.Sequential(
            nn.Flatten(), nn.Sequential(nn.Linear(6, 10), nn.Sequential(nn.ReLU(), nn.Dropout())), nn.Identity(),
            nn.Linear(10, 4), nn.Linear(4, 2),
        ),
        {},
    ),
    "children in order": (Ordered(), {}),
    "no hidden layer": (nn.Sequential(nn.Linear(6, 2)), {}),
    "double": (plain(), {}),
}  # fmt: skip


@cache
def module_of(which: str) -> Any:
    module = trained(MODULES[which][0])
    return module.double() if which == "double" else module


@cache
def followed(which: str, constraints: str) -> Compiled:
    space = matrix_space(X, **{"free": FREE, "bound": BOUND}[constraints])
    return compiled(module_of(which), space, X, **MODULES[which][1])


@pytest.mark.parametrize("constraints", ["free", "bound"], scope="class")
@pytest.mark.parametrize("which", MODULES, scope="class")
class TestModules(NetworkContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, which: str, constraints: str) -> ModelCase:
        return ModelCase(followed(which, constraints), X[:120], 6, 3, 1e-9 if which == "double" else SINGLE)


QUICK = {"solver": "lbfgs", "max_iter": 80, "random_state": 0}
MLPS: dict[str, tuple[Any, dict[str, Any]]] = {
    "two classes": (MLPClassifier((12, 8), **QUICK), {}),
    "other class": (MLPClassifier((12,), **QUICK), {"favourable": 0}),
    "threshold": (MLPClassifier((12, 8), **QUICK), {"threshold": 0.8}),
    "identity": (MLPClassifier((6, 4), activation="identity", **QUICK), {}),
    "value": (MLPRegressor(hidden_layer_sizes=(12,), **QUICK), {"threshold": 0.5}),
    "value below": (MLPRegressor(hidden_layer_sizes=(8, 4), **QUICK), {"threshold": 0.4, "favourable": "below"}),
}


@pytest.mark.parametrize("constraints", [FREE, BOUND], ids=["free", "bound"], scope="class")
@pytest.mark.parametrize("which", MLPS, scope="class")
class TestPerceptrons(ModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, which: str, constraints: dict) -> ModelCase:
        estimator, wanted = MLPS[which]
        model = fitted(make_pipeline(StandardScaler(), estimator), X, y)
        return ModelCase(compiled(model, matrix_space(X, **constraints), X, **wanted), X[:120], 6, 3)


class TestThreeClasses(ModelContract):
    @pytest.fixture(scope="class", params=[0, 1, 2])
    @classmethod
    def case(cls, request: pytest.FixtureRequest) -> ModelCase:
        estimator = MLPClassifier((12,), **QUICK)
        model = fitted(make_pipeline(StandardScaler(), estimator), X, np.digitize(X[:, 0] - 0.3 * X[:, 1], [1, 3]))
        return ModelCase(compiled(model, matrix_space(X), X, favourable=request.param), X[:120], 6, 3)


def pipeline(final: Any) -> Any:
    numbers = make_pipeline(SimpleImputer(), StandardScaler(), MinMaxScaler())
    return make_pipeline(make_column_transformer((numbers, NUMBERS), (OneHotEncoder(), TEXT)), final)


@pytest.mark.parametrize("constraints", [FREE, {}], ids=["free", "bound"], scope="class")
class TestPipelines(ModelContract):
    """Raw text and missing values in, exact scalars out."""

    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, constraints: dict) -> ModelCase:
        space = FeatureSpace.from_frame(FRAME, **constraints)
        model = fitted(pipeline(MLPClassifier((10,), **QUICK)), FRAME, LABEL)
        found = compiled(model, space, FRAME)
        rows = space.encode(FRAME)
        np.testing.assert_array_equal(found.core.favourable(rows), found.original.favourable(rows))
        return ModelCase(found.core, rows[:100], 6, 3)


def test_a_threshold_around_a_pipeline_is_followed() -> None:
    inner = make_pipeline(StandardScaler(), MLPClassifier((8,), **QUICK))
    found = compiled(fitted(FixedThresholdClassifier(inner, threshold=0.7), X, y), matrix_space(X), X)
    np.testing.assert_array_equal(found.core.favourable(X), found.favourable(X))


@pytest.mark.paper_data
@pytest.mark.parametrize("constraints", ["free", "bound"], scope="class")
@pytest.mark.parametrize("dataset", DATASETS, scope="class")
class TestPaperNetworks(NetworkContract):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, dataset: str, constraints: str) -> ModelCase:
        on = paper_case(dataset, "dnn")
        if constraints == "bound":
            on = paper_case(dataset, "dnn", whole=on.whole, increasing=on.numbers[:1], decreasing=on.numbers[1:2])
        rows = on.space.encode(on.rows[:400])
        # with the smallest weights as they are in the file
        found = as_model(load_paper_model(dataset, "dnn").to_torch(), on.space, rows=rows)
        assert isinstance(found, Compiled)
        np.testing.assert_array_equal(found.favourable(rows), ~on.affected[:400])
        return ModelCase(found, rows, 6, 2, SINGLE)


def test_any_other_module_is_searched() -> None:
    module = trained(nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 2)))
    space = matrix_space(X, **FREE)
    with pytest.warns(GlobeCEWarning, match=r"searched as a black box.*layer Tanh"):
        found = as_model(module, space, rows=X)
    assert not found.exact
    own = module(torch.tensor(X, dtype=torch.float32)).argmax(dim=1).numpy() == 1
    np.testing.assert_array_equal(found.favourable(X), own)
    affected = X[~own][:30]
    delta = np.array([[1.0, -1.0, 0.0, 0.0, 0.0, 0.0]])
    (k,) = found.first_flip(affected, delta, np.full((1, len(affected)), 6.0))
    hit = np.isfinite(k)
    assert hit.any()
    assert found.favourable(affected[hit] + k[hit, None] * delta).all()
    before = affected[hit] + (k[hit] * (1.0 - 2e-6))[:, None] * delta
    early = found.favourable(before)
    # what flips before is within the clearance that single precision asks for; the last step may be twice too long
    assert isinstance(found, BlackBox)
    assert found.needed_rise is not None
    assert found.needed_rise < 5e-5
    (scores,) = found.decide.scores(before, len(before))
    assert (scores[early] < 3.0 * found.needed_rise).all()


def test_parts_in_another_order_are_searched() -> None:
    with pytest.warns(GlobeCEWarning, match="run in order, do not give its output"):
        found = as_model(trained(Shared()), matrix_space(X), rows=X)
    assert not found.exact
