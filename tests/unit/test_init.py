"""``globece init``: what it guesses, and what it leaves to a person; its file works as written."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import globece as gce
from globece.cli.config import read_config
from globece.cli.guessing import guess_column, outcome_candidates
from tests.unit.test_cli import error, run

ODD = [
    "a.b",
    'say "x"',
    "tab\there",
    "line\nbreak",
    "größe",
    "[audit]",
    "x = 1",
    "#",
    "'",
    "\\",
    "a,b",
    "a:b",
    "\x7f",
]


def wide(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """A table of 50 columns of every kind, as they come out of a database."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {
        "customer_id": np.arange(n) + 1000,
        "name": [f"person {i}" for i in range(n)],
        "sex": rng.choice(["f", "m"], n),
        "age": rng.integers(18, 80, n),
        "opened": pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
        "risk band": rng.choice(["low", "medium", "high"], n),
        "employed": rng.choice([True, False], n),
        "flag": rng.integers(0, 2, n),
        "constant": np.full(n, 3),
        "nothing": np.full(n, np.nan),
        "gaps": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(3)),
    }
    columns |= {name: rng.normal(size=n).round(3) for name in ODD}
    columns |= {f"x{i}": rng.gamma(2.0, 100.0, n).round(2) for i in range(50 - len(columns) - 1)}
    good = columns["x0"] + 100 * (columns["flag"] == 1) + 2 * columns["age"] > 380
    columns["approved"] = np.where(good ^ (rng.random(n) < 0.05), "yes", "no")
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wide") / "wide.csv"
    wide().to_csv(path, index=False)
    return path


def test_init_then_audit_works_as_written(table: Path, tmp_path: Path) -> None:
    assert len(pd.read_csv(table).columns) == 50
    file = tmp_path / "globece.toml"
    done = run("init", table, "--outcome", "approved", "--favourable", "yes", "--out", file)
    assert done.exit_code == 0, done.stderr
    assert f"globece audit --config {file}" in done.stderr
    done = run("audit", "--config", file, "--json", tmp_path / "audit.json", "--time-limit", "5")
    assert done.exit_code == 0, done.stderr
    found = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert found["format"] == "globece.audit"
    space = gce.Audit.from_json(tmp_path / "audit.json").explained.space
    assert not {"customer_id", "name", "nothing", "opened", "approved"} & set(space.names)
    assert set(ODD) <= set(space.names)
    assert space["sex"].immutable
    assert space["age"].immutable
    assert space["flag"].kind == "categorical"


def test_guesses_are_marked_and_explained(table: Path) -> None:
    done = run("init", table, "--outcome", "approved", "--favourable", "YES", "--out", "-")
    assert done.exit_code == 0, done.stderr
    text = done.stdout
    config = read_config(text.encode())
    assert config.get("outcome", "favourable") == "yes"
    assert config.get("audit", "by") == ["sex"]
    assert {name for name, wish in config.features.items() if wish.used is False} == {
        "customer_id", "name", "opened", "nothing",
    }  # fmt: skip
    guessed = [line.split(" = ")[0] for line in text.splitlines() if "Guess:" in line]
    assert guessed == ["by", "customer_id", "name", "sex", "age", "opened", '"risk band"', "flag", "nothing"]
    assert 'order = ["low", "medium", "high"]' in text
    assert 'kind = "logistic"  # Assumed' in text


def test_the_favourable_outcome_is_never_guessed(table: Path, tmp_path: Path) -> None:
    file = tmp_path / "globece.toml"
    done = run("init", table, "--out", file)
    assert done.exit_code == 0
    assert "outcome: approved" in done.stderr
    assert f"Not set: which outcome people want. Set favourable in [outcome] of {file}, one of no, yes" in done.stderr
    assert 'column = "approved"  # Guess by its name.' in file.read_text(encoding="utf-8")
    done = run("explain", "--config", file)
    assert done.exit_code == 2
    lines = file.read_text(encoding="utf-8").splitlines()
    line = 1 + next(i for i, text in enumerate(lines) if text.startswith("favourable"))
    assert f"line {line}: favourable is empty; say which outcome people want, one of ['no', 'yes']" in error(done)
    done = run("explain", "--config", file, "--favourable", "no", "--time-limit", "1", "--json=-")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["provenance"]["favourable"].startswith("no")


def test_several_candidates_are_left_to_the_person(tmp_path: Path) -> None:
    pd.DataFrame({"risk": [0, 1] * 30, "approved": ["y", "n"] * 30, "x": range(60)}).to_csv(
        tmp_path / "two.csv", index=False
    )
    done = run("init", tmp_path / "two.csv", "--out", tmp_path / "c.toml")
    assert done.exit_code == 0
    assert "Not set: the outcome" in done.stderr
    text = (tmp_path / "c.toml").read_text(encoding="utf-8")
    assert 'column = ""  # SET THIS. Other columns of two values: approved, risk' in text
    done = run("explain", "--config", tmp_path / "c.toml")
    assert done.exit_code == 2
    assert "needs --outcome, the column to learn; or set column in [outcome] of" in error(done)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--outcome", "aproved"], "Did you mean 'approved'?"),
        (["--outcome", "approved", "--favourable", "maybe"], "must be one of the values of 'approved', ['no', 'yes']"),
        (["--outcome", "approved", "--by", "sexx"], "--by names unknown feature(s) ['sexx']"),
        (["--out", "nowhere/c.toml"], "in a folder that does not exist"),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str, table: Path, tmp_path: Path) -> None:
    arguments = arguments if "--out" in arguments else [*arguments, "--out", str(tmp_path / "c.toml")]
    done = run("init", table, *arguments)
    assert done.exit_code == 2
    assert message in error(done)
    assert not (tmp_path / "c.toml").exists()


def test_a_file_is_not_replaced_unless_forced(table: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("mine", encoding="utf-8")
    assert "is there already; replace it with --force" in error(run("init", table, "--out", file))
    assert file.read_text(encoding="utf-8") == "mine"
    assert run("init", table, "--out", file, "--force").exit_code == 0
    assert tomllib.loads(file.read_text(encoding="utf-8"))["search"]["seed"] == 0


def test_paths_are_seen_from_the_file(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "rows.csv").write_bytes(table.read_bytes())
    monkeypatch.chdir(tmp_path)
    done = run("init", "here/rows.csv", "--outcome", "approved", "--favourable", "yes", "--out", "here/c.toml", "-q")
    assert done.exit_code == 0
    assert done.stderr == ""
    assert read_config("here/c.toml").get("data", "file") == "rows.csv"
    done = run("explain", "--config", "here/c.toml", "--time-limit", "1")
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("seed", range(5))
def test_any_table_gives_a_file_that_can_be_read(seed: int, tmp_path: Path) -> None:
    """Few and many rows, odd names and values, rare categories: the file is read back, and the space can be built."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([2, 7, 60, 400]))
    words = ["", 'a"b', "c\nd", "é", "x, y", "\\", "#", "=1", "None", "2", "very long " * 30]
    pools: list[Any] = [
        lambda: rng.integers(0, 3, n), lambda: rng.normal(size=n) * 10.0 ** rng.integers(-5, 9),
        lambda: rng.choice(words, n), lambda: np.full(n, 7), lambda: np.arange(n),
        lambda: np.where(rng.random(n) < 0.5, None, rng.choice(words[1:], n)),
    ]  # fmt: skip
    names = rng.permutation([*ODD, "id", "age", "Race", "target"]).tolist()
    frame = pd.DataFrame({name: pools[rng.integers(len(pools))]() for name in names})
    frame.to_parquet(tmp_path / "odd.parquet")
    done = run("init", tmp_path / "odd.parquet", "--out", tmp_path / "c.toml")
    assert done.exit_code == 0, done.stderr
    config = read_config(tmp_path / "c.toml")
    outcome = config.get("outcome", "column")
    assert set(config.features) == set(names) - {outcome}


def test_an_outcome_of_two_values_comes_first_by_its_name() -> None:
    frame = pd.DataFrame({"phone": ["y", "n"], "defaulted": [0, 1], "x": [1.0, 2.0], "last": ["a", "b"], "c": [1, 1]})
    assert outcome_candidates(frame) == ["defaulted", "last", "x", "phone"]
    assert guess_column(frame, "c").holds == "whole numbers, always 1"
