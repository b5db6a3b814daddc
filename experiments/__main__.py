"""Compute the paper's tables and figures, all or some, and write the page: `python -m experiments` (`make paper`)."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments import page, store
from experiments.cells import Cell, Run
from experiments.models import missing_files
from experiments.registry import PARTS, UnknownCellError, chosen
from experiments.running import Outcome, compute
from paper.data import why_missing


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and return the exit code: 0, 1 where a cell failed, 130 where the run was stopped."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    run = Run(models=_models(parser, asked.models), quick=asked.quick, cap=asked.cap)
    where = store.places(run, asked.out and asked.out.resolve())
    outcome = Outcome()
    if not asked.page:
        try:
            cells = _to_compute(run, where, asked.only, asked.again)
        except UnknownCellError as error:
            parser.error(str(error))
        outcome = compute(run, where, cells, asked.jobs)
    if outcome.stopped:
        _say("stopped; what is done is kept: run again to go on")
        return 130
    page.write(where, PARTS)
    _say(f"wrote {where.pages / 'paper.md'} and {where.pages / 'paper.html'}")
    for name, reason in outcome.failed.items():
        _say(f"failed: {name}: {reason}")
    return 1 if outcome.failed else 0


def _to_compute(run: Run, where: store.Places, only: list[str], again: bool) -> list[Cell]:
    """The cells asked for whose data are at hand and that are not stored yet; one that is named is computed anew."""
    cells = chosen(run, only)
    missing = _missing(cells)
    for name, reason in missing.items():
        _say(f"{name} is left out: {reason}")
    cells = [cell for cell in cells if not missing.keys() & set(cell.needs)]
    return cells if only or again else [cell for cell in cells if not _is_stored(run, where, cell)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="ONLY", help="cells to compute, by name or its beginning")
    parser.add_argument("--models", type=Path, metavar="DIR", help="given models; by default the paper's are trained")
    parser.add_argument("--quick", action="store_true", help="every step on few rows, for a smoke test")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where all goes; by default into the repository")
    parser.add_argument("--jobs", type=_count, default=2, metavar="N", help="cells at a time, one core each (2)")
    parser.add_argument("--cap", type=_seconds, default=Run.cap, metavar="SECONDS", help="for plain AReS (%(default)g)")
    parser.add_argument("--again", action="store_true", help="compute stored cells again")
    parser.add_argument("--page", action="store_true", help="only write the page, from what is stored")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 1; got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0; got {text!r}")
    return seconds


def _models(parser: argparse.ArgumentParser, folder: Path | None) -> Path | None:
    if folder is None:
        return None
    if not folder.is_dir():
        parser.error(f"--models must name a folder of models; got {str(folder)!r}, which is none")
    lacking = missing_files(folder)
    if lacking:
        more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
        parser.error(
            f"--models must name a folder with every data set's models; {str(folder)!r} lacks "
            f"{', '.join(lacking[:3])}{more}. Leave --models out to train the models here"
        )
    return folder.resolve()


def _missing(cells: list[Cell]) -> dict[str, str]:
    """The data sets that are not at hand, with how to get each."""
    reasons = {name: why_missing(name) for name in dict.fromkeys(need for cell in cells for need in cell.needs)}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _is_stored(run: Run, where: store.Places, cell: Cell) -> bool:
    stored = store.load(where, cell.name)
    return stored is not None and stored["fingerprint"] == store.fingerprint(run, cell)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends the run ends its workers too
    sys.exit(main())
