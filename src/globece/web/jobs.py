"""Recomputations: one at a time, each in a thread of its own, with progress, cancel and a time limit."""

from __future__ import annotations

import secrets
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from globece.errors import GlobeCEError
from globece.progress import Progress
from globece.web.limits import Limits

RUNNING, DONE, CANCELLED, FAILED, TIMED_OUT = "running", "done", "cancelled", "failed", "timed out"


class Busy(Exception):
    """Another recomputation is running."""


class Numbers(Protocol):
    """What a job tells of its best result."""

    coverage: float
    average_cost: float
    score: float


@dataclass
class Job:
    """One recomputation.

    Attributes
    ----------
    id
        Its name.
    state
        ``running``, ``done``, ``cancelled``, ``failed`` or ``timed out``.
    stage, done, total
        Its progress.
    message
        What went wrong.
    page
        The page of the best result so far, in binary.
    best
        That result's numbers.
    version
        How many results there have been: it grows as they improve.
    """

    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    state: str = RUNNING
    stage: str = "starting"
    done: int = 0
    total: int = 1
    message: str = ""
    page: bytes | None = None
    best: dict[str, float | None] | None = None
    version: int = 0
    started: float = field(default_factory=time.monotonic)
    cancelled: threading.Event = field(default_factory=threading.Event)
    _told: bool = False

    def report(self, progress: Progress) -> None:
        """Note the progress; once it is cancelled, interrupt the work, which then keeps its best so far."""
        self.stage, self.done, self.total = progress.stage, int(progress.done), int(progress.total)
        if self.cancelled.is_set() and not self._told:
            self._told = True
            raise KeyboardInterrupt

    def found(self, page: bytes, best: dict[str, float | None]) -> None:
        """Keep a result."""
        if self.state == RUNNING:
            self.page, self.best, self.version = page, best, self.version + 1

    def told(self) -> dict[str, Any]:
        """What the page is told."""
        names = ("id", "state", "stage", "done", "total", "message", "best", "version")
        return {name: getattr(self, name) for name in names}


class Jobs:
    """The recomputations of one server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._jobs: dict[str, Job] = {}
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self, work: Callable[[Job], None]) -> Job:
        """Begin a job, unless another is running."""
        with self._lock:
            self._give_up()
            if self._thread is not None and self._thread.is_alive():
                raise Busy
            job = Job()
            self._jobs[job.id] = job
            for old in list(self._jobs)[: -self.limits.kept]:
                del self._jobs[old]
            self._thread = threading.Thread(target=self._run, args=(job, work), daemon=True)
            self._thread.start()
            return job

    def get(self, name: str) -> Job | None:
        """The job of that name."""
        with self._lock:
            self._give_up()
            return self._jobs.get(name)

    def latest(self) -> Job | None:
        """The job that is running, or else the one that ran last."""
        with self._lock:
            self._give_up()
            return next(reversed(self._jobs.values()), None)

    def cancel(self, job: Job) -> None:
        """Stop a job at its next report; it keeps its best so far."""
        job.cancelled.set()

    def wait(self, seconds: float = 60.0) -> None:
        """Wait for the job that is running."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _run(self, job: Job, work: Callable[[Job], None]) -> None:
        try:
            with warnings.catch_warnings(record=True):
                work(job)
            self._end(job, CANCELLED if job.cancelled.is_set() else DONE)
        except KeyboardInterrupt:
            self._end(job, CANCELLED)
        except GlobeCEError as error:
            self._end(job, FAILED, str(error))
        except Exception as error:
            self._end(job, FAILED, f"the computation failed: {type(error).__name__}; the server's console says how")
            raise

    def _end(self, job: Job, state: str, message: str = "") -> None:
        if job.state == RUNNING:
            job.message, job.state = message, state

    def _give_up(self) -> None:
        """Let go of a job whose model does not come back."""
        most = self.limits.job_s + self.limits.grace_s
        for job in self._jobs.values():
            if job.state == RUNNING and time.monotonic() - job.started > most:
                job.cancelled.set()
                self._end(job, TIMED_OUT, f"The model did not come back within {most:g} s; it is given up.")
