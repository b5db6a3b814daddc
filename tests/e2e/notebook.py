"""The widget in a real JupyterLab: ``make notebook`` starts one, runs two cells in a browser, and drags the budget."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.e2e.browser import browsing

PORT = 8899
CELLS = (
    "import numpy as np, globece as gce\n"
    "X = np.arange(80.0).reshape(40, 2)\n"
    "ex = gce.explain(lambda X: X[:, 0] > 50, X, favourable=True, rng=0)\n"
    "ex.widget()",
    "ex",
)
SHADOW = "[...document.querySelectorAll('*')].find((e) => e.shadowRoot?.querySelector('#limit'))?.shadowRoot"
DRAG = f"""() => {{
  const root = {SHADOW}, slider = root.querySelector('#limit'), says = root.querySelector('#limit-says');
  const before = says.textContent;
  slider.value = Math.round(Number(slider.max) * 0.1);
  slider.dispatchEvent(new Event('input', {{ bubbles: true }}));
  return new Promise((done) => setTimeout(() => done([before, says.textContent]), 300));
}}"""


def main() -> None:
    """Run the check, and say what was seen."""
    with tempfile.TemporaryDirectory() as folder:
        cells: list[dict[str, Any]] = [
            {"cell_type": "code", "execution_count": None, "id": f"c{i}", "metadata": {}, "outputs": [], "source": text}
            for i, text in enumerate(CELLS)
        ]
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
        Path(folder, "page.ipynb").write_text(json.dumps(book), encoding="utf-8")
        options = ("--no-browser", "--allow-root", f"--port={PORT}", "--ServerApp.token=abc")
        command = [sys.executable, "-m", "jupyterlab", *options, f"--ServerApp.root_dir={folder}"]
        lab = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait()
            _check()
        finally:
            lab.terminate()
            lab.wait()


def _wait() -> None:
    for _ in range(120):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/api?token=abc")
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise SystemExit("JupyterLab did not start")


def _check() -> None:
    outside: list[str] = []
    errors: list[str] = []

    def asked(request: Any) -> None:
        if not request.url.startswith((f"http://127.0.0.1:{PORT}", f"ws://127.0.0.1:{PORT}", "data:", "blob:")):
            outside.append(request.url)

    with browsing() as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.on("request", asked)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"http://127.0.0.1:{PORT}/lab/tree/page.ipynb?token=abc")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=90_000)
        page.wait_for_timeout(5_000)  # the kernel starts
        page.click(".jp-Notebook .jp-CodeCell >> nth=0")
        for _ in CELLS:
            page.keyboard.press("Shift+Enter")
            page.wait_for_timeout(1_000)
        page.wait_for_function(f"() => !!({SHADOW})", timeout=120_000)
        before, after = page.evaluate(DRAG)
        frames = page.locator(".jp-OutputArea iframe").count()
    print(f"the widget says {before!r}, and after dragging {after!r}; short forms in a frame of their own: {frames}")
    print(f"requests to elsewhere: {len(outside)}; errors: {errors}")
    if before == after or outside or errors or frames != 1:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
