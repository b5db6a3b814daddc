"""Which search is asked for."""

from __future__ import annotations

from globece.directions.protocol import DirectionGenerator
from globece.errors import InvalidParameterError, describe
from globece.search.climb import Climb
from globece.search.protocol import Search
from globece.search.race import Race


def search_of(search: Search | None, generator: DirectionGenerator | None) -> Search:
    """The search that is asked for, whole or by its generator; climbing by default."""
    if search is None:
        return Climb() if generator is None else Race(generator)
    if generator is not None:
        raise InvalidParameterError("give search or generator, not both: Race(generator) is a search")
    if isinstance(search, type) or not isinstance(search, Search):
        raise InvalidParameterError(f"search must be a Climb, a Race or have a find method; got {describe(search)}")
    return search
