"""How the sums of leaves become a decision, exactly as in the estimator."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from globece.space import BoolArray, FloatArray

# Kinds of rule: a single sum reaches a cut; the largest output wins, with or without a softmax; or its probability
# reaches a cut. In float32 or float64.
REACHES, LARGEST, SOFTMAX_SINGLE, SOFTMAX_DOUBLE, PROBABILITY_SINGLE, PROBABILITY_DOUBLE = range(6)


class DecisionRule(NamedTuple):
    """How the sums of the leaves' outputs become a decision."""

    start: FloatArray  # (outputs,) initial value of the sums
    single: bool  # whether the estimator adds in float32
    kind: int
    favourable: int  # the favourable output
    divisor: float  # sums are divided by it before they are compared
    cut: float  # the smallest favourable sum, or probability
    scalar: bool  # whether leaf scores, summed and compared with `boundary`, decide outside the band
    origin: float  # initial value of the sum of leaf scores
    boundary: float
    band: float = 0.0  # largest rounding error of the estimator's sums
    drift: float = 0.0  # largest rounding error of one addition to the running sum


@njit(cache=True, error_model="numpy")
def _softmax_single(scores: NDArray[np.float32], index: int) -> tuple[float, bool]:
    """XGBoost's softmax: the probability of an output, and whether it is the first of the largest."""
    largest = scores[0]
    for j in range(1, len(scores)):
        largest = max(largest, scores[j])
    total = 0.0
    for j in range(len(scores)):
        scores[j] = np.float32(math.exp(np.float64(scores[j] - largest)))
        total += np.float64(scores[j])
    for j in range(len(scores)):
        scores[j] = scores[j] / np.float32(total)
    return np.float64(scores[index]), np.argmax(scores) == index


@njit(cache=True, error_model="numpy")
def _softmax_double(scores: FloatArray, index: int) -> tuple[float, bool]:
    """The same in float64, as in LightGBM and scikit-learn."""
    largest = scores.max()
    total = 0.0
    for j in range(len(scores)):
        scores[j] = math.exp(scores[j] - largest)
        total += scores[j]
    for j in range(len(scores)):
        scores[j] = scores[j] / total
    return scores[index], np.argmax(scores) == index


@njit(cache=True, error_model="numpy")
def decide(rule: DecisionRule, sums: FloatArray) -> bool:
    """Whether sums mean the favourable outcome."""
    kind, favourable = rule.kind, rule.favourable
    if kind == REACHES:
        return bool(sums[0] >= rule.cut)
    if kind == LARGEST:
        mine = sums[favourable] / rule.divisor
        for j in range(len(sums)):
            rival = sums[j] / rule.divisor
            if rival > mine or (rival == mine and j < favourable):  # the first of equal ones wins
                return False
        return True
    if kind in (SOFTMAX_SINGLE, PROBABILITY_SINGLE):
        probability, wins = _softmax_single(sums.astype(np.float32), favourable)
    else:
        probability, wins = _softmax_double(sums.copy(), favourable)
    return wins if kind in (SOFTMAX_SINGLE, SOFTMAX_DOUBLE) else probability >= rule.cut


@njit(cache=True, error_model="numpy")
def lead(rule: DecisionRule, sums: FloatArray) -> float:
    """How far sums are on the favourable side, in exact arithmetic."""
    favourable = rule.favourable
    if rule.kind == REACHES:
        return float(sums[0] - rule.cut)
    rival = -np.inf
    for j in range(len(sums)):
        if j != favourable:
            rival = max(rival, sums[j])
    if rule.kind < PROBABILITY_SINGLE:
        return float((sums[favourable] - rival) / rule.divisor)
    others = 0.0
    for j in range(len(sums)):
        if j != favourable:
            others += math.exp(sums[j] - rival)
    return float(sums[favourable] - rival - math.log(others) - rule.boundary)


def plain_decide(rule: DecisionRule, sums: FloatArray) -> BoolArray:
    """The same as :func:`decide` for every row of a matrix of sums, in plain NumPy."""
    if rule.kind == REACHES:
        return np.asarray(sums[:, 0] >= rule.cut)
    if rule.kind == LARGEST:
        return np.asarray((sums / rule.divisor).argmax(axis=1) == rule.favourable)
    kind = np.float32 if rule.kind in (SOFTMAX_SINGLE, PROBABILITY_SINGLE) else np.float64
    scores = sums.astype(kind)
    risen = np.exp((scores - scores.max(axis=1, keepdims=True)).astype(np.float64)).astype(kind)
    probabilities = risen / risen.astype(np.float64).sum(axis=1, keepdims=True).astype(kind)
    if rule.kind in (SOFTMAX_SINGLE, SOFTMAX_DOUBLE):
        return np.asarray(probabilities.argmax(axis=1) == rule.favourable)
    return np.asarray(probabilities[:, rule.favourable] >= rule.cut)
