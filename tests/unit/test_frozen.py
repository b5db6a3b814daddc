"""Frozen means frozen: results cannot be written into, and what is kept for speed is neither shared nor pickled."""

from __future__ import annotations

import gc as garbage
import pickle
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import pytest

import globece
from globece.baselines import fast_ares
from globece.kept import Kept
from tests.problems import approve, matrix, matrix_space, mixed_frame

X = mixed_frame(200)


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    audit_settings = globece.AuditSettings(permutations=20, resamples=20)
    return {
        "explanation": globece.explain(approve, X, rng=0, settings=globece.Settings(grid=16)),
        "audit": globece.audit(
            approve, X, by={"age": [40]}, favourable=1, rng=0, audit_settings=audit_settings,
            settings=globece.Settings(grid=8), search=globece.Climb(rays=200),
        ),
        "rules": fast_ares(approve, X, rng=0),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["explanation", "audit", "rules"])
def test_arrays_of_a_result_are_read_only(name: str, results: dict[str, Any]) -> None:
    found = results[name]
    arrays = {f.name: getattr(found, f.name) for f in fields(found)}
    arrays = {k: v for k, v in arrays.items() if isinstance(v, np.ndarray)}
    assert arrays
    for array in arrays.values():
        assert not array.flags.writeable
    ex = found.explanation if name == "audit" else found
    for array in (ex.best_costs, ex.inputs):
        with pytest.raises(ValueError, match="read-only"):
            array[:1] = 0.0


def test_the_callers_own_arrays_stay_as_they_are(results: dict[str, Any]) -> None:
    from dataclasses import replace

    mine = results["explanation"].scalars.copy()
    again = replace(results["explanation"], scalars=mine)
    assert mine.flags.writeable
    assert not again.scalars.flags.writeable


def test_caches_are_not_pickled(results: dict[str, Any]) -> None:
    ex = results["explanation"]
    before = len(pickle.dumps(ex.space))
    _ = ex.best_costs, ex.space.blocks, ex.space.rounding, ex.inputs
    assert len(pickle.dumps(ex.space)) == before
    again = pickle.loads(pickle.dumps(ex.space))
    assert set(vars(again)) == {f.name for f in fields(again)}
    pd.testing.assert_frame_equal(again.decode(ex.inputs), ex.space.decode(ex.inputs))


def test_nobody_writes_into_a_space_or_a_cost_model() -> None:
    rows = matrix(100)
    space = matrix_space(rows)
    cost = globece.CostModel.bins(space)
    own = {f.name for f in fields(space)} | {n for n in dir(type(space)) if not n.startswith("__")}
    globece.explain(lambda X: (X[:, 0] > 0).astype(int), rows, space=space, cost=cost, rng=0)
    assert set(vars(space)) <= own
    assert set(vars(cost)) <= {f.name for f in fields(cost)} | set(dir(type(cost)))


def test_what_is_kept_goes_with_its_owner() -> None:
    class Owner: ...

    kept: Kept[Owner, list[int]] = Kept()
    owner = Owner()
    assert kept.get(owner, lambda: [1]) is kept.get(owner, lambda: [2])
    assert kept.known(Owner()) is None
    del owner
    garbage.collect()
    assert not kept._values
