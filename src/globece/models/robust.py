"""Recourse that lasts: what a counterfactual must survive in addition to the model's own decision.

A counterfactual right on the boundary is undone by the next retraining or by a slip in a form. So the favourable
condition can ask for more: a margin, the agreement of other models, survival of noise on the inputs (the paper's
appendix "Robustness of Counterfactuals"). Each of these is one more model that must be favourable, so the question
becomes: at which k do all of them first agree? Where all are followed exactly, so is their agreement: each is asked
again from the largest k so far, until none has to go further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit

from globece import rays
from globece.errors import (
    InvalidParameterError,
    check_choice,
    check_count,
    check_number,
    check_seed,
    keep_checked,
    wrong,
)
from globece.models.base import Allowance, Model
from globece.models.blackbox import BlackBox, search_undecided
from globece.models.decision import Decision, Tally
from globece.space import BoolArray, FeatureSpace, FloatArray

MarginScale = Literal["probability", "logit", "score"]
MOST_DRAWS = 10_000
LARGEST_NOISE = 1000.0  # bins: a hundred times the range of the data
SCALES = ("probability", "logit", "score")
ROUNDS = 1_000  # rays without agreement after that many rounds are searched


@dataclass(frozen=True, slots=True)
class Robust:
    """What recourse must survive.

    A margin makes recourse more expensive, also on unseen rows, though it may narrow the difference between these and
    the rows that were searched; docs/search.md, *Unseen rows*, says more.

    Parameters
    ----------
    margin
        How far beyond the model's threshold a counterfactual must lie.
    scale
        Unit of the margin: ``"probability"``, ``"logit"`` (log-odds), or ``"score"`` (a regressor's value, or the
        decision function of a classifier without probabilities).
    models
        Other models that must agree: retrained ones, or bootstrapped ones. They take the same rows.
    noise
        Largest error on each continuous input, in bins of the default cost (a tenth of its observed range). The
        outcome must stay favourable under all errors that are drawn uniformly up to that.
    draws
        How many errors are drawn; at most 10,000.
    seed
        Seed of these draws.

    Examples
    --------
    >>> Robust(margin=0.1).described
    'a margin of 0.1 (probability)'
    """

    margin: float = 0.0
    scale: MarginScale = "probability"
    models: tuple[Any, ...] = ()
    noise: float = 0.0
    draws: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.models, (tuple, list)):
            raise wrong("models", "a list of models", self.models)
        for i, model in enumerate(self.models):
            asked = any(hasattr(model, name) for name in ("predict", "predict_proba", "decision_function"))
            if isinstance(model, type) or not (asked or callable(model) or isinstance(model, tuple)):
                raise wrong(f"models[{i}]", "a model: an estimator, a function or a pair (coef, intercept)", model)
        keep_checked(
            self,
            margin=check_number("margin", self.margin),
            scale=check_choice("scale", self.scale, SCALES),
            models=tuple(self.models),
            noise=check_number("noise", self.noise, high=LARGEST_NOISE),
            draws=check_count("draws", self.draws, high=MOST_DRAWS),
            seed=check_seed("seed", self.seed),
        )

    @property
    def described(self) -> str:
        """What is asked for, in words."""
        parts = []
        if self.margin:
            parts.append(f"a margin of {self.margin:g} ({self.scale})")
        if self.models:
            n = len(self.models)
            parts.append(f"the agreement of {n} more model{'s' if n > 1 else ''}")
        if self.noise:
            parts.append(f"{self.draws} errors of up to {self.noise:g} bins on the inputs")
        return ", ".join(parts) or "nothing more"


@dataclass(frozen=True)
class ByScore:
    """A classifier that predicts its score instead of its decision."""

    model: Any

    @property
    def __name__(self) -> str:
        return type(self.model).__name__

    def predict(self, X: Any) -> Any:
        """The decision function."""
        return np.asarray(self.model.decision_function(X), dtype=np.float64)


def stricter(model: Any, decide: Decision, margin: float, scale: MarginScale) -> dict[str, Any]:
    """Arguments of :func:`globece.as_model` for a model that demands a margin."""
    name = decide.name
    if decide.favourable in ("above", "below") and decide.classes is None:
        if scale != "score":
            raise InvalidParameterError(f"scale must be 'score' for {name}, which gives values; got {scale!r}")
        assert decide.threshold is not None
        beyond = decide.threshold + (-margin if decide.favourable == "below" else margin)
        return {"model": model, "favourable": decide.favourable, "threshold": beyond}
    if scale == "score":
        if decide.classes is None or len(decide.classes) != 2 or not hasattr(model, "decision_function"):
            raise InvalidParameterError(f"scale 'score' needs a decision function of two classes, which {name} lacks")
        second = decide.favourable == decide.classes[1]
        return {
            "model": ByScore(model),
            "favourable": "above" if second else "below",
            "threshold": margin if second else -margin,
        }
    if decide.classes is not None and not hasattr(model, "predict_proba"):
        raise InvalidParameterError(f"scale {scale!r} needs predict_proba, which {name} lacks; use scale='score'")
    cut = _cut_of(model, decide)
    asked = cut + margin if scale == "probability" else float(expit(logit(cut) + margin))
    if not asked < 1.0:
        raise InvalidParameterError(
            f"margin must be below {1.0 - cut:g}, since {name} asks for a probability of {cut:g}; got {margin!r}"
        )
    return {"model": model, "favourable": decide.favourable, "threshold": asked}


def _cut_of(model: Any, decide: Decision) -> float:
    """Probability of the favourable class from which the model decides for it."""
    if decide.threshold is not None:
        return decide.threshold
    cut = getattr(model, "best_threshold_", getattr(model, "threshold", None))
    if type(model).__name__ in ("FixedThresholdClassifier", "TunedThresholdClassifierCV") and cut != "auto":
        assert decide.classes is not None
        assert cut is not None
        positive = decide.classes[1] if getattr(model, "pos_label", None) is None else model.pos_label
        return float(cut) if decide.favourable == positive else 1.0 - float(cut)
    return 0.5


def errors_on(space: FeatureSpace, robust: Robust) -> FloatArray:
    """Errors on the inputs, the first of them zero: ``(draws + 1, width)``, or ``(1, width)`` without noise."""
    if not robust.noise:
        return np.zeros((1, space.width))
    out = np.zeros((robust.draws + 1, space.width))
    rng = np.random.default_rng(robust.seed)
    for f in space.scalars:
        if f.kind == "continuous" and not f.whole:
            width = (f.observed[1] - f.observed[0]) / 10.0
            out[1:, f.start] = rng.uniform(-robust.noise, robust.noise, robust.draws) * width
    return out


@dataclass(frozen=True)
class RobustModel(Model):
    """A model together with what its counterfactuals must survive.

    Attributes
    ----------
    plain
        The user's model, which says who is affected.
    parts
        Models that must all be favourable; each is a :class:`globece.models.compiling.adapt.Compiled` or a black box.
    errors
        Errors on the inputs that must not matter, one per row, the first of them zero.
    robust
        What was asked for.
    """

    plain: Any
    parts: tuple[Any, ...]
    errors: FloatArray
    robust: Robust = Robust()

    @property
    def unconditioned(self) -> Any:
        """The user's model, which says who is affected."""
        return self.plain

    @property
    def allowance(self) -> Allowance:
        """That of the user's model."""
        return self.plain.allowance  # type: ignore[no-any-return]

    @property
    def conditions(self) -> str:
        """What recourse must survive, in words."""
        return self.robust.described

    @property
    def requirements(self) -> tuple[Any, ...]:
        """The parts."""
        return self.parts

    @property
    def is_compiled(self) -> bool:
        """Whether any part was compiled from a model that can be called as well."""
        return any(part.is_compiled for part in self.parts)

    @property
    def has_noise(self) -> bool:
        """Whether there are errors to survive."""
        return bool(self.errors.any())

    @property
    def rounding_unit(self) -> float:
        """The largest of the parts."""
        return max(float(part.rounding_unit) for part in self.parts)

    @property
    def tallies(self) -> list[Tally]:
        """Call counts of all models, without duplicates."""
        return list({id(t): t for part in (self.plain, *self.parts) for t in part.tallies}.values())

    def rough(self, points: int) -> RobustModel:
        """The same with rougher parts."""
        return replace(self, parts=tuple(part.rough(points) for part in self.parts))

    def uncompiled(self) -> RobustModel:
        """The same with every part as a black box."""
        return replace(self, plain=self.plain.uncompiled(), parts=tuple(part.uncompiled() for part in self.parts))

    @property
    def space(self) -> FeatureSpace:
        """The space whose rows it takes."""
        return self.plain.space  # type: ignore[no-any-return]

    @property
    def exact(self) -> bool:
        """Whether all parts are followed exactly."""
        return all(part.exact for part in self.parts)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.plain.name  # type: ignore[no-any-return]

    @property
    def decide(self) -> Decision:
        """The user's model."""
        return self.plain.decide  # type: ignore[no-any-return]

    def favourable(self, Z: FloatArray, *, wide: bool = False) -> BoolArray:
        """Whether each row is favourable to all parts under all errors; optionally in double precision."""
        out = np.ones(len(Z), dtype=bool)
        for error in self.errors:
            for part in self.parts:
                left = np.flatnonzero(out)
                if left.size:
                    rows = self._with(error, Z[left])
                    out[left] = part.uncompiled().favourable(rows, wide=True) if wide else part.favourable(rows)
        return out

    def confirms(self, Z: FloatArray) -> BoolArray:
        """Whether each row is favourable to all parts under all errors, as it is and in double precision."""
        return self._searched(self.plain.uncompiled()).confirms(Z)

    def margin(self, Z: FloatArray) -> FloatArray:
        """Smallest margin of all parts."""
        margins = [part.margin(self._with(error, Z)) for part in self.parts for error in self.errors]
        return np.asarray(np.min(margins, axis=0))

    def first_flip(
        self, Z: FloatArray, directions: FloatArray, limit: FloatArray, start: FloatArray | None = None
    ) -> FloatArray:
        """Smallest k at which all agree; see :meth:`globece.models.base.Model.first_flip`."""
        if not self.exact:
            some = next(part for part in self.parts if not part.exact)
            box = some if isinstance(some, BlackBox) else BlackBox(self.decide, self.space)
            return self._searched(box).first_flip(Z, directions, limit, start)
        found = self._followed(Z, directions, limit, start)
        return search_undecided(self._searched(self.plain.uncompiled()), found, Z, directions, limit, start)

    def _with(self, error: FloatArray, Z: FloatArray) -> FloatArray:
        """The rows with an error, as columns of a narrow type hold them."""
        return self.space.settle(Z + error) if error.any() else Z

    def _searched(self, box: BlackBox) -> _Searched:
        return _Searched(**{f.name: getattr(box, f.name) for f in fields(box)}, all_of=self)

    def _followed(
        self, Z: FloatArray, directions: FloatArray, limit: FloatArray, start: FloatArray | None
    ) -> FloatArray:
        """The k at which all parts agree, each followed exactly; NaN where one of them cannot decide."""
        asked = [(part, error) for error in self.errors for part in _moved(self.parts, error)]
        k = np.zeros(limit.shape) if start is None else start.copy()
        undecided, from_zero = np.zeros(k.shape, dtype=bool), start is None
        active = np.arange(len(Z))  # rows on which the parts may still disagree
        for _ in range(ROUNDS):
            before = k[:, active].copy()
            for part, error in asked:
                open_ = active[np.isfinite(k[:, active]).any(axis=0)]
                if open_.size:
                    begin = None if from_zero else k[:, open_]
                    k[:, open_] = part.first_flip(self._with(error, Z[open_]), directions, limit[:, open_], begin)
                    from_zero = False
            undecided |= np.isnan(k)
            k[undecided] = np.inf  # so that no other part follows them
            active = active[(k[:, active] != before).any(axis=0)] if len(asked) > 1 else active[:0]
            if not active.size:
                break
        else:
            undecided[:, active] |= k[:, active] != before
        if self.errors.any():
            k = self._nudge_past_rounding(Z, directions, limit, k)
        return np.where(undecided, np.nan, k)

    def _nudge_past_rounding(
        self, Z: FloatArray, directions: FloatArray, limit: FloatArray, k: FloatArray
    ) -> FloatArray:
        """Go slightly further where it matters whether an error is added before or after moving along the ray."""
        cores = replace(self, parts=tuple(part.followed for part in self.parts))
        for i, delta in enumerate(directions):
            waiting = np.flatnonzero(np.isfinite(k[i]))
            for hair in (0.0, *2.0 ** np.arange(-52, -38)):
                k[i, waiting] = np.minimum(k[i, waiting] * (1.0 + hair), limit[i, waiting])
                after = rays.positions(self.space, Z[waiting], delta, k[i, waiting])
                waiting = waiting[~cores.favourable(after)]
                if not waiting.size:
                    break
            k[i, waiting] = np.inf
        return k


def _moved(parts: Sequence[Any], error: FloatArray) -> list[Model]:
    """The exact parts over rows shifted by an error: their ranges are shifted by as much."""
    cores = [part.followed for part in parts]
    if not error.any():
        return cores
    space = cores[0].space
    features = tuple(
        f if f.is_block else replace(f, low=f.low + error[f.start], high=f.high + error[f.start])
        for f in space.features
    )
    return [replace(core, space=replace(core.space, features=features)) for core in cores]


@dataclass(frozen=True)
class _Searched(BlackBox):
    """A search for the k at which all agree."""

    all_of: RobustModel | None = None

    def favourable(self, Z: FloatArray, *, wide: bool = False) -> BoolArray:
        assert self.all_of is not None
        return self.all_of.favourable(Z, wide=wide)
