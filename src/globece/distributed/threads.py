"""How many threads a worker uses: its share of the machine's cores, in every library that starts some.

Numba's kernels and BLAS take a limit for a thread or a process. OpenMP in XGBoost asks for the number of processors
instead, so a fitted model that has ``n_jobs`` is told.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
from threadpoolctl import threadpool_limits

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_THREAD_LIMIT")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share(workers: int) -> int:
    """Threads of each of so many workers on this machine."""
    return max(1, cores() // workers)


@contextmanager
def limited(threads: int | None, model: Any = None) -> Iterator[None]:
    """Let kernels, BLAS and OpenMP use at most so many threads; ``None`` changes nothing.

    Parameters
    ----------
    threads
        How many.
    model
        The user's model; where it is a copy of this process's own, its ``n_jobs`` is set as well, and stays.
    """
    if threads is None:
        yield
        return
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, _most()))
    if model is not None:
        _set_jobs(model, threads)
    try:
        with threadpool_limits(threads):
            yield
    finally:
        numba.set_num_threads(before)


def _most() -> int:
    """Threads that Numba was started with."""
    most: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    return most


def _set_jobs(model: Any, threads: int) -> None:
    """Set ``n_jobs`` of an estimator and of its parts, where it does not have that value already."""
    if not (hasattr(model, "get_params") and hasattr(model, "set_params")):
        return
    try:
        known = model.get_params(deep=True)
    except Exception:  # an estimator that does not follow the convention keeps its threads
        return
    wanted = {n: threads for n, v in known.items() if n.rpartition("__")[2] == "n_jobs" and v != threads}
    if wanted:
        model.set_params(**wanted)
