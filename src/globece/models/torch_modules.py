"""Call a torch module on rows: a tensor of the module's type and device goes in, numbers come back.

Torch is an extra, so it is imported only where a module is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from scipy.special import expit, softmax

from globece.errors import ModelError, require
from globece.space import FloatArray

# What a module may end in, and what its outputs then are.
HEADS = {"Sigmoid": "probabilities", "Softmax": "shares", "LogSoftmax": "log shares"}
SMALLEST_BATCH = 64


def is_module(model: Any) -> bool:
    """Whether this is a torch module that is not an estimator as well."""
    nn = getattr(sys.modules.get("torch"), "nn", None)
    return nn is not None and isinstance(model, nn.Module) and not hasattr(model, "predict")


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Put a module in evaluation mode without gradients, and restore it."""
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
    """Rows as a tensor of the module's type, on its device."""
    torch = require("torch", extra="torch", caller="asking a torch module")
    like = _floating_point_tensor(module)
    if like is None:
        return torch.from_numpy(rows.astype(np.float32))
    copy = np.array(rows, dtype=np.float64 if like.dtype == torch.float64 else np.float32, order="C")
    return torch.from_numpy(copy).to(dtype=like.dtype, device=like.device)


def is_double(module: Any) -> bool:
    """Whether a module computes in double precision."""
    torch = require("torch", extra="torch", caller="asking a torch module")
    like = _floating_point_tensor(module)
    return like is not None and like.dtype == torch.float64


def _floating_point_tensor(module: Any) -> Any:
    """The first parameter or buffer that holds floating-point numbers, if there is one."""
    return next((p for p in (*module.parameters(), *module.buffers()) if p.is_floating_point()), None)


def numbers(found: Any) -> FloatArray:
    """A tensor as an array, ``(rows, columns)``."""
    values = np.asarray(found.cpu().double().numpy())
    return values.reshape(len(values), -1) if values.ndim == 1 else values


_as_given: ContextVar[bool] = ContextVar("as_given", default=False)


@contextmanager
def as_given() -> Iterator[None]:
    """Pass rows to modules as a user would, without padding."""
    token = _as_given.set(True)
    try:
        yield
    finally:
        _as_given.reset(token)


def padded(rows: FloatArray) -> FloatArray:
    """The rows, padded with copies of the last: torch sums in another order in small batches."""
    missing = 0 if _as_given.get() else SMALLEST_BATCH - len(rows)
    return rows if missing <= 0 or not len(rows) else np.vstack([rows, np.repeat(rows[-1:], missing, axis=0)])


def outputs(module: Any, rows: FloatArray) -> FloatArray:
    """The module's outputs for each row; they do not depend on the number of rows."""
    with evaluating(module):
        found = module(tensor(module, padded(rows)))
    if not hasattr(found, "double"):
        raise ModelError(f"{type(module).__name__} returned {type(found).__name__}; one tensor is needed")
    return numbers(found)[: len(rows)]


def matrix(rows: Any) -> FloatArray:
    """Native rows as numbers; the error names columns that are not numeric."""
    if not isinstance(rows, np.ndarray):
        frame = nw.from_native(rows, eager_only=True)
        text = [c for c, kind in frame.schema.items() if not (kind.is_numeric() or kind == nw.Boolean)]
        if text:
            raise ModelError(f"a torch module takes numbers, and columns {text} hold none; encode them first")
        rows = frame.to_numpy()
    return np.asarray(rows, dtype=np.float64)


def head_of(module: Any) -> str | None:
    """What the outputs are, by the last module: one of the values of :data:`HEADS`, or ``None``."""
    while children := list(module.children()):
        passing = ("Identity", "Dropout", "Flatten")
        module = next((c for c in reversed(children) if type(c).__name__ not in passing), children[-1])
    return HEADS.get(type(module).__name__)


@dataclass(frozen=True)
class Asked:
    """A module as a function of native rows that returns a column for each class.

    A single output stands for the second of two classes: above 0, or at least 0.5 after a sigmoid.

    Attributes
    ----------
    module
        The torch module.
    by_probability
        Whether to return probabilities, for a threshold, instead of just the class.
    values
        Whether outputs are values, not classes; they are returned unchanged.
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
