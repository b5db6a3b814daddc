"""Runs whose results a change of structure must not change: every door, every kind of model, every kind of rows.

Only public names are used, so that the same file runs before and after such a change.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import globece
from globece import Climb, CostModel, FeatureSpace, Race, Robust, Settings, UniformSampling
from globece.auditing import AuditSettings
from globece.baselines import AresSettings, ares, fast_ares

Run = Callable[..., str]
NUMBERS, TEXT = ["income", "debt", "age", "months"], ["housing", "job", "sex"]


@cache
def frame() -> pd.DataFrame:
    """Applicants: numbers, whole numbers, missing values, text."""
    rng, n, jobs = np.random.default_rng(3), 500, np.array(["none", "skilled", "manager", None])
    return pd.DataFrame(
        {
            "income": np.where(rng.random(n) < 0.05, np.nan, rng.gamma(3.0, 900.0, n).round(1)),
            "debt": rng.normal(4.0, 2.0, n).clip(0.0).round(3),
            "age": rng.integers(18, 80, n),
            "months": rng.integers(6, 60, n),
            "housing": rng.choice(["rent", "own", "free"], n, p=[0.5, 0.4, 0.1]),
            "job": pd.Series(rng.choice(jobs, n, p=[0.2, 0.5, 0.2, 0.1]), dtype=object),
            "sex": rng.choice(["f", "m"], n),
        }
    )


@cache
def labels() -> np.ndarray:
    """Who was granted the loan."""
    X, rng = frame(), np.random.default_rng(4)
    points = (
        X["income"].fillna(1500.0) / 900.0
        - 0.5 * X["debt"]
        + 0.02 * X["age"]
        + (X["housing"] == "own")
        + (X["job"] == "manager")
        - 0.4 * (X["sex"] == "f")
    )
    return np.asarray(points + rng.normal(0.0, 0.5, len(X)) > points.quantile(0.55)).astype(int)


@cache
def matrix() -> np.ndarray:
    """The numbers alone, without missing values."""
    return np.asarray(frame()[NUMBERS].fillna(1500.0), dtype=np.float64)


@cache
def model(kind: str) -> Any:
    """A trained model over the frame, or over the matrix."""
    where = {"matrix linear": matrix(), "matrix forest": matrix(), "matrix svc": matrix(), "torch": matrix()}
    finals = {
        "linear": LogisticRegression(max_iter=500),
        "forest": RandomForestClassifier(20, max_depth=6, random_state=0),
        "boosting": HistGradientBoostingClassifier(max_iter=15, random_state=0),
        "gradient": GradientBoostingClassifier(n_estimators=15, random_state=0),
        "network": MLPClassifier((8, 8), max_iter=60, random_state=0),
        "svc": SVC(),
        "ridge": Ridge(),
        "matrix linear": LogisticRegression(max_iter=500),
        "matrix forest": RandomForestClassifier(20, max_depth=6, random_state=0),
        "matrix svc": SVC(),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind in ("xgboost", "lightgbm"):
            return _booster(kind)
        if kind == "torch":
            return _module()
        if kind in where:
            return make_pipeline(StandardScaler(), finals[kind]).fit(where[kind], labels())
        columns = make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), TEXT),
        )
        return make_pipeline(columns, finals[kind]).fit(frame(), labels())


def _booster(kind: str) -> Any:
    if kind == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=20, max_depth=4, random_state=0).fit(matrix(), labels())
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=20, num_leaves=8, random_state=0, verbose=-1, n_jobs=1).fit(matrix(), labels())


def _module() -> Any:
    import torch

    torch.manual_seed(0)
    mean, spread = (torch.tensor(v, dtype=torch.float32) for v in (matrix().mean(axis=0), matrix().std(axis=0)))
    first = torch.nn.Linear(4, 10)
    module = torch.nn.Sequential(first, torch.nn.ReLU(), torch.nn.Linear(10, 2))
    with torch.no_grad():
        first.weight /= spread
        first.bias.sub_(first.weight @ mean)
    return module.eval()


def grants(X: Any) -> np.ndarray:
    """A plain function of rows."""
    return np.asarray((np.asarray(X["debt"]) < 3.0) & (np.asarray(X["housing"]) != "free")).astype(int)


def _space(**constraints: Any) -> FeatureSpace:
    return FeatureSpace.from_frame(frame(), immutable=["sex"], increasing=["age"], **constraints)


def runs() -> Iterator[tuple[str, Run]]:
    """Every run with its name."""
    X, M = frame(), matrix()
    few: dict[str, Any] = {"settings": Settings(grid=32), "search": Climb(rays=4_000)}
    for kind in ("linear", "forest", "boosting", "gradient", "network", "svc"):
        yield f"explain {kind}", lambda kind=kind: _explain(model(kind), X, **few if kind == "svc" else {})
    for kind in ("matrix linear", "matrix forest", "matrix svc", "torch", "xgboost", "lightgbm"):
        asked = few if "svc" in kind else {}
        wanted = 0 if kind == "torch" else None
        yield (
            f"explain {kind}",
            lambda kind=kind, asked=asked, wanted=wanted: _explain(model(kind), M, favourable=wanted, **asked),
        )
    others = {"polars": pl.from_pandas(X), "pyarrow": pa.Table.from_pandas(X, preserve_index=False)}
    for library, rows in others.items():
        yield f"explain function {library}", lambda rows=rows: _explain(grants, rows, **few)
    yield "explain polars", lambda: _explain(_Native(model("boosting")), others["polars"], n_directions=2, **few)
    for n in (2, 3, "auto"):
        yield f"explain linear n={n}", lambda n=n: _explain(model("linear"), X, n_directions=n)
        yield f"explain forest n={n}", lambda n=n: _explain(model("forest"), X, n_directions=n)
    yield "explain network n=3", lambda: _explain(model("network"), X, n_directions=3)
    for kind in ("linear", "forest", "network"):
        yield (
            f"explain {kind} constrained",
            lambda kind=kind: _explain(
                model(kind), X, space=_space(ranges={"debt": (1.0, 9.0)}, permitted={"housing": ["rent", "own"]})
            ),
        )
        yield (
            f"explain {kind} sampled",
            lambda kind=kind: _explain(model(kind), X, search=Race(UniformSampling(), 150)),
        )
    yield "explain linear deciles", lambda: _explain(model("linear"), X, cost=CostModel.deciles(_space(), frame()))
    yield "explain linear max_scalar", lambda: _explain(model("linear"), X, settings=Settings(max_scalar=2.0))
    yield (
        "explain forest fixed",
        lambda: _explain(model("forest"), X, search=Race(UniformSampling(), 80, select="fixed")),
    )
    yield "explain forest black box", lambda: _explain(model("forest"), X, settings=Settings(exact=False, grid=16))
    yield "explain ridge below", lambda: _explain(model("ridge"), X, threshold=0.3, favourable="below")
    yield "explain linear unfavourable", lambda: _explain(model("linear"), X, favourable=0)
    yield "explain linear threshold", lambda: _explain(model("linear"), X, threshold=0.7)
    for kind in ("linear", "forest", "network"):
        yield (
            f"explain {kind} margin",
            lambda kind=kind: _explain(model(kind), X, robust=Robust(margin=0.05)),
        )
    yield "explain linear noise", lambda: _explain(model("linear"), X, robust=Robust(noise=0.1, draws=4))
    yield "explain linear models", lambda: _explain(model("linear"), X, robust=Robust(models=(model("forest"),)))
    yield "robustness linear", _robustness
    for kind in ("linear", "forest", "network"):
        yield f"audit {kind}", lambda kind=kind: _audit(model(kind), X)
    yield "audit function", lambda: _audit(grants, X, **few)
    yield "audit linear control", lambda: _audit(model("linear"), X, control="housing")
    yield "audit forest three", lambda: _audit(model("forest"), X, by="job", reference="skilled")
    yield (
        "audit linear polars",
        lambda: _audit(
            _Native(model("linear")),
            others["polars"],
            search=Race(UniformSampling(), 30),
            settings=Settings(grid=16),
        ),
    )
    yield "audit matrix bins", lambda: _audit(model("matrix forest"), M, by={"x2": [30, 50]})
    for mode in ("fixed", "scaled"):
        for kind in ("linear", "forest", "svc"):
            yield f"who benefits {kind} {mode}", lambda kind=kind, mode=mode: _benefits(model(kind), X, mode)
    yield "who benefits by group", lambda: _benefits(model("linear"), X, "scaled", by="sex")
    yield "ares linear", lambda: _ares(ares, model("linear"), X)
    yield "fast ares linear", lambda: _ares(fast_ares, model("linear"), X)
    yield "fast ares forest", lambda: _ares(fast_ares, model("forest"), X)
    yield "fast ares function", lambda: _ares(fast_ares, grants, X)
    yield "fast ares subgroups", lambda: _ares(fast_ares, model("linear"), X, subgroups=["sex"])
    for kind in ("linear", "forest"):
        yield f"lower bound {kind}", lambda kind=kind: _bound(model(kind), X)
    yield "apply forest", lambda: globece.explain(model("forest"), X[:300], rng=0).apply(X[300:]).to_json()


class _Native:
    """A model of pandas frames, for rows of another library."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.classes_ = inner, inner.classes_

    def predict(self, X: Any) -> Any:
        return self.inner.predict(X.to_pandas())


def _explain(found: Any, X: Any, **asked: Any) -> str:
    return globece.explain(found, X, rng=0, **asked).to_json()


def _audit(found: Any, X: Any, by: Any = "sex", **asked: Any) -> str:
    audit_settings = AuditSettings(permutations=99, resamples=99)
    return globece.audit(found, X, by=by, rng=0, audit_settings=audit_settings, **asked).to_json()


def _benefits(found: Any, X: Any, mode: Any, **asked: Any) -> str:
    said = globece.who_benefits(found, X, {"income": 800.0, "housing": "own"}, mode=mode, **asked)
    return json.dumps({"summary": said.summary(), "explanation": json.loads(said.explanation.to_json())})


def _ares(method: Any, found: Any, X: Any, **asked: Any) -> str:
    settings = AresSettings(support=0.15) if method is ares else None
    return str(method(found, X, rng=0, ares_settings=settings, **asked).to_json())


def _bound(found: Any, X: Any) -> str:
    bound = globece.explain(found, X, rng=0).lower_bound()
    return json.dumps({"cost": [repr(c) for c in np.asarray(bound.cost).tolist()], "exact": bool(bound.exact)})


def _robustness() -> str:
    ex = globece.explain(model("linear"), frame(), rng=0)
    return json.dumps({"records": str(ex.robustness(models=(model("forest"),)).records())})
