"""Climbing: chains are directions in their order, constraints hold, and the seed alone decides."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from xgboost import XGBClassifier

import globece as gce
from globece import rays
from globece.case.recourse import score
from globece.case.scaling import scale
from globece.datasets.user_studies import black_box_1
from globece.directions import Affected, FixedDirections, GreedyChains, UniformSampling, climbing
from globece.directions.chains import Chain, Glide, Turn, additions, as_matrix, moves, variations
from globece.errors import FileFormatError, GlobeCEError, InvalidParameterError
from tests.problems import approve_matrix, matrix, matrix_space

X = matrix(400)
y = approve_matrix(X)
TREES = XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1).fit(X, y)
LINE = LogisticRegression(max_iter=500).fit(X, y)


def test_a_chains_breakpoints_come_in_its_order() -> None:
    space = matrix_space(X, ranges="unbounded", whole=[])
    cost = gce.CostModel.bins(space)
    (block,) = [b for b, f in enumerate(space.blocks)][:1]
    f = space.blocks[block]
    chain = Chain((Glide(space.scalars[0].start, -0.5),), (Turn(block, 1, 2.0),))
    (delta,) = as_matrix([chain], cost)
    row = np.zeros((1, space.width))
    row[0, f.start] = 1.0
    before, after = (rays.positions(space, row, delta, k)[0] for k in (2.0, np.nextafter(2.0, 3.0)))
    assert before[f.start] == 1.0
    assert after[f.start + 1] == 1.0
    paid = rays.cost_at(cost, row, delta, np.array([2.0]))
    assert paid[0] == pytest.approx(1.0)  # half a unit of cost per k


def test_moves_and_neighbours_respect_the_space() -> None:
    space = matrix_space(X, immutable=["age"], decreasing=["debts"], permitted={"home": ["own", "free"]})
    every = moves(space)
    glides = [m for m in every if isinstance(m, Glide)]
    assert space["age"].start not in {g.column for g in glides}
    assert [g.pace for g in glides if g.column == space["debts"].start] == [-1.0]
    home = next(b for b, f in enumerate(space.blocks) if f.name == "home")
    allowed = [i for i, ok in enumerate(space.blocks[home].permitted) if ok]
    assert sorted(m.target for m in every if isinstance(m, Turn) and m.block == home) == allowed
    chain = additions(Chain(), every, None)[0]
    grown = additions(chain, every, 2)
    assert all(c.n_features <= 2 for c in grown)
    space.check_directions(as_matrix([*grown, *variations(grown[0])], gce.CostModel.bins(space)))


@pytest.mark.parametrize("model", [LINE, TREES], ids=["line", "trees"])
def test_climbing_beats_sampling(model: Any) -> None:
    space = matrix_space(X)
    climbed = gce.explain(model, X, space=space, rng=0, n_directions=2)
    sampled = gce.explain(model, X, space=space, rng=0, n_directions=2, generator=UniformSampling())
    assert climbed.score < sampled.score
    assert climbed.provenance.generator == "climbed chains"


def test_constraints_hold_and_sparsity_is_a_wish() -> None:
    space = matrix_space(X, immutable=["age"], decreasing=["debts"])
    ex = gce.explain(TREES, X, space=space, rng=0, n_directions=3, search=gce.Climb(max_features=2))
    for delta in ex.directions:
        assert sum(bool(delta[f.columns].any()) for f in space.features) <= 2
        assert delta[space["age"].start] == 0.0
        assert delta[space["debts"].start] <= 0.0


def test_the_seed_decides_and_row_order_does_not() -> None:
    space = matrix_space(X)
    first = gce.explain(TREES, X, space=space, rng=3, n_directions=2)
    again = gce.explain(TREES, X, space=space, rng=3, n_directions=2)
    turned = gce.explain(TREES, X[::-1], space=space, rng=3, n_directions=2)
    np.testing.assert_array_equal(first.directions, again.directions)
    np.testing.assert_array_equal(first.directions, turned.directions)


def test_more_directions_never_cost_more() -> None:
    space = matrix_space(X)
    scores = [gce.explain(TREES, X, space=space, rng=0, n_directions=n).score for n in (1, 2, 4)]
    assert scores[0] >= scores[1] >= scores[2]
    auto = gce.explain(TREES, X, space=space, rng=0, n_directions="auto")
    assert 1 <= auto.n_directions <= 10


def test_no_time_at_all_still_gives_the_best_single_move() -> None:
    ex = gce.explain(TREES, X, space=matrix_space(X), rng=0, time_limit=0)
    assert ex.n_directions == 1
    assert not ex.provenance.complete
    assert any("stopped early" in note for note in ex.provenance.notes)


def test_a_black_box_is_climbed_too() -> None:
    ex = gce.explain(approve_matrix, X, space=matrix_space(X), rng=0, search=gce.Climb(rays=3000))
    assert ex.provenance.method == "searched"
    assert ex.coverage > 0.9


def test_chains_as_a_generator() -> None:
    space = matrix_space(X)
    box = gce.as_model(TREES, space, rows=space.encode(X))
    Z = space.encode(X)
    problem = Affected(box, Z[~box.favourable(Z)], gce.CostModel.bins(space), 10.0)
    found = GreedyChains(max_features=3).propose(problem, 3, np.random.default_rng(0))
    assert 1 <= len(found) <= 3
    assert ((found != 0).sum(axis=1) >= 1).all()


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"max_features": 0}, "max_features"), ({"rays": 0}, "rays"), ({"rays": "many"}, "rays")],
)
def test_how_to_climb_is_checked(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidParameterError, match=name):
        gce.Climb(**settings)


def test_bad_directions_and_spaces() -> None:
    space = matrix_space(X)
    with pytest.raises(InvalidParameterError, match="no feature can move"):
        gce.explain(TREES, X, space=matrix_space(X, immutable=list(space.names)), rng=0)
    with pytest.raises(GlobeCEError, match="zero"):
        gce.explain(TREES, X, space=space, rng=0, generator=FixedDirections([np.zeros(space.width)]))
    with pytest.raises(GlobeCEError, match=r"column|length|entries"):
        gce.explain(TREES, X, space=space, rng=0, generator=FixedDirections([np.ones(space.width + 1)]))
    with pytest.raises(GlobeCEError, match="age"):
        matrix_space(X, increasing=["age"], decreasing=["age"])


@pytest.mark.parametrize("model", [LINE, TREES], ids=["line", "trees"])
def test_every_move_is_needed(model: Any) -> None:
    space = matrix_space(X)
    ex = gce.explain(model, X, space=space, rng=1, n_directions=3)
    assert ex.model is not None
    problem = Affected(ex.model, ex.inputs, ex.cost, ex.budget)
    for i, delta in enumerate(ex.directions):
        moved = [f for f in space.features if delta[f.columns].any()]
        others = np.delete(ex.costs, i, axis=0).min(axis=0, initial=ex.budget)
        for f in moved if len(moved) > 1 else []:
            without = delta.copy()
            without[f.columns] = 0.0
            paid = np.minimum(scale(problem, without[None]).cost[0], others)
            assert score(paid, ex.budget) > ex.score, f"direction {i} does not need {f.name}"


def test_two_moves_that_only_help_together_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # the paper's first user study: for males a job and property help, but only both
    study = black_box_1()
    wanted: dict[str, Any] = {"space": study.space, "cost": study.cost, "rng": 0}
    assert gce.explain(study.model, study.X, **wanted).coverage == 1.0
    monkeypatch.setattr(climbing, "_in_pairs", lambda *_: [])
    assert gce.explain(study.model, study.X, **wanted).coverage < 0.7


def test_the_default_search_is_an_object_like_any_other() -> None:
    asked: dict[str, Any] = {"space": matrix_space(X), "n_directions": 2, "rng": 0}
    default, said = gce.explain(LINE, X, **asked), gce.explain(LINE, X, search=gce.Climb(), **asked)
    assert default.to_json() == said.to_json()
    raced = gce.explain(LINE, X, search=gce.Race(UniformSampling(), samples=60), **asked)
    short = gce.explain(LINE, X, search=gce.Race(UniformSampling(), 60), **asked)
    assert raced.to_json() == short.to_json()
    assert raced.provenance.candidates == 60


def test_a_search_of_ones_own() -> None:
    class OneFeature:
        described = "one feature"
        most = 1

        def find(self, affected: Affected, wanted: int, plateau: float, rng: Any, monitor: Any) -> Any:
            space = affected.space
            found = np.zeros((1, space.width))
            found[0, space.scalars[0].start] = np.ptp(affected.inputs[:, space.scalars[0].start])
            return found, 1

        def within(self, rays_: int) -> OneFeature:
            return self

    ex = gce.explain(LINE, X, space=matrix_space(X), search=OneFeature(), rng=0)
    assert (ex.n_directions, ex.provenance.generator, ex.provenance.candidates) == (1, "one feature", 1)
    with pytest.raises(InvalidParameterError, match="only 1 candidates"):
        gce.explain(LINE, X, space=matrix_space(X), search=OneFeature(), n_directions=2)


def test_no_more_directions_are_asked_for_than_candidates_race() -> None:
    with pytest.raises(InvalidParameterError, match="only 2 candidates are sampled"):
        gce.explain(LINE, X, n_directions=3, search=gce.Race(UniformSampling(), samples=2))


@pytest.mark.parametrize("search", [gce.Climb, "climb", 3, UniformSampling()])
def test_what_is_no_search_is_refused(search: Any) -> None:
    with pytest.raises(InvalidParameterError, match="search must be a Climb, a Race or have a find method"):
        gce.explain(LINE, X, search=search)


def test_a_search_and_a_generator_are_too_much() -> None:
    with pytest.raises(InvalidParameterError, match="search or generator, not both"):
        gce.explain(LINE, X, search=gce.Climb(), generator=UniformSampling())


def test_columns_that_the_model_does_not_take_are_left_aside() -> None:
    import pandas as pd

    from globece.baselines import fast_ares

    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    model = LogisticRegression(max_iter=500).fit(frame, y)
    wider = frame.assign(region=np.where(np.arange(len(X)) % 2 == 0, "north", "south"))
    ex = gce.explain(model, wider, rng=0)
    assert ex.to_json() != gce.explain(model, frame, rng=0).to_json()  # it says what was left out
    assert ex.scalars.tolist() == gce.explain(model, frame, rng=0).scalars.tolist()
    assert any("left out: region" in note for note in ex.provenance.notes)
    assert fast_ares(model, wider, rng=0).space.names == ("a", "b", "c")
    assert gce.who_benefits(model, wider, {"a": 1.0}, by="region").by_group.keys() == {"north", "south"}
    assert gce.audit(
        model, wider, by="region", favourable=1, rng=0, audit_settings=gce.AuditSettings(permutations=20, resamples=20)
    ).by_group


@pytest.mark.parametrize(("model", "has_bound"), [(LINE, True), (TREES, False)], ids=["line", "trees"])
def test_what_is_left_is_estimated(model: Any, has_bound: bool) -> None:
    ex = gce.explain(model, X, n_directions=2, rng=0)
    left = ex.provenance.headroom
    assert left is not None
    assert left.inputs == ex.n_affected  # few enough for all of them
    assert left.score == pytest.approx(ex.score, rel=1e-9)
    ten = gce.explain(model, X, n_directions=10, rng=0)
    assert left.score_of_ten <= left.score
    assert ten.provenance.headroom is not None
    assert ten.score <= left.score * (1 + 1e-9)
    assert (left.gap is not None) == has_bound
    if left.gap is not None:
        # the bound was taken on some inputs, and no score of any directions is below it
        assert left.gap >= 1.0 - 1e-9
        assert ex.lower_bound().gap == pytest.approx(left.gap, rel=1e-6 if ex.n_affected <= 512 else 0.1)


def test_nobody_guesses_what_is_left() -> None:
    class Fixed:
        described, most = "fixed", None

        def find(self, affected: Affected, wanted: int, *_: Any) -> tuple[Any, int]:
            return np.eye(affected.space.width)[: min(wanted, 2)], 2

        def within(self, rays: int) -> Fixed:
            return self

    searched: Any = Fixed()
    assert gce.explain(LINE, X, rng=0, search=searched).provenance.headroom is None
    assert gce.explain(LINE, X, generator=UniformSampling(), rng=0).provenance.headroom is None


def test_a_gap_that_is_no_number_is_unknown() -> None:
    """Next to the boundary a bound may be the smallest double, and a score is infinitely often that."""
    rows = np.array([[-5e-324, 0.0], [1.0, 1.0], [2.0, 3.0]])
    ex = gce.explain((np.array([1.0, 0.0]), 0.0), rows, rng=0)
    assert ex.provenance.headroom is not None
    assert ex.provenance.headroom.gap is None
    document = ex.to_dict()
    document["provenance"]["headroom"]["gap"] = 0
    with pytest.raises(FileFormatError, match=r"provenance\.headroom\.gap must be a finite number above 0; got 0"):
        gce.Explanation.from_json(json.dumps(document))
