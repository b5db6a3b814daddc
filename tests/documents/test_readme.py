"""README's figures are those of the results, its links lead somewhere, and its picture is one of the page's."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import unquote

import pytest

from tests.documents.blocks import ROOT, pages

LINK = re.compile(r"\]\(([^)\s]+)\)")


def test_figures_are_those_of_the_results() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    written = re.search(r"<!-- Written by `make bench`.*?-->\n(.*)<!-- End", text, re.DOTALL)
    assert written is not None
    measured: dict[str, Any] = {p.stem: json.loads(p.read_text()) for p in (ROOT / "bench/results").glob("*.json")}
    rays = [r["1"] for r in measured["rays"]["result"] if r["model"] == "xgb"]
    times = [ray["free_grid_ms"] / ray["free_ms"] for ray in rays]
    assert f"XGBoost {min(times):,.0f} to {max(times):,.0f} times" in written[1], "run make bench-page"
    exact = measured["exactness"]["result"]
    assert f"{sum(r['reported'] for r in exact):,} reported" in written[1], "run make bench-page"
    assert written[1].count("`make bench-") == written[1].count("\n| ") - 1


@pytest.mark.parametrize("page", pages())
def test_links_lead_to_files_and_headings(page: str) -> None:
    folder = (ROOT / page).parent
    lost = []
    for target in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
        path, _, heading = unquote(target).partition("#")
        if "://" in target or path.startswith("mailto:"):
            continue
        file = (folder / path).resolve() if path else ROOT / page
        if not file.exists() or (heading and heading not in headings(file.read_text(encoding="utf-8"))):
            lost.append(target)
    assert lost == []


def headings(text: str) -> set[str]:
    """The names that GitHub and MyST give to headings."""
    found = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}
