"""Runs the code blocks of a page as its reader would, in one folder and one Python session."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from globece.errors import GlobeCEWarning
from tests.documents.blocks import ROOT, Block
from tests.documents.worlds import WORLDS

LIMIT = 300  # seconds for one block


def printed(page: str, found: list[Block], folder: Path) -> Iterator[tuple[Block, str]]:
    """Run the blocks one after the other, and yield each that runs with what it printed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(folder):
        WORLDS.get(page, lambda names: None)(names)
        for block in found:
            if block.instead:
                yield block, _shell(block.instead, block)
            elif block.runs and block.language == "python":
                yield block, _python(block, names)
            elif block.runs:
                yield block, _shell(block.code, block)


def _python(block: Block, names: dict[str, Any]) -> str:
    heard = io.StringIO()
    code = compile("\n" * block.line + block.code, str(ROOT / block.page), "exec")
    with contextlib.redirect_stdout(heard), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other libraries' warnings are theirs
        warnings.simplefilter("error", GlobeCEWarning)
        exec(code, names)
    return heard.getvalue()


def _shell(code: str, block: Block) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        env={**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "110"},
        capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    assert done.returncode == block.exit_code, f"{block}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def shown(said: str) -> str:
    """What a page shows of it: without blanks at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in said.strip("\n").splitlines())
