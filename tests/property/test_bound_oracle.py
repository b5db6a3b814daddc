"""Lower bounds against trying everything, on small random problems that the user's own model judges."""

from __future__ import annotations

import numpy as np
import pytest

from globece.bounds import lower_bound
from globece.directions import Affected
from tests.bound_problems import LINEAR, ODD, TREES, draw, least

EQUAL = 1e-9
FEW = 8000  # points; what has more is left to the long run


def hold(problem: Affected, described: str) -> int:
    """Check all bounds of a problem, fast and solved, and return how many inputs have recourse that is known."""
    truth = [least(problem, row, FEW) for row in problem.inputs]
    for solve in (0, len(truth)):
        found = lower_bound(problem, solve=solve)
        assert found.attained is not None
        assert found.exact == found.attained.all()
        for bound, attained, true in zip(found.cost, found.attained, truth, strict=True):
            if true is not None:
                assert bound <= true * (1 + EQUAL) + EQUAL, (described, bound, true)
                if attained:
                    assert bound == pytest.approx(true, rel=EQUAL, abs=EQUAL), described
    return sum(true is not None and np.isfinite(true) for true in truth)


@pytest.mark.parametrize("kind", LINEAR + TREES + ODD)
def test_no_bound_is_above_what_trying_everything_finds_and_exact_ones_are_equal(kind: str) -> None:
    n_inputs = 0
    for seed in range(12):
        case = draw(seed, kind)
        n_inputs += hold(case.problem, case.described) if case is not None else 0
        if n_inputs >= 4:
            break
    assert n_inputs > 0


@pytest.mark.parametrize(
    "kind", ["even", "extra", "xgb", "three", "probability", "lgbm by category", "binned", "hist missing"]
)
def test_solved_trees_are_exact(kind: str) -> None:
    case = draw(11, kind)
    assert case is not None
    found = lower_bound(case.problem, solve=len(case.problem.inputs))
    assert found.exact, found.method


def test_time_that_runs_out_leaves_bounds_that_hold() -> None:
    cut_off = 0
    for seed in range(3):
        case = draw(seed, "forest")
        assert case is not None
        truth = np.array([least(case.problem, row, FEW) for row in case.problem.inputs], dtype=float)
        lower_bound(case.problem, solve=1)
        found = lower_bound(case.problem, solve=len(truth), time_limit=1e-4)
        assert (np.isnan(truth) | (found.cost <= truth * (1 + EQUAL) + EQUAL)).all()
        cut_off += not found.exact
    assert cut_off
