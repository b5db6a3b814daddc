"""Sampling by feature importance, as the paper does for tree ensembles (appendix, "Generality of our Framework")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from globece.case.affected import Affected
from globece.directions.constraints import movable_features
from globece.directions.protocol import LARGEST_POWER, check_asked, check_cost
from globece.directions.rows import settled
from globece.directions.sampling import sampled
from globece.errors import (
    InvalidParameterError,
    check_choice,
    check_count,
    check_mapping,
    check_number,
    keep_checked,
    wrong,
)
from globece.space import FloatArray

SOURCES = ("auto", "model", "permutation")
WEIGHED = ("features", "values")
ROWS = 512  # rows whose features are exchanged
ROUNDS = 3
LARGEST = 1e300  # importance


@dataclass(frozen=True, slots=True)
class ImportanceSampling:
    """Sample as :class:`UniformSampling` does, but draw important features more often.

    Parameters
    ----------
    importance
        A number per feature (0 where absent), or where to take them from: ``"model"`` for the model's own
        (``feature_importances_`` of a tree ensemble, weight per unit of cost of a linear model), ``"permutation"`` for
        how much the margin, or the decision of a black box, changes when a feature's values are exchanged among the
        rows; ``"auto"`` takes the model's own where it has some.
    cost, n_features, power
        As for :class:`UniformSampling`.
    weigh
        ``"features"`` draws ``n_features`` features, important ones more often; ``"values"`` lets every feature take
        part and weights the random share of each of its values by its importance, as the paper words it.

    Examples
    --------
    >>> import numpy as np
    >>> from globece import explain
    >>> X = np.array([[1.0, 3.0], [2.0, 9.0], [3.0, 5.0], [8.0, 2.0], [9.0, 7.0]])
    >>> mostly_income = ImportanceSampling({"x0": 9, "x1": 1}, n_features=1)
    >>> explain(lambda X: (X[:, 0] >= 7).astype(int), X, generator=mostly_income, rng=0).coverage
    1.0
    """

    importance: Mapping[str, float] | str = "auto"
    cost: float = 2.0
    n_features: int = 2
    power: float = 1.0
    weigh: Literal["features", "values"] = "features"

    def __post_init__(self) -> None:
        importance: Any = self.importance
        if isinstance(importance, Mapping):
            named = check_mapping("importance", importance, "feature to number")
            importance = {
                name: check_number(f"importance[{name!r}]", value, high=LARGEST) for name, value in named.items()
            }
        elif not isinstance(importance, str) or importance not in SOURCES:
            raise wrong("importance", f"a mapping of feature to number or one of {list(SOURCES)}", importance)
        keep_checked(
            self,
            importance=importance,
            cost=check_cost(self.cost),
            n_features=check_count("n_features", self.n_features),
            power=check_number("power", self.power, open_low=True, high=LARGEST_POWER),
            weigh=check_choice("weigh", self.weigh, WEIGHED),
        )

    def propose(self, problem: Affected, n: int, rng: np.random.Generator) -> FloatArray:
        """Sample ``n`` directions."""
        n = check_asked(problem, n, rng)
        movable = movable_features(problem.space)
        every = self.weights(problem, rng)
        weights = every[[problem.space.names.index(f.name) for f in movable]]
        if not weights.any():
            raise InvalidParameterError(
                "importance is 0 for every feature that can move; "
                f"those are {[f.name for f in movable]}: give one of them a positive number, or use UniformSampling"
            )
        if self.weigh == "values":
            all_of_them = np.tile(np.arange(len(movable)), (n, 1))
            shares = sampled(problem, all_of_them, self.power, self.cost, rng) * self._of_values(problem, every)
            return problem.cost.normalise(shares, self.cost)
        # Gumbel's trick: the largest of log w + noise are a draw without replacement, with probability w
        with np.errstate(divide="ignore"):
            keys = np.log(weights / weights.max()) + rng.gumbel(size=(n, len(movable)))
        chosen = (-keys).argsort(axis=1, kind="stable")[:, : self.n_features]
        chosen = np.where(np.isfinite(np.take_along_axis(keys, chosen, axis=1)), chosen, -1)
        return sampled(problem, chosen, self.power, self.cost, rng)

    def weights(self, problem: Affected, rng: np.random.Generator) -> FloatArray:
        """Importance of each feature of the space, none of them negative."""
        space = problem.space
        if isinstance(self.importance, Mapping):
            space._check_known("importance", self.importance)
            return np.array([float(self.importance.get(name, 0.0)) for name in space.names])
        if self.importance != "permutation":
            found = _own(problem)
            if found is not None:
                return found
            if self.importance == "model":
                raise InvalidParameterError(
                    f"importance='model' needs a linear model, or feature_importances_ for the columns given, which "
                    f"{problem.model.name} lacks; use 'permutation', or give a number per feature"
                )
        return permutation_importance(problem, rng)

    def _of_values(self, problem: Affected, weights: FloatArray) -> FloatArray:
        """Importance of each encoded column: its own where the model has one for it, else its part of the feature's."""
        given = (_given(problem) if self.importance in ("auto", "model") else None) or {}
        found = np.zeros(problem.space.width)
        for f, weight in zip(problem.space.features, weights, strict=True):
            by_column = given and len(f.sources) == f.width
            found[f.columns] = [given[s] for s in f.sources] if by_column else weight / f.width
        return found


def _own(problem: Affected) -> FloatArray | None:
    """The model's own importances by feature, if it has some for the user's own columns."""
    core, space = problem.model.unconditioned.half_spaces, problem.space
    if core is not None and not core.tables:
        size, rates = np.abs(core.weights).max(axis=0), problem.cost.rates
        found = np.zeros(len(space.features))
        for i, f in enumerate(space.features):
            if f.is_block:
                found[i] = np.ptp(core.weights[:, f.columns], axis=1).max() / problem.cost.weight(f)
            elif rates[f.start] > 0:
                found[i] = size[f.start] / rates[f.start]
        return found if found.any() else None
    given = _given(problem)
    return None if given is None else np.array([sum(given[s] for s in f.sources) for f in space.features])


def _given(problem: Affected) -> dict[str, float] | None:
    """``feature_importances_``, one for each column that the user gave."""
    names = problem.space.table.names
    owner = getattr(getattr(getattr(problem.model.unconditioned, "decide", None), "ask", None), "__self__", None)
    given = getattr(owner, "feature_importances_", None)
    if given is None:
        return None
    values = np.abs(np.asarray(given, dtype=np.float64)).ravel()
    if len(values) != len(names) or not np.isfinite(values).all() or not values.any():
        return None
    return dict(zip(names, values.tolist(), strict=True))


def permutation_importance(problem: Affected, rng: np.random.Generator) -> FloatArray:
    """How much the model's margin changes, on average, when one feature's values are exchanged among the rows.

    The rows are the affected inputs and, where they are available, the favourable ones: a black box shows only its
    decisions, and among the affected alone few of these would change.
    """
    space = problem.space
    Z = settled(problem.inputs, ROWS)
    others = Z if problem.favourable_rows is None else np.vstack([Z, settled(problem.favourable_rows, ROWS)])
    start = problem.model.margin(Z)
    found = np.zeros(len(space.features))
    for i, f in enumerate(space.features):
        if f.can_move:
            for _ in range(ROUNDS):
                moved = Z.copy()
                moved[:, f.columns] = others[rng.integers(len(others), size=len(Z))][:, f.columns]
                found[i] += np.abs(problem.model.margin(moved) - start).mean()
    # where nothing changes anything, nothing is known: all alike
    return found if found.any() else np.array([float(f.can_move) for f in space.features])
