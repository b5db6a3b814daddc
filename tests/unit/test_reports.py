"""Reports as evidence, and comparisons: written, read back, computed again, and told apart."""

from __future__ import annotations

import csv
import io
import json
import shlex
import tracemalloc
import zipfile
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import globece as gce
from globece.cli import main
from globece.errors import FileFormatError, InvalidParameterError
from globece.page import evidence
from globece.page.pages import page_of
from tests.live import audited, credit


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, X, _ = credit(200)
    path = tmp_path_factory.mktemp("data") / "loans.csv"
    X.assign(approved=model(X)).to_csv(path, index=False)
    return path


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)


def report(table: Path, out: Path, *more: Any) -> Result:
    common: tuple[str, ...] = (
        "--model",
        "logistic",
        "--outcome",
        "approved",
        "--favourable",
        "1",
        "--immutable",
        "sex",
    )
    common += ("--effort", "quick", "--directions", "2", "--date", "2026-01-31")
    return run("report", table, *common, "--out", out, *more)


@pytest.fixture(scope="module")
def written(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "report"
    done = report(table, out)
    assert done.exit_code == 0, done.output
    return out


def test_a_report_can_be_computed_again(table: Path, written: Path) -> None:
    names = {file.name for file in written.iterdir()}
    assert names == {"config.json", "directions.csv", "manifest.json", "page.html", "profile.csv", "rules.csv"}
    done = run("verify-report", written, "--data", table)
    assert (done.exit_code, "come out again byte by byte" in done.output) == (0, True)


def test_a_zip_holds_the_same_and_is_the_same_each_time(table: Path, written: Path, tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        assert report(table, tmp_path / name).exit_code == 0
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert evidence.read(tmp_path / "a.zip") == evidence.read(written)


NAMES = ["page.html", "config.json", "directions.csv", "profile.csv", "rules.csv"]


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_file_is_named(table: Path, written: Path, tmp_path: Path, name: str) -> None:
    found = evidence.read(written)
    assert sorted(found) == sorted([*NAMES, "manifest.json"])
    evidence.write(tmp_path / "r", {**found, name: found[name] + b" "})
    done = run("verify-report", tmp_path / "r", "--data", table)
    assert done.exit_code == 3
    assert f"{name} was changed" in done.output


def test_a_file_too_many_or_too_few_is_named(table: Path, written: Path, tmp_path: Path) -> None:
    found = evidence.read(written)
    for more in ("notes.txt", ".hidden"):
        evidence.write(tmp_path / f"with{more}", {**found, more: b"x"})
        done = run("verify-report", tmp_path / f"with{more}", "--data", table)
        assert (done.exit_code, f"{more} is not in the manifest" in done.output) == (3, True)
    evidence.write(tmp_path / "few.zip", {name: text for name, text in found.items() if name != "rules.csv"})
    done = run("verify-report", tmp_path / "few.zip", "--data", table)
    assert (done.exit_code, "rules.csv is missing" in done.output) == (3, True)


def test_the_command_that_a_report_names_writes_the_same_report(
    table: Path, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = json.loads((written / "config.json").read_text())["about"]["command"]
    assert "--budget" not in command  # the default is not repeated
    monkeypatch.chdir(tmp_path)
    (tmp_path / table.name).write_bytes(table.read_bytes())
    assert run(*shlex.split(command)[1:], "--date", "2026-01-31").exit_code == 0
    assert evidence.read(tmp_path / "report.zip") == evidence.read(written)


def test_a_forged_manifest_does_not_help(table: Path, written: Path, tmp_path: Path) -> None:
    """Numbers that were changed with their fingerprint still do not come out again."""
    found = dict(evidence.read(written))
    found["rules.csv"] = found["rules.csv"].replace(b"1", b"2", 1)
    told = json.loads(found["manifest.json"])
    told["sha256"]["rules.csv"] = evidence.sha256(found["rules.csv"])
    found["manifest.json"] = evidence.plain_json(told)
    evidence.write(tmp_path / "r.zip", found)
    done = run("verify-report", tmp_path / "r.zip", "--data", table)
    assert done.exit_code == 3
    assert "rules.csv differs: first at byte" in done.output


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("question", []),
        ("question", {"seed": 0}),
        ("sha256", "x"),
        ("about", {"titel": "x"}),
        ("model_kind", "model.pkl"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(
    table: Path, written: Path, tmp_path: Path, key: str, value: Any
) -> None:
    found = dict(evidence.read(written))
    config = json.loads(found["config.json"])
    found["config.json"] = evidence.plain_json({**config, key: value})
    told = json.loads(found["manifest.json"])
    told["sha256"]["config.json"] = evidence.sha256(found["config.json"])
    evidence.write(tmp_path / "r", {**found, "manifest.json": evidence.plain_json(told)})
    done = run("verify-report", tmp_path / "r", "--data", table)
    assert done.exit_code in (1, 2)
    assert done.output.startswith("Error: ")


def test_other_data_are_named_before_anything_is_computed(table: Path, written: Path, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_bytes(table.read_bytes() + b"1.0,1.0,rent,male,1\n")
    done = run("verify-report", written, "--data", tmp_path / "other.csv")
    assert done.exit_code == 3
    assert "data is another file" in done.output


def test_rows_are_in_a_report_only_if_asked_for(table: Path, tmp_path: Path) -> None:
    assert report(table, tmp_path / "r", "--include-rows", "--by", "sex").exit_code == 0
    found = evidence.read(tmp_path / "r")
    assert {"result.json", "people.csv", "groups.csv", "decisions.csv"} <= set(found)
    au = gce.Audit.from_json(found["result.json"].decode())
    assert au.members
    listed = list(csv.reader(io.StringIO(found["people.csv"].decode())))
    assert len(listed) == 1 + au.explanation.n_affected
    assert run("verify-report", tmp_path / "r", "--data", table).exit_code == 0


def test_a_result_file_gives_a_page_and_says_what_is_not_recorded(tmp_path: Path) -> None:
    model, X, space = credit(120)
    ex = gce.explain(model, X, space=space, favourable=1, effort="quick", rng=np.random.default_rng(0))
    ex.to_json(tmp_path / "ex.json")
    assert run("report", tmp_path / "ex.json", "--out", tmp_path / "page.html").exit_code == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Seed: not recorded" in text
    assert f"rows {ex.provenance.data[:12]}" in text
    assert f"decisions {ex.provenance.decisions[:12]}" in text
    assert run("report", tmp_path / "ex.json", "--out", tmp_path / "page.zip").exit_code == 2


def test_cells_that_look_like_formulas_are_text() -> None:
    """Promise 23, for CSV."""
    text = evidence.table(["=cmd()", "n"], [["=1+1", 1.5], [" @x", np.inf], ["+a", np.nan], ["-b", -2.0], ["plain", 3]])
    rows = list(csv.reader(io.StringIO(text.decode())))
    assert [row[0] for row in rows] == ["'=cmd()", "'=1+1", "' @x", "'+a", "'-b", "plain"]
    assert [row[1] for row in rows[1:]] == ["1.5", "no recourse", "unknown", "-2.0", "3"]


@pytest.mark.parametrize("name", ["../evil.txt", "/etc/evil", "a/b.txt", ".."])
def test_a_zip_with_paths_is_refused(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "r.zip", "w") as archive:
        archive.writestr(name, b"x")
    with pytest.raises(FileFormatError, match="folders"):
        evidence.read(tmp_path / "r.zip")


def test_a_zip_that_is_damaged_or_lies_is_refused_and_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "r.zip"
    found = {"a.csv": b"x,y\n" * 2000, "manifest.json": b"{}" * 500}
    evidence.write(path, found)
    whole = path.read_bytes()
    assert evidence.read(path) == found
    for at, flip in product(range(len(whole)), (0x01, 0x08, 0x80)):  # an error in words, or the files as they were
        path.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
        with suppress(FileFormatError):
            assert set(evidence.read(path).values()) <= set(found.values())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("big.csv", bytes(64 << 20))
    lying = bytearray(path.read_bytes())
    entry = lying.rfind(b"PK\x01\x02")
    lying[entry + 24 : entry + 28] = (100).to_bytes(4, "little")  # says that it unpacks to 100 bytes
    path.write_bytes(lying)
    tracemalloc.start()
    with pytest.raises(FileFormatError, match="neither a folder nor a zip"):
        evidence.read(path)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.csv", b"x")
    with pytest.raises(FileFormatError, match="packed"):
        evidence.read(path)


def test_what_is_no_report_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r.zip").write_bytes(b"PK nonsense")
    with pytest.raises(FileFormatError, match="neither a folder nor a zip"):
        evidence.read(tmp_path / "r.zip")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileFormatError, match=r"lacks manifest\.json"):
        evidence.damaged(evidence.read(tmp_path / "folder"), "folder")
    newer = {"manifest.json": evidence.plain_json({"format": evidence.FORMAT, "version": 2})}
    with pytest.raises(FileFormatError, match="version 2"):
        evidence.damaged(newer, "newer")
    (tmp_path / "folder" / "x").write_bytes(b"12345")
    monkeypatch.setattr(evidence, "LARGEST", 4)
    with pytest.raises(FileFormatError, match="unpacks to more"):
        evidence.read(tmp_path / "folder")
    with pytest.raises(InvalidParameterError, match="not an empty folder"):
        evidence.write(tmp_path / "folder", {})


# -- comparing --------------------------------------------------------------------------------------------------------


def explained(limit: float, n: int = 60) -> gce.Explanation:
    X = np.linspace(0, 10, 2 * n).reshape(n, 2)
    space = gce.FeatureSpace.from_matrix(X)
    return gce.explain(lambda X: X[:, 0] > limit, X, favourable=True, space=space, effort="quick", rng=0)


def test_a_result_compared_with_itself_is_the_same() -> None:
    ex = explained(5.0)
    found = gce.compare(ex, ex)
    assert found.paired
    assert {row.said for row in found.rows} == {"the same"}
    assert all(row.difference == row.low == row.high == 0.0 for row in found.rows)
    assert found.is_worse(0.0) is False


def test_swapping_the_two_flips_every_difference() -> None:
    a, b = explained(4.0), explained(6.0)
    there, back = gce.compare(a, b), gce.compare(b, a)
    for row in there.rows:
        other = back[row.measure]
        assert (row.difference, row.low, row.high) == pytest.approx((-other.difference, -other.high, -other.low))
    assert there["score"].said == "worse"
    assert there.is_worse(0.1)
    assert back["score"].said == "better"


def test_pairing_narrows_the_interval_and_other_rows_are_not_paired() -> None:
    a, b, other = explained(5.0), explained(5.4), explained(5.4, n=61)
    paired, alone = gce.compare(a, b), gce.compare(a, other)
    assert paired.paired
    assert not alone.paired
    assert "the rows differ: 60 and 61" in alone.notes
    width = {found.paired: found["score"].high - found["score"].low for found in (paired, alone)}
    assert width[True] < width[False]


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """Two models on many samples of one population: the paired interval of the difference in score."""
    rng = np.random.default_rng(1)

    def sides(X: np.ndarray) -> gce.Comparison:
        space = gce.FeatureSpace.from_matrix(X, ranges={"x0": (0, 20)})
        cost = gce.CostModel.bins(space, widths={"x0": 1.0, "x1": 1.0})
        both = []
        for limit in (6.0, 7.0):
            wishes: dict[str, Any] = {"space": space, "cost": cost, "favourable": True, "budget": 30.0}
            model = lambda X, t=limit: X[:, 0] > t  # noqa: E731
            both.append(gce.who_benefits(model, X, {"x0": +20}, mode="scaled", **wishes).explanation)
        return gce.compare(*both, level=0.1)

    def draw(n: int) -> np.ndarray:
        return np.column_stack([rng.uniform(0, 10, n), rng.uniform(0, 1, n)])

    truth = 0.5  # those affected are uniform below 6 and below 7, and pay 3 and 3.5 on average
    held = [row.low <= truth <= row.high for row in (sides(draw(80))["score"] for _ in range(200))]
    assert 0.84 <= np.mean(held) <= 0.95


def test_nobody_with_recourse_is_unknown_and_never_passes() -> None:
    none = explained(99.0)
    everybody = gce.explain(lambda X: X[:, 0] > -1, np.linspace(0, 10, 120).reshape(60, 2), favourable=True, rng=0)
    found = gce.compare(everybody, none)
    assert np.isnan(found["coverage"].difference)
    assert found.is_worse(0.5) is None


def test_exit_codes_of_compare(tmp_path: Path) -> None:
    for name, limit in (("a", 4.0), ("b", 6.0), ("none", -1.0)):
        explained(limit).to_json(tmp_path / f"{name}.json")
    a, b, none = (tmp_path / f"{name}.json" for name in ("a", "b", "none"))
    assert run("compare", a, b, "--worse-above", "0.1").exit_code == 3
    assert run("compare", b, a, "--worse-above", "0.1").exit_code == 0
    assert run("compare", none, a, "--worse-above", "0.1").exit_code == 4
    done = run("compare", a, b, "--names", "March,June", "--out", tmp_path / "page.html")
    assert done.exit_code == 0
    assert "June against March, paired by row" in done.output
    assert "June" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert run("compare", a, b, "--names", "one").exit_code == 2


def test_two_audits_are_compared_by_their_gap(tmp_path: Path) -> None:
    au = audited(300)
    found = gce.compare(au, au)
    assert found["verdict"].said == "the same"
    assert [row.measure for row in found.rows][1].startswith("gap in score")
    assert found.worse_by == 0.0
    found.save_html(tmp_path / "page.html")
    with pytest.raises(InvalidParameterError, match="two explanations or two audits"):
        gce.compare(au, au.explanation)


def test_the_page_of_a_comparison_says_no_more_than_the_interval_does() -> None:
    a, b = explained(4.0), explained(6.0)
    worse, same = (page_of(gce.compare(a, x, names=("March", "June"))).data for x in (b, a))
    assert (worse["badge"], worse["tone"]) == ("worse", "bad")
    assert f"June is worse by {gce.compare(a, b)['score'].difference:.2f}" in worse["comparison"]["text"]
    assert "95% interval" in worse["answer"]
    assert (same["badge"], same["comparison"]["text"]) == ("the same", "By the score, the two are the same")
    unsure = gce.compare(a, explained(4.05, n=12), names=("March", "June"))
    assert unsure["score"].said == "no difference shown"
    assert "no difference between the two is shown" in page_of(unsure).data["comparison"]["text"]
    none = page_of(gce.compare(explained(-1.0), a)).data
    assert (none["badge"], none["tone"]) == ("unknown", "unknown")
    au = audited(300)
    audits = page_of(gce.compare(au, au)).data
    assert "gap in score between" in audits["answer"]
    assert "less equal" in audits["question"]


@pytest.mark.parametrize(
    ("given", "named"), [({"names": "ab"}, "names"), ({"names": ["a"]}, "names"), ({"level": 0}, "level")]
)
def test_compare_given_rubbish_says_so(given: dict[str, Any], named: str) -> None:
    ex = explained(5.0)
    with pytest.raises(InvalidParameterError, match=named):
        gce.compare(ex, ex, **given)
    with pytest.raises(InvalidParameterError, match="a must be"):
        gce.compare("x", ex)
