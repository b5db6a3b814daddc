"""Try something dangerous in another process first."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress

# Reads a length of 8 bytes and so many bytes, works on them, and answers with one byte; until its input ends.
LOOP = """
import os, sys
answers = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
while True:
    head = sys.stdin.buffer.read(8)
    if len(head) < 8:
        break
    raw = sys.stdin.buffer.read(int.from_bytes(head, "little"))
    try:
        work(raw)
    except Exception:
        pass
    os.write(answers, b".")
"""


class Apart:
    r"""A process that runs a function of bytes, so that a crash is not ours.

    It is started when it is first needed, serves until it dies, and ends with the process that started it.

    Parameters
    ----------
    code
        Python that defines ``work``, a function of bytes. What it raises does not matter.

    Examples
    --------
    >>> apart = Apart("import os\ndef work(raw): os.abort() if raw == b'bad' else None")
    >>> apart.survives(b"good"), apart.survives(b"bad"), apart.survives(b"good")
    (True, False, True)
    """

    def __init__(self, code: str) -> None:
        self._code = code
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def survives(self, raw: bytes) -> bool:
        """Whether the process is still there after it worked on these bytes."""
        with self._lock:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):
                process.stdin.write(len(raw).to_bytes(8, "little"))
                process.stdin.write(raw)
                process.stdin.flush()
                if process.stdout.read(1) == b".":
                    return True
            self._end()
            return False

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", self._code + LOOP],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
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
