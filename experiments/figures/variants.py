"""A generator that knows its model, beside the other frameworks: what `fig:GD` and `fig:FI` have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from experiments.cells import Cell, Data, Part, Shown
from experiments.figures.drawing import legend_below, name, new_figure
from experiments.figures.methods import draw_profiles, rows_of
from experiments.markdown import missing_rows, table
from experiments.models import KIND_NAMES
from paper.data import NAMES


@dataclass(frozen=True)
class Variant:
    """What a figure of this kind is about."""

    key: str
    title: str
    source: str
    label: str  # of the variant, in the legend
    kind: str  # of the models
    datasets: tuple[str, ...]
    paper: str  # what the paper says of it
    better: tuple[str, ...]  # where it finds it better than GLOBE-CE
    note: Callable[[str, Data], str] | None = None  # what else there is to say of a data set


def part(variant: Variant, compute: Callable[..., Data]) -> Part:
    """A part with a cell and a panel for each data set."""
    cells = tuple(Cell(f"{variant.key}/{d}", partial(compute, dataset=d), needs=(d,)) for d in variant.datasets)

    def shown(found: Mapping[str, Data]) -> Shown:
        made = show(variant, found)
        return Shown(made.text + missing_rows(whole, found), made.figures)

    whole = Part(variant.key, variant.title, variant.source, cells, shown)
    return whole


def show(variant: Variant, found: Mapping[str, Data]) -> Shown:
    """The panels, and the numbers at the ends of their lines."""
    have = {d: found[f"{variant.key}/{d}"] for d in variant.datasets if f"{variant.key}/{d}" in found}
    if not have:
        return Shown("")
    labels = {"variant": variant.label}
    body = [[NAMES[d], *row] for d, data in have.items() for row in rows_of(data, labels)]
    head = ["data", "framework", "coverage", "average cost", "score", "of all seeds"]
    notes = " ".join(variant.note(d, data) for d, data in have.items()) if variant.note else ""
    said = "; ".join(_seen(variant, d, data) for d, data in have.items())
    text = f"""{variant.paper} Here, on each data set's {KIND_NAMES[variant.kind]}: {said}. Of the frameworks that
sample, the run with the median score is shown (of two, the better). The score is the mean of the minimum costs, with no
recourse charged at the budget; lower is better. {notes}\n\n{table(head, body)}"""
    return Shown(text, {variant.key: _figure(variant, have, labels)})


def _seen(variant: Variant, dataset: str, data: Data) -> str:
    """Who does better by the score, which has coverage and cost together."""
    mine, sampled = data["variant"]["score"], data["globe-ce"]["score"]
    if f"{mine:.2f}" == f"{sampled:.2f}":
        return f"on {NAMES[dataset]} it has the same score as GLOBE-CE, {mine:.2f}"
    better = "better" if mine < sampled else "worse"
    as_there = dataset in variant.better and (", as in the paper" if mine < sampled else ", **unlike in the paper**")
    return f"on {NAMES[dataset]} its score is {mine:.2f}, {better} than GLOBE-CE's {sampled:.2f}{as_there or ''}"


def _figure(variant: Variant, have: Mapping[str, Data], labels: dict[str, str]) -> Any:
    figure, axes = new_figure(len(have), max(5.4 * len(have), 9.0), 4.2)
    for ax, (dataset, data) in zip(axes, have.items(), strict=True):
        draw_profiles(ax, data, labels)
        name(ax, f"{NAMES[dataset]}, {KIND_NAMES[variant.kind]}")
    legend_below(figure, axes[0])
    return figure
