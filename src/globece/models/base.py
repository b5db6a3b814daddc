"""The one question a model answers: along this direction, at which k does this row first get the favourable outcome?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from globece.errors import InvalidParameterError, describe
from globece.models.clearance import DOUBLE
from globece.space import BoolArray, FeatureSpace, FloatArray

if TYPE_CHECKING:
    from globece.models.decision import Decision, Tally
    from globece.models.linear.half_spaces import LinearModel
    from globece.models.trees.ensemble import TreeEnsemble


class Allowance(NamedTuple):
    """Rays that a search may follow for each affected input, and for all of them at least and at most."""

    per_input: float
    least: int
    most: int


class Model(ABC):
    """A model over the encoded matrix: the one question, and what else callers need to know.

    A kind of model answers :meth:`favourable`, :meth:`margin` and :meth:`first_flip`, and overrides of the rest what
    it knows better.

    Attributes
    ----------
    space
        The space whose rows it takes.
    exact
        Whether :meth:`first_flip` gives the first k (``True``) or the first that a search found (``False``).
    name
        What to call it in messages and reports.
    allowance
        Rays that a search may follow, by what one costs.
    unit
        Rounding unit of its arithmetic.
    is_compiled
        Whether it stands for a model of the user's that can be asked as well.
    conditions
        What its counterfactuals must survive in addition to the model's own decision, in words.
    """

    if TYPE_CHECKING:

        @property
        def space(self) -> FeatureSpace: ...
        @property
        def exact(self) -> bool: ...
        @property
        def name(self) -> str: ...
        @property
        def decide(self) -> Decision: ...
        @property
        def allowance(self) -> Allowance: ...
        @property
        def unit(self) -> float: ...
        @property
        def is_compiled(self) -> bool: ...
        @property
        def conditions(self) -> str: ...

    else:
        # Chosen so that a search takes a small part of the paper's 2,000 predictions an input (docs/search.md).
        allowance = Allowance(10.0, 6_000, 1_000_000)
        unit = DOUBLE
        is_compiled = False
        conditions = ""

    @abstractmethod
    def favourable(self, Z: FloatArray) -> BoolArray:
        """Whether each row gets the favourable outcome."""

    @abstractmethod
    def margin(self, Z: FloatArray) -> FloatArray:
        """How far each row is on the favourable side; negative on the other."""

    @abstractmethod
    def first_flip(
        self, Z: FloatArray, directions: FloatArray, limit: FloatArray, start: FloatArray | None = None
    ) -> FloatArray:
        """Smallest k > 0 at which each row is favourable along each direction.

        Parameters
        ----------
        Z
            Encoded rows, ``(n, width)``.
        directions
            One per row, ``(m, width)``.
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
            unknown, as :class:`globece.models.compiling.adapt.Compiled` does.
        """

    @property
    def rounding_unit(self) -> float:
        """Relative rounding error that its counterfactuals are kept clear of."""
        return max(DOUBLE, self.unit, float(self.space.rounding.max(initial=0.0)))

    @property
    def own(self) -> Model:
        """The user's model itself, which says who is affected."""
        return self

    @property
    def followed(self) -> Model:
        """What is followed along rays."""
        return self

    @property
    def requirements(self) -> tuple[Model, ...]:
        """Models that must all be favourable: itself, unless it stands for several."""
        return (self,)

    @property
    def has_noise(self) -> bool:
        """Whether a counterfactual must survive errors on its inputs."""
        return False

    @property
    def half_spaces(self) -> LinearModel | None:
        """The model as half-spaces, if it is linear: closed forms and a bound are known then."""
        return None

    @property
    def tree_ensemble(self) -> TreeEnsemble | None:
        """The model as trees, if it is made of them: a bound is known then."""
        return None

    @property
    def tallies(self) -> list[Tally]:
        """How often the user's models were asked; each model once."""
        return []

    def confirms(self, Z: FloatArray) -> BoolArray:
        """Whether each row is favourable, however it is asked about."""
        return self.favourable(Z)

    def rough(self, points: int) -> Model:
        """The same model asked with less care, for candidates that race: so many points where a ray is searched."""
        return self

    def thinned(self, points: int) -> Model:
        """The same model, with fewer points along a ray where it must be searched at all."""
        return self

    def uncompiled(self) -> Model:
        """The same model without what was compiled of it."""
        return self


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
