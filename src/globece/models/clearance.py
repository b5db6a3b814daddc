"""How precisely a model computes: what its answers can be trusted to, whatever the batch and the processor."""

from __future__ import annotations

from collections.abc import Sequence

from globece.models.inputs import Input, Number
from globece.space import FeatureSpace, FloatArray

DOUBLE, SINGLE = 2.0**-53, 2.0**-24  # rounding units
MADE_OF_SCORES = 4.0  # roundings between a score and the probability made of it
MOST = 1e-3  # of log-odds: next to 0 and 1 probabilities hold too few digits to be clear of that


def unit_of(space: FeatureSpace) -> float:
    """Rounding unit of a model whose columns are single or double precision, when it sums them up.

    Columns of single precision keep scikit-learn and NumPy in single precision. Nobody sums in half precision: such a
    column meets weights of a wider type, and what its own type rounds is counted where it is read.
    """
    return min(SINGLE, max(DOUBLE, float(space.rounding.max(initial=0.0))))


def unit_of_sum(space: FeatureSpace, inputs: Sequence[Input]) -> float:
    """Rounding unit of a sum over these inputs: one column of double precision makes it one of doubles."""
    wide = (_is_wide(space, source.column) for source in inputs if isinstance(source, Number))
    return DOUBLE if any(wide) else unit_of(space)


def rounding_of_columns(space: FeatureSpace, inputs: Sequence[Input]) -> FloatArray:
    """Largest relative rounding of each encoded column, as it is stored and as the steps before a model compute it.

    Whole numbers that their type holds are never rounded where no step computes with them.
    """
    out = space.rounding.copy()
    computed = {source.column for source in inputs if isinstance(source, Number) and source.forward is not None}
    for f in space.scalars:
        rounds = out[f.start] and max(abs(f.low), abs(f.high)) > 1.0 / out[f.start]
        if f.whole and not rounds and f.start not in computed:
            out[f.start] = 0.0
    return out


def _is_wide(space: FeatureSpace, column: int) -> bool:
    """Whether numbers of this column's type and others make doubles: those of float64, and of integers of 32 bits."""
    feature = next(f for f in space.features if f.start <= column < f.stop)
    if feature.kind != "continuous":
        return False
    held = space.table.number_type(feature.sources[0])
    return held.unit == 0.0 and held.high >= 2.0**31 - 1.0


def rounding_of_probabilities(probability: float | None, unit: float) -> float:
    """What making a probability of a score and comparing it with this one may cost, in log-odds."""
    if probability is None or not 0.0 < probability < 1.0:
        return 0.0
    return min(MADE_OF_SCORES * unit / (probability * (1.0 - probability)), MOST)
