"""How precisely a model computes, whatever the batch and the processor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from globece.models.inputs import Input, Number
from globece.space import FeatureSpace, FloatArray

DOUBLE, SINGLE = 2.0**-53, 2.0**-24  # unit roundoffs
ROUNDINGS_OF_A_PROBABILITY = 4.0  # between a score and the probability computed from it
MOST = 1e-3  # log-odds: next to 0 and 1 probabilities have too few digits for an exact bound


class Summed(NamedTuple):
    """What a linear estimator sums, where that is more than its coefficients times its inputs.

    libsvm sums over support vectors, which may cancel to much smaller coefficients; with several classes, two scores
    are compared.
    """

    size: FloatArray  # (half-spaces, inputs) absolute values, for an input of 1
    terms: int


def unit_of_sum(space: FeatureSpace, inputs: Sequence[Input]) -> float:
    """Unit roundoff of a sum over these inputs.

    scikit-learn and NumPy stay in single precision if all columns are. Sums are never in half precision: the weights
    have a wider type, and the rounding of the column itself is counted where it is read.
    """
    wide = (_is_wide(space, source.column) for source in inputs if isinstance(source, Number))
    return DOUBLE if any(wide) else min(SINGLE, max(DOUBLE, float(space.rounding.max(initial=0.0))))


def rounding_of_columns(space: FeatureSpace, inputs: Sequence[Input]) -> FloatArray:
    """Largest relative rounding of each encoded column, in storage and by the steps before a model.

    Whole numbers that their type represents exactly are only rounded if a step computes with them.
    """
    out = space.rounding.copy()
    for source in inputs:
        if isinstance(source, Number) and source.narrow == "float32":  # a step may round what is stored precisely
            out[source.column] = max(out[source.column], SINGLE)
    computed = {source.column for source in inputs if isinstance(source, Number) and source.forward is not None}
    for f in space.scalars:
        rounds = out[f.start] and max(abs(f.low), abs(f.high)) > 1.0 / out[f.start]
        if f.whole and not rounds and f.start not in computed:
            out[f.start] = 0.0
    return out


def _is_wide(space: FeatureSpace, column: int) -> bool:
    """Whether NumPy promotes this column's type to double: float64, and integers of at least 32 bits."""
    feature = next(f for f in space.features if f.start <= column < f.stop)
    if feature.kind != "continuous":
        return False
    stored = space.table.number_type(feature.sources[0])
    return stored.unit == 0.0 and stored.high >= 2.0**31 - 1.0


def rounding_of_probabilities(probability: float | None, unit: float) -> float:
    """Largest rounding error, in log-odds, of converting a score to a probability and comparing it with this one."""
    if probability is None or not 0.0 < probability < 1.0:
        return 0.0
    return min(ROUNDINGS_OF_A_PROBABILITY * unit / (probability * (1.0 - probability)), MOST)
