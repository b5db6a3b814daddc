"""Rays through half-spaces on a GPU: passes rows to ``rays.cu`` in batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from globece.bundle import Bundle
from globece.models.cuda.machine import Machine, threads_for
from globece.progress import check_time
from globece.space import BoolArray, FloatArray

SOURCE = Path(__file__).with_name("rays.cu")
MOST_RAYS = 1 << 22  # at a time
# Rows take about as long to get to a GPU as one direction takes on two cores: it pays along several.
WORTHWHILE, DIRECTIONS = 1_000_000, 4  # rays; directions

SIZE = np.dtype(
    [(n, "i8") for n in ("rows", "directions")]
    + [(n, "i4") for n in ("width", "margins", "events", "categories", "movers", "switches")]
)


def work_of(routes: Bundle, limit: FloatArray) -> float:
    """Number of rays that the kernel follows: none where columns move in whole steps, or along few directions."""
    return float(limit.size) if len(limit) >= DIRECTIONS and not routes.whole.any() else 0.0


def follow(
    machine: Machine,
    Z: FloatArray,
    base: tuple[FloatArray, FloatArray],
    closed: BoolArray,
    limit: FloatArray,
    begin: FloatArray,
    routes: Bundle,
    weights: Any,
) -> FloatArray:
    """The same as :func:`globece.models.linear.kernel.walk` for all rows, to the last bit."""
    out, m = np.empty(limit.shape), base[0].shape[1]
    movers, switches = np.diff(routes.first_mover), np.diff(routes.first_switch)
    edges = np.diff(weights.first_edge[routes.first_mover])
    size = np.zeros(1, SIZE)
    size["directions"], size["width"], size["margins"] = len(limit), Z.shape[1], m
    size["events"], size["categories"] = max(1, (movers + edges + switches).max()), routes.bound.shape[1]
    ways = (routes.first_mover, routes.column, routes.step, routes.low, routes.high)
    blocks = (routes.first_switch, routes.start, routes.size, routes.bound)
    there = [_put(machine, a) for a in (*ways, *blocks, *weights)]
    sides = _put(machine, closed.astype(np.uint8))
    most, events, n_switches = max(1, MOST_RAYS // max(1, len(limit))), int(size["events"][0]), max(1, switches.max())
    threads = threads_for(machine, min(most, len(Z)) * len(limit), 20 * events + 4 * n_switches + 24 * m)
    scratch = [machine.empty(threads * events, kind) for kind in (np.float64, np.int32, np.int32, np.int32)]
    scratch += [machine.empty(threads * n_switches, np.int32), machine.empty(threads * 3 * m, np.float64)]
    for first in range(0, len(Z), most):
        check_time()
        rows = slice(first, min(len(Z), first + most))
        size["rows"] = rows.stop - first
        found = machine.empty(len(limit) * (rows.stop - first), np.float64)
        starts = begin if begin.size == 1 else begin[:, rows]
        per_row = [_put(machine, a[rows]) for a in (Z, *base)]
        machine.call(
            SOURCE, "follow_rays", threads, machine.put(size), *per_row, sides, _put(machine, limit[:, rows]),
            _put(machine, starts), int(begin.size > 1), *there, *scratch, found,
        )  # fmt: skip
        out[:, rows] = machine.get(found).reshape(len(limit), -1)
    return out


def _put(machine: Machine, array: Any) -> Any:
    """Copy an array there; one number in place of none."""
    return machine.put(array if array.size else np.zeros(1, array.dtype))
