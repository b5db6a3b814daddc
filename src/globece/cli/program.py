"""The command ``globece``: its subcommands, and how each error ends as one line on standard error."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from contextlib import suppress
from typing import Any

import click

from globece.cli import delivery, logs
from globece.cli.ares import ares
from globece.cli.audit import audit
from globece.cli.benefits import who_benefits
from globece.cli.compare import compare
from globece.cli.completion import completion
from globece.cli.data import datasets
from globece.cli.demo import demo
from globece.cli.explain import explain
from globece.cli.init import init
from globece.cli.monitor import monitor
from globece.cli.report import report, verify_report
from globece.cli.serve import serve
from globece.cli.suggestions import nearest
from globece.errors import GlobeCEError, InvalidParameterError, ModelError
from globece.version import __version__

HELP = """Explain a whole model by a few directions along which everybody it turned down can travel.

\b
Try it:
  globece demo --out demo-output
  globece init loans.csv --outcome approved --favourable yes
  globece explain --config globece.toml
  globece audit --config globece.toml
"""
EPILOG = """\b
Exit codes:
  0    done; a gate passed
  1    a file, the data or the model cannot be used, or something cannot be written
  2    an option or the configuration is wrong
  3    a gate failed, the second is worse, or a report does not come out again
  4    a gate could not be decided
  130  Ctrl-C; what had been found by then is written
  141  nobody reads standard output any more, as after | head
"""
# What to do where the system refuses to read or write.
ADVICE = {
    errno.ENOSPC: "free some space, or name a place on another disk",
    errno.EDQUOT: "free some of your quota, or name another place",
    errno.EFBIG: "files of this size are not allowed there; name another place",
    errno.EROFS: "the disk is read-only; name another place",
    errno.EACCES: "you are not allowed to; check the permissions, or name another place",
    errno.EPERM: "you are not allowed to; check the permissions, or name another place",
    errno.EBUSY: "another program holds it; close that, or name another file",
    errno.ETXTBSY: "another program holds it; close that, or name another file",
    errno.EISDIR: "that is a folder; name a file",
    errno.ENOTDIR: "a part of the path is a file and no folder",
    errno.ENOENT: "check the path",
    errno.EMFILE: "too many files are open",
    errno.EIO: "the disk does not answer as it should",
}


class _Failure(click.ClickException):
    """One line on standard error, and an exit code."""

    exit_code = delivery.FAILED

    def __init__(self, message: str) -> None:
        super().__init__(logs.printable(" ".join(message.split())))


class _Misuse(_Failure):
    """The same, for a wish that cannot be fulfilled as it was put."""

    exit_code = delivery.MISUSED


class _Group(click.Group):
    """Turns what globece raises on purpose into one line; anything else is a bug and keeps its traceback."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            meant = nearest(args[0], self.commands)
            hint = f" Did you mean {meant!r}?" if meant else ""
            ctx.fail(f"No such command {args[0]!r}.{hint} There are {', '.join(sorted(self.commands))}.")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                done = super().invoke(ctx)
                sys.stdout.flush()  # a full disk is an error here, and not only when Python ends
                return done
            except InvalidParameterError as error:
                logs.detail(traceback.format_exc())
                raise _Misuse(str(error)) from error
            except GlobeCEError as error:
                logs.detail(traceback.format_exc())
                raise _Failure(f"{error}{_advice(error)}") from error
            except BrokenPipeError:
                _abandon_output()
                ctx.exit(delivery.NO_READER)
            except OSError as error:
                logs.detail(traceback.format_exc())
                raise _Failure(_refused(error)) from error
            except (KeyboardInterrupt, click.Abort):
                click.echo("Interrupted: there is nothing to return yet.", err=True)
                ctx.exit(delivery.KEPT)


def _advice(error: GlobeCEError) -> str:
    """What to do where the model itself fails on the rows."""
    if isinstance(error, ModelError) and " raised " in str(error):
        return "; is it the right model for these data, and do its columns have the types that it was trained on?"
    return ""


def _refused(error: OSError) -> str:
    """What the system refused, where, and what to do."""
    if error.filename is None:
        _abandon_output()
    where = f": {error.filename}" if error.filename else " (standard output)"
    advice = ADVICE.get(error.errno or 0, "")
    return f"{error.strerror or error}{where}{f'; {advice}' if advice else ''}"


def _abandon_output() -> None:
    """Let what is still to be written to standard output go nowhere, so that Python can end."""
    with suppress(OSError, ValueError):  # where standard output is no file, as in tests
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    logs.warn(f"Warning: {' '.join(str(message).split())}")


@click.group(
    cls=_Group,
    help=HELP,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="globece")
def main() -> None:
    """``globece``."""
    logs.begin(quiet=False, verbose=0)


for command in (
    demo, init, explain, audit, report, verify_report, serve, who_benefits, compare, monitor, ares, datasets, completion
):  # fmt: skip
    main.add_command(command)
