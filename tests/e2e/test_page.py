"""The page in a real browser: as a report from disk, and live."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page

import globece as gce
from globece.directions.fixed import FixedDirections
from globece.io import files
from globece.page.html import document
from globece.page.pages import page_of
from globece.web import serving
from globece.web.desk import STAGES
from globece.web.limits import Limits
from tests.e2e.browser import browsing, opened, serious_findings
from tests.e2e.frames import drag, many
from tests.live import Live, audited, credit, desk, prepared, running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def ex() -> gce.Explanation:
    model, X, space = credit()
    return gce.explain(model, X, favourable=1, space=space, n_directions=3, effort="quick", rng=0)


@pytest.fixture(scope="module")
def report(ex: gce.Explanation, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    ex.save_html(path, about=gce.About(title="Loans", include_rows=True, command="globece report loans.csv"))
    return path.as_uri()


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("audit") / "audit.html"
    audited().save_html(path)
    return path.as_uri()


@pytest.fixture(scope="module")
def comparison(ex: gce.Explanation, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("comparison") / "comparison.html"
    gce.compare(ex, ex, names=("March", "June")).save_html(path)
    return path.as_uri()


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with running(prepared(Limits(job_s=60.0))) as found:
        yield found


def until(page: Page, condition: str, seconds: float = 30.0) -> None:
    """Wait for a condition; the page's policy forbids Playwright's own way, which evaluates text."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(50)


def shown(text: str) -> list[float]:
    return [float(n) for n in re.findall(r"\d+(?:\.\d+)?", text)]


def test_a_report_from_disk_asks_for_nothing_and_follows_the_budget(
    browser: Browser, report: str, ex: gce.Explanation
) -> None:
    """Promise 24: outside requests are aborted and counted, and there are none; the file itself is the only one."""
    seen = opened(browser, report)
    page = seen.page
    page.locator(".chart .draggable").first.scroll_into_view_if_needed()
    box = page.locator(".chart .draggable").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
    page.mouse.down()
    for step in range(8):
        page.mouse.move(box["x"] + box["width"] * (0.9 - 0.08 * step), box["y"] + box["height"] / 2)
    page.mouse.up()
    until(page, "Number(document.querySelector('#limit').value) < Number(document.querySelector('#limit').max)")
    page.wait_for_timeout(300)
    limit = float(page.locator("output[for=limit]").inner_text())
    assert 0 < limit < ex.budget
    coverage, average = shown(page.locator("#limit-says").inner_text())
    at = ex.at(cost=page.evaluate("Number(document.querySelector('#limit').value)") * ex.budget / _steps(page))
    assert coverage == pytest.approx(100 * at.coverage, abs=0.06)
    assert average == pytest.approx(at.average_cost, abs=0.006)
    assert (seen.outside, seen.errors) == ([], [])
    assert seen.inside == [report]
    again = opened(browser, page.url)  # the address holds the state, and a report may be opened twice
    until(page, "location.hash.includes('limit=')")
    third = opened(browser, page.url)
    assert third.page.locator("output[for=limit]").inner_text() == page.locator("output[for=limit]").inner_text()
    for other in (again, third):
        other.page.context.close()
    page.context.close()


def _steps(page: Page) -> float:
    return float(page.evaluate("Number(document.querySelector('#limit').max)"))


def test_the_keyboard_is_enough(browser: Browser, report: str, ex: gce.Explanation) -> None:
    seen = opened(browser, report)
    page = seen.page
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "limit":
            break
    assert page.evaluate("document.activeElement.id") == "limit"

    def leads_to(key: str, cost: float) -> None:
        page.keyboard.press(key)
        until(page, f"Math.abs(Number(document.querySelector('output[for=limit]').textContent) - {cost}) < 1e-9")

    leads_to("Home", 0.0)
    leads_to("PageUp", 1.0)
    leads_to("ArrowRight", 1.1)
    leads_to("ArrowLeft", 1.0)
    leads_to("End", ex.budget)
    assert "covered" in str(page.locator("#limit").get_attribute("aria-valuetext"))
    page.locator(".list").focus()
    page.keyboard.press("ArrowDown")
    until(page, "document.querySelector('#person h3')?.textContent.startsWith('Row ')")
    assert seen.errors == []
    page.context.close()


def test_the_people_can_be_searched_and_only_those_in_sight_are_drawn(
    browser: Browser, report: str, ex: gce.Explanation
) -> None:
    page = opened(browser, report).page
    status = page.locator("#people p[role=status]")
    assert status.inner_text() == f"{ex.n_affected} listed"
    assert page.locator(".rows .row").count() < 30
    page.fill("#search", "own")
    found = int(status.inner_text().split()[0])
    cf = ex.counterfactuals()
    moved = (cf.before["housing"] != cf.after["housing"]) & (cf.after["housing"] == "own")
    assert found == int(moved.sum())
    page.fill("#search", "no such thing")
    assert status.inner_text().startswith("0 of ")
    page.fill("#search", "")
    page.select_option("#sort", "-cost")
    costs = [float(t) for t in page.locator(".rows .row span:nth-child(2)").all_inner_texts()[:5] if t != "none"]
    assert costs == sorted(costs, reverse=True)
    page.context.close()


def test_an_audit_switches_groups_and_says_its_decision(browser: Browser, audit: str) -> None:
    seen = opened(browser, audit)
    page = seen.page
    names = page.locator("#part option").all_inner_texts()
    assert names == ["everybody", "female", "male"] or set(names) == {"everybody", "sex = female", "sex = male"}
    before = page.locator("#far h2").inner_text()
    page.select_option("#part", names[1])
    until(page, f"document.querySelector('#far h2').textContent !== {before!r}")
    assert page.locator("#groups table").count() >= 3
    assert page.locator(".first .badge").inner_text()
    page.select_option("#exchange", "coverage")
    assert "%" in page.locator(".matrix tbody td").first.inner_text()
    assert (seen.outside, seen.errors) == ([], [])
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["report", "audit", "comparison", "live"])
def test_axe_finds_nothing_serious(browser: Browser, which: str, scheme: str, request: pytest.FixtureRequest) -> None:
    given = request.getfixturevalue(which)
    page = opened(browser, given.address if which == "live" else given, color_scheme=scheme).page
    assert serious_findings(page) == []
    page.context.close()


@pytest.mark.parametrize("width", [360, 768, 1600])
def test_no_width_scrolls_sideways(browser: Browser, report: str, audit: str, width: int) -> None:
    for address in (report, audit):
        page = opened(browser, address, width=width).page
        page.wait_for_timeout(150)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.context.close()


def test_print_shows_everything(browser: Browser, audit: str, report: str, ex: gce.Explanation) -> None:
    page = opened(browser, audit).page
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate("[...document.querySelectorAll('details')].every((d) => d.open)")
    assert not page.locator("nav.contents").is_visible()
    page.context.close()
    page = opened(browser, report, color_scheme="dark").page
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 700, "height": 900})  # paper is narrower, and a printed list stays whole
    assert page.locator(".rows .row").count() == ex.n_affected
    drawn = page.evaluate("[...document.querySelectorAll('.chart svg')].map((s) => s.viewBox.baseVal.width)")
    assert max(drawn) <= 700
    assert page.evaluate("getComputedStyle(document.querySelector('.bars i')).printColorAdjust") == "exact"
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator(".rows .row").count() < 30
    page.context.close()


def test_a_live_page_recomputes_and_cancels(browser: Browser, live: Live) -> None:
    seen = opened(browser, live.address)
    seen.own = f"http://{live.host}/"
    page = seen.page
    page.wait_for_selector("#again")
    assert "token" not in page.url
    assert page.locator(".card").count() == 2
    page.fill("#again-n", "1")
    page.click("#again-go")
    until(page, "document.querySelector('#again .says').textContent.startsWith('Done')")
    assert page.locator(".card").count() == 1
    page.select_option("#again-by", "sex")
    page.fill("#again-n", "3")
    page.click("#again-go")
    page.click("#again-stop")
    until(page, "/Cancelled|Done/.test(document.querySelector('#again .says').textContent)")
    live.rooms.jobs.wait()
    page.reload()
    page.wait_for_selector("#again")
    assert (seen.outside, seen.errors) == ([], [])
    page.context.close()


def test_a_first_result_is_shown_at_once_and_a_better_one_when_it_comes(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says that it is not final, and a second window follows the same computation."""
    gate, made = threading.Event(), desk(Limits(job_s=600.0))
    plain = made._answer

    def waits(asked: Any, wishes: Any) -> Any:
        assert wishes["effort"] == STAGES[0] or gate.wait(60)
        return plain(asked, wishes)

    monkeypatch.setattr(made, "_answer", waits)
    rooms = serving.Rooms(Limits(), prepare=lambda: made)
    with running(rooms) as found:
        rooms.begin()
        windows = [opened(browser, found.address) for _ in range(2)]
        for seen in windows:
            seen.own = f"http://{found.host}/"
            seen.page.wait_for_selector("#again")
            until(seen.page, "document.querySelector('#preliminary').textContent.includes('best result so far')")
            assert seen.page.locator("#again-go").is_disabled()
            assert seen.page.locator("#again-stop").is_enabled()
        first = windows[0].page
        first.locator("#limit").focus()
        first.keyboard.press("Home")
        first.keyboard.press("PageUp")
        until(first, "document.querySelector('output[for=limit]').textContent === '1.00'")
        first.fill("#search", "own")
        first.fill("#again-n", "4")
        first.select_option("#again-by", "sex")
        first.select_option("#try select[data-feature]", label="becomes own")
        first.wait_for_selector("#try .result table")
        tried = first.locator("#try .answer").inner_text()
        gate.set()
        for seen in windows:
            until(seen.page, "document.querySelector('#again .says').textContent.startsWith('Done')")
            until(seen.page, "!document.querySelector('#again-go').disabled")  # once the better result is drawn
            assert seen.page.locator("#preliminary").inner_text() == ""
            assert (seen.outside, seen.errors) == ([], [])
        assert first.locator("output[for=limit]").inner_text() == "1.00"
        first.wait_for_selector("#try .result table")
        assert first.locator("#try .answer").inner_text() == tried
        assert "match" in first.locator("#people p[role=status]").inner_text()
        assert [first.locator(name).input_value() for name in ("#search", "#again-n", "#again-by")] == [
            "own",
            "4",
            "sex",
        ]
        for seen in windows:
            seen.page.context.close()


def test_a_live_page_answers_ones_own_change(browser: Browser, live: Live) -> None:
    page = opened(browser, live.address).page
    page.wait_for_selector("#try")
    income = page.locator("#try .controls p", has_text="income").locator("input")
    income.focus()
    page.keyboard.press("End")
    page.wait_for_selector("#try .result table")
    model, X, space = credit()
    span = X["income"].max() - X["income"].min()
    found = gce.who_benefits(model, X, {"income": span}, space=space, favourable=1).overall
    assert f"helps {found.flipped} of {found.affected}" in page.locator("#try .answer").inner_text()
    page.context.close()


def test_a_window_without_the_token_is_told_so(browser: Browser, live: Live) -> None:
    page = opened(browser, f"http://{live.host}/").page
    assert "token" in page.locator("main h1").inner_text()
    other = opened(browser, f"http://{live.host}/#token=wrong").page
    until(other, "document.querySelector('h1').textContent.includes('not this server')")
    for one in (page, other):
        one.context.close()


def test_a_lost_connection_is_said_and_what_is_shown_stays(browser: Browser) -> None:
    with running(prepared(Limits(job_s=60.0))) as found:
        page = opened(browser, found.address).page
        page.wait_for_selector("#again")
    page.click("#again-go")
    until(page, "document.querySelector('#again .says').textContent.includes('connection')")
    assert page.locator(".card").count() == 2
    page.context.close()


def test_a_newer_file_is_not_guessed_at(browser: Browser, ex: gce.Explanation, tmp_path: Path) -> None:
    page = page_of(ex)
    page.data["version"] = 99
    files.write_text(str(tmp_path / "new.html"), document(page))
    seen = opened(browser, (tmp_path / "new.html").as_uri())
    assert "version 99" in seen.page.locator("[role=alert]").inner_text()
    seen.page.context.close()


@pytest.mark.parametrize("case", ["nobody affected", "nobody with recourse", "300 features", "hostile"])
def test_odd_results_have_a_page(browser: Browser, case: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (60, 300 if case == "300 features" else 3))
    columns = [f"f{i}" for i in range(X.shape[1])]
    if case == "hostile":
        columns[0] = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    space = gce.FeatureSpace.from_matrix(X, columns=columns)
    level = {"nobody affected": -1.0, "nobody with recourse": 9.0}.get(case, 0.5)
    delta = np.full(X.shape[1], 1.0)
    wishes: dict[str, Any] = {"favourable": True, "space": space, "generator": FixedDirections([delta]), "rng": 0}
    ex = gce.explain(lambda X: X.mean(axis=1) > level, X, **wishes)
    ex.save_html(tmp_path / "odd.html", about=gce.About(include_rows=True))
    seen = opened(browser, (tmp_path / "odd.html").as_uri())
    text = seen.page.locator("main").inner_text()
    if case == "nobody affected":
        assert "Nobody is affected" in text
    elif case == "nobody with recourse":
        assert "nobody is covered" in text
        assert "No way out was found" in text
        assert seen.page.locator(".card").count() == 0
    elif case == "300 features":
        assert "more features" in text
    else:
        assert seen.page.title() != "owned"
        assert "</script><script>" in text
    assert (seen.outside, seen.errors) == ([], [])
    seen.page.context.close()


def regions(names: list[str], decide: Any = None) -> gce.Audit:
    """A quick audit by a column of these values."""
    rng = np.random.default_rng(0)
    n = 60 * len(names)
    X = pd.DataFrame({"income": rng.normal(40, 12, n).round(1), "region": rng.choice(names, n)})
    space = gce.FeatureSpace.from_frame(X, immutable=["region"])
    settings = gce.AuditSettings(checks=False, permutations=99, resamples=50, smallest=5)
    wishes: dict[str, Any] = {"favourable": 1, "space": space, "effort": "quick", "n_directions": 1, "rng": 0}
    model = decide or (lambda X: (X["income"].to_numpy() > 45).astype(int))
    return gce.audit(model, X, by="region", audit_settings=settings, **wishes)


@pytest.mark.parametrize("case", ["many and odd groups", "nobody affected", "nobody with recourse", "no members"])
def test_odd_audits_have_a_page(browser: Browser, case: str, tmp_path: Path) -> None:
    some = ["a", "b"]
    if case == "many and odd groups":
        names = [
            "x" * 300,
            "</script><img src=x onerror=\"document.title='owned'\">",
            "=cmd()",
            "\u5317\u4eac",
            *"abcd",
        ]
        au = regions(names)
    elif case == "no members":
        au = gce.Audit.from_json(regions(some).to_json())
    else:
        au = regions(some, lambda X: np.full(len(X), int(case == "nobody affected")))
    au.save_html(tmp_path / "odd.html")
    seen = opened(browser, (tmp_path / "odd.html").as_uri(), width=390)
    page = seen.page
    page.wait_for_timeout(150)
    text = page.locator("main").inner_text()
    told = {
        "many and odd groups": "2 more are in the table of groups",
        "nobody affected": "Nobody is affected: all 120 have the favourable outcome",
        "nobody with recourse": "Nobody in any group has recourse within the budget of 10",
        "no members": "read from a file without its members",
    }
    assert told[case] in text
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.title() != "owned"
    assert serious_findings(page) == []
    assert (seen.outside, seen.errors) == ([], [])
    page.context.close()


def test_dragging_moves_what_is_there_and_builds_nothing(browser: Browser, tmp_path: Path) -> None:
    """5,000 affected inputs and 5 directions: a step changes some texts and attributes, and no element comes or goes.

    What that takes in milliseconds is for ``make frames``.
    """
    ex = many()
    assert (ex.n_affected, ex.n_directions) == (5_000, 5)
    ex.save_html(tmp_path / "many.html", about=gce.About(include_rows=True))
    seen = opened(browser, (tmp_path / "many.html").as_uri())
    page = seen.page
    until(page, "document.querySelectorAll('.chart svg').length === 3")
    page.evaluate(WATCH)
    drag(page, steps=40)
    until(page, "location.hash.includes('limit=')")
    updates, changed, built = page.evaluate("[window.seen.updates, window.seen.changed, window.seen.built]")
    assert updates > 5
    assert built == 0
    assert 0 < changed / updates < 200
    assert seen.errors == []
    page.context.close()


# Counts what changes in the document while the budget moves.
WATCH = """() => {
  const seen = window.seen = { updates: 0, changed: 0, built: 0 };
  const elements = (nodes) => [...nodes].filter((node) => node.nodeType === 1).length;
  new MutationObserver((records) => {
    seen.updates += 1;
    seen.changed += records.length;
    for (const record of records) seen.built += elements(record.addedNodes) + elements(record.removedNodes);
  }).observe(document.querySelector('main'), { subtree: true, childList: true, attributes: true, characterData: true });
}"""
