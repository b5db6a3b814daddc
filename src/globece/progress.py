"""Long work reports how far it is and can be stopped; nothing is printed unless somebody asks for a bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from globece.errors import check_limit, wrong


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage is: ``done`` of ``total``, in the stage's own units."""

    stage: str
    done: int
    total: int


@dataclass(slots=True)
class Monitor:
    """Carries reports out of long work and the wish to stop into it."""

    report: Callable[[Progress], None] | None = None
    time_limit: float | None = None
    started: float = field(default_factory=time.monotonic)
    stopped: str | None = None  # why the search ended early, if it did

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report how far a stage is."""
        if self.report is not None:
            self.report(Progress(stage, done, total))

    @property
    def elapsed(self) -> float:
        """Seconds since the work began."""
        return time.monotonic() - self.started

    def should_stop(self) -> bool:
        """Whether the time is up; what was found so far is then what is returned."""
        if self.stopped is None and self.time_limit is not None and self.elapsed >= self.time_limit:
            self.stopped = f"time limit of {self.time_limit:g} s"
        return self.stopped is not None


@contextmanager
def monitoring(progress: bool | Callable[[Progress], None], time_limit: float | None) -> Iterator[Monitor]:
    """Make a monitor out of the user's ``progress`` and ``time_limit``.

    Parameters
    ----------
    progress
        ``False`` for silence, ``True`` for a bar on standard error (or in a notebook), or a function that is called
        with a :class:`Progress` now and then.
    time_limit
        Seconds after which the search stops and the best so far is taken; ``None`` for no limit.
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
def _bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns: tuple[Any, ...] = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        tasks: dict[str, Any] = {}

        def report(progress: Progress) -> None:
            if progress.stage not in tasks:
                tasks[progress.stage] = bar.add_task(progress.stage, total=progress.total)
            bar.update(tasks[progress.stage], completed=progress.done, total=progress.total)

        yield report
