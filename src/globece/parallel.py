"""Rows over cores: kernels release the interpreter, so plain threads do.

Few rows stay on the calling thread, where waking others would cost more than it saves. Rows are independent, so the
number of threads changes no result.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba

FEW = 4096  # rows


def over_rows(n: int, work: Callable[[int, int], None], *, few: int = FEW) -> None:
    """Call ``work(start, stop)`` on parts of ``range(n)``, on as many threads as numba would use."""
    threads = min(numba.get_num_threads(), -(-n // few))
    if threads <= 1:
        work(0, n)
        return
    edges = [n * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, edges[:-1], edges[1:]))
