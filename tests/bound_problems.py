"""Small random problems whose minimum costs are found by trying everything: an oracle for lower bounds.

The oracle knows what a row may become (its features, ranges and senses) and asks the user's own model about decoded
rows. Of the compiled trees it only takes where they cut, to know which values of a continuous feature are worth trying.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from xgboost import XGBClassifier

from globece import CostModel, FeatureSpace, as_model
from globece.directions import Affected
from globece.models.compiling.adapt import Compiled
from globece.models.trees.ensemble import TreeEnsemble
from globece.space import Feature

MOST_POINTS = 60_000
LINEAR = ("logistic", "scaled", "svc")
TREES = ("tree", "regressor", "forest", "even", "extra", "boosted", "hist", "lgbm", "xgb", "three", "probability")
ODD = ("binned", "lgbm by category", "hist by category", "lgbm missing", "hist missing", "xgb missing")


@dataclass(frozen=True)
class Case:
    """One random problem: a few affected rows, with what was drawn."""

    kind: str
    problem: Affected
    described: str


def draw(seed: int, kind: str | None = None) -> Case | None:
    """Return a random problem, or ``None`` if nobody is affected or the model was not compiled."""
    rng = np.random.default_rng(seed)
    kind = kind or str(rng.choice(LINEAR + TREES + ODD))
    X = _frame(rng, 1 if kind in LINEAR else int(rng.integers(1, 3)))
    if kind.endswith("missing"):
        X.loc[rng.random(len(X)) < 0.2, "c0"] = np.nan
    model, asked = _fitted(kind, X, rng)
    constraints = _constraints(rng, X)
    space = FeatureSpace.from_frame(X, **constraints)
    weights = {n: float(rng.choice([0.5, 1.0, 1.0, 2.5, 1.0 / 3.0])) for n in space.names}
    norm: Any = rng.choice(["l1", "l2"])
    cost = CostModel.bins(space, weights=weights, norm=norm)
    if rng.random() < 0.3:
        cost = CostModel.deciles(space, X, weights=weights, norm=norm)
    Z = space.encode(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = as_model(model, space, rows=Z, **asked)
    affected = Z[~made.favourable(Z)]
    if not isinstance(made, Compiled) or not len(affected):
        return None
    some = affected[rng.permutation(len(affected))[:4]]
    budget = float(rng.choice([0.5, 1.5, 10.0, 100.0]))
    described = f"seed {seed}, {kind}, {constraints}, {norm}, {cost.kind}, budget {budget}"
    return Case(kind, Affected(made, some, cost, budget), described)


def _frame(rng: np.random.Generator, n_continuous: int) -> pd.DataFrame:
    n = 80
    columns: dict[str, Any] = {}
    for i in range(n_continuous):
        offset, spread = rng.choice([0.0, 0.0, 50.0, 1e6]), rng.choice([1.0, 1e-3, 1e3])
        columns[f"c{i}"] = offset + spread * rng.normal(size=n).round(int(rng.choice([1, 2, 6])))
    columns["w"] = rng.integers(0, 5, n)
    if rng.random() < 0.7:
        columns["o"] = pd.Categorical(rng.choice(list("pqrs"), n), categories=list("pqrs"), ordered=True)
    columns["k"] = pd.Categorical(rng.choice(list("abc"), n), categories=list("abc"))
    return pd.DataFrame(columns)


def _label(X: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    value = rng.normal(0, 0.5, len(X))
    for name in X:
        column = X[name].cat.codes if isinstance(X[name].dtype, pd.CategoricalDtype) else X[name]
        column = (column - column.mean()) / (column.std() or 1.0)
        column = column.fillna(1.0)
        value = value + rng.normal() * column + rng.normal() * np.sin(3 * column)
    return np.asarray(value)


def _fitted(kind: str, X: pd.DataFrame, rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder

    value = _label(X, rng)
    y = (value > np.quantile(value, rng.choice([0.3, 0.5, 0.8]))).astype(int)
    numbers = [c for c in X if c[0] in "cw"]
    words = [("k", OneHotEncoder(handle_unknown="ignore"))] + ([("o", OrdinalEncoder())] if "o" in X else [])
    scaler = StandardScaler() if kind in ("scaled", "svc") or rng.random() < 0.3 else "passthrough"
    if kind == "binned":  # a split on a bin in the middle asks for no run of numbers that begins or ends
        scaler = KBinsDiscretizer(4, encode="onehot", quantile_method="averaged_inverted_cdf")
    steps: Any = make_column_transformer((scaler, numbers), *((e, [c]) for c, e in words), sparse_threshold=0)
    if kind.endswith("category"):
        steps = "passthrough"
    depth, few = int(rng.integers(2, 4)), int(rng.integers(1, 6))
    state = int(rng.integers(1000))
    wanted: dict[str, Any] = {"favourable": int(rng.integers(2))}
    makers: dict[str, Any] = {
        "logistic": lambda: LogisticRegression(max_iter=300),
        "scaled": lambda: LogisticRegression(max_iter=300),
        "svc": lambda: LinearSVC(),
        "tree": lambda: DecisionTreeClassifier(max_depth=depth + 1, random_state=state),
        "regressor": lambda: DecisionTreeRegressor(max_depth=depth + 1, random_state=state),
        "forest": lambda: RandomForestClassifier(2 * few + 1, max_depth=depth, random_state=state),
        # fully grown trees vote 0 or 1, and an even number of them ties
        "even": lambda: RandomForestClassifier(2 * few, max_depth=None, max_leaf_nodes=8, random_state=state),
        "extra": lambda: ExtraTreesClassifier(2 * few, max_leaf_nodes=8, random_state=state),
        "boosted": lambda: GradientBoostingClassifier(n_estimators=2 * few, max_depth=depth, random_state=state),
        "hist": lambda: HistGradientBoostingClassifier(
            max_iter=2 * few,
            max_depth=depth,
            min_samples_leaf=5,
            categorical_features="from_dtype" if kind.endswith("category") else None,
        ),
        "lgbm": lambda: LGBMClassifier(
            n_estimators=2 * few, max_depth=depth, n_jobs=1, verbose=-1, min_data_per_group=5, cat_smooth=1, cat_l2=1
        ),
        "xgb": lambda: XGBClassifier(n_estimators=2 * few, max_depth=depth, n_jobs=1),
        "three": lambda: RandomForestClassifier(2 * few, max_depth=depth, random_state=state),
        "binned": lambda: RandomForestClassifier(2 * few, max_depth=depth + 2, random_state=state),
        "probability": lambda: GradientBoostingClassifier(n_estimators=few, max_depth=2, random_state=state),
    }
    if kind == "regressor":
        y, wanted = value, {"favourable": str(rng.choice(["above", "below"])), "threshold": float(np.median(value))}
    if kind in ("three", "probability"):
        y = np.digitize(value, np.quantile(value, [0.3, 0.6]))
        wanted = {"favourable": int(rng.integers(3))}
    if kind == "probability":
        wanted["threshold"] = float(rng.choice([0.3, 0.5, 0.7]))
    model = make_pipeline(steps, makers[kind.split()[0]]())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return model, wanted


def _constraints(rng: np.random.Generator, X: pd.DataFrame) -> dict[str, Any]:
    names = list(X)
    out: dict[str, Any] = {}
    if rng.random() < 0.3:
        out["immutable"] = [str(rng.choice(names))]
    movable = [n for n in names if n != "k" and n not in out.get("immutable", [])]
    if movable and rng.random() < 0.4:
        out[str(rng.choice(["increasing", "decreasing"]))] = [str(rng.choice(movable))]
    ranges: dict[str, Any] = {}
    for n in names:
        if n[0] in "cw" and rng.random() < 0.4:
            values = np.sort(X[n].dropna().to_numpy(dtype=float))
            narrow = (float(values[len(values) // 4]), float(values[3 * len(values) // 4]))  # some rows stand outside
            ranges[n] = narrow if rng.random() < 0.6 else "unbounded"
    if ranges:
        out["ranges"] = ranges
    if rng.random() < 0.3:
        out["permitted"] = {"k": [str(c) for c in rng.choice(list("abc"), 2, replace=False)]}
    return out


# -- everything a row may become -----------------------------------------------------------------------------------


def reachable(f: Feature, x: float, values: np.ndarray) -> np.ndarray:
    """Return those of some values that a feature may have for a row that stands at x, and x."""
    if np.isnan(x) or not f.can_move:
        return np.array([x])
    keep = (values >= f.low) & (values <= f.high) & (f.sense * (values - x) >= 0)
    return np.unique(np.concatenate([[x], values[keep]]))


def _values(problem: Affected, f: Feature, x: float) -> np.ndarray:
    core = problem.model.core  # type: ignore[attr-defined]
    ends = np.array([f.low, f.high])
    if f.whole:
        values = np.arange(max(f.low, -8.0), min(f.high, 12.0) + 1.0)
    elif isinstance(core, TreeEnsemble):
        trees = core.trees
        cuts = trees.threshold[(trees.child >= 0) & (trees.slot == f.start)]
        odd = [
            trees.odd_cut[trees.odd_start[i] : trees.odd_start[i + 1]]
            for i in np.flatnonzero(trees.odd_slot == f.start)
        ]
        cuts = np.concatenate([cuts, *odd])
        values = np.concatenate([cuts, np.nextafter(cuts, np.inf)])
    else:
        values = np.zeros(0)
    values = np.concatenate([values, ends])
    return reachable(f, x, values[np.isfinite(values)])


def points(problem: Affected, row: np.ndarray, most: int, skip: tuple[int, ...]) -> np.ndarray | None:
    """Return every row that matters, encoded, or ``None`` if there are too many; skipped columns stay."""
    options: list[list[np.ndarray]] = []
    for f in problem.space.features:
        here = row[f.columns]
        if f.is_block:
            moves = [np.eye(f.width)[c] for c in range(f.width) if f.can_move and f.permitted[c]]
            options.append([here, *(m for m in moves if (m != here).any())])
        elif f.start in skip:
            options.append([here])
        else:
            options.append([np.array([v]) for v in _values(problem, f, float(here[0]))])
    if np.prod([float(len(o)) for o in options]) > most:
        return None
    return np.array([np.concatenate(p) for p in product(*options)])


def least(problem: Affected, row: np.ndarray, most: int = MOST_POINTS, *, ties: bool = True) -> float | None:
    """Minimum cost of a row over everything it may become, as the user's own model judges; ``None`` if unknown."""
    core, original = problem.model.core, problem.model.original  # type: ignore[attr-defined]
    linear = not isinstance(core, TreeEnsemble)
    moving = tuple(f.start for f in problem.space.scalars if linear and f.can_move and not f.whole)
    every = points(problem, row, most, moving)
    if every is None or len(moving) > 1:
        return None
    if moving:
        every = np.vstack([every, *_crossings(problem, row, every, moving[0])])
    cost = problem.cost.between(np.repeat(row[None], len(every), axis=0), every)
    yes = original.favourable(every)
    if not ties:  # leave out what is favourable by a tie of votes alone
        votes = original.decide.model.predict_proba(problem.space.decode(every))
        yes &= ~np.isclose(votes[:, 0], votes[:, 1])
    return float(cost[yes].min(initial=np.inf))


def _crossings(problem: Affected, row: np.ndarray, every: np.ndarray, column: int) -> list[np.ndarray]:
    """Rows at and right past the boundary, moved along one continuous column of a linear model."""
    model = problem.model.original.decide.model  # type: ignore[attr-defined]
    f = next(f for f in problem.space.scalars if f.start == column)

    def score(Z: np.ndarray) -> np.ndarray:
        return np.asarray(model.decision_function(problem.space.decode(Z)))

    span = max(abs(f.observed[1] - f.observed[0]), 1e-9)
    other = every.copy()
    other[:, column] += span
    s0, s1 = score(every), score(other)
    with np.errstate(all="ignore"):
        at = every[:, column] - s0 * span / (s1 - s0)
    found = []
    rounding = 1e-15 * (np.abs(at) + span) + 4e-16 * np.abs(at)
    for hair in (0.0, 1.0, -1.0, 10.0, -10.0, 100.0, -100.0):
        moved = at + hair * rounding
        ok = np.isfinite(moved) & (moved >= f.low) & (moved <= f.high) & (f.sense * (moved - row[column]) >= 0)
        some = every[ok].copy()
        some[:, column] = moved[ok]
        found.append(some)
    for end in (f.low, f.high):
        if np.isfinite(end) and f.sense * (end - row[column]) >= 0:
            some = every.copy()
            some[:, column] = end
            found.append(some)
    return found
