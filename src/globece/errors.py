"""Errors and validation: each error says what is wrong, where, what was given, and what is allowed.

Everything that globece raises on purpose derives from :class:`GlobeCEError`. Errors about values also derive from
``ValueError``.
"""

from __future__ import annotations

import importlib
import operator
import os
import reprlib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import islice
from numbers import Real
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

MOST_ENTRIES = 1_000_000  # of a list of names or values
MOST = 10**9  # no count of anything is larger, unless its parameter says so
LONGEST_PATH = 4096  # letters
LETTERS = 120  # of a value, in a message
Kind = TypeVar("Kind")


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
    """The model raised, or did not return one outcome for each row."""


class VerificationError(ModelError):
    """A counterfactual was not favourable when the user's model predicted it again."""


class TimeLimitError(GlobeCEError):
    """The time was over before there was a result to return."""


class FileFormatError(GlobeCEError, ValueError):
    """A file does not have the expected format, or a version that this release cannot read."""


class MissingExtraError(GlobeCEError, ImportError):
    """An optional dependency is not installed."""


class GlobeCEWarning(UserWarning):
    """Something that the user should know, but that did not stop the work."""


def require(module: str, *, extra: str, caller: str) -> ModuleType:
    """Import an optional dependency, or name the extra that installs it.

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


# -- describing values ------------------------------------------------------------------------------------------------

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


def describe(value: Any) -> str:
    """A short description of a value: the value itself if it is short, or else its type and size.

    Examples
    --------
    >>> describe("no")
    "'no'"
    >>> describe(np.zeros((1000, 3)))
    'an ndarray of shape (1000, 3)'
    """
    kind = type(value).__name__
    try:
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple) and shape and not (len(shape) == 1 and shape[0] <= 5 and _is_array(value)):
            return f"{_article(kind)} of shape {shape}"
        if isinstance(value, type):
            return f"the class {kind if value is type else value.__name__}"
        text = " ".join((repr(value) if _is_array(value) else _SHORT.repr(value)).split())
    except Exception:  # its repr fails
        return _article(kind)
    return text if len(text) <= LETTERS else f"{_article(kind)}: {text[:LETTERS]}..."


def clipped(text: str) -> str:
    """A name for a message, shortened if it is too long."""
    return text if len(text) <= LETTERS else f"{text[:LETTERS]}..."


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


def _article(kind: str) -> str:
    return f"{'an' if kind[:1].lower() in 'aeiou' or kind.startswith('nd') else 'a'} {kind}"


def wrong(name: str, allowed: str, value: Any) -> InvalidParameterError:
    """The error for a parameter whose value is not allowed: its name, what is allowed and what was given."""
    return InvalidParameterError(f"{name} must be {allowed}; got {describe(value)}")


# -- validation: each function returns the value as it is used, or raises with the parameter's name -------------------


def keep_checked(settings: Any, **values: Any) -> None:
    """Store validated values in a frozen dataclass; plain Python numbers stay as they were given."""
    for name, value in values.items():
        if type(getattr(settings, name)) not in (int, float):
            object.__setattr__(settings, name, value)


def check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``allowed``; otherwise raise with the parameter's name."""
    if not isinstance(value, str) or value not in allowed:
        raise wrong(name, f"one of {list(allowed)}", value)
    return value


def check_flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is a boolean, not merely truthy or falsy."""
    if not isinstance(value, (bool, np.bool_)):
        raise wrong(name, "True or False", value)
    return bool(value)


def check_instance(name: str, value: Any, kind: type[Kind], how: str = "") -> Kind:
    """Return ``value`` if it is a ``kind``; ``how`` says how to get one, for the message."""
    if not isinstance(value, kind):
        raise wrong(name, f"{_article(kind.__name__)}{f' ({how})' if how else ''}", value)
    return value


def check_number(
    name: str,
    value: Any,
    *,
    low: float = 0.0,
    open_low: bool = False,
    high: float = float("inf"),
    infinite: bool = False,
) -> float:
    """Return ``value`` as a float if it is a number within the bounds; otherwise raise with the parameter's name.

    Parameters
    ----------
    name, value
        The parameter, and its value.
    low, open_low, high
        The bounds, and whether the lower one itself is excluded.
    infinite
        Whether infinity is allowed.
    """
    bound = "" if low == -np.inf else f" {'>' if open_low else '>='} {low:g}"
    bound += "" if high == np.inf else f"{' and' if bound else ''} <= {high:g}"
    allowed = f"a number{bound}"
    plain = _plain_number(value)
    if plain is None:
        raise wrong(name, allowed, value)
    try:
        number = float(plain)
    except (TypeError, ValueError, OverflowError) as error:
        raise wrong(name, allowed, value) from error
    if not (number > low if open_low else number >= low) or not number <= high:
        raise wrong(name, allowed, value)
    if np.isinf(number) and not infinite:
        raise wrong(name, f"a finite number{bound}", value)
    return number


def check_limit(name: str, value: Any, *, low: float = 0.0, open_low: bool = True) -> float | None:
    """Return ``value`` as a float if it is a limit: a number above ``low``, infinity or ``None`` for no limit."""
    return None if value is None else check_number(name, value, low=low, open_low=open_low, infinite=True)


def check_count(name: str, value: Any, *, low: int = 1, high: int = MOST) -> int:
    """Return ``value`` as an int if it is a whole number within the bounds; otherwise raise."""
    allowed = f"a whole number >= {low}" + ("" if high >= MOST else f" and <= {high:,}")
    plain = _plain_number(value)
    try:
        number = None if plain is None else operator.index(plain)
    except TypeError:
        number = None
    if number is None:
        raise wrong(name, allowed, value)
    if not low <= number <= high:
        raise wrong(name, f"a whole number >= {low} and <= {high:,}" if number > high else allowed, value)
    return number


def check_seed(name: str, value: Any) -> int:
    """Return ``value`` as an int if it is a seed: a whole number >= 0."""
    return check_count(name, value, low=0, high=2**63 - 1)


def _plain_number(value: Any) -> Any:
    """The value if it is a number, or the scalar of a 0-d array; ``None`` for others, such as booleans."""
    if isinstance(value, (str, bytes, bool, np.bool_, np.datetime64, np.timedelta64)):
        return None
    if isinstance(value, (Real, Decimal)):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iuf":
        return value[()]
    return None


def check_numbers(name: str, value: Any, allowed: str = "a list of numbers", *, low: float = -np.inf) -> Any:
    """Return ``value`` as a vector of doubles if it is a list of finite numbers >= ``low``; otherwise raise."""
    try:
        given = np.asarray(value)
        plain = given.dtype.kind == "O" and all(_plain_number(v) is not None for v in given.flat)
        numeric = plain or given.dtype.kind in "iuf"
        numbers: NDArray[np.float64] | None = given.astype(np.float64) if numeric and given.ndim == 1 else None
    except Exception as error:  # anything may happen when an arbitrary object is converted
        raise wrong(name, allowed, value) from error
    if numbers is None or isinstance(value, np.ma.MaskedArray) or not np.isfinite(numbers).all():
        raise wrong(name, allowed, value)
    if (numbers < low).any():
        raise wrong(name, allowed, value)
    return numbers


def check_matrix(name: str, value: Any, width: int, what: str = "an encoded matrix") -> NDArray[np.float64]:
    """Return ``value`` as a matrix of doubles if it has ``width`` numeric columns; otherwise raise.

    Missing numbers are allowed.
    """
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 2 and value.shape[1] == width:
        return value
    given = _as_array(value)
    if given.ndim == 2 and given.shape[1] == width and given.dtype.kind in "iufb":
        return np.asarray(given, dtype=np.float64)
    raise InvalidDataError(f"{name} must be {what} of {width} columns; got {describe(value)}")


def check_rows(name: str, value: Any) -> NDArray[np.float64]:
    """Return a copy of the directions as a matrix, if they are rows of numbers; otherwise raise."""
    given = _as_array(value)
    if given.ndim in (1, 2) and given.size and given.dtype.kind in "iuf" and not np.ma.isMaskedArray(value):
        return np.array(given, dtype=np.float64, ndmin=2)
    raise InvalidDirectionError(f"{name} must be rows of numbers; got {describe(value)}")


def _as_array(value: Any) -> NDArray[Any]:
    """The value as an array, or an empty one if it cannot be converted."""
    try:
        return np.asarray(value)
    except Exception:  # anything may happen when an arbitrary object is converted
        return np.empty(0, dtype=object)


def check_path(name: str, value: Any) -> str:
    """Return ``value`` as a string if it is a path; otherwise raise with the parameter's name."""
    path = os.fspath(value) if isinstance(value, (str, os.PathLike)) and not isinstance(value, type) else value
    if not isinstance(path, str) or not 0 < len(path) <= LONGEST_PATH or "\0" in path:
        raise wrong(name, "a path", value)
    return path


def check_names(name: str, value: Any, what: str = "feature names") -> tuple[str, ...]:
    """Return ``value`` as a tuple if it is a list of strings, not a single string, a mapping or a frame."""
    allowed = f"a list of {what}"
    found = check_list(name, value, allowed)
    if not all(isinstance(entry, str) for entry in found):
        raise wrong(name, allowed, value)
    return tuple(str(entry) for entry in found)


def check_list(name: str, value: Any, allowed: str) -> list[Any]:
    """Return the entries of an iterable of hashable values; a string does not count as one."""
    if isinstance(value, (str, bytes, Mapping, type)) or hasattr(value, "columns") or not isinstance(value, Iterable):
        raise wrong(name, allowed, value)
    try:
        entries = value.tolist() if isinstance(value, np.ndarray) else value
        found = list(islice(entries, MOST_ENTRIES + 1))
        distinct = {hash(entry) for entry in found}  # fails where one cannot be hashed
    except Exception as error:  # anything may happen when an arbitrary object is iterated over
        raise wrong(name, allowed, value) from error
    if len(distinct) > MOST_ENTRIES or len(found) > MOST_ENTRIES:
        raise wrong(name, allowed, value)
    return found


def check_mapping(name: str, value: Any, what: str) -> dict[str, Any]:
    """Return ``value`` as a dictionary if its keys are strings (``what`` is for the message); ``{}`` for ``None``."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong(name, f"a mapping of {what}", value)
    return dict(value)
