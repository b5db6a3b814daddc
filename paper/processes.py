"""Work in a process of its own, so that thread settings hold from the start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def environment(threads: int = 1) -> dict[str, str]:
    """This process's environment with a limit on threads."""
    return {**os.environ, **dict.fromkeys(VARIABLES, str(threads))}


def alone(module: str, *arguments: object, threads: int = 1) -> Any:
    """Run a module with arguments, and return what it prints last, as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env=environment(threads),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{module} {arguments}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
