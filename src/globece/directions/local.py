"""Directions from local counterfactuals: the way from a row to its own counterfactual, taken by everybody.

"The fact that our translation generation algorithm is completely general allows our framework to subsume any local
method" (appendix, "Generality of our Framework").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.spatial.distance import cdist

from globece.case.affected import Affected
from globece.directions.constraints import as_directions, movable_features
from globece.directions.protocol import check_asked, check_cost
from globece.directions.rows import favourable_rows, in_cost_units, mean_row, settled
from globece.errors import (
    GlobeCEError,
    InvalidParameterError,
    ModelError,
    check_count,
    describe,
    keep_checked,
    wrong,
)
from globece.space import FloatArray

CANDIDATES = 10_000  # favourable rows among which the nearest is looked for


@runtime_checkable
class LocalMethod(Protocol):
    """Finds a counterfactual for each of some rows."""

    def counterfactuals(self, problem: Affected, Z: FloatArray) -> FloatArray:
        """Encoded counterfactuals of encoded rows, one each; a row of NaN where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class FromLocal:
    """Turn local counterfactuals into directions: what changed from the row to its counterfactual.

    Parameters
    ----------
    method
        A :class:`LocalMethod` such as :func:`nearest_favourable`, or any function that takes one row, as a frame of the
        user's own kind, and returns its counterfactual as such a frame, or ``None``.
    rows
        Most affected inputs to ask about; a random choice of them where there are more.
    cost
        Nominal cost of each direction.

    Examples
    --------
    >>> import numpy as np
    >>> from globece import explain
    >>> X = np.array([[1.0, 3.0], [2.0, 9.0], [3.0, 5.0], [8.0, 2.0], [9.0, 7.0]])
    >>> def richer(row):
    ...     return row + np.array([[6.0, 0.0]])
    >>> explain(lambda X: (X[:, 0] >= 7).astype(int), X, generator=FromLocal(richer), rng=0).directions
    array([[1.6, 0. ]])
    """

    method: LocalMethod | Callable[[Any], Any]
    rows: int = 200
    cost: float = 2.0

    def __post_init__(self) -> None:
        keep_checked(self, rows=check_count("rows", self.rows), cost=check_cost(self.cost))
        if isinstance(self.method, type) or not (isinstance(self.method, LocalMethod) or callable(self.method)):
            raise wrong("method", "a function of one row, or have a counterfactuals method", self.method)

    def __repr__(self) -> str:
        """A description that is the same in every process: a function by its name."""
        what = self.method if isinstance(self.method, LocalMethod) else getattr(self.method, "__name__", "function")
        return f"FromLocal({what}, rows={self.rows}, cost={self.cost})"

    def propose(self, problem: Affected, n: int, rng: np.random.Generator) -> FloatArray:
        """Return a direction for each counterfactual that was found, without repeats."""
        n = check_asked(problem, n, rng)
        movable_features(problem.space)
        Z = settled(problem.inputs)
        count = min(self.rows, len(Z))
        Z = Z[np.sort(rng.choice(len(Z), size=count, replace=False))]
        method = self.method if isinstance(self.method, LocalMethod) else _RowByRow(self.method)
        try:
            after = np.asarray(method.counterfactuals(problem, Z.copy()), dtype=np.float64)
        except GlobeCEError:
            raise
        except Exception as error:
            raise ModelError(f"method {describe(method)} raised {type(error).__name__}: {error}") from error
        if after.shape != Z.shape:
            raise InvalidParameterError(
                f"{method!r} returned shape {after.shape}; one row for each is needed: {Z.shape}"
            )
        return as_directions(problem, after - Z, n, self.cost)


@dataclass(frozen=True, slots=True)
class _RowByRow:
    """A function of the user's own rows, asked about one after the other."""

    function: Callable[[Any], Any] = field(repr=False)

    def counterfactuals(self, problem: Affected, Z: FloatArray) -> FloatArray:
        out = np.full(Z.shape, np.nan)
        for i in range(len(Z)):
            try:
                found = self.function(problem.space.decode(Z[i : i + 1]))
            except Exception as error:
                name = getattr(self.function, "__name__", "the local method")
                raise ModelError(f"{name} raised {type(error).__name__} on affected row {i}: {error}") from error
            if found is None:
                continue
            try:
                after = problem.space.encode(found)
            except GlobeCEError as error:
                name = getattr(self.function, "__name__", "the local method")
                raise ModelError(f"{name} returned what is no row like affected row {i}: {error}") from error
            if len(after):
                out[i] = after[0]
        return out


@dataclass(frozen=True, slots=True)
class NearestFavourable:
    """The favourable row that costs least to become, features that cannot move aside."""

    candidates: int = CANDIDATES

    def counterfactuals(self, problem: Affected, Z: FloatArray) -> FloatArray:
        """The nearest favourable row of each."""
        rows = settled(favourable_rows(problem, "nearest_favourable"), self.candidates)
        here, there = in_cost_units(problem, Z), in_cost_units(problem, rows)
        fill = mean_row(there)  # a missing value is taken for an average one
        here, there = np.where(np.isnan(here), fill, here), np.where(np.isnan(there), fill, there)
        metric = "cityblock" if problem.cost.norm == "l1" else "euclidean"
        return np.asarray(rows[cdist(here, there, metric).argmin(axis=1)])


def nearest_favourable(candidates: int = CANDIDATES) -> NearestFavourable:
    """The local method that most people would try first: the nearest row with the favourable outcome.

    Parameters
    ----------
    candidates
        Most favourable rows to look among.

    Examples
    --------
    >>> import numpy as np
    >>> from globece import explain
    >>> X = np.array([[1.0, 3.0], [2.0, 9.0], [3.0, 5.0], [8.0, 2.0], [9.0, 7.0]])
    >>> generator = FromLocal(nearest_favourable())
    >>> explain(lambda X: (X[:, 0] >= 7).astype(int), X, generator=generator, rng=0).n_covered
    3
    """
    return NearestFavourable(check_count("candidates", candidates))
