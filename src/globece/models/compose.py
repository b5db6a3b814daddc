"""A scikit-learn pipeline's steps, composed: what its last step sees, as functions of the encoded matrix.

Steps over numbers (scalers, imputers, bins, logarithms) are followed one by one. Steps over categories (one-hot,
ordinal and target encoders, with whatever stands before them) are asked: a category has few values, so the step itself
is run on each of them and its answers are a table. Whatever is left raises :class:`NotCompiled`, which names the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from globece.models.inputs import Function, Input, Lookup, Number, Steps
from globece.space import Feature, FeatureSpace, FloatArray

# Functions that only rise, so that a threshold behind one of them is a threshold before it.
RISING = (np.log1p, np.log, np.log2, np.log10, np.sqrt, np.cbrt, np.exp, np.expm1)


class NotCompiled(Exception):
    """A step cannot be composed; the message names it and says why."""


@dataclass(frozen=True, slots=True)
class Category:
    """A column of the user's that holds categories, before anything made numbers of them."""

    feature: Feature

    def table(self, values: Sequence[float], missing: float = np.nan) -> Input:
        """The input that has these values, one for each category."""
        numbers = np.asarray(values, dtype=np.float64)
        if self.feature.is_block:
            return Lookup(self.feature.start, numbers)
        edges = np.arange(len(numbers) - 1, dtype=np.float64) + 0.5
        return Steps(self.feature.start, np.asarray(edges, dtype=np.float64), numbers, missing)


Symbol = Category | Number | Steps | Lookup


def raw_symbols(space: FeatureSpace) -> dict[str, Symbol]:
    """The user's own columns, in the user's order."""
    found: dict[str, Symbol] = {}
    for f in space.features:
        if f.kind == "continuous":
            found[f.sources[0]] = Number(f.start)
        elif len(f.sources) > 1:
            for i, source in enumerate(f.sources):
                found[source] = Lookup(f.start, np.eye(f.width)[i])
        else:
            found[f.sources[0]] = Category(f)
    return {name: found[name] for name in space.table.names}


def inputs_of(symbols: Sequence[Symbol], where: str) -> list[Input]:
    """Symbols as numbers; categories that are numbers stand for themselves."""
    found: list[Input] = []
    for s in symbols:
        if not isinstance(s, Category):
            found.append(s)
            continue
        try:
            values = [np.nan if c is None else float(c) for c in s.feature.categories]
        except (TypeError, ValueError) as error:
            raise NotCompiled(f"{where}: column {s.feature.name!r} holds text") from error
        found.append(s.table(values))
    return found


def compose(step: Any, symbols: dict[str, Symbol], space: FeatureSpace) -> list[Symbol]:
    """What a fitted transformer makes of these columns; see :class:`NotCompiled`."""
    if step is None or isinstance(step, str):
        if step in (None, "passthrough"):
            return list(symbols.values())
        raise NotCompiled(f"step {step!r} is no transformer")
    kind = type(step).__name__
    if kind == "ColumnTransformer":
        return _columns(step, symbols, space)
    if symbols and all(isinstance(s, Category) for s in symbols.values()):
        return list(_tabulate(step, symbols, space))
    if kind == "Pipeline":
        current = symbols
        for name, part in step.steps:
            made = compose(part, current, space)
            current = {f"{name}{i}": s for i, s in enumerate(made)}
        return list(current.values())
    if kind not in NUMERIC:
        raise NotCompiled(f"step {kind} is not one that can be compiled")
    return list(NUMERIC[kind](step, inputs_of(list(symbols.values()), kind)))


def _columns(step: Any, symbols: dict[str, Symbol], space: FeatureSpace) -> list[Symbol]:
    found: list[Symbol] = []
    names = list(symbols)
    for _, part, columns in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        mine = {name: symbols[name] for name in _picked(columns, names)}
        if mine:
            found += compose(part, mine, space)
    return found


def _picked(columns: Any, names: list[str]) -> list[str]:
    if isinstance(columns, str):
        return [columns]
    if isinstance(columns, slice):
        if isinstance(columns.start, str) or isinstance(columns.stop, str):
            raise NotCompiled("ColumnTransformer: slices of names are not compiled")
        return names[columns]
    if np.isscalar(columns):
        return [names[int(columns)]]  # type: ignore[arg-type]
    listed = list(columns)
    if listed and all(isinstance(c, (bool, np.bool_)) for c in listed):
        return [name for name, keep in zip(names, listed, strict=True) if keep]
    unknown = [c for c in listed if isinstance(c, str) and c not in names]
    if unknown:
        raise NotCompiled(f"ColumnTransformer: columns {unknown} are not among {names}")
    return [c if isinstance(c, str) else names[int(c)] for c in listed]


# -- categories: ask the step -----------------------------------------------------------------------------------------


def _tabulate(step: Any, symbols: dict[str, Symbol], space: FeatureSpace) -> list[Input]:
    """Run a step over categorical columns on every category of each, and read the tables off its answers.

    One column varies at a time. An output that follows two columns is no table, and is not compiled.
    """
    features = [s.feature for s in symbols.values() if isinstance(s, Category)]
    base = _base_row(space)
    probes = [_with_category(base, f, c) for f in features for c in range(len(f.categories))]
    missing = [f for f in features if not f.is_block]  # an ordinal value may be missing, too
    probes += [_with_category(base, f, None) for f in missing]
    rows = space.decode(np.array(probes))
    chosen = _select(rows, list(symbols), space)
    kind = type(step).__name__
    try:
        answers = step.transform(chosen)
    except Exception:
        if not missing:
            raise NotCompiled(f"step {kind} does not know every category of {[f.name for f in features]}") from None
        answers = _without_missing(step, chosen, len(missing), kind)
    values = np.asarray(answers.toarray() if hasattr(answers, "toarray") else answers)
    try:
        table = values.astype(np.float64)
    except (TypeError, ValueError):
        raise NotCompiled(f"step {kind} gives text, not numbers") from None
    found: list[Input] = []
    starts = np.cumsum([0, *(len(f.categories) for f in features)])
    for column in table.T:
        parts = [column[starts[i] : starts[i + 1]] for i in range(len(features))]
        varying = [i for i, part in enumerate(parts) if not _constant(part)]
        if len(varying) > 1:
            raise NotCompiled(f"step {kind} mixes columns {[features[i].name for i in varying]}")
        owner = varying[0] if varying else 0
        lost = np.nan
        if not features[owner].is_block:
            lost = float(column[starts[-1] + missing.index(features[owner])])
        found.append(Category(features[owner]).table(parts[owner], lost))
    return found


def _without_missing(step: Any, rows: Any, n: int, kind: str) -> FloatArray:
    """The step refuses missing values, so nobody has one: it is asked without them."""
    frame = nw.from_native(rows, eager_only=True)
    try:
        answers = step.transform(frame.head(len(frame) - n).to_native())
    except Exception as error:
        raise NotCompiled(f"step {kind} does not know every category: {error}") from None
    values = np.asarray(answers.toarray() if hasattr(answers, "toarray") else answers)
    return np.vstack([values, np.full((n, values.shape[1]), np.nan)])


def _constant(values: FloatArray) -> bool:
    return bool(np.isnan(values).all() or (values == values[0]).all())


def _base_row(space: FeatureSpace) -> FloatArray:
    row = np.zeros(space.width)
    for f in space.features:
        row[f.start] = 1.0 if f.is_block else f.observed[0]
    return row


def _with_category(base: FloatArray, feature: Feature, code: int | None) -> FloatArray:
    row = base.copy()
    if feature.is_block:
        row[feature.columns] = 0.0
        row[feature.start + (code or 0)] = 1.0
    else:
        row[feature.start] = np.nan if code is None else code
    return row


def _select(rows: Any, names: list[str], space: FeatureSpace) -> Any:
    if isinstance(rows, np.ndarray):
        return rows[:, [space.table.names.index(n) for n in names]]
    return nw.from_native(rows, eager_only=True).select(names).to_native()


# -- numbers: follow the step -----------------------------------------------------------------------------------------


def _mapped(source: Input, function: Function, scale: float | None, shift: float | None) -> Input:
    """The input behind a function: the same function of the table, or one more step for the number."""
    if isinstance(source, Lookup):
        return replace(source, table=function(source.table))
    if isinstance(source, Steps):
        return replace(source, values_=function(source.values_), missing=float(function(np.array([source.missing]))[0]))
    before = source.forward
    straight = None not in (scale, shift, source.scale, source.shift)
    return replace(
        source,
        forward=function if before is None else (lambda z: function(before(z))),
        scale=scale * source.scale if straight else None,  # type: ignore[operator]
        shift=scale * source.shift + shift if straight else None,  # type: ignore[operator]
    )


def _shift_and_divide(centre: Any, scale: Any, inputs: list[Input]) -> list[Input]:
    """X -= centre; X /= scale, in this order, as scikit-learn's scalers do."""
    found = []
    for i, source in enumerate(inputs):
        c = 0.0 if centre is None else float(centre[i])
        s = 1.0 if scale is None else float(scale[i])
        found.append(_mapped(source, lambda z, c=c, s=s: (z - c) / s, 1.0 / s, -c / s))  # type: ignore[misc]
    return found


def _standard(step: Any, inputs: list[Input]) -> list[Input]:
    return _shift_and_divide(step.mean_ if step.with_mean else None, step.scale_ if step.with_std else None, inputs)


def _robust(step: Any, inputs: list[Input]) -> list[Input]:
    return _shift_and_divide(
        step.center_ if step.with_centering else None, step.scale_ if step.with_scaling else None, inputs
    )


def _max_abs(step: Any, inputs: list[Input]) -> list[Input]:
    return _shift_and_divide(None, step.scale_, inputs)


def _min_max(step: Any, inputs: list[Input]) -> list[Input]:
    low, high = step.feature_range
    found = []
    for source, s, m in zip(inputs, step.scale_, step.min_, strict=True):
        a, b = float(s), float(m)
        if step.clip:
            found.append(_mapped(source, lambda z, a=a, b=b: np.clip(z * a + b, low, high), None, None))  # type: ignore[misc]
        else:
            found.append(_mapped(source, lambda z, a=a, b=b: z * a + b, a, b))  # type: ignore[misc]
    return found


def _impute(step: Any, inputs: list[Input]) -> list[Input]:
    if step.add_indicator or not (isinstance(step.missing_values, float) and np.isnan(step.missing_values)):
        raise NotCompiled("step SimpleImputer is compiled for NaN and without an indicator only")
    found: list[Input] = []
    for source, fill in zip(inputs, np.asarray(step.statistics_, dtype=np.float64), strict=True):
        value = float(fill)
        if np.isnan(value):
            raise NotCompiled("step SimpleImputer drops a column that was empty when it was fitted")
        if isinstance(source, Lookup):
            found.append(replace(source, table=np.where(np.isnan(source.table), value, source.table)))
        elif isinstance(source, Steps):
            found.append(replace(source, missing=value if np.isnan(source.missing) else source.missing))
        elif source.forward is not None or source.fill is not None:
            raise NotCompiled("step SimpleImputer is compiled before other steps only")
        else:
            found.append(replace(source, fill=value))
    return found


def _bins(step: Any, inputs: list[Input]) -> list[Input]:
    found: list[Input] = []
    for source, edges in zip(inputs, step.bin_edges_, strict=True):
        inner = np.asarray(edges, dtype=np.float64)[1:-1]
        if not isinstance(source, Number) or source.forward is not None:
            raise NotCompiled("step KBinsDiscretizer is compiled on raw numbers only")
        # a value on an edge belongs to the bin above it: z < edge is z <= the number before the edge
        below = np.nextafter(inner, -np.inf)
        n = len(inner) + 1
        missing = np.nan
        place = int(np.searchsorted(below, source.fill, side="left")) if source.fill is not None else None
        codes = [np.arange(n, dtype=float)] if step.encode == "ordinal" else list(np.eye(n))
        for values in codes:
            found.append(Steps(source.column, below, values, missing if place is None else float(values[place])))
    return found


def _function(step: Any, inputs: list[Input]) -> list[Input]:
    if step.func is None:
        return inputs
    if step.func not in RISING or step.kw_args:
        raise NotCompiled(f"step FunctionTransformer({getattr(step.func, '__name__', step.func)}) is not known to rise")
    function: Callable[[FloatArray], FloatArray] = step.func

    def quiet(z: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return np.asarray(function(z))

    return [_mapped(source, quiet, None, None) for source in inputs]


def _selected(step: Any, inputs: list[Input]) -> list[Input]:
    return [source for source, keep in zip(inputs, step.get_support(), strict=True) if keep]


NUMERIC: dict[str, Callable[[Any, list[Input]], list[Input]]] = {
    "StandardScaler": _standard,
    "RobustScaler": _robust,
    "MaxAbsScaler": _max_abs,
    "MinMaxScaler": _min_max,
    "SimpleImputer": _impute,
    "KBinsDiscretizer": _bins,
    "FunctionTransformer": _function,
    "VarianceThreshold": _selected,
    "SelectKBest": _selected,
    "SelectPercentile": _selected,
    "SelectFromModel": _selected,
}
