"""A direction in words: If/Then rules (Theorem 1), their order (Theorem 2), and the cumulative rules chart.

A block of a direction is a set of rules with one Then: "If A or B, Then C". As k grows the Ifs are added one after the
other, so a direction is a sequence of rules. The chart of that sequence, with the coverage and cost that each row adds,
is the paper's Cumulative Rules Chart (`tab:globecegerman`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from globece import formatting, rays
from globece.case.recourse import mean_cost
from globece.compact import Rows
from globece.costs import CostModel
from globece.errors import (
    check_choice,
    check_count,
    check_instance,
    check_matrix,
    check_number,
    check_numbers,
    wrong,
)
from globece.space import Feature, FeatureSpace, FloatArray

MOST_ROWS = 10_000
MOST_MOVES = 8  # features that one row of a chart lists; of the others it says what they cost at most
SPACINGS = ("equal", "greedy")
CHART_HEAD = ("Feature", "New rule, and what moves", "New inputs", "Cost", "All inputs", "Cost")


@dataclass(frozen=True, slots=True)
class Rule:
    """If a feature has one of ``sources``, Then it becomes ``target``.

    Attributes
    ----------
    feature
        The feature's name.
    sources
        The categories that switch, in the order in which they do.
    target
        The one category that they switch to.
    others
        Every other category of the feature that does not switch, the target included: the "Not" form.
    k
        The scalar that must be exceeded for all of the sources to switch.
    """

    feature: str
    sources: tuple[str, ...]
    target: str
    others: tuple[str, ...]
    k: float

    @property
    def negated(self) -> bool:
        """Whether "If Not ..." is the shorter way to say it."""
        return len(self.others) < len(self.sources)

    @property
    def condition(self) -> str:
        """The If."""
        return self._negation if self.negated else " or ".join(self.sources)

    @property
    def _negation(self) -> str:
        listed = " or ".join(self.others)
        return f"Not ({listed})" if len(self.others) > 1 else f"Not {listed}"

    @property
    def alternative(self) -> str:
        """The "Not" form in full, shorter or not."""
        return f"If {self._negation}, Then {self.target}"

    def __str__(self) -> str:
        """The rule as a sentence."""
        return f"If {self.condition}, Then {self.target}"


@dataclass(frozen=True, slots=True)
class Addition:
    """What a direction adds to a continuous or ordinal feature per unit of k, in the feature's units."""

    feature: str
    per_unit: float
    steps: bool  # an ordinal feature moves by steps of its order

    def __str__(self) -> str:
        """As "+3 per unit"."""
        return f"{self.per_unit:+.4g}{' step(s)' if self.steps else ''} per unit"


@dataclass(frozen=True, slots=True)
class Move:
    """The most that a continuous or ordinal feature moves, over all inputs covered so far, in the feature's units.

    Attributes
    ----------
    feature
        The feature's name.
    amount
        The largest change, with its sign.
    cost
        The most that such a change costs.
    steps
        Whether the amount counts steps of an ordinal feature's order.
    """

    feature: str
    amount: float
    cost: float
    steps: bool

    def __str__(self) -> str:
        """As "-21 at most"."""
        amount = formatting.signed_at_most(self.amount)
        if self.steps:
            amount += " step" if abs(self.amount) == 1.0 else " steps"
        return f"{amount} at most"


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One line of a row: a rule, or how far a feature moves (an aside if the row has a rule)."""

    feature: str
    text: str
    aside: bool = False


def rules_at(space: FeatureSpace, delta: FloatArray, k: float = np.inf) -> tuple[Rule, ...]:
    """Rules that a direction induces at scalar ``k``: one per feature, ordered by the k at which they are complete.

    Examples
    --------
    The paper's example (`tab:categoricalscaling`), one feature with the values 1 to 4:

    >>> import numpy as np
    >>> names = ["v = 1", "v = 2", "v = 3", "v = 4"]
    >>> space = FeatureSpace.from_matrix(np.eye(4), columns=names, groups={"v": names})
    >>> delta = np.array([0, -1, 1, 1 / 2])
    >>> [str(rules_at(space, delta, k)[0]) for k in (0.6, 1.5)]
    ['If 2, Then 3', 'If 2 or 1, Then 3']
    >>> str(rules_at(space, delta)[0])
    'If Not 3, Then 3'
    """
    return rules_between(space, _checked(space, delta), 0.0, check_number("k", k, infinite=True))


def _checked(space: FeatureSpace, delta: FloatArray) -> FloatArray:
    """A direction of this space, as a vector."""
    check_instance("space", space, FeatureSpace, "see FeatureSpace.from_frame")
    allowed = f"a direction of {space.width} numbers"
    found = check_numbers("delta", delta, allowed)
    if len(found) != space.width:
        raise wrong("delta", allowed, delta)
    return np.asarray(found)


def additions(space: FeatureSpace, delta: FloatArray) -> tuple[Addition, ...]:
    """What a direction adds to its continuous and ordinal features, per unit of k."""
    return tuple(Addition(f.name, step, f.kind == "ordinal") for f, step in rays.movers(space, delta))


def _rule(feature: Feature, sources: Sequence[int], target: int, k: float) -> Rule:
    labels = [feature.label(c) for c in feature.categories]
    rest = [i for i in range(len(labels)) if i not in sources]
    return Rule(feature.name, tuple(labels[i] for i in sources), labels[target], tuple(labels[i] for i in rest), k)


@dataclass(frozen=True, slots=True)
class ChartRow:
    """One row of a cumulative rules chart.

    Attributes
    ----------
    rules
        Rules that this row adds to those above it.
    low, high
        The inputs that are new in this row flip at a scalar in ``(low, high]``.
    reach
        Largest minimum scalar of the inputs covered so far; 0 where there are none.
    new_coverage, new_cost
        Share of the affected inputs that are new in this row, and their average cost (``inf`` if there are none).
    coverage, cost
        The same for all inputs covered up to this row.
    moves
        How far continuous and ordinal features move at most for all inputs covered up to this row, the most expensive
        first.
    """

    rules: tuple[Rule, ...]
    low: float
    high: float
    reach: float
    new_coverage: float
    new_cost: float
    coverage: float
    cost: float
    moves: tuple[Move, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """Features whose rules this row adds."""
        return tuple(rule.feature for rule in self.rules)

    @property
    def lines(self) -> tuple[RuleLine, ...]:
        """The row in words: its rules, then what else moves and by how much at most; the same in every view."""
        lines = [RuleLine(rule.feature, str(rule)) for rule in self.rules]
        aside, shown = bool(lines), self.moves[: MOST_MOVES if len(self.moves) > MOST_MOVES + 1 else None]
        lines += [RuleLine(move.feature, str(move), aside) for move in shown]
        if rest := self.moves[len(shown) :]:
            most = max(move.cost for move in rest)
            text = f"changes of cost {formatting.at_most(most)} at most in each"
            lines.append(RuleLine(f"{len(rest)} more features", text, True))
        return tuple(lines) or (RuleLine("(none)", "nobody needs a rule", True),)


@dataclass(frozen=True, slots=True)
class RulesChart:
    """A direction as rules that add up from top to bottom, with the coverage and cost that each row brings."""

    rows: tuple[ChartRow, ...]
    additions: tuple[Addition, ...]
    spacing: str

    def records(self) -> list[dict[str, Any]]:
        """One dictionary per row, ready for a table of any kind."""
        return [
            {
                "features": ", ".join(row.features) or "(none)",
                "rule": "; ".join(map(str, row.rules)) or "(no new rule)",
                "moves": "; ".join(f"{move.feature} {move}" for move in row.moves) or "(no move)",
                "new_coverage": row.new_coverage,
                "new_cost": row.new_cost,
                "coverage": row.coverage,
                "cost": row.cost,
            }
            for row in self.rows
        ]

    def table(self, digits: int = 3) -> list[tuple[str, ...]]:
        """One tuple of text per line: feature, rule or move, and in the first line of each row its numbers."""
        body: list[tuple[str, ...]] = []
        for row in self.rows:
            numbers = (
                f"{row.new_coverage:+.1%}",
                formatting.cost(row.new_cost, digits),
                f"{row.coverage:.1%}",
                formatting.cost(row.cost, digits),
            )
            for i, line in enumerate(row.lines):
                body.append((line.feature, line.text, *(numbers if i == 0 else ("",) * 4)))
        return body

    def __str__(self) -> str:
        """The chart as a table of text."""
        body = self.table(2)
        widths = [max(len(line[i]) for line in (CHART_HEAD, *body)) for i in range(len(CHART_HEAD))]

        def line(cells: Sequence[str]) -> str:
            return "  ".join(
                c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))
            ).rstrip()

        return "\n".join([line(CHART_HEAD), "  ".join("-" * w for w in widths), *map(line, body)])

    def _repr_html_(self) -> str:
        """For notebooks: the chart as a table."""
        return formatting.html_table(CHART_HEAD, self.table())


def rules_chart(
    cost: CostModel,
    delta: FloatArray,
    Z: FloatArray | Rows,
    scalars: FloatArray,
    costs: FloatArray,
    *,
    rows: int = 5,
    spacing: str = "equal",
) -> RulesChart:
    """The cumulative rules chart of one direction.

    Parameters
    ----------
    cost, delta, Z
        The cost model, the direction, and the affected inputs, encoded (a matrix, or compact rows).
    scalars, costs
        Minimum scalar and cost of each input under this direction.
    rows
        Most rows to show; neighbouring breakpoints are merged into one row when there are more.
    spacing
        ``"equal"`` ends the rows at equally spaced breakpoints, as the paper does. ``"greedy"`` ends them where the
        inputs would pay least if each travelled to the end of its row: the paper's submodular selection.
    """
    rows = check_count("rows", rows, high=MOST_ROWS)
    check_choice("spacing", spacing, SPACINGS)
    space = check_instance("cost", cost, CostModel, "see CostModel.bins").space
    delta = _checked(space, delta)
    inputs = Z if isinstance(Z, Rows) else Rows(space, check_matrix("Z", Z, space.width))
    for name, given in (("scalars", scalars), ("costs", costs)):
        if (
            not isinstance(given, np.ndarray)
            or given.ndim != 1
            or given.dtype.kind != "f"
            or len(given) != len(scalars)
        ):
            raise wrong(name, "an array of numbers, one per input", given)
    if len(inputs) != len(scalars):
        raise wrong("Z", f"the {len(scalars):,} inputs that the scalars belong to", Z)
    added = additions(space, delta)
    reach = float(scalars[np.isfinite(scalars)].max()) if np.isfinite(scalars).any() else 0.0
    bounds = rays.breakpoints(space, delta)
    if reach:
        bounds = bounds[bounds < reach]  # leave out rules that nobody needs
    if not bounds.size:
        edges = np.linspace(0.0, reach, rows + 1)[1:] if added and reach else np.array([np.inf])
    elif spacing == "greedy":
        edges = _greedy_edges(cost, delta, inputs.dense(), scalars, bounds, rows)
    else:
        ends = np.unique(np.linspace(0, len(bounds) - 1, min(rows, len(bounds))).round().astype(int))
        edges = row_ends(bounds, ends)
    if bounds.size and (scalars <= bounds[0]).any():
        edges = np.concatenate([bounds[:1], edges])  # some flip by additions alone, before any rule
    edges[-1] = np.inf
    chart = _rows(space, delta, scalars, costs, np.unique(edges))
    moved = moves_up_to(cost, delta, inputs, scalars, np.array([row.reach for row in chart]))
    return RulesChart(tuple(replace(r, moves=m) for r, m in zip(chart, moved, strict=True)), added, spacing)


def moves_up_to(
    cost: CostModel, delta: FloatArray, inputs: Rows, scalars: FloatArray, reach: FloatArray
) -> list[tuple[Move, ...]]:
    """For each reach, how far each feature moves at most for the inputs whose scalar is within it.

    Each input moves to its own scalar. What starts outside of its range moves there first, and that counts.
    """
    covered = np.flatnonzero(np.isfinite(scalars))
    order = covered[np.argsort(scalars[covered], kind="stable")]
    within = np.searchsorted(scalars[order], reach, side="right")
    found: list[list[Move]] = [[] for _ in reach]
    for f, step in rays.movers(cost.space, delta):
        x = inputs.feature(f)[order]
        there = rays.travel(f, x, step, scalars[order])
        amount = np.maximum.accumulate(np.nan_to_num(np.abs(there - x), nan=0.0))
        price = np.maximum.accumulate(cost.change(f, x, there))
        for i, n in enumerate(within):
            if n and amount[n - 1] > 0.0:
                signed = float(np.sign(step) * amount[n - 1])
                found[i].append(Move(f.name, signed, float(price[n - 1]), f.kind == "ordinal"))
    return [tuple(sorted(moves, key=lambda move: -move.cost)) for moves in found]


def row_ends(bounds: FloatArray, ends: np.ndarray[Any, Any]) -> FloatArray:
    """Ends of rows whose last breakpoints are these: the next breakpoints, which are the first of the next rows."""
    return np.asarray(np.append(bounds, np.inf)[ends + 1])


def _greedy_edges(
    cost: CostModel, delta: FloatArray, Z: FloatArray, scalars: FloatArray, bounds: FloatArray, rows: int
) -> FloatArray:
    covered = np.isfinite(scalars)
    Z, scalars = Z[covered], scalars[covered]
    if not len(Z):
        return row_ends(bounds, np.array([len(bounds) - 1]))
    # paid[e] is the cost of each input if its row ends with breakpoint e; it cannot end before the input has flipped
    paid = np.array([rays.cost_at(cost, Z, delta, np.maximum(scalars, np.nextafter(b, np.inf))) for b in bounds])
    upper = np.append(bounds, np.inf)[1:]
    paid = np.where(scalars[None, :] <= upper[:, None], paid, np.inf)
    ends = [len(bounds) - 1]
    best = paid[-1]
    while len(ends) < min(rows, len(bounds)):
        totals = np.minimum(paid, best).sum(axis=1)
        pick = int(totals.argmin())
        if not totals[pick] < best.sum():
            break
        ends.append(pick)
        best = np.minimum(best, paid[pick])
    return row_ends(bounds, np.array(sorted(ends)))


def _rows(
    space: FeatureSpace, delta: FloatArray, scalars: FloatArray, costs: FloatArray, edges: FloatArray
) -> list[ChartRow]:
    finite = scalars[np.isfinite(scalars)]
    needed = float(finite.max()) if finite.size else np.inf  # nobody needs rules beyond it
    chart, low = [], 0.0
    for high in edges:
        new = (scalars > low) & (scalars <= high) & np.isfinite(scalars)
        so_far = (scalars <= high) & np.isfinite(scalars)
        rules = rules_between(space, delta, low, min(high, needed))
        if not rules and not new.any() and high < np.inf:
            continue  # a stretch of additions on which nobody flips is merged into the next row
        chart.append(
            ChartRow(
                rules=rules,
                low=low,
                high=float(high),
                reach=float(scalars[so_far].max()) if so_far.any() else 0.0,
                new_coverage=float(new.mean()) if new.size else 0.0,
                new_cost=mean_cost(costs[new]),
                coverage=float(so_far.mean()) if so_far.size else 0.0,
                cost=mean_cost(costs[so_far]),
            )
        )
        low = float(high)
    return chart


def rules_between(space: FeatureSpace, delta: FloatArray, low: float, high: float) -> tuple[Rule, ...]:
    """Rules whose bounds lie in [low, high): those that hold within a row and not in the row before."""
    rules = []
    for s in rays.switches(space, delta):
        fired = [int(i) for i in np.argsort(s.bounds, kind="stable") if low <= s.bounds[i] < high]
        if fired:
            rules.append(_rule(s.feature, fired, s.target, float(s.bounds[fired[-1]])))
    return tuple(sorted(rules, key=lambda rule: rule.k))
