"""What is to be explained: a case with all its rows, and its affected inputs as a search sees them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from globece.case.ordering import content_order
from globece.compact import Rows
from globece.costs import CostModel
from globece.errors import check_instance, check_limit, check_matrix, check_number, wrong
from globece.models.base import Model
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray


@dataclass(frozen=True)
class Affected:
    """Affected inputs, with the model, costs and limits.

    Attributes
    ----------
    model
        The model over the encoded matrix.
    inputs
        The affected inputs, encoded: ``(n, width)``.
    cost
        What changes cost.
    budget
        The most that recourse may cost.
    max_scalar
        Largest scalar allowed, in addition to the budget (the paper: 5).
    favourable_rows
        Encoded rows that have the favourable outcome already, if available: some generators use them.
    """

    model: Model
    inputs: FloatArray
    cost: CostModel
    budget: float
    max_scalar: float | None = None
    favourable_rows: FloatArray | None = None

    def __post_init__(self) -> None:
        check_instance("cost", self.cost, CostModel, "see CostModel.bins")
        if not callable(getattr(self.model, "first_flip", None)):
            raise wrong("model", "a Model, such as as_model returns", self.model)
        check_matrix("inputs", self.inputs, self.space.width)
        check_number("budget", self.budget, open_low=True, infinite=True)
        check_limit("max_scalar", self.max_scalar)
        if self.favourable_rows is not None:
            check_matrix("favourable_rows", self.favourable_rows, self.space.width)

    @property
    def space(self) -> FeatureSpace:
        """The space of the inputs."""
        return self.cost.space


@dataclass(frozen=True, eq=False)
class Case:
    """A model, rows, which of them are affected, what changes cost, and the budget.

    Attributes
    ----------
    model
        The model over the encoded matrix.
    rows
        All rows.
    favourable
        Which of them have the favourable outcome already.
    cost, budget, max_scalar
        As for :class:`Affected`.
    unknown
        Positions of affected inputs that were not reached in time.
    """

    model: Model
    rows: Rows
    favourable: BoolArray
    cost: CostModel
    budget: float
    max_scalar: float | None = None
    unknown: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def space(self) -> FeatureSpace:
        """The space of the rows."""
        return self.cost.space

    @cached_property
    def affected(self) -> IntArray:
        """Positions of the affected inputs among the rows, except the unknown ones."""
        return np.setdiff1d(np.flatnonzero(~self.favourable), self.unknown)

    @cached_property
    def inputs(self) -> Rows:
        """The affected inputs."""
        return self.rows[self.affected]

    @cached_property
    def favourable_rows(self) -> FloatArray:
        """Rows that have the favourable outcome already; a sample if they are many."""
        return _some(self.rows[self.favourable])

    def part(self, index: IntArray) -> Affected:
        """Some of the affected inputs."""
        return Affected(self.model, self.inputs[index].dense(), self.cost, self.budget, self.max_scalar)

    def searched(self, index: IntArray | None = None) -> Affected:
        """Affected inputs for a search; a sample if they are many."""
        inputs = _some(self.inputs if index is None else self.inputs[index])
        return Affected(self.model, inputs, self.cost, self.budget, self.max_scalar, self.favourable_rows)

    def only(self, index: IntArray) -> Case:
        """The same case with only these affected inputs known."""
        return replace(self, unknown=np.union1d(self.unknown, np.delete(self.affected, index)))


def _some(rows: Rows) -> FloatArray:
    """All rows, or a sample of compact ones, which depends on their content and not on their order."""
    return rows.some(content_order(rows.values, 0)) if len(rows) > rows.at_once else rows.dense()
