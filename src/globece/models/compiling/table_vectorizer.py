"""skrub's table vectorizer: numbers become float32, and each category is passed to the vectorizer itself."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from globece.models.compiling.compose import Category, Chained, NotCompiled, Symbol, base_row, with_category
from globece.models.inputs import Narrow, Number
from globece.models.known import kind_of
from globece.space import Feature, FeatureSpace

SINGLE = Narrow("float32")


def vectorized(step: Any, symbols: Mapping[str, Symbol], space: FeatureSpace) -> list[Symbol]:
    """The outputs of a fitted ``TableVectorizer``, column by column."""
    found: list[Symbol] = []
    for name in dict.fromkeys(step.output_to_input_.values()):
        symbol, encoder = symbols[name], step.transformers_[name]
        if kind_of(encoder) == "PassThrough" and isinstance(symbol, Number):
            found.append(replace(symbol, forward=SINGLE if symbol.forward is None else Chained(symbol.forward, SINGLE)))
        elif isinstance(symbol, Category):
            found += _encoded(step, name, symbol.feature, list(symbols), space)
        else:
            raise NotCompiled(f"step TableVectorizer passes column {name!r} through {type(encoder).__name__}")
    return found


def _encoded(step: Any, name: str, feature: Feature, names: list[str], space: FeatureSpace) -> list[Symbol]:
    """What a table vectorizer, which treats every column separately, makes of each category of one column."""
    rows = [with_category(base_row(space), feature, c) for c in range(len(feature.categories))]
    if not feature.is_block:
        rows.append(with_category(base_row(space), feature, None))
    frame = nw.from_native(space.decode(np.array(rows)), eager_only=True).select(names).to_native()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = nw.from_native(step.transform(frame), eager_only=True)
    found: list[Symbol] = []
    for output, source in step.output_to_input_.items():
        if source == name:
            column = np.asarray(table[output].to_numpy(), dtype=np.float64)
            known, lost = column[: len(feature.categories)], column[len(feature.categories) :]
            found.append(Category(feature).table(known.tolist(), float(lost[0]) if len(lost) else np.nan))
    return found
