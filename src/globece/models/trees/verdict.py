"""How the sums of leaves become a decision, just as the estimator makes it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from globece.space import BoolArray, FloatArray

# How sums become a decision: a single sum reaches a cut, the largest output wins, or a softmax comes before that.
REACHES, LARGEST, SOFTMAX_SINGLE, SOFTMAX_DOUBLE, CHANCE_SINGLE, CHANCE_DOUBLE = range(6)


class Verdict(NamedTuple):
    """How the leaves' outputs become a decision, just as the estimator does it."""

    start: FloatArray  # (outputs,) what the sums start from
    single: bool  # whether the estimator adds in float32
    rule: int
    place: int  # the favourable output
    divisor: float  # what sums are divided by before they are compared
    cut: float  # the smallest favourable sum, or probability
    scalar: bool  # whether leaf scores, summed and compared with `boundary`, decide outside the band
    origin: float  # what the sum of leaf scores starts from
    boundary: float
    band: float = 0.0  # how far the estimator's rounding can carry it from the exact sums
    drift: float = 0.0  # how far each addition can carry the running sum from them


@njit(cache=True, error_model="numpy")
def _softmax_single(scores: NDArray[np.float32], place: int) -> tuple[float, bool]:
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
    return np.float64(scores[place]), np.argmax(scores) == place


@njit(cache=True, error_model="numpy")
def _softmax_double(scores: FloatArray, place: int) -> tuple[float, bool]:
    """The same in float64, as LightGBM and scikit-learn do it."""
    largest = scores.max()
    total = 0.0
    for j in range(len(scores)):
        scores[j] = math.exp(scores[j] - largest)
        total += scores[j]
    for j in range(len(scores)):
        scores[j] = scores[j] / total
    return scores[place], np.argmax(scores) == place


@njit(cache=True, error_model="numpy")
def decide(verdict: Verdict, sums: FloatArray) -> bool:
    """Whether sums mean the favourable outcome."""
    rule, place = verdict.rule, verdict.place
    if rule == REACHES:
        return bool(sums[0] >= verdict.cut)
    if rule == LARGEST:
        mine = sums[place] / verdict.divisor
        for j in range(len(sums)):
            rival = sums[j] / verdict.divisor
            if rival > mine or (rival == mine and j < place):  # the first of equal ones wins
                return False
        return True
    if rule in (SOFTMAX_SINGLE, CHANCE_SINGLE):
        probability, wins = _softmax_single(sums.astype(np.float32), place)
    else:
        probability, wins = _softmax_double(sums.copy(), place)
    return wins if rule in (SOFTMAX_SINGLE, SOFTMAX_DOUBLE) else probability >= verdict.cut


@njit(cache=True, error_model="numpy")
def lead(verdict: Verdict, sums: FloatArray) -> float:
    """How far sums are on the favourable side, in exact arithmetic."""
    place = verdict.place
    if verdict.rule == REACHES:
        return float(sums[0] - verdict.cut)
    rival = -np.inf
    for j in range(len(sums)):
        if j != place:
            rival = max(rival, sums[j])
    if verdict.rule < CHANCE_SINGLE:
        return float((sums[place] - rival) / verdict.divisor)
    others = 0.0
    for j in range(len(sums)):
        if j != place:
            others += math.exp(sums[j] - rival)
    return float(sums[place] - rival - math.log(others) - verdict.boundary)


def plain_decide(verdict: Verdict, sums: FloatArray) -> BoolArray:
    """The same as :func:`decide` for every row of a matrix of sums, in plain NumPy."""
    if verdict.rule == REACHES:
        return np.asarray(sums[:, 0] >= verdict.cut)
    if verdict.rule == LARGEST:
        return np.asarray((sums / verdict.divisor).argmax(axis=1) == verdict.place)
    kind = np.float32 if verdict.rule in (SOFTMAX_SINGLE, CHANCE_SINGLE) else np.float64
    scores = sums.astype(kind)
    risen = np.exp((scores - scores.max(axis=1, keepdims=True)).astype(np.float64)).astype(kind)
    probabilities = risen / risen.astype(np.float64).sum(axis=1, keepdims=True).astype(kind)
    if verdict.rule in (SOFTMAX_SINGLE, SOFTMAX_DOUBLE):
        return np.asarray(probabilities.argmax(axis=1) == verdict.place)
    return np.asarray(probabilities[:, verdict.place] >= verdict.cut)
