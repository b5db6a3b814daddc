"""How much a score depends on the seed: the search at its defaults with ten seeds, beside a thorough one.

The paper's models, pipelines over the raw columns of its data sets, and tables of other shapes, each with one, three
and five directions. *Best known* is the lowest score that any run of this benchmark has seen, thorough ones included;
``best_scores.json`` keeps it. Times are CPU times of one core.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from globece import explain
from globece.io.files import write_text
from paper.cases import case
from paper.data import DATASETS, load_dataset
from paper.markdown import table
from paper.models import KINDS
from paper.pipelines import GENERATED, TREES, generated, pipeline, raw
from paper.processes import alone

SEEDS = 10
DIRECTIONS = (1, 3, 5)
BEST = Path(__file__).parent / "results" / "best_scores.json"
PARTIAL = Path(__file__).parent / "results" / "seeds.partial.json"
ROWS = [
    *((d, k) for kinds in (KINDS, TREES) for d in DATASETS for k in kinds),
    *((g, k) for g in GENERATED for k in ("lightgbm", "forest")),
]


def run() -> list[dict[str, Any]]:
    """As many models as ``GLOBECE_BENCH_MINUTES`` allow; all of them without it.

    Thorough searches come last, one model after the other. What was measured is kept after every model.
    """
    minutes = float(os.environ.get("GLOBECE_BENCH_MINUTES", "inf"))
    until = time.monotonic() + 60.0 * minutes
    found: list[dict[str, Any]] = []
    for dataset, kind in ROWS:
        if time.monotonic() > until:
            break
        mine = alone("bench.seeds", dataset, kind)
        keep_best(mine)
        found += mine
        write_text(str(PARTIAL), json.dumps(found, indent=1) + "\n")
    for dataset, kind in dict.fromkeys((r["dataset"], r["model"]) for r in found):
        if time.monotonic() > until:
            break
        for r, more in zip(
            (r for r in found if (r["dataset"], r["model"]) == (dataset, kind)),
            alone("bench.seeds", dataset, kind, "thorough"),
            strict=True,
        ):
            r |= more
            keep_best([r])
        write_text(str(PARTIAL), json.dumps(found, indent=1) + "\n")
    return found


def measure(dataset: str, kind: str) -> list[dict[str, Any]]:
    """One model: scores by seed, and the median time."""
    out = []
    for n, asked in _asked(dataset, kind):
        scores, seconds = [], []
        for seed in range(SEEDS):
            start = time.process_time()
            scores.append(explain(**asked, n_directions=n, rng=seed).score)
            seconds.append(time.process_time() - start)
        out.append(
            {"dataset": dataset, "model": kind, "n": n, "scores": scores, "seconds": float(np.median(seconds))}
        )  # fmt: skip
    return out


def thorough(dataset: str, kind: str) -> list[dict[str, Any]]:
    """The same by a thorough search with one seed."""
    out = []
    for n, asked in _asked(dataset, kind):
        start = time.process_time()
        score = explain(**asked, n_directions=n, rng=0, effort="thorough").score
        out.append({"thorough": score, "thorough_seconds": time.process_time() - start})
    return out


def _asked(dataset: str, kind: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbers of directions, and what else to ask :func:`globece.explain`."""
    asked = question(dataset, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explain(**asked, n_directions=1, rng=0, effort="quick")  # compiles the kernels, or reads them from the disk
        for n in DIRECTIONS:
            yield n, asked


def question(dataset: str, kind: str) -> dict[str, Any]:
    """What to ask :func:`globece.explain`."""
    if kind in KINDS:
        on = case(dataset, kind)
        return {"model": on.own, "X": on.rows, "space": on.space, "cost": on.cost}
    if dataset in GENERATED:
        from globece import FeatureSpace

        frame, y, categorical, fixed = generated(dataset)
        space = FeatureSpace.from_frame(frame, immutable=fixed)
        return {"model": pipeline(kind, categorical).fit(frame, y), "X": frame, "space": space, "favourable": 1}
    frame, y, n = raw(dataset)
    categorical = [c for c in frame.columns if c in load_dataset(dataset).categorical]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pipeline(kind, categorical).fit(frame.iloc[:n], y[:n])
    return {"model": model, "X": frame.iloc[:n], "favourable": 1}


def keep_best(found: list[dict[str, Any]]) -> None:
    """Lower the best known scores where one was seen that is lower."""
    best = json.loads(BEST.read_text()) if BEST.exists() else {}
    for r in found:
        name = f"{r['dataset']}/{r['model']}/{r['n']}"
        best[name] = min([best.get(name, np.inf), r.get("thorough", np.inf), *r["scores"]])
    write_text(str(BEST), json.dumps(best, indent=1, sort_keys=True) + "\n")


def render(result: list[dict[str, Any]]) -> str:
    best = json.loads(BEST.read_text())
    rows, near, worse, close = [], 0, 0, 0
    before: dict[tuple[str, str], list[float]] = {}
    for r in result:
        known, most = best[f"{r['dataset']}/{r['model']}/{r['n']}"], r.get("thorough")
        lowest, highest = min(r["scores"]), max(r["scores"])
        fewer = before.get((r["dataset"], r["model"]))
        rises = 0 if fewer is None else sum(b > a * (1 + 1e-9) for a, b in zip(fewer, r["scores"], strict=True))
        before[r["dataset"], r["model"]] = r["scores"]
        near += highest <= 1.03 * known
        close += most is not None and highest <= 1.05 * most
        worse += rises
        rows.append(
            [r["dataset"], r["model"], r["n"], f"{known:.3f}", f"{lowest:.3f}", f"{np.median(r['scores']):.3f}",
             f"{highest:.3f}", f"{highest / known - 1:+.1%}",
             "not run" if most is None else f"{most:.3f}", "" if most is None else f"{highest / most - 1:+.1%}",
             rises, f"{1e3 * r['seconds']:.0f} ms",
             "" if most is None else f"{r['thorough_seconds']:.1f} s"]
        )  # fmt: skip
    run = sum("thorough" in r for r in result)
    missing = len(ROWS) * len(DIRECTIONS) - len(result)
    unmeasured = f" {missing} more rows were not measured in this run." if missing else ""
    text = f"""## Seeds

The search at its defaults with {SEEDS} seeds, and with `effort="thorough"` and one seed: the paper's models, pipelines
over the raw columns of its data sets, and generated tables of other shapes.{unmeasured} *Best known* is the lowest
score ever seen here, by any search. The worst seed is within 3 % of it in {near} of {len(rows)} rows, and within 5 % of
the thorough search in {close} of {run}. *Rises* counts seeds whose score is higher than with the fewer directions of
the row above: {worse} in all.

"""
    return text + table(
        ["data", "model", "n", "best known", "lowest", "median", "highest", "above best", "thorough", "above thorough",
         "rises", "time", "thorough time"],
        rows,
    )  # fmt: skip


if __name__ == "__main__":
    work = thorough if sys.argv[3:] == ["thorough"] else measure
    print(json.dumps(work(sys.argv[1], sys.argv[2])))
