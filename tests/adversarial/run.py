"""The loop: one problem after the other in processes of their own, with a watchdog over each."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.adversarial.oracle import Failure
from tests.adversarial.problem import Report, solve

LIMIT = 60.0  # seconds of a core that a problem may take
PATIENCE = 10 * LIMIT  # and seconds on the clock, on a machine that is busy with other things
START = 1200.0  # seconds that a fresh process may take: kernels are compiled once
RENEW = 500  # problems after which a process is replaced
WARM_UP = (9, 17, 28, 53, 114)  # seeds whose kernels are compiled before the clock starts


def _work(pipe: Connection, traces: str) -> None:
    """Answer seeds with reports until there are no more."""
    with Path(traces).open("w") as file:
        for seed in WARM_UP:
            solve(seed)
        pipe.send(None)
        # Only when asked: a trace that is taken while the interpreter runs on may crash it.
        faulthandler.register(signal.SIGUSR1, file=file)
        while (seed := pipe.recv()) is not None:
            pipe.send(solve(seed))


@dataclass
class Worker:
    """A process, what it is at, and since when."""

    process: Any
    pipe: Connection
    traces: Path
    seed: int | None = None
    since: float = 0.0
    used: float = 0.0
    done: int = 0

    @classmethod
    def start(cls) -> Worker:
        context = multiprocessing.get_context("spawn")
        handle, name = tempfile.mkstemp(prefix="attack-")
        os.close(handle)
        mine, its = context.Pipe()
        process = context.Process(target=_work, args=(its, name), daemon=True)
        process.start()
        its.close()
        return cls(process, mine, Path(name), None, time.monotonic())

    def give(self, seed: int) -> None:
        self.pipe.send(seed)
        self.seed, self.since, self.used = seed, time.monotonic(), _used(self.process.pid)

    @property
    def overdue(self) -> bool:
        waited = time.monotonic() - self.since
        if self.seed is None:
            return waited > START
        return waited > PATIENCE or (waited > LIMIT and _used(self.process.pid) - self.used > LIMIT)

    def stop(self, *, trace: bool = False) -> str:
        """End it, and say what it was doing if that is asked for."""
        if trace:
            os.kill(self.process.pid, signal.SIGUSR1)
            time.sleep(1.0)
        self.process.kill()
        self.process.join()
        said = self.traces.read_text() if self.traces.exists() else ""
        self.traces.unlink(missing_ok=True)
        return said


def _used(process: int) -> float:
    """Seconds of a core that a process has used; the clock where the system does not say."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return time.monotonic()


def attack(seeds: Iterator[int], processes: int, seconds: float, told: Callable[[Report], None]) -> None:
    """Solve the problems of these seeds until time is up or there are no more, and tell of each."""
    workers = [Worker.start()]
    wait([workers[0].pipe], timeout=START)  # kernels are compiled once, and the clock starts when they are
    workers += [Worker.start() for _ in range(processes - 1)]
    end = time.monotonic() + seconds
    try:
        while workers:
            ready = wait([w.pipe for w in workers], timeout=1.0)
            for place, worker in reversed(list(enumerate(workers))):
                fresh = _looked_after(worker, worker.pipe in ready, told)
                if fresh is not None:
                    workers[place] = fresh
                elif worker.pipe in ready:
                    seed = next(seeds, None) if time.monotonic() < end else None
                    if seed is None:
                        worker.stop()
                        del workers[place]
                    else:
                        worker.give(seed)
    finally:
        for worker in workers:
            worker.stop()


def _looked_after(worker: Worker, ready: bool, told: Callable[[Report], None]) -> Worker | None:
    """Take what a worker has to say; another one in its place where it died, hangs or has worked enough."""
    if ready:
        try:
            report = worker.pipe.recv()
        except (EOFError, ConnectionError):
            report = None
            worker.process.join()
            died = Failure("the process died", f"exit code {worker.process.exitcode}")
            if worker.seed is None:
                raise RuntimeError(f"a worker died before its first problem: {died.detail}") from None
            told(Report(worker.seed, "?", "died", failures=(died,)))
            worker.stop()
            return Worker.start()
        if report is not None:
            told(report)
            worker.done += 1
        if worker.done < RENEW:
            return None
        worker.stop()
        return Worker.start()
    if worker.overdue:
        if worker.seed is None:
            raise RuntimeError(f"a worker was not ready after {START:g} s")
        told(Report(worker.seed, "?", "hangs", failures=(Failure("hang", worker.stop(trace=True)),), seconds=LIMIT))
        return Worker.start()
    return None
