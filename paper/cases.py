"""A model over its training rows with the paper's costs: what benchmarks, experiments and tests explain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from globece import CostModel, FeatureSpace
from paper.data import FloatArray, IntArray, bin_widths, feature_space, split
from paper.models import PaperNetwork, load_paper_model

SUBNORMAL = 1e-38  # weights below this change no prediction and make each several times slower: 0 on both sides


@dataclass(frozen=True)
class Case:
    """One model over the training rows of a data set."""

    kind: str
    model: Any  # its predict takes encoded rows
    space: FeatureSpace
    cost: CostModel
    rows: FloatArray  # (n, d) training rows
    affected: NDArray[np.bool_]  # (n,), the rows predicted 0
    test_rows: FloatArray

    @property
    def predict(self) -> Callable[[FloatArray], IntArray]:
        """The cheapest way to predictions, for the naive side."""
        predict: Callable[[FloatArray], IntArray] = self.model.predict
        return predict

    @cached_property
    def own(self) -> Any:
        """The model as a user would pass it."""
        if self.kind == "xgb":
            return self.model
        return self.model.to_torch() if self.kind == "dnn" else self.model.to_sklearn(svm=self.kind == "svm")

    @property
    def numbers(self) -> list[str]:
        """The continuous features."""
        return [f.name for f in self.space.features if not f.is_block]

    @property
    def whole(self) -> list[str]:
        """The continuous features whose values are whole numbers in every row."""
        return [name for name in self.numbers if (self.rows[:, self.space[name].start] % 1 == 0).all()]

    def categorical(self) -> Case:
        """The same with continuous features immutable, as the paper has it for German Credit."""
        space = self.space.constrain(immutable=self.numbers)
        return replace(self, space=space, cost=replace(self.cost, space=space))


def case(dataset: str, kind: str, **constraints: Any) -> Case:
    """One of the paper's twelve models; ranges are unbounded unless constraints are given."""
    return case_of(load_paper_model(dataset, kind), dataset, kind, **constraints)


def case_of(model: Any, dataset: str, kind: str, **constraints: Any) -> Case:
    """The same for any model of these kinds."""
    model, space = without_subnormals(model), feature_space(dataset, **constraints)
    rows, _, test_rows, _ = split(dataset)
    cost = CostModel.bins(space, widths=bin_widths(dataset))
    return Case(kind, model, space, cost, rows, model.predict(rows) == 0, test_rows)


def without_subnormals(model: Any) -> Any:
    """A network whose tiny weights are 0; any other model as it is."""
    if not isinstance(model, PaperNetwork):
        return model
    return replace(model, weights=tuple(np.where(abs(w) < SUBNORMAL, 0, w) for w in model.weights))
