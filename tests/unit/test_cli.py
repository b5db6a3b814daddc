"""The command line: results on standard output, all else on standard error, and errors in one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from click.testing import CliRunner, Result
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import globece as gce
from globece.cli import main
from globece.cli.task import favourable, names
from globece.errors import ModelError
from globece.version import __version__

QUICK = ("--time-limit", "0.2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Loans as CSV and Parquet, and models of them."""
    path = tmp_path_factory.mktemp("loans")
    rng = np.random.default_rng(0)
    n = 100
    loans = pd.DataFrame(
        {
            "income": rng.integers(10, 90, n),
            "debt": rng.normal(5, 2, n).round(2),
            "housing": rng.choice(["own", "rent", "free"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    good = loans["income"] - 4 * loans["debt"] + 10 * (loans["housing"] == "own") > 25
    loans["approved"] = np.where(good, "yes", "no")
    loans.to_csv(path / "loans.csv", index=False)
    loans.to_parquet(path / "loans.parquet")
    gaps = loans.copy()
    gaps.loc[3, "income"] = np.nan
    gaps.loc[5, "housing"] = None
    gaps.to_csv(path / "gaps.csv", index=False)
    numbers = loans[["debt", "income"]]
    xgb.XGBClassifier(n_estimators=8).fit(numbers, good.astype(int)).save_model(path / "model.ubj")
    joblib.dump(LogisticRegression().fit(numbers, good), path / "model.joblib")
    return path


def run(*arguments: Any) -> Result:
    make: Any = CliRunner
    try:
        runner = make(mix_stderr=False)  # click before 8.2
    except TypeError:
        runner = make()
    return runner.invoke(main, [str(a) for a in arguments])


def error(result: Result) -> str:
    """The one line of an error, once it is sure that it is clean."""
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("Error: ")
    return last


def test_version_and_help() -> None:
    assert run("--version").stdout.strip() == f"globece, version {__version__}"
    for arguments in (["--help"], ["demo", "--help"], ["explain", "--help"]):
        result = run(*arguments)
        assert result.exit_code == 0
        assert "\n    globece " in result.stdout  # an example, on a line of its own


@pytest.mark.parametrize("kind", ["logistic", "forest", "boosting"])
def test_trains_and_explains(kind: str, folder: Path) -> None:
    with threadpool_limits(1):  # boosting's threads wait for one another where tests run side by side
        result = run("explain", folder / "gaps.csv", "--model", kind, "--outcome", "approved", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert f"{kind}: trained on 80 rows; accuracy" in result.stderr
    assert "favourable: yes" in result.stdout
    assert "New rule added" in result.stdout
    assert "\N{BOX DRAWINGS HEAVY HORIZONTAL}" not in result.stdout  # the bar is not a result


def test_json_goes_alone_to_standard_output(folder: Path, tmp_path: Path) -> None:
    common = ("explain", folder / "loans.parquet", "--model", "logistic", "--outcome", "approved", "--directions", "2")
    result = run(*common, *QUICK, "--json", "-")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["format"] == "globece.explanation"
    ex = gce.Explanation.from_json(result.stdout)
    assert 1 <= ex.n_directions <= 2  # a quick search may stop before the second
    assert ex.space.names == ("income", "debt", "housing", "sex")
    file = tmp_path / "result.json"
    result = run(*common, *QUICK, "--json", file, "--figures", tmp_path / "new" / "figures")
    assert result.exit_code == 0, result.stderr
    ex = gce.Explanation.from_json(file)
    assert f"{ex.coverage:.1%}" in result.stdout
    assert f"{ex.average_cost:.3f}" in result.stdout
    drawn = {path.name for path in (tmp_path / "new" / "figures").iterdir()}
    assert drawn == {
        "profile.png",
        "minimum-costs.png",
        "mean-translation.png",
        "counterfactuals.png",
        *(f"rules-{i + 1}.png" for i in range(ex.n_directions)),
    }


def test_constraints_reach_the_search(folder: Path) -> None:
    wishes = ("--immutable", "sex, housing", "--increasing", "income", "--decreasing", "debt", "--budget", "4")
    common = ("explain", folder / "loans.csv", "--model", "logistic", "--outcome", "approved", "--json=-")
    result = run(*common, *wishes, "--categorical", "income", *QUICK)
    assert result.exit_code == 2  # a category cannot rise
    assert "increasing names 'income', whose categories have no order" in error(result)
    result = run(*common, *wishes, *QUICK)
    assert result.exit_code == 0, result.stderr
    ex = gce.Explanation.from_json(result.stdout)
    assert ex.budget == 4
    assert [(f.immutable, f.sense) for f in ex.space.features] == [(False, 1), (False, -1), (True, 0), (True, 0)]
    assert (ex.directions[:, 2:] == 0).all()


def test_a_model_file_gets_its_own_columns_in_its_own_order(folder: Path) -> None:
    result = run("explain", folder / "loans.csv", "--model", folder / "model.ubj", "--json", "-", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert gce.Explanation.from_json(result.stdout).space.names == ("debt", "income")
    assert "not trained on ['housing', 'sex', 'approved']: not used" in result.stderr


def test_results_by_row_go_into_a_folder(folder: Path, tmp_path: Path) -> None:
    """DATA is read in parts; the same command again goes on where it ended."""
    asked = ("explain", folder / "loans.parquet", "--model", folder / "model.ubj", "--outcome", "approved")
    first = run(*asked, "--favourable", "1", "--immutable", "debt", "--effort", "quick", "--out", tmp_path / "out")
    assert first.exit_code == 0, first.stderr
    rows = pd.read_parquet(tmp_path / "out" / "rows")
    assert len(rows) == 100
    assert f"{int(rows['affected'].sum())} of 100 rows are affected" in first.stdout
    assert "Direction 1: rules add up" in first.stdout
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["directions"][0].keys() == {"income"}
    again = run(*asked, "--favourable", "1", "--immutable", "debt", "--effort", "quick", "--out", tmp_path / "out")
    assert again.stdout == first.stdout
    other = run(*asked, "--favourable", "1", "--seed", "1", "--effort", "quick", "--out", tmp_path / "out")
    assert other.exit_code == 2
    assert "holds the results of another run" in error(other)
    trained = run("explain", folder / "loans.parquet", "--model", "forest", "--outcome", "approved", "--out", tmp_path)
    assert "--out needs a model file" in error(trained)


def test_pickle_only_if_allowed(folder: Path) -> None:
    common = ("explain", folder / "loans.csv", "--model", folder / "model.joblib", "--outcome", "approved")
    result = run(*common)
    assert result.exit_code == 2
    assert "--allow-pickle" in error(result)
    result = run(*common, "--allow-pickle", "--favourable", "true", "--threshold", "0.8", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert "favourable: True with probability of at least 0.8" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere.csv", "--model", "logistic", "--outcome", "approved"], 2, "'nowhere.csv': it does not exist"),
        (["{}/loans.csv", "--model", "logistic"], 2, "needs --outcome"),
        (["{}/loans.csv", "--model", "logistic", "--outcome", "ok"], 2, "--outcome names unknown column 'ok'; there"),
        (
            ["{}/loans.csv", "--model", "nothing", "--outcome", "approved"],
            2,
            "what kind of model 'nothing' is",
        ),
        (["{}/loans.csv", "--model", "logistc", "--outcome", "approved"], 2, "Did you mean 'logistic'?"),
        (["{}/loans.csv", "--model", "no.ubj", "--outcome", "approved"], 2, "'no.ubj': it does not exist"),
        (["{}/loans.csv", "--model", "logistic", "--outcome", "debt"], 1, "has 91 different values"),
        (["{}/loans.csv", "--model", "{}/model.ubj", "--outcome", "debt"], 2, "trained on column(s) ['debt']"),
        (["{}/gaps.csv", "--model", "forest", "--outcome", "housing"], 1, "misses 1 value"),
    ],
)
def test_errors_are_one_clean_line(arguments: list[str], code: int, message: str, folder: Path) -> None:
    result = run("explain", *(a.replace("{}", str(folder)) for a in arguments))
    assert result.exit_code == code
    assert message in error(result)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--immutable", "age"], "--immutable names unknown feature(s) ['age']; there are ['income', 'debt',"),
        (["--favourable", "maybe"], "--favourable must be one of the model's classes ['no', 'yes']; got 'maybe'"),
        (["--budget", "-1"], "budget must be a number > 0; got -1.0"),
        (["--directions", "0"], "n_directions must be a whole number >= 1; got 0"),
        (["--directions", "few"], "'few' is neither a whole number nor 'auto'"),
        (["--threshold", "7"], "threshold must be a probability in [0, 1]"),
        (["--json", "nowhere/result.json"], "in a folder that does not exist"),
    ],
)
def test_rubbish_is_named(arguments: list[str], message: str, folder: Path) -> None:
    result = run("explain", folder / "loans.csv", "--model", "logistic", "--outcome", "approved", *arguments)
    assert result.exit_code == 2
    assert message in error(result)


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_the_wrong_model_for_the_data(folder: Path, tmp_path: Path) -> None:
    loans = pd.read_csv(folder / "loans.csv")
    nameless = LogisticRegression().fit(loans[["income", "debt"]].to_numpy(), loans["approved"])
    joblib.dump(nameless, tmp_path / "nameless.joblib")
    common = ("explain", folder / "loans.csv", "--model", tmp_path / "nameless.joblib", "--allow-pickle")
    result = run(*common, "--outcome", "approved")
    assert result.exit_code == 1
    assert "the model takes 2 columns and does not name them, and DATA has 4" in error(result)
    result = run(*common, "--outcome", "approved", "--ignore", "sex,housing", *QUICK)
    assert result.exit_code == 0, result.stderr
    loans["income"] = loans["income"].map("{} EUR".format)
    loans.to_csv(tmp_path / "text.csv", index=False)
    result = run("explain", tmp_path / "text.csv", "--model", folder / "model.ubj")
    assert result.exit_code == 1
    assert "is it the right model for these data, and do its columns have the types" in error(result)


def test_a_constant_outcome_and_a_failing_model(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "same.csv").write_text("x,y\n1,a\n2,a\n", encoding="utf-8")
    result = run("explain", tmp_path / "same.csv", "--model", "forest", "--outcome", "y")
    assert result.exit_code == 1
    assert "is constant" in error(result)

    def fails(*_: Any, **__: Any) -> None:
        raise ModelError("the model\nsaid no")

    monkeypatch.setattr("globece.cli.explain.explain_model", fails)
    result = run("explain", folder / "loans.csv", "--model", "logistic", "--outcome", "approved")
    assert result.exit_code == 1
    assert error(result) == "Error: the model said no"

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("globece.cli.explain.explain_model", interrupted)
    result = run("explain", folder / "loans.csv", "--model", "logistic", "--outcome", "approved")
    assert result.exit_code == 130
    assert result.stdout == ""


def test_everybody_favoured_is_said(folder: Path) -> None:
    common = ("explain", folder / "loans.csv", "--model", "logistic", "--outcome", "approved", "--threshold", "0")
    result = run(*common)
    assert result.exit_code == 0
    assert result.stdout.startswith("Nobody is affected")


def test_names_and_classes_out_of_text() -> None:
    columns = ["a", "b", "c, d"]
    assert names("--immutable", ("a,b", "c, d"), columns) == ("a", "b", "c, d")
    assert names("--immutable", (), columns) == ()

    class Model:
        classes_ = np.array([0, 1])

    assert favourable(None, Model()) is None
    assert favourable("1", Model()) == 1
    assert favourable("1.0", Model()) == 1
    assert favourable("below", object()) == "below"
    assert favourable("3", object()) == 3


def test_as_a_program(folder: Path) -> None:
    program = str(Path(sys.executable).with_name("globece"))
    # another program may take the processor: no limit
    command = [program, "explain", str(folder / "loans.csv"), "--model", "logistic", "--outcome", "approved"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["version"] == 1
    done = subprocess.run(
        [program, "explain", "x.csv", "--model", "m.onnx"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: cannot load a model from 'm.onnx': it does not exist")
    assert done.stdout == ""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a child alone")
def test_interrupt_leaves_no_traceback(folder: Path) -> None:
    program = str(Path(sys.executable).with_name("globece"))
    command = [program, "explain", str(folder / "loans.csv"), "--model", "forest", "--outcome", "approved"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "trained" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert (process.returncode, bool(out)) in {(0, True), (130, True), (130, False)}
