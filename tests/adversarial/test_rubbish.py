"""Promise 14: each public parameter, given rubbish, raises an error with its name, what is allowed and what came.

A sample of all calls by default; ``GLOBECE_ATTACK=1`` makes every one of them.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import globece as gce
from globece.errors import InvalidParameterError, describe
from tests.adversarial.doors import all_doors, f, more_values, rows, warm_up
from tests.adversarial.rubbish import VALUES, Door, tried

EVERYTHING = bool(os.environ.get("GLOBECE_ATTACK"))
PER_DOOR = 12  # calls, in the sample
DOORS = all_doors()
ALL = VALUES | more_values()


def calls(door: Door) -> list[tuple[str, str]]:
    """Parameters and values of a door; a sample that the door's name decides, every parameter about as often."""
    every = [(parameter, value) for parameter in door.parameters for value in ALL]
    if EVERYTHING:
        return every
    return random.Random(door.name).sample(every, min(PER_DOOR, len(every)))


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    warm_up()


@pytest.mark.parametrize("door", DOORS, ids=[d.name for d in DOORS])
def test_rubbish_is_refused_clearly_or_taken_for_what_it_is(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some values are the names of files
    wrong = []
    for parameter, value in calls(door):
        found = tried(door, parameter, ALL[value]())
        if found.kind == "obscure":
            wrong.append(f"{door.name}({parameter}={value}): {found.said}")
    assert not wrong, "\n".join(wrong)


def test_every_door_opens_with_what_it_takes() -> None:
    """Otherwise a refusal would say nothing about the value that was spoilt."""
    # what is read has no default, and here is no file to read
    readers = {d.name for d in DOORS if d.name.endswith((".read", ".from_json"))} | {"least_costs"}
    if "GLOBECE_DATA" not in os.environ:  # HELOC may not be redistributed
        readers |= {"load_heloc", "black_box_2"}
    assert {name: said for name, said in warm_up().items() if name not in readers} == {}


@pytest.mark.parametrize(
    "call",
    [
        lambda: gce.Settings(exact="no"),
        lambda: gce.Settings(exact=1),
        lambda: gce.Settings(timeout="soon"),
        lambda: gce.explain(f, rows(), settings={}),
        lambda: gce.audit(f, rows(), by="d", rng=10**5000),
        lambda: gce.FeatureSpace.from_frame(rows()).decode(np.zeros((1, 7)), wide=np.array([])),  # type: ignore[arg-type]
        lambda: gce.explain(f, rows(), settings=0),
        lambda: gce.explain(f, rows(), settings=np.array([1, 2])),
        lambda: gce.audit(f, rows(), by="d", audit_settings={}),
        lambda: gce.explain(f, rows(), n_directions=True),
        lambda: gce.explain(f, rows(), budget=np.array([1.0])),
        lambda: gce.explain(f, rows(), favourable=np.array([0, 1])),
        lambda: gce.explain(f, rows(), favourable=[1]),
        lambda: gce.explain(f, rows(), generator=gce.UniformSampling),
        lambda: gce.FeatureSpace.from_frame(rows(), immutable=rows()),
        lambda: gce.FeatureSpace.from_frame(rows(), immutable={"a": False}),
        lambda: gce.FeatureSpace.from_frame(rows(), ranges={"a": "12"}),
        lambda: gce.FeatureSpace.from_frame(rows(), ordinal=["d"]),
        lambda: gce.FeatureSpace.from_frame(rows(), permitted=["p"]),
        lambda: gce.FeatureSpace.from_frame(rows(), groups=["a", "b"]),
        lambda: gce.CostModel.bins(rows()),
        lambda: gce.CostModel.bins(gce.FeatureSpace.from_frame(rows()), weights=["a"]),
        lambda: gce.as_model(f, rows()),
        lambda: gce.Settings(grid=10**9),
    ],
)
def test_what_looks_like_a_value_is_not_taken_for_one(call: object) -> None:
    with pytest.raises(InvalidParameterError, match=r"must (be|have)"):
        call()  # type: ignore[operator]


@pytest.mark.parametrize(
    "scalars", [(), (0.0,), (-3.0, -1.0), (-1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (float("nan"),), "x"]
)
def test_scalars_ascend_from_0_on(scalars: object) -> None:
    """Below 0 a direction is gone backwards: what may only rise would fall."""
    with pytest.raises(InvalidParameterError, match="scalars must be ascending numbers >= 0"):
        gce.Settings(scalars=scalars)
    space = gce.FeatureSpace.from_frame(rows())
    with pytest.raises(InvalidParameterError, match="scalars must be ascending numbers >= 0"):
        gce.as_model(f, space, scalars=scalars)


def test_the_papers_scalars_and_arrays_of_them_are_taken() -> None:
    given = np.linspace(0.0, 5.0, 1000)
    assert gce.Settings(scalars=given).scalars == tuple(given.tolist())


def test_increasing_holds_for_scalars_given() -> None:
    space = gce.FeatureSpace.from_frame(rows(), increasing=["a"], immutable=["b", "c", "d"])
    found = gce.explain(f, rows(), space=space, settings=gce.Settings(scalars=(0.0, 0.5, 1.0, 3.0)), rng=0)
    moved = found.counterfactuals()
    assert len(moved.row)
    assert (moved.after["a"] >= moved.before["a"]).all()


def test_a_users_own_model_is_refused_where_an_adapted_one_is_wanted_and_the_message_says_how() -> None:
    ex = gce.explain(f, rows(), rng=0)
    with pytest.raises(InvalidParameterError, match="as_model"):
        ex.apply(rows(), model=f)
    other = gce.FeatureSpace.from_frame(rows()[["a"]])
    with pytest.raises(InvalidParameterError, match="columns"):
        ex.apply(rows(), model=gce.as_model(f, other))
    assert ex.apply(rows(), model=gce.as_model(f, ex.space)).coverage == ex.coverage


def test_settings_keep_numbers_of_other_types_as_pythons_own() -> None:
    from decimal import Decimal

    settings = gce.Settings(grid=np.array(8), batch_rows=np.int32(9), timeout=Decimal("1.5"), exact=np.True_)  # type: ignore[arg-type]
    assert [type(v) for v in (settings.grid, settings.batch_rows, settings.timeout, settings.exact)] == [
        int,
        int,
        float,
        bool,
    ]


def test_what_came_is_described_briefly() -> None:
    for value in (
        list(range(100_000)),
        "x" * 10_000,
        10**5000,
        pd.DataFrame({"a": range(9)}),
        gce.Settings(),
        {1: [2]},
    ):
        assert len(describe(value)) < 200
    assert describe(pd.DataFrame({"a": range(9)})) == "a DataFrame of shape (9, 1)"
    assert describe(None) == "None"
    assert describe(int) == "the class int"
