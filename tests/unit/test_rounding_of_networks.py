"""The rounding error that a network's scalars keep clear of: larger than any order of summation gives, but not much."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from globece import FeatureSpace
from globece.models.inputs import identity
from globece.models.networks.network import ReLUNetwork

torch = pytest.importorskip("torch")
nn: Any = torch.nn

WIDTH = 7
MEANS, SPREADS = np.array([0, 0, 50, 50, 300, 1990, 0.0]), np.array([1, 1, 5, 20, 9, 5, 0.01])


def made(seed: int, *layers: Any) -> tuple[Any, np.ndarray]:
    """A module with random weights that takes raw rows to scale, and rows; the same on every processor."""
    rng = np.random.default_rng(seed)
    module = nn.Sequential(*layers).eval()
    for leaf in module:
        if isinstance(leaf, nn.Linear):
            weight = rng.normal(size=tuple(leaf.weight.shape)) / np.sqrt(leaf.in_features)
            bias = rng.normal(size=leaf.out_features) * 0.3
            if leaf.in_features == WIDTH:
                weight = weight / SPREADS
                bias = bias - np.array([sum(row) for row in (weight * MEANS).tolist()])
            leaf.weight.data, leaf.bias.data = torch.tensor(weight).float(), torch.tensor(bias).float()
        elif isinstance(leaf, nn.BatchNorm1d):
            for values, low, high in ((leaf.running_var, 0.05, 2.0), (leaf.weight, 0.3, 2.0)):
                values.data = torch.tensor(rng.uniform(low, high, leaf.num_features)).float()
            for values in (leaf.running_mean, leaf.bias):
                values.data = torch.tensor(rng.normal(size=leaf.num_features)).float()
    return module, rng.normal(size=(400, WIDTH)) * SPREADS * 2.0 + MEANS


def in_orders(module: Any, X: np.ndarray, n: int) -> Any:
    """Single-precision scores with the inputs and units of every layer in other orders."""
    rng = np.random.default_rng(0)
    for _ in range(n):
        order = torch.tensor(rng.permutation(WIDTH))
        rows = torch.tensor(X).float()[:, order]
        for leaf in module:
            if isinstance(leaf, nn.Linear):
                after = torch.tensor(rng.permutation(leaf.out_features)) if leaf.out_features > 2 else torch.arange(2)
                rows, order = rows @ leaf.weight[after][:, order].T + leaf.bias[after], after
            elif isinstance(leaf, nn.BatchNorm1d):
                given = (leaf.running_mean, leaf.running_var, leaf.weight, leaf.bias)
                rows = nn.functional.batch_norm(rows, *(g[order] for g in given), False, 0.0, leaf.eps)
            else:
                rows = leaf(rows)
        yield (rows[:, 1].double() - rows[:, 0].double()).detach().numpy()


def followed(module: Any, X: np.ndarray) -> ReLUNetwork:
    return ReLUNetwork.from_model(module, FeatureSpace.from_matrix(X), identity(WIDTH), favourable=1)


LAYERS: dict[str, Any] = {
    "plain": lambda: (nn.Linear(WIDTH, 16), nn.ReLU(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 2)),
    "normalised": lambda: (nn.Linear(WIDTH, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2)),
    "normalised twice": lambda: (
        nn.Linear(WIDTH, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.LeakyReLU(0.1),
        nn.Linear(8, 2),
    ),
    "normalised after the bend": lambda: (nn.Linear(WIDTH, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 2)),
    "no bend between": lambda: (nn.Linear(WIDTH, 16), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2)),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("which", LAYERS)
def test_no_order_of_summation_errs_by_more_than_the_clearance_nor_by_far_less(which: str, seed: int) -> None:
    module, X = made(seed, *LAYERS[which]())
    network = followed(module, X)
    seen = torch.tensor(X).float().double().numpy()  # what the module gets
    exact = network.margin(seen)
    _, clearance = network.clearance(seen)
    with torch.inference_mode():
        off = np.array([np.abs(scores - exact) for scores in in_orders(module, X, 30)])
    assert (off < 0.75 * clearance).all()
    assert (off / clearance).max() > 0.04  # of 12,000 errors the largest is a good part of it


@pytest.mark.parametrize("seed", range(4))
def test_normalising_adds_little_to_the_error_of_the_sums_before(seed: int) -> None:
    """It scales each unit by itself: two more roundings, not those of a sum over all units."""
    module, X = made(seed, *LAYERS["normalised"]())
    first, norm = module[0], module[1]
    norm.running_mean.zero_()
    norm.bias.data.zero_()
    scale = (norm.weight / torch.sqrt(norm.running_var + norm.eps)).detach()
    folded = nn.Sequential(nn.Linear(WIDTH, 16), nn.ReLU(), nn.Linear(16, 2)).eval()
    folded[0].weight.data, folded[0].bias.data = first.weight.data * scale[:, None], first.bias.data * scale
    folded[2].load_state_dict(module[3].state_dict())
    (_, apart), (_, together) = (followed(m, X).clearance(X) for m in (module, folded))
    assert (apart >= together).all()
    assert (apart < 1.6 * together).all()
