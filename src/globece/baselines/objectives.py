"""Objectives of the optimisation: acc - lambda * cost, or the four terms of the original AReS.

Both have one form. Each triple has a worth to each input that it serves, and an input counts its best one; in addition,
a triple may have a fixed price. That is submodular. Worths are integers, in multiples of 1 / ``UNIT``, so that sums are
exact and do not depend on the order of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from globece.baselines.evaluate import Evaluated
from globece.baselines.itemsets import NO_ITEM
from globece.costs import CostModel
from globece.errors import InvalidParameterError, check_number, keep_checked
from globece.space import IntArray

UNIT = 2**24
LARGEST_WEIGHT = 1000.0


@dataclass(frozen=True, eq=False)
class Terms:
    """An objective over evaluated triples, as integers.

    Attributes
    ----------
    worth
        Worth of recourse to an input, in ``UNIT``, before its cost is subtracted.
    per_cost
        What is subtracted per unit of cost, in ``UNIT``.
    needs_flip
        Whether a triple serves only the inputs to which it gives recourse, or all that match its Ifs.
    fixed
        Contribution of each triple whatever it serves, in ``UNIT``; negative for a price.
    constant
        Added to every value.
    scale
        The objective is a sum divided by this.
    """

    worth: int
    per_cost: float
    needs_flip: bool
    fixed: IntArray
    constant: int
    scale: float


@runtime_checkable
class Objective(Protocol):
    """What the optimisation maximises."""

    def terms(self, evaluated: Evaluated, cost: CostModel, max_rules: int) -> Terms:
        """The objective over these triples."""
        ...


@dataclass(frozen=True, slots=True)
class AccuracyCost:
    """The appendix's objective ``acc(R) - lam * cost(R)``.

    Here ``cost(R)`` is the mean over all affected inputs of the cheapest recourse that R gives, with 0 for those
    without, so that the objective stays submodular. At ``lam = 1 / budget`` it orders rule sets exactly as the score
    does: ``1 - score / budget``.

    Parameters
    ----------
    lam
        Weight of a unit of cost against recourse for one input; from 0 (accuracy alone, as in the paper's experiments)
        to 1 / budget, beyond which recourse could be worth less than none.

    Examples
    --------
    >>> AccuracyCost(lam=0.1)
    AccuracyCost(lam=0.1)
    """

    lam: float = 0.0

    def __post_init__(self) -> None:
        keep_checked(self, lam=check_number("lam", self.lam))

    def terms(self, evaluated: Evaluated, cost: CostModel, max_rules: int) -> Terms:
        """The objective over these triples; see :class:`Objective`."""
        if self.lam * evaluated.budget > 1 + 1e-9:
            raise InvalidParameterError(
                f"lam must be at most 1 / budget = {1 / evaluated.budget:g}, or recourse could be worth less than "
                f"none; got {self.lam!r}"
            )
        fixed = np.zeros(len(evaluated), dtype=np.int64)
        return Terms(UNIT, self.lam * UNIT, True, fixed, 0, float(UNIT * max(evaluated.n, 1)))


@dataclass(frozen=True, slots=True)
class FourTerms:
    """The original objective of AReS: a weighted sum of four terms, of which all but *cover* are subtracted.

    Parameters
    ----------
    incorrect
        Weight of *incorrectrecourse*: inputs that match a triple and get no recourse from it, triple by triple.
    cover
        Weight of *cover*: inputs that match some triple.
    feature_cost
        Weight of *featurecost*: the cost model's weights of the features that each triple changes.
    feature_change
        Weight of *featurechange*: bins or ordinal steps moved, and 1 for a changed category, triple by triple.

    Examples
    --------
    >>> FourTerms().feature_cost  # the paper's experiments leave both cost terms out
    0.0
    """

    incorrect: float = 1.0
    cover: float = 1.0
    feature_cost: float = 0.0
    feature_change: float = 0.0

    def __post_init__(self) -> None:
        names = ("incorrect", "cover", "feature_cost", "feature_change")
        keep_checked(self, **{name: check_number(name, getattr(self, name), high=LARGEST_WEIGHT) for name in names})

    def terms(self, evaluated: Evaluated, cost: CostModel, max_rules: int) -> Terms:
        """The objective over these triples; see :class:`Objective`."""
        matched = [np.bitwise_count(evaluated.matches(part)).sum(axis=1, dtype=np.int64) for part in evaluated.chunks()]
        wrong = (np.concatenate(matched) if matched else np.empty(0, dtype=np.int64)) - evaluated.counts
        price, change = _pair_prices(evaluated, cost)
        pair = evaluated.triples.pair
        off = self.incorrect * wrong + self.feature_cost * price[pair] + self.feature_change * change[pair]
        # The upper bounds that keep each term from falling below zero, as in the original.
        most = self.incorrect * evaluated.n + self.feature_cost * price.max(initial=0.0)
        most += self.feature_change * change.max(initial=0.0)
        return Terms(
            worth=round(self.cover * UNIT),
            per_cost=0.0,
            needs_flip=False,
            fixed=-np.rint(off * UNIT).astype(np.int64),
            constant=round(most * max_rules * UNIT),
            scale=float(UNIT),
        )


def _pair_prices(evaluated: Evaluated, cost: CostModel) -> tuple[np.ndarray, np.ndarray]:
    """For each pair of Inner-If and Then the weights of the features that it changes, and how far it moves them."""
    ground, items = evaluated.ground, evaluated.ground.items
    weights = np.array([cost.weight(f) for f in items.space.features])
    block = np.array([f.is_block for f in items.space.features])
    change = ground.changes.items[ground.pair_change]
    changed = change != NO_ITEM
    feature = items.feature_of[change]
    price = np.where(changed, weights[feature], 0.0).sum(axis=1)
    inner = ground.inner.items[ground.pair_inner]
    far = np.where(changed, 1.0, 0.0)
    for column in inner.T:
        same = changed & (column != NO_ITEM)[:, None] & (items.feature_of[column][:, None] == feature) & ~block[feature]
        far = np.where(same, np.abs(change - column[:, None]), far)
    return price, far.sum(axis=1)
