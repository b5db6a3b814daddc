"""Many result files to one table, for a spreadsheet or a dashboard.

python examples/results_to_table.py table.csv results/*.json
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import globece as gce

COLUMNS = (
    "file", "kind", "favourable", "rows", "affected", "coverage", "average_cost", "score", "directions", "complete",
    "verdict", "largest_gap",
)  # fmt: skip


def row(path: Path) -> dict[str, object]:
    """The numbers of one result."""
    kind = json.loads(path.read_text(encoding="utf-8"))["format"]
    audit = gce.Audit.from_json(path) if kind == "globece.audit" else None
    ex = audit.explained if audit else gce.Explanation.from_json(path)
    whole = audit.overall if audit else ex  # an audit judges everybody by directions that were found without them
    gaps = [abs(c.gaps["score"].value) for c in audit.comparisons] if audit else []
    return {
        "file": path.stem,
        "kind": kind.removeprefix("globece."),
        "favourable": ex.provenance.favourable,
        "rows": audit.overall.n if audit else ex.n_rows,
        "affected": audit.overall.affected if audit else ex.n_affected,
        "coverage": round(whole.coverage, 4),
        "average_cost": round(whole.average_cost, 4),
        "score": round(whole.score, 4),
        "directions": ex.n_directions,
        "complete": ex.provenance.complete,
        "verdict": audit.verdict.conclusion if audit else "",
        "largest_gap": round(max(gaps), 4) if gaps else "",
    }


def inert(value: object) -> object:
    """A text that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def main(out: str, *paths: str) -> None:
    """Write one row per result."""
    with open(out, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for path in sorted(paths):
            table.writerow({name: inert(value) for name, value in row(Path(path)).items()})


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: results_to_table.py TABLE.csv RESULT.json [RESULT.json ...]")
    main(*sys.argv[1:])
