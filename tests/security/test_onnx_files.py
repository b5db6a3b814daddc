"""ONNX files: what may not be in them is refused before onnxruntime sees them (promise 19)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from globece.errors import FileFormatError, ModelError
from globece.io.model_files import load_model

WEIGHTS = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.5]], dtype=np.float32)


def plain(*, nodes: list[Any] | None = None, weights: Any = None, domains: tuple[str, ...] = ("",)) -> Any:
    """A linear graph over three columns, with other operators or weights on request."""
    given = onnx.numpy_helper.from_array(WEIGHTS, "W") if weights is None else weights
    return helper.make_model(
        helper.make_graph(
            nodes or [helper.make_node("MatMul", ["X", "W"], ["Y"])],
            "graph",
            [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, 3])],
            [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None, 2])],
            [given],
        ),
        opset_imports=[helper.make_opsetid(domain, 17 if not domain else 1) for domain in domains],
        ir_version=8,
    )


def saved(model: Any, folder: Path) -> Path:
    file = folder / "model.onnx"
    file.write_bytes(model.SerializeToString())
    return file


def outside(location: str) -> Any:
    """The weights, said to be in another file."""
    tensor = TensorProto(name="W", data_type=TensorProto.FLOAT, dims=[3, 2], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, "offset": "0", "length": "24"}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if onnxruntime gets anything at all."""

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("onnxruntime was given the file")

    monkeypatch.setattr(onnxruntime, "InferenceSession", refuse)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "location",
    ["weights.bin", "../secret.bin", "/etc/passwd", "link.bin", "a/../../secret.bin", "", "file:///etc/passwd"],
)
def test_external_data_is_refused(location: str, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for secret in (tmp_path / "secret.bin", folder / "weights.bin"):
        secret.write_bytes(WEIGHTS.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    with pytest.raises(FileFormatError, match=r"keeps the weights of 'W' in another file .external data., which is"):
        load_model(saved(plain(weights=outside(location)), folder))


@pytest.mark.usefixtures("untouched")
def test_external_data_is_refused_wherever_it_is(tmp_path: Path) -> None:
    constant = helper.make_node("Constant", [], ["C"], value=outside("w.bin"))
    with pytest.raises(FileFormatError, match="another file"):
        load_model(saved(plain(nodes=[constant, helper.make_node("MatMul", ["X", "C"], ["Y"])]), tmp_path))
    half = outside("w.bin")
    half.data_location = TensorProto.DEFAULT  # a reader may look at the one or at the other
    with pytest.raises(FileFormatError, match="another file"):
        load_model(saved(plain(weights=half), tmp_path))
    sparse = plain()
    sparse.graph.sparse_initializer.add().values.CopyFrom(outside("w.bin"))
    with pytest.raises(FileFormatError, match="another file"):
        load_model(saved(sparse, tmp_path))


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.graph.node[0].__setattr__("domain", "com.evil"), "operator MatMul of 'com.evil'"),
        (lambda m: m.graph.node[0].__setattr__("op_type", "Loop"), "operator Loop, which is not run"),
        (lambda m: m.graph.node[0].__setattr__("op_type", "RandomNormal"), "RandomNormal, which is not run"),
        (lambda m: m.functions.add(name="f", domain="x"), "defines functions of its own"),
        (lambda m: m.graph.node[0].attribute.add(name="body").g.node.add(op_type="Add"), "which is not run"),
        (lambda m: m.graph.ClearField("node"), "it has 0 operators"),
    ],
)
def test_what_a_plain_graph_does_not_need_is_refused(
    change: Callable[[Any], Any], message: str, tmp_path: Path
) -> None:
    model = plain()
    change(model)
    with pytest.raises(FileFormatError, match=message):
        load_model(saved(model, tmp_path))


def test_memory_of_a_graph_is_bounded(tmp_path: Path) -> None:
    size = onnx.numpy_helper.from_array(np.array([10**11]), "W")
    nodes = [
        helper.make_node("ConstantOfShape", ["W"], ["c"]),
        helper.make_node("ReduceSum", ["c"], ["s"], keepdims=0),
        helper.make_node("Add", ["X", "s"], ["Y"]),
    ]
    with pytest.raises((FileFormatError, ModelError)):
        load_model(saved(plain(nodes=nodes, weights=size), tmp_path)).predict(np.zeros((2, 3)))


@pytest.mark.parametrize("cut", [0.0, 0.3, 0.9])
def test_truncated_and_empty_files(cut: float, tmp_path: Path) -> None:
    file = saved(plain(), tmp_path)
    raw = file.read_bytes()
    file.write_bytes(raw[: int(cut * len(raw))])
    with pytest.raises(FileFormatError, match="is empty; save the model again" if cut == 0 else "ONNX|onnxruntime"):
        load_model(file)


def test_a_newer_model_says_so(tmp_path: Path) -> None:
    model = plain()
    model.ir_version = 99
    with pytest.raises(FileFormatError, match="newer release, update onnxruntime or export it with a lower"):
        load_model(saved(model, tmp_path))


def test_rows_that_do_not_fit_say_so(tmp_path: Path) -> None:
    model = load_model(saved(plain(), tmp_path))
    assert model.predict(np.eye(3)).tolist() == [0, 1, 0]
    with pytest.raises(ModelError, match="takes 3 columns; the rows have 2"):
        model.predict(np.eye(2))


def test_no_other_file_is_opened(tmp_path: Path) -> None:
    file = saved(plain(), tmp_path)
    load_model(file)  # libraries read their own parts once
    opened: list[str] = []
    WATCHED.append(opened)
    try:
        load_model(file).predict(np.eye(3))
    finally:
        WATCHED.clear()
    assert opened == [str(file)]


WATCHED: list[list[str]] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if WATCHED and event == "open" and isinstance(arguments[0], str | os.PathLike):
        WATCHED[0].append(str(arguments[0]))


__import__("sys").addaudithook(_watch)
