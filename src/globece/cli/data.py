"""``globece datasets``: the data that globece brings along or can read, as files to try it on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click
import narwhals as nw

from globece.cli import delivery, logs, options, output
from globece.cli.german_words import german_in_words
from globece.cli.options import Asked
from globece.datasets import Dataset, load_compas, load_default_credit, load_german_credit, load_heloc
from globece.errors import GlobeCEError, InvalidParameterError
from globece.io.files import write_bytes

LOADERS: dict[str, Callable[[], Dataset]] = {
    "german-credit": load_german_credit,
    "compas": load_compas,
    "default-credit": load_default_credit,
    "heloc": load_heloc,
}
OUTCOME = "outcome"

HELP = """List the datasets of the paper, or write one to a file, with its outcome in a last column.

\b
Examples:
  globece datasets
  globece datasets german-credit --words --out german.csv
  globece init german.csv --outcome outcome --favourable 1
"""


@click.command(help=HELP)
@click.argument("name", required=False, type=click.Choice(list(LOADERS)))
@click.option("--out", type=click.Path(), metavar="FILE", help="Where to: .csv or .parquet.")
@click.option("--words", is_flag=True, help="German Credit in words instead of UCI's codes.")
@options.json_path
@options.volume
def datasets(name: str | None, out: str | None, words: bool, json_path: str | None) -> None:
    """``globece datasets``."""
    delivery.check_outputs(Asked(json_path=json_path))
    if name is None:
        if out is not None or words:
            raise InvalidParameterError(f"name the dataset that is to be written, one of {list(LOADERS)}")
        _list(json_path)
        return
    if out is None:
        raise InvalidParameterError(f"name the file to write {name} to with --out FILE.csv or --out FILE.parquet")
    delivery.check_writable("--out", out)
    if words and name != "german-credit":
        raise InvalidParameterError("--words is for german-credit: the other datasets have no codes")
    data = LOADERS[name]()
    frame = nw.from_native(german_in_words(data.frame) if words else data.frame, eager_only=True)
    frame = frame.with_columns(nw.new_series(OUTCOME, data.outcome.tolist(), backend=frame.implementation))
    if out.endswith(".csv"):
        write_bytes(out, (frame.write_csv() or "").encode("utf-8"))
    elif out.endswith(".parquet"):
        frame.write_parquet(out)
    else:
        raise InvalidParameterError(f"--out must end in .csv or .parquet; got {out!r}")
    logs.say(
        f"{len(frame):,} rows written to {out}. Column {OUTCOME!r} is 1 where it was favourable: {data.favourable}."
    )


def _list(json_path: str | None) -> None:
    found: list[dict[str, Any]] = []
    for name, load in LOADERS.items():
        try:
            data = load()
        except GlobeCEError as error:  # one that is not on this machine
            found.append({"name": name, "available": False, "why": " ".join(str(error).split())})
            continue
        found.append(
            {
                "name": name,
                "available": True,
                "rows": len(data.outcome),
                "features": len(data.features),
                "favourable": data.favourable,
                "description": data.description,
                "source": data.source,
                "licence": data.licence,
            }
        )
    if json_path is not None:
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        if json_path == "-":
            click.echo(text, nl=False)
        else:
            write_bytes(json_path, text.encode("utf-8"))
        return
    console = output.results()
    for one in found:
        if one["available"]:
            size = f"{one['rows']:,} rows, {one['features']} features; favourable: {one['favourable']}"
            console.print(f"{one['name']}: {one['description']}\n  {size}", soft_wrap=True)
        else:
            console.print(f"{one['name']}: not here. {one['why']}", soft_wrap=True)
