"""A scikit-learn pipeline's steps, composed: the inputs of its last step, as functions of the encoded matrix.

Steps over numbers (scalers, imputers, bins, logarithms) are followed one by one. Steps over categories (one-hot,
ordinal and target encoders, with any steps before them) are tabulated: a category has few values, so the step itself is
run on each of them. That takes a step that is known to treat every column separately, or a single column. Anything else
raises :class:`NotCompiled`, which names the step.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from globece.models.doubles import last_alike
from globece.models.inputs import Function, Input, Lookup, Narrow, Number, Steps
from globece.models.known import described, kind_of
from globece.space import BoolArray, Feature, FeatureSpace, FloatArray

# Increasing functions: a threshold after one of them is a threshold before it.
RISING = (np.log1p, np.log, np.log2, np.log10, np.sqrt, np.cbrt, np.exp, np.expm1)
SELECTORS = (
    *("VarianceThreshold", "SelectKBest", "SelectPercentile", "SelectFromModel", "SelectFdr", "SelectFpr", "SelectFwe"),
    *("GenericUnivariateSelect", "RFE", "RFECV", "SequentialFeatureSelector"),
)
# Steps that treat every column separately.
SEPARABLE = (
    *("OneHotEncoder", "OrdinalEncoder", "TargetEncoder", "SimpleImputer", "MissingIndicator", "KBinsDiscretizer"),
    *("StandardScaler", "RobustScaler", "MaxAbsScaler", "MinMaxScaler", "Binarizer", "QuantileTransformer"),
    *("PowerTransformer", "SplineTransformer", *SELECTORS),
)
TRIED_ALONE = 16  # rows that are passed to an unknown step one by one


class NotCompiled(Exception):
    """A step cannot be composed; the message names it and says why."""


@dataclass(frozen=True, slots=True)
class Category:
    """A categorical column of the user's, before it is encoded."""

    feature: Feature

    def table(self, values: Sequence[float], missing: float = np.nan) -> Input:
        """The input with these values, one per category."""
        numbers = np.asarray(values, dtype=np.float64)
        if self.feature.is_block:
            return Lookup(self.feature.start, numbers)
        edges = np.arange(len(numbers) - 1, dtype=np.float64) + 0.5
        return Steps(self.feature.start, np.asarray(edges, dtype=np.float64), numbers, missing)


Symbol = Category | Number | Steps | Lookup


def raw_symbols(space: FeatureSpace) -> dict[str, Symbol]:
    """The user's columns, in the user's order."""
    found: dict[str, Symbol] = {}
    for f in space.features:
        if f.kind == "continuous":
            narrow = {0.0: None, 2.0**-24: "float32"}.get(float(space.rounding[f.start]), "float16")
            found[f.sources[0]] = Number(f.start, narrow=narrow)
        elif len(f.sources) > 1:
            for i, source in enumerate(f.sources):
                found[source] = Lookup(f.start, np.eye(f.width)[i])
        else:
            found[f.sources[0]] = Category(f)
    return {name: found[name] for name in space.table.names}


def inputs_of(symbols: Sequence[Symbol], where: str) -> list[Input]:
    """Symbols as numbers; numeric categories are their own values."""
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


def compose(step: Any, symbols: dict[str, Symbol], space: FeatureSpace, *, flat: bool = False) -> list[Symbol]:
    """The outputs of a fitted transformer as functions of these columns, or :class:`NotCompiled`.

    Parameters
    ----------
    step
        The transformer.
    symbols
        Its inputs, by name.
    space
        The space of the encoded matrix.
    flat
        Whether it takes its single column as a vector: a column transformer's column given by its bare name.
    """
    if step is None or isinstance(step, str):
        if step in (None, "passthrough"):
            return list(symbols.values())
        raise NotCompiled(f"step {step!r} is not a transformer")
    kind = kind_of(step)
    if kind == "FrozenEstimator":
        return compose(step.estimator, symbols, space, flat=flat)
    if kind == "ColumnTransformer":
        return _columns(step, symbols, space)
    if kind == "FeatureUnion":
        return _union(step, symbols, space)
    categories = [s for s in symbols.values() if isinstance(s, Category)]
    if categories and len(categories) == len(symbols):
        if separable(step) or len(categories) == 1:
            return list(_tabulate(step, symbols, space, flat))
        if kind != "Pipeline":
            names = [s.feature.name for s in categories]
            raise NotCompiled(
                f"step {_named(step)} takes the columns {names} together, and is not known to treat each separately"
            )
    if kind == "Pipeline":
        return _pipeline(step, symbols, space)
    if kind in SEPARABLE and kind not in NUMERIC:
        raise NotCompiled(f"step {kind} is compiled over categories only, and some of its columns hold numbers")
    if kind not in NUMERIC:
        raise NotCompiled(f"step {described(step)}")
    inputs = inputs_of(list(symbols.values()), f"step {kind}")
    outputs = _rounded(step, NUMERIC[kind](step, inputs), inputs)
    if kind == "FunctionTransformer":
        _check_defined(step, outputs, space)
    return list(outputs)


def _rounded(step: Any, outputs: list[Input], inputs: list[Input]) -> list[Input]:
    """A step's outputs as it computes them: in a narrow type if all of its inputs have one."""
    together = _type_together(inputs)
    moved = len(outputs) == len(inputs) and any(isinstance(s, Number) and s.forward is not None for s in outputs)
    if together is None or not moved:
        return outputs
    found: list[Input] = []
    for i, (before, after) in enumerate(zip(inputs, outputs, strict=True)):
        if isinstance(after, Number) and isinstance(before, Number) and after.forward is not before.forward:
            itself = AsItComputes(step, i, len(inputs), together)
            after = replace(after, forward=itself if before.forward is None else Chained(before.forward, itself))
        found.append(after)
    return found


def _type_together(inputs: Sequence[Input]) -> str | None:
    """The narrow type of these inputs as one matrix; ``None`` for doubles, to which one column takes all the others."""
    types = {s.narrow if isinstance(s, Number) else None for s in inputs}
    if not types or None in types:
        return None
    return "float32" if "float32" in types else "float16"


@dataclass(frozen=True)
class AsItComputes:
    """One column of a step that treats every column separately, computed by the step in the column's type."""

    step: Any
    column: int
    width: int
    dtype: str

    def __call__(self, z: FloatArray) -> FloatArray:
        if not len(z):
            return z
        most = float(np.finfo(self.dtype).max)
        rows = np.zeros((len(z), self.width), dtype=self.dtype)
        rows[:, self.column] = np.clip(z, -most, most)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # it was fitted with feature names
            return np.asarray(self.step.transform(rows))[:, self.column].astype(np.float64)


def _check_defined(step: Any, outputs: Sequence[Input], space: FeatureSpace) -> None:
    """Check that a function is defined over the whole range of each column."""
    features = {f.start: f for f in space.scalars}
    for s in outputs:
        if isinstance(s, Number) and s.forward is not None:
            f = features[s.column]
            ends = np.array([min(f.low, f.observed[0]), max(f.high, f.observed[1])])
            values = s.forward(ends)
            if (np.isnan(values) | (np.isinf(values) & np.isfinite(ends))).any():
                raise NotCompiled(
                    f"step {_named(step)} is not defined for all values of {f.name!r} from {ends[0]:g} to {ends[1]:g}"
                )


def _named(step: Any) -> str:
    """The step's name, with its function if it is a FunctionTransformer."""
    name = type(step).__name__
    func = getattr(step, "func", None) if name == "FunctionTransformer" else None
    return name if func is None else f"{name}({getattr(func, '__name__', func)})"


def separable(step: Any) -> bool:
    """Whether a step is known to treat every column separately."""
    if step is None or isinstance(step, str):
        return step in (None, "passthrough", "drop")
    kind = kind_of(step)
    if kind == "FrozenEstimator":
        return separable(step.estimator)
    if kind == "Pipeline":
        return all(separable(part) for _, part in step.steps)
    if kind == "ColumnTransformer":
        return all(separable(part) for _, part, _ in step.transformers_)
    if kind == "FeatureUnion":
        return all(separable(part) for _, part in step.transformer_list)
    if kind == "FunctionTransformer":
        return step.func is None or (step.func in RISING and not step.kw_args)
    return kind in SEPARABLE


def _pipeline(step: Any, symbols: dict[str, Symbol], space: FeatureSpace) -> list[Symbol]:
    current = symbols
    for name, part in step.steps:
        if part in (None, "passthrough"):
            continue
        current = {f"{name}{i}": s for i, s in enumerate(compose(part, current, space))}
    return list(current.values())


def _union(step: Any, symbols: dict[str, Symbol], space: FeatureSpace) -> list[Symbol]:
    found: list[Symbol] = []
    for name, part in step.transformer_list:
        if isinstance(part, str) and part == "drop":
            continue
        outputs = compose(part, symbols, space)
        weight = (step.transformer_weights or {}).get(name)
        if weight is not None:
            outputs = [
                mapped(s, ScaleAndShift(float(weight), 0.0), float(weight), 0.0)
                for s in inputs_of(outputs, "FeatureUnion")
            ]
        found += outputs
    return found


def _columns(step: Any, symbols: dict[str, Symbol], space: FeatureSpace) -> list[Symbol]:
    """A column transformer, which looks up the columns of a frame by the names that it was fitted on."""
    known = [str(name) for name in getattr(step, "feature_names_in_", ())]
    names = list(symbols)
    if known and set(known) <= set(names):
        names = known
    elif known and len(known) == len(names):  # outputs of earlier steps, which have no names here
        symbols = dict(zip(known, symbols.values(), strict=True))
        names = known
    found: list[Symbol] = []
    for _, part, columns in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        picked = _picked(columns, names)
        if len(set(picked)) != len(picked):
            raise NotCompiled(f"ColumnTransformer takes one of the columns {picked} twice in one step")
        mine = {name: symbols[name] for name in picked}
        if mine:
            bare = isinstance(columns, str) or (np.isscalar(columns) and not isinstance(columns, slice))
            found += compose(part, mine, space, flat=bare)
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


# -- categories: tabulate the step ------------------------------------------------------------------------------------


def _tabulate(step: Any, symbols: dict[str, Symbol], space: FeatureSpace, flat: bool) -> list[Input]:
    """Run a step on every category of each categorical column, and tabulate its outputs.

    One column varies at a time. An output that depends on two columns is not compiled.
    """
    features = [s.feature for s in symbols.values() if isinstance(s, Category)]
    base = base_row(space)
    probes = [with_category(base, f, c) for f in features for c in range(len(f.categories))]
    missing = [f for f in features if not f.is_block]  # ordinal values may be missing
    asked = _Asked(step, [f.sources[0] for f in features], space, flat)
    lost = [with_category(base, f, None) for f in missing]
    try:
        table = asked(np.array([*probes, *lost]))
    except _Refused as refused:
        if not missing:
            names = [f.name for f in features]
            raise NotCompiled(f"step {_named(step)} does not take every category of {names}: {refused}") from None
        try:  # the step rejects missing values, so no row has one: try without them
            table = asked(np.array(probes))
        except _Refused as again:
            raise NotCompiled(f"step {_named(step)} does not take every category: {again}") from None
        table = np.vstack([table, np.full((len(lost), table.shape[1]), np.nan)])
    if not separable(step):
        asked.check_rows_independent(np.array(probes), table[: len(probes)])
    found: list[Input] = []
    starts = np.cumsum([0, *(len(f.categories) for f in features)])
    for column in table.T:
        parts = [column[starts[i] : starts[i + 1]] for i in range(len(features))]
        varying = [i for i, part in enumerate(parts) if not _constant(part)]
        if len(varying) > 1:
            raise NotCompiled(f"step {_named(step)} mixes columns {[features[i].name for i in varying]}")
        owner = varying[0] if varying else 0
        value = np.nan
        if not features[owner].is_block:
            value = float(column[starts[-1] + missing.index(features[owner])])
        found.append(Category(features[owner]).table(parts[owner], value))
    return found


class _Refused(Exception):
    """A step raised an error about the rows it was given."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A step over some of the user's columns, as a function of encoded rows."""

    step: Any
    names: list[str]
    space: FeatureSpace
    flat: bool

    def __call__(self, Z: FloatArray) -> FloatArray:
        rows = _select(self.space.decode(Z), self.names, self.space, self.flat)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about feature names, if it was fitted without
                answers = self.step.transform(rows)
        except Exception as error:
            raise _Refused(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}") from error
        values = np.asarray(answers.toarray() if hasattr(answers, "toarray") else answers)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or len(values) != len(Z):
            raise NotCompiled(f"step {_named(self.step)} returns shape {values.shape} for {len(Z)} rows")
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError):
            raise NotCompiled(f"step {_named(self.step)} returns text, not numbers") from None

    def check_rows_independent(self, Z: FloatArray, answers: FloatArray) -> None:
        """Try the rows in another order and one by one: an unknown step may mix rows."""
        some = np.unique(np.linspace(0, len(Z) - 1, TRIED_ALONE).astype(int))
        try:
            again = np.vstack([self(Z[::-1])[::-1], *(self(Z[i : i + 1]) for i in some)])
        except (_Refused, ValueError) as error:
            raise NotCompiled(f"step {_named(self.step)} does not take rows one by one: {error}") from None
        if again.shape[1:] != answers.shape[1:] or not np.array_equal(
            again, np.vstack([answers, answers[some]]), equal_nan=True
        ):
            raise NotCompiled(f"step {_named(self.step)} transforms a row differently among other rows")


def _constant(values: FloatArray) -> bool:
    return bool(np.isnan(values).all() or (values == values[0]).all())


def base_row(space: FeatureSpace) -> FloatArray:
    """An encoded row: the first category of each block, and the smallest observed value of each column."""
    row = np.zeros(space.width)
    for f in space.features:
        row[f.start] = 1.0 if f.is_block else f.observed[0]
    return row


def with_category(base: FloatArray, feature: Feature, code: int | None) -> FloatArray:
    """The row with this category of a feature; ``None`` for a missing value of an ordinal one."""
    row = base.copy()
    if feature.is_block:
        row[feature.columns] = 0.0
        row[feature.start + (code or 0)] = 1.0
    else:
        row[feature.start] = np.nan if code is None else code
    return row


def _select(rows: Any, names: list[str], space: FeatureSpace, flat: bool) -> Any:
    if isinstance(rows, np.ndarray):
        chosen = rows[:, [space.table.names.index(n) for n in names]]
        return chosen[:, 0] if flat else chosen
    frame = nw.from_native(rows, eager_only=True)
    return frame[names[0]].to_native() if flat else frame.select(names).to_native()


# -- numbers: follow the step -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShiftAndDivide:
    """z -> (z - centre) / scale, in this order, as scikit-learn's scalers do."""

    centre: float
    scale: float

    def __call__(self, z: FloatArray) -> FloatArray:
        return np.asarray((z - self.centre) / self.scale)


@dataclass(frozen=True, slots=True)
class ScaleAndShift:
    """z -> z * scale + shift, clipped where there are bounds."""

    scale: float
    shift: float
    bounds: tuple[float, float] | None = None

    def __call__(self, z: FloatArray) -> FloatArray:
        moved = z * self.scale + self.shift
        return np.asarray(moved if self.bounds is None else np.clip(moved, *self.bounds))


@dataclass(frozen=True, slots=True)
class Quiet:
    """A NumPy function, without its warnings about numbers for which it is not defined."""

    function: Function

    def __call__(self, z: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return np.asarray(self.function(z))


@dataclass(frozen=True, slots=True)
class Chained:
    """One function after another."""

    first: Function
    then: Function

    def __call__(self, z: FloatArray) -> FloatArray:
        return self.then(self.first(z))


def mapped(source: Input, function: Function, scale: float | None, shift: float | None) -> Input:
    """A function of an input: applied to its table, or composed with its own function."""
    if isinstance(source, Lookup):
        return replace(source, table=function(source.table))
    if isinstance(source, Steps):
        return replace(source, values_=function(source.values_), missing=float(function(np.array([source.missing]))[0]))
    before = source.forward
    straight = None not in (scale, shift, source.scale, source.shift)
    return replace(
        source,
        forward=function if before is None else Chained(before, function),
        scale=scale * source.scale if straight else None,  # type: ignore[operator]
        shift=scale * source.shift + shift if straight else None,  # type: ignore[operator]
    )


def _shift_and_divide(centre: Any, scale: Any, inputs: list[Input]) -> list[Input]:
    found = []
    for i, source in enumerate(inputs):
        c = 0.0 if centre is None else float(centre[i])
        s = 1.0 if scale is None else float(scale[i])
        found.append(mapped(source, ShiftAndDivide(c, s), 1.0 / s, -c / s))
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
            found.append(mapped(source, ScaleAndShift(a, b, (float(low), float(high))), None, None))
        else:
            found.append(mapped(source, ScaleAndShift(a, b), a, b))
    return found


def _impute(step: Any, inputs: list[Input]) -> list[Input]:
    if step.add_indicator or not (isinstance(step.missing_values, float) and np.isnan(step.missing_values)):
        raise NotCompiled("step SimpleImputer is compiled for NaN and without an indicator only")
    found: list[Input] = []
    together = _type_together(inputs)  # in which it fills
    fills = np.asarray(step.statistics_, dtype=np.float64)
    for source, value in zip(inputs, (fills if together is None else Narrow(together)(fills)).tolist(), strict=True):
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


def _not_above(function: Function, edges: FloatArray, z: FloatArray) -> BoolArray:
    return np.asarray(function(z) <= edges)


def _bins(step: Any, inputs: list[Input]) -> list[Input]:
    found: list[Input] = []
    for source, edges in zip(inputs, step.bin_edges_, strict=True):
        inner = np.asarray(edges, dtype=np.float64)[1:-1]
        if not isinstance(source, Number) or source.forward is not None:
            raise NotCompiled("step KBinsDiscretizer is compiled on raw numbers only")
        # a value on an edge belongs to the bin above it: z < edge is z <= the number before the edge
        below = np.nextafter(inner, -np.inf)
        n = len(inner) + 1
        bin_of_fill = int(np.searchsorted(below, source.fill, side="left")) if source.fill is not None else None
        if source.narrow is not None:  # the largest number that is rounded to below the edge
            ends, stored = np.full(len(below), np.finfo(np.float64).max), Narrow(source.narrow)
            below = last_alike(partial(_not_above, stored, below), -ends, ends)
        codes = [np.arange(n, dtype=float)] if step.encode == "ordinal" else list(np.eye(n))
        for values in codes:
            missing = np.nan if bin_of_fill is None else float(values[bin_of_fill])
            found.append(Steps(source.column, below, values, missing))
    return found


def _function(step: Any, inputs: list[Input]) -> list[Input]:
    if step.func is None:
        return inputs
    if step.func not in RISING or step.kw_args:
        raise NotCompiled(f"step {_named(step)} is not known to be increasing")
    return [mapped(source, Quiet(step.func), None, None) for source in inputs]


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
    **dict.fromkeys(SELECTORS, _selected),
}
