"""``globece audit``: does one group have to travel further? A table, a verdict, and an exit code for gates."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click
import narwhals as nw
from rich.console import Console

from globece.api import audit as audit_model
from globece.auditing import Audit, AuditSettings
from globece.auditing.exchange import EVERYBODY
from globece.auditing.result import check_exceeds
from globece.cli import output
from globece.cli.explain import _favourable, _names, _number, _prepare
from globece.datasets.user_studies import black_box_1, black_box_2
from globece.errors import InvalidParameterError, check_number, require
from globece.io.frames import read_frame
from globece.plots import ExchangeDisplay, GroupCostsDisplay, GroupProfilesDisplay, GroupTranslationsDisplay

EXCEEDED = 3

HELP = """Audit what a model says about the rows of DATA, a CSV or Parquet file, for recourse bias between groups.

All groups share one pool of directions, chosen on one half of those with the unfavourable outcome and judged on the
other. The result has each group's numbers with intervals, tests, and a verdict in words. It goes to standard output,
everything else to standard error.

With --fail-above the exit code is 3 if a recourse bias is found whose gap in score exceeds GAP; 0 otherwise, also when
there is not enough evidence, of which standard error then tells.

--study 1 and --study 2 audit the black boxes of the paper's user studies instead of DATA; the second needs HELOC.

\b
Examples:
  globece audit loans.csv --model loans.ubj --outcome approved --by sex
  globece audit loans.csv --model logistic --outcome approved --by sex --by age:25,45 --fail-above 0.5
  globece audit loans.csv --model loans.skops --by race --control region --json audit.json --figures figures
  globece audit --study 1
"""


@click.command(no_args_is_help=True, help=HELP)
@click.argument("data", metavar="DATA", required=False)
@click.option("--model", metavar="FILE|KIND", help="Model file, or logistic, forest, boosting to train.")
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="Group column; several: intersections. age:25,45 and age:4 cut numbers.",
)
@click.option("--control", multiple=True, metavar="COLUMN", help="Compare groups only within levels of this.")
@click.option("--reference", metavar="GROUP", help="Compare the other groups with this one.")
@click.option("--study", type=click.Choice(["1", "2"]), help="Audit a black box of the paper's user studies.")
@click.option("--outcome", metavar="COLUMN", help="Column of DATA with the outcomes; the model does not get it.")
@click.option("--favourable", metavar="VALUE", help="The outcome people want.  [default: the positive class]")
@click.option("--threshold", type=float, metavar="T", help="Least probability, or value, that is favourable.")
@click.option("--directions", type=int, default=3, show_default=True, metavar="N", help="Directions for each group.")
@click.option(
    "--budget", type=float, default=10, show_default=True, metavar="COST", help="The most that recourse may cost."
)
@click.option("--immutable", multiple=True, metavar="A,B", help="Features that may not move.")
@click.option("--increasing", multiple=True, metavar="A,B", help="Features that may only rise.")
@click.option("--decreasing", multiple=True, metavar="A,B", help="Features that may only fall.")
@click.option("--categorical", multiple=True, metavar="A,B", help="Numeric columns that are categories.")
@click.option("--level", type=float, default=0.05, show_default=True, metavar="P", help="Level of the tests.")
@click.option(
    "--relevant", type=float, default=0.5, show_default=True, metavar="GAP", help="Smallest gap that matters."
)
@click.option(
    "--smallest",
    type=int,
    default=30,
    show_default=True,
    metavar="N",
    help="Fewest affected that a group is judged by.",
)
@click.option(
    "--missing", type=click.Choice(["group", "error"]), default="group", show_default=True,
    help="Whether missing group values are a group of their own.",
)  # fmt: skip
@click.option("--fail-above", type=float, metavar="GAP", help="Exit with 3 if a bias is found that exceeds this.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="Same seed, same result."
)
@click.option(
    "--json", "json_path", is_flag=False, flag_value="-", metavar="[PATH|-]", help="Write JSON; - is standard output."
)
@click.option(
    "--figures", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Draw into this folder."
)
@click.option("--allow-pickle", is_flag=True, help="Load a pickled model. It runs code that its author chose.")
@click.option("--trusted", multiple=True, metavar="TYPE", help="A type that a .skops file may build.")
@click.pass_context
def audit(
    ctx: click.Context,
    data: str | None,
    model: str | None,
    by: tuple[str, ...],
    control: tuple[str, ...],
    reference: str | None,
    study: str | None,
    outcome: str | None,
    favourable: str | None,
    threshold: float | None,
    directions: int,
    budget: float,
    immutable: tuple[str, ...],
    increasing: tuple[str, ...],
    decreasing: tuple[str, ...],
    categorical: tuple[str, ...],
    level: float,
    relevant: float,
    smallest: int,
    missing: Literal["group", "error"],
    fail_above: float | None,
    seed: int,
    json_path: str | None,
    figures: Path | None,
    allow_pickle: bool,
    trusted: tuple[str, ...],
) -> None:
    """``globece audit``."""
    if json_path not in (None, "-") and not Path(str(json_path)).resolve().parent.is_dir():
        raise InvalidParameterError(f"--json names {json_path!r}, in a folder that does not exist")
    if fail_above is not None:
        check_number("--fail-above", fail_above)
    if figures is not None:
        output.check_figures(figures)
    settings = AuditSettings(level=level, relevant=relevant, smallest=smallest, missing=missing)
    common: dict[str, Any] = {"rng": seed, "progress": True, "audit_settings": settings, "budget": budget}
    if study is not None:
        if data is not None or model is not None or by:
            raise InvalidParameterError("--study brings its own data, model and groups; give none of them")
        found = _study(study, seed, common)
    else:
        if data is None or model is None or not by:
            raise InvalidParameterError("an audit needs DATA, --model and --by; or --study")
        task = _prepare(
            data,
            model,
            outcome,
            seed,
            {"allow_pickle": allow_pickle, "trusted": trusted},
            {"immutable": immutable, "increasing": increasing, "decreasing": decreasing, "categorical": categorical},
        )
        X = _with_groups(task.X, data)
        columns = [*dict.fromkeys([*task.space.names, *nw.from_native(X, eager_only=True).columns])]
        found = audit_model(
            task.model,
            X,
            by=_columns("--by", by, columns),
            control=_columns("--control", control, columns) if control else None,
            reference=reference,
            favourable=_favourable(favourable, task.model),
            threshold=threshold,
            space=task.space,
            n_directions=directions,
            **common,
        )
    _report(found, json_path, figures)
    if fail_above is not None:
        _gate(ctx, found, fail_above)


def _study(study: str, seed: int, common: dict[str, Any]) -> Audit:
    made = black_box_1(seed=seed) if study == "1" else black_box_2(seed=seed)
    output.say(
        f"{made.name}: the recourse bias is against {made.recourse_bias_against}, "
        f"the model bias against {made.model_bias_against}."
    )
    return audit_model(made.model, made.X, by=made.by, space=made.space, cost=made.cost, **common)


def _with_groups(X: Any, data: str) -> Any:
    """The model's columns, and beside them those of DATA that it does not take: groups may be made of them."""
    whole, mine = nw.from_native(read_frame(data), eager_only=True), nw.from_native(X, eager_only=True)
    rest = [name for name in whole.columns if name not in mine.columns]
    return mine.with_columns(*(whole[name] for name in rest)).to_native() if rest else X


def _columns(option: str, values: tuple[str, ...], columns: list[str]) -> list[Any]:
    """Columns out of ``sex``, ``age:25,45`` and ``age:4``; a name that has a colon in it comes alone."""
    wishes: list[Any] = []
    for value in values:
        name, colon, cut = value.rpartition(":")
        if value in columns or not colon:
            wishes += _names(option, (value,), columns)
            continue
        _names(option, (name,), columns)
        parts = [_number(part.strip()) for part in cut.split(",")]
        if not all(isinstance(part, (int, float)) for part in parts):
            raise InvalidParameterError(f"{option} must cut {name!r} at numbers, as in {name}:25,45; got {value!r}")
        single = len(parts) == 1 and isinstance(parts[0], int) and 2 <= parts[0] <= 10
        wishes.append({name: parts[0] if single else parts})
    return wishes


def _report(found: Audit, json_path: str | None, figures: Path | None) -> None:
    if json_path == "-":
        click.echo(found.to_json())
    else:
        show(found, output.results())
        if json_path is not None:
            found.to_json(json_path)
            output.say(f"JSON written to {json_path}")
    if figures is not None:
        written = write_figures(found, figures)
        output.say(f"{len(written)} figures written to {figures}")


def _gate(ctx: click.Context, found: Audit, gap: float) -> None:
    v = found.verdict
    if check_exceeds(found, gap):
        output.say(f"Failed: the gap of {abs(v.size):.3f} against {v.against} exceeds {gap:g}.")
        ctx.exit(EXCEEDED)
    output.say(f"Passed: no recourse bias beyond {gap:g} was found ({v.conclusion}).")


def show(found: Audit, console: Console) -> None:
    """Print the verdict, the groups, the comparisons and the checks."""
    console.print(found.verdict.text)
    console.print(_groups(found))
    if found.comparisons:
        console.print(_comparisons(found))
    if found.checks:
        console.print(_checks(found))
    for warning in found.verdict.warnings:
        console.print(f"Note: {warning}.")
    console.print("It rests on " + "; ".join(found.verdict.rests_on) + ".")


def _groups(found: Audit) -> Any:
    table = output._table("Groups", "Group")
    for name in ("Rows", "Affected", "Rejected", "Coverage", "Average cost", "Median", "Score"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for name, m in {**found.by_group, EVERYBODY: found.overall}.items():
        low, high = m.score_interval
        score = _number_text(m.score) + (f" ({low:.2f} to {high:.2f})" if low == low else "")
        table.add_row(
            name, f"{m.n:,}", f"{m.affected:,}", f"{m.rejection_rate:.1%}", _share(m.coverage),
            _number_text(m.average_cost), _number_text(m.median_cost), score, m.note,
        )  # fmt: skip
    return table


def _comparisons(found: Audit) -> Any:
    table = output._table("Gaps: the group's minus the other's (p, corrected for several groups)", "Group")
    table.add_column("Other")
    for name in ("Rejected", "Coverage", "Average cost", "Score"):
        table.add_column(name, justify="right", no_wrap=True)
    for c in found.comparisons:
        cells = []
        for measure, gap in c.gaps.items():
            share = measure in ("rejection_rate", "coverage")
            value = f"{gap.value:+.1%}" if share else f"{gap.value:+.3f}"
            cells.append(f"{value} ({gap.p_adjusted:.3f})" if gap.value == gap.value else "unknown")
        table.add_row(c.group, c.other, *cells)
    return table


def _checks(found: Audit) -> Any:
    table = output._table("Real, or an artefact of the search?", "With")
    for name in ("Gap", "p", "Same verdict"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for c in found.checks:
        said = "cannot tell" if c.survives is None else "yes" if c.survives else "no"
        known = c.gap == c.gap
        table.add_row(c.name, f"{c.gap:+.3f}" if known else "", f"{c.p:.3f}" if known else "", said, c.remark)
    return table


def _share(value: float) -> str:
    return f"{value:.1%}" if value == value else "unknown"


def _number_text(value: float) -> str:
    return "unknown" if value != value else "none" if value == float("inf") else f"{value:.3f}"


def write_figures(found: Audit, folder: Path) -> list[Path]:
    """Draw every view of an audit into PNG files, and return their paths."""
    plt = require("matplotlib.pyplot", extra="plot", caller="drawing figures")
    displays: dict[str, Any] = {
        "group-profiles": GroupProfilesDisplay.from_audit(found),
        "group-costs": GroupCostsDisplay.from_audit(found),
        "group-translations": GroupTranslationsDisplay.from_audit(found),
        "exchange": ExchangeDisplay.from_audit(found),
    }
    written = []
    for name, display in displays.items():
        display.plot()
        written.append(folder / f"{name}.png")
        display.figure_.savefig(written[-1], dpi=160)
        plt.close(display.figure_)
    return written
