"""``python -m tests.golden record DIR`` and ``python -m tests.golden compare DIR OTHER``: did any result change?

Results are written as the library writes them, with the same random seeds. Of a result's provenance only what was
computed is compared: its wording (notes, names, the generator's description) may change.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

WORDING = ("version", "generator", "notes", "model", "rests_on", "text", "note", "remark", "warnings")


def record(folder: Path, only: str) -> int:
    """Run everything and write one file for each run; the number that failed."""
    from tests.golden.runs import runs

    warnings.simplefilter("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name, run in runs():
        if only not in name:
            continue
        start = time.perf_counter()
        try:
            text = run()
        except Exception:
            failed += 1
            text = json.dumps({"failed": traceback.format_exc()})
            print(f"{name}: {text}")
        (folder / f"{name.replace(' ', '-')}.json").write_text(text)
        print(f"{name:32} {len(text):9,} characters, {time.perf_counter() - start:6.2f} s", flush=True)
    return failed


def computed(found: Any) -> Any:
    """A result without the words that describe how it came about."""
    if isinstance(found, dict):
        return {key: computed(value) for key, value in found.items() if key not in WORDING}
    return [computed(value) for value in found] if isinstance(found, list) else found


def compare(one: Path, other: Path) -> int:
    """Say which results differ; how many."""
    names = sorted({path.name for folder in (one, other) for path in folder.glob("*.json")})
    differing = same = 0
    for name in names:
        if not ((one / name).exists() and (other / name).exists()):
            print(f"{name}: only on one side")
            differing += 1
            continue
        texts = [(folder / name).read_text() for folder in (one, other)]
        if texts[0] == texts[1]:
            same += 1
            continue
        found = [json.dumps(computed(json.loads(text))) for text in texts]
        if found[0] != found[1]:
            differing += 1
            at = next((i for i, (a, b) in enumerate(zip(*found, strict=False)) if a != b), min(map(len, found)))
            print(f"{name} differs:\n  {found[0][max(0, at - 80) : at + 80]}\n  {found[1][max(0, at - 80) : at + 80]}")
    print(f"{len(names)} runs: {same} the same byte for byte, {len(names) - same - differing} but for wording, "
          f"{differing} differ")  # fmt: skip
    return differing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", default="", help="runs whose name contains this")
    asked = parser.parse_args()
    if asked.what == "record":
        return 1 if record(asked.folders[0], asked.only) else 0
    return 1 if compare(*asked.folders) else 0


if __name__ == "__main__":
    sys.exit(main())
