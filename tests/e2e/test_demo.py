"""``globece demo`` as a user runs it: files, numbers, and what is said."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import globece as gce

PNG = b"\x89PNG\r\n\x1a\n"
FIGURES = ("profile", "minimum-costs", "mean-translation", "counterfactuals", "rules-1")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, Path]:
    """Standard output, standard error, and the folder."""
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    program = Path(sys.executable).with_name("globece")
    done = subprocess.run(
        [program, "demo", "--out", out], capture_output=True, text=True, check=False, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr, out


def test_writes_figures_and_results(demo: tuple[str, str, Path]) -> None:
    said, _, out = demo
    expected = {f"{run}-{name}.png" for run in ("one-direction", "three-directions") for name in FIGURES}
    expected |= {"three-directions-rules-2.png", "three-directions-rules-3.png"}
    expected |= {"one-direction.json", "three-directions.json"}
    assert {file.name for file in out.iterdir()} == expected
    for file in out.glob("*.png"):
        assert file.read_bytes().startswith(PNG)
        assert file.stat().st_size > 10_000
    assert all(name in said for name in expected)


def test_numbers_said_are_those_of_the_files(demo: tuple[str, str, Path]) -> None:
    said, _, out = demo
    one = gce.Explanation.from_json(out / "one-direction.json")
    three = gce.Explanation.from_json(out / "three-directions.json")
    stated = re.findall(r"covers? ([\d.]+)% at an average cost of ([\d.]+) within a budget of 10", said)
    assert stated == [(f"{100 * ex.coverage:.1f}", f"{ex.average_cost:.3f}") for ex in (one, three)]
    assert (one.n_directions, three.n_directions) == (1, 3)
    assert one.coverage > 0.9
    assert three.score <= one.score
    for ex in (one, three):
        for i in range(ex.n_directions):
            row = ex.rules_chart(i).rows[-1]
            assert re.search(rf"{100 * row.coverage:.1f}% +{row.cost:.3f}", said)


def test_people_keep_what_they_cannot_change(demo: tuple[str, str, Path]) -> None:
    said, _, out = demo
    ex = gce.Explanation.from_json(out / "three-directions.json")
    changes = ex.mean_translation()
    share = dict(zip(changes.features, changes.share, strict=True))
    assert share["Sex"] == share["Age"] == share["Foreign-Worker"] == 0
    assert "Sex, Age, Foreign-Worker may not move" in said


def test_codes_in_the_charts_are_explained(demo: tuple[str, str, Path]) -> None:
    said, _, _ = demo
    charts, _, legend = said.partition("What the codes mean:")
    codes = set(re.findall(r"\bA\d{2,3}\b", charts))
    assert codes
    assert codes == set(re.findall(r"\bA\d{2,3}\b", legend))


def test_progress_goes_to_standard_error(demo: tuple[str, str, Path]) -> None:
    said, progress, _ = demo
    assert "Looking for 3 direction(s)" in progress
    assert "Looking for" not in said
    assert "Traceback" not in progress
    assert "Warning" not in progress
