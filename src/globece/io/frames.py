"""Read a table of rows from a CSV, Parquet or Arrow file, with whichever frame library is installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from globece.errors import FileFormatError, InvalidDataError, InvalidParameterError, MissingExtraError, require
from globece.io.csv_files import UTF_8, check_csv, check_encoding
from globece.io.files import check_file, check_path

CSV, PARQUET, ARROW = (".csv",), (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
ENDINGS = (*CSV, *PARQUET, *ARROW)
# What stands for a missing value in a CSV file, whatever reads it. "None" is not among them: it is a common category.
MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")
ARROW_FILE = b"ARROW1"  # how a file begins that is not a mere stream
# Whole numbers beyond this are not exact once they have been floats.
EXACT = 2.0**53


def read_frame(path: str | os.PathLike[str], *, encoding: str = UTF_8) -> Any:
    r"""Read a CSV, Parquet or Arrow file as a pandas, Polars or PyArrow frame: the first of these that is installed.

    Columns of whole numbers keep an integer type, also where values are missing. In a CSV file an empty cell and
    ``NA``, ``N/A``, ``NaN``, ``nan``, ``NULL`` and ``null`` are missing values.

    Parameters
    ----------
    path
        A file whose name ends in ``.csv``, ``.parquet``, ``.pq``, ``.arrow``, ``.feather`` or ``.ipc``.
    encoding
        Encoding of a CSV file.

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
        raise InvalidDataError(f"{file} is empty; a table has a line of column names, and rows")
    text = check_encoding(encoding)
    if ending in CSV:
        check_csv(file, text)
    read = _reader(ending)
    try:
        frame = read(file, text) if ending in CSV else read(file)
    except MemoryError as error:
        raise FileFormatError(f"{file} needs more memory than there is, or is damaged: {_first_line(error)}") from error
    except Exception as error:  # each library has its own
        if (
            isinstance(error, OSError) and error.errno is not None
        ):  # the system's; PyArrow's about contents have no number
            raise
        raise FileFormatError(f"{file} cannot be read as {ending[1:]}: {_first_line(error)}") from error
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise InvalidDataError(f"{file} has {frame.shape[1]} column(s) and {frame.shape[0]} rows; rows are needed")
    return frame


def _reader(ending: str) -> Callable[..., Any]:
    """The reader of the first library that is installed and can read the format."""
    kind = "csv" if ending in CSV else "parquet" if ending in PARQUET else "arrow"
    libraries: tuple[tuple[str, str, dict[str, Callable[..., Any]]], ...] = (
        (
            "pandas",
            "pandas" if kind == "csv" else "pyarrow",
            {"csv": _pandas_csv, "parquet": _pandas_parquet, "arrow": _pandas_arrow},
        ),
        ("polars", "polars", {"csv": _polars_csv, "parquet": _polars_parquet, "arrow": _polars_arrow}),
        ("pyarrow", "pyarrow", {"csv": _pyarrow_csv, "parquet": _pyarrow_parquet, "arrow": _pyarrow_arrow}),
    )
    for module, needs, readers in libraries:
        if _installed(module) and _installed(needs):
            return readers[kind]
    raise MissingExtraError(
        "read_frame needs pandas, polars or pyarrow, and none is installed; "
        "install them with: pip install 'globece[frames]'"
    )


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # a module that is blocked by None in sys.modules
        return False


def _library(module: str) -> Any:
    return require(module, extra="frames", caller="read_frame")


def _pandas_csv(file: Path, encoding: str) -> Any:
    frame = _library("pandas").read_csv(
        file, encoding=encoding, keep_default_na=False, na_values=list(MISSING), low_memory=False, index_col=False
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


def _pandas_arrow(file: Path) -> Any:
    return _pyarrow_arrow(file).to_pandas()


def _pyarrow_csv(file: Path, encoding: str) -> Any:
    reader = _library("pyarrow.csv")
    options = reader.ConvertOptions(null_values=list(MISSING), strings_can_be_null=True)
    read = reader.ReadOptions(encoding=encoding.removesuffix("-sig"))
    return reader.read_csv(file, convert_options=options, read_options=read)


def _pyarrow_arrow(file: Path) -> Any:
    """An Arrow file, or a stream of Arrow's batches, whichever it is."""
    ipc = _library("pyarrow.ipc")
    with file.open("rb") as content:
        opened = ipc.open_file if content.read(len(ARROW_FILE)) == ARROW_FILE else ipc.open_stream
        content.seek(0)
        return opened(content).read_all()


def _pyarrow_parquet(file: Path) -> Any:
    return _library("pyarrow.parquet").read_table(file)


def _polars_csv(file: Path, encoding: str) -> Any:
    text = "utf8" if encoding.startswith("utf-8") else encoding
    return _library("polars").read_csv(file, null_values=list(MISSING), infer_schema_length=None, encoding=text)


def _polars_arrow(file: Path) -> Any:
    with file.open("rb") as content:
        is_file = content.read(len(ARROW_FILE)) == ARROW_FILE
    polars = _library("polars")
    return polars.read_ipc(file) if is_file else polars.read_ipc_stream(file)


def _polars_parquet(file: Path) -> Any:
    return _library("polars").read_parquet(file)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
