"""Judging chains: what they add to the directions that are there already, on the first inputs of an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from globece.case.affected import Affected
from globece.case.ordering import Sample, content_order
from globece.case.scaling import scale
from globece.directions.chains import Chain, as_matrix
from globece.models.base import Model
from globece.progress import Monitor
from globece.space import FloatArray, IntArray


@dataclass
class Evaluator:
    """Judges chains by what they add to the directions that are there already, on the first inputs of an order.

    Attributes
    ----------
    problem
        What there is to explain, its inputs in the order in which they are used.
    best
        What each input pays under the other directions; the budget where there is no recourse.
    model
        The model that is asked, which may be a rougher one.
    monitor
        Told of progress, and asked whether to stop.
    spent, seen
        Rays followed and chains judged so far.
    rays, stage
        Rays that there are for all stages together, and what this one is called: for reports of progress.
    proven
        Kinds of moves that are tried whatever the ranking says: good chains have them.
    known
        What chains cost the first inputs, as many as were asked about.
    capped
        The same, capped by what each input pays under the other directions.
    sample
        How the order of the inputs was drawn, unless each beginning of it stands for all as it is.
    parts
        Parts of the problem that were asked about, by their first and last input.
    """

    problem: Affected
    best: FloatArray
    model: Model
    monitor: Monitor
    spent: float = 0.0
    seen: int = 0
    rays: int = 0
    stage: str = "climbing"
    proven: frozenset[tuple[int, int, float]] = frozenset()
    known: dict[Chain, FloatArray] = field(default_factory=dict)
    capped: dict[Chain, FloatArray] = field(default_factory=dict)
    sample: Sample | None = None
    parts: dict[tuple[int, int], Affected] = field(default_factory=dict, repr=False)

    def against(self, best: FloatArray) -> None:
        """Judge chains by what they add to other directions, under which each input pays ``best``."""
        self.best, self.capped = best, {}

    def report(self, done: bool = False) -> None:
        """Say how far the search is."""
        self.monitor(self.stage, self.rays if done else min(int(self.spent), self.rays), self.rays)

    def costs(self, chains: Sequence[Chain], n_rows: int) -> FloatArray:
        """What the first inputs pay with each chain in addition to the other directions; no ray is followed twice.

        A ray is followed no further than an input pays under the other directions.
        """
        budget, caps = self.problem.budget, self.best[:n_rows]
        alone = bool((caps >= budget).all())
        found = self.known if alone else self.capped
        short: dict[int, list[Chain]] = {}
        for chain in dict.fromkeys(chains):
            if not alone and len(self.known.get(chain, ())) > len(found.get(chain, ())):
                found[chain] = np.minimum(self.known[chain], self.best[: len(self.known[chain])])
            have = len(found.get(chain, ()))
            if have < n_rows:
                short.setdefault(have, []).append(chain)
        for have, some in short.items():
            part = self._part(have, n_rows)
            within = None if alone else caps[have:]
            costs = scale(part, as_matrix(some, self.problem.cost), model=self.model, within=within).cost
            self.spent += costs.size
            self.seen += len(some) if not have else 0
            for chain, cost in zip(some, np.minimum(costs, caps[have:]), strict=True):
                found[chain] = np.concatenate([found[chain], cost]) if have else cost
        return np.array([found[chain][:n_rows] for chain in chains]).reshape(len(chains), n_rows)

    def _part(self, first: int, last: int) -> Affected:
        """The problem with some of its inputs, which are the same few parts again and again."""
        if (first, last) not in self.parts:
            self.parts[first, last] = replace(self.problem, inputs=self.problem.inputs[first:last])
        return self.parts[first, last]

    def closely(self, n_rows: int) -> dict[Chain, FloatArray]:
        """What chains cost the first inputs, of those that so many inputs were asked about, or more, at most.

        Where a ray was not followed to its end that is the budget.
        """
        found = {chain: cost[:n_rows] for chain, cost in self.known.items() if len(cost) >= n_rows}
        caps = self.best[:n_rows]
        for chain, cost in self.capped.items():
            if len(cost) >= n_rows and chain not in found:
                found[chain] = np.where(cost[:n_rows] < caps, cost[:n_rows], self.problem.budget)
        return found

    def scores(self, chains: Sequence[Chain], n_rows: int) -> FloatArray:
        """Mean of what inputs pay with each chain and the other directions, estimated by the first ones."""
        return self.mean(self.costs(chains, n_rows))

    def mean(self, values: FloatArray) -> FloatArray:
        """The mean over all inputs, estimated by values of the first ones along the last axis."""
        return np.asarray(values.mean(axis=-1)) if self.sample is None else self.sample.mean(values)


def in_order(problem: Affected, salt: int) -> tuple[Affected, IntArray]:
    """The problem with its inputs in an order that depends on their content and the salt alone."""
    order = content_order(problem.inputs, salt)
    return replace(problem, inputs=np.ascontiguousarray(problem.inputs[order])), order
