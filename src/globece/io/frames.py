"""Read a table of rows from a CSV or Parquet file, with whichever frame library is installed."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from globece.errors import FileFormatError, InvalidDataError, InvalidParameterError, MissingExtraError, require
from globece.io.files import check_file, check_path

ENDINGS = (".csv", ".parquet", ".pq")
# What stands for a missing value in a CSV file, whatever reads it. "None" is not among them: it is a common category.
MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")
# Whole numbers beyond this are not exact once they have been floats.
EXACT = 2.0**53


def read_frame(path: str | os.PathLike[str]) -> Any:
    r"""Read a CSV or Parquet file as a pandas, Polars or PyArrow frame: the first of these that is installed.

    Columns of whole numbers keep an integer type, also where values are missing. In a CSV file an empty cell and
    ``NA``, ``N/A``, ``NaN``, ``nan``, ``NULL`` and ``null`` are missing values.

    Parameters
    ----------
    path
        A file whose name ends in ``.csv``, ``.parquet`` or ``.pq``.

    Returns
    -------
    frame
        A ``pandas.DataFrame``, ``polars.DataFrame`` or ``pyarrow.Table``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "rows.csv")
    ...     _ = file.write_text("age,housing\n20,own\n,rent\n", encoding="utf-8")
    ...     frame = read_frame(file)
    >>> frame.shape, str(frame["age"].dtype)
    ((2, 2), 'Int64')
    """
    file = Path(check_path("path", path))
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise InvalidParameterError(
            f"a table's file name must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}; got {str(file)!r}"
        )
    check_file("cannot read", file)
    if file.stat().st_size == 0:
        raise InvalidDataError(f"{file} is empty")
    if ending == ".csv":
        _check_header(file)
    read = _reader(ending)
    try:
        frame = read(file)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # each library has its own
        raise FileFormatError(f"{file} cannot be read as {ending[1:]}: {_first_line(error)}") from error
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise InvalidDataError(f"{file} has {frame.shape[1]} column(s) and {frame.shape[0]} rows; rows are needed")
    return frame


def _reader(ending: str) -> Callable[[Path], Any]:
    """The reader of the first library that is installed and can read the format."""
    csv_file = ending == ".csv"
    for module, read, needs in (
        ("pandas", _pandas_csv if csv_file else _pandas_parquet, () if csv_file else ("pyarrow",)),
        ("polars", _polars_csv if csv_file else _polars_parquet, ()),
        ("pyarrow", _pyarrow_csv if csv_file else _pyarrow_parquet, ()),
    ):
        if all(_installed(name) for name in (module, *needs)):
            return read
    raise MissingExtraError(
        "read_frame needs pandas, polars or pyarrow, and none is installed; "
        "install them with: pip install 'globece[frames]'"
    )


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # a module that is blocked by None in sys.modules
        return False


def _check_header(file: Path) -> None:
    """Refuse what the libraries would repair in silence: columns without a name, or with the same one."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            header = next(csv.reader(islice(lines, 1000)), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"{file} is not a CSV file in UTF-8: {_first_line(error)}") from error
    if not header or header == [""]:
        raise FileFormatError(f"{file} must begin with a line of column names; its first line is empty")
    unnamed = [i + 1 for i, name in enumerate(header) if not name.strip()]
    if unnamed:
        raise FileFormatError(
            f"{file} has no name for column(s) {unnamed}; if pandas wrote its index there, write with index=False"
        )
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise FileFormatError(f"{file} names column(s) {twice} more than once")
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise FileFormatError(f"{file} must be separated by commas; its first line is {header[0][:80]!r}")


def _library(module: str) -> Any:
    return require(module, extra="frames", caller="read_frame")


def _pandas_csv(file: Path) -> Any:
    frame = _library("pandas").read_csv(
        file, encoding="utf-8-sig", keep_default_na=False, na_values=list(MISSING), low_memory=False, index_col=False
    )
    # NumPy has no missing whole number, so pandas reads 1, (nothing), 3 as floats.
    whole = {name: "Int64" for name in frame.columns if _holds_missing_whole(frame[name])}
    return frame.astype(whole) if whole else frame


def _holds_missing_whole(column: Any) -> bool:
    if column.dtype != np.float64:
        return False
    values = column.to_numpy()
    present = values[~np.isnan(values)]
    if present.size in (0, values.size):
        return False
    return bool((np.rint(present) == present).all() and (np.abs(present) <= EXACT).all())


def _pandas_parquet(file: Path) -> Any:
    return _library("pandas").read_parquet(file)


def _pyarrow_csv(file: Path) -> Any:
    reader = _library("pyarrow.csv")
    options = reader.ConvertOptions(null_values=list(MISSING), strings_can_be_null=True)
    return reader.read_csv(file, convert_options=options)


def _pyarrow_parquet(file: Path) -> Any:
    return _library("pyarrow.parquet").read_table(file)


def _polars_csv(file: Path) -> Any:
    return _library("polars").read_csv(file, null_values=list(MISSING), infer_schema_length=None)


def _polars_parquet(file: Path) -> Any:
    return _library("polars").read_parquet(file)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
