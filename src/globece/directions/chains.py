"""Chains of moves, each of them one direction: features that glide, and blocks that turn, each at its own time.

A chain says what a reader would say: "reduce the duration; after one bin of that, also change the account". Time is k:
gliding features spend cost at a pace, a block turns to its target when its time has come. As a direction, a glide is an
entry of the pace, and a turn at time t is an entry of 1/t for the target (Theorem 2), so the breakpoints come in the
chain's order. A chain is sparse by design, and its neighbours are chains that differ by one thing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from globece.costs import CostModel
from globece.space import FeatureSpace, FloatArray

SOON = 0.01  # the time of a first turn: before anything else has happened
APART = 2.0  # factor between two turns' times
STOPS = (
    0.25,
    0.5,
    1.0,
    2.0,
    4.0,
    6.0,
    8.0,
)  # what has been spent on gliding when a block turns; the last are a last resort
SHARES = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)  # a new glide's pace, relative to those before it
NUDGES = (0.5, 0.8, 0.9, 1.1, 1.25, 2.0)
DIGITS = 2.0**13 + 1.0  # leaves the first 40 of 53 digits of a pace or time
DELAYS = (0.3, 0.5, 0.8, 1.25, 2.0, 3.0)


class Glide(NamedTuple):
    """A continuous or ordinal feature that moves, at so many units of cost per k; the sign is the way."""

    column: int
    pace: float


class Turn(NamedTuple):
    """A block that turns to one of its categories after a time."""

    block: int
    target: int
    when: float


class Chain(NamedTuple):
    """Moves that make up one direction."""

    glides: tuple[Glide, ...] = ()
    turns: tuple[Turn, ...] = ()

    @property
    def n_features(self) -> int:
        """How many features it moves."""
        return len(self.glides) + len(self.turns)

    def canonical(self) -> Chain:
        """The same ray with k in units of the cost spent on gliding; without glides, the first turn comes soon."""
        by = 0.0
        for glide in self.glides:
            by += abs(glide.pace)
        if not self.glides:
            by = SOON / min(turn.when for turn in self.turns)
        if by == 1.0:
            return self
        glides = tuple([Glide(column, _rounded(pace / by)) for column, pace in self.glides])
        return Chain(glides, tuple([Turn(block, target, _rounded(when * by)) for block, target, when in self.turns]))


def _rounded(number: float) -> float:
    """The number without its last digits, in which equal chains may differ (the split of Veltkamp 1968)."""
    high = number * DIGITS
    return high - (high - number)


def moves(space: FeatureSpace) -> list[Glide | Turn]:
    """Every single move that the space allows."""
    found: list[Glide | Turn] = []
    for b, f in enumerate(space.blocks):
        if f.can_move:
            found += [Turn(b, target, SOON) for target in range(f.width) if f.permitted[target]]
    for f in space.scalars:
        if f.can_move:
            found += [Glide(f.start, way) for way in ((float(f.sense),) if f.sense else (1.0, -1.0))]
    return found


def additions(chain: Chain, some: Sequence[Glide | Turn], most: int | None) -> list[Chain]:
    """The chain with one more move, or with a feature of it moved otherwise; a block's turn at every sensible time.

    Parameters
    ----------
    chain
        The chain so far.
    some
        Moves to try.
    most
        Most features in a chain.
    """
    found = [with_move(chain, move, option) for move in some for option in options(chain, move)]
    return found if most is None else [c for c in found if c.n_features <= most]


def options(chain: Chain, move: Glide | Turn) -> list[float]:
    """Times at which a block may turn in addition to the chain's moves, or paces at which a feature may glide."""
    if isinstance(move, Turn):
        return _times(tuple(t for t in chain.turns if t.block != move.block), chain.glides)
    pace = sum(abs(g.pace) for g in chain.glides if g.column != move.column)
    if pace:
        return [share * pace for share in SHARES]
    # alone against turns: beside them, long before them, long after them
    return [1.0, 0.1, 10.0, 0.01] if chain.turns else [1.0]


def with_move(chain: Chain, move: Glide | Turn, option: float) -> Chain:
    """The chain with one more move, at one of its :func:`options`, in place of another move of the same feature."""
    if isinstance(move, Turn):
        others = tuple(t for t in chain.turns if t.block != move.block)
        return Chain(chain.glides, (*others, Turn(move.block, move.target, option)))
    rest = tuple(g for g in chain.glides if g.column != move.column)
    return Chain((*rest, Glide(move.column, move.pace * option)), chain.turns)


def merged(chain: Chain, one: Chain, other: Chain) -> Chain | None:
    """A chain changed in the two ways in which two neighbours of it are; ``None`` if both change the same feature."""
    base, first, second = _by_feature(chain), _by_feature(one), _by_feature(other)
    changed = [{f for f in base.keys() | part.keys() if part.get(f) != base.get(f)} for part in (first, second)]
    if changed[0] & changed[1]:
        return None
    kept = {f: (first if f in changed[0] else second).get(f) for f in base.keys() | first.keys() | second.keys()}
    return Chain(
        tuple(m for m in kept.values() if isinstance(m, Glide)), tuple(m for m in kept.values() if isinstance(m, Turn))
    )


def _by_feature(chain: Chain) -> dict[tuple[int, int], Glide | Turn]:
    """The chain's moves by what they move."""
    return {(1, g.column): g for g in chain.glides} | {(0, t.block): t for t in chain.turns}


def replacements(chain: Chain, some: Sequence[Glide | Turn]) -> Iterator[Chain]:
    """The chain with another feature in place of one of its own, at its pace or time; the first of ``some`` first."""
    mine = _by_feature(chain)
    for move in some:
        if ((0, move.block) if isinstance(move, Turn) else (1, move.column)) in mine:
            continue
        for old, shorter in _without_each(chain):
            if isinstance(old, Glide) and isinstance(move, Glide):
                yield Chain((*shorter.glides, Glide(move.column, move.pace * abs(old.pace))), shorter.turns)
            elif isinstance(old, Turn) and isinstance(move, Turn):
                yield Chain(shorter.glides, (*shorter.turns, move._replace(when=old.when)))
            else:
                yield with_move(shorter, move, usual(options(shorter, move)))


def usual(some: list[float]) -> float:
    """One of the options of a move, rather early or slow."""
    return sorted(some)[len(some) // 3]


def shortened(chain: Chain) -> Iterator[Chain]:
    """The chain with one move left out."""
    return (shorter for _, shorter in _without_each(chain))


def _without_each(chain: Chain) -> Iterator[tuple[Glide | Turn, Chain]]:
    """Each move of a chain of several, and the chain without it."""
    glides, turns = chain
    if chain.n_features > 1:
        for i, glide in enumerate(glides):
            yield glide, Chain(glides[:i] + glides[i + 1 :], turns)
        for i, turn in enumerate(turns):
            yield turn, Chain(glides, turns[:i] + turns[i + 1 :])


def _times(turns: Sequence[Turn], glides: Sequence[Glide]) -> list[float]:
    """Times at which one more block may turn: before, between and after the others, and at stops along the glides."""
    taken = sorted({t.when for t in turns})
    times = {float(np.sqrt(a * b)) for a, b in pairwise(taken)}
    if taken:
        times |= {taken[0] / APART, taken[-1] * APART}
    elif not glides:
        times.add(SOON)
    if glides:
        pace = sum(abs(g.pace) for g in glides)
        times |= {SOON / pace, *(stop / pace for stop in STOPS)}
    return sorted(times)


def variations(chain: Chain) -> Iterator[Chain]:
    """The same moves otherwise: one left out, faster or slower, sooner or later, two turns exchanged."""
    glides, turns = chain
    yield from shortened(chain)
    for i, g in enumerate(glides):
        rest = glides[:i] + glides[i + 1 :]
        if rest or turns:
            for factor in NUDGES:
                yield Chain((*rest, Glide(g.column, g.pace * factor)), turns)
    for i, t in enumerate(turns):
        others = turns[:i] + turns[i + 1 :]
        if others or glides:
            for factor in DELAYS:
                yield Chain(glides, (*others, Turn(t.block, t.target, t.when * factor)))
    for a, b in combinations(turns, 2):
        others = tuple(t for t in turns if t not in (a, b))
        yield Chain(glides, (*others, a._replace(when=b.when), b._replace(when=a.when)))


def as_matrix(chains: Sequence[Chain], cost: CostModel) -> FloatArray:
    """Chains as directions, one per row."""
    space = cost.space
    starts = [f.start for f in space.blocks]
    row, column, entry = list[int](), list[int](), list[float]()
    for i, (glides, turns) in enumerate(chains):
        for glide in glides:
            rate = float(cost.rates[glide.column])
            row.append(i)
            column.append(glide.column)
            entry.append(glide.pace / rate if rate > 0 else glide.pace)
        for turn in turns:
            row.append(i)
            column.append(starts[turn.block] + turn.target)
            entry.append(1.0 / turn.when)
    found = np.zeros((len(chains), space.width))
    found[row, column] = entry
    return found
