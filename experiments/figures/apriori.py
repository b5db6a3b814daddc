"""Itemsets that apriori finds at p = 0.1 (`fig:apriori`): how many of each length, on each data set."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from experiments.cells import Cell, Data, Part, Run, Shown
from experiments.figures.drawing import lines_across, name, new_figure
from experiments.markdown import missing_rows, table
from paper.data import DATASETS, NAMES, feature_space, split

KEY = "apriori"
SUPPORT, LONGEST = 0.1, 6  # the paper's p, and its longest itemsets
LIMIT = 10_000_000  # beyond which we stop counting
QUICK_LONGEST = 2


def compute(run: Run, dataset: str) -> Data:
    """Count frequent itemsets by length and by how frequent they are, over the training rows in 10 bins."""
    from globece.baselines.items import Items
    from globece.baselines.itemsets import frequent, item_bits

    space = feature_space(dataset)
    rows = space.pack(split(dataset)[0])
    items = Items.of(space, rows, bins=10)
    longest = QUICK_LONGEST if run.quick else LONGEST
    start = time.perf_counter()
    of_items = item_bits(items.codes(rows), len(items))
    found = frequent(of_items, items.feature_of, len(rows), support=SUPPORT, max_length=longest, limit=LIMIT)
    return {
        "rows": len(rows),
        "features": len(space.features),
        "items": len(items),
        "longest": longest,
        "by_length": np.bincount(found.lengths, minlength=longest + 1)[1:].tolist(),
        "seconds": time.perf_counter() - start,
    }


def show(found: Mapping[str, Data]) -> Shown:
    """How many itemsets each data set has, by length."""
    have = {d: found[f"{KEY}/{d}"] for d in DATASETS if f"{KEY}/{d}" in found}
    if not have:
        return Shown(missing_rows(PART, found))
    longest = max(data["longest"] for data in have.values())
    head = ["data", "rows", "features", "items", *(f"length {i + 1}" for i in range(longest)), "itemsets", "time"]
    body = [
        [
            NAMES[d],
            f"{data['rows']:,}",
            data["features"],
            data["items"],
            *(f"{n:,}" for n in data["by_length"]),
            f"{sum(data['by_length']):,}",
            f"{data['seconds']:.1f} s",
        ]
        for d, data in have.items()
    ]
    most = max(have, key=lambda d: sum(have[d]["by_length"]))
    least = min(have, key=lambda d: sum(have[d]["by_length"]))
    text = f"""The paper's figure shows what apriori returns at p = {SUPPORT:g}, for itemsets of at most {LONGEST}
features; its text has no numbers to compare with. Here the training rows, with continuous features in 10 bins, have
from {sum(have[least]["by_length"]):,} itemsets ({NAMES[least]}) to {sum(have[most]["by_length"]):,} ({NAMES[most]}).
AReS tries triples of them, which is why it cannot use so low a threshold on every data set.

""" + table(head, body)
    return Shown(text + missing_rows(PART, found), {KEY: _figure(have, longest)})


def _figure(have: Mapping[str, Data], longest: int) -> Any:
    from globece.plots.axes import LEGEND
    from globece.plots.style import PALETTE

    figure, (ax,) = new_figure(1, 6.6, 4.0)
    marks = ("o", "s", "^", "D")
    for i, (dataset, data) in enumerate(have.items()):
        style: dict[str, Any] = {"color": PALETTE[i], "marker": marks[i % len(marks)], "label": NAMES[dataset]}
        counts = np.array(data["by_length"], dtype=float)
        ax.plot(np.arange(len(counts)) + 1, np.where(counts > 0, counts, np.nan), linewidth=1.8, **style)
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.set_xticks(range(1, longest + 1))
    lines_across(ax)
    name(ax, f"Itemsets that {SUPPORT:.0%} of the rows have", x="features in the itemset", y="frequent itemsets")
    ax.legend(loc="upper left", **LEGEND)
    return figure


PART = Part(
    KEY,
    "Frequent itemsets",
    "fig:apriori",
    tuple(Cell(f"{KEY}/{d}", partial(compute, dataset=d), needs=(d,)) for d in DATASETS),
    show,
)
