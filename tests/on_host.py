"""The GPU's kernel for trees, compiled as plain C++ and run on the processor, thread after thread."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from globece.models.trees.on_cuda import SOURCE

COMPILER = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")


@cache
def library(folder: Path) -> ctypes.CDLL:
    """The kernel, compiled with the same rounding as on a GPU."""
    built = folder / "rays.so"
    assert COMPILER is not None
    command = [COMPILER, "-x", "c++", "-std=c++17", "-O2", "-ffp-contract=off", "-Wall", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", str(built), str(SOURCE)], check=True)
    return ctypes.CDLL(str(built))


@dataclass(frozen=True)
class Host:
    """A machine for :class:`globece.models.trees.on_cuda.Follower` that is the processor."""

    folder: Path
    at_once: int = 256
    free: int = 1 << 30

    def put(self, array: Any) -> Any:
        return np.array(array, order="C")

    def empty(self, n: int, dtype: Any) -> Any:
        """Room that holds rubbish, so that nothing may count on what is in it."""
        return np.full(n, np.iinfo(dtype).min if np.issubdtype(dtype, np.integer) else -1e300, dtype)

    def get(self, array: Any) -> Any:
        return array

    def call(self, name: str, threads: int, *arguments: Any) -> None:
        code = library(self.folder)
        kernel, me = getattr(code, name), ctypes.c_longlong.in_dll(code, "FIRST")
        ctypes.c_longlong.in_dll(code, "THREADS").value = threads
        passed = [ctypes.c_int(a) if isinstance(a, int) else a.ctypes.data_as(ctypes.c_void_p) for a in arguments]
        for me.value in range(threads):
            kernel(*passed)
