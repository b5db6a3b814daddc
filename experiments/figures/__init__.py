"""The paper's figures, drawn again: one module each, with the cells that compute it and how it is shown."""

from experiments.cells import Part
from experiments.figures import (
    apriori,
    ares_stages,
    cost_vs_k,
    framework,
    gradient,
    importance,
    profiles,
    redundancy,
    rules_chart,
    user_studies,
)

PARTS: tuple[Part, ...] = tuple(
    module.PART
    for module in (
        framework,
        rules_chart,
        profiles,
        cost_vs_k,
        gradient,
        importance,
        ares_stages,
        redundancy,
        apriori,
        user_studies,
    )
)
