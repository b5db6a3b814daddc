"""What each operator does, and a graph walked from its inputs to the output that is wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from globece.models.compiling.compose import NotCompiled
from globece.models.compiling.onnx import scores
from globece.models.compiling.onnx.columns import OVER_COLUMNS, Columns, chosen, elementwise, joined
from globece.models.compiling.onnx.forests import Forest, forest
from globece.models.compiling.onnx.graph import Graph, Node
from globece.models.compiling.onnx.scores import Labels, Net

Value = Columns | Net | Forest | Labels | np.ndarray


def walk(graph: Graph, given: Mapping[str, Columns], wanted: str) -> Value:
    """The value of one output; raise :class:`NotCompiled`, which names the operator that cannot be followed.

    Parameters
    ----------
    graph
        The graph.
    given
        Its inputs, as columns of the encoded matrix.
    wanted
        The output.
    """
    known: dict[str, Value] = {**graph.constants, **given}
    needed = _needed(graph, wanted)
    for node in graph.nodes:
        if not needed.isdisjoint(node.outputs):
            lost = [name for name in node.inputs if name and name not in known]
            if lost:
                raise NotCompiled(f"{node} takes {lost[0]!r}, which nothing gives")
            values = [known[name] if name else None for name in node.inputs]
            found = _apply(node, values)
            known.update(zip(node.outputs, found, strict=False))
    if wanted not in known:
        raise NotCompiled(f"nothing gives the output {wanted!r}")
    return known[wanted]


def _needed(graph: Graph, wanted: str) -> set[str]:
    found, waiting = set(), [wanted]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            node = graph.maker.get(name)
            waiting += [] if node is None else node.inputs
    return found


def _apply(node: Node, values: list[Any]) -> tuple[Value, ...]:
    op = node.op
    varying = [v for v in values if v is not None and not isinstance(v, np.ndarray)]
    if not varying:
        if op in ("Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Flatten"):
            return (_constant(node, values),)
        raise NotCompiled(f"{node} computes with constants")
    if op in OPERATORS:
        return OPERATORS[op](node, values)
    if op in OVER_COLUMNS:
        return (OVER_COLUMNS[op](node, _columns(node, varying[0])),)
    raise NotCompiled(f"{node} is not followed exactly")


def _columns(node: Node, value: Any) -> Columns:
    if not isinstance(value, Columns):
        raise NotCompiled(f"{node} does not take columns")
    return value


def _constant(node: Node, values: list[Any]) -> NDArray[Any]:
    if node.op == "Reshape" and len(values) > 1:
        return np.asarray(values[0].reshape([int(v) for v in np.ravel(values[1])]))
    if node.op == "Cast":
        return np.asarray(values[0].astype(node.attributes["to"]))
    return np.asarray(values[0])


# -- operators --------------------------------------------------------------------------------------------------------


def _same(node: Node, values: list[Any]) -> tuple[Value, ...]:
    """The shape changes, and what a row holds does not."""
    value = values[0]
    if isinstance(value, np.ndarray):
        raise NotCompiled(f"{node} takes its shape from the rows")
    width = len(value.symbols) if isinstance(value, Columns) else value.width if isinstance(value, Net) else None
    if node.op == "Reshape" and width is not None:
        shape = None if not isinstance(values[1], np.ndarray) else [int(v) for v in np.ravel(values[1])]
        if shape is None or not (
            shape[:1] in ([-1], [0]) and (shape[1:] in ([width], [-1]) or (len(shape) == 1 == width))
        ):
            raise NotCompiled(f"{node} gives rows of the shape {shape}")
    if node.op == "Flatten" and node.attributes.get("axis", 1) != 1:
        raise NotCompiled(f"{node} joins rows")
    return (value,)


def _cast(node: Node, values: list[Any]) -> tuple[Value, ...]:
    value, dtype = values[0], str(node.attributes["to"])
    if isinstance(value, Columns):
        return (value.cast(dtype, node),)
    if isinstance(value, Labels):
        kinds = {type(name) for name in value.names}
        if kinds == {int} and dtype in ("int64", "int32"):
            return (value,)
        if kinds == {str} and dtype == "string":
            return (value,)
        raise NotCompiled(f"{node} changes the type of labels")
    if dtype not in ("float32", "float64"):
        raise NotCompiled(f"{node} cuts the digits off scores")
    return (value,)


def _arithmetic(node: Node, values: list[Any]) -> tuple[Value, ...]:
    first, second = values
    if isinstance(first, np.ndarray) == isinstance(second, np.ndarray):
        raise NotCompiled(f"{node} combines two columns that both vary")
    constant_first = isinstance(first, np.ndarray)
    constant, value = (first, second) if constant_first else (second, first)
    if isinstance(value, Columns):
        return (elementwise(node, value, constant, constant_first),)
    if isinstance(value, Net):
        return (scores.shifted(node, value, constant, constant_first),)
    raise NotCompiled(f"{node} computes with the outcome")


def _matrix(node: Node, values: list[Any]) -> tuple[Value, ...]:
    given = node.attributes
    weight = values[1]
    if not isinstance(weight, np.ndarray) or not isinstance(values[0], Columns | Net) or given.get("transA", 0):
        raise NotCompiled(f"{node} does not multiply rows with a constant")
    if node.op == "MatMul":
        return (scores.affine(node, values[0], weight, None),)
    matrix = weight.T if given.get("transB", 0) else weight
    bias = values[2] if len(values) > 2 else None
    if bias is not None and not isinstance(bias, np.ndarray):
        raise NotCompiled(f"{node} adds what varies")
    alpha, beta = float(given.get("alpha", 1.0)), float(given.get("beta", 1.0))
    return (scores.affine(node, values[0], alpha * matrix.astype(float), None if bias is None else beta * bias),)


def _bend(node: Node, values: list[Any]) -> tuple[Value, ...]:
    if not isinstance(values[0], Columns | Net):
        raise NotCompiled(f"{node} bends the outcome")
    slope: Any = np.zeros(1)
    if node.op == "LeakyRelu":
        slope = np.array([node.attributes.get("alpha", 0.01)])
    elif node.op == "PRelu":
        slope = values[1]
    if not isinstance(slope, np.ndarray):
        raise NotCompiled(f"{node} has a slope that varies")
    return (scores.bent(node, values[0], slope),)


def _batch_norm(node: Node, values: list[Any]) -> tuple[Value, ...]:
    if node.attributes.get("training_mode", 0) or not all(isinstance(v, np.ndarray) for v in values[1:5]):
        raise NotCompiled(f"{node} uses statistics of the batch")
    net = scores.net_over(node, values[0])
    scale, shift, mean, variance = (np.asarray(v, dtype=np.float64) for v in values[1:5])
    factor = scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    net.stack.scale(factor, (-mean * factor, shift))
    return (net,)


def _linear(node: Node, values: list[Any]) -> tuple[Value, ...]:
    given, value = node.attributes, values[0]
    if not isinstance(value, Columns):
        raise NotCompiled(f"{node} does not take columns")
    if value.dtype != "float32":
        raise NotCompiled(f"{node} takes {value.dtype}")
    post, n = str(given.get("post_transform", "NONE")), len(value.symbols)
    coef = np.asarray(given.get("coefficients", []), dtype=np.float64)
    if n == 0 or coef.size == 0 or coef.size % n:
        raise NotCompiled(f"{node} has {coef.size} coefficients for {n} columns")
    weight = coef.reshape(-1, n).T
    shift = np.asarray(given.get("intercepts") or np.zeros(weight.shape[1]), dtype=np.float64)
    net = scores.affine(node, value, weight, shift)
    if node.op.endswith("Regressor"):
        if post != "NONE":
            raise NotCompiled(f"{node} ends in {post}")
        return (net,)
    labels = tuple(given.get("classlabels_strings") or given.get("classlabels_ints") or ())
    if len(labels) != max(weight.shape[1], 2):
        raise NotCompiled(f"{node} has {weight.shape[1]} scores for {len(labels)} classes")
    head = {"NONE": None, "LOGISTIC": "probabilities", "SOFTMAX": "shares"}.get(post, post)
    if head == "shares" and weight.shape[1] == 1:
        head = None  # one score is not transformed
    ended = Net(net.columns, net.stack, head, pair=weight.shape[1] == 1 and head == "probabilities")
    return Labels(net, labels), ended


def _trees(node: Node, values: list[Any]) -> tuple[Value, ...]:
    found = forest(node, _columns(node, values[0]))
    return (found,) if found.labels is None else (Labels(found, found.labels), found)


def _choose(node: Node, values: list[Any]) -> tuple[Value, ...]:
    """Columns by their indices; or the names of classes by the index of the largest score."""
    first, second = values
    if isinstance(second, Labels) and isinstance(first, np.ndarray):
        names = np.ravel(first).tolist()
        if len(names) != len(second.names):
            raise NotCompiled(f"{node} names {len(names)} of {len(second.names)} classes")
        return (Labels(second.scores, tuple(names)),)
    if not isinstance(second, np.ndarray) or (node.op == "Gather" and node.attributes.get("axis", 0) not in (1, -1)):
        raise NotCompiled(f"{node} does not choose columns by constant indices")
    return (chosen(node, _columns(node, first), [int(i) for i in np.ravel(second)]),)


def _join(node: Node, values: list[Any]) -> tuple[Value, ...]:
    if node.op == "Concat" and node.attributes.get("axis", 1) not in (1, -1):
        raise NotCompiled(f"{node} joins rows")
    if len(values) == 1:
        return (values[0],)
    if all(isinstance(v, Net) for v in values):
        return (scores.paired(node, values),)
    return (joined(node, [_columns(node, v) for v in values]),)


def _largest(node: Node, values: list[Any]) -> tuple[Value, ...]:
    given, value = node.attributes, values[0]
    if given.get("axis", 0) not in (1, -1) or given.get("select_last_index", 0):
        raise NotCompiled(f"{node} does not take the largest score of each row")
    if isinstance(value, Net) and value.width > 1:
        return (Labels(value, tuple(range(value.width))),)
    if isinstance(value, Forest) and value.labels is None and len(value.reading.start) > 1:
        return (Labels(value, tuple(range(len(value.reading.start)))),)
    raise NotCompiled(f"{node} does not follow scores")


def _rename(node: Node, values: list[Any]) -> tuple[Value, ...]:
    value = values[0]
    if not isinstance(value, Labels):
        return (OVER_COLUMNS[node.op](node, _columns(node, value)),)
    keys, names = (next(list(v) for k, v in node.attributes.items() if k.startswith(p)) for p in ("keys_", "values_"))
    table = dict(zip(keys, names, strict=True))
    if set(value.names) - set(table):
        raise NotCompiled(f"{node} does not name every class")
    return (Labels(value.scores, tuple(table[name] for name in value.names)),)


OPERATORS: dict[str, Callable[[Node, list[Any]], tuple[Value, ...]]] = {
    **dict.fromkeys(("Identity", "Dropout", "Reshape", "Flatten", "Squeeze", "Unsqueeze"), _same),
    "Cast": _cast,
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), _arithmetic),
    **dict.fromkeys(("MatMul", "Gemm"), _matrix),
    **dict.fromkeys(("Relu", "LeakyRelu", "PRelu"), _bend),
    "BatchNormalization": _batch_norm,
    **dict.fromkeys(("Sigmoid", "Softmax", "LogSoftmax"), lambda node, values: (scores.headed(node, values[0]),)),
    **dict.fromkeys(("ai.onnx.ml.LinearClassifier", "ai.onnx.ml.LinearRegressor"), _linear),
    **dict.fromkeys((f"ai.onnx.ml.TreeEnsemble{kind}" for kind in ("", "Classifier", "Regressor")), _trees),
    **dict.fromkeys(("ai.onnx.ml.ArrayFeatureExtractor", "Gather"), _choose),
    **dict.fromkeys(("Concat", "ai.onnx.ml.FeatureVectorizer"), _join),
    "ArgMax": _largest,
    "ai.onnx.ml.Normalizer": lambda node, values: (scores.summed_to_one(node, values[0]),),
    "ai.onnx.ml.LabelEncoder": _rename,
}
