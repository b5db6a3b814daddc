"""Weight-of-evidence steps (`optbinning`): each column becomes the evidence of its bin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from globece.models.compiling.compose import Category, NotCompiled, Symbol
from globece.models.inputs import Input, Number, Steps
from globece.space import FeatureSpace


def binned(step: Any, symbols: Mapping[str, Symbol], space: FeatureSpace) -> list[Symbol]:
    """The outputs of a fitted ``BinningProcess``: one for each variable that it selected.

    The library itself transforms one value of each bin, and a missing one.
    """
    lost = [name for name in step.variable_names if name not in symbols]
    if lost:
        raise NotCompiled(f"step BinningProcess takes columns {lost} by name, which the data lack")
    chosen = [str(name) for name in step.get_support(names=True)]
    return [_of_column(step, name, symbols[name]) for name in chosen]


def _of_column(step: Any, name: str, symbol: Symbol) -> Input:
    bins = step.get_binned_variable(name)
    asked = {"metric_special": 0, "metric_missing": 0}  # the defaults of a transform
    if isinstance(symbol, Category):
        if bins.dtype != "categorical":
            raise NotCompiled(f"step BinningProcess bins {name!r} as numbers, and it is a category")
        values = np.array([np.nan if c is None else c for c in symbol.feature.categories], dtype=object)
        missing = float(bins.transform(np.array([np.nan], dtype=object), **asked)[0])
        return symbol.table(np.asarray(bins.transform(values, **asked), dtype=np.float64).tolist(), missing)
    plain = isinstance(symbol, Number) and symbol.forward is None and symbol.fill is None and symbol.narrow is None
    if bins.dtype != "numerical" or not isinstance(symbol, Number) or not plain:
        raise NotCompiled(f"step BinningProcess is compiled over the user's own columns, and {name!r} is another")
    cuts = np.asarray(bins.splits, dtype=np.float64)  # each begins the bin above
    below = cuts[:1] - 1.0 if cuts.size else np.zeros(1)
    values = np.asarray(bins.transform(np.concatenate([below, cuts]), **asked), dtype=np.float64)
    missing = float(bins.transform(np.array([np.nan]), **asked)[0])
    return Steps(symbol.column, np.nextafter(cuts, -np.inf), values, missing)
