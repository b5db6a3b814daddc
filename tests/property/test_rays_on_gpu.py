"""Rays on a GPU are the processor's: to the last bit for trees, to the clearance for networks.

The kernel for trees is compiled as plain C++ here, and the search for networks runs on torch's processor device: the
same code as on a GPU, which `python -m bench gpu` compares again on a real one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import globece
from globece import explain, rays
from globece.bundle import bundle
from globece.errors import InvalidParameterError, MissingExtraError
from globece.models import devices
from globece.models.compiling.adapt import as_model
from globece.models.cuda.machine import source
from globece.models.linear import on_cuda as on_cuda_lines
from globece.models.linear.half_spaces import LinearModel
from globece.models.networks.layers import compile_net
from globece.models.networks.plain import first_flip_plain
from globece.models.networks.rays import Search, first_flips
from globece.models.trees import on_cuda
from globece.models.trees import rays as tree_rays
from globece.models.trees.ensemble import TreeEnsemble, _routes
from globece.models.trees.on_cuda import Follower, is_supported
from tests.on_host import COMPILER, Host
from tests.problems import matrix, matrix_space
from tests.property.test_network_rays import SHAPES, SPACES, network
from tests.property.test_trees import random_directions, random_inputs, random_reading, random_rows, random_space

compiler = pytest.mark.skipif(
    COMPILER is None, reason="no C++ compiler (g++, clang++ or c++) to run the GPU's kernel with"
)


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    return Host(tmp_path_factory.mktemp("kernel"))


def random_ensemble(rng: np.random.Generator) -> TreeEnsemble:
    space, reading = random_space(rng), random_reading(rng)
    assert reading.classes is not None
    favourable = int(rng.integers(len(reading.classes)))
    threshold = None if rng.random() < 0.7 else float(rng.choice([0.0, 0.3, 0.5, 1.0]))
    return TreeEnsemble.from_reading(reading, space, random_inputs(rng), favourable, threshold)


def random_rays(rng: np.random.Generator, n: int) -> tuple[Any, Any, Any, Any]:
    """Rows, some outside their ranges; directions; ends, some endless; and starts, the same for all or one each."""
    Z, D = random_rows(rng, n), random_directions(rng, 4)
    Z[:, :3] += rng.choice([0.0, 0.0, 0.0, -30.0, 30.0], (n, 3))
    limit = rng.choice([0.0, 0.5, 1.0, 2.0, 10.0, 1e7, np.inf], (4, n))
    start = np.zeros((1, 1)) if rng.random() < 0.5 else rng.choice([0.0, 0.1, 0.5, 1.0, 3.0], (4, n))
    return Z, D, limit, start


@compiler
@pytest.mark.parametrize("seed", range(60))
def test_trees_are_the_same_to_the_last_bit(seed: int, host: Host) -> None:
    rng = np.random.default_rng(seed)
    model = random_ensemble(rng)
    if not is_supported(model.rule):
        assert model.rule.kind >= kernel_kind("PROBABILITY_SINGLE")
        return
    Z, D, limit, start = random_rays(rng, 40)
    expected = model.first_flip(Z, D, limit, None if start.size == 1 else start)
    found = Follower.of(host, *model._arrays).follow(_routes(model.space, D), Z, limit, start)
    np.testing.assert_array_equal(found, expected)


def kernel_kind(name: str) -> int:
    from globece.models.trees import decision_rule

    return int(getattr(decision_rule, name))


@compiler
def test_doubtful_outcomes_of_a_softmax_go_to_the_processor(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exponentials round differently on a GPU, so it must not decide by them."""
    left, follow = [], tree_rays.follow

    def counted(*arguments: Any) -> Any:
        left.append(arguments[5].shape)
        return follow(*arguments)

    monkeypatch.setattr(tree_rays, "follow", counted)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        model = random_ensemble(rng)
        if model.rule.kind in (kernel_kind("SOFTMAX_SINGLE"), kernel_kind("SOFTMAX_DOUBLE")):
            Z, D, limit, start = random_rays(rng, 20)
            found = Follower.of(host, *model._arrays).follow(_routes(model.space, D), Z, limit, start)
            assert not np.isnan(found).any()
        if left:
            return
    raise AssertionError("no outcome was in doubt")


@compiler
def test_batches_and_threads_change_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    model = random_ensemble(rng)
    while not is_supported(model.rule):
        model = random_ensemble(rng)
    Z, D, limit, start = random_rays(rng, 300)
    expected = model.first_flip(Z, D, limit, None if start.size == 1 else start)
    for most, threads in ((17, 128), (400, 1024), (5000, 128)):
        monkeypatch.setattr(on_cuda, "MOST_RAYS", most)
        follower = Follower.of(Host(host.folder, at_once=threads), *model._arrays)
        np.testing.assert_array_equal(follower.follow(_routes(model.space, D), Z, limit, start), expected)


@compiler
def test_a_large_ensemble_is_the_same(host: Host) -> None:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

    X = matrix(400)
    y = (X[:, 0] + 0.3 * X[:, 1] > np.median(X[:, 0] + 0.3 * X[:, 1])).astype(int)
    space = matrix_space(X)
    for estimator in (
        GradientBoostingClassifier(n_estimators=70, random_state=0),
        RandomForestClassifier(33, max_depth=6, random_state=0),
    ):
        model: Any = as_model(estimator.fit(X, y), space, favourable=1, rows=X).followed
        Z = X[~model.favourable(X)]
        D = np.random.default_rng(0).normal(size=(3, space.width))
        limit = np.full((3, len(Z)), 8.0)
        found = Follower.of(host, *model._arrays).follow(_routes(space, D), Z, limit, np.zeros((1, 1)))
        np.testing.assert_array_equal(found, model.first_flip(Z, D, limit))
        assert 0.1 < np.isfinite(found).mean() < 1.0


# -- linear models -------------------------------------------------------------------------------------------------


def linear_models(X: Any) -> dict[str, Any]:
    """Return pipelines whose margins are lines, several lines, and lines with steps."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

    score = X[:, 0] / X[:, 0].std() - X[:, 1] / X[:, 1].std() + X[:, 2]
    two, three = (score > np.quantile(score, 0.7)).astype(int), np.digitize(score, np.quantile(score, [0.3, 0.7]))
    binned = make_column_transformer(
        (KBinsDiscretizer(5, quantile_method="averaged_inverted_cdf"), [0, 1]), remainder=StandardScaler()
    )
    return {
        "one margin": make_pipeline(StandardScaler(), LogisticRegression()).fit(X, two),
        "two margins": make_pipeline(StandardScaler(), LogisticRegression()).fit(X, three),
        "edges": make_pipeline(binned, LogisticRegression()).fit(X, two),
    }


@compiler
@pytest.mark.parametrize("where", ["free", "ranges"])
@pytest.mark.parametrize("kind", ["one margin", "two margins", "edges"])
def test_half_spaces_are_the_same_to_the_last_bit(
    kind: str, where: str, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, rng = matrix(400), np.random.default_rng(5)
    space = matrix_space(X, **SPACES[where])
    model: Any = as_model(linear_models(X)[kind], space, favourable=1, rows=X).followed
    assert isinstance(model, LinearModel)
    Z = X[~model.favourable(X)]
    Z[::5, 0], Z[::7, 2] = X[:, 0].max() * 2.0, -9.0  # outside their ranges
    D = rng.normal(size=(6, space.width)) * X.std(axis=0) * rng.choice([0.0, 1.0, 1.0], (6, space.width))
    for f in space.movable:
        if f.sense:
            D[:, f.start] = f.sense * np.abs(D[:, f.start])
    limit, start = np.full((6, len(Z)), 3.0), rng.choice([0.0, 0.2, 1.0], (6, len(Z)))
    for begin in (None, start):
        expected = model.first_flip(Z, D, limit, begin)
        with monkeypatch.context() as patched:
            patched.setattr(LinearModel, "_machine", lambda *_: host)
            for most in (100, 10**6):
                patched.setattr(on_cuda_lines, "MOST_RAYS", most)
                np.testing.assert_array_equal(model.first_flip(Z, D, limit, begin), expected)
        assert 0.05 < np.isfinite(expected).mean() < 1.0


def test_whole_steps_and_few_directions_stay_on_the_processor() -> None:
    X = matrix(60)
    free, stepping = matrix_space(X, **SPACES["free"]), matrix_space(X)
    for space, m, expected in ((free, 4, 240.0), (free, 1, 0.0), (stepping, 4, 0.0)):
        routes = bundle(space, np.ones((m, space.width)))
        assert on_cuda_lines.work_of(routes, np.ones((m, len(X)))) == expected


# -- networks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", SPACES)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_search_for_networks_equals_the_kernel(shape: str, where: str) -> None:
    torch = pytest.importorskip("torch")
    from globece.models.networks.on_device import Device, Wanted

    rng = np.random.default_rng(list(SHAPES).index(shape))
    X = matrix(200)
    space = matrix_space(X, **SPACES[where])
    sizes, leak = SHAPES[shape]
    layers = network(sizes, leak, X, rng)
    X = X[(layers(X) < 0).any(axis=1)][:50]
    X[::7, 0], X[::9, 4] = np.nan, np.nan  # missing numbers, which the network fills
    X[3, 0], X[5, 2] = X[:, 0].max() * 3.0, -4.0  # outside their ranges
    D = rng.normal(size=(4, space.width)) * [1.0, 2.0, 1.0, 1.0, 1.0, 8.0]
    for f in space.movable:
        if f.sense:
            D[:, f.start] = f.sense * np.abs(D[:, f.start])
    D[1, 0] = 0.0  # nothing but steps
    D[2, [0, 1, 5]] = 0.0  # nothing but a switch
    net, fill = compile_net(layers, np.zeros(sizes[-1], dtype=bool)), np.nanmean(X, axis=0)
    for start in (0.0, 0.4):
        limit, begin, nothing = np.full((4, len(X)), 3.0), np.full((4, len(X)), start), np.zeros((4, len(X)))
        expected, jumps = first_flips(net, space, X, fill, D, Search(limit, begin, nothing))
        device = Device.of(net, space, "cpu", few=0)
        rows = device.rows(X, device.there(X), np.zeros(space.width), fill, D)
        for d in range(4):
            wanted = Wanted(*(torch.tensor(w[d]) for w in (limit, begin, nothing, nothing)))
            k, jumped = device.search(rows, d, wanted)
            np.testing.assert_allclose(k.numpy(), expected[d], rtol=1e-9)
            np.testing.assert_array_equal(jumped.numpy(), jumps[d])
        assert np.isfinite(expected).any()


ROW = [
    66.90214006144106, 189.0446005780021, 13.225817465632838, 109.70108180173436, 6.7898948730876185,
    3.985165905519902, 3.9815934685827514, 69.92766048925549, 69.23454983710207, 6.053376830364529,
    3.1137387252742377, 8.469505518087686, 0.23555035792866227, 49.771715288384186, 0.04666915339627993,
    0.9090945455058642, 0.8374423872130714, 95.88889679414623, 73.75944856146786, 1.1630855388302457,
    1.0509538543691814, 0.9504882703860401, 100.36147743949758
]  # fmt: skip


@pytest.mark.paper_data
@pytest.mark.parametrize("on", ["processor", "device"])
def test_rounding_hides_no_root(on: str) -> None:
    """Next to a root, bounds on what still bends are smaller than the rounding of the outputs: 1 ray of 25,000."""
    pytest.importorskip("torch")
    from globece.models.networks.device_flips import OnDevice
    from paper.cases import case

    one = case("heloc", "dnn")
    model: Any = as_model(one.own, one.space, rows=one.rows[:200]).followed
    Z, D = np.array([ROW]), np.zeros((1, 23))
    D[0, [1, 21]] = -125.29166855559187, -0.7844568863911938
    limit = np.full((1, 1), 5.000000005005001)
    expected = first_flip_plain(model.layers, model.space, Z[0], model.fill, D[0], float(limit[0, 0]))
    device = OnDevice.of(model, "cpu", few=0)
    found = model.first_flip(Z, D, limit) if on == "processor" else device.first_flip(model, Z, D, limit, None)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def module(X: Any, seed: int) -> Any:
    """Return a module that is favourable for about a third of the rows."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(seed)
    nn, width = torch.nn, X.shape[1]
    layers = (nn.Linear(width, 24), nn.ReLU(), nn.Linear(24, 16), nn.LeakyReLU(0.1), nn.Linear(16, 2))
    made, rows = nn.Sequential(*layers).eval(), torch.tensor(X, dtype=torch.float32)
    with torch.no_grad():
        made[0].weight /= rows.std(dim=0)
        ahead = made(rows)[:, 1] - made(rows)[:, 0]
        made[4].bias[1] -= torch.quantile(ahead, 2 / 3)
    return made


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("steps", [False, True])
def test_a_networks_scalars_agree_and_flip(seed: int, steps: bool) -> None:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from globece.models.networks.device_flips import OnDevice

    X, rng = matrix(500), np.random.default_rng(seed)
    space = matrix_space(X) if steps else matrix_space(X, ranges="unbounded", whole=[])
    if seed % 2:
        estimator: Any = module(X, seed)
    else:  # its steps stay on the processor
        y = (X[:, 0] > np.median(X[:, 0])).astype(int)
        estimator = make_pipeline(StandardScaler(), MLPClassifier((12, 8), max_iter=30, random_state=seed))
        with pytest.warns(match="Maximum iterations"):
            estimator.fit(X, y)
    model: Any = as_model(estimator, space, favourable=1, rows=X).followed
    Z = X[~model.favourable(X)][:150]
    D = rng.normal(size=(3, space.width)) * X.std(axis=0)
    limit = np.full((3, len(Z)), 4.0)
    start = rng.choice([0.0, 0.2, 1.0], limit.shape)
    on = OnDevice.of(model, "cpu", few=0)
    for begin in (None, start):
        expected, found = model.first_flip(Z, D, limit, begin), on.first_flip(model, Z, D, limit, begin)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        for d in range(3):
            reached = np.isfinite(found[d])
            assert model.favourable(rays.positions(space, Z[reached], D[d], found[d][reached])).all()
    assert np.isfinite(found).any()


# -- the choice of a device ----------------------------------------------------------------------------------------


def test_a_wrong_device_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOBECE_DEVICE", "gpu")
    with pytest.raises(InvalidParameterError, match="GLOBECE_DEVICE must be one of auto, cpu, cuda; got 'gpu'"):
        devices.wanted()


def test_insisting_on_cuda_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOBECE_DEVICE", "cuda")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingExtraError, match=r"globece\[gpu-cuda13\]"):
        devices.cupy_for(1.0, 2.0)


def test_little_work_stays_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_usable_cupy", lambda: "cupy")
    monkeypatch.delenv("GLOBECE_DEVICE", raising=False)
    assert devices.cupy_for(1.0, 2.0) is None
    assert devices.cupy_for(2.0, 2.0) == "cupy"
    monkeypatch.setenv("GLOBECE_DEVICE", "cpu")
    assert devices.cupy_for(2.0, 2.0) is None


def test_nothing_heavy_is_imported_without_a_gpu() -> None:
    code = (
        "import sys, numpy as np, globece\n"
        "from globece.models import devices\n"
        "assert devices.cupy_for(1e12, 1.0) is None or 'cupy' in sys.modules\n"
        "assert devices.torch_device_for(1e12, 1.0, None) is None\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@compiler
def test_an_explanation_says_that_a_gpu_was_used(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernel on the processor in place of a GPU: the same explanation, and a note."""
    from sklearn.ensemble import GradientBoostingClassifier

    X = matrix(300)
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    space, model = matrix_space(X), GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X, y)

    def followed(self: TreeEnsemble, n_rays: int) -> Follower:
        devices.count(n_rays)
        return Follower.of(host, *self._arrays)

    asked: dict[str, Any] = {"space": space, "n_directions": 2, "rng": 0}
    before = explain(model, X, **asked)
    monkeypatch.setattr(TreeEnsemble, "_on_cuda", followed)
    after = explain(model, X, **asked)
    np.testing.assert_array_equal(after.scalars, before.scalars)
    assert [note for note in after.provenance.notes if note.endswith("rays were followed on a CUDA device")]
    assert not [note for note in before.provenance.notes if "CUDA" in note]


def test_the_kernel_is_part_of_the_package() -> None:
    for module in (on_cuda, on_cuda_lines):
        assert source(module.SOURCE).count("KERNEL follow_rays(") == 1
        assert module.SOURCE.is_relative_to(Path(globece.__file__).parent)


@pytest.mark.skipif(not devices._usable_cupy(), reason="no CUDA device, or no CuPy, here")
def test_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOBECE_DEVICE", "cuda")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = random_ensemble(rng)
        Z, D, limit, start = random_rays(rng, 40)
        found = model.first_flip(Z, D, limit, None if start.size == 1 else start)
        monkeypatch.setenv("GLOBECE_DEVICE", "cpu")
        np.testing.assert_array_equal(found, model.first_flip(Z, D, limit, None if start.size == 1 else start))
        monkeypatch.setenv("GLOBECE_DEVICE", "cuda")
