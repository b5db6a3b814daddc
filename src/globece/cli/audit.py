"""``globece audit``: does one group have to travel further? A table, a verdict, and an exit code for gates."""

from __future__ import annotations

from typing import Any, Literal

import click
from rich.console import Console
from rich.table import Table

from globece import formatting
from globece.api import audit as audit_model
from globece.auditing import Audit, AuditSettings
from globece.auditing.conclusions import CONCLUSIONS
from globece.auditing.exchange import EVERYBODY
from globece.auditing.gates import WORDS, Gate, check_gate
from globece.cli import delivery, logs, options, output
from globece.cli.groups import columns, columns_of
from globece.cli.options import Asked
from globece.cli.task import number, prepare
from globece.cli.wording import about_of
from globece.datasets.user_studies import black_box_1, black_box_2
from globece.errors import InvalidParameterError, check_number
from globece.plots import ExchangeDisplay, GroupCostsDisplay, GroupProfilesDisplay, GroupTranslationsDisplay
from globece.search import Effort

HELP = """Audit what a model says about the rows of DATA (CSV, Parquet or Arrow) for recourse bias between groups.

All groups share one pool of directions, and everybody is judged by those that were found without them. The result has
a verdict in words, a decision for every comparison, and each group's numbers with intervals. It goes to standard
output, everything else to standard error.

A gate (--fail-on, --fail-above, --fail-coverage-above, --fail-rejection-above) looks at every comparison. The exit code
is 3 if one fails it, 4 if something could not be told (a number that cannot be computed, a group too small to be
compared), and 0 otherwise. A gate with --fail-above alone also passes where there is not enough evidence, of which
standard error then tells; --fail-on unknown fails there.

--study 1 and --study 2 audit the black boxes of the paper's user studies instead of DATA; the second needs HELOC.

\b
Examples:
  globece audit loans.csv --model loans.ubj --outcome approved --favourable 1 --by sex
  globece audit loans.csv --model logistic --outcome approved --favourable 1 --by sex --by age:25,45 --fail-on relevant
  globece audit loans.csv --model loans.skops --favourable yes --by race --control region --json audit.json
  globece audit --config globece.toml
  globece audit --study 1
"""


@click.command(no_args_is_help=True, help=HELP)
@options.data
@options.model()
@options.compared
@options.clustered
@click.option("--study", type=click.Choice(["1", "2"]), help="Audit a black box of the paper's user studies.")
@options.outcome
@options.directions(3)
@options.constraints
@click.option("--smallest", metavar="N", help="Fewest affected that a group is judged by.  [default: 30, or up to 100]")
@click.option(
    "--missing", type=click.Choice(["group", "error"]), default="group", show_default=True,
    help="Whether missing group values are a group of their own.",
)  # fmt: skip
@click.option(
    "--fail-on", multiple=True, type=click.Choice(list(WORDS)), help="Exit with 3 if any comparison concludes this."
)
@click.option("--fail-above", type=float, metavar="GAP", help="Exit with 3 if any gap is significant and exceeds this.")
@click.option("--fail-coverage-above", type=float, metavar="SHARE", help="The same for gaps in coverage.")
@click.option("--fail-rejection-above", type=float, metavar="SHARE", help="The same for gaps in rejection rates.")
@click.option("--allow-small", is_flag=True, help="Let a gate pass though some groups are too small to be compared.")
@click.option("--members", is_flag=True, help="Write the row, group and cost of each person to JSON too.")
@options.effort
@options.seed
@options.time_limit
@options.json_path
@options.html
@options.figures
@options.reading
@options.volume
@options.asked
def audit(
    asked: Asked,
    by: tuple[str, ...],
    study: str | None,
    directions: int | Literal["auto"],
    effort: Effort,
    **wanted: Any,
) -> None:
    """``globece audit``."""
    gate = Gate(
        fail_on=wanted["fail_on"],
        above=_limit("--fail-above", wanted["fail_above"]),
        coverage_above=_limit("--fail-coverage-above", wanted["fail_coverage_above"]),
        rejection_above=_limit("--fail-rejection-above", wanted["fail_rejection_above"]),
        allow_small=wanted["allow_small"],
    )
    settings = AuditSettings(
        level=wanted["level"],
        relevant=wanted["relevant"],
        relevant_share=wanted["relevant_share"],
        smallest="auto" if wanted["smallest"] is None else number(wanted["smallest"]),
        missing=wanted["missing"],
    )
    if study is not None:
        if asked.data or asked.model or by or asked.config.name:
            raise InvalidParameterError("--study brings its own data, model and groups; name none, and no --config")
        found = _study(study, asked, settings)
    else:
        by = tuple(name for name in by if name)
        if not (asked.data and asked.model and by):
            where = f"; {asked.config.where('audit', 'by')} may say it too" if asked.config.name else ""
            raise InvalidParameterError(f"an audit needs DATA, --model and --by{where}; or --study")
        task = prepare(asked)
        known = columns_of(task)
        control = wanted["control"]
        found = audit_model(
            task.model,
            task.frame,
            by=columns("--by", by, known),
            control=columns("--control", control, known) if control else None,
            reference=wanted["reference"],
            cluster=wanted["cluster"],
            training_rows=wanted["training"] or ("some" if task.trained else None),
            n_directions=directions,
            effort=effort,
            audit_settings=settings,
            **task.wishes,
        )
    delivery.deliver(found, asked, show, displays, about_of(asked), members=wanted["members"])
    delivery.finish(found)
    if not gate.is_empty:
        _gate(found, gate)


def _limit(option: str, value: float | None) -> float | None:
    return None if value is None else check_number(option, value)


def _study(study: str, asked: Asked, settings: AuditSettings) -> Audit:
    made = (black_box_1 if study == "1" else black_box_2)(seed=asked.seed)
    logs.say(
        f"{made.name}: the recourse bias is against {made.recourse_bias_against}, "
        f"the model bias against {made.model_bias_against}."
    )
    wishes: dict[str, Any] = {"rng": asked.seed, "audit_settings": settings, "budget": asked.budget, "favourable": 1}
    wishes |= {"progress": not logs.is_quiet(), "time_limit": asked.time_limit}
    return audit_model(made.model, made.X, by=made.by, space=made.space, cost=made.cost, **wishes)


def _gate(found: Audit, gate: Gate) -> None:
    outcome = check_gate(found, gate)
    for failure in outcome.failures:
        logs.warn(f"Failed: {failure}.")
    for unknown in outcome.unknown:
        logs.warn(f"Not passed: {unknown}.")
    if outcome.failures or outcome.unknown:
        click.get_current_context().exit(delivery.GATE_FAILED if outcome.failures else delivery.UNTOLD)
    small = found.verdict.not_compared
    aside = f"; not judged, as allowed: {', '.join(small)}" if small else ""
    logs.say(f"Passed: the worst of {len(found.comparisons)} comparisons is {found.verdict.conclusion!r}{aside}.")


def show(found: Audit, console: Console) -> None:
    """Print the verdict, the decisions, the groups and the checks."""
    console.print(found.verdict.text)
    if found.comparisons:
        console.print(_decisions(found))
    console.print(_groups(found))
    if found.checks:
        console.print(_checks(found))
    for warning in found.verdict.warnings:
        if warning not in found.verdict.text:
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


def _decisions(found: Audit) -> Table:
    title = "Decisions: the group's score minus the other's; all intervals hold at once"
    table = output.table(title, ("Group", "Other", "Decision"), ("Gap", "Interval", "p", "Rejected", "Coverage"))
    for c in sorted(found.comparisons, key=lambda c: CONCLUSIONS.index(c.decision.conclusion)):
        gap = c.gaps["score"]
        interval = f"{gap.low:+.2f} to {gap.high:+.2f}" if gap.low == gap.low else formatting.UNKNOWN
        shares = [c.gaps[m].value for m in ("rejection_rate", "coverage")]
        cells = [f"{v:+.1%}" if v == v else formatting.UNKNOWN for v in shares]
        p = "< 0.001" if gap.p_adjusted < 0.001 else f"{gap.p_adjusted:.3f}" if gap.p == gap.p else formatting.UNKNOWN
        value = f"{gap.value:+.3f}" if gap.value == gap.value else formatting.UNKNOWN
        table.add_row(c.group, c.other, c.decision.conclusion, value, interval, p, *cells)
    return table


def _checks(found: Audit) -> Table:
    table = output.table("Real, or an artefact of the search?", ("With",), ("Gap", "Interval", "Same size"))
    table.add_column("")
    for c in found.checks:
        said = "cannot tell" if c.survives is None else "yes" if c.survives else "no"
        known = c.gap == c.gap
        interval = f"{c.low:+.2f} to {c.high:+.2f}" if known else ""
        table.add_row(c.name, f"{c.gap:+.3f}" if known else "", interval, said, c.remark)
    return table


def displays(found: Audit) -> dict[str, output.Display]:
    """Every view of an audit by the name of its file."""
    return {
        "group-profiles": GroupProfilesDisplay.from_audit(found),
        "group-costs": GroupCostsDisplay.from_audit(found),
        "group-translations": GroupTranslationsDisplay.from_audit(found),
        "exchange": ExchangeDisplay.from_audit(found),
    }
