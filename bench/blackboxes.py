"""Black boxes: how many rows the user's model is asked about, for what, and in how much CPU time.

``GLOBECE_BENCH_BEFORE`` names the ``src`` folder of an older checkout, which is then measured as well; otherwise what
was measured of it before is kept. Rays of random directions are followed by scores and by decisions, which shows what
scores pass over.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from globece import CostModel, FeatureSpace, UniformSampling, as_model, explain
from globece.case.affected import Affected
from globece.case.scaling import scale
from globece.io.files import write_text
from globece.models.decision import Decision
from paper.markdown import table
from paper.pipelines import generated, pipeline
from paper.processes import alone

KINDS = {
    "svm": "SVM (RBF)",
    "mlp": "MLP (tanh)",
    "labels": "SVM, labels only",
}
CASES = [
    ("census", 3000, "svm", 1, 1),
    ("wide", 3000, "svm", 1, 1),
    ("census", 3000, "mlp", 1, 1),
    ("census", 3000, "labels", 1, 1),
    ("census", 3000, "svm", 3, 1),
]  # table, rows, model, directions, seeds
STAGES = {
    "stand_in": "trees",
    "_climbed": "search",
    "confirmed": "checks",
    "scaled_along": "final",
    "pose": "decisions",
}
INPUTS, DIRECTIONS = 40, 20  # of the comparison ray by ray
RESULT = Path(__file__).parent / "results" / "blackboxes.json"
PARTIAL = RESULT.with_suffix(".partial.json")


def run() -> list[dict[str, Any]]:
    """Each case in processes of its own, as many as ``GLOBECE_BENCH_MINUTES`` allow; a stopped run goes on."""
    until = time.monotonic() + 60.0 * float(os.environ.get("GLOBECE_BENCH_MINUTES", "inf"))
    stored = json.loads(RESULT.read_text())["result"] if RESULT.exists() else []
    earlier = {_key(r): r["before"] for r in stored}
    found: list[dict[str, Any]] = json.loads(PARTIAL.read_text()) if PARTIAL.exists() else []
    known = {_key(r) for r in found}
    older = os.environ.get("GLOBECE_BENCH_BEFORE")
    for asked in CASES:
        *key, seeds = asked
        if tuple(key) in known or time.monotonic() > until:
            continue
        one: dict[str, Any] = dict(zip(("data", "n_rows", "model", "n"), key, strict=True))
        one["before"] = earlier.get(tuple(key))
        one["now"] = alone("bench.blackboxes", *key, seeds)
        if older:
            mine = os.environ.get("PYTHONPATH", "")
            os.environ["PYTHONPATH"] = older
            one["before"] = alone("bench.blackboxes", *key, seeds)
            os.environ["PYTHONPATH"] = mine
        if one["n"] == 1:
            one["rays"] = alone("bench.blackboxes", *key[:3])
        print(one, flush=True)
        found.append(one)
        write_text(str(PARTIAL), json.dumps(found, indent=1) + "\n")
    PARTIAL.unlink(missing_ok=True)
    return found


def _key(one: dict[str, Any]) -> tuple[Any, ...]:
    return (one["data"], one["n_rows"], one["model"], one["n"])


def made(data: str, n_rows: int, kind: str) -> tuple[Any, Any, FeatureSpace]:
    """A model, the rows that it was trained on, and their space."""
    from sklearn.neural_network import MLPClassifier

    frame, y, categorical, fixed = generated(data)
    frame, y = frame.iloc[:n_rows], y[:n_rows]
    model = pipeline("svm", categorical)
    if kind == "mlp":
        network = MLPClassifier((32,), activation="tanh", max_iter=300, random_state=0)
        model.steps[-1] = (kind, network)
    model.fit(frame, y)
    return (model.predict if kind == "labels" else model), frame, FeatureSpace.from_frame(frame, immutable=fixed)


def measure(data: str, n_rows: int, kind: str, n: int, seeds: int) -> dict[str, Any]:
    """Rows and calls by stage, CPU seconds in all and within the model, and scores, over some seeds."""
    model, frame, space = made(data, n_rows, kind)
    rows: Counter[str] = Counter()
    inside = 0.0
    answer = Decision._answer

    def counted(self: Decision, ask: Any, native: Any, n: int) -> Any:
        nonlocal inside
        start = time.process_time()
        out = answer(self, ask, native, n)
        inside += time.process_time() - start
        rows[_stage()] += n
        return out

    Decision._answer = counted  # type: ignore[method-assign, assignment]
    scores, start = [], time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(seeds):
            found = explain(model, frame, space=space, favourable=1, n_directions=n, rng=seed)
            scores.append(found.score)
    seconds = time.process_time() - start
    return {
        "affected": found.n_affected,
        "rows": {stage: count / seeds for stage, count in rows.items()},
        "seconds": seconds / seeds,
        "inside": inside / seeds,
        "scores": scores,
    }


def _stage() -> str:
    """What the model is asked for, by who asks."""
    frame: Any = sys._getframe(2)
    names = set()
    while frame is not None:
        names |= {frame.f_code.co_name, Path(frame.f_code.co_filename).stem}
        frame = frame.f_back
    return next((stage for name, stage in STAGES.items() if name in names), "decisions")


def compare(data: str, n_rows: int, kind: str) -> dict[str, Any]:
    """Rays followed by scores, and by decisions alone."""
    model, frame, space = made(data, n_rows, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_scores = as_model(model, space, favourable=1, compile=False)
        by_labels = as_model(lambda X: (model if kind == "labels" else model.predict)(X), space, favourable=1)
    Z = space.encode(frame)
    rng = np.random.default_rng(0)
    Z = rng.permutation(Z[~by_labels.favourable(Z)])[:INPUTS]
    problem = Affected(by_labels, Z, CostModel.bins(space), 10.0)
    D = UniformSampling().propose(problem, DIRECTIONS, rng)
    out: dict[str, Any] = {"rays": len(D) * len(Z)}
    scalars = {}
    for name, one in (("scores", by_scores), ("decisions", by_labels)):
        before = sum(tally.rows for tally in one.tallies)
        scalars[name] = scale(problem, D, model=one).scalar
        out[name] = sum(tally.rows for tally in one.tallies) - before
    flips = np.isfinite(scalars["decisions"])
    out["flips"] = int(flips.sum())
    out["later"] = int((scalars["scores"][flips] > scalars["decisions"][flips] * (1 + 1e-5)).sum())
    out["sooner"] = int((scalars["scores"] < scalars["decisions"] * (1 - 1e-5)).sum())
    return out


def render(result: list[dict[str, Any]]) -> str:
    rows = []
    for r in result:
        now, before, rays_ = r["now"], r["before"], r.get("rays")
        asked = sum(now["rows"].values())
        stages = [f"{now['rows'].get(stage, 0):,.0f}" for stage in ("trees", "search", "final", "checks")]
        line = [f"{r['data']} ({r['n_rows']:,})", KINDS[r["model"]], r["n"], f"{now['affected']:,}"]
        if before is None:
            line += ["not measured", f"{asked:,.0f}", "", *stages, f"{now['seconds']:.1f} s", "", _scores(now)]
        else:
            earlier = sum(before["rows"].values())
            line += [f"{earlier:,.0f}", f"{asked:,.0f}", f"**{earlier / asked:.1f}x**", *stages]
            line += [f"{before['seconds']:.1f} s, {now['seconds']:.1f} s", _scores(before), _scores(now)]
        line.append("" if rays_ is None else _rays(rays_))
        rows.append(line)
    left_out = len(CASES) - len(result)
    missing = f" {left_out} more cases were not measured in this run." if left_out else ""
    text = f"""## Black boxes

Rows that the user's model is asked about while explaining at defaults: at commit 14147da, before rays were searched by
scores, and now; by what they are asked for now; CPU seconds; and the score of each seed. The last column follows rays
of random directions by scores and by decisions alone: how many rows that takes, and on how many of the rays that flip
the scores find a later flip or none, or a sooner one.{missing}

"""
    return text + table(
        ["table", "model", "n", "affected", "rows before", "rows now", "fewer", "trees", "search", "final", "checks",
         "CPU", "score before", "score now", "ray by ray"],
        rows,
    )  # fmt: skip


def _scores(of: dict[str, Any]) -> str:
    return " ".join(f"{score:.3f}" for score in of["scores"])


def _rays(r: dict[str, Any]) -> str:
    asked = f"{r['decisions']:,} rows, {r['scores']:,} by scores"
    return f"{asked}; {r['flips']:,} flip, {r['later']} later, {r['sooner']} sooner"


if __name__ == "__main__":
    data, n_rows, kind, *more = sys.argv[1:]
    work = measure(data, int(n_rows), kind, int(more[0]), int(more[1])) if more else compare(data, int(n_rows), kind)
    print(json.dumps(work))
