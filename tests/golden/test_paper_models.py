"""Data and models together give the predictions that the authors' own code gave, on every row."""

from __future__ import annotations

import json

import numpy as np
import pytest

from paper.cases import case
from paper.data import DATASETS, bin_widths, load_dataset
from paper.models import KINDS, load_paper_model, model_folder
from paper.reference import MODELS

pytestmark = pytest.mark.paper_data

each_dataset = pytest.mark.parametrize("dataset", DATASETS)
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_dataset
@each_kind
def test_predictions_are_the_authors(dataset: str, kind: str) -> None:
    data = load_dataset(dataset)
    predicted = load_paper_model(dataset, kind).predict(data.encoded())
    for part, rows in (("train", slice(None, data.n_train)), ("test", slice(data.n_train, None))):
        expected = np.load(model_folder(dataset) / f"pred_{part}_{kind}.npy")
        np.testing.assert_array_equal(predicted[rows], expected, err_msg=part)


@each_dataset
@each_kind
def test_affected_inputs_are_as_many_as_in_the_paper(dataset: str, kind: str) -> None:
    on = case(dataset, kind)
    assert on.rows.dtype == np.float64
    assert on.rows.shape[1] == len(on.space.columns)
    assert np.count_nonzero(on.affected) == MODELS[dataset, kind].affected  # |X_aff| in tab:DNNs, tab:XGB and tab:LR


@each_dataset
@each_kind
def test_accuracy_on_the_test_part_is_the_papers(dataset: str, kind: str) -> None:
    data = load_dataset(dataset)
    correct = load_paper_model(dataset, kind).predict(data.encoded()) == data.outcome
    assert 100 * correct[data.n_train :].mean() == pytest.approx(MODELS[dataset, kind].test, abs=0.5 + 1e-9)


@each_dataset
def test_bins_are_a_tenth_of_the_training_range(dataset: str) -> None:
    assert bin_widths(dataset) == json.loads((model_folder(dataset) / "bin_widths.json").read_text())


@each_dataset
def test_linear_model_survives_the_way_to_scikit_learn(dataset: str) -> None:
    model, x = load_paper_model(dataset, "lr"), load_dataset(dataset).encoded()
    np.testing.assert_array_equal(model.to_sklearn().predict(x), model.predict(x))


@each_dataset
def test_network_survives_the_way_to_torch(dataset: str) -> None:
    torch = pytest.importorskip("torch")
    model, x = load_paper_model(dataset, "dnn"), load_dataset(dataset).encoded()
    with torch.no_grad():
        logits = model.to_torch()(torch.as_tensor(x, dtype=torch.float32)).numpy()
    np.testing.assert_array_equal(logits.argmax(axis=1), model.predict(x))
