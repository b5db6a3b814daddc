"""``globece who-benefits``: the inverse question, whom does a given change help?"""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console

from globece import formatting
from globece.api import who_benefits as ask
from globece.auditing import Beneficiaries
from globece.auditing.benefits import Benefit
from globece.auditing.exchange import EVERYBODY
from globece.cli import delivery, logs, options, output
from globece.cli.groups import columns, columns_of
from globece.cli.options import Asked, need
from globece.cli.suggestions import did_you_mean
from globece.cli.task import number, prepare
from globece.cli.wording import about_of
from globece.errors import InvalidParameterError, UnknownFeatureError
from globece.io.files import write_text
from globece.space import FeatureSpace

HELP = """Ask whom a change helps: of the rows of DATA that the model turns down, who would get the favourable outcome?

Each --change is a feature and what it becomes: a category, or a number to add (+500 or -6). Nothing is searched: the
model is asked about every row. It also tells who loses the favourable outcome by the change.

\b
Examples:
  globece who-benefits loans.csv --model loans.ubj --change income=+500
  globece who-benefits --config globece.toml --change housing=own --change duration=-6 --by sex
  globece who-benefits loans.csv --model loans.ubj --change income=+500 --html page.html
"""


@click.command("who-benefits", no_args_is_help=True, help=HELP, short_help="Whom does a given change help?")
@options.data
@options.model()
@click.option("--change", multiple=True, metavar="FEATURE=VALUE", help="What everybody changes; several at once.")
@click.option("--scaled", is_flag=True, help="Everybody goes only as far along the change as it takes.")
@options.by
@options.outcome
@options.constraints
@options.json_path
@options.html
@options.reading
@options.volume
@options.asked
def who_benefits(asked: Asked, change: tuple[str, ...], scaled: bool, by: tuple[str, ...]) -> None:
    """``globece who-benefits``."""
    need(asked, "who-benefits", "data", "model")
    if not change:
        raise InvalidParameterError("name at least one change, as in --change income=+500 or --change housing=own")
    task = prepare(asked)
    wishes = {name: value for name, value in task.wishes.items() if name not in ("rng", "progress", "time_limit")}
    named = tuple(name for name in by if name)
    found = ask(
        task.model,
        task.frame if named else task.X,
        actions(change, task.space),
        mode="scaled" if scaled else "fixed",
        by=columns("--by", named, columns_of(task)) if named else None,
        **wishes,
    )

    def write_json() -> None:
        if asked.json_path not in (None, "-"):
            write_text(str(asked.json_path), _json(found))
            logs.say(f"JSON written to {asked.json_path}")

    def print_result() -> None:
        if asked.json_path == "-":
            click.echo(_json(found), nl=False)
        else:
            show(found, output.results())

    def write_html() -> None:
        if asked.html is not None:
            delivery.write_page(found, asked.html, about_of(asked))

    delivery.each((write_json, write_html, print_result))


def actions(changes: tuple[str, ...], space: FeatureSpace) -> dict[str, Any]:
    """Each feature's category or number out of ``feature=value``; a feature's name may hold an equals sign."""
    found: dict[str, Any] = {}
    for change in changes:
        fitting = [name for name in space.names if change.startswith(f"{name}=")]
        if not fitting:
            name = change.partition("=")[0]
            raise UnknownFeatureError(
                f"--change must be FEATURE=VALUE, with one of the features {list(space.names)}; got {change!r}."
                f"{did_you_mean(name, space.names)}"
            )
        feature = space[max(fitting, key=len)]
        text = change[len(feature.name) + 1 :]
        labels = [feature.label(c) for c in feature.categories]
        if text in labels:
            found[feature.name] = feature.categories[labels.index(text)]
        elif feature.is_block:
            raise InvalidParameterError(
                f"--change {feature.name} must become one of {labels}; got {text!r}.{did_you_mean(text, labels)}"
            )
        elif not isinstance(value := number(text), (int, float)):
            raise InvalidParameterError(f"--change {feature.name} must add a number, as in +500 or -6; got {text!r}")
        else:
            found[feature.name] = value
    return found


def show(found: Beneficiaries, console: Console) -> None:
    """Print whom the change helps, by group."""
    how = "as far as each needs" if found.scaled else "all of it"
    action = ", ".join(
        f"{k} {v:+g}" if isinstance(v, (int, float)) else f"{k} becomes {v}" for k, v in found.action.items()
    )
    console.print(
        f"Favourable: {found.explanation.provenance.favourable}. Everybody takes {how}: {action}.", soft_wrap=True
    )
    head = ("Turned down", "Get it now", "Share", "Average cost", "Others lose it")
    table = output.table(None, ("",), head)
    for name, b in _benefits(found).items():
        cost = formatting.cost(b.average_cost)
        table.add_row(name, f"{b.affected:,}", f"{b.flipped:,}", formatting.share(b.share), cost, f"{b.harmed:,}")
    console.print(table)


def _benefits(found: Beneficiaries) -> dict[str, Benefit]:
    return {**found.by_group, EVERYBODY: found.overall}


def _json(found: Beneficiaries) -> str:
    """The numbers by group."""
    groups = {
        name: {
            "rows": b.n,
            "affected": b.affected,
            "flipped": b.flipped,
            "share": b.share,
            "average_cost": b.average_cost if b.flipped else None,
            "harmed": b.harmed,
        }
        for name, b in _benefits(found).items()
    }
    data = {
        "format": "globece.benefits",
        "version": 1,
        "favourable": found.explanation.provenance.favourable,
        "action": dict(found.action),
        "scaled": found.scaled,
        "budget": found.explanation.budget,
        "cost_unit": found.explanation.cost.unit,
        "groups": groups,
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"
