"""Rays through trees on a GPU: lays out an ensemble for ``rays.cu``, and passes rows to it in batches.

See :mod:`globece.models.cuda.machine` for what runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from globece.models.cuda.machine import Machine, threads_for
from globece.models.trees import rays
from globece.models.trees.decision_rule import PROBABILITY_SINGLE, DecisionRule
from globece.models.trees.layout import Ranks, Routes, SpaceArrays, Trees, frozen
from globece.models.trees.slots import LINEAR, SWITCH, WHOLE
from globece.progress import check_time
from globece.space import FloatArray

SOURCE = Path(__file__).with_name("rays.cu")
WORTHWHILE = 1e6  # rays times trees: from there on several times as fast as two cores, see BENCHMARKS.md
MOST_RAYS = 1 << 22  # at a time: bounds the memory for rows, and the time between looks at the clock

NODE = np.dtype([("threshold", "f8"), ("slot", "i4"), ("child", "i4")])
MOVE = np.dtype(
    [(n, "f8") for n in ("step", "pace", "low", "high")]
    + [(n, "i4") for n in ("kind", "block", "category", "target", "bounds", "unused")]
)
RULE = np.dtype(
    [(n, "f8") for n in ("cut", "divisor", "origin", "boundary", "band", "drift")]
    + [(n, "i4") for n in ("kind", "favourable", "single", "scalar", "outputs", "leaf_width")]
)
SIZE = np.dtype(
    [(n, "i8") for n in ("rows", "directions")] + [(n, "i4") for n in ("width", "blocks", "trees", "places")]
)


def is_supported(rule: DecisionRule) -> bool:
    """Whether the kernel knows the rule; thresholds on one of several probabilities need exponentials throughout."""
    return rule.kind < PROBABILITY_SINGLE


@dataclass(frozen=True)
class Follower:
    """An ensemble that lies on a device.

    Attributes
    ----------
    machine
        The device.
    trees, rule, space
        The ensemble.
    arrays
        The ensemble's arrays on the device, in the kernel's order.
    places
        Size of the tournament over the trees.
    """

    machine: Machine
    trees: Trees
    rule: DecisionRule
    space: SpaceArrays
    arrays: tuple[Any, ...]
    places: int

    @classmethod
    def of(cls, machine: Machine, trees: Trees, rule: DecisionRule, space: SpaceArrays) -> Follower:
        """Lay out an ensemble and copy it to a device."""
        nodes = np.zeros(len(trees.threshold), NODE)
        nodes["threshold"], nodes["slot"] = trees.threshold, trees.slot
        nodes["child"] = np.where(trees.child < 0, -1, 2 * trees.child + (trees.missing != 0))
        how = np.zeros(1, RULE)
        for name in ("cut", "divisor", "origin", "boundary", "band", "drift", "kind", "favourable", "single", "scalar"):
            how[name] = getattr(rule, name)
        how["outputs"], how["leaf_width"] = len(rule.start), trees.outputs.shape[1]
        odd = (trees.odd_slot, trees.odd_start, trees.odd_cut, trees.odd_side)
        arrays = (how, nodes, trees.roots, trees.output, trees.outputs, *odd, rule.start)
        there = tuple(machine.put(a if a.size else np.zeros(1, a.dtype)) for a in arrays)
        return cls(machine, trees, rule, space, there, 1 << (len(trees.roots) - 1).bit_length())

    def follow(self, routes: Routes, Z: FloatArray, limit: FloatArray, start: FloatArray) -> FloatArray:
        """The same as :func:`globece.models.trees.rays.follow`, to the last bit."""
        n_directions, out = len(limit), np.empty(limit.shape)
        most = max(1, MOST_RAYS // max(1, n_directions))
        moves, bounds = self.machine.put(self._moves(routes)), self.machine.put(np.append(routes.bounds, np.inf))
        blocks = [self.machine.put(np.append(a, 0).astype(np.int32)) for a in self.space[3:]]
        room = self._room(min(most, len(Z)) * n_directions)
        for first in range(0, len(Z), most):
            check_time()
            rows = slice(first, min(len(Z), first + most))
            begin = start if start.size == 1 else start[:, rows]
            out[:, rows] = self._batch((moves, bounds, *blocks), Z[rows], limit[:, rows], begin, room)
        lost = np.flatnonzero(np.isnan(out).any(axis=0))
        if len(lost):
            begin = start if start.size == 1 else np.ascontiguousarray(start[:, lost])
            some = np.ascontiguousarray(Z[lost]), np.ascontiguousarray(limit[:, lost]), begin
            out[:, lost] = rays.follow(self.trees, self._ranks, self.rule, self.space, routes, *some)
        return out

    def _batch(
        self, routes: tuple[Any, ...], Z: FloatArray, limit: FloatArray, start: FloatArray, room: tuple[Any, ...]
    ) -> FloatArray:
        """Follow some rows along all directions."""
        machine, (moves, bounds, block_start, block_stop) = self.machine, routes
        threads, *scratch = room
        n_blocks, n_rays = len(self.space.block_start), limit.size
        size = np.zeros(1, SIZE)
        size["rows"], size["directions"], size["width"], size["blocks"] = len(Z), len(limit), Z.shape[1], n_blocks
        size["trees"], size["places"] = len(self.trees.roots), self.places
        there, rows, codes = machine.put(size), machine.put(Z), machine.empty(max(1, len(Z) * n_blocks), np.int32)
        if n_blocks:
            machine.call(
                SOURCE, "find_codes", min(threads, len(Z) * n_blocks), there, rows, block_start, block_stop, codes
            )
        rule, *trees = self.arrays
        found = machine.empty(n_rays, np.float64)
        machine.call(
            SOURCE, "follow_rays", threads, there, rule, *trees, moves, bounds, rows, codes, machine.put(limit),
            machine.put(start), int(start.size > 1), *scratch, found,
        )  # fmt: skip
        return np.asarray(machine.get(found)).reshape(limit.shape)

    @cached_property
    def _ranks(self) -> Ranks:
        return frozen(Ranks.of(self.trees, len(self.space.low) + len(self.space.block_start)))

    def _room(self, n_rays: int) -> tuple[Any, ...]:
        """Number of threads, and the memory in which each keeps its leaves, its tournament and its sums."""
        n_trees, n_sums = len(self.trees.roots), 2 * len(self.rule.start)
        each = 4 * n_trees + 12 * self.places + 8 * n_sums
        threads = threads_for(self.machine, n_rays, each)
        sizes = ((n_trees, np.int32), (self.places, np.float64), (self.places, np.int32), (n_sums, np.float64))
        return threads, *(self.machine.empty(threads * n, kind) for n, kind in sizes)

    def _moves(self, routes: Routes) -> Any:
        """How each direction moves each slot."""
        space, width = self.space, len(self.space.low)
        out = np.zeros((len(routes.mover_start) - 1, width + len(space.block_start)), MOVE)
        owner = np.repeat(np.arange(len(out)), np.diff(routes.mover_start))
        column, size = routes.mover_column, np.abs(routes.mover_step)
        movers = np.zeros(len(owner), MOVE)
        movers["step"], movers["low"], movers["high"] = routes.mover_step, space.low[column], space.high[column]
        movers["kind"] = np.where(space.whole[column] != 0, WHOLE, LINEAR)
        movers["pace"] = np.divide(1.0, size, out=np.zeros(len(size)), where=size > 1e-300)
        out[owner, column] = movers
        owner = np.repeat(np.arange(len(out)), np.diff(routes.switch_start))
        for q, d in enumerate(owner):
            b = routes.switch_block[q]
            columns = np.arange(space.block_start[b], space.block_stop[b])
            one = np.zeros(len(columns) + 1, MOVE)
            one["kind"], one["block"], one["category"] = SWITCH, b, [*range(len(columns)), -1]
            one["target"], one["bounds"] = routes.switch_target[q], routes.bound_start[q]
            out[d, [*columns, width + b]] = one
        return out
