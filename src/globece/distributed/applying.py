"""Directions on every row of a large table: one pass, part by part."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from globece.case.verification import Disagreement
from globece.compact import Rows
from globece.distributed import fingerprints, threads
from globece.distributed.engines import Engine, engine_of
from globece.distributed.manifest import Folder
from globece.distributed.result import Portfolio
from globece.distributed.sources import Part, Source, is_of, parquet
from globece.distributed.summary import Summary
from globece.distributed.task import BATCH_ROWS, Task, columns_of
from globece.errors import GlobeCEWarning, InvalidDataError, UnknownFeatureError, check_count, check_instance
from globece.explanation import Explanation
from globece.progress import Monitor, Progress, monitoring

MOST_BATCH = 2**22


@dataclass(frozen=True)
class Work:
    """Scale a part, write its results, and return its summary.

    Attributes
    ----------
    task
        The function of one batch.
    folder
        Where results go; nowhere if absent.
    threads
        Threads to use; as many as usual if absent.
    """

    task: Task
    folder: Folder | None
    threads: int | None = None

    def __call__(self, part: Part) -> Summary:
        """The summary of a part, which is only computed if it is not finished already."""
        if self.folder is not None:
            known = self.folder.finished(part.index)
            if known is not None:
                return known
        with threads.limited(self.threads, self.task.model.decide.model):
            if self.folder is None:
                return self._summary(part, lambda batch: None)
            return self._written(part, self.folder)

    def _written(self, part: Part, folder: Folder) -> Summary:
        schema = self.task.schema(part.schema)  # type: ignore[attr-defined]
        with folder.writing(part.index, schema) as writer:
            writer.summary = found = self._summary(part, writer.write)
        return found

    def _summary(self, part: Part, write: Callable[[Any], None]) -> Summary:
        total = Summary.none(self.task)
        for batch in part.batches(self.task.columns, self.task.batch_rows):
            outcome = self.task.outcome(batch)
            write(outcome.to_arrow(self.task.reported_id))
            total = total + Summary.of(self.task, outcome)
        return total


def apply(
    explanation: Explanation,
    source: Any,
    *,
    out: Any = None,
    row_id: str | None = None,
    client: Any = None,
    jobs: int | None = None,
    batch_rows: int = BATCH_ROWS,
    progress: bool | Callable[[Progress], None] = False,
) -> Portfolio:
    """Scale the directions of an explanation on every row of a large table.

    Parameters
    ----------
    explanation
        With its model, as :func:`globece.explain` returns it.
    source
        A path to a Parquet file or folder, a list of files, a PyArrow dataset, or a Dask or Spark DataFrame.
    out
        A folder for the results, by row, as Parquet. Begun again in the same folder, a run that was interrupted goes on
        where it ended. Without it only the summary is kept.
    row_id
        A column that identifies rows; their position if absent. Rows of a Spark DataFrame have no order, so it needs
        one.
    client
        A Dask client; parts are worked on by its cluster, whose workers must all see ``out``.
    jobs
        Processes on this machine, each with its share of the cores; one with all of them by default.
    batch_rows
        Rows at a time: bounds the memory, and changes no result.
    progress
        ``True`` for a bar, or a function to report to.

    Examples
    --------
    >>> import tempfile, numpy as np, pandas as pd, globece as gce
    >>> X = pd.DataFrame({"income": np.arange(1000.0)})
    >>> def model(X):
    ...     return (np.asarray(X["income"]) >= 500).astype(int)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     X.to_parquet(f"{folder}/all.parquet", row_group_size=300)
    ...     found = apply(gce.explain(model, X.iloc[::10], rng=0), f"{folder}/all.parquet", out=f"{folder}/out")
    ...     found.n_rows, found.numbers.n_affected, found.rows().num_rows
    (1000, 500, 1000)
    """
    ex = check_instance("explanation", explanation, Explanation)
    task = Task.of(ex, row_id=row_id, batch_rows=check_count("batch_rows", batch_rows, low=1, high=MOST_BATCH))
    table = opened(source, client, row_id)
    with monitoring(progress, None) as monitor:
        summary, task = scaled(task, table, engine_of(jobs, table), ex.encoded, out, monitor)
    return Portfolio.of(ex, task, summary, table, out)


def opened(source: Any, client: Any, row_id: str | None) -> Source:
    """The parts of a source; the partitions of a frame on a cluster are counted first."""
    if is_of(source, "dask"):
        return _module("on_dask").opened(source, client)  # type: ignore[no-any-return]
    if is_of(source, "pyspark"):
        return _module("on_spark").opened(source, row_id)  # type: ignore[no-any-return]
    found = parquet(source)
    return found if client is None else replace(found, engine=_module("on_dask").OnDask.of(client))


def _module(name: str) -> Any:
    return import_module(f"globece.distributed.{name}")


def scaled(
    task: Task, source: Source, engine: Engine, inputs: Rows | None, out: Any, monitor: Monitor
) -> tuple[Summary, Task]:
    """The summary of all rows, and the task that found it.

    If the user's model disagrees with what was compiled from it on any row, all rows are searched with the user's model
    alone, and a warning says so.
    """
    check_columns(task, source)
    folder = None if out is None else Folder.opened(out, fingerprints.of_run(task, source, inputs))
    if folder is not None and folder.is_searched:
        task, folder = task.uncompiled(), folder.searched()
    try:
        return _pass(task, source, engine, folder, monitor), task
    except Disagreement as why:
        warnings.warn(
            f"{task.model.name} is searched as a black box, not followed exactly: {why}", GlobeCEWarning, stacklevel=3
        )
    task, folder = task.uncompiled(), folder and folder.searched()
    return _pass(task, source, engine, folder, monitor), task


def _pass(task: Task, source: Source, engine: Engine, folder: Folder | None, monitor: Monitor) -> Summary:
    total, done = Summary.none(task), 0
    monitor("scaling rows", 0, source.n_rows)
    for found in engine.run(Work(task, folder, engine.threads), source):
        total = total + found
        done += found.rows
        monitor("scaling rows", done, source.n_rows)
    for note in total.notes:
        warnings.warn(note, GlobeCEWarning, stacklevel=5)
    return total


def check_columns(task: Task, source: Source) -> None:
    """Raise if the rows lack a column that is needed."""
    lacks = [name for name in task.columns if name not in source.schema.names]
    if not lacks:
        return
    if task.row_id in lacks:
        raise UnknownFeatureError(f"row_id names unknown column {task.row_id!r}; there are {source.schema.names}")
    odd = [name for name in columns_of(task.by) if name in lacks]
    if odd:
        raise UnknownFeatureError(f"by names unknown column(s) {odd}; there are {source.schema.names}")
    raise InvalidDataError(f"the rows lack column(s) {lacks}; they have {source.schema.names}")
