"""Recourse by round of training: coverage, cost and the gap between groups, while a model is being fitted.

A watch is cheap because it searches nothing: before training it moves a sample of rows along a few directions to a grid
of costs, and at each round the model only predicts these points. What it records is therefore an upper bound of the
cost, on a grid. It shows how recourse changes; for its size explain the fitted model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np

from globece import rays
from globece.costs import CostModel
from globece.errors import InvalidDataError, check_count, check_number, require, wrong
from globece.models.compiling.adapt import as_model
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray

FOR_MEANS = 1_000  # rows that the directions are learnt from
FEWEST = 10  # affected inputs from which on a group's score is recorded


@dataclass(frozen=True, slots=True)
class Round:
    """Recourse after one round of training.

    Attributes
    ----------
    number
        The round, counted from 1.
    affected
        How many of the rows watched have the unfavourable outcome.
    coverage, average_cost, score
        Of these, along the directions watched; ``nan`` where nobody is affected or covered.
    groups
        Score of each group with enough affected inputs.
    """

    number: int
    affected: int
    coverage: float
    average_cost: float
    score: float
    groups: Mapping[str, float]

    @property
    def gap(self) -> float:
        """Largest difference in score between two groups; ``nan`` for fewer than two."""
        scores = list(self.groups.values())
        return max(scores) - min(scores) if len(scores) > 1 else float("nan")


@dataclass(eq=False)
class RecourseWatch:
    """Records coverage, cost and group gap by round; give it to XGBoost or LightGBM as a callback, or call ``record``.

    Parameters
    ----------
    X, y
        Training rows in the user's columns, and their outcomes.
    favourable
        The outcome that people want.
    space
        What may change; learnt from ``X`` when absent.
    by
        A column of ``X``, or a label for each row: the groups.
    every
        Record at each of so many rounds.
    n_rows, n_directions, n_costs
        How many rows are watched, along how many directions, at how many costs. They are drawn from those with the
        unfavourable outcome in ``y``: most of whom a model turns down are among them.
    budget
        The most that recourse may cost.
    cost
        What a change costs; the paper's bins when absent.
    directions
        Directions to watch, such as an explanation's; by default the difference of the two outcomes' means, and the
        features in which they differ most, one by one.
    rng
        Seed of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import SGDClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = (X.sum(axis=1) > 0).astype(int)
    >>> watch, model = RecourseWatch(X, y, favourable=1, rng=0), SGDClassifier(random_state=0)
    >>> for step in range(1, 4):
    ...     watch.record(step, model.partial_fit(X, y, classes=[0, 1]))
    >>> [r.number for r in watch.rounds], watch.rounds[-1].coverage
    ([1, 2, 3], 1.0)
    """

    X: Any
    y: Any
    favourable: Any = 1
    space: FeatureSpace | None = None
    by: Any = None
    every: int = 10
    n_rows: int = 100
    n_directions: int = 3
    n_costs: int = 5
    budget: float = 10.0
    cost: CostModel | None = None
    directions: FloatArray | None = None
    rng: int = 0
    rounds: list[Round] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        for name in ("every", "n_rows", "n_directions", "n_costs"):
            check_count(name, getattr(self, name))
        check_number("budget", self.budget, open_low=True)
        if self.space is None:
            made = FeatureSpace.from_matrix if isinstance(self.X, np.ndarray) else FeatureSpace.from_frame
            self.space = made(self.X)
        self.cost = CostModel.bins(self.space) if self.cost is None else self.cost
        outcomes = np.asarray(self.y)
        n = len(self.X)
        if outcomes.shape != (n,):
            raise wrong("y", f"one outcome for each of the {n:,} rows", self.y)
        good = outcomes == self.favourable
        if good.all() or not good.any():
            raise InvalidDataError(
                f"y has {'only' if good.any() else 'no'} rows with the favourable {self.favourable!r}"
            )
        drawn = np.random.default_rng(self.rng).permutation(n)
        chosen = np.sort(drawn[~good[drawn]][: self.n_rows])
        self._watched = self.space.encode(_rows(self.X, chosen))
        self._labels, self._names = self._grouped(chosen)
        D = self.directions
        if D is None:
            few = np.sort(drawn[:FOR_MEANS])
            D = _towards(self.space.encode(_rows(self.X, few)), good[few], self.space, self.n_directions)
        self._points, self._costs = _grid(self.space, self.cost, self._watched, D, self.budget, self.n_costs)

    def _grouped(self, chosen: IntArray) -> tuple[IntArray, list[str]]:
        if self.by is None:
            return np.full(len(chosen), -1), []
        column = self.X[self.by] if isinstance(self.by, str) else self.by
        names, labels = np.unique(np.asarray(column).astype(str)[chosen], return_inverse=True)
        return labels, names.tolist()

    # -- recording -----------------------------------------------------------------------------------------------

    def record(self, number: int, model: Any) -> None:
        """Record a round, with whatever decides now: an estimator, a torch module, or a function of rows."""
        assert self.space is not None
        asked = as_model(model, self.space, favourable=self.favourable, compile=False)
        self._recorded(number, asked.favourable(self._points))

    def _recorded(self, number: int, favourable: BoolArray) -> None:
        n = len(self._watched)
        reached = np.where(favourable[n:].reshape(self._costs.shape), self._costs, np.inf).min(axis=1)
        affected = ~favourable[:n]
        cost = np.where(affected, np.minimum.reduceat(reached, np.arange(n) * (len(reached) // n)), 0.0)
        mine = cost[affected]
        covered = np.isfinite(mine)
        groups = {}
        for g, name in enumerate(self._names):
            members = cost[affected & (self._labels == g)]
            if len(members) >= FEWEST:
                groups[name] = float(np.minimum(members, self.budget).mean())
        self.rounds.append(
            Round(
                number,
                int(affected.sum()),
                float(covered.mean()) if mine.size else float("nan"),
                float(mine[covered].mean()) if covered.any() else float("nan"),
                float(np.minimum(mine, self.budget).mean()) if mine.size else float("nan"),
                groups,
            )
        )

    @cached_property
    def rows(self) -> Any:
        """The points watched, in the user's columns."""
        assert self.space is not None
        return self.space.decode(self._points)

    def xgboost(self) -> Any:
        """A callback for ``XGBClassifier(callbacks=[...])`` or ``xgboost.train``: two classes, 0 and 1."""
        xgb: Any = require("xgboost", extra="trees", caller="RecourseWatch.xgboost")
        watch = self

        class Callback(xgb.callback.TrainingCallback):  # type: ignore[misc]
            def before_training(self, model: Any) -> Any:
                self.points = xgb.DMatrix(watch.rows, enable_categorical=True)
                self.margin: Any = None
                self.last = 0
                return model

            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                if (epoch + 1) % watch.every == 0:
                    if self.margin is not None:  # only the trees that are new
                        self.points.set_base_margin(self.margin)
                    self.margin = model.predict(self.points, output_margin=True, iteration_range=(self.last, epoch + 1))
                    self.last = epoch + 1
                    watch._recorded(epoch + 1, watch._side(self.margin))
                return False

        return Callback()

    def lightgbm(self) -> Any:
        """A callback for LightGBM's ``fit(callbacks=[...])`` or ``train``: two classes, 0 and 1."""
        require("lightgbm", extra="trees", caller="RecourseWatch.lightgbm")
        state: dict[str, Any] = {"last": 0, "margin": 0.0}

        def callback(env: Any) -> None:
            number = env.iteration + 1
            if number % self.every == 0:
                new = {"start_iteration": state["last"], "num_iteration": number - state["last"]}
                new["num_threads"] = 1  # few rows: more threads would only wait for one another
                state["margin"] = state["margin"] + env.model.predict(self.rows, raw_score=True, **new)
                state["last"] = number
                self._recorded(number, self._side(state["margin"]))

        return callback

    def _side(self, margin: FloatArray) -> BoolArray:
        margin = np.asarray(margin)
        if margin.ndim != 1 or self.favourable not in (0, 1):
            raise wrong("favourable", "0 or 1, of a model with two classes", self.favourable)
        return np.asarray(margin > 0.0) if self.favourable == 1 else np.asarray(margin <= 0.0)

    # -- views ---------------------------------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """A pandas frame with a row for each round recorded, and a column for each group's score."""
        pandas: Any = require("pandas", extra="frames", caller="RecourseWatch.to_frame")
        return pandas.DataFrame(
            [
                {"round": r.number, "affected": r.affected, "coverage": r.coverage, "average_cost": r.average_cost,
                 "score": r.score, "gap": r.gap, **{f"score {name}": value for name, value in r.groups.items()}}
                for r in self.rounds
            ]
        )  # fmt: skip

    def plot(self, axes: Any = None) -> Any:
        """Draw coverage, and the score of everybody and of each group, by round; the two axes come back."""
        plt: Any = require("matplotlib.pyplot", extra="plot", caller="RecourseWatch.plot")
        if axes is None:
            _, axes = plt.subplots(2, 1, sharex=True, figsize=(6, 5), layout="constrained")
        numbers = [r.number for r in self.rounds]
        axes[0].plot(numbers, [r.coverage for r in self.rounds], "o-", color="#222222")
        axes[0].set(ylim=(0, 1.06), ylabel="coverage")
        axes[1].plot(numbers, [r.score for r in self.rounds], "o-", color="#222222", label="everybody")
        for name in self._names:
            axes[1].plot(numbers, [r.groups.get(name, np.nan) for r in self.rounds], "o-", label=name)
        axes[1].set(ylim=(0, None), xlabel="round of training", ylabel=f"score (budget {self.budget:g})")
        axes[1].legend(frameon=False)
        return axes


def _rows(X: Any, which: IntArray) -> Any:
    if isinstance(X, np.ndarray):
        return X[which]
    return nw.from_native(X, eager_only=True)[which.tolist()].to_native()


def _towards(Z: FloatArray, good: BoolArray, space: FeatureSpace, n: int) -> FloatArray:
    """The difference of the means of both outcomes, and the features in which they differ most, alone."""
    spread = np.where((s := np.nanstd(Z, axis=0)) > 0, s, 1.0)
    difference = np.nan_to_num((np.nanmean(Z[good], axis=0) - np.nanmean(Z[~good], axis=0)) / spread)
    whole, alone, strength = np.zeros(space.width), [], []
    for f in space.movable:
        delta = np.zeros(space.width)
        if f.is_block:
            best = f.start + int(difference[f.columns].argmax())
            delta[best] = 1.0
            strength.append(difference[best])
        else:
            step = float(difference[f.start]) * spread[f.start]
            if step == 0.0 or (f.sense and f.sense * step < 0):
                continue
            delta[f.start] = step
            strength.append(abs(difference[f.start]))
        whole += delta * (0.5 if f.is_block else 1.0)
        alone.append(delta)
    if not alone:
        raise InvalidDataError("no feature that may move differs between the two outcomes; give directions=")
    order = np.argsort(-np.array(strength), kind="stable")[: max(n - 1, 0)]
    return np.array([whole, *(alone[i] for i in order)])


def _grid(
    space: FeatureSpace, cost: CostModel, Z: FloatArray, D: FloatArray, budget: float, n_costs: int
) -> tuple[FloatArray, FloatArray]:
    """The rows themselves, then their points along each direction; and what each point costs.

    The costs are ``(rows x directions, n_costs)``; a point beyond the budget counts as none.
    """
    D = cost.normalise(np.asarray(D, dtype=np.float64), 1.0)
    steps = budget * np.linspace(1.0 / n_costs, 1.0, n_costs) ** 1.5  # closer together where most people are
    points = np.stack([[rays.positions(space, Z, delta, float(k)) for k in steps] for delta in D])  # (m, c, n, width)
    flat = points.transpose(2, 0, 1, 3).reshape(-1, space.width)
    paid = cost.between(np.repeat(Z, len(D) * n_costs, axis=0), flat)
    paid = np.where(paid <= budget * (1 + 1e-9), paid, np.inf)
    return np.vstack([Z, flat]), paid.reshape(len(Z) * len(D), n_costs)
