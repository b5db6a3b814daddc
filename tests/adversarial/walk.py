"""Where a row is at k and what that costs, in the user's own columns: the paper's definitions, written once more.

Nothing here comes from the library but the layout of a direction: which entries belong to which feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from globece.space import FeatureSpace
from tests.adversarial.asks import Ask
from tests.adversarial.tables import FRACTIONS, Column, Table

Rows = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Walk:
    """The table's rows, and how they move."""

    table: Table
    ask: Ask
    space: FeatureSpace  # for its layout only

    def codes(self, column: Column, values: NDArray[Any]) -> NDArray[np.int64]:
        """Place of each value among the categories of the feature; -1 for a missing ordinal value."""
        known = self.space[column.name].categories

        def place(value: Any) -> int:
            if value is None:
                return known.index(None) if None in known else -1
            if column.type == "onehot":
                return [str(c) for c in known].index(str(value))
            return next(
                i
                for i, c in enumerate(known)
                if c == value and isinstance(c, (bool, np.bool_)) == isinstance(value, (bool, np.bool_))
            )

        by_value = {repr(v): place(v) for v in {repr(v): v for v in values}.values()}
        return np.array([by_value[repr(v)] for v in values], dtype=np.int64)

    def levels(self, column: Column, codes: NDArray[np.int64]) -> NDArray[Any]:
        """The values at these places."""
        known = self.space[column.name].categories
        mine = [next((level for level in column.levels if level == c or str(level) == str(c)), c) for c in known]
        out = np.empty(len(codes), dtype=object)
        out[:] = [None if i < 0 else mine[i] for i in codes]
        return out

    def bounds(self, column: Column) -> tuple[float, float]:
        """Range of a number, or of the places of an ordinal value."""
        if column.is_number:
            return self.ask.range(column)
        if column.kind == "ordinal":
            places = np.flatnonzero(self.ask.permitted(column)[: len(column.levels)])
            return float(places.min()), float(places.max())
        return 0.0, 1.0  # a flag that is kept as a number

    def number(self, column: Column, values: NDArray[Any]) -> NDArray[np.float64]:
        """A feature as a number: itself, or its place in the order."""
        if column.is_number:
            return np.asarray(values, dtype=np.float64)
        if column.kind == "ordinal":
            codes = self.codes(column, values)
            return np.where(codes < 0, np.nan, codes)
        return values.astype(np.float64)

    def is_whole(self, column: Column) -> bool:
        """Whether it moves in whole steps."""
        return self.ask.whole[column.name] or not column.is_number

    def at(self, direction: NDArray[np.float64], rows: NDArray[np.int64], k: NDArray[np.float64]) -> Rows:
        """The values of these rows of the table at these k."""
        out: Rows = {}
        for c in self.table.columns:
            f = self.space[c.name]
            values, part = c.values[rows], direction[f.start : f.stop]
            if not part.any():
                out[c.name] = values
            elif f.stop - f.start > 1:
                codes = self.codes(c, values)
                target, switch = self.switches(c, part)
                out[c.name] = self.levels(c, np.where(k > switch[codes], target, codes))
            else:
                moved = self._travelled(c, self.number(c, values), float(part[0]), k)
                if c.is_number:
                    out[c.name] = moved
                elif c.kind == "ordinal":
                    out[c.name] = self.levels(c, np.where(np.isnan(moved), -1, moved).astype(np.int64))
                else:
                    out[c.name] = moved
        return out

    def _travelled(
        self, column: Column, x: NDArray[np.float64], step: float, k: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        low, high = self.bounds(column)
        way = k * step
        if self.is_whole(column):
            way = np.sign(step) * np.ceil(np.abs(way) - 0.5)
        start = np.maximum(x, low) if step > 0 else np.minimum(x, high)  # a row outside enters as soon as it moves
        led_away = x > high if step > 0 else x < low
        return np.where((k > 0) & ~led_away, np.clip(start + way, low, high), x)

    def switches(self, column: Column, part: NDArray[np.float64]) -> tuple[int, NDArray[np.float64]]:
        """Theorem 2: the category that a block moves to, and the k that each category must exceed to go there."""
        known = self.space[column.name].categories
        given = self.ask.constraints["permitted"].get(column.name)
        allowed = [given is None or any(c == g or str(c) == str(g) for g in given) for c in known]
        eligible = np.where(allowed, part, -np.inf)
        target = int(eligible.argmax())
        bounds = np.full(len(part), np.inf)
        if any(allowed):
            below = part < part[target]
            with np.errstate(over="ignore"):
                bounds[below] = 1.0 / (part[target] - part[below])
        return target, bounds

    def end(self, direction: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """For each row a k beyond which nothing new happens, or everything costs more than the budget."""
        last, endless = np.zeros(len(rows)), np.full(len(rows), np.inf)
        for c in self.table.columns:
            f = self.space[c.name]
            part = direction[f.start : f.stop]
            if not part.any():
                continue
            if f.stop - f.start > 1:
                bound = self.switches(c, part)[1][self.codes(c, c.values[rows])]
                last = np.maximum(last, np.where(np.isfinite(bound), bound, 0.0))
                continue
            x, (low, high) = self.number(c, c.values[rows]), self.bounds(c)
            edge = high if part[0] > 0 else low
            if np.isfinite(edge):
                room = np.nan_to_num(np.maximum((edge - x) * np.sign(part[0]), 0.0))
                last = np.maximum(last, (room + 0.5) / abs(part[0]) if self.is_whole(c) else room / abs(part[0]))
            else:
                rate = self.slope(c) * abs(part[0])
                endless = np.where(np.isnan(x), endless, np.minimum(endless, (self.ask.budget + 1.0) / rate))
        return np.where(np.isfinite(endless), endless, last) * (1 + 1e-9)

    # -- what it costs ------------------------------------------------------------------------------------------------

    def weight(self, name: str) -> float:
        return self.ask.price.weights.get(name, 1.0)

    def slope(self, column: Column) -> float:
        """Smallest cost per unit of a number."""
        knots, levels = self._scale(column)
        return float(self.weight(column.name) * (np.diff(levels) / np.diff(knots)).min())

    def _scale(self, column: Column) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if not column.is_number and column.kind == "ordinal":
            return np.array([0.0, 1.0]), np.array([0.0, 1.0])
        values = self.number(column, column.values)
        values = values[~np.isnan(values)]
        price = self.ask.price
        if price.kind == "bins":
            width = price.widths.get(column.name, float(values.max() - values.min()) / price.n)
            return np.array([0.0, width]), np.array([0.0, 1.0])
        tenths = np.quantile(values, np.linspace(0, 1, 11))
        knots = np.unique(tenths)
        middle = np.array([np.mean(np.flatnonzero(tenths == q)) for q in knots])
        return knots, 10.0 * (middle - middle[0]) / (middle[-1] - middle[0])

    def cost(self, before: Rows, after: Rows) -> NDArray[np.float64]:
        """Cost of the change of each row."""
        parts = []
        for c in self.table.columns:
            x, y = before[c.name], after[c.name]
            if self.space[c.name].is_block:
                parts.append(
                    self.weight(c.name) * np.array([repr(a) != repr(b) for a, b in zip(x, y, strict=True)], float)
                )
                continue
            a, b = self.number(c, x), self.number(c, y)
            moved = ~((a == b) | np.isnan(a))
            paid = np.zeros(len(a))
            if moved.any():
                knots, levels = self._scale(c)
                paid[moved] = self.weight(c.name) * _distance(knots, levels, a[moved], b[moved])
            parts.append(paid)
        together = np.array(parts)
        return np.asarray(together.sum(axis=0) if self.ask.price.norm == "l1" else np.sqrt((together**2).sum(axis=0)))

    def slack(self, before: Rows, after: Rows) -> NDArray[np.float64]:
        """How far a cost may be off because each column rounds its values to its own type."""
        total = np.zeros(len(next(iter(before.values()))))
        for c in self.table.columns:
            narrow = c.type in FRACTIONS and self.space[c.name].can_move
            if c.kind in ("number", "whole") and narrow and np.ptp(c.values[~c.missing]) > 0:
                a, b = (np.nan_to_num(v[c.name].astype(float)) for v in (before, after))
                knots, levels = self._scale(c)
                steep = float((np.diff(levels) / np.diff(knots)).max()) * self.weight(c.name)
                total += 2.0 * steep * np.maximum(c.ulp(a), c.ulp(b))  # a small move may round to none
        return total


def _distance(
    knots: NDArray[np.float64], levels: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]
) -> NDArray[np.float64]:
    if len(knots) == 2:
        return np.asarray(np.abs(b - a) * (levels[1] - levels[0]) / (knots[1] - knots[0]))

    def place(v: NDArray[np.float64]) -> NDArray[np.float64]:
        slope = np.diff(levels) / np.diff(knots)
        inside = np.interp(v, knots, levels)
        return np.asarray(inside + slope[0] * np.minimum(v - knots[0], 0) + slope[-1] * np.maximum(v - knots[-1], 0))

    return np.abs(place(b) - place(a))
