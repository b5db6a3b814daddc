"""What watching recourse adds to the training of boosted trees on Default Credit, by rounds recorded."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import lightgbm as lgb
import pandas as pd
import xgboost as xgb

from globece.datasets import load_default_credit
from globece.integrations import RecourseWatch
from globece.space import FeatureSpace
from paper.markdown import table

REPEATS = 7
ROUNDS = (200, 1000)
RECORDED = 10


def run() -> list[dict[str, Any]]:
    data = load_default_credit()
    X, y = data.frame.copy(), data.outcome
    for name in X:
        if not pd.api.types.is_numeric_dtype(X[name]):
            X[name] = X[name].astype("category")
    space = FeatureSpace.from_frame(X)
    found = []
    for library in ("xgboost", "lightgbm"):
        for rounds in ROUNDS:
            plain, watched, setup = [], [], []
            for _ in range(REPEATS + 1):  # alternating; the first warms up
                plain.append(_fit(library, rounds, X, y, None))
                begin = time.process_time()
                watch = RecourseWatch(X, y, favourable=1, space=space, by="Sex", every=rounds // RECORDED)
                setup.append(time.process_time() - begin)
                watched.append(_fit(library, rounds, X, y, getattr(watch, library)()))
            shares = [(b + s) / a - 1 for a, b, s in zip(plain[1:], watched[1:], setup[1:], strict=True)]
            found.append(
                {
                    "library": library,
                    "rounds": rounds,
                    "recorded": len(watch.rounds),
                    "training_s": median(plain[1:]),
                    "share": median(shares),
                    "shares": shares,
                }
            )
            print(found[-1], flush=True)
    return found


def _fit(library: str, rounds: int, X: Any, y: Any, callback: Any) -> float:
    """CPU time of training."""
    calls, begin = None if callback is None else [callback], time.process_time()
    if library == "xgboost":
        model = xgb.XGBClassifier(
            n_estimators=rounds, learning_rate=0.1, n_jobs=1, enable_categorical=True, callbacks=calls
        )
        model.fit(X, y)
    else:
        lgb.LGBMClassifier(n_estimators=rounds, n_jobs=1, verbose=-1).fit(X, y, callbacks=calls)
    return time.process_time() - begin


def render(result: list[dict[str, Any]]) -> str:
    rows = [
        [r["library"], r["rounds"], r["recorded"], f"{r['training_s']:.2f} s", f"{r['share']:+.1%}",
         f"{min(r['shares']):+.1%} to {max(r['shares']):+.1%}"]
        for r in result
    ]  # fmt: skip
    return (
        "## Watching recourse while training\n\nWhat `RecourseWatch` adds to the CPU time of training on Default "
        f"Credit, its own preparation included: the median of {REPEATS} pairs, one core. The mark is 5 %.\n\n"
        + table(["library", "rounds", "recorded", "training", "added", "smallest and largest"], rows)
    )
