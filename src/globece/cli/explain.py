"""``globece explain``: a table and a model in, coverage, cost and rules out."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from globece.api import explain as explain_model
from globece.cli import options, output
from globece.cli.large import explain_large
from globece.cli.options import Asked
from globece.cli.task import prepare
from globece.search import Effort


def _directions(ctx: click.Context, param: click.Parameter, value: str) -> int | Literal["auto"]:
    if value == "auto":
        return "auto"
    try:
        return int(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is neither a whole number nor 'auto'", ctx, param) from error


HELP = """Explain what a model says about the rows of DATA, a CSV or Parquet file.

The result tells in which few directions those with the unfavourable outcome can travel, how many of them get the
favourable outcome that way, and at which cost. It goes to standard output, everything else to standard error.

The model is a file (.json or .ubj of XGBoost, .txt of LightGBM, .skops, or a pickle if allowed), or else one of
logistic, forest and boosting: a scikit-learn pipeline that is trained on 80 % of DATA. Ctrl-C ends the search and
shows the best so far.

\b
Examples:
  globece explain loans.csv --model logistic --outcome approved --favourable yes
  globece explain loans.csv --model loans.ubj --outcome approved --directions 3 \\
      --immutable sex,age --increasing savings --figures figures
  globece explain loans.parquet --model loans.skops --json - > loans.json
  globece explain portfolio.parquet --model loans.ubj --outcome approved --out results
"""


@click.command(no_args_is_help=True, help=HELP)
@click.argument("data", metavar="DATA")
@options.model(required=True)
@options.outcome
@click.option(
    "--directions", callback=_directions, default="1", show_default=True, metavar="N|auto", help="How many to find."
)
@options.constraints
@options.effort
@options.seed
@options.time_limit
@options.json_path
@options.figures
@options.loading
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
    if folder is not None:
        explain_large(asked, directions, effort, folder, jobs)
        return
    task = prepare(asked)
    ex = explain_model(task.model, task.X, n_directions=directions, effort=effort, **task.wishes)
    output.report(ex, asked, output.show, output.displays)
