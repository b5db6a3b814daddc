"""Progress reports and time limits of long work; nothing is printed unless a progress bar is asked for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from globece.errors import check_limit, wrong


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a stage: ``done`` of ``total``, in the stage's units."""

    stage: str
    done: int
    total: int


INTERRUPTED = "interrupted"


class TimeUp(BaseException):
    """Raised between two batches of work when the time is over; callers that have a result to return catch it."""


INTERRUPTIONS = (KeyboardInterrupt, TimeUp)  # caught where the best result so far is kept
GRACE = 1.5  # seconds past the limit for work that has no result to return yet
SEARCH_SHARE = 0.6  # of the time, for the search; the rest is for scaling its directions
AT_A_TIME = 0.25  # seconds per batch under a time limit


@dataclass(slots=True)
class Monitor:
    """Reports the progress of long work, and tells it when to stop.

    Attributes
    ----------
    report
        Called with the progress of a stage.
    time_limit
        Seconds in total.
    uncounted
        Returns the seconds so far that do not count.
    started
        When the work began.
    stopped
        Why the work ended early, if it did.
    stop_at
        When, in seconds, the current stage should end.
    raise_at
        When :class:`TimeUp` is raised: at the same time, or a little later if there is no result to return yet.
    """

    report: Callable[[Progress], None] | None = None
    time_limit: float | None = None
    uncounted: Callable[[], float] = float
    started: float = field(init=False)
    stopped: str | None = None
    stop_at: float = field(init=False)
    raise_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self.begin()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report the progress of a stage."""
        if self.report is not None:
            self.report(Progress(stage, done, total))

    @property
    def elapsed(self) -> float:
        """Seconds since the work began, without those that do not count."""
        return time.monotonic() - self.started - self.uncounted()

    def begin(self, until: float = 1.0, *, part: float = 1.0) -> None:
        """Begin a stage that takes a part of the time that is left until a share of the limit is over.

        Until it has a result to return (:meth:`found`), it may take a little longer than the limit.
        """
        limit = math.inf if self.time_limit is None else self.time_limit
        now = self.elapsed if limit < math.inf else 0.0
        self.stop_at = now + part * max(until * limit - now, 0.0)
        self.raise_at = max(self.stop_at, limit + GRACE * (0.5 + 0.5 * until))

    def found(self) -> None:
        """Note that the current stage has a result to return."""
        self.raise_at = self.stop_at

    def should_stop(self) -> bool:
        """Whether to stop, by an interruption or because the stage's time is up."""
        return self.stopped == INTERRUPTED or self.is_over()

    def is_over(self) -> bool:
        """Whether the stage's time is up, whether or not it was interrupted."""
        if self.time_limit is None or self.elapsed < self.stop_at:
            return False
        self.stopped = f"time limit of {self.time_limit:g} s"
        return True

    def interrupt(self, why: BaseException) -> None:
        """Note why the work ended early."""
        self.stopped = f"time limit of {self.time_limit:g} s" if isinstance(why, TimeUp) else INTERRUPTED

    @property
    def ran_out(self) -> bool:
        """Whether the work ended early because the time was over."""
        return self.stopped not in (None, INTERRUPTED)


_watching: ContextVar[Monitor | None] = ContextVar("watching", default=None)


def is_timed() -> bool:
    """Whether there is a time limit, so that work should be done in small batches."""
    return _watching.get() is not None


def check_time() -> None:
    """Raise :class:`TimeUp` if the time is over; called between batches of work."""
    monitor = _watching.get()
    if monitor is not None and monitor.elapsed >= monitor.raise_at:
        raise TimeUp


class Pace:
    """Sizes of batches, adapted such that each takes about a given time.

    If the fixed cost of a batch is larger than that, batches may take a few times the fixed cost.

    Parameters
    ----------
    first
        Size of the first batch.
    seconds
        Time that a batch should take.
    """

    def __init__(self, first: int, seconds: float = AT_A_TIME) -> None:
        self.size, self.seconds, self._since = max(1, first), seconds, time.monotonic()
        self._last: tuple[int, float] | None = None

    def start(self) -> None:
        """Note the start of a batch."""
        self._since = time.monotonic()

    def done(self, size: int) -> None:
        """Note the end of a batch of this size."""
        self.took(size, max(time.monotonic() - self._since, 1e-6))

    def took(self, size: int, seconds: float) -> None:
        """Adapt to the time that a batch of this size took.

        Examples
        --------
        >>> pace = Pace(100)
        >>> for _ in range(4):
        ...     pace.took(pace.size, 0.2 + 1e-5 * pace.size)
        >>> 20_000 < pace.size < 60_000
        True
        """
        if 2 * size < self.size and seconds <= self.seconds:
            return  # a small batch says little
        fixed = 0.0
        if self._last is not None and self._last[0] != size:
            each = max((seconds - self._last[1]) / (size - self._last[0]), 0.0)
            fixed = max(seconds - each * size, 0.0)
        elif self._last is None and seconds < 4.0 * self.seconds:
            fixed = 0.5 * seconds  # a guess, until there is a second batch
        self._last = (size, seconds)
        allowed = max(self.seconds, 3.0 * fixed) - fixed
        self.size = max(1, min(int(size * allowed / max(seconds - fixed, 1e-9)), 16 * max(size, 1)))


@contextmanager
def monitoring(progress: bool | Callable[[Progress], None], time_limit: float | None) -> Iterator[Monitor]:
    """A monitor for the user's ``progress`` and ``time_limit``.

    Parameters
    ----------
    progress
        ``False`` for silence, ``True`` for a bar on standard error (or in a notebook), or a function that is called
        with a :class:`Progress` from time to time.
    time_limit
        Seconds after which the search stops with the best result so far; ``None`` for no limit.
    """
    limit = check_limit("time_limit", time_limit, open_low=False)
    if progress is False:
        yield Monitor(None, limit)
    elif progress is True:
        with _bar() as report:
            yield Monitor(report, limit)
    elif callable(progress) and not isinstance(progress, type):
        yield Monitor(progress, limit)
    else:
        raise wrong("progress", "True, False or a function", progress)


@contextmanager
def watching(monitor: Monitor, uncounted: Callable[[], float] = float) -> Iterator[None]:
    """Let :func:`check_time` raise when the monitor's time is over.

    Parameters
    ----------
    monitor
        The monitor; without a time limit nothing is raised.
    uncounted
        Returns the seconds so far that do not count.
    """
    monitor.uncounted = uncounted
    token = _watching.set(None if monitor.time_limit is None else monitor)
    try:
        yield
    finally:
        _watching.reset(token)


@contextmanager
def _bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns: tuple[Any, ...] = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        tasks: dict[str, Any] = {}

        def report(progress: Progress) -> None:
            if progress.stage not in tasks:
                tasks[progress.stage] = bar.add_task(progress.stage, total=progress.total)
            bar.update(tasks[progress.stage], completed=progress.done, total=progress.total)

        yield report
