"""A real browser for tests of the page: Chromium, headless, with every request to elsewhere aborted and counted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
AXE = Path(__file__).parents[2] / "frontend/node_modules/axe-core/axe.min.js"
SERIOUS = ("serious", "critical")


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser until the end of the block."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Seen:
    """A page, and what it did.

    Attributes
    ----------
    page
        The page.
    outside
        Requests to anywhere but its own origin; each was aborted.
    inside
        Requests to its own origin.
    errors
        What the console or an exception said.
    """

    page: Page
    own: str
    outside: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def opened(browser: Browser, address: str, *, width: int = 1280, height: int = 800, **wishes: Any) -> Seen:
    """Open an address; ``own`` is where it may ask."""
    context = browser.new_context(viewport={"width": width, "height": height}, **wishes)
    page = context.new_page()
    seen = Seen(page, address.partition("#")[0])

    def route(found: Any) -> None:
        url = found.request.url
        if url.startswith(("data:", "blob:")):
            found.continue_()
        elif url.partition("#")[0].startswith(seen.own):
            seen.inside.append(url)
            found.continue_()
        else:
            seen.outside.append(url)
            found.abort()

    context.route("**/*", route)
    page.on("console", lambda m: seen.errors.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: seen.errors.append(str(e)))
    page.goto(address)
    page.wait_for_selector("main h1")
    return seen


def serious_findings(page: Page) -> list[str]:
    """What axe finds that is serious or critical."""
    # Not as a script element: the page's policy lets no other script in, and that is as it should be.
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{v['id']}: {v['help']} ({node['target']}, {len(v['nodes'])} in all): {node['failureSummary'][:200]}"
        for v in found["violations"]
        for node in v["nodes"][:1]
        if v["impact"] in SERIOUS
    ]
