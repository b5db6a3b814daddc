"""The question of an audit: a case, and who is compared with whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from globece.auditing import statistics as st
from globece.auditing.groups import Groups
from globece.case.affected import Case
from globece.space import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """The question of an audit.

    Attributes
    ----------
    case
        The model, all rows, which of them are affected, and what changes cost.
    groups, control
        The groups, and the levels of the control columns within which they are compared.
    reference
        The group that the others are compared with; everybody else by default.
    cluster
        Whose row each row is, from 0; ``None`` if each is of another person.
    guessed
        The warning that the favourable outcome was guessed.
    remarks
        Further remarks for the reader.
    training
        Whether the rows are the model's training rows: all, some or none of them; ``None`` if nobody said.
    seed
        The seed as it was given.
    """

    case: Case
    groups: Groups
    control: Groups | None = None
    reference: str | None = None
    cluster: IntArray | None = None
    guessed: str | None = None
    remarks: tuple[str, ...] = ()
    training: str | None = None
    seed: int | None = None

    @property
    def rows(self) -> IntArray:
        """Positions of the affected inputs, except the unknown ones."""
        return self.case.affected

    def n_unknown(self, group: int) -> int:
        """Number of unknown affected inputs of a group."""
        return int((self.groups.labels[self.case.unknown] == group).sum())

    def members(self, names: Sequence[str] | None = None) -> list[IntArray]:
        """Affected inputs of each group, or of the groups named."""
        label = self.groups.labels[self.rows]
        some = self.groups.names if names is None else names
        return [np.flatnonzero(label == self.groups.index(name)) for name in some]

    def levels(self) -> IntArray:
        """Level of the control columns of each row; 0 if there are none."""
        if self.control is None:
            return np.zeros(len(self.case.rows), dtype=np.int64)
        return np.where(self.control.labels < 0, len(self.control), self.control.labels)

    def labels(self, names: Sequence[str]) -> IntArray:
        """Position of each row's group among these; -1 for others."""
        index = np.full(len(self.groups) + 1, -1, dtype=np.int64)
        for i, name in enumerate(names):
            index[self.groups.index(name)] = i
        return index[self.groups.labels]  # a row in no group has label -1, the last

    def reference_among(self, names: Sequence[str]) -> int | None:
        """Position of the reference among these groups, if it is one of them."""
        return None if self.reference not in names else list(names).index(str(self.reference))

    def sample(self, names: Sequence[str], cost: FloatArray) -> st.Sample:
        """Minimum costs of the affected inputs of some groups, in an order that does not depend on that of the rows."""
        at = self.rows
        cluster = None if self.cluster is None else self.cluster[at]
        labels, levels = self.labels(names)[at], self.levels()[at]
        return st.Sample(cost, labels, levels, cluster, self.case.budget, len(names)).ordered()
