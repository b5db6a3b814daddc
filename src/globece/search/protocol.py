"""What a search is, and what is said about what it found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from globece.case.affected import Affected
from globece.directions.constraints import movable_features
from globece.errors import InvalidParameterError, TimeLimitError, check_count, wrong
from globece.progress import Monitor, TimeUp
from globece.search.headroom import Headroom
from globece.space import FloatArray

# One more direction must lower the score by this share to be worth reading.
PLATEAU = 0.02
MOST_DIRECTIONS = 10


class Proposal(NamedTuple):
    """What a search returns; the last one only if it knows."""

    directions: FloatArray  # (n, width)
    seen: int  # directions that were looked at
    headroom: Headroom | None = None


@runtime_checkable
class Search(Protocol):
    """Finds directions for affected inputs: :class:`globece.Climb`, :class:`globece.Race`, or one of your own."""

    @property
    def described(self) -> str:
        """What it does, for the provenance of a result."""
        ...

    @property
    def most(self) -> int | None:
        """Most directions that it can find; ``None`` where there is no such number."""
        ...

    def find(
        self, affected: Affected, wanted: int, plateau: float, rng: np.random.Generator, monitor: Monitor
    ) -> Proposal | tuple[FloatArray, int]:
        """Find up to ``wanted`` directions that together cover most at least cost.

        Parameters
        ----------
        affected
            Whom the directions are for.
        wanted
            How many to find at most.
        plateau
            Share by which one more direction must lower the score to be kept.
        rng
            Where all randomness comes from.
        monitor
            Told of progress, and asked whether to stop.

        Returns
        -------
        directions, seen
            ``(n, width)``, and how many directions were looked at; or a :class:`Proposal`, which may say more.
        """
        ...

    def within(self, rays: int) -> Search:
        """The same with an allowance of rays, if it follows any and was not told how many."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: directions, and what it did for them."""

    directions: FloatArray
    candidates: int
    notes: tuple[str, ...]
    headroom: Headroom | None = None


def find_directions(
    search: Search, affected: Affected, n_directions: int | Literal["auto"], rng: np.random.Generator, monitor: Monitor
) -> Found:
    """Find the n directions that together cover most at least cost, and say where fewer were found."""
    movable_features(affected.space)
    wanted = MOST_DIRECTIONS if n_directions == "auto" else n_directions
    plateau = PLATEAU if n_directions == "auto" else 0.0
    try:
        directions, seen, headroom = Proposal(*search.find(affected, wanted, plateau, rng, monitor))
    except TimeUp:
        raise TimeLimitError(
            f"time_limit of {monitor.time_limit:g} s was over before {affected.model.name} had judged the first "
            "directions; allow more time, or explain fewer rows"
        ) from None
    notes = []
    if n_directions != "auto" and len(directions) < wanted:
        why = (
            "the search was stopped before"
            if monitor.stopped
            else f"none of {seen:,} others looked at lowers the score"
        )
        notes.append(f"{len(directions)} direction(s) found where {wanted} were asked for: {why}")
    if monitor.stopped:
        notes.append(f"stopped early ({monitor.stopped}): this is the best found until then")
    return Found(directions, seen, tuple(notes), headroom)


def check_n_directions(n_directions: int | str, search: Search) -> int | Literal["auto"]:
    """Return ``n_directions`` if it can be searched for; otherwise raise."""
    if isinstance(n_directions, str):
        if n_directions != "auto":
            raise wrong("n_directions", "a whole number >= 1 or 'auto'", n_directions)
        return "auto"
    n = check_count("n_directions", n_directions)
    if search.most is not None and n > search.most:
        raise InvalidParameterError(
            f"n_directions is {n} but only {search.most} candidates are sampled; raise samples or ask for fewer"
        )
    return n
