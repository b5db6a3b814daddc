"""``globece explain``: a table and a model in, coverage, cost and rules out."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from globece.api import explain as explain_model
from globece.cli import options, output
from globece.cli.delivery import deliver, finish
from globece.cli.large import explain_large
from globece.cli.options import Asked, need
from globece.cli.task import prepare
from globece.cli.wording import about_of
from globece.search import Effort

HELP = """Explain what a model says about the rows of DATA, a CSV, Parquet or Arrow file.

The result tells in which few directions those with the unfavourable outcome can travel, how many of them get the
favourable outcome that way, and at which cost. It goes to standard output, everything else to standard error.

The model is a file, or else one of logistic, forest and boosting: a scikit-learn pipeline that is trained on 80 % of
DATA. With --config all of this may come from a file that globece init writes. Ctrl-C ends the search and gives the best
so far, with exit code 130.

\b
Examples:
  globece explain loans.csv --model logistic --outcome approved --favourable yes
  globece explain loans.csv --model loans.ubj --outcome approved --directions 3 \\
      --immutable sex,age --increasing savings --html page.html
  globece explain loans.parquet --model loans.skops --json - > loans.json
  globece explain --config globece.toml
  globece explain portfolio.parquet --model loans.ubj --outcome approved --out results
"""


@click.command(no_args_is_help=True, help=HELP, short_help="What could those turned down have changed?")
@options.data
@options.model()
@options.outcome
@options.directions(1)
@options.constraints
@options.effort
@options.seed
@options.time_limit
@options.json_path
@options.html
@options.figures
@options.reading
@options.volume
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Results by row, into this folder; DATA, in Parquet, may be larger than memory.",
)
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="With --out: processes; one by default.")
@options.asked
def explain(
    asked: Asked, directions: int | Literal["auto"], effort: Effort, folder: Path | None, jobs: int | None
) -> None:
    """``globece explain``."""
    need(asked, "explain", "data", "model")
    if folder is not None:
        explain_large(asked, directions, effort, folder, jobs)
        return
    task = prepare(asked)
    ex = explain_model(task.model, task.X, n_directions=directions, effort=effort, **task.wishes)
    deliver(ex, asked, output.show, output.displays, about_of(asked))
    finish(ex)
