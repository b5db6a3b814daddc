"""Checks for search artefacts: the same comparison with more candidates, other costs, and lower bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from globece.auditing.exchange import judged_costs
from globece.auditing.pool import Pool, within
from globece.auditing.statistics import Contrast, corrected
from globece.bounds import lower_bound
from globece.bundle import bundle
from globece.case.affected import Case
from globece.case.scaling import Scaled, scale
from globece.costs import CostModel
from globece.errors import GlobeCEError
from globece.pricing import costs_at
from globece.progress import Monitor, Pace, check_time, is_timed
from globece.space import FeatureSpace, FloatArray

BOUND = "lower bound"
DRAWS = 5  # random weights
FACTOR = 2.0  # by which a feature's weight may be off, either way
UNKNOWN_GAP = (np.nan, np.nan, np.nan, np.nan)
SAME = 0.01  # share up to which costs are the same
REMAINS = 0.5  # share of a gap that must remain for it to survive


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """Other conditions under which the groups are compared again, and the minimum costs then."""

    name: str
    cost: FloatArray
    remark: str
    exact: bool = True  # whether a difference would be conclusive
    rescaled: bool = False  # whether changes cost something else


@dataclass(frozen=True, slots=True)
class Check:
    """Whether the gaps keep their size under one change of the conditions.

    Attributes
    ----------
    name
        What was changed.
    scores
        Score of each group under the change.
    gap, low, high, p
        The headline gap under the change, its interval and its p-value, corrected as the audit's own.
    survives
        Whether gaps keep their size, by their intervals; ``None`` if that cannot be told.
    remark
        Details in words.
    """

    name: str
    scores: Mapping[str, float]
    gap: float
    low: float
    high: float
    p: float
    survives: bool | None
    remark: str


@dataclass(frozen=True, slots=True)
class Judged:
    """One version's gaps in score, the overall score, and the score of each group."""

    gaps: Sequence[Contrast]
    overall: float
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Terms:
    """How gaps are compared across versions.

    Attributes
    ----------
    alpha
        Level of each comparison's interval.
    margin
        The relevance margin, as a share of the overall score.
    names
        Of the comparisons.
    headline
        Which of them the verdict is about.
    """

    alpha: float
    margin: float
    names: Sequence[str]
    headline: int


def checked(versions: Sequence[Version], results: Sequence[Judged], terms: Terms) -> list[Check]:
    """Whether the gaps of the first version, the audit itself, keep their size under the others.

    Versions with the same name are several draws of one check.
    """
    found = []
    for name in dict.fromkeys(v.name for v in versions[1:]):
        mine = [i for i, v in enumerate(versions) if v.name == name]
        same = [_survivals(results[0], results[i], terms) for i in mine]
        whole = [False if False in each else each[terms.headline] for each in same]
        gaps = [results[i].gaps[terms.headline].value for i in mine]
        middle = int(np.argsort(gaps, kind="stable")[len(gaps) // 2])
        version, survives, remark = versions[mine[middle]], _all(whole), versions[mine[middle]].remark
        if len(mine) > 1:
            remark = f"{sum(one is True for one in whole)} of {len(mine)} draws agree, {remark}"
        lost = sorted({terms.names[k] for each in same for k, one in enumerate(each) if one is False})
        if lost and not survives:
            remark = f"{remark}; another size for {', '.join(lost)}"
        if version.name == BOUND:
            pairs = [f"{g} {results[0].scores[g]:.2f} and {x:.2f}" for g, x in results[mine[middle]].scores.items()]
            remark = f"{remark}; found and bound: {', '.join(pairs)}"
            if survives is not True and not version.exact:
                # a loose bound that differs is inconclusive: it may be looser for one group than for another
                survives, remark = None, f"{remark}, too loose to be conclusive"
        elif version.rescaled and np.allclose(versions[0].cost, version.cost, rtol=SAME):
            survives, remark = None, f"{remark}: every cost is the same, so that this check says nothing"
        gap = results[mine[middle]].gaps[terms.headline]
        p = corrected(gap.p(), len(terms.names))
        numbers = (gap.value, *gap.interval(terms.alpha), p)
        found.append(Check(name, results[mine[middle]].scores, *numbers, survives, remark))
    return found


def _survivals(audit: Judged, then: Judged, terms: Terms) -> list[bool | None]:
    """For each comparison whether its gap keeps its size; gaps are compared as shares of the overall score."""
    found: list[bool | None] = []
    for one, other in zip(audit.gaps, then.gaps, strict=True):
        if not (one.known and other.known and audit.overall > 0 and then.overall > 0):
            found.append(None)
            continue
        low, high = (end / audit.overall for end in one.interval(terms.alpha))
        then_low, then_high = (end / then.overall for end in other.interval(terms.alpha))
        gap, then_gap = one.value / audit.overall, other.value / then.overall
        excludes = then_low > 0 or then_high < 0
        if low > 0 or high < 0:
            sign = np.sign(gap)
            keeps = sign * then_gap >= REMAINS * abs(gap)
            furthest = then_high if sign > 0 else -then_low
            found.append(True if keeps and excludes else False if not keeps and furthest < abs(gap) else None)
        elif abs(then_gap) <= terms.margin:
            found.append(True)
        else:
            found.append(False if excludes else None)
    return found


def _all(same: Sequence[bool | None]) -> bool | None:
    return False if False in same else None if None in same else True


def other_costs(case: Case, pool: Pool) -> Iterator[Version]:
    """The same directions under other cost models: deciles or bins, and random weights.

    Parameters
    ----------
    case, pool
        The affected inputs, and the candidates, followed up to :data:`FACTOR` times the budget.
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
        collapsed = _collapsed(other if name == "deciles" else cost, space)
        remark = f"cost by {name} instead of {cost.kind}"
        if collapsed:
            remark += (
                f"; {', '.join(collapsed)}: half the rows or more share one value, so that deciles say little there"
            )
        yield Version(name, judged_costs(replace(pool, scaled=again)), remark, rescaled=True)
    rng = np.random.default_rng(0)
    for _ in range(DRAWS):
        # a cost within the budget under these weights is within FACTOR times the budget under the old ones
        factor = FACTOR ** rng.uniform(-1.0, 1.0, len(space.features))
        again = _repriced(case, pool, replace(cost, weights=cost.weights * factor))
        remark = f"each feature's weight off by up to a factor of {FACTOR:g}"
        yield Version("other weights", judged_costs(replace(pool, scaled=again)), remark)


def _collapsed(deciles: CostModel, space: FeatureSpace) -> list[str]:
    """Features of whose ten deciles fewer than six are left, since many rows share a value."""
    return [f.name for f in space.movable if f.kind == "continuous" and len(deciles.scales[f.name].knots) <= 6]


def least(case: Case) -> Version | Check:
    """Lower bounds on the cost of recourse, whatever the directions; or a check that says that none are known."""
    try:
        bound, exact = _bound(case)
    except GlobeCEError as error:
        return Check(BOUND, {}, *UNKNOWN_GAP, None, str(error))
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
    return Check(name, {}, *UNKNOWN_GAP, None, f"not tried ({monitor.stopped})")


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
