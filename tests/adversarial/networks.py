"""Random torch modules: those that are followed exactly, and those that can only be searched."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn


class Residual(nn.Module):
    """A block with a way around it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inside = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        return x + torch.relu(self.inside(x))


class Wave(nn.Module):
    """Nothing that can be read off its parts."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.last = nn.Linear(width, 1)

    def forward(self, x: Any) -> Any:
        return self.last(torch.sin(2.0 * x))


def draw(rng: np.random.Generator, X: NDArray[np.float64]) -> tuple[str, Any]:
    """A module over these rows, whose first layer undoes their offsets and scales, and its kind."""
    torch.manual_seed(int(rng.integers(2**31)))
    width, hidden = X.shape[1], int(rng.integers(2, 9))
    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    first = nn.Linear(width, hidden)
    with torch.no_grad():
        weight = first.weight.double().numpy() * 2.0 / scale
        first.bias.copy_(torch.from_numpy(first.bias.double().numpy() - weight @ mean))
        first.weight.copy_(torch.from_numpy(weight))
    kinds: dict[str, list[nn.Module]] = {
        "torch relu": [nn.ReLU(), nn.Linear(hidden, 1)],
        "torch two outputs": [nn.LeakyReLU(0.1), nn.Linear(hidden, 2)],
        "torch sigmoid": [nn.ReLU(), nn.Dropout(0.3), nn.Linear(hidden, 1), nn.Sigmoid()],
        "torch deep": [nn.ReLU(), nn.Linear(hidden, 4), nn.ReLU(), nn.Linear(4, 1)],
        "torch batch norm": [nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, 1)],
        "torch residual": [nn.ReLU(), Residual(hidden), nn.Linear(hidden, 1)],
        "torch gelu": [nn.GELU(), nn.Linear(hidden, 1)],
        "torch layer norm": [nn.LayerNorm(hidden), nn.Linear(hidden, 2)],
        "torch wave": [Wave(hidden)],
    }
    kind = str(rng.choice(list(kinds)))
    module = nn.Sequential(first, *kinds[kind])
    if rng.random() < 0.25:
        module, kind = module.double(), f"{kind} double"
    return kind, module.eval()


def decided(module: Any, X: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows the module gives class 1, as its user would ask."""
    found = scored(module, X)
    return found >= 0.0 if isinstance(module[-1], nn.Sigmoid) else found > 0.0


def noise(module: Any, X: NDArray[Any]) -> float:
    """The largest rounding error of the module's scores of these rows: against a twin in double precision."""
    single = next(module.parameters()).dtype
    seen = torch.from_numpy(np.array(X, dtype=np.float64)).to(single).double().numpy()  # what the module gets
    twin = copy.deepcopy(module).double()
    return float(np.abs(scored(module, X) - scored(twin, seen)).max(initial=0.0))


def scored(module: Any, X: NDArray[Any]) -> NDArray[np.float64]:
    """By how much it does."""
    kind = next(module.parameters()).dtype
    with torch.inference_mode():
        found = module(torch.from_numpy(np.array(X, dtype=np.float64)).to(kind)).double().numpy()
    if found.shape[1] == 2:
        return np.asarray(found[:, 1] - found[:, 0])
    return np.asarray(found[:, 0] - 0.5 if isinstance(module[-1], nn.Sigmoid) else found[:, 0])
