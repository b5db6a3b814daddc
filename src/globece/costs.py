"""What a change costs the person who makes it.

Each column has a *scale*, an increasing function of its value, and a change costs the feature's weight times the
distance on that scale. Equal-width bins and deciles are two scales; a changed category costs one step. The features'
costs are then summed (l1) or combined as a Euclidean length (l2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from globece.errors import (
    InvalidDataError,
    InvalidParameterError,
    check_choice,
    check_count,
    check_instance,
    check_mapping,
    check_matrix,
    check_number,
    check_numbers,
    describe,
    wrong,
)
from globece.kept import FieldsOnly
from globece.space import Feature, FeatureSpace, FloatArray

Norm = Literal["l1", "l2"]

# A one-hot change moves two columns (one falls, one rises), so each counts half towards a direction's nominal cost.
ONE_HOT_SHARE = 0.5
SMALLEST_WIDTH = 1e-300  # of a bin: its reciprocal must be finite
LARGEST_WEIGHT = 1e9  # features that cost more should be immutable


@dataclass(frozen=True, slots=True)
class Scale:
    """An increasing, piecewise linear function: distances on it are costs.

    ``knots`` are values and ``levels`` their positions on the scale; beyond the ends it continues with the end slopes.
    """

    knots: FloatArray
    levels: FloatArray

    def __call__(self, values: FloatArray) -> FloatArray:
        """Position of each value on the scale."""
        inside = np.interp(values, self.knots, self.levels)
        (first, last), (start, end) = self.slopes, (self.knots[0], self.knots[-1])
        below, above = np.minimum(values - start, 0.0), np.maximum(values - end, 0.0)
        return np.asarray(inside + first * below + last * above)

    @property
    def slopes(self) -> tuple[float, float]:
        """Slope of the first and of the last piece."""
        slope = np.diff(self.levels) / np.diff(self.knots)
        return float(slope[0]), float(slope[-1])

    @property
    def is_linear(self) -> bool:
        """Whether the slope is the same everywhere."""
        return len(self.knots) == 2

    @property
    def least_slope(self) -> float:
        """Smallest slope anywhere."""
        return float((np.diff(self.levels) / np.diff(self.knots)).min())


@dataclass(frozen=True)
class CostModel(FieldsOnly):
    """Weights, scales and norm: what each change costs.

    Build one with :meth:`bins` (the paper's) or :meth:`deciles`.

    Attributes
    ----------
    space
        The space of the rows.
    scales
        A :class:`Scale` for each continuous or ordinal feature that can move, by name.
    weights
        A factor per feature, in the space's order.
    norm
        ``"l1"`` or ``"l2"``.
    kind
        What the scales are: ``"bins"``, ``"deciles"`` or ``"widths"``.
    """

    space: FeatureSpace
    scales: Mapping[str, Scale]
    weights: FloatArray
    norm: Norm = "l1"
    kind: str = "bins"

    def __post_init__(self) -> None:
        check_instance("space", self.space, FeatureSpace, "see FeatureSpace.from_frame")
        scales = check_mapping("scales", self.scales, "feature to Scale")
        self.space._check_known("scales", scales)
        for name, scale in scales.items():
            check_instance(f"scales[{name!r}]", scale, Scale)
        allowed = f"a number > 0 for each of {len(self.space.features)} features"
        weights = check_numbers("weights", self.weights, allowed)
        if len(weights) != len(self.space.features) or not (weights > 0).all():
            raise wrong("weights", allowed, self.weights)
        _norm(self.norm)
        if not isinstance(self.kind, str):
            raise wrong("kind", "text", self.kind)
        object.__setattr__(self, "weights", weights)

    @classmethod
    def bins(
        cls,
        space: FeatureSpace,
        *,
        n: int = 10,
        widths: Mapping[str, float] | None = None,
        weights: Mapping[str, float] | None = None,
        norm: Norm = "l1",
    ) -> CostModel:
        """The paper's cost: 1 per equal-width bin of the data's range, 1 per changed category, 1 per ordinal step.

        Parameters
        ----------
        space
            The space of the rows.
        n
            Number of bins over each feature's observed range.
        widths
            Bin widths by feature, instead of ``range / n``.
        weights
            Factors by feature, by default 1. See :func:`bradley_terry`.
        norm
            ``"l1"`` sums the features' costs, ``"l2"`` takes their Euclidean length.

        Examples
        --------
        >>> import numpy as np
        >>> space = FeatureSpace.from_matrix(np.array([[0.0], [50.0]]), columns=["age"])
        >>> cost = CostModel.bins(space)
        >>> cost.between(np.array([[20.0]]), np.array([[30.0]]))
        array([2.])
        """
        check_instance("space", space, FeatureSpace, "see FeatureSpace.from_frame")
        n = check_count("n", n)
        given = check_mapping("widths", widths, "feature to the width of a bin")
        space._check_known("widths", given)
        blocks = [name for name in given if space[name].is_block]
        if blocks:
            raise InvalidParameterError(f"widths names {blocks}, which have no bins: a changed category costs 1")

        def scale(feature: Feature) -> Scale:
            low, high = feature.observed
            width = 1.0 if feature.kind == "ordinal" else (high - low) / n
            if feature.name in given:
                width = check_number(f"widths[{feature.name!r}]", given[feature.name], low=SMALLEST_WIDTH)
            return Scale(np.array([0.0, width]), np.array([0.0, 1.0]))

        scales = {f.name: scale(f) for f in space.scalars if f.can_move}
        return cls(space, scales, _weights(space, weights), _norm(norm), "bins")

    @classmethod
    def deciles(
        cls,
        space: FeatureSpace,
        X: Any,
        *,
        weights: Mapping[str, float] | None = None,
        norm: Norm = "l1",
    ) -> CostModel:
        """Cost by deciles: 1 per tenth of the data that a continuous change passes.

        Parameters
        ----------
        space
            The space of the rows.
        X
            Rows (as the space was learnt from) from which to compute deciles.
        weights, norm
            As in :meth:`bins`.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.array([[1.0], [2.0], [4.0], [8.0], [16.0]])
        >>> space = FeatureSpace.from_matrix(X, columns=["income"])
        >>> CostModel.deciles(space, X).between(np.array([[1.0]]), np.array([[16.0]]))
        array([10.])
        """
        Z = check_instance("space", space, FeatureSpace, "see FeatureSpace.from_frame").encode(X)

        def scale(feature: Feature) -> Scale:
            if feature.kind == "ordinal":
                return Scale(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
            values = Z[:, feature.start]
            return _decile_scale(values[~np.isnan(values)], feature.name)

        scales = {f.name: scale(f) for f in space.scalars if f.can_move}
        return cls(space, scales, _weights(space, weights), _norm(norm), "deciles")

    @cached_property
    def unit(self) -> str:
        """What a cost of 1 is, in words.

        Examples
        --------
        >>> import numpy as np
        >>> space = FeatureSpace.from_matrix(np.array([[0.0, 1.0], [50.0, 2.0]]), categorical=["x1"])
        >>> CostModel.bins(space).unit
        "1 is a tenth of a feature's range, or one changed category"
        """
        steps = {"bins": "a tenth of a feature's range", "deciles": "passing a tenth of the people"}
        step = steps.get(self.kind, "one bin of a feature")
        if self.kind == "bins" and not self._in_tenths:
            step = "one bin of a feature's range"
        kinds = {f.kind for f in self.space.movable}
        parts = [step] if "continuous" in kinds else []
        parts += ["one step of an order"] if "ordinal" in kinds else []
        parts += ["one changed category"] if "categorical" in kinds else []
        text = "1 is " + (", or ".join(parts) or "one change")
        if (self.weights != 1.0).any():
            text += ", times each feature's weight"
        return f"{text}; costs combine as a Euclidean length" if self.norm == "l2" else text

    @property
    def _in_tenths(self) -> bool:
        """Whether each bin is a tenth of its feature's observed range."""
        priced = [f for f in self.space.movable if f.kind == "continuous" and f.name in self.scales]
        widths = [(f, float(self.scales[f.name].knots[-1])) for f in priced]
        return all(np.isclose(10.0 * width, f.observed[1] - f.observed[0], rtol=1e-6) for f, width in widths)

    def weight(self, feature: Feature) -> float:
        """Factor of a feature."""
        return float(self.weights[self.space.names.index(feature.name)])

    def change(self, feature: Feature, before: FloatArray, after: FloatArray) -> FloatArray:
        """Cost of moving one continuous or ordinal feature, before the norm; 0 for a missing value."""
        if feature.name not in self.scales:
            return np.zeros(np.shape(before))
        scale = self.scales[feature.name]
        if scale.is_linear:  # a difference of values is more precise than one of positions on the scale
            return self.weight(feature) * np.nan_to_num(np.abs(after - before) * scale.slopes[0], nan=0.0)
        distance = np.abs(scale(after) - scale(before))
        return self.weight(feature) * np.nan_to_num(distance, nan=0.0)

    def combine(self, parts: Sequence[FloatArray], n: int) -> FloatArray:
        """Combine the features' costs: a sum, or a Euclidean length."""
        total = np.zeros(n)
        for part in parts:
            total += part if self.norm == "l1" else part * part
        return total if self.norm == "l1" else np.sqrt(total)

    def between(self, Z: FloatArray, Z_after: FloatArray) -> FloatArray:
        """Cost of the change from each row of ``Z`` to the same row of ``Z_after``."""
        Z = check_matrix("Z", Z, self.space.width)
        Z_after = check_matrix("Z_after", Z_after, self.space.width)
        if len(Z) != len(Z_after):
            raise InvalidDataError(f"Z_after must have as many rows as Z, {len(Z):,}; got {len(Z_after):,}")
        parts = []
        for f in self.space.features:
            before, after = Z[:, f.columns], Z_after[:, f.columns]
            if f.is_block:
                parts.append(self.weight(f) * (before != after).any(axis=1))
            else:
                parts.append(self.change(f, before[:, 0], after[:, 0]))
        return self.combine(parts, len(Z))

    @cached_property
    def rates(self) -> FloatArray:
        """Nominal cost per unit of each encoded column: half a category per one-hot column, the mean slope elsewhere.

        Directions are normalised by it; the actual cost for a row depends on its values.
        """
        rates = np.zeros(self.space.width)
        for f in self.space.features:
            if f.is_block:
                rates[f.columns] = ONE_HOT_SHARE * self.weight(f)
            elif f.name in self.scales:
                scale = self.scales[f.name]
                span = scale.knots[-1] - scale.knots[0]
                rates[f.start] = self.weight(f) * (scale.levels[-1] - scale.levels[0]) / span
        rates.flags.writeable = False
        return rates

    def nominal(self, directions: FloatArray) -> FloatArray:
        """Nominal cost of each direction at k = 1."""
        parts = np.abs(self._directions(directions)) * self.rates
        return np.asarray(parts.sum(axis=1) if self.norm == "l1" else np.sqrt((parts**2).sum(axis=1)))

    def _directions(self, directions: FloatArray) -> FloatArray:
        one = isinstance(directions, np.ndarray) and directions.ndim == 1
        return check_matrix("directions", directions[None] if one else directions, self.space.width, "a matrix")

    def normalise(self, directions: FloatArray, cost: float = 1.0) -> FloatArray:
        """Scale directions to the same nominal cost, so that they are comparable."""
        directions, cost = self._directions(directions), check_number("cost", cost, open_low=True)
        nominal = self.nominal(directions)
        if not (nominal > 0).all():
            raise InvalidParameterError(f"direction {int((~(nominal > 0)).argmax())} has no cost to normalise by")
        return np.asarray(directions * (cost / nominal)[:, None])


def bradley_terry(pairs: Iterable[tuple[str, str]], *, prior: float = 0.1) -> dict[str, float]:
    """Feature weights from pairwise comparisons, each ``(easier, harder)`` to change.

    In the Bradley-Terry model each feature has a difficulty such that "a is harder than b" has odds
    ``difficulty_a / difficulty_b``. The difficulties are the weights, scaled to a geometric mean of 1.

    Parameters
    ----------
    pairs
        Comparisons; the same pair may occur many times, in both orders.
    prior
        Weight of a pseudo-comparison, in both orders, between each two features that were compared. It keeps the
        weight of a feature that is always harder finite.

    Returns
    -------
    dict
        Weight by feature, to pass as ``weights=`` to a cost model.

    Examples
    --------
    >>> weights = bradley_terry([("savings", "age"), ("savings", "age"), ("savings", "job"), ("job", "age")])
    >>> weights["savings"] < weights["job"] < weights["age"]
    True
    """
    wins: dict[tuple[str, str], float] = {}
    allowed = "a list of (easier, harder) pairs of two different features"
    if isinstance(pairs, (str, bytes, Mapping)) or hasattr(pairs, "columns") or not isinstance(pairs, Iterable):
        raise wrong("pairs", allowed, pairs)
    if isinstance(pairs, np.ndarray) and pairs.ndim != 2:
        raise wrong("pairs", allowed, pairs)
    for pair in pairs:
        if (
            not isinstance(pair, (Sequence, np.ndarray))
            or isinstance(pair, str)
            or len(pair) != 2
            or pair[0] == pair[1]
        ):
            raise InvalidParameterError(f"pairs must be {allowed}; one of them is {describe(pair)}")
        easier, harder = pair
        if not isinstance(easier, str) or not isinstance(harder, str):
            raise InvalidParameterError(f"pairs must be {allowed}; one of them is {describe(pair)}")
        wins[harder, easier] = wins.get((harder, easier), 0.0) + 1.0
    if not wins:
        raise InvalidParameterError("pairs is empty; give at least one (easier, harder) pair")
    prior = check_number("prior", prior, open_low=True)
    names = sorted({name for pair in wins for name in pair})
    index = {name: i for i, name in enumerate(names)}
    W = np.zeros((len(names), len(names)))
    for (harder, easier), count in wins.items():
        W[index[harder], index[easier]] += count
    W += prior * ((W + W.T) > 0)
    games, difficulty = W + W.T, np.ones(len(names))
    for _ in range(10_000):  # Hunter (2004), the minorisation-maximisation step
        updated = W.sum(axis=1) / (games / (difficulty[:, None] + difficulty[None, :])).sum(axis=1)
        updated /= np.exp(np.log(updated).mean())
        done = np.abs(updated - difficulty).max() < 1e-12
        difficulty = updated
        if done:
            break
    return dict(zip(names, difficulty.tolist(), strict=True))


def _decile_scale(values: FloatArray, name: str) -> Scale:
    quantiles = np.quantile(values, np.linspace(0.0, 1.0, 11))
    knots = np.unique(quantiles)
    if len(knots) < 2:
        raise InvalidDataError(f"feature {name!r} is constant in the rows given: it has no deciles")
    # A value that spans several deciles gets their middle.
    levels = np.array([np.flatnonzero(quantiles == q).mean() for q in knots])
    stretched = 10.0 * (levels - levels[0]) / (levels[-1] - levels[0])
    return Scale(knots, stretched)


def _weights(space: FeatureSpace, weights: Mapping[str, float] | None) -> FloatArray:
    given = check_mapping("weights", weights, "feature to number")
    space._check_known("weights", given)
    return np.array(
        [check_number(f"weights[{n!r}]", given.get(n, 1.0), open_low=True, high=LARGEST_WEIGHT) for n in space.names]
    )


def _norm(norm: str) -> Norm:
    check_choice("norm", norm, ("l1", "l2"))
    return "l1" if norm == "l1" else "l2"
