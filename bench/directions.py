"""The search for directions beside the paper's protocol, on the paper's twelve models, in one run each.

Both sides run on one core, and times are CPU times: other work on the machine disturbs short runs more than long ones.
*Score* is the mean over affected inputs of the minimum cost, no recourse charged at 10.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from globece.errors import GlobeCEError
from globece.rays import positions
from paper.cases import Case, case
from paper.data import DATASETS
from paper.markdown import table
from paper.models import KINDS
from paper.processes import alone
from paper.protocol import naive_protocol, uniform
from paper.reference import BEST_SEEN, PAPER

SEEDS = tuple(range(10))
SHORT, REPEATS = 3.0, 2  # seconds of all seeds together, and how often they are run again
BUDGETS = (250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000)  # rays, for the time that it takes to draw level


def run() -> list[dict[str, Any]]:
    found = []
    for dataset in DATASETS:
        for kind in KINDS:
            found += alone("bench.directions", dataset, kind)
            for r in found[-2:]:
                print(
                    {k: r[k] for k in ("dataset", "model", "n", "score", "naive_score", "speedup", "level")}, flush=True
                )
    return found


def measure(dataset: str, kind: str) -> list[dict[str, Any]]:
    """One model, n = 1 and n = 3."""
    from globece import Climb, explain

    free = case(dataset, kind)
    bound = case(dataset, kind, **_constraints(free))

    def ours(n: int, seed: int, on: Case = free, rays: int | None = None) -> tuple[Any, float]:
        start = time.process_time()
        ex = explain(on.own, on.rows, space=on.space, cost=on.cost, n_directions=n, rng=seed, search=Climb(rays=rays))
        return ex, time.process_time() - start

    ours(1, 0, rays=200)  # compiles the kernels, or reads them from the disk
    ours(1, 0, bound, rays=200)
    naive = naive_protocol(free, uniform(dataset), seed=0)
    out = []
    for n in (1, 3):
        runs = [ours(n, seed) for seed in SEEDS]
        scores, times = [ex.score for ex, _ in runs], [t for _, t in runs]
        if sum(times) < SHORT:  # short runs vary most: the median is of more of them
            times += [ours(n, seed)[1] for _ in range(REPEATS) for seed in SEEDS]
        ex, level = runs[0][0], None
        for rays in BUDGETS:  # how soon is the naive protocol's score reached?
            tried = [ours(n, 0, rays=rays) for _ in range(5)]
            if tried[0][0].score <= naive[n].score:
                level = float(np.median([t for _, t in tried]))
                break
        unseen = ex.apply(free.test_rows)
        held, tied = ours(n, 0, bound)
        out.append(
            {
                "dataset": dataset,
                "model": kind,
                "n": n,
                "affected": ex.n_affected,
                "coverage": ex.coverage,
                "average_cost": ex.average_cost,
                "score": ex.score,
                "scores": scores,
                "seconds": float(np.median(times)),
                "features": [int(np.sum([d[f.columns].any() for f in ex.space.features])) for d in ex.directions],
                "calls": ex.provenance.model_calls,
                "naive_calls": naive[n].predictions,
                "naive_coverage": naive[n].coverage,
                "naive_cost": naive[n].average_cost,
                "naive_score": naive[n].score,
                "naive_seconds": naive[n].seconds,
                "speedup": naive[n].seconds / float(np.median(times)),
                "level": None if level is None else naive[n].seconds / level,
                "lower_bound": _bound(ex),
                "unseen": {
                    "affected": unseen.n_affected,
                    "coverage": unseen.coverage,
                    "average_cost": unseen.average_cost,
                    "score": unseen.score,
                    "interval": _interval(unseen),
                },
                "constrained": {
                    "affected": held.n_affected,
                    "coverage": held.coverage,
                    "average_cost": held.average_cost,
                    "score": held.score,
                    "seconds": tied,
                    "broken": _broken(held),
                },
            }
        )
    return out


def _constraints(free: Case) -> dict[str, Any]:
    """Ranges of the data, whole numbers, and what nobody can change."""
    fixed = [
        f.name
        for f in free.space.features
        if f.name.lower().replace("-", "_").replace(" ", "_") in ("sex", "race", "age", "age_cat", "foreign_worker")
    ]
    return {"immutable": fixed, "whole": free.whole}


def _broken(ex: Any) -> int:
    """Counterfactuals that break a constraint."""
    broken = 0
    for delta, k in zip(ex.directions, ex.scalars, strict=True):
        hit = np.isfinite(k)
        before, after = ex.inputs[hit], positions(ex.space, ex.inputs[hit], delta, k[hit])
        wrong = np.zeros(len(after), dtype=bool)
        for f in ex.space.features:
            old, new = before[:, f.columns], after[:, f.columns]
            if f.immutable:
                wrong |= (old != new).any(axis=1)
            elif f.is_block:
                wrong |= (new.sum(axis=1) != 1) | ~np.isin(new, (0, 1)).all(axis=1)
            else:
                moved = old[:, 0] != new[:, 0]
                wrong |= moved & (
                    (new[:, 0] < np.minimum(f.low, old[:, 0])) | (new[:, 0] > np.maximum(f.high, old[:, 0]))
                )
                wrong |= moved & bool(f.whole) & ((new[:, 0] - old[:, 0]) % 1 != 0)
        broken += int(wrong.sum())
    return broken


def _bound(ex: Any) -> float | None:
    try:
        bound = ex.lower_bound()
    except GlobeCEError:
        return None
    return float(bound.mean) if bound.exact else None


def _interval(ex: Any) -> list[float]:
    """95 % of the score, by bootstrap over inputs."""
    paid = np.minimum(ex.costs.min(axis=0), ex.budget)
    rng = np.random.default_rng(0)
    means = [paid[rng.integers(0, len(paid), len(paid))].mean() for _ in range(2000)]
    return [float(q) for q in np.quantile(means, (0.025, 0.975))]


def render(result: list[dict[str, Any]]) -> str:
    def share(r: dict[str, Any]) -> str:
        return f"{100 * r['coverage']:.1f}/{r['average_cost']:.2f}"

    first, second, third, below, reached = [], [], [], list[float](), 0
    for r in result:
        best = BEST_SEEN[r["dataset"], r["model"]][r["n"] // 2]
        paper = PAPER[r["dataset"], r["model"], "globe_ce" if r["n"] == 1 else "dglobe_ce"]
        below.append(1 - r["score"] / best)
        reached += round(r["score"], 2) <= best
        first.append(
            [
                r["dataset"],
                r["model"],
                r["n"],
                r["affected"],
                share(r),
                f"**{r['score']:.3f}**",
                f"{min(r['scores']):.3f} - {max(r['scores']):.3f}",
                f"{best:.2f}",
                f"{below[-1]:+.0%}",
                "" if r["lower_bound"] is None else f"{r['lower_bound']:.3f}",
                f"{100 * r['naive_coverage']:.1f}/{r['naive_cost']:.2f}",
                f"{r['naive_score']:.2f}",
                f"{paper.coverage:g}/{paper.cost:g}",
                f"{1e3 * r['seconds']:.0f} ms",
                f"{r['naive_seconds']:.1f} s",
                f"**{r['speedup']:.0f}x**",
                "not reached" if r["level"] is None else f"**{r['level']:.0f}x**",
                max(r["features"]),
                f"{r['calls']} / {r['naive_calls']:,}",
            ]
        )
        u, c = r["unseen"], r["constrained"]
        second.append(
            [
                r["dataset"],
                r["model"],
                r["n"],
                u["affected"],
                share(u),
                f"{u['score']:.3f}",
                f"{u['interval'][0]:.3f} - {u['interval'][1]:.3f}",
                f"{r['score']:.3f}",
                f"{u['score'] / r['score'] - 1:+.0%}",
            ]
        )
        third.append(
            [
                r["dataset"],
                r["model"],
                r["n"],
                share(c),
                f"{c['score']:.3f}",
                f"{1e3 * c['seconds']:.0f} ms",
                c["broken"],
            ]
        )
    text = f"""## Directions

The search at its defaults beside the paper's protocol (1,000 samples at c = 2, 1,000 scalars, one predict each), in one
run on one core, in CPU time; coverage % / average cost. *Best seen* is the lowest score among the paper, the authors'
code and a sweep over its settings, chosen with hindsight; *lower* is how far the search is below it: at or below on
{reached} of {len(below)} rows, to its two digits, and by at least 15 % on {sum(x >= 0.15 for x in below)}.
*Scores* are the smallest and largest over {len(SEEDS)} seeds. *Faster* compares a whole `explain` with the protocol;
*level* is the time at which a smaller search draws level with the protocol's own score. *Features* is the most that one
direction moves, *calls* are calls of the model. The bound is exact for linear models.

"""
    text += table(
        ["data", "model", "n", "affected", "found", "score", "scores", "best seen", "lower", "bound", "protocol",
         "its score", "paper", "time", "its time", "faster", "level", "features", "calls"],
        first,
    )  # fmt: skip
    text += "\n### On unseen rows\n\nThe same directions on the 20 % of rows that were held out; 95 % by bootstrap.\n\n"
    text += table(["data", "model", "n", "affected", "found", "score", "95 %", "training score", "difference"], second)
    text += (
        "\n### With constraints\n\nRanges of the data, whole numbers, and sex, race, age and foreign worker immutable. "
        "*Broken* counts counterfactuals that break one of these.\n\n"
    )
    return text + table(["data", "model", "n", "found", "score", "time", "broken"], third)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2])))
