"""Distribute rows over threads: kernels release the GIL.

Few rows stay on the calling thread, since starting others would cost more than it saves. Rows are independent, so the
number of threads does not change results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numba
from numba.core import event

from globece.progress import Pace, check_time, is_timed

FEW = 4096  # rows


@contextmanager
def compile_timer() -> Iterator[Callable[[], float]]:
    """Measure the time for compiling kernels, once on each machine; yields a function that returns it in seconds."""
    listener = event.TimingListener()  # type: ignore[no-untyped-call]
    event.register("numba:compile", listener)  # type: ignore[no-untyped-call]
    try:
        yield lambda: listener.duration if listener.done else 0.0
    finally:
        event.unregister("numba:compile", listener)  # type: ignore[no-untyped-call]


def over_rows(n: int, work: Callable[[int, int], None], *, few: int = FEW) -> None:
    """Call ``work(start, stop)`` on parts of ``range(n)``, on as many threads as Numba would use.

    Under a time limit the parts are short and the clock is checked between them.
    """
    if not is_timed():
        _over(0, n, work, few)
        return
    pace, start = Pace(few // 16), 0
    while start < n:
        check_time()
        stop = min(n, start + pace.size)
        pace.start()
        _over(start, stop, work, few)
        pace.done(stop - start)
        start = stop


def _over(first: int, last: int, work: Callable[[int, int], None], few: int) -> None:
    n = last - first
    threads = min(numba.get_num_threads(), -(-n // few))
    if threads <= 1:
        work(first, last)
        return
    edges = [first + n * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, edges[:-1], edges[1:]))
