"""``globece init``: a configuration for a table, with every guess marked as one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click
import narwhals as nw

from globece.cli import completing, delivery, logs, options
from globece.cli.config import read_config
from globece.cli.guessing import MOST_GROUPS, guess_column, held, is_outcome, outcome_candidates
from globece.cli.suggestions import did_you_mean
from globece.cli.task import names, number
from globece.cli.template import SHOWN, Outcome, Plan, configuration
from globece.cli.training import KINDS, MOST_CLASSES
from globece.errors import InvalidParameterError, UnknownFeatureError
from globece.io.csv_files import UTF_8
from globece.io.files import write_text
from globece.io.frames import read_frame

HELP = """Write a configuration for DATA: a commented TOML file that every command takes with --config.

It says what each column is, what may change, what the outcome is, and whom an audit compares. What is guessed is marked
as a guess. Which outcome people want is never guessed: give --favourable, answer the question on a terminal, or set it
in the file. Without --model it trains a logistic regression, to try things out; name your own model there.

\b
Examples:
  globece init loans.csv --outcome approved --favourable yes
  globece init loans.parquet --model loans.ubj --outcome approved --favourable 1 --by sex --out loans.toml
  globece audit --config globece.toml
"""


@click.command(no_args_is_help=True, help=HELP, short_help="Write a configuration for a table.")
@click.argument("data", metavar="DATA", type=click.Path())
@options.model("Model file, or logistic, forest, boosting to train.  [default: logistic]")
@click.option("--outcome", metavar="COLUMN", shell_complete=completing.column, help="Column with the outcomes.")
@click.option("--favourable", metavar="VALUE", help="The outcome people want.")
@options.by
@click.option(
    "--out", default="globece.toml", show_default=True, metavar="FILE", help="Where to; - is standard output."
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@options.encoding
@options.volume
def init(
    data: str,
    model: str,
    outcome: str | None,
    favourable: str | None,
    by: tuple[str, ...],
    out: str,
    force: bool,
    encoding: str | None,
) -> None:
    """``globece init``."""
    if out != "-":
        delivery.check_writable("--out", out)
        if Path(out).exists() and not force:
            raise InvalidParameterError(f"{out} is there already; replace it with --force, or name another with --out")
    frame = nw.from_native(read_frame(data, encoding=encoding or UTF_8), eager_only=True)
    home = Path.cwd() if out == "-" else Path(out).resolve().parent
    wanted = _outcome(frame, outcome, favourable)
    given = [part for value in by for part in ((value,) if ":" in value else names("--by", (value,), frame.columns))]
    guesses = [guess_column(frame, name) for name in frame.columns if name != wanted.column]
    groups = (g for g in guesses if g.sensitive and 2 <= g.n_values <= MOST_GROUPS)
    sensitive = sorted(groups, key=lambda g: -g.smallest)  # of small groups little can be told
    others = [g.name for g in sensitive if g.name not in given]
    plan = Plan(
        data=_relative(data, home),
        model=model if model in KINDS or not model else _relative(model, home),
        encoding=encoding,
        outcome=wanted,
        by=given or others[:1],
        others=others if given else others[1:],
        guesses=[held(g) if g.name in given else g for g in guesses],
    )
    text = configuration(plan)
    read_config(text.encode())  # what is written is what is read
    if out == "-":
        click.echo(text, nl=False)
        return
    write_text(out, text)
    _say(plan, out)


def _outcome(frame: Any, column: str | None, favourable: str | None) -> Outcome:
    """The outcome out of the options, or asked for on a terminal; its column may also be guessed by its name."""
    columns, candidates = list(frame.columns), outcome_candidates(frame)
    if column is not None and column not in columns:
        raise UnknownFeatureError(
            f"--outcome names unknown column {column!r}; there are {columns}.{did_you_mean(column, columns)}"
        )
    if favourable is not None and column is None:
        raise InvalidParameterError("--favourable is a value of the outcome; name its column with --outcome")
    likely = [name for name in candidates if is_outcome(name)]
    asks = sys.stdin.isatty() and sys.stderr.isatty() and not logs.is_quiet()
    guessed = column is None and not asks and len(likely) == 1
    if column is None and asks:
        among = f" (perhaps {', '.join(candidates[:SHOWN])})" if candidates else ""
        choice, first = click.Choice(columns), likely[0] if len(likely) == 1 else None
        column = click.prompt(
            f"Which column holds the outcome{among}?", type=choice, show_choices=False, default=first, err=True
        )
    column = likely[0] if guessed else column or ""
    values = _values(frame, column)
    if favourable is not None:
        favourable = _favourable(favourable, column, values)
    elif values and asks:
        favourable = click.prompt("Which outcome do people want?", type=click.Choice(values), err=True)
    return Outcome(column, favourable or "", values, guessed, [name for name in candidates if name != column])


def _values(frame: Any, outcome: str) -> list[str]:
    """The values of the outcome as text, if they are few enough to be outcomes."""
    if not outcome:
        return []
    found = sorted(frame[outcome].drop_nulls().unique().to_list())
    return [str(value) for value in found] if len(found) <= MOST_CLASSES else []


def _favourable(text: str, outcome: str, values: list[str]) -> str:
    """The value that the text stands for: ``yes`` for ``Yes``, ``1`` for ``1.0``."""
    for value in sorted(values, key=lambda value: value != text):
        if value.lower() == text.lower() or number(value) == number(text):
            return value
    if not values:
        return text
    raise InvalidParameterError(
        f"--favourable must be one of the values of {outcome!r}, {values}; got {text!r}.{did_you_mean(text, values)}"
    )


def _relative(path: str, home: Path) -> str:
    """The path as seen from the configuration's folder."""
    try:
        return Path(os.path.relpath(Path(path).resolve(), home)).as_posix()
    except ValueError:  # another drive
        return str(Path(path).resolve())


def _say(plan: Plan, out: str) -> None:
    fixed = [g.name for g in plan.guesses if g.says.get("may") == "fixed"]
    outcome = plan.outcome
    left = [g.name for g in plan.guesses if g.says.get("used") is False]
    logs.say(f"Configuration written to {out}: {len(plan.guesses)} features. Guessed, so check:")
    if outcome.guessed:
        logs.say(f"  outcome: {outcome.column}")
    logs.say(f"  held fixed: {', '.join(fixed[:SHOWN]) or 'nothing'}{' ...' if len(fixed) > SHOWN else ''}")
    if left:
        logs.say(f"  not used: {', '.join(left[:SHOWN])}{' ...' if len(left) > SHOWN else ''}")
    logs.say(f"  groups: {', '.join(plan.by) or 'none found; set by in [audit]'}")
    if not plan.model:
        logs.say("  model: none named; a logistic regression is trained on the data")
    if not outcome.column:
        logs.say(f"Not set: the outcome. Set column and favourable in [outcome] of {out}, then:")
    elif not outcome.favourable:
        among = f", one of {', '.join(outcome.values)}" if outcome.values else ""
        logs.say(f"Not set: which outcome people want. Set favourable in [outcome] of {out}{among}, then:")
    else:
        logs.say("Next:")
    logs.say(f"  globece explain --config {out}\n  globece audit --config {out}")
