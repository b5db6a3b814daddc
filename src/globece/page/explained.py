"""The explanation's part of a page: what it says first, its directions, its curves, its people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from globece import formatting, rays
from globece.explanation import Explanation
from globece.page import words
from globece.page.about import About
from globece.page.arrays import Page
from globece.page.people import people
from globece.page.series import Grid, histogram, largest_within, series
from globece.rules import ChartRow, RulesChart
from globece.space import Feature, FloatArray, IntArray

MOST_DIRECTIONS = 12  # drawn; of the others it is said how many there are
MOST_MOVES = 16  # features drawn for one direction
SCALARS = 200  # steps of the slider for k


def number(value: float) -> float | None:
    """A finite number, or ``None``: what it means is said where it is used."""
    return float(value) if np.isfinite(value) else None


def explained(
    page: Page, ex: Explanation, about: About, groups: Mapping[str, IntArray] | None = None
) -> dict[str, Any]:
    """An explanation as plain data with arrays.

    Parameters
    ----------
    page
        Where the arrays go.
    ex, about
        The explanation, and the words for it.
    groups
        Positions of each group's affected inputs, if groups are told apart.
    """
    grid = Grid.of(ex.best_costs, ex.budget)
    shown = min(ex.n_directions, MOST_DIRECTIONS)
    taken = ex.minimum_costs().direction
    edges, none = histogram(ex.best_costs, grid.end)[0], ex.n_without_recourse
    charts = [ex.rules_chart(i) for i in range(shown)]
    directions = [_direction(page, ex, i, charts[i], grid, about, taken, groups) for i in range(shown)]
    return {
        "n_rows": ex.n_rows,
        "n_affected": ex.n_affected,
        "n_unknown": ex.n_unknown,
        "n_covered": ex.n_covered,
        "coverage": ex.coverage,
        "average_cost": number(ex.average_cost),
        "score": number(ex.score),
        "budget": ex.budget,
        "n_directions": ex.n_directions,
        "grid": {
            "step": grid.step,
            "points": grid.points,
            "end": grid.end,
            "limits": page.array(grid.limits, "f64"),
        },
        "total": series(page, ex.best_costs, grid.limits),
        "directions": directions,
        "histogram": {
            "edges": edges.tolist(),
            "counts": [_counted(ex.best_costs[taken == i], edges) for i in range(shown)],
            "none": none,
        },
        "people": people(page, ex, about),
    }


def _counted(costs: FloatArray, edges: FloatArray) -> list[int]:
    return [int(n) for n in np.histogram(costs[np.isfinite(costs)], edges)[0]]


def _direction(
    page: Page, ex: Explanation, i: int, chart: RulesChart, grid: Grid, about: About, taken: IntArray,
    groups: Mapping[str, IntArray] | None,
) -> dict[str, Any]:  # fmt: skip
    mine = np.where(taken == i, ex.best_costs, np.inf)
    last = chart.rows[-1]
    return {
        "words": words.in_words(ex, i, chart, about),
        "coverage": last.coverage,
        "average_cost": number(last.cost),
        "alone": series(page, ex.costs[i], grid.limits),
        "takers": series(page, mine, grid.limits),
        "reach": page.array(largest_within(ex.scalars[i], ex.costs[i], grid.limits), "f64"),
        "by_k": _by_k(page, ex, i),
        "moves": _moves(page, ex, i, chart, grid, about),
        "more_moves": max(len(last.moves) - MOST_MOVES, 0),
        "rules": [_rule(ex, i, feature, about) for feature in _changed(ex, i, chart)],
        "chart": [_row(row, ex, about) for row in chart.rows if row.rules or row.new_coverage],
        "groups": [_share(name, members, taken == i) for name, members in (groups or {}).items()],
    }


def _by_k(page: Page, ex: Explanation, i: int) -> dict[str, Any]:
    """How many are covered up to each scalar, and what they pay: for the slider of k."""
    k, costs = ex.scalars[i], ex.costs[i]
    finite = np.isfinite(k)
    most = float(k[finite].max()) if finite.any() else 0.0
    at = most * np.arange(SCALARS + 1) / SCALARS
    order = np.argsort(k[finite], kind="stable")
    count = np.searchsorted(k[finite][order], at, side="right")
    count[-1] = int(finite.sum())  # the last step is the largest scalar, whatever rounding says
    total = np.concatenate([[0.0], np.cumsum(costs[finite][order])])[count]
    return {"most": most, "steps": SCALARS, "count": page.array(count, "u32"), "sum": page.array(total, "f64")}


def _moves(page: Page, ex: Explanation, i: int, chart: RulesChart, grid: Grid, about: About) -> list[dict[str, Any]]:
    found = []
    finite = np.isfinite(ex.scalars[i])
    k = np.where(finite, ex.scalars[i], 0.0)
    steps = dict((f.name, (f, step)) for f, step in rays.movers(ex.space, ex.directions[i]))
    for move in chart.rows[-1].moves[:MOST_MOVES]:
        f, step = steps[move.feature]
        x = ex.encoded.feature(f)
        there = rays.travel(f, x, step, k)
        moved = np.nan_to_num(np.abs(there - x), nan=0.0)
        within = largest_within(moved, ex.costs[i], grid.limits)
        found.append(
            {
                "feature": f.name,
                "label": about.label(f.name),
                "unit": about.unit(f.name) or ("steps" if move.steps else ""),
                "sign": 1 if step > 0 else -1,
                "whole": bool(f.whole or move.steps),
                "per_k": abs(step),
                "most": abs(move.amount),
                "cost": move.cost,
                "within": page.array(_never_less(within), "f32"),
            }
        )
    return found


def _never_less(values: FloatArray) -> np.ndarray[Any, Any]:
    """The values in single precision, never smaller than they are: "at most" stays true."""
    near = values.astype(np.float32)
    return np.where(near < values, np.nextafter(near, np.float32(np.inf)), near)


def _changed(ex: Explanation, i: int, chart: RulesChart) -> list[Feature]:
    seen = dict.fromkeys(rule.feature for rule in words.reached_rules(ex.space, ex.directions[i], chart))
    return [ex.space[name] for name in seen]


def _rule(ex: Explanation, i: int, feature: Feature, about: About) -> dict[str, Any]:
    """A block's switches: which category moves at which scalar, and where to."""
    (switch,) = (s for s in rays.switches(ex.space, ex.directions[i]) if s.feature == feature)
    finite = np.flatnonzero(np.isfinite(switch.bounds))
    order = finite[np.argsort(switch.bounds[finite], kind="stable")]
    codes = ex.encoded.feature(feature).astype(np.int64)
    count = np.bincount(codes, minlength=feature.width)
    return {
        "feature": feature.name,
        "label": about.label(feature.name),
        "to": about.value(feature, feature.categories[switch.target]),
        "cost": ex.cost.weight(feature),
        "from": [
            {"value": about.value(feature, feature.categories[c]), "k": float(switch.bounds[c]), "n": int(count[c])}
            for c in order
            if count[c]
        ],
    }


def _row(row: ChartRow, ex: Explanation, about: About) -> dict[str, Any]:
    lines = []
    for rule in row.rules:
        lines.append([about.label(rule.feature), words.rule_line(about, ex.space[rule.feature], rule), False])
    named = row.lines[len(row.rules) :]
    moves = {move.feature: move for move in row.moves}
    for line in named:
        move = moves.get(line.feature)
        if move is None:
            lines.append([line.feature, line.text, True])
        else:
            sign = "\N{MINUS SIGN}" if move.amount < 0 else "+"
            lines.append([about.label(move.feature), f"{sign}{words.amount(about, move)} at most", line.aside])
    return {
        "lines": lines,
        "new_coverage": row.new_coverage,
        "new_cost": number(row.new_cost),
        "coverage": row.coverage,
        "cost": number(row.cost),
    }


def _share(name: str, members: IntArray, takers: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {"name": name, "n": len(members), "count": int(takers[members].sum())}


def headline(ex: Explanation, about: About) -> str:
    """The answer in one sentence, and what the average cost is in a feature's own units."""
    if ex.is_empty:
        return f"Nobody is affected: all {ex.n_rows:,} have the favourable outcome."
    n = ex.n_affected
    if not ex.n_covered:
        return f"No way out was found within the budget of {ex.budget:g} for any of the {n:,} {about.people} affected."
    what = "One change covers" if ex.n_directions == 1 else f"{_count(ex.n_directions)} changes cover"
    share = formatting.share(ex.coverage)
    worth = words.worth(ex, about, ex.average_cost)
    average = f"{formatting.cost(ex.average_cost, 2)}{f', {worth}' if worth else ''}"
    return f"{what} {share} of the {n:,} {about.people} affected, at an average cost of {average}."


def _count(n: int) -> str:
    small: Sequence[str] = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
    return small[n] if n < len(small) else f"{n:,}"
