"""The stages of AReS on one case: what the ground set holds, what it covers, and what its making takes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from globece.baselines import AccuracyCost, AresSettings, ares, fast_ares
from globece.baselines.rule_sets import ground_set
from globece.errors import GlobeCEError
from paper.cases import Case
from paper.protocol import EVALUATED

REDUCTION = (0.39, 0.36, 0.33, 0.3, 0.26, 0.2, 0.16)
NAIVE_REDUCTION = 0.33  # from this support on also by the loop over SD x RL x RL
SERIES = {
    "original": (0.325, 0.31, 0.3, 0.285),
    "RL-reduction": (0.325, 0.3, 0.28, 0.25, 0.22),
    "Then-generation": (0.85, 0.75, 0.7, 0.65, 0.6),
}
Q_SUPPORT, Q_VALUES = 0.3, (1 / 800, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
P_VALUES = (0.6, 0.5, 0.45, 0.4, 0.35, 0.3)


def warm() -> None:
    """Compile the kernels, or read them from the cache."""
    X = np.random.default_rng(0).random((60, 3))
    for lam in (0.0, 0.1):
        ares(lambda X: (X[:, 0] > 0.5).astype(int), X, ares_settings=AresSettings(bins=3, objective=AccuracyCost(lam)))


def reduction(on: Case, supports: Sequence[float] = REDUCTION) -> list[dict[str, Any]]:
    """RL-reduction's ground set beside the full one, and beside the plain loop where that ends."""
    rows = []
    for support in supports:
        made, seconds = {}, {}
        for reduced in (False, True):
            start = time.perf_counter()
            settings = AresSettings(support=support, reduce_rules=reduced)
            made[reduced] = ground_set(on.space, on.space.pack(on.rows), ~on.affected, None, settings)
            seconds[reduced] = time.perf_counter() - start
        full, small = made[False], made[True]
        row = {
            "support": support,
            "itemsets": len(full.inner),
            "kept": len(small.inner),
            "triples": len(full),
            "same": len(full) == len(small) and _pairs(full) == _pairs(small),
            "full_s": seconds[False],
            "reduced_s": seconds[True],
        }
        if support >= NAIVE_REDUCTION:
            start = time.perf_counter()
            row["loop_triples"] = _loop(full)
            row["loop_s"] = time.perf_counter() - start
        rows.append(row)
    return rows


def _pairs(ground: Any) -> set[Any]:
    """Everything that makes a ground set: pairs of Inner-If and Then, and how many Outer-Ifs go with each."""
    group = np.repeat(np.arange(len(ground.group_outers)), np.diff(ground.group_pairs))
    return {
        (ground.inner.members(a), ground.thens.members(b), tuple(ground.outers_of(int(g)).tolist()))
        for a, b, g in zip(ground.pair_inner, ground.pair_then, group, strict=True)
    }


def _loop(ground: Any) -> int:
    """Size of the ground set by the appendix's iteration over SD x RL x RL."""
    feature = ground.items.feature_of
    rules = [ground.inner.members(i) for i in range(len(ground.inner))]
    features = [frozenset(int(feature[i]) for i in r) for r in rules]
    size = 0
    for d in range(len(rules)):
        for c in range(len(rules)):
            if features[d] & features[c] or len(rules[d]) + len(rules[c]) > 7:
                continue
            for then in range(len(rules)):
                if features[c] == features[then] and c != then:
                    size += 1
    return size


def series(on: Case, supports: Mapping[str, Sequence[float]] = SERIES) -> list[dict[str, Any]]:
    """The paper's fig:fastares: size of V, acc(V) and acc(R) against time."""
    rows = []
    for name, values in supports.items():
        for support in values:
            options: dict[str, Any] = {"support": support, "evaluate": None if name == "original" else EVALUATED}
            options |= {"reduce_rules": name == "RL-reduction"}
            options |= {"then_support": 1 / len(on.rows)} if name == "Then-generation" else {}
            settings = AresSettings(**options, objective=AccuracyCost(0.0))
            rows.append({"method": name, "support": support, **stages(on, settings)})
    return rows


def effect_of_q(
    on: Case, q_values: Sequence[float] = Q_VALUES, p_values: Sequence[float] = P_VALUES
) -> list[dict[str, Any]]:
    """The paper's fig:effectofq: Then-generation with q varied at one p, and p varied at the smallest q."""
    rows = []
    for name, pairs in (
        ("q varied", [(Q_SUPPORT, q) for q in q_values]),
        ("p varied", [(p, q_values[0]) for p in p_values]),
    ):
        for support, q in pairs:
            settings = AresSettings(support=support, then_support=q, evaluate=EVALUATED, objective=AccuracyCost(0.0))
            rows.append({"method": name, "support": support, "q": q, **stages(on, settings)})
    return rows


def stages(on: Case, settings: Any) -> dict[str, Any]:
    """Size and accuracy of the ground set, accuracy of the rules, and the time of the first stage and of all."""
    try:
        start = time.perf_counter()
        ground = ground_set(on.space, on.space.pack(on.rows), ~on.affected, None, settings)
        generated = time.perf_counter() - start
    except GlobeCEError as error:
        return {"empty": str(error)}
    start = time.perf_counter()
    made = fast_ares(on.own, on.rows, space=on.space, cost=on.cost, rng=0, ares_settings=settings)
    return {
        "triples": len(ground),
        "generate_s": generated,
        "accuracy_V": made.ground_set.accuracy,
        "accuracy_R": made.coverage,
        "cost_R": made.average_cost if made.n_covered else None,
        "all_s": time.perf_counter() - start,
    }
