"""What runs the kernels of a GPU: CuPy compiles them and moves the arrays.

A kernel is C++ source beside the module that calls it; :data:`PRELUDE` comes before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

PRELUDE = Path(__file__).with_name("prelude.h")
OPTIONS = ("--std=c++17", "--fmad=false")  # rounds as a CPU does
BLOCK = 128  # threads that are started together
SHARE = 0.5  # of the free memory of the device


def source(file: Path) -> str:
    """A kernel's whole source."""
    return PRELUDE.read_text(encoding="utf-8") + file.read_text(encoding="utf-8")


class Machine(Protocol):
    """What runs the kernels: a GPU, or in tests the CPU."""

    @property
    def free(self) -> int:
        """Bytes of memory that are free."""

    @property
    def at_once(self) -> int:
        """Threads that run at the same time."""

    def put(self, array: Any) -> Any:
        """Copy an array there."""

    def empty(self, n: int, dtype: Any) -> Any:
        """Room for n numbers."""

    def get(self, array: Any) -> Any:
        """Copy an array back."""

    def call(self, file: Path, name: str, threads: int, *arguments: Any) -> None:
        """Call a kernel with arrays that lie there, and whole numbers."""


@dataclass(frozen=True)
class Gpu:
    """The current CUDA device."""

    cupy: Any

    @property
    def free(self) -> int:
        """Bytes of memory that are free, with what CuPy keeps for later."""
        pool = self.cupy.get_default_memory_pool()
        return int(self.cupy.cuda.runtime.memGetInfo()[0] + pool.free_bytes())

    @property
    def at_once(self) -> int:
        """Threads that run at the same time."""
        about = self.cupy.cuda.runtime.getDeviceProperties(self.cupy.cuda.Device().id)
        return int(about["multiProcessorCount"] * about["maxThreadsPerMultiProcessor"])

    def put(self, array: Any) -> Any:
        """Copy an array there; records as bytes."""
        array = np.ascontiguousarray(array)
        return self.cupy.asarray(array if array.dtype.names is None else array.reshape(-1).view(np.uint8))

    def empty(self, n: int, dtype: Any) -> Any:
        """Room for n numbers."""
        return self.cupy.empty(n, dtype)

    def get(self, array: Any) -> Any:
        """Copy an array back."""
        return self.cupy.asnumpy(array)

    def call(self, file: Path, name: str, threads: int, *arguments: Any) -> None:
        """Call a kernel with arrays that lie there, and whole numbers."""
        numbers = [np.int32(a) if isinstance(a, int) else a for a in arguments]
        _compiled(self.cupy, file).get_function(name)((-(-threads // BLOCK),), (min(threads, BLOCK),), tuple(numbers))


@cache
def _compiled(cupy: Any, file: Path) -> Any:
    return cupy.RawModule(code=source(file), options=OPTIONS)


def threads_for(machine: Machine, n_rays: int, each: int) -> int:
    """Number of threads for so many rays, if each needs so many bytes."""
    threads = max(BLOCK, min(n_rays, machine.at_once, int(SHARE * machine.free) // each))
    return -(-threads // BLOCK) * BLOCK
