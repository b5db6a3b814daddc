"""What makes a CSV file unfit to be read, by line: the libraries would repair much of it in silence."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from globece.errors import FileFormatError, wrong

UTF_8 = "utf-8"
SHOWN = 80  # letters of a line, in a message
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def check_encoding(name: str) -> str:
    """Return the name of an encoding if Python knows it; otherwise raise."""
    allowed = "the name of an encoding, as in utf-8, cp1252 or utf-16"
    if not isinstance(name, str) or not 0 < len(name) < 100:
        raise wrong("encoding", allowed, name)
    try:
        found = codecs.lookup(name)
        "".encode(found.name)  # fails where it is no encoding of text
    except (LookupError, ValueError) as error:
        raise wrong("encoding", allowed, name) from error
    return "utf-8-sig" if found.name == UTF_8 else found.name


def check_csv(file: Path, encoding: str) -> None:
    """Raise if the file is not a table: with the line, and what to do.

    Parameters
    ----------
    file
        The file.
    encoding
        Its encoding, as :func:`check_encoding` returns it.
    """
    with _decoded(file, encoding), file.open(newline="", encoding=encoding) as lines:
        rows = csv.reader(lines, strict=True)
        line = 1
        try:
            header = next(rows, [])
            _check_header(file, header)
            line = rows.line_num + 1
            for row in rows:
                if len(row) != len(header) and row:
                    raise FileFormatError(
                        f"{file}, line {line:,}: {_fields(len(row))}, and the header has {len(header):,}; a value that "
                        f"holds a comma or a line break must stand in double quotes. The line begins {_shown(row)}"
                    )
                line = rows.line_num + 1
        except csv.Error as error:
            hint = "; a double quote may be open that is never closed" if "unexpected end" in str(error) else ""
            raise FileFormatError(f"{file}, line {line:,}: not CSV ({error}{hint})") from error


def _fields(n: int) -> str:
    return f"{n:,} value" if n == 1 else f"{n:,} values"


def _shown(row: list[str]) -> str:
    text = ",".join(islice(row, 20))
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")


def _check_header(file: Path, header: list[str]) -> None:
    if not header or header == [""]:
        raise FileFormatError(f"{file} must begin with a line of column names; its first line is empty")
    unnamed = [i + 1 for i, name in enumerate(header) if not name.strip()]
    if unnamed:
        raise FileFormatError(
            f"{file} has no name for column(s) {unnamed}; if pandas wrote its index there, write with index=False"
        )
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise FileFormatError(f"{file} names column(s) {twice} more than once; rename or remove them")
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise FileFormatError(f"{file} must be separated by commas; its first line is {header[0][:SHOWN]!r}")


@contextmanager
def _decoded(file: Path, encoding: str) -> Iterator[None]:
    """Say where a file is not in its encoding, and what to do."""
    try:
        yield
    except UnicodeError as error:
        raise FileFormatError(f"{file}{_first_fault(file, encoding)}") from error


def _first_fault(file: Path, encoding: str) -> str:
    """The first byte that cannot be decoded; the error that was raised only knows its place in a part of the file."""
    with file.open("rb") as content:
        if content.read(2) in UTF_16 and not encoding.startswith("utf-16"):
            return " is UTF-16, not UTF-8: read it with encoding 'utf-16' (--encoding utf-16 on the command line)"
        content.seek(0)
        if encoding not in ("utf-8-sig", "ascii"):
            return f" is not text in {encoding}; name its true encoding"
        at = 0
        for number, line in enumerate(content, start=1):
            try:
                line.decode("utf-8" if encoding == "utf-8-sig" else encoding)
            except UnicodeDecodeError as error:
                return (
                    f", line {number:,}: not UTF-8 (byte {line[error.start]:#04x} at position {at + error.start:,}); "
                    "save it as UTF-8, or name its encoding, which is often cp1252 (--encoding cp1252 on the command "
                    "line)"
                )
            at += len(line)
    return f" is not text in {encoding}"
