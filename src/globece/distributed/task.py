"""The function of one batch of rows: an Arrow record batch in, an Arrow record batch of results out.

A :class:`Task` carries everything that it needs, so it can be sent to any process. It takes the library's own path:
affected inputs, minimum scalars, verification by the user's model. A model on a GPU is a :class:`Model` with a
``first_flip`` of its own: nothing here knows where rays are followed, and ``batch_rows`` says how many at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from globece.auditing.groups import Groups, find_groups
from globece.case.affected import Case
from globece.case.scaling import scale
from globece.case.verification import confirmed
from globece.compact import Rows
from globece.costs import CostModel
from globece.distributed.noting import noting
from globece.errors import InvalidDataError
from globece.kept import FieldsOnly
from globece.models.base import Model
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray
from globece.tables import read_table

POSITION = "__row__"  # the column with the position of each row, where the user names no column of identifiers
BATCH_ROWS = 65_536
EVERYBODY = "everybody"
NONE = -1  # no direction


@dataclass(frozen=True, eq=False, slots=True)
class Outcome:
    """What was found for the rows of a batch.

    Attributes
    ----------
    ids
        Identifier of each row.
    affected
        Which rows are affected.
    inputs
        The affected inputs.
    scalars, costs
        Minimum scalar and its cost by direction and affected input; ``inf`` where there is no recourse.
    groups
        Group of each row, where groups were asked for.
    sets
        By name, the positions of the directions that are offered together; a group is offered those of its name.
    notes
        Warnings that came up.
    """

    ids: pa.Array
    affected: BoolArray
    inputs: Rows
    scalars: FloatArray
    costs: FloatArray
    groups: Groups | None
    sets: Mapping[str, tuple[int, ...]]
    notes: tuple[str, ...] = ()

    def least(self, name: str) -> FloatArray:
        """Minimum cost of each affected input over the directions of a set."""
        offered = list(self.sets[name])
        if not offered:
            return np.full(len(self.inputs), np.inf)
        return np.asarray(self.costs[offered].min(axis=0))

    def labels(self) -> IntArray:
        """Group of each affected input."""
        assert self.groups is not None
        return self.groups.labels[self.affected]

    @property
    def chosen(self) -> IntArray:
        """The cheapest direction that each affected input is offered; -1 where there is no recourse."""
        out = np.full(len(self.inputs), NONE, dtype=np.int64)
        whole = np.ones(len(out), dtype=bool)
        parts = [(EVERYBODY, whole)]
        if self.groups is not None:
            labels = self.labels()
            parts += [(name, labels == g) for g, name in enumerate(self.groups.names) if name in self.sets]
        for name, mine in parts:
            offered = np.array(self.sets[name], dtype=np.int64)
            if offered.size:
                costs = self.costs[np.ix_(offered, mine)]
                out[mine] = np.where(np.isfinite(costs).any(axis=0), offered[costs.argmin(axis=0)], NONE)
        return out

    def to_arrow(self, row_id: str) -> pa.RecordBatch:
        """One row per row: identifier, affected, direction, scalar, cost and group.

        Direction, scalar and cost are null for a row that is not affected. Direction -1 with scalar and cost ``inf``
        means no recourse.
        """
        chosen, each = self.chosen, np.arange(len(self.inputs))
        found = chosen >= 0
        direction = np.full(len(self.affected), NONE, dtype=np.int16)
        scalar, cost = np.full((2, len(self.affected)), np.inf)
        direction[self.affected] = chosen
        if len(self.costs):
            pick = np.where(found, chosen, 0)
            scalar[self.affected] = np.where(found, self.scalars[pick, each], np.inf)
            cost[self.affected] = np.where(found, self.costs[pick, each], np.inf)
        unasked = ~self.affected
        columns: dict[str, pa.Array] = {
            row_id: self.ids,
            "affected": pa.array(self.affected),
            "direction": pa.array(direction, mask=unasked),
            "scalar": pa.array(scalar, mask=unasked),
            "cost": pa.array(cost, mask=unasked),
        }
        if self.groups is not None:
            names = pa.array([*self.groups.names], pa.string())
            columns["group"] = names.take(pa.array(self.groups.labels, mask=self.groups.labels < 0))
        return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True, eq=False)
class Task(FieldsOnly):
    """Scale directions on a batch of rows.

    Attributes
    ----------
    model
        The user's model and what was compiled from it.
    cost
        What changes cost; its space is that of the rows.
    directions
        One per row: ``(n, width)``.
    budget, max_scalar
        As for :class:`globece.case.affected.Affected`.
    row_id
        The column with identifiers; positions when absent.
    by
        What groups are formed from: columns, or a mapping of columns to the edges of bins.
    sets
        By group, the positions of the directions that are offered to it; all are offered where it has none.
    batch_rows
        Rows of a batch; it changes no result.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> import globece as gce
    >>> X = pa.table({"income": [1.0, 2.0, 9.0]})
    >>> def model(X):
    ...     return np.asarray(X["income"]) >= 5
    >>> ex = gce.explain(model, X, favourable=True, rng=0)
    >>> task = Task.of(ex)
    >>> batch = X.append_column(task.ids, pa.array([7, 8, 9])).to_batches()[0]
    >>> task(batch).to_pydict()["direction"]
    [0, 0, None]
    """

    model: Model
    cost: CostModel
    directions: FloatArray
    budget: float
    max_scalar: float | None = None
    row_id: str | None = None
    by: Any = None
    sets: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    batch_rows: int = BATCH_ROWS

    @classmethod
    def of(cls, explanation: Any, **more: Any) -> Task:
        """The task of an explanation's directions; ``more`` are other attributes."""
        model = explanation._model(None)
        return cls(model, explanation.cost, explanation.directions, explanation.budget, explanation.max_scalar, **more)

    @property
    def space(self) -> FeatureSpace:
        """The space of the rows."""
        return self.cost.space

    @property
    def ids(self) -> str:
        """The column with identifiers, or with positions, among the columns of a batch."""
        return POSITION if self.row_id is None else self.row_id

    @property
    def reported_id(self) -> str:
        """What that column is called in the results."""
        return "row" if self.row_id is None else self.row_id

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that a batch must have, apart from positions."""
        names = dict.fromkeys(s for f in self.space.features for s in f.sources)
        names.update(dict.fromkeys(columns_of(self.by)))
        if self.row_id is not None:
            names[self.row_id] = None
        return tuple(names)

    @cached_property
    def offered(self) -> dict[str, tuple[int, ...]]:
        """The sets of directions, with all of them for everybody unless there is a set of that name."""
        return {EVERYBODY: tuple(range(len(self.directions))), **self.sets}

    def schema(self, source: pa.Schema) -> pa.Schema:
        """The schema of the results, from that of the rows."""
        known = pa.int64() if self.row_id is None else source.field(self.row_id).type
        fields = [(self.reported_id, known), ("affected", pa.bool_()), ("direction", pa.int16())]
        fields += [("scalar", pa.float64()), ("cost", pa.float64())]
        return pa.schema(fields + ([("group", pa.string())] if self.by is not None else []))

    def uncompiled(self) -> Task:
        """The same with the user's model alone, which is searched."""
        return replace(self, model=self.model.uncompiled())

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The results of a batch, in the order of its rows."""
        return self.outcome(batch).to_arrow(self.reported_id)

    def outcome(self, batch: pa.RecordBatch) -> Outcome:
        """What is found for the rows of a batch.

        Raises
        ------
        Disagreement
            If the user's model disagrees with what was compiled from it; :meth:`uncompiled` then goes on.
        """
        lacks = [name for name in (*self.columns, self.ids) if name not in batch.schema.names]
        if lacks:
            raise InvalidDataError(f"a batch lacks column(s) {lacks}; it has {batch.schema.names}")
        ids = batch.column(self.ids)
        if ids.null_count:
            raise InvalidDataError(f"the identifiers in column {self.ids!r} have {ids.null_count:,} missing value(s)")
        table = read_table(pa.Table.from_batches([batch]))
        rows = Rows.read(self.space, table.frame.to_native())  # type: ignore[attr-defined]
        groups = None
        if self.by is not None:
            groups = find_groups(self.by, table, rows, parameter="by", missing="group") if len(rows) else _nobody()
        with noting() as notes:
            favourable = np.concatenate(
                [np.zeros(0, dtype=bool), *(self.model.unconditioned.favourable(Z) for _, Z in rows.chunks())]
            )
            case = Case(self.model, rows, favourable, self.cost, self.budget, self.max_scalar)
            scalars, costs = self._scaled(case)
        return Outcome(ids, ~favourable, case.inputs, scalars, costs, groups, self.offered, tuple(notes))

    def _scaled(self, case: Case) -> tuple[FloatArray, FloatArray]:
        """Verified minimum scalars and costs of the affected inputs, ``(directions, inputs)``."""
        scalars, costs = np.empty((2, len(self.directions), len(case.inputs)))
        if not len(self.directions):
            return scalars, costs
        for part in case.inputs.slices():
            some = case.part(np.arange(part.start, part.stop))
            scaled = confirmed(some, self.directions, scale(some, self.directions))
            scalars[:, part], costs[:, part] = scaled.scalar, scaled.cost
        return scalars, costs


def columns_of(by: Any) -> tuple[str, ...]:
    """The columns that groups are formed from."""
    if by is None:
        return ()
    if isinstance(by, str):
        return (by,)
    if isinstance(by, Mapping):
        return tuple(by)
    return tuple(name for part in by for name in columns_of(part))


def _nobody() -> Groups:
    return Groups((), np.zeros(0, dtype=np.int64), "nobody")
