"""What the commands share: a configuration that options override, words for mistakes, data of any kind, exit codes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import globece as gce
from globece.cli import main
from globece.cli.config import read_config
from globece.cli.options import Asked
from globece.cli.question import Question
from globece.cli.serve import _desk
from globece.errors import InvalidParameterError
from globece.page.about import About
from globece.web.limits import Limits
from tests.unit.test_cli import error, run

QUICK = ("--time-limit", "1")
CONFIG = """
[data]
file = "loans.csv"
[model]
kind = "logistic"
[outcome]
column = "approved"
favourable = "yes"
[cost]
budget = 6
[search]
directions = 2
seed = 5
[audit]
by = ["sex"]
[page]
title = "Loans in March"
people = "applicants"
[features]
income = { weight = 2, label = "monthly income", unit = "EUR", may = "rise", range = [0, 200], whole = false }
savings = { kind = "ordinal", order = ["none", "some", "much"], may = "rise" }
housing = { permitted = ["own", "rent"] }
sex = { may = "fixed" }
number = { used = false }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Loans in files of each kind, and a configuration."""
    path = tmp_path_factory.mktemp("loans")
    rng = np.random.default_rng(1)
    n = 240
    loans = pd.DataFrame(
        {
            "number": np.arange(n),
            "income": rng.integers(10, 90, n),
            "debt": rng.normal(5, 2, n).round(2),
            "savings": rng.choice(["none", "some", "much"], n),
            "housing": rng.choice(["own", "rent", "free"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    good = loans["income"] - 4 * loans["debt"] + 15 * (loans["savings"] == "much") + 5 * (loans["sex"] == "m") > 30
    loans["approved"] = np.where(good, "yes", "no")
    loans.to_csv(path / "loans.csv", index=False)
    loans.to_parquet(path / "loans.parquet")
    with pa.ipc.new_file(path / "loans.arrow", pa.Table.from_pandas(loans, preserve_index=False).schema) as out:
        out.write_table(pa.Table.from_pandas(loans, preserve_index=False))
    (path / "c.toml").write_text(CONFIG, encoding="utf-8")
    return path


def explained(*arguments: Any) -> gce.Explanation:
    done = run("explain", *arguments, *QUICK, "--json=-", "-q")
    assert done.exit_code == 0, done.stderr
    return gce.Explanation.from_json(done.stdout)


def test_a_configuration_says_what_options_say_and_more(folder: Path) -> None:
    ex = explained("--config", folder / "c.toml")
    assert ex.space.names == ("income", "debt", "savings", "housing", "sex")
    assert ex.budget == 6
    assert ex.provenance.seed == 5
    assert 1 <= ex.n_directions <= 2
    income, savings, housing = ex.space["income"], ex.space["savings"], ex.space["housing"]
    assert (income.sense, income.low, income.high, income.whole) == (1, 0, 200, False)
    assert ex.cost.weight(income) == 2
    assert (savings.kind, savings.categories, savings.sense) == ("ordinal", ("none", "some", "much"), 1)
    assert dict(zip(housing.categories, housing.permitted, strict=True)) == {"free": False, "own": True, "rent": True}
    assert ex.space["sex"].immutable


def test_options_win_for_the_features_they_name(folder: Path) -> None:
    wishes = ("--movable", "sex", "--immutable", "income", "--budget", "3", "--categorical", "savings", "--seed", "1")
    ex = explained("--config", folder / "c.toml", *wishes, "--favourable", "no")
    assert (ex.budget, ex.provenance.seed) == (3, 1)
    assert ex.space["income"].immutable
    assert not ex.space["sex"].immutable
    assert ex.space["savings"].kind == "categorical"
    assert ex.provenance.favourable.startswith("no")
    assert [f.permitted for f in ex.space.features if f.name == "housing"] == [(False, True, True)]  # still said


def test_scales_and_norms(folder: Path, tmp_path: Path) -> None:
    text = CONFIG.replace("loans.csv", str(folder / "loans.csv")).replace(
        "budget = 6", 'scale = "deciles"\nnorm = "l2"'
    )
    (tmp_path / "c.toml").write_text(text, encoding="utf-8")
    ex = explained("--config", tmp_path / "c.toml")
    assert (ex.cost.kind, ex.cost.norm) == ("deciles", "l2")
    (tmp_path / "c.toml").write_text(text.replace("weight = 2", "width = 2"), encoding="utf-8")
    assert "deciles have no widths of bins (income)" in error(run("explain", "--config", tmp_path / "c.toml"))
    (tmp_path / "c.toml").write_text(text.replace('scale = "deciles"', "").replace("weight = 2", "width = 2"), "utf-8")
    assert explained("--config", tmp_path / "c.toml").cost.scales["income"].knots[-1] == 2


def test_columns_of_a_feature_that_is_one_hot_already(folder: Path, tmp_path: Path) -> None:
    loans = pd.read_csv(folder / "loans.csv")
    encoded = pd.get_dummies(loans[["income", "debt", "housing", "approved"]], columns=["housing"], dtype=int)
    encoded.to_csv(tmp_path / "encoded.csv", index=False)
    (tmp_path / "c.toml").write_text(
        '[data]\nfile = "encoded.csv"\n[model]\nkind = "logistic"\n[outcome]\ncolumn = "approved"\nfavourable = "yes"\n'
        '[features]\nhousing = { columns = ["housing_own", "housing_rent", "housing_free"], may = "fixed" }\n',
        encoding="utf-8",
    )
    ex = explained("--config", tmp_path / "c.toml")
    assert ex.space["housing"].sources == ("housing_own", "housing_rent", "housing_free")
    assert ex.space["housing"].immutable


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ("sex = {", "sexx = {", "line 23: DATA has no column 'sexx'. Did you mean 'sex'?"),
        (
            "housing = {",
            'housing = { kind = "continuous",',
            "line 22: 'housing' cannot be continuous: its column makes",
        ),
        ('"some", "much"', '"much"', "line 21: the order of 'savings' lacks ['some'], which DATA has"),
        ('column = "approved"', 'column = "aproved"', "unknown column 'aproved'"),
        ('favourable = "yes"', 'favourable = ""', "line 8: favourable is empty; say which outcome people want, one of"),
        ('by = ["sex"]', "by = []", "an audit needs DATA, --model and --by; "),
        ('by = ["sex"]', 'by = ["sexx"]', "--by names unknown feature(s) ['sexx']"),
        ("loans.csv", "lones.csv", "lones.csv': it does not exist"),
    ],
)
def test_what_does_not_fit_the_data_is_named(
    wrong: str, right: str, message: str, folder: Path, tmp_path: Path
) -> None:
    text = CONFIG.replace(wrong, right)
    (tmp_path / "c.toml").write_text(text.replace("loans.csv", (folder / "loans.csv").as_posix()), encoding="utf-8")
    done = run("audit", "--config", tmp_path / "c.toml", "-q")
    assert done.exit_code == 2
    assert message in error(done)


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_data_of_each_kind(kind: str, folder: Path) -> None:
    ex = explained(folder / f"loans.{kind}", "--config", folder / "c.toml")
    assert ex.n_rows == 240


def test_pages_speak_the_configured_words(folder: Path, tmp_path: Path) -> None:
    for command in ("explain", "audit"):
        page = tmp_path / f"{command}.html"
        done = run(command, "--config", folder / "c.toml", *QUICK, "--html", page)
        assert done.exit_code == 0, done.stderr
        assert f"Page written to {page}; open it in a browser: {page.as_uri()}" in done.stderr
        text = page.read_text(encoding="utf-8")
        assert all(words in text for words in ("Loans in March", "monthly income", "applicants"))


def test_a_report_with_a_configuration_comes_out_again(folder: Path, tmp_path: Path) -> None:
    done = run("report", "--config", folder / "c.toml", "--by", "", "--effort", "quick", "--out", tmp_path / "r.zip")
    assert done.exit_code == 0, done.stderr
    done = run("verify-report", tmp_path / "r.zip", "--data", folder / "loans.csv")
    assert done.exit_code == 0, done.stderr
    assert "come out again byte by byte" in done.stderr


def test_the_live_page_begins_with_the_configured_weights(folder: Path) -> None:
    config = read_config(folder / "c.toml")
    data = str(folder / "loans.csv")
    asked = Asked(data=data, model="logistic", outcome="approved", features=config.features, config=config)
    desk = _desk(Question(asked), About(), Limits())
    first = desk.checked(desk.first())
    assert first["features"] == {"income": {"may": "rise", "weight": 2.0}}
    space, cost = desk.posed(first)
    assert cost.weight(space["income"]) == 2
    assert space["income"].sense == 1
    assert space["sex"].immutable
    deciles = replace(asked, scale="deciles")
    with pytest.raises(InvalidParameterError, match="the live page prices changes by bins and l1"):
        _desk(Question(deciles), About(), Limits())


def test_quiet_and_verbose(folder: Path) -> None:
    common = ("explain", "--config", folder / "c.toml", *QUICK)
    quiet, usual, more, most = (run(*common, *volume) for volume in ((), ("-v",), ("-vv",), ("-q",)))
    usual, more, most, quiet = quiet, usual, more, most
    assert quiet.stderr == ""
    assert "trained on 192 rows" in usual.stderr
    assert not re.search(r"^\[ *\d", usual.stderr, re.MULTILINE)
    assert re.search(r"^\[ *\d+\.\d s\] read .*loans\.csv: 240 rows, 7 columns", more.stderr, re.MULTILINE)
    assert "seed = 5 (configuration)" in most.stderr
    assert "time_limit = 1.0 (command line)" in most.stderr
    assert "(configuration)" not in more.stderr
    failed = run("explain", "--config", folder / "c.toml", "--favourable", "maybe", "-vv")
    assert "Traceback" in failed.stderr
    assert failed.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audti"], "No such command 'audti'. Did you mean 'audit'?"),
        (["explain", "x.csv", "--model", "bosting"], "Did you mean 'boosting'?"),
        (["explain", "x.csv"], "globece explain needs --model, a model file or one of logistic, forest, boosting"),
        (["explain", "--model", "logistic"], "globece explain needs DATA"),
        (["explain", "--config", "nowhere.toml"], "cannot read the configuration 'nowhere.toml': it does not exist"),
        (["audit", "--study", "1", "--by", "sex"], "--study brings its own data"),
        (["who-benefits", "x.csv", "--model", "logistic"], "name at least one change"),
        (["datasets", "german-credit"], "name the file to write german-credit to"),
        (["datasets", "compas", "--words", "--out", "x.csv"], "--words is for german-credit"),
    ],
)
def test_misuse_is_named(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr


def test_who_benefits(folder: Path, tmp_path: Path) -> None:
    common = ("who-benefits", "--config", folder / "c.toml", "-q")
    done = run(*common, "--change", "income=+20", "--change", "housing=own", "--json", tmp_path / "b.json")
    assert done.exit_code == 0, done.stderr
    assert "income +20, housing becomes own" in done.stdout
    found = json.loads((tmp_path / "b.json").read_text(encoding="utf-8"))
    assert set(found["groups"]) == {"f", "m", "everybody"}
    everybody = found["groups"]["everybody"]
    assert 0 < everybody["flipped"] <= everybody["affected"] < everybody["rows"] == 240
    assert str(everybody["flipped"]) in done.stdout
    for change, message in (
        ("incom=3", "Did you mean 'income'?"),
        ("housing=owned", "housing must become one of ['free', 'own', 'rent']; got 'owned'"),
        ("income=more", "income must add a number"),
    ):
        done = run(*common, "--change", change)
        assert done.exit_code == 2
        assert message in error(done)


def test_datasets(tmp_path: Path) -> None:
    done = run("datasets", "--json")
    assert [one["name"] for one in json.loads(done.stdout)] == ["german-credit", "compas", "default-credit", "heloc"]
    assert "1,000 rows, 20 features" in run("datasets").stdout
    for ending in ("csv", "parquet"):
        file = tmp_path / f"german.{ending}"
        assert run("datasets", "german-credit", "--words", "--out", file).exit_code == 0
        frame = pd.read_csv(file) if ending == "csv" else pd.read_parquet(file)
        assert frame.shape == (1000, 21)
        assert frame["outcome"].sum() == 700
        assert "no checking account" in set(frame["Checking account"])


def test_completion(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_GLOBECE_COMPLETE" in run("completion", shell).stdout
    monkeypatch.chdir(folder)

    def completed(*words: str) -> set[str]:
        env = {"_GLOBECE_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        found = CliRunner().invoke(main, prog_name="globece", env=env).stdout
        return {line.partition(",")[2] for line in found.splitlines()}

    assert completed("globece", "who") == {"who-benefits"}
    assert completed("globece", "explain", "loans.csv", "--model", "log") >= {"logistic"}
    assert completed("globece", "explain", "loans.csv", "--immutable", "s") == {"savings", "sex"}
    assert completed("globece", "explain", "loans.csv", "--immutable", "sex,in") == {"sex,income"}


def test_compare_as_json_and_page(folder: Path, tmp_path: Path) -> None:
    for name, seed in (("a", "0"), ("b", "1")):
        done = run(
            "explain", "--config", folder / "c.toml", *QUICK, "--seed", seed, "--json", tmp_path / f"{name}.json"
        )
        assert done.exit_code == 0
    done = run("compare", tmp_path / "a.json", tmp_path / "b.json", "--json", "--html", tmp_path / "c.html")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["names"] == ["a", "b"]
    assert {"coverage", "score"} <= {row["measure"] for row in found["measures"]}
    assert (tmp_path / "c.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_every_command_says_its_options_alike() -> None:
    """One name, one meaning: an option that several commands have has the same help in all, but for these."""
    differ = {"--out", "--html", "--model", "--words", "--favourable", "--outcome", "--by", "--data", "--time-limit"}
    said: dict[str, set[str]] = {}
    for command in main.commands.values():
        names = {flag for parameter in command.params for flag in parameter.opts}
        assert {"-q", "-v"} <= names or command.name == "completion"
        for parameter in command.params:
            for flag in parameter.opts:
                if flag.startswith("--") and flag not in differ:
                    said.setdefault(flag, set()).add(str(getattr(parameter, "help", "")))
    assert {flag: words for flag, words in said.items() if len(words) > 1} == {}


def test_exit_codes_are_documented() -> None:
    text = run("--help").stdout
    assert re.findall(r"^ +(\d+) +\S", text, re.MULTILINE) == ["0", "1", "2", "3", "4", "130", "141"]
