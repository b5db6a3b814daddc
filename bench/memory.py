"""Peak memory of explaining 1,000,000 rows x 20 columns with a cheap callable."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from paper.markdown import table

CASES = ("matrix", "pandas")
CODE = """
import json, resource, sys, time
import numpy as np, pandas as pd
from globece import explain
rng = np.random.default_rng(0)
X = rng.normal(size=(1_000_000, 20)).astype(np.float64)
weights = rng.normal(size=20)
if sys.argv[1] == "pandas":
    X = pd.DataFrame(X, columns=[f"x{i}" for i in range(20)])
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
before, wall, cpu = peak(), time.monotonic(), time.process_time()
model = lambda X: (np.asarray(X) @ weights > 0.5).astype(int)
ex = explain(model, X, n_directions=3, rng=0)
print(json.dumps({"rows": ex.n_rows, "affected": ex.n_affected, "coverage": ex.coverage, "before_gib": before,
                  "peak_gib": peak(), "wall_s": time.monotonic() - wall, "cpu_s": time.process_time() - cpu,
                  "model_calls": ex.provenance.model_calls, "model_rows": ex.provenance.model_rows}))
"""


def run() -> list[dict[str, Any]]:
    found = []
    for case in CASES:
        done = subprocess.run([sys.executable, "-c", CODE, case], capture_output=True, text=True, check=True)
        found.append({"case": case, **json.loads(done.stdout)})
    return found


def render(result: list[dict[str, Any]]) -> str:
    rows = [
        [
            r["case"],
            f"{r['rows']:,}",
            f"{r['affected']:,}",
            f"{r['coverage']:.1%}",
            f"{r['before_gib']:.2f}",
            f"{r['peak_gib']:.2f}",
            f"{r['wall_s']:.0f}",
            f"{r['cpu_s']:.0f}",
            f"{r['model_rows']:,}",
        ]
        for r in result
    ]
    head = ["input", "rows", "affected", "coverage", "GiB before", "peak GiB", "wall s", "CPU s", "rows predicted"]
    return (
        "## Memory\n\nA million rows of 20 columns, a linear function as a black box, three directions, climbed. "
        "The limit is 3 GiB.\n\n" + table(head, rows)
    )
