"""The paper's four data sets: their names, whether they are available, their split, space and bins."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from globece import FeatureSpace
from globece.datasets import Dataset, load_compas, load_default_credit, load_german_credit, load_heloc
from globece.errors import GlobeCEError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LOADERS: dict[str, Callable[[], Dataset]] = {
    "compas": load_compas,
    "german_credit": load_german_credit,
    "default_credit": load_default_credit,
    "heloc": load_heloc,
}
DATASETS = tuple(LOADERS)
NAMES = {"compas": "COMPAS", "german_credit": "German Credit", "default_credit": "Default Credit", "heloc": "HELOC"}


def data_folder() -> Path | None:
    """Return the folder that holds the paper's data and models, or None where GLOBECE_DATA is not set."""
    folder = os.environ.get("GLOBECE_DATA")
    return Path(folder) if folder else None


@cache
def load_dataset(name: str) -> Dataset:
    """Return a data set, loaded once in a process."""
    return LOADERS[name]()


def why_missing(name: str) -> str | None:
    """How to get a data set that is not available, in the loader's own words; None where it is."""
    try:
        load_dataset(name)
    except GlobeCEError as error:
        return str(error)
    return None


def split(name: str) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """The paper's split, encoded: training rows and outcomes (the first 80 %, unshuffled), then test ones."""
    data = load_dataset(name)
    x, y, n = data.encoded(), np.asarray(data.outcome), data.n_train
    return x[:n], y[:n], x[n:], y[n:]


def feature_space(name: str, **constraints: Any) -> FeatureSpace:
    """The space of the training rows; ranges are unbounded, as in the paper, unless constraints are given."""
    data = load_dataset(name)
    groups = {feature: columns for feature, columns in data.features.items() if columns}
    return FeatureSpace.from_matrix(
        split(name)[0], columns=data.columns, groups=groups, **(constraints or {"ranges": "unbounded"})
    )


def bin_widths(name: str) -> dict[str, float]:
    """A tenth of each continuous feature's range in the training rows: what costs 1."""
    data, x = load_dataset(name), split(name)[0]
    return {c: float(np.ptp(x[:, i])) / 10 for i, c in enumerate(data.columns) if c in data.continuous}
