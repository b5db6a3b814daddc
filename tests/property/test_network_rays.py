"""The kernel for ReLU networks and its plain twin give the same first scalar."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from globece.models.network_rays import Layers, Search, compile_net, first_flip_plain, first_flips
from tests.problems import matrix, matrix_space


def test_the_kernel_equals_its_twin() -> None:
    rng = np.random.default_rng(0)
    X = matrix(40)
    space = matrix_space(X)
    sizes = (space.width, 8, 6, 1)
    weights = tuple(rng.normal(size=(a, b)) / np.sqrt(a) for a, b in pairwise(sizes))
    biases = [rng.normal(size=b) * 0.3 for b in sizes[1:]]
    h = X
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        h = np.maximum(h @ weight + bias, 0.0)
    out = h @ weights[-1]
    biases[-1] = -np.quantile(out, 0.8, axis=0)
    X = X[(out + biases[-1] < 0)[:, 0]]
    n = len(X)
    layers = Layers(weights, tuple(biases), tuple(np.zeros(b) for b in sizes[1:-1]))
    net = compile_net(layers, np.array([False]))
    D = rng.normal(size=(4, space.width))
    fill, limit = np.full(space.width, np.nan), np.full((4, n), 3.0)
    found, _ = first_flips(net, space, X, fill, D, Search(limit, np.zeros((4, n)), np.zeros((4, n))))
    for i, delta in enumerate(D):
        for j, row in enumerate(X):
            plain = first_flip_plain(layers, space, row, fill, delta, 3.0)
            np.testing.assert_allclose(found[i, j], plain, rtol=1e-9)
    assert np.isfinite(found).any()
