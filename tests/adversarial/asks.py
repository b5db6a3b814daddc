"""Random questions: what may move and how far, what it costs, how much, and how hard to look."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import globece as gce
from tests.adversarial.tables import Column, Table

EXACT = 2.0**53  # beyond that doubles do not count every whole number


@dataclass(frozen=True)
class Price:
    """What a change costs: in widths or deciles by feature, times a weight, summed or as a length."""

    kind: str
    norm: str
    weights: dict[str, float]
    widths: dict[str, float]
    n: int = 10

    def model(self, space: gce.FeatureSpace, X: Any) -> gce.CostModel:
        """The same in globece's words."""
        weights = {k: v for k, v in self.weights.items() if k in space.names}
        if self.kind == "deciles":
            return gce.CostModel.deciles(space, X, weights=weights, norm=self.norm)  # type: ignore[arg-type]
        widths = {k: v for k, v in self.widths.items() if k in space.names}
        return gce.CostModel.bins(space, n=self.n, weights=weights, widths=widths, norm=self.norm)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Ask:
    """What is asked of a table and a model.

    Attributes
    ----------
    declared
        ``categorical``, ``ordinal``, ``groups`` and ``whole``: what the columns are.
    constraints
        ``immutable``, ``increasing``, ``decreasing``, ``ranges``, ``permitted``.
    price, budget, n_directions, settings, robust
        As for :func:`globece.explain`.
    doors
        What else is tried besides ``explain``.
    climb
        How to climb; ``None`` takes a few random directions: quicker, and they move many features at once.
    """

    declared: dict[str, Any]
    constraints: dict[str, Any]
    price: Price
    budget: float
    n_directions: Any
    settings: dict[str, Any]
    robust: dict[str, Any] | None
    doors: tuple[str, ...]
    climb: dict[str, Any] | None
    whole: dict[str, bool] = field(default_factory=dict)

    def space(self, table: Table) -> gce.FeatureSpace:
        """The space of a table with these constraints."""
        if table.backend == "matrix":
            return gce.FeatureSpace.from_matrix(table.X, columns=table.names, **self.declared, **self.constraints)
        return gce.FeatureSpace.from_frame(table.X, **self.declared, **self.constraints)

    def range(self, column: Column) -> tuple[float, float]:
        """How far a number may move: as asked for, or as the data goes."""
        asked: Any = self.constraints["ranges"]
        given: Any = asked if isinstance(asked, str) else asked.get(column.name)
        if given == "unbounded":  # as far as the column's type goes, where that is near enough to matter
            if column.kind == "whole" and not self.whole[column.name]:
                return -np.inf, np.inf  # whole numbers that may become fractions become doubles
            low, high = column.limits
            return (low if low > -EXACT else -np.inf), (high if high < EXACT else np.inf)
        low, high = given or (float(np.nanmin(column.values)), float(np.nanmax(column.values)))
        return (float(np.ceil(low)), float(np.floor(high))) if self.whole[column.name] else (low, high)

    def sense(self, name: str) -> int:
        """+1 or -1 where a feature may only rise or fall."""
        return int(name in self.constraints["increasing"]) - int(name in self.constraints["decreasing"])

    def permitted(self, column: Column) -> NDArray[np.bool_]:
        """Which levels may be moved to."""
        given = self.constraints["permitted"].get(column.name)
        same = [given is None or any(_same(level, g) for g in given) for level in (*column.levels, None)]
        return np.array(same)


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


def draw(rng: np.random.Generator, table: Table) -> Ask:
    """A random question about this table."""
    declared, whole = _declared(rng, table)
    chosen: dict[str, Any] = {"immutable": [], "increasing": [], "decreasing": [], "ranges": {}, "permitted": {}}
    for c in table.columns:
        what = rng.random()
        ordered = c.is_number or c.kind == "ordinal"
        if what < 0.12 and len(table.columns) > 1:
            chosen["immutable"].append(c.name)
        elif what < 0.3 and ordered:
            chosen["increasing" if rng.random() < 0.5 else "decreasing"].append(c.name)
        if c.is_number and rng.random() < 0.25:
            chosen["ranges"][c.name] = _held(rng, c, _range(rng, c))
        elif not c.is_number and c.type != "bool" and rng.random() < 0.2:
            chosen["permitted"][c.name] = _permitted(rng, c)
    if rng.random() < 0.05:
        chosen["ranges"] = "unbounded"
    doors = [d for d in ("json", "apply", "bound", "solve", "benefits", "audit", "pickle") if rng.random() < _SHARE[d]]
    climb = {"rays": int(rng.choice([8, 16, 40])), "max_features": int(rng.integers(1, 5))}
    settings: dict[str, Any] = {}
    if rng.random() < 0.1:
        settings["exact"] = False
    if rng.random() < 0.06:
        settings["max_scalar"] = float(rng.choice([0.5, 3.0]))
    settings["grid"] = int(rng.choice([8, 16]))
    asked = Ask(
        declared,
        chosen,
        _price(rng, table),
        float(rng.choice([1.0, 3.0, 10.0, 40.0], p=[0.15, 0.2, 0.45, 0.2])),
        [1, 2, 3, "auto"][int(rng.choice(4, p=[0.5, 0.25, 0.2, 0.05]))],
        settings,
        _robust(rng) if rng.random() < 0.06 else None,
        tuple(doors),
        climb,
        whole=whole,
    )
    return replace(asked, climb=None) if rng.random() < 0.88 else asked


_SHARE = {"json": 0.3, "apply": 0.4, "bound": 0.7, "solve": 0.15, "benefits": 0.15, "audit": 0.05, "pickle": 0.15}


def _declared(rng: np.random.Generator, table: Table) -> tuple[dict[str, Any], dict[str, bool]]:
    codes = [c for c in table.columns if c.type == "codes"]
    out: dict[str, Any] = {
        "categorical": [c.name for c in codes if c.kind == "category"],
        "ordinal": {c.name: list(c.levels) for c in table.columns if c.kind == "ordinal" and c.type != "category"},
        "groups": {c.name: table.sources(c) for c in table.columns if c.type == "onehot"},
    }
    whole = {c.name: c.kind == "whole" for c in table.columns}
    # of a matrix of doubles only the user knows which columns are whole
    if table.backend == "matrix" and np.dtype(table.dtype).kind == "f":
        out["whole"] = [c.name for c in table.columns if c.kind == "whole"]
    elif rng.random() < 0.08:  # whole numbers that may become fractions
        out["whole"] = [c.name for c in table.columns if c.kind == "whole" and rng.random() < 0.5]
        whole = {c.name: c.name in out["whole"] for c in table.columns}
    return out, whole


def _range(rng: np.random.Generator, c: Column) -> Any:
    low, high = float(np.nanmin(c.values)), float(np.nanmax(c.values))
    width = high - low or 1.0
    which = int(rng.integers(4))
    if which == 0:
        return "unbounded"
    if which == 1:  # narrower than the data
        return low + 0.2 * width, high - 0.2 * width
    if which == 2:
        return low - 0.7 * width, high + 0.7 * width
    return low, high + 3.0 * width


def _held(rng: np.random.Generator, c: Column, given: Any) -> Any:
    """A range that the column's type can hold and that has a whole number, or now and then any: that is refused."""
    if isinstance(given, str) or rng.random() < 0.1:
        return given
    low, high = max(given[0], c.limits[0]), min(given[1], c.limits[1])
    return (low, high) if c.kind == "number" else (np.floor(low), np.ceil(high))


def _permitted(rng: np.random.Generator, c: Column) -> list[Any]:
    n = len(c.levels)
    if c.kind == "ordinal":
        start = int(rng.integers(n))
        return list(c.levels[start : start + int(rng.integers(1, n + 1))])
    kept = [level for level in c.levels if rng.random() < 0.6]
    return kept or [c.levels[0]]


def _price(rng: np.random.Generator, table: Table) -> Price:
    some = {c.name: float(rng.choice([0.1, 0.5, 2.0, 30.0])) for c in table.columns if rng.random() < 0.15}
    movable = [c for c in table.columns if c.kind == "number"]
    widths = {c.name: float(np.nanstd(c.values)) or 1.0 for c in movable if rng.random() < 0.1}
    kind = "deciles" if rng.random() < 0.2 else "bins"
    return Price(kind, "l2" if rng.random() < 0.25 else "l1", some, widths, int(rng.choice([10, 10, 4])))


def _robust(rng: np.random.Generator) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {"margin": 0.05, "scale": str(rng.choice(["probability", "logit", "score"]))}
    return {"noise": 0.2, "draws": 3}
