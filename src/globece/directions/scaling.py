"""What directions do for the affected inputs: minimum scalars, their costs, and the score that they are judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from globece import rays
from globece.bundle import bundle
from globece.directions.protocol import Problem
from globece.errors import TimeLimitError
from globece.models.base import Model
from globece.pricing import costs_at, horizons
from globece.progress import AT_A_TIME, INTERRUPTIONS, Monitor, Pace
from globece.space import FloatArray, IntArray

UNHURRIED = 2.0  # seconds that a batch takes where there is no time limit


@dataclass(frozen=True, slots=True)
class Scaled:
    """Smallest scalar and its cost for each direction and input; ``inf`` where there is no recourse."""

    scalar: FloatArray  # (m, n)
    cost: FloatArray  # (m, n), in the cost model's units
    flip: FloatArray | None = None  # (m, n), where each first flips, whatever that costs; where it is known


def scale(
    problem: Problem, directions: FloatArray, *, model: Model | None = None, within: FloatArray | None = None
) -> Scaled:
    """Minimum scalars and costs of every input under each direction, within the budget.

    Cost never falls along a ray, so the first flip is the cheapest, and what it costs decides whether it counts.

    Parameters
    ----------
    problem, directions
        Whose inputs are to travel, and along what.
    model
        The model to ask, if it is not the problem's.
    within
        A budget for each input, in place of the problem's: what costs more is of no interest.
    """
    Z, cost = problem.inputs, problem.cost
    routes = bundle(problem.space, directions)
    budget: float | FloatArray = problem.budget if within is None else within
    limit = limits(problem, directions, within=within)
    scalar = (model or problem.model).first_flip(Z, directions, limit)
    paid = costs_at(cost, Z, routes, scalar)
    beyond = paid > budget * (1 + rays.BUDGET_SLACK)
    return Scaled(np.where(beyond, np.inf, scalar), np.where(beyond, np.inf, paid), scalar)


def limits(problem: Problem, directions: FloatArray, *, within: FloatArray | None = None) -> FloatArray:
    """Largest scalar that matters on each ray: ``(m, n)``; the parameters are those of :func:`scale`."""
    budget: float | FloatArray = problem.budget if within is None else within
    found = horizons(problem.cost, problem.inputs, bundle(problem.space, directions), budget)
    return found if problem.max_scalar is None else np.minimum(found, problem.max_scalar)


def in_reach(n: int, work: Callable[[IntArray], None], monitor: Monitor, *, first: int, most: int) -> IntArray:
    """Do some work for ``n`` inputs in batches, for as many of them as there is time; return which.

    They come in a random order, so that those who are reached stand for all.

    Parameters
    ----------
    n
        How many inputs there are.
    work
        Called with the positions of some of them, ascending.
    monitor
        Asked whether the time is up, and told if that, or Ctrl-C, left somebody out.
    first, most
        Size of the first batch, and of the largest; later ones take about as long as they should.

    Raises
    ------
    TimeLimitError
        If the time was over before the first batch was done.
    """
    pace, done = Pace(first, AT_A_TIME if monitor.time_limit is not None else UNHURRIED), 0
    order = np.arange(n) if n <= min(first, most) else np.random.default_rng(0).permutation(n)
    try:
        while done < n:
            if done and monitor.is_over():
                break
            part = np.sort(order[done : done + min(pace.size, most)])
            pace.start()
            work(part)
            pace.done(len(part))
            done += len(part)
            monitor.found()
    except INTERRUPTIONS as why:
        if not done and isinstance(why, KeyboardInterrupt):
            raise
        monitor.interrupt(why)
    if n and not done:
        raise TimeLimitError(
            f"time_limit of {monitor.time_limit:g} s was over before any of the {n:,} affected inputs was scaled along "
            "the directions found; allow more time, or explain fewer rows"
        )
    return np.sort(order[:done])


def score(costs: FloatArray, budget: float) -> float:
    """Mean of the minimum costs, with no recourse charged at the budget; the same in whatever order rows come."""
    if not costs.size:
        return 0.0
    return float(np.sort(np.minimum(costs, budget)).sum() / costs.size)


def content_order(Z: FloatArray, salt: int) -> IntArray:
    """A random order of rows that depends on their content and the salt alone, not on how they are arranged.

    So a subset taken from its front is the same however the rows were sorted or split. Rows that are alike are spread
    out: the second of them has another place than the first, and which of them is the second does not matter.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.repeat([[0.0], [1.0]], 500, axis=0)
    >>> bool(100 < Z[content_order(Z, 1)[:300], 0].sum() < 200)
    True
    """
    same = np.where(np.isnan(Z), np.nan, np.where(Z == 0.0, 0.0, Z))  # one NaN and one zero
    bits = np.ascontiguousarray(same).view(np.uint64)
    mixed = np.full(len(Z), salt, dtype=np.uint64)
    for column in bits.T:
        mixed = _mix(mixed, column)
    order = np.argsort(mixed, kind="stable")
    fresh = np.diff(mixed[order], prepend=mixed[order[:1]] + np.uint64(1)) != 0
    place = np.arange(len(Z))
    repeat = np.empty(len(Z), dtype=np.uint64)  # how many rows alike come before each
    repeat[order] = place - np.maximum.accumulate(np.where(fresh, place, 0))
    return np.argsort(_mix(mixed, repeat), kind="stable")


def _mix(seed: NDArray[np.uint64], value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014)."""
    with np.errstate(over="ignore"):
        mixed = (seed ^ value) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))
