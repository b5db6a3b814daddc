"""The plain NumPy twin of :mod:`globece.models.trees.rays`: slow and simple.

It tries every scalar at which any split could change its answer, in order. A test checks that the two agree.
"""

from __future__ import annotations

import numpy as np

from globece import rays
from globece.models.doubles import last_alike
from globece.models.trees.decision_rule import DecisionRule, plain_decide
from globece.models.trees.layout import Trees
from globece.models.trees.slots import SMALLEST_DOUBLE
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray


def plain_leaves(trees: Trees, space: FeatureSpace, Z: FloatArray) -> IntArray:
    """Node of each row's leaf in each tree."""
    codes = [space.codes(Z, f) for f in space.blocks]
    values = np.column_stack([Z, *codes]) if codes else Z
    leaves = np.empty((len(Z), len(trees.roots)), dtype=np.int64)
    for tree, root in enumerate(trees.roots):
        node = np.full(len(Z), int(root))
        while (inner := np.flatnonzero(trees.child[node] >= 0)).size:
            at = node[inner]
            side = np.empty(len(at), dtype=bool)
            for i, (n, row) in enumerate(zip(at, inner, strict=True)):
                slot = int(trees.slot[n])
                odd = ~slot if slot < 0 else -1
                value = values[row, trees.odd_slot[odd] if slot < 0 else slot]
                if np.isnan(value):
                    side[i] = trees.missing[n]
                elif slot >= 0:
                    side[i] = value > trees.threshold[n]
                else:
                    pieces = slice(trees.odd_start[odd], trees.odd_start[odd + 1])
                    is_block = trees.odd_slot[odd] >= space.width
                    piece = int(value) if is_block else np.searchsorted(trees.odd_cut[pieces], value)
                    side[i] = trees.odd_side[pieces][piece]
            node[inner] = trees.child[at] + side
        leaves[:, tree] = node
    return leaves


def plain_sums(trees: Trees, rule: DecisionRule, space: FeatureSpace, Z: FloatArray) -> FloatArray:
    """Sums of the leaves' outputs, added up as the estimator does."""
    leaves = plain_leaves(trees, space, Z)
    kind = np.float32 if rule.single else np.float64
    sums = np.tile(rule.start.astype(kind), (len(Z), 1))
    for tree, output in enumerate(trees.output):
        added = trees.outputs[trees.slot[leaves[:, tree]]].astype(kind)
        if output < 0:
            sums += added
        else:
            sums[:, output] += added[:, 0]
    return sums.astype(np.float64)


def plain_favourable(trees: Trees, rule: DecisionRule, space: FeatureSpace, Z: FloatArray) -> BoolArray:
    """Whether each row gets the favourable outcome."""
    return plain_decide(rule, plain_sums(trees, rule, space, Z))


def plain_first_flip(
    trees: Trees, rule: DecisionRule, space: FeatureSpace, Z: FloatArray, directions: FloatArray, limit: FloatArray
) -> FloatArray:
    """Smallest k at which each row is favourable along each direction; ``inf`` where there is none up to the limit."""
    out = np.full(limit.shape, np.inf)
    for d, delta in enumerate(directions):
        for row in range(len(Z)):
            k = every_event(trees, space, Z[row], delta, float(limit[d, row]))
            if not k.size:
                continue
            there = rays.positions(space, np.repeat(Z[row : row + 1], len(k), axis=0), delta, k)
            favourable = plain_favourable(trees, rule, space, there)
            if favourable.any():
                out[d, row] = k[favourable.argmax()]
    return out


def every_event(trees: Trees, space: FeatureSpace, x: FloatArray, delta: FloatArray, limit: float) -> FloatArray:
    """Every k up to the limit at which some split may change its answer, and the smallest of all, ascending."""
    if not limit > 0:
        return np.zeros(0)
    inner = trees.child >= 0
    found = [np.array([SMALLEST_DOUBLE])]
    for f, step in rays.movers(space, delta):
        odd = np.flatnonzero(trees.odd_slot == f.start)
        cuts = [trees.threshold[inner & (trees.slot == f.start)]]
        cuts += [trees.odd_cut[trees.odd_start[i] : trees.odd_start[i + 1]] for i in odd]
        thresholds = np.unique(np.concatenate(cuts))
        if not thresholds.size or np.isnan(x[f.start]):
            continue

        def above(k: FloatArray) -> BoolArray:
            return np.asarray(rays.travel(f, np.full(len(k), x[f.start]), step, k) > thresholds)  # noqa: B023

        last = last_alike(above, np.zeros(len(thresholds)), np.full(len(thresholds), limit))
        found.append(np.nextafter(last[last < limit], np.inf))
    for s in rays.switches(space, delta):
        bound = s.per_row(space.codes(x[None], s.feature))
        found.append(np.nextafter(bound[bound < limit], np.inf))
    return np.unique(np.concatenate(found))
