"""The install matrix, in clean environments: ``python -m tests.install [NAME ...]``, or ``make test-install``.

The wheel is built once. With the oldest Python: the core alone, each extra alone, and the oldest dependencies that are
supported. With every Python at hand: everything, in the newest versions. Each environment passes ``pip check`` and what
its extras are for (``smoke.py``); with the oldest and the newest dependencies a part of the tests runs as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.install.archives import ROOT, built
from tests.install.requirements import CORE, EXTRAS, PYTHONS, oldest

SMOKE = Path(__file__).with_name("smoke.py")
WHOLE = ["frames", "plot", "trees", "catboost", "onnx", "evolution", "itemsets", "web", "notebook", "distributed"]
TESTS = [
    *("tests/unit/test_space.py", "tests/unit/test_costs.py", "tests/unit/test_frames.py"),
    *("tests/unit/test_explain.py", "tests/unit/test_results.py", "tests/unit/test_compile_checks.py"),
    "tests/unit/test_verification.py",
]
# These use what only newer releases of scikit-learn and XGBoost have.
NEWER = ["tests/unit/test_trees.py", "tests/contract/test_models.py"]
# Old releases among newer ones of their own dependencies use what has been deprecated since.
OLD = ["-W", "ignore::DeprecationWarning"]
FOR_TESTS = ["pytest", "hypothesis", "jsonschema"]


class Failed(Exception):
    """A step of a case went wrong; its output."""


@dataclass(frozen=True, slots=True)
class Case:
    """One environment: a Python, some extras, what they are pinned to, and tests to run."""

    name: str
    python: str
    extras: tuple[str, ...]
    pins: tuple[str, ...] = ()  # and other packages
    tests: tuple[str, ...] = ()

    def run(self, wheel: Path) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self._step(python_of(self.python), "-m", "venv", folder)
            python = f"{folder}/bin/python"
            wanted = f"{wheel}[{','.join(self.extras)}]" if self.extras else str(wheel)
            more = FOR_TESTS if self.tests else []
            self._step(python, "-m", "pip", "install", "--quiet", "--no-cache-dir", wanted, *self.pins, *more)
            self._step(python, "-m", "pip", "check")
            self._step(python, str(SMOKE), *(self.extras or ("core", "missing")))
            if self.tests:
                self._step(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *self.tests)

    def _step(self, *command: str) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
        done = subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")


def python_of(version: str) -> str:
    """The interpreter of that version, or an empty text: on PATH, or among pyenv's."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(f"python{version}"), *map(str, root.glob(f"versions/{version}.*/bin/python"))]
    for program in found:
        if (
            program
            and subprocess.run([program, "-c", "import ensurepip"], capture_output=True, check=False).returncode == 0
        ):
            return program
    return ""


def cases() -> list[Case]:
    """All of the matrix, for the Pythons that the package names."""
    first = PYTHONS[0]
    every = [requirement for name in WHOLE for requirement in EXTRAS[name]]
    found = [Case("core", first, ())]
    found += [Case(extra, first, (extra,)) for extra in EXTRAS]
    low = oldest([r for r in (*CORE, *every) if r.marker is None or r.marker.evaluate()])
    found.append(Case("oldest", first, tuple(WHOLE), tuple(low), (*TESTS, *OLD)))
    # Packages that the test environment cannot have, as their dependencies contradict others there.
    scorecards = ("tests/contract/test_scorecards.py", "-W", "ignore")
    found.append(Case("scorecards", first, ("frames",), ("optbinning",), scorecards))
    found += [Case(f"newest-{version}", version, tuple(WHOLE), (), (*TESTS, *NEWER)) for version in PYTHONS]
    return found


def main(names: list[str]) -> None:
    chosen = [case for case in cases() if not names or case.name in names]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        wheel, _ = built(Path(folder))
        for case in chosen:
            begin = time.monotonic()
            if not python_of(case.python):
                print(f"{case.name:16} Python {case.python:5} not tried: that Python is not here", flush=True)
                continue
            try:
                case.run(wheel)
            except Failed as error:
                failed += 1
                print(f"{case.name:16} Python {case.python:5} FAILED\n{error}", flush=True)
            else:
                took = time.monotonic() - begin
                print(f"{case.name:16} Python {case.python:5} ok ({took:.0f} s)", flush=True)
    sys.exit(f"{failed} of {len(chosen)} failed" if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
