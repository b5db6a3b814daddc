"""Where results lie, and how they get there: whole or not at all, each with what it depends on."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from experiments.cells import Cell, Data, Run
from experiments.models import source
from globece.io.files import write_bytes

HERE = Path(__file__).parent
DIGITS = 7  # of a stored number: enough for any table or figure, and files stay small
PACKAGES = ("globece", "numpy", "scipy", "scikit-learn", "numba", "xgboost-cpu", "xgboost", "lightgbm", "torch")


@dataclass(frozen=True)
class Places:
    """Where a run reads and writes."""

    results: Path
    pages: Path

    @property
    def figures(self) -> Path:
        return self.pages / "figures" / "paper"


def places(run: Run, out: Path | None) -> Places:
    """The committed places, or others for a run that is not the real one."""
    if out is None and not run.quick:
        return Places(HERE / "results", HERE.parent / "docs")
    folder = out or HERE / "cache" / "quick"
    return Places(folder / "results", folder)


def fingerprint(run: Run, cell: Cell) -> Data:
    """What a stored cell depends on: computed with the same, it is not computed again.

    The module that computes the cell may have a `VERSION`, raised when its data would come out differently, and
    `DEPENDS`: which settings of the run matter to it beside `quick`.
    """
    function = getattr(cell.compute, "func", cell.compute)
    module = getattr(function, "__globals__", {})
    settings: dict[str, Callable[[], Any]] = {"models": lambda: _source(run), "cap": lambda: run.cap}
    depends = module.get("DEPENDS", ("models",))
    return {"version": module.get("VERSION", 1), "quick": run.quick, **{name: settings[name]() for name in depends}}


@cache
def _source(run: Run) -> str:
    return source(run)


def load(where: Places, name: str) -> Data | None:
    """What is stored under a cell's name, or none."""
    try:
        stored: Data = json.loads((where.results / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return stored


def save(where: Places, name: str, data: Data, mark: Data, seconds: float) -> None:
    """Store a cell's data with where it comes from."""
    stored = {
        "cell": name,
        "fingerprint": mark,
        "seconds": round(seconds, 2),
        "machine": machine(),
        "versions": versions(),
        "data": plain(data),
    }
    text = json.dumps(stored, indent=1, allow_nan=False)
    write(where.results / f"{name}.json", (text + "\n").encode())


def plain(value: Any) -> Any:
    """Data as JSON holds it; a number that is not finite is an error, since nobody could say what it means."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "item") and not hasattr(value, "__len__"):  # a number of NumPy's
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"a cell's data must be finite numbers, text, lists and mappings; got {value!r}")
        return float(f"{value:.{DIGITS}g}")
    if value is None or isinstance(value, (str, int)):
        return value
    raise TypeError(f"a cell's data must be numbers, text, lists and mappings; got {type(value).__name__}")


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, in a folder that may be new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(str(path), content)


def machine() -> str:
    """On what it was computed, in words."""
    return f"one core of {os.cpu_count()}, {platform.machine()}"


def versions() -> dict[str, str]:
    """With what it was computed."""
    found = {"Python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
