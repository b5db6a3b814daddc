"""What an audit rests on: everything that changes its answer, as data and in words."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from globece.costs import CostModel
from globece.errors import wrong
from globece.features import Feature
from globece.models.base import Model
from globece.space import FeatureSpace
from globece.version import __version__

TRAINING = ("all", "some", "none")
COMPUTED = ("numpy", "scipy", "numba", "scikit-learn", "narwhals")


@dataclass(frozen=True, slots=True)
class Basis:
    """What an audit rests on.

    Attributes
    ----------
    favourable
        The favourable outcome.
    guessed
        Whether it was guessed.
    model, method
        Name of the model, and whether its minimum scalars are exact or searched.
    n_rows, affected
        Number of rows, and of those with the unfavourable outcome.
    training
        Whether the rows are those that the model was trained on: all, some or none of them; ``None`` if nobody said.
    by, control, clusters
        What makes up the groups, what they are compared within, and the number of people if rows belong together.
    constraints
        By feature how it is constrained, in words; features that move freely are not named.
    free
        Features that move freely.
    cost, budget
        What changes cost, in words, and the most that recourse may cost.
    folds, candidates
        Folds by which directions and judged inputs are kept apart, and the number of candidate directions.
    seed
        The seed as it was given; ``None`` if it was not a number.
    versions
        Of everything that computed.
    data, model_data
        Fingerprints: of the rows, in whatever order, and of the model's decisions on them.
    """

    favourable: str
    guessed: bool
    model: str
    method: str
    n_rows: int
    affected: int
    training: str | None
    by: str
    control: str | None
    clusters: int | None
    constraints: Mapping[str, str]
    free: tuple[str, ...]
    cost: str
    budget: float
    folds: int
    candidates: int
    seed: int | None
    versions: Mapping[str, str]
    data: str
    model_data: str

    def sentences(self) -> tuple[str, ...]:
        """The same in words, the most important first."""
        held = _constraints(self.constraints)
        people = "" if self.clusters is None else f" of {self.clusters:,} people"
        within = "" if self.control is None else f", compared within levels of {self.control}"
        trained = {
            None: "nobody said whether the model was trained on these rows",
            "all": "the model was trained on these rows",
            "some": "the model was trained on some of these rows",
            "none": "the model was not trained on these rows",
        }[self.training]
        return (
            f"{self.affected:,} affected of {self.n_rows:,} rows{people}, grouped by {self.by}{within}",
            trained,
            f"held fixed: {held}; moves freely: {_few(self.free)}",
            f"{self.cost}; the budget, which no recourse counts as, is {self.budget:g}",
            f"{self.candidates} candidate directions shared by all groups, each person judged by those found without "
            f"them ({self.folds} folds); {self.method} minimum scalars of {self.model}",
            f"seed {'not given' if self.seed is None else self.seed}, data {self.data}, decisions {self.model_data}, "
            + ", ".join(f"{name} {v}" for name, v in self.versions.items()),
        )


def _constraints(how: Mapping[str, str]) -> str:
    """Features by how they are constrained: "race and sex do not change; age only rises"."""
    found = []
    for text in dict.fromkeys(how.values()):
        names = [name for name, own in how.items() if own == text]
        many = {"does not change": "do not change", "is constant": "are constant"}.get(text, text)
        many = many.replace("only rises", "only rise").replace("only falls", "only fall")
        many = many.replace("does not become", "do not become")
        found.append(f"{names[0]} {text}" if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} {many}")
    return "; ".join(found) or "nothing"


def _few(names: tuple[str, ...], most: int = 12) -> str:
    if not names:
        return "nothing"
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def check_training(training: Any) -> str | None:
    """Validate whether the rows are the model's training rows."""
    if training is None or (isinstance(training, str) and training in TRAINING):
        return training
    raise wrong("training_rows", f"one of {list(TRAINING)}, or None if that is unknown", training)


def constraints_of(space: FeatureSpace) -> tuple[dict[str, str], tuple[str, ...]]:
    """How each feature is constrained, in words, and the features that move freely."""
    how = {f.name: _constraint(f) for f in space.features}
    return {name: text for name, text in how.items() if text}, tuple(name for name, text in how.items() if not text)


def _constraint(f: Feature) -> str:
    if f.immutable:
        return "does not change"
    if not f.can_move:
        return "is constant"
    parts = []
    if f.sense:
        parts.append("only rises" if f.sense > 0 else "only falls")
    if f.is_block and not all(f.permitted):
        parts.append(f"does not become {', '.join(_barred(f))}")
    return " and ".join(parts)


def _barred(f: Feature) -> list[str]:
    return [f.label(c) for c, ok in zip(f.categories, f.permitted, strict=True) if not ok]


def cost_in_words(cost: CostModel) -> str:
    """What one unit of cost is.

    >>> import numpy as np
    >>> space = FeatureSpace.from_matrix(np.array([[0.0], [50.0]]), columns=["age"])
    >>> print(cost_in_words(CostModel.bins(space)))
    cost 1 is a tenth of a feature's range or a changed category (added up)
    """
    unit = {
        "bins": "a tenth of a feature's range or a changed category",
        "deciles": "a tenth of the people passed in a feature, or a changed category",
    }.get(cost.kind, f"one step of the feature's {cost.kind} or a changed category")
    weights = "" if (cost.weights == 1).all() else ", times the feature's weight"
    return f"cost 1 is {unit}{weights} ({'added up' if cost.norm == 'l1' else 'as a Euclidean length'})"


def versions_of(model: Model) -> dict[str, str]:
    """Versions of everything that computed: Python, the libraries, and the model's own."""
    found = {"Python": platform.python_version(), "globece": __version__}
    decide = getattr(model.unconditioned, "decide", None)
    own = type(getattr(decide, "model", None)).__module__.partition(".")[0]
    asked = getattr(getattr(decide, "ask", None), "__self__", None)
    libraries = {own, type(asked).__module__.partition(".")[0]} - {"builtins", "__main__", "globece", "sklearn"}
    libraries -= set(sys.stdlib_module_names)
    for name in (*COMPUTED, *sorted(libraries)):
        if known := _version(name):
            found[name] = known
    return found


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
