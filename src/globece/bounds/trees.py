"""A fast lower bound for tree ensembles: every tree at its best leaf within reach.

At cost c the score of a tree is at most that of the best leaf whose box the row can enter at cost c. The sum over all
trees bounds the score from above and rises with c; the smallest c at which it is favourable is a lower bound on the
minimum cost. It is not exact, since the best leaves of different trees may lie in different places.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from globece.bounds.boxes import Boxes, boxes_of, entry_costs_of, scale_positions, sweep
from globece.case.affected import Affected
from globece.models.trees.decision_rule import PROBABILITY_DOUBLE, PROBABILITY_SINGLE
from globece.models.trees.ensemble import TreeEnsemble
from globece.parallel import over_rows
from globece.space import FloatArray

SHAVED = 1e-9  # allowance for the rounding of costs
FEW = 256  # rows that are not worth another thread
WORK = 2_000_000  # leaves that are examined before the clock is checked, roughly


def tree_bound(model: TreeEnsemble, problem: Affected, seconds: float = np.inf) -> tuple[FloatArray, int]:
    """A bound on the cost of each input, and the number of inputs done in time (the others have 0)."""
    Z, cost = problem.inputs, problem.cost
    if not len(Z):
        return np.zeros(0), 0
    boxes = boxes_of(model.trees, problem.space)
    entry_costs = entry_costs_of(boxes, cost, Z)
    codes = problem.space.block_codes(Z)
    out, at = np.zeros(len(Z)), scale_positions(cost, Z)
    l2 = cost.norm == "l2"
    sums = list(conditions(model, boxes))
    end, done = time.monotonic() + seconds, 0
    while done < len(Z) and (not done or time.monotonic() < end):
        rows = slice(done, min(len(Z), done + max(64, WORK // len(boxes.leaf))))
        done = rows.stop
        for scores, target, _ in sums:
            found = np.empty(rows.stop - rows.start)

            def work(first: int, last: int, scores=scores, target=target, found=found, rows=rows) -> None:  # type: ignore[no-untyped-def]
                some = (Z[rows], at[rows], codes[rows])
                sweep(boxes, entry_costs, scores, target, len(model.trees.roots), *some, l2, first, last, found)

            over_rows(len(found), work, few=FEW)
            out[rows] = np.maximum(out[rows], found)
    return np.maximum((np.sqrt(out) if l2 else out) * (1.0 - SHAVED) - SHAVED, 0.0), done


def conditions(model: TreeEnsemble, boxes: Boxes) -> Iterator[tuple[FloatArray, float, float]]:
    """Conditions for the favourable outcome: sums of leaf scores, each with the target that it must reach.

    Below the first target a sum is unfavourable, however it is rounded; from the second on it is favourable (``inf`` if
    that depends on more than this sum). There is one condition if a single sum decides. With several outputs the
    favourable one must match each rival, and for a probability of p exceed each by log p / (1 - p).
    """
    trees, rule = model.trees, model.rule
    slack = rule.band + rule.drift * (2 * len(trees.roots))
    slack += 1e-12 * abs(rule.boundary) if np.isfinite(rule.boundary) else 0.0
    if rule.scalar:
        needed = rule.boundary - rule.origin
        yield trees.threshold[boxes.leaf], needed - slack, needed + slack
        return
    rows = trees.slot[boxes.leaf]
    output = trees.output[boxes.tree]
    probability = rule.kind in (PROBABILITY_SINGLE, PROBABILITY_DOUBLE)
    ahead, divisor = (rule.boundary, 1.0) if probability else (0.0, rule.divisor)
    for rival in range(len(rule.start)):
        if rival != rule.favourable:
            if trees.outputs.shape[1] > 1:
                scores = trees.outputs[rows, rule.favourable] - trees.outputs[rows, rival]
            else:
                sign = (output == rule.favourable).astype(float) - (output == rival)
                scores = sign * trees.outputs[rows, 0]
            start = rule.start[rule.favourable] - rule.start[rival]
            yield (
                scores,
                divisor * (ahead - slack) - start,
                np.inf if probability else divisor * (ahead + slack) - start,
            )
