"""The paper's twelve models as benchmarks use them, and the paper's own protocol, written plainly."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

DATASETS = ("compas", "german_credit", "heloc", "default_credit")
KINDS = ("lr", "xgb", "dnn")
SUBNORMAL = 1e-38  # weights below this make a predict several times slower: nothing on both sides


@dataclass(frozen=True)
class Case:
    """One of the twelve models over the training rows, with the paper's costs."""

    own: Any  # as a user would pass it
    predict: Any  # the cheapest way to its predictions, for the naive side
    space: Any
    cost: Any
    rows: Any  # (n, d) training rows
    affected: Any  # (n,)
    test_rows: Any


def case(dataset: str, kind: str, **constraints: Any) -> Case:
    """Load a model; ranges are unbounded, as in the paper, unless constraints are given."""
    from globece import CostModel, FeatureSpace
    from tests.paper_models import load_dataset, paper_problem

    paper = paper_problem(dataset, kind)  # type: ignore[arg-type]
    model = paper.model
    if kind == "dnn":
        model = replace(model, weights=tuple(np.where(abs(w) < SUBNORMAL, 0, w) for w in model.weights))
    own = {"lr": lambda: model.to_sklearn(), "xgb": lambda: model, "dnn": lambda: model.to_torch()}[kind]()
    groups = {name: columns for name, columns in paper.features.items() if columns}
    space = FeatureSpace.from_matrix(
        paper.x, columns=paper.columns, groups=groups, **(constraints or {"ranges": "unbounded"})
    )
    data = load_dataset(dataset)
    cost = CostModel.bins(space, widths=paper.bin_widths)
    return Case(own, model.predict, space, cost, paper.x, paper.affected, data.encoded()[data.n_train :])


@dataclass(frozen=True)
class Naive:
    """What the paper's protocol found with n directions, and how long it took."""

    coverage: float
    average_cost: float
    score: float
    seconds: float  # of CPU time
    predictions: int


def naive_protocol(case: Case, generator: Any, seed: int, samples: int = 1000, scalars: int = 1000) -> dict[int, Naive]:
    """The paper's protocol for n = 1 and n = 3: one predict per sample, one per scalar, in plain NumPy.

    The first sample chosen covers most inputs at k = 1, the next most of those left; then each is scaled.
    """
    from globece import as_model, rays
    from globece.case.affected import Affected

    space, cost = case.space, case.cost
    Z = space.encode(case.rows)[case.affected]
    problem = Affected(as_model(case.predict, space, favourable=1, compile=False), Z, cost, 10.0)
    D = generator.propose(problem, samples, np.random.default_rng(seed))
    start = time.process_time()
    flips, dear = np.empty((samples, len(Z)), dtype=bool), np.empty(samples)
    for i, delta in enumerate(D):
        after = rays.positions(space, Z, delta, 1.0)
        flips[i] = case.predict(space.decode(after)) == 1
        paid = cost.between(Z, after)[flips[i]]
        dear[i] = paid.mean() if paid.size else np.inf
    covered, chosen = np.zeros(len(Z), dtype=bool), []
    for _ in range(3):
        gain = (flips & ~covered).sum(axis=1)
        chosen.append(int(np.lexsort((dear, -gain))[0]))
        covered |= flips[chosen[-1]]
    spent, best, found = time.process_time() - start, np.full(len(Z), np.inf), {}
    for n, pick in enumerate(chosen, 1):
        start = time.process_time()
        least = np.full(len(Z), np.inf)
        for k in np.linspace(0.0, 5.0, scalars):
            after = rays.positions(space, Z, D[pick], k)
            new = (case.predict(space.decode(after)) == 1) & np.isinf(least)
            least[new] = cost.between(Z[new], after[new])
        best = np.minimum(best, least)
        spent += time.process_time() - start
        within = best <= 10.0
        if n in (1, 3):
            found[n] = Naive(
                float(within.mean()),
                float(best[within].mean()) if within.any() else float("nan"),
                float(np.minimum(best, 10.0).mean()),
                spent,
                samples + n * scalars,
            )
    return found


def alone(module: str, *arguments: object, threads: int = 1) -> Any:
    """Run a benchmark's part in a process of its own, so that thread settings hold from the start; read its JSON."""
    import json

    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env={**os.environ, **dict.fromkeys(names, str(threads))},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{module} {arguments}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
