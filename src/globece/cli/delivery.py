"""Where a result goes: files first, then standard output; and the exit codes that tell how it ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from rich.console import Console

from globece.auditing import Audit
from globece.baselines import RecourseSet
from globece.cli import output
from globece.cli.logs import say
from globece.errors import InvalidParameterError
from globece.explanation import Explanation
from globece.page.about import About
from globece.progress import INTERRUPTED
from globece.saving import Saved, Shown

if TYPE_CHECKING:
    from globece.cli.options import Asked

Result = TypeVar("Result", bound=Saved)

# docs/command_line.md says what each means.
FAILED, MISUSED, GATE_FAILED, UNTOLD, KEPT, NO_READER = 1, 2, 3, 4, 130, 141


def check_writable(option: str, path: str) -> None:
    """Raise if a file could not be written, before the long work begins."""
    target = Path(path)
    parent = target.resolve().parent
    if not parent.is_dir():
        raise InvalidParameterError(f"{option} names {path!r}, in a folder that does not exist; make it first")
    if target.is_dir():
        raise InvalidParameterError(f"{option} names {path!r}, which is a folder; name a file in it")
    locked = target if target.exists() else parent
    if not os.access(locked, os.W_OK):
        raise InvalidParameterError(f"{option} names {path!r}, and {locked} may not be written; name another place")


def check_outputs(asked: Asked) -> None:
    """Raise if something that is asked for could not be written, before the long work begins."""
    for option, path in (("--json", asked.json_path), ("--html", asked.html)):
        if path not in (None, "-"):
            check_writable(option, str(path))
    if asked.figures is not None:
        output.check_figures(asked.figures)


def deliver(
    found: Result,
    asked: Asked,
    show: Callable[[Result, Console], None],
    displays: Callable[[Result], Mapping[str, output.Display]] | None = None,
    about: About | None = None,
    **kept: bool,
) -> None:
    """Give a result as it was asked for: as files, and as tables or JSON on standard output.

    Parameters
    ----------
    found, asked
        The result, and what was asked for.
    show, displays
        What prints the tables, and what draws the figures.
    about
        Words for the page.
    kept
        What the JSON keeps, in the words of its ``to_json``.
    """

    def write_json() -> None:
        if asked.json_path not in (None, "-"):
            found.to_json(asked.json_path, **kept)
            say(f"JSON written to {asked.json_path}")

    def write_html() -> None:
        if asked.html is not None:
            write_page(found, asked.html, about)

    def write_figures() -> None:
        if asked.figures is not None and displays is not None:
            views = displays(found)
            output.draw(views, asked.figures)
            say(f"{len(views)} figures written to {asked.figures}")

    def print_result() -> None:
        if asked.json_path == "-":
            click.echo(found.to_json(None, **kept))
        else:
            show(found, output.results())

    each((write_json, write_html, write_figures, print_result))


def write_page(found: Shown, path: str, about: About | None) -> None:
    """Write a page, and say how to open it."""
    found.save_html(path, about=about)
    say(f"Page written to {path}; open it in a browser: {Path(path).resolve().as_uri()}")


def each(tasks: Sequence[Callable[[], None]]) -> None:
    """Do all tasks, also where one cannot write; the first error is raised at the end."""
    first: OSError | None = None
    for task in tasks:
        try:
            task()
        except OSError as error:
            first = first or error
    if first is not None:
        raise first


def was_interrupted(found: Shown) -> bool:
    """Whether Ctrl-C ended the work, so that the result is the best so far."""
    if not isinstance(found, (Audit, Explanation, RecourseSet)):
        return False
    notes = (found.explained if isinstance(found, Audit) else found).provenance.notes
    return any(note.startswith(f"stopped early ({INTERRUPTED})") for note in notes)


def finish(found: Shown) -> None:
    """End the command with the exit code for Ctrl-C if it was pressed; what was found so far is written by now."""
    if was_interrupted(found):
        say("Interrupted: this is the best that was found so far.")
        click.get_current_context().exit(KEPT)
