"""The contract holds on other processors: the libraries are told to behave as if they ran on one.

What they sum, and in which order, depends on the processor. Each setting needs a process of its own, since libraries
read it when they are loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from globece import FeatureSpace
from globece.rays import positions

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
SETTINGS = {
    "as it is": {},
    "MKL compatible": {"MKL_CBWR": "COMPATIBLE"},
    "ATen default": {"ATEN_CPU_CAPABILITY": "default"},
    "older": {"ATEN_CPU_CAPABILITY": "avx2", "OPENBLAS_CORETYPE": "Nehalem", "MKL_CBWR": "AVX2"},
}
# Modules that sum in different ways, and linear models: the whole contract for each.
CONTRACT = (
    "(TestModules and (nested or normalised or double) and free and not threshold) or (TestPerceptrons and identity)"
)
EXPLAINED = """
import json, sys, warnings
import numpy as np, torch
from globece import Climb, FeatureSpace, explain
from sklearn.linear_model import LogisticRegression
warnings.simplefilter("ignore")
torch.set_num_threads(1)
rng = np.random.default_rng(0)
M = rng.normal(size=(200, 6)) * [1, 1, 1, 9, 9, 9] + [0, 0, 0, 50, 50, 288]
y = (((M - M.mean(0)) / M.std(0)).sum(1) > 0.5).astype(int)
weights = iter(np.array(json.loads(v), dtype=np.float32) for v in sys.stdin)
def module(bend):
    layers = torch.nn.Sequential(torch.nn.Linear(6, 16), bend(), torch.nn.Linear(16, 8), bend(), torch.nn.Linear(8, 2))
    for p in layers.parameters():
        p.data = torch.from_numpy(next(weights))
    return layers
narrow = M.astype(np.float32)
linear = LogisticRegression()
linear.classes_, linear.n_features_in_ = np.array([0, 1]), 6
linear.coef_ = (1.0 / M.std(0))[None].astype(np.float32)
linear.intercept_ = np.array([-(M.mean(0) / M.std(0)).sum() - 0.5], dtype=np.float32)
found = {}
for name, model, rows in (("network", module(torch.nn.ReLU), M), ("searched", module(torch.nn.Tanh), M),
                          ("single precision", linear, narrow)):
    ex = explain(model, rows, rng=0, search=Climb(rays=1500), space=FeatureSpace.from_matrix(rows))
    delta = ex.space.check_directions(np.eye(6)[[0]] - 0.5 * np.eye(6)[[4]])
    k = ex.model.first_flip(ex.inputs, delta, np.full((1, ex.n_affected), 6.0))
    after = ex.counterfactuals().after
    if hasattr(model, "predict"):
        alone = [int(model.predict(row[None])[0]) for row in after]
    else:
        with torch.inference_mode():
            alone = [int(model(torch.tensor(row[None], dtype=torch.float32)).argmax()) for row in after]
    found[name] = {"method": ex.provenance.method, "flips": int(np.sum(alone)), "of": len(after),
                   "rows": ex.rows.tolist(), "scalars": [None if np.isinf(v) else v for v in k[0].tolist()],
                   "clearance": getattr(ex.model, "needed_rise", None)}
json.dump(found, sys.stdout)
"""


def matrix() -> np.ndarray:
    """The rows that are explained."""
    rng = np.random.default_rng(0)
    return np.asarray(rng.normal(size=(200, 6)) * [1, 1, 1, 9, 9, 9] + [0, 0, 0, 50, 50, 288])


@cache
def weights() -> str:
    """Those of two networks, each array a line of JSON; computed once, since sums depend on the processor."""
    rows, drawn = matrix(), np.random.default_rng(1)
    mean, spread, lines = rows.mean(axis=0), rows.std(axis=0), []
    for bend in (lambda values: np.maximum(values, 0.0), np.tanh):
        arrays = [drawn.normal(size=shape) * 0.4 for shape in ((16, 6), (16,), (8, 16), (8,), (2, 8), (2,))]
        arrays[0] /= spread
        arrays[1] -= arrays[0] @ mean
        values = rows
        for layer in (0, 2):
            values = bend(values @ arrays[layer].T + arrays[layer + 1])
        scores = values @ arrays[4].T + arrays[5]
        arrays[5][1] -= np.quantile(scores[:, 1] - scores[:, 0], 0.7)  # most are affected
        lines += [json.dumps(a.tolist()) for a in arrays]
    return "\n".join(lines)


def run(setting: str, *command: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **SETTINGS[setting]}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, input=given
    )


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_contract_holds(setting: str) -> None:
    found = run(setting, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
                "tests/contract/test_network_models.py", "-k", CONTRACT)  # fmt: skip
    assert found.returncode == 0, found.stdout[-3000:]
    assert " passed" in found.stdout


@cache
def explained(setting: str) -> dict:
    found = run(setting, "-c", EXPLAINED, given=weights())
    assert found.returncode == 0, found.stderr[-3000:]
    return json.loads(found.stdout)


@pytest.mark.parametrize("setting", [s for s in SETTINGS if s != "as it is"])
@pytest.mark.parametrize("kind", ["network", "searched", "single precision"])
def test_results_agree_to_the_clearance(setting: str, kind: str) -> None:
    here, there = explained("as it is")[kind], explained(setting)[kind]
    for found in (here, there):
        assert found["method"] == ("searched" if kind == "searched" else "exact")
        assert found["flips"] == found["of"] > 50  # asked one by one, whatever the processor
    assert here["rows"] == there["rows"]
    mine, other = (np.array([np.inf if k is None else k for k in found["scalars"]]) for found in (here, there))
    np.testing.assert_array_equal(np.isfinite(mine), np.isfinite(other))
    assert np.isfinite(mine).sum() > 50
    if kind != "searched":  # our own sums in double precision
        np.testing.assert_allclose(mine, other, rtol=1e-7)
        return
    # What a search asks for was measured with the model, so that each scalar is clear of the boundary, and no further
    # from it than the clearance allows. So is everything between two of them: no other flip lies there.
    reached = np.isfinite(mine)
    clearances = here["clearance"], there["clearance"]
    for share in np.linspace(0.0, 1.0, 9):
        lead = leads(np.array(here["rows"])[reached], (1.0 - share) * mine[reached] + share * other[reached])
        assert (lead > 0.5 * min(clearances)).all()
        assert (lead < 3.0 * max(clearances)).all()


def leads(rows: np.ndarray, scalars: np.ndarray) -> np.ndarray:
    """By how much the searched network prefers the favourable class at these scalars, in double precision."""
    space = FeatureSpace.from_matrix(matrix())
    (delta,) = space.check_directions(np.eye(6)[[0]] - 0.5 * np.eye(6)[[4]])
    values = positions(space, matrix()[rows], delta, scalars)
    arrays = [np.array(json.loads(line), dtype=np.float32).astype(float) for line in weights().splitlines()[6:]]
    for layer in (0, 2):
        values = np.tanh(values @ arrays[layer].T + arrays[layer + 1])
    scores = values @ arrays[4].T + arrays[5]
    return np.asarray(scores[:, 1] - scores[:, 0])
