"""What runs the kernels of a GPU: CuPy compiles them and moves the arrays.

A kernel is C++ source beside the module that calls it; :data:`PRELUDE` comes before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from globece.parallel import over_rows

PRELUDE = Path(__file__).with_name("prelude.h")
OPTIONS = ("--std=c++17", "--fmad=false")  # rounds as a CPU does
BLOCK = 128  # threads that are started together
LARGE = 1 << 26  # bytes from which an array is copied in pieces
PIECE, FEW = 1 << 22, 1 << 18  # numbers in a piece, and those that are not worth another thread
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
        if array.nbytes >= LARGE and array.dtype == np.float64:
            return self._staged(array)
        return self.cupy.asarray(array if array.dtype.names is None else array.reshape(-1).view(np.uint8))

    def _staged(self, array: Any) -> Any:
        """Copy many numbers there: on all threads into two buffers that the GPU reads by turns."""
        cupy, flat = self.cupy, array.reshape(-1)
        out, stream = cupy.empty(array.size, np.float64), cupy.cuda.Stream(non_blocking=True)
        cupy.cuda.get_current_stream().synchronize()  # the memory may still be in use
        buffers = [np.frombuffer(cupy.cuda.alloc_pinned_memory(8 * PIECE), np.float64, PIECE) for _ in range(2)]
        read = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]
        for turn, first in enumerate(range(0, len(flat), PIECE)):
            buffer, done, part = buffers[turn % 2], read[turn % 2], flat[first : first + PIECE]
            done.synchronize()
            over_rows(len(part), partial(_copy, part, buffer), few=FEW)
            out[first : first + PIECE].set(buffer[: len(part)], stream)
            done.record(stream)
        stream.synchronize()
        return out.reshape(array.shape)

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


def _copy(given: Any, there: Any, first: int, last: int) -> None:
    np.copyto(there[first:last], given[first:last])


@cache
def _compiled(cupy: Any, file: Path) -> Any:
    return cupy.RawModule(code=source(file), options=OPTIONS)


def threads_for(machine: Machine, n_rays: int, each: int) -> int:
    """Number of threads for so many rays, if each needs so many bytes."""
    threads = max(BLOCK, min(n_rays, machine.at_once, int(SHARE * machine.free) // each))
    return -(-threads // BLOCK) * BLOCK
