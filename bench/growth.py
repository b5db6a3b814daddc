"""How exact rays grow: rows up to a million, directions up to a thousand, trees up to two thousand."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import numpy as np

from globece import UniformSampling, as_model, rays
from globece.case.affected import Affected
from globece.case.scaling import scale
from paper.cases import case
from paper.data import split
from paper.markdown import table
from paper.processes import alone

ROWS = (1_000, 4_323, 10_000, 100_000, 1_000_000)
DIRECTIONS = (1, 10, 100, 1_000)
TREES = (100, 500, 1_000, 2_000)
GRID_POINTS = 10  # of the naive grid's 1,000 that are timed on many rows


def run() -> dict[str, Any]:
    cores = os.cpu_count() or 1
    found: dict[str, Any] = {"cores": cores}
    for threads in dict.fromkeys((1, cores)):
        found[f"rows_{threads}"] = alone("bench.growth", "rows", threads=threads)
        print(found[f"rows_{threads}"], flush=True)
    for what in ("directions", "trees"):
        found[what] = alone("bench.growth", what)
        print(found[what], flush=True)
    return found


def problem(n: int, model: Any = None) -> tuple[Any, Any]:
    """HELOC's affected inputs, resampled to n rows, with its XGBoost model."""
    heloc = case("heloc", "xgb")
    Z = heloc.space.encode(heloc.rows)[heloc.affected]
    if n != len(Z):
        Z = Z[np.random.default_rng(0).integers(0, len(Z), n)]
    compiled = as_model(model or heloc.own, heloc.space, rows=Z[:2000])
    return Affected(compiled.core, Z, heloc.cost, 10.0), model or heloc.own  # type: ignore[union-attr]


def some_directions(p: Any, n: int) -> Any:
    return UniformSampling().propose(p, n, np.random.default_rng(1))


def seconds(work: Any, repeats: int = 3) -> float:
    """Best of a few wall times: the others were disturbed."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return float(best)


def by_rows() -> list[dict[str, Any]]:
    import resource

    p, _ = problem(1000)
    scale(p, some_directions(p, 3))  # compiles, or reads from the disk
    found = []
    for n in ROWS:
        p, model = problem(n)
        D = some_directions(p, 3)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        exact = seconds(lambda p=p, D=D: [scale(p, d[None]) for d in D], 3 if n < 1_000_000 else 2) / len(D)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        points = np.linspace(0.0, 5.0, GRID_POINTS + 1)[1:]

        def grid(p: Any = p, D: Any = D, points: Any = points, model: Any = model) -> None:
            for k in points:
                model.predict(p.space.decode(rays.positions(p.space, p.inputs, D[0], k)))

        naive = seconds(grid, 1) * 1000 / GRID_POINTS if n in (ROWS[1], ROWS[-1]) else None
        found.append({"rows": n, "seconds": exact, "grid_seconds": naive, "extra_gib": (peak - before) / 2**20})
    return found


def by_directions() -> list[dict[str, Any]]:
    p, _ = problem(4_323)
    D = some_directions(p, max(DIRECTIONS))
    scale(p, D[:2])
    return [{"directions": m, "seconds": seconds(lambda m=m: scale(p, D[:m]), 2)} for m in DIRECTIONS]


def by_trees() -> list[dict[str, Any]]:
    from xgboost import XGBClassifier

    x, y, _, _ = split("heloc")
    found = []
    for trees in TREES:
        model = XGBClassifier(n_estimators=trees, max_depth=6, learning_rate=0.05, n_jobs=2).fit(x, y)
        p, _ = problem(2_000, model)
        D = some_directions(p, 5)
        scale(p, D[:1])
        found.append({"trees": trees, "seconds": seconds(lambda p=p, D=D: scale(p, D), 2) / len(D)})
    return found


def render(result: dict[str, Any]) -> str:
    many = result[f"rows_{result['cores']}"]
    rows, base = [], next(r for r in result["rows_1"] if r["rows"] == 10_000)
    for one, all_ in zip(result["rows_1"], many, strict=True):
        per_row, ratio = one["seconds"] / one["rows"], ""
        if one["grid_seconds"]:
            ratio = f"**{one['grid_seconds'] / one['seconds']:,.0f}x**"
        rows.append(
            [
                f"{one['rows']:,}",
                f"{1e3 * one['seconds']:,.1f} ms",
                f"{1e6 * per_row:.2f} us",
                f"{per_row / (base['seconds'] / base['rows']):.2f}",
                f"{1e3 * all_['seconds']:,.1f} ms",
                f"{one['seconds'] / all_['seconds']:.2f}x",
                f"{one['extra_gib']:.2f}",
                ratio,
            ]
        )
    head = [
        "rows",
        "one core",
        "a row",
        "against 10,000",
        f"{result['cores']} cores",
        "gain",
        "extra GiB",
        "grid / exact",
    ]
    text = f"""## Growth

One direction over HELOC's affected inputs, resampled, with the paper's XGBoost model. The grid is 1,000 predicts, of
which {GRID_POINTS} are timed. Extra memory is what the peak rises by while scaling.

"""
    text += table(head, rows)
    text += "\n4,323 rows, all at once:\n\n" + table(
        ["directions", "one core", "a direction"],
        [
            [f"{r['directions']:,}", f"{r['seconds']:.3f} s", f"{1e3 * r['seconds'] / r['directions']:.2f} ms"]
            for r in result["directions"]
        ],
    )
    return (
        text
        + "\n2,000 rows, trees of depth 6, one direction:\n\n"
        + table(
            ["trees", "one core", "a tree"],
            [
                [f"{r['trees']:,}", f"{1e3 * r['seconds']:.1f} ms", f"{1e6 * r['seconds'] / r['trees']:.1f} us"]
                for r in result["trees"]
            ],
        )
    )


if __name__ == "__main__":
    print(json.dumps({"rows": by_rows, "directions": by_directions, "trees": by_trees}[sys.argv[1]]()))
