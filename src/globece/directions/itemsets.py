"""Directions from what the favourable rows have in common (appendix, "Subsuming AReS")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from globece.case.affected import Affected
from globece.directions.constraints import as_directions, movable_features
from globece.directions.fixed import SWITCH
from globece.directions.protocol import LARGEST_POWER, check_asked, check_cost
from globece.directions.rows import favourable_rows, mean_row, settled
from globece.errors import InvalidParameterError, check_count, check_number, keep_checked, require
from globece.space import BoolArray, Feature, FloatArray

ROWS = 2000  # rows of each outcome that are looked at
MOST_ITEMSETS = 5000


@dataclass(frozen=True, slots=True)
class ItemsetSampling:
    """Sample directions towards categories and bins that often go together among the favourable rows.

    AReS finds them with apriori and makes a rule of each; here each becomes a direction, and those that the affected
    inputs lack most are drawn most often. Needs ``mlxtend``: ``pip install 'globece[itemsets]'``.

    Parameters
    ----------
    min_support
        Share of the favourable rows that must hold an itemset.
    max_length
        Most features in an itemset.
    n_bins
        Bins that a continuous feature is cut into.
    cost
        Nominal cost of each direction.
    power
        Shares of the cost are uniform numbers raised to this; 0 moves all of an itemset at once.

    Examples
    --------
    >>> import polars as pl
    >>> from globece import explain
    >>> X = pl.DataFrame({"home": ["rent", "rent", "own", "own"], "job": ["no", "yes", "no", "yes"]})
    >>> both = lambda X: ((X["home"] == "own") & (X["job"] == "yes")).to_numpy()
    >>> ex = explain(both, X, favourable=True, generator=ItemsetSampling(), rng=0)
    >>> ex.coverage, round(ex.average_cost, 3)
    (1.0, 1.333)
    """

    min_support: float = 0.1
    max_length: int = 3
    n_bins: int = 10
    cost: float = 2.0
    power: float = 1.0

    def __post_init__(self) -> None:
        keep_checked(
            self,
            min_support=check_number("min_support", self.min_support, open_low=True, high=1.0),
            max_length=check_count("max_length", self.max_length),
            n_bins=check_count("n_bins", self.n_bins, low=2, high=10_000),
            cost=check_cost(self.cost),
            power=check_number("power", self.power, high=LARGEST_POWER),
        )

    def propose(self, problem: Affected, n: int, rng: np.random.Generator) -> FloatArray:
        """Sample ``n`` directions; fewer where some turn out alike."""
        n = check_asked(problem, n, rng)
        movable_features(problem.space)
        items = _Items.of(problem, self.n_bins)
        sets = self._frequent(problem, items)
        held = items.held(settled(problem.inputs, ROWS))
        lacking = np.array([1.0 - held[:, list(s)].all(axis=1).mean() for _, s in sets])
        weights = lacking * [support for support, _ in sets]
        if not weights.any():  # everybody holds them all
            weights = np.array([support for support, _ in sets])
        drawn = rng.choice(len(sets), size=n, p=weights / weights.sum())
        wishes = np.zeros((len(sets), problem.space.width))
        for wish, (_, members) in zip(wishes, sets, strict=True):
            for item in members:
                wish[items.column[item]] = items.wish[item]
        shares = 1.0 - rng.random((n, problem.space.width))  # never 0
        return as_directions(problem, wishes[drawn] * shares**self.power, n, self.cost)

    def _frequent(self, problem: Affected, items: _Items) -> list[tuple[float, tuple[int, ...]]]:
        """Frequent itemsets with their support, in an order that does not depend on the rows'."""
        frequent = require("mlxtend.frequent_patterns", extra="itemsets", caller="ItemsetSampling")
        pandas = require("pandas", extra="itemsets", caller="ItemsetSampling")
        held = items.held(settled(favourable_rows(problem, "ItemsetSampling"), ROWS))
        found: Any = frequent.apriori(pandas.DataFrame(held), min_support=self.min_support, max_len=self.max_length)
        sets = [
            (float(s), tuple(sorted(map(int, i)))) for s, i in zip(found["support"], found["itemsets"], strict=True)
        ]
        moving = [(s, i) for s, i in sets if items.wish[list(i)].any()]
        if not moving:
            raise InvalidParameterError(
                f"min_support={self.min_support:g} leaves no itemset that anybody could move to; take a smaller one"
            )
        return sorted(moving, key=lambda pair: (-pair[0], pair[1]))[:MOST_ITEMSETS]


@dataclass(frozen=True, slots=True)
class _Items:
    """Categories and bins that somebody may move to."""

    features: tuple[Feature, ...]  # (items,)
    low: FloatArray  # (items,) a bin's ends, and for a category just around 1
    high: FloatArray
    column: Any  # (items,) encoded column
    wish: FloatArray  # (items,) how the affected inputs, on average, get there

    @classmethod
    def of(cls, problem: Affected, n_bins: int) -> _Items:
        mean = mean_row(problem.inputs)
        found: list[tuple[Feature, float, float, int, float]] = []
        for f in problem.space.movable:
            if f.is_block:
                found += [(f, 0.5, np.inf, f.start + int(c), SWITCH) for c in np.flatnonzero(f.permitted)]
                continue
            low, high = f.observed
            edges = np.arange(low, high + 2.0) - 0.5 if f.kind == "ordinal" else np.linspace(low, high, n_bins + 1)
            edges[0], edges[-1] = -np.inf, np.inf
            centres = np.clip(0.5 * (np.maximum(edges[:-1], low) + np.minimum(edges[1:], high)), f.low, f.high)
            for a, b, centre in zip(edges[:-1], edges[1:], centres, strict=True):
                there = a <= mean[f.start] < b
                away = float(centre - mean[f.start])
                found.append((f, a, b, f.start, 0.0 if there or f.sense * away < 0 else away))
        features, lows, highs, columns, wishes = zip(*found, strict=True)
        return cls(features, np.array(lows), np.array(highs), np.array(columns), np.array(wishes))

    def held(self, Z: FloatArray) -> BoolArray:
        """Which rows hold which items."""
        values = Z[:, self.column]
        return np.asarray((values >= self.low) & (values < self.high))
