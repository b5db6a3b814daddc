"""Directions on rows that the search did not see, found with and without a margin that counterfactuals must keep.

Directions may use steps of a tree ensemble so narrow that only the training rows have them. A search for
counterfactuals that keep a margin (``robust=``) leaves some of them alone. Its directions are scaled here without the
margin, on the rows that were searched and on unseen ones, so that only the choice of directions differs; and with it.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bench.seeds import question
from globece import FeatureSpace, Robust, explain
from globece.directions import FixedDirections
from globece.errors import InvalidParameterError
from globece.io.files import write_text
from paper.cases import case
from paper.markdown import table
from paper.models import KINDS
from paper.pipelines import GENERATED, generated, pipeline, raw
from paper.processes import alone

MARGINS = (0.0, 0.05, 0.1, 0.2)  # of probability
SEEDS = 2
DIRECTIONS = (1, 3)
HELD_OUT = 0.2  # of a generated table
ROWS = [("default_credit", "xgb"), ("compas", "xgb"), ("heloc", "xgb"), ("german_credit", "xgb")]
ROWS += [("default_credit", "lightgbm"), ("census", "lightgbm")]
PARTIAL = Path(__file__).parent / "results" / "unseen.partial.json"


def run() -> list[dict[str, Any]]:
    """Each model in a process of its own, as many as ``GLOBECE_BENCH_MINUTES`` allow; a stopped run goes on."""
    until = time.monotonic() + 60.0 * float(os.environ.get("GLOBECE_BENCH_MINUTES", "inf"))
    found: list[dict[str, Any]] = json.loads(PARTIAL.read_text()) if PARTIAL.exists() else []
    known = {(r["dataset"], r["model"]) for r in found}
    for dataset, kind in ROWS:
        if (dataset, kind) in known or time.monotonic() > until:
            continue
        found += alone("bench.unseen", dataset, kind)
        write_text(str(PARTIAL), json.dumps(found, indent=1) + "\n")
    PARTIAL.unlink(missing_ok=True)
    return sorted(found, key=lambda r: ROWS.index((r["dataset"], r["model"])))


def parts(dataset: str, kind: str) -> tuple[dict[str, Any], Any]:
    """What to ask of the rows that are searched, and unseen rows."""
    if dataset in GENERATED:  # trained and searched on most rows
        frame, y, categorical, fixed = generated(dataset)
        n = int(len(frame) * (1.0 - HELD_OUT))
        space = FeatureSpace.from_frame(frame.iloc[:n], immutable=fixed)
        model = pipeline(kind, categorical).fit(frame.iloc[:n], y[:n])
        return {"model": model, "X": frame.iloc[:n], "space": space, "favourable": 1}, frame.iloc[n:]
    asked = question(dataset, kind)
    if kind in KINDS:
        return asked, case(dataset, kind).test_rows
    frame, _, n = raw(dataset)
    return asked, frame.iloc[n:]


def measure(dataset: str, kind: str) -> list[dict[str, Any]]:
    """One model: for each number of directions and margin, the mean over seeds."""
    asked, unseen = parts(dataset, kind)
    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in DIRECTIONS:
            for margin in MARGINS:
                robust = Robust(margin=margin) if margin else None
                found = [_one(asked, unseen, n, seed, robust) for seed in range(SEEDS)]
                if None in found:
                    continue
                mean = {key: float(np.mean([one[key] for one in found if one])) for key in found[0] or {}}
                out.append({"dataset": dataset, "model": kind, "n": n, "margin": margin, **mean})
    return out


def _one(asked: dict[str, Any], unseen: Any, n: int, seed: int, robust: Robust | None) -> dict[str, float] | None:
    try:
        found = explain(**asked, n_directions=n, rng=seed, robust=robust)
    except InvalidParameterError:  # no row has such a probability
        return None
    kept = found.apply(unseen)
    plain = found
    if robust is not None:
        plain = explain(
            **asked,
            n_directions=len(found.directions),
            rng=seed,
            generator=FixedDirections(found.directions, cost=None),
        )
    other = plain.apply(unseen)
    return {
        "training": plain.score,
        "unseen": other.score,
        "coverage": other.coverage,
        "training_kept": found.score,
        "unseen_kept": kept.score,
        "coverage_kept": kept.coverage,
    }


def render(result: list[dict[str, Any]]) -> str:
    rows = []
    for r in result:
        rows.append(
            [r["dataset"], r["model"], r["n"], f"{r['margin']:g}", f"{r['training']:.3f}", f"{r['unseen']:.3f}",
             f"{r['unseen'] / r['training'] - 1:+.0%}", f"{r['coverage']:.1%}", f"{r['training_kept']:.3f}",
             f"{r['unseen_kept']:.3f}", f"{r['unseen_kept'] / r['training_kept'] - 1:+.0%}",
             f"{r['coverage_kept']:.1%}"]
        )  # fmt: skip
    left_out = len(ROWS) - len({(r["dataset"], r["model"]) for r in result})
    missing = f" {left_out} more models were not measured in this run." if left_out else ""
    text = f"""## Unseen rows

Directions found with a margin of probability that counterfactuals must keep (`robust=Robust(margin=...)`; 0 is the
default), on the rows that were searched and on rows that neither the model nor the search has seen: the paper's XGBoost
models, other ensembles over the raw columns, and generated tables. Means over {SEEDS} seeds. First the same directions
scaled to the model's own decision, so that only their choice differs; then with the margin kept.{missing}

"""
    return text + table(
        ["data", "model", "n", "margin", "searched", "unseen", "difference", "unseen coverage", "searched, kept",
         "unseen, kept", "difference", "unseen coverage, kept"],
        rows,
    )  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2])))
