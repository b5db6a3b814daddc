"""Audits over time: a history of gaps, the band that they should stay in, and an alarm when one leaves it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from math import isfinite
from statistics import median
from typing import Any

from globece.auditing import Audit
from globece.errors import (
    FileFormatError,
    InvalidDataError,
    InvalidParameterError,
    check_count,
    check_instance,
    check_number,
    require,
    wrong,
)
from globece.io.files import read_text, write_text

FORMAT, VERSION = "globece.history", 1
REFERENCE = 3  # audits that the band is centred on
INSIDE, OPEN, LEFT, UNKNOWN, NEW = "inside", "may have left", "left", "unknown", "reference"


@dataclass(frozen=True, slots=True)
class Point:
    """The gap in score of one comparison at one date.

    Attributes
    ----------
    date
        As ISO 8601 has it.
    comparison
        The two sides, in words.
    gap, low, high
        The gap and its interval; ``None`` where it could not be computed.
    margin
        The relevance margin of the audit.
    conclusion
        The decision about this comparison.
    data
        Fingerprint of the rows.
    """

    date: str
    comparison: str
    gap: float | None
    low: float | None
    high: float | None
    margin: float | None
    conclusion: str
    data: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Where the latest gap of a comparison lies.

    Attributes
    ----------
    comparison
        The two sides.
    state
        ``"left"``: the whole interval is outside the band; ``"may have left"``: the gap is, its interval reaches in;
        ``"inside"``; ``"unknown"``: it or its band could not be computed, or the two are no longer compared;
        ``"reference"``: it is one of the first audits.
    gap
        The latest.
    band
        From where to where.
    """

    comparison: str
    state: str
    gap: float | None
    band: tuple[float, float] | None

    def __str__(self) -> str:
        """As a line."""
        said = "unknown" if self.gap is None else f"{self.gap:+.3f}"
        band = "" if self.band is None else f", band {self.band[0]:+.3f} to {self.band[1]:+.3f}"
        return f"{self.comparison}: gap {said}{band}: {self.state}"


@dataclass(frozen=True, slots=True)
class History:
    """Gaps by date, of audits that ask the same question.

    Attributes
    ----------
    question
        What must not change from audit to audit: the favourable outcome, the groups, costs, budget and constraints.
    points
        The gaps of all comparisons, by date.

    Examples
    --------
    >>> import numpy as np, globece as gce
    >>> def month(seed):
    ...     X = np.random.default_rng(seed).uniform(size=(1500, 2))
    ...     return gce.audit((np.ones(2), -1.2), X, by=X[:, 0] > 0.5, favourable=1, effort="quick", rng=0)
    >>> history = History()
    >>> for seed in range(4):
    ...     history = history.append(month(seed), date=f"2026-0{seed + 1}-01")
    >>> len(history.dates), {finding.state for finding in history.latest()} <= {"inside", "may have left"}
    (4, True)
    """

    question: tuple[tuple[str, str], ...] = ()
    points: tuple[Point, ...] = ()

    @property
    def dates(self) -> tuple[str, ...]:
        """The dates, ascending."""
        return tuple(dict.fromkeys(point.date for point in self.points))

    def append(self, audit: Audit, *, date: str) -> History:
        """The history with one more audit; it must ask the same question, at a later date."""
        check_instance("audit", audit, Audit)
        when = _checked(date)
        if self.dates and when <= self.dates[-1]:
            raise InvalidParameterError(f"date must be after {self.dates[-1]}, the last one; got {date!r}")
        if not audit.comparisons:
            raise InvalidDataError(
                "no two groups of this audit are large enough to be compared: it has no gap to record"
            )
        question = _question(audit)
        for (key, before), (_, now) in zip(self.question, question, strict=bool(self.question)):
            if before != now:
                raise InvalidParameterError(
                    f"this audit asks another question: {key} was {before!r} and is {now!r}; begin another history"
                )
        new = []
        for comparison in audit.comparisons:
            gap, sides = comparison.gaps["score"], f"{comparison.group} against {comparison.other}"
            numbers = (_finite(gap.value), _finite(gap.low), _finite(gap.high), _finite(audit.verdict.margin))
            new.append(Point(when, sides, *numbers, comparison.decision.conclusion, audit.basis.data))
        return replace(self, question=question, points=(*self.points, *new))

    def band(
        self, comparison: str, *, reference: int = REFERENCE, width: float | None = None
    ) -> tuple[float, float] | None:
        """Where the gaps of a comparison should lie: around the median of its first audits.

        Parameters
        ----------
        comparison
            The two sides, as in ``points``.
        reference
            How many of the first audits it is centred on.
        width
            How far a gap may lie from the centre, in units of cost; by default the relevance margin of these audits.
        """
        first = [p for p in self._of(comparison) if p.gap is not None][: check_count("reference", reference)]
        if len(first) < reference:
            return None
        centre = median(p.gap for p in first if p.gap is not None)
        margins = [p.margin for p in first if p.margin is not None]
        if width is None and not margins:
            return None
        far = median(margins) if width is None else check_number("width", width, open_low=True)
        return centre - far, centre + far

    def latest(self, *, reference: int = REFERENCE, width: float | None = None) -> tuple[Finding, ...]:
        """Where the latest gap of every comparison ever made lies; the parameters are those of :meth:`band`."""
        found = []
        for point in self.points:
            if point.date != self.dates[-1]:
                continue
            band = self.band(point.comparison, reference=reference, width=width)
            found.append(Finding(point.comparison, self._state(point, band, reference), point.gap, band))
        # a comparison that was made before and is not now, as when a group has become too small, is not forgotten
        for name in dict.fromkeys(p.comparison for p in self.points):
            if name not in {finding.comparison for finding in found}:
                band = self.band(name, reference=reference, width=width)
                found.append(Finding(name, UNKNOWN, None, band))
        return tuple(found)

    def _state(self, point: Point, band: tuple[float, float] | None, reference: int) -> str:
        if point.gap is None:
            return UNKNOWN
        if point in [p for p in self._of(point.comparison) if p.gap is not None][:reference]:
            return NEW
        if band is None:
            return UNKNOWN
        low, high = band
        if low <= point.gap <= high:
            return INSIDE
        outside = point.low is not None and point.high is not None and (point.low > high or point.high < low)
        return LEFT if outside else OPEN

    def _of(self, comparison: str) -> list[Point]:
        return [point for point in self.points if point.comparison == comparison]

    # -- files and figures ---------------------------------------------------------------------------------------

    def to_json(self, path: Any) -> None:
        """Write the history; a file that is there is replaced as a whole or not at all."""
        data = {
            "format": FORMAT,
            "version": VERSION,
            "question": dict(self.question),
            "points": [asdict(p) for p in self.points],
        }
        write_text(str(path), json.dumps(data, indent=1, allow_nan=False) + "\n")

    @classmethod
    def from_json(cls, path: Any) -> History:
        """Read a history that :meth:`to_json` wrote."""
        try:
            data = json.loads(read_text(str(path)))
            if data["format"] != FORMAT or data["version"] != VERSION:
                raise FileFormatError(f"{path} is {data['format']!r}, version {data['version']!r}, and no history")
            names = {f.name for f in fields(Point)}
            points = tuple(Point(**{name: point[name] for name in names}) for point in data["points"])
            numbers = [n for p in points for n in (p.gap, p.low, p.high, p.margin) if n is not None]
            if not all(isinstance(n, int | float) and isfinite(n) for n in numbers):
                raise TypeError("a gap is no number")
            return cls(tuple((str(k), str(v)) for k, v in data["question"].items()), points)
        except FileFormatError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileFormatError(f"{path} is no history of globece: {error}") from error

    def plot(self, ax: Any = None, *, reference: int = REFERENCE, width: float | None = None) -> Any:
        """Draw the gaps by date with their intervals and bands; the axes come back."""
        plt: Any = require("matplotlib.pyplot", extra="plot", caller="History.plot")
        if ax is None:
            _, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
        for i, comparison in enumerate(dict.fromkeys(p.comparison for p in self.points)):
            points = [
                (date.fromisoformat(p.date), p.gap, p.gap - p.low, p.high - p.gap)
                for p in self._of(comparison)
                if p.gap is not None and p.low is not None and p.high is not None
            ]
            if points:
                when, gaps, below, above = zip(*points, strict=True)
                ax.errorbar(when, gaps, yerr=[below, above], fmt="o-", capsize=3, color=f"C{i}", label=comparison)
            band = self.band(comparison, reference=reference, width=width)
            if band is not None:
                ax.axhspan(*band, color=f"C{i}", alpha=0.12, linewidth=0)
        ax.axhline(0.0, color="#888888", linewidth=0.8)
        ax.set(ylabel="gap in score, with its interval")
        ax.legend(frameon=False)
        ax.figure.autofmt_xdate()
        return ax


def _checked(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except (TypeError, ValueError):
        raise wrong("date", "a day as in 2026-06-30", text) from None


def _question(audit: Audit) -> tuple[tuple[str, str], ...]:
    basis = audit.basis
    held = "; ".join(f"{name} {said}" for name, said in sorted(basis.constraints.items())) or "nothing"
    return (
        ("favourable", basis.favourable),
        ("groups", basis.by),
        ("control", str(basis.control)),
        ("cost", basis.cost),
        ("budget", f"{basis.budget:g}"),
        ("constraints", held),
    )


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None
