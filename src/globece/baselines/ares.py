"""The front door of the baselines: AReS and Fast AReS on the same model, costs and scorer as an explanation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from globece.baselines.evaluate import Evaluated, evaluate
from globece.baselines.ground_set import GroundSet, Triples, generate, reduce_rules
from globece.baselines.items import Binning, Items, Target
from globece.baselines.itemsets import (
    NO_ITEM,
    Itemsets,
    combinations_seen,
    frequent,
    item_bits,
    itemsets,
)
from globece.baselines.objectives import AccuracyCost, Objective
from globece.baselines.optimise import Limits, Optimum, optimise
from globece.baselines.recourse_set import Condition, GroundSetSummary, RecourseSet, TwoLevelRule
from globece.costs import CostModel
from globece.directions.scaling import content_order
from globece.errors import (
    InvalidDataError,
    InvalidParameterError,
    UnknownFeatureError,
    check_choice,
    check_count,
    check_number,
)
from globece.explanation import Provenance
from globece.models.adapt import as_model
from globece.models.blackbox import BlackBox
from globece.posing import Seed, check_budget, checked, cost_on, generator_of, own_rows
from globece.progress import Monitor, Progress, monitoring
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray
from globece.version import __version__

SUPPORTS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01)
ENOUGH_TRIPLES = 100_000
Subgroups = Sequence[str | Sequence[str]]


@dataclass(frozen=True, slots=True)
class AresSettings:
    """How the ground set is made, reduced and optimised.

    Parameters
    ----------
    support
        Least share of the rows that have an itemset, p. ``None`` takes the highest of 0.9, 0.8, ... down to 0.01 that
        gives a ground set of 100,000 triples, or the lowest that stays within ``max_itemsets``.
    bins, binning, target
        Bins of a continuous feature, how they are cut, and where in one a Then ends; see
        :meth:`globece.baselines.items.Items.of`.
    match_features
        Whether a Then has the features of its Inner-If.
    thens_from
        Rows whose itemsets the Thens are: ``"all"``, or only the ``"favourable"`` ones.
    max_rules, max_width, max_subgroups
        Most rules, most conditions in both Ifs of one, most different Outer-Ifs: epsilon 1, 2 and 3.
    objective
        What the optimisation maximises: :class:`AccuracyCost` or :class:`FourTerms`.
    exchanges, repeats
        Most rules that one exchange takes out, and how often to search; Lee et al. (2009) have k and k + 1 for k
        constraints, the paper finds 1 and 1 to do as well.
    reduce_rules
        RL-reduction: leave Inner-Ifs out whose features occur together once. Off with Then-generation.
    then_support
        Then-generation with this support q: Thens are the combinations of values that so large a share of the rows
        have in the Inner-If's features. ``None`` takes the Thens from the frequent itemsets.
    evaluate
        V-reduction r: how many triples, drawn from the ground set by seed, to evaluate; ``None`` for all.
    only_improving
        V-reduction r': of those keep only the ones that raise the accuracy of the ones kept before.
    select
        V-selection s: how many of the triples with the most coverage to optimise over; ``None`` for all.
    race_rows
        Race: try all changes on this many affected inputs first, drawn by seed, and only those that do well there on
        all inputs. ``None`` tries every change on everybody.
    max_itemsets, max_triples
        Bounds beyond which the ground set would not fit, and an error says so.
    batch_rows, timeout
        Most rows that the model gets at once, and seconds that one call may take.
    """

    support: float | None = 0.1
    bins: int = 10
    binning: Binning = "equal"
    target: Target = "middle"
    match_features: bool = True
    thens_from: Literal["all", "favourable"] = "all"
    max_rules: int = 20
    max_width: int = 7
    max_subgroups: int = 10
    objective: Objective = field(default_factory=AccuracyCost)
    exchanges: int = 1
    repeats: int = 1
    reduce_rules: bool = False
    then_support: float | None = None
    evaluate: int | None = None
    only_improving: bool = False
    select: int | None = None
    race_rows: int | None = None
    max_itemsets: int = 100_000
    max_triples: int = 5_000_000
    batch_rows: int = 65_536
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.support is not None:
            check_number("support", self.support, open_low=True, high=1.0)
        check_choice("thens_from", self.thens_from, ("all", "favourable"))
        for name in ("max_rules", "max_subgroups", "repeats", "max_itemsets", "max_triples", "batch_rows"):
            check_count(name, getattr(self, name))
        check_count("max_width", self.max_width, low=2)
        check_count("exchanges", self.exchanges, low=0)
        if self.then_support is not None:
            check_number("then_support", self.then_support, high=1.0)
        for name in ("evaluate", "select", "race_rows"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if not isinstance(self.objective, Objective):
            raise InvalidParameterError(
                f"objective must be an AccuracyCost or a FourTerms, or have a terms method; got {self.objective!r}"
            )


def ares(
    model: Any,
    X: Any,
    *,
    favourable: Any = None,
    threshold: float | None = None,
    space: FeatureSpace | None = None,
    cost: CostModel | None = None,
    budget: float = 10.0,
    subgroups: Subgroups | None = None,
    rng: Seed = None,
    progress: bool | Callable[[Progress], None] = False,
    time_limit: float | None = None,
    settings: AresSettings | None = None,
) -> RecourseSet:
    """AReS (Rawal and Lakkaraju 2020): a few two-level rules, chosen from every valid triple.

    Parameters
    ----------
    model, X, favourable, threshold, space, cost, budget
        As for :func:`globece.explain`.
    subgroups
        Features whose values are the Outer-Ifs, such as ``["sex", "race"]``, to compare recourse between groups; two
        or more together as in ``[("sex", "race")]``. An empty list gives rules without an Outer-If. By default the
        Outer-Ifs are the frequent itemsets.
    rng
        A seed or a generator. Same seed, same result.
    progress, time_limit
        As for :func:`globece.explain`.
    settings
        How the ground set is made and optimised.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> X = pd.DataFrame({"housing": ["own", "rent"] * 10, "job": ["a", "a", "b", "b"] * 5})
    >>> rules = ares(lambda X: (X["housing"] == "own").astype(int), X, rng=0)
    >>> rules.coverage, rules.average_cost
    (1.0, 1.0)
    >>> print(rules)
    If job = a:
        If housing = rent,
        Then housing = own  [covers 50.0%, cost 1.00]
    If job = b:
        If housing = rent,
        Then housing = own  [covers 50.0%, cost 1.00]
    """
    made = _prepare(
        model,
        X,
        favourable,
        threshold,
        space,
        cost,
        budget,
        subgroups,
        AresSettings() if settings is None else settings,
    )
    with monitoring(progress, time_limit) as monitor:
        return _run(made, generator_of(rng), monitor, "AReS", 1)[0]


def fast_ares(
    model: Any,
    X: Any,
    *,
    favourable: Any = None,
    threshold: float | None = None,
    space: FeatureSpace | None = None,
    cost: CostModel | None = None,
    budget: float = 10.0,
    subgroups: Subgroups | None = None,
    rng: Seed = None,
    progress: bool | Callable[[Progress], None] = False,
    time_limit: float | None = None,
    settings: AresSettings | None = None,
) -> RecourseSet:
    """Fast AReS: the same, with the paper's reductions of the ground set.

    Parameters
    ----------
    model, X, favourable, threshold, space, cost, budget, subgroups, rng, progress, time_limit
        As for :func:`ares`.
    settings
        How the ground set is made and optimised. By default the support is found, Then-generation is used where most
        features are continuous and RL-reduction elsewhere, 20,000 triples are evaluated, changes race on 500 inputs,
        and ``lam = 1 / budget`` makes the score the objective.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> X = pd.DataFrame({"housing": ["own", "rent"] * 10, "job": ["a", "a", "b", "b"] * 5})
    >>> fast_ares(lambda X: (X["housing"] == "own").astype(int), X, rng=0)
    RecourseSet(n_rules=2, n_affected=10, coverage=1.000, average_cost=1.000, score=1.000)
    """
    made = _prepare(model, X, favourable, threshold, space, cost, budget, subgroups, settings)
    with monitoring(progress, time_limit) as monitor:
        return _run(made, generator_of(rng), monitor, "Fast AReS", 1)[0]


def several(
    model: Any,
    X: Any,
    n: int,
    *,
    favourable: Any = None,
    threshold: float | None = None,
    space: FeatureSpace | None = None,
    cost: CostModel | None = None,
    budget: float = 10.0,
    subgroups: Subgroups | None = None,
    rng: Seed = None,
    settings: AresSettings | None = None,
) -> tuple[RecourseSet, ...]:
    """Several good rule sets of Fast AReS, each from the ground set shuffled anew, best score first.

    Parameters
    ----------
    model, X, favourable, threshold, space, cost, budget, subgroups, rng, settings
        As for :func:`fast_ares`.
    n
        How many rule sets; those that come out the same are given once.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"housing": ["own", "rent"] * 10, "job": ["a", "a", "b", "b"] * 5})
    >>> len(several(lambda X: (X["housing"] == "own").astype(int), X, 3, rng=0))
    1
    """
    n = check_count("n", n)
    made = _prepare(model, X, favourable, threshold, space, cost, budget, subgroups, settings)
    with monitoring(False, None) as monitor:
        found = _run(made, generator_of(rng), monitor, "Fast AReS", n)
    distinct = {frozenset(rule.text(r.space) for rule in r.rules): r for r in reversed(found)}
    return tuple(sorted(distinct.values(), key=lambda r: (r.score, [rule.text(r.space) for rule in r.rules])))


def fast_settings(space: FeatureSpace, budget: float = 10.0) -> AresSettings:
    """What :func:`fast_ares` does by default, for a space and a budget.

    The paper found Then-generation to do well where most features are continuous, and RL-reduction elsewhere.

    Parameters
    ----------
    space
        The space.
    budget
        The most that recourse may cost.

    Examples
    --------
    >>> import numpy as np
    >>> fast_settings(FeatureSpace.from_matrix(np.arange(6.0).reshape(3, 2))).then_support
    0.0
    """
    limit = check_number("budget", budget, open_low=True)
    mostly_numbers = 2 * sum(f.kind == "continuous" for f in space.features) > len(space.features)
    return AresSettings(
        support=None,
        reduce_rules=not mostly_numbers,
        then_support=0.0 if mostly_numbers else None,
        objective=AccuracyCost(1.0 / limit),
        evaluate=20_000,
        race_rows=500,
        max_itemsets=5000,
    )


# -- the stages -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Made:
    """What the stages work on."""

    box: BlackBox
    Z: FloatArray
    favourable: BoolArray
    cost: CostModel
    budget: float
    subgroups: Subgroups | None
    settings: AresSettings


def _prepare(
    model: Any,
    X: Any,
    favourable: Any,
    threshold: float | None,
    space: FeatureSpace | None,
    cost: CostModel | None,
    budget: float,
    subgroups: Subgroups | None,
    settings: AresSettings | None,
) -> _Made:
    limit = check_budget(budget)
    space = checked("space", space if space is not None else FeatureSpace.from_frame(X), FeatureSpace)
    settings = checked("settings", settings if settings is not None else fast_settings(space, limit), AresSettings)
    cost = cost_on(cost, space)
    _check_subgroups(space, subgroups)
    Z = space.encode(X)
    # Flips are looked up, never searched for along a ray, so the model itself is all that is needed.
    box = as_model(
        model,
        space,
        favourable=favourable,
        threshold=threshold,
        batch_rows=settings.batch_rows,
        timeout=settings.timeout,
        compile=False,
    )
    assert isinstance(box, BlackBox)
    # rows that come back from encoding just as they were need not be asked about twice
    same = isinstance(X, np.ndarray) and np.array_equal(space.decode(Z), X, equal_nan=X.dtype.kind == "f")
    decided = box.favourable(Z) if same else own_rows(box, X, Z)
    return _Made(box, Z, decided, cost, limit, subgroups, settings)


def _run(made: _Made, rng: np.random.Generator, monitor: Monitor, method: str, n: int) -> list[RecourseSet]:
    """The three stages; the ground set is generated once and evaluated anew for each of ``n`` shuffles."""
    settings = made.settings
    if made.favourable.all():
        summary = _summary(method, None, None, None, settings)
        return [_result(made, None, (), summary, monitor, ("nobody is affected",))]
    ground = ground_set(made.cost.space, made.Z, made.favourable, made.subgroups, settings)
    monitor("ground set", 1, 1)
    size = len(ground)
    wanted = size if settings.evaluate is None else min(settings.evaluate, size)
    if wanted > settings.max_triples:
        raise InvalidParameterError(
            f"the ground set has {size:,} triples, more than the {settings.max_triples:,} that are evaluated at once "
            "(max_triples); raise support, or evaluate some of them: fast_ares, or settings with evaluate=5000"
        )
    inputs = made.Z[~made.favourable]
    found = []
    for _ in range(n):
        shuffled = n > 1 or wanted < size
        triples = ground.triples(_draw(rng, size, wanted) if shuffled else np.arange(size))
        first = None
        if settings.race_rows is not None and settings.race_rows < len(inputs):
            few = inputs[content_order(inputs, int(rng.integers(2**63)))[: settings.race_rows]]
            first = _evaluated(made, ground, triples, few, monitor)
            triples = _winners(made, first, monitor)
        evaluated = _evaluated(made, ground, triples, inputs, monitor)
        chosen = _reduced(evaluated, settings)
        terms = settings.objective.terms(chosen, made.cost, settings.max_rules)
        limits = Limits(settings.max_rules, settings.max_subgroups)
        best = optimise(chosen, terms, limits, monitor, exchanges=settings.exchanges, repeats=settings.repeats)
        notes = _notes(made, evaluated, best, monitor)
        summary = _summary(method, first or evaluated, chosen, best, settings)
        found.append(_result(made, chosen, best.rules, summary, monitor, notes))
        if monitor.stopped:
            break
    return found


def _evaluated(made: _Made, ground: GroundSet, triples: Triples, Z: FloatArray, monitor: Monitor) -> Evaluated:
    batch = made.settings.batch_rows
    return evaluate(ground, triples, made.box, Z, made.cost, made.budget, monitor, batch_rows=batch)


def _winners(made: _Made, first: Evaluated, monitor: Monitor) -> Triples:
    """Triples whose changes did well on few inputs: those of a larger rule set, and those that cover most."""
    settings = made.settings
    many = 2 * settings.max_rules
    terms = settings.objective.terms(first, made.cost, many)
    picked = optimise(first, terms, Limits(many, many), monitor, exchanges=0).rules
    order = np.argsort(-first.counts, kind="stable")
    _, earliest = np.unique(first.change_of[order], return_index=True)
    widest = first.change_of[order[np.sort(earliest)[: settings.max_rules]]]
    kept = np.isin(first.change_of, np.concatenate([first.change_of[list(picked)], widest]))
    return Triples(first.triples.outer[kept], first.triples.pair[kept])


def ground_set(
    space: FeatureSpace,
    Z: FloatArray,
    favourable: BoolArray,
    subgroups: Subgroups | None,
    settings: AresSettings,
) -> GroundSet:
    """Stage 1: itemsets, and every valid triple of them.

    Parameters
    ----------
    space, Z, favourable
        The space, all rows, encoded, and which of them have the favourable outcome.
    subgroups, settings
        As for :func:`ares`.
    """
    items = Items.of(space, Z, bins=settings.bins, binning=settings.binning, target=settings.target)
    if settings.thens_from == "favourable" and not favourable.any():
        raise InvalidDataError("thens_from is 'favourable', but no row has the favourable outcome")
    codes = items.codes(Z)
    make = _some_ground_set if settings.support is None else _ground_set
    ground = make(items, codes, favourable, subgroups, settings)
    if ground is None or not len(ground):
        raise InvalidDataError(_why_empty(space, settings))
    return ground


def _some_ground_set(
    items: Items, codes: IntArray, favourable: BoolArray, subgroups: Subgroups | None, settings: AresSettings
) -> GroundSet | None:
    """The ground set at the highest support that makes it large enough."""
    best = None
    for support in SUPPORTS:
        try:
            found = _ground_set(items, codes, favourable, subgroups, replace(settings, support=support))
        except InvalidParameterError:
            if best is not None:
                break  # more itemsets than allowed: the one before must do
            continue  # no itemset yet
        best = found
        if len(best) >= ENOUGH_TRIPLES:
            break
    return best


def _ground_set(
    items: Items, codes: IntArray, favourable: BoolArray, subgroups: Subgroups | None, settings: AresSettings
) -> GroundSet:
    assert settings.support is not None
    support = settings.support
    # An itemset must leave room for one more condition in the other If, where there is another.
    longest = settings.max_width - (1 if subgroups is None or len(subgroups) else 0)

    def mine(rows: IntArray) -> Itemsets:
        bits, limit = item_bits(rows, len(items)), settings.max_itemsets
        return frequent(bits, items.feature_of, len(rows), support=support, max_length=longest, limit=limit)

    every = mine(codes)
    if not len(every):
        raise InvalidParameterError(f"support of {support:g} is so high that no itemset is frequent enough; lower it")
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
            f"there is one feature alone, {space.names[0]!r}, and the two Ifs of a rule name different ones; "
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
    if isinstance(subgroups, str) or not isinstance(subgroups, Sequence):
        raise InvalidParameterError(f"subgroups must be a list of feature names; got {subgroups!r}")
    names = [name for group in subgroups for name in ((group,) if isinstance(group, str) else group)]
    unknown = sorted({str(name) for name in names if name not in space.names})
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
            for i, own in zip(part, bits, strict=True):
                if (own & ~covered).any():
                    covered |= own
                    chosen.append(int(i))
        kept = evaluated.keep(np.array(chosen, dtype=np.int64))
    if settings.select is not None and settings.select < len(kept):
        order = np.argsort(-kept.counts, kind="stable")[: settings.select]
        kept = kept.keep(np.sort(order))
    return kept


def _rule(made: Evaluated, triple: int) -> TwoLevelRule:
    ground = made.ground
    pair = int(made.triples.pair[triple])

    def conditions(members: tuple[int, ...]) -> tuple[Condition, ...]:
        return tuple(_condition(ground.items, i) for i in members)

    return TwoLevelRule(
        conditions(ground.outer.members(int(made.triples.outer[triple]))),
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


def _notes(made: _Made, evaluated: Evaluated, best: Optimum, monitor: Monitor) -> tuple[str, ...]:
    notes = []
    if not made.favourable.any() and not best.rules:
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
    made: _Made,
    chosen: Evaluated | None,
    triples: Sequence[int],
    summary: GroundSetSummary,
    monitor: Monitor,
    notes: tuple[str, ...],
) -> RecourseSet:
    rows = np.flatnonzero(~made.favourable)
    inputs, space = made.Z[rows], made.cost.space
    rules = tuple(_rule(chosen, t) for t in triples) if chosen is not None else ()
    costs = np.array([chosen.costs(t) for t in triples] if chosen is not None else []).reshape(len(rules), len(rows))
    refused = _check_again(made, rules, inputs, costs)
    if refused:
        notes = (*notes, f"{refused:,} counterfactual(s) were favourable once and not when predicted again: left out")
    tally = made.box.decide.tally
    return RecourseSet(
        space=space,
        cost=made.cost,
        budget=made.budget,
        rules=rules,
        inputs=inputs,
        rows=rows,
        n_rows=len(made.Z),
        matches=np.array([rule.matches(space, inputs) for rule in rules], dtype=bool).reshape(costs.shape),
        costs=costs,
        provenance=Provenance(
            version=__version__,
            model=made.box.name,
            method=summary.method,
            favourable=made.box.decide.described,
            generator=repr(made.settings),
            candidates=summary.evaluated,
            model_calls=tally.calls,
            model_rows=tally.rows,
            complete=monitor.stopped is None,
            notes=notes,
        ),
        ground_set=summary,
        model=made.box,
    )


def _check_again(made: _Made, rules: tuple[TwoLevelRule, ...], inputs: FloatArray, costs: FloatArray) -> int:
    """Predict the cheapest counterfactual of each input again; take those back that are not favourable now.

    A model whose sums depend on the batch may say otherwise right on its boundary. Returns how many were taken back.
    """
    refused, waiting = 0, np.flatnonzero(np.isfinite(costs).any(axis=0))
    while waiting.size:
        pick = costs[:, waiting].argmin(axis=0)
        after = inputs[waiting].copy()
        for i, rule in enumerate(rules):
            after[pick == i] = rule.applied(made.cost.space, after[pick == i])
        wrong = ~made.box.favourable(after)
        costs[pick[wrong], waiting[wrong]] = np.inf
        refused += int(wrong.sum())
        waiting = waiting[wrong]
        waiting = waiting[np.isfinite(costs[:, waiting]).any(axis=0)]
    return refused


__all__ = ["AresSettings", "ares", "fast_ares", "fast_settings", "ground_set", "several"]
