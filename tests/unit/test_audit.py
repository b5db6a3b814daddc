"""The audit: who is compared, what is measured, how it is tested, and what the verdict says."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import globece as gce
from globece import Audit, AuditSettings, Climb, FeatureSpace, audit
from globece.auditing import statistics as st
from globece.auditing.measures import measured
from globece.errors import InvalidDataError, InvalidParameterError, UnknownFeatureError
from tests.problems import global_state

QUICK = {"search": Climb(rays=1500), "audit_settings": AuditSettings(permutations=499, resamples=200, checks=False)}
MODEL = (np.array([1.0, -0.6, 0.0]), -4.0)  # approves where income - 0.6 debt > 4
GAP_MODEL = (np.array([1.0, -0.6, -2.0]), -4.0)  # group 1 must bring two more


def rows(n: int = 600, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(0, 10, n), rng.uniform(0, 5, n), rng.integers(0, 2, n)])


def space_of(X: np.ndarray) -> FeatureSpace:
    return FeatureSpace.from_matrix(X, columns=["income", "debt", "foreign"], immutable=["foreign"])


def audited(model: Any, X: np.ndarray, by: Any = "foreign", rng: int = 0, **more: Any) -> Audit:
    return audit(model, X, by=by, space=space_of(X), rng=rng, **{**QUICK, **more})


@pytest.fixture(scope="module")
def biased() -> Audit:
    return audited(GAP_MODEL, rows(), audit_settings=AuditSettings(permutations=499, resamples=200, relevant=0.25))


# -- promise 12 ------------------------------------------------------------------------------------------------------


def test_two_copies_of_one_group_show_no_gap() -> None:
    """Promise 12."""
    X = rows(200)
    X[:, 2] = 0
    twice = np.vstack([X, X])
    copy = np.repeat(["a", "b"], len(X))
    found = audited(MODEL, twice, by=copy)
    (only,) = found.comparisons
    for measure in ("rejection_rate", "coverage", "average_cost", "score"):
        assert only.gaps[measure].value == 0.0
        assert only.gaps[measure].p == 1.0
    assert found.difference() == 0.0
    assert found.ratio() == 1.0
    assert found.verdict.against is None
    assert found.by_group["a"].score == found.by_group["b"].score


def test_swapping_the_groups_flips_the_sign() -> None:
    """Promise 12."""
    X = rows(600)
    label = np.where(X[:, 2] == 1, "b", "a")
    swapped = np.where(X[:, 2] == 1, "a", "b")
    one, other = audited(GAP_MODEL, X, by=label), audited(GAP_MODEL, X, by=swapped)
    (first,), (second,) = one.comparisons, other.comparisons
    for measure in ("rejection_rate", "coverage", "average_cost", "score"):
        assert first.gaps[measure].value == pytest.approx(-second.gaps[measure].value, abs=1e-12)
    assert first.gaps["score"].value < 0
    assert (one.verdict.against, other.verdict.against) == ("b", "a")


def test_small_groups_are_flagged_not_judged() -> None:
    """Promise 12."""
    X = rows(300)
    label = np.where(X[:, 2] == 1, "large", "other")
    few = np.flatnonzero(X[:, 0] < 2)[:7]
    label[few] = "small"
    found = audited(GAP_MODEL, X, by=label)
    assert not found.by_group["small"].judged
    assert "7 affected" in found.by_group["small"].note
    assert {c.group for c in found.comparisons} | {c.other for c in found.comparisons} == {"large", "other"}
    assert "small (7 affected)" in found.verdict.text
    assert "small" not in found.exchange.directions_of


# -- what it finds ---------------------------------------------------------------------------------------------------


def test_a_planted_gap_is_found_with_its_size_and_cause(biased: Audit) -> None:
    assert biased.verdict.conclusion == "relevant bias"
    assert biased.verdict.against == "foreign = 1"
    (only,) = biased.comparisons
    gap = only.gaps["score"]
    assert gap.low <= gap.value <= gap.high < 0
    assert gap.p == gap.p_adjusted < 0.01
    assert biased.difference() == pytest.approx(abs(gap.value))
    assert biased.difference() == pytest.approx(biased.group_max() - biased.group_min())
    assert biased.by_group["foreign = 1"].rejection_rate > biased.by_group["foreign = 0"].rejection_rate
    assert biased.verdict.model_bias_against == "foreign = 1"
    assert biased.verdict.survives["lower bound"] is True
    assert biased.verdict.survives["more candidates"] is True
    assert {c.name for c in biased.checks} == {"more candidates", "deciles", "other weights", "lower bound"}


def test_the_group_column_never_moves(biased: Audit) -> None:
    assert not biased.explanation.space["foreign"].can_move
    assert not biased.explanation.directions[:, 2].any()
    moved = biased.explanation.counterfactuals()
    assert (moved.before[:, 2] == moved.after[:, 2]).all()
    assert (GAP_MODEL[0] @ moved.after.T + GAP_MODEL[1] > 0).all()


def test_the_exchange_has_own_directions_on_the_diagonal_and_everybodys_last(biased: Audit) -> None:
    ex = biased.exchange
    assert ex.directions_of == ("foreign = 0", "foreign = 1", "everybody")
    assert ex.score.shape == ex.coverage.shape == (3, 2)
    # shared directions contain each group's own, so nobody does worse under them
    for j, name in enumerate(ex.applied_to):
        assert biased.by_group[name].score <= ex.score[j, j] + 1e-12


def test_explanations_of_groups_are_parts_of_one(biased: Audit) -> None:
    own = biased.explanation_of("foreign = 1")
    assert own.n_affected == biased.by_group["foreign = 1"].affected
    assert (own.inputs[:, 2] == 1).all()
    assert biased.explanation_of("everybody").n_affected == biased.overall.affected
    with pytest.raises(InvalidParameterError, match="group must be one of the groups"):
        biased.explanation_of("foreign = 7")


def test_fairlearns_grammar(biased: Audit) -> None:
    assert biased.difference(method="to_overall") < biased.difference()
    assert 0 < biased.ratio() < 1
    table = biased.to_frame()
    assert list(table["group"]) == ["foreign = 0", "foreign = 1", "everybody"]
    assert table["n"].tolist() == [biased.by_group[g].n for g in table["group"][:2]] + [600]
    with pytest.raises(InvalidParameterError, match="measure must be one of"):
        biased.difference("bias")


def test_no_gap_is_told_from_too_little_evidence() -> None:
    X = rows(1200, seed=3)
    calm = audited(MODEL, X, audit_settings=AuditSettings(checks=False, relevant=1.0))
    assert calm.verdict.conclusion == "equivalent"
    assert calm.verdict.against is None
    few = audited(MODEL, rows(110, seed=3), audit_settings=AuditSettings(smallest=10, checks=False, relevant=0.2))
    assert few.verdict.conclusion == "not enough evidence"
    assert "not enough evidence" in few.verdict.text.lower()
    assert any("probability" in warning for warning in few.verdict.warnings)


def test_control_columns_take_away_what_they_explain() -> None:
    rng = np.random.default_rng(1)
    X = rows(900)
    X[:, 2] = rng.random(900) < np.where(X[:, 1] > 2.5, 0.8, 0.2)  # foreign goes with debt, and debt is what counts
    plain = audited(MODEL, X)
    within = audited(MODEL, X, control={"debt": 6})
    assert abs(within.comparisons[0].gaps["score"].value) < 0.5 * abs(plain.comparisons[0].gaps["score"].value)
    assert not within.explanation.space["debt"].can_move


def test_more_than_two_groups_a_reference_and_the_correction() -> None:
    X = rows(900)
    label = np.array(["a", "b", "c"])[np.arange(900) % 3]
    found = audited(MODEL, X, by=label)
    assert [c.other for c in found.comparisons] == ["everybody else"] * 3
    p = np.array([c.gaps["score"].p for c in found.comparisons])
    assert [c.gaps["score"].p_adjusted for c in found.comparisons] == [st.corrected(one, 3) for one in p]
    assert found.spreads["score"].p >= p.min()
    against = audited(MODEL, X, by=label, reference="b")
    assert [(c.group, c.other) for c in against.comparisons] == [("a", "b"), ("c", "b")]


# -- the same whatever the order -------------------------------------------------------------------------------------


def test_row_order_changes_nothing_and_the_seed_decides() -> None:
    X = rows(200)
    order = np.random.default_rng(1).permutation(len(X))
    one, again, other = audited(GAP_MODEL, X), audited(GAP_MODEL, X), audited(GAP_MODEL, X[order])
    assert one.to_json() == again.to_json()
    assert one.comparisons == other.comparisons
    assert one.verdict == other.verdict
    assert np.array_equal(one.cost, other.cost[np.argsort(order[other.explanation.rows])])
    state = global_state()
    audited(GAP_MODEL, X, rng=5)
    assert global_state() == state


def test_inputs_are_never_changed() -> None:
    X, label = rows(150), np.repeat(["a", "b"], 75)
    before, mask = X.copy(), np.arange(150) < 75
    for array in (X, label, mask):
        array.setflags(write=False)
    audited(GAP_MODEL, X, by=label)
    audited(GAP_MODEL, X, by={"first": mask}, control="foreign")
    gce.who_benefits(GAP_MODEL, X, {"income": 1.0}, by=label, space=space_of(X))
    assert np.array_equal(X, before)


# -- bad input -------------------------------------------------------------------------------------------------------


def test_a_paper_that_only_one_group_needs_is_found_though_no_climb_can_see_it() -> None:
    """Two moves that help only together: the gap must be what the second one costs, and not a search artefact."""
    rng = np.random.default_rng(0)
    income, group = rng.uniform(0, 10, 240), np.arange(240) % 2
    paper = income > 5
    X = np.column_stack([income, ~paper, paper, group]).astype(float)
    space = FeatureSpace.from_matrix(
        X, columns=["income", "paper = no", "paper = yes", "group"], groups={"paper": ["paper = no", "paper = yes"]}
    )

    def approve(X: np.ndarray) -> np.ndarray:
        return (X[:, 0] > 5) & ((X[:, 3] == 0) | (X[:, 2] == 1))

    found = audit(approve, X, by="group", space=space, rng=0, favourable=True, **QUICK)  # type: ignore[arg-type]
    assert found.by_group["group = 1"].coverage == 1.0
    assert found.verdict.against == "group = 1"
    assert found.verdict.size == pytest.approx(-1.0, abs=0.7)  # the paper costs 1; the rest is chance


def test_a_group_without_affected_inputs_is_flagged() -> None:
    X = rows(300)
    label = np.where(X @ MODEL[0] + MODEL[1] > 0, "approved", np.where(X[:, 2] == 1, "b", "a"))
    found = audited(MODEL, X, by=label)
    assert found.by_group["approved"].affected == 0
    one = found.by_group["approved"]
    assert (one.coverage, one.average_cost, one.score, one.judged) == (1.0, 0.0, 0.0, False)
    assert found.by_group["approved"].note == "nobody is affected"
    assert len(found.comparisons) == 1


def test_a_group_of_one_row_and_a_group_of_all_rows() -> None:
    X = rows(120)
    lone = np.zeros(120, dtype=bool)
    lone[int(X[:, 0].argmin())] = True
    found = audited(MODEL, X, by={"lone": lone})
    assert found.groups.names == ("lone", "not lone")
    assert found.by_group["lone"].n == 1
    assert found.verdict.conclusion == "not enough evidence"
    assert found.comparisons == ()
    with pytest.raises(InvalidParameterError, match="one group of all 120 rows"):
        audited(MODEL, X, by={"all": np.ones(120, dtype=bool)})


def test_nobody_affected_gives_a_clear_answer() -> None:
    X = rows(50)
    found = audited((np.array([1.0, 0.0, 0.0]), 100.0), X)
    assert found.overall.affected == 0
    assert found.verdict.conclusion == "not enough evidence"
    assert "nobody is affected" in found.verdict.warnings
    assert Audit.from_json(found.to_json()).to_json() == found.to_json()


def test_missing_values_are_their_own_group_or_an_error() -> None:
    X = rows(200)
    label = np.where(X[:, 2] == 1, "b", "a").astype(object)
    label[:80] = None
    found = audited(MODEL, X, by=label)
    assert found.groups.names == ("a", "b", "(missing)")
    with pytest.raises(InvalidDataError, match="missing in 80 rows; missing='group'"):
        audited(MODEL, X, by=label, audit_settings=AuditSettings(missing="error"))


def test_overlapping_masks_say_where() -> None:
    X = rows(100)
    with pytest.raises(InvalidParameterError, match="'young' and 'poor' overlap in 10 rows"):
        audited(MODEL, X, by={"young": np.arange(100) < 30, "poor": np.arange(100) >= 20})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": "sex"}, "by names unknown column 'sex'; there are .*'foreign'.*array of labels"),
        ({"by": "income"}, "different values: say how to bin it"),
        ({"by": {"income": [5, 5]}}, r"by\['income'\] must be ascending edges"),
        ({"by": {"income": "x"}}, r"by\['income'\] must be ascending edges"),
        ({"by": 7}, "by must be a column"),
        ({"by": []}, "by must be a column"),
        ({"by": ["foreign", "foreign"]}, "names a column twice"),
        ({"by": np.zeros(3)}, "a label for each of 60 rows"),
        ({"by": {"a": np.zeros(60, dtype=bool)}}, "a mask without any row"),
        ({"by": {"a": np.zeros(3, dtype=bool)}}, "a mask of 60 rows"),
        ({"by": "foreign", "reference": "x"}, "reference must be one of the groups"),
        ({"by": "foreign", "control": "nobody"}, "control names unknown column"),
        ({"by": "foreign", "control": "foreign"}, "no two groups share a level"),
        ({"by": "foreign", "n_directions": 0}, "n_directions must be a whole number"),
        ({"by": "foreign", "audit_settings": 3}, "audit_settings must be an AuditSettings"),
    ],
)
def test_each_parameter_given_rubbish_says_so(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        audited(MODEL, rows(60), **given)


@pytest.mark.parametrize(
    "given", [{"level": 0}, {"level": 1.0}, {"smallest": 1}, {"relevant": 0}, {"permutations": 3}, {"missing": "drop"}]
)
def test_settings_given_rubbish_say_so(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=next(iter(given))):
        AuditSettings(**given)


def test_groups_of_frames_intersections_bins_and_columns_that_the_model_lacks() -> None:
    from sklearn.linear_model import LogisticRegression

    X = pd.DataFrame(rows(400), columns=["income", "debt", "foreign"])
    y = (X["income"] > 5).astype(int)
    model = LogisticRegression().fit(X[["income", "debt"]], y)
    X["sex"] = np.where(np.arange(400) % 2, "m", "f")
    found = audit(model, X, by=["sex", {"debt": [2.5]}], rng=0, favourable=1, **QUICK)  # type: ignore[arg-type]
    assert found.groups.names == ("f & debt < 2.5", "f & debt >= 2.5", "m & debt < 2.5", "m & debt >= 2.5")
    assert found.explanation.space.names == ("income", "debt")
    assert not found.explanation.space["debt"].can_move
    assert list(found.to_frame().columns[:3]) == ["group", "n", "affected"]
    with pytest.raises(UnknownFeatureError):
        audit(model, X, by="age", rng=0)


# -- subgroups -------------------------------------------------------------------------------------------------------


def test_subgroups_with_the_worst_recourse_are_found_and_chance_is_not(biased: Audit) -> None:
    found = biased.subgroups(conditions=2)
    assert found
    assert any("income <=" in c for c in found[0].conditions)
    assert found[0].p_adjusted <= 0.01
    assert found[0].gap > 0
    assert all(len(s.conditions) <= 2 for s in found)
    with pytest.raises(InvalidParameterError, match="conditions must be at most 3"):
        biased.subgroups(conditions=4)


# -- who benefits ----------------------------------------------------------------------------------------------------


def test_who_benefits_from_an_action_as_it_is_or_scaled() -> None:
    X = rows(400)
    fixed = gce.who_benefits(GAP_MODEL, X, {"income": +2.0}, by="foreign", space=space_of(X))
    margin = X @ GAP_MODEL[0] + GAP_MODEL[1]
    after = X.copy()
    after[:, 0] = np.minimum(X[:, 0] + 2.0, X[:, 0].max())
    flips = (margin <= 0) & (after @ GAP_MODEL[0] + GAP_MODEL[1] > 0)
    assert fixed.rows.tolist() == np.flatnonzero(flips).tolist()
    assert not len(fixed.harmed)
    assert sum(b.flipped for b in fixed.by_group.values()) == fixed.overall.flipped == flips.sum()
    assert fixed.overall.average_cost <= 2.0 / (np.ptp(X[:, 0]) / 10) + 1e-9
    scaled = gce.who_benefits(GAP_MODEL, X, {"income": +2.0}, mode="scaled", by="foreign", space=space_of(X))
    assert set(fixed.rows) <= set(scaled.rows)
    assert scaled.by_group["foreign = 0"].average_cost < scaled.by_group["foreign = 1"].average_cost
    assert "foreign = 1" in scaled.summary()
    best = fixed.subgroups()
    assert best[0].score > best[0].rest


def test_an_action_may_harm_those_who_had_the_favourable_outcome() -> None:
    X = rows(200)
    found = gce.who_benefits(MODEL, X, {"income": -3.0}, space=space_of(X))
    assert found.overall.flipped == 0
    assert found.overall.average_cost == np.inf
    assert found.overall.harmed == len(found.harmed) > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"action": {}}, "action must map features"),
        ({"action": {"foreign": 1.0}, "by": "foreign"}, "immutable"),
        ({"action": {"wage": 1.0}}, "wage"),
        ({"action": {"income": "more"}}, r"action\['income'\]"),
        ({"action": {"income": 1.0}, "mode": "half"}, "mode must be one of"),
        ({"action": {"income": 1.0}, "by": "sex"}, "by names unknown column"),
    ],
)
def test_who_benefits_given_rubbish_says_so(given: dict[str, Any], message: str) -> None:
    X = rows(50)
    with pytest.raises(InvalidParameterError, match=message):
        gce.who_benefits(MODEL, X, space=space_of(X), **given)


# -- files -----------------------------------------------------------------------------------------------------------


def test_an_audit_round_trips_and_fits_its_schema(biased: Audit, tmp_path: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    from globece.io.audits import FORMAT, schema

    assert FORMAT.schema() == schema()
    text = biased.to_json(tmp_path / "audit.json", members=True)
    back = Audit.from_json(tmp_path / "audit.json")
    assert back.to_json(members=True) == text
    assert back.verdict == biased.verdict
    assert back.subgroups() == biased.subgroups()
    validator = jsonschema.Draft202012Validator(FORMAT.schema())
    validator.validate(json.loads(text))
    short = biased.to_json()
    validator.validate(json.loads(short))
    assert Audit.from_json(short).to_json() == short


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "reads up to version 2"),
        ({"format": "globece.explanation"}, "format must be"),
        ({"fold": []}, "fold must have"),
        ({"seed": -1}, "seed must be"),
        ({"own": []}, "everybody"),
        ({"more": 1}, "unknown key"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(biased: Audit, change: dict[str, Any], message: str) -> None:
    document = biased.to_dict(members=True) | change
    with pytest.raises(gce.GlobeCEError, match=message):
        Audit.from_json(json.dumps(document))


def test_the_number_of_directions_can_be_left_to_the_audit() -> None:
    X = rows(300)
    some = audited(MODEL, X, n_directions="auto")
    assert all(1 <= len(picked) <= 10 for picked in some.own.values())
    with pytest.raises(InvalidParameterError, match="'auto'; got 'many'"):
        audited(MODEL, X, n_directions="many")


def test_ratios_are_between_groups_or_to_everybody() -> None:
    X = rows(300)
    found = audited(MODEL, X, by=np.where(X[:, 2] == 1, "b", "a"))
    scores = [m.score for m in found.by_group.values()]
    assert found.ratio() == pytest.approx(min(scores) / max(scores))
    whole = found.overall.score
    assert found.ratio(method="to_overall") == pytest.approx(min(min(s, whole) / max(s, whole) for s in scores))
    with pytest.raises(InvalidParameterError, match="method must be one of"):
        found.ratio(method="largest")  # type: ignore[arg-type]


def test_affected_inputs_that_are_unknown_are_not_taken_for_covered() -> None:
    nobody, unknown = measured(10, np.zeros(0), 5.0), measured(10, np.zeros(0), 5.0, unknown=4)
    assert (nobody.affected, nobody.coverage, nobody.score) == (0, 1.0, 0.0)
    assert unknown.affected == 4
    assert np.isnan([unknown.coverage, unknown.average_cost, unknown.score, *unknown.quantiles]).all()


def test_candidates_that_cannot_be_the_least_need_not_be_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many inputs, some are followed along all candidates, the others while these may be what they pay."""
    from globece.auditing import pool

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 10, 1500), rng.uniform(0, 10, 1500), np.arange(1500) % 3])
    space = FeatureSpace.from_matrix(X, columns=["income", "savings", "g"])
    monkeypatch.setattr(pool, "CHOSEN_ON", 80)

    def audited() -> Audit:
        return audit(
            (np.array([1.0, 0.7, -0.5]), -9.0), X, by="g", space=space, rng=0, search=Climb(rays=300),
            audit_settings=AuditSettings(checks=False),
        )  # fmt: skip

    full = audited()
    monkeypatch.setattr(pool, "IN_FULL", 100)
    part = audited()
    assert np.array_equal(part.cost, full.cost)
    assert np.array_equal(part.explanation.directions, full.explanation.directions)
    assert np.array_equal(part.explanation.costs, full.explanation.costs)
    assert part.exchange.score == pytest.approx(full.exchange.score, rel=0.3)
    assert str(part.verdict) == str(full.verdict)


def test_twice_as_many_directions_are_climbed_where_each_of_a_few_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each category needs a direction of its own: with three for four of them, results depended on the seed."""
    from globece.search import find_directions

    n = 900
    region = np.arange(n) % 4
    own = np.random.default_rng(0).uniform(0, 10, (n, 4))
    X = np.column_stack([own, np.eye(4)[region], np.random.default_rng(1).integers(0, 2, n)])
    names = [f"f{i}" for i in range(4)]
    space = FeatureSpace.from_matrix(
        X, columns=[*names, *(f"region={i}" for i in range(4)), "g"],
        groups={"region": [f"region={i}" for i in range(4)]}, immutable=["region"],
    )  # fmt: skip

    def model(Z: np.ndarray) -> np.ndarray:
        return np.asarray((Z[:, :4] * Z[:, 4:8]).sum(axis=1) > 7)

    asked: list[Any] = []

    def recorded(*given: Any) -> Any:
        asked.append(given[2])
        return find_directions(*given)

    monkeypatch.setattr("globece.auditing.pool.find_directions", recorded)
    settings: dict[str, Any] = {"by": "g", "space": space, "favourable": True, "rng": 0}
    settings["audit_settings"] = AuditSettings(checks=False)
    audit(model, X, search=Climb(max_features=1, rays=4000), **settings)
    assert asked == [3, 6, 3, 3] * (len(asked) // 4)  # everybody, and two groups, in each fold
    asked.clear()
    audit(lambda Z: Z[:, 0] > 7, X, search=Climb(max_features=1, rays=1000), **settings)
    assert set(asked) == {3}
