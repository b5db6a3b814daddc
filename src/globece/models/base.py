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
    """Number of rays that a search may follow: per affected input, and in total at least and at most.

    It spends them in so many ``rounds``.
    """

    per_input: float
    least: int
    most: int
    rounds: int = 2

    def usual(self, n_inputs: int) -> float:
        """Rays for so many affected inputs.

        >>> Allowance(4.0, 7_000, 12_000).usual(2000)
        8000.0
        """
        return float(min(max(self.per_input * n_inputs, self.least), self.most))


class Model(ABC):
    """A model over the encoded matrix.

    Subclasses implement :meth:`favourable`, :meth:`margin` and :meth:`first_flip`, and override the other members
    where they know more.

    Attributes
    ----------
    space
        The space whose rows it takes.
    exact
        Whether :meth:`first_flip` gives the first k (``True``) or the first that a search found (``False``).
    name
        What to call it in messages and reports.
    allowance
        Number of rays that a search may follow; fewer where a ray is expensive.
    unit
        Unit roundoff of its arithmetic.
    is_compiled
        Whether it was compiled from a model of the user's, which can be called as well.
    conditions
        What its counterfactuals must survive in addition to the model's decision, in words.
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
        # Chosen so that a search takes a small part of the paper's 2,000 predictions per input (docs/search.md).
        allowance = Allowance(10.0, 6_000, 1_000_000)
        unit = DOUBLE
        is_compiled = False
        conditions = ""

    @abstractmethod
    def favourable(self, Z: FloatArray) -> BoolArray:
        """Whether each row gets the favourable outcome."""

    @abstractmethod
    def margin(self, Z: FloatArray) -> FloatArray:
        """How far each row is on the favourable side; negative on the unfavourable side."""

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
            ``(m, n)``; ``inf`` where no k up to the limit is favourable. At the k returned,
            :func:`globece.rays.positions` is favourable. NaN where an exact model cannot decide with bounded effort;
            the caller must then search the ray, as :class:`globece.models.compiling.adapt.Compiled` does, or report
            it as unknown.
        """

    @property
    def rounding_unit(self) -> float:
        """Relative rounding error that its counterfactuals must tolerate."""
        return max(DOUBLE, self.unit, float(self.space.rounding.max(initial=0.0)))

    @property
    def unconditioned(self) -> Model:
        """The model without conditions in addition to its decision; it determines who is affected."""
        return self

    @property
    def followed(self) -> Model:
        """The model that is followed along rays."""
        return self

    @property
    def requirements(self) -> tuple[Model, ...]:
        """Models that must all be favourable: itself, unless it combines several."""
        return (self,)

    @property
    def has_noise(self) -> bool:
        """Whether a counterfactual must survive errors on its inputs."""
        return False

    @property
    def half_spaces(self) -> LinearModel | None:
        """The model as half-spaces if it is linear, which gives closed forms and a bound."""
        return None

    @property
    def tree_ensemble(self) -> TreeEnsemble | None:
        """The model as trees if it consists of them, which gives a bound."""
        return None

    @property
    def tallies(self) -> list[Tally]:
        """Call counts of the user's models, one per model."""
        return []

    def confirms(self, Z: FloatArray) -> BoolArray:
        """Whether each row is favourable in every precision in which it can be passed to the model."""
        return self.favourable(Z)

    @property
    def may_stand_in(self) -> bool:
        """Whether trees fitted to its answers may stand in for it while a search looks around."""
        return False

    def scores(self, Z: FloatArray) -> FloatArray | None:
        """Numbers that rise as rows come nearer to the favourable outcome; ``None`` where only decisions are known."""
        return self.margin(Z)

    @property
    def cut(self) -> float | None:
        """The lowest of its :meth:`scores` that is favourable, where what they are says so; ``None`` otherwise."""
        return None

    def located(self, Z: FloatArray) -> Model:
        """The same model, which may keep what it finds out about these rows; they must not change.

        It is for asking about them, or about consecutive ones of them, again and again.
        """
        return self

    def rough(self, points: int) -> Model:
        """A cheaper approximation for racing candidates, with ``points`` per ray where rays are searched."""
        return self

    def thinned(self, points: int) -> Model:
        """The same model with at most ``points`` per ray where rays are searched."""
        return self

    def uncompiled(self) -> Model:
        """The user's model as a black box, if this one was compiled from it."""
        return self


def check_model(model: Any, space: FeatureSpace) -> Model:
    """Return the model if it takes rows of this space; otherwise raise an error that points to ``as_model``."""
    has_methods = all(callable(getattr(model, name, None)) for name in ("favourable", "margin", "first_flip"))
    expected = getattr(model, "space", None)
    if isinstance(model, type) or not has_methods or not isinstance(expected, FeatureSpace):
        raise InvalidParameterError(
            "model must be the result of globece.as_model(your_model, space), with the space of the explanation; "
            f"got {describe(model)}"
        )
    if expected.columns != space.columns:
        raise InvalidParameterError(
            f"model takes rows with the columns {list(expected.columns)[:20]}; these have {list(space.columns)[:20]}"
        )
    checked: Model = model
    return checked
