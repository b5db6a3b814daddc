"""The user's own directions: as vectors, or as rules such as "own a home and save 100 more"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from globece.case.affected import Affected
from globece.directions.protocol import check_asked, check_cost
from globece.errors import (
    InvalidDirectionError,
    InvalidParameterError,
    check_instance,
    check_number,
    check_rows,
    describe,
    keep_checked,
    wrong,
)
from globece.space import FeatureSpace, FloatArray

# An entry of 2 switches a category at k > 1/2, as the difference of two one-hot rows does.
SWITCH = 2.0
LARGEST_ENTRY = 1e150  # its square is a number, too


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
        given = check_rows("directions", self.directions)
        if not np.isfinite(given).all():
            raise InvalidDirectionError("directions must be finite numbers; some are not")
        given.setflags(write=False)
        keep_checked(self, cost=None if self.cost is None else check_cost(self.cost), directions=given)

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
        check_instance("space", space, FeatureSpace, "see FeatureSpace.from_frame")
        each = [rules] if isinstance(rules, Mapping) else rules
        if not isinstance(each, (list, tuple)) or not each or not all(isinstance(r, Mapping) and r for r in each):
            raise InvalidParameterError(
                f"rules must map features to a category or a number to add, or list such maps; got {describe(rules)}"
            )
        return cls(space.check_directions([direction_of(space, r) for r in each]), cost)

    def propose(self, problem: Affected, n: int, rng: np.random.Generator) -> FloatArray:
        """Return the first ``n`` of the directions given."""
        n = check_asked(problem, n, rng)
        D = problem.space.check_directions(self.directions)[:n]
        return D if self.cost is None else problem.cost.normalise(D, self.cost)


def direction_of(space: FeatureSpace, rules: Mapping[str, Any], called: str = "rules") -> FloatArray:
    """The direction of a set of rules; ``called`` is the parameter that they came in."""
    delta = np.zeros(space.width)
    for name, wish in rules.items():
        space._check_known(called, [name])
        f = space[name]
        if f.is_block:
            place = f.index(wish)
            if place is None:
                raise wrong(f"{called}[{name!r}]", f"one of {list(f.categories)}", wish)
            if not f.permitted[place]:
                allowed = [c for c, ok in zip(f.categories, f.permitted, strict=True) if ok]
                raise InvalidDirectionError(
                    f"{called}[{name!r}] must be one of the permitted {allowed}; got {describe(wish)}"
                )
            delta[f.start + place] = SWITCH
        elif isinstance(wish, str) and wish in (ends := (f.categories or ("",))[:: max(len(f.categories) - 1, 1)]):
            delta[f.start] = (len(f.categories) - 1) * (1 if wish == ends[-1] else -1)
        elif isinstance(wish, str) and f.kind == "ordinal":
            raise wrong(f"{called}[{name!r}]", f"a number of places to move, or {ends[0]!r} or {ends[-1]!r}", wish)
        else:
            delta[f.start] = check_number(f"{called}[{name!r}]", wish, low=-LARGEST_ENTRY, high=LARGEST_ENTRY)
    return delta
