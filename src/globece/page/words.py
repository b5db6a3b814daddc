"""A direction in a sentence, and what cost means in this data's own terms."""

from __future__ import annotations

from globece import formatting, rays
from globece.explanation import Explanation
from globece.page.about import About
from globece.rules import Move, Rule, RulesChart, rules_at
from globece.space import Feature, FeatureSpace, FloatArray

PARTS = 3  # of a sentence
LISTED = 3  # categories of a rule's If


def amount(about: About, move: Move) -> str:
    """A move's size with its unit: "21 months"."""
    text = formatting.at_most(abs(move.amount))
    unit = about.unit(move.feature)
    if move.steps:
        unit = "step" if abs(move.amount) == 1.0 else "steps"
    return f"{text} {unit}".rstrip()


def move_phrase(about: About, move: Move) -> str:
    """As "lower loan duration by up to 21 months"."""
    verb = "lower" if move.amount < 0 else "raise"
    return f"{verb} {about.label(move.feature)} by up to {amount(about, move)}"


def rule_phrase(about: About, feature: Feature, rule: Rule) -> str:
    """As "change account from A11 or A12 to A14"."""
    target = _named(about, feature, rule.target)
    if rule.negated or len(rule.sources) > LISTED:
        return f"change {about.label(rule.feature)} to {target}"
    sources = " or ".join(_named(about, feature, s) for s in rule.sources)
    return f"change {about.label(rule.feature)} from {sources} to {target}"


def rule_line(about: About, feature: Feature, rule: Rule) -> str:
    """As "A11 or A12 → A14"; with the shorter form where most categories switch."""
    target = _named(about, feature, rule.target)
    if rule.negated:
        return (
            f"anything but {' or '.join(_named(about, feature, o) for o in rule.others)} \N{RIGHTWARDS ARROW} {target}"
        )
    return f"{' or '.join(_named(about, feature, s) for s in rule.sources)} \N{RIGHTWARDS ARROW} {target}"


def _named(about: About, feature: Feature, label: str) -> str:
    return about.values.get(f"{feature.name} = {label}", about.values.get(label, label))


def reached_rules(space: FeatureSpace, delta: FloatArray, chart: RulesChart) -> tuple[Rule, ...]:
    """The rules that somebody needs."""
    reach = max((row.reach for row in chart.rows), default=0.0)
    return rules_at(space, delta, reach) if reach else ()


def in_words(ex: Explanation, direction: int, chart: RulesChart, about: About) -> str:
    """A direction in one sentence: what moves most by cost, and what changes."""
    if not chart.rows or not chart.rows[-1].coverage:
        return "Helps nobody within the budget"
    phrases: list[tuple[float, str]] = []
    for move in chart.rows[-1].moves:
        phrases.append((move.cost, move_phrase(about, move)))
    for rule in reached_rules(ex.space, ex.directions[direction], chart):
        feature = ex.space[rule.feature]
        phrases.append((ex.cost.weight(feature), rule_phrase(about, feature, rule)))
    ordered = [text for _, text in sorted(phrases, key=lambda pair: -pair[0])]
    if not ordered:
        return "Changes nothing"
    text = "; ".join(ordered[:PARTS])
    if more := len(ordered) - PARTS:
        text += f"; and {more} more change{'s' if more > 1 else ''}" if more > 0 else ""
    return text[0].upper() + text[1:]


def example(ex: Explanation) -> tuple[Feature, float] | None:
    """The continuous feature that recourse changes most, by cost, and the signed change of it that costs 1.

    An explanation without its affected inputs names the one along which its directions cost most.
    """
    price = {
        f.name: ex.cost.weight(f) * ex.cost.scales[f.name].slopes[0]
        for f in ex.space.movable
        if f.kind == "continuous" and f.name in ex.cost.scales and ex.cost.scales[f.name].is_linear
    }
    paid: dict[str, tuple[float, float]] = {}
    if ex.n_covered:
        moved = ex.mean_translation()
        paid = {name: (c, d) for name, c, d in zip(moved.features, moved.cost, moved.change, strict=True) if c and d}
    else:
        for delta in ex.directions:
            for f, step in rays.movers(ex.space, delta):
                cost = abs(step) * price.get(f.name, 0.0)
                paid[f.name] = max(paid.get(f.name, (0.0, 0.0)), (cost, step))
    best = max((name for name in paid if name in price), key=lambda name: paid[name][0], default=None)
    if best is None or not price[best]:
        return None
    return ex.space[best], (1.0 if paid[best][1] > 0 else -1.0) / price[best]


def cost_example(ex: Explanation, about: About) -> str:
    """What a cost of 1 is in one feature of this data."""
    found = example(ex)
    if found is None:
        return "for example one changed category"
    f, change = found
    return f"for example {_size(f, abs(change), about)} of {about.label(f.name)}"


def worth(ex: Explanation, about: About, cost: float) -> str:
    """A cost in one feature's own units, as "as much as lowering loan duration by 6.8 months"; nothing without one."""
    found = example(ex)
    if found is None or not cost > 0.0:
        return ""
    f, change = found
    how = "raising" if change > 0 else "lowering"
    return f"as much as {how} {about.label(f.name)} by {_size(f, cost * abs(change), about)}"


def _size(f: Feature, size: float, about: About) -> str:
    text = f"{size:,.0f}" if size >= 1000 else f"{size:.3g}"
    return f"{text} {about.unit(f.name)}".rstrip()
