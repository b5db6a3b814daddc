"""How the ground set is generated, reduced and optimised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from globece.baselines.items import Binning, Target
from globece.baselines.objectives import AccuracyCost, Objective
from globece.case.posing import check_budget
from globece.errors import (
    check_choice,
    check_count,
    check_flag,
    check_instance,
    check_limit,
    check_number,
    keep_checked,
    wrong,
)
from globece.space import FeatureSpace

MOST_BINS = 10_000
MOST_EXCHANGES = 10
Subgroups = Sequence[str | Sequence[str]]


@dataclass(frozen=True, slots=True)
class AresSettings:
    """How the ground set is generated, reduced and optimised.

    Parameters
    ----------
    support
        Least share of the rows that contain an itemset, p. ``None`` chooses the highest of 0.9, 0.8, ... 0.01 that
        gives a ground set of 100,000 triples, or the lowest that stays within ``max_itemsets``.
    bins, binning, target
        Number of bins of a continuous feature, how they are cut, and the value in a bin that a Then sets; see
        :meth:`globece.baselines.items.Items.of`.
    match_features
        Whether a Then has the features of its Inner-If.
    thens_from
        Rows from which Thens are taken: ``"all"``, or only the ``"favourable"`` ones.
    max_rules, max_width, max_subgroups
        Most rules, most conditions in both Ifs of a rule, most distinct Outer-Ifs: epsilon 1, 2 and 3.
    objective
        What the optimisation maximises: :class:`AccuracyCost` or :class:`FourTerms`.
    exchanges, repeats
        Most rules that one exchange removes, and the number of searches; Lee et al. (2009) use k and k + 1 for k
        constraints, and the paper finds 1 and 1 to be as good.
    reduce_rules
        RL-reduction: leave out Inner-Ifs whose combination of features occurs only once. Off with Then-generation.
    then_support
        Then-generation with this support q: Thens are the combinations of values that at least this share of the rows
        has in the Inner-If's features. ``None`` takes the Thens from the frequent itemsets.
    evaluate
        V-reduction r: number of triples to evaluate, drawn at random; ``None`` for all.
    only_improving
        V-reduction r': keep only those that raise the accuracy of the ones before.
    select
        V-selection s: number of triples with the largest coverage to optimise over; ``None`` for all.
    race_rows
        Race: try all changes on this many random affected inputs first, and only those that do well there on all.
        ``None`` tries every change on all inputs.
    max_itemsets, max_triples
        Limits beyond which an error says that the ground set is too large.
    batch_rows, timeout
        Most rows in one call of the model, and seconds that a call may take.
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
        counts = ("max_rules", "max_subgroups", "repeats", "max_itemsets", "max_triples", "batch_rows")
        optional = ("evaluate", "select", "race_rows")
        flags = ("match_features", "reduce_rules", "only_improving")
        given = {name: getattr(self, name) for name in (*counts, *optional, *flags)}
        keep_checked(
            self,
            support=None if self.support is None else check_number("support", self.support, open_low=True, high=1),
            bins=check_count("bins", self.bins, high=MOST_BINS),
            binning=check_choice("binning", self.binning, ("equal", "quantile")),
            target=check_choice("target", self.target, ("middle", "nearest")),
            thens_from=check_choice("thens_from", self.thens_from, ("all", "favourable")),
            max_width=check_count("max_width", self.max_width, low=2),
            exchanges=check_count("exchanges", self.exchanges, low=0, high=MOST_EXCHANGES),
            then_support=None if self.then_support is None else check_number("then_support", self.then_support, high=1),
            timeout=check_limit("timeout", self.timeout),
            **{name: check_count(name, given[name]) for name in counts},
            **{name: None if given[name] is None else check_count(name, given[name]) for name in optional},
            **{name: check_flag(name, given[name]) for name in flags},
        )
        if isinstance(self.objective, type) or not callable(getattr(self.objective, "terms", None)):
            raise wrong("objective", "an AccuracyCost or a FourTerms, or have a terms method", self.objective)


def fast_settings(space: FeatureSpace, budget: float = 10.0) -> AresSettings:
    """The default settings of :func:`fast_ares` for a space and a budget.

    The paper found that Then-generation works well where most features are continuous, and RL-reduction elsewhere.

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
    check_instance("space", space, FeatureSpace, "see FeatureSpace.from_frame")
    limit = check_budget(budget)
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
