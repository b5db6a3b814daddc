"""Scaling one direction over all affected inputs: exact rays beside the paper's 1,000-point grid, in one run.

The grid is the naive protocol, written plainly: for each of 1,000 scalars the rows are moved, rounded and given to the
model's own predict. Both sides run on one core; the exact side runs on all cores as well.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

DATASETS = ("compas", "german_credit", "heloc", "default_credit")
KINDS = ("lr", "xgb", "dnn")
POINTS = 1000
DIRECTIONS = 9


def run() -> list[dict[str, Any]]:
    """Run each case in a process of its own, so that thread settings hold from the start."""
    import json

    found = []
    for dataset in DATASETS:
        for kind in KINDS:
            case: dict[str, Any] = {"dataset": dataset, "model": kind}
            for threads in (1, os.cpu_count() or 1):
                limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), str(threads))
                done = subprocess.run(
                    [sys.executable, "-m", "bench.rays", dataset, kind, str(threads)],
                    env={**os.environ, **limits},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if done.returncode:
                    case["skipped"] = done.stderr.strip().splitlines()[-1]
                    break
                case[str(threads)] = json.loads(done.stdout.splitlines()[-1])
            print(case, flush=True)
            found.append(case)
    return found


def measure(dataset: str, kind: str, threads: int) -> dict[str, Any]:
    """Times in milliseconds for one direction: the grid on one core, and exact rays with and without constraints."""
    import numpy as np

    from globece import CostModel, FeatureSpace, as_model, rays
    from globece.directions.protocol import Problem
    from globece.directions.sampling import UniformSampling
    from globece.directions.scaling import scale
    from globece.models.adapt import Compiled
    from tests.paper_models import paper_problem

    paper = paper_problem(dataset, kind)  # type: ignore[arg-type]
    model = paper.model
    own = {"lr": lambda: model.to_sklearn(), "xgb": lambda: model, "dnn": lambda: model.to_torch()}[kind]()
    groups = {name: columns for name, columns in paper.features.items() if columns}
    numbers = [name for name, columns in paper.features.items() if not columns]
    whole = [n for n in numbers if (paper.x[:, paper.columns.index(n)] % 1 == 0).all()]
    out: dict[str, Any] = {}
    for case, constraints in (
        ("free", {"ranges": "unbounded"}),
        ("bound", {"whole": whole, "increasing": numbers[:1], "decreasing": numbers[1:2]}),
    ):
        space = FeatureSpace.from_matrix(paper.x, columns=paper.columns, groups=groups, **constraints)
        Z = space.encode(paper.x)
        exact = as_model(own, space, rows=Z)
        if not isinstance(exact, Compiled) or not exact.exact:
            raise SystemExit(f"{kind} models are not followed exactly yet")
        cost = CostModel.bins(space, widths=paper.bin_widths)
        problem = Problem(exact.core, Z[paper.affected], cost, 10.0)
        D = UniformSampling().propose(problem, DIRECTIONS, np.random.default_rng(0))
        out[f"{case}_compile_ms"] = clock(lambda D=D, p=problem: scale(p, D[:1]))
        out[f"{case}_ms"] = statistics.median(
            min(clock(lambda d=d, p=problem: scale(p, d[None])) for _ in range(3)) for d in D
        )
        if threads == 1:
            points = np.linspace(0.0, 5.0, POINTS)

            def grid(space: Any = space, D: Any = D, points: Any = points, rows: Any = problem.inputs) -> None:
                for k in points:
                    model.predict(space.decode(rays.positions(space, rows, D[0], k)))

            out[f"{case}_grid_ms"] = clock(grid)
        out["affected"] = len(problem.inputs)
    return out


def clock(work: Callable[[], Any]) -> float:
    """Milliseconds of wall time."""
    wall = time.perf_counter()
    work()
    return (time.perf_counter() - wall) * 1e3


def render(result: list[dict[str, Any]]) -> str:
    from bench.__main__ import table

    rows = []
    for r in result:
        if "skipped" in r:
            rows.append([r["dataset"], r["model"], r["skipped"], *[""] * 7])
            continue
        one, many = r["1"], r[max(k for k in r if k.isdigit())]
        rows.append(
            [
                r["dataset"],
                r["model"],
                f"{one['affected']:,}",
                f"{one['free_grid_ms'] / 1e3:.2f} s",
                f"{one['free_ms']:.2f} ms",
                f"**{one['free_grid_ms'] / one['free_ms']:,.0f}x**",
                f"{one['bound_ms']:.2f} ms",
                f"**{one['bound_grid_ms'] / one['bound_ms']:,.0f}x**",
                f"{many['free_ms']:.2f} ms",
                f"{one['free_compile_ms'] / 1e3:.1f} s",
            ]
        )
    head = [
        "data",
        "model",
        "affected",
        "grid",
        "exact",
        "ratio",
        "exact, bound",
        "ratio",
        "exact, all cores",
        "first call",
    ]
    text = f"""## Exact rays

One direction over all affected inputs, minimum scalars and costs: the {POINTS:,}-point grid through the model's own
predict, and exact rays, on one core in one run. *Bound* adds ranges, whole numbers and one-way features. The median of
{DIRECTIONS} directions, best of 3 each. The first call compiles the kernel or reads it from the cache on disk.

"""
    return text + table(head, rows)


if __name__ == "__main__":
    import json

    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
