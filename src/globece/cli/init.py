"""``globece init``: a configuration for a table, with every guess marked as one."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import narwhals as nw

from globece.cli import completing, delivery, logs, options
from globece.cli.config import read_config
from globece.cli.guessing import MOST_GROUPS, Guess, guess_column, is_outcome, outcome_candidates
from globece.cli.suggestions import did_you_mean
from globece.cli.task import names, number
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
SHOWN = 8  # names in a comment


@dataclass(frozen=True, slots=True)
class Plan:
    """What the file will say.

    Attributes
    ----------
    data, model, encoding
        Files, relative to the configuration, and the encoding.
    outcome, favourable, values
        The outcome column, the value people want (empty if not known), and the values there are.
    guessed
        Whether the outcome column was guessed.
    candidates
        Other columns that may be the outcome.
    by
        Columns that make up the groups.
    others
        Other columns that may.
    guesses
        The columns.
    """

    data: str
    model: str
    encoding: str | None
    outcome: str
    favourable: str
    values: list[str]
    guessed: bool
    candidates: list[str]
    by: list[str]
    others: list[str]
    guesses: list[Guess]


@click.command(no_args_is_help=True, help=HELP)
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
    plan = _plan(frame, data, model, outcome, favourable, by, encoding, home)
    text = configuration(plan)
    read_config(text.encode())  # what is written is what is read
    if out == "-":
        click.echo(text, nl=False)
        return
    write_text(out, text)
    _say(plan, out)


def _plan(
    frame: Any,
    data: str,
    model: str,
    outcome: str | None,
    favourable: str | None,
    by: tuple[str, ...],
    encoding: str | None,
    home: Path,
) -> Plan:
    columns = list(frame.columns)
    candidates = outcome_candidates(frame)
    if outcome is not None and outcome not in columns:
        raise UnknownFeatureError(
            f"--outcome names unknown column {outcome!r}; there are {columns}.{did_you_mean(outcome, columns)}"
        )
    likely = [name for name in candidates if is_outcome(name)]
    asks = sys.stdin.isatty() and sys.stderr.isatty() and not logs.is_quiet()
    guessed = outcome is None and not asks and len(likely) == 1
    if outcome is None and asks:
        among = f" (perhaps {', '.join(candidates[:SHOWN])})" if candidates else ""
        choice, first = click.Choice(columns), likely[0] if len(likely) == 1 else None
        outcome = click.prompt(
            f"Which column holds the outcome{among}?", type=choice, show_choices=False, default=first, err=True
        )
    outcome = likely[0] if guessed else outcome or ""
    values = _values(frame, outcome)
    if favourable is not None:
        if not outcome:
            raise InvalidParameterError("--favourable is a value of the outcome; name its column with --outcome")
        favourable = _favourable(favourable, outcome, values)
    elif values and asks:
        favourable = click.prompt("Which outcome do people want?", type=click.Choice(values), err=True)
    guesses = [guess_column(frame, name) for name in columns if name != outcome]
    groups = (g for g in guesses if g.sensitive and 2 <= g.n_values <= MOST_GROUPS)
    sensitive = sorted(groups, key=lambda g: -g.smallest)  # of small groups little can be told
    given = [part for value in by for part in ((value,) if ":" in value else names("--by", (value,), columns))]
    others = [g.name for g in sensitive if g.name not in given]
    return Plan(
        data=_relative(data, home),
        model=model if model in KINDS or not model else _relative(model, home),
        encoding=encoding,
        outcome=outcome,
        favourable=favourable or "",
        values=values,
        guessed=guessed,
        candidates=[name for name in candidates if name != outcome],
        by=given or others[:1],
        others=others if given else others[1:],
        guesses=guesses,
    )


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
    held = [g.name for g in plan.guesses if g.says.get("may") == "fixed"]
    left = [g.name for g in plan.guesses if g.says.get("used") is False]
    logs.say(f"Configuration written to {out}: {len(plan.guesses)} features. Guessed, so check:")
    if plan.guessed:
        logs.say(f"  outcome: {plan.outcome}")
    logs.say(f"  held fixed: {', '.join(held[:SHOWN]) or 'nothing'}{' ...' if len(held) > SHOWN else ''}")
    if left:
        logs.say(f"  not used: {', '.join(left[:SHOWN])}{' ...' if len(left) > SHOWN else ''}")
    logs.say(f"  groups: {', '.join(plan.by) or 'none found; set by in [audit]'}")
    if not plan.model:
        logs.say("  model: none named; a logistic regression is trained on the data")
    if not plan.outcome:
        logs.say(f"Not set: the outcome. Set column and favourable in [outcome] of {out}, then:")
    elif not plan.favourable:
        among = f", one of {', '.join(plan.values)}" if plan.values else ""
        logs.say(f"Not set: which outcome people want. Set favourable in [outcome] of {out}{among}, then:")
    else:
        logs.say("Next:")
    logs.say(f"  globece explain --config {out}\n  globece audit --config {out}")


# -- the file ---------------------------------------------------------------------------------------------------------


def quoted(value: Any) -> str:
    r"""A value as TOML.

    Examples
    --------
    >>> quoted(True), quoted(["x", 1])
    ('true', '["x", 1]')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(quoted, value)) + "]"
    if isinstance(value, str):
        text = value.encode("utf-8", "replace").decode("utf-8")
        return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def _comment(text: str) -> str:
    """Text without what a comment may not hold."""
    return "".join(c if c.isprintable() else " " for c in text)


def configuration(plan: Plan) -> str:
    """The file's text."""
    model = f"file = {quoted(plan.model)}" if plan.model and plan.model not in KINDS else ""
    kind = f"kind = {quoted(plan.model or 'logistic')}" if not model else ""
    no_model = "" if plan.model else "  # Assumed: a logistic regression on 80 % of the data. Your own: file = ..."
    candidates = ", ".join(map(_key, plan.candidates[:SHOWN]))
    column = "" if plan.outcome and not plan.guessed else "  # Guess by its name." if plan.guessed else "  # SET THIS."
    column += f" Other columns of two values: {candidates}" if candidates and column else ""
    among = f", one of {', '.join(map(quoted, plan.values))}" if plan.values else ""
    favourable = "" if plan.favourable else f"  # SET THIS: the outcome people want{among}"
    others = f" Others: {', '.join(map(quoted, plan.others[:SHOWN]))}" if plan.others else ""
    groups = f"  # Guess: columns that say who somebody is.{others}" if plan.by else "  # SET THIS for an audit."
    return f"""\
# A configuration of globece, for: globece explain, audit, report, serve, who-benefits, ares --config THIS_FILE
# An option on the command line wins over what is said here. docs/command_line.md lists every key.
# What was guessed from the data is marked "Guess": check it.

[data]
file = {quoted(plan.data)}  # CSV, Parquet or Arrow; seen from this file's folder
{f"encoding = {quoted(plan.encoding)}" if plan.encoding else '# encoding = "cp1252"  # of a CSV file that is not UTF-8'}

[model]
{model or kind}{_comment(no_model)}
# kind = "forest"  # or "logistic", "boosting": trained on the data instead of a file

[outcome]
column = {quoted(plan.outcome)}{_comment(column)}
favourable = {quoted(plan.favourable)}{_comment(favourable)}
# threshold = 0.5  # the least probability, or value, that is favourable

[cost]
budget = 10.0  # the most that recourse may cost: 1 is a tenth of a feature's range, or one changed category
# scale = "deciles"  # 1 is then passing a tenth of the people; the default is "bins"
# norm = "l2"  # costs add up as a Euclidean length; the default is "l1", a sum

[search]
directions = 3  # how many ways out are told; "auto" finds a number
seed = 0
effort = "default"  # or "quick", "thorough"
# time_limit = 60  # seconds

[audit]
by = {quoted(plan.by)}{_comment(groups)}
# control = []  # compare only within levels of these
# reference = "..."  # compare every group with this one
# relevant = 0.5  # the smallest gap in cost that matters; the default is a fifth of the overall score

[gates]
# fail_on = ["relevant"]  # globece audit then exits with 3; also "open", "unknown", "negligible"
# fail_rejection_above = 0.1
# worse_above = 0.2  # for globece compare

[page]
# title = "Loans, first quarter"
# people = "applicants"

# One line per feature. may: "free", "fixed", "rise" or "fall". kind: "continuous", "categorical" or "ordinal", which
# needs order = [lowest, ..., highest]. Also: range = [low, high], permitted = [...], whole = true, weight = 2.0,
# label = "...", unit = "...", used = false for a column that the model does not get.
[features]
{_features(plan.guesses)}"""


def _features(guesses: list[Guess]) -> str:
    lines = [(_feature(g), f"{g.holds}.{f' Guess: {g.why}.' if g.why else ''}") for g in guesses]
    width = min(max((len(line) for line, _ in lines), default=0), 60)
    return "".join(f"{line:<{width}}  # {_comment(text)}\n" for line, text in lines)


def _feature(g: Guess) -> str:
    return f"{_key(g.name)} = {{ {', '.join(f'{key} = {quoted(value)}' for key, value in g.says.items())} }}"
