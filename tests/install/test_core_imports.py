"""The core imports without any extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

EXTRAS = (
    "anywidget",
    "click",
    "dask",
    "distributed",
    "lightgbm",
    "matplotlib",
    "mlxtend",
    "onnxruntime",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "skops",
    "starlette",
    "traitlets",
    "torch",
    "uvicorn",
    "xgboost",
)


@pytest.mark.parametrize("module", ["globece", "globece.datasets"])
def test_imports_with_every_extra_blocked(module: str) -> None:
    # None in sys.modules makes Python's own import raise ImportError, as for a package that is not there.
    code = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS})); import {module}"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_import_loads_no_extra() -> None:
    code = f"import sys, globece; print(*sorted(set({EXTRAS}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
