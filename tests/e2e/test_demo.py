"""``globece demo`` as a user runs it: files, numbers, and what is said."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import globece as gce
from globece.cli.german_words import CODES
from tests.e2e.browser import browsing, opened

PNG = b"\x89PNG\r\n\x1a\n"
FIGURES = ("profile", "minimum-costs", "mean-translation", "counterfactuals", "rules-1")
HELD = ("Sex and status", "Age", "Foreign worker", "Credit history", "Purpose")


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


def test_writes_a_page_figures_and_results(demo: tuple[str, str, Path]) -> None:
    said, _, out = demo
    expected = {f"{run}-{name}.png" for run in ("one-direction", "three-directions") for name in FIGURES}
    expected |= {"three-directions-rules-2.png", "three-directions-rules-3.png"}
    assert {file.name for file in out.iterdir()} == expected | {
        "one-direction.json",
        "three-directions.json",
        "page.html",
    }
    for file in out.glob("*.png"):
        assert file.read_bytes().startswith(PNG)
        assert file.stat().st_size > 10_000
    assert f"{len(expected)} figures" in said
    assert f"Open the page in a browser: {(out / 'page.html').as_uri()}" in said


def test_numbers_said_are_those_of_the_files(demo: tuple[str, str, Path]) -> None:
    said, _, out = demo
    one = gce.Explanation.from_json(out / "one-direction.json")
    three = gce.Explanation.from_json(out / "three-directions.json")
    stated = re.findall(r"covers? ([\d.]+)% of .*?at an average cost of (\d+\.\d+)", said)
    assert stated == [(f"{100 * ex.coverage:.1f}", f"{ex.average_cost:.3f}") for ex in (one, three)]
    assert (one.n_directions, three.n_directions) == (1, 3)
    assert one.coverage > 0.9
    assert f"turns down {one.n_affected} of {one.n_rows}" in said
    best = three.minimum_costs()
    for i in range(3):
        mine = best.direction == i
        assert re.search(rf"^ \d +{mine.sum()} +{best.cost[mine].mean():.3f}", said, re.MULTILINE)


def test_people_keep_what_they_cannot_change_and_hear_it(demo: tuple[str, str, Path]) -> None:
    said, _, out = demo
    for name in ("one-direction", "three-directions"):
        ex = gce.Explanation.from_json(out / f"{name}.json")
        assert all(ex.space[feature].immutable for feature in HELD)
    assert ex.space["Checking account"].immutable
    held = re.search(r"Held fixed[^:]*: (.*)\.", said)
    assert held is not None
    assert set(HELD) <= set(held[1].split(", "))


def test_it_speaks_in_words(demo: tuple[str, str, Path]) -> None:
    said, _, out = demo
    codes = {code for words in CODES.values() for code in words if code.startswith("A")}
    for text in (said, (out / "three-directions.json").read_text(encoding="utf-8")):
        assert not codes & set(re.findall(r"\bA\d{2,3}\b", text))
    assert "no checking account" in said
    assert len(said.splitlines()) < 60  # a few screens


def test_an_applicant_of_each_kind_gets_the_loan(demo: tuple[str, str, Path]) -> None:
    said, _, _ = demo
    estimates = re.findall(r"The model's estimate of a good risk: (\d+)% before, (\d+)% after", said)
    assert len(estimates) == 3
    assert all(int(before) < 50 <= int(after) for before, after in estimates)


def test_the_page_opens_and_says_the_same(demo: tuple[str, str, Path]) -> None:
    _, _, out = demo
    ex = gce.Explanation.from_json(out / "three-directions.json")
    with browsing() as browser:
        seen = opened(browser, (out / "page.html").as_uri())
        text = seen.page.inner_text("body")
    assert seen.outside == seen.errors == []
    assert "what could they have changed?" in text
    assert "1,000 DM or more" in text
    assert f"{ex.n_affected} applicants affected" in text


def test_progress_goes_to_standard_error(demo: tuple[str, str, Path]) -> None:
    said, progress, _ = demo
    assert "Looking for 3 direction(s)" in progress
    assert "Looking for" not in said
    assert "Traceback" not in progress
    assert "Warning" not in progress
