"""The paper's kinds of models, and its twelve trained ones from the neutral files under ``$GLOBECE_DATA``.

A test that loads one carries ``pytest.mark.paper_data``, so that it is skipped where the files are absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from paper.data import FloatArray, IntArray, data_folder

KINDS = ("lr", "xgb", "dnn")


@dataclass(frozen=True, slots=True)
class PaperLinear:
    """Logistic regression or a linear SVM, in float64: favourable where the margin is above 0."""

    coef: FloatArray  # (1, d)
    intercept: FloatArray  # (1,)
    mean: FloatArray  # (d,), 0 where the inputs are not normalised
    std: FloatArray  # (d,), 1 where the inputs are not normalised

    def decision_function(self, x: FloatArray) -> FloatArray:
        margins: FloatArray = ((x - self.mean) / self.std) @ self.coef.T + self.intercept
        return margins[:, 0]

    def predict(self, x: FloatArray) -> IntArray:
        return (self.decision_function(x) > 0).astype(np.int64)

    def to_sklearn(self, svm: bool = False) -> Any:
        """Return the same model as a fitted pipeline of scikit-learn."""
        scaler = StandardScaler()
        scaler.mean_, scaler.scale_, scaler.n_features_in_ = self.mean, self.std, len(self.mean)
        final = LinearSVC() if svm else LogisticRegression()
        final.coef_, final.intercept_, final.classes_ = self.coef, self.intercept, np.array([0, 1])
        final.n_features_in_ = len(self.mean)
        return make_pipeline(scaler, final)


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
        return np.asarray(h @ self.weights[-1].T + self.biases[-1])

    def predict(self, x: FloatArray) -> IntArray:
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


def from_arrays(arrays: Mapping[str, NDArray[Any]], mean: FloatArray, std: FloatArray) -> PaperLinear | PaperNetwork:
    """Return the model that a file's arrays describe."""
    if "coef" in arrays:
        return PaperLinear(np.atleast_2d(arrays["coef"]), np.atleast_1d(arrays["intercept"]), mean, std)
    depth = range(len(arrays) // 2)
    return PaperNetwork(tuple(arrays[f"W{i}"] for i in depth), tuple(arrays[f"b{i}"] for i in depth), mean, std)


def read_boosted(path: Path) -> Any:
    """Read an XGBoost model."""
    model = xgboost.XGBClassifier()
    model.load_model(path)
    return model


def read_model(folder: Path, kind: str) -> Any:
    """Read a model from a data set's folder of them."""
    if kind == "xgb":
        return read_boosted(folder / "xgb.json")
    mean, std = np.load(folder / "mean.npy"), np.load(folder / "std.npy")
    if not json.loads((folder / "models.json").read_text())[kind]["normalise"]:
        mean, std = np.zeros_like(mean), np.ones_like(std)
    with np.load(folder / f"{kind}.npz") as file:
        return from_arrays(dict(file), mean, std)


def model_folder(dataset: str) -> Path:
    """Return the folder of a data set's models."""
    folder = data_folder()
    assert folder is not None, "GLOBECE_DATA is not set; mark the test with pytest.mark.paper_data"
    return folder / "models" / dataset


@cache
def load_paper_model(dataset: str, kind: str) -> Any:
    """Return one of the twelve models, loaded once."""
    return read_model(model_folder(dataset), kind)
