"""Train a model by its recipe, and keep it in a file that holds numbers only."""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from experiments.recipes import RECIPES, Boosting, Linear, Network, Recipe
from paper.data import split
from paper.models import PaperLinear, PaperNetwork, from_arrays, read_boosted

CACHE = Path(__file__).parent / "cache"
SEED = 0
QUICK_ROWS = 400


def trained(dataset: str, kind: str, quick: bool = False) -> Any:
    """Return a model of the paper's, trained on the first call and read from the cache after that."""
    recipe = _quicker(RECIPES[dataset][kind]) if quick else RECIPES[dataset][kind]
    mark = hashlib.sha256(repr((recipe, quick, SEED)).encode()).hexdigest()[:10]
    ending = "json" if kind == "xgb" else "npz"
    path = CACHE / dataset / f"{kind}-{mark}.{ending}"
    if not path.exists():
        x, y, _, _ = split(dataset)
        if quick:
            x, y = x[:QUICK_ROWS], y[:QUICK_ROWS]
        _keep(_fit(recipe, x, y), path)
    return _read(path)


def _quicker(recipe: Recipe) -> Recipe:
    if isinstance(recipe, Network):
        return replace(recipe, epochs=5, depth=2, dropout=0.0)
    return replace(recipe, estimators=10) if isinstance(recipe, Boosting) else recipe


def _fit(recipe: Recipe, x: Any, y: Any) -> Any:
    if isinstance(recipe, Boosting):
        return _boosted(recipe, x, y)
    mean, std = x.mean(axis=0), x.std(axis=0)
    if not recipe.normalise:
        mean, std = np.zeros_like(mean), np.ones_like(std)
    std = np.where(std > 0, std, 1.0)  # a column that never varies
    if isinstance(recipe, Linear):
        return _linear(recipe, x, y, mean, std)
    return _network(recipe, x, y, mean, std)


def _boosted(recipe: Boosting, x: Any, y: Any) -> Any:
    import xgboost

    return xgboost.XGBClassifier(
        max_depth=recipe.depth,
        n_estimators=recipe.estimators,
        gamma=recipe.gamma,
        reg_alpha=recipe.alpha,
        reg_lambda=recipe.lam,
        learning_rate=recipe.rate,
        tree_method="exact",
        base_score=0.5,
        random_state=SEED,
        n_jobs=1,
    ).fit(x, y)


def _linear(recipe: Linear, x: Any, y: Any, mean: Any, std: Any) -> PaperLinear:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    make = LinearSVC if recipe.svm else LogisticRegression
    model = make(max_iter=recipe.iterations, class_weight=dict(enumerate(recipe.weights)), random_state=SEED)
    with warnings.catch_warnings():  # the paper's iterations are a limit, not a wish
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit((x - mean) / std, y)
    return PaperLinear(model.coef_, model.intercept_, mean, std)


def _network(recipe: Network, x: Any, y: Any, mean: Any, std: Any) -> PaperNetwork:
    import torch

    torch.set_num_threads(1)
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        sizes = [x.shape[1], *[recipe.width] * recipe.depth]
        layers: list[Any] = []
        for a, b in pairwise(sizes):
            layers += [torch.nn.Linear(a, b), torch.nn.ReLU(), torch.nn.Dropout(recipe.dropout)]
        net = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 2))
        rows, outcomes = torch.as_tensor((x - mean) / std, dtype=torch.float32), torch.tensor(y)
        loss = torch.nn.CrossEntropyLoss(torch.tensor(recipe.weights))
        adam = torch.optim.Adam(net.parameters(), lr=recipe.rate)
        for _ in range(recipe.epochs):
            order: Any = torch.randperm(len(rows))
            for part in order.split(recipe.batch):
                adam.zero_grad()
                loss(net(rows[part]), outcomes[part]).backward()
                adam.step()
    linear = [layer for layer in net if isinstance(layer, torch.nn.Linear)]
    return PaperNetwork(
        tuple(layer.weight.detach().numpy().copy() for layer in linear),
        tuple(layer.bias.detach().numpy().copy() for layer in linear),
        mean,
        std,
    )


def _keep(model: Any, path: Path) -> None:
    """Write the model beside its place and move it there, so that nobody reads half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{os.getpid()}-{path.name}")
    if path.suffix == ".json":
        model.save_model(beside)
    else:
        arrays = {"mean": model.mean, "std": model.std}
        if isinstance(model, PaperLinear):
            arrays |= {"coef": model.coef, "intercept": model.intercept}
        else:
            for i, (weight, bias) in enumerate(zip(model.weights, model.biases, strict=True)):
                arrays |= {f"W{i}": weight, f"b{i}": bias}
        np.savez(beside, **arrays)
    beside.replace(path)


def _read(path: Path) -> Any:
    if path.suffix == ".json":
        return read_boosted(path)
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    mean, std = arrays.pop("mean"), arrays.pop("std")
    return from_arrays(arrays, mean, std)
