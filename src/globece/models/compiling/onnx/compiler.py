"""From an ONNX graph to a model over the encoded matrix: half-spaces, trees or a network."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from globece.errors import GlobeCEError
from globece.models.base import Model
from globece.models.clearance import Summed
from globece.models.compiling.compose import Category, NotCompiled, Symbol, inputs_of, raw_symbols
from globece.models.compiling.onnx.columns import FLOATS, Columns
from globece.models.compiling.onnx.estimators import OnnxClassifier, OnnxRegressor, places
from globece.models.compiling.onnx.forests import Forest
from globece.models.compiling.onnx.graph import TEXT, Port
from globece.models.compiling.onnx.operators import walk
from globece.models.compiling.onnx.scores import Labels, Net
from globece.models.decision import Decision
from globece.models.known import is_kind
from globece.models.linear.half_spaces import LinearModel
from globece.models.networks.network import ReLUNetwork
from globece.models.networks.reading import conditions
from globece.models.trees.ensemble import TreeEnsemble
from globece.space import FeatureSpace

KINDS = ("OnnxClassifier", "OnnxRegressor")


def supports(model: Any) -> bool:
    """Whether this is a graph out of a file."""
    return is_kind(model, "globece", KINDS)


def compile_graph(model: OnnxClassifier | OnnxRegressor, space: FeatureSpace, decide: Decision) -> Model:
    """Compile a graph by its operators, or raise :class:`NotCompiled`, which names the operator that is in the way."""
    labels, port = decide.classes, 0
    if isinstance(model, OnnxClassifier):
        by_label = decide.threshold is None and model.label is not None
        asked = model.label if by_label else model.scores
        if asked is None:
            raise NotCompiled("the ONNX graph gives no probabilities")
        port = asked
    value = walk(model.graph, _given(model.graph.inputs, space), model.graph.outputs[port].name)
    bare = not isinstance(value, Labels)
    if isinstance(value, Labels):
        if labels is None or set(value.names) != set(labels):
            raise NotCompiled(f"the graph's labels are {list(value.names)}, and its classes {labels}")
        labels, value = value.names, value.scores
    try:
        if isinstance(value, Forest):
            return _trees(value, labels, space, decide)
        if isinstance(value, Net):
            return _network(value, labels, space, decide, bare=bare)
    except (GlobeCEError, ValueError) as error:
        raise NotCompiled(f"the ONNX graph: {error}") from error
    raise NotCompiled("the ONNX graph gives no scores of a linear model, trees or a network")


def _given(ports: tuple[Port, ...], space: FeatureSpace) -> dict[str, Columns]:
    """The graph's inputs as columns of the encoded matrix."""
    symbols = raw_symbols(space)
    if len(ports) == 1:
        return {ports[0].name: _typed(list(symbols.values()), ports[0])}
    names = [port.name for port in ports]
    known = places(list(symbols), names) if set(names) - set(symbols) else {name: name for name in names}
    if len(known) < len(ports):  # a matrix, whose columns have no names: by their order
        known = dict(zip(names, symbols, strict=True))
    return {port.name: _typed([symbols[known[port.name]]], port) for port in ports}


def _typed(symbols: list[Symbol], port: Port) -> Columns:
    if port.dtype == TEXT:
        if not all(isinstance(s, Category) for s in symbols):
            raise NotCompiled(f"input {port.name!r} takes text, and its column is a number")
        return Columns(tuple(symbols), TEXT)
    where = f"input {port.name!r}"
    numbers = tuple(inputs_of(symbols, where))
    if port.dtype not in (*FLOATS, "int64", "int32", "bool"):
        raise NotCompiled(f"{where} takes {port.dtype or 'an unknown type'}")
    columns = Columns(numbers, "float64")
    if port.dtype == "float32":
        return columns.cast("float32", where)
    return Columns(numbers, port.dtype)


def _trees(value: Forest, labels: tuple[Any, ...] | None, space: FeatureSpace, decide: Decision) -> Model:
    if decide.threshold is not None and labels is not None and value.why_no_probability:
        raise NotCompiled(value.why_no_probability)
    reading = value.reading
    if reading.classes != labels:
        n = len(reading.start) if reading.classes is None else len(reading.classes)
        if labels is None or len(labels) != n:
            raise NotCompiled("the ONNX graph gives one sum of trees, and not the scores of classes")
        reading = replace(reading, classes=labels)
    inputs = inputs_of(list(value.columns.symbols), "the trees")
    return TreeEnsemble.from_reading(reading, space, inputs, decide.favourable, decide.threshold, decide.name)


def _network(value: Net, labels: tuple[Any, ...] | None, space: FeatureSpace, decide: Decision, *, bare: bool) -> Model:
    if value.complement:
        raise NotCompiled("the ONNX graph gives 1 minus a probability")
    if labels is not None and value.width != len(labels) and not (value.width == 1 and len(labels) == 2):
        raise NotCompiled(f"the ONNX graph gives {value.width} scores for {len(labels)} classes")
    if value.head not in (None, "probabilities", "shares", "log shares"):
        raise NotCompiled(f"the ONNX graph ends in {value.head}")
    if decide.threshold is not None and labels is not None and value.head is None and not _softmaxed(decide):
        raise NotCompiled("the ONNX graph gives scores that are not probabilities")
    reading = value.reading(labels, bare=bare)
    inputs = inputs_of(list(value.columns.symbols), "the network")
    if reading.layers.leaks:
        return ReLUNetwork.from_reading(
            reading, space, inputs, decide.favourable, decide.threshold, decide.name, converts=True
        )
    asks = conditions(reading, decide.favourable, decide.threshold, decide.name)
    weight, bias = reading.layers.weights[0], reading.layers.biases[0]
    by_probability = value.head is not None and (decide.threshold is not None or bare)
    cut = 0.5 if decide.threshold is None else decide.threshold
    return LinearModel.compose(
        space,
        inputs,
        (weight @ asks.matrix).T,
        bias @ asks.matrix + asks.shift,
        closed=asks.closed,
        name=decide.name,
        probability=cut if by_probability else None,
        unit=0.5 * value.precision,
        summed=Summed((np.abs(weight) @ np.abs(asks.matrix)).T, 0),
    )


def _softmaxed(decide: Decision) -> bool:
    """Whether bare scores become probabilities by our own softmax."""
    return isinstance(decide.model, OnnxClassifier) and decide.model.label is None
