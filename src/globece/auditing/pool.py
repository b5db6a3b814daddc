"""One pool of candidate directions for all groups, and what each of them does for every affected input.

Half of the affected inputs choose directions and the other half judges them, both ways. So each half climbs its own
candidates, for everybody in it and for each group in it, and all candidates are then followed on all inputs, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from globece.auditing.extra import ROUGH_POINTS, one_turn_more, unseen
from globece.case.affected import Affected, Case
from globece.case.ordering import content_order
from globece.case.scaling import Scaled, in_reach, scale
from globece.errors import TimeLimitError
from globece.progress import Monitor, TimeUp
from globece.rays import BUDGET_SLACK
from globece.search import Climb, Search, find_directions, greedy
from globece.search.protocol import MOST_DIRECTIONS, PLATEAU
from globece.space import FloatArray, IntArray

HALVES = (0, 1)
LEAST_RAYS = 1000  # that a climb follows for each direction, about
# Shares of the time, where it is limited, by when candidates are climbed, followed, and confirmed; checks come last.
CLIMBED, FOLLOWED, CONFIRMED = 0.4, 0.7, 0.85
FEWEST = 8  # affected inputs below which they are not split


@dataclass(frozen=True, slots=True)
class CandidateSearch:
    """How candidates are looked for.

    Attributes
    ----------
    n
        Directions for everybody, and for each group; ``"auto"`` for as many as lower the score noticeably.
    by
        How each climb or race is made.
    seed
        The same for everybody and for each group: the same inputs give the same candidates.
    monitor
        Told of progress, and asked whether to stop.
    """

    n: int | Literal["auto"]
    by: Search
    seed: int
    monitor: Monitor

    @property
    def most(self) -> int:
        """Most directions that anybody may choose."""
        return MOST_DIRECTIONS if self.n == "auto" else self.n

    @property
    def plateau(self) -> float:
        """Share by which one more direction must lower the score."""
        return PLATEAU if self.n == "auto" else 0.0

    @property
    def climbs(self) -> bool:
        """Whether it climbs: then there are other ways to find what a climb may miss."""
        return isinstance(self.by, Climb)


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Candidate directions and their minimum scalars and costs.

    Attributes
    ----------
    directions
        Each once, ``(m, width)``.
    scaled
        Minimum scalars and costs, ``(m, n)``.
    far
        The same within a larger budget, for other prices.
    from_half
        Which half's inputs, if any, a candidate was climbed on: ``(2, m)``.
    half
        Half of each affected input.
    seen
        Directions looked at.
    """

    directions: FloatArray
    scaled: Scaled
    far: Scaled
    from_half: IntArray
    half: IntArray
    seen: int

    @property
    def cost(self) -> FloatArray:
        """Minimum costs, ``(m, n)``."""
        return self.scaled.cost

    @property
    def by_half(self) -> tuple[IntArray, IntArray]:
        """The candidates of each half."""
        return np.flatnonzero(self.from_half[0]), np.flatnonzero(self.from_half[1])

    def only(self, inputs: IntArray) -> Pool:
        """The same for some inputs."""
        if len(inputs) == len(self.half):
            return self
        scaled, far = (Scaled(s.scalar[:, inputs], s.cost[:, inputs]) for s in (self.scaled, self.far))
        return replace(self, scaled=scaled, far=far, half=self.half[inputs])

    def best(self, inputs: IntArray, half: int | None, search: CandidateSearch, budget: float) -> IntArray:
        """The candidates that together cost these inputs least, of those climbed on one half or of all."""
        mine = np.arange(len(self.directions)) if half is None else self.by_half[half]
        if not len(inputs):
            return mine[:0]
        return mine[greedy(self.cost[np.ix_(mine, inputs)], budget, search.most, search.plateau)]


def halves(values: FloatArray, cells: IntArray, salt: int) -> IntArray:
    """Split inputs into two halves, each cell (a group at a level) as evenly as can be.

    The split depends on the inputs' content alone, not on how they are arranged or what the groups are called.
    """
    half = np.zeros(len(values), dtype=np.int64)
    order = content_order(values, salt)
    for cell in np.unique(cells):
        mine = order[cells[order] == cell]
        half[mine] = np.arange(len(mine)) % 2
    return half


def gather(
    case: Case,
    members: Sequence[IntArray],
    half: IntArray,
    search: CandidateSearch,
    reach: float = 1.0,
    shares: tuple[float, float] = (CLIMBED, FOLLOWED),
) -> tuple[Pool, IntArray]:
    """Climb candidates for everybody and for some groups in each half, and follow all of them on all inputs.

    Parameters
    ----------
    case
        Whose affected inputs travel.
    members
        Inputs of each group that has candidates of its own.
    half
        Half of each input.
    search
        How to look for candidates.
    reach
        Follow rays up to so many times the budget.
    shares
        Of the time, by when candidates should be climbed and followed.

    Returns
    -------
    pool, reached
        The candidates, and which inputs there was time to follow them on: the pool holds these only.

    Raises
    ------
    TimeLimitError
        If the time was over before each half had a candidate, or before anybody was reached.
    """
    everybody = np.arange(len(case.inputs))
    found: list[FloatArray] = []
    origin: list[int] = []
    seen = 0
    halves_ = np.unique(half).tolist()
    for left, h in zip(range(len(halves_), 0, -1), halves_, strict=True):
        mine = [m[half[m] == h] for m in (everybody, *members)]
        parts = [case.searched(m) for m in mine if len(m)]
        made, n = _candidates(parts, search, len(everybody), shares[0], left * len(parts))
        seen += n
        found += made
        origin += [h] * sum(map(len, made))
    directions, which = np.unique(case.cost.normalise(np.vstack(found)), axis=0, return_inverse=True)
    from_half = np.zeros((2, len(directions)), dtype=np.int64)
    from_half[origin, which.ravel()] = 1
    if len(np.unique(half)) == 1:
        from_half[:] = 1
    far = Scaled(np.empty((len(directions), len(half))), np.empty((len(directions), len(half))))

    def work(part: IntArray) -> None:
        some = replace(case.part(part), budget=reach * case.budget)
        scaled = scale(some, directions, model=case.model.thinned(ROUGH_POINTS))
        far.scalar[:, part], far.cost[:, part] = scaled.scalar, scaled.cost

    search.monitor.begin(shares[1])
    first, most = first_batch(case, search.monitor), case.inputs.at_once
    reached = in_reach(len(half), work, search.monitor, first=first, most=most)
    return Pool(directions, within(far, case.budget), far, from_half, half, seen).only(reached), reached


def first_batch(case: Case, monitor: Monitor) -> int:
    """How many inputs are followed at first: all of them, unless there is a time limit."""
    return len(case.inputs) if monitor.time_limit is None else 64 if case.model.exact else 8


def within(scaled: Scaled, budget: float) -> Scaled:
    """The same with what costs more than the budget taken for no recourse."""
    beyond = scaled.cost > budget * (1 + BUDGET_SLACK)
    return Scaled(np.where(beyond, np.inf, scaled.scalar), np.where(beyond, np.inf, scaled.cost))


def _candidates(
    parts: Sequence[Affected], search: CandidateSearch, n_inputs: int, share: float, left: int
) -> tuple[list[FloatArray], int]:
    """Candidates of everybody, who come first, and of groups in one half; and how many directions were looked at.

    Where there is a time limit, each climb gets its part of what is left of a share of it; a group for which there is
    no time has the candidates of the others.
    """
    climbed: list[FloatArray] = []
    more: list[FloatArray] = []
    seen, monitor = 0, search.monitor
    for i, part in enumerate(parts):
        rng = np.random.default_rng(search.seed)
        by = _shared_out(part, search, n_inputs)
        monitor.begin(share, part=1.0 / (left - i))
        if climbed:
            monitor.found()
        try:
            got = find_directions(by, part, search.n, rng, monitor)
            climbed.append(got.directions)
            seen += got.candidates
            if search.climbs:
                more += unseen(part, got.directions, rng)
        except TimeUp as why:
            monitor.interrupt(why)
        except TimeLimitError as why:
            if not climbed:
                raise
            monitor.interrupt(TimeUp(str(why)))
    if search.climbs and parts[0].model.unconditioned.half_spaces is None and len(climbed) == len(parts):
        monitor.begin(share)
        monitor.found()
        try:
            for i, part in enumerate(parts[1:], 1):
                others = np.unique(np.vstack([d for j, d in enumerate(climbed) if j != i]), axis=0)
                more.append(one_turn_more(part, climbed[i], others, search.most, search.seed))
        except TimeUp as why:
            monitor.interrupt(why)
    return [*climbed, *(directions for directions in more if len(directions))], seen


def _shared_out(part: Affected, search: CandidateSearch, n_inputs: int) -> Search:
    """The rays that an explanation of everybody would have, shared out over the climbs by their inputs.

    An explanation follows a least number of rays, however few inputs there are; many small groups would each do so.
    """
    per_input, least, most = part.model.allowance
    n = len(part.inputs)
    each = max(min(per_input * n, most), least * n / max(n_inputs, 1), LEAST_RAYS)
    return search.by.within(int(each))
