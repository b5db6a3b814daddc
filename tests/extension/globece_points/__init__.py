"""A points card, and what globece needs to follow it exactly; a generator, a search and costs beside it.

This package is an example of an extension: copy it and change it. Its entry points are in ``pyproject.toml``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import globece as gce
from globece import rays
from globece.models.base import Model

EPSILON = np.finfo(float).eps


class PointsCard:
    """A classifier: each column gives points by its bin, and enough points are a yes (1).

    Parameters
    ----------
    cuts, points
        For each column the ends of its bins, ascending, and the points of each bin: one more than ends.
    enough
        How many points are a yes.
    """

    classes_ = np.array([0, 1])

    def __init__(self, cuts: list[list[float]], points: list[list[float]], enough: float) -> None:
        self.cuts, self.points, self.enough = cuts, points, enough

    def total(self, X: Any) -> Any:
        """Points of each row; a number that is not above an end belongs to the lower bin."""
        columns = zip(np.asarray(X, dtype=float).T, self.cuts, self.points, strict=True)
        return sum(np.asarray(points)[np.searchsorted(cuts, column, side="left")] for column, cuts, points in columns)

    def predict(self, X: Any) -> Any:
        return (self.total(X) >= self.enough).astype(int)


@dataclass(frozen=True)
class PointsModel(Model):
    """A points card over a space of numbers. Its total changes at few scalars of a ray, so it tries these."""

    card: PointsCard
    space: gce.FeatureSpace
    wanted: int = 1
    name: str = "PointsCard"
    exact = True

    def margin(self, Z: Any) -> Any:
        """Half a point past the cut at least, so that the sign tells the outcome."""
        sign = 1.0 if self.wanted == 1 else -1.0
        return sign * np.where((total := self.card.total(Z)) >= self.card.enough, total - self.card.enough + 0.5,
                               total - self.card.enough)  # fmt: skip

    def favourable(self, Z: Any) -> Any:
        return self.card.predict(Z) == self.wanted

    def first_flip(self, Z: Any, directions: Any, limit: Any, start: Any = None) -> Any:
        start = np.full_like(limit, 5e-324) if start is None else start  # just above 0, where a row still is itself
        found = np.full(limit.shape, np.inf)
        for j, delta in enumerate(directions):
            for i, row in enumerate(Z):
                k = self._breakpoints(row, delta)
                k = np.unique(np.concatenate([k[(k > start[j, i]) & (k <= limit[j, i])], start[j, i : i + 1]]))
                if k.size:
                    flips = self.favourable(rays.positions(self.space, np.repeat(row[None], k.size, axis=0), delta, k))
                    found[j, i] = k[flips.argmax()] if flips.any() else np.inf
        return found

    def _breakpoints(self, row: Any, delta: Any) -> Any:
        """Scalars just past which a column leaves its bin; a few roundings further, as x + k * delta is rounded."""
        moving = [(x, step, cuts) for x, step, cuts in zip(row, delta, self.card.cuts, strict=True) if step != 0.0]
        k = np.concatenate([[(cut - x) / step for cut in cuts] for x, step, cuts in moving] or [[]])
        k = np.concatenate([k * (1 + n * EPSILON) for n in range(-1, 9)])
        whole = [k + 0.5 / abs(step) * (1 + 4 * EPSILON) for _, step, _ in moving]  # columns that move in whole steps
        return np.concatenate([k, *whole, *(np.nextafter(w, np.inf) for w in whole)])


def compile_points(
    estimator: Any, space: gce.FeatureSpace, *, favourable: Any, threshold: float | None
) -> Model | None:
    """What globece asks about each model that it does not know itself."""
    if type(estimator) is not PointsCard or threshold is not None or space.blocks:
        return None
    return PointsModel(estimator, space, int(favourable))


@dataclass(frozen=True)
class OneAtATime:
    """A generator: a step up and a step down of each number that may move."""

    def propose(self, problem: Any, n: int, rng: np.random.Generator) -> Any:
        steps = []
        for feature in problem.space.movable:
            for sign in (-1.0, 1.0):
                if feature.sense in (0, sign):
                    delta = np.zeros(problem.space.width)
                    delta[feature.start] = sign if not feature.is_block else 1.0
                    steps.append(delta)
        return problem.cost.normalise(np.array(steps), 2.0)[:n]


def one_at_a_time() -> gce.Search:
    """A search: the best of these."""
    return gce.Race(OneAtATime())


def hours(space: gce.FeatureSpace, X: Any) -> gce.CostModel:
    """Costs: every number counts twice; it stands for a table of what a change takes in hours."""
    return gce.CostModel.bins(space, weights=dict.fromkeys(space.names, 2.0))
