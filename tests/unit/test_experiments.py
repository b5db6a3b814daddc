"""`python -m experiments`: what it computes is whole, is not computed twice, and is shown from what is stored alone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from experiments import __main__ as command
from experiments import agreement, methods, page, results, running, store, trained, worker
from experiments.cells import Cell, Run
from experiments.models import PART as MODELS
from experiments.models import case
from experiments.registry import PARTS, UnknownCellError, chosen
from paper import data
from paper.pipelines import raw
from paper.protocol import Drawn, uniform

QUICK = Run(quick=True)


def cell_of(name: str) -> Cell:
    (cell,) = (cell for part in PARTS for cell in part.cells if cell.name == name)
    return cell


def stored_in(where: store.Places, name: str) -> dict[str, Any]:
    """Compute a cell here, and store it."""
    cell = cell_of(name)
    found = cell.compute(QUICK)
    store.save(where, name, found, store.fingerprint(QUICK, cell), 1.0)
    return found


@pytest.fixture
def where(tmp_path: Path) -> store.Places:
    return store.places(QUICK, tmp_path / "out")


# -- the cells --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "models/german_credit/dnn",
        "models/compas/svm",
        "results/german_credit/lr",
        "results/compas/xgb",
        "trained/compas/dnn",
        "generality/german_credit/lightgbm",
        "generality/compas/svm",
    ],
)
def test_a_quick_cell_is_computed_stored_and_shown(name: str, where: store.Places) -> None:
    found = stored_in(where, name)
    stored = store.load(where, name)
    assert stored is not None
    assert stored["data"] == store.plain(found)
    page.write(where, PARTS)
    text = (where.pages / "paper.md").read_text()
    assert data.NAMES[name.split("/")[1]] in text
    assert "A smoke run" in text  # nobody takes these numbers for results


def test_results_have_every_method_on_training_and_test_rows() -> None:
    found = results.compute(QUICK, "compas", "lr")
    for method in ("ares", "fast_ares", "globe_ce", "dglobe_ce", "ours_1", "ours_3"):
        made = found["methods"][method]
        assert all(0 <= r["coverage"] <= 1 and 0 <= r["score"] <= 10 for r in made["runs"]), method
        assert made["runs"] or made["none"]
        assert made["test"]["affected"] > 0
    # three directions do no worse than the first of them
    for one, three in zip(found["methods"]["globe_ce"]["runs"], found["methods"]["dglobe_ce"]["runs"], strict=True):
        assert three["score"] <= one["score"]


@pytest.mark.parametrize(("dataset", "kind"), [("compas", "xgb"), ("german_credit", "lr")])
def test_exact_rays_give_what_the_plain_protocol_gives(dataset: str, kind: str) -> None:
    on = case(QUICK, dataset, kind)
    exact = methods.protocol(on, dataset, range(1), samples=80)
    plain = methods.plainly(on, dataset, 0, samples=80, scalars=1000)
    for method, found in plain.items():
        (run,) = exact[method]["runs"]
        assert run["coverage"] == pytest.approx(found["coverage"], abs=1e-12)
        # the grid is up to one step late: 0.005 of a direction that costs 2
        assert run["cost"] - 1e-9 <= found["cost"] <= run["cost"] + 0.01


def test_drop_takes_the_continuous_features_out_of_a_direction_and_leaves_the_rest() -> None:
    from globece import as_model
    from globece.case.affected import Affected

    on = case(QUICK, "german_credit", "lr")
    problem = Affected(as_model(on.own, on.space), on.rows, on.cost, 10.0)
    whole, dropped = (Drawn(0, uniform("german_credit"), drop).propose(problem, 20) for drop in (False, True))
    numbers = [f.start for f in on.space.features if not f.is_block]
    assert (dropped[:, numbers] == 0).all()
    assert (whole[:, numbers] != 0).any()
    blocks = [i for i in range(on.space.width) if i not in numbers]
    assert (dropped[:, blocks] == whole[:, blocks]).all()


@pytest.mark.paper_data
def test_given_models_are_those_of_the_folder() -> None:
    import os

    given = Run(models=Path(os.environ["GLOBECE_DATA"], "models"), quick=False)
    assert int(case(given, "german_credit", "lr").affected.sum()) == 180  # tab:LR
    assert store.fingerprint(given, cell_of("results/compas/lr"))["models"].startswith("given")
    assert "models" not in store.fingerprint(given, cell_of("generality/compas/svm"))


@pytest.mark.paper_data
def test_missing_values_of_heloc_are_missing_in_the_raw_frame() -> None:
    frame, outcome, n = raw("heloc")
    whole = data.load_dataset("heloc").frame
    assert len(frame) == len(outcome) == len(whole) > n
    assert frame.isna().any(axis=1).sum() > 1000
    known = frame.notna().to_numpy()
    assert (frame.to_numpy()[known] == whole.to_numpy()[known]).all()


# -- the rule of agreement --------------------------------------------------------------------------------------------


def test_figures_agree_within_noise_and_only_then() -> None:
    coverages, costs = [90.0, 92.0, 94.0, 91.0, 93.0], [1.2, 1.25, 1.3, 1.22, 1.28]
    assert agreement.agreement(coverages, costs, (95.0, 95.0), (1.3, 1.3)).both
    apart = agreement.agreement(coverages, costs, (60.0, 60.0), (1.25, 1.25))
    assert (apart.coverage, apart.cost, apart.both) == (False, True, False)
    assert agreement.agreement(coverages, costs, (60.0, 90.0), (1.25, 1.25)).both  # ranges that overlap
    assert agreement.agreement([87.8], [0.99], (87.8, 87.8), (1.0, 1.0)).both  # nothing random: rounding alone
    assert not agreement.agreement([87.8], [0.9], (87.8, 87.8), (1.0, 1.0)).both
    assert not agreement.agreement([], [], (87.8, 87.8), (1.0, 1.0)).both
    # one run far off makes the interval wide, but not everything agree
    assert not agreement.agreement([99.0] * 5, [3.5, 3.6, 4.2, 4.6, 9.1], (99.0, 99.0), (1.5, 1.5)).both


# -- storing ----------------------------------------------------------------------------------------------------------


def test_a_cell_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        store.plain({"cost": [1.0, float("nan")]})
    with pytest.raises(TypeError, match="object"):
        store.plain({"cost": object()})


def test_a_file_is_whole_or_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results" / "cell.json"
    store.write(path, b"before")

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("globece.io.files.os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        store.write(path, b"after")
    assert path.read_bytes() == b"before"
    assert [p.name for p in path.parent.iterdir()] == ["cell.json"]


def test_a_killed_worker_leaves_nothing(where: store.Places, tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        process = worker.start(QUICK, where, cell_of("results/compas/dnn"), log)
        time.sleep(0.3)
        process.kill()
        process.wait()
    assert not list(where.results.rglob("*.json"))


def test_the_real_places_are_for_real_runs_only(tmp_path: Path) -> None:
    real = store.places(Run(), None)
    assert real.pages.name == "docs"
    for other in (store.places(QUICK, None), store.places(Run(), tmp_path)):
        assert not other.results.is_relative_to(real.results)
        assert not other.pages.is_relative_to(real.pages)


# -- running ----------------------------------------------------------------------------------------------------------


def test_the_command_computes_once_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [cell_of("models/compas/lr"), cell_of("redundancy")]
    monkeypatch.setattr(command, "chosen", lambda run, only: cells)
    arguments = ["--quick", "--out", str(tmp_path)]
    assert command.main([*arguments, "--jobs", "2"]) == 0
    for cell in cells:
        assert json.loads((tmp_path / "results" / f"{cell.name}.json").read_text())["cell"] == cell.name
    asked: list[list[str]] = []

    def record(run: Run, where: store.Places, cells: list[Cell], jobs: int) -> running.Outcome:
        asked.append([cell.name for cell in cells])
        return running.Outcome()

    monkeypatch.setattr(command, "compute", record)
    command.main(arguments)
    command.main([*arguments, "--again"])
    command.main([*arguments, "models/compas/lr"])  # `chosen` above ignores it: a name asks again for all it names
    (tmp_path / "results" / "redundancy.json").unlink()
    command.main(arguments)
    monkeypatch.setitem(MODELS.cells[0].compute.func.__globals__, "VERSION", 99)  # type: ignore[attr-defined]
    command.main(arguments)
    both = ["models/compas/lr", "redundancy"]
    assert asked == [[], both, both, ["redundancy"], both]


def test_a_failing_cell_is_named_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(run: Run, where: store.Places, cell: Cell, log: Any) -> Any:
        code = "raise SystemExit('no luck')" if cell.name.endswith("lr") else "pass"
        return subprocess.Popen([sys.executable, "-c", code], stderr=log)

    monkeypatch.setattr(worker, "start", start)
    assert command.main(["models/compas", "--quick", "--out", str(tmp_path), "--jobs", "4"]) == 1
    said = capsys.readouterr().err
    assert "failed: models/compas/lr: no luck" in said
    assert all(f"models/compas/{kind}: " in said for kind in ("xgb", "dnn", "svm"))
    assert (tmp_path / "paper.html").exists()


def test_ctrl_c_stops_cleanly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[Any] = []

    def start(*_: Any) -> Any:
        begun.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        return begun[-1]

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(worker, "start", start)
    monkeypatch.setattr("experiments.running.time.sleep", interrupted)
    assert command.main(["models/compas", "--quick", "--out", str(tmp_path)]) == 130
    assert "run again to go on" in capsys.readouterr().err
    assert len(begun) == 2
    assert all(process.returncode is not None for process in begun)


def test_without_helocs_file_its_rows_say_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GLOBECE_DATA", raising=False)
    monkeypatch.setattr(data, "load_dataset", lambda name: data.LOADERS[name]())
    assert command.main(["results/heloc", "models/heloc", "--quick", "--out", str(tmp_path)]) == 0
    assert "heloc is left out: path must name FICO's HELOC file" in capsys.readouterr().err
    text = (tmp_path / "paper.md").read_text()
    assert "**HELOC is not at hand.** path must name FICO's HELOC file" in text
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["result"], "unknown cell(s) ['result']; did you mean results"),
        (["trained/compas/lr"], "unknown cell(s) ['trained/compas/lr']"),  # without given models it is `results`
        (["--models", "nowhere"], "--models must name a folder of models; got 'nowhere'"),
        (["--models", "."], "lacks compas/dnn.npz"),
        (["--jobs", "none"], "must be a whole number, at least 1; got 'none'"),
        (["--cap", "-1"], "must be a number of seconds above 0; got '-1'"),
    ],
)
def test_bad_arguments(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        command.main(arguments)
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_a_name_means_its_cell_or_all_below_it() -> None:
    assert [cell.name for cell in chosen(QUICK, ["results/heloc/xgb"])] == ["results/heloc/xgb"]
    assert {cell.name for cell in chosen(QUICK, ["results/heloc/"])} == {
        f"results/heloc/{kind}" for kind in ("lr", "xgb", "dnn")
    }
    with pytest.raises(UnknownCellError):
        chosen(QUICK, ["results/he"])


def test_cells_are_named_apart_and_for_their_part() -> None:
    names = [cell.name for part in PARTS for cell in part.cells]
    assert len(set(names)) == len(names)
    assert all(cell.name.split("/")[0] == part.key for part in PARTS for cell in part.cells)


# -- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_can_be_written_from_nothing_and_names_every_part(where: store.Places) -> None:
    page.write(where, PARTS)
    text, html = (where.pages / "paper.md").read_text(), (where.pages / "paper.html").read_text()
    assert "Nothing has been computed yet" in text
    for part in PARTS:
        assert f"## {part.title}\n" in text
        assert f'<section id="{part.key}">' in html


def test_the_page_fetches_nothing(where: store.Places) -> None:
    stored_in(where, "framework")
    page.write(where, PARTS)
    html = (where.pages / "paper.html").read_text()
    assert 'src="data:image/png;base64,' in html
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)[^"']*""", html)
    assert not re.findall(r"<(?:script|link|iframe)\b", html)
    assert (where.figures / "framework.png").read_bytes().startswith(b"\x89PNG")


def test_a_disagreement_is_numbered_and_explained() -> None:
    found = results.compute(QUICK, "german_credit", "lr") | {"given": True}  # as if these were the authors' models
    found["methods"]["globe_ce"]["runs"] = [{"coverage": 0.2, "cost": 5.0, "score": 9.0}] * 5
    shown = results.show({"results/german_credit/lr": found}).text
    number = re.search(r"\| LR, GLOBE-CE \|.*\| no \((\d+)\) \|", shown)
    assert number is not None
    assert re.search(rf"^{number[1]}\. German Credit, logistic regression, GLOBE-CE: .*chance", shown, re.MULTILINE)


def test_trained_models_stand_beside_given_ones_only() -> None:
    given = Run(models=Path("given"))
    assert {cell.name for cell in chosen(given, ["trained"])} == {cell.name for cell in trained.PART.cells}
    with pytest.raises(UnknownCellError):
        chosen(QUICK, ["trained"])
