"""Run benchmarks by name (all by default) and write BENCHMARKS.md and README.md's figures from every result.

`page` only writes them.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import time
from pathlib import Path

from bench import readme, scaling
from globece.io.files import write_text

NAMES = (
    *("rays", "exactness", "growth", "directions", "seeds", "blackboxes", "unseen", "protocol", "memory", "ares"),
    *("audit", "calibration", "model_files", "million", "watching", "gpu", "scale"),
)
RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "BENCHMARKS.md"
README = Path(__file__).parent.parent / "README.md"
SCALING = Path(__file__).parent.parent / "docs" / "scaling.md"

HEAD = """# Benchmarks

Written by `make bench` from `bench/results`; no figure here is typed. Wall times on a shared machine are noisy: compare
the ratios, which come from one run each.
"""


def main(names: list[str]) -> None:
    unknown = sorted(set(names) - {*NAMES, "page"})
    if unknown:
        sys.exit(f"unknown benchmark(s) {unknown}; there are {list(NAMES)}")
    RESULTS.mkdir(exist_ok=True)
    for name in [n for n in names or NAMES if n != "page"]:
        print(f"running {name} ...", flush=True)
        start = time.monotonic()
        result = importlib.import_module(f"bench.{name}").run()
        stored = {"machine": machine(), "seconds": round(time.monotonic() - start, 1), "result": result}
        write_text(str(RESULTS / f"{name}.json"), json.dumps(stored, indent=1) + "\n")
    sections, results = [HEAD], {}
    for name in NAMES:
        path = RESULTS / f"{name}.json"
        if path.exists():
            stored = json.loads(path.read_text())
            results[name] = stored["result"]
            sections.append(importlib.import_module(f"bench.{name}").render(stored["result"]))
            if name == "scale":
                write_text(str(SCALING), scaling.page(stored["result"], stored["machine"]))
            sections.append(f"({stored['machine']}; the whole benchmark took {stored['seconds']:g} s)\n")
    write_text(str(PAGE), "\n".join(sections))
    write_text(str(README), readme.with_figures(README.read_text(encoding="utf-8"), results))
    print(f"wrote {PAGE} and the figures of {README}")


def machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


if __name__ == "__main__":
    main(sys.argv[1:])
