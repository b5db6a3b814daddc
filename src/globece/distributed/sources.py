"""Where rows come from: the parts of a Parquet dataset or of a Dask DataFrame, each read in batches.

A part knows the position of its first row, so a row has the same position however the table is divided.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from globece.distributed.task import POSITION
from globece.errors import InvalidDataError, InvalidParameterError, clipped, describe

PART_ROWS = 200_000  # of a part, at least, where row groups are smaller: what is lost with a worker
BUFFER = 1 << 17  # bytes of a column that are read at once
ALLOWED = "a path to a Parquet file or folder, a list of files, a PyArrow dataset, or a Dask or Spark DataFrame"


class Part(Protocol):
    """Some consecutive rows of a table."""

    @property
    def index(self) -> int:
        """Which part it is, from 0."""
        ...

    @property
    def first(self) -> int:
        """Position of its first row."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of its rows."""
        ...

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Its rows in batches of at most ``rows``, with the column of positions."""
        ...


@dataclass(frozen=True, slots=True)
class Stamp:
    """What shows that a file has changed: its size, and when it was written."""

    path: str
    size: int
    written: int | None

    @classmethod
    def of(cls, filesystem: Any, path: str) -> Stamp:
        """The stamp of a file now."""
        info = filesystem.get_file_info(path)
        return cls(path, -1 if info.size is None else info.size, info.mtime_ns)


@dataclass(frozen=True)
class ParquetPart:
    """Some row groups of a Parquet file.

    Attributes
    ----------
    index, first, n_rows
        As for :class:`Part`.
    fragment
        The row groups.
    schema
        The types that all files' columns are read as.
    stamp
        Of the file, when the run began.
    """

    index: int
    first: int
    n_rows: int
    fragment: Any = field(repr=False)
    schema: pa.Schema = field(repr=False)
    stamp: Stamp = field(repr=False)

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Its rows; an error if the file has changed since the run began, before or while it is read."""
        self._check()
        at = self.first
        try:
            for batch in _streamed(self.fragment, [self.schema.field(name) for name in columns], rows):
                if len(batch):
                    yield with_positions(batch, at)
                    at += len(batch)
        except (pa.ArrowException, OSError) as error:
            self._check()
            raise InvalidDataError(f"{self.stamp.path} cannot be read: {error}") from error
        self._check()
        if at != self.first + self.n_rows:
            raise InvalidDataError(
                f"{self.stamp.path} gave {at - self.first:,} rows in part {self.index}, and its footer says "
                f"{self.n_rows:,}"
            )

    def _check(self) -> None:
        now = Stamp.of(self.fragment.filesystem, self.stamp.path)
        if now != self.stamp:
            what = "is gone" if now.size < 0 else f"was {self.stamp.size:,} bytes and is {now.size:,}"
            raise InvalidDataError(
                f"{self.stamp.path} has changed since the run began ({what}, or was written again): results would mix "
                "two states of the data; start again with a folder of its own"
            )


@dataclass(frozen=True)
class FramePart:
    """A partition of a frame on a cluster; its rows come with the call."""

    index: int
    first: int
    n_rows: int
    schema: pa.Schema = field(repr=False)
    tables: Iterable[pa.Table] = field(default=(), repr=False)

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Its rows; an error if there are more or fewer than were counted."""
        at, waiting = self.first, pa.table({})
        for table in self.tables:
            waiting = (
                pa.concat_tables([waiting, self._cast(table, columns)]) if len(waiting) else self._cast(table, columns)
            )
            while len(waiting) >= rows:
                yield with_positions(waiting.slice(0, rows).combine_chunks().to_batches()[0], at)
                at, waiting = at + rows, waiting.slice(rows)
        if len(waiting):
            yield with_positions(waiting.combine_chunks().to_batches()[0], at)
            at += len(waiting)
        if at != self.first + self.n_rows:
            raise InvalidDataError(
                f"partition {self.index} has {at - self.first:,} rows now and had {self.n_rows:,} when they were "
                "counted: does it read data that changes?"
            )

    def _cast(self, table: pa.Table, columns: Sequence[str]) -> pa.Table:
        lacks = [name for name in columns if name not in table.column_names]
        if lacks:
            raise InvalidDataError(f"partition {self.index} lacks column(s) {lacks}; it has {table.column_names}")
        some = table.select(list(columns))
        try:
            return some.cast(pa.schema([self.schema.field(name) for name in columns]))
        except pa.ArrowException as error:
            raise InvalidDataError(f"partition {self.index} does not have the types of the others: {error}") from error


@dataclass(frozen=True)
class Source:
    """A table in parts.

    Attributes
    ----------
    schema
        Of all parts.
    parts
        In the order of the rows.
    described
        What it is, in words.
    stamps
        Of its files.
    engine
        What works on its parts, where only one engine can.
    """

    schema: pa.Schema
    parts: tuple[Any, ...]
    described: str
    stamps: tuple[Stamp, ...] = ()
    engine: Any = field(default=None, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(part.n_rows for part in self.parts)


def is_path(source: Any) -> bool:
    """Whether a source is named by a path, or by several."""
    paths = source if isinstance(source, (list, tuple)) and source else [source]
    return all(isinstance(p, (str, os.PathLike)) for p in paths)


def is_of(source: Any, library: str) -> bool:
    """Whether a source is a frame of a library that need not be installed."""
    return type(source).__module__.partition(".")[0].startswith(library)


def dataset(source: Any, parameter: str = "source") -> Any:
    """The PyArrow dataset of one path or several; anything else as it is."""
    if not is_path(source):
        return source
    paths = [str(Path(p)) for p in source] if isinstance(source, (list, tuple)) else str(Path(source))
    try:
        found = ds.dataset(paths, format="parquet", partitioning="hive")
    except FileNotFoundError as error:
        raise InvalidDataError(f"{parameter} names {clipped(str(paths))}: there is no such file or folder") from error
    except (pa.ArrowException, OSError) as error:
        raise InvalidDataError(
            f"{parameter} names {clipped(str(paths))}, which cannot be read as Parquet: {clipped(str(error))}"
        ) from error
    if not found.files:
        raise InvalidDataError(f"{parameter} names {clipped(str(paths))}: there are no files in it")
    return found


def parquet(source: Any, *, part_rows: int = PART_ROWS) -> Source:
    """The parts of a Parquet dataset, given as paths or as a PyArrow dataset.

    Files are taken in the order of their paths. A number may be an integer in one file and a double in another, as
    pandas writes a column with missing values; other differences are errors.
    """
    source = dataset(source)
    if not isinstance(source, ds.FileSystemDataset):
        raise InvalidParameterError(f"the rows must be {ALLOWED}; got {describe(source)}")
    fragments = sorted(source.get_fragments(), key=lambda f: str(f.path))
    if not fragments:
        raise InvalidDataError("the dataset has no files")
    schema = _common_schema(fragments, source.schema)
    parts: list[ParquetPart] = []
    stamps = []
    at = 0
    for fragment in fragments:
        stamp = Stamp.of(fragment.filesystem, fragment.path)
        stamps.append(stamp)
        for groups, rows in _grouped(fragment, part_rows):
            some = fragment.subset(row_group_ids=groups)
            parts.append(ParquetPart(len(parts), at, rows, some, schema, stamp))
            at += rows
    if not at:
        raise InvalidDataError("the dataset has no rows")
    return Source(schema, tuple(parts), f"{len(fragments):,} Parquet file(s)", tuple(stamps))


def _streamed(fragment: Any, columns: Sequence[pa.Field], rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of a fragment, a few pages of each column at a time.

    A dataset's own scanner decodes a whole row group before its first batch; some writers put a million rows in one.
    """
    options, held = fragment.format.read_options, ds.get_partition_keys(fragment.partition_expression)
    with pq.ParquetFile(
        fragment.path,
        filesystem=fragment.filesystem,
        read_dictionary=sorted(options.dictionary_columns),
        coerce_int96_timestamp_unit=options.coerce_int96_timestamp_unit,
        buffer_size=BUFFER,
        pre_buffer=False,
    ) as file:
        written, groups = {*file.schema_arrow.names}, [group.id for group in fragment.row_groups]
        names = [c.name for c in columns if c.name in written]
        for batch in file.iter_batches(batch_size=rows, row_groups=groups, columns=names, use_threads=False):
            arrays = [
                batch.column(c.name).cast(c.type) if c.name in written
                else pa.repeat(pa.scalar(held.get(c.name), c.type), len(batch))
                for c in columns
            ]  # fmt: skip
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(columns))


def _grouped(fragment: Any, part_rows: int) -> Iterator[tuple[list[int], int]]:
    """Consecutive row groups with at least so many rows, and how many they have."""
    groups: list[int] = []
    rows = 0
    for group in fragment.row_groups:
        groups.append(group.id)
        rows += group.num_rows
        if rows >= part_rows:
            yield groups, rows
            groups, rows = [], 0
    if rows:
        yield groups, rows


def _common_schema(fragments: Sequence[Any], whole: pa.Schema) -> pa.Schema:
    """The schema of all files; where it differs by more than the type of a number, an error names the file."""
    first = fragments[0].physical_schema
    common = first
    for fragment in fragments[1:]:
        common = joined(common, fragment.physical_schema, fragment.path, fragments[0].path)
    for column in whole:  # those that the folders' names hold
        if column.name not in common.names:
            common = common.append(column)
    return common


def joined(one: pa.Schema, other: pa.Schema, path: str, first: str) -> pa.Schema:
    """The schema that holds the rows of both."""
    differing = sorted({*one.names} ^ {*other.names})
    if differing:
        raise InvalidDataError(f"{path} and {first} differ in column(s) {differing}; all parts need the same columns")
    fields = []
    for a in one:
        b = other.field(a.name)
        kind = _common_type(a.type, b.type)
        if kind is None:
            raise InvalidDataError(
                f"column {a.name!r} has type {b.type} in {path} and {a.type} in {first}; convert one of them"
            )
        fields.append(pa.field(a.name, kind, metadata=a.metadata))
    return pa.schema(fields, metadata=one.metadata)


def _common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    kinds = {pa.types.is_integer(t) or pa.types.is_floating(t) for t in (one, other)}
    texts = {pa.types.is_string(t) or pa.types.is_large_string(t) for t in (one, other)}
    if kinds == {True}:
        both = {pa.types.is_integer(t) for t in (one, other)}
        return pa.int64() if both == {True} else pa.float64()
    return pa.large_string() if texts == {True} else None


def with_positions(batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """A batch with the positions of its rows, from ``first`` on."""
    return batch.append_column(POSITION, pa.array(np.arange(first, first + len(batch), dtype=np.int64)))


def schema_of(frame: Any) -> tuple[int, pa.Schema]:
    """Number of rows and schema of a pandas frame."""
    return len(frame), pa.Schema.from_pandas(frame, preserve_index=False)


def of_frames(counted: Sequence[tuple[int, pa.Schema]], described: str, engine: Any) -> Source:
    """A table whose partitions have so many rows and such schemas, and are read by an engine of their own."""
    filled = [(i, schema) for i, (rows, schema) in enumerate(counted) if rows]
    if not filled:
        raise InvalidDataError(f"{described} has no rows")
    schema = filled[0][1]
    for i, other in filled[1:]:
        schema = joined(schema, other, f"partition {i}", f"partition {filled[0][0]}")
    schema = pa.schema([_plain(f) for f in schema], metadata=schema.metadata)
    parts, at = [], 0
    for i, (rows, _) in enumerate(counted):
        parts.append(FramePart(i, at, rows, schema))
        at += rows
    return Source(schema, tuple(parts), f"{described} of {len(parts):,} partitions", (), engine)


def _plain(column: pa.Field) -> pa.Field:
    """Categories as their values: each partition may number them differently."""
    kind = column.type
    return column.with_type(kind.value_type) if pa.types.is_dictionary(kind) else column
