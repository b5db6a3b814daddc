"""The command ``globece``: its subcommands, and how each error ends as one line on standard error."""

from __future__ import annotations

import warnings
from typing import Any

import click

from globece.cli.ares import ares
from globece.cli.audit import audit
from globece.cli.compare import compare
from globece.cli.demo import demo
from globece.cli.explain import explain
from globece.cli.report import report, verify_report
from globece.cli.serve import serve
from globece.errors import GlobeCEError, InvalidParameterError
from globece.version import __version__

INTERRUPTED = 130

HELP = """Explain a whole model by a few directions along which everybody it turned down can travel.

\b
Try it:
  globece demo --out demo-output
  globece explain loans.csv --model logistic --outcome approved --immutable sex,age
  globece audit loans.csv --model logistic --outcome approved --by sex
"""


class _Failure(click.ClickException):
    """One line on standard error, and an exit code."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class _Misuse(_Failure):
    """The same, for a wish that cannot be fulfilled as it was put."""

    exit_code = 2


class _Group(click.Group):
    """Turns what globece raises on purpose into one line; anything else is a bug and keeps its traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except InvalidParameterError as error:
                raise _Misuse(str(error)) from error
            except GlobeCEError as error:
                raise _Failure(str(error)) from error
            except OSError as error:
                where = f": {error.filename}" if error.filename else ""
                raise _Failure(f"{error.strerror or error}{where}") from error
            except KeyboardInterrupt:
                click.echo("Interrupted: there is nothing to return yet.", err=True)
                ctx.exit(INTERRUPTED)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    click.echo(f"Warning: {' '.join(str(message).split())}", err=True)


@click.group(cls=_Group, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="globece")
def main() -> None:
    """``globece``."""


main.add_command(ares)
main.add_command(audit)
main.add_command(compare)
main.add_command(demo)
main.add_command(explain)
main.add_command(report)
main.add_command(verify_report)
main.add_command(serve)
