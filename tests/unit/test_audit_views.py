"""An audit's figures and its command; the paper's two user studies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import globece as gce
from globece import Audit, AuditSettings
from globece.cli import main
from globece.datasets.user_studies import UserStudy, black_box_1, black_box_2, least_costs
from globece.io.frames import read_frame

LOGISTIC = ("--model", "logistic", "--outcome", "approved", "--favourable", "True")
QUICK = AuditSettings(permutations=499, resamples=200, checks=False)


def audited(study: UserStudy, audit_settings: AuditSettings = QUICK) -> Audit:
    settings: dict[str, Any] = {"rng": 0, "audit_settings": audit_settings, "favourable": 1}
    return gce.audit(study.model, study.X, by=study.by, space=study.space, cost=study.cost, **settings)


@pytest.fixture(scope="module")
def first() -> Audit:
    return audited(black_box_1(1200))


# -- the user studies --------------------------------------------------------------------------------------------------


def test_black_box_1_has_a_model_bias_against_females_and_a_recourse_bias_against_males(first: Audit) -> None:
    """The paper's fig:userstudies: costs 1 and 3 for 90 and 10 % of the females, 2 and 1 for those of the males."""
    assert first.verdict.conclusion == "relevant bias"
    assert first.verdict.against == "Male"
    assert first.verdict.model_bias_against == "Female"
    female, male = first.by_group["Female"], first.by_group["Male"]
    assert female.rejection_rate > male.rejection_rate
    assert female.coverage == male.coverage == 1.0
    assert female.average_cost == pytest.approx(0.9 * 1 + 0.1 * 3, abs=0.1)
    assert male.average_cost == pytest.approx(0.1 * 1 + 0.9 * 2, abs=0.1)
    assert set(np.unique(first.costs_of("Female"))) == {1.0, 3.0}
    assert set(np.unique(first.costs_of("Male"))) == {1.0, 2.0}
    # exchanged, apples meet apples: under the females' directions males pay no less
    assert first.exchange.score[0, 1] >= first.exchange.score[1, 1]


@pytest.mark.paper_data
def test_black_box_2_is_found_at_costs_within_2_percent_of_the_closed_form() -> None:
    study = black_box_2(3000)
    found = audited(study)
    assert (found.verdict.conclusion, found.verdict.against) == ("relevant bias", "ForeignWorker = 1")
    optimum = least_costs(study)[found.explanation.rows]
    assert found.cost.mean() <= 1.02 * optimum.mean()
    assert (found.cost <= 1.02 * optimum + 1e-9).all()
    assert (found.cost >= optimum * (1 - 1e-9)).all()


@pytest.mark.paper_data
def test_black_box_2_has_no_bias_when_the_group_is_at_random() -> None:
    found = audited(black_box_2(3000, gap=0.0))
    assert found.verdict.against is None
    assert found.verdict.conclusion == "equivalent"
    assert found.verdict.model_bias_against is None


# -- figures -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["GroupProfilesDisplay", "GroupCostsDisplay", "GroupTranslationsDisplay", "ExchangeDisplay"]
)
def test_figures_draw_without_computing_again(first: Audit, name: str) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    from globece import plots

    display = getattr(plots, name).from_audit(first)
    assert display.plot() is display
    display.figure_.canvas.draw()
    _, ax = plt.subplots()
    display.plot(ax=ax)
    assert display.ax_ is ax
    plt.close("all")


def test_figures_say_so_when_no_group_is_large_enough() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    from globece import plots

    X = np.arange(20.0)[:, None]
    few = gce.audit(lambda X: X[:, 0] > 9, X, by=np.arange(20) % 2, favourable=True, rng=0, search=gce.Climb(rays=200))
    for name in ("GroupProfilesDisplay", "GroupCostsDisplay", "GroupTranslationsDisplay", "ExchangeDisplay"):
        assert "large enough" in getattr(plots, name).from_audit(few).plot().ax_.texts[0].get_text()
    plt.close("all")


def test_profiles_have_bands_around_them_and_end_at_the_coverage(first: Audit) -> None:
    from globece.plots import GroupProfilesDisplay

    bands = GroupProfilesDisplay.from_audit(first).bands
    for name, band in bands.items():
        assert (band.low <= band.coverage + 1e-12).all()
        assert (band.coverage <= band.high + 1e-12).all()
        assert band.coverage[-1] == first.by_group[name].coverage


# -- the command -------------------------------------------------------------------------------------------------------


def loans(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    n = 500
    income, sex = rng.uniform(0, 10, n), rng.choice(["f", "m"], n)
    approved = income - 2.0 * (sex == "f") > 5
    frame = pd.DataFrame({"income": income.round(3), "age": rng.integers(18, 80, n), "sex": sex, "approved": approved})
    frame.to_csv(folder / "loans.csv", index=False)
    return folder / "loans.csv"


def run(*words: Any) -> Any:
    return CliRunner().invoke(main, ["audit", *map(str, words)])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return loans(tmp_path_factory.mktemp("audit"))


def test_the_command_shows_a_verdict_and_fails_a_gate(table: Path) -> None:
    common = (table, *LOGISTIC, "--by", "sex", "--immutable", "age")
    file = table.with_name("audit.json")
    done = run(*common, "--fail-above", "0.5", "--json", file, "--figures", table.with_name("figures"))
    assert done.exit_code == 3, done.output
    assert "gap against f" in done.stdout
    assert "Failed: f against m: the gap in score" in done.stderr
    found = Audit.from_json(file)
    assert found.verdict.against == "f"
    assert len(list(table.with_name("figures").glob("*.png"))) == 4
    passed = run(*common, "--fail-above", "9", "--json")
    assert passed.exit_code == 0
    assert "Passed: the worst of 1 comparisons is 'gap, relevance open'" in passed.stderr
    assert json.loads(passed.stdout) == json.loads(file.read_text())


def test_the_command_cuts_numbers(table: Path) -> None:
    done = run(table, *LOGISTIC, "--by", "age:40,60", "--by", "sex")
    assert done.exit_code == 0, done.output
    assert "40 <= age < 60 & m" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--study", "1", "--by", "sex"), "--study brings its own"),
        (("DATA", *LOGISTIC), "needs DATA, --model and --by"),
        (("DATA", *LOGISTIC, "--by", "race"), "--by names unknown feature"),
        (("DATA", *LOGISTIC, "--by", "age"), "say how to bin it"),
        (("DATA", *LOGISTIC, "--by", "age:old"), "must cut 'age' at numbers"),
        (("DATA", *LOGISTIC, "--by", "sex", "--reference", "x"), "reference"),
        (("--study", "1", "--fail-above", "-1"), "--fail-above must be a number"),
    ],
)
def test_the_command_says_what_is_wrong(table: Path, words: tuple[str, ...], message: str) -> None:
    done = run(*(table if word == "DATA" else word for word in words))
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_reads_its_data_once(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths: list[str] = []

    def reading(path: str, **how: Any) -> Any:
        paths.append(path)
        return read_frame(path, **how)

    monkeypatch.setattr("globece.cli.task.read_frame", reading)
    done = run(table, *LOGISTIC, "--by", "sex", "--reference", "nobody")
    assert "reference" in done.stderr
    assert paths == [str(table)]
