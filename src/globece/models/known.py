"""Recognise models by their exact type, not by the name of their class.

Only known types can be compiled. A user's class may be called Pipeline and do something else, a subclass may override
``predict``, and a method may be replaced on a single object.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

LIBRARIES = ("sklearn", "xgboost", "lightgbm", "catboost", "imblearn", "interpret", "optbinning", "skrub", "globece")
# What a subclass may override and still transform and predict as the library's class does.
HARMLESS = {
    *("fit", "partial_fit", "fit_transform", "fit_predict", "score", "get_params", "set_params"),
    *("get_feature_names_out", "get_metadata_routing", "_sklearn_auto_wrap_output_keys"),
    *("__init__", "__init_subclass__", "__repr__", "__str__", "__doc__", "__module__", "__qualname__"),
    *("__dict__", "__weakref__", "__annotations__", "__annotate_func__", "__annotations_cache__", "__parameters__"),
    *("__orig_bases__", "__firstlineno__", "__static_attributes__", "__abstractmethods__", "_abc_impl"),
    *("__sklearn_tags__", "__sklearn_is_fitted__", "_more_tags", "_estimator_type", "_parameter_constraints"),
    *("__eq__", "__hash__", "__slots__", "__getstate__", "__setstate__", "__reduce__", "__sizeof__"),
}


def kind_of(model: Any) -> str:
    """Name of the library's class that this is an instance of, or behaves as by inheritance; ``""`` for others.

    >>> from sklearn.linear_model import LogisticRegression
    >>> class Mine(LogisticRegression):
    ...     def predict(self, X):
    ...         return X[:, 0] > 0
    >>> kind_of(LogisticRegression()), kind_of(Mine()), kind_of(len)
    ('LogisticRegression', '', '')
    """
    known = library_class(model)
    return "" if known is None or changed(model) else known.__name__


def is_kind(model: Any, library: str, names: Iterable[str]) -> bool:
    """Whether this is an unmodified instance of one of these classes of a library."""
    known = library_class(model)
    return known is not None and known.__module__.split(".")[0] == library and kind_of(model) in names


def library_class(model: Any) -> type | None:
    """The library's class that this is an instance of, directly or by inheritance."""
    for base in type(model).__mro__:
        if base.__module__.split(".")[0] in LIBRARIES:
            home = sys.modules.get(base.__module__)
            return base if getattr(home, base.__name__, None) is base else None
    return None


def changed(model: Any) -> list[str]:
    """Names of the methods that a subclass, or this object, overrides."""
    known = library_class(model)
    found: list[str] = []
    if known is None:
        return found
    for base in type(model).__mro__:
        if base is known:
            break
        found += [name for name in vars(base) if _matters(name) and (name == "__getattr__" or hasattr(known, name))]
    attributes = getattr(model, "__dict__", {})
    return found + [name for name in attributes if callable(getattr(known, name, None)) and _matters(name)]


def _matters(name: str) -> bool:
    requests = name.startswith("__metadata_request__") or (name.startswith("set_") and name.endswith("_request"))
    return name not in HARMLESS and not requests


def described(model: Any) -> str:
    """The model's name, and why it is not known."""
    name, known = type(model).__name__, library_class(model)
    if known is None:
        return f"{name} ({type(model).__module__}) is not a known class"
    overridden = changed(model)
    if overridden:
        return (
            f"{name} overrides {', '.join(sorted(set(overridden))[:3])} and may give other outcomes than the "
            f"{known.__name__} that it is derived from"
        )
    return f"{name} cannot be compiled"
