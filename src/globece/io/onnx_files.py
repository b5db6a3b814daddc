"""Load an ONNX graph, checked before onnxruntime sees it.

A graph may name files beside it for its tensors, run loops, call functions and use operators of other libraries. None
of that is needed for a model over a table's rows, so none of it is accepted, and the memory of what is run is bounded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from globece.errors import FileFormatError, ModelError, require
from globece.io.files import first_line
from globece.models.compiling.onnx.estimators import OnnxClassifier, OnnxRegressor
from globece.models.compiling.onnx.graph import Graph, Node, Port

LARGEST_FILE = 1 << 30  # bytes
MOST_NODES = 100_000
MOST_MEMORY = 1 << 31  # bytes of onnxruntime's tensors
DOMAINS = {"": "", "ai.onnx": "", "ai.onnx.ml": "ai.onnx.ml."}
TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64",
}  # fmt: skip
# Operators that draw at random, that repeat others, or that keep something from one call to the next.
REFUSED = frozenset(
    (
        *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        *("If", "Loop", "Scan", "SequenceMap", "Optional", "OptionalGetElement", "OptionalHasElement", "ImageDecoder"),
    )
)
HEADS = {"Sigmoid": "probabilities", "Softmax": "probabilities", "LogSoftmax": "log shares"}
EXPORTED = "export the model again with its weights inside the file (for torch: external_data=False)"


def load_onnx(file: Path) -> OnnxClassifier | OnnxRegressor:
    """Load a graph as a classifier, if it gives labels or a score for each of several classes, or as a regressor."""
    caller = f"load_model({file.name!r})"
    onnx = require("onnx", extra="onnx", caller=caller)
    runtime = require("onnxruntime", extra="onnx", caller=caller)
    if file.stat().st_size > LARGEST_FILE:
        raise FileFormatError(
            f"{file} has {file.stat().st_size:,} bytes; ONNX files of up to {LARGEST_FILE:,} are read"
        )
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(file.read_bytes())
    except Exception as error:  # protobuf has errors of its own
        raise FileFormatError(f"{file} is not an ONNX model, or not a whole one: {first_line(error)}") from error
    _check(proto, file)
    try:
        proto = _without_maps(proto)
        graph = _plain(onnx, proto, file)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
        raise FileFormatError(f"{file} holds a damaged ONNX graph: {first_line(error)}") from error
    return _estimator(graph, _runner(runtime, proto, graph, file), file)


# -- what is refused --------------------------------------------------------------------------------------------------


def _check(proto: Any, file: Path) -> None:
    graph = proto.graph
    if not graph.node or not graph.input or not graph.output:
        raise FileFormatError(
            f"{file} is not an ONNX model: it has {len(graph.node)} operators, {len(graph.input)} inputs and "
            f"{len(graph.output)} outputs"
        )
    if len(graph.node) > MOST_NODES:
        raise FileFormatError(f"{file} has {len(graph.node):,} operators; up to {MOST_NODES:,} are read")
    if proto.functions:
        raise FileFormatError(f"{file} defines functions of its own, which are not run; export it without them")
    for node in graph.node:
        if node.domain not in DOMAINS:
            raise FileFormatError(
                f"{file} uses operator {node.op_type} of {node.domain!r}; only those of ai.onnx and ai.onnx.ml are run"
            )
        if node.op_type in REFUSED or any(a.HasField("g") or a.graphs for a in node.attribute):
            raise FileFormatError(
                f"{file} uses operator {node.op_type}, which is not run: a model must be a plain graph"
            )
    outside = next((name for name, tensor in _tensors(graph) if _lies_outside(tensor)), None)
    if outside is not None:
        raise FileFormatError(
            f"{file} keeps the weights of {outside!r} in another file (external data), which is never read; {EXPORTED}"
        )


def _tensors(graph: Any) -> Iterable[tuple[str, Any]]:
    """Every tensor in a graph, wherever it may be."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for sparse in graph.sparse_initializer:
        yield from _parts(sparse)
    for node in graph.node:
        for attribute in node.attribute:
            for tensor in (attribute.t, *attribute.tensors):
                yield f"{node.op_type}.{attribute.name}", tensor
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from _parts(sparse)


def _parts(sparse: Any) -> Iterable[tuple[str, Any]]:
    yield sparse.values.name, sparse.values
    yield sparse.indices.name, sparse.indices


def _lies_outside(tensor: Any) -> bool:
    return bool(tensor.data_location != 0 or tensor.external_data)


# -- the graph as plain data ------------------------------------------------------------------------------------------


def _without_maps(proto: Any) -> Any:
    """The same without its last ZipMaps, which turn each row's scores into a dictionary."""
    maps = {node.output[0]: node for node in proto.graph.node if node.op_type == "ZipMap" and len(node.output) == 1}
    ends = [output for output in proto.graph.output if output.name in maps]
    for output in ends:
        source = maps[output.name].input[0]
        output.Clear()
        output.name = source
    return proto


def _plain(onnx: Any, proto: Any, file: Path) -> Graph:
    graph = proto.graph
    constants: dict[str, NDArray[Any]] = {}
    for tensor in graph.initializer:
        constants[tensor.name] = _array(onnx, tensor)
    nodes = []
    for node in graph.node:
        given = {a.name: _attribute(onnx, a) for a in node.attribute}
        op = DOMAINS[node.domain] + node.op_type
        if op == "Constant":
            value = next(iter(given.values()), None)
            constants[node.output[0]] = np.asarray(value)
            continue
        if op == "Cast":
            given["to"] = TYPES.get(int(given.get("to", 0)), "")
        nodes.append(Node(op, tuple(node.input), tuple(node.output), given))
    inputs = tuple(_port(value) for value in graph.input if value.name not in constants)
    if not inputs:
        raise FileFormatError(f"{file} is an ONNX graph that takes nothing")
    outputs = tuple(_port(value) for value in graph.output)
    return Graph(inputs, outputs, tuple(nodes), constants)


def _array(onnx: Any, tensor: Any) -> NDArray[Any]:
    """A tensor as an array; one that claims more than its bytes hold is an error."""
    if tensor.data_type not in TYPES:
        return np.empty(0)
    found: NDArray[Any] = onnx.numpy_helper.to_array(tensor)
    return found


def _attribute(onnx: Any, attribute: Any) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, onnx.TensorProto):
        found = _array(onnx, value)
        return found.astype(str) if found.dtype == object else found
    if isinstance(value, list | tuple) or hasattr(value, "__len__"):
        return [v.decode("utf-8", errors="replace") if isinstance(v, bytes) else v for v in value]
    return value


def _port(value: Any) -> Port:
    kind = value.type.tensor_type
    dims = list(kind.shape.dim)
    width = 1 if kind.HasField("shape") and len(dims) == 1 else None
    if len(dims) == 2 and dims[1].dim_value > 0:
        width = int(dims[1].dim_value)
    return Port(value.name, TYPES.get(kind.elem_type, ""), width)


# -- running it -------------------------------------------------------------------------------------------------------

_bounded = threading.Lock()
_is_bounded = False


def _bound_memory(runtime: Any) -> None:
    """Give onnxruntime's tensors an arena of bounded size, once per process."""
    global _is_bounded
    with _bounded:
        if not _is_bounded:
            arena = runtime.OrtAllocatorType.ORT_ARENA_ALLOCATOR
            info = runtime.OrtMemoryInfo("Cpu", arena, 0, runtime.OrtMemType.DEFAULT)
            runtime.create_and_register_allocator(info, runtime.OrtArenaCfg(MOST_MEMORY, -1, -1, -1))
            _is_bounded = True


def _runner(runtime: Any, proto: Any, graph: Graph, file: Path) -> Callable[..., list[NDArray[Any]]]:
    """A function that runs the graph, on one thread: with several, sums depend on the number of rows."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what matters is raised
    options.add_session_config_entry("session.use_env_allocators", "1")
    try:
        _bound_memory(runtime)
        session = runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a dozen errors of its own
        raise FileFormatError(
            f"{file} is not a model that onnxruntime {runtime.__version__} can run: {first_line(error)}; if it was "
            "exported for a newer release, update onnxruntime or export it with a lower target_opset"
        ) from error
    names = [port.name for port in graph.outputs]

    def run(tensors: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        try:
            found: list[NDArray[Any]] = session.run(names, dict(tensors))
        except Exception as error:
            raise ModelError(f"onnxruntime cannot run {file.name}: {first_line(error)}") from error
        return found

    return run


# -- what it is -------------------------------------------------------------------------------------------------------


def _estimator(graph: Graph, run: Callable[..., list[NDArray[Any]]], file: Path) -> OnnxClassifier | OnnxRegressor:
    graph = _with_types(graph, run)
    label = next(
        (i for i, port in enumerate(graph.outputs) if port.dtype in ("int64", "int32", "string", "bool")), None
    )
    scores = next((i for i, port in enumerate(graph.outputs) if port.dtype in ("float32", "float64")), None)
    if label is None and scores is None:
        raise FileFormatError(f"{file} gives no numbers and no labels: {[(p.name, p.dtype) for p in graph.outputs]}")
    names = _labels(graph, label, scores)
    width = None if scores is None else graph.outputs[scores].width
    source = None if scores is None else graph.source(graph.outputs[scores].name)
    head = None if source is None else _head(source)
    if label is not None:
        if names is None:
            raise FileFormatError(
                f"{file} gives the label {graph.outputs[label].name!r} and does not say which labels there are; export "
                "it with the classes (skl2onnx does)"
            )
        usable = scores if width in (None, len(names)) else None
        return OnnxClassifier(graph, run, names, label, usable, "probabilities")
    if names is not None or (width or 0) > 1 or head is not None:
        names = names or tuple(range(max(width or 2, 2)))
        return OnnxClassifier(graph, run, names, None, scores, head)
    return OnnxRegressor(graph, run)


def _head(source: Node) -> str | None:
    if source.op.endswith("Classifier"):
        return "probabilities"
    return HEADS.get(source.op)


def _labels(graph: Graph, label: int | None, scores: int | None) -> tuple[Any, ...] | None:
    """The names of the classes, from the operator that names them."""
    for port in (p for p in (label, scores) if p is not None):
        for node in graph.back(graph.outputs[port].name):
            for name in ("classlabels_strings", "classlabels_int64s", "classlabels_ints"):
                if node.attributes.get(name):
                    return tuple(node.attributes[name])
            if node.op == "ai.onnx.ml.ArrayFeatureExtractor" and node.inputs[0] in graph.constants and port == label:
                return tuple(np.ravel(graph.constants[node.inputs[0]]).tolist())
            if node.op == "ai.onnx.ml.LabelEncoder" and port == label:
                values = next((v for k, v in node.attributes.items() if k.startswith("values_")), None)
                return None if values is None else tuple(dict.fromkeys(np.ravel(values).tolist()))
    if label is not None and scores is not None and graph.outputs[scores].width:
        return tuple(range(max(int(graph.outputs[scores].width or 0), 2)))
    return None


def _with_types(graph: Graph, run: Callable[..., list[NDArray[Any]]]) -> Graph:
    """The same, with what the graph does not say about its outputs: seen on one row of zeros."""
    if all(port.dtype and port.width for port in graph.outputs) or any(p.width is None for p in graph.inputs):
        return graph
    row = {p.name: np.zeros((1, p.width or 1), dtype=object if p.dtype == "string" else p.dtype or "float32")
           for p in graph.inputs}  # fmt: skip
    for p in graph.inputs:
        if p.dtype == "string":
            row[p.name][:] = ""
    try:
        found = run(row)
    except ModelError:
        return graph
    ports = []
    for port, value in zip(graph.outputs, found, strict=True):
        if not isinstance(value, np.ndarray):
            return graph
        dtype = "string" if value.dtype.kind == "O" else str(value.dtype)
        ports.append(Port(port.name, port.dtype or dtype, port.width or (value.shape[1] if value.ndim == 2 else 1)))
    return Graph(graph.inputs, tuple(ports), graph.nodes, graph.constants)
