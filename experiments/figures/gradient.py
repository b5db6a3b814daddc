"""Directions by gradient descent on a network, scaled, beside the other frameworks (`fig:GD`)."""

from __future__ import annotations

from experiments.cells import Data, Run
from experiments.figures.common import case_on
from experiments.figures.methods import compared
from experiments.figures.variants import Variant, part


def compute(run: Run, dataset: str) -> Data:
    """Every framework on a data set's network, and gradient descent from a few starts."""
    from globece.directions import GradientDescent

    on = case_on(run, dataset, "dnn")
    descent = GradientDescent(restarts=2, steps=5) if run.quick else GradientDescent()
    return compared(run, dataset, on, descent, select="scaled")


PART = part(
    Variant(
        key="gradient",
        title="Directions by gradient descent",
        source="fig:GD",
        label="gradient descent (n = 1)",
        kind="dnn",
        datasets=("german_credit", "heloc"),
        better=("heloc",),
        paper="The paper finds gradient descent marginally better than GLOBE-CE on HELOC and about as good on German "
        "Credit, where categories have no slope to follow. (What the descent found is judged after scaling, as its "
        "length was its own and not that of a fixed cost.)",
    ),
    compute,
)
