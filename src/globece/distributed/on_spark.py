"""Parts on Spark: the same functions, in ``mapInArrow``.

:func:`scaled` is the function of one batch on a Spark DataFrame, and leaves it to Spark what becomes of the rows. As a
source of :func:`globece.distributed.explain`, ``apply`` and ``audit`` a Spark DataFrame is worked on partition by
partition, and results are written to the run's folder, as on any other engine.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa

from globece.distributed.engines import dumps, is_of_one_part, raise_failed
from globece.distributed.sources import FramePart, Source, of_frames
from globece.distributed.task import Task
from globece.errors import GlobeCEError, InvalidParameterError, UnknownFeatureError, require
from globece.explanation import Explanation

R = TypeVar("R")
RESULTS = "part int, result binary"


def scaled(explanation: Explanation, frame: Any, *, row_id: str, by: Any = None) -> Any:
    """A Spark DataFrame with a row per row: identifier, affected, direction, scalar and cost.

    Parameters
    ----------
    explanation
        The directions, with their model.
    frame
        A Spark DataFrame with the columns of the model.
    row_id
        The column that identifies rows.
    by
        What groups are formed from, for a column with each row's group.
    """
    check_row_id(frame, row_id)
    task = Task.of(explanation, row_id=row_id, by=by)
    data = dumps(task)
    fields = [f"`{row_id}` {frame.schema[row_id].dataType.simpleString()}", "affected boolean", "direction smallint"]
    fields += ["scalar double", "cost double", *(["`group` string"] if by is not None else [])]

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mine: Task = pickle.loads(data)
        for table in _tables(batches, mine.batch_rows):
            yield mine(table.combine_chunks().to_batches()[0])

    return frame.select(*task.columns).mapInArrow(work, ", ".join(fields))


@dataclass(frozen=True)
class OnSpark:
    """The partitions of a Spark DataFrame.

    Attributes
    ----------
    frame
        The DataFrame.
    threads
        Threads that each call may use: one, as Spark runs a task per core.
    """

    frame: Any
    threads: int = 1

    def run(self, work: Callable[[Any], R], source: Source) -> Iterator[R]:
        """Yield what the function returns for each part."""
        data, parts = dumps(work), source.parts

        def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            mine = pickle.loads(data)
            part: FramePart = replace(parts[_partition()], tables=(pa.Table.from_batches([b]) for b in batches))
            try:
                found: Any = mine(part)
            except GlobeCEError as error:
                found = error
            yield pa.RecordBatch.from_pydict({"part": pa.array([part.index], pa.int32()), "result": [dumps(found)]})

        failed: list[tuple[int, Exception]] = []
        for row in self.frame.mapInArrow(call, RESULTS).collect():
            found = pickle.loads(row["result"])
            if not isinstance(found, GlobeCEError):
                yield found
            elif is_of_one_part(found):
                failed.append((row["part"], found))
            else:
                raise found
        raise_failed(failed, len(parts))


def opened(frame: Any, row_id: str | None) -> Source:
    """The partitions of a Spark DataFrame, of which the rows are counted first."""
    require("pyspark", extra="spark", caller="a Spark DataFrame")
    check_row_id(frame, row_id)

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, schema = 0, None
        for batch in batches:
            rows, schema = rows + len(batch), batch.schema
        result = [pickle.dumps((rows, schema))]
        yield pa.RecordBatch.from_pydict({"part": pa.array([_partition()], pa.int32()), "result": result})

    found = {row["part"]: pickle.loads(row["result"]) for row in frame.mapInArrow(count, RESULTS).collect()}
    n = max(found, default=-1) + 1
    return of_frames([found.get(i, (0, None)) for i in range(n)], "a Spark DataFrame", OnSpark(frame))


def check_row_id(frame: Any, row_id: str | None) -> None:
    """Raise unless a column identifies the rows: those of a Spark DataFrame have no order."""
    if row_id is None:
        raise InvalidParameterError("row_id must name a column: the rows of a Spark DataFrame have no order")
    if row_id not in frame.columns:
        raise UnknownFeatureError(f"row_id names unknown column {row_id!r}; there are {frame.columns}")


def _tables(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Batches put together: Spark's are small."""
    waiting: list[pa.RecordBatch] = []
    n = 0
    for batch in batches:
        waiting.append(batch)
        n += len(batch)
        if n >= rows:
            yield pa.Table.from_batches(waiting)
            waiting, n = [], 0
    if n:
        yield pa.Table.from_batches(waiting)


def _partition() -> int:
    """Which partition this task works on."""
    context: Any = require("pyspark", extra="spark", caller="a Spark DataFrame").TaskContext.get()
    return int(context.partitionId())
