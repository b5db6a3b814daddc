"""How much lower a score might still go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from globece.search.choice import greedy
from globece.space import FloatArray

MANY = 10  # directions, of which nobody reads more


@dataclass(frozen=True, slots=True)
class Headroom:
    """How much lower a score might still go, estimated on the inputs that a search saw.

    Attributes
    ----------
    inputs
        Number of these inputs.
    pool
        Number of directions of which it is known what each of them costs.
    score
        Score of the directions found; for networks and black boxes an estimate from rougher rays.
    score_of_ten
        Score of ten directions of the pool, chosen greedily: what more directions of this pool would bring.
    gap
        Score divided by the mean lower bound over any change (1: it cannot be lower), on at most 512 inputs; ``None``
        where no bound is quickly known. :meth:`globece.Explanation.lower_bound` takes more time.
    """

    inputs: int
    pool: int
    score: float
    score_of_ten: float
    gap: float | None = None

    @classmethod
    def of(cls, pool: FloatArray, found: FloatArray, budget: float) -> Headroom:
        """Of the costs of a pool ``(directions, inputs)``, and of the directions found among them.

        Examples
        --------
        >>> costs = np.array([[1.0, 4.0], [4.0, 1.0], [3.0, 3.0]])
        >>> Headroom.of(costs, costs[:1], budget=10.0)
        Headroom(inputs=2, pool=3, score=2.5, score_of_ten=1.0, gap=None)
        """
        ten = np.minimum(pool[greedy(pool, budget, MANY)].min(axis=0), budget)
        now = np.minimum(found.min(axis=0), budget)
        return cls(pool.shape[1], len(pool), float(now.mean()), float(min(now.mean(), np.minimum(ten, now).mean())))

    @property
    def described(self) -> str:
        """In a sentence."""
        ten = f"the best {MANY} of {self.pool:,}" if self.pool > MANY else f"all {self.pool}"
        told = f"{ten} directions evaluated on {self.inputs:,} inputs would score {self.score_of_ten:.3g} on them, "
        told += f"those found {self.score:.3g}"
        if self.gap is not None:
            told += f"; even the cheapest change for each input would score at least {1 / self.gap:.1%} of that"
        return told
