"""The main job, promise by promise; `docs/promises.md` names the tests."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from globece import CostModel, Explanation, Race, Settings, UniformSampling, explain, rays
from globece.errors import (
    InvalidDataError,
    InvalidDirectionError,
    InvalidParameterError,
    MissingExtraError,
    ModelError,
    VerificationError,
)
from tests.problems import approve, approve_matrix, global_state, matrix, matrix_space, mixed_frame, mixed_space

X = matrix()


@pytest.fixture(scope="module")
def ex() -> Explanation:
    return explain(approve_matrix, X, space=matrix_space(immutable=["age"]), n_directions=3, rng=0)


# -- what an explanation says --------------------------------------------------------------------------------------


def test_every_counterfactual_flips_the_users_own_model(ex: Explanation) -> None:
    """Promise 5."""
    for i, delta in enumerate(ex.directions):
        covered = np.isfinite(ex.scalars[i])
        after = rays.positions(ex.space, ex.inputs[covered], delta, ex.scalars[i, covered])
        assert (approve_matrix(ex.space.decode(after)) == 1).all()
    assert (approve_matrix(ex.counterfactuals().after) == 1).all()
    assert (approve_matrix(ex.counterfactuals().before) == 0).all()


def test_costs_are_those_of_the_counterfactuals(ex: Explanation) -> None:
    table = ex.counterfactuals()
    Z, after = ex.space.encode(table.before), ex.space.encode(table.after)
    np.testing.assert_allclose(ex.cost.between(Z, after), table.cost, rtol=1e-12)
    assert (table.cost <= ex.budget).all()
    np.testing.assert_array_equal(X[table.row], table.before)


def test_no_recourse_is_inf_and_counted() -> None:
    """Promise 9: never 0, never NaN, never dropped."""
    ex = explain(approve_matrix, X, space=matrix_space(immutable=["age", "home", "income"]), rng=0)
    assert ex.n_without_recourse > 0
    assert ex.n_covered + ex.n_without_recourse == ex.n_affected == int((approve_matrix(X) == 0).sum())
    assert np.isinf(ex.best_costs).sum() == ex.n_without_recourse
    assert not np.isnan(ex.costs).any()
    assert not np.isnan(ex.scalars).any()
    assert (np.isinf(ex.costs) == np.isinf(ex.scalars)).all()
    assert ex.score == pytest.approx(np.minimum(ex.best_costs, ex.budget).mean())
    assert (ex.minimum_costs().direction == -1).sum() == ex.n_without_recourse


def test_an_outcome_nobody_can_reach_gives_a_clear_answer() -> None:
    ex = explain(lambda X: np.zeros(len(X), dtype=int), X, space=matrix_space(), rng=0)
    assert ex.coverage == 0.0
    assert ex.average_cost == np.inf
    assert ex.score == ex.budget
    assert any("never occurred" in note for note in ex.provenance.notes)
    assert np.abs(ex.directions).sum() > 0, "the reference gave a zero direction here"
    assert ex.rules_chart().rows[-1].coverage == 0.0
    assert "no recourse" in ex.summary()


def test_nobody_affected_gives_an_empty_explanation() -> None:
    ex = explain(lambda X: np.ones(len(X), dtype=int), X, space=matrix_space(), rng=0)
    assert ex.is_empty
    assert ex.n_directions == 0
    assert ex.summary().startswith("Nobody is affected")
    assert (ex.coverage, ex.average_cost, ex.score) == (1.0, 0.0, 0.0)
    assert len(ex.profile().limit) == 1
    assert len(ex.counterfactuals().row) == 0
    assert ex.mean_translation().cost.sum() == 0.0
    assert "Nobody" in ex._repr_html_()


def test_coverage_never_falls_as_the_budget_grows() -> None:
    """Promise 10."""
    space = matrix_space()
    direction = CostModel.bins(space).normalise(np.array([[1.0, -1.0, 0.4, 0.0, 0.1, 0.0]]), 2.0)

    class Given:
        def propose(self, problem: object, n: int, rng: object) -> np.ndarray:
            return direction

    found = [
        explain(approve_matrix, X, space=space, budget=b, generator=Given(), rng=0) for b in (0.5, 1.0, 2.0, 4.0, 10.0)
    ]
    coverage = [ex.coverage for ex in found]
    assert coverage == sorted(coverage)
    assert coverage[0] < coverage[-1]
    for ex in found:  # and a smaller budget is the larger one, cut
        whole = found[-1].best_costs
        np.testing.assert_array_equal(ex.best_costs, np.where(whole <= ex.budget, whole, np.inf))


def test_the_last_row_of_a_chart_is_the_direction(ex: Explanation) -> None:
    """Promise 10."""
    for i in range(ex.n_directions):
        paid = ex.costs[i][np.isfinite(ex.costs[i])]
        for spacing in ("equal", "greedy"):
            last = ex.rules_chart(i, spacing=spacing).rows[-1]
            assert last.coverage == len(paid) / ex.n_affected
            assert last.cost == pytest.approx(paid.mean())


def test_more_directions_never_score_worse() -> None:
    scores = [explain(approve_matrix, X, space=matrix_space(), n_directions=n, rng=0).score for n in (1, 2, 3)]
    assert scores == sorted(scores, reverse=True)


def test_auto_stops_on_a_plateau() -> None:
    auto = explain(approve_matrix, X, space=matrix_space(), n_directions="auto", rng=0)
    one = explain(approve_matrix, X, space=matrix_space(), n_directions=1, rng=0)
    many = explain(approve_matrix, X, space=matrix_space(), n_directions=10, rng=0)
    assert 1 <= auto.n_directions <= many.n_directions
    assert auto.score <= one.score
    flat = explain(lambda X: (X[:, 0] > 4).astype(int), X, space=matrix_space(), n_directions="auto", rng=0)
    assert flat.n_directions <= 3


# -- views -----------------------------------------------------------------------------------------------------------


def test_the_profile_rises_to_the_coverage(ex: Explanation) -> None:
    profile = ex.profile()
    assert (np.diff(profile.coverage) > 0).all()
    assert (np.diff(profile.limit) > 0).all()
    assert profile.coverage[-1] == ex.coverage
    assert profile.average_cost[-1] == pytest.approx(ex.average_cost)
    assert (profile.coverage[0], profile.average_cost[0]) == (0.0, 0.0)


def test_operating_points(ex: Explanation) -> None:
    half = ex.at(coverage=0.5)
    assert half.coverage >= 0.5
    assert (ex.best_costs < half.limit).mean() < 0.5
    cheap = ex.at(cost=half.limit)
    assert cheap == half
    assert ex.at(cost=0.0).coverage == 0.0
    wrong: list[tuple[dict[str, float], str]] = [
        ({}, "either"),
        ({"coverage": 0.5, "cost": 1.0}, "either"),
        ({"coverage": 1.5}, "coverage must be"),
        ({"cost": -1}, "cost must be"),
    ]
    for arguments, message in wrong:
        with pytest.raises(InvalidParameterError, match=message):
            ex.at(**arguments)


def test_mean_translation_adds_up_to_the_average_cost(ex: Explanation) -> None:
    mean = ex.mean_translation()
    assert mean.cost.sum() == pytest.approx(ex.average_cost)
    assert mean.features == ex.space.names
    assert mean.change[ex.space.names.index("age")] == 0.0
    single = ex.mean_translation(0)
    assert single.cost.sum() == pytest.approx(ex.costs[0][np.isfinite(ex.costs[0])].mean())


def test_apply_on_the_same_rows_is_the_same_explanation(ex: Explanation) -> None:
    again = ex.apply(X)
    np.testing.assert_array_equal(again.costs, ex.costs)
    np.testing.assert_array_equal(again.rows, ex.rows)


def test_one_row_alone_is_a_local_counterfactual(ex: Explanation) -> None:
    for row in ex.rows[:5]:
        local = ex.apply(X[row : row + 1])
        assert local.n_affected == 1
        assert local.best_costs[0] == ex.best_costs[list(ex.rows).index(row)]
    learnt = explain(approve_matrix, X[ex.rows[:1]], space=matrix_space(), rng=0)
    assert learnt.n_affected == 1
    assert learnt.n_covered == 1


def test_the_raw_arrays_of_algorithm_1_come_on_request(ex: Explanation) -> None:
    arrays = ex.arrays([0.5, 1.0, 4.0])
    assert arrays.counterfactuals.shape == (3, 3, ex.n_affected, ex.space.width)
    flips = approve_matrix(ex.space.decode(arrays.counterfactuals[1, 2])) == 1
    np.testing.assert_array_equal(arrays.predictions[1, 2], flips)
    np.testing.assert_allclose(arrays.costs[1, 2], ex.cost.between(ex.inputs, arrays.counterfactuals[1, 2]))
    with pytest.raises(InvalidParameterError, match="X' would hold"):
        ex.arrays(np.linspace(0, 5, 10_000_000))


def test_to_frame_is_of_the_users_kind() -> None:
    frame = mixed_frame(80)
    ex = explain(approve, frame, space=mixed_space(frame), rng=0, settings=Settings(grid=16))
    assert isinstance(ex.to_frame(), pd.DataFrame)
    assert list(ex.to_frame().columns) == ["row", "direction", "scalar", "cost"]
    assert ex.counterfactuals().after.dtypes.equals(frame.dtypes)


def test_a_matrix_gives_a_frame_too(monkeypatch: pytest.MonkeyPatch) -> None:
    ex = explain(approve_matrix, X, space=matrix_space(), rng=0)
    assert list(ex.to_frame().columns) == ["row", "direction", "scalar", "cost"]
    assert len(ex.to_frame()) == ex.n_affected
    monkeypatch.setattr("globece.tables.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"globece\[frames\]"):
        ex.to_frame()


def test_polars_frames_work_throughout() -> None:
    frame = pl.DataFrame(mixed_frame(80).drop(columns=["job"]))

    def model(rows: pl.DataFrame) -> np.ndarray:
        assert isinstance(rows, pl.DataFrame)
        return (rows["income"].fill_null(2.0) - 0.4 * rows["debts"] > 2.0).to_numpy().astype(int)

    ex = explain(model, frame, rng=0, settings=Settings(grid=32))
    assert isinstance(ex.counterfactuals().after, pl.DataFrame)
    assert ex.counterfactuals().after.schema == frame.schema


# -- promises 1 to 3 ---------------------------------------------------------------------------------------------------


def _hash(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def test_inputs_are_never_changed() -> None:
    """Promise 1."""
    rows = matrix()
    before = _hash(rows)
    rows.setflags(write=False)
    ex = explain(approve_matrix, rows, space=matrix_space(rows), n_directions=2, rng=0)
    ex.apply(rows)
    ex.counterfactuals()
    assert _hash(rows) == before
    frame = mixed_frame(60)
    kept = frame.copy(deep=True)
    explain(approve, frame, rng=0, settings=Settings(grid=8))
    pd.testing.assert_frame_equal(frame, kept)


def test_the_global_random_state_is_untouched_and_the_seed_decides() -> None:
    """Promise 2, within a process; `test_results.py` compares fresh processes."""
    state = global_state()
    for generator in (None, UniformSampling()):
        asked: dict[str, Any] = {"space": matrix_space(), "generator": generator}
        first, second = (explain(approve_matrix, X, rng=7, **asked) for _ in range(2))
        other = explain(approve_matrix, X, rng=8, **asked)
        assert global_state() == state
        np.testing.assert_array_equal(first.directions, second.directions)
        np.testing.assert_array_equal(first.costs, second.costs)
        if generator is None:  # where the search by default ends should hardly depend on the seed
            np.testing.assert_allclose(other.score, first.score, rtol=0.03)
        else:
            assert not np.array_equal(first.directions, other.directions)


def test_row_order_and_batch_size_change_nothing() -> None:
    """Promise 3."""
    expected = explain(approve_matrix, X, space=matrix_space(), n_directions=2, rng=0)
    order = np.random.default_rng(1).permutation(len(X))
    shuffled = explain(approve_matrix, X[order], space=matrix_space(X[order]), n_directions=2, rng=0)
    np.testing.assert_array_equal(shuffled.directions, expected.directions)
    assert (shuffled.coverage, shuffled.average_cost, shuffled.score) == (
        expected.coverage,
        expected.average_cost,
        expected.score,
    )
    place = {row: i for i, row in enumerate(expected.rows)}
    np.testing.assert_array_equal(shuffled.costs, expected.costs[:, [place[order[row]] for row in shuffled.rows]])
    small = explain(approve_matrix, X, space=matrix_space(), n_directions=2, rng=0, settings=Settings(batch_rows=777))
    np.testing.assert_array_equal(small.costs, expected.costs)


# -- stopping --------------------------------------------------------------------------------------------------------


def _slow(rows: np.ndarray) -> np.ndarray:
    time.sleep(0.01)
    return approve_matrix(rows)


def test_a_time_limit_returns_the_best_so_far() -> None:
    ex = explain(_slow, X, space=matrix_space(), rng=0, time_limit=0.2)
    assert not ex.provenance.complete
    assert any("time limit" in note for note in ex.provenance.notes)
    assert ex.n_covered > 0


def test_a_zero_time_limit_still_answers() -> None:
    ex = explain(approve_matrix, X, space=matrix_space(), rng=0, time_limit=0)
    assert not ex.provenance.complete
    assert ex.n_directions == 1


def test_ctrl_c_returns_the_best_so_far() -> None:
    seen = threading.Event()
    # a process started in the background may ignore the signal: take it as a terminal's would
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def report(progress: object) -> None:
        if not seen.is_set():
            seen.set()
            signal.raise_signal(signal.SIGINT)

    try:
        ex = explain(approve_matrix, X, space=matrix_space(), rng=0, progress=report)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen.is_set()
    assert not ex.provenance.complete
    assert any("interrupted" in note for note in ex.provenance.notes)
    assert ex.n_covered > 0


def test_progress_reports_rise_to_their_total() -> None:
    reports: list = []
    explain(approve_matrix, X, space=matrix_space(), rng=0, progress=reports.append)
    stages = {r.stage for r in reports}
    assert stages
    for stage in stages:
        done = [r.done for r in reports if r.stage == stage]
        assert done == sorted(done)
        assert done[-1] == next(r.total for r in reports if r.stage == stage)


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    explain(approve_matrix, X, space=matrix_space(), rng=0)
    assert capfd.readouterr() == ("", "")


def test_a_bar_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    explain(approve_matrix, X, space=matrix_space(), rng=0, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "searching" in err


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": 0}, "budget must be a number > 0; got 0"),
        ({"budget": -3}, "budget"),
        ({"budget": "ten"}, "budget must be a number > 0; got 'ten'"),
        ({"budget": float("inf")}, "budget must be finite"),
        ({"budget": float("nan")}, "budget"),
        ({"n_directions": 0}, "n_directions must be a whole number >= 1; got 0"),
        ({"n_directions": 1.5}, "n_directions"),
        ({"n_directions": "many"}, "'auto'; got 'many'"),
        ({"n_directions": 81, "search": Race(UniformSampling(), 80)}, "n_directions is 81 but only 80 candidates"),
        ({"rng": "seed"}, "rng must be"),
        ({"rng": -1}, "rng must be a whole number >= 0"),
        ({"rng": True}, "rng must be"),
        ({"space": "inferred"}, "space must be a FeatureSpace"),
        ({"cost": 3.0}, "cost must be a CostModel"),
        ({"cost": CostModel.bins(mixed_space())}, "another space"),
        ({"generator": 5}, "generator must have a propose method"),
        ({"settings": {"samples": 3}}, "settings must be a Settings"),
        ({"progress": "yes"}, "progress must be"),
        ({"time_limit": -1}, "time_limit"),
        ({"time_limit": "soon"}, "time_limit"),
        ({"threshold": "high"}, "threshold"),
    ],
)
def test_each_parameter_given_rubbish_says_so(arguments: dict, message: str) -> None:
    """Promise 14."""
    with pytest.raises(InvalidParameterError, match=message):
        explain(approve_matrix, X, **{"space": matrix_space(), **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"), [({"samples": 0}, "samples"), ({"select": "best"}, "select must be one of")]
)
def test_a_race_given_rubbish_says_so(arguments: dict, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        Race(UniformSampling(), **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": 0}, "grid"),
        ({"batch_rows": -1}, "batch_rows"),
        ({"max_scalar": 0}, "max_scalar"),
        ({"scalars": (2.0, 1.0)}, "scalars must be ascending"),
    ],
)
def test_settings_given_rubbish_says_so(arguments: dict, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        Settings(**arguments)


@pytest.mark.parametrize("arguments", [{"cost": 0}, {"n_features": 0}, {"power": -1.0}])
def test_sampling_given_rubbish_says_so(arguments: dict) -> None:
    with pytest.raises(InvalidParameterError, match=next(iter(arguments))):
        UniformSampling(**arguments)


def test_one_row_without_a_space_says_what_to_do() -> None:
    with pytest.raises(InvalidParameterError, match="learn the space from more rows"):
        explain(lambda X: np.zeros(len(X), dtype=int), X[:1], rng=0)


def test_all_immutable_says_so() -> None:
    with pytest.raises(InvalidParameterError, match="no feature can move"):
        explain(approve_matrix, X, space=matrix_space(immutable=["age", "home", "income", "debts"]), rng=0)


@pytest.mark.parametrize(
    ("proposed", "message"),
    [
        (np.zeros((1, 6)), "direction 0 is zero"),
        (np.full((1, 6), np.nan), "not finite"),
        (np.ones((1, 4)), "6 entries"),
        (np.array([[1.0, 0, 0, 0, 0, 1.0]]), "'age', which is immutable"),
        (np.array([[-1.0, 0, 0, 0, 0, 0]]), "'income' down"),
    ],
)
def test_a_generator_that_breaks_a_constraint_is_caught(proposed: np.ndarray, message: str) -> None:
    class Bad:
        def propose(self, problem: object, n: int, rng: object) -> np.ndarray:
            return proposed

    space = matrix_space(immutable=["age"], increasing=["income"])
    with pytest.raises(InvalidDirectionError, match=message):
        explain(approve_matrix, X, space=space, generator=Bad(), rng=0)


def test_a_model_of_chance_is_found_out() -> None:
    dice = np.random.default_rng(0)
    with pytest.raises((ModelError, VerificationError), match=r"another outcome|predicts them again"):
        explain(lambda X: dice.integers(0, 2, len(X)), X, space=matrix_space(), rng=0)


def test_a_model_that_breaks_later_is_named() -> None:
    calls = []

    def tired(rows: np.ndarray) -> np.ndarray:
        calls.append(1)
        if len(calls) > 5:
            raise MemoryError("out of memory")
        return approve_matrix(rows)

    with pytest.raises(ModelError, match=r"tired in call 6 on [\d,]+ row\(s\) raised MemoryError"):
        explain(tired, X, space=matrix_space(), rng=0)


def test_apply_checks_its_rows(ex: Explanation) -> None:
    with pytest.raises(InvalidDataError, match=r"3 columns"):
        ex.apply(np.zeros((2, 3)))
    with pytest.raises(InvalidDataError, match="no rows"):
        ex.apply(X[:0])


def test_memory_stays_bounded_by_the_batch() -> None:
    """Promise 27: 200,000 rows, 3 directions; X' alone would take 200,000 x 3 x 256 x 6 numbers, 7 GiB."""
    code = (
        "import resource, numpy as np\n"
        "from tests.problems import *\n"
        "from globece import *\n"
        "X = matrix(200_000)\n"
        "space = matrix_space(X)\n"
        "small = explain(approve_matrix, X[:2000], space=space, rng=0, n_directions=3)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "ex = explain(approve_matrix, X, space=space, rng=0, n_directions=3)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=os.getcwd())
    assert float(done.stdout) < 500, "MiB beyond what 2,000 rows took"
