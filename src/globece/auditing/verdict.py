"""The verdict of an audit: structured, and in words that need no glossary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from globece.auditing.artefact import Check
from globece.auditing.basis import Basis
from globece.auditing.conclusions import CONCLUSIONS, EQUIVALENT, NEGLIGIBLE, OPEN, RELEVANT, UNKNOWN, worst
from globece.auditing.criteria import BURDEN, REJECTION, Criterion
from globece.auditing.measures import EVERYBODY_ELSE, Comparison, Gap, Measures
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
        A change in words with a place for a number, and that number for a cost of 1; "" if there is no example.
    criteria
        What the score hides.
    hints
        Remarks that the text already says elsewhere.
    """

    comparisons: Sequence[Comparison]
    by_group: Mapping[str, Measures]
    checks: Sequence[Check]
    settings: AuditSettings
    basis: Basis
    remarks: tuple[str, ...]
    example: tuple[str, float]
    criteria: tuple[Criterion, ...] = ()
    hints: tuple[str, ...] = ()


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
    rejected = _most_rejected(evidence)
    model_bias = None if rejected is None or rejected.sides[0] == EVERYBODY_ELSE else rejected.sides[0]
    main = headline(comparisons)
    warnings = [*evidence.remarks, *evidence.hints]
    notes = [f"Note: {remark}." for remark in evidence.remarks]
    about_all = [_small(small, evidence.by_group), _extremes(evidence.by_group), _rejections(rejected, evidence)]
    if main is None:
        why = "fewer than two groups are large enough to be compared"
        lines = [_favourable(basis), f"Not enough evidence: {why}.", *about_all, _rests(basis), *notes, SAYS_NOT]
        return Verdict(
            basis.favourable, UNKNOWN, None, None, (), np.nan, (np.nan, np.nan), np.nan, np.nan, 0.0, small, model_bias,
            {}, basis.sentences(), (why, *warnings), _text(lines),
        )  # fmt: skip
    gap, decision = main.gaps["score"], main.decision
    conclusion = worst([c.decision.conclusion for c in comparisons])
    worse, better = who_pays(main)
    named = conclusion in (RELEVANT, OPEN)
    same = [who_pays(c)[0] for c in comparisons if c is not main and c.decision.conclusion == conclusion]
    if decision.power < ENOUGH_POWER and conclusion == UNKNOWN and np.isfinite(gap.detectable):
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
        _in_units(gap.value if np.isfinite(gap.p) else np.nan, decision.margin, evidence),
        _others(comparisons, settings),
        _parts(conclusion, main, settings.level),
        _survival(evidence.checks),
        _left_out(comparisons, evidence),
        *about_all,
        _burden(evidence),
        _rests(basis),
        *notes,
        SAYS_NOT,
    ]
    return Verdict(
        favourable=basis.favourable,
        conclusion=conclusion,
        against=worse if named else None,
        other=better if named else None,
        also=tuple(dict.fromkeys(name for name in same if name != worse)) if named else (),
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
        text=_text(lines),
    )


def _text(lines: Sequence[str]) -> str:
    return "\n".join(line for line in lines if line)


SAYS_NOT = (
    "It says nothing about causes, nor whether the changes are feasible for a person, and it holds for this model, "
    "these rows and what was held fixed."
)
FEW = 8  # names that a sentence lists; ``by_group`` and ``decisions`` have all of them


def _favourable(basis: Basis) -> str:
    guessed = " (guessed: nobody said so)" if basis.guessed else ""
    return f"Favourable outcome: {basis.favourable}{guessed}. Cost: {basis.cost.removeprefix('cost ')}."


def _rests(basis: Basis) -> str:
    """What changes the answer most, in one line; ``rests_on`` has the rest."""
    rows, trained, held, *_ = basis.sentences()
    return f"It rests on {rows}; {trained}. {held[0].upper()}{held[1:]}."


def _in(name: str) -> str:
    return name if name == EVERYBODY_ELSE else f"those in {name}"


def _pays(c: Comparison) -> str:
    """Who pays how much more, or less, than whom."""
    value, d = c.gaps["score"].value, decimals(c.decision.margin)
    if value == 0.0:
        return f"people turned down in {c.group} pay as much for recourse on average as {_in(c.other)}"
    if c.other == EVERYBODY_ELSE and value < 0:
        return f"people turned down in {c.group} pay {-value:.{d}f} less for recourse on average than {EVERYBODY_ELSE}"
    worse, better = who_pays(c)
    return f"people turned down in {worse} pay {abs(value):.{d}f} more for recourse on average than {_in(better)}"


def decimals(margin: float) -> int:
    """Decimals of costs, so that a gap as large as the relevance margin has two digits.

    >>> decimals(0.7), decimals(0.031), decimals(0.0042)
    (2, 3, 4)
    """
    return int(np.clip(1 - np.floor(np.log10(margin)), 2, 5)) if 0 < margin < np.inf else 2


def _whom(c: Comparison) -> str:
    if c.other == EVERYBODY_ELSE and c.gaps["score"].value < 0:
        return f"in favour of {c.group}"
    return f"against {who_pays(c)[0]}"


def _first(c: Comparison, conclusion: str, settings: AuditSettings) -> str:
    gap, margin = c.gaps["score"], f"{c.decision.margin:.2g}"
    if not np.isfinite([gap.value, gap.p]).all():
        return (
            f"Not enough evidence: the gap between {c.group} and {c.other} cannot be computed: no spread can be "
            "told from so few people in comparable levels."
        )
    low, high = (gap.low, gap.high) if gap.value >= 0 else (-gap.high, -gap.low)
    d = decimals(c.decision.margin)
    pays = f"{_pays(c)} ({1 - settings.level:.0%} interval {low:.{d}f} to {high:.{d}f}, p {_p(gap.p_adjusted)})"
    share = f"{settings.relevant_share:.0%} of what everybody pays on average"
    matters = f"a gap counts as relevant from {margin} on, {'as set' if settings.relevant is not None else share}"
    return {
        RELEVANT: f"Relevant bias {_whom(c)}: {pays}. The whole interval is beyond {margin}; {matters}.",
        OPEN: (
            f"There is a gap {_whom(c)}, and whether it is relevant is open: {pays}. The interval excludes 0 and "
            f"reaches across {margin}; {matters}."
        ),
        UNKNOWN: (
            f"Not enough evidence: {pays}. Neither no gap nor a relevant one can be ruled out; {matters}. A gap "
            f"of that size would be detected with probability {c.decision.power:.0%}."
        ),
        NEGLIGIBLE: (
            f"Detectable but negligible: {pays}. There is a gap, and the whole interval is below {margin}; {matters}."
        ),
        EQUIVALENT: (
            f"Equivalent: {pays}. A relevant gap is ruled out in either direction (two one-sided tests, "
            f"p {_p(c.decision.p_within)}); {matters}."
        ),
    }[conclusion]


def _in_units(gap: float, margin: float, evidence: Evidence) -> str:
    said, unit = evidence.example
    counted = f"people without recourse count as the full budget ({evidence.basis.budget:g})"
    if not np.isfinite(gap):
        return ""
    if not said or gap == 0.0:
        return f"{counted[0].upper()}{counted[1:]}."
    return f"A gap of {abs(gap):.{decimals(margin)}f} is as much as {said.format(abs(gap * unit))}; {counted}."


def _others(comparisons: Sequence[Comparison], settings: AuditSettings) -> str:
    if len(comparisons) == 1:
        return ""
    parts = []
    for conclusion in CONCLUSIONS:
        some = [c for c in comparisons if c.decision.conclusion == conclusion]
        if some:
            parts.append(f"{conclusion}: {_listed([f'{c.group} {_gap(c)}' for c in some])}")
    return (
        f"Each of {len(comparisons)} groups compared with {comparisons[0].other} (minus: it pays less): "
        f"{'; '.join(parts)}. All intervals hold at once with {1 - settings.level:.0%} confidence."
    )


def _gap(c: Comparison) -> str:
    gap = c.gaps["score"]
    return f"{gap.value:+.{decimals(c.decision.margin)}f}" if np.isfinite(gap.value) else "unknown"


def _parts(conclusion: str, main: Comparison, level: float) -> str:
    """The gaps in coverage and in average cost."""
    if conclusion not in (RELEVANT, OPEN):
        return ""
    coverage, cost = main.gaps["coverage"], main.gaps["average_cost"]
    named = main.group if main.other == EVERYBODY_ELSE else who_pays(main)[0]
    sign, d = 1.0 if named == main.group else -1.0, decimals(main.decision.margin)
    found = []
    if coverage.p_adjusted < level:
        more = "fewer" if sign * coverage.value < 0 else "more"
        found.append(
            f"{abs(coverage.value) * 100:.1f} percentage points {more} of those turned down in {named} have recourse "
            f"(p {_p(coverage.p_adjusted)})"
        )
    if cost.p_adjusted < level and np.isfinite(cost.value):
        more = "more" if sign * cost.value > 0 else "less"
        found.append(f"those in {named} who have it pay {abs(cost.value):.{d}f} {more} (p {_p(cost.p_adjusted)})")
    if not found:
        return "Neither the share with recourse nor what it costs those who have it differs significantly on its own."
    return f"In detail, {' and '.join(found)}."


CHECKED = {
    "more candidates": "more candidate directions",
    "deciles": "costs by deciles",
    "equal-width bins": "costs by equal-width bins",
    "other weights": "other weights of the features",
    "lower bound": "the lower bound on each person's cost",
}


def _survival(checks: Sequence[Check]) -> str:
    if not checks:
        return "It was not checked whether the search makes the gap."
    parts = []
    for survives, what in (
        (True, "gaps keep their size with"),
        (False, "some gap has another size with"),
        (None, "nothing can be told from"),
    ):
        names = [CHECKED.get(check.name, check.name) for check in checks if check.survives is survives]
        if names:
            parts.append(f"{what} {_listed(names)}")
    return f"Checked for artefacts of search and cost: {'; '.join(parts)}."


def _small(small: Sequence[str], by_group: Mapping[str, Measures]) -> str:
    if not small:
        return ""
    listed = _listed([f"{name} ({by_group[name].affected} affected)" for name in small])
    return f"Too small to be compared, and so not judged: {listed}."


def _extremes(by_group: Mapping[str, Measures]) -> str:
    """Groups in which nobody, or everybody, is turned down; and whether anybody at all has recourse."""
    nobody = [name for name, m in by_group.items() if m.n and not m.affected]
    full = [name for name, m in by_group.items() if m.n and m.affected == m.n]
    judged = [m for m in by_group.values() if m.judged]
    parts = []
    if nobody:
        parts.append(f"Nobody is turned down in {_listed(nobody)}, so that there is no recourse to compare.")
    if full:
        parts.append(f"Everybody is turned down in {_listed(full)}.")
    if judged and all(m.coverage == 0.0 for m in judged):
        parts.append("Nobody in the groups compared has recourse within the budget: in that alone they are alike.")
    return " ".join(parts)


def _left_out(comparisons: Sequence[Comparison], evidence: Evidence) -> str:
    """Who is not compared, as nobody of the other side has their level of the control."""
    found = []
    for c in comparisons:
        for name, other, n in ((c.group, c.other, c.left_out[0]), (c.other, c.group, c.left_out[1])):
            if n and name != EVERYBODY_ELSE:
                found.append(f"{n:,} of {evidence.by_group[name].affected:,} in {name} (with {other})")
    if not found:
        return ""
    return f"Not compared, as nobody of the other side has their level of {evidence.basis.control}: {_listed(found)}."


def _rejected(evidence: Evidence) -> list[Rejected]:
    """Significant gaps in rejection rates: of all comparisons, and of groups that are not judged."""
    level = evidence.settings.level
    found = [(c.group, c.other, c.gaps["rejection_rate"]) for c in evidence.comparisons]
    found += [(c.group, c.other, c.gap) for c in evidence.criteria if c.name == REJECTION]
    return [Rejected(*one) for one in found if one[2].p_adjusted < level]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A gap in rejection rates between two sides."""

    group: str
    other: str
    gap: Gap

    @property
    def sides(self) -> tuple[str, str]:
        """Who is rejected more often, and who less."""
        return (self.group, self.other) if self.gap.value > 0 else (self.other, self.group)


def _most_rejected(evidence: Evidence) -> Rejected | None:
    """The largest gap; of a group against everybody else first where the group is rejected more."""
    return max(_rejected(evidence), key=lambda r: (r.sides[0] != EVERYBODY_ELSE, abs(r.gap.value)), default=None)


def _rejections(main: Rejected | None, evidence: Evidence) -> str:
    if main is None:
        if not any(np.isfinite(c.gaps["rejection_rate"].p) for c in evidence.comparisons):
            return ""
        return "Apart from recourse, no group is rejected significantly more often than others."
    against, other = main.sides
    how, whom, than = "more", against, other
    if against == EVERYBODY_ELSE:
        how, whom, than = "less", other, against
    return (
        f"Apart from recourse, the model itself rejects {whom} {how} often than {than}, by "
        f"{abs(main.gap.value) * 100:.1f} percentage points (p {_p(main.gap.p_adjusted)}); that is model bias, "
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
    among = f"among {less}" if less == EVERYBODY_ELSE else f"in {less}"
    return (
        f"Over all members, turned down or not, recourse costs {high:.2f} per person in {more} and {low:.2f} {among} "
        f"(its burden; p {_p(main.gap.p_adjusted)})."
    )


def _listed(items: Sequence[str]) -> str:
    if len(items) > FEW:
        return f"{', '.join(items[:FEW])} and {len(items) - FEW} more"
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _p(p: float) -> str:
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001" if p == p else "unknown"
