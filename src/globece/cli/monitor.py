"""``globece monitor``: this month's audit into the history, and an alarm if a gap leaves its band."""

from __future__ import annotations

from pathlib import Path

import click

from globece.auditing import Audit
from globece.cli import delivery, logs, options, output
from globece.cli.question import read_result
from globece.errors import InvalidParameterError, check_count, check_number
from globece.integrations.monitoring import LEFT, OPEN, REFERENCE, UNKNOWN, History

HELP = """Append an audit to a history, and tell whether a gap has left its band.

HISTORY.json is made if it does not exist. The band of each comparison lies around the median gap of its first audits,
as far as the relevance margin reaches or --band says. The exit code is 3 if the whole interval of a gap lies outside,
and 4 if a gap could not be computed.

\b
Examples:
  globece audit --config globece.toml --json audit-2026-06.json
  globece monitor history.json audit-2026-06.json --day 2026-06-30 --figure gap.png
"""


@click.command(no_args_is_help=True, help=HELP, short_help="Audits over time: has a gap left its band?")
@click.argument("history", metavar="HISTORY.json", type=click.Path())
@click.argument("audit", metavar="AUDIT.json", type=click.Path())
@click.option("--day", required=True, metavar="YYYY-MM-DD", help="The day that the audit is about.")
@click.option("--first", type=int, default=REFERENCE, show_default=True, metavar="N", help="First audits to centre on.")
@click.option("--band", type=float, metavar="COST", help="How far a gap may lie from the centre.  [default: relevance]")
@click.option("--figure", type=click.Path(), metavar="PNG", help="Draw the gaps by date, with intervals and bands.")
@options.volume
def monitor(history: str, audit: str, day: str, first: int, band: float | None, figure: str | None) -> None:
    """``globece monitor``."""
    check_count("--first", first)
    if band is not None:
        check_number("--band", band, open_low=True)
    delivery.check_writable("HISTORY.json", history)
    if figure is not None:
        delivery.check_writable("--figure", figure)
    found = read_result(audit)
    if not isinstance(found, Audit):
        raise InvalidParameterError(f"{audit} is an explanation; monitor takes what globece audit --json wrote")
    kept = History.from_json(history) if Path(history).exists() else History()
    kept = kept.append(found, date=day)
    findings = kept.latest(reference=first, width=band)

    def write() -> None:
        kept.to_json(history)
        logs.say(f"{len(kept.dates)} audit(s) in {history}")

    def draw() -> None:
        if figure is not None:
            kept.plot(reference=first, width=band).figure.savefig(figure, dpi=150)
            logs.say(f"Figure written to {figure}")

    def show() -> None:
        for finding in findings:
            output.results().print(str(finding), soft_wrap=True)

    delivery.each((write, draw, show))
    context = click.get_current_context()
    for finding in findings:
        if finding.state in (LEFT, OPEN, UNKNOWN):
            logs.warn(f"{'Alarm' if finding.state == LEFT else 'Note'}: {finding}")
    if any(finding.state == LEFT for finding in findings):
        context.exit(delivery.GATE_FAILED)
    if not findings or any(finding.state == UNKNOWN for finding in findings):
        context.exit(delivery.UNTOLD)
