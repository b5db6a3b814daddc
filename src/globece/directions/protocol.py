"""Who proposes directions: anything with a ``propose`` method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from globece.costs import CostModel
from globece.errors import InvalidDirectionError
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
    favourable_rows
        The rows that have the favourable outcome already, encoded, where they are at hand: some generators aim at them.
    """

    model: Model
    inputs: FloatArray
    cost: CostModel
    budget: float
    max_scalar: float | None = None
    favourable_rows: FloatArray | None = None

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


def proposed(
    generator: DirectionGenerator, problem: Problem, n: int, rng: np.random.Generator, *, or_none: bool = False
) -> FloatArray:
    """Ask a generator for directions and check them; an error names the generator.

    Parameters
    ----------
    generator
        Who proposes.
    problem, n, rng
        As for :meth:`DirectionGenerator.propose`.
    or_none
        Whether it may have nothing to propose.

    Raises
    ------
    InvalidDirectionError
        If there are none or more than ``n``, or one is not finite, moves nobody or breaks a constraint.
    """
    name = type(generator).__name__
    given = generator.propose(problem, n, rng)
    if np.ndim(given) == 2 and len(given) == 0:
        if or_none:
            return np.empty((0, problem.space.width))
        raise InvalidDirectionError(f"generator {name} found no direction to propose; take another, or mix it with one")
    try:
        directions = problem.space.check_directions(given)
    except (InvalidDirectionError, TypeError, ValueError) as error:
        raise InvalidDirectionError(f"generator {name} proposed what is no direction here: {error}") from error
    if len(directions) > n:
        raise InvalidDirectionError(
            f"generator {name} proposed {len(directions):,} directions; at most {n:,} were asked for"
        )
    return directions
