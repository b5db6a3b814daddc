"""Coverage-cost profiles and minimum costs (`fig:globegermanacccosthist`), on German Credit and the other data sets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from experiments.cells import Cell, Data, Part, Run, Shown
from experiments.figures.common import as_array, case_on, profile, thinned
from experiments.figures.drawing import from_nobody, in_shares, legend_below, new_figure
from experiments.figures.drawing import name as write
from experiments.figures.methods import as_the_paper, by_rules, searched
from experiments.markdown import missing_rows, percent, table
from experiments.methods import measures
from paper.data import NAMES
from paper.protocol import BUDGET, sampling

KEY = "profiles"
DATASETS = ("german_credit", "compas", "heloc", "default_credit")
SCALARS = 5  # as many as the paper's chart has rows
LABELS = {
    "sampled": "sampled direction, every input its own k",
    "five": f"the same with {SCALARS} scalars",
    "ares": "Fast AReS",
    "searched": "searched direction",
}
COLOURS = {"sampled": "#0072B2", "five": "#E69F00", "ares": "#009E73", "searched": "#222222"}
DASHES: dict[str, Any] = {"sampled": "-", "five": (0, (3, 1.5)), "ares": "-", "searched": (0, (1, 1))}

TEXT = f"""The paper draws them for German Credit's categorical features: the profile and the minimum costs of one
direction, of {SCALARS} equally spaced scalars of it, and of AReS, and finds the direction superior. Here they are of
each data set's XGBoost model: the best at k = 1 of the paper's samples, and the direction that the search of this
library finds. A direction that moves continuous features has no list of scalars to choose from.

"""


def compute(run: Run, dataset: str) -> Data:
    """One direction on a data set's trees, sampled as the paper does or searched; a few scalars of it; Fast AReS."""
    on = case_on(run, dataset, "xgb", categorical=dataset == "german_credit")
    ex = as_the_paper(run, on, sampling(dataset, 0), 1)
    ways = {
        "sampled": ex.best_costs,
        "five": _with_few(ex),
        "ares": by_rules(run, dataset, on).best_costs,
        "searched": searched(run, on).best_costs,
    }
    return {name: {**measures(costs), "costs": thinned(costs)} for name, costs in ways.items() if costs is not None}


def _with_few(ex: Any) -> Any:
    """Minimum costs if only a few of the direction's breakpoints may be taken, equally spaced; none without any."""
    from globece import rays

    bounds = rays.breakpoints(ex.space, ex.directions[0])
    bounds = bounds[bounds < np.max(ex.scalars[0][np.isfinite(ex.scalars[0])], initial=0.0)]
    if len(bounds) < 2 or _moves_numbers(ex):
        return None
    ends = np.unique(np.linspace(0, len(bounds) - 1, min(SCALARS, len(bounds))).round().astype(int))
    raw = ex.arrays(np.nextafter(bounds[ends], np.inf))  # a category switches beyond its bound, not at it
    return np.where(raw.predictions[0] & (raw.costs[0] <= BUDGET), raw.costs[0], np.inf).min(axis=0)


def _moves_numbers(ex: Any) -> bool:
    """Whether a direction moves a continuous feature, so that its breakpoints do not say all."""
    from globece import rays

    return any(True for _ in rays.movers(ex.space, ex.directions[0]))


def show(found: Mapping[str, Data]) -> Shown:
    """For each data set a profile and a histogram."""
    have = {d: found[f"{KEY}/{d}"] for d in DATASETS if f"{KEY}/{d}" in found}
    text = TEXT if have else ""
    text += _seen(have) if have else ""
    figures = {f"{KEY}-{d.replace('_', '-')}": _figure(NAMES[d], data) for d, data in have.items()}
    return Shown(text + missing_rows(PART, found), figures)


def _seen(have: Mapping[str, Data]) -> str:
    """Where the directions do better than rules by the score, and the numbers of all of them."""
    said = [
        f"the {name} direction has a better score than Fast AReS on "
        f"{sum(data[name]['score'] < data['ares']['score'] for data in have.values())} of {len(have)} data sets"
        for name in ("sampled", "searched")
    ]
    body = [
        [
            NAMES[d],
            LABELS[name],
            percent(data[name]["coverage"]),
            "none" if data[name]["cost"] is None else f"{data[name]['cost']:.2f}",
            f"{data[name]['score']:.2f}",
        ]
        for d, data in have.items()
        for name in LABELS
        if name in data
    ]
    listed = table(["data", "", "coverage", "average cost", "score"], body)
    return f"Seen here: {'; '.join(said)}.\n\n{listed}"


def _figure(title: str, data: Data) -> Any:
    figure, (left, right) = new_figure(2, 11.0, 3.7)
    costs = {name: as_array(data[name]["costs"]) for name in LABELS if name in data}
    last = 0.1
    for paid in costs.values():
        last = max(last, float(paid[np.isfinite(paid)].max(initial=0.0)))
    for name, paid in costs.items():
        limit, coverage, _ = profile(paid)
        style = {"color": COLOURS[name], "linestyle": DASHES[name], "linewidth": 2, "label": LABELS[name]}
        # on to the end, where nobody is added any more
        left.step([*limit, last * 1.06], [*coverage, coverage[-1]], where="post", **style)
    left.set_xlim(0, last * 1.06)
    from_nobody(left)
    write(left, f"{title}: coverage-cost profile", x="limit on cost: the most that anybody pays")
    _histogram(right, costs, last)
    legend_below(figure, left)
    return figure


def _histogram(ax: Any, costs: Mapping[str, Any], last: float) -> None:
    """Bars side by side, and at the end those without recourse."""
    from globece.plots.axes import round_width

    whole = all(np.allclose(c[np.isfinite(c)], np.rint(c[np.isfinite(c)])) for c in costs.values())
    width = 1.0 if whole else round_width(last / 10)
    edges = (np.arange(int(last / width + 0.5) + 2) - 0.5) * width
    edges = edges[edges >= -width / 2]
    bar = 0.86 * width / len(costs)
    middle = edges[:-1] + width / 2
    nobody = middle[-1] + 1.4 * width
    for i, (name, paid) in enumerate(costs.items()):
        share = np.histogram(paid[np.isfinite(paid)], edges)[0] / max(len(paid), 1)
        at = (i - (len(costs) - 1) / 2) * bar
        ax.bar(middle + at, share, bar * 0.94, color=COLOURS[name], linewidth=0)
        none = float(np.isinf(paid).mean())
        ax.bar([nobody + at], [none], bar * 0.94, facecolor="white", edgecolor=COLOURS[name], hatch="/////")
    ticks = middle[:: max(1, len(middle) // 8)]
    ax.set_xticks([*ticks, nobody], [*(f"{t:g}" for t in ticks), "no\nrecourse"])
    in_shares(ax, "share of the affected inputs")
    write(ax, "Minimum costs", x="minimum cost of recourse")


PART = Part(
    KEY,
    "Coverage-cost profiles and minimum costs",
    "fig:globegermanacccosthist",
    tuple(Cell(f"{KEY}/{d}", partial(compute, dataset=d), needs=(d,)) for d in DATASETS),
    show,
)
