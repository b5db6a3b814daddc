"""Who proposes directions: anything with a ``propose`` method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from globece.costs import CostModel
from globece.models.base import Model
from globece.space import FeatureSpace, FloatArray


@dataclass(frozen=True)
class Problem:
    """What there is to explain.

    Attributes
    ----------
    model
        The model over the encoded matrix.
    inputs
        The affected inputs, encoded: ``(n, width)``.
    cost
        What changes cost.
    budget
        The most that recourse may cost.
    max_scalar
        Largest scalar allowed, where the user sets one beside the budget (the paper: 5).
    """

    model: Model
    inputs: FloatArray
    cost: CostModel
    budget: float
    max_scalar: float | None = None

    @property
    def space(self) -> FeatureSpace:
        """The space of the inputs."""
        return self.cost.space


@runtime_checkable
class DirectionGenerator(Protocol):
    """Proposes candidate directions; the search picks among them."""

    def propose(self, problem: Problem, n: int, rng: np.random.Generator) -> FloatArray:
        """Return at most ``n`` directions, one a row, that break no constraint of the space."""
        ...
