"""Two results side by side: champion and challenger, or last quarter and this one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from globece import formatting
from globece.auditing import Audit
from globece.auditing.exchange import EVERYBODY
from globece.errors import InvalidParameterError, check_instance, check_names, check_number, wrong
from globece.explanation import Explanation
from globece.saving import Shown
from globece.space import BoolArray, FloatArray, IntArray

Unit = Literal["cost", "share", "text"]
ELSE = "everybody else"
GAP = "gap in score"


@dataclass(frozen=True, slots=True)
class ComparedMeasure:
    """One measure of both results.

    Attributes
    ----------
    measure, unit
        Its name, and whether it is a cost, a share or a text.
    a, b
        The measure of the first and of the second result; ``nan`` where it is unknown.
    difference, low, high
        The second minus the first, and its confidence interval.
    higher_is_worse
        Whether a larger value is worse for people; ``None`` for a text.
    """

    measure: str
    unit: Unit
    a: float | str
    b: float | str
    difference: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    higher_is_worse: bool | None = None

    @property
    def said(self) -> str:
        """The difference in words."""
        if self.unit == "text":
            return "the same" if self.a == self.b else "differs"
        if np.isnan(self.difference):
            return "unknown"
        if np.isnan(self.low) or self.low <= 0.0 <= self.high:
            return "no difference shown" if self.difference else "the same"
        worse = (self.difference > 0) == self.higher_is_worse
        return "worse" if worse else "better"


@dataclass(frozen=True)
class Comparison(Shown):
    """Two results, measure by measure.

    Attributes
    ----------
    names
        What the results are called.
    rows
        The measures.
    paired
        Whether both are about the same rows, so that intervals are paired by row.
    notes
        Remarks for the reader.
    a, b
        The results.
    level
        The intervals hold ``1 - level``.
    """

    names: tuple[str, str]
    rows: tuple[ComparedMeasure, ...]
    paired: bool
    notes: tuple[str, ...]
    a: Any
    b: Any
    level: float = 0.05

    def __getitem__(self, measure: str) -> ComparedMeasure:
        """The measure of that name."""
        for row in self.rows:
            if row.measure == measure:
                return row
        raise wrong("measure", f"one of {[row.measure for row in self.rows]}", measure)

    @property
    def worse_by(self) -> float:
        """How much worse the second is: its score minus the first's, or for audits the largest growth of a gap.

        ``nan`` where that could not be computed.
        """
        gaps = [row.difference for row in self.rows if row.measure.startswith(GAP)]
        if isinstance(self.a, Audit):
            return float(np.max(gaps)) if gaps else float("nan")
        return self["score"].difference

    def is_worse(self, by: float) -> bool | None:
        """Whether the second is worse by more than ``by``; ``None`` where that could not be computed."""
        limit = check_number("by", by)
        return None if np.isnan(self.worse_by) else bool(self.worse_by > limit)

    def summary(self) -> str:
        """The comparison in a few lines."""
        lines = [f"{self.names[1]} against {self.names[0]}, {'paired by row' if self.paired else 'not paired'}:"]
        for row in self.rows:
            if row.unit == "text":
                lines.append(f"{row.measure}: {row.a}; {row.b} ({row.said})")
                continue
            text = formatting.share if row.unit == "share" else formatting.cost
            interval = f" ({_signed(row.low, row.unit)} to {_signed(row.high, row.unit)})" if row.low == row.low else ""
            change = f", {_signed(row.difference, row.unit)}{interval}" if row.difference == row.difference else ""
            lines.append(f"{row.measure}: {text(float(row.a))}; {text(float(row.b))}{change}: {row.said}")
        return "\n".join([*lines, *(f"Note: {note}." for note in self.notes)])


def compare(a: Any, b: Any, *, names: Sequence[str] = ("first", "second"), level: float = 0.05) -> Comparison:
    """Compare two explanations, or two audits: coverage, cost, verdict and gaps, with intervals.

    Where both are about the same rows, each row is its own control and the intervals are paired. An interval is about
    which people happen to be in the data; it takes the directions as they were found.

    Parameters
    ----------
    a, b
        Two explanations or two audits; the differences are the second minus the first.
    names
        What to call them.
    level
        The intervals hold ``1 - level``.

    Examples
    --------
    >>> import globece as gce
    >>> X = np.arange(40.0).reshape(20, 2)
    >>> a, b = (gce.explain(lambda X, t=t: X[:, 0] > t, X, favourable=True, rng=0) for t in (10, 20))
    >>> found = compare(a, b, names=("March", "June"))
    >>> found.paired, round(found["rejected"].difference, 3), found["rejected"].said
    (True, 0.25, 'worse')
    """
    for name, given in (("a", a), ("b", b)):
        if not isinstance(given, (Explanation, Audit)):
            raise wrong(name, "an Explanation or an Audit", given)
    if isinstance(a, Audit) != isinstance(b, Audit):
        raise InvalidParameterError("a and b must be two explanations or two audits; got one of each")
    called = check_names("names", names, "two names")
    if len(called) != 2:
        raise wrong("names", "two names", names)
    share = check_number("level", level, open_low=True, high=0.5)
    of = tuple(_Rows.of(result) for result in (a, b))
    paired, notes = _same_rows(_explanation(a), _explanation(b))
    z = float(ndtri(1.0 - share / 2.0))
    rows = _measures(of[0], of[1], paired, z)
    if isinstance(a, Audit):
        rows = [*_verdicts(a, b), *_gaps(a, b, of, paired, z), *rows]
    if _explanation(a).budget != _explanation(b).budget:
        notes.append(f"the budgets differ: {_explanation(a).budget:g} and {_explanation(b).budget:g}")
    if _explanation(a).cost.kind != _explanation(b).cost.kind or not np.array_equal(
        _explanation(a).cost.weights, _explanation(b).cost.weights
    ):
        notes.append("the costs differ: a difference in cost is also one of how cost is counted")
    return Comparison((called[0], called[1]), tuple(rows), paired, tuple(notes), a, b, share)


def _explanation(result: Any) -> Explanation:
    return result.explanation if isinstance(result, Audit) else check_instance("result", result, Explanation)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """For all rows given whether each is affected, covered, and what it pays."""

    affected: FloatArray
    covered: FloatArray
    paid: FloatArray
    charged: FloatArray

    @classmethod
    def of(cls, result: Any) -> _Rows:
        ex = _explanation(result)  # raises if an audit was written without its members
        cost = result.cost if isinstance(result, Audit) else ex.best_costs
        affected, covered, paid, charged = np.zeros((4, ex.n_rows))
        affected[ex.rows] = 1.0
        covered[ex.rows] = np.isfinite(cost)
        paid[ex.rows] = np.where(np.isfinite(cost), cost, 0.0)
        charged[ex.rows] = np.minimum(cost, ex.budget)
        return cls(affected, covered, paid, charged)

    def only(self, member: BoolArray) -> _Rows:
        """Only these rows count; the others stay as rows that are not affected."""
        return _Rows(*(np.where(member, v, 0.0) for v in (self.affected, self.covered, self.paid, self.charged)))

    def ratio(self, measure: str) -> tuple[float, FloatArray]:
        """A measure, and what each row contributes to its error (its influence)."""
        top, bottom = {
            "rejected": (self.affected, np.ones_like(self.affected)),
            "coverage": (self.covered, self.affected),
            "average cost": (self.paid, self.covered),
            "score": (self.charged, self.affected),
        }[measure]
        whole = bottom.mean() if len(bottom) else 0.0
        if not whole:
            return float("nan"), np.zeros_like(top)
        value = float(top.mean() / whole)
        return value, (top - value * bottom) / whole


MEASURES: tuple[tuple[str, Unit, bool], ...] = (
    ("rejected", "share", True),
    ("coverage", "share", False),
    ("average cost", "cost", True),
    ("score", "cost", True),
)


def _interval(ia: FloatArray, ib: FloatArray, paired: bool, z: float) -> float:
    """Half the width of the interval of a difference, from the influences of each row on both sides."""

    def error(i: FloatArray) -> float:
        return float(i.std(ddof=1) / np.sqrt(len(i))) if len(i) > 1 else float("nan")

    return z * (error(ib - ia) if paired else float(np.hypot(error(ia), error(ib))))


def _measures(a: _Rows, b: _Rows, paired: bool, z: float) -> list[ComparedMeasure]:
    found = []
    for name, unit, higher in MEASURES:
        (va, ia), (vb, ib) = a.ratio(name), b.ratio(name)
        half = _interval(ia, ib, paired, z)
        d = vb - va
        found.append(ComparedMeasure(name, unit, va, vb, d, d - half, d + half, higher))
    return found


def _verdicts(a: Audit, b: Audit) -> list[ComparedMeasure]:
    return [ComparedMeasure("verdict", "text", a.verdict.conclusion, b.verdict.conclusion)]


def _gaps(a: Audit, b: Audit, of: tuple[_Rows, ...], paired: bool, z: float) -> list[ComparedMeasure]:
    """The size of each gap in score between groups that both audits have."""
    names = [n for n in a.groups.names if n in b.groups.names and n != EVERYBODY]
    names = [n for n in names if a.by_group[n].judged and b.by_group[n].judged]
    pairs = [(names[0], names[1])] if len(names) == 2 else [(n, None) for n in names] if len(names) > 2 else []
    found = []
    for group, other in pairs:
        sides = []
        for audit, rows in zip((a, b), of, strict=True):
            member = audit.groups.labels == audit.groups.index(group)
            rest = audit.groups.labels == audit.groups.index(other) if other else (audit.groups.labels >= 0) & ~member
            (vg, ig), (vo, io) = rows.only(member).ratio("score"), rows.only(rest).ratio("score")
            sign = np.sign(vg - vo)
            sides.append((float(abs(vg - vo)), sign * (ig - io), float(vg - vo)))
        (ga, ia, _), (gb, ib, _) = sides
        half, d = _interval(ia, ib, paired, z), gb - ga
        called = f"{GAP} between {group} and {other or ELSE}"
        found.append(ComparedMeasure(called, "cost", ga, gb, d, d - half, d + half, True))
    return found


def _same_rows(a: Explanation, b: Explanation) -> tuple[bool, list[str]]:
    """Whether both are about the same rows, and what to remark about it."""
    notes = []
    if a.n_unknown or b.n_unknown:
        return False, ["some affected inputs of one side are unknown: they were not reached, and count as not affected"]
    if a.n_rows != b.n_rows:
        return False, [f"the rows differ: {a.n_rows:,} and {b.n_rows:,}"]
    if a.space.columns != b.space.columns:
        return False, ["the features differ, so whether the rows are the same is unknown"]
    common, ia, ib = np.intersect1d(a.rows, b.rows, return_indices=True)
    if not len(common):
        return False, ["no row is affected in both, so whether the rows are the same is unknown"]
    if any(not _equal(a, b, ia, ib, i) for i in range(len(a.space.features))):
        return False, ["the rows differ: the same positions hold different values"]
    if len(common) < min(a.n_affected, b.n_affected):
        only = a.n_affected + b.n_affected - 2 * len(common)
        notes.append(f"{only:,} rows are affected on one side alone; they are taken to be the same rows by position")
    return True, notes


def _equal(a: Explanation, b: Explanation, ia: IntArray, ib: IntArray, i: int) -> bool:
    x, y = a.encoded.feature(a.space.features[i])[ia], b.encoded.feature(b.space.features[i])[ib]
    return np.array_equal(x, y, equal_nan=True)


def _signed(value: float, unit: Unit) -> str:
    return f"{100 * value:+.1f} points" if unit == "share" else f"{value:+.3f}"
