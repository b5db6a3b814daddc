"""A limit on memory: training that takes too much fails, and does not take the machine with it."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOST = 4 * 2**30  # bytes more than are mapped already


@contextmanager
def limited(most: int = MOST) -> Iterator[None]:
    """Raise MemoryError where the process maps so many bytes more."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    statm = Path("/proc/self/statm")
    if not statm.exists():
        yield
        return
    mapped = int(statm.read_text().split()[0]) * resource.getpagesize()
    wanted = mapped + most if before[1] == resource.RLIM_INFINITY else min(before[1], mapped + most)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
