"""The four data sets as experiments ask for them: their names, whether they are at hand, and the paper's split."""

from __future__ import annotations

from typing import Any

import numpy as np

from globece.datasets import Dataset
from globece.errors import GlobeCEError
from tests.paper_models import load_dataset

NAMES = {"compas": "COMPAS", "german_credit": "German Credit", "default_credit": "Default Credit", "heloc": "HELOC"}
DATASETS = tuple(NAMES)


def dataset(name: str) -> Dataset:
    """Return a data set, loaded once in a process."""
    return load_dataset(name)


def why_missing(name: str) -> str | None:
    """How to get a data set that is not at hand, in the loader's own words; none where it is."""
    try:
        load_dataset(name)
    except GlobeCEError as error:
        return str(error)
    return None


def split(name: str) -> tuple[Any, Any, Any, Any]:
    """The paper's split, encoded: training rows and outcomes (the first 80 %, unshuffled), then test ones."""
    data = load_dataset(name)
    x, y, n = data.encoded(), np.asarray(data.outcome), data.n_train
    return x[:n], y[:n], x[n:], y[n:]
