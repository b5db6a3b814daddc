"""The loaders give the paper's datasets: rows, encoding, split and balance."""

from __future__ import annotations

import gzip
import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import get_args

import narwhals as nw
import numpy as np
import pytest

from globece.datasets import load_compas, load_german_credit, load_heloc
from globece.datasets._dataset import Backend
from globece.errors import FileFormatError, InvalidParameterError, MissingExtraError
from paper.data import DATASETS, data_folder, load_dataset
from paper.models import model_folder

# tab:appdatasets: inputs, dimensions, categorical, continuous, training rows; and from its section the share of
# negative labels in the training part, in whole per cent.
PAPER = {
    "compas": (6172, 15, 4, 2, 4937, 45),
    "german_credit": (1000, 71, 17, 3, 800, 30),
    "default_credit": (30000, 91, 9, 14, 24000, 22),
    "heloc": (9871, 23, 0, 23, 7896, 53),
}
each_dataset = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.paper_data] * (name == "heloc")) for name in DATASETS]
)
each_backend = pytest.mark.parametrize("backend", get_args(Backend))


@each_dataset
def test_size_and_balance_are_the_papers(name: str) -> None:
    data = load_dataset(name)
    rows, dimensions, n_categorical, n_continuous, n_train, negative = PAPER[name]
    assert data.name == name
    assert data.frame.shape == (rows, n_categorical + n_continuous)
    assert (len(data.categorical), len(data.continuous)) == (n_categorical, n_continuous)
    assert len(data.columns) == dimensions
    assert data.n_train == n_train
    assert round(100 * (data.outcome[:n_train] == 0).mean()) == negative


@each_dataset
def test_every_block_is_one_hot(name: str) -> None:
    data = load_dataset(name)
    encoded = data.encoded()
    assert encoded.dtype == np.float64
    assert encoded.shape == (len(data.outcome), len(data.columns))
    assert np.isfinite(encoded).all()
    for block in filter(None, data.features.values()):
        hot = encoded[:, [data.columns.index(column) for column in block]]
        assert set(np.unique(hot)) == {0.0, 1.0}
        assert (hot.sum(axis=1) == 1).all()
        assert hot.any(axis=0).all()  # no category that never occurs


@pytest.mark.paper_data
@pytest.mark.parametrize("name", DATASETS)
def test_encoding_is_the_authors(name: str) -> None:
    data, folder = load_dataset(name), model_folder(name)
    assert data.columns == json.loads((folder / "columns.json").read_text())
    assert list(data.features.items()) == list(json.loads((folder / "features.json").read_text()).items())
    train = data.encoded()[: data.n_train]
    np.testing.assert_allclose(train.mean(axis=0), np.load(folder / "mean.npy"), rtol=1e-12)
    np.testing.assert_allclose(train.std(axis=0), np.load(folder / "std.npy"), rtol=1e-12)


@pytest.mark.paper_data
@pytest.mark.parametrize("file", ["german.data", "compas.csv", "default_credit.csv"])
def test_embedded_file_is_the_published_one(file: str) -> None:
    folder = data_folder()
    assert folder is not None
    embedded = files("globece.datasets").joinpath("data", f"{file}.gz").read_bytes()
    assert gzip.decompress(embedded) == (folder / file).read_bytes()


@each_backend
def test_backends_hold_the_same_rows(backend: Backend) -> None:
    data, reference = load_german_credit(backend=backend), load_german_credit()
    frame = nw.from_native(data.frame, eager_only=True)
    assert frame.implementation.value == backend
    assert frame.to_dict(as_series=False) == nw.from_native(reference.frame).to_dict(as_series=False)
    assert {name for name, kind in frame.schema.items() if kind == nw.String} == set(data.categorical)
    np.testing.assert_array_equal(data.encoded(), reference.encoded())


def test_unknown_backend_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"backend must be one of .*'pyarrow'.*got 'modin'"):
        load_compas(backend="modin")  # type: ignore[arg-type]


@each_backend
def test_missing_backend_names_the_extra(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, backend, None)
    with pytest.raises(MissingExtraError, match=rf"load_compas.*{backend}.*globece\[frames\]"):
        load_compas(backend=backend)


def test_outcome_is_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        load_german_credit().outcome[0] = 0


@pytest.mark.parametrize("folder", [None, "", "a folder without the file"])
def test_heloc_that_is_absent_says_how_to_get_it(
    folder: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GLOBECE_DATA", raising=False)
    if folder is not None:
        monkeypatch.setenv("GLOBECE_DATA", folder and str(tmp_path))
    with pytest.raises(InvalidParameterError, match=r"(?s)path .*got None.*FICO.*on request.*GLOBECE_DATA"):
        load_heloc()


def test_heloc_drops_empty_rows_and_imputes_the_median(tmp_path: Path) -> None:
    file = tmp_path / "heloc.csv"
    header = ",".join(["RiskPerformance", *(f"f{i}" for i in range(23))])
    rows = ["Good" + ",1" * 23, "Bad" + ",-9" * 23, "Bad,-7" + ",4" * 22, "Good" + ",8" * 22 + ",-8"]
    file.write_text("\n".join([header, *rows]))
    data = load_heloc(file)
    assert data.outcome.tolist() == [1, 0, 1]
    assert data.frame["f0"].tolist() == [1, 4.5, 8]  # the median of 1 and 8
    assert data.frame["f1"].tolist() == [1, 4, 8]
    assert data.frame["f22"].tolist() == [1, 4, 2.5]


def test_another_file_than_heloc_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(FileFormatError, match="RiskPerformance"):
        load_heloc(file)
