"""A network over the encoded matrix: as it was read, and laid out for the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from globece.space import BoolArray, FloatArray, IntArray

SUBNORMAL = 1e-38  # weights below this are negligible, and slow: they are set to 0
NEGLIGIBLE = np.float32(1e-30)
PADDED = 8  # widths of layers are padded to a multiple, for vector instructions


class Net(NamedTuple):
    """A network over the encoded matrix, laid out for the kernel; favourable where all outputs are positive.

    Hidden unit j of layer l has index ``layout[0, l] + j`` in all arrays of units; the outputs follow.
    """

    entry: FloatArray  # (width, units of the first layer)
    weights: FloatArray  # each later layer as (inputs, units), one after the other
    coarse: NDArray[np.float32]  # the same, for bounds
    layout: IntArray  # (2, layers + 1): where each layer's units begin, and where its matrix does
    exit: FloatArray  # (outputs, units of the last layer)
    bias: FloatArray  # (units + outputs,)
    leak: FloatArray  # (units,) slope below 0
    coarse_leak: NDArray[np.float32]
    closed: BoolArray  # (outputs,) whether an output of exactly 0 is favourable


@dataclass(frozen=True)
class Layers:
    """A network as it was read: affine maps, with a (leaky) ReLU between each two.

    Attributes
    ----------
    weights, biases
        ``(inputs, units)`` and ``(units,)`` for each map.
    leaks
        Slope below 0 of each unit of all maps but the last: 0 for a ReLU, 1 for no bend.
    """

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    leaks: tuple[FloatArray, ...]

    def __call__(self, V: FloatArray) -> FloatArray:
        """Outputs of each row."""
        for weight, bias, leak in zip(self.weights, self.biases, self.leaks, strict=False):
            V = V @ weight
            V += bias
            V = np.where(V > 0.0, V, leak * V) if leak.any() else np.maximum(V, 0.0, out=V)
        return np.asarray(V @ self.weights[-1] + self.biases[-1])

    def before(self, matrix: FloatArray, shift: FloatArray) -> Layers:
        """The same network after an affine map of its inputs, ``v = z @ matrix + shift``."""
        first, bias = self.weights[0], self.biases[0]
        return Layers((matrix @ first, *self.weights[1:]), (shift @ first + bias, *self.biases[1:]), self.leaks)

    def after(self, matrix: FloatArray, shift: FloatArray) -> Layers:
        """The same network followed by an affine map of its outputs."""
        last, bias = self.weights[-1], self.biases[-1]
        return Layers((*self.weights[:-1], last @ matrix), (*self.biases[:-1], bias @ matrix + shift), self.leaks)


def compile_net(layers: Layers, closed: BoolArray) -> Net:
    """Lay out a network over the encoded matrix for the kernel."""
    weights, biases, leaks = list(layers.weights), list(layers.biases), list(layers.leaks)
    if not leaks:  # no hidden layer: the outputs become one, without a bend
        weights, biases = [weights[0], np.eye(weights[0].shape[1])], [biases[0], np.zeros(weights[0].shape[1])]
        leaks = [np.ones(weights[0].shape[1])]
    wide = [-(-w.shape[1] // PADDED) * PADDED for w in weights[:-1]]
    at = np.cumsum([0, *wide])
    bias, leak = np.zeros(at[-1] + len(biases[-1])), np.zeros(at[-1])
    for start, b, slope in zip(at, biases, leaks, strict=False):
        bias[start : start + len(b)] = b
        leak[start : start + len(b)] = slope
    bias[at[-1] :] = biases[-1]
    entry = np.zeros((len(weights[0]), wide[0]))
    entry[:, : weights[0].shape[1]] = weights[0]
    padded = []
    for layer in range(1, len(wide)):
        matrix = np.zeros((wide[layer - 1], wide[layer]))
        matrix[: weights[layer].shape[0], : weights[layer].shape[1]] = weights[layer]
        padded.append(matrix.ravel())
    exit_ = np.zeros((weights[-1].shape[1], wide[-1]))
    exit_[:, : len(weights[-1])] = weights[-1].T
    layout = np.array([at, np.cumsum([0, 0, *(len(p) for p in padded)])])
    flat = np.concatenate(padded) if padded else np.zeros(0)
    for tiny in (flat, entry, exit_):
        tiny[np.abs(tiny) < SUBNORMAL] = 0.0
    coarse = flat.astype(np.float32)
    coarse[np.abs(coarse) < NEGLIGIBLE] = 0.0  # their products would be subnormal
    return Net(entry, flat, coarse, layout, exit_, bias, leak, leak.astype(np.float32), np.asarray(closed))
