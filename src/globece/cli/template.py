"""The text of a configuration: every section, with what is known filled in, and guesses marked as such."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from globece.cli.guessing import Guess
from globece.cli.training import KINDS

SHOWN = 8  # names in a comment


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known about the outcome.

    Attributes
    ----------
    column, favourable
        The column, and the value that people want; empty if not known.
    values
        The values there are, as text.
    guessed
        Whether the column was guessed.
    candidates
        Other columns that may be it.
    """

    column: str
    favourable: str
    values: list[str]
    guessed: bool
    candidates: list[str]


@dataclass(frozen=True, slots=True)
class Plan:
    """What the file will say.

    Attributes
    ----------
    data, model, encoding
        Files as seen from the configuration, or the kind of model, and the encoding.
    outcome
        The outcome.
    by, others
        Columns that make up the groups, and others that may.
    guesses
        The other columns.
    """

    data: str
    model: str
    encoding: str | None
    outcome: Outcome
    by: list[str]
    others: list[str]
    guesses: list[Guess]


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
    known = plan.outcome
    model = f"file = {quoted(plan.model)}" if plan.model and plan.model not in KINDS else ""
    kind = f"kind = {quoted(plan.model or 'logistic')}" if not model else ""
    no_model = "" if plan.model else "  # Assumed: a logistic regression on 80 % of the data. Your own: file = ..."
    candidates = ", ".join(map(_key, known.candidates[:SHOWN]))
    column = (
        "" if known.column and not known.guessed else "  # Guess by its name." if known.guessed else "  # SET THIS."
    )
    column += f" Other columns of two values: {candidates}" if candidates and column else ""
    among = f", one of {', '.join(map(quoted, known.values))}" if known.values else ""
    favourable = "" if known.favourable else f"  # SET THIS: the outcome people want{among}"
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
column = {quoted(known.column)}{_comment(column)}
favourable = {quoted(known.favourable)}{_comment(favourable)}
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
