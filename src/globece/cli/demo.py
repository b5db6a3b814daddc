"""``globece demo``: the main job on data that globece brings along."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.table import Table

from globece.api import explain
from globece.cli import options, output, training
from globece.cli.german_codes import CODES
from globece.datasets import load_german_credit
from globece.explanation import Explanation
from globece.rules import Rule
from globece.space import FeatureSpace

IMMUTABLE = ("Sex", "Age", "Foreign-Worker")
RUNS = {"one-direction": 1, "three-directions": 3}

HELP = """Explain a credit model: who could get the loan, and how?

Trains a logistic regression on German Credit, which globece brings along, and explains the applicants that it turns
down, with one direction and with three. Takes less than a minute.

\b
Example:
  globece demo --out demo-output
"""


@click.command(help=HELP)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="Folder for figures and JSON; it is made if it does not exist.",
)
@options.seed
def demo(out: Path, seed: int) -> None:
    """``globece demo``."""
    output.check_figures(out)
    console = output.results()
    german = load_german_credit()
    X, y = german.frame.iloc[: german.n_train], german.outcome[: german.n_train]
    unseen, truth = german.frame.iloc[german.n_train :], german.outcome[german.n_train :]
    space = FeatureSpace.from_frame(X, immutable=IMMUTABLE)
    model = training.pipeline("logistic", space, seed).fit(X, y)
    accuracy = float(np.mean(model.predict(unseen) == truth))
    console.print(f"German Credit: {german.description} 1 means {german.favourable}.", soft_wrap=True)
    console.print(
        f"A logistic regression learnt from {len(X):,} of them; accuracy on {len(unseen):,} others: {accuracy:.1%}.\n"
        f"What could those that it turns down have changed? {', '.join(IMMUTABLE)} may not move.",
        soft_wrap=True,
    )
    used: set[str] = set()
    for name, n in RUNS.items():
        output.say(f"Looking for {n} direction(s) ...")
        ex = explain(model, X, favourable=1, space=space, n_directions=n, rng=seed, progress=True)
        console.rule(name.replace("-", " ").capitalize(), style="dim")
        output.show(ex, console)
        used |= _codes_in(ex)
        ex.to_json(out / f"{name}.json")
        output.draw(output.displays(ex), out, f"{name}-")
    if used:
        console.print("What the codes mean:")
        console.print(_legend(used))
    console.print(f"Figures and results are in {out}:", soft_wrap=True)
    for file in sorted(out.iterdir()):
        if file.name.startswith(tuple(RUNS)):
            console.print(f"  {file.name}", soft_wrap=True)


def _codes_in(ex: Explanation) -> set[str]:
    """UCI's codes that the charts show."""

    def shown(rule: Rule) -> tuple[str, ...]:
        return (*(rule.others if rule.negated else rule.sources), rule.target)

    charts = [ex.rules_chart(i) for i in range(ex.n_directions)]
    return {code for chart in charts for row in chart.rows for rule in row.rules for code in shown(rule)}


def _legend(codes: set[str]) -> Table:
    table = Table.grid(padding=(0, 2))
    for code in (c for c in CODES if c in codes):
        table.add_row(code, CODES[code])
    return table
