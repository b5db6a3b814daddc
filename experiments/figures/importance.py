"""Directions sampled by feature importance, scaled, beside the other frameworks (`fig:FI`)."""

from __future__ import annotations

from experiments.cells import Data, Run
from experiments.figures.common import case_on
from experiments.figures.methods import compared
from experiments.figures.variants import Variant, part


def compute(run: Run, dataset: str) -> Data:
    """Every framework on a data set's trees, and sampling that draws important features more often."""
    from globece.directions import ImportanceSampling

    return compared(run, dataset, case_on(run, dataset, "xgb"), ImportanceSampling())


PART = part(
    Variant(
        key="importance",
        title="Directions by feature importance",
        source="fig:FI",
        label="by importance (n = 1)",
        kind="xgb",
        datasets=("compas", "default_credit"),
        paper="The paper finds sampling by importance better than GLOBE-CE on Default Credit, and marginally so on "
        "COMPAS.",
    ),
    compute,
)
