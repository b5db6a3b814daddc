"""Whether a model's scores tell where its outcome changes, as far as synthetic rows show."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from globece.errors import InvalidDataError, ModelError
from globece.models.base import Model
from globece.models.probes import drawn

ROWS = 64  # rows that are asked about, and as many next to them
NEAR = 1e-4  # how far next to them, as a share of each number and of its spread
GRADUAL = 0.1  # share of them at least whose score differs from their neighbour's, where scores change gradually
DIGITS = 6  # of scores, next to how much they vary, that are not rounding
ENDS = 2  # scores at which they may still stay: the least and the most that a saturated model gives


class Guide(NamedTuple):
    """From which score on a row is favourable, and whether scores change gradually rather than in steps."""

    cut: float
    is_gradual: bool


def guide_of(model: Model, cut: float | None) -> Guide | None:
    """What the scores of a model tell; ``None`` where they contradict its outcomes, or there are none.

    ``cut`` is the score from which it should be favourable, where what the scores are says so.

    Found on synthetic rows, so that it does not depend on the rows that are explained.
    """
    space, rng = model.space, np.random.default_rng(2)
    rows = drawn(space, ROWS, rng)
    near = rows.copy()
    for f in space.scalars:
        x = rows[:, f.start]
        near[:, f.start] += NEAR * (np.abs(x) + np.ptp(x)) * rng.random(ROWS)
    try:
        found = model.scores(np.vstack([rows, near]))
        if found is None:
            return None
        labels = model.favourable(rows)
    except (ModelError, InvalidDataError):
        return None
    scores, moved = found[:ROWS], found[ROWS:]
    candidates = [cut] if cut is not None else [0.0, 0.5] if labels.any() and not labels.all() else []
    for start in candidates:
        if np.array_equal(labels, scores >= start):
            stays = scores == moved
            levels = np.unique(np.round(scores[stays] / (np.ptp(scores) or 1.0), DIGITS))
            return Guide(start, bool((~stays).mean() >= GRADUAL and len(levels) <= ENDS))
    return None
