"""How many triples of a ground set are needed (`fig:coveragevsgroundset`), and RL-reduction (German Credit)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.cells import Cell, Data, Part, Run, Shown
from experiments.figures.common import case_on
from experiments.figures.drawing import from_nobody, name, new_figure
from experiments.markdown import missing_rows, percent, table
from paper.stages import REDUCTION, reduction

NAME = "redundancy"
SUPPORTS = (0.33, 0.26, 0.2)
ORDERS = 5  # random orders in which the triples are looked at
ENOUGH = 0.99  # of what the whole ground set covers


def compute(run: Run) -> Data:
    """Coverage of the first triples of ground sets in random orders, and the ground set with and without reduction."""
    on = case_on(run, "german_credit", "lr")
    supports = SUPPORTS[:1] if run.quick else SUPPORTS
    return {
        "curves": [_curve(on, support, 2 if run.quick else ORDERS) for support in supports],
        "reduction": reduction(on, REDUCTION[:1] if run.quick else REDUCTION),
    }


def _curve(on: Any, support: float, orders: int) -> Data:
    """Coverage of the first m triples, for m up to all of them: least, mean and most over the orders."""
    from globece import as_model
    from globece.baselines import AresSettings
    from globece.baselines.evaluate import covered, evaluate
    from globece.baselines.rule_sets import ground_set
    from globece.progress import Monitor

    values = on.space.pack(on.rows)
    ground = ground_set(on.space, values, ~on.affected, None, AresSettings(support=support))
    box = as_model(on.own, on.space, favourable=1, rows=on.rows)
    inputs = values[on.affected]
    made = evaluate(ground, ground.triples(np.arange(len(ground))), box, inputs, on.cost, 10.0, Monitor())
    sizes = np.unique(np.geomspace(1, len(ground), 40).round().astype(int))
    shares = np.empty((orders, len(sizes)))
    for i in range(orders):
        order = np.random.default_rng(i).permutation(len(ground))
        so_far, done = np.zeros(len(inputs), dtype=bool), 0
        for j, size in enumerate(sizes):
            so_far, done = so_far | covered(made, order[done:size]), size
            shares[i, j] = so_far.mean()
    mean = shares.mean(axis=0)
    return {
        "support": support,
        "triples": len(ground),
        "sizes": sizes.tolist(),
        "low": shares.min(axis=0).tolist(),
        "mean": mean.tolist(),
        "high": shares.max(axis=0).tolist(),
        "enough": int(sizes[np.argmax(mean >= ENOUGH * mean[-1])]),
    }


def show(found: Mapping[str, Data]) -> Shown:
    """The curves, and a table of what RL-reduction leaves."""
    if NAME not in found:
        return Shown(missing_rows(PART, found))
    data = found[NAME]
    said = "; ".join(
        f"at p = {c['support']:g} the whole set of {c['triples']:,} triples covers {percent(c['mean'][-1])}, and "
        f"{c['enough']:,} of them ({percent(c['enough'] / c['triples'])}) cover {ENOUGH:.0%} of that"
        for c in data["curves"]
    )
    same = all(row["same"] for row in data["reduction"])
    head = ["p", "itemsets", "after RL-reduction", "triples", "ground sets", "made in", "reduced in", "plain loop"]
    body = [
        [
            f"{r['support']:g}",
            f"{r['itemsets']:,}",
            f"{r['kept']:,}",
            f"{r['triples']:,}",
            "identical" if r["same"] else "**differ**",
            f"{r['full_s']:.3f} s",
            f"{r['reduced_s']:.3f} s",
            f"{r['loop_s']:.2f} s" if "loop_s" in r else "",
        ]
        for r in data["reduction"]
    ]
    text = f"""The paper shows that the accuracy of a ground set of German Credit saturates far before all of it has
been evaluated. Here, for logistic regression, with triples in random order (mean of several orders): {said}. The paper
also says that RL-reduction, which leaves out itemsets whose features occur together once, gives the same ground set;
here it {"does, at every support" if same else "**does not everywhere**"}. *Plain loop* is the appendix's iteration over
SD x RL x RL, where it ends soon.

""" + table(head, body)
    return Shown(text, {NAME: _figure(data["curves"])})


def _figure(curves: list[Data]) -> Any:
    from globece.plots.axes import LEGEND
    from globece.plots.style import PALETTE

    figure, (ax,) = new_figure(1, 6.6, 4.0)
    for i, c in enumerate(curves):
        ax.fill_between(c["sizes"], c["low"], c["high"], color=PALETTE[i], alpha=0.18, linewidth=0)
        ax.plot(
            c["sizes"],
            c["mean"],
            color=PALETTE[i],
            linewidth=2,
            label=f"p = {c['support']:g}: {c['triples']:,} triples",
        )
        ax.plot(c["sizes"][-1:], c["mean"][-1:], "o", color=PALETTE[i], markersize=6)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    from_nobody(ax, "accuracy (coverage) of the triples so far")
    name(ax, "German Credit: coverage of the first triples", x="triples evaluated, in random order")
    ax.legend(loc="lower right", **LEGEND)
    return figure


PART = Part(
    NAME,
    "Redundancy of the ground set",
    "fig:coveragevsgroundset",
    (Cell(NAME, compute, needs=("german_credit",)),),
    show,
)
