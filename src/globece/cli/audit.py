"""``globece audit``: does one group have to travel further? A table, a verdict, and an exit code for gates."""

from __future__ import annotations

from typing import Any, Literal

import click
import narwhals as nw
from rich.console import Console
from rich.table import Table

from globece import formatting
from globece.api import audit as audit_model
from globece.auditing import Audit, AuditSettings
from globece.auditing.exchange import EVERYBODY
from globece.auditing.result import check_exceeds
from globece.cli import options, output
from globece.cli.options import Asked
from globece.cli.task import names, number, prepare
from globece.datasets.user_studies import black_box_1, black_box_2
from globece.errors import InvalidParameterError, check_number
from globece.plots import ExchangeDisplay, GroupCostsDisplay, GroupProfilesDisplay, GroupTranslationsDisplay
from globece.search import Effort

EXCEEDED = 3

HELP = """Audit what a model says about the rows of DATA, a CSV or Parquet file, for recourse bias between groups.

All groups share one pool of directions, chosen on one half of those with the unfavourable outcome and judged on the
other. The result has each group's numbers with intervals, tests, and a verdict in words. It goes to standard output,
everything else to standard error.

With --fail-above the exit code is 3 if a recourse bias is found whose gap in score exceeds GAP; 0 otherwise, also when
there is not enough evidence, of which standard error then tells.

--study 1 and --study 2 audit the black boxes of the paper's user studies instead of DATA; the second needs HELOC.

\b
Examples:
  globece audit loans.csv --model loans.ubj --outcome approved --by sex
  globece audit loans.csv --model logistic --outcome approved --by sex --by age:25,45 --fail-above 0.5
  globece audit loans.csv --model loans.skops --by race --control region --json audit.json --figures figures
  globece audit --study 1
"""


@click.command(no_args_is_help=True, help=HELP)
@click.argument("data", metavar="DATA", required=False, default="")
@options.model(required=False)
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="Group column; several: intersections. age:25,45 and age:4 cut numbers.",
)
@click.option("--control", multiple=True, metavar="COLUMN", help="Compare groups only within levels of this.")
@click.option("--reference", metavar="GROUP", help="Compare the other groups with this one.")
@click.option("--study", type=click.Choice(["1", "2"]), help="Audit a black box of the paper's user studies.")
@options.outcome
@click.option("--directions", type=int, default=3, show_default=True, metavar="N", help="Directions for each group.")
@options.constraints
@click.option("--level", type=float, default=0.05, show_default=True, metavar="P", help="Level of the tests.")
@click.option(
    "--relevant", type=float, default=0.5, show_default=True, metavar="GAP", help="Smallest gap that matters."
)
@click.option(
    "--smallest",
    type=int,
    default=30,
    show_default=True,
    metavar="N",
    help="Fewest affected that a group is judged by.",
)
@click.option(
    "--missing", type=click.Choice(["group", "error"]), default="group", show_default=True,
    help="Whether missing group values are a group of their own.",
)  # fmt: skip
@click.option("--fail-above", type=float, metavar="GAP", help="Exit with 3 if a bias is found that exceeds this.")
@options.effort
@options.seed
@options.json_path
@options.figures
@options.loading
@options.asked
def audit(
    asked: Asked,
    by: tuple[str, ...],
    control: tuple[str, ...],
    reference: str | None,
    study: str | None,
    directions: int,
    effort: Effort,
    level: float,
    relevant: float,
    smallest: int,
    missing: Literal["group", "error"],
    fail_above: float | None,
) -> None:
    """``globece audit``."""
    if fail_above is not None:
        check_number("--fail-above", fail_above)
    settings = AuditSettings(level=level, relevant=relevant, smallest=smallest, missing=missing)
    if study is not None:
        if asked.data or asked.model or by:
            raise InvalidParameterError("--study brings its own data, model and groups; give none of them")
        found = _study(study, asked, settings)
    else:
        if not (asked.data and asked.model and by):
            raise InvalidParameterError("an audit needs DATA, --model and --by; or --study")
        task = prepare(asked)
        columns = [*dict.fromkeys([*task.space.names, *nw.from_native(task.frame, eager_only=True).columns])]
        found = audit_model(
            task.model,
            task.frame,
            by=_columns("--by", by, columns),
            control=_columns("--control", control, columns) if control else None,
            reference=reference,
            n_directions=directions,
            effort=effort,
            audit_settings=settings,
            **task.wishes,
        )
    output.report(found, asked, show, displays)
    if fail_above is not None:
        _gate(found, fail_above)


def _study(study: str, asked: Asked, settings: AuditSettings) -> Audit:
    made = (black_box_1 if study == "1" else black_box_2)(seed=asked.seed)
    output.say(
        f"{made.name}: the recourse bias is against {made.recourse_bias_against}, "
        f"the model bias against {made.model_bias_against}."
    )
    wishes: dict[str, Any] = {"rng": asked.seed, "progress": True, "audit_settings": settings, "budget": asked.budget}
    return audit_model(made.model, made.X, by=made.by, space=made.space, cost=made.cost, **wishes)


def _columns(option: str, values: tuple[str, ...], columns: list[str]) -> list[Any]:
    """Columns out of ``sex``, ``age:25,45`` and ``age:4``; a name that has a colon in it comes alone."""
    wishes: list[Any] = []
    for value in values:
        name, colon, cut = value.rpartition(":")
        if value in columns or not colon:
            wishes += names(option, (value,), columns)
            continue
        names(option, (name,), columns)
        parts = [number(part.strip()) for part in cut.split(",")]
        if not all(isinstance(part, (int, float)) for part in parts):
            raise InvalidParameterError(f"{option} must cut {name!r} at numbers, as in {name}:25,45; got {value!r}")
        single = len(parts) == 1 and isinstance(parts[0], int) and 2 <= parts[0] <= 10
        wishes.append({name: parts[0] if single else parts})
    return wishes


def _gate(found: Audit, gap: float) -> None:
    v = found.verdict
    if check_exceeds(found, gap):
        output.say(f"Failed: the gap of {abs(v.size):.3f} against {v.against} exceeds {gap:g}.")
        click.get_current_context().exit(EXCEEDED)
    output.say(f"Passed: no recourse bias beyond {gap:g} was found ({v.conclusion}).")


def show(found: Audit, console: Console) -> None:
    """Print the verdict, the groups, the comparisons and the checks."""
    console.print(found.verdict.text)
    console.print(_groups(found))
    if found.comparisons:
        console.print(_comparisons(found))
    if found.checks:
        console.print(_checks(found))
    for warning in found.verdict.warnings:
        console.print(f"Note: {warning}.")
    console.print("It rests on " + "; ".join(found.verdict.rests_on) + ".")


def _groups(found: Audit) -> Table:
    head = ("Rows", "Affected", "Rejected", "Coverage", "Average cost", "Median", "Score")
    table = output.table("Groups", ("Group",), head)
    table.add_column("")
    for name, m in {**found.by_group, EVERYBODY: found.overall}.items():
        low, high = m.score_interval
        table.add_row(
            name,
            f"{m.n:,}",
            f"{m.affected:,}",
            f"{m.rejection_rate:.1%}",
            formatting.share(m.coverage),
            formatting.cost(m.average_cost),
            formatting.cost(m.median_cost),
            formatting.cost(m.score) + (f" ({low:.2f} to {high:.2f})" if low == low else ""),
            m.note,
        )
    return table


def _comparisons(found: Audit) -> Table:
    title = "Gaps: the group's minus the other's (p, corrected for several groups)"
    table = output.table(title, ("Group", "Other"), ("Rejected", "Coverage", "Average cost", "Score"))
    for c in found.comparisons:
        cells = []
        for measure, gap in c.gaps.items():
            share = measure in ("rejection_rate", "coverage")
            value = f"{gap.value:+.1%}" if share else f"{gap.value:+.3f}"
            cells.append(f"{value} ({gap.p_adjusted:.3f})" if gap.value == gap.value else formatting.UNKNOWN)
        table.add_row(c.group, c.other, *cells)
    return table


def _checks(found: Audit) -> Table:
    table = output.table("Real, or an artefact of the search?", ("With",), ("Gap", "p", "Same verdict"))
    table.add_column("")
    for c in found.checks:
        said = "cannot tell" if c.survives is None else "yes" if c.survives else "no"
        known = c.gap == c.gap
        table.add_row(c.name, f"{c.gap:+.3f}" if known else "", f"{c.p:.3f}" if known else "", said, c.remark)
    return table


def displays(found: Audit) -> dict[str, output.Display]:
    """Every view of an audit by the name of its file."""
    return {
        "group-profiles": GroupProfilesDisplay.from_audit(found),
        "group-costs": GroupCostsDisplay.from_audit(found),
        "group-translations": GroupTranslationsDisplay.from_audit(found),
        "exchange": ExchangeDisplay.from_audit(found),
    }
