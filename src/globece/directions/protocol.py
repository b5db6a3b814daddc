"""Who proposes directions: anything with a ``propose`` method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from globece.costs import CostModel
from globece.errors import (
    InvalidDirectionError,
    check_count,
    check_instance,
    check_limit,
    check_matrix,
    check_number,
    wrong,
)
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

    def __post_init__(self) -> None:
        check_instance("cost", self.cost, CostModel, "see CostModel.bins")
        if not callable(getattr(self.model, "first_flip", None)):
            raise wrong("model", "a Model, as as_model gives it", self.model)
        check_matrix("inputs", self.inputs, self.space.width)
        check_number("budget", self.budget, open_low=True, infinite=True)
        check_limit("max_scalar", self.max_scalar)
        if self.favourable_rows is not None:
            check_matrix("favourable_rows", self.favourable_rows, self.space.width)

    @property
    def space(self) -> FeatureSpace:
        """The space of the inputs."""
        return self.cost.space


MOST_PROPOSED = 1_000_000
COSTS = (1e-9, 1e9)  # a direction's nominal cost: its scalars are then numbers of a sensible size
LARGEST_POWER = 100.0


def check_cost(cost: Any) -> float:
    """The nominal cost that directions are scaled to."""
    return check_number("cost", cost, low=COSTS[0], high=COSTS[1])


def check_asked(problem: Any, n: Any, rng: Any) -> int:
    """Check what a generator is asked with; the number of directions comes back."""
    check_instance("problem", problem, Problem)
    check_instance("rng", rng, np.random.Generator, "see numpy.random.default_rng")
    return check_count("n", n, high=MOST_PROPOSED)


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
