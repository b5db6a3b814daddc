"""Who proposes directions: anything with a ``propose`` method."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from globece.case.affected import Affected
from globece.errors import InvalidDirectionError, check_count, check_instance, check_number
from globece.space import FloatArray

MOST_PROPOSED = 1_000_000
COSTS = (1e-9, 1e9)  # a direction's nominal cost: its scalars are then numbers of a sensible size
LARGEST_POWER = 100.0


def check_cost(cost: Any) -> float:
    """The nominal cost that directions are scaled to."""
    return check_number("cost", cost, low=COSTS[0], high=COSTS[1])


def check_asked(problem: Any, n: Any, rng: Any) -> int:
    """Check what a generator is asked with; the number of directions comes back."""
    check_instance("problem", problem, Affected)
    check_instance("rng", rng, np.random.Generator, "see numpy.random.default_rng")
    return check_count("n", n, high=MOST_PROPOSED)


@runtime_checkable
class DirectionGenerator(Protocol):
    """Proposes candidate directions; the search picks among them."""

    def propose(self, problem: Affected, n: int, rng: np.random.Generator) -> FloatArray:
        """Return at most ``n`` directions, one per row, that break no constraint of the space."""
        ...


def proposed(
    generator: DirectionGenerator, problem: Affected, n: int, rng: np.random.Generator, *, or_none: bool = False
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
