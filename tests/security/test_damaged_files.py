"""A short part of `make fuzz-files`, and files that it once found something in."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from globece.errors import FileFormatError, GlobeCEError
from globece.io.frames import read_frame
from globece.io.model_files import load_model
from paper.saved_models import SAVED
from tests.fuzzing_files import fuzz


@pytest.mark.parametrize("kind", ["xgboost-json-text", "lightgbm-text", "logistic.onnx", "rows.", "config"])
def test_damaged_files_are_errors(kind: str, tmp_path: Path) -> None:
    tally, failed = fuzz(60, 0, tmp_path / "kept", only=kind)
    assert failed == []
    assert sum(tally.values()) == 60
    assert {what for _, what in tally} <= {"read", "refused"}


@pytest.fixture(scope="module")
def lightgbm_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("models") / "model.txt"
    saved = SAVED["lightgbm-text"]
    saved.make(*saved.rows(200), file)
    return file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("shrinkage=0.1", "shrinkage=v.1", "'v.1' in shrinkage, which is no number"),
        ("num_leaves=", "num_leaves=1", "does not begin where tree_sizes says"),
        ("left_child=1", "left_child=900", "does not begin where tree_sizes says"),
        ("Tree=3", "Tree=4", "tree 3"),
        ("end of trees", "end of bushes", "must go from 'tree' to 'end of trees'"),
        ("max_feature_idx=9", "max_feature_idx=8", "entries for 9 features"),
    ],
)
def test_lightgbm_is_checked_before_it_is_read(
    old: str, new: str, message: str, lightgbm_text: str, tmp_path: Path
) -> None:
    assert old in lightgbm_text
    (tmp_path / "model.txt").write_text(lightgbm_text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FileFormatError, match=message):
        load_model(tmp_path / "model.txt")


@pytest.mark.parametrize("cut", ["\n\nend of parameters", "parameters:", "[boosting: gbdt]"])
def test_lightgbm_without_its_parameters_loads(cut: str, lightgbm_text: str, tmp_path: Path) -> None:
    assert cut in lightgbm_text
    (tmp_path / "model.txt").write_text(lightgbm_text.replace(cut, "", 1), encoding="utf-8")
    assert load_model(tmp_path / "model.txt").n_classes == 2


@pytest.mark.parametrize("name", ["catboost", "catboost-one-hot"])
def test_a_crash_of_catboost_is_an_error(name: str, tmp_path: Path) -> None:
    saved, file = SAVED[name], tmp_path / "model.cbm"
    saved.make(*saved.rows(200), file)
    raw, rng = file.read_bytes(), np.random.default_rng(0)
    outcomes = set()
    for _ in range(25):
        damaged = bytearray(raw)
        for at in rng.integers(8, len(raw), size=3):
            damaged[at] ^= 0xFF
        file.write_bytes(bytes(damaged))
        try:
            load_model(file)
            outcomes.add("read")
        except GlobeCEError as error:
            outcomes.add(type(error).__name__)
    assert outcomes <= {"read", "FileFormatError"}


@pytest.fixture(scope="module")
def catboost(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("models") / "model.cbm"
    saved = SAVED["catboost"]
    saved.make(*saved.rows(200), file)
    return file.read_bytes()


def test_what_another_process_cannot_read_is_not_read_here(
    catboost: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends in an error there may end in a crash here: CatBoost reads past what it has checked."""
    damaged, file = bytearray(catboost), tmp_path / "model.cbm"
    struct.pack_into("<I", damaged, 8, 0)  # where its content begins
    file.write_bytes(bytes(damaged))
    library = pytest.importorskip("catboost")
    monkeypatch.setattr(library.CatBoost, "load_model", lambda *_, **__: pytest.fail("it was read here"))
    with pytest.raises(FileFormatError, match=r"damaged CatBoost model|not a model that CatBoost"):
        load_model(file)


def test_what_catboost_cannot_name_is_an_error(catboost: bytes, tmp_path: Path) -> None:
    file = tmp_path / "model.cbm"
    name = SAVED["catboost"].rows(200)[0].columns[0].encode()
    assert name in catboost
    file.write_bytes(catboost.replace(name, b"\xff" + name[1:]))
    with pytest.raises(FileFormatError, match=r"not a model that CatBoost .* can read.*UnicodeDecodeError"):
        load_model(file)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_damaged_tables_are_errors(ending: str, tmp_path: Path) -> None:
    frame, _ = SAVED["lightgbm-text"].rows(40)
    file = tmp_path / f"rows.{ending}"
    (frame.to_parquet if ending == "parquet" else frame.to_feather)(file)
    raw = file.read_bytes()
    for damaged in (raw[:-20], raw[:100], raw[:4] + b"\xff" * 200 + raw[204:], raw[: len(raw) // 2] + b"\x00" * 99):
        file.write_bytes(damaged)
        with pytest.raises(GlobeCEError, match=r"cannot be read|needs more memory|is empty"):
            read_frame(file)
