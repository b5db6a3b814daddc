"""``globece demo``: the main job on data that globece brings along, told so that a newcomer understands it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import narwhals as nw
import numpy as np
from rich.console import Console

from globece import formatting
from globece.api import explain
from globece.cli import logs, options, output, training
from globece.cli.german_words import UNITS, german_in_words
from globece.datasets import load_german_credit
from globece.explanation import Explanation
from globece.features import Feature
from globece.page.about import About
from globece.space import FeatureSpace

HELD = (
    "Sex and status", "Age", "Foreign worker", "Credit history", "Purpose", "People to support", "Employment",
    "Time at address",
)  # fmt: skip
ACCOUNT = "Checking account"
RUNS = {"one-direction": (1, ()), "three-directions": (3, (ACCOUNT,))}
PAGE = "page.html"
SHOWN = 3  # changes of one direction
ABOUT = About(
    title="German Credit: what could they have changed?",
    question="Who was turned down, and what would have got them the loan?",
    people="applicants",
    favourable="a good credit risk, who gets the loan",
    units=UNITS,
    data="German Credit (Statlog), in words",
    model="logistic regression, trained on these applicants",
    command="globece demo --out demo-output",
    include_rows=True,
)

HELP = """Explain a credit model: who was turned down, and what would have got them the loan?

Trains a logistic regression on German Credit, which globece brings along, and explains the applicants that it turns
down: with one change for everybody, and with three of which each hears the cheapest. Writes figures, result files and a
page for the browser. Takes less than a minute.

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
    help="Folder for the page, figures and JSON; it is made if it does not exist.",
)
@options.seed
@options.volume
def demo(out: Path, seed: int) -> None:
    """``globece demo``."""
    output.check_figures(out)
    console = output.results()
    german = load_german_credit()
    frame = german_in_words(german.frame)
    X, y = frame.iloc[: german.n_train], german.outcome[: german.n_train]
    unseen, truth = frame.iloc[german.n_train :], german.outcome[german.n_train :]
    space = FeatureSpace.from_frame(X, immutable=HELD)
    model = training.pipeline("logistic", space, seed).fit(X, y)
    _print_model(console, len(X), len(unseen), float(np.mean(model.predict(unseen) == truth)), float(np.mean(truth)))
    found: dict[str, Explanation] = {}
    for name, (n, more) in RUNS.items():
        logs.say(f"Looking for {n} direction(s) ...")
        held = space.constrain(immutable=more)
        progress = not logs.is_quiet()
        ex = explain(model, X, favourable=1, space=held, n_directions=n, rng=seed, progress=progress)
        ex.to_json(out / f"{name}.json")
        output.draw(output.displays(ex), out, f"{name}-")
        found[name] = ex
    _print_one(console, found["one-direction"])
    _print_three(console, found["three-directions"], model)
    found["three-directions"].save_html(out / PAGE, about=ABOUT)
    _print_files(console, out)


# -- what is said -----------------------------------------------------------------------------------------------------


def _print_model(console: Console, n: int, others: int, accuracy: float, good: float) -> None:
    console.rule("The model", style="dim")
    console.print(
        f"German Credit: people who applied for a loan at a German bank, and whether they turned out a good risk.\n"
        f"A model (a logistic regression) learnt from {n:,} of them who gets the loan. It is right about "
        f"{accuracy:.0%} of {others:,} others; {good:.0%} of these were good risks.\n"
        "It turns some applicants down. What could they have changed, so that it would have said yes?\n"
        f"Held fixed, as nobody can change it when applying: {', '.join(HELD)}.",
        soft_wrap=True,
    )


def _print_one(console: Console, ex: Explanation) -> None:
    console.rule("One change for everybody", style="dim")
    console.print(
        f"The model turns down {ex.n_affected} of {ex.n_rows}. The one direction in which most of them get the loan at "
        f"the least cost covers {ex.coverage:.1%} of them, at an average cost of {ex.average_cost:.3f}:",
        soft_wrap=True,
    )
    for change in told(ex, 0)[:SHOWN]:
        console.print(f"  {change.text}: {change.n} of {ex.n_affected}", soft_wrap=True)
    console.print(
        f"{_unit(ex)} Everybody goes only as far as it takes.\nThis says what the model rewards, not what is good for "
        "anybody.",
        soft_wrap=True,
    )
    if told(ex, 0)[0].text.startswith(ACCOUNT):
        console.print(
            "In these data, people without a checking account at the bank paid back best, so this model wants the "
            "account closed. A bank would rather know that.",
            soft_wrap=True,
        )


def _print_three(console: Console, ex: Explanation, model: Any) -> None:
    console.rule("Three changes, and the account stays as it is", style="dim")
    console.print(
        f"Now the checking account is held fixed too. Three directions cover {ex.coverage:.1%} of the {ex.n_affected}, "
        f"at an average cost of {ex.average_cost:.3f}. Each applicant is told the cheapest of the three:",
        soft_wrap=True,
    )
    best = ex.minimum_costs()
    table = output.table(None, ("", "Who is told what"), ("People", "Cost", "Next best"))
    taken = Counter(best.direction[best.direction >= 0].tolist())
    for place, (i, n) in enumerate(taken.most_common(), start=1):
        mine = best.direction == i
        others = np.delete(ex.costs[:, mine], i, axis=0).min(axis=0) if ex.n_directions > 1 else np.full(n, np.inf)
        other = np.minimum(others, ex.budget).mean()
        table.add_row(f"{place}", "", f"{n}", formatting.cost(best.cost[mine].mean()), formatting.cost(other))
        for change in told(ex, i)[:SHOWN]:
            table.add_row("", change.text, f"{change.n}", "", "")
        table.add_section()
    console.print(table)
    if ex.n_without_recourse:
        console.print(f"{ex.n_without_recourse} find no way within a cost of {ex.budget:g}.", soft_wrap=True)
    console.print(
        "People: how many are told this, and how many of them each change concerns. Why this and not another: it costs "
        "them least; next best is what the others would cost them.\nOne applicant of each:",
        soft_wrap=True,
    )
    for line in _examples(ex, model, [i for i, _ in taken.most_common()]):
        console.print(f"  {line}", soft_wrap=True)
    console.print(
        f"Each of the {ex.n_covered} was checked: the model itself says yes to the changed application.", soft_wrap=True
    )


def _print_files(console: Console, out: Path) -> None:
    console.rule("Look at it", style="dim")
    figures = sum(f.suffix == ".png" and f.name.startswith(tuple(RUNS)) for f in out.iterdir())
    console.print(
        f"In {out} are {PAGE}, the results ({' and '.join(f'{name}.json' for name in RUNS)}) and {figures} figures.\n"
        f"Open the page in a browser: {(out / PAGE).resolve().as_uri()}\n"
        "There: drag the budget, open a direction, look up an applicant. It works without a network.\n"
        "The words are those of the data's documentation; a later study (Groemping, 2019) found some of them wrong, so "
        "take no lesson about lending from them.\n"
        "With your own data:\n"
        "  globece init loans.csv --outcome approved --favourable yes\n"
        "  globece explain --config globece.toml",
        soft_wrap=True,
    )


# -- who is told what -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Told:
    """A change, and how many of those who take a direction are told it."""

    text: str
    n: int


def told(ex: Explanation, direction: int) -> list[Told]:
    """What those are told for whom a direction is the cheapest, the most frequent change first."""
    cf = ex.counterfactuals()
    mine = np.flatnonzero(cf.direction == direction)
    before, after = (nw.from_native(rows, eager_only=True) for rows in (cf.before, cf.after))
    found: list[Told] = []
    for f in ex.space.movable:
        old, new = (np.array(rows[f.name].to_list(), dtype=object)[mine] for rows in (before, after))
        changed = old != new
        if f.kind == "continuous":
            found += _amounts(f, (new - old)[changed].astype(float))
        else:
            found += [Told(f"{f.name}: {value}", n) for value, n in Counter(new[changed].tolist()).items()]
    return sorted(found, key=lambda change: -change.n)


def _amounts(f: Feature, changes: Any) -> list[Told]:
    if not len(changes):
        return []
    verb = "lower" if changes.mean() < 0 else "higher"
    sizes = np.abs(changes)
    unit = UNITS.get(f.name, "")
    text = f"{f.name}: {verb} by {np.median(sizes):,.0f} {unit}".rstrip()
    return [Told(text + (f", at most {sizes.max():,.0f}" if sizes.max() > np.median(sizes) else ""), len(sizes))]


def _examples(ex: Explanation, model: Any, directions: list[int]) -> list[str]:
    """One applicant for each direction, with the model's own estimate before and after."""
    cf = ex.counterfactuals()
    before, after = (nw.from_native(rows, eager_only=True) for rows in (cf.before, cf.after))
    chance = [model.predict_proba(rows)[:, 1] for rows in (cf.before, cf.after)]
    lines = []
    for i in directions:
        mine = np.flatnonzero(cf.direction == i)
        j = int(mine[np.argsort(cf.cost[mine], kind="stable")[len(mine) // 2]])
        was, now = before.row(j), after.row(j)
        names = before.columns
        changes = [
            f"{name} from {_value(name, a)} to {_value(name, b)}"
            for name, a, b in zip(names, was, now, strict=True)
            if a != b
        ]
        person = dict(zip(names, was, strict=True))
        lines.append(
            f"No. {cf.row[j]} wants {person['Amount']:,} DM for {person['Duration']} months, and is told: "
            f"{'; '.join(changes)}. The model's estimate of a good risk: {chance[0][j]:.0%} before, "
            f"{chance[1][j]:.0%} after."
        )
    return lines


def _value(name: str, value: Any) -> str:
    return f"{value:,} {UNITS[name]}" if name in UNITS else str(value)


def _unit(ex: Explanation) -> str:
    prices = [
        f"{1 / (ex.cost.weight(f) * ex.cost.scales[f.name].slopes[0]):,.0f} {UNITS[f.name]} of {f.name.lower()}"
        for f in ex.space.movable
        if f.kind == "continuous"
    ]
    return f"A cost of 1 is one changed category, or {' or '.join(prices)}."
