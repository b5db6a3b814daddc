"""``globece serve``: the page live, on this machine."""

from __future__ import annotations

import webbrowser
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from globece.cli import logs, options
from globece.cli.options import asked_of, need
from globece.cli.question import Question, read_result, wrapped
from globece.cli.wording import described
from globece.errors import InvalidParameterError, require
from globece.io.files import check_file
from globece.page.about import About
from globece.page.pages import page_of
from globece.web.desk import Desk
from globece.web.limits import Limits

HELP = """Show a model and DATA as a live page: drag the budget, change constraints, try a change of your own.

The page is at the address that is printed. It is for this machine alone (loopback), and asks for the token in the
address. Nothing is sent anywhere. DATA may also be a result file (.json): then it is shown, and nothing is computed.

\b
Examples:
  globece serve loans.csv --model loans.ubj --outcome approved --immutable sex
  globece serve result.json
"""


@click.command(no_args_is_help=True, help=HELP)
@options.data
@options.model()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8642, show_default=True, metavar="N", help="0: any free."
)
@click.option("--open", "open_", is_flag=True, help="Open the page in the browser.")
@click.option(
    "--time-limit",
    "--job-limit",
    type=float,
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Longest computation.",
)
@wrapped
def serve(port: int, open_: bool, time_limit: float, **given: Any) -> None:
    """``globece serve``."""
    asked = asked_of(given)
    need(asked, "serve", "data")
    data, model = asked.data, asked.model
    given["by"] = tuple(name for name in given["by"] if name)
    words = {k: given.pop(k) for k in ("describe", "title", "question", "date")}
    about = replace(described(**words), include_rows=True)
    for module in ("uvicorn", "starlette"):
        require(module, extra="web", caller="globece serve")
    serving: Any = import_module("globece.web.serving")  # only here: the other commands do without what it needs
    limits = Limits(job_s=time_limit)
    listening = serving.bound(port)
    if model:
        question = Question(asked, **given)
        rooms = serving.Rooms(limits, prepare=lambda: _desk(question, about, limits))
    else:
        if not data.endswith(".json"):
            raise InvalidParameterError("globece serve needs --model, unless DATA is a result file (.json)")
        check_file("cannot read the result", Path(data))
        rooms = serving.Rooms(limits, load=lambda: page_of(read_result(data), about).binary())

    def ready(address: str) -> None:
        logs.say(f"The page is at {address}\nCtrl-C stops the server.")
        if open_:
            webbrowser.open(address)

    serving.run(rooms, listening, ready)


def _desk(question: Question, about: About, limits: Limits) -> Desk:
    asked = question.asked
    if len(question.by) > 1 or question.control or question.reference:
        raise InvalidParameterError(
            "globece serve compares the groups of one column (--by); use globece report for more"
        )
    if question.directions == "auto":
        raise InvalidParameterError("globece serve needs a number of directions, not 'auto'")
    task = question.task()
    cost = task.wishes["cost"]
    if cost is not None and (cost.kind, cost.norm, any(w.width for w in asked.features.values())) != (
        "bins",
        "l1",
        False,
    ):
        raise InvalidParameterError(
            "the live page prices changes by bins and l1, with weights; globece explain and globece report take other "
            "scales, norms and widths too"
        )
    names: dict[str, Any] = {
        "data": about.data or Path(asked.data).name,
        "model": about.model or Path(asked.model).name,
    }
    prints = question.fingerprints()
    named = replace(about, **names, seed=asked.seed, data_sha256=prints["data"], model_sha256=prints["model"])
    wishes = {name: v for name, v in task.wishes.items() if name not in ("progress", "time_limit")}
    by = question.by[0] if question.by else None
    return Desk(task.model, task.X, task.frame, wishes, named, limits, question.directions, by)
