"""Real, or an artefact of the search? The same comparison with more candidates, other costs, and lower bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from globece.audit.pool import Pool
from globece.bounds import lower_bound
from globece.bundle import bundle
from globece.costs import CostModel
from globece.directions.protocol import Problem
from globece.directions.scaling import Scaled, scale
from globece.errors import GlobeCEError
from globece.pricing import costs_at
from globece.space import FloatArray

DRAWS = 5  # random weights
FACTOR = 2.0  # by which a feature's weight may be off, either way


@dataclass(frozen=True, slots=True)
class Outcome:
    """The headline comparison under other conditions: group means of the score, the gap between them, and p."""

    scores: Mapping[str, float]
    gap: float
    p: float


@dataclass(frozen=True, slots=True)
class Check:
    """Whether the verdict survives one change of how it was found.

    Attributes
    ----------
    name
        What was changed.
    scores
        Score of each group then.
    gap, p
        The headline gap then, and its p.
    survives
        Whether it leads to the same verdict; ``None`` where it cannot tell.
    remark
        What it says, in words.
    """

    name: str
    scores: Mapping[str, float]
    gap: float
    p: float
    survives: bool | None
    remark: str


Judge = Callable[[FloatArray], Outcome]  # of each affected input's minimum cost


def same_verdict(first: Outcome, then: Outcome, level: float) -> bool:
    """Whether both find the same gap, or both find none."""
    if first.p >= level:
        return then.p >= level
    return bool(then.p < level and np.sign(then.gap) == np.sign(first.gap))


def more_candidates(first: Outcome, then: Outcome, n: tuple[int, int], level: float) -> Check:
    """Say what twice the candidates did."""
    remark = f"{n[1]} candidate directions instead of {n[0]}, and twice as many chosen"
    return Check("more candidates", then.scores, then.gap, then.p, same_verdict(first, then, level), remark)


def cost_models(
    problem: Problem, pool: Pool, rows: FloatArray, judge_pool: Callable[[Pool], Outcome], first: Outcome, level: float
) -> Iterator[Check]:
    """Price the same directions otherwise: by deciles or bins, and with weights that are off.

    Parameters
    ----------
    problem, pool
        The affected inputs, and the candidates.
    rows
        All rows, encoded, for their deciles.
    judge_pool
        Lets the groups choose from a pool, and compares them.
    first
        What was found with the costs as they are.
    level
        Of the test.
    """
    cost, space = problem.cost, problem.space
    weights = dict(zip(space.names, cost.weights.tolist(), strict=True))
    if any(f.kind == "continuous" for f in space.movable):  # to others bins and deciles are one
        if cost.kind == "deciles":
            name, other = "equal-width bins", CostModel.bins(space, weights=weights, norm=cost.norm)
        else:
            name, other = "deciles", CostModel.deciles(space, space.decode(rows), weights=weights, norm=cost.norm)
        then = judge_pool(repriced(problem, pool, other))
        remark = f"a change priced by {name} instead of {cost.kind}"
        yield Check(name, then.scores, then.gap, then.p, same_verdict(first, then, level), remark)
    found = []
    rng = np.random.default_rng(0)
    for _ in range(DRAWS):
        factor = FACTOR ** rng.uniform(-1.0, 1.0, len(space.features))
        found.append(judge_pool(repriced(problem, pool, replace(cost, weights=cost.weights * factor))))
    same = [same_verdict(first, then, level) for then in found]
    middle = found[int(np.argsort([o.gap for o in found])[DRAWS // 2])]
    remark = f"{sum(same)} of {DRAWS} draws agree, each feature's weight off by up to a factor of {FACTOR:g}"
    yield Check("other weights", middle.scores, middle.gap, middle.p, all(same), remark)


def bounds(problem: Problem, judge: Judge, first: Outcome, level: float) -> Check:
    """Compare what recourse costs each input at least, whatever the directions."""
    try:
        found = lower_bound(problem)
    except GlobeCEError as error:
        return Check("lower bound", {}, np.nan, np.nan, None, str(error))
    beyond = found.cost > problem.budget
    then = judge(np.where(beyond, np.inf, found.cost))
    agrees = same_verdict(first, then, level)
    if found.exact:
        return Check("lower bound", then.scores, then.gap, then.p, agrees, "the exact minimum over any change at all")
    # a loose bound proves nothing where it differs: it may be looser for one group than for another
    verdict = True if agrees else None
    remark = "a bound over any change at all" + ("" if agrees else ", too loose to tell")
    return Check("lower bound", then.scores, then.gap, then.p, verdict, remark)


def repriced(problem: Problem, pool: Pool, cost: CostModel) -> Pool:
    """The same candidates at other prices; only an exact model is followed again, as its rays are cheap."""
    asked = replace(problem, cost=cost)
    if problem.model.exact:
        return replace(pool, scaled=scale(asked, pool.directions))
    paid = costs_at(cost, problem.inputs, bundle(problem.space, pool.directions), pool.scaled.scalar)
    beyond = paid > problem.budget
    return replace(pool, scaled=Scaled(np.where(beyond, np.inf, pool.scaled.scalar), np.where(beyond, np.inf, paid)))
