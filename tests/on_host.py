"""The kernels for a GPU, compiled as plain C++ and run on the processor, thread after thread."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from globece.models.cuda.machine import source

COMPILER = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")


@cache
def library(folder: Path, file: Path) -> ctypes.CDLL:
    """The kernels of a file, compiled with the same rounding as on a GPU."""
    written = folder / f"{file.parent.name}.cpp"
    built = written.with_suffix(".so")
    written.write_text(source(file), encoding="utf-8")
    assert COMPILER is not None
    command = [COMPILER, "-std=c++17", "-O2", "-ffp-contract=off", "-Wall", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", str(built), str(written)], check=True)
    return ctypes.CDLL(str(built))


@dataclass(frozen=True)
class Host:
    """The processor as a :class:`globece.models.cuda.machine.Machine`."""

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

    def call(self, file: Path, name: str, threads: int, *arguments: Any) -> None:
        code = library(self.folder, file)
        kernel, me = getattr(code, name), ctypes.c_longlong.in_dll(code, "FIRST")
        ctypes.c_longlong.in_dll(code, "THREADS").value = threads
        passed = [ctypes.c_int(a) if isinstance(a, int) else a.ctypes.data_as(ctypes.c_void_p) for a in arguments]
        for me.value in range(threads):
            kernel(*passed)
