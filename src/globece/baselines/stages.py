"""The stages of AReS: the ground set, its evaluation and reduction, the choice of rules, and the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from globece.baselines.evaluate import Evaluated, evaluate
from globece.baselines.ground_set import GroundSet, Triples, generate, reduce_rules
from globece.baselines.items import Items
from globece.baselines.itemsets import (
    NO_ITEM,
    Itemsets,
    combinations_seen,
    frequent,
    item_bits,
    itemsets,
)
from globece.baselines.optimise import Limits, Optimum, optimise
from globece.baselines.recourse_set import Condition, GroundSetSummary, RecourseSet, TwoLevelRule, matches_of
from globece.baselines.settings import AresSettings, Subgroups, fast_settings
from globece.case.affected import Case
from globece.case.ordering import content_order
from globece.case.posing import Given, check_budget, checked, cost_on, pose
from globece.compact import Rows
from globece.costs import CostModel
from globece.errors import (
    InvalidDataError,
    InvalidParameterError,
    UnknownFeatureError,
    check_names,
    wrong,
)
from globece.explanation import Provenance
from globece.models.base import Model
from globece.progress import Monitor
from globece.settings import Settings
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray
from globece.version import __version__

SUPPORTS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01)
ENOUGH_TRIPLES = 100_000


@dataclass(frozen=True, eq=False)
class Prepared:
    """The validated inputs of all stages."""

    case: Case
    subgroups: Subgroups | None
    settings: AresSettings

    @property
    def box(self) -> Model:
        """The user's model."""
        return self.case.model

    @cached_property
    def values(self) -> FloatArray:
        """All rows, with one value per feature."""
        return self.case.rows.by_feature()


def prepare(
    model: Any,
    X: Any,
    favourable: Any,
    threshold: float | None,
    space: FeatureSpace | None,
    cost: CostModel | None,
    budget: float,
    subgroups: Subgroups | None,
    settings: AresSettings | None,
) -> Prepared:
    """Validate the arguments, encode the rows and predict them."""
    limit = check_budget(budget)
    given = Given.of(model, X, space)
    settings = checked("ares_settings", settings, AresSettings, lambda: fast_settings(given.space, limit))
    cost = cost_on(cost, given.space)
    _check_subgroups(given.space, subgroups)
    # No rays are followed, so the model need not be compiled.
    asking = Settings(exact=False, batch_rows=settings.batch_rows, timeout=settings.timeout)
    case = pose(model, given, favourable=favourable, threshold=threshold, cost=cost, budget=limit, settings=asking)
    return Prepared(case, subgroups, settings)


def run(prepared: Prepared, rng: np.random.Generator, monitor: Monitor, method: str, n: int) -> list[RecourseSet]:
    """Run the three stages; the ground set is generated once and evaluated again for each of ``n`` shuffles."""
    settings = prepared.settings
    if prepared.case.favourable.all():
        summary = _summary(method, None, None, None, settings)
        return [_result(prepared, None, (), summary, monitor, ("nobody is affected",))]
    space, favourable = prepared.case.cost.space, prepared.case.favourable
    ground = ground_set(space, prepared.values, favourable, prepared.subgroups, settings)
    monitor("ground set", 1, 1)
    size = len(ground)
    wanted = size if settings.evaluate is None else min(settings.evaluate, size)
    if wanted > settings.max_triples:
        raise InvalidParameterError(
            f"the ground set has {size:,} triples, more than the {settings.max_triples:,} that are evaluated at once "
            "(max_triples); raise support, or evaluate some of them: fast_ares, or settings with evaluate=5000"
        )
    inputs = prepared.values[~favourable]
    found = []
    for _ in range(n):
        shuffled = n > 1 or wanted < size
        triples = ground.triples(_draw(rng, size, wanted) if shuffled else np.arange(size))
        first = None
        if settings.race_rows is not None and settings.race_rows < len(inputs):
            order = content_order(prepared.case.inputs.values, int(rng.integers(2**63)))
            few = inputs[order[: settings.race_rows]]
            first = _evaluated(prepared, ground, triples, few, monitor)
            triples = _winners(prepared, first, monitor)
        evaluated = _evaluated(prepared, ground, triples, inputs, monitor)
        chosen = _reduced(evaluated, settings)
        terms = settings.objective.terms(chosen, prepared.case.cost, settings.max_rules)
        limits = Limits(settings.max_rules, settings.max_subgroups)
        best = optimise(chosen, terms, limits, monitor, exchanges=settings.exchanges, repeats=settings.repeats)
        notes = _notes(prepared, evaluated, best, monitor)
        summary = _summary(method, first or evaluated, chosen, best, settings)
        found.append(_result(prepared, chosen, best.rules, summary, monitor, notes))
        if monitor.stopped:
            break
    return found


def _evaluated(
    prepared: Prepared, ground: GroundSet, triples: Triples, values: FloatArray, monitor: Monitor
) -> Evaluated:
    batch = prepared.settings.batch_rows
    return evaluate(
        ground, triples, prepared.box, values, prepared.case.cost, prepared.case.budget, monitor, batch_rows=batch
    )


def _winners(prepared: Prepared, first: Evaluated, monitor: Monitor) -> Triples:
    """Triples whose changes did well on a sample of inputs: those of a larger rule set, and those that cover most."""
    settings = prepared.settings
    many = 2 * settings.max_rules
    terms = settings.objective.terms(first, prepared.case.cost, many)
    picked = optimise(first, terms, Limits(many, many), monitor, exchanges=0).rules
    order = np.argsort(-first.counts, kind="stable")
    _, earliest = np.unique(first.change_of[order], return_index=True)
    widest = first.change_of[order[np.sort(earliest)[: settings.max_rules]]]
    kept = np.isin(first.change_of, np.concatenate([first.change_of[list(picked)], widest]))
    return Triples(first.triples.outer[kept], first.triples.pair[kept])


def ground_set(
    space: FeatureSpace,
    values: FloatArray,
    favourable: BoolArray,
    subgroups: Subgroups | None,
    settings: AresSettings,
) -> GroundSet:
    """Stage 1: itemsets, and every valid triple of them.

    Parameters
    ----------
    space, values, favourable
        The space, all rows, with one value per feature, and which of them have the favourable outcome.
    subgroups, settings
        As for :func:`ares`.
    """
    items = Items.of(space, values, bins=settings.bins, binning=settings.binning, target=settings.target)
    if settings.thens_from == "favourable" and not favourable.any():
        raise InvalidDataError("thens_from is 'favourable', but no row has the favourable outcome")
    codes = items.codes(values)
    generate_ = _with_chosen_support if settings.support is None else _ground_set
    ground = generate_(items, codes, favourable, subgroups, settings)
    if ground is None or not len(ground):
        raise InvalidDataError(_why_empty(space, settings))
    return ground


def _with_chosen_support(
    items: Items, codes: IntArray, favourable: BoolArray, subgroups: Subgroups | None, settings: AresSettings
) -> GroundSet | None:
    """The ground set at the highest support for which it is large enough."""
    best = None
    for support in SUPPORTS:
        try:
            found = _ground_set(items, codes, favourable, subgroups, replace(settings, support=support))
        except InvalidParameterError:
            if best is not None:
                break  # too many itemsets: keep the previous one
            continue  # no itemset at this support
        best = found
        if len(best) >= ENOUGH_TRIPLES:
            break
    return best


def _ground_set(
    items: Items, codes: IntArray, favourable: BoolArray, subgroups: Subgroups | None, settings: AresSettings
) -> GroundSet:
    assert settings.support is not None
    support = settings.support
    # An itemset must leave room for at least one condition in the other If, where there is one.
    longest = settings.max_width - (1 if subgroups is None or len(subgroups) else 0)

    def mine(rows: IntArray) -> Itemsets:
        bits, limit = item_bits(rows, len(items)), settings.max_itemsets
        return frequent(bits, items.feature_of, len(rows), support=support, max_length=longest, limit=limit)

    every = mine(codes)
    if not len(every):
        raise InvalidParameterError(f"no itemset is frequent enough for a support of {support:g}; lower it")
    outer = every if subgroups is None else _descriptors(items, codes[~favourable], subgroups)
    inner, source, then_codes = every, every, codes
    if settings.thens_from == "favourable":
        then_codes = codes[favourable]
        source = mine(then_codes) if settings.then_support is None else every
    elif settings.reduce_rules and settings.match_features and settings.then_support is None:
        inner = source = reduce_rules(items, every)
    return generate(
        items,
        outer,
        inner,
        _thens(items, source, then_codes, settings),
        max_width=settings.max_width,
        match=settings.match_features,
    )


def _thens(
    items: Items, source: Itemsets, codes: IntArray, settings: AresSettings
) -> Callable[[tuple[int, ...]], IntArray]:
    if settings.then_support is not None:
        least = settings.then_support * len(codes)
        return lambda features: combinations_seen(codes, features, least)
    if not settings.match_features:
        return lambda features: source.items
    by_features: dict[tuple[int, ...], list[int]] = {}
    for i, row in enumerate(source.features(items.feature_of)):
        by_features.setdefault(tuple(int(f) for f in row if f != NO_ITEM), []).append(i)
    return lambda features: source.items[by_features.get(features, [])]


def _why_empty(space: FeatureSpace, settings: AresSettings) -> str:
    if len(space.features) == 1:
        return (
            f"there is only one feature, {space.names[0]!r}, and the two Ifs of a rule need different ones; "
            "pass subgroups=[] for rules without an Outer-If"
        )
    at = "" if settings.support is None else f" at support {settings.support:g}"
    return (
        f"the ground set is empty{at}: no frequent itemset has another over the same "
        "features to move to, with room for an Outer-If; lower support, or use then_support (Then-generation)"
        + ("" if space.movable else "; besides, no feature can move")
    )


def _descriptors(items: Items, codes: IntArray, subgroups: Subgroups) -> Itemsets:
    """Outer-Ifs for the user's subgroups: the combinations of values that affected inputs have."""
    if not len(subgroups):
        return Itemsets(np.empty((1, 0), dtype=np.int64))
    listed: list[tuple[int, ...]] = []
    for group in subgroups:
        names = (group,) if isinstance(group, str) else tuple(group)
        features = sorted(items.space.names.index(name) for name in names)
        listed += [tuple(int(i) for i in row) for row in combinations_seen(codes, features, 1)]
    return itemsets(listed)


def _check_subgroups(space: FeatureSpace, subgroups: Subgroups | None) -> None:
    if subgroups is None:
        return
    if not isinstance(subgroups, (list, tuple)):
        raise wrong("subgroups", "a list of feature names, or of tuples of them", subgroups)
    names = [n for g in subgroups for n in ((g,) if isinstance(g, str) else check_names("subgroups", g))]
    unknown = sorted({name for name in names if name not in space.names})
    if unknown:
        raise UnknownFeatureError(f"subgroups names unknown feature(s) {unknown}; there are {list(space.names)}")


def _draw(rng: np.random.Generator, size: int, wanted: int) -> IntArray:
    if size <= 10 * wanted or size <= 1_000_000:
        return np.asarray(rng.permutation(size)[:wanted], dtype=np.int64)
    return np.asarray(rng.choice(size, wanted, replace=False), dtype=np.int64)


def _reduced(evaluated: Evaluated, settings: AresSettings) -> Evaluated:
    """V-reduction r' and V-selection s."""
    kept = evaluated
    if settings.only_improving:
        covered = np.zeros(evaluated.outer.shape[1], dtype=np.uint64)
        chosen = []
        for part in evaluated.chunks():
            bits = evaluated.covers(part)
            for i, row in zip(part, bits, strict=True):
                if (row & ~covered).any():
                    covered |= row
                    chosen.append(int(i))
        kept = evaluated.keep(np.array(chosen, dtype=np.int64))
    if settings.select is not None and settings.select < len(kept):
        order = np.argsort(-kept.counts, kind="stable")[: settings.select]
        kept = kept.keep(np.sort(order))
    return kept


def _rule(evaluated: Evaluated, triple: int) -> TwoLevelRule:
    ground = evaluated.ground
    pair = int(evaluated.triples.pair[triple])

    def conditions(members: tuple[int, ...]) -> tuple[Condition, ...]:
        return tuple(_condition(ground.items, i) for i in members)

    return TwoLevelRule(
        conditions(ground.outer.members(int(evaluated.triples.outer[triple]))),
        conditions(ground.inner.members(int(ground.pair_inner[pair]))),
        conditions(ground.thens.members(int(ground.pair_then[pair]))),
    )


def _condition(items: Items, item: int) -> Condition:
    it = items.listed[item]
    first, last = (it.first, it.last) if items.target == "nearest" else (it.middle, it.middle)
    name = items.space.features[it.feature].name
    if not first <= last:  # a category, or a bin that nobody may move to
        return Condition(name, it.category, it.low, it.high)
    return Condition(name, it.category, it.low, it.high, first, last)


def _notes(prepared: Prepared, evaluated: Evaluated, best: Optimum, monitor: Monitor) -> tuple[str, ...]:
    notes = []
    if not prepared.case.favourable.any() and not best.rules:
        notes.append("the favourable outcome never occurred, neither in the rows given nor in any that was tried")
    elif not best.rules:
        notes.append("no triple of the ground set gives anybody recourse")
    if not evaluated.complete:
        notes.append("not every change was predicted before the search was stopped")
    if monitor.stopped:
        notes.append(f"stopped early ({monitor.stopped}): this is the best found until then")
    return tuple(notes)


def _summary(
    method: str,
    evaluated: Evaluated | None,
    chosen: Evaluated | None,
    best: Optimum | None,
    settings: AresSettings,
) -> GroundSetSummary:
    return GroundSetSummary(
        method=method,
        size=len(evaluated.ground) if evaluated else 0,
        evaluated=len(evaluated) if evaluated else 0,
        optimised=len(chosen) if chosen else 0,
        changes=len(np.unique(evaluated.change_of)) if evaluated else 0,
        accuracy=chosen.accuracy if chosen else 1.0,
        objective=repr(settings.objective),
        trace=best.trace if best else (),
    )


def _result(
    prepared: Prepared,
    chosen: Evaluated | None,
    triples: Sequence[int],
    summary: GroundSetSummary,
    monitor: Monitor,
    notes: tuple[str, ...],
) -> RecourseSet:
    rows, inputs, space = prepared.case.affected, prepared.case.inputs, prepared.case.cost.space
    rules = tuple(_rule(chosen, t) for t in triples) if chosen is not None else ()
    costs = np.array([chosen.costs(t) for t in triples] if chosen is not None else []).reshape(len(rules), len(rows))
    dropped = _drop_unconfirmed(prepared, rules, inputs, costs)
    if dropped:
        notes = (*notes, f"{dropped:,} counterfactual(s) were favourable once and not when predicted again: left out")
    tally = prepared.box.decide.tally
    return RecourseSet(
        space=space,
        cost=prepared.case.cost,
        budget=prepared.case.budget,
        rules=rules,
        encoded=inputs,
        rows=rows,
        n_rows=len(prepared.case.rows),
        matches=matches_of(rules, space, inputs),
        costs=costs,
        provenance=Provenance(
            version=__version__,
            model=prepared.box.name,
            method=summary.method,
            favourable=prepared.box.decide.described,
            generator=repr(prepared.settings),
            candidates=summary.evaluated,
            model_calls=tally.calls,
            model_rows=tally.rows,
            complete=monitor.stopped is None,
            notes=notes,
        ),
        ground_set=summary,
        model=prepared.box,
    )


def _drop_unconfirmed(prepared: Prepared, rules: tuple[TwoLevelRule, ...], inputs: Rows, costs: FloatArray) -> int:
    """Predict the cheapest counterfactual of each input again, drop those that are unfavourable, and count them.

    A model whose sums depend on the batch may predict differently right on its boundary.
    """
    dropped, waiting = 0, np.flatnonzero(np.isfinite(costs).any(axis=0))
    while waiting.size:
        pick = costs[:, waiting].argmin(axis=0)
        wrong = np.zeros(len(waiting), dtype=bool)
        for part, after in inputs[waiting].chunks():
            for i, rule in enumerate(rules):
                mine = pick[part] == i
                after[mine] = rule.applied(prepared.case.cost.space, after[mine])
            wrong[part] = ~prepared.box.favourable(after)
        costs[pick[wrong], waiting[wrong]] = np.inf
        dropped += int(wrong.sum())
        waiting = waiting[wrong]
        waiting = waiting[np.isfinite(costs[:, waiting]).any(axis=0)]
    return dropped
