"""Every reported scalar flips the original model, and nothing below it does: 200 random directions on every model."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from globece import CostModel, FeatureSpace, UniformSampling, as_model, rays
from globece.case.affected import Affected
from globece.case.scaling import scale
from paper.cases import case
from paper.data import DATASETS, load_dataset
from paper.markdown import table
from paper.models import KINDS
from paper.processes import alone

DIRECTIONS, POINTS = 200, 20_000
PIPELINES = ("lightgbm", "forest", "hist gradient boosting", "mlp")
# Within rounding of the boundary a model may answer either way, among other rows or on another machine. What counts
# there is the margin: a share of the largest one on the affected inputs, by the precision that the model computes in.
ROUNDING = {"dnn": 32 * 2.0**-23}
DOUBLE = 1e-12


def run() -> list[dict[str, Any]]:
    found = []
    for dataset in DATASETS:
        for kind in KINDS:
            found.append(alone("bench.exactness", dataset, kind, threads=2))
            print(found[-1], flush=True)
    for name in PIPELINES:
        found.append(alone("bench.exactness", "german_credit", name, threads=2))
        print(found[-1], flush=True)
    return found


def measure(dataset: str, kind: str) -> dict[str, Any]:
    warnings.simplefilter("error")
    if kind in KINDS:
        one = case(dataset, kind)
        own, space, cost, X = one.own, one.space, one.cost, one.rows
    else:
        own, X = pipeline(kind)
        space = FeatureSpace.from_frame(X)
        cost = CostModel.bins(space)
    Z = space.encode(X)
    model = as_model(own, space, rows=Z)
    affected = Z[~model.favourable(Z)]
    problem = Affected(model, affected, cost, 10.0)
    rng = np.random.default_rng(0)
    D = np.vstack([
        UniformSampling(n_features=n).propose(problem, DIRECTIONS // 4, rng) for n in (1, 2, 3, 5)
    ])  # fmt: skip
    wrong = early = clear = reported = 0
    band = ROUNDING.get(kind, DOUBLE) * float(np.abs(model.margin(affected)).max())
    for delta in D:
        k = scale(problem, delta[None]).scalar[0]
        hit = np.isfinite(k)
        reported += int(hit.sum())
        wrong += _not_flipped(model, affected[hit], delta, k[hit])
        margins = _flips_before(problem, int(rng.integers(len(affected))), delta, k)
        early, clear = early + len(margins), clear + int((margins > band).sum())
    return {
        "dataset": dataset,
        "model": kind,
        "exact": bool(model.exact),
        "affected": len(affected),
        "reported": reported,
        "not_flipped": wrong,
        "flips_before": early,
        "clear_flips_before": clear,
    }


def _not_flipped(model: Any, Z: Any, delta: Any, k: Any) -> int:
    return int((~model.favourable(rays.positions(model.space, Z, delta, k))).sum()) if len(Z) else 0


def _flips_before(problem: Any, row: int, delta: Any, k: Any) -> Any:
    """Margins at those points of a dense grid below the reported scalar of one row that flip the original."""
    z, model = problem.inputs[row], problem.model
    end = min(rays.horizon(problem.cost, z[None], delta, problem.budget)[0], k[row])
    points = np.concatenate([
        np.linspace(0.0, end, POINTS + 2)[1:-1],
        np.nextafter(rays.row_switches(model.space, z[None], delta)[0], np.inf),
    ])  # fmt: skip
    points = points[points < end]
    line = rays.positions(model.space, np.repeat(z[None], len(points), axis=0), delta, points)
    paid = rays.cost_at(problem.cost, np.repeat(z[None], len(points), axis=0), delta, points)
    flips = model.favourable(line) & (paid <= problem.budget)
    return model.margin(line[flips]) if flips.any() else np.zeros(0)


def pipeline(name: str) -> tuple[Any, Any]:
    """A pipeline over German Credit's raw columns, with text and with numbers missing."""
    import lightgbm
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    data = load_dataset("german_credit")
    X = data.frame.copy()
    numbers = [c for c in X.columns if X[c].dtype.kind in "if"]
    rng = np.random.default_rng(0)
    for c in numbers[:3]:
        X[c] = X[c].astype(float).mask(rng.random(len(X)) < 0.05)
    text = [c for c in X.columns if c not in numbers]
    estimators: dict[str, Callable[[], Any]] = {
        "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=100, verbose=-1, n_jobs=1, random_state=0),
        "forest": lambda: RandomForestClassifier(100, min_samples_leaf=3, random_state=0),
        "hist gradient boosting": lambda: HistGradientBoostingClassifier(random_state=0),
        "mlp": lambda: MLPClassifier((32, 16), max_iter=80, random_state=0),
    }
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), text),
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(steps, estimators[name]()).fit(X, data.outcome), X


def render(result: list[dict[str, Any]]) -> str:
    rows = [
        [
            r["dataset"],
            r["model"],
            "exact" if r["exact"] else "searched",
            f"{r['affected']:,}",
            f"{r['reported']:,}",
            r["not_flipped"],
            r["flips_before"],
            r["clear_flips_before"],
        ]
        for r in result
    ]
    head = [
        "data",
        "model",
        "followed",
        "affected",
        "scalars reported",
        "that do not flip",
        "grid points before that do",
        "of these beyond rounding",
    ]
    return (
        f"## Exactness\n\n{DIRECTIONS} random directions of one to five features over all affected inputs. Every "
        "scalar reported is predicted again by the original model, and one random ray of each direction is compared "
        f"with {POINTS:,} grid points and every switch below its scalar. The last four are pipelines over German "
        "Credit's raw columns with text and missing numbers.\n\n" + table(head, rows)
    )


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], " ".join(sys.argv[2:]))))
