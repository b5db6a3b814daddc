"""An ONNX graph as an estimator: rows in the user's own columns go in, outcomes come out.

The graph is run in batches by the function ``run``, on the types that it declares: numbers become float32 where it
says so, as in any program that serves it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from globece.errors import ModelError
from globece.models.compiling.onnx.graph import TEXT, Graph, Port
from globece.space import FloatArray

BATCH = 16_384  # rows at a time: bounds the memory of what lies between the operators
Run = Callable[[Mapping[str, NDArray[Any]]], list[NDArray[Any]]]


@dataclass(frozen=True, eq=False)
class _Onnx:
    """A graph, and how to run it.

    Attributes
    ----------
    graph
        The graph, as plain data.
    run
        Runs it on a batch: a tensor for each input in, one for each output out.
    """

    graph: Graph
    run: Run

    @property
    def feature_names_in_(self) -> tuple[str, ...] | None:
        """Names of the columns, for a graph with an input for each."""
        return tuple(port.name for port in self.graph.inputs) if len(self.graph.inputs) > 1 else None

    @property
    def n_features_in_(self) -> int | None:
        """Number of columns, if the graph says so."""
        widths = [port.width for port in self.graph.inputs]
        return None if None in widths else sum(w for w in widths if w is not None)

    @property
    def is_single(self) -> bool:
        """Whether it rounds numbers to single precision."""
        return any(port.dtype == "float32" for port in self.graph.inputs)

    def _outputs(self, X: Any) -> list[NDArray[Any]]:
        tensors = tensors_of(X, self.graph.inputs)
        n = len(next(iter(tensors.values())))
        found = [self._batch(tensors, slice(a, a + BATCH)) for a in range(0, max(n, 1), BATCH)]
        return found[0] if len(found) == 1 else [np.concatenate(parts) for parts in zip(*found, strict=True)]

    def _batch(self, tensors: Mapping[str, NDArray[Any]], rows: slice) -> list[NDArray[Any]]:
        some = {name: tensor[rows] for name, tensor in tensors.items()}
        n = len(next(iter(some.values())))
        found = []
        for port, value in zip(self.graph.outputs, self.run(some), strict=True):
            if not isinstance(value, np.ndarray) or value.shape[:1] != (n,) or value.size > n * max(value.shape[-1], 1):
                raise ModelError(
                    f"output {port.name!r} of the ONNX graph must have one row for each of {n:,} rows; it has shape "
                    f"{getattr(value, 'shape', type(value).__name__)}"
                )
            found.append(value.reshape(n, -1) if value.ndim > 2 else value)
        return found


@dataclass(frozen=True, eq=False)
class OnnxClassifier(_Onnx):
    """A classifier out of an ONNX file: ``predict`` gives the graph's own labels, or the largest of its scores.

    Attributes
    ----------
    labels
        Its classes, in the order of its scores.
    label, scores
        Which of its outputs holds the label of each row, and which a score for each class, if any.
    head
        What the scores are: ``"probabilities"``, ``"log shares"``, or ``None`` for numbers before a softmax.
    """

    labels: tuple[Any, ...] = (0, 1)
    label: int | None = None
    scores: int | None = None
    head: str | None = None

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes."""
        return np.array(self.labels)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        found = self._outputs(X)
        if self.label is not None:
            answer = found[self.label].reshape(len(found[self.label]), -1)
            return np.asarray(answer[:, 0].astype(str) if answer.dtype == object else answer[:, 0])
        assert self.scores is not None
        score = found[self.scores].reshape(len(found[self.scores]), -1)
        if score.shape[1] > 1:
            return np.asarray(self.classes_[score.argmax(axis=1)])
        second = score[:, 0] >= 0.5 if self.head == "probabilities" else score[:, 0] > 0.0
        return np.asarray(self.classes_[second.astype(int)])

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, one per column."""
        if self.scores is None:
            raise ModelError("the ONNX graph gives labels and no probabilities; leave threshold out")
        score = self._outputs(X)[self.scores].astype(np.float64)
        score = score.reshape(len(score), -1)
        if score.shape[1] == 1:
            return np.column_stack([1.0 - score[:, 0], score[:, 0]])
        if self.head == "log shares":
            return np.asarray(np.exp(score))
        return score if self.head == "probabilities" else np.asarray(softmax(score, axis=1))


@dataclass(frozen=True, eq=False)
class OnnxRegressor(_Onnx):
    """A graph that gives one number per row: ``predict`` returns it, to set a threshold on."""

    def predict(self, X: Any) -> NDArray[Any]:
        """The value of each row."""
        (values,) = self._outputs(X)[:1]
        return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


# -- rows as tensors --------------------------------------------------------------------------------------------------


def tensors_of(X: Any, ports: tuple[Port, ...]) -> dict[str, NDArray[Any]]:
    """The rows as the tensors that a graph takes: one matrix, or a column for each input."""
    if len(ports) == 1 and ports[0].width != 1:
        return {ports[0].name: _matrix(X, ports[0])}
    if isinstance(X, np.ndarray):
        if X.ndim != 2 or X.shape[1] != len(ports):
            raise ModelError(f"the ONNX graph takes {len(ports)} columns; the matrix has shape {X.shape}")
        return {port.name: _typed(X[:, i], port)[:, None] for i, port in enumerate(ports)}
    frame = nw.from_native(X, eager_only=True)
    known = places(list(frame.columns), [port.name for port in ports])
    if len(ports) == 1 and len(frame.columns) == 1:
        known = {ports[0].name: frame.columns[0]}
    missing = [port.name for port in ports if port.name not in known]
    if missing:
        raise ModelError(f"the ONNX graph takes column(s) {missing}; the frame has {list(frame.columns)}")
    return {port.name: _column(frame[known[port.name]], port)[:, None] for port in ports}


def places(columns: list[str], wanted: list[str]) -> dict[str, str]:
    """The column that each input stands for: of the same name, or with its letters that no ONNX name has replaced."""
    plain = {re.sub(r"\W", "_", name): name for name in columns}
    return {name: name if name in columns else plain[name] for name in wanted if name in columns or name in plain}


def _matrix(X: Any, port: Port) -> NDArray[Any]:
    if isinstance(X, np.ndarray):
        matrix = X if X.ndim == 2 else X.reshape(len(X), -1)
    else:
        frame = nw.from_native(X, eager_only=True)
        if port.dtype == TEXT:
            matrix = np.column_stack([_column(frame[name], port) for name in frame.columns])
        else:
            text = [c for c, kind in frame.schema.items() if not (kind.is_numeric() or kind == nw.Boolean)]
            if text:
                raise ModelError(f"the ONNX graph takes numbers, and columns {text} hold none; encode them first")
            matrix = frame.to_numpy()
    if port.width is not None and matrix.shape[1] != port.width:
        raise ModelError(f"the ONNX graph takes {port.width} columns; the rows have {matrix.shape[1]}")
    return _typed(matrix, port)


def _column(series: nw.Series[Any], port: Port) -> NDArray[Any]:
    if port.dtype != TEXT:
        if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
            raise ModelError(f"the ONNX graph takes numbers in {port.name!r}, and column {series.name!r} holds none")
        return _typed(series.to_numpy(), port)
    if series.dtype.is_numeric():
        raise ModelError(f"the ONNX graph takes text in {port.name!r}, and column {series.name!r} holds numbers")
    if series.is_null().any():
        raise ModelError(
            f"column {series.name!r} misses values, and text in ONNX cannot be missing: replace them by a category, "
            "in training as well"
        )
    return np.array(series.to_list(), dtype=object)


def _typed(values: NDArray[Any], port: Port) -> NDArray[Any]:
    """Values in the type that the graph declares."""
    if port.dtype == TEXT:
        return np.asarray(values.astype(str), dtype=object)
    kind = np.dtype(port.dtype or "float32")
    try:
        numbers = values.astype(np.float64) if values.dtype == object else values
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.ascontiguousarray(numbers, dtype=kind)
            unlike = kind.kind in "iu" and not np.array_equal(found, numbers)
    except (TypeError, ValueError) as error:
        raise ModelError(f"the ONNX graph takes {kind} in {port.name!r}: {error}") from error
    if unlike:
        raise ModelError(f"the ONNX graph takes whole numbers in {port.name!r}, and some are missing or not whole")
    return found
