"""The public functions of the baselines: AReS and Fast AReS, with the same model, costs and score as an explanation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from globece.baselines.recourse_set import RecourseSet
from globece.baselines.settings import AresSettings, Subgroups, fast_settings
from globece.baselines.stages import ground_set, prepare, run
from globece.case.posing import Seed, generator_of
from globece.costs import CostModel
from globece.errors import check_count
from globece.progress import Progress, monitoring
from globece.space import FeatureSpace

MOST_SETS = 1000


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
    ares_settings: AresSettings | None = None,
) -> RecourseSet:
    """AReS (Rawal and Lakkaraju 2020): a few two-level rules, chosen from all valid triples.

    Parameters
    ----------
    model, X, favourable, threshold, space, cost, budget
        As for :func:`globece.explain`.
    subgroups
        Features whose values are the Outer-Ifs, such as ``["sex", "race"]``, to compare recourse between groups; or
        combinations of features, such as ``[("sex", "race")]``. An empty list gives rules without an Outer-If. By
        default the Outer-Ifs are the frequent itemsets.
    rng
        A seed or a generator. Same seed, same result.
    progress, time_limit
        As for :func:`globece.explain`.
    ares_settings
        How the ground set is generated and optimised.

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
    settings = AresSettings() if ares_settings is None else ares_settings
    prepared = prepare(model, X, favourable, threshold, space, cost, budget, subgroups, settings)
    with monitoring(progress, time_limit) as monitor:
        return run(prepared, generator_of(rng), monitor, "AReS", 1)[0]


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
    ares_settings: AresSettings | None = None,
) -> RecourseSet:
    """Fast AReS: AReS with the paper's reductions of the ground set.

    Parameters
    ----------
    model, X, favourable, threshold, space, cost, budget, subgroups, rng, progress, time_limit
        As for :func:`ares`.
    ares_settings
        How the ground set is generated and optimised. By default the support is chosen automatically, Then-generation
        is used where most features are continuous and RL-reduction elsewhere, 20,000 triples are evaluated, changes
        race on 500 inputs, and ``lam = 1 / budget`` makes the score the objective.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> X = pd.DataFrame({"housing": ["own", "rent"] * 10, "job": ["a", "a", "b", "b"] * 5})
    >>> fast_ares(lambda X: (X["housing"] == "own").astype(int), X, rng=0)
    RecourseSet(n_rules=2, n_affected=10, coverage=1.000, average_cost=1.000, score=1.000)
    """
    prepared = prepare(model, X, favourable, threshold, space, cost, budget, subgroups, ares_settings)
    with monitoring(progress, time_limit) as monitor:
        return run(prepared, generator_of(rng), monitor, "Fast AReS", 1)[0]


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
    ares_settings: AresSettings | None = None,
) -> tuple[RecourseSet, ...]:
    """Several good rule sets of Fast AReS, each from another shuffle of the ground set, best score first.

    Parameters
    ----------
    model, X, favourable, threshold, space, cost, budget, subgroups, rng, ares_settings
        As for :func:`fast_ares`.
    n
        How many rule sets, at most 1,000; duplicates are returned once.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"housing": ["own", "rent"] * 10, "job": ["a", "a", "b", "b"] * 5})
    >>> len(several(lambda X: (X["housing"] == "own").astype(int), X, 3, rng=0))
    1
    """
    n = check_count("n", n, high=MOST_SETS)
    prepared = prepare(model, X, favourable, threshold, space, cost, budget, subgroups, ares_settings)
    with monitoring(False, None) as monitor:
        found = run(prepared, generator_of(rng), monitor, "Fast AReS", n)
    distinct = {frozenset(rule.text(r.space) for rule in r.rules): r for r in reversed(found)}
    return tuple(sorted(distinct.values(), key=lambda r: (r.score, [rule.text(r.space) for rule in r.rules])))


__all__ = ["AresSettings", "ares", "fast_ares", "fast_settings", "ground_set", "several"]
