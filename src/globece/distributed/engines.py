"""Where parts are worked on: in this process, or in processes of this machine.

An engine has one method: ``run(work, source)`` calls a function on every part and yields what it returns, in whatever
order the parts are finished. :mod:`globece.distributed.on_dask` has another, for a cluster.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from globece.distributed import threads
from globece.distributed.sources import Source
from globece.errors import GlobeCEError, ModelError, check_count

R = TypeVar("R")
ATTEMPTS = 3  # with processes that are killed


class Engine(Protocol):
    """Calls a function on the parts of a table."""

    @property
    def threads(self) -> int | None:
        """Threads that each call may use; as many as usual if ``None``."""
        ...

    def run(self, work: Callable[[Any], R], source: Source) -> Iterator[R]:
        """Yield what the function returns for each part."""
        ...


class PartFailed(ModelError):
    """A part failed; the others were finished."""


@dataclass(frozen=True)
class Here:
    """One part after the other in this process, whose kernels use all cores."""

    threads = None

    def run(self, work: Callable[[Any], R], source: Source) -> Iterator[R]:
        """Yield what the function returns for each part, in their order."""
        failed: list[tuple[int, Exception]] = []
        for part in source.parts:
            try:
                found = work(part)
            except GlobeCEError as error:
                if not is_of_one_part(error):
                    raise
                failed.append((part.index, error))
            else:
                yield found
        raise_failed(failed, len(source.parts))


@dataclass(frozen=True)
class Processes:
    """Several processes of this machine, each with its share of the cores.

    Attributes
    ----------
    jobs
        How many.
    """

    jobs: int

    @property
    def threads(self) -> int:
        """The cores of the machine, divided."""
        return threads.share(self.jobs)

    def run(self, work: Callable[[Any], R], source: Source) -> Iterator[R]:
        """Yield what the function returns for each part; processes that are killed are replaced a few times."""
        data = dumps(work)
        failed: list[tuple[int, Exception]] = []
        left = {part.index: part for part in source.parts}
        for attempt in range(ATTEMPTS):
            try:
                for index, found in self._attempt(data, list(left.values())):
                    del left[index]
                    if isinstance(found, GlobeCEError):
                        failed.append((index, found))
                    else:
                        yield found
                break
            except BrokenProcessPool as error:
                if attempt == ATTEMPTS - 1:
                    raise ModelError(
                        f"processes were killed {ATTEMPTS} times, with {len(left):,} of {len(source.parts):,} parts "
                        "left (is there enough memory?); finished parts are kept: start the same run again"
                    ) from error
        raise_failed(failed, len(source.parts))

    def _attempt(self, data: bytes, parts: list[Any]) -> Iterator[tuple[int, Any]]:
        """What is found for each part, or the error of that part."""
        with _environment(self.threads):
            pool = ProcessPoolExecutor(
                self.jobs, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(data,)
            )
            try:
                futures = {pool.submit(_do, part): part.index for part in parts}
                for future in as_completed(futures):
                    try:
                        yield futures[future], future.result()
                    except GlobeCEError as error:
                        if not is_of_one_part(error):
                            raise
                        yield futures[future], error
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


def engine_of(jobs: int | None, source: Source) -> Engine:
    """The engine of a source, or so many processes."""
    n = 1 if jobs is None else check_count("jobs", jobs, low=1, high=1024)
    if source.engine is not None:
        found: Engine = source.engine
        return found
    return Here() if n == 1 else Processes(n)


def raise_failed(failed: list[tuple[int, Exception]], n_parts: int) -> None:
    """Raise if some parts failed: the first of their errors, and which parts they were."""
    if not failed:
        return
    failed.sort(key=lambda f: f[0])
    index, error = failed[0]
    if n_parts == 1:
        raise error
    parts = ", ".join(str(i) for i, _ in failed[:20])
    kept = f"the other {n_parts - len(failed):,} of {n_parts:,} are finished"
    raise PartFailed(f"part(s) {parts} failed and {kept}; part {index}: {error}") from error


def is_of_one_part(error: GlobeCEError) -> bool:
    """Whether other parts may still succeed: not where results cannot be written, or the model was misread."""
    return type(error).__name__ not in ("ResultsError", "Disagreement")


def dumps(work: Any) -> bytes:
    """Pickle a function with all it needs, also what was defined in a notebook."""
    try:
        from cloudpickle import dumps as by_value  # joblib and Dask come with it
    except ImportError:
        by_value = pickle.dumps
    try:
        found: bytes = by_value(work)
    except Exception as error:
        raise ModelError(f"the model cannot be sent to another process: {type(error).__name__}: {error}") from error
    return found


_work: list[Callable[[Any], Any]] = []


def _begin(data: bytes) -> None:
    _work[:] = [pickle.loads(data)]


def _do(part: Any) -> Any:
    return _work[0](part)


@contextmanager
def _environment(n: int) -> Iterator[None]:
    """Variables for the processes that are started: libraries read them as they are imported."""
    before = {name: os.environ.get(name) for name in threads.VARIABLES}
    os.environ.update(dict.fromkeys(threads.VARIABLES, str(n)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
