"""Shell completion: the kinds of model and model files, and the columns of a CSV file that is already on the line."""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from globece.cli.training import KINDS

SHELLS = ("bash", "zsh", "fish")


def model(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The kinds that can be trained, and files."""
    kinds = [CompletionItem(kind) for kind in KINDS if kind.startswith(incomplete)]
    return [*kinds, CompletionItem(incomplete, type="file")]


def column(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The columns of DATA, after the last comma."""
    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(before + comma + name) for name in _header(ctx.params.get("data")) if name.startswith(last)]


def _header(path: object) -> list[str]:
    if isinstance(path, str) and path.lower().endswith(".csv"):
        with suppress(OSError, ValueError, csv.Error), Path(path).open(newline="", encoding="utf-8-sig") as lines:
            return next(csv.reader(lines), [])
    return []


def script(program: click.Command, shell: str) -> str:
    """What the shell must read to complete ``globece``."""
    made = get_completion_class(shell)
    assert made is not None
    return made(program, {}, "globece", "_GLOBECE_COMPLETE").source()
