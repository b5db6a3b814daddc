"""An environment with some of the installed distributions and no others, made of links in a second.

It stands for a clean environment where installing one would take minutes; ``make test-install`` installs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

KERNELS = "ignore::RuntimeWarning"  # overflows of kernels that run as plain Python


def closure(requirements: Iterable[Requirement]) -> set[str]:
    """Names of the distributions that these bring, with all that those need."""
    found: set[str] = set()
    todo = [(r, extra) for r in requirements for extra in ("", *r.extras)]
    seen = set()
    while todo:
        requirement, extra = todo.pop()
        name = canonicalize_name(requirement.name)
        if (name, extra) in seen or not _applies(requirement, ""):
            continue
        seen.add((name, extra))
        found.add(name)
        for text in metadata.requires(name) or ():
            needed = Requirement(text)
            if _applies(needed, extra):
                todo += [(Requirement(needed.name), e) for e in ("", *needed.extras)]
    return found


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def link(folder: Path, wheel: Path, names: Iterable[str]) -> None:
    """Unpack the wheel, and link what these distributions installed."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    _link(folder, names)


def link_package(folder: Path, package: Path, names: Iterable[str]) -> None:
    """Link the package as it lies in the working tree, and what these distributions installed."""
    folder.mkdir()
    (folder / package.name).symlink_to(package)
    _link(folder, names)


def _link(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        distribution = metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files or () if ".." not in file.parts}
        for top in tops - {"__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(str(distribution.locate_file(top))))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with that folder instead of any site-packages."""
    begin = f"import sys; sys.path.insert(0, {str(folder)!r}); "
    if arguments[0] == "-c":
        command = ["-c", begin + arguments[1]]
    else:
        command = ["-c", f"{begin}sys.argv = {list(arguments)!r}; import runpy; "
                   f"runpy.run_path({arguments[0]!r}, run_name='__main__')"]  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | {
        "NUMBA_DISABLE_JIT": "1"  # a few rows need no kernels, and compiling them anew would take a minute
    }
    return subprocess.run(
        [sys.executable, "-I", "-S", "-W", "error", "-W", KERNELS, *command],
        cwd=folder.parent, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
