"""A time limit holds to within one call of the model and a constant, and who was not reached is unknown.

Time is told by a clock of our own, which the model moves on: nothing here depends on how fast the machine is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

import globece as gce
from globece import api
from globece.directions import ImportanceSampling, UniformSampling
from globece.errors import TimeLimitError
from globece.explanation import Explanation
from globece.io.results import FORMAT
from globece.parallel import over_rows
from globece.progress import GRACE, Monitor, Pace, TimeUp, check_time, watching

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 6))
GROUPS = {"a": X[:, 5] > 0, "b": X[:, 5] <= 0}


class Clock:
    """Seconds that pass only when somebody says so."""

    def __init__(self) -> None:
        self.now, self.longest = 1000.0, 0.0

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.longest = max(self.longest, seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setattr("globece.progress.time.monotonic", made)
    monkeypatch.setattr(api, "compile_timer", lambda: nullcontext(float))  # which takes the real time
    yield made
    monkeypatch.undo()


def _model(clock: Clock, per_row: float, per_call: float = 0.0) -> Callable[[np.ndarray], np.ndarray]:
    def decide(rows: np.ndarray) -> np.ndarray:
        clock.passes(per_call + per_row * len(rows))
        return (rows[:, :3].sum(axis=1) + np.sin(3 * rows[:, 3]) > 0.5).astype(int)

    return decide


@pytest.mark.parametrize("limit", [0.0, 0.5, 2.0, 10.0, 60.0])
@pytest.mark.parametrize(("per_row", "per_call"), [(1e-5, 0.0), (1e-3, 0.0), (1e-5, 0.3), (0.02, 0.1), (0.0, 3.0)])
def test_a_limit_holds_within_one_call_and_a_constant(
    clock: Clock, per_row: float, per_call: float, limit: float
) -> None:
    begun = clock.now
    try:
        ex = gce.explain(_model(clock, per_row, per_call), X, rng=0, n_directions=3, time_limit=limit)
    except TimeLimitError:
        assert limit <= clock.now - begun  # not before it was tried
    else:
        assert ex.n_affected
        assert ex.n_affected + ex.n_unknown == _affected()
        assert ex.provenance.complete == (not any("stopped early" in note for note in ex.provenance.notes))
        assert bool(ex.n_unknown) <= (not ex.provenance.complete)
    assert clock.now - begun <= limit + GRACE + clock.longest + 1e-6
    # batches adapt to the model: a call takes as long as its rows do, not longer than it must
    assert clock.longest <= max(1.0, 5.0 * per_call, 140 * per_row)


def _affected() -> int:
    return int((_model(Clock(), 0.0)(X) == 0).sum())


def test_a_limit_that_does_not_strike_changes_nothing() -> None:
    model = RandomForestClassifier(20, random_state=0).fit(X, _model(Clock(), 0.0)(X))
    for one in (model, lambda rows: model.predict(rows)):
        free, limited = (gce.explain(one, X, rng=0, n_directions=2, time_limit=t) for t in (None, 600.0))
        assert limited.provenance.complete
        np.testing.assert_array_equal(free.scalars, limited.scalars)
        np.testing.assert_array_equal(free.directions, limited.directions)


def test_who_was_not_reached_is_unknown_and_counted(clock: Clock) -> None:
    ex = gce.explain(_model(clock, 8e-4), X, rng=0, n_directions=2, time_limit=20.0)
    whole = gce.explain(_model(Clock(), 0.0), X, rng=0, n_directions=2)
    assert 0 < ex.n_affected < whole.n_affected
    assert ex.n_affected + ex.n_unknown == whole.n_affected
    assert set(ex.rows) < set(whole.rows)
    assert (np.diff(ex.rows) > 0).all()
    # reached in a random order: neither only the first rows nor only the last
    share = np.searchsorted(whole.rows, ex.rows) / whole.n_affected
    assert 0.2 < share.mean() < 0.8
    said = f"{ex.n_affected:,} of {whole.n_affected:,} affected inputs"
    assert any(said in note and "unknown and not counted" in note for note in ex.provenance.notes)
    assert f"{whole.n_affected:,} of 600 rows are affected, of whom {ex.n_unknown:,} are unknown" in ex.summary()
    assert f"n_unknown={ex.n_unknown}" in repr(ex)
    again = Explanation.from_json(ex.to_json())
    assert again.n_unknown == ex.n_unknown
    assert again.to_json() == ex.to_json()
    assert "n_unknown" in FORMAT.schema()["properties"]
    assert Explanation.from_json(whole.to_json()).n_unknown == 0
    assert "n_unknown" not in repr(whole)


def test_a_search_that_ran_out_of_time_does_not_say_that_nothing_else_helps(clock: Clock) -> None:
    ex = gce.explain(_model(clock, 2e-4), X, rng=0, n_directions=4, time_limit=20.0)
    assert ex.n_directions < 4
    notes = " ".join(ex.provenance.notes)
    assert "no other lowers the score" not in notes
    assert "the search was stopped before" in notes


@pytest.mark.parametrize("generator", [UniformSampling(), ImportanceSampling(), None])
def test_generators_keep_the_limit_too(clock: Clock, generator: Any) -> None:
    begun = clock.now
    ex = gce.explain(_model(clock, 1e-5), X, rng=0, generator=generator, time_limit=10.0)
    assert ex.n_affected
    assert clock.now - begun <= 10.0 + GRACE + clock.longest


@pytest.mark.parametrize("strikes", [1, 2, 5, 20, 60, 150])
def test_ctrl_c_returns_what_was_reached(strikes: int) -> None:
    """Ctrl-C in some call of the model: before anything is known it is passed on, later something is returned."""
    calls = 0

    def model(rows: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == strikes:
            raise KeyboardInterrupt
        return (rows[:, :3].sum(axis=1) > 0.5).astype(int)

    many = np.vstack([X] * 6)
    try:
        ex = gce.explain(model, many, rng=0, settings=gce.Settings(batch_rows=2048))
    except KeyboardInterrupt:
        assert strikes <= 20, "there was something to return"
        return
    assert ex.n_affected
    if calls >= strikes:
        assert not ex.provenance.complete
        assert any("interrupted" in note for note in ex.provenance.notes)


def test_ctrl_c_in_the_last_stage_leaves_the_others_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    from globece import explanation
    from globece.case import scaling

    known, parts = scaling.scale, []

    def scale(problem: Any, directions: Any) -> Any:
        parts.append(len(problem.inputs))
        if len(parts) == 2:
            raise KeyboardInterrupt
        return known(problem, directions)

    monkeypatch.setattr(explanation, "scale", scale)
    many = np.vstack([X] * 8)
    ex = gce.explain(lambda rows: (rows[:, :3].sum(axis=1) > 0.5).astype(int), many, rng=0)
    assert ex.n_affected == parts[0]
    assert ex.n_unknown > 0
    assert "interrupted" in ex.provenance.notes[-1]


def test_after_ctrl_c_in_the_search_everybody_is_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    from globece.case import scaling
    from globece.directions import judging

    known, calls = scaling.scale, []

    def scale(*given: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == 10:
            raise KeyboardInterrupt
        return known(*given, **more)

    monkeypatch.setattr(judging, "scale", scale)
    many = np.vstack([X] * 8)
    ex = gce.explain(lambda rows: (rows[:, :3].sum(axis=1) > 0.5).astype(int), many, rng=0)
    assert any("interrupted" in note for note in ex.provenance.notes)
    assert ex.n_unknown == 0
    assert ex.n_affected == int((many[:, :3].sum(axis=1) <= 0.5).sum())


@pytest.mark.parametrize("limit", [0.0, 2.0, 10.0, 40.0])
@pytest.mark.parametrize(("per_row", "per_call"), [(1e-5, 0.0), (2e-4, 0.0), (1e-5, 0.05), (0.02, 0.1)])
def test_an_audit_keeps_its_limit_and_judges_whom_it_reached(
    clock: Clock, per_row: float, per_call: float, limit: float
) -> None:
    begun = clock.now
    try:
        found = gce.audit(_model(clock, per_row, per_call), X, by=GROUPS, favourable=1, rng=0, time_limit=limit)
    except TimeLimitError:
        assert limit <= clock.now - begun
    else:
        ex = found.explanation
        assert ex.n_affected + ex.n_unknown == _affected() == found.overall.affected
        assert found.overall.rejection_rate == pytest.approx(_affected() / 600)
        assert len(found.cost) == ex.n_affected
        stopped = [w for w in found.verdict.warnings if "stopped early" in w]
        assert bool(stopped) <= (not ex.provenance.complete)
        if ex.n_unknown:
            assert "unknown and not counted" in stopped[0]
            for name, member in GROUPS.items():
                mine = found.by_group[name]
                assert mine.affected == int((_model(Clock(), 0.0)(X[member]) == 0).sum())
        again = gce.Audit.from_json(found.to_json())
        assert again.to_json() == found.to_json()
    assert clock.now - begun <= limit + GRACE + clock.longest + 1e-6


def test_a_limit_that_does_not_strike_changes_no_audit() -> None:
    model = RandomForestClassifier(10, max_depth=6, random_state=0).fit(X, _model(Clock(), 0.0)(X))
    free, limited = (gce.audit(model, X, by=GROUPS, favourable=1, rng=0, time_limit=t) for t in (None, 600.0))
    assert limited.explanation.provenance.complete
    np.testing.assert_array_equal(free.cost, limited.cost)
    assert free.verdict.text == limited.verdict.text


def test_kernels_look_at_the_clock_between_parts(clock: Clock) -> None:
    done: list[tuple[int, int]] = []

    def work(first: int, last: int) -> None:
        done.append((first, last))
        clock.passes(1e-3 * (last - first))

    monitor = Monitor(None, 2.0)
    monitor.found()
    with watching(monitor), pytest.raises(TimeUp):
        over_rows(100_000, work, few=100_000)
    assert clock.now <= 1000.0 + 2.0 + 7.0  # the first part, of which nobody knew how long it takes
    assert all(b - a <= 1000 for a, b in done[2:])
    done.clear()
    over_rows(100_000, work, few=100_000)  # no limit: in one piece
    assert done == [(0, 100_000)]


def test_time_is_only_checked_inside(clock: Clock) -> None:
    monitor = Monitor(None, 1.0)
    monitor.found()
    with watching(monitor):
        check_time()
        clock.passes(1.0)
        with pytest.raises(TimeUp):
            check_time()
    check_time()
    with watching(Monitor()):
        clock.passes(1e9)
        check_time()


@pytest.mark.parametrize(("fixed", "each"), [(0.0, 1e-6), (0.0, 0.1), (0.3, 1e-5), (2.0, 0.0), (0.0, 3.0)])
def test_batches_take_as_long_as_they_should(fixed: float, each: float) -> None:
    pace, taken = Pace(128), []
    for _ in range(8):
        taken.append(fixed + each * pace.size)
        pace.took(pace.size, taken[-1])
    assert max(taken[1:]) <= max(0.5, 4.0 * fixed, each) * 1.01
    assert pace.size >= min(0.1 / max(each, 1e-9), 2000)


def test_a_compiled_model_is_limited_as_well(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    from globece.models.linear.half_spaces import LinearModel

    known = LinearModel.first_flip

    def slow(self: LinearModel, Z: Any, directions: Any, limit: Any, start: Any = None) -> Any:
        check_time()
        clock.passes(1e-4 * np.size(limit))
        return known(self, Z, directions, limit, start)

    monkeypatch.setattr(LinearModel, "first_flip", slow)
    model = LogisticRegression().fit(X, _model(Clock(), 0.0)(X))
    begun = clock.now
    ex = gce.explain(model, X, rng=0, n_directions=3, time_limit=5.0)
    assert ex.provenance.method == "exact"
    assert ex.n_affected
    assert clock.now - begun <= 5.0 + GRACE + clock.longest


# -- wherever it ends ----------------------------------------------------------------------------------------------


class Leap:
    """A clock that stands still, and leaps past every limit when it is read for the n-th time."""

    def __init__(self, n: int | None = None) -> None:
        self.n, self.reads = n, 0

    def __call__(self) -> float:
        self.reads += 1
        return 1000.0 + 1e-6 * self.reads + (1e6 if self.n is not None and self.reads >= self.n else 0.0)


@pytest.mark.parametrize("kind", ["linear", "forest", "network", "searched", "auto", "audit"])
def test_wherever_the_time_ends_there_is_a_result_or_a_clear_error(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = X[:150, :4]
    outcome = (rows[:, 0] + rows[:, 1] * rows[:, 2] > 0.3).astype(int)
    model: Any = {
        "linear": LogisticRegression(),
        "network": MLPClassifier((6,), max_iter=30, random_state=0),
        "searched": SVC(),
    }.get(kind, RandomForestClassifier(8, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the network need not have converged
        model.fit(rows, outcome)

    def ask() -> Any:
        asked: dict[str, Any] = {"favourable": 1, "time_limit": 50, "rng": 0, "effort": "quick"}
        if kind == "audit":
            return gce.audit(model, rows, by=np.where(rows[:, 3] > 0, "a", "b"), **asked)
        return gce.explain(model, rows, n_directions="auto" if kind == "auto" else 2, **asked)

    def ask_with(clock: Leap) -> Any:
        monkeypatch.setattr("globece.progress.time.monotonic", clock)
        monkeypatch.setattr(api, "compile_timer", lambda: nullcontext(float))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ask()
        finally:
            monkeypatch.undo()

    whole = Leap()
    ask_with(whole)
    ends = {int(n) for n in np.linspace(2, whole.reads, 20)} | set(range(whole.reads - 12, whole.reads + 1))
    answered = 0
    for n in sorted(ends):
        try:
            found = ask_with(Leap(n))
        except TimeLimitError:
            continue
        answered += 1
        assert isinstance(found, gce.Audit if kind == "audit" else Explanation)
    assert answered  # at the end there is a result to keep
