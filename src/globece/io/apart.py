"""Try something dangerous in another process first."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress

# Reads a length of 8 bytes and so many bytes, and works on them. It answers with a length of 4 bytes and so many bytes:
# what went wrong, or nothing. So on, until its input ends.
LOOP = """
import os, sys
answers = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
while True:
    head = sys.stdin.buffer.read(8)
    if len(head) < 8:
        break
    raw = sys.stdin.buffer.read(int.from_bytes(head, "little"))
    wrong = b""
    try:
        work(raw)
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"[:500].encode("utf-8", "replace")
    os.write(answers, len(wrong).to_bytes(4, "little") + wrong)
"""
DIED = "it ends the process that does it"
# Memory that was never written, or no longer belongs to anything, has odd contents there (in glibc): who reads it is
# found out at the first try, and not at the tenth.
ODD_MEMORY = {"MALLOC_PERTURB_": "165"}


class Apart:
    r"""A process that runs a function of bytes, so that a crash is not ours.

    It is started when it is first needed, serves until it dies, and ends with the process that started it.

    Parameters
    ----------
    code
        Python that defines ``work``, a function of bytes, which raises where something is wrong with them.

    Examples
    --------
    >>> apart = Apart("import os\ndef work(raw): os.abort() if raw == b'bad' else int(raw)")
    >>> apart.wrong_with(b"7"), apart.wrong_with(b"bad"), apart.wrong_with(b"8")
    (None, 'it ends the process that does it', None)
    >>> apart.wrong_with(b"x")
    "ValueError: invalid literal for int() with base 10: b'x'"
    """

    def __init__(self, code: str) -> None:
        self._code = code
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def wrong_with(self, raw: bytes) -> str | None:
        """What came up when the process worked on these bytes; ``None`` where nothing did."""
        with self._lock:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):
                process.stdin.write(len(raw).to_bytes(8, "little"))
                process.stdin.write(raw)
                process.stdin.flush()
                head = process.stdout.read(4)
                said = process.stdout.read(int.from_bytes(head, "little"))
                if len(head) == 4:
                    return said.decode("utf-8", "replace") or None
            self._end()
            return DIED

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", self._code + LOOP],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **ODD_MEMORY, "OMP_NUM_THREADS": "1"},
            )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            process.wait()

    def __del__(self) -> None:
        """End the process."""
        self._end()
