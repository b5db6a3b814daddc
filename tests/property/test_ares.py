"""What must hold for every recourse set, whatever the data, the limits and the objective."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from globece.baselines import AccuracyCost, AresSettings, FourTerms, RecourseSet, ares, fast_ares
from tests.problems import approve_matrix, matrix, matrix_space

objectives = st.one_of(
    st.sampled_from([0.0, 0.02, 0.1]).map(AccuracyCost),
    st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * 4).map(lambda w: FourTerms(*w)),
)


@st.composite
def wishes(draw: st.DrawFn) -> AresSettings:
    """Return settings of every kind, for few rows."""
    return AresSettings(
        support=draw(st.sampled_from([0.05, 0.1, 0.2])),
        bins=draw(st.integers(2, 6)),
        binning=draw(st.sampled_from(["equal", "quantile"])),
        target=draw(st.sampled_from(["middle", "nearest"])),
        match_features=draw(st.booleans()),
        max_rules=draw(st.integers(1, 6)),
        max_width=draw(st.integers(2, 4)),
        max_subgroups=draw(st.integers(1, 3)),
        objective=draw(objectives),
        exchanges=draw(st.integers(0, 2)),
        repeats=draw(st.integers(1, 2)),
        reduce_rules=draw(st.booleans()),
        then_support=draw(st.sampled_from([None, 0.0, 0.05])),
        evaluate=draw(st.sampled_from([None, 200])),
        only_improving=draw(st.booleans()),
        select=draw(st.sampled_from([None, 50])),
        race_rows=draw(st.sampled_from([None, 15])),
        max_triples=10**9,
    )


def check(made: RecourseSet, wish: AresSettings) -> None:
    """Assert all that must hold."""
    assert made.n_rules <= wish.max_rules
    assert len(made.subgroups) <= wish.max_subgroups
    for i, rule in enumerate(made.rules):
        assert rule.width <= wish.max_width
        matches = rule.matches(made.space, made.inputs)
        assert (matches == made.matches[i]).all()
        applied = np.flatnonzero(np.isfinite(made.costs[i]))
        assert matches[applied].all()  # a rule gives recourse only to rows that match it
        after = rule.applied(made.space, made.inputs[applied])
        assert (approve_matrix(after) == 1).all()
        assert np.array_equal(made.cost.between(made.inputs[applied], after), made.costs[i, applied])
        for condition in rule.then:
            assert condition.holds(made.space, after).all()
    assert made.coverage <= made.ground_set.accuracy + 1e-12
    assert (np.diff(made.ground_set.trace) >= 0).all()


def run(wish: AresSettings, seed: int, **constraints: Any) -> RecourseSet:
    X = matrix(80, seed)
    space = matrix_space(X, **constraints)
    return (fast_ares if wish.evaluate else ares)(approve_matrix, X, space=space, rng=seed, ares_settings=wish)


@settings(max_examples=40, deadline=None)
@given(wish=wishes(), seed=st.integers(0, 3))
def test_every_recourse_set_keeps_its_promises(wish: AresSettings, seed: int) -> None:
    check(run(wish, seed), wish)


@settings(max_examples=15, deadline=None)
@given(wish=wishes(), seed=st.integers(0, 3), seen=st.randoms(use_true_random=False))
def test_constraints_are_never_broken(wish: AresSettings, seed: int, seen: Any) -> None:
    made = run(wish, seed, increasing=["income"], immutable=["age"], permitted={"home": ["own", "rent"]})
    check(made, wish)
    space = made.space
    for i, rule in enumerate(made.rules):
        rows = np.flatnonzero(np.isfinite(made.costs[i]))
        before, after = made.inputs[rows], rule.applied(space, made.inputs[rows])
        assert (after[:, space["income"].start] >= before[:, space["income"].start]).all()
        assert (after[:, space["age"].start] == before[:, space["age"].start]).all()
        home = space["home"]
        switched = (before[:, home.columns] != after[:, home.columns]).any(axis=1)
        assert not after[switched, home.start + 2].any()


@settings(max_examples=15, deadline=None)
@given(wish=wishes(), seed=st.integers(0, 3))
def test_files_round_trip(wish: AresSettings, seed: int) -> None:
    made = run(wish, seed)
    text = made.to_json()
    assert RecourseSet.from_json(text).to_json() == text
