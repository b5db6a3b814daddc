"""The audit's statistics: false alarms, coverage of intervals, power, families of subgroups; and how steady it is.

Each audit runs whole: folds, climbs, choices, verification, comparisons, and where said the checks. The model is small,
so that hundreds of audits take minutes. ``python -m bench.calibration alarms 5/95 200`` runs a part.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.markdown import table
from paper.processes import alone

LEVEL = 0.05
REPEATS = 200
NEED = 6.0  # income that is approved
NEVER = 20.0  # more of it for those who are blocked: they have no recourse
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class World:
    """Rows without a gap: incomes, groups, who is blocked, and what an audit is told."""

    income: Floats
    group: NDArray[Any]
    blocked: Floats
    asked: dict[str, Any]


def _world(
    rng: np.random.Generator, group: NDArray[Any], income: Floats | None = None, missing: float = 0.05, **asked: Any
) -> World:
    n = len(group)
    own = rng.gamma(2.0, 1.5, n) if income is None else NEED - income
    blocked = (rng.random(n) < missing).astype(float)
    return World(np.clip(NEED - own, -4.0, 12.0), group, blocked, asked)


def _shares(rng: np.random.Generator, n: int, shares: list[float]) -> NDArray[Any]:
    return np.array([f"g{i}" for i in range(len(shares))])[rng.choice(len(shares), n, p=shares)]


def _levels(rng: np.random.Generator, n_levels: int) -> World:
    n = 1200
    level = rng.integers(0, n_levels, n)
    share = 0.1 + 0.8 * level / (n_levels - 1)
    group = np.where(rng.random(n) < share, "a", "b")
    income = NEED - rng.gamma(2.0, 0.5 + 1.5 * level / (n_levels - 1))
    return _world(rng, group, income, control=np.array([f"level {i}" for i in level]))


def _people(rng: np.random.Generator) -> World:
    person = np.repeat(np.arange(250), 3)
    income = NEED - rng.gamma(2.0, 1.5, 250)[person] + rng.normal(0, 0.2, 750)
    group = np.where(rng.random(250) < 0.3, "a", "b")[person]
    found = _world(rng, group, np.minimum(income, NEED), cluster=person)
    return World(found.income, found.group, found.blocked[person * 3], found.asked)


def _spread(rng: np.random.Generator, small: int) -> World:
    group = np.repeat(["a", "b"], [small, 600])
    income = NEED - np.concatenate([rng.uniform(0.0, 6.0, small), rng.uniform(2.5, 3.5, 600)])
    asked = {"smallest": 30}
    return _world(rng, group, income, 0.0, **asked)


DESIGNS: dict[str, Callable[[np.random.Generator], World]] = {
    "30/70": lambda rng: _world(rng, _shares(rng, 600, [0.3, 0.7])),
    "5/95": lambda rng: _world(rng, _shares(rng, 2000, [0.05, 0.95])),
    "four groups": lambda rng: _world(rng, _shares(rng, 1200, [0.4, 0.3, 0.2, 0.1])),
    "confounded, control of 4": lambda rng: _levels(rng, 4),
    "confounded, control of 16": lambda rng: _levels(rng, 16),
    "three rows per person": _people,
    "unequal spread, 30": lambda rng: _spread(rng, 30),
    "unequal spread, 100": lambda rng: _spread(rng, 100),
}


def _audit(world: World, seed: int, *, checks: bool = False, gap: float = 0.0) -> Any:
    """One audit; members of the first group need ``gap`` tenths of the range more."""
    from globece import AuditSettings, Climb, FeatureSpace, audit

    n = len(world.income)
    first = (world.group == np.unique(world.group)[0]).astype(float)
    income = world.income - 1.6 * gap * first  # the range is 16
    rich = np.linspace(NEED + 0.1, 12.0, n // 4)  # so that somebody is approved, and everybody can be
    blocked = np.concatenate([world.blocked, np.zeros(len(rich) + 1)])
    X = np.column_stack([np.concatenate([income, rich, [-4.0]]), blocked])
    group = np.concatenate([world.group, world.group[: len(rich)], np.unique(world.group)[-1:]])
    more: dict[str, Any] = {}
    for name, values in world.asked.items():
        if name == "smallest":
            continue
        extra = np.arange(10**6, 10**6 + len(rich) + 1) if name == "cluster" else values[: len(rich) + 1]
        more[name] = np.concatenate([values, extra])
    space = FeatureSpace.from_matrix(X, columns=["income", "blocked"], immutable=["blocked"])
    settings = AuditSettings(level=LEVEL, checks=checks, smallest=world.asked.get("smallest", "auto"))
    return audit(
        (np.array([1.0, -NEVER]), -NEED), X, by=group, space=space, rng=seed, search=Climb(rays=60),
        audit_settings=settings, **more,
    )  # fmt: skip


def alarms(name: str, repeats: str = str(REPEATS), checks: str = "") -> dict[str, Any]:
    """The share of audits of worlds without a gap that find one, in any comparison."""
    found: dict[str, int] = dict.fromkeys(("score", "coverage", "average_cost", "rejection_rate"), 0)
    start, judged = time.process_time(), 0
    for i in range(int(repeats)):
        au = _audit(DESIGNS[name](np.random.default_rng(10_000 + i)), i, checks=bool(checks))
        judged += bool(au.comparisons)
        for measure in found:
            found[measure] += any(c.gaps[measure].p_adjusted < LEVEL for c in au.comparisons)
    return {
        "design": name + (", with checks" if checks else ""),
        "audits": int(repeats),
        "judged": judged,
        "alarms": {m: count / max(judged, 1) for m, count in found.items()},
        "seconds": time.process_time() - start,
    }


def coverage(size: str, missing: str, repeats: str = "400") -> dict[str, Any]:
    """How often the intervals of a small group's score, and of its gap to a large group, hold the truth."""
    n, share, held = int(size), float(missing), [0, 0]
    truth = None
    for i in range(-1, int(repeats)):
        rng = np.random.default_rng(20_000 + i)
        if i < 0:  # the truth, on a large sample
            big = _world(rng, np.repeat(["a", "b"], [20_000, 20_000]), missing=share)
            truth = _audit(big, 0).overall.score
            continue
        world = _world(rng, np.repeat(["a", "b"], [n, 600]), missing=share)
        au = _audit(World(world.income, world.group, world.blocked, {"smallest": 2}), i)
        low, high = au.by_group["a"].score_interval
        gap = au.comparisons[0].gaps["score"]
        held[0] += low <= truth <= high
        held[1] += gap.low <= 0.0 <= gap.high
    return {"size": n, "missing": share, "score": held[0] / int(repeats), "gap": held[1] / int(repeats)}


def power(gap: str, repeats: str = str(REPEATS)) -> dict[str, Any]:
    """The share of audits that find a planted gap, beside the power that they state for it."""
    found, stated, size = 0, 0.0, float(gap)
    for i in range(int(repeats)):
        world = _world(np.random.default_rng(30_000 + i), np.repeat(["a", "b"], [150, 350]), missing=0.05)
        au = _audit(world, i, gap=size)
        (c,) = au.comparisons
        found += c.gaps["score"].p_adjusted < LEVEL
        # of those planted, the blocked pay nothing more; what one more income costs depends on its range
        stated += _stated(c, 0.95 * 1.6 * size * au.explained.cost.scales["income"].slopes[0])
    return {"gap": size, "audits": int(repeats), "found": found / int(repeats), "stated": stated / int(repeats)}


def _stated(c: Any, size: float) -> float:
    """The power that follows from the smallest gap said to be found with 80 %, and from the width of the interval."""
    from scipy.special import ndtr, ndtri

    gap = c.gaps["score"]
    reach = gap.value - gap.low if gap.value >= 0 else gap.high - gap.value
    error = (gap.detectable - reach) / ndtri(0.8)
    return float(ndtr((size - reach) / error))


def subgroups(repeats: str = "100", draws: str = "5") -> dict[str, Any]:
    """The share of audits that confirm any subgroup, where costs are dealt out again at random among the people."""
    from globece import AuditSettings, Climb, FeatureSpace, audit

    found = 0
    for i in range(int(repeats)):
        rng = np.random.default_rng(40_000 + i)
        X = np.column_stack([rng.uniform(-4, 12, 700), *rng.integers(0, 3, (6, 700))])
        space = FeatureSpace.from_matrix(
            X, columns=["income", *"abcdef"], categorical=list("abcdef"), immutable=list("abcdef")
        )
        by = np.where(rng.random(700) < 0.5, "x", "y")
        settings = AuditSettings(checks=False, permutations=499)
        au = audit(
            (np.array([1.0, *[0.0] * 6]), -NEED), X, by=by, space=space, rng=i, search=Climb(rays=60),
            audit_settings=settings,
        )  # fmt: skip
        for _ in range(int(draws)):
            noise = replace(au, cost=rng.permutation(au.cost)).subgroups()
            found += any(s.p_adjusted < LEVEL for s in noise)
    n = int(repeats) * int(draws)
    return {"audits": int(repeats), "draws": n, "found": found / n}


def steady(dataset: str, by: str, seeds: str = "20") -> dict[str, Any]:
    """Conclusions, groups and gaps of one audit over seeds."""
    from bench.audit import BY
    from globece import AuditSettings, audit
    from paper.cases import case

    on = case(dataset, "xgb")
    conclusions, gaps, errors = [], [], []
    for seed in range(int(seeds)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            au = audit(
                on.own, on.rows, by=BY[dataset][by], space=on.space, cost=on.cost, rng=seed, favourable=1,
                audit_settings=AuditSettings(checks=False),
            )  # fmt: skip
        conclusions.append([au.verdict.conclusion, au.verdict.against])
        found = [c.gaps["score"] for c in au.comparisons]
        gaps.append([g.value for g in found])
        errors.append([(g.high - g.low) / 2 / _quantile(len(found)) for g in found])
    told = [f"{c}{f' against {a}' if a else ''}" for c, a in conclusions]
    deviation, error = np.std(gaps, axis=0, ddof=1), np.mean(errors, axis=0)
    worst = int((deviation / error).argmax())
    return {
        "dataset": dataset,
        "by": by,
        "seeds": int(seeds),
        "conclusions": {c: told.count(c) for c in sorted(set(told))},
        "deviation": float(deviation[worst]),
        "error": float(error[worst]),
    }


def _quantile(n_tests: int) -> float:
    """Half the width of one of several intervals that hold at once, in standard errors."""
    from scipy.special import ndtri

    from globece.auditing.statistics import each_level

    return float(-ndtri(each_level(LEVEL, n_tests) / 2))


def run() -> dict[str, Any]:
    """All parts, each in a process of its own."""
    part = "bench.calibration"
    found: dict[str, Any] = {}
    found["alarms"] = [alone(part, "alarms", name) for name in DESIGNS]
    # checks come after the comparisons and do not change them: two designs are enough to see it
    found["alarms"] += [alone(part, "alarms", name, str(REPEATS), "checks") for name in ("30/70", "four groups")]
    found["coverage"] = [alone(part, "coverage", n, m) for n in ("30", "100", "300") for m in ("0", "0.05", "0.33")]
    found["power"] = [alone(part, "power", gap) for gap in ("0.3", "0.5", "0.7")]
    found["subgroups"] = alone(part, "subgroups")
    steadied = (("compas", "race"), ("german_credit", "age"), ("heloc", "oldest line"), ("default_credit", "age"))
    found["steady"] = [alone(part, "steady", *which) for which in steadied]
    return found


def render(result: dict[str, Any]) -> str:
    """The section of the page."""
    rows = [
        [r["design"], r["audits"], *(f"{r['alarms'][m]:.1%}" for m in ("score", "average_cost", "coverage"))]
        for r in result["alarms"]
    ]
    text = "## The audit's statistics\n\n**False alarms** of whole audits at a level of 5 %, in any comparison.\n\n"
    text += table(["design", "audits", "**score**", "average cost", "coverage"], rows)
    text += "\n**Intervals** at 95 %: how often they hold the truth, for a small group beside one of 600.\n\n"
    rows = [[r["size"], f"{r['missing']:.0%}", f"{r['score']:.1%}", f"{r['gap']:.1%}"] for r in result["coverage"]]
    text += table(["members", "without recourse", "score", "gap"], rows)
    text += "\n**Power** for planted gaps, 150 against 350.\n\n"
    rows = [[r["gap"], r["audits"], f"{r['found']:.1%}", f"{r['stated']:.1%}"] for r in result["power"]]
    text += table(["gap", "audits", "found", "stated"], rows)
    s = result["subgroups"]
    text += (
        f"\n**Subgroups**, where costs are dealt out again at random: any is confirmed in {s['found']:.1%} of "
        f"{s['draws']} draws.\n\n**Steadiness** over seeds, on the paper's XGBoost models: conclusions, and how much "
        "the gap varies, of the comparison where it varies most.\n\n"
    )
    rows = [
        [
            r["dataset"],
            r["by"],
            r["seeds"],
            "; ".join(f"{c} ({n})" for c, n in r["conclusions"].items()),
            f"{r['deviation']:.4f}",
            f"{r['error']:.4f}",
            f"{r['deviation'] / r['error']:.2f}",
        ]
        for r in result["steady"]
    ]
    head = ["data", "by", "seeds", "conclusions", "deviation of the gap", "its standard error", "ratio"]
    return text + table(head, rows)


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
