"""Compute one cell in a process of its own and store it: `python -m experiments.worker NAME ...`.

The process has one thread, so that times are of one core, and what it leaves behind is a whole result or none.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from experiments.cells import Cell, Run
from experiments.store import Places, fingerprint, save
from paper.processes import environment


def start(run: Run, where: Places, cell: Cell, log: IO[Any]) -> subprocess.Popen[bytes]:
    """Start computing a cell; its errors go to the log."""
    asked = json.dumps({"run": asdict(run), "results": where.results, "pages": where.pages}, default=str)
    return subprocess.Popen(
        [sys.executable, "-m", "experiments.worker", cell.name, asked],
        env=environment(),
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        start_new_session=True,  # Ctrl-C is for the run to handle
    )


def main(name: str, asked: str) -> None:
    """Compute and store."""
    from experiments.registry import PARTS

    given = json.loads(asked)
    folder = given["run"]["models"]
    run = Run(**{**given["run"], "models": None if folder is None else Path(folder)})
    where = Places(Path(given["results"]), Path(given["pages"]))
    (cell,) = (cell for part in PARTS for cell in part.cells if cell.name == name)
    begun = time.perf_counter()
    data = cell.compute(run)
    save(where, name, data, fingerprint(run, cell), time.perf_counter() - begun)


if __name__ == "__main__":
    main(*sys.argv[1:])
