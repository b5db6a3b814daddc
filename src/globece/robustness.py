"""Robustness of recourse: coverage against the margin that it must keep."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from globece import rays
from globece.case.affected import Affected
from globece.case.recourse import Numbers
from globece.case.scaling import scale
from globece.case.verification import confirmed, trusting
from globece.errors import InvalidParameterError, check_number, check_numbers, wrong
from globece.models.compiling.adapt import robust_model
from globece.models.robust import Robust
from globece.space import FloatArray

if TYPE_CHECKING:
    from globece.explanation import Explanation


@dataclass(frozen=True, slots=True)
class Robustness:
    """Coverage and cost of directions under stricter conditions on their counterfactuals.

    Attributes
    ----------
    margin
        The margins asked for, ascending.
    coverage, average_cost, score
        As for an explanation, with scalars large enough to keep the margin.
    survival
        Share of the original counterfactuals that keep the margin without going further.
    described
        The conditions in addition to the margin, in words.
    """

    margin: FloatArray
    coverage: FloatArray
    average_cost: FloatArray
    score: FloatArray
    survival: FloatArray
    described: str

    def records(self) -> list[dict[str, float]]:
        """One dictionary per margin."""
        names = ("margin", "coverage", "average_cost", "score", "survival")
        return [
            dict(zip(names, map(float, row), strict=True))
            for row in zip(*(getattr(self, name) for name in names), strict=True)
        ]


def robustness(explanation: Explanation, margins: Any = None, **asked: Any) -> Robustness:
    """Scale an explanation's directions again for each margin; see :meth:`Explanation.robustness`."""
    if "margin" in asked:
        raise InvalidParameterError("margin must be left out: margins lists those to try")
    base = Robust(**asked)
    if margins is None:
        margins = np.linspace(0.0, 0.4, 9) if base.scale == "probability" else np.linspace(0.0, 2.0, 9)
    allowed = "ascending numbers >= 0"
    if not isinstance(margins, (list, tuple, np.ndarray)):
        margins = [check_number("margins", margins)]
    tried = check_numbers("margins", margins, allowed, low=0.0)
    if not tried.size or (np.diff(tried) <= 0).any():
        raise wrong("margins", allowed, margins)
    box = None if explanation.model is None else explanation.model.unconditioned
    if box is None or not hasattr(box, "decide"):
        raise InvalidParameterError("this explanation has no model: it was read from a file, or built by hand")
    Z, cost = explanation.encoded.dense(), explanation.cost
    best = explanation.minimum_costs()
    covered = best.direction >= 0
    reached = Z.copy()
    for i, delta in enumerate(explanation.directions):
        mine = np.flatnonzero(best.direction == i)
        reached[mine] = rays.positions(explanation.space, Z[mine], delta, best.scalar[mine])
    found = []
    for margin in tried:
        model = robust_model(box, replace(base, margin=float(margin)), Z)
        problem = Affected(model, Z, cost, explanation.budget, explanation.max_scalar)
        costs = trusting(problem, lambda p: confirmed(p, explanation.directions, scale(p, explanation.directions))).cost
        numbers = Numbers.of(costs.min(axis=0, initial=np.inf), explanation.budget)
        stays = model.favourable(reached[covered]).mean() if covered.any() else np.nan
        found.append((numbers.coverage, numbers.average_cost, numbers.score, stays))
    coverage, average_cost, scores, survival = np.array(found, dtype=np.float64).T
    return Robustness(tried, coverage, average_cost, scores, survival, replace(base, margin=0.0).described)
