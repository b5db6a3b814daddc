"""``globece compare``: champion and challenger, or last quarter and this one."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

import click

from globece.cli import delivery, logs, options, output
from globece.cli.options import Asked
from globece.cli.question import read_result
from globece.cli.wording import described
from globece.comparing import Comparison
from globece.comparing import compare as compare_results
from globece.errors import InvalidParameterError, check_number
from globece.io.files import write_text

HELP = """Compare two result files of globece explain, or two of globece audit: the second against the first.

Coverage, cost, verdict and gaps stand side by side, with intervals that are paired where both are about the same rows.

With --worse-above the exit code is 3 if the second's score (for audits: the gap between two groups) is worse by more
than GAP, and 4 if that could not be computed.

\b
Examples:
  globece compare champion.json challenger.json
  globece compare march.json june.json --names March,June --html page.html --worse-above 0.2
"""


@click.command(no_args_is_help=True, help=HELP)
@click.argument("a", metavar="A.json", type=click.Path())
@click.argument("b", metavar="B.json", type=click.Path())
@click.option("--names", default="", metavar="A,B", help="What to call the two.  [default: the file names]")
@click.option("--level", type=float, default=0.05, show_default=True, metavar="P", help="Intervals hold 1 - P.")
@options.json_path
@click.option("--html", "--out", type=click.Path(), metavar="PAGE", help="Write the comparison as a page.")
@click.option("--worse-above", type=float, metavar="GAP", help="Exit with 3 if the second is worse by more than this.")
@options.config
@options.volume
def compare(
    a: str, b: str, names: str, level: float, json_path: str | None, html: str | None, worse_above: float | None
) -> None:
    """``globece compare``."""
    if worse_above is not None:
        check_number("--worse-above", worse_above)
    delivery.check_outputs(Asked(json_path=json_path, html=html))
    called = [part.strip() for part in names.split(",")] if names else [Path(a).stem, Path(b).stem]
    if len(called) != 2 or not all(called) or called[0] == called[1]:
        called = [a, b] if not names and a != b else called
    if len(called) != 2 or called[0] == called[1] or not all(called):
        raise InvalidParameterError(f"--names must be two different names, as in March,June; got {names!r}")
    found = compare_results(read_result(a), read_result(b), names=called, level=level)

    def write_json() -> None:
        if json_path not in (None, "-"):
            write_text(str(json_path), _json(found))
            logs.say(f"JSON written to {json_path}")

    def write_page() -> None:
        if html is not None:
            delivery.write_page(found, html, described())

    def print_result() -> None:
        if json_path == "-":
            click.echo(_json(found), nl=False)
        else:
            output.results().print(found.summary(), soft_wrap=True)

    delivery.each((write_json, write_page, print_result))
    if worse_above is None:
        return
    worse = found.is_worse(worse_above)
    context = click.get_current_context()
    if worse is None:
        logs.warn("Not passed: whether it is worse could not be computed.")
        context.exit(delivery.UNTOLD)
    if worse:
        logs.warn(f"Failed: it is worse by {found.worse_by:.3f}, more than {worse_above:g}.")
        context.exit(delivery.GATE_FAILED)
    logs.say(f"Passed: it is not worse by more than {worse_above:g} ({found.worse_by:+.3f}).")


def _json(found: Comparison) -> str:
    """The measures side by side; a number that could not be computed is null."""

    def plain(value: Any) -> Any:
        return None if isinstance(value, float) and not isfinite(value) else value

    rows = [{key: plain(value) for key, value in asdict(row).items()} | {"said": row.said} for row in found.rows]
    data = {
        "format": "globece.comparison",
        "version": 1,
        "names": list(found.names),
        "level": found.level,
        "paired": found.paired,
        "worse_by": plain(found.worse_by),
        "measures": rows,
        "notes": list(found.notes),
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"
