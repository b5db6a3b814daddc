"""Models that other libraries saved: each loads, predicts as before, and is followed exactly where that is possible."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from globece import rays
from globece.errors import GlobeCEWarning
from globece.io.frames import read_frame
from globece.io.model_files import load_model
from globece.io.trained_types import as_trained
from globece.models.compiling.adapt import Compiled, as_model
from globece.models.compiling.checking import blur
from globece.models.probes import drawn
from globece.space import FeatureSpace
from paper.saved_models import SAVED

# What is not a linear model, trees or a network; and what CatBoost computes from several columns at once.
SEARCHED = {
    "sklearn-onnx-svm": "operator ai.onnx.ml.SVMClassifier",
    "catboost-together": "statistics over several columns together",
}


@pytest.fixture(scope="module", params=SAVED)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any, Any, Any]:
    """The name, the model out of the file, the rows out of a CSV file, and what the library predicted for them."""
    name, folder = request.param, tmp_path_factory.mktemp("models")
    saved = SAVED[name]
    frame, y = saved.rows()
    file = folder / f"model{saved.ending}"
    expected = saved.make(frame, y, file)
    frame.to_csv(folder / "rows.csv", index=False)
    model = load_model(file)
    return name, model, as_trained(model, read_frame(folder / "rows.csv")), expected


def test_predicts_as_its_library_does(loaded: tuple[str, Any, Any, Any]) -> None:
    name, model, X, expected = loaded
    assert np.mean(np.asarray(model.predict(X)) == expected) == 1.0, name


def test_is_followed_exactly(loaded: tuple[str, Any, Any, Any]) -> None:
    name, model, X, _ = loaded
    space = FeatureSpace.from_frame(X)
    Z = space.encode(X)
    if name in SEARCHED:
        with pytest.warns(GlobeCEWarning, match=SEARCHED[name]):
            assert not as_model(model, space, favourable=1, rows=Z).exact
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = as_model(model, space, favourable=1, rows=Z)
    assert isinstance(compiled, Compiled)
    _check_rays(compiled, space, Z)


def _check_rays(compiled: Compiled, space: FeatureSpace, Z: Any) -> None:
    """Every reported k flips the file's own model, and no earlier one on a grid does."""
    rng = np.random.default_rng(0)
    rows = Z[~compiled.favourable(Z)][:25]
    flips = 0
    for to in drawn(space, 6, rng):
        delta = to - rows[0]
        delta[np.isnan(delta)] = 0.0
        k = compiled.first_flip(rows, delta[None], np.full((1, len(rows)), 2.0))[0]
        found = np.isfinite(k)
        flips += int(found.sum())
        assert compiled.original.favourable(rays.positions(space, rows[found], delta, k[found])).all()
        for share in np.linspace(0.02, 0.999, 40):
            early = rays.positions(space, rows, delta, share * np.where(found, k, 2.0))
            margin = compiled.margin(early)
            clear = np.abs(margin) > blur(compiled, early, margin)  # by more than its own rounding
            assert not (compiled.original.favourable(early) & clear).any()
    assert flips > 0


def test_by_probability_and_the_other_class(loaded: tuple[str, Any, Any, Any]) -> None:
    name, model, X, _ = loaded
    if name in SEARCHED or not hasattr(model, "predict_proba"):
        return
    space = FeatureSpace.from_frame(X)
    Z = space.encode(X)
    for favourable, threshold in ((0, None), (0, 0.3), (1, 0.7)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled = as_model(model, space, favourable=favourable, threshold=threshold, rows=Z)
        assert isinstance(compiled, Compiled), (favourable, threshold)


def test_saved_models_are_of_many_libraries() -> None:
    assert len(SAVED) >= 12
    assert {s.library for s in SAVED.values()} == {"XGBoost", "LightGBM", "CatBoost", "scikit-learn", "torch"}
