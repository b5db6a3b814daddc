"""Minimum scalars of the affected inputs along directions, and their costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from globece import rays
from globece.bundle import bundle
from globece.case.affected import Affected
from globece.errors import TimeLimitError
from globece.models.base import Model
from globece.pricing import costs_at, horizons
from globece.progress import AT_A_TIME, INTERRUPTIONS, Monitor, Pace
from globece.space import FloatArray, IntArray

LOST = 8  # a batch without a time limit is at most this part of all inputs: what Ctrl-C loses


@dataclass(frozen=True, slots=True)
class Scaled:
    """Smallest scalar and its cost for each direction and input; ``inf`` where there is no recourse."""

    scalar: FloatArray  # (m, n)
    cost: FloatArray  # (m, n), in the cost model's units
    flip: FloatArray | None = None  # (m, n), the first flip whatever it costs, if known


def scale(
    problem: Affected, directions: FloatArray, *, model: Model | None = None, within: FloatArray | None = None
) -> Scaled:
    """Minimum scalars and costs of every input under each direction, within the budget.

    Cost never falls along a ray, so the first flip is the cheapest.

    Parameters
    ----------
    problem, directions
        The inputs, and the directions.
    model
        The model to follow; by default the problem's.
    within
        A budget for each input, in place of the problem's.
    """
    Z, cost = problem.inputs, problem.cost
    routes = bundle(problem.space, directions)
    budget: float | FloatArray = problem.budget if within is None else within
    limit = limits(problem, directions, model=model, within=within)
    scalar = (model or problem.model).first_flip(Z, directions, limit)
    paid = costs_at(cost, Z, routes, scalar)
    beyond = paid > budget * (1 + rays.BUDGET_SLACK)
    return Scaled(np.where(beyond, np.inf, scalar), np.where(beyond, np.inf, paid), scalar)


def limits(
    problem: Affected, directions: FloatArray, *, model: Model | None = None, within: FloatArray | None = None
) -> FloatArray:
    """Largest scalar that matters on each ray: ``(m, n)``; the parameters are those of :func:`scale`."""
    Z, routes = problem.inputs, bundle(problem.space, directions)
    found = horizons(problem.cost, Z, routes, problem.budget if within is None else within)
    if not (model or problem.model).exact:
        # the points at which a ray is searched depend on its end, which must not depend on the budget if it can
        whole = horizons(problem.cost, Z, routes, np.inf)
        found = np.where(np.isfinite(whole), whole, found)
    return found if problem.max_scalar is None else np.minimum(found, problem.max_scalar)


def in_reach(n: int, work: Callable[[IntArray], None], monitor: Monitor, *, first: int, most: int) -> IntArray:
    """Process ``n`` inputs in batches, as many as there is time for; return which.

    They come in random order, so that those reached are a random sample.

    Parameters
    ----------
    n
        Number of inputs.
    work
        Called with the positions of some of them, ascending.
    monitor
        Says whether the time is up, and is told if that, or Ctrl-C, left inputs out.
    first, most
        Size of the first batch, and of the largest. Under a time limit later sizes are adapted to the time that batches
        take; otherwise they are the same on any machine, and so is what the model is asked.

    Raises
    ------
    TimeLimitError
        If the time was over before the first batch was done.
    """
    pace, done = Pace(first, AT_A_TIME) if monitor.time_limit is not None else None, 0
    size, largest = first, max(first, n // LOST)
    order = np.arange(n) if n <= min(first, most) else np.random.default_rng(0).permutation(n)
    try:
        while done < n:
            if done and monitor.is_over():
                break
            part = np.sort(order[done : done + min(pace.size if pace else size, most)])
            if pace is not None:
                pace.start()
            work(part)
            if pace is not None:
                pace.done(len(part))
            size = min(2 * size, largest)
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
