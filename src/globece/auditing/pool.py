"""One pool of candidate directions for all groups, and what each of them does for every affected input.

The affected inputs are split into folds. Each fold climbs candidates of its own, for everybody in it and for each group
in it, and keeps those that help. All candidates are then followed on all inputs, once, and an input is judged by those
of the other folds only: by directions that were found without it. Each input so has the candidates of several climbs,
which makes what it pays depend little on how the folds were drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
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
from globece.space import BoolArray, FloatArray, IntArray

# Folds up to so many affected inputs: a climb takes its time however few inputs it has. The more folds, the
# less depends on how they were drawn; very many inputs take their time, and their folds are large anyway. The number of
# folds is even, as subgroups are searched on one half of them and tested on the other.
FOLDS = ((400, 2), (2500, 4), (20_000, 10), (float("inf"), 4))
# Of an explanation's least and most number of rays: all climbs' candidates are put together.
LEAST_SHARE, MOST_SHARE = 0.4, 0.73
LEAST_RAYS = 400  # that a climb follows for each direction, about
# Where each of everybody's directions lowers the score by so large a share, twice as many are climbed.
TOO_FEW = 0.2
KEPT = 8  # most candidates that a fold keeps for everybody, and for each group in it
USEFUL = 0.002  # share by which another candidate must lower the score to be kept
USEFUL_FOR = 500  # inputs that this is seen on
CHOSEN_ON = 2000  # most inputs by which candidates are chosen, for everybody and for each group
# Inputs up to which each candidate is followed on each; of more only on those that candidates are chosen by.
IN_FULL = 10_000
# Shares of the time, where it is limited, by when candidates are climbed, followed, and confirmed; checks come last.
CLIMBED, FOLLOWED, CONFIRMED = 0.4, 0.7, 0.85
FEWEST = 12  # affected inputs below which they are not split


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
    from_fold
        Which folds' inputs a candidate was climbed on: ``(folds, m)``.
    fold
        Fold of each affected input.
    seen
        Directions looked at.
    rank
        An order of the inputs by their content: some of many are the first of these.
    whole
        For which inputs every candidate was followed. For the others, candidates that cost more than another one that
        was found without their fold may be missing.
    ahead
        Candidates that were followed on all inputs: the best for everybody, and for each group.
    """

    directions: FloatArray
    scaled: Scaled
    far: Scaled
    from_fold: BoolArray
    fold: IntArray
    seen: int
    rank: IntArray
    whole: BoolArray
    ahead: IntArray

    @property
    def cost(self) -> FloatArray:
        """Minimum costs, ``(m, n)``."""
        return self.scaled.cost

    @property
    def is_split(self) -> bool:
        """Whether inputs are judged by directions that were found without them."""
        return len(self.from_fold) > 1

    def without(self, fold: int) -> IntArray:
        """The candidates that were found without a fold; all of them if the inputs are not split."""
        if not self.is_split:
            return np.arange(len(self.directions))
        return np.flatnonzero(np.delete(self.from_fold, fold, axis=0).any(axis=0))

    def only(self, inputs: IntArray) -> Pool:
        """The same for some inputs."""
        if len(inputs) == len(self.fold):
            return self
        scaled, far = (Scaled(s.scalar[:, inputs], s.cost[:, inputs]) for s in (self.scaled, self.far))
        kept = {name: getattr(self, name)[inputs] for name in ("fold", "rank", "whole")}
        return replace(self, scaled=scaled, far=far, **kept)

    def some(self, inputs: IntArray) -> IntArray:
        """Of many inputs those by which candidates are chosen."""
        found = _first(inputs, self.rank)
        return found[self.whole[found]]  # all of them, unless the work was interrupted

    def best(self, inputs: IntArray, fold: int | None, search: CandidateSearch, budget: float) -> IntArray:
        """The candidates that together cost these inputs least, of those found without a fold or of all."""
        mine = np.arange(len(self.directions)) if fold is None else self.without(fold)
        if not len(inputs) or not len(mine):
            return mine[:0]
        return mine[greedy(self.cost[np.ix_(mine, inputs)], budget, search.most, search.plateau)]


def n_folds(n: int) -> int:
    """Number of folds for so many people.

    >>> n_folds(200), n_folds(1000), n_folds(60_000)
    (2, 4, 4)
    """
    return next(folds for most, folds in FOLDS if n < most)


def folds(values: FloatArray, cells: IntArray, salt: int, n: int, cluster: IntArray | None = None) -> IntArray:
    """Split inputs into folds, each cell (a group at a level) as evenly as can be, and nobody's rows apart.

    The split depends on the inputs' content alone, not on how they are arranged or what the groups are called.
    """
    if cluster is not None:  # a person goes where one of their rows goes
        order = content_order(values, salt)
        _, first, whose = np.unique(cluster[order], return_index=True, return_inverse=True)
        one_each = order[first]
        found = np.empty(len(values), dtype=np.int64)
        found[order] = folds(values[one_each], cells[one_each], salt, n)[whose]
        return found
    fold = np.zeros(len(values), dtype=np.int64)
    for cell in np.unique(cells):
        mine = np.flatnonzero(cells == cell)
        mine = mine[content_order(values[mine], salt)]
        fold[mine] = (_start(values[mine[0]], salt) + np.arange(len(mine))) % n
    return fold


def _start(row: FloatArray, salt: int) -> int:
    """A number that depends on a row's content, so that cells of a few rows do not all begin with the same fold."""
    return int.from_bytes(blake2b((row + 0.0).tobytes(), digest_size=4, salt=salt.to_bytes(8, "little")).digest())


def gather(
    case: Case,
    members: Sequence[IntArray],
    fold: IntArray,
    search: CandidateSearch,
    shares: tuple[float, float] = (CLIMBED, FOLLOWED),
    climbing: int | None = None,
) -> tuple[Pool, IntArray]:
    """Climb candidates for everybody and for some groups in each fold, and follow all of them on all inputs.

    Parameters
    ----------
    case
        Whose affected inputs travel.
    members
        Inputs of each group that has candidates of its own.
    fold
        Fold of each input.
    search
        How to look for candidates.
    shares
        Of the time, by when candidates should be climbed and followed.
    climbing
        Most folds in which candidates are climbed; all of them by default.

    Returns
    -------
    pool, reached
        The candidates, and which inputs there was time to follow them on: the pool holds these only.

    Raises
    ------
    TimeLimitError
        If the time was over before each fold had a candidate, or before anybody was reached.
    """
    everybody = np.arange(len(case.inputs))
    found: list[FloatArray] = []
    origin: list[int] = []
    seen = 0
    numbers = np.unique(fold)[:climbing].tolist()
    for left, f in zip(range(len(numbers), 0, -1), numbers, strict=True):
        mine = [m[fold[m] == f] for m in (everybody, *members)]
        parts = [case.searched(m) for m in mine if len(m)]
        made, n = _candidates(parts, search, len(everybody), shares[0], left * len(parts))
        seen += n
        found.append(made)
        origin += [f] * len(made)
    directions, which = np.unique(case.cost.normalise(np.vstack(found)), axis=0, return_inverse=True)
    from_fold = np.zeros((int(fold.max()) + 1, len(directions)), dtype=bool)
    from_fold[origin, which.ravel()] = True
    rank = np.empty(len(fold), dtype=np.int64)
    rank[content_order(case.inputs.values, search.seed)] = np.arange(len(fold))
    sets = [_first(m, rank) for m in (everybody, *members)]
    whole = np.ones(len(fold), dtype=bool)
    # with a time limit those reached must be a random sample, and a black box is asked along the whole ray anyway
    if len(fold) > IN_FULL and case.model.exact and search.monitor.time_limit is None:
        whole[:] = False
        whole[np.concatenate(sets)] = True
    followed = Scaled(*np.full((2, len(directions), len(fold)), np.inf))
    pool = Pool(directions, followed, followed, from_fold, fold, seen, rank, whole, np.arange(len(directions)))
    rough = case.model.thinned(ROUGH_POINTS)

    def follow(part: IntArray) -> None:
        scaled = scale(case.part(part), directions, model=rough)
        followed.scalar[:, part], followed.cost[:, part] = scaled.scalar, scaled.cost

    search.monitor.begin(shares[1])
    first, most = first_batch(case, search.monitor), case.inputs.at_once
    here = np.flatnonzero(whole)
    reached = here[in_reach(len(here), lambda part: follow(here[part]), search.monitor, first=first, most=most)]
    if len(reached) == len(here) < len(fold):
        best = [pool.best(mine, None, search, case.budget) for mine in sets]
        pool = replace(pool, ahead=np.unique(np.concatenate(best)))
        rest = np.flatnonzero(~whole)
        least = _Least(case, pool)
        more = in_reach(len(rest), lambda part: least.follow(rest[part]), search.monitor, first=first, most=most)
        reached = np.sort(np.concatenate([reached, rest[more]]))
    return pool.only(reached), reached


def _first(inputs: IntArray, rank: IntArray) -> IntArray:
    """The first of these inputs by rank."""
    if len(inputs) <= CHOSEN_ON:
        return inputs
    return np.sort(inputs[np.argsort(rank[inputs], kind="stable")[:CHOSEN_ON]])


@dataclass(frozen=True, slots=True)
class _Least:
    """Follows the candidates ahead, and the others only as far as they cost an input less."""

    case: Case
    pool: Pool

    def follow(self, part: IntArray) -> None:
        """Enter minimum scalars and costs of some inputs into the pool."""
        pool = self.pool
        for f in np.unique(pool.fold[part]).tolist():
            mine = part[pool.fold[part] == f]
            allowed = pool.without(f)
            paid = self._followed(pool.ahead, mine, np.full(len(mine), self.case.budget))
            least = np.minimum(paid[np.isin(pool.ahead, allowed)].min(axis=0, initial=np.inf), self.case.budget)
            self._followed(np.setdiff1d(allowed, pool.ahead), mine, least)

    def _followed(self, candidates: IntArray, mine: IntArray, within: FloatArray) -> FloatArray:
        scaled = scale(self.case.part(mine), self.pool.directions[candidates], within=within)
        at = np.ix_(candidates, mine)
        self.pool.scaled.scalar[at], self.pool.scaled.cost[at] = scaled.scalar, scaled.cost
        return scaled.cost


def first_batch(case: Case, monitor: Monitor) -> int:
    """How many inputs are followed at first: all of them, unless there is a time limit."""
    return len(case.inputs) if monitor.time_limit is None else 64 if case.model.exact else 8


def within(scaled: Scaled, budget: float) -> Scaled:
    """The same with what costs more than the budget taken for no recourse."""
    beyond = scaled.cost > budget * (1 + BUDGET_SLACK)
    return Scaled(np.where(beyond, np.inf, scaled.scalar), np.where(beyond, np.inf, scaled.cost))


def _candidates(
    parts: Sequence[Affected], search: CandidateSearch, n_inputs: int, share: float, left: int
) -> tuple[FloatArray, int]:
    """Candidates of everybody, who come first, and of groups in one fold; and how many directions were looked at.

    Where there is a time limit, each climb gets its part of what is left of a share of it; a group for which there is
    no time has the candidates of the others.
    """
    climbed: list[FloatArray] = []
    more: list[FloatArray] = []
    seen, monitor = 0, search.monitor
    for i, part in enumerate(parts):
        rng = np.random.default_rng(search.seed)
        by = _shared_out(part, search, n_inputs, len(parts))
        monitor.begin(share, part=1.0 / (left - i))
        if climbed:
            monitor.found()
        try:
            got = find_directions(by, part, search.n, rng, monitor)
            seen += got.candidates
            if i == 0 < len(parts) - 1 and _too_few(part, got.directions, search):
                got = find_directions(by, part, 2 * search.most, np.random.default_rng(search.seed), monitor)
                seen += got.candidates
            climbed.append(got.directions)
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
    every = np.vstack([*climbed, *more])
    try:
        every = _useful(parts, every, search.most)
    except TimeUp as why:
        monitor.interrupt(why)
    return every, seen


def _too_few(part: Affected, directions: FloatArray, search: CandidateSearch) -> bool:
    """Whether each of the directions that were asked for lowers the score by a large share."""
    if search.n == "auto" or not search.climbs or len(directions) < 2:
        return False
    some = replace(part, inputs=part.inputs[np.sort(content_order(part.inputs, 0)[:USEFUL_FOR])])
    cost = np.minimum(scale(some, directions, model=part.model.thinned(ROUGH_POINTS)).cost, part.budget)
    whole = float(cost.min(axis=0).sum())
    without = min(float(np.delete(cost, i, axis=0).min(axis=0).sum()) for i in range(len(directions)))
    return whole < without * (1.0 - TOO_FEW)


def _useful(parts: Sequence[Affected], directions: FloatArray, most: int) -> FloatArray:
    """The candidates that help everybody, or a group, in the fold in which they were found."""
    kept: list[int] = []
    for part in parts:
        order = content_order(part.inputs, 0)[:USEFUL_FOR]
        some = replace(part, inputs=part.inputs[np.sort(order)])
        cost = scale(some, directions, model=part.model.thinned(ROUGH_POINTS)).cost
        kept += greedy(cost, part.budget, max(KEPT, most), USEFUL).tolist()
    return directions[np.unique(kept)]


def _shared_out(part: Affected, search: CandidateSearch, n_inputs: int, n_parts: int) -> Search:
    """The rays that an explanation of everybody would have, shared out over the climbs by their inputs.

    An explanation follows a least number of rays, however few inputs there are; many small groups would each do so.
    It also follows a largest number, which all climbs together keep to.
    """
    per_input, least, most, _ = part.model.allowance
    n = len(part.inputs)
    each = max(
        min(per_input * n, MOST_SHARE * most / (n_folds(n_inputs) * n_parts)),
        LEAST_SHARE * least * n / max(n_inputs, 1),
        LEAST_RAYS,
    )
    return search.by.within(int(each))
