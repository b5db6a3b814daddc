"""Files, written in one piece or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from globece.errors import FileFormatError, InvalidParameterError, check_path

__all__ = ["check_file", "check_path", "first_line", "read_text", "write_bytes", "write_text"]

LONGEST = 300  # letters of another library's message


def check_file(failure: str, file: Path) -> None:
    """Raise if there is no such file; ``failure`` says what cannot be done."""
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise InvalidParameterError(f"{failure} {str(file)!r}: it {what}")


def first_line(error: BaseException) -> str:
    """What an error of another library says, in one line."""
    text = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {text if len(text) <= LONGEST else text[:LONGEST] + '...'}"


def read_text(path: str) -> str:
    """Read a file of UTF-8 text, with or without a byte order mark."""
    with open(path, "rb") as file:
        content = file.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is not text in UTF-8: {error.reason} at byte {error.start:,}") from error


def write_text(path: str, text: str) -> None:
    """Write UTF-8 text so that the path holds the whole of it or what it held before, whenever the process ends.

    The text goes to a temporary file in the same folder, which takes the path's place once it is on the disk.

    Parameters
    ----------
    path
        Where to write. A link is followed, and a file that is there keeps its permissions.
    text
        What to write.

    Raises
    ------
    OSError
        With the path, and nothing else left behind.
    """
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str, content: bytes) -> None:
    """The same for bytes: the path holds the whole of them or what it held before."""
    try:
        _write(path, content)
    except OSError as error:
        # The system names the temporary file, which says nothing to the user.
        raise OSError(error.errno or errno.EIO, f"cannot write the file: {error.strerror}", path) from error


def _write(path: str, content: bytes) -> None:
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        # A pipe or a device cannot be replaced and must not be; opening a folder is an error, as it should be.
        with open(path, "wb") as out:
            out.write(content)
        return
    if mode is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    final = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(final), f".globece-{secrets.token_hex(8)}.tmp")
    out = open(temporary, "xb")  # noqa: SIM115 (what follows removes the file as well as closing it)
    try:
        with out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, final)
    except BaseException:  # Ctrl-C too
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(os.path.dirname(final))


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _sync_folder(folder: str) -> None:
    """Put the new name on the disk too, where the system lets one; the file is whole either way."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
