"""A network's outputs in double precision, and their rounding errors in the network's own precision.

A network computes in its own precision and sums in an order that depends on the processor and on the batch, so its
decision right on the boundary is arbitrary. Here each output is computed row by row, independently of the batch,
together with its rounding error. Every product and partial sum has a relative error; its effect on an output follows
from the output's slope in each unit. Rounding errors are nearly independent, so their squares add up, and outputs must
exceed `SAFE` standard errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from globece.models.clearance import rounding_of_probabilities
from globece.models.networks.layers import SUBNORMAL, Layers, Net, compile_net
from globece.models.networks.scratch import AT, BEGIN, FAST, ONE, ZERO
from globece.parallel import over_rows
from globece.space import BoolArray, FloatArray

SAFE = 10.0  # standard errors
# The kernel is first asked for outputs of this multiple of a typical rounding error.
ASKED = 1.2
# Where that was too little, for these multiples of the local rounding error, until it is enough.
NEEDED = (0.0, *2.0 ** np.arange(0.0, 16.0))
LANES = 16.0  # terms that are summed in parallel, roughly: only longer sums round more often
FEW = 1024  # rows that are not worth another thread


@dataclass(frozen=True)
class Powers:
    """How rounding errors grow in each map of a network: squares of its weights, times the number of roundings.

    Attributes
    ----------
    weights
        ``(inputs, units)`` for each map: multiplied by its squared inputs, they give the squared error of each unit.
    biases
        ``(units,)`` for each map: the share of its bias.
    """

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]

    @classmethod
    def of(cls, weights: Sequence[FloatArray], biases: Sequence[FloatArray]) -> Powers:
        """The powers of affine maps that the network computes separately."""
        powers = [power(w, b) for w, b in zip(weights, biases, strict=True)]
        return cls(tuple(w for w, _ in powers), tuple(b for _, b in powers))


def power(weight: FloatArray, bias: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The powers of one map; see :class:`Powers`."""
    return (1.0 + len(weight) / LANES) * np.square(weight), np.square(bias)


def merged_power(
    before: tuple[FloatArray, FloatArray], weight: FloatArray, bias: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The powers of two consecutive maps, which the network computes one after the other."""
    again = 2.0 * (2.0 + len(weight) / LANES) * np.square(weight)
    return before[0] @ again, before[1] @ again + np.square(bias)


def scaling_power(scale: FloatArray, shifts: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """The powers of a map that scales each unit by itself and adds shifts, which may cancel; see :class:`Powers`."""
    return np.diag(np.square(scale)), np.sum(np.square(shifts), axis=0)


def scaled_power(
    before: tuple[FloatArray, FloatArray], scale: FloatArray, shifts: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """The powers of a map whose units are then scaled, each by itself: one more rounding of each, and of the shifts."""
    again = 2.0 * np.square(scale)
    return before[0] * again, before[1] * again + np.sum(np.square(shifts), axis=0)


@dataclass(frozen=True)
class Clearance:
    """A network over its inputs in double precision, and the rounding error of each output.

    Attributes
    ----------
    net
        From the network's inputs to the outputs that must be positive.
    powers
        The powers of the same maps, laid out in the same way.
    unit
        Unit roundoff of the network's arithmetic.
    head
        Largest rounding error of converting scores to probabilities, in scores.
    """

    net: Net
    powers: Net
    unit: float
    head: float

    @cached_property
    def _squares(self) -> tuple[NDArray[np.float32], ...]:
        """The powers in single precision, which is enough for errors; without subnormal numbers."""
        found = (self.powers.entry.ravel(), self.powers.weights, self.powers.exit, self.powers.bias)
        return tuple(np.where(a < SUBNORMAL, 0.0, a).astype(np.float32) for a in found)

    @classmethod
    def of(
        cls,
        layers: Layers,
        closed: BoolArray,
        powers: Powers,
        asked: FloatArray,
        unit: float,
        probability: float | None,
    ) -> Clearance:
        """Lay out a network.

        Parameters
        ----------
        layers
            From the network's inputs to the outputs that must be positive.
        closed
            Whether an output of exactly 0 counts.
        powers
            Powers of the network up to its scores.
        asked
            Weight of each score in each output, ``(scores, outputs)``.
        unit
            Unit roundoff of the network's arithmetic.
        probability
            Threshold on the probability, where scores are converted to probabilities.
        """
        squares = np.square(asked)
        maps = Layers(
            (*powers.weights[:-1], powers.weights[-1] @ squares),
            (*powers.biases[:-1], powers.biases[-1] @ squares),
            layers.leaks,
        )
        return cls(
            compile_net(layers, closed), compile_net(maps, closed), unit, rounding_of_probabilities(probability, unit)
        )

    def __call__(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each row, by how much its outputs exceed their rounding errors at least; and the largest error."""
        lead, error = np.empty(len(V)), np.empty(len(V))
        V = np.ascontiguousarray(V, dtype=np.float64)
        kernel: Any = _leads
        net, squares = self.net, self._squares
        arrays = (net.entry.ravel(), net.weights, net.coarse, net.layout, net.exit, net.bias, net.leak, net.coarse_leak)

        def work(a: int, b: int) -> None:
            kernel(a, b, *arrays, *squares, V, SAFE * self.unit, self.head, lead, error)

        if len(V):
            over_rows(len(V), work, few=FEW)
        return lead, error


@numba.njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _pass_on(weights, squares, begin, width, v, row, after, spread):  # type: ignore[no-untyped-def]
    """Add one unit's contribution to the next layer, and to the squared errors there."""
    w, q = weights[begin + row * width : begin + (row + 1) * width], squares[begin + row * width :]
    vv = np.float32(v * v)
    for o in range(width):
        after[o] += v * w[o]
    for o in range(width):
        spread[o] += vv * q[o]


@numba.njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _slope_of(weights, begin, width, row, ahead):  # type: ignore[no-untyped-def]
    """An output's slope in one unit, given its slopes in the next layer's units."""
    w, total = weights[begin + row * width : begin + (row + 1) * width], ZERO
    for o in range(width):
        total += w[o] * ahead[o]
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _leads(  # type: ignore[no-untyped-def]
    begin, end, entry, weights, coarse, layout, exit_, bias, leak, coarse_leak, entry_squares, squares, exit_squares,
    bias_squares, V, share, head, lead, error,
):  # fmt: skip
    """Leads and errors of rows begin to end; errors in single precision."""
    layers, outputs = layout.shape[1] - 1, len(exit_)
    wide, units, widest = layout[AT, 1], layout[AT, layers], 0
    for layer in range(layers):
        widest = max(widest, layout[AT, layer + 1] - layout[AT, layer])
    value, spread = np.empty(units), np.empty(units, dtype=np.float32)
    slopes = np.empty((2, widest), dtype=np.float32)
    for r in range(begin, end):
        value[:], spread[:] = bias[:units], bias_squares[:units]
        for j in range(V.shape[1]):
            if V[r, j] != 0.0:
                _pass_on(entry, entry_squares, 0, wide, V[r, j], j, value[:wide], spread[:wide])
        for layer in range(1, layers):
            here, there, stop = layout[AT, layer - 1], layout[AT, layer], layout[AT, layer + 1]
            for j in range(there - here):
                p = value[here + j]
                h = p if p > 0.0 else leak[here + j] * p
                if h != 0.0:
                    _pass_on(weights, squares, layout[BEGIN, layer], stop - there, h, j, value[there:stop],
                             spread[there:stop])  # fmt: skip
        lead[r], error[r] = np.inf, 0.0
        here, last = layout[AT, layers - 1], units - layout[AT, layers - 1]
        for m in range(outputs):
            total, square = bias[units + m], np.float64(bias_squares[units + m])
            back, ahead = slopes[0], slopes[1]
            for j in range(last):
                p = value[here + j]
                slope = 1.0 if p > 0.0 else leak[here + j]
                h = slope * p
                total += h * exit_[m, j]
                square += h * h * exit_squares[m, j]
                back[j] = slope * exit_[m, j]
                square += back[j] * back[j] * spread[here + j]
            for layer in range(layers - 1, 0, -1):
                at, there, stop = layout[AT, layer - 1], layout[AT, layer], layout[AT, layer + 1]
                back, ahead = ahead, back
                for j in range(there - at):
                    slope = ONE if value[at + j] > 0.0 else coarse_leak[at + j]
                    back[j] = ZERO
                    if slope != ZERO:
                        back[j] = slope * _slope_of(coarse, layout[BEGIN, layer], stop - there, j, ahead)
                        square += back[j] * back[j] * spread[at + j]
            off = share * np.sqrt(square) + head
            lead[r] = min(lead[r], total - off)
            error[r] = max(error[r], off)
