"""Tables with every kind of column, models of every kind that is followed, and tables cut into parts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import globece as gce

KINDS = ("linear", "trees", "network")
NUMBERS = ["income", "debts", "age"]
TEXTS = ["housing", "job"]


def table(n: int = 3_000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": rng.normal(3.0, 1.0, n).round(3),
            "debts": rng.integers(0, 8, n),
            "housing": rng.choice(["own", "rent", "free"], n),
            "job": rng.choice(["a", "b", "c", "d"], n),
            "age": rng.integers(18, 80, n),
        }
    )


def outcome(X: pd.DataFrame) -> np.ndarray:
    points = X["income"] - 0.4 * X["debts"] + 1.5 * (X["housing"] == "own") + 0.5 * (X["job"] == "a") + 0.02 * X["age"]
    return (points > 4.0).to_numpy().astype(int)


@cache
def fitted(kind: str) -> Any:
    final = {
        "linear": lambda: LogisticRegression(),
        "trees": lambda: RandomForestClassifier(20, max_depth=5, random_state=0),
        "network": lambda: MLPClassifier((8,), max_iter=80, random_state=0, tol=1e-2),
    }[kind]()
    X = table(800, 1)
    steps = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(sparse_output=False), TEXTS))
    return make_pipeline(steps, final).fit(X, outcome(X))


@dataclass(frozen=True)
class Problem:
    """A model, a table, and directions for it."""

    model: Any
    X: pd.DataFrame
    explanation: Any


@cache
def problem(kind: str) -> Problem:
    X = table()
    space = gce.FeatureSpace.from_frame(X)
    found = gce.explain(fitted(kind), X.iloc[::5], space=space, n_directions=2, effort="quick", rng=0)
    assert found.provenance.method == "exact"
    return Problem(fitted(kind), X, found)


def cut(X: pd.DataFrame, folder: Path, parts: int) -> Path:
    """Write a table as so many files, of unequal sizes."""
    folder.mkdir()
    edges = np.linspace(0.0, 1.0, parts + 1) ** 1.5 * len(X)
    for i, (low, high) in enumerate(zip(edges[:-1].astype(int), edges[1:].astype(int), strict=True)):
        X.iloc[low:high].to_parquet(folder / f"{i:03d}.parquet", index=False)
    return folder
