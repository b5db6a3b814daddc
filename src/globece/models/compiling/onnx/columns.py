"""Operators over columns: scalers, imputers and encoders, as functions of the encoded matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from globece.models.compiling.compose import Category, NotCompiled, Symbol, inputs_of, mapped
from globece.models.compiling.onnx.graph import TEXT, Node
from globece.models.inputs import Lookup, Narrow, Number, Steps
from globece.space import FloatArray

FLOATS = ("float32", "float64")


@dataclass(frozen=True, slots=True)
class Columns:
    """A matrix of some columns, each a function of the encoded matrix, in one type."""

    symbols: tuple[Symbol, ...]
    dtype: str

    def numbers(self, where: Node | str) -> list[Any]:
        """The columns as numbers."""
        if self.dtype == TEXT:
            raise NotCompiled(f"{where} takes text")
        return inputs_of(self.symbols, str(where))

    def cast(self, dtype: str, where: Node | str) -> Columns:
        """The columns in another type."""
        if dtype == self.dtype:
            return self
        if TEXT in (dtype, self.dtype):
            raise NotCompiled(f"{where} turns {self.dtype} into {dtype}")
        found = self.numbers(where)
        if dtype == "float32":
            return Columns(tuple(_single(s) for s in found), dtype)
        if dtype == "float64" or self.dtype not in FLOATS:
            return Columns(tuple(found), dtype)
        if any(isinstance(s, Number) for s in found):
            raise NotCompiled(f"{where} cuts the digits off {self.dtype} numbers")
        return Columns(tuple(mapped(s, np.trunc, None, None) for s in found), dtype)


def _single(source: Any) -> Any:
    """A column rounded to float32."""
    if isinstance(source, Number) and source.forward is None and source.fill is None:
        return source if source.narrow is not None else replace(source, narrow="float32")
    if isinstance(source, Number) and source.forward is None:  # what was filled in is rounded too
        return replace(source, narrow=source.narrow or "float32", fill=float(np.float32(source.fill or 0.0)))
    return mapped(source, Narrow("float32"), 1.0, 0.0)


# -- numbers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``z`` and a constant through one operation of NumPy, in the precision of the graph."""

    function: Any
    constant: float
    dtype: str
    constant_first: bool = False

    def __call__(self, z: FloatArray) -> FloatArray:
        kind = np.dtype(self.dtype).type
        with np.errstate(all="ignore"):
            a, b = np.asarray(z).astype(kind), kind(self.constant)
            return np.asarray(self.function(b, a) if self.constant_first else self.function(a, b), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class ShiftAndScale:
    """``(z - offset) * scale`` in single precision, in this order; the difference of doubles is one."""

    offset: float
    scale: float
    dtype: str

    def __call__(self, z: FloatArray) -> FloatArray:
        kind = np.dtype(self.dtype).type
        with np.errstate(all="ignore"):
            moved = (np.asarray(z).astype(kind) - kind(self.offset)) * kind(self.scale)
            return np.asarray(moved.astype(np.float32), dtype=np.float64)


OPERATIONS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}


def elementwise(node: Node, columns: Columns, constant: NDArray[Any], constant_first: bool) -> Columns:
    """Add, subtract, multiply or divide each column by a constant of its own."""
    if columns.dtype not in FLOATS:
        raise NotCompiled(f"{node} computes with {columns.dtype}")
    values = broadcast(node, constant, len(columns.symbols))
    found = []
    for source, c in zip(columns.numbers(node), values.tolist(), strict=True):
        step = Arithmetic(OPERATIONS[node.op], c, columns.dtype, constant_first)
        scale, shift = _straight(node, c, constant_first)
        found.append(mapped(source, step, scale, shift))
    return Columns(tuple(found), columns.dtype)


def _straight(node: Node, c: float, constant_first: bool) -> tuple[float, float]:
    if node.op == "Add":
        return 1.0, c
    if node.op == "Sub":
        return (-1.0, c) if constant_first else (1.0, -c)
    if node.op == "Mul" and c != 0.0:
        return c, 0.0
    if node.op == "Div" and not constant_first and c != 0.0:
        return 1.0 / c, 0.0
    raise NotCompiled(f"{node} is not a straight line")


def broadcast(node: Node, constant: NDArray[Any], width: int) -> FloatArray:
    """A constant for each column; one for all of them is repeated."""
    values = np.asarray(constant, dtype=np.float64)
    if values.ndim > 2 or (values.ndim == 2 and values.shape[0] != 1) or values.size not in (1, width):
        raise NotCompiled(f"{node} combines {width} columns with a constant of shape {values.shape}")
    return np.broadcast_to(values.ravel(), width)


def _scaler(node: Node, columns: Columns) -> Columns:
    n, given = len(columns.symbols), node.attributes
    kind = columns.dtype if columns.dtype in FLOATS else "float32"
    offset = broadcast(node, np.array(given.get("offset", [0.0])), n)
    scale = broadcast(node, np.array(given.get("scale", [1.0])), n)
    if (scale == 0.0).any():
        raise NotCompiled(f"{node} multiplies by 0")
    found = [
        mapped(source, ShiftAndScale(float(o), float(s), kind), float(s), float(-o * s))
        for source, o, s in zip(columns.numbers(node), offset, scale, strict=True)
    ]
    return Columns(tuple(found), "float32")


def _imputer(node: Node, columns: Columns) -> Columns:
    given = node.attributes
    values = np.array(given.get("imputed_value_floats") or given.get("imputed_value_int64s") or [], dtype=np.float64)
    if columns.dtype not in FLOATS or not np.isnan(given.get("replaced_value_float", np.nan)):
        raise NotCompiled(f"{node} replaces something else than NaN")
    if np.isnan(values).any() or values.size not in (1, len(columns.symbols)):
        raise NotCompiled(f"{node} replaces a missing value by none")
    found: list[Symbol] = []
    for source, fill in zip(columns.numbers(node), np.broadcast_to(values, len(columns.symbols)), strict=True):
        if isinstance(source, Lookup):
            found.append(replace(source, table=np.where(np.isnan(source.table), fill, source.table)))
        elif isinstance(source, Steps):
            found.append(replace(source, missing=float(fill) if np.isnan(source.missing) else source.missing))
        elif source.forward is not None or source.fill is not None:
            raise NotCompiled(f"{node} is compiled before other steps only")
        else:
            found.append(replace(source, fill=float(fill)))
    return Columns(tuple(found), columns.dtype)


# -- categories -------------------------------------------------------------------------------------------------------


def _one_hot(node: Node, columns: Columns) -> Columns:
    given = node.attributes
    listed = list(given.get("cats_strings") or given.get("cats_int64s") or [])
    refuses = not given.get("zeros", 1)
    found: list[Symbol] = []
    for source in columns.symbols:
        keys = _keys(node, source, columns.dtype)
        if refuses and set(keys.values()) - set(listed):
            raise NotCompiled(f"{node} does not take every category of its column")
        found += [_table(source, keys, {c: 1.0}, 0.0) for c in listed]
    return Columns(tuple(found), "float32")


def _label_encoder(node: Node, columns: Columns) -> Columns:
    given = node.attributes
    keys = _listed(given, "keys_")
    values = _listed(given, "values_")
    if keys is None or values is None or isinstance(values[0], str):
        raise NotCompiled(f"{node} does not turn categories into numbers")
    kind, default = ("int64", -1) if isinstance(values[0], int) else ("float32", -0.0)
    default = given.get("default_int64" if kind == "int64" else "default_float", default)
    if "default_tensor" in given:
        default = np.ravel(given["default_tensor"])[0].item()
    table = dict(zip(reversed(keys), reversed(values), strict=True))  # the first of equal keys counts
    found = [_table(source, _keys(node, source, columns.dtype), table, default) for source in columns.symbols]
    return Columns(tuple(found), kind)


def _listed(given: Any, prefix: str) -> list[Any] | None:
    for name, values in given.items():
        if name.startswith(prefix):
            return np.ravel(values).tolist() if prefix + "tensor" == name else list(values)
    return None


def _keys(node: Node, source: Symbol, dtype: str) -> dict[int, Any]:
    """What an operator sees for each of a column's categories."""
    if isinstance(source, Category) and dtype == TEXT:
        return {i: None if c is None else str(c) for i, c in enumerate(source.feature.categories)}
    (number,) = inputs_of([source], str(node))
    if isinstance(number, Number):
        raise NotCompiled(f"{node} looks up a number that is not a category")
    values = number.table if isinstance(number, Lookup) else number.values_
    return {i: int(v) if v == int(v) else float(v) for i, v in enumerate(values.tolist()) if v == v}


def _table(source: Symbol, keys: dict[int, Any], values: dict[Any, Any], default: Any) -> Symbol:
    """A column looked up by its categories."""
    if isinstance(source, Category):
        n = len(source.feature.categories)
    else:
        assert not isinstance(source, Number)
        n = len(source.table if isinstance(source, Lookup) else source.values_)
    table = np.array([values.get(keys[i], default) if keys.get(i) is not None else np.nan for i in range(n)], float)
    if isinstance(source, Category):
        return source.table(table.tolist())
    return replace(source, table=table) if isinstance(source, Lookup) else replace(source, values_=table)


# -- choosing columns -------------------------------------------------------------------------------------------------


def chosen(node: Node, columns: Columns, indices: Sequence[int]) -> Columns:
    """Some of the columns."""
    n = len(columns.symbols)
    if any(not -n <= i < n for i in indices):
        raise NotCompiled(f"{node} takes column {max(indices)} of {n}")
    return Columns(tuple(columns.symbols[i] for i in indices), columns.dtype)


def joined(node: Node, parts: Sequence[Columns]) -> Columns:
    """Columns side by side."""
    kinds = {part.dtype for part in parts}
    if len(kinds) > 1:
        raise NotCompiled(f"{node} joins columns of the types {sorted(kinds)}")
    return Columns(tuple(s for part in parts for s in part.symbols), kinds.pop())


OVER_COLUMNS: dict[str, Callable[[Node, Columns], Columns]] = {
    "ai.onnx.ml.Scaler": _scaler,
    "ai.onnx.ml.Imputer": _imputer,
    "ai.onnx.ml.OneHotEncoder": _one_hot,
    "ai.onnx.ml.LabelEncoder": _label_encoder,
}
