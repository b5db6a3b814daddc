"""``globece explain --out``: rows that are read in parts, and results by row in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from globece.auditing.assumptions import check_not_adverse
from globece.cli import output, training
from globece.cli.options import Asked
from globece.cli.task import favourable, names
from globece.errors import InvalidParameterError, UnknownFeatureError, require
from globece.io.model_files import load_model
from globece.search import Effort


def explain_large(
    asked: Asked, directions: int | Literal["auto"], effort: Effort, folder: Path, jobs: int | None
) -> None:
    """Explain DATA in parts; begun again with the same folder, it goes on where it ended."""
    distributed: Any = require("globece.distributed", extra="distributed", caller="--out")
    if asked.model in training.KINDS:
        raise InvalidParameterError(f"--out needs a model file; {asked.model} would be trained on all of DATA")
    model = load_model(asked.model, allow_pickle=asked.allow_pickle, trusted=asked.trusted)
    columns = list(distributed.sources.parquet(asked.data).schema.names)
    if asked.outcome is not None and asked.outcome not in columns:
        raise UnknownFeatureError(f"--outcome names unknown column {asked.outcome!r}; there are {columns}")
    if asked.favourable is None and asked.outcome is not None:
        check_not_adverse(asked.outcome, "--outcome names", "--favourable")
    limits = {
        "immutable": names("--immutable", asked.immutable, columns),
        "increasing": names("--increasing", asked.increasing, columns),
        "decreasing": names("--decreasing", asked.decreasing, columns),
        "categorical": names("--categorical", asked.categorical, columns),
    }
    found = distributed.explain(
        model,
        asked.data,
        out=folder,
        jobs=jobs,
        columns=[name for name in columns if name != asked.outcome],
        constraints={name: given for name, given in limits.items() if given},
        favourable=favourable(asked.favourable, model),
        threshold=asked.threshold,
        budget=asked.budget,
        n_directions=directions,
        effort=effort,
        rng=asked.seed,
        time_limit=asked.time_limit,
        progress=True,
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
        output.say(f"JSON written to {asked.json_path}")
