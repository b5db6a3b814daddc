"""What the package says that it needs, read from pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.metadata import packages_distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.install.archives import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE = [Requirement(text) for text in PROJECT["dependencies"]]
# What users install; "all" is several of them, "dev" and "docs" are for contributors.
EXTRAS = {
    name: [Requirement(text) for text in texts]
    for name, texts in PROJECT["optional-dependencies"].items()
    if name not in ("all", "dev", "docs")
}
PYTHONS = sorted(
    re.findall(r"Programming Language :: Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"])),
    key=lambda version: int(version.split(".")[1]),
)


def oldest(requirements: list[Requirement]) -> list[str]:
    """The lowest version that all of them allow, as pins."""
    low: dict[str, Version] = {}
    for requirement in requirements:
        (version,) = [Version(s.version) for s in requirement.specifier if s.operator == ">="]
        low[requirement.name] = max(version, low.get(requirement.name, version))
    return [f"{name}=={version}" for name, version in low.items()]


_DISTRIBUTIONS = cache(packages_distributions)


def modules_of(name: str) -> set[str]:
    """The modules that an installed distribution brings, by their first name."""
    wanted = canonicalize_name(name)
    return {
        module
        for module, distributions in _DISTRIBUTIONS().items()
        if wanted in {canonicalize_name(d) for d in distributions}
    }
