"""Kernels over many rays say what their plain twins say of one."""

from __future__ import annotations

import numpy as np
import pytest

from globece import CostModel, FeatureSpace, rays
from globece.bundle import bundle
from globece.pricing import costs_at, horizons
from tests.problems import matrix, matrix_space, mixed_frame, mixed_space


def some_directions(space: FeatureSpace, n: int = 60) -> np.ndarray:
    rng = np.random.default_rng(5)
    D = rng.normal(size=(n, space.width)) * (rng.random((n, space.width)) < 0.4)
    for f in space.features:
        if not f.can_move:
            D[:, f.columns] = 0.0
        elif f.sense and not f.is_block:
            D[:, f.start] = f.sense * np.abs(D[:, f.start])
    D[3, :] = 0.0
    return D


def problems() -> list[tuple[str, FeatureSpace, np.ndarray, CostModel]]:
    X, frame = matrix(200), mixed_frame(200)
    bound, free = matrix_space(X), matrix_space(X, ranges="unbounded", whole=[])
    mixed = mixed_space(frame)
    Z = mixed.encode(frame)
    holes = np.where((np.random.default_rng(0).random(Z.shape) < 0.1) & (np.arange(Z.shape[1]) < 2), np.nan, Z)
    return [
        ("bound", bound, bound.encode(X), CostModel.bins(bound)),
        ("free", free, free.encode(X), CostModel.bins(free)),
        ("free, l2", free, free.encode(X), CostModel.bins(free, norm="l2")),
        ("mixed", mixed, Z, CostModel.bins(mixed, weights={mixed.movable[0].name: 2.5})),
        ("deciles", mixed, Z, CostModel.deciles(mixed, frame)),
        ("missing", mixed, holes if not mixed.features[0].is_block else Z, CostModel.bins(mixed, norm="l2")),
    ]


@pytest.mark.parametrize("case", problems(), ids=lambda c: c[0])
def test_bundle_lists_movers_and_switches(case: tuple[str, FeatureSpace, np.ndarray, CostModel]) -> None:
    _, space, _, _ = case
    D = some_directions(space)
    made = bundle(space, D)
    for d, delta in enumerate(D):
        mine = slice(made.first_mover[d], made.first_mover[d + 1])
        assert list(zip(made.column[mine], made.step[mine], strict=True)) == [
            (f.start, step) for f, step in rays.movers(space, delta)
        ]
        turning = list(rays.switches(space, delta))
        assert made.first_switch[d + 1] - made.first_switch[d] == len(turning)
        for q, s in zip(range(made.first_switch[d], made.first_switch[d + 1]), turning, strict=True):
            assert (made.start[q], made.target[q]) == (s.feature.start, s.target)
            np.testing.assert_array_equal(made.bound[q, : len(s.bounds)], s.bounds)


@pytest.mark.parametrize("case", problems(), ids=lambda c: c[0])
def test_horizons_and_costs_are_their_twins(case: tuple[str, FeatureSpace, np.ndarray, CostModel]) -> None:
    _, space, Z, cost = case
    D = some_directions(space)
    made = bundle(space, D)
    far = horizons(cost, Z, made, 10.0)
    k = np.random.default_rng(1).random(far.shape) * np.minimum(far, 50.0)
    k[:, ::7] = np.inf
    paid = costs_at(cost, Z, made, k)
    for d, delta in enumerate(D):
        np.testing.assert_allclose(far[d], rays.horizon(cost, Z, delta, 10.0), rtol=1e-14)
        np.testing.assert_allclose(paid[d], rays.cost_at(cost, Z, delta, k[d]), rtol=1e-12, atol=1e-13)
