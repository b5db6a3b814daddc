"""The frameworks that the paper draws beside each other, on one model: what recourse costs each affected input.

GLOBE-CE and dGLOBE-CE are the paper's protocol (c = 2, the best at k = 1 of 1,000 samples, scalars up to 5), with exact
minimum scalars in place of its grid. Fast AReS has the settings of the benchmark of AReS. "searched" is this library's
own search at its defaults.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from experiments.cells import Data, Run
from experiments.figures.common import as_array, as_list, measures, profile
from experiments.figures.drawing import from_nobody
from experiments.figures.drawing import name as write
from experiments.markdown import percent

SEEDS = (0, 1, 2)
LABELS = {
    "globe-ce": "GLOBE-CE (n = 1)",
    "dglobe-ce": "dGLOBE-CE (n = 3)",
    "fast-ares": "Fast AReS",
    "variant": "variant",
    "searched": "searched (n = 1)",
}
STYLES: dict[str, dict[str, Any]] = {  # by name: the paper's order of colours, as colour-blind readers see it
    "globe-ce": {"color": "#0072B2"},
    "dglobe-ce": {"color": "#E69F00"},
    "fast-ares": {"color": "#009E73"},
    "variant": {"color": "#D55E00", "linewidth": 2.6},
    "searched": {"color": "#222222", "linestyle": (0, (4, 2))},
}


def sampling(dataset: str, generator: Any = None, **more: Any) -> Any:
    """The paper's sampling, or a generator with its settings; German Credit has sparser directions."""
    from globece import UniformSampling

    shape = {"n_features": 5, "power": 5.0} if dataset == "german_credit" else {"n_features": 2, "power": 1.0}
    return (generator or UniformSampling)(cost=2.0, **shape, **more)


def as_the_paper(run: Run, on: Any, generator: Any, n: int, seed: int = 0, select: Any = "fixed") -> Any:
    """Explain as the paper does, with exact scalars."""
    from globece import Settings, explain

    settings = Settings(select=select, max_scalar=5.0, samples=20 if run.quick else 1000)
    return explain(
        on.own, on.rows, space=on.space, cost=on.cost, n_directions=n, generator=generator, settings=settings, rng=seed
    )


def searched(run: Run, on: Any, n: int = 1) -> Any:
    """Explain by this library's own search."""
    from globece import Settings, explain

    settings = Settings(rays=300) if run.quick else Settings()
    return explain(on.own, on.rows, space=on.space, cost=on.cost, n_directions=n, settings=settings, rng=0)


def by_rules(run: Run, dataset: str, on: Any) -> Any:
    """Fast AReS as it is benchmarked."""
    from bench.ares import FAST
    from globece.baselines import AccuracyCost, AresSettings, fast_ares

    options = {**FAST[dataset], "race_rows": 300, "objective": AccuracyCost(0.1)}
    if run.quick:
        options |= {"evaluate": 300, "support": max(options["support"], 0.3)}
    return fast_ares(on.own, on.rows, space=on.space, cost=on.cost, rng=0, settings=AresSettings(**options))


def compared(run: Run, dataset: str, on: Any, variant: Any, select: str = "fixed") -> Data:
    """Every framework on one model, those that sample with several seeds.

    ``variant`` is the generator that the figure is about, and ``select`` how the best of its directions is chosen.
    """
    seeds = SEEDS[:1] if run.quick else SEEDS
    drawn = [_timed(lambda s=s: as_the_paper(run, on, sampling(dataset), 3, s).costs) for s in seeds]
    # The greedy choice of three directions begins with the choice of one.
    alone = [(costs[0], seconds) for costs, seconds in drawn]
    together = [(costs.min(axis=0), seconds) for costs, seconds in drawn]
    varied = [_timed(lambda s=s: as_the_paper(run, on, variant, 1, s, select).best_costs) for s in seeds]
    return {
        "globe-ce": _middle(alone),
        "dglobe-ce": _middle(together),
        "fast-ares": _middle([_timed(lambda: by_rules(run, dataset, on).best_costs)]),
        "variant": _middle(varied),
        "searched": _middle([_timed(lambda: searched(run, on).best_costs)]),
    }


def _timed(way: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    return way(), time.perf_counter() - start


def _middle(runs: list[tuple[Any, float]]) -> Data:
    """The run with the median score, and the scores of all of them."""
    made = [{**measures(costs), "costs": as_list(np.sort(costs)), "seconds": seconds} for costs, seconds in runs]
    made.sort(key=lambda run: run["score"])
    return {**made[len(made) // 2], "scores": [run["score"] for run in made]}


def draw_profiles(ax: Any, found: Data, labels: dict[str, str]) -> None:
    """Coverage against average cost, a line for each framework and a dot where it ends."""
    ends, starts = [0.1], []
    for name in [n for n in LABELS if n in found]:
        _, coverage, average = profile(as_array(found[name]["costs"]))
        style = {"linewidth": 1.8, **STYLES[name]}
        ax.plot(average, coverage, label=labels.get(name, LABELS[name]), **style)
        ax.plot(average[-1:], coverage[-1:], "o", color=style["color"], markersize=6, clip_on=False, zorder=5)
        ends.append(float(average[-1]))
        starts.append(float(average[0]))
    narrow = min(starts, default=0.0) > 0.5 * max(ends)  # whole categories: nothing costs less than one of them
    ax.set_xlim(0.9 * min(starts) if narrow else 0, max(ends) * (1.02 if narrow else 1.06))
    from_nobody(ax)
    write(ax, x="average cost of the covered inputs")


def rows_of(found: Data, labels: dict[str, str]) -> list[list[str]]:
    """A table's rows: coverage, average cost and score by framework."""
    return [
        [
            labels.get(name, LABELS[name]),
            percent(found[name]["coverage"]),
            "none" if found[name]["cost"] is None else f"{found[name]['cost']:.2f}",
            f"{found[name]['score']:.2f}",
            _range(found[name]["scores"]),
            f"{found[name]['seconds']:.1f} s",
        ]
        for name in LABELS
        if name in found
    ]


def _range(scores: list[float]) -> str:
    return f"{min(scores):.2f} to {max(scores):.2f} ({len(scores)} seeds)" if len(scores) > 1 else ""
