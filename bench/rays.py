"""Scaling one direction over all affected inputs: exact rays beside the paper's 1,000-point grid, in one run.

The grid is the naive protocol, written plainly: for each of 1,000 scalars the rows are moved, rounded and given to the
model's own predict. Both sides run on one core; the exact side runs on all cores as well.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from globece import UniformSampling, as_model, rays
from globece.case.affected import Affected
from globece.case.scaling import scale
from globece.models.compiling.adapt import Compiled
from paper.cases import case
from paper.data import DATASETS
from paper.markdown import table
from paper.models import KINDS
from paper.processes import alone

POINTS = 1000
DIRECTIONS = 9


def run() -> list[dict[str, Any]]:
    """Run each case in a process of its own, so that thread settings hold from the start."""
    found = []
    for dataset in DATASETS:
        for kind in KINDS:
            one: dict[str, Any] = {"dataset": dataset, "model": kind}
            for threads in dict.fromkeys((1, os.cpu_count() or 1)):
                one[str(threads)] = alone("bench.rays", dataset, kind, threads, threads=threads)
            print(one, flush=True)
            found.append(one)
    return found


def measure(dataset: str, kind: str, threads: int) -> dict[str, Any]:
    """Times in milliseconds for one direction: the grid on one core, and exact rays with and without constraints."""
    free = case(dataset, kind)
    bound = case(dataset, kind, whole=free.whole, increasing=free.numbers[:1], decreasing=free.numbers[1:2])
    out: dict[str, Any] = {}
    for name, one in (("free", free), ("bound", bound)):
        space, cost, predict = one.space, one.cost, one.predict
        Z = space.encode(one.rows)
        exact = as_model(one.own, space, rows=Z)
        if not isinstance(exact, Compiled) or not exact.exact:
            raise SystemExit(f"{kind} models are not followed exactly yet")
        problem = Affected(exact.core, Z[one.affected], cost, 10.0)
        D = UniformSampling().propose(problem, DIRECTIONS, np.random.default_rng(0))
        before, calls = peak_mib(), exact.decide.tally.calls
        out[f"{name}_compile_ms"] = clock(lambda D=D, p=problem: scale(p, D[:1]))
        out[f"{name}_ms"] = statistics.median(
            min(clock(lambda d=d, p=problem: scale(p, d[None])) for _ in range(3)) for d in D
        )
        out[f"{name}_extra_mib"], out[f"{name}_calls"] = peak_mib() - before, exact.decide.tally.calls - calls
        if threads == 1:
            points = np.linspace(0.0, 5.0, POINTS)

            def grid(
                space: Any = space, D: Any = D, points: Any = points, rows: Any = problem.inputs, predict: Any = predict
            ) -> None:
                for k in points:
                    predict(space.decode(rays.positions(space, rows, D[0], k)))

            out[f"{name}_grid_ms"] = clock(grid)
        out["affected"] = len(problem.inputs)
    return out


def peak_mib() -> float:
    """The most memory that the process has held so far."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def clock(work: Callable[..., Any]) -> float:
    """Milliseconds of wall time."""
    wall = time.perf_counter()
    work()
    return (time.perf_counter() - wall) * 1e3


def render(result: list[dict[str, Any]]) -> str:
    rows = []
    for r in result:
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
                f"{one['free_calls']} / {POINTS:,}",
                f"{one['free_extra_mib']:.0f}",
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
        "model calls",
        "extra MiB",
    ]
    text = f"""## Exact rays

One direction over all affected inputs, minimum scalars and costs: the {POINTS:,}-point grid through the model's own
predict, and exact rays, on one core in one run. *Bound* adds ranges, whole numbers and one-way features. The median of
{DIRECTIONS} directions, best of 3 each. The first call compiles the kernel or reads it from the cache on disk.
*Extra* is how much the peak of memory rises by, kernels included. Weights below 1e-38 are nothing on both sides.

"""
    return text + table(head, rows)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
