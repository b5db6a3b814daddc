"""Read networks: piecewise linear layers up to the scores, and the decision from these scores.

A decision becomes conditions on the scores that must all hold: the favourable class against each other class, or one
score against the score at which a probability reaches its threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax

from globece.errors import InvalidParameterError, ModelError
from globece.models.decision import SIDES
from globece.models.known import is_kind
from globece.models.networks.clearance import Powers
from globece.models.networks.layers import Layers
from globece.models.torch_modules import is_module
from globece.space import BoolArray, FloatArray

ACTIVATIONS = {"relu": 0.0, "identity": 1.0}  # slope below 0


@dataclass(frozen=True)
class Reading:
    """A network, read.

    Attributes
    ----------
    layers
        From the network's inputs to its scores, before they are converted to probabilities.
    powers
        How rounding errors grow on the way there.
    ask
        The network's own outputs, given its inputs and what is wanted: ``"class"`` and ``"probability"`` give a column
        for each class, ``"value"`` one column.
    classes
        One for each score, or two for a single one; ``None`` if the scores are values.
    head
        What follows the scores: ``"probabilities"`` (a sigmoid of each), ``"shares"`` or ``"log shares"`` (a softmax),
        or ``None``.
    half_counts
        Whether a single score of exactly 0 gives the second class.
    precision
        Machine epsilon of the network's arithmetic.
    """

    layers: Layers
    powers: Powers
    ask: Callable[[FloatArray, str], FloatArray]
    classes: tuple[Any, ...] | None
    head: str | None
    half_counts: bool
    precision: float


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions of a decision on the scores: all of ``scores @ matrix + shift > 0`` (``>= 0`` where closed)."""

    matrix: FloatArray  # (scores, conditions)
    shift: FloatArray
    closed: BoolArray


def supports(estimator: Any) -> bool:
    """Whether this is a kind of network that can be read."""
    return is_module(estimator) or is_kind(estimator, "sklearn", ("MLPClassifier", "MLPRegressor"))


def conditions(reading: Reading, favourable: Any, threshold: float | None, name: str) -> Conditions:
    """Conditions of the favourable outcome on the scores.

    Raises
    ------
    ModelError
        If they are not linear.
    InvalidParameterError
        If there is no such outcome.
    """
    n = reading.layers.weights[-1].shape[1]
    if favourable in SIDES and (reading.classes is None or favourable not in reading.classes):
        return _side(reading, favourable, threshold, name)
    if reading.classes is None or favourable not in reading.classes:
        allowed = SIDES if reading.classes is None else reading.classes
        raise InvalidParameterError(f"favourable must be one of {list(allowed)} for {name}; got {favourable!r}")
    index = reading.classes.index(favourable)
    if threshold is not None and threshold <= 0.0:  # always reached
        return Conditions(np.zeros((n, 1)), np.ones(1), np.array([True]))
    if threshold is not None and threshold >= 1.0:
        raise ModelError(f"a probability of {threshold:g} is only reached by rounding")
    if n == 1:
        sign = 1.0 if index == 1 else -1.0
        is_closed = reading.half_counts == (index == 1) if threshold is None else True
        return Conditions(np.array([[sign]]), np.array([-_odds(threshold)]), np.array([is_closed]))
    one = np.eye(n)[index]
    if threshold is not None and reading.head == "probabilities":
        return Conditions(one[:, None], np.array([-_odds(threshold)]), np.array([True]))
    if threshold is not None and n > 2:
        raise ModelError(f"the probability of one of {n} classes is not a linear function of the scores")
    others = [c for c in range(n) if c != index]
    matrix = np.column_stack([one - np.eye(n)[c] for c in others])
    # the first of equal scores wins
    closed = np.array([c > index for c in others]) if threshold is None else np.array([True])
    return Conditions(matrix, np.full(len(others), -_odds(threshold)), closed)


def _side(reading: Reading, favourable: str, threshold: float | None, name: str) -> Conditions:
    if threshold is None or reading.layers.weights[-1].shape[1] != 1 or reading.head is not None:
        raise ModelError(f"{name} needs one output and a threshold for favourable={favourable!r}")
    sign = -1.0 if favourable == "below" else 1.0
    return Conditions(np.array([[sign]]), np.array([-sign * threshold]), np.array([True]))


def _odds(threshold: float | None) -> float:
    return 0.0 if threshold is None else float(logit(threshold))


# -- scikit-learn -----------------------------------------------------------------------------------------------------


def read_mlp(estimator: Any) -> Reading:
    """Read a fitted MLPClassifier or MLPRegressor."""
    name = type(estimator).__name__
    if not hasattr(estimator, "coefs_"):
        raise ModelError(f"{name} is not fitted; call fit first")
    if estimator.activation not in ACTIVATIONS:
        raise ModelError(
            f"activation {estimator.activation!r} is not piecewise linear; only {list(ACTIVATIONS)} are supported"
        )
    weights = [np.asarray(w) for w in estimator.coefs_]
    biases = [np.asarray(b) for b in estimator.intercepts_]
    classes = getattr(estimator, "classes_", None)
    expected = {"identity"} if classes is None else {"logistic", "softmax"}
    n = len(biases[-1])
    single = n == 1 if classes is None or len(classes) == 2 else n == len(classes)
    if estimator.out_activation_ not in expected or not single or (n > 1 and estimator.out_activation_ == "logistic"):
        raise ModelError(f"{name} has {n} outputs through {estimator.out_activation_!r}, which is not supported")
    layers = Layers(
        tuple(w.astype(np.float64) for w in weights),
        tuple(b.astype(np.float64) for b in biases),
        tuple(np.full(len(b), ACTIVATIONS[estimator.activation]) for b in biases[:-1]),
    )
    known = None if classes is None else tuple(np.asarray(classes).tolist())
    head = None if classes is None else "shares" if n > 1 else "probabilities"
    sums = MlpSums(tuple(weights), tuple(biases), estimator.activation == "relu")
    ask = MlpAnswer(sums, None if known is None else len(known))
    powers = Powers.of(layers.weights, layers.biases)
    return Reading(layers, powers, ask, known, head, False, float(np.finfo(weights[0].dtype).eps))


@dataclass(frozen=True)
class MlpSums:
    """The output layer of scikit-learn's network, in its own arithmetic."""

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    bends: bool

    def __call__(self, V: FloatArray) -> FloatArray:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            V = V @ weight + bias
            if self.bends:
                np.maximum(V, 0, out=V)
        return np.asarray(V @ self.weights[-1] + self.biases[-1])


@dataclass(frozen=True)
class MlpAnswer:
    """The outputs of scikit-learn's network: a column for each class, or the values."""

    sums: MlpSums
    n_classes: int | None

    def __call__(self, V: FloatArray, wanted: str) -> FloatArray:
        score = self.sums(V)
        if self.n_classes is None:
            return score
        if score.shape[1] > 1:
            return np.asarray(softmax(score, axis=1))
        probability = expit(score[:, 0])
        if wanted == "probability":
            return np.column_stack([1.0 - probability, probability])
        return np.asarray(np.eye(2)[(probability > 0.5).astype(np.int64)])
