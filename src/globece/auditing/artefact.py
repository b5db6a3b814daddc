"""Checks for search artefacts: the same comparison with more candidates, other costs, and lower bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from globece.auditing.pool import Pool, within
from globece.bounds import lower_bound
from globece.bundle import bundle
from globece.case.affected import Case
from globece.case.scaling import Scaled, scale
from globece.costs import CostModel
from globece.errors import GlobeCEError
from globece.pricing import costs_at
from globece.progress import Monitor, Pace, check_time, is_timed
from globece.space import FloatArray

BOUND = "lower bound"
DRAWS = 5  # random weights
FACTOR = 2.0  # by which a feature's weight may be off, either way


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """Other conditions under which the groups are compared again, and the minimum costs then."""

    name: str
    cost: FloatArray
    remark: str
    exact: bool = True  # whether a difference would be conclusive


@dataclass(frozen=True, slots=True)
class Check:
    """Whether the verdict holds under one change of the conditions.

    Attributes
    ----------
    name
        What was changed.
    scores
        Score of each group under the change.
    gap, p
        The headline gap under the change, and its p-value.
    survives
        Whether it leads to the same verdict; ``None`` if it is inconclusive.
    remark
        Details in words.
    """

    name: str
    scores: Mapping[str, float]
    gap: float
    p: float
    survives: bool | None
    remark: str


def checked(
    versions: Sequence[Version], gaps: FloatArray, p: FloatArray, scores: Sequence[Mapping[str, float]], level: float
) -> list[Check]:
    """Whether each version leads to the same verdict as the first, the audit itself.

    Parameters
    ----------
    versions
        The audit itself, then the others; those with the same name are several draws of one check.
    gaps, p
        The headline gap of each, and its p-value.
    scores
        Score of each group under each.
    level
        Significance level.
    """
    same = [_same(gaps[0], p[0], gaps[i], p[i], level) for i in range(len(versions))]
    found = []
    for name in dict.fromkeys(v.name for v in versions[1:]):
        mine = [i for i, v in enumerate(versions) if v.name == name]
        middle = mine[int(np.argsort(gaps[mine], kind="stable")[len(mine) // 2])]
        survives: bool | None = all(same[i] for i in mine)
        remark = versions[middle].remark
        if len(mine) > 1:
            remark = f"{sum(same[i] for i in mine)} of {len(mine)} draws agree, {remark}"
        if versions[middle].name == BOUND:
            pairs = [f"{group} {scores[0][group]:.2f} and {x:.2f}" for group, x in scores[middle].items()]
            remark = f"{remark}; found and bound: {', '.join(pairs)}"
        if not survives and not versions[middle].exact:
            # a loose bound that differs is inconclusive: it may be looser for one group than for another
            survives, remark = None, f"{remark}, too loose to be conclusive"
        found.append(Check(name, scores[middle], float(gaps[middle]), float(p[middle]), survives, remark))
    return found


def _same(gap: float, p: float, then_gap: float, then_p: float, level: float) -> bool:
    """Whether both find a gap of the same sign, or both find none."""
    if p >= level:
        return bool(then_p >= level)
    return bool(then_p < level and np.sign(then_gap) == np.sign(gap))


def other_costs(case: Case, pool: Pool, costs_under: Callable[[Pool], FloatArray]) -> Iterator[Version]:
    """The same directions under other cost models: deciles or bins, and random weights.

    Parameters
    ----------
    case, pool
        The affected inputs, and the candidates, followed up to :data:`FACTOR` times the budget.
    costs_under
        Minimum cost of each input under a pool.
    """
    cost, space = case.cost, case.space
    weights = dict(zip(space.names, cost.weights.tolist(), strict=True))
    if any(f.kind == "continuous" for f in space.movable):  # for other features bins and deciles are the same
        if cost.kind == "deciles":
            name, other = "equal-width bins", CostModel.bins(space, weights=weights, norm=cost.norm)
        else:
            name, other = "deciles", CostModel.deciles(space, case.rows.decode(), weights=weights, norm=cost.norm)
        # exact rays are cheap: they are followed again, up to the budget under these costs
        again = _followed(case, pool, other) if case.model.exact else _repriced(case, pool, other)
        yield Version(name, costs_under(replace(pool, scaled=again)), f"cost by {name} instead of {cost.kind}")
    rng = np.random.default_rng(0)
    for _ in range(DRAWS):
        # a cost within the budget under these weights is within FACTOR times the budget under the old ones
        factor = FACTOR ** rng.uniform(-1.0, 1.0, len(space.features))
        again = _repriced(case, pool, replace(cost, weights=cost.weights * factor))
        remark = f"each feature's weight off by up to a factor of {FACTOR:g}"
        yield Version("other weights", costs_under(replace(pool, scaled=again)), remark)


def least(case: Case) -> Version | Check:
    """Lower bounds on the cost of recourse, whatever the directions; or a check that says that none are known."""
    try:
        bound, exact = _bound(case)
    except GlobeCEError as error:
        return Check(BOUND, {}, np.nan, np.nan, None, str(error))
    cost = np.where(bound > case.budget, np.inf, bound)
    remark = "the exact minimum over any change" if exact else "a bound over any change"
    return Version(BOUND, cost, remark, exact)


def _bound(case: Case) -> tuple[FloatArray, bool]:
    """Lower bounds, and whether all of them are attained; in short batches under a time limit."""
    n, most = len(case.inputs), case.inputs.at_once
    cost, exact, pace = np.empty(n), True, Pace(16)
    start = 0
    while start < n:
        check_time()
        part = slice(start, min(start + (min(pace.size, most) if is_timed() else most), n))
        pace.start()
        found = lower_bound(case.part(np.arange(part.start, part.stop)))
        pace.done(part.stop - start)
        cost[part], exact, start = found.cost, exact and found.exact, part.stop
    return cost, exact


def untried(name: str, monitor: Monitor) -> Check:
    """A check for which there was no time."""
    return Check(name, {}, np.nan, np.nan, None, f"not tried ({monitor.stopped})")


def _followed(case: Case, pool: Pool, cost: CostModel) -> Scaled:
    """The same directions, followed again up to the budget under other costs."""
    priced = replace(case, cost=cost)
    parts = [scale(priced.part(np.arange(part.start, part.stop)), pool.directions) for part in case.inputs.slices()]
    return Scaled(np.hstack([p.scalar for p in parts]), np.hstack([p.cost for p in parts]))


def _repriced(case: Case, pool: Pool, cost: CostModel) -> Scaled:
    """The same counterfactuals under other costs."""
    routes, scalar = bundle(case.space, pool.directions), pool.far.scalar
    paid = np.empty(scalar.shape)
    for part, Z in case.inputs.chunks():
        paid[:, part] = costs_at(cost, Z, routes, scalar[:, part])
    return within(Scaled(scalar, paid), case.budget)
