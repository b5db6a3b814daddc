"""Extensions by other packages: ``tests/extension`` is one, installed and tried in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import globece
from globece.errors import InvalidParameterError
from globece.extensions import KINDS, extension, extensions

EXTENSION = Path(__file__).parents[1] / "extension"


def test_an_installed_extension_fulfils_the_contracts_and_is_used(tmp_path: Path) -> None:
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", tmp_path, EXTENSION]
    done = _python([str(word) for word in install])
    assert done.returncode == 0, done.stderr
    package = str(Path(globece.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), package])}
    checks = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(EXTENSION / "check_points.py")]
    done = _python(checks, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
    assert "failed" not in done.stdout


def _python(words: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, **more)


def test_what_is_not_installed_is_named() -> None:
    for kind in KINDS:
        assert extensions(kind) == ()
        with pytest.raises(InvalidParameterError, match=f"extension 'x' of the kind {kind}; installed: none"):
            extension(kind, "x")
    with pytest.raises(InvalidParameterError, match="kind must be one of"):
        extensions("plots")
