"""The paper's twelve trained models and the problems they pose, from the neutral files under ``$GLOBECE_DATA``.

A test that uses this module carries ``pytest.mark.paper_data``, so that it is skipped where the files are absent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from globece.datasets import Dataset, load_compas, load_default_credit, load_german_credit, load_heloc

Kind = Literal["dnn", "xgb", "lr"]
FloatArray = NDArray[np.float64]

KINDS: tuple[Kind, ...] = get_args(Kind)
LOADERS: dict[str, Callable[[], Dataset]] = {
    "compas": load_compas,
    "german_credit": load_german_credit,
    "default_credit": load_default_credit,
    "heloc": load_heloc,
}


@dataclass(frozen=True, slots=True)
class PaperLinear:
    """Logistic regression, in float64: favourable where the margin is above 0."""

    coef: FloatArray  # (1, d)
    intercept: FloatArray  # (1,)
    mean: FloatArray  # (d,), 0 where the inputs are not normalised
    std: FloatArray  # (d,), 1 where the inputs are not normalised

    def decision_function(self, x: FloatArray) -> FloatArray:
        return (((x - self.mean) / self.std) @ self.coef.T + self.intercept)[:, 0]

    def predict(self, x: FloatArray) -> NDArray[np.int64]:
        return (self.decision_function(x) > 0).astype(np.int64)

    def to_sklearn(self) -> BaseEstimator:
        """Return the same model as a fitted pipeline of scikit-learn."""
        scaler = StandardScaler()
        scaler.mean_, scaler.scale_, scaler.n_features_in_ = self.mean, self.std, len(self.mean)
        regression = LogisticRegression()
        regression.coef_, regression.intercept_, regression.classes_ = self.coef, self.intercept, np.array([0, 1])
        regression.n_features_in_ = len(self.mean)
        return make_pipeline(scaler, regression)


@dataclass(frozen=True, slots=True)
class PaperNetwork:
    """A ReLU network with two logits, in float32; a tie is unfavourable."""

    weights: tuple[NDArray[np.float32], ...]  # each (out, in)
    biases: tuple[NDArray[np.float32], ...]
    mean: FloatArray
    std: FloatArray

    def logits(self, x: FloatArray) -> NDArray[np.float32]:
        h = ((x - self.mean) / self.std).astype(np.float32)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = np.maximum(h @ weight.T + bias, 0)
        return h @ self.weights[-1].T + self.biases[-1]

    def predict(self, x: FloatArray) -> NDArray[np.int64]:
        return np.asarray(self.logits(x).argmax(axis=1), np.int64)

    def to_torch(self) -> Any:
        """Return the same network as a ``torch.nn.Sequential``, with the normalisation folded into its first layer."""
        import torch

        first = self.weights[0] / self.std
        weights: tuple[NDArray[Any], ...] = (first, *self.weights[1:])
        biases: tuple[NDArray[Any], ...] = (self.biases[0] - first @ self.mean, *self.biases[1:])
        layers: list[Any] = []
        for weight, bias in zip(weights, biases, strict=True):
            linear = torch.nn.Linear(*weight.T.shape)
            linear.load_state_dict({"weight": torch.as_tensor(weight), "bias": torch.as_tensor(bias)})
            layers += [linear, torch.nn.ReLU()]
        return torch.nn.Sequential(*layers[:-1]).eval()


class PaperProblem(NamedTuple):
    """What the paper's protocol explains: a model, and its affected training rows."""

    model: Any  # has predict(x) -> 0 or 1 for each row
    x: FloatArray  # (n, d), the training part, encoded
    affected: NDArray[np.bool_]  # (n,), the rows predicted 0
    features: Mapping[str, list[str]]  # each feature's encoded columns; none for a continuous one
    columns: list[str]
    bin_widths: Mapping[str, float]  # a continuous feature's training range / 10


def data_folder() -> Path | None:
    """Return the folder that holds the paper's data, or None where GLOBECE_DATA is not set."""
    folder = os.environ.get("GLOBECE_DATA")
    return Path(folder) if folder else None


def model_folder(dataset: str) -> Path:
    """Return the folder of a dataset's models."""
    folder = data_folder()
    assert folder is not None, "GLOBECE_DATA is not set; mark the test with pytest.mark.paper_data"
    return folder / "models" / dataset


@cache
def load_dataset(dataset: str) -> Dataset:
    """Return the dataset, loaded once."""
    return LOADERS[dataset]()


@cache
def load_paper_model(dataset: str, kind: Kind) -> Any:
    """Return one of the twelve models, loaded once."""
    return read_model(model_folder(dataset), kind)


def read_model(folder: Path, kind: Kind) -> Any:
    """Read a model from a data set's folder of them."""
    if kind == "xgb":
        model = xgboost.XGBClassifier()
        model.load_model(folder / "xgb.json")
        return model
    mean, std = np.load(folder / "mean.npy"), np.load(folder / "std.npy")
    if not json.loads((folder / "models.json").read_text())[kind]["normalise"]:
        mean, std = np.zeros_like(mean), np.ones_like(std)
    with np.load(folder / f"{kind}.npz") as file:
        arrays = dict(file)
    if kind == "lr":
        return PaperLinear(np.atleast_2d(arrays["coef"]), np.atleast_1d(arrays["intercept"]), mean, std)
    depth = len(arrays) // 2
    return PaperNetwork(
        tuple(arrays[f"W{i}"] for i in range(depth)), tuple(arrays[f"b{i}"] for i in range(depth)), mean, std
    )


def bin_widths(dataset: str) -> dict[str, float]:
    """Return the width of a cost bin for each continuous feature."""
    widths: dict[str, float] = json.loads((model_folder(dataset) / "bin_widths.json").read_text())
    return widths


def paper_problem(dataset: str, kind: Kind) -> PaperProblem:
    """Return the problem that the paper's protocol poses for this dataset and kind of model."""
    data, model = load_dataset(dataset), load_paper_model(dataset, kind)
    x = data.encoded()[: data.n_train]
    return PaperProblem(model, x, model.predict(x) == 0, data.features, data.columns, bin_widths(dataset))
