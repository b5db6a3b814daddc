"""Extensions by other packages, found by entry points: generators, models, searches and costs.

A package names what it has in its ``pyproject.toml``::

    [project.entry-points."globece.models"]
    points = "globece_points:compile_points"

and whoever installed it asks for it by name, or, for models, has it asked about each model that globece does not know.
``tests/extension`` is such a package.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from globece.errors import GlobeCEError, InvalidParameterError, check_choice

__all__ = ["ExtensionError", "extension", "extensions"]

KINDS = {
    "generators": "a class or function that gives a DirectionGenerator",
    "models": "a function (estimator, space, *, favourable, threshold) that gives a Model, or None",
    "searches": "a class or function that gives a Search",
    "costs": "a function (space, X) that gives a CostModel",
}


class ExtensionError(GlobeCEError):
    """An extension that is installed cannot be loaded."""


def extensions(kind: str) -> tuple[str, ...]:
    """Names of the extensions of a kind that are installed.

    Parameters
    ----------
    kind
        ``"generators"``, ``"models"``, ``"searches"`` or ``"costs"``.

    Examples
    --------
    >>> isinstance(extensions("generators"), tuple)
    True
    """
    return tuple(sorted(found.name for found in _found(kind)))


def extension(kind: str, name: str) -> Any:
    """Load an extension by its name.

    Parameters
    ----------
    kind
        As for :func:`extensions`.
    name
        One of their names.

    Examples
    --------
    >>> extension("costs", "guesses")
    Traceback (most recent call last):
    ...
    globece.errors.InvalidParameterError: no package has an extension 'guesses' of the kind costs; installed: none
    """
    for found in _found(kind):
        if found.name == name:
            try:
                return found.load()
            except Exception as error:
                package = found.dist.name if found.dist else found.value
                raise ExtensionError(f"the extension {name!r} of {package} cannot be loaded: {error}") from error
    installed = ", ".join(extensions(kind)) or "none"
    raise InvalidParameterError(f"no package has an extension {name!r} of the kind {kind}; installed: {installed}")


def _found(kind: str) -> list[EntryPoint]:
    check_choice("kind", kind, tuple(KINDS))
    return list(entry_points(group=f"globece.{kind}"))
