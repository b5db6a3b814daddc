"""The paper's protocol on the paper's twelve models, beside the reference's figures."""

from __future__ import annotations

import time
from itertools import product
from typing import Any

from paper.data import DATASETS
from paper.markdown import table
from paper.models import KINDS
from paper.protocol import paper_protocol
from paper.reference import REFERENCE

SEEDS = (0, 1)


def run() -> list[dict[str, Any]]:
    found = []
    for dataset, kind, (n, method) in product(DATASETS, KINDS, ((1, "globe_ce"), (3, "dglobe_ce"))):
        reference, cpu = REFERENCE[dataset, kind, method], time.process_time()
        runs = [paper_protocol(dataset, kind, n, seed) for seed in SEEDS]
        found.append(
            {
                "dataset": dataset,
                "model": kind,
                "n": n,
                "affected": runs[0].n_affected,
                "coverage": [100 * ex.coverage for ex in runs],
                "cost": [ex.average_cost for ex in runs],
                "score": [ex.score for ex in runs],
                "reference": [reference.coverage, reference.cost],
                "cpu_s": (time.process_time() - cpu) / len(SEEDS),
            }
        )
        print(found[-1], flush=True)
    return found


def render(result: list[dict[str, Any]]) -> str:
    def span(values: list[float], digits: int) -> str:
        return f"{min(values):.{digits}f} - {max(values):.{digits}f}"

    rows = [
        [
            r["dataset"],
            r["model"],
            r["n"],
            r["affected"],
            span(r["coverage"], 1),
            f"{r['reference'][0]:g}",
            span(r["cost"], 2),
            f"{r['reference'][1]:g}",
            span(r["score"], 2),
            f"{r['cpu_s']:.1f}",
        ]
        for r in result
    ]
    head = [
        "data",
        "model",
        "n",
        "affected",
        "coverage %",
        "reference",
        "average cost",
        "reference",
        "score",
        "CPU s a run",
    ]
    return (
        "## The paper's protocol\n\nUniform sampling at c = 2, 1,000 samples chosen at k = 1, 1,000 scalars "
        f"from 0 to 5, through the models' own predict; {len(SEEDS)} seeds, smallest and largest. "
        "The reference is one run of the authors' code.\n\n" + table(head, rows)
    )
