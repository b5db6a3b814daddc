"""Recourse that must survive something, from a model that is searched, in columns that are rounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import globece as gce


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_searched_model_can_be_asked_for_robust_recourse(dtype: str) -> None:
    """Seed 10030 of the adversary: the search knew its model's precision, and took that for a parameter."""
    X = np.random.default_rng(0).uniform(0, 10, (60, 2)).astype(dtype)

    def model(rows: np.ndarray) -> np.ndarray:
        return (rows[:, 0] + np.sin(rows[:, 1]) > 6).astype(int)

    asked: dict[str, Any] = {"settings": gce.Settings(grid=16), "search": gce.Climb(rays=20)}
    ex = gce.explain(model, X, rng=0, n_directions=2, robust=gce.Robust(noise=0.2, draws=3), **asked)
    assert ex.provenance.method == "searched"
    assert ex.n_covered > 0
    after = ex.counterfactuals().after
    assert (model(after) == 1).all()
    again = ex.apply(X)  # the same model object once more, with all that it has learnt of itself
    assert (again.scalars == ex.scalars).all()
