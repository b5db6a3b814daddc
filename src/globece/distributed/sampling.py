"""A first pass over the rows: what the columns hold, and a random sample of the rows.

The sample consists of the rows whose hashed position is below a threshold. So it does not depend on how the rows are
divided, and what is found in several parts adds up.

What the columns hold is shown by *witnesses*: rows with the least and the largest number of each column, one of each
category, and one with each missing value. A space that is learnt from these is the space of all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from globece.case.ordering import content_hash
from globece.compact import Rows
from globece.distributed.sources import Part
from globece.distributed.task import POSITION
from globece.errors import InvalidParameterError, require
from globece.models.base import Model

ALL = 2**64
MOST_VALUES = 1_001  # of a column of categories: more than a space takes
FRAMES = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True, eq=False, slots=True)
class Survey:
    """What was seen of some rows.

    Attributes
    ----------
    rows
        How many there were.
    sample
        Those that the sample consists of, with their positions.
    witnesses
        Rows that show what the columns hold; none if the space is known.
    """

    rows: int
    sample: pa.Table
    witnesses: pa.Table

    def __add__(self, other: Survey) -> Survey:
        """Of the rows of both."""
        both = _stacked(self.witnesses, other.witnesses)
        return Survey(self.rows + other.rows, _stacked(self.sample, other.sample), both)


@dataclass(frozen=True)
class Surveyor:
    """Survey a part of the rows.

    Attributes
    ----------
    columns
        The columns to read.
    share
        Of the rows, for the sample.
    seed
        Of the hash.
    learns
        Whether the space has to be learnt.
    batch_rows
        Rows at a time.
    categorical
        Columns of which each value counts, though they may hold numbers.
    affected_only
        The model, where the sample is to have affected inputs alone.
    """

    columns: tuple[str, ...]
    share: float
    seed: int
    learns: bool
    batch_rows: int
    categorical: frozenset[str] = frozenset()
    affected_only: Model | None = None

    def __call__(self, part: Part) -> Survey:
        """The survey of a part."""
        sample: list[pa.Table] = []
        shown: list[pa.Table] = []
        for batch in part.batches(self.columns, self.batch_rows):
            table = pa.Table.from_batches([batch])
            position = np.asarray(batch.column(POSITION)).astype(np.float64)
            chosen = content_hash(position[:, None], self.seed) < np.uint64(min(int(self.share * ALL), ALL - 1))
            sample.append(self._kept(table.filter(pa.array(chosen))))
            if self.learns:
                shown.append(witnesses(table, self.categorical))
        empty = pa.table({})
        found = witnesses(pa.concat_tables(shown, promote_options="default"), self.categorical) if shown else empty
        return Survey(part.n_rows, pa.concat_tables(sample, promote_options="default") if sample else empty, found)

    def _kept(self, table: pa.Table) -> pa.Table:
        if self.affected_only is None or not len(table):
            return table
        space = self.affected_only.space
        rows = Rows.read(space, table)
        favourable = np.concatenate([self.affected_only.unconditioned.favourable(Z) for _, Z in rows.chunks()])
        return table.filter(pa.array(~favourable))


def surveyed(found: Iterator[Survey]) -> Survey:
    """The survey of all parts, in the order of the rows."""
    total = Survey(0, pa.table({}), pa.table({}))
    for one in found:
        total = total + one
    return Survey(total.rows, _in_order(total.sample), _in_order(total.witnesses))


def witnesses(table: pa.Table, categorical: frozenset[str] = frozenset()) -> pa.Table:
    """Rows of a table from which the same space is learnt as from all of it.

    Parameters
    ----------
    table
        The rows.
    categorical
        Columns of numbers of which each value counts.

    Examples
    --------
    >>> table = pa.table({"age": [3, 1, 2, 2], "job": ["a", "b", "a", None], POSITION: [0, 1, 2, 3]})
    >>> witnesses(table)["job"].to_pylist()
    ['a', 'b', None]
    """
    if not len(table):
        return table
    rows: set[int] = set()
    for name in table.column_names:
        if name == POSITION:
            continue
        column = table.column(name).combine_chunks()
        if column.null_count:
            rows.add(pc.index(pc.is_null(column), True).as_py())
        numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        if numeric and name not in categorical:
            rows.update(_extremes(column))
        else:
            rows.update(_each(column))
    return table.take(pa.array(sorted(rows or {0}), pa.int64()))


def _extremes(column: pa.Array) -> Iterator[int]:
    """Positions of the least and the largest number, of a NaN, and of infinity, which is an error later."""
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f":
        missing = np.isnan(values)
        if missing.all():
            yield 0
            return
        if missing.any():
            yield int(missing.argmax())
        yield int(np.nanargmin(values))
        yield int(np.nanargmax(values))
    else:
        yield int(values.argmin())
        yield int(values.argmax())


def _each(column: pa.Array) -> Iterator[int]:
    """Position of the first of each value."""
    try:
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    except (pa.ArrowException, NotImplementedError):
        yield 0  # a type that the space refuses
        return
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    found, first = np.unique(codes, return_index=True)
    yield from (int(i) for code, i in list(zip(found.tolist(), first.tolist(), strict=True))[:MOST_VALUES] if code >= 0)


def _stacked(one: pa.Table, other: pa.Table) -> pa.Table:
    if not one.num_columns or not other.num_columns:
        return one if one.num_columns else other
    return pa.concat_tables([one, other], promote_options="default")


def _in_order(table: pa.Table) -> pa.Table:
    return table.sort_by(POSITION) if table.num_columns else table


def frame_of(table: pa.Table, columns: Sequence[str], kind: str) -> Any:
    """A table as a frame of this library, with these columns."""
    table = table.select(list(columns)).unify_dictionaries()
    if kind == "pandas":
        require("pandas", extra="frames", caller="frame='pandas'")
        frame = table.to_pandas()
        return frame.reset_index(drop=not set(frame.index.names) & set(columns))[list(columns)]
    if kind == "polars":
        return require("polars", extra="frames", caller="frame='polars'").from_arrow(table)
    if kind == "pyarrow":
        return table
    raise InvalidParameterError(f"frame must be one of {list(FRAMES)}; got {kind!r}")
