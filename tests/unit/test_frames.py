"""Tables are read with whichever library is there; what would be repaired in silence is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import narwhals as nw
import pandas as pd
import pyarrow as pa
import pytest

from globece import FeatureSpace
from globece.errors import FileFormatError, InvalidDataError, InvalidParameterError, MissingExtraError
from globece.io.frames import read_frame

CSV = "age,debt,housing,flag\n20,1.5,own,True\n,2.0,None,False\n40,NA,rent,True\n"
LIBRARIES = ["pandas", "polars", "pyarrow"]


def only(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make it look as if no other frame library were installed; pandas comes first anyhow, and itself uses pyarrow."""
    if library == "pandas":
        return
    for other in set(LIBRARIES) - {library}:
        monkeypatch.setitem(sys.modules, other, None)


@pytest.mark.parametrize("library", LIBRARIES)
def test_csv_is_read_alike(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(library, monkeypatch)
    file = tmp_path / "rows.csv"
    file.write_text("\N{ZERO WIDTH NO-BREAK SPACE}" + CSV, encoding="utf-8")
    native = read_frame(file)
    assert type(native).__module__.startswith((library, "pyarrow.lib"))
    frame = nw.from_native(native, eager_only=True)
    assert frame.columns == ["age", "debt", "housing", "flag"]
    assert frame.schema["age"].is_integer()
    assert frame.schema["debt"].is_float()
    assert frame["housing"].to_list() == ["own", "None", "rent"]
    assert frame["age"].is_null().to_list() == [False, True, False]
    assert frame["debt"].is_null().to_list() == [False, False, True]
    assert frame["flag"].to_list() == [True, False, True]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_parquet_keeps_its_types(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.PARQUET"
    ordered = pd.Categorical(["low", "high"], categories=["low", "high"], ordered=True)
    pd.DataFrame({"n": [1, 2], "x": [0.5, 1.0], "level": ordered}).to_parquet(file)
    only(library, monkeypatch)
    frame: Any = nw.from_native(read_frame(file), eager_only=True)
    assert frame.schema["n"].is_integer()
    assert frame.shape == (2, 3)
    if library == "pandas":
        assert FeatureSpace.from_frame(frame.to_native())["level"].kind == "ordinal"


def test_whole_numbers_with_gaps_move_in_whole_numbers(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("age,income,big\n20,1.5,1e17\n,2,\n40,3,2e17\n", encoding="utf-8")
    space = FeatureSpace.from_frame(read_frame(file))
    assert [f.whole for f in space.features] == [True, False, False]


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("rows.csv", b"", InvalidDataError, "is empty"),
        ("rows.csv", b"a,b\n", InvalidDataError, "has 2 column.s. and 0 rows"),
        ("rows.csv", b"\n1,2\n", FileFormatError, "its first line is empty"),
        ("rows.csv", b",a\n0,1\n", FileFormatError, r"no name for column.s. \[1\].*index=False"),
        ("rows.csv", b"a,b,a\n0,1,2\n", FileFormatError, r"\['a'\] more than once"),
        ("rows.csv", b"a;b\n0;1\n", FileFormatError, "must be separated by commas"),
        ("rows.csv", b"a,b\n1,2\n\xe9,1\n", FileFormatError, "line 3: not UTF-8 .byte 0xe9 at position 8.; .*cp1252"),
        ("rows.csv", "a,b\n1,2\n".encode("utf-16"), FileFormatError, "is UTF-16, not UTF-8: .*--encoding utf-16"),
        ("rows.csv", b"a,b\n1,2\n1,2,3,4\n", FileFormatError, "line 3: 4 values, and the header has 2; .* '1,2,3,4'"),
        ("rows.csv", b'a,b\n"1\n1",2\n\n7\n', FileFormatError, "line 5: 1 value, and the header has 2"),
        ("rows.csv", b'a,b\n1,2\n"1,2\n3,4\n', FileFormatError, "line 3: not CSV .* a double quote may be open"),
        ("rows.parquet", b"PAR1 is not enough", FileFormatError, "cannot be read as parquet"),
        ("rows.xlsx", b"PK", InvalidParameterError, "must end in .csv, .parquet, .* or .ipc; got .*rows.xlsx"),
        ("rows.arrow", b"ARROW1 is not enough", FileFormatError, "cannot be read as arrow"),
    ],
)
def test_says_what_is_wrong(name: str, content: bytes, error: type[Exception], message: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(error, match=message):
        read_frame(file)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", ["file", "stream"])
def test_arrow_keeps_its_types(library: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.arrow"
    table = pa.table({"n": [1, 2], "x": [0.5, None], "housing": ["own", "rent"]})
    with (pa.ipc.new_file if kind == "file" else pa.ipc.new_stream)(file, table.schema) as out:
        out.write_table(table)
    only(library, monkeypatch)
    frame: Any = nw.from_native(read_frame(file), eager_only=True)
    assert type(frame.to_native()).__module__.startswith((library, "pyarrow.lib"))
    assert frame.schema["n"].is_integer()
    assert frame["housing"].to_list() == ["own", "rent"]
    assert frame["x"].is_null().to_list() == [False, True]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_another_encoding(library: str, encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes("Größe,b\nklein,1\ngroß,2\n".encode(encoding))
    only(library, monkeypatch)
    frame = nw.from_native(read_frame(file, encoding=encoding), eager_only=True)
    assert frame["Größe"].to_list() == ["klein", "groß"]
    with pytest.raises(InvalidParameterError, match="encoding must be the name of an encoding"):
        read_frame(file, encoding="latin-1000")
    with pytest.raises(InvalidParameterError, match="encoding must be the name of an encoding"):
        read_frame(file, encoding="base64")


def test_missing_file_folder_and_rubbish(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match=r"nowhere\.csv'.* does not exist"):
        read_frame(tmp_path / "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidParameterError, match="is a folder"):
        read_frame(tmp_path / "folder.csv")
    with pytest.raises(InvalidParameterError, match="path must be a path"):
        read_frame(7)  # type: ignore[arg-type]


def test_without_a_frame_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(CSV, encoding="utf-8")
    only("", monkeypatch)
    with pytest.raises(MissingExtraError, match=r"globece\[frames\]"):
        read_frame(file)
