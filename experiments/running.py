"""Compute cells side by side, each in a process of its own, with a bar; what fails is told at the end."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from experiments import worker
from experiments.cells import Cell, Run
from experiments.store import Places

POLL = 0.05


@dataclass
class Outcome:
    """How a run ended."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # the error, by cell
    stopped: bool = False


@dataclass
class _Running:
    cell: Cell
    process: subprocess.Popen[bytes]
    log: IO[Any]
    begun: float


def compute(run: Run, where: Places, cells: Sequence[Cell], jobs: int) -> Outcome:
    """Compute the cells, `jobs` at a time. Ctrl-C stops those that run and keeps those that are done."""
    outcome, waiting, running = Outcome(), list(cells), list[_Running]()
    with _bar(len(cells)) as bar:
        task = bar.add_task("", total=len(cells))
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    running.append(_started(run, where, waiting.pop(0)))
                bar.update(task, description=", ".join(r.cell.name for r in running))
                for r in [r for r in running if r.process.poll() is not None]:
                    running.remove(r)
                    _ended(r, outcome, bar)
                    bar.advance(task)
                time.sleep(POLL)
            bar.update(task, description="")
        except KeyboardInterrupt:
            outcome.stopped = True
        finally:
            for r in running:
                r.process.kill()
                r.process.wait()
                r.log.close()
    return outcome


def _started(run: Run, where: Places, cell: Cell) -> _Running:
    log = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the cell has ended)
    return _Running(cell, worker.start(run, where, cell, log), log, time.monotonic())


def _ended(r: _Running, outcome: Outcome, bar: Any) -> None:
    seconds = time.monotonic() - r.begun
    if r.process.returncode == 0:
        outcome.done.append(r.cell.name)
        bar.console.print(f"{r.cell.name}: {seconds:.1f} s", highlight=False)
    else:
        r.log.seek(0)
        lines = r.log.read().decode(errors="replace").strip().splitlines()
        last = lines[-1] if lines else f"the process ended with code {r.process.returncode}"
        outcome.failed[r.cell.name] = last
        bar.console.print(f"{r.cell.name}: failed after {seconds:.1f} s", highlight=False)
        if len(lines) > 1:
            bar.console.print("\n".join(lines[-12:]), highlight=False, markup=False)
    r.log.close()


def _bar(total: int) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    return Progress(*columns, console=Console(stderr=True, soft_wrap=True), disable=not total)
