"""What a verdict must not do: pass a real bias, guess in silence, or take what it cannot compute for nothing."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import globece as gce
from globece import Audit, AuditSettings, Climb, FeatureSpace
from globece.auditing import artefact
from globece.auditing.artefact import Judged, Terms, Version
from globece.auditing.assumptions import unconstrained
from globece.auditing.conclusions import EQUIVALENT, NEGLIGIBLE, OPEN, RELEVANT, UNKNOWN, decided
from globece.auditing.gates import Gate, check_gate
from globece.auditing.result import check_exceeds
from globece.auditing.statistics import Contrast, Estimate, Mean
from globece.cli import main
from globece.errors import GlobeCEWarning, InvalidDataError, InvalidParameterError

QUICK = AuditSettings(checks=False)


def audited(n: int = 900, shift: float = 2.0, *, label: Any = None, seed: int = 0, **more: Any) -> Audit:
    """Income decides, and group 1 needs ``shift`` more of it."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 10, n), np.arange(n) % 2])
    space = FeatureSpace.from_matrix(X, columns=["income", "g"])
    settings: dict[str, Any] = {"favourable": True, "rng": 0, "search": Climb(rays=600), "audit_settings": QUICK} | more
    return gce.audit(
        lambda Z: Z[:, 0] - shift * Z[:, 1] > 6, X, by="g" if label is None else label, space=space, **settings
    )


def run(*words: Any) -> Any:
    return CliRunner().invoke(main, ["audit", *map(str, words)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("verdict")


# -- the command lines that passed a bias ------------------------------------------------------------------------------


def loans(path: Path, level: np.ndarray | None = None, group: np.ndarray | None = None) -> Path:
    rng = np.random.default_rng(0)
    n = 1000
    income = rng.uniform(0, 10, n).round(3)
    sex = np.where(rng.random(n) < 0.5, "f", "m") if group is None else group
    more = np.select([sex == "f", sex == "mid"], [2.0 if group is None else 4.0, 0.5], 0.0)
    frame = pd.DataFrame({"income": income, "who": sex, "approved": (income - more > 6).astype(int)})
    if level is not None:
        frame["region"] = level
    frame.to_csv(path, index=False)
    return path


COMMON = ("--model", "boosting", "--outcome", "approved", "--by", "who")


def test_a_level_with_one_member_of_a_group_no_longer_passes_the_gate(folder: Path) -> None:
    """It made p = 1: `globece audit rare.csv ... --control region --fail-above 0.5` passed a gap of 2."""
    rng = np.random.default_rng(1)
    level = np.array(["north", "south"])[rng.integers(0, 2, 1000)]
    path = loans(folder / "rare.csv", level)
    frame = pd.read_csv(path)
    affected = frame["approved"] == 0
    level[frame.index[affected & (frame["who"] == "f")][:1]] = "rare"
    level[frame.index[affected & (frame["who"] == "m")][:40]] = "rare"
    loans(path, level)
    done = run(path, *COMMON, "--favourable", 1, "--control", "region", "--fail-above", "0.5")
    assert done.exit_code == 3, done.output
    assert "Failed: f against m" in done.stderr


def test_every_group_is_gated_and_not_only_the_one_with_the_smallest_p(folder: Path) -> None:
    """A large group with a small gap and a smaller p hid a small group with a large one."""
    group = np.repeat(["m", "mid", "f"], [470, 470, 60])
    path = loans(folder / "three.csv", group=group)
    done = run(path, *COMMON, "--favourable", 1, "--fail-above", "0.8")
    assert done.exit_code == 3, done.output
    assert "Failed: f against everybody else" in done.stderr


def test_an_outcome_that_nobody_wants_is_not_taken_for_favourable(folder: Path) -> None:
    """`--outcome default` was audited as if people wanted to default, and passed."""
    path = folder / "default.csv"
    frame = pd.read_csv(loans(path))
    frame["default"] = 1 - frame.pop("approved")
    frame.to_csv(path, index=False)
    words = (path, "--model", "boosting", "--outcome", "default", "--by", "who", "--fail-above", "0.5")
    refused = run(*words)
    assert refused.exit_code == 2
    assert "say which outcome is favourable with --favourable" in refused.stderr
    said = run(*words, "--favourable", 0)
    assert said.exit_code == 3, said.output
    assert said.stdout.startswith("Favourable outcome: 0.")


# -- what cannot be computed -------------------------------------------------------------------------------------------


def test_levels_with_one_member_each_are_unknown_and_fail_every_gate() -> None:
    found = audited(300, control=np.arange(300) // 2)
    (c,) = found.comparisons
    assert np.isnan(c.gaps["score"].p)
    assert found.verdict.conclusion == UNKNOWN
    assert "cannot be computed" in found.verdict.text
    assert check_exceeds(found, 100.0)
    assert not check_gate(found, Gate(above=100.0)).passed
    assert not check_gate(found, Gate(fail_on=("relevant",))).passed


def test_levels_with_people_of_one_group_only_are_named() -> None:
    rng = np.random.default_rng(0)
    level = np.where(np.arange(900) % 2 == 1, "a", rng.choice(["a", "b"], 900))
    found = audited(900, control=level)
    assert found.comparisons[0].left_out[0] > 0
    assert any("not compared" in w for w in found.verdict.warnings)


def test_a_gate_does_not_pass_over_a_group_that_is_mostly_left_out() -> None:
    level = np.where(np.arange(900) % 2 == 1, "a", "b")
    level[1:80:2] = "b"  # of group 1 only these can be compared
    found = audited(900, 0.0, control=level)
    assert found.comparisons[0].left_out[1] > 200
    assert "Not compared, as nobody of the other side has their level" in found.verdict.text
    assert any("not compared with g = 0" in u for u in check_gate(found, Gate(above=100.0)).unknown)


def test_a_group_without_affected_inputs_is_gated_by_its_rejections() -> None:
    """It is in no comparison, so that a rejection rate of 0 against one of a half passed."""
    label = np.array(["a", "b", "c"])[np.arange(900) % 3]

    def model(Z: np.ndarray) -> np.ndarray:
        return (Z[:, 0] > 5) | (Z[:, 1] > 1)

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 10, 900), np.arange(900) % 3])
    space = FeatureSpace.from_matrix(X, columns=["income", "g"], immutable=["g"])
    found = gce.audit(model, X, by=label, space=space, favourable=True, rng=0, search=Climb(rays=300),
                      audit_settings=QUICK)  # fmt: skip
    assert [(c.group, c.other) for c in found.comparisons] == [("a", "b")]
    assert "Nobody is turned down in c" in found.verdict.text
    assert "the model itself rejects c less often than everybody else" in found.verdict.text
    outcome = check_gate(found, Gate(rejection_above=0.2))
    assert len(outcome.failures) == 1
    assert outcome.failures[0].startswith("c against everybody else: the gap in rejection rate")
    assert check_gate(found, Gate(rejection_above=0.9)).passed
    assert found.to_dict()["criteria"][-1]["name"] == "rejection_rate"
    (*others, last) = found.criteria
    lost = replace(last, gap=replace(last.gap, low=np.nan, high=np.nan, p=np.nan, p_adjusted=np.nan))
    outcome = check_gate(replace(found, criteria=(*others, lost)), Gate(rejection_above=0.2))
    assert not outcome.passed
    assert "the gap in rejection rate between c and everybody else is unknown" in outcome.unknown


def test_a_gate_does_not_pass_over_groups_that_are_too_small() -> None:
    label = np.where(np.arange(900) < 20, "few", np.where(np.arange(900) % 2 == 1, "b", "a"))
    found = audited(900, 0.0, label=label)
    assert found.verdict.not_compared == ("few",)
    assert not check_gate(found, Gate(above=5.0)).passed
    assert check_gate(found, Gate(above=5.0, allow_small=True)).passed
    assert "few" in found.verdict.text


def test_gates_on_coverage_rejection_and_conclusions() -> None:
    found = audited(900, 2.0)
    assert check_gate(found, Gate(rejection_above=0.05)).failures
    assert check_gate(found, Gate(rejection_above=0.9)).passed
    assert check_gate(found, Gate(coverage_above=0.05)).passed
    assert check_gate(audited(900, 6.0), Gate(coverage_above=0.05)).failures
    assert check_gate(found, Gate(fail_on="relevant")).failures  # type: ignore[arg-type]
    with pytest.raises(InvalidParameterError, match="fail_on must be some of"):
        Gate(fail_on=("bias",))


# -- decisions ---------------------------------------------------------------------------------------------------------


def contrast(gap: float, error: float) -> Contrast:
    return Contrast(Estimate(5.0 + gap, (Mean(error, 500.0),)), Estimate(5.0, (Mean(0.0, 500.0),)))


@pytest.mark.parametrize(
    ("gap", "error", "conclusion"),
    [
        (2.0, 0.2, RELEVANT),
        (-2.0, 0.2, RELEVANT),
        (1.1, 0.2, OPEN),
        (0.3, 0.1, NEGLIGIBLE),
        (0.05, 0.2, EQUIVALENT),
        (0.05, 0.7, UNKNOWN),
        (0.62, 0.22, OPEN),
        (np.nan, 0.1, UNKNOWN),
        (0.0, np.nan, UNKNOWN),
    ],
)
def test_the_five_conclusions(gap: float, error: float, conclusion: str) -> None:
    assert decided(contrast(gap, error), QUICK, 1, 1.0).conclusion == conclusion


def test_intervals_and_p_never_contradict_each_other() -> None:
    for n_tests in (1, 3, 7):
        for gap in np.linspace(-1.0, 1.0, 41):
            from_data = gce.auditing.measures.Gap.of(contrast(float(gap), 0.3), QUICK, n_tests)
            assert (from_data.p_adjusted < 0.05) == (from_data.low > 0 or from_data.high < 0)
            assert from_data.low <= from_data.value <= from_data.high


def test_the_margin_is_relative_so_that_units_do_not_matter() -> None:
    one = audited(900, 0.0)
    scaled = audited(900, 0.0, audit_settings=replace(QUICK, relevant_share=0.4))
    assert one.verdict.margin == pytest.approx(0.2 * one.overall.score)
    assert scaled.verdict.margin == pytest.approx(0.4 * one.overall.score)
    assert audited(900, 0.0, audit_settings=replace(QUICK, relevant=0.7)).verdict.margin == 0.7


def test_rejections_with_a_reference_quote_their_own_comparison() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 10, 1500), np.arange(1500) % 3])
    space = FeatureSpace.from_matrix(X, columns=["income", "g"])

    def model(Z: np.ndarray) -> np.ndarray:
        return Z[:, 0] > 2 + 2 * Z[:, 1]

    found = gce.audit(model, X, by="g", reference="g = 2", space=space, favourable=True, rng=0, audit_settings=QUICK)
    first = next(c for c in found.comparisons if c.group == "g = 0")
    assert f"more often than g = 0, by {abs(first.gaps['rejection_rate'].value) * 100:.1f} percentage" in str(
        found.verdict
    )


def test_the_verdict_names_each_side_of_each_comparison_once() -> None:
    """With the worst group as the reference it said "the same for g = 2 (-2.1)", against g = 2 itself."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 10, 1500), np.arange(1500) % 3])
    space = FeatureSpace.from_matrix(X, columns=["income", "g"])

    def model(Z: np.ndarray) -> np.ndarray:
        return Z[:, 0] - 2.5 * (Z[:, 1] == 2) > 6

    settings: dict[str, Any] = {"by": "g", "space": space, "favourable": True, "rng": 0, "audit_settings": QUICK}
    found = gce.audit(model, X, reference="g = 2", **settings)
    assert found.verdict.against == "g = 2"
    assert found.verdict.also == ()
    assert "compared with g = 2 (minus: it pays less): relevant bias: g = 0 -" in found.verdict.text
    settings["audit_settings"] = replace(QUICK, relevant=1.5)
    rich = gce.audit(lambda Z: Z[:, 0] + 4.0 * (Z[:, 1] == 0) > 6, X, **settings).verdict.text
    assert "Relevant bias in favour of g = 0: people turned down in g = 0 pay" in rich
    assert "less for recourse on average than everybody else" in rich


def test_a_gate_on_conclusions_quotes_the_gap_with_the_sign_of_its_sides() -> None:
    (failure,) = check_gate(audited(900, 2.0), Gate(fail_on=("relevant",))).failures
    assert failure.startswith("g = 0 against g = 1: relevant bias (-")


def test_a_verdict_on_people_without_any_recourse_says_so() -> None:
    X = np.column_stack([np.random.default_rng(0).uniform(0, 10, 400), np.arange(400) % 2])
    space = FeatureSpace.from_matrix(X, columns=["income", "g"])
    found = gce.audit(
        lambda Z: Z[:, 0] > 100, X, by="g", space=space, favourable=True, rng=0, search=Climb(rays=100),
        audit_settings=QUICK,
    )  # fmt: skip
    assert "Nobody in the groups compared has recourse within the budget" in found.verdict.text
    assert "Everybody is turned down in g = 0 and g = 1" in found.verdict.text


def test_differences_are_adjusted_where_the_verdict_is() -> None:
    rng = np.random.default_rng(2)
    level = rng.random(1200) < np.where(np.arange(1200) % 2 == 1, 0.8, 0.2)
    found = audited(1200, 1.0, control=np.where(level, "x", "y"))
    assert found.difference() == pytest.approx(abs(found.verdict.size))
    assert 0 < found.ratio() < 1
    with pytest.raises(InvalidParameterError, match="within levels of a control"):
        found.difference(method="to_overall")


# -- checks ------------------------------------------------------------------------------------------------------------


def survives(gap: float, error: float, then: float, then_error: float) -> bool | None:
    versions = [Version("as it is", np.zeros(1), ""), Version("other", np.ones(1), "")]
    results = [Judged([contrast(gap, error)], 4.0, {}), Judged([contrast(then, then_error)], 4.0, {})]
    return artefact.checked(versions, results, Terms(0.05, 0.2, ["a against b"], 0))[0].survives


def test_a_gap_survives_by_its_size_and_not_by_its_p_value() -> None:
    assert survives(0.0, 0.2, 2.0, 1.06) is None  # nothing, then 2.0 with p 0.06
    assert survives(0.8, 0.2, 0.01, 0.005) is False  # 0.8, then 0.01 with p 0.04
    assert survives(0.8, 0.2, 0.7, 0.2) is True
    assert survives(0.8, 0.2, -0.8, 0.2) is False
    assert survives(0.1, 0.2, 0.2, 0.2) is True
    assert survives(0.1, 0.2, 2.0, 0.2) is False
    assert survives(0.8, 0.2, np.nan, 0.2) is None


def test_a_check_whose_costs_are_the_same_says_that_it_says_nothing() -> None:
    versions = [Version("as it is", np.ones(1), ""), Version("deciles", np.ones(1), "", rescaled=True)]
    results = [Judged([contrast(0.8, 0.1)], 4.0, {})] * 2
    found = artefact.checked(versions, results, Terms(0.05, 0.2, ["a against b"], 0))[0]
    assert found.survives is None
    assert "says nothing" in found.remark


def test_deciles_of_a_feature_that_is_mostly_zero_say_nothing() -> None:
    """Its deciles fall together, so that costs by deciles are costs by bins, and every gap kept its size."""
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(500) < 0.95, 0.0, rng.uniform(0, 100, 500))
    frame = pd.DataFrame({"gain": gain, "g": np.where(np.arange(500) % 2, "b", "a")})
    found = gce.audit(
        lambda X: np.asarray(X["gain"] - 20.0 * (X["g"] == "b") > 30), frame, by="g", favourable=True, rng=0,
        search=Climb(rays=100),
    )  # fmt: skip
    (check,) = [c for c in found.checks if c.name == "deciles"]
    assert check.survives is None
    assert "gain: half the rows or more share one value" in check.remark
    assert "nothing can be told from costs by deciles" in found.verdict.text


# -- what would be assumed in silence ----------------------------------------------------------------------------------


def table(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    sex = np.where(np.arange(n) % 2, "Male", "Female")
    status = np.where(rng.random(n) < 0.4, np.where(sex == "Male", "Husband", "Wife"), "Single")
    return pd.DataFrame(
        {"income": rng.uniform(0, 10, n), "sex": sex, "relationship": status, "age": rng.integers(20, 70, n)}
    )


def grants(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray((frame["income"] + 2.0 * (frame["relationship"] != "Single") > 6).astype(int))


def test_sensitive_features_that_may_move_give_one_warning() -> None:
    with pytest.warns(GlobeCEWarning, match="immutable=.'relationship'. and increasing=.'age'."):
        found = gce.audit(grants, table(), by="sex", favourable=1, rng=0, search=Climb(rays=100), audit_settings=QUICK)
    assert any("--immutable relationship --increasing age" in w for w in found.verdict.warnings)
    assert "Note: recourse may change 'relationship', 'age'" in found.verdict.text
    assert found.basis.constraints["sex"] == "does not change"
    # Wife and Husband stand for the groups: nobody becomes one
    assert found.basis.constraints["relationship"] == "does not become Husband, Wife"
    moved = found.explanation.counterfactuals()
    changed = moved.before["relationship"] != moved.after["relationship"]
    assert not moved.after["relationship"][changed].isin(["Husband", "Wife"]).any()


def test_rows_without_a_group_do_not_hide_what_stands_for_the_groups() -> None:
    frame = table(600)
    sex = frame.pop("sex")
    sex[::20] = None
    space = FeatureSpace.from_frame(frame, increasing=["age"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = gce.audit(
            grants, frame, by=sex, space=space, favourable=1, rng=0, search=Climb(rays=100), audit_settings=QUICK
        )
    assert found.basis.constraints["relationship"] == "does not become Husband, Wife"


@pytest.mark.parametrize(
    "name",
    ["CODE_GENDER", "isFemale", "native-country", "NAME_FAMILY_STATUS", "DAYS_BIRTH", "race_ethnicity", "AgeYears"],
)
def test_names_of_sensitive_features(name: str) -> None:
    space = FeatureSpace.from_matrix(np.array([[0.0, 1.0], [3.0, 5.0]]), columns=["income", name])
    assert unconstrained(space) == [name]


def test_what_is_held_is_said_and_silences_the_warning() -> None:
    space = FeatureSpace.from_frame(table(), immutable=["relationship"], increasing=["age"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = gce.audit(
            grants, table(), by="sex", space=space, favourable=1, rng=0, search=Climb(rays=300), audit_settings=QUICK
        )
    said = " ".join(found.verdict.rests_on)
    for part in (
        "age only rises",
        "sex and relationship do not change",
        "300 rows",
        "budget",
        "seed 0",
        "numpy",
        "nobody said",
    ):
        assert part in said


def test_a_guessed_outcome_is_said() -> None:
    space = FeatureSpace.from_frame(table(), immutable=["relationship", "age"])
    with pytest.warns(GlobeCEWarning, match="guessed to be 1"):
        found = gce.audit(grants, table(), by="sex", space=space, rng=0, search=Climb(rays=300), audit_settings=QUICK)
    assert found.basis.guessed
    assert found.verdict.text.startswith("Favourable outcome: 1 (guessed: nobody said so).")
    assert found.to_dict()["favourable"] == "1"


# -- bad input ---------------------------------------------------------------------------------------------------------


def test_clusters_stay_in_one_fold_and_crossing_ones_are_said() -> None:
    person = np.arange(900) // 3
    found = audited(900, 1.0, cluster=person, label=np.where(person % 2, "b", "a"))
    whose = person[found.explanation.rows]
    assert all(len(np.unique(found.fold[whose == i])) == 1 for i in np.unique(whose))
    assert "300 people" in found.verdict.rests_on[0]
    crossing = audited(900, 1.0, cluster=person)
    assert any("300 of 300 clusters have rows in several groups" in w for w in crossing.verdict.warnings)


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("nobody", "cluster names unknown column"),
        (3, "cluster must be a column, or an array"),
        (np.zeros(900), "all 900 rows are of one person"),
        (np.where(np.arange(900) < 5, np.nan, np.arange(900)), "cluster is missing in 5 rows"),
    ],
)
def test_clusters_given_rubbish_say_so(cluster: Any, message: str) -> None:
    with pytest.raises((InvalidParameterError, InvalidDataError), match=message):
        audited(900, cluster=cluster)


def test_groups_that_are_all_favourable_or_all_affected_are_said() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 10, 900), np.arange(900) % 2])
    label = np.where(X[:, 0] > 8, "rich", np.where(X[:, 0] < 2, "poor", np.where(X[:, 1] == 1, "b", "a")))
    space = FeatureSpace.from_matrix(X, columns=["income", "g"], immutable=["g"])
    found = gce.audit(
        lambda Z: Z[:, 0] > 6, X, by=label, space=space, favourable=True, rng=0, search=Climb(rays=300),
        audit_settings=QUICK,
    )  # fmt: skip
    assert found.by_group["rich"].note == "nobody is affected"
    assert any("everybody is affected in poor" in w for w in found.verdict.warnings)
    assert set(found.by_group) == {"a", "b", "poor", "rich"}


def test_groups_by_a_float_column_ask_for_bins() -> None:
    with pytest.raises(InvalidParameterError, match="say how to bin it"):
        audited(300, label="income")


def test_one_member_each_is_not_judged() -> None:
    with pytest.raises(InvalidParameterError, match="gives 300 groups; at most 200"):
        audited(300, label=np.arange(300).astype(str))
    found = audited(150, label=np.arange(150).astype(str))
    assert found.comparisons == ()
    assert found.verdict.conclusion == UNKNOWN
    assert not check_gate(found, Gate(above=1.0)).passed
