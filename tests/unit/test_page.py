"""The page's data and its file: numbers are those of the result, and nothing in a file runs or asks for anything."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import globece as gce
from globece import rays
from globece.auditing.verdict import worst_first
from globece.errors import InvalidParameterError
from globece.page import words
from globece.page.arrays import Page
from globece.page.html import document
from globece.page.pages import page_of
from tests.live import audited
from tests.problems import approve, mixed_frame, mixed_space

HOSTILE = "</script><img src=x onerror=alert(1)><!--"


@pytest.fixture(scope="module")
def ex() -> gce.Explanation:
    X = mixed_frame(150)
    return gce.explain(approve, X, space=mixed_space(X), n_directions=3, effort="quick", rng=0)


def data_in(html: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="globece-data">(.*?)</script>', html, re.S)
    found: dict[str, Any] = json.loads(text)
    return found


def test_numbers_at_every_limit_are_those_of_the_result(ex: gce.Explanation) -> None:
    page = page_of(ex)
    part = page.data["explanations"]["everybody"]
    limits = page.values(part["grid"]["limits"])
    assert limits[-1] == ex.budget
    assert (np.diff(limits) > 0).all()
    alone = [d["alone"] for d in part["directions"]]
    for costs, series in [(ex.best_costs, part["total"]), *zip(ex.costs, alone, strict=True)]:
        count, total = page.values(series["count"]), page.values(series["sum"])
        for i in [*range(0, len(limits), 37), len(limits) - 1]:
            paid = costs[costs <= limits[i]]
            assert count[i] == len(paid)
            assert total[i] == pytest.approx(paid.sum(), rel=1e-12)
    assert page.values(part["total"]["count"])[-1] == ex.n_covered


def test_the_takers_of_all_directions_are_the_covered(ex: gce.Explanation) -> None:
    page = page_of(ex)
    part = page.data["explanations"]["everybody"]
    taken = np.sum([page.values(d["takers"]["count"]) for d in part["directions"]], axis=0)
    np.testing.assert_array_equal(taken, page.values(part["total"]["count"]))


def test_nobody_moves_by_more_than_the_page_says(ex: gce.Explanation) -> None:
    """At each limit, in each direction, for each feature: counted from the counterfactuals."""
    page = page_of(ex)
    part = page.data["explanations"]["everybody"]
    limits = page.values(part["grid"]["limits"])
    checked = 0
    for i, d in enumerate(part["directions"]):
        for move in d["moves"]:
            f = ex.space[move["feature"]]
            within = page.values(move["within"])
            for at in (len(limits) // 3, len(limits) // 2, len(limits) - 1):
                mine = np.flatnonzero(ex.costs[i] <= limits[at])
                after = rays.positions(ex.space, ex.inputs[mine], ex.directions[i], ex.scalars[i][mine])
                moved = np.nan_to_num(np.abs(after[:, f.start] - ex.inputs[mine][:, f.start])).max(initial=0.0)
                assert moved <= within[at] <= moved * (1 + 1e-6)
                checked += 1
    assert checked


def test_a_file_allows_its_own_script_and_style_and_nothing_else(ex: gce.Explanation, tmp_path: Path) -> None:
    ex.save_html(tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    policy = policy.replace("&#x27;", "'")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "connect-src" not in policy
    for tag in ("style", 'script type="module"'):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag.split()[0]}>", html, re.S)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    markup = re.sub(r"<(style|script)\b.*?</\1>", "", html, flags=re.S)
    assert set(re.findall(r'(?:src|href)="([^"]*)"', markup)) == {"data:,"}


def test_hostile_names_are_inert() -> None:
    """Promise 23: names and values from the data are text in the file, wherever they stand."""
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame({HOSTILE: rng.uniform(0, 10, 60), "=cmd()": rng.choice([HOSTILE, "b"], 60)})
    ex = gce.explain(lambda X: (X[HOSTILE] > 5).astype(int), X, rng=0)
    about = gce.About(title=HOSTILE, labels={HOSTILE: HOSTILE + "2"}, data=HOSTILE, command=HOSTILE, include_rows=True)
    for html in (document(page_of(ex, about)), ex._repr_html_()):
        assert "<img" not in html
        assert "&lt;img" in html or "\\u003cimg" in html or "&amp;lt;img" in html
        assert html.count("</script>") in (0, 2)
        assert "<!--" not in html
    assert data_in(document(page_of(ex, about)))["title"] == HOSTILE


def test_rows_are_left_out_unless_asked_for() -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.uniform(0, 10, 60).round(6), "town": [f"town-{i % 7}" for i in range(60)]})
    space = gce.FeatureSpace.from_frame(X, immutable=["town"])
    ex = gce.explain(lambda X: (X["income"] > 5).astype(int), X, space=space, rng=0)
    without, with_rows = (document(page_of(ex, gce.About(include_rows=rows))) for rows in (False, True))
    incomes = [f"{v:,.5g}" for v in X["income"][X["income"] <= 5]]
    assert not [v for v in incomes if v in without]
    assert data_in(without)["explanations"]["everybody"]["people"] == {"listed": False, "n": ex.n_affected}
    assert sum(v in with_rows for v in incomes) == len(incomes)


def test_listed_people_are_the_counterfactuals(ex: gce.Explanation) -> None:
    page = page_of(ex, gce.About(include_rows=True))
    people = page.data["explanations"]["everybody"]["people"]
    start = page.values(people["change_start"])
    names = page.values(people["change_feature"])
    found, cf = ex.minimum_costs(), ex.counterfactuals()
    before, after = ex.space.compact(cf.before), ex.space.compact(cf.after)
    covered = np.flatnonzero(found.direction >= 0)
    for at, i in enumerate(covered):
        changed = np.flatnonzero((before[at] != after[at]) & ~(np.isnan(before[at]) & np.isnan(after[at])))
        assert sorted(names[start[i] : start[i + 1]].tolist()) == changed.tolist()
    np.testing.assert_array_equal(page.values(people["direction"]), found.direction)


def test_many_people_are_sampled_and_the_page_says_so() -> None:
    """Numbers use all 50,000; the list has 20,000 of them."""
    X = np.random.default_rng(0).uniform(0, 10, (60_000, 2)).round(3)
    space = gce.FeatureSpace.from_matrix(X)
    ex = gce.who_benefits(lambda X: (X[:, 0] > 9).astype(int), X, {"x0": 10.0}, mode="scaled", space=space).explanation
    page = page_of(ex, gce.About(include_rows=True))
    part = page.data["explanations"]["everybody"]
    assert ex.n_affected > 50_000
    assert part["people"]["sampled"]
    assert part["people"]["row"]["length"] == 20_000
    assert page.values(part["total"]["count"])[-1] == ex.n_covered
    assert len(document(page)) < 3_000_000


def test_nobody_affected_and_nobody_with_recourse_have_pages() -> None:
    X = np.arange(20.0).reshape(10, 2)
    fine = page_of(gce.explain(lambda X: np.ones(len(X)), X, favourable=1, rng=0)).data
    assert (fine["badge"], fine["explanations"]["everybody"]["n_affected"]) == ("nobody affected", 0)
    none = page_of(gce.explain(lambda X: np.zeros(len(X)), X, favourable=1, rng=0)).data
    assert none["badge"] == "nothing found"
    assert "No way out was found" in none["answer"]


def test_the_answer_gives_the_average_cost_in_a_features_own_units(ex: gce.Explanation) -> None:
    found = words.example(ex)
    assert found is not None
    f, change = found
    assert ex.cost.change(f, np.array([0.0]), np.array([abs(change)]))[0] == pytest.approx(1.0)
    about = gce.About(people="applicants", labels={f.name: "the thing"}, units={f.name: "pounds"})
    said = page_of(ex, about).data["answer"]
    how = "raising" if change > 0 else "lowering"
    assert f"as much as {how} the thing by {ex.average_cost * abs(change):.3g} pounds." in said
    assert f"of the {ex.n_affected} applicants affected" in said


def test_code_that_computes_it_again_has_what_is_known_and_leaves_the_rest_open(ex: gce.Explanation) -> None:
    command = page_of(ex).data["rests"]["command"]
    ast.parse(command)
    asked = {
        k.arg: ast.unparse(k.value)
        for node in ast.walk(ast.parse(command))
        if isinstance(node, ast.Call)
        for k in node.keywords
    }
    assert (asked["rng"], asked["favourable"], asked["n_directions"]) == ("0", "...", str(ex.n_directions))
    unknown = replace(ex, provenance=replace(ex.provenance, seed=None))
    assert "rng=...," in page_of(unknown).data["rests"]["command"]
    fixed = [f.name for f in ex.space.features if f.immutable]
    assert ast.literal_eval(asked.get("immutable", "[]")) == fixed
    assert "rng=7" in page_of(ex, gce.About(seed=7)).data["rests"]["command"]
    assert page_of(ex, gce.About(command="make it")).data["rests"]["command"] == "make it"
    hostile = page_of(ex, gce.About(favourable="yes\nimport os")).data["rests"]["command"]
    assert "\nimport os" not in hostile


def test_decisions_are_the_worst_first_and_the_heading_is_about_the_verdict() -> None:
    au = audited(300)
    data = page_of(au).data
    ast.parse(data["rests"]["command"])
    assert "by='sex'" in data["rests"]["command"]
    assert "permutations=99" in data["rests"]["command"]
    first = worst_first(au.comparisons)[0]
    assert (data["audit"]["decisions"][0]["group"], first.decision.conclusion) == (first.group, au.verdict.conclusion)
    gap = f"{abs(first.gaps['score'].value):.2f}"
    assert gap in data["answer"]
    assert "counts as relevant" in data["answer"]
    assert data["audit"]["finding"]


def test_same_result_same_bytes(ex: gce.Explanation) -> None:
    assert document(page_of(ex)) == document(page_of(ex))


def test_binary_and_inlined_pages_hold_the_same(ex: gce.Explanation) -> None:
    page = page_of(ex)
    assert Page.read_binary(page.binary()).inlined() == page.inlined()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"title": 3}, "title"),
        ({"units": ["a"]}, "units"),
        ({"seed": -1}, "seed"),
        ({"include_rows": "yes"}, "include_rows"),
    ],
)
def test_each_word_given_rubbish_says_so(given: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidParameterError, match=named):
        gce.About(**given)
    with pytest.raises(InvalidParameterError, match="about must be"):
        page_of(gce.explain(lambda X: X[:, 0] > 2, np.array([[1.0], [3.0]]), rng=0), {"title": "x"})  # type: ignore[arg-type]
