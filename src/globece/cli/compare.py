"""``globece compare``: champion and challenger, or last quarter and this one."""

from __future__ import annotations

from pathlib import Path

import click

from globece.cli import output
from globece.cli.question import described, read_result
from globece.comparing import compare as compare_results
from globece.errors import InvalidParameterError, check_number

WORSE, UNKNOWN = 3, 4

HELP = """Compare two result files of globece explain, or two of globece audit: the second against the first.

Coverage, cost, verdict and gaps stand side by side, with intervals that are paired where both are about the same rows.

With --worse-above the exit code is 3 if the second's score (for audits: the gap between two groups) is worse by more
than GAP, and 4 if that could not be computed.

\b
Examples:
  globece compare champion.json challenger.json
  globece compare march.json june.json --names March,June --out page.html --worse-above 0.2
"""


@click.command(no_args_is_help=True, help=HELP)
@click.argument("a", metavar="A.json")
@click.argument("b", metavar="B.json")
@click.option("--names", default="", metavar="A,B", help="What to call the two.  [default: the file names]")
@click.option("--level", type=float, default=0.05, show_default=True, metavar="P", help="Intervals hold 1 - P.")
@click.option("--out", default="", metavar="PAGE.html", help="Write the comparison as a page.")
@click.option("--worse-above", type=float, metavar="GAP", help="Exit with 3 if the second is worse by more than this.")
def compare(a: str, b: str, names: str, level: float, out: str, worse_above: float | None) -> None:
    """``globece compare``."""
    if worse_above is not None:
        check_number("--worse-above", worse_above)
    called = [part.strip() for part in names.split(",")] if names else [Path(a).stem, Path(b).stem]
    if len(called) != 2 or not all(called) or called[0] == called[1]:
        called = [a, b] if not names and a != b else called
    if len(called) != 2 or called[0] == called[1] or not all(called):
        raise InvalidParameterError(f"--names must be two different names, as in March,June; got {names!r}")
    found = compare_results(read_result(a), read_result(b), names=called, level=level)
    output.results().print(found.summary(), soft_wrap=True)
    if out:
        found.save_html(out, about=described(None))
        output.say(f"Page written to {out}.")
    if worse_above is None:
        return
    worse = found.is_worse(worse_above)
    context = click.get_current_context()
    if worse is None:
        output.say("Failed: whether it is worse could not be computed.")
        context.exit(UNKNOWN)
    if worse:
        output.say(f"Failed: it is worse by {found.worse_by:.3f}, more than {worse_above:g}.")
        context.exit(WORSE)
    output.say(f"Passed: it is not worse by more than {worse_above:g} ({found.worse_by:+.3f}).")
