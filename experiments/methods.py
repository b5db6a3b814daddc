"""The methods of the paper's table on one case, as runs over seeds: what was found, on which rows, in what time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from experiments.cells import Data, Run
from paper.cases import Case
from paper.protocol import BUDGET, EVALUATED, FAST_ARES, PLAIN_ARES, SCALE, naive_protocol, sampling
from paper.stages import warm as warm_ares

RESAMPLES = 1000


def measures(costs: Any) -> Data:
    """Coverage, average cost (none where nobody is covered) and score of each input's minimum cost."""
    covered = np.isfinite(costs)
    return {
        "coverage": float(covered.mean()) if len(costs) else None,
        "cost": float(costs[covered].mean()) if covered.any() else None,
        "score": float(np.minimum(costs, BUDGET).mean()) if len(costs) else None,
    }


def on_test(runs: list[Any]) -> Data:
    """The same on unseen rows, over all seeds together, with 95 % of the score by bootstrap over the inputs."""
    if not runs[0].size:
        return {"affected": 0}
    each = [measures(costs) for costs in runs]
    paid = np.minimum(np.array(runs), BUDGET).mean(axis=0)
    rng = np.random.default_rng(0)
    means = [paid[rng.integers(0, len(paid), len(paid))].mean() for _ in range(RESAMPLES)]
    costs = [m["cost"] for m in each if m["cost"] is not None]
    return {
        "affected": len(paid),
        "coverage": float(np.mean([m["coverage"] for m in each])),
        "cost": float(np.mean(costs)) if costs else None,
        "score": float(paid.mean()),
        "interval": [float(q) for q in np.quantile(means, (0.025, 0.975))],
    }


def warm(on: Case) -> None:
    """Compile the kernels, or read them from the disk, so that no time has that in it."""
    from globece import Climb, explain

    explain(on.own, on.rows, space=on.space, cost=on.cost, rng=0, search=Climb(rays=200))
    warm_ares()


def ours(on: Case, n: int, seeds: range, rays: int | None = None) -> Data:
    """`explain` at its defaults."""
    from globece import Climb, explain

    runs, unseen = [], []
    for seed in seeds:
        start = time.process_time()
        found = explain(
            on.own, on.rows, space=on.space, cost=on.cost, n_directions=n, rng=seed, search=Climb(rays=rays)
        )
        seconds = time.process_time() - start
        runs.append({"seed": seed, **measures(found.best_costs), "seconds": seconds})
        unseen.append(found.apply(on.test_rows).best_costs)
    return {"runs": runs, "test": on_test(unseen)}


def protocol(on: Case, dataset: str, seeds: range, samples: int) -> dict[str, Data]:
    """The paper's protocol for n = 1 and n = 3: chosen at k = 1, then scaled up to k = 5, along exact rays.

    The choice is greedy, so the first of three directions is the one that would have been chosen alone.
    """
    from globece import Race, Settings, explain

    settings = Settings(max_scalar=SCALE)
    runs: dict[int, list[Data]] = {1: [], 3: []}
    unseen: dict[int, list[Any]] = {1: [], 3: []}
    for seed in seeds:
        found = explain(
            on.own, on.rows, space=on.space, cost=on.cost, n_directions=3,
            search=Race(sampling(dataset, seed), samples, "fixed"), settings=settings, rng=seed,
        )  # fmt: skip
        other = found.apply(on.test_rows)
        for n in (1, 3):
            runs[n].append({"seed": seed, **measures(found.costs[:n].min(axis=0))})
            unseen[n].append(other.costs[:n].min(axis=0))
    return {name: {"runs": runs[n], "test": on_test(unseen[n])} for name, n in (("globe_ce", 1), ("dglobe_ce", 3))}


def plainly(on: Case, dataset: str, seed: int, samples: int, scalars: int) -> dict[str, Data]:
    """The same as the paper describes it, one predict a sample and one a scalar: for its time, and as a check."""
    found = naive_protocol(on, sampling(dataset, seed), seed, samples, scalars)
    return {
        name: {
            "seed": seed,
            "coverage": found[n].coverage,
            "cost": found[n].average_cost,
            "score": found[n].score,
            "seconds": found[n].seconds,
            "predictions": found[n].predictions,
        }
        for name, n in (("globe_ce", 1), ("dglobe_ce", 3))
    }


def plain_ares(run: Run, on: Case, dataset: str, lam: float = 1 / BUDGET) -> Data:
    """AReS over its whole ground set, within the cap; nothing in it is random. `lam` weighs cost against coverage."""
    from globece.baselines import AccuracyCost, AresSettings, ares

    support = max(PLAIN_ARES[dataset], 0.3) if run.quick and dataset == "heloc" else PLAIN_ARES[dataset]
    return _rules(run, on, ares, AresSettings(support=support, objective=AccuracyCost(lam)), range(1))


def fast_ares(run: Run, on: Case, dataset: str, seeds: range, lam: float = 1 / BUDGET) -> Data:
    """Fast AReS with the reductions and r = s of the authors' code as it was run."""
    from globece.baselines import AccuracyCost, AresSettings, fast_ares

    options = {**FAST_ARES[dataset], "evaluate": EVALUATED, "select": EVALUATED}
    if run.quick:
        options |= {"evaluate": 100, "select": 100}
    return _rules(run, on, fast_ares, AresSettings(**options, objective=AccuracyCost(lam)), seeds)


def _rules(run: Run, on: Case, method: Any, settings: Any, seeds: range) -> Data:
    from globece.errors import InvalidDataError

    runs, unseen, size, cut = [], [], 0, False
    for seed in seeds:
        start = time.process_time()
        try:
            found = method(
                on.own, on.rows, space=on.space, cost=on.cost, budget=BUDGET, rng=seed, ares_settings=settings,
                time_limit=run.cap,
            )  # fmt: skip
        except InvalidDataError as error:  # no itemset is frequent enough
            return {"runs": [], "none": str(error), "support": settings.support}
        seconds = time.process_time() - start
        runs.append({"seed": seed, **measures(found.best_costs), "seconds": seconds, "rules": found.n_rules})
        unseen.append(found.apply(on.test_rows).best_costs)
        size, cut = found.ground_set.size, cut or not found.provenance.complete
    return {"runs": runs, "test": on_test(unseen), "support": settings.support, "triples": size, "cut": cut}
