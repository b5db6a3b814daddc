"""``globece ares``: a table and a model in, two-level rules of AReS or Fast AReS out."""

from __future__ import annotations

from dataclasses import replace

import click
from rich.console import Console

from globece.baselines import AccuracyCost, AresSettings, RecourseSet, fast_ares
from globece.baselines import ares as plain_ares
from globece.baselines.recourse_set import cells
from globece.baselines.rule_sets import fast_settings
from globece.cli import options, output
from globece.cli.delivery import deliver, finish
from globece.cli.options import Asked, need
from globece.cli.task import names, prepare
from globece.cli.wording import about_of
from globece.errors import check_number

HELP = """Find two-level rules for the rows of DATA, a CSV, Parquet or Arrow file: the baseline AReS.

A rule reads "If (subgroup), If (condition), Then (change)", and stands with the share of the affected inputs that it
covers and what it costs them. Fast AReS is used unless --plain is given, which goes through every valid rule.

The model and its options are those of globece explain.

\b
Examples:
  globece ares loans.csv --model logistic --outcome approved --immutable sex,age
  globece ares loans.csv --model loans.ubj --outcome approved --subgroups sex,race
  globece ares loans.parquet --model loans.skops --plain --support 0.2 --html rules.html
"""


@click.command(no_args_is_help=True, help=HELP, short_help="Two-level rules of the baseline AReS.")
@options.data
@options.model()
@options.outcome
@click.option("--plain", is_flag=True, help="AReS without the reductions of Fast AReS.")
@click.option("--support", type=float, metavar="P", help="Least share of rows that have an itemset.  [default: found]")
@click.option("--bins", type=int, default=10, show_default=True, metavar="N", help="Bins of a continuous feature.")
@click.option("--rules", type=int, default=20, show_default=True, metavar="N", help="The most rules.")
@click.option("--subgroups", multiple=True, metavar="A,B", help="Features whose values are the outer Ifs.")
@options.constraints
@options.seed
@options.time_limit
@options.json_path
@options.html
@options.reading
@options.volume
@options.asked
def ares(asked: Asked, plain: bool, support: float | None, bins: int, rules: int, subgroups: tuple[str, ...]) -> None:
    """``globece ares``."""
    need(asked, "ares", "data", "model")
    task = prepare(asked)
    limit = check_number("budget", asked.budget, open_low=True)
    base = (
        AresSettings(support=None, objective=AccuracyCost(1.0 / limit)) if plain else fast_settings(task.space, limit)
    )
    found = (plain_ares if plain else fast_ares)(
        task.model,
        task.X,
        subgroups=list(names("--subgroups", subgroups, list(task.space.names))) or None,
        ares_settings=replace(base, support=support, bins=bins, max_rules=rules),
        **task.wishes,
    )
    deliver(found, asked, show, about=about_of(asked))
    finish(found)


def show(found: RecourseSet, console: Console) -> None:
    """Print the numbers, the rules, and recourse by subgroup."""
    console.print(found.summary(), soft_wrap=True)
    if not found.n_rules:
        return
    table = output.table(None, ("If", "If", "Then"), ("Applies to", "Covers", "Cost"))
    for outer in found.subgroups:
        mine = [record for rule, record in zip(found.rules, found.records(), strict=True) if rule.outer == outer]
        for i, (subgroup, *rest) in enumerate(map(cells, mine)):
            table.add_row("" if i else subgroup, *rest)  # a subgroup stands once, before its rules
        table.add_section()
    console.print(table)
