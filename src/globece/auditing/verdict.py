"""The verdict of an audit: structured, and as a paragraph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from globece.auditing import statistics as st
from globece.auditing.artefact import Check
from globece.auditing.measures import EVERYBODY_ELSE, Comparison, Gap, Measures
from globece.auditing.settings import AuditSettings

BIAS, NONE, UNKNOWN = "recourse bias", "no relevant gap", "not enough evidence"
ENOUGH_POWER = 0.8


@dataclass(frozen=True, slots=True)
class Verdict:
    """The conclusion of an audit.

    Attributes
    ----------
    conclusion
        ``"recourse bias"``, ``"no relevant gap"`` or ``"not enough evidence"``.
    against
        The group whose recourse costs more, if there is a bias.
    other
        The group that it was compared with.
    size, interval, p
        Gap in score, its confidence interval, and p corrected for several groups.
    power
        Power of the test for a gap of the relevance margin.
    model_bias_against
        The group that is rejected more often, by a separate test; ``None`` if none is. Not recourse bias.
    survives
        For each check of search artefacts whether it leads to the same conclusion; ``None`` if it is inconclusive.
    rests_on
        What the conclusion is based on.
    warnings
        Remarks for the reader.
    text
        All of that as one paragraph.
    """

    conclusion: str
    against: str | None
    other: str | None
    size: float
    interval: tuple[float, float]
    p: float
    power: float
    model_bias_against: str | None
    survives: Mapping[str, bool | None]
    rests_on: tuple[str, ...]
    warnings: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def headline(comparisons: Sequence[Comparison], level: float) -> Comparison | None:
    """The comparison that the verdict is about.

    Groups with significantly more expensive recourse come first, then the smallest p, then the largest gap.
    """
    if not comparisons:
        return None

    def rank(c: Comparison) -> tuple[bool, float, float]:
        gap = c.gaps["score"]
        pays_more = gap.p_adjusted < level and (gap.value > 0 or c.other != EVERYBODY_ELSE)
        return not pays_more, gap.p, -abs(gap.value)

    return min(comparisons, key=rank)


def conclude(
    comparisons: Sequence[Comparison],
    by_group: Mapping[str, Measures],
    checks: Sequence[Check],
    settings: AuditSettings,
    rests_on: Sequence[str],
    warnings: Sequence[str],
) -> Verdict:
    """Draw the conclusion from comparisons and checks."""
    main = headline(comparisons, settings.level)
    small = [name for name, m in by_group.items() if not m.judged]
    model_bias = _model_bias(comparisons, settings.level)
    survives = {check.name: check.survives for check in checks}
    if main is None:
        why = "fewer than two groups are large enough to be compared"
        text = " ".join(
            [f"Not enough evidence: {why}.", *_small(small, by_group), _rejections(comparisons, model_bias)]
        )
        return Verdict(
            UNKNOWN, None, None, np.nan, (np.nan, np.nan), 1.0, 0.0, model_bias, {}, tuple(rests_on),
            (why, *warnings), text.strip(),
        )  # fmt: skip
    gap = main.gaps["score"]
    probability = _power(gap, settings, len(comparisons))
    found = gap.p_adjusted < settings.level and gap.value != 0.0
    within = -settings.relevant < gap.low and gap.high < settings.relevant
    conclusion = BIAS if found else NONE if within else UNKNOWN
    worse, better = (main.group, main.other) if gap.value > 0 else (main.other, main.group)
    worse = f"everybody but {better}" if worse == EVERYBODY_ELSE else worse
    all_warnings = list(warnings)
    if probability < ENOUGH_POWER:
        all_warnings.append(
            f"a gap of {settings.relevant:g} is detected with a power of {probability:.0%} only; "
            f"gaps of at least {gap.detectable:.2f} are detected with a power of 80 %"
        )
    text = " ".join(
        part
        for part in (
            _first(conclusion, worse, better, main, gap, settings, probability),
            _parts(conclusion, main, worse, settings.level),
            _survival(checks, conclusion),
            *_small(small, by_group),
            _rejections(comparisons, model_bias),
        )
        if part
    )
    return Verdict(
        conclusion=conclusion,
        against=worse if found else None,
        other=better if found else None,
        size=gap.value,
        interval=(gap.low, gap.high),
        p=gap.p_adjusted,
        power=probability,
        model_bias_against=model_bias,
        survives=survives,
        rests_on=tuple(rests_on),
        warnings=tuple(all_warnings),
        text=text,
    )


def _power(gap: Gap, settings: AuditSettings, n_tests: int) -> float:
    level = settings.level / n_tests
    error = gap.detectable / st.detectable(1.0, level)
    return st.power(error, settings.relevant, level)


def _first(
    conclusion: str, worse: str, better: str, main: Comparison, gap: Gap, settings: AuditSettings, probability: float
) -> str:
    size, called = abs(gap.value), f"{1 - settings.level:.0%} confidence interval"
    low, high = (gap.low, gap.high) if gap.value > 0 else (-gap.high, -gap.low)
    numbers = f"{called} {low:.2f} to {high:.2f}, p {_p(gap.p_adjusted)}"
    if conclusion == BIAS:
        small = f", less than the relevance margin of {settings.relevant:g}" if size < settings.relevant else ""
        return (
            f"There is a recourse bias against {worse}: recourse costs them {size:.2f} more on average than "
            f"{better}{small} ({numbers}), where people without recourse count as the full budget."
        )
    interval = f"{called} {gap.low:.2f} to {gap.high:.2f}, p {_p(gap.p_adjusted)}"
    gap_text = f"the gap between {main.group} and {main.other} is {gap.value:+.2f} ({interval})"
    if conclusion == NONE:
        return f"No relevant recourse bias was found: {gap_text}, which rules out a gap of {settings.relevant:g}."
    return (
        f"Not enough evidence: {gap_text}. A gap of {settings.relevant:g} can be neither confirmed nor ruled out with "
        f"these inputs; the test detects one with a power of {probability:.0%}."
    )


def _parts(conclusion: str, main: Comparison, worse: str, level: float) -> str:
    """The gaps in coverage and in average cost."""
    if conclusion != BIAS:
        return ""
    coverage, cost = main.gaps["coverage"], main.gaps["average_cost"]
    sign = 1.0 if worse == main.group else -1.0
    found = []
    if coverage.p_adjusted < level:
        more = "fewer" if sign * coverage.value < 0 else "more"
        found.append(
            f"{abs(coverage.value) * 100:.1f} percentage points {more} of them have recourse "
            f"(p {_p(coverage.p_adjusted)})"
        )
    if cost.p_adjusted < level and np.isfinite(cost.value):
        more = "more" if sign * cost.value > 0 else "less"
        found.append(f"those who have it pay {abs(cost.value):.2f} {more} (p {_p(cost.p_adjusted)})")
    if not found:
        return "Neither coverage nor average cost alone differs significantly."
    return f"In detail, {' and '.join(found)}."


def _survival(checks: Sequence[Check], conclusion: str) -> str:
    if not checks:
        return ""
    parts = []
    for survives, what in (
        (True, "stays the same with"),
        (False, "changes with"),
        (None, "could not be checked by"),
    ):
        names = [check.name for check in checks if check.survives is survives]
        if names:
            parts.append(f"{what} {_listed(names)}")
    return f"This conclusion {', '.join(parts)}."


def _small(small: Sequence[str], by_group: Mapping[str, Measures]) -> list[str]:
    if not small:
        return []
    listed = _listed([f"{name} ({by_group[name].affected} affected)" for name in small])
    return [f"Too small to be compared: {listed}."]


def _model_bias(comparisons: Sequence[Comparison], level: float) -> str | None:
    found = [
        (gap.p_adjusted, c.group if gap.value > 0 else c.other)
        for c in comparisons
        if (gap := c.gaps["rejection_rate"]).p_adjusted < level and (gap.value > 0 or c.other != EVERYBODY_ELSE)
    ]
    return min(found)[1] if found else None


def _rejections(comparisons: Sequence[Comparison], against: str | None) -> str:
    if not comparisons:
        return ""
    if against is None:
        return "Apart from recourse, no group is rejected significantly more often than others."
    gap, other = next(
        (c.gaps["rejection_rate"], c.other if c.group == against else c.group)
        for c in comparisons
        if against in (c.group, c.other)
    )
    return (
        f"Apart from recourse, the model itself rejects {against} more often than {other}, by "
        f"{abs(gap.value) * 100:.1f} percentage points (p {_p(gap.p_adjusted)}); that is model bias, "
        "not recourse bias."
    )


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _p(p: float) -> str:
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001"
