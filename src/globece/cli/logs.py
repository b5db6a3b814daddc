"""What the command says beside its results: everything goes to standard error, through one logger.

======  ===============================================================
option  what is shown
======  ===============================================================
-q      errors, warnings, and what a gate found
        also what was read, trained and written, and progress
-v      also how long each step took, and what was compiled
-vv     also where each setting came from, and the traceback of an error
======  ===============================================================
"""

from __future__ import annotations

import logging
import time

import click

LOG = logging.getLogger("globece.cli")
NOTICE = 25  # between INFO and WARNING: what is said unless -q is given
logging.addLevelName(NOTICE, "NOTICE")


class _ToStandardError(logging.Handler):
    """Plain lines; with -v, each with the seconds since the start."""

    def __init__(self, *, timed: bool) -> None:
        super().__init__()
        self.timed, self.started = timed, time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        clock = f"[{time.monotonic() - self.started:6.1f} s] " if self.timed else ""
        click.echo(clock + text, err=True)


def begin(*, quiet: bool, verbose: int) -> None:
    """Set up the logger for one command."""
    for old in list(LOG.handlers):
        LOG.removeHandler(old)
    LOG.addHandler(_ToStandardError(timed=verbose > 0))
    LOG.propagate = False
    LOG.setLevel(logging.WARNING if quiet else (NOTICE, logging.INFO, logging.DEBUG)[min(verbose, 2)])


def say(text: str) -> None:
    """Tell the user something that is not a result, unless -q is given."""
    LOG.log(NOTICE, "%s", text)


def warn(text: str) -> None:
    """Tell the user something that must not be missed."""
    LOG.warning("%s", text)


def note(text: str) -> None:
    """Say something with -v."""
    LOG.info("%s", text)


def detail(text: str) -> None:
    """Say something with -vv."""
    LOG.debug("%s", text)


def is_quiet() -> bool:
    """Whether -q was given."""
    return not LOG.isEnabledFor(NOTICE)
