"""Several models that vote: followed from one change of mind to the next.

Along a ray each member is favourable on some stretches and not on others. Where a member is followed exactly in both
directions, so are the ends of its stretches, and between two ends nobody's vote changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from globece import rays
from globece.models.base import Allowance, Model
from globece.space import BoolArray, FeatureSpace, FloatArray

PAST = 1e-9  # how far past a change of mind the next one is looked for: right there rounding decides
MOST_CHANGES = 200  # of votes along one ray, after which it is left undecided


@dataclass(frozen=True)
class Majority(Model):
    """A weighted vote.

    Attributes
    ----------
    space
        The space whose rows it takes.
    members, opposite
        For each voter the model of the favourable outcome, and the model of the other one.
    weights
        Of their votes; they add up to 1.
    ties
        Whether a tie is favourable.
    name
        What to call it in messages.
    """

    space: FeatureSpace
    members: tuple[Model, ...]
    opposite: tuple[Model, ...]
    weights: FloatArray
    ties: bool
    name: str

    exact = True

    @property
    def unit(self) -> float:
        """The coarsest of the members'."""
        return max(member.unit for member in self.members)

    @property
    def rounding_unit(self) -> float:
        """The coarsest of the members'."""
        return max(member.rounding_unit for member in self.members)

    @property
    def allowance(self) -> Allowance:
        """That of the most expensive member, shared among them."""
        each = [member.allowance for member in self.members]
        share = 1.0 / (2.0 * len(each))
        return Allowance(
            share * min(a.per_input for a in each),
            max(int(share * min(a.least for a in each)), 1),
            max(int(share * min(a.most for a in each)), 1),
        )

    def _votes(self, Z: FloatArray) -> BoolArray:
        return np.array([member.favourable(Z) for member in self.members])

    def margin(self, Z: FloatArray) -> FloatArray:
        """Share of the votes beyond one half."""
        beyond = self.weights @ self._votes(Z) - 0.5
        # sums of weights that are equal on paper may differ in the last digits
        tied = np.abs(beyond) < 1e-9
        return np.where(tied, 1e-3 * self.weights.min() if self.ties else -1e-3 * self.weights.min(), beyond)

    def favourable(self, Z: FloatArray) -> BoolArray:
        """Whether most votes are favourable."""
        return np.asarray(self.margin(Z) > 0.0)

    def first_flip(
        self, Z: FloatArray, directions: FloatArray, limit: FloatArray, start: FloatArray | None = None
    ) -> FloatArray:
        """Smallest k at which most votes are favourable; see :meth:`globece.models.base.Model.first_flip`."""
        begin = np.zeros_like(limit) if start is None else start
        return np.array([self._along(Z, d, top, low) for d, top, low in zip(directions, limit, begin, strict=True)])

    def _along(self, Z: FloatArray, delta: FloatArray, limit: FloatArray, start: FloatArray) -> FloatArray:
        found = np.full(len(Z), np.inf)
        k = np.maximum(start, np.nextafter(0.0, 1.0))  # just above 0 a row still is itself
        left = np.flatnonzero(k <= limit)
        later = np.full((len(self.members), len(Z)), -np.inf)  # where each voter changes its mind next
        votes = np.zeros(later.shape, dtype=bool)
        for _ in range(MOST_CHANGES):
            at = rays.positions(self.space, Z[left], delta, k[left])
            votes[:, left] = self._votes(at)
            won = self.favourable(at)
            found[left[won]] = k[left[won]]
            left = left[~won]
            if not left.size:
                return found
            for i in range(len(self.members)):
                for now, models in ((True, self.opposite), (False, self.members)):
                    asked = left[(votes[i, left] == now) & (later[i, left] <= k[left])]
                    if asked.size:
                        later[i, asked] = models[i].first_flip(
                            Z[asked], delta[None], limit[None, asked], k[None, asked] * (1.0 + PAST)
                        )[0]
            undecided = np.isnan(later[:, left]).any(axis=0)
            found[left[undecided]] = np.nan
            left = left[~undecided]
            k[left] = later[:, left].min(axis=0)
            left = left[k[left] <= limit[left]]
            if not left.size:
                return found
        found[left] = np.nan
        return found

    def rough(self, points: int) -> Model:
        """The same with rougher voters, where there are such."""
        return Majority(
            self.space,
            tuple(member.rough(points) for member in self.members),
            tuple(member.rough(points) for member in self.opposite),
            self.weights, self.ties, self.name,
        )  # fmt: skip


def weights_of(estimator: Any) -> FloatArray:
    """Weights of a voting classifier's members, adding up to 1."""
    given = getattr(estimator, "_weights_not_none", None)
    raw = np.ones(len(estimator.estimators_)) if given is None else np.asarray(given, dtype=np.float64)
    return np.asarray(raw / raw.sum())
