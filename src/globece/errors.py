"""Errors: each says what went wrong, where, what came, and what is allowed.

Everything that globece raises on purpose derives from :class:`GlobeCEError`, so a caller can catch the lot. Errors
about a value also derive from ``ValueError`` and errors about a type from ``TypeError``, as Python's own would.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class GlobeCEError(Exception):
    """Base of every error that globece raises on purpose."""


class InvalidParameterError(GlobeCEError, ValueError):
    """A parameter has a value that is not allowed."""


class InvalidDataError(GlobeCEError, ValueError):
    """The frame or matrix cannot be explained as it is."""


class UnknownFeatureError(InvalidParameterError):
    """A parameter names a feature that the frame does not have."""


class UnknownCategoryError(InvalidDataError):
    """A row holds a category that the feature space has not seen."""


class InvalidDirectionError(InvalidParameterError):
    """A direction has the wrong length, is not finite, or breaks a constraint."""


class ModelError(GlobeCEError):
    """The model raised, or returned something that is not an outcome for each row."""


class VerificationError(ModelError):
    """A counterfactual did not flip the user's own model when it was predicted again."""


class FileFormatError(GlobeCEError, ValueError):
    """A file is not what it claims to be, or is of a version that this release cannot read."""


class MissingExtraError(GlobeCEError, ImportError):
    """An optional dependency is not installed."""


class GlobeCEWarning(UserWarning):
    """Something the user should know, and which did not stop the work."""


def require(module: str, *, extra: str, caller: str) -> ModuleType:
    """Import an optional dependency, or say which extra brings it.

    Parameters
    ----------
    module
        Dotted name of the module to import.
    extra
        The extra of globece that installs it.
    caller
        What needs it, for the message.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{caller} needs {module.split('.')[0]}, which is not installed; "
            f"install it with: pip install 'globece[{extra}]'"
        ) from error


def check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``allowed``; otherwise raise with the parameter's name."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidParameterError(f"{name} must be one of {list(allowed)}; got {value!r}")
    return value


def check_number(
    name: str, value: Any, *, low: float = 0.0, open_low: bool = False, high: float = float("inf")
) -> float:
    """Return ``value`` as a float if it is a number within the bounds; otherwise raise with the parameter's name."""
    bound = f"{'>' if open_low else '>='} {low:g}" + ("" if high == float("inf") else f" and <= {high:g}")
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise InvalidParameterError(f"{name} must be a number {bound}; got {value!r}")
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(f"{name} must be a number {bound}; got {value!r}") from error
    if not (number > low if open_low else number >= low) or not number <= high:
        raise InvalidParameterError(f"{name} must be a number {bound}; got {value!r}")
    return number


def check_count(name: str, value: Any, *, low: int = 1) -> int:
    """Return ``value`` as an int if it is a whole number of at least ``low``; otherwise raise."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidParameterError(f"{name} must be a whole number >= {low}; got {value!r}")
    number = int(value)
    if number < low:
        raise InvalidParameterError(f"{name} must be a whole number >= {low}; got {value!r}")
    return number
