"""Which search is asked for."""

from __future__ import annotations

from globece.directions.protocol import DirectionGenerator
from globece.errors import InvalidParameterError, check_choice, describe
from globece.search.climb import Climb, Effort
from globece.search.protocol import Search
from globece.search.race import Race

SAMPLES: dict[Effort, int] = {"quick": 200, "default": 1000, "thorough": 20_000}


def search_of(search: Search | None, generator: DirectionGenerator | None, effort: Effort = "default") -> Search:
    """The search that is asked for, whole or by its generator; climbing by default."""
    check_choice("effort", effort, tuple(SAMPLES))
    if search is None:
        return Climb(effort=effort) if generator is None else Race(generator, SAMPLES[effort])
    if generator is not None:
        raise InvalidParameterError("give search or generator, not both: Race(generator) is a search")
    if effort != "default":
        raise InvalidParameterError("give search or effort, not both: Climb(effort=...) is a search")
    if isinstance(search, type) or not isinstance(search, Search):
        raise InvalidParameterError(f"search must be a Climb, a Race or have a find method; got {describe(search)}")
    return search
