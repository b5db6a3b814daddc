"""Loading a model runs no code of the file's author unless that is asked for by name (promise 18)."""

from __future__ import annotations

import json
import os
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

import joblib
import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
import xgboost as xgb
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

import globece as gce
from globece.errors import FileFormatError, InvalidParameterError, MissingExtraError, ModelError
from globece.io.boosters import LightGBMClassifier, LightGBMRegressor
from globece.io.model_files import load_model


class Evil:
    """Leaves a mark wherever it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


class Homemade(ClassifierMixin, BaseEstimator):
    """A type that skops cannot know."""

    def fit(self, X: Any, y: Any) -> Homemade:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return self.classes_[(np.asarray(X)[:, 0] > 0).astype(int)]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(120, 3)), columns=["income", "debt", "a b"])


@pytest.fixture(scope="module")
def labels(rows: pd.DataFrame) -> np.ndarray[Any, Any]:
    return (rows["income"] - rows["debt"] > 0).to_numpy().astype(int)


# -- pickles ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["pkl", "pickle", "joblib", "PKL"])
def test_pickle_is_refused_unless_asked_for(ending: str, tmp_path: Path) -> None:
    file, mark = tmp_path / f"model.{ending}", tmp_path / "mark"
    (joblib.dump if ending == "joblib" else _dump)(Evil(mark), file)
    with pytest.raises(InvalidParameterError, match=r"allow_pickle=True .--allow-pickle on the command line"):
        load_model(file)
    assert not mark.exists()
    for wish in (1, "yes", None):
        with pytest.raises(InvalidParameterError, match="allow_pickle must be True or False"):
            load_model(file, allow_pickle=wish)  # type: ignore[arg-type]
    assert not mark.exists()
    load_model(file, allow_pickle=True)
    assert mark.exists()  # so the file was dangerous indeed


@pytest.mark.parametrize("ending", ["json", "ubj", "txt", "skops"])
def test_pickle_under_another_name_is_not_run(ending: str, tmp_path: Path) -> None:
    file, mark = tmp_path / f"model.{ending}", tmp_path / "mark"
    _dump(Evil(mark), file)
    with pytest.raises(FileFormatError):
        load_model(file, allow_pickle=True)
    assert not mark.exists()


def test_allowed_pickle_loads_and_a_broken_one_says_so(tmp_path: Path) -> None:
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    joblib.dump(model, tmp_path / "model.joblib")
    assert load_model(tmp_path / "model.joblib", allow_pickle=True).predict([[5.0]]) == [1]
    (tmp_path / "model.pkl").write_bytes(b"not a pickle")
    with pytest.raises(FileFormatError, match="cannot be unpickled"):
        load_model(tmp_path / "model.pkl", allow_pickle=True)


def _dump(what: Any, file: Path) -> None:
    file.write_bytes(pickle.dumps(what))


# -- skops --------------------------------------------------------------------------------------------------------


def test_skops_file_of_known_types_loads(tmp_path: Path) -> None:
    skops.io.dump(LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"]), tmp_path / "model.skops")
    assert load_model(tmp_path / "model.skops").predict([[9.0]]).tolist() == ["yes"]


def test_skops_types_must_be_named_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "model.skops"
    skops.io.dump(Homemade().fit([[0.0], [1.0]], [0, 1]), file)
    (name,) = skops.io.get_untrusted_types(file=file)
    with pytest.raises(InvalidParameterError, match=r"not trusted: \['.*Homemade'\].*--trusted .*Homemade"):
        load_model(file)
    with pytest.raises(InvalidParameterError, match="not trusted"):
        load_model(file, trusted=["sklearn.linear_model.LogisticRegression"])
    for rubbish in (True, "all", [1], 7):
        with pytest.raises(InvalidParameterError, match="trusted must be a list of full type names, never True"):
            load_model(file, trusted=rubbish)  # type: ignore[arg-type]
    assert load_model(file, trusted=[name]).predict([[1.0]]) == [1]


@pytest.mark.parametrize("content", ["nothing", "zip"])
def test_damaged_skops_file(content: str, tmp_path: Path) -> None:
    file = tmp_path / "model.skops"
    file.write_bytes(b"rubbish")
    if content == "zip":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("schema.json", "{}")
    with pytest.raises(FileFormatError, match="not a skops file"):
        load_model(file)


# -- XGBoost ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "ubj"])
def test_xgboost_comes_back_as_what_it_was(
    ending: str, rows: pd.DataFrame, labels: np.ndarray[Any, Any], tmp_path: Path
) -> None:
    three = np.digitize(rows["income"], [-0.5, 0.5])
    for model, y, classes in (
        (xgb.XGBClassifier(n_estimators=4), labels, [0, 1]),
        (xgb.XGBClassifier(n_estimators=4), three, [0, 1, 2]),
        (xgb.XGBRegressor(n_estimators=4), rows["debt"], None),
    ):
        file = tmp_path / f"model.{ending}"
        model.fit(rows, y).save_model(file)
        loaded = load_model(file)
        assert type(loaded) is type(model)
        assert np.array_equal(loaded.predict(rows), model.predict(rows))
        assert list(loaded.feature_names_in_) == list(rows.columns)
        assert classes is None or loaded.classes_.tolist() == classes


@pytest.mark.parametrize("name", ["num_target", "num_class", "num_feature"])
@pytest.mark.parametrize("claimed", ["-1", "1000000000"])
def test_xgboost_reserves_no_memory_for_what_is_only_claimed(
    name: str, claimed: str, rows: pd.DataFrame, labels: np.ndarray[Any, Any], tmp_path: Path
) -> None:
    xgb.XGBClassifier(n_estimators=2).fit(rows, labels).save_model(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    document["learner"]["learner_model_param"][name] = claimed
    (tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(FileFormatError, match="is not a whole XGBoost model"):
        load_model(tmp_path / "model.json")


@pytest.mark.parametrize("multi", ["one_output_per_tree", "multi_output_tree"])
def test_xgboost_of_several_targets_is_read(multi: str, rows: pd.DataFrame, tmp_path: Path) -> None:
    model = xgb.XGBRegressor(n_estimators=2, multi_strategy=multi, tree_method="hist")
    model.fit(rows, np.column_stack([rows["debt"], rows["income"], rows["debt"]])).save_model(tmp_path / "model.json")
    assert np.array_equal(load_model(tmp_path / "model.json").predict(rows), model.predict(rows))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.json", b"{"),
        ("model.json", b'{"learner": 3}'),
        ("model.json", b'{"learner": {}}'),
        ("model.json", b"[]"),
        ("model.json", b"[" * 100_000),
        ("model.ubj", b"rubbish"),
        ("model.txt", b"rubbish"),
        ("model.txt", b"tree\nversion=v4\nnum_class=1\n"),
    ],
)
def test_damaged_tree_files(name: str, content: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileFormatError, match=name):
        load_model(tmp_path / name)
    assert capfd.readouterr().out == ""


# -- LightGBM -----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Found whitespace in feature_names")
def test_lightgbm_classifier(rows: pd.DataFrame, labels: np.ndarray[Any, Any], tmp_path: Path) -> None:
    three = np.digitize(rows["income"], [-0.5, 0.5])
    file = tmp_path / "model.txt"
    for y in (labels, three):
        model = lgb.LGBMClassifier(n_estimators=4, verbose=-1).fit(rows, y)
        model.booster_.save_model(file)
        loaded = load_model(file)
        assert isinstance(loaded, LightGBMClassifier)
        assert loaded.classes_.tolist() == np.unique(y).tolist()
        shuffled = rows[["a b", "income", "debt"]]  # found by name, not by place
        for X in (rows, shuffled, pl.from_pandas(shuffled), rows.to_numpy()):
            assert np.array_equal(loaded.predict(X), model.predict(rows))
            assert np.allclose(loaded.predict_proba(X), model.predict_proba(rows))
    with pytest.raises(ModelError, match=r"needs column.s. \['income'\]"):
        loaded.predict(rows.drop(columns="income"))


@pytest.mark.filterwarnings("ignore:Found whitespace in feature_names")
def test_lightgbm_regressor_needs_a_threshold(rows: pd.DataFrame, tmp_path: Path) -> None:
    model = lgb.LGBMRegressor(n_estimators=4, verbose=-1).fit(rows, rows["income"])
    model.booster_.save_model(tmp_path / "model.txt")
    loaded = load_model(tmp_path / "model.txt")
    assert isinstance(loaded, LightGBMRegressor)
    assert np.array_equal(loaded.predict(rows), model.predict(rows))
    ex = gce.explain(loaded, rows, threshold=0.0, rng=0)
    assert ex.n_affected == int((np.asarray(model.predict(rows)) < 0).sum())
    with pytest.raises(ModelError, match="threshold="):
        gce.explain(loaded, rows, rng=0)


# -- the rest -----------------------------------------------------------------------------------------------------


def test_unknown_missing_and_not_yet(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"must end in \.json, \.ubj, \.txt, \.cbm, \.onnx, \.skops"):
        load_model("model.bin")
    with pytest.raises(InvalidParameterError, match="does not exist"):
        load_model(tmp_path / "model.json")
    (tmp_path / "model.txt").mkdir()
    with pytest.raises(InvalidParameterError, match="is a folder"):
        load_model(tmp_path / "model.txt")
    with pytest.raises(InvalidParameterError, match="path must be a path"):
        load_model(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("module", "name", "extra"),
    [("xgboost", "m.ubj", "trees"), ("lightgbm", "m.txt", "trees"), ("skops.io", "m.skops", "onnx")],
)
def test_missing_extra_is_named(
    module: str, name: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_text(json.dumps({"learner": {}}), encoding="utf-8")
    with pytest.raises(MissingExtraError, match=rf"globece\[{extra}\]"):
        load_model(tmp_path / name)
