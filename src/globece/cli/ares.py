"""``globece ares``: a table and a model in, two-level rules of AReS or Fast AReS out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table

from globece.baselines import AccuracyCost, AresSettings, RecourseSet, fast_ares
from globece.baselines import ares as plain_ares
from globece.baselines.rule_sets import fast_settings
from globece.cli import output
from globece.cli.explain import _favourable, _names, _prepare
from globece.errors import InvalidParameterError, check_number

HELP = """Find two-level rules for the rows of DATA, a CSV or Parquet file: the baseline AReS.

A rule reads "If (subgroup), If (condition), Then (change)", and stands with the share of the affected inputs that it
covers and what it costs them. Fast AReS is used unless --plain is given, which goes through every valid rule.

The model and its options are those of globece explain.

\b
Examples:
  globece ares loans.csv --model logistic --outcome approved --immutable sex,age
  globece ares loans.csv --model loans.ubj --outcome approved --subgroups sex,race
  globece ares loans.parquet --model loans.skops --plain --support 0.2 --json rules.json
"""


@click.command(no_args_is_help=True, help=HELP)
@click.argument("data", metavar="DATA")
@click.option("--model", required=True, metavar="FILE|KIND", help="Model file, or logistic, forest, boosting to train.")
@click.option("--outcome", metavar="COLUMN", help="Column of DATA with the outcomes; the model does not get it.")
@click.option("--favourable", metavar="VALUE", help="The outcome people want.  [default: the positive class]")
@click.option("--threshold", type=float, metavar="T", help="Least probability, or value, that is favourable.")
@click.option("--plain", is_flag=True, help="AReS without the reductions of Fast AReS.")
@click.option("--support", type=float, metavar="P", help="Least share of rows that have an itemset.  [default: found]")
@click.option("--bins", type=int, default=10, show_default=True, metavar="N", help="Bins of a continuous feature.")
@click.option("--rules", type=int, default=20, show_default=True, metavar="N", help="The most rules.")
@click.option("--subgroups", multiple=True, metavar="A,B", help="Features whose values are the outer Ifs.")
@click.option(
    "--budget", type=float, default=10, show_default=True, metavar="COST", help="The most that recourse may cost."
)
@click.option("--immutable", multiple=True, metavar="A,B", help="Features that may not move.")
@click.option("--increasing", multiple=True, metavar="A,B", help="Features that may only rise.")
@click.option("--decreasing", multiple=True, metavar="A,B", help="Features that may only fall.")
@click.option("--categorical", multiple=True, metavar="A,B", help="Numeric columns that are categories.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="Same seed, same result."
)
@click.option("--time-limit", type=float, metavar="SECONDS", help="Stop searching then, and take the best so far.")
@click.option(
    "--json", "json_path", is_flag=False, flag_value="-", metavar="[PATH|-]", help="Write JSON; - is standard output."
)
@click.option("--allow-pickle", is_flag=True, help="Load a pickled model. It runs code that its author chose.")
@click.option("--trusted", multiple=True, metavar="TYPE", help="A type that a .skops file may build.")
def ares(
    data: str,
    model: str,
    outcome: str | None,
    favourable: str | None,
    threshold: float | None,
    plain: bool,
    support: float | None,
    bins: int,
    rules: int,
    subgroups: tuple[str, ...],
    budget: float,
    immutable: tuple[str, ...],
    increasing: tuple[str, ...],
    decreasing: tuple[str, ...],
    categorical: tuple[str, ...],
    seed: int,
    time_limit: float | None,
    json_path: str | None,
    allow_pickle: bool,
    trusted: tuple[str, ...],
) -> None:
    """``globece ares``."""
    if json_path not in (None, "-") and not Path(str(json_path)).resolve().parent.is_dir():
        raise InvalidParameterError(f"--json names {json_path!r}, in a folder that does not exist")
    task = _prepare(
        data,
        model,
        outcome,
        seed,
        {"allow_pickle": allow_pickle, "trusted": trusted},
        {"immutable": immutable, "increasing": increasing, "decreasing": decreasing, "categorical": categorical},
    )
    limit = check_number("budget", budget, open_low=True)
    base = (
        AresSettings(support=None, objective=AccuracyCost(1.0 / limit)) if plain else fast_settings(task.space, limit)
    )
    found = (plain_ares if plain else fast_ares)(
        task.model,
        task.X,
        favourable=_favourable(favourable, task.model),
        threshold=threshold,
        space=task.space,
        budget=budget,
        subgroups=list(_names("--subgroups", subgroups, list(task.space.names))) or None,
        rng=seed,
        progress=True,
        time_limit=time_limit,
        ares_settings=replace(base, support=support, bins=bins, max_rules=rules),
    )
    if json_path == "-":
        click.echo(found.to_json())
        return
    show(found, output.results())
    if json_path is not None:
        found.to_json(json_path)
        output.say(f"JSON written to {json_path}")


def show(found: RecourseSet, console: Console) -> None:
    """Print the numbers, the rules, and recourse by subgroup."""
    console.print(found.summary(), soft_wrap=True)
    if not found.n_rules:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("If", "If", "Then"):
        table.add_column(name)
    for name in ("Applies to", "Covers", "Cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for outer in found.subgroups:
        said = False  # a subgroup stands once, before its rules
        for rule, r in zip(found.rules, found.records(), strict=True):
            if rule.outer == outer:
                cost = f"{r['average_cost']:.2f}" if r["coverage"] else "none"
                head = "" if said else r["outer"]
                table.add_row(head, r["inner"], r["then"], f"{r['applies']:.1%}", f"{r['coverage']:.1%}", cost)
                said = True
        table.add_section()
    console.print(table)
