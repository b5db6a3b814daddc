"""Gates: whether an audit may pass, for a build that stops where it may not.

A gate looks at every comparison. It never passes because a number could not be computed: what is unknown, and groups
that are too small to be compared, fail it, unless these are allowed by name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from globece.auditing.conclusions import NEGLIGIBLE, OPEN, RELEVANT, UNKNOWN
from globece.auditing.criteria import REJECTION
from globece.auditing.measures import Comparison, Gap
from globece.auditing.result import Audit
from globece.errors import check_flag, check_instance, check_list, check_number, keep_checked, wrong

LEFT_OUT = 0.5  # share of a group's affected inputs that may be left out of a comparison
# What a gate may fail on, by the word for it.
WORDS = {"relevant": RELEVANT, "open": OPEN, "unknown": UNKNOWN, "negligible": NEGLIGIBLE}


@dataclass(frozen=True, slots=True)
class Gate:
    """What an audit must not find.

    Parameters
    ----------
    fail_on
        Conclusions: ``"relevant"``, ``"open"``, ``"unknown"`` (not enough evidence), ``"negligible"``.
    above
        A gap in score that is significant and larger than this.
    coverage_above, rejection_above
        The same for gaps in coverage and in rejection rate, as shares: 0.1 is ten percentage points.
    allow_small
        Whether groups with affected inputs that are too small to be compared may pass.

    Examples
    --------
    >>> Gate(fail_on=("relevant", "open"), above=0.5).above
    0.5
    """

    fail_on: tuple[str, ...] = ()
    above: float | None = None
    coverage_above: float | None = None
    rejection_above: float | None = None
    allow_small: bool = False

    def __post_init__(self) -> None:
        allowed = f"some of {list(WORDS)}"
        given = (self.fail_on,) if isinstance(self.fail_on, str) else self.fail_on
        if isinstance(given, (set, frozenset, dict)):
            raise wrong("fail_on", allowed, given)
        chosen = tuple(check_list("fail_on", given, allowed))
        if not all(isinstance(word, str) and word in WORDS for word in chosen):
            raise wrong("fail_on", allowed, self.fail_on)
        limits = {
            name: None if getattr(self, name) is None else check_number(name, getattr(self, name))
            for name in ("above", "coverage_above", "rejection_above")
        }
        keep_checked(self, fail_on=chosen, allow_small=check_flag("allow_small", self.allow_small), **limits)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked for."""
        limits = (self.above, self.coverage_above, self.rejection_above)
        return not self.fail_on and all(limit is None for limit in limits)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether an audit passes a gate.

    Attributes
    ----------
    failures
        What the audit found that it must not.
    unknown
        What could not be told, so that it does not pass either.
    """

    failures: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed and everything could be told."""
        return not self.failures and not self.unknown


def check_gate(audit: Audit, gate: Gate) -> Outcome:
    """Hold an audit to a gate.

    Parameters
    ----------
    audit
        The audit.
    gate
        What it must not find.
    """
    check_instance("audit", audit, Audit)
    check_instance("gate", gate, Gate)
    failures: list[str] = []
    unknown: list[str] = []
    if not audit.comparisons:
        unknown.append("no two groups are large enough to be compared")
    for c in audit.comparisons:
        conclusion = c.decision.conclusion
        if conclusion in {WORDS[word] for word in gate.fail_on}:
            failures.append(f"{c.group} against {c.other}: {conclusion} ({_numbers(c, 'score')})")
        for measure, limit in _limits(gate).items():
            name = "score" if measure == "score" else measure.replace("_", " ")
            state = _state(c, measure, limit, audit.settings.level)
            if state is None:
                unknown.append(f"the gap in {name} between {c.group} and {c.other} is unknown")
            elif state:
                failures.append(
                    f"{c.group} against {c.other}: the gap in {name}, {_numbers(c, measure)}, exceeds {limit:g}"
                )
        if gate.fail_on and not np.isfinite(c.gaps["score"].p_adjusted):
            unknown.append(f"the gap in score between {c.group} and {c.other} is unknown")
    if gate.rejection_above is not None:
        failures += _rejected(audit, gate.rejection_above)
        unknown += [
            f"the gap in rejection rate between {c.group} and {c.other} is unknown"
            for c in audit.criteria
            if c.name == REJECTION and not np.isfinite([c.gap.value, c.gap.p_adjusted]).all()
        ]
    unknown += _left_out(audit)
    if not gate.allow_small:
        unknown += [f"{name} is not judged ({audit.by_group[name].note})" for name in audit.verdict.not_compared]
    return Outcome(tuple(failures), tuple(dict.fromkeys(unknown)))


def _rejected(audit: Audit, limit: float) -> list[str]:
    """Groups that no comparison is about: nobody, or too few, of them are affected."""
    found = [c for c in audit.criteria if c.name == REJECTION and c.gap.p_adjusted < audit.settings.level]
    return [
        f"{c.group} against {c.other}: the gap in rejection rate, {_range(c.gap)}, exceeds {limit:g}"
        for c in found
        if abs(c.gap.value) > limit
    ]


def _left_out(audit: Audit) -> list[str]:
    """Groups most of which are not compared, as nobody of the other side has their level of the control."""
    found = []
    for c in audit.comparisons:
        for name, other, n in ((c.group, c.other, c.left_out[0]), (c.other, c.group, c.left_out[1])):
            whole = audit.by_group[name].affected if name in audit.by_group else 0
            if n > LEFT_OUT * whole > 0:
                found.append(
                    f"{n:,} of {whole:,} affected in {name} are not compared with {other} by level of the control"
                )
    return found


def _limits(gate: Gate) -> dict[str, float]:
    given = {"score": gate.above, "coverage": gate.coverage_above, "rejection_rate": gate.rejection_above}
    return {measure: limit for measure, limit in given.items() if limit is not None}


def _state(c: Comparison, measure: str, limit: float, level: float) -> bool | None:
    """Whether a gap is significant and larger than the limit; ``None`` if it is unknown."""
    gap = c.gaps[measure]
    if not np.isfinite([gap.value, gap.p_adjusted]).all():
        return None
    return gap.p_adjusted < level and abs(gap.value) > limit


def _numbers(c: Comparison, measure: str) -> str:
    return _range(c.gaps[measure])


def _range(gap: Gap) -> str:
    return f"{gap.value:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"
