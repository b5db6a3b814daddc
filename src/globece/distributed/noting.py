"""Warnings of a batch, noted for its summary: workers have nobody to show them to.

Python's record of warnings is one for all threads, and a Dask worker may have several. So they share one record, which
knows the thread of each warning.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from globece.errors import GlobeCEWarning

_lock = threading.Lock()
_recording: list[Any] = []  # the one record, while any thread takes notes
_notes: dict[int, dict[str, None]] = {}  # by thread


@contextmanager
def noting() -> Iterator[dict[str, None]]:
    """Note globece's own warnings instead of showing them; yields the notes, each once.

    Examples
    --------
    >>> with noting() as notes:
    ...     warnings.warn("left out", GlobeCEWarning)
    >>> list(notes)
    ['left out']
    """
    me = threading.get_ident()
    notes: dict[str, None] = {}
    with _lock:
        if not _notes:
            record = warnings.catch_warnings()
            record.__enter__()
            warnings.simplefilter("always", GlobeCEWarning)
            _recording[:] = [record, warnings.showwarning]
            warnings.showwarning = _note
        _notes[me] = notes
    try:
        yield notes
    finally:
        with _lock:
            del _notes[me]
            if not _notes:
                _recording[0].__exit__(None, None, None)
                _recording.clear()


def _note(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    notes = _notes.get(threading.get_ident())
    if notes is not None and issubclass(category, GlobeCEWarning):
        notes[str(message)] = None
    else:
        _recording[1](message, category, *where, **more)
