"""The verdict of an audit: structured, and in words that need no glossary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from globece.auditing.artefact import Check
from globece.auditing.basis import Basis
from globece.auditing.conclusions import CONCLUSIONS, EQUIVALENT, NEGLIGIBLE, OPEN, RELEVANT, UNKNOWN, worst
from globece.auditing.criteria import BURDEN, Criterion
from globece.auditing.measures import EVERYBODY_ELSE, Comparison, Measures
from globece.auditing.settings import AuditSettings

ENOUGH_POWER = 0.8


@dataclass(frozen=True, slots=True)
class Verdict:
    """The conclusion of an audit: the worst of all comparisons.

    Attributes
    ----------
    favourable
        The favourable outcome.
    conclusion
        ``"relevant bias"``, ``"gap, relevance open"``, ``"not enough evidence"``, ``"detectable but negligible"`` or
        ``"equivalent"``.
    against
        The group whose recourse costs more, if there is a gap that is or may be relevant.
    other
        The group that it was compared with.
    also
        Further groups with the same conclusion.
    size, interval, p
        Gap in score of the comparison with the worst conclusion (of several, with the largest gap), its interval, and
        p, corrected for several comparisons; ``nan`` if they cannot be computed.
    margin
        The relevance margin, in units of cost.
    power
        Power of the test for a gap as large as the margin.
    not_compared
        Groups of affected inputs that are too small to be compared.
    model_bias_against
        The group that is rejected more often, by a separate test; ``None`` if none is. Not recourse bias.
    survives
        For each check of search artefacts whether gaps keep their size; ``None`` if that cannot be told.
    rests_on
        What the conclusion is based on.
    warnings
        Remarks for the reader.
    text
        All of that as a few paragraphs.
    """

    favourable: str
    conclusion: str
    against: str | None
    other: str | None
    also: tuple[str, ...]
    size: float
    interval: tuple[float, float]
    p: float
    margin: float
    power: float
    not_compared: tuple[str, ...]
    model_bias_against: str | None
    survives: Mapping[str, bool | None]
    rests_on: tuple[str, ...]
    warnings: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """For notebooks: the text."""
        return "\n".join(f"<p>{escape(part)}</p>" for part in self.text.split("\n"))


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a verdict is drawn from.

    Attributes
    ----------
    comparisons, by_group, checks, settings, basis
        As in :class:`globece.Audit`.
    remarks
        Remarks for the reader.
    example
        A feature that recourse changes, and by how much for a cost of 1 (negative if it falls).
    criteria
        What the score hides.
    """

    comparisons: Sequence[Comparison]
    by_group: Mapping[str, Measures]
    checks: Sequence[Check]
    settings: AuditSettings
    basis: Basis
    remarks: tuple[str, ...]
    example: tuple[str, float]
    criteria: tuple[Criterion, ...] = ()


def worst_first(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons by conclusion, the worst first, then by who pays more, then the largest gap first.

    Sizes and not p-values decide, so that chance does not: many gaps are as significant as a test can tell.
    """

    def rank(c: Comparison) -> tuple[int, bool, float]:
        value = c.gaps["score"].value
        pays_less = c.other == EVERYBODY_ELSE and not value > 0
        return CONCLUSIONS.index(c.decision.conclusion), pays_less, -abs(value) if value == value else np.inf

    return sorted(comparisons, key=rank)


def headline(comparisons: Sequence[Comparison]) -> Comparison | None:
    """The comparison that the verdict is about: the first of :func:`worst_first`."""
    return next(iter(worst_first(comparisons)), None)


def who_pays(c: Comparison) -> tuple[str, str]:
    """Who pays more, and who less."""
    other = f"everybody but {c.group}" if c.other == EVERYBODY_ELSE and c.gaps["score"].value < 0 else c.other
    return (c.group, c.other) if c.gaps["score"].value >= 0 else (other, c.group)


def conclude(evidence: Evidence) -> Verdict:
    """Draw the conclusion from comparisons and checks."""
    comparisons, settings, basis = evidence.comparisons, evidence.settings, evidence.basis
    small = tuple(name for name, m in evidence.by_group.items() if not m.judged and m.affected)
    rejected = _most_rejected(comparisons, settings.level)
    model_bias = None if rejected is None else _sides(rejected)[0]
    main = headline(comparisons)
    warnings = list(evidence.remarks)
    if main is None:
        why = "fewer than two groups are large enough to be compared"
        lines = [_favourable(basis), f"Not enough evidence: {why}.", *_small(small, evidence.by_group), SAYS_NOT]
        return Verdict(
            basis.favourable, UNKNOWN, None, None, (), np.nan, (np.nan, np.nan), np.nan, np.nan, 0.0, small, model_bias,
            {}, basis.sentences(), (why, *warnings), "\n".join(lines),
        )  # fmt: skip
    gap, decision = main.gaps["score"], main.decision
    conclusion = worst([c.decision.conclusion for c in comparisons])
    worse, better = who_pays(main)
    named = conclusion in (RELEVANT, OPEN)
    same = [c for c in comparisons if c is not main and c.decision.conclusion == conclusion]
    if decision.power < ENOUGH_POWER and conclusion == UNKNOWN:
        warnings.append(
            f"a gap as large as the relevance margin ({decision.margin:.2g}) would be detected with probability "
            f"{decision.power:.0%} only; gaps of at least {gap.detectable:.2g} are with 80 %"
        )
    for c in comparisons:
        if any(c.left_out):
            warnings.append(
                f"{c.group} against {c.other}: {c.left_out[0]:,} and {c.left_out[1]:,} affected inputs are not "
                "compared, as nobody of the other side has their level of the control"
            )
    lines = [
        _favourable(basis),
        _first(main, conclusion, settings),
        _in_units(gap.value, evidence),
        _others(same, comparisons, main, settings),
        _parts(conclusion, main, worse, settings.level),
        _survival(evidence.checks),
        *_small(small, evidence.by_group),
        _rejections(rejected),
        _burden(evidence),
        _rests(basis),
        SAYS_NOT,
    ]
    return Verdict(
        favourable=basis.favourable,
        conclusion=conclusion,
        against=worse if named else None,
        other=better if named else None,
        also=tuple(who_pays(c)[0] for c in same) if named else (),
        size=gap.value,
        interval=(gap.low, gap.high),
        p=gap.p_adjusted,
        margin=decision.margin,
        power=decision.power,
        not_compared=small,
        model_bias_against=model_bias,
        survives={check.name: check.survives for check in evidence.checks},
        rests_on=basis.sentences(),
        warnings=tuple(warnings),
        text="\n".join(line for line in lines if line),
    )


SAYS_NOT = (
    "This does not say why, nor whether the changes are feasible for a person, and it holds for this model, these rows "
    "and what was held fixed."
)


def _favourable(basis: Basis) -> str:
    guessed = " (guessed: nobody said so)" if basis.guessed else ""
    return f"Favourable outcome: {basis.favourable}{guessed}. Cost: {basis.cost.removeprefix('cost ')}."


def _rests(basis: Basis) -> str:
    """What changes the answer most, in one line; ``rests_on`` has the rest."""
    rows, trained, held, *_ = basis.sentences()
    return f"It rests on {rows}; {trained}. {held[0].upper()}{held[1:]}."


def _first(c: Comparison, conclusion: str, settings: AuditSettings) -> str:
    gap, margin = c.gaps["score"], c.decision.margin
    worse, better = who_pays(c)
    low, high = (gap.low, gap.high) if gap.value >= 0 else (-gap.high, -gap.low)
    sure = f"{1 - settings.level:.0%} interval {low:.2f} to {high:.2f}, p {_p(gap.p_adjusted)}"
    than = better if better == EVERYBODY_ELSE else f"those in {better}"
    pays = f"those turned down in {worse} pay {abs(gap.value):.2f} more on average for recourse than {than} ({sure})"
    matters = f"{margin:.2g} or more counts as relevant" + (
        "" if settings.relevant is not None else f", {settings.relevant_share:.0%} of what everybody pays"
    )
    if not np.isfinite(gap.value) or not np.isfinite(gap.p):
        return (
            f"Not enough evidence: the gap between {c.group} and {c.other} cannot be computed: no spread can be "
            "told from so few people in comparable levels."
        )
    return {
        RELEVANT: f"Relevant bias against {worse}: {pays}, which is beyond what is taken to matter ({matters}).",
        OPEN: f"There is a gap against {worse}, and whether it is relevant is open: {pays}; {matters}.",
        UNKNOWN: (
            f"Not enough evidence: {pays}. Neither no gap nor a relevant one can be ruled out ({matters}); one as "
            f"large as that would be detected with probability {c.decision.power:.0%}."
        ),
        NEGLIGIBLE: f"Detectable but negligible: {pays}, which is less than what is taken to matter ({matters}).",
        EQUIVALENT: (
            f"Equivalent: {pays}, so that a relevant gap either way is ruled out ({matters}; two one-sided tests, "
            f"p {_p(c.decision.p_within)})."
        ),
    }[conclusion]


def _in_units(gap: float, evidence: Evidence) -> str:
    name, unit = evidence.example
    if not name or not np.isfinite(gap) or gap == 0.0:
        return ""
    how = "raising" if unit > 0 else "lowering"
    budget = evidence.basis.budget
    return (
        f"A gap of {abs(gap):.2f} is as much as {how} {name} by {abs(gap * unit):.3g}; people without recourse count "
        f"as the full budget ({budget:g})."
    )


def _others(
    same: Sequence[Comparison], comparisons: Sequence[Comparison], main: Comparison, settings: AuditSettings
) -> str:
    if len(comparisons) == 1:
        return ""
    parts = []
    if same:
        listed = [f"{who_pays(c)[0]} ({_gap(c)})" for c in sorted(same, key=lambda c: -abs(c.gaps["score"].value))]
        parts.append(f"the same for {_listed(listed)}")
    rest = [c for c in comparisons if c is not main and c not in same]
    for conclusion in CONCLUSIONS:
        some = [c for c in rest if c.decision.conclusion == conclusion]
        if some:
            parts.append(f"{conclusion}: {_listed([f'{c.group} ({_gap(c)})' for c in some])}")
    sure = f"{1 - settings.level:.0%}"
    return f"Of {len(comparisons)} comparisons, {'; '.join(parts)}. All intervals hold at once with {sure} confidence."


def _gap(c: Comparison) -> str:
    gap = c.gaps["score"]
    return f"{gap.value:+.2f}" if np.isfinite(gap.value) else "unknown"


def _parts(conclusion: str, main: Comparison, worse: str, level: float) -> str:
    """The gaps in coverage and in average cost."""
    if conclusion not in (RELEVANT, OPEN):
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


def _survival(checks: Sequence[Check]) -> str:
    if not checks:
        return "It was not checked whether the search makes the gap."
    parts = []
    for survives, what in (
        (True, "gaps keep their size with"),
        (False, "gaps have another size with"),
        (None, "nothing can be told from"),
    ):
        names = [check.name for check in checks if check.survives is survives]
        if names:
            parts.append(f"{what} {_listed(names)}")
    return f"Checked for artefacts of the search: {'; '.join(parts)}."


def _small(small: Sequence[str], by_group: Mapping[str, Measures]) -> list[str]:
    if not small:
        return []
    listed = _listed([f"{name} ({by_group[name].affected} affected)" for name in small])
    return [f"Too small to be compared, and so not judged: {listed}."]


def _bias(c: Comparison, level: float) -> bool:
    gap = c.gaps["rejection_rate"]
    return gap.p_adjusted < level and (gap.value > 0 or c.other != EVERYBODY_ELSE)


def _most_rejected(comparisons: Sequence[Comparison], level: float) -> Comparison | None:
    found = [c for c in comparisons if _bias(c, level)]
    return max(found, key=lambda c: abs(c.gaps["rejection_rate"].value), default=None)


def _sides(c: Comparison) -> tuple[str, str]:
    """Who is rejected more often, and who less."""
    return (c.group, c.other) if c.gaps["rejection_rate"].value > 0 else (c.other, c.group)


def _rejections(main: Comparison | None) -> str:
    if main is None:
        return "Apart from recourse, no group is rejected significantly more often than others."
    gap, (against, other) = main.gaps["rejection_rate"], _sides(main)
    return (
        f"Apart from recourse, the model itself rejects {against} more often than {other}, by "
        f"{abs(gap.value) * 100:.1f} percentage points (p {_p(gap.p_adjusted)}); that is model bias, "
        "not recourse bias."
    )


def _burden(evidence: Evidence) -> str:
    """The largest significant gap in burden, which counts those who are not turned down too."""
    level = evidence.settings.level
    found = [c for c in evidence.criteria if c.name == BURDEN and c.gap.p_adjusted < level]
    found = [c for c in found if c.gap.value > 0 or c.other != EVERYBODY_ELSE]
    if not found:
        return ""
    main = max(found, key=lambda c: abs(c.gap.value))
    (more, high), (less, low) = (main.group, main.one), (main.other, main.two)
    if main.gap.value < 0:
        (more, high), (less, low) = (less, low), (more, high)
    return (
        f"Over all members, turned down or not, the burden of recourse is {high:.2f} per person in {more} and "
        f"{low:.2f} in {less} (p {_p(main.gap.p_adjusted)})."
    )


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _p(p: float) -> str:
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001" if p == p else "unknown"
