"""The recipes in ``examples/``, run for real."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import globece as gce

EXAMPLES = Path(__file__).parents[2] / "examples"
FEATURES = ["income", "debt", "woman"]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="scripts of a POSIX shell")


def loans(seed: int, penalty: float) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n = 1500
    frame = pd.DataFrame({"income": rng.integers(10, 90, n), "debt": rng.normal(5, 2, n).round(2)})
    frame["woman"] = rng.integers(0, 2, n)
    frame["approved"] = (frame["income"] - 4 * frame["debt"] - penalty * frame["woman"] > 25).astype(int)
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of two months, a fair and an unfair model of them, and a configuration."""
    path = tmp_path_factory.mktemp("recipes")
    for name, penalty in (("fair", 0.0), ("unfair", 25.0)):
        rows = loans(0, penalty)
        model = xgb.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1)
        model.fit(rows[FEATURES], rows["approved"]).save_model(path / f"{name}.ubj")
    loans(1, 0.0).to_csv(path / "may.csv", index=False)
    loans(2, 0.0).to_parquet(path / "june.parquet")
    done = command(
        path, "globece", "init", "may.csv", "--model", "fair.ubj", "--outcome", "approved", "--favourable", "1", "--by",
        "woman",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    config = path / "globece.toml"
    said = config.read_text(encoding="utf-8").replace('effort = "default"', 'effort = "quick"')
    assert "woman = {" in said
    config.write_text(said.replace('income = { may = "free" }', 'income = { may = "rise" }'), encoding="utf-8")
    return path


def command(folder: Path, *arguments: Any) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(a) for a in arguments],
        cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def recipe(folder: Path, name: str, *arguments: Any) -> subprocess.CompletedProcess[str]:
    return command(folder, "sh", EXAMPLES / name, *arguments)


def test_a_gate_stops_the_unfair_model_only(folder: Path) -> None:
    done = recipe(folder, "ci_gate.sh", "globece.toml", "fair-artefacts")
    assert done.returncode == 0, done.stderr
    unfair = (folder / "globece.toml").read_text(encoding="utf-8").replace("fair.ubj", "unfair.ubj")
    (folder / "unfair.toml").write_text(unfair, encoding="utf-8")
    done = recipe(folder, "ci_gate.sh", "unfair.toml", "unfair-artefacts")
    assert done.returncode == 3, done.stderr
    assert "Failed: " in done.stderr
    for kind in ("fair", "unfair"):  # kept either way
        assert gce.Audit.from_json(folder / f"{kind}-artefacts" / "audit.json").comparisons
        assert (folder / f"{kind}-artefacts" / "audit.html").stat().st_size > 10_000


def test_a_month_is_held_against_the_one_before(folder: Path) -> None:
    done = recipe(folder, "monthly_audit.sh", "globece.toml", "may.csv", "audits", "2026-05")
    assert done.returncode == 0, done.stderr
    assert "The first month" in done.stdout
    done = recipe(folder, "monthly_audit.sh", "globece.toml", "june.parquet", "audits", "2026-06")
    assert done.returncode in (0, 4), done.stderr
    assert "audit-2026-06 against audit-2026-05" in done.stdout
    kept = {file.name for file in (folder / "audits").iterdir()}
    assert kept == {
        *(f"audit-2026-0{month}.{kind}" for month in (5, 6) for kind in ("json", "html", "txt")),
        "change-2026-06.html",
    }
    unfair = (folder / "globece.toml").read_text(encoding="utf-8").replace("fair.ubj", "unfair.ubj")
    (folder / "july.toml").write_text(unfair, encoding="utf-8")
    done = recipe(folder, "monthly_audit.sh", "july.toml", "june.parquet", "audits", "2026-07")
    assert done.returncode == 3, done.stderr
    assert "audit-2026-07 against audit-2026-06" in done.stdout


def test_a_challenger_that_is_harder_on_people_is_named(folder: Path) -> None:
    done = recipe(folder, "champion_challenger.sh", "globece.toml", "fair.ubj", "unfair.ubj", "duel")
    assert done.returncode == 3, done.stderr
    assert "challenger against champion" in done.stdout
    assert (folder / "duel" / "comparison.html").stat().st_size > 10_000
    done = recipe(folder, "champion_challenger.sh", "globece.toml", "unfair.ubj", "fair.ubj", "duel")
    assert done.returncode == 0, done.stderr


def test_results_become_a_table(folder: Path) -> None:
    common = ("globece", "explain", "--config", "globece.toml", "-q")
    assert command(folder, *common, "--json", "one.json").returncode == 0
    common = ("globece", "audit", "--config", "globece.toml", "-q")
    assert command(folder, *common, "--json", "two.json").returncode == 0
    done = command(folder, sys.executable, EXAMPLES / "results_to_table.py", "table.csv", "one.json", "two.json")
    assert done.returncode == 0, done.stderr
    with (folder / "table.csv").open(newline="", encoding="utf-8") as file:
        one, two = csv.DictReader(file)
    ex, au = gce.Explanation.from_json(folder / "one.json"), gce.Audit.from_json(folder / "two.json")
    assert (one["kind"], one["coverage"]) == ("explanation", str(round(ex.coverage, 4)))
    assert (two["kind"], two["verdict"]) == ("audit", au.verdict.conclusion)
    assert two["score"] == str(round(au.overall.score, 4))
    assert json.loads((folder / "one.json").read_text(encoding="utf-8"))["format"] == "globece.explanation"


def test_each_recipe_is_run_and_listed() -> None:
    recipes = {file.name for file in EXAMPLES.iterdir()} - {"README.md"}
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    tested = Path(__file__).read_text(encoding="utf-8")
    for name in recipes:
        assert f"({name})" in listed
        assert f'"{name}"' in tested
