"""What the figures share: the model that a run is about, and costs as JSON holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.cells import Run
from experiments.models import case
from paper.cases import Case

MOST = 600  # costs that are kept of one run
# -- the model ---------------------------------------------------------------------------------------------------------


def case_on(run: Run, dataset: str, kind: str, *, categorical: bool = False) -> Case:
    """One of the run's models; ``categorical`` holds the continuous features still, as the paper does for German."""
    on = case(run, dataset, kind)
    return on.categorical() if categorical else on


# -- costs -------------------------------------------------------------------------------------------------------------


def as_list(values: Any) -> list[Any]:
    """Numbers as JSON holds them: ``None`` for what is not finite, and no more digits than a figure shows."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim > 1:
        return [as_list(row) for row in found]
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in found]


def thinned(costs: Any) -> list[Any]:
    """Costs from the least to the dearest, and of many some that stand for all: enough for a line of a figure."""
    costs = np.sort(np.asarray(costs, dtype=np.float64))
    if len(costs) > MOST:
        costs = costs[np.linspace(0, len(costs) - 1, MOST).round().astype(int)]
    return as_list(costs)


def as_array(values: Sequence[float | None]) -> np.ndarray[Any, Any]:
    """The numbers again, ``inf`` where there was none."""
    return np.array([np.inf if v is None else v for v in values], dtype=np.float64)


def profile(costs: Any) -> tuple[Any, Any, Any]:
    """Limit on cost, coverage and average cost wherever one more input is covered, from nobody on."""
    costs = np.asarray(costs, dtype=np.float64)
    paid = np.sort(costs[np.isfinite(costs)])
    limit, first = np.unique(paid, return_index=True)
    count = np.append(first[1:], paid.size) if paid.size else first
    average = np.cumsum(paid)[count - 1] / count if paid.size else np.zeros(0)
    return (
        np.append(0.0, limit),
        np.append(0.0, count / max(costs.size, 1)),
        np.append(average[:1] if paid.size else 0.0, average),
    )
