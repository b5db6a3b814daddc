"""The kernel for ReLU networks and its plain twin give the same first scalar."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from globece import FeatureSpace
from globece.models.networks.layers import Layers, compile_net
from globece.models.networks.plain import first_flip_plain
from globece.models.networks.rays import Search, first_flips
from tests.problems import matrix, matrix_space

SHAPES: dict[str, tuple[tuple[int, ...], float]] = {
    "one output": ((8, 6, 1), 0.0),
    "two conditions": ((10, 2), 0.0),
    "leaky and deep": ((7, 9, 5, 6, 1), 0.2),
    "three conditions": ((12, 8, 3), 0.0),
    "straight": ((5, 4, 1), 1.0),
}
SPACES: dict[str, dict[str, Any]] = {
    "whole": {},
    "free": {"ranges": "unbounded", "whole": []},
    "ranges": {"whole": [], "decreasing": ["debts"]},
    "endless steps": {"ranges": "unbounded"},
}


def network(sizes: tuple[int, ...], leak: float, X: np.ndarray, rng: np.random.Generator) -> Layers:
    """Return a random network that is favourable for about a fifth of the rows."""
    weights = [rng.normal(size=(a, b)) / np.sqrt(a) for a, b in pairwise((X.shape[1], *sizes))]
    weights[0] /= X.std(axis=0)[:, None]
    biases = [rng.normal(size=b) * 0.3 for b in sizes]
    biases[0] = biases[0] - X.mean(axis=0) @ weights[0]
    layers = Layers(tuple(weights), tuple(biases), tuple(np.full(b, leak) for b in sizes[:-1]))
    share = 0.2 ** (1.0 / sizes[-1])
    return layers.after(np.eye(sizes[-1]), -np.quantile(layers(X), 1.0 - share, axis=0))


@pytest.mark.parametrize("where", SPACES)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_kernel_equals_its_twin(shape: str, where: str) -> None:
    rng = np.random.default_rng(list(SHAPES).index(shape))
    X = matrix(120)
    space = matrix_space(X, **SPACES[where])
    sizes, leak = SHAPES[shape]
    layers = network(sizes, leak, X, rng)
    X = X[(layers(X) < 0).any(axis=1)][:12]
    D = rng.normal(size=(5, space.width)) * [1.0, 2.0, 1.0, 1.0, 1.0, 8.0]
    for f in space.movable:
        if f.sense:
            D[:, f.start] = f.sense * np.abs(D[:, f.start])
    D[1, 0] = 0.0  # nothing but steps
    D[2, [0, 1, 5]] = 0.0  # nothing but a switch
    net, fill = compile_net(layers, np.zeros(sizes[-1], dtype=bool)), np.full(space.width, np.nan)
    limit, nothing = np.full((5, len(X)), 3.0), np.zeros((5, len(X)))
    found, _ = first_flips(net, space, X, fill, D, Search(limit, nothing, nothing))
    plain = [[first_flip_plain(layers, space, row, fill, delta, 3.0) for row in X] for delta in D]
    np.testing.assert_allclose(found, plain, rtol=1e-9)
    assert np.isfinite(found).any()


def test_many_steps_nearly_cancel() -> None:
    """Two stairs that pull against each other: a saw, of which the first tooth that is long enough counts."""
    X = np.array([[0.0, 0.0], [1000.0, 1000.0]])
    space = FeatureSpace.from_matrix(X, columns=["a", "b"], whole=["a", "b"])
    layers = Layers((np.array([[1.0], [-1.37]]), np.eye(1)), (np.array([5.0]), np.array([-6.1])), (np.zeros(1),))
    net, fill = compile_net(layers, np.array([False])), np.full(2, np.nan)
    D = np.array([[137.01, 100.0], [137.5, 100.3], [13.7, 10.0]])
    limit, nothing = np.full((3, 1), 9.0), np.zeros((3, 1))
    found, _ = first_flips(net, space, X[:1], fill, D, Search(limit, nothing, nothing))
    plain = [[first_flip_plain(layers, space, X[0], fill, delta, 9.0)] for delta in D]
    np.testing.assert_allclose(found, plain, rtol=1e-9)
    assert np.isfinite(found).any()
