"""Frame time while the budget is dragged: ``make frames`` prints it, for 5,000 affected inputs and 5 directions.

The mouse drags the first chart of a report while Chromium writes a trace. A frame's work is everything that the page's
main thread does from one animation frame to the next: events, scripts, styles, layout and paint. CPU time is that
thread's own; wall time also counts other processes that have the core.
"""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page

import globece as gce
from globece.directions.fixed import FixedDirections
from tests.e2e.browser import browsing, opened

WORK = ("EventDispatch", "FireAnimationFrame", "UpdateLayoutTree", "Layout", "PrePaint", "Paint", "Layerize", "Commit")
DRAGS = 3


def many(n: int = 5_000, directions: int = 5) -> gce.Explanation:
    """An explanation of so many affected inputs with so many directions."""
    rng = np.random.default_rng(0)
    X = rng.normal(0, 1, (n, 12))
    space = gce.FeatureSpace.from_matrix(X)
    wishes: dict[str, Any] = {"favourable": True, "space": space, "budget": 60.0, "rng": 0}
    each = [
        gce.explain(lambda X: X.sum(axis=1) > 25, X, generator=FixedDirections([delta]), **wishes)
        for delta in np.abs(rng.normal(0, 1, (directions, 12)))
    ]
    stacked: dict[str, Any] = {
        name: np.vstack([getattr(e, name) for e in each]) for name in ("directions", "scalars", "costs")
    }
    return replace(each[0], **stacked)


def drag(page: Page, steps: int = 120) -> None:
    """Drag the budget to and fro in the first chart that can be dragged."""
    chart = page.locator(".chart .draggable").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.85, middle)
    page.mouse.down()
    for step in range(steps):
        page.mouse.move(box["x"] + box["width"] * (0.5 + 0.35 * math.cos(step / 12)), middle)
    page.mouse.up()


def frames(browser: Browser, page: Page) -> tuple[np.ndarray, np.ndarray]:
    """CPU and wall time of each frame of one drag, in milliseconds."""
    browser.start_tracing(page=page, categories=["devtools.timeline"])
    drag(page)
    page.wait_for_timeout(200)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    frame = next(e for e in events if e["name"] == "FireAnimationFrame")
    mine = [e for e in events if e.get("ph") == "X" and (e["pid"], e["tid"]) == (frame["pid"], frame["tid"])]
    starts = np.sort([e["ts"] for e in mine if e["name"] == "FireAnimationFrame"])
    cpu, wall = np.zeros((2, len(starts) + 1))
    until = -1.0
    for e in sorted((e for e in mine if e["name"] in WORK), key=lambda e: (e["ts"], -e["dur"])):
        if e["ts"] >= until:  # what lies within another event is counted with it
            until = e["ts"] + e["dur"]
            at = np.searchsorted(starts, e["ts"], side="right")
            wall[at] += e["dur"] / 1000.0
            cpu[at] += e.get("tdur", e["dur"]) / 1000.0
    return cpu[1:], wall[1:]


def main() -> None:
    """Measure, and say what was seen."""
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        path = Path(folder) / "many.html"
        ex = many()
        ex.save_html(path, about=gce.About(include_rows=True))
        page = opened(browser, path.as_uri()).page
        page.wait_for_timeout(500)
        print(f"{ex.n_affected:,} affected inputs, {ex.n_directions} directions; milliseconds of a frame:")
        for i in range(DRAGS):
            cpu, wall = frames(browser, page)
            told = ", ".join(
                f"{name} median {np.median(t):.1f}, 95th percentile {np.quantile(t, 0.95):.1f}, most {t.max():.1f}"
                for name, t in (("CPU", cpu), ("wall", wall))
            )
            print(f"drag {i + 1}, {len(cpu)} frames: {told}")


if __name__ == "__main__":
    main()
