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
import globece
from globece import Climb, FeatureSpace, explain
from sklearn.linear_model import LogisticRegression
warnings.simplefilter("ignore")
torch.set_num_threads(1)
rng = np.random.default_rng(0)
M = rng.normal(size=(200, 6)) * [1, 1, 1, 9, 9, 9] + [0, 0, 0, 50, 50, 288]
y = (((M - M.mean(0)) / M.std(0)).sum(1) > 0.5).astype(int)
weights = torch.Generator().manual_seed(0)
def module(bend):
    layers = torch.nn.Sequential(torch.nn.Linear(6, 16), bend(), torch.nn.Linear(16, 8), bend(), torch.nn.Linear(8, 2))
    for p in layers.parameters():
        p.data = torch.randn(p.shape, generator=weights) * 0.4
    layers[0].weight.data /= torch.tensor(M.std(0), dtype=torch.float32)
    layers[0].bias.data -= layers[0].weight.data @ torch.tensor(M.mean(0), dtype=torch.float32)
    scores = layers.double()(torch.tensor(M)).detach().numpy()
    layers[-1].bias.data[1] -= round(float(np.quantile(scores[:, 1] - scores[:, 0], 0.7)), 2)  # most are affected
    return layers.float()
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
                   "rows": ex.rows.tolist(), "scalars": [None if np.isinf(v) else v for v in k[0].tolist()]}
json.dump(found, sys.stdout)
"""


def run(setting: str, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **SETTINGS[setting]}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_contract_holds(setting: str) -> None:
    found = run(setting, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
                "tests/contract/test_network_models.py", "-k", CONTRACT)  # fmt: skip
    assert found.returncode == 0, found.stdout[-3000:]
    assert " passed" in found.stdout


@cache
def explained(setting: str) -> dict:
    found = run(setting, "-c", EXPLAINED)
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
    np.testing.assert_allclose(mine, other, rtol=2e-5, atol=2e-5)
