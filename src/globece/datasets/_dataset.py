"""The result of a loader, and helpers for loaders: reading an embedded file, building a frame."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from globece.errors import check_choice, require

Backend = Literal["pandas", "polars", "pyarrow"]
Column = list[str] | NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A frame of raw columns, its outcomes, and the paper's encoding of it.

    Attributes
    ----------
    name
        Short name, as in file names: ``"german_credit"``.
    frame
        The rows, as a frame of the backend, one column per feature. A categorical column holds strings, even if the
        categories are numbers (``"-2"``); a continuous column holds numbers.
    outcome
        For each row 1 if its outcome was favourable, else 0. Read-only.
    favourable
        What outcome 1 means.
    continuous
        Names of the continuous features.
    categorical
        Each categorical feature's categories, in the order of its one-hot columns.
    description, source, licence
        What the data are, where they come from, and their licence.

    Examples
    --------
    >>> from globece.datasets import load_compas
    >>> compas = load_compas()
    >>> compas
    Dataset(name='compas', favourable='did not reoffend within two years')
    >>> compas.categorical["Age_Cat"]
    ('Less than 25', '25 - 45', 'Greater than 45')
    >>> compas.encoded().shape
    (6172, 15)
    """

    name: str
    frame: Any = field(repr=False)
    outcome: NDArray[np.int64] = field(repr=False)
    favourable: str
    continuous: tuple[str, ...] = field(repr=False)
    categorical: Mapping[str, tuple[str, ...]] = field(repr=False)
    description: str = field(repr=False)
    source: str = field(repr=False)
    licence: str = field(repr=False)

    @property
    def n_train(self) -> int:
        """Number of rows, from the first on, in the paper's training part: 80 %, unshuffled."""
        return int(0.8 * len(self.outcome))

    @property
    def features(self) -> dict[str, list[str]]:
        """Each feature's encoded columns, in order; an empty list for a continuous feature, which is one column."""
        names = nw.from_native(self.frame, eager_only=True).columns
        return {name: [f"{name} = {category}" for category in self.categorical.get(name, ())] for name in names}

    @property
    def columns(self) -> list[str]:
        """Names of the columns of :meth:`encoded`: ``"Feature"`` or ``"Feature = category"``."""
        return [column for name, block in self.features.items() for column in block or [name]]

    def encoded(self) -> NDArray[np.float64]:
        """Return the rows as one float64 matrix, with a block of 0/1 columns for each categorical feature."""
        frame = nw.from_native(self.frame, eager_only=True)
        blocks = []
        for name in frame.columns:
            values = frame[name].to_numpy()[:, None]
            blocks.append(values == np.array(self.categorical[name], object) if name in self.categorical else values)
        return np.hstack(blocks, dtype=np.float64, casting="unsafe")


def read_embedded(name: str) -> str:
    """Return the text of a file that is embedded in the package."""
    return gzip.decompress(files(__package__).joinpath("data", f"{name}.gz").read_bytes()).decode("ascii")


def check_backend(backend: Backend) -> None:
    """Raise if this is not a supported library, before anything is read."""
    check_choice("backend", backend, ("pandas", "polars", "pyarrow"))


def make_frame(columns: Mapping[str, Column], backend: Backend, *, caller: str) -> Any:
    """Return the columns as a frame of the backend, or name the extra that installs it."""
    check_backend(backend)
    require(backend, extra="frames", caller=f"{caller}(backend={backend!r})")
    return nw.from_dict(dict(columns), backend=backend).to_native()


def frozen(outcome: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return whether each outcome was favourable as read-only 0 and 1."""
    result = outcome.astype(np.int64)
    result.setflags(write=False)
    return result
