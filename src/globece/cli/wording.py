"""The words of a page: from the options, a file of words, and the configuration, in this order."""

from __future__ import annotations

from datetime import date as calendar
from pathlib import Path
from typing import Any

import click

from globece.cli.config import Config
from globece.cli.options import Asked, current_config, in_order
from globece.cli.training import KINDS
from globece.io.files import read_text
from globece.io.plain import parse
from globece.page.about import About

told = in_order(
    click.option("--title", default="", metavar="TEXT", help="What stands at the top of the page."),
    click.option("--question", default="", metavar="TEXT", help="The question that the page answers."),
    click.option(
        "--describe",
        type=click.Path(),
        metavar="FILE",
        help="JSON with units, labels, values, people, favourable: words for the page.",
    ),
    click.option("--date", default=None, metavar="DATE", help="When this was computed.  [default: today]"),
)


def described(describe: str | None = None, **given: Any) -> About:
    """The words of a page, out of the configuration, a file and options; the later wins."""
    words = _configured(current_config())
    if describe is not None:
        words |= parse(read_text(describe), describe).value
    today = given.get("date") or calendar.today().isoformat()
    return About.from_dict({**words, **{k: v for k, v in given.items() if v not in ("", None)}, "date": today})


def _configured(config: Config) -> dict[str, Any]:
    said = {name: value for name, value in config.values.get("page", {}).items() if value not in ("", {})}
    units = {name: wish.unit for name, wish in config.features.items() if wish.unit}
    labels = {name: wish.label for name, wish in config.features.items() if wish.label}
    return said | ({"units": units} if units else {}) | ({"labels": labels} if labels else {})


def about_of(asked: Asked) -> About:
    """The words of a page of a result of ``explain`` or ``audit``: where it came from, and what is configured."""
    model = f"{asked.model}, trained on the data" if asked.model in KINDS else Path(asked.model).name
    return described(data=Path(asked.data).name, model=model, seed=asked.seed)
