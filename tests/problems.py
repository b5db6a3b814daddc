"""Small problems that many tests share: mixed spaces, rows, directions, and hypothesis strategies for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from globece import FeatureSpace


def mixed_frame(n: int = 60, seed: int = 0) -> pd.DataFrame:
    """Return rows with every kind of feature: fractional, whole, missing, categorical, ordinal."""
    rng = np.random.default_rng(seed)
    income = rng.normal(3.0, 1.0, n).round(3)
    income[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "income": income,
            "debts": rng.integers(0, 8, n),
            "housing": rng.choice(["own", "rent", "free"], n),
            "job": pd.Series(rng.choice(np.array(["a", "b", None]), n), dtype=object),
            "school": rng.choice(["low", "mid", "high"], n),
            "age": rng.integers(18, 80, n),
        }
    )


def mixed_space(X: Any = None, **constraints: Any) -> FeatureSpace:
    """Return the space of :func:`mixed_frame`."""
    X = mixed_frame() if X is None else X
    return FeatureSpace.from_frame(X, ordinal={"school": ["low", "mid", "high"]}, **constraints)


def approve(X: pd.DataFrame) -> np.ndarray:
    """Decide about mixed rows in a way that depends on every kind of feature."""
    points = X["income"].fillna(2.0) - 0.4 * X["debts"] + 1.5 * (X["housing"] == "own") + 0.5 * (X["job"] == "a")
    points = points + X["school"].map({"low": 0.0, "mid": 0.5, "high": 1.0}) + 0.02 * X["age"]
    return (points > 4.0).to_numpy().astype(int)


def directions_in(space: FeatureSpace) -> st.SearchStrategy[np.ndarray]:
    """Return a strategy for directions that break no constraint of ``space``."""
    number = st.floats(-3.0, 3.0, allow_nan=False).map(lambda v: round(v, 3))

    def build(values: list[float]) -> np.ndarray:
        delta = np.array(values)
        for f in space.features:
            if not f.can_move:
                delta[f.columns] = 0.0
            elif f.sense:
                delta[f.start] = f.sense * abs(delta[f.start])
        return delta

    return st.lists(number, min_size=space.width, max_size=space.width).map(build).filter(lambda d: bool(d.any()))


scalars = st.floats(0.001, 20.0, allow_nan=False)


# -- the same kind of problem as a matrix, for tests that ask often: a model without a frame is quick ------------------

MATRIX_COLUMNS = ["income", "debts", "home = own", "home = rent", "home = free", "age"]
MATRIX_GROUPS = {"home": MATRIX_COLUMNS[2:5]}
MATRIX_WEIGHTS = np.array([1.0, -0.4, 1.5, 0.0, 0.3, 0.02])


def global_state() -> tuple[bytes, int]:
    """The state of NumPy's global random numbers, which the library leaves alone."""
    state: dict[str, Any] = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    return state["key"].tobytes(), state["pos"]


def matrix(n: int = 300, seed: int = 0) -> np.ndarray:
    """Return rows with fractional, whole and one-hot columns."""
    rng = np.random.default_rng(seed)
    home = np.eye(3)[rng.integers(0, 3, n)]
    return np.column_stack([rng.normal(3, 1, n).round(3), rng.integers(0, 8, n), home, rng.integers(18, 80, n)])


def matrix_space(X: np.ndarray | None = None, **constraints: Any) -> FeatureSpace:
    """Return the space of :func:`matrix`."""
    X = matrix() if X is None else X
    constraints = {"whole": ["debts", "age"], **constraints}
    return FeatureSpace.from_matrix(X, columns=MATRIX_COLUMNS, groups=MATRIX_GROUPS, **constraints)


def approve_matrix(X: np.ndarray) -> np.ndarray:
    """Decide about matrix rows."""
    return (X @ MATRIX_WEIGHTS > 4.0).astype(int)
