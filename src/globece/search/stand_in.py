"""A stand-in for a black box: trees fitted to its answers, along which a ray costs no call of the model.

A search of a black box spends its time in the user's model, mostly on chains that are not worth it, which a rough copy
shows just as well. So the copy is searched first, fitted again with the model's answers along the chains found there,
and searched again. The model itself judges what comes of it, and the search climbs on from there with fewer rays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from globece import rays
from globece.case.affected import Affected
from globece.case.scaling import scale
from globece.directions.chains import Chain, as_matrix
from globece.errors import ModelError
from globece.models.base import Model
from globece.models.inputs import identity
from globece.models.probes import drawn
from globece.models.trees.ensemble import TreeEnsemble
from globece.space import BoolArray, FloatArray

LEAST_INPUTS = 500  # with fewer, fitting takes as many rows as it saves
WIDEST = 400  # encoded columns
ROWS = 3000  # rows that the first trees are fitted to
LABELLED = 500  # rows whose outcome shows at which score it changes
SEPARATED = 0.99  # share of them that a score must tell apart
CHAINS, INPUTS = 8, 150  # along so many chains and inputs the model is asked again,
SCALARS = (0.6, 0.85, 1.0, 1.2, 1.6)  # at these multiples of the k at which the trees flip
TREES, LEAVES = 150, 31


def can_stand_in(problem: Affected) -> bool:
    """Whether trees may stand in for the model: a black box with many affected inputs and not too many columns."""
    return (
        problem.model.may_stand_in
        and len(problem.inputs) >= LEAST_INPUTS
        and problem.space.width <= WIDEST
        and not bool(np.isinf(problem.inputs).any())
    )


@dataclass(eq=False)
class StandIn:
    """Trees that answer for a black box.

    Attributes
    ----------
    problem
        The inputs in question, with the black box.
    seed
        Where all randomness comes from.
    rows, values
        Rows that the model was asked about, and how far on the favourable side each is, squeezed into (-1, 1).
    centre, spread
        The score at which the outcome changes, and the usual distance from it; a spread of 0 for outcomes alone.
    """

    problem: Affected
    seed: int
    rows: FloatArray = field(init=False)
    values: FloatArray = field(init=False)
    centre: float = 0.0
    spread: float = 0.0

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.rows = self._mixed(rng)
        self._learn_scores(self.rows[:LABELLED])
        self.values = self._asked(self.rows)

    def fitted(self) -> Model | None:
        """The trees; ``None`` where they would know one outcome only."""
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits

        if not (self.values > 0.0).any() or not (self.values < 0.0).any():
            return None
        trees = HistGradientBoostingRegressor(
            max_iter=TREES, max_leaf_nodes=LEAVES, early_stopping=False, random_state=0
        )
        with threadpool_limits(1, user_api="openmp"):  # the same trees on any number of cores
            trees.fit(self.rows, self.values)
        try:
            columns = identity(self.problem.space.width)
            return TreeEnsemble.from_model(trees, self.problem.space, columns, favourable="above", threshold=0.0)
        except ModelError:
            return None

    def ask_along(self, chains: Sequence[Chain], trees: Model) -> None:
        """Ask the model about inputs on their way along some chains, near where the trees change their answer."""
        part = replace(self.problem, inputs=self.problem.inputs[:INPUTS])
        directions = as_matrix(chains[:CHAINS], part.cost)
        found = scale(part, directions, model=trees).scalar
        rows = [
            rays.positions(part.space, part.inputs[flips], delta, multiple * k[flips])
            for delta, k in zip(directions, found, strict=True)
            for multiple in SCALARS
            if (flips := np.isfinite(k)).any()
        ]
        if rows:
            new = np.unique(np.concatenate(rows), axis=0)
            self.rows, self.values = np.concatenate([self.rows, new]), np.concatenate([self.values, self._asked(new)])

    def _mixed(self, rng: np.random.Generator) -> FloatArray:
        """Inputs with some features as in other rows, or drawn anew."""
        inputs, space = self.problem.inputs, self.problem.space
        known = inputs if self.problem.favourable_rows is None else self.problem.favourable_rows
        out = inputs[rng.integers(len(inputs), size=ROWS)].copy()
        sources = (inputs, known if len(known) else inputs, drawn(space, ROWS, rng))
        others = [source[rng.integers(len(source), size=ROWS)] for source in sources]
        movable = [f for f in space.features if f.can_move]
        share = rng.choice([0.1, 0.3, 0.6], size=ROWS)
        for f in movable:
            takes, source = rng.random(ROWS) < share, rng.integers(len(sources), size=ROWS)
            for i, other in enumerate(others):
                mine = takes & (source == i)
                out[mine, f.start : f.stop] = other[mine, f.start : f.stop]
        return out

    def _learn_scores(self, rows: FloatArray) -> None:
        """Find the score at which the outcome changes, if the model has scores that say so."""
        labels, scores = self.problem.model.favourable(rows), self.problem.model.scores(rows)
        if scores is None or labels.all() or not labels.any():
            return
        order = np.argsort(scores)
        sides = labels[order]
        right = np.concatenate([[0], np.cumsum(~sides)]) + np.concatenate([np.cumsum(sides[::-1])[::-1], [0]])
        cut = int(right.argmax())
        if right[cut] >= SEPARATED * len(rows) and 0 < cut < len(rows):
            self.centre = float(scores[order[cut - 1 : cut + 1]].mean())
            self.spread = float(np.median(np.abs(scores - self.centre)))

    def _asked(self, rows: FloatArray) -> FloatArray:
        if not self.spread:
            return _signs(self.problem.model.favourable(rows))
        scores = self.problem.model.scores(rows)
        assert scores is not None
        return np.asarray(np.tanh((scores - self.centre) / self.spread))


def _signs(favourable: BoolArray) -> FloatArray:
    return np.where(favourable, 1.0, -1.0)
