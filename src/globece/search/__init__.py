"""Affected inputs in, n directions out: a search climbs chains of moves, or lets a generator's candidates race.

Everything is judged by the score (mean minimum cost, with no recourse charged at the budget), so coverage and cost
pull together.
"""

from globece.search.asked import search_of
from globece.search.choice import greedy
from globece.search.climb import Climb, Effort
from globece.search.headroom import Headroom
from globece.search.protocol import Found, Proposal, Search, check_n_directions, find_directions
from globece.search.race import Race

__all__ = [
    "Climb",
    "Effort",
    "Found",
    "Headroom",
    "Proposal",
    "Race",
    "Search",
    "check_n_directions",
    "find_directions",
    "greedy",
    "search_of",
]
