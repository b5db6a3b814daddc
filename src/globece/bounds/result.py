"""A lower bound on each affected input's minimum cost over any change, and how near an explanation comes."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from globece.bounds.attained import attains, refute
from globece.bounds.linear import linear_bound, quick_bound
from globece.bounds.solve import solve_rows
from globece.bounds.trees import tree_bound
from globece.case.affected import Affected
from globece.case.recourse import score
from globece.directions.rows import settled_order
from globece.errors import InvalidParameterError, check_count, check_instance, check_number, wrong
from globece.models.linear.half_spaces import LinearModel
from globece.models.trees.ensemble import TreeEnsemble
from globece.space import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A lower bound on the cost of recourse of each affected input, whatever it changes.

    Attributes
    ----------
    cost
        A bound for each affected input, ``(n,)``, over all changes within ranges and constraints, up to rounding
        (1e-9); ``inf`` where no change is favourable.
    method
        How it was found, in words.
    exact
        Whether the bound is the minimum cost itself, for every input: all of them are attained.
    budget
        The most that recourse may cost; a higher bound counts as the budget in the mean, as in the score.
    score
        The explanation's score, where there is one; ``nan`` otherwise.
    solved
        Positions of the inputs that were solved one by one.
    attained
        Whether each bound is the minimum, ``(n,)``: a row of that cost satisfies the constraints and is favourable to
        the user's model. A bound of ``inf`` is always proved.
    """

    cost: FloatArray
    method: str
    exact: bool
    budget: float
    score: float = float("nan")
    solved: IntArray | None = None
    attained: BoolArray | None = None

    @property
    def mean(self) -> float:
        """Mean of the bounds, each at most the budget: no score can be lower."""
        return score(self.cost, self.budget)

    @property
    def gap(self) -> float:
        """The explanation's score divided by the bound: 1 if it is optimal, 2 if a half as large one is possible."""
        if self.mean == 0.0:
            return 1.0 if self.score == 0.0 else float("inf") * self.score
        return self.score / self.mean

    @property
    def solved_mean(self) -> float:
        """Mean over the inputs that were solved one by one."""
        if self.solved is None:
            raise InvalidParameterError("no input was solved one by one; pass solve= to lower_bound")
        return score(self.cost[self.solved], self.budget)

    def __repr__(self) -> str:
        """A short description."""
        return f"LowerBound(mean={self.mean:.3f}, exact={self.exact}, gap={self.gap:.3f}, method={self.method!r})"


def lower_bound(
    problem: Affected, *, solve: int = 0, time_limit: float = 60.0, within: FloatArray | None = None
) -> LowerBound:
    """Bound the minimum cost of each input from below, over any change within ranges and constraints.

    Parameters
    ----------
    problem
        A linear model or a tree ensemble that is followed exactly, and its affected inputs.
    solve
        For a tree ensemble: number of inputs to solve one by one, by branch and bound; chosen evenly, whatever their
        order. The others keep the fast bound.
    time_limit
        Seconds for everything; compiling, once on each machine, is not counted. Inputs that are cut off keep the best
        bound proved by then (possibly 0) and are not exact.
    within
        For each input the cost of a counterfactual that the user's model has confirmed, ``inf`` where none is known:
        cheaper changes are searched first, and a bound above it is refuted.

    Raises
    ------
    InvalidParameterError
        If the model is neither linear nor a tree ensemble: no bound is known then.
    VerificationError
        If a counterfactual that the user's model confirms costs less than its bound, which means that the model was
        compiled wrongly.

    Examples
    --------
    >>> import numpy as np
    >>> from globece import explain
    >>> X = np.array([[1.0, 3.0], [2.0, 9.0], [3.0, 5.0], [8.0, 2.0], [9.0, 7.0]])
    >>> ex = explain((np.array([1.0, -0.1]), -6.0), X, rng=0)
    >>> bound = ex.lower_bound()
    >>> bound.exact, bool((bound.cost <= ex.best_costs).all())
    (True, True)
    """
    check_instance("problem", problem, Affected)
    count = check_count("solve", solve, low=0)
    seconds = check_number("time_limit", time_limit, open_low=True, infinite=True)
    if within is not None and (not isinstance(within, np.ndarray) or within.shape != (len(problem.inputs),)):
        raise wrong("within", f"a cost for each of {len(problem.inputs):,} inputs", within)
    if problem.model.conditions:
        return _strictest(problem, count, seconds, within)
    planes, ensemble = problem.model.half_spaces, problem.model.tree_ensemble
    if planes is not None:
        found = _linear(planes, problem)
    elif ensemble is not None:
        found = _trees(ensemble, problem, count, seconds, within)
    else:
        raise InvalidParameterError(
            "a lower bound is known for linear models and for tree ensembles that are followed exactly; "
            f"none is known for {problem.model.name}, which is followed as a {type(problem.model.followed).__name__}"
        )
    refute(problem, found.cost, within)
    return found


def quick_mean(problem: Affected) -> float | None:
    """The mean of the bounds on some inputs where it takes no time to speak of: for a linear model, or ``None``."""
    planes = problem.model.half_spaces
    if planes is None or problem.model.conditions or not len(problem.inputs):
        return None
    return score(quick_bound(planes, problem), problem.budget)


def _linear(core: LinearModel, problem: Affected) -> LowerBound:
    cost, attained = linear_bound(core, problem)
    exact = bool(attained.all())
    how = "minimum over any change" if exact else "relaxation over any change"
    return LowerBound(cost, f"linear model: {how}", exact, problem.budget, attained=attained)


def _trees(core: TreeEnsemble, problem: Affected, count: int, seconds: float, within: FloatArray | None) -> LowerBound:
    end = time.monotonic() + seconds
    cost, n_bounded = tree_bound(core, problem, seconds)
    method = "trees: each tree's best leaf within reach"
    if n_bounded < len(cost):
        method += f", for {n_bounded:,} of {len(cost):,} inputs when the time was up"
    none = np.isinf(cost)  # no leaves within reach suffice, which is a proof
    found = LowerBound(cost, method, bool(none.all()), problem.budget, attained=none)
    left = end - time.monotonic()
    if not count or not len(cost) or left <= 0:
        return found
    order = settled_order(problem.inputs)
    chosen = np.sort(order[np.unique(np.linspace(0, len(order) - 1, min(count, len(order))).astype(np.int64))])
    limit = np.full(len(cost), problem.budget) if within is None else np.minimum(within, problem.budget)
    some = replace(problem, inputs=problem.inputs[chosen])
    solved = solve_rows(core, some, cost[chosen], limit[chosen], left)
    proved = solved.finished & np.isinf(solved.cost)
    attained = none.copy()
    attained[chosen] |= proved | attains(some, some.inputs, solved.point, solved.cost)
    cost[chosen] = solved.cost
    method += f"; {len(chosen):,} inputs solved one by one"
    for what, how_many in (
        ("cut off", int((~solved.finished).sum())),
        ("not attained", int((solved.finished & ~attained[chosen]).sum())),
    ):
        method += f", {how_many:,} of them {what}" if how_many else ""
    return replace(found, cost=cost, method=method, exact=bool(attained.all()), solved=chosen, attained=attained)


def _strictest(problem: Affected, solve: int, seconds: float, within: FloatArray | None) -> LowerBound:
    """The largest of the bounds of all conditions on recourse, none of which makes it cheaper."""
    parts = problem.model.requirements
    share = seconds / len(parts)
    found = [lower_bound(replace(problem, model=part), solve=solve, time_limit=share, within=within) for part in parts]
    cost = np.max([bound.cost for bound in found], axis=0)
    method = f"the strictest of {len(found)} conditions; {found[-1].method}"
    attained = np.isinf(cost)  # a point that satisfies one condition may violate others
    if len(found) == 1 and not problem.model.has_noise and found[0].attained is not None:
        attained = found[0].attained
    return replace(found[0], cost=cost, method=method, exact=bool(attained.all()), attained=attained)
