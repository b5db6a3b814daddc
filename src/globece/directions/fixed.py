"""The user's own directions: as vectors, or as rules such as "own a home and save 100 more"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from globece.directions.protocol import Problem
from globece.errors import InvalidDirectionError, InvalidParameterError, check_number
from globece.space import FeatureSpace, FloatArray

# An entry of 2 switches a category at k > 1/2, as the difference of two one-hot rows does.
SWITCH = 2.0


@dataclass(frozen=True, slots=True)
class FixedDirections:
    """Propose the directions given, and no others.

    Parameters
    ----------
    directions
        One a row, in encoded columns; see :attr:`globece.FeatureSpace.columns`.
    cost
        Nominal cost that each is scaled to; ``None`` leaves their lengths as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from globece import explain
    >>> X = np.array([[1.0, 3.0], [2.0, 9.0], [3.0, 5.0], [8.0, 2.0], [9.0, 7.0]])
    >>> more_income = FixedDirections([[1.0, 0.0]])
    >>> ex = explain(lambda X: (X[:, 0] >= 7).astype(int), X, generator=more_income, rng=0)
    >>> ex.coverage, ex.directions
    (1.0, array([[1.6, 0. ]]))
    """

    directions: Any = field(repr=False)
    cost: float | None = 2.0

    def __post_init__(self) -> None:
        if self.cost is not None:
            check_number("cost", self.cost, open_low=True)
        try:
            given = np.array(self.directions, dtype=np.float64, ndmin=2)
        except (TypeError, ValueError) as error:
            raise InvalidDirectionError(f"directions must be rows of numbers; got {self.directions!r}") from error
        if given.ndim != 2 or not given.size:
            raise InvalidDirectionError(f"directions must be rows of numbers; got an array of shape {given.shape}")
        given.setflags(write=False)
        object.__setattr__(self, "directions", given)

    @classmethod
    def from_rules(
        cls, space: FeatureSpace, rules: Iterable[Mapping[str, Any]] | Mapping[str, Any], *, cost: float | None = 2.0
    ) -> FixedDirections:
        """Make a direction of each set of rules.

        Parameters
        ----------
        space
            The space that the rules speak about.
        rules
            For each direction, by feature: the category to move to, or a number to add; for an ordinal feature the
            number of places to move, or its lowest or highest value. Categories switch half way.
        cost
            As for :class:`FixedDirections`.

        Examples
        --------
        >>> import polars as pl
        >>> X = pl.DataFrame({"savings": [100.0, 300.0], "housing": ["own", "rent"]})
        >>> space = FeatureSpace.from_frame(X)
        >>> FixedDirections.from_rules(space, {"housing": "own", "savings": +100}, cost=None).directions
        array([[100.,   2.,   0.]])
        """
        each = [rules] if isinstance(rules, Mapping) else list(rules)
        if not each or not all(isinstance(r, Mapping) and r for r in each):
            raise InvalidParameterError(f"rules must map features to a category or a number to add; got {rules!r}")
        return cls(space.check_directions([_direction(space, r) for r in each]), cost)

    def propose(self, problem: Problem, n: int, rng: np.random.Generator) -> FloatArray:
        """Return the first ``n`` of the directions given."""
        D = problem.space.check_directions(self.directions)[:n]
        return D if self.cost is None else problem.cost.normalise(D, self.cost)


def _direction(space: FeatureSpace, rules: Mapping[str, Any]) -> FloatArray:
    delta = np.zeros(space.width)
    for name, wish in rules.items():
        f = space[name]
        if f.is_block:
            if wish not in f.categories:
                raise InvalidParameterError(f"rules[{name!r}] must be one of {list(f.categories)}; got {wish!r}")
            place = f.categories.index(wish)
            if not f.permitted[place]:
                allowed = [c for c, ok in zip(f.categories, f.permitted, strict=True) if ok]
                raise InvalidDirectionError(f"rules[{name!r}] must be one of the permitted {allowed}; got {wish!r}")
            delta[f.start + place] = SWITCH
        elif isinstance(wish, str) and wish in (ends := (f.categories or ("",))[:: max(len(f.categories) - 1, 1)]):
            delta[f.start] = (len(f.categories) - 1) * (1 if wish == ends[-1] else -1)
        elif isinstance(wish, str) and f.kind == "ordinal":
            raise InvalidParameterError(
                f"rules[{name!r}] must be a number of places to move, or {ends[0]!r} or {ends[-1]!r}; got {wish!r}"
            )
        else:
            delta[f.start] = check_number(f"rules[{name!r}]", wish, low=-np.inf)
    return delta
