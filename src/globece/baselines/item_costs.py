"""What each item costs each input: a table of costs for numbers, and the code of the input's category for the rest.

A change of category costs its weight whoever makes it, so that the 900 categories of a feature need no table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from globece.baselines.items import Items
from globece.costs import CostModel
from globece.space import FloatArray, IntArray


class ItemCosts(NamedTuple):
    """Cost of each item for each input, before the norm.

    Attributes
    ----------
    place
        Row of the table for an item of a number; -1 for a category.
    table
        Costs of the former by input.
    weight
        What a category costs the inputs that do not have it.
    feature
        Each item's feature.
    codes
        The item that each input has of each feature.
    """

    place: IntArray  # (items,)
    table: FloatArray  # (items of numbers, inputs)
    weight: FloatArray  # (items,)
    feature: IntArray  # (items,)
    codes: IntArray  # (inputs, features)

    @classmethod
    def of(cls, items: Items, used: IntArray, cost: CostModel, values: FloatArray, codes: IntArray) -> ItemCosts:
        """Costs of the items that are used; other items of numbers cost nothing.

        Parameters
        ----------
        items, used
            The items, and which of them occur in a change.
        cost
            What changes cost.
        values, codes
            The inputs, with one value per feature, and the items that they have.
        """
        features = [items.space.features[i] for i in items.feature_of]
        numbers = [int(item) for item in used if not features[item].is_block]
        place = np.full(len(items), -1, dtype=np.int64)
        place[numbers] = np.arange(len(numbers))
        table = np.empty((len(numbers), len(values)))
        for i, item in enumerate(numbers):
            table[i] = items.cost(cost, item, values, codes)
        weight = np.array([cost.weight(f) if f.is_block else 0.0 for f in features])
        return cls(place, table, weight, items.feature_of, codes)

    def of_item(self, item: int) -> FloatArray:
        """What the item costs each input."""
        if self.place[item] >= 0:
            return np.asarray(self.table[self.place[item]])
        return np.asarray(self.weight[item] * (self.codes[:, self.feature[item]] != item))
