"""``globece explain --out``: rows that are read in parts, and results by row in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click
import narwhals as nw

from globece.auditing.assumptions import check_not_adverse
from globece.cli import logs, output, training
from globece.cli.options import Asked
from globece.cli.suggestions import did_you_mean
from globece.cli.task import constraints_of, favourable, ignored_of, load, wanted_of
from globece.errors import InvalidParameterError, UnknownFeatureError, require
from globece.search import Effort


def explain_large(
    asked: Asked, directions: int | Literal["auto"], effort: Effort, folder: Path, jobs: int | None
) -> None:
    """Explain DATA in parts; begun again with the same folder, it goes on where it ended."""
    distributed: Any = require("globece.distributed", extra="distributed", caller="--out")
    if asked.model in training.KINDS:
        raise InvalidParameterError(f"--out needs a model file; {asked.model} would be trained on all of DATA")
    _refuse_unsupported(asked)
    model = load(asked)
    schema = distributed.sources.parquet(asked.data).schema
    columns, outcome = list(schema.names), asked.outcome or None
    if outcome is not None and outcome not in columns:
        raise UnknownFeatureError(
            f"--outcome names unknown column {outcome!r}; there are {columns}.{did_you_mean(outcome, columns)}"
        )
    if asked.favourable is None and outcome is not None:
        check_not_adverse(outcome, "--outcome names", "--favourable")
    wanted = wanted_of(model, [c for c in columns if c not in (outcome, *ignored_of(asked, columns))])
    no_rows = nw.from_native(schema.empty_table(), eager_only=True).select(wanted)
    groups = (name for name, wish in asked.features.items() if wish.columns)
    found = distributed.explain(
        model,
        asked.data,
        out=folder,
        jobs=jobs,
        columns=wanted,
        constraints={k: v for k, v in constraints_of(no_rows, asked, [*columns, *groups]).items() if v},
        favourable=favourable(asked.favourable, model),
        threshold=asked.threshold,
        budget=asked.budget,
        n_directions=directions,
        effort=effort,
        rng=asked.seed,
        time_limit=asked.time_limit,
        progress=not logs.is_quiet(),
    )
    if asked.json_path == "-":
        click.echo((folder / "summary.json").read_text(encoding="utf-8"))
        return
    console = output.results()
    console.print(str(found), soft_wrap=True)
    for i in range(len(found.directions) if found.numbers.n_affected else 0):
        console.print(f"\nDirection {i + 1}: rules add up from top to bottom\n\n{found.rules_chart(i)}")
    if asked.json_path is not None:
        Path(asked.json_path).write_bytes((folder / "summary.json").read_bytes())
        logs.say(f"JSON written to {asked.json_path}")


def _refuse_unsupported(asked: Asked) -> None:
    """Raise if something is asked for that results in parts do not have: it is not left out in silence."""
    priced = asked.scale == "deciles" or asked.norm == "l2"
    priced |= any(wish.weight is not None or wish.width is not None for wish in asked.features.values())
    for asks, what in (
        (asked.html is not None, "--html: a page shows rows, and those of --out stay in its folder"),
        (asked.figures is not None, "--figures: draw them from a sample, without --out"),
        (asked.encoding is not None, "--encoding: --out reads Parquet"),
        (priced, "weights, widths, deciles and norms of the configuration: call globece.distributed.explain(cost=)"),
    ):
        if asks:
            raise InvalidParameterError(f"--out does not go with {what}")
