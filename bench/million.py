"""From a Parquet file of 1,000,000 rows to a report on the command line, against reading and predicting it once."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from paper.data import load_dataset
from paper.markdown import table
from paper.models import model_folder

ROWS, REPEATS = 1_000_000, 4
MEASURED = """
import json, resource, sys, time
def done():
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"cpu_s": used.ru_utime + used.ru_stime, "wall_s": time.monotonic() - start,
                      "peak_gib": used.ru_maxrss / 2**20}))
start = time.monotonic()
"""
ONCE = """
import pandas, xgboost
model = xgboost.XGBClassifier()
model.load_model(sys.argv[2])
model.predict(pandas.read_parquet(sys.argv[1]))
done()
"""
EXPLAINED = """
from globece.cli import main
try:
    main(["explain", sys.argv[1], "--model", sys.argv[2], "--quiet", *sys.argv[3:]])
except SystemExit as end:
    assert not end.code, end.code
done()
"""


def run() -> list[dict[str, Any]]:
    frame = load_dataset("heloc").frame
    chosen = np.random.default_rng(0).integers(len(frame), size=ROWS)
    model = str(model_folder("heloc") / "xgb.json")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        rows = str(Path(folder, "rows.parquet"))
        frame.iloc[chosen].reset_index(drop=True).to_parquet(rows, index=False)
        cases = {
            "read and predict once": (ONCE, rows, model),
            "explain, report on the terminal": (EXPLAINED, rows, model),
            "explain, to JSON": (EXPLAINED, rows, model, "--json", str(Path(folder, "result.json"))),
            "explain, to a page": (EXPLAINED, rows, model, "--html", str(Path(folder, "result.html"))),
        }
        for i in range(REPEATS):  # alternating
            parts = str(Path(folder, f"parts-{i}"))  # what is in a folder already is not computed again
            for case, (code, *arguments) in {
                **cases,
                "explain, rows into a folder": (EXPLAINED, rows, model, "--out", parts),
            }.items():
                command = [sys.executable, "-c", MEASURED + code, *arguments]
                said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                found.append({"case": case, **json.loads(said.splitlines()[-1])})
    return found


def render(result: list[dict[str, Any]]) -> str:
    best = {
        case: min(r["cpu_s"] for r in result if r["case"] == case) for case in dict.fromkeys(r["case"] for r in result)
    }
    once = best["read and predict once"]
    rows = [
        [case, f"{cpu:.1f}", f"{min(r['wall_s'] for r in result if r['case'] == case):.1f}", f"{cpu / once:.1f}",
         f"{max(r['peak_gib'] for r in result if r['case'] == case):.2f}"]
        for case, cpu in best.items()
    ]  # fmt: skip
    head = ["whole program, imports included", "CPU s", "wall s", "CPU, times the first", "peak GiB"]
    return (
        f"## A million rows\n\nHELOC resampled to {ROWS:,} rows in a Parquet file, and the paper's XGBoost model. Best "
        f"of {REPEATS} runs each, alternating. The mark is 4 times, and 3 GiB.\n\n" + table(head, rows)
    )
