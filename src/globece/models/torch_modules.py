"""What a torch module decides about rows: they go in as a tensor of its own type and device, numbers come back.

Torch is an extra, so it is only imported once somebody has made a module of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from scipy.special import expit, softmax

from globece.errors import ModelError, require
from globece.space import FloatArray

# What a module may end in, and what its outputs then are.
HEADS = {"Sigmoid": "probabilities", "Softmax": "shares", "LogSoftmax": "log shares"}
ENOUGH = 64  # rows


def is_module(model: Any) -> bool:
    """Whether this is a torch module without methods of an estimator."""
    nn = getattr(sys.modules.get("torch"), "nn", None)
    return nn is not None and isinstance(model, nn.Module) and not hasattr(model, "predict")


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Put a module in evaluation mode without gradients, and back as it was."""
    torch = require("torch", extra="torch", caller="asking a torch module")
    training = [m for m in module.modules() if m.training]
    for m in training:
        m.training = False
    try:
        with torch.inference_mode():
            yield
    finally:
        for m in training:
            m.training = True


def tensor(module: Any, rows: FloatArray) -> Any:
    """Rows as the module takes them: its own type of number, on its own device."""
    torch = require("torch", extra="torch", caller="asking a torch module")
    for own in (*module.parameters(), *module.buffers()):
        if own.is_floating_point():
            wide = own.dtype == torch.float64
            copy = np.array(rows, dtype=np.float64 if wide else np.float32, order="C")
            return torch.from_numpy(copy).to(dtype=own.dtype, device=own.device)
    return torch.from_numpy(rows.astype(np.float32))


def is_double(module: Any) -> bool:
    """Whether a module computes in double precision."""
    torch = require("torch", extra="torch", caller="asking a torch module")
    own = next((p for p in (*module.parameters(), *module.buffers()) if p.is_floating_point()), None)
    return own is not None and own.dtype == torch.float64


def numbers(found: Any) -> FloatArray:
    """A tensor as numbers, ``(rows, columns)``."""
    values = np.asarray(found.double().cpu().numpy())
    return values.reshape(len(values), -1) if values.ndim == 1 else values


def enough(rows: FloatArray) -> FloatArray:
    """The same rows and copies of the last: a few rows alone are summed in another order than among many."""
    return rows if not 0 < len(rows) < ENOUGH else np.vstack([rows, np.repeat(rows[-1:], ENOUGH - len(rows), axis=0)])


def outputs(module: Any, rows: FloatArray) -> FloatArray:
    """What the module gives for each row, however many there are."""
    with evaluating(module):
        found = module(tensor(module, enough(rows)))
    if not hasattr(found, "double"):
        raise ModelError(f"{type(module).__name__} returned {type(found).__name__}; one tensor is needed")
    return numbers(found)[: len(rows)]


def matrix(rows: Any) -> FloatArray:
    """Native rows as numbers, or an error that names the columns that hold none."""
    if not isinstance(rows, np.ndarray):
        frame = nw.from_native(rows, eager_only=True)
        text = [c for c, kind in frame.schema.items() if not (kind.is_numeric() or kind == nw.Boolean)]
        if text:
            raise ModelError(f"a torch module takes numbers, and columns {text} hold none; encode them first")
        rows = frame.to_numpy()
    return np.asarray(rows, dtype=np.float64)


def head_of(module: Any) -> str | None:
    """What the outputs are, by the module that stands last: one of the values of :data:`HEADS`; ``None`` for others."""
    while children := list(module.children()):
        passing = ("Identity", "Dropout", "Flatten")
        module = next((c for c in reversed(children) if type(c).__name__ not in passing), children[-1])
    return HEADS.get(type(module).__name__)


@dataclass(frozen=True)
class Asked:
    """A module as a function of native rows that gives a column for each class.

    One output is the second of two classes: where it is above 0, or at least 0.5 behind a sigmoid.

    Attributes
    ----------
    module
        The torch module.
    by_probability
        Whether to give probabilities, for a threshold, and not just the class.
    values
        Whether outputs are values, not classes: they come as they are.
    """

    module: Any
    by_probability: bool = False
    values: bool = False

    def __call__(self, rows: Any) -> FloatArray:
        """Ask the module."""
        found, head = outputs(self.module, matrix(rows)), head_of(self.module)
        if self.values or found.ndim != 2:
            return found
        if found.shape[1] == 1:
            value = found[:, 0]
            unknown = np.isnan(value)
            if not self.by_probability:
                second = value >= 0.5 if head == "probabilities" else value > 0.0
                return np.where(unknown[:, None], np.nan, np.eye(2)[second.astype(np.int64)])
            probability = value if head == "probabilities" else expit(value)
            return np.column_stack([1.0 - probability, probability])
        if not self.by_probability or head in ("probabilities", "shares"):
            return found
        return np.asarray(np.exp(found) if head == "log shares" else softmax(found, axis=1))
