"""The frameworks that the paper draws beside each other, on one model: what recourse costs each affected input.

GLOBE-CE and dGLOBE-CE are the paper's protocol (c = 2, the best at k = 1 of 1,000 samples, scalars up to 5), with exact
minimum scalars in place of its grid. Fast AReS has the settings of the table of results. "searched" is this library's
own search at its defaults.
"""

from __future__ import annotations

from typing import Any

from experiments.cells import Data, Run
from experiments.figures.common import as_array, profile, thinned
from experiments.figures.drawing import from_nobody
from experiments.figures.drawing import name as write
from experiments.markdown import percent
from experiments.methods import measures
from paper.protocol import BUDGET, EVALUATED, FAST_ARES, sampling

SEEDS = 3
FEWER_SEEDS = {"default_credit": 2}  # where a run takes longest
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


def as_the_paper(run: Run, on: Any, generator: Any, n: int, seed: int = 0, select: Any = "fixed") -> Any:
    """Explain as the paper does, with exact scalars."""
    from globece import Race, Settings, explain

    race = Race(generator, 20 if run.quick else 1000, select)
    settings = Settings(max_scalar=5.0)
    return explain(
        on.own, on.rows, space=on.space, cost=on.cost, n_directions=n, search=race, settings=settings, rng=seed
    )


def searched(run: Run, on: Any, n: int = 1) -> Any:
    """Explain by this library's own search."""
    from globece import Climb, explain

    search = Climb(rays=300) if run.quick else Climb()
    return explain(on.own, on.rows, space=on.space, cost=on.cost, n_directions=n, search=search, rng=0)


def by_rules(run: Run, dataset: str, on: Any) -> Any:
    """Fast AReS with the settings of the table of results."""
    from globece.baselines import AccuracyCost, AresSettings, fast_ares

    options = {**FAST_ARES[dataset], "evaluate": EVALUATED, "select": EVALUATED}
    if run.quick:
        options |= {"evaluate": 300, "select": 300, "support": max(options["support"], 0.3)}
    settings = AresSettings(**options, objective=AccuracyCost(1 / BUDGET))
    return fast_ares(on.own, on.rows, space=on.space, cost=on.cost, rng=0, ares_settings=settings)


def compared(run: Run, dataset: str, on: Any, variant: Any, select: str = "fixed") -> Data:
    """Every framework on one model, those that sample with several seeds.

    ``variant`` is the generator that the figure is about, and ``select`` how the best of its directions is chosen.
    """
    seeds = range(1 if run.quick else FEWER_SEEDS.get(dataset, SEEDS))
    # The greedy choice of three directions begins with the choice of one.
    drawn = [as_the_paper(run, on, sampling(dataset, seed), 3, seed).costs for seed in seeds]
    return {
        "globe-ce": _middle([costs[0] for costs in drawn]),
        "dglobe-ce": _middle([costs.min(axis=0) for costs in drawn]),
        "fast-ares": _middle([by_rules(run, dataset, on).best_costs]),
        "variant": _middle([as_the_paper(run, on, variant, 1, seed, select).best_costs for seed in seeds]),
        "searched": _middle([searched(run, on).best_costs]),
    }


def _middle(runs: list[Any]) -> Data:
    """The run with the median score, of two the better one, and the scores of all of them."""
    made = sorted(({**measures(costs), "costs": thinned(costs)} for costs in runs), key=lambda r: r["score"])
    return {**made[(len(made) - 1) // 2], "scores": [r["score"] for r in made]}


def draw_profiles(ax: Any, found: Data, labels: dict[str, str]) -> None:
    """Coverage against average cost, a line for each framework and a dot where it ends."""
    ends, starts = [0.1], []
    for name in [n for n in LABELS if n in found]:
        _, coverage, average = profile(as_array(found[name]["costs"]))
        style = {"linewidth": 1.8, **STYLES[name]}
        ax.plot(average, coverage, label=labels.get(name, LABELS[name]), **style)
        if found[name]["cost"] is not None:
            end = [found[name]["cost"]], [found[name]["coverage"]]
            ax.plot(*end, "o", color=style["color"], markersize=6, clip_on=False, zorder=5)
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
        ]
        for name in LABELS
        if name in found
    ]


def _range(scores: list[float]) -> str:
    return f"{min(scores):.2f} to {max(scores):.2f} ({len(scores)} seeds)" if len(scores) > 1 else ""
