"""The one question a model answers: along this direction, at which k does this row first get the favourable outcome?"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from globece.errors import InvalidParameterError, describe
from globece.space import BoolArray, FeatureSpace, FloatArray


@runtime_checkable
class Model(Protocol):
    """A model over the encoded matrix.

    Attributes
    ----------
    space
        The space whose rows it takes.
    exact
        Whether :meth:`first_flip` gives the first k (``True``) or the first that a search found (``False``).
    name
        What to call it in messages and reports.
    """

    @property
    def space(self) -> FeatureSpace: ...

    @property
    def exact(self) -> bool: ...

    @property
    def name(self) -> str: ...

    def favourable(self, Z: FloatArray) -> BoolArray:
        """Whether each row gets the favourable outcome."""
        ...

    def margin(self, Z: FloatArray) -> FloatArray:
        """How far each row is on the favourable side; negative on the other."""
        ...

    def first_flip(
        self, Z: FloatArray, directions: FloatArray, limit: FloatArray, start: FloatArray | None = None
    ) -> FloatArray:
        """Smallest k > 0 at which each row is favourable along each direction.

        Parameters
        ----------
        Z
            Encoded rows, ``(n, width)``.
        directions
            One a row, ``(m, width)``.
        limit
            Largest k that matters, ``(m, n)``.
        start
            Smallest k that counts, ``(m, n)``; any above 0 when absent. A row that is favourable right there stays.

        Returns
        -------
        FloatArray
            ``(m, n)``; ``inf`` where no k up to the limit is favourable. At the k returned
            :func:`globece.rays.positions` really is favourable. NaN where a model that is followed exactly cannot
            say within a bounded effort: neither a k nor "none". Whoever asked must search such a ray or call it
            unknown, as :class:`globece.models.adapt.Compiled` does.
        """
        ...


def check_model(model: Any, space: FeatureSpace) -> Model:
    """Return a model if it answers about rows of this space; otherwise raise, and say how one is made of the user's."""
    asks = all(callable(getattr(model, name, None)) for name in ("favourable", "margin", "first_flip"))
    theirs = getattr(model, "space", None)
    if isinstance(model, type) or not asks or not isinstance(theirs, FeatureSpace):
        raise InvalidParameterError(
            "model must be what globece.as_model(model, space) makes of a model of yours, with the space of the "
            f"explanation; got {describe(model)}"
        )
    if theirs.columns != space.columns:
        raise InvalidParameterError(
            f"model takes rows with the columns {list(theirs.columns)[:20]}; these have {list(space.columns)[:20]}"
        )
    checked: Model = model
    return checked
