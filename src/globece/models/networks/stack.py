"""A network while it is read: affine maps and bends, collected in order."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from globece.models.networks.clearance import Powers, merged_power, power, scaled_power, scaling_power
from globece.models.networks.layers import Layers
from globece.space import FloatArray


@dataclass
class Stack:
    """Affine maps and bends, as they are collected."""

    width: int
    weights: list[FloatArray] = field(default_factory=list)
    biases: list[FloatArray] = field(default_factory=list)
    leaks: list[FloatArray] = field(default_factory=list)
    powers: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)

    def affine(self, weight: FloatArray, bias: FloatArray) -> None:
        if len(self.weights) > len(self.leaks):  # no bend in between: merge the maps
            self.weights[-1], self.biases[-1] = self.weights[-1] @ weight, self.biases[-1] @ weight + bias
            self.powers[-1] = merged_power(self.powers[-1], weight, bias)
        else:
            self.weights.append(weight)
            self.biases.append(bias)
            self.powers.append(power(weight, bias))

    def scale(self, scale: FloatArray, shifts: tuple[FloatArray, ...]) -> None:
        """Scale each unit by itself, and add the shifts."""
        if len(self.weights) > len(self.leaks):
            self.weights[-1], self.biases[-1] = self.weights[-1] * scale, self.biases[-1] * scale + sum(shifts)
            self.powers[-1] = scaled_power(self.powers[-1], scale, shifts)
        else:
            self.weights.append(np.diag(scale))
            self.biases.append(np.sum(shifts, axis=0))
            self.powers.append(scaling_power(scale, shifts))

    def bend(self, slope: FloatArray) -> None:
        if len(self.weights) == len(self.leaks):
            self.identity()
        self.leaks.append(np.broadcast_to(slope, self.biases[-1].shape).copy())

    def identity(self) -> None:
        n = len(self.biases[-1]) if self.biases else self.width
        self.affine(np.eye(n), np.zeros(n))

    def finished(self) -> tuple[Layers, Powers]:
        """The network, which ends in an affine map, and how rounding errors grow in it."""
        if len(self.weights) == len(self.leaks):
            self.identity()
        powers = Powers(tuple(w for w, _ in self.powers), tuple(b for _, b in self.powers))
        return Layers(tuple(self.weights), tuple(self.biases), tuple(self.leaks)), powers
