"""What is shipped: the wheel, the source archive, and what an extra installs."""

from __future__ import annotations

import ast
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from tests.install.archives import ROOT, built
from tests.install.linked import closure, link, run
from tests.install.requirements import CORE, EXTRAS, modules_of

PACKAGE = ROOT / "src/globece"
SMOKE = str(Path(__file__).with_name("smoke.py"))
LIMIT = 4 * 2**20  # bytes of a wheel
ABSENT = {"gpu-cuda12", "gpu-cuda13", "spark"}  # not part of the test environment; make test-install installs them


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return built(tmp_path_factory.mktemp("archives"))


def test_the_wheel_has_the_package_and_nothing_else(archives: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(archives[0]) as wheel:
        shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    tracked = {
        str(Path("globece") / file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert shipped == tracked
    for needed in ("py.typed", "page/bundle/page.js", "page/bundle/page.css", "models/cuda/prelude.h",
                   "models/trees/rays.cu", "models/linear/rays.cu", "io/explanation.schema.json",
                   "datasets/data/german.data.gz"):  # fmt: skip
        assert f"globece/{needed}" in shipped
    assert archives[0].stat().st_size < LIMIT


def test_the_source_archive_builds_the_wheel_and_has_no_junk(archives: tuple[Path, Path]) -> None:
    """The wheel was built from it. Tests, results and pictures stay out; the page's source comes along."""
    with tarfile.open(archives[1]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    tops = {name.split("/")[0] for name in names}
    assert tops == {
        *("src", "frontend", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"),
        *("constraints.txt", "PKG-INFO", ".gitignore"),
    }
    assert "frontend/package-lock.json" in names
    assert not any("node_modules" in name or name.endswith((".nbi", ".nbc", ".pyc")) for name in names)


def test_metadata_names_every_extra_and_the_command(archives: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(archives[0]) as wheel:
        folder = next(name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name)
        said = metadata.PathDistribution(zipfile.Path(wheel, f"{folder}/")).metadata
        script = wheel.read(f"{folder}/entry_points.txt").decode()
    assert {*EXTRAS, "all", "dev"} <= set(said.get_all("Provides-Extra") or ())
    assert said["Requires-Python"] == ">=3.11"
    assert "globece = globece.cli:main" in script


@pytest.mark.parametrize("extra", [None, *(e for e in EXTRAS if e not in ABSENT)], ids=str)
def test_an_environment_with_one_extra_does_what_it_is_for(
    archives: tuple[Path, Path], extra: str | None, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    needed = closure([*CORE, *(EXTRAS[extra] if extra else ())])
    link(folder, archives[0], needed)
    done = run(folder, SMOKE, *([extra] if extra else ["core", "missing"]))
    assert done.returncode == 0, done.stderr


def test_importing_the_core_loads_no_extra_and_few_modules() -> None:
    """Counted: nothing that an extra brings, and hardly more than what the core's own dependencies load."""
    core = "numpy, scipy.stats, scipy.special, sklearn.base, numba, narwhals, threadpoolctl"
    alone, whole = (_loaded(f"import {names}") for names in (core, "globece"))
    brought = {m for needed in EXTRAS.values() for r in needed for m in modules_of(r.name)}
    brought -= {m for name in closure(CORE) for m in modules_of(name)}
    assert {"pandas", "torch", "matplotlib", "dask", "pyarrow"} <= brought
    assert {name.split(".")[0] for name in whole} & brought == set()
    own = {name for name in whole if name.split(".")[0] == "globece"}
    assert len(whole - alone - own) < MORE_MODULES


MORE_MODULES = 20


def _loaded(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("extra", ["core", *EXTRAS])
def test_each_requirement_is_imported(extra: str) -> None:
    """An extra installs nothing that no file of the package imports."""
    idle = []
    for requirement in CORE if extra == "core" else EXTRAS[extra]:
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        modules = modules_of(requirement.name) or {MODULES.get(requirement.name, requirement.name)}
        if not modules & _imported():
            idle.append(str(requirement))
    assert idle == []


MODULES = {"cupy-cuda12x": "cupy", "cupy-cuda13x": "cupy", "mlflow-skinny": "mlflow"}  # where they may not be installed


@cache
def _imported() -> set[str]:
    """The first names of all modules that the package imports, or asks for with ``require``."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add((node.module or "").split(".")[0])
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("require", "import_module"):
                found |= {str(name.value).split(".")[0] for name in node.args[:1] if isinstance(name, ast.Constant)}
    return found
