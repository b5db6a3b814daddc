"""Tree ensembles, followed exactly.

The leaf of a row is a step function of the scalar, and all its steps can be listed; see
:mod:`globece.models.trees.rays` for how they are followed, :mod:`globece.models.trees.compiling` for how a library's
splits become questions about the encoded matrix, and :mod:`globece.models.trees.importing` for the libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from globece.bundle import bundle
from globece.errors import InvalidParameterError
from globece.kept import FieldsOnly
from globece.models import devices
from globece.models.base import Allowance, Model
from globece.models.clearance import DOUBLE, SINGLE
from globece.models.cuda.machine import Gpu
from globece.models.doubles import last_alike
from globece.models.inputs import Input
from globece.models.trees import rays, rows
from globece.models.trees.compiling import compile_trees
from globece.models.trees.decision_rule import LARGEST, PROBABILITY_DOUBLE, PROBABILITY_SINGLE, REACHES, DecisionRule
from globece.models.trees.importing import native_categories, read, supports
from globece.models.trees.layout import (
    Located,
    Ranks,
    Routes,
    SpaceArrays,
    Trees,
    Walk,
    frozen,
    read_only,
    without_idle,
)
from globece.models.trees.on_cuda import WORTHWHILE, Follower, is_supported
from globece.models.trees.reading import Reading
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray

MOST = 16_000_000  # leaves, or splits, that are kept
BATCH = 65_536  # rows at a time: bounds the memory for contiguous copies
USUAL_SPLITS = 1500.0  # with fewer of them a search may follow more rays, up to four times as many


@dataclass(frozen=True)
class TreeEnsemble(FieldsOnly, Model):
    """A tree ensemble over the encoded matrix, with exact rays.

    Build one with :meth:`from_model`.

    Attributes
    ----------
    space
        The space whose rows it takes.
    trees, rule
        The compiled trees, and how the sums of their leaves become a decision.
    name
        What to call it in messages.
    idle
        How many trees were left out, since they are one leaf that adds 0.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from globece.models.inputs import identity
    >>> X = np.array([[0.0], [1.0], [2.0], [5.0]])
    >>> space = FeatureSpace.from_matrix(X, columns=["income"])
    >>> tree = DecisionTreeClassifier().fit(X, [0, 0, 1, 1])
    >>> model = TreeEnsemble.from_model(tree, space, identity(1), favourable=1)
    >>> model.favourable(X)
    array([False, False,  True,  True])
    >>> k = model.first_flip(X[:1], np.array([[1.0]]), np.array([[5.0]]))
    >>> print(f"{k[0, 0]:.6f}")
    1.500000
    """

    space: FeatureSpace
    trees: Trees
    rule: DecisionRule
    name: str
    idle: int = 0

    exact = True

    @property
    def allowance(self) -> Allowance:
        """More where a ray passes fewer splits."""
        n_trees = len(self.trees.roots) + self.idle
        n_leaves = (len(self.trees.threshold) + self.idle + n_trees) / 2
        splits = n_trees * np.log2(max(n_leaves / max(n_trees, 1), 2.0))  # on a row's way through all trees
        more = float(np.clip(USUAL_SPLITS / max(splits, 1.0), 1.0, 4.0))
        return Allowance(17.0 * more, int(6_000 * min(more, 2.0)), 52_500)

    @property
    def tree_ensemble(self) -> TreeEnsemble:
        """Itself."""
        return self

    @classmethod
    def from_model(
        cls,
        estimator: Any,
        space: FeatureSpace,
        inputs: Sequence[Input],
        *,
        favourable: Any,
        threshold: float | None = None,
    ) -> TreeEnsemble:
        """Compile a fitted estimator.

        Parameters
        ----------
        estimator
            An ensemble of XGBoost, LightGBM or scikit-learn; see :func:`globece.models.trees.importing.supports`.
        space
            The space whose encoded matrix the compiled model takes.
        inputs
            The estimator's features, in order, as functions of the encoded matrix.
        favourable
            A class; or ``"above"`` / ``"below"`` the threshold, for an estimator without classes.
        threshold
            A probability that the favourable class must reach, or the value that a prediction must.

        Raises
        ------
        ModelError
            If the estimator is of a kind that cannot be followed exactly; the message says why.
        """
        return cls.from_reading(read(estimator), space, inputs, favourable, threshold, type(estimator).__name__)

    @classmethod
    def from_reading(
        cls,
        reading: Reading,
        space: FeatureSpace,
        inputs: Sequence[Input],
        favourable: Any,
        threshold: float | None = None,
        name: str = "trees",
    ) -> TreeEnsemble:
        """Compile an ensemble that has been read; the parameters are those of :meth:`from_model`."""
        rule, outputs, output = _decision_rule(reading, favourable, threshold, name)
        scores = np.zeros(len(outputs))
        if rule.scalar:
            scores = outputs[:, 0] if rule.kind == REACHES else outputs @ _against(rule.favourable)
        trees = compile_trees(replace(reading.table, outputs=outputs), space, inputs, output, scores)
        busy = without_idle(trees)
        return cls(space, busy, _with_slack(rule, trees), name, len(trees.roots) - len(busy.roots))

    def favourable(self, Z: FloatArray) -> BoolArray:
        """Whether each row gets the favourable outcome."""
        return np.asarray(self.margin(Z) >= 0.0)

    def margin(self, Z: FloatArray) -> FloatArray:
        """How far each row is on the favourable side, in the ensemble's scores; negative on the unfavourable side."""
        out = np.empty(len(Z))
        trees, rule, space = self._arrays
        for batch in _batches(len(Z)):
            out[batch] = rows.leads(trees, self._walk, rule, space, _plain(Z[batch]))
        return out

    def first_flip(
        self, Z: FloatArray, directions: FloatArray, limit: FloatArray, start: FloatArray | None = None
    ) -> FloatArray:
        """Smallest k at which each row is favourable; see :meth:`globece.models.base.Model.first_flip`."""
        return self.follow(Z, directions, limit, start, None)

    def follow(
        self, Z: FloatArray, directions: FloatArray, limit: FloatArray, start: FloatArray | None, known: Located | None
    ) -> FloatArray:
        """The same for rows of which the leaves may be known."""
        routes = frozen(_routes(self.space, directions, known is None))
        on_cuda = self._on_cuda(limit.size)
        if on_cuda is not None:
            return on_cuda.follow(routes, Z, limit, np.zeros((1, 1)) if start is None else start)
        out = np.empty((len(directions), len(Z)))
        trees, rule, space = self._arrays
        for batch in _batches(len(Z)):
            begin = np.zeros((1, 1)) if start is None else start[:, batch]
            some, here = _plain(limit[:, batch]), known and known.part(batch)
            out[:, batch] = rays.follow(
                trees, self._ranks, rule, space, routes, _plain(Z[batch]), some, _plain(begin), here
            )
        return out

    def located(self, Z: FloatArray) -> Model:
        """The same, which keeps the leaves of these rows; see :meth:`globece.models.base.Model.located`."""
        most = len(Z) * max(len(self.trees.roots), self._ranks.longest)
        return LocatedTrees(self, Z) if Z.flags.c_contiguous and 0 < most <= MOST else self

    def _on_cuda(self, n_rays: int) -> Follower | None:
        """The ensemble on a GPU, if there is one and that many rays pay for it."""
        if not n_rays or not is_supported(self.rule):
            return None
        cupy = devices.cupy_for(n_rays * len(self.trees.roots), WORTHWHILE)
        if cupy is None:
            return None
        devices.count(n_rays)
        device = cupy.cuda.Device().id
        if device not in self._followers:
            self._followers[device] = Follower.of(Gpu(cupy), *self._arrays)
        return self._followers[device]

    @cached_property
    def _followers(self) -> dict[int, Follower]:
        """The ensemble on each GPU that was used."""
        return {}

    @cached_property
    def _arrays(self) -> tuple[Trees, DecisionRule, SpaceArrays]:
        return frozen(self.trees), frozen(self.rule), frozen(self._space_arrays)

    @cached_property
    def _walk(self) -> Walk | None:
        found = Walk.of(self.trees, np.float32 if self.rule.single else np.float64)
        return None if found is None else frozen(found)

    @cached_property
    def _ranks(self) -> Ranks:
        return frozen(Ranks.of(self.trees, self.space.width + len(self.space.blocks)))

    @cached_property
    def _space_arrays(self) -> SpaceArrays:
        width = self.space.width
        low, high, whole = np.full(width, -np.inf), np.full(width, np.inf), np.zeros(width, np.uint8)
        for f in self.space.scalars:
            low[f.start], high[f.start], whole[f.start] = f.low, f.high, f.whole
        starts = np.array([f.start for f in self.space.blocks], np.int32)
        return SpaceArrays(low, high, whole, starts, np.array([f.stop for f in self.space.blocks], np.int32))


@dataclass(eq=False)
class LocatedTrees(Model):
    """A tree ensemble that keeps the leaves of some rows, which are asked about again and again.

    Attributes
    ----------
    ensemble
        The ensemble.
    rows
        The rows; views of them are recognised by where they lie in memory, so nobody may change them.
    """

    ensemble: TreeEnsemble
    rows: FloatArray
    done: int = 0  # rows whose leaves are known
    known: Located = field(init=False)

    exact = True

    def __post_init__(self) -> None:
        n_slots, trees = self.rows.shape[1] + len(self.space.blocks), len(self.ensemble.trees.roots)
        self.known = Located.room(len(self.rows), trees, n_slots, self.ensemble._ranks.longest)

    @property
    def space(self) -> FeatureSpace:
        """That of the ensemble."""
        return self.ensemble.space

    @property
    def name(self) -> str:
        """That of the ensemble."""
        return self.ensemble.name

    @property
    def allowance(self) -> Allowance:
        """That of the ensemble."""
        return self.ensemble.allowance

    @property
    def tree_ensemble(self) -> TreeEnsemble:
        """The ensemble."""
        return self.ensemble

    def favourable(self, Z: FloatArray) -> BoolArray:
        """Whether each row gets the favourable outcome."""
        return self.ensemble.favourable(Z)

    def margin(self, Z: FloatArray) -> FloatArray:
        """How far each row is on the favourable side."""
        return self.ensemble.margin(Z)

    def first_flip(
        self, Z: FloatArray, directions: FloatArray, limit: FloatArray, start: FloatArray | None = None
    ) -> FloatArray:
        """Smallest k at which each row is favourable; see :meth:`globece.models.base.Model.first_flip`."""
        first = self._position(Z)
        if first is None:
            return self.ensemble.first_flip(Z, directions, limit, start)
        last = first + len(Z)
        if last > self.done:
            new = slice(self.done, last)
            trees, rule, space = self.ensemble._arrays
            rows.locate(trees, self.ensemble._ranks, rule, space, read_only(self.rows[new]), self.known.part(new))
            self.done = last
        return self.ensemble.follow(Z, directions, limit, start, self.known.part(slice(first, last)))

    def located(self, Z: FloatArray) -> Model:
        """The ensemble with the leaves of other rows."""
        return self.ensemble.located(Z)

    def _position(self, Z: FloatArray) -> int | None:
        """Which of the rows is the first of a view of them; ``None`` for other rows."""
        if not len(Z) or Z.strides != self.rows.strides or Z.shape[1:] != self.rows.shape[1:]:
            return None
        first, rest = divmod(_address(Z) - _address(self.rows), self.rows.strides[0])
        return first if not rest and 0 <= first <= len(self.rows) - len(Z) else None


def _address(array: FloatArray) -> int:
    """Where an array begins in memory."""
    return int(array.__array_interface__["data"][0])


def _batches(n: int) -> list[slice]:
    return [slice(start, min(n, start + BATCH)) for start in range(0, n, BATCH)]


def _plain(matrix: FloatArray) -> FloatArray:
    return read_only(np.ascontiguousarray(matrix, dtype=np.float64))


def _routes(space: FeatureSpace, directions: FloatArray, watches: bool = True) -> Routes:
    """What each direction moves; without ``watches`` any slot may be moved."""
    moves = bundle(space, directions)
    watched = np.full(space.width + len(space.blocks), not watches, np.uint8)
    watched[moves.column] = 1
    for b in np.unique(moves.switch) if watches else ():
        watched[space.blocks[b].columns] = 1
        watched[space.width + b] = 1
    return Routes(
        moves.first_mover.astype(np.int32),
        moves.column.astype(np.int32),
        moves.step,
        moves.first_switch.astype(np.int32),
        moves.switch.astype(np.int32),
        moves.target.astype(np.int32),
        (np.arange(len(moves.bound)) * moves.bound.shape[1]).astype(np.int32),
        moves.bound.ravel(),
        watched,
    )


# -- decisions -----------------------------------------------------------------------------------------------------


def _decision_rule(
    reading: Reading, favourable: Any, threshold: float | None, name: str
) -> tuple[DecisionRule, FloatArray, IntArray]:
    """The decision rule, the leaves' outputs that are summed for it, and the output that each tree adds to."""
    outputs, output = reading.table.outputs, reading.output
    start = reading.start.astype(np.float32 if reading.single else np.float64).astype(np.float64)
    accept = _acceptance(reading, favourable, threshold, name)
    index = 0 if reading.classes is None else reading.classes.index(favourable)
    if accept is not None:
        if len(start) > 1:  # the mean probability of one class
            outputs, start = outputs[:, index : index + 1], start[index : index + 1]
        sign, cut = _smallest_accepted(accept, reading.single)
        start = sign * start
        rule = DecisionRule(start, reading.single, REACHES, 0, 1.0, cut, True, float(start[0]), cut)
        return rule, sign * outputs, np.maximum(output, 0)
    if threshold is not None:
        kind = PROBABILITY_SINGLE if reading.single else PROBABILITY_DOUBLE
        with np.errstate(divide="ignore"):
            odds = float(np.log(threshold) - np.log1p(-threshold))
        return (
            DecisionRule(start, reading.single, kind, index, 1.0, float(threshold), False, 0.0, odds),
            outputs,
            output,
        )
    two = outputs.shape[1] == 2 and reading.rule == LARGEST
    origin = float(start @ _against(index)) if two else 0.0
    rule = DecisionRule(start, reading.single, reading.rule, index, reading.divisor, 0.0, two, origin, 0.0)
    return rule, outputs, output


def _with_slack(rule: DecisionRule, trees: Trees) -> DecisionRule:
    """Add bounds on the rounding errors of the estimator's sums and of the running sum."""
    largest = np.zeros(len(trees.child))
    leaf = trees.child < 0
    largest[leaf] = np.abs(trees.outputs).max(axis=1)[trees.slot[leaf]]
    # an addition is off by at most half a unit in the last place of the partial sum
    sums = np.abs(rule.start).max() + np.cumsum(np.maximum.reduceat(largest, trees.roots))
    unit = SINGLE if rule.single else DOUBLE
    band, drift = 1.01 * unit * float(sums.sum()), 4 * DOUBLE * float(sums[-1])
    if rule.kind == REACHES:
        return rule._replace(band=band, drift=drift)
    scale = 2.0 if rule.scalar else 2.0 / rule.divisor  # two sums are compared
    band, drift = scale * band, scale * drift
    if rule.kind != LARGEST:
        # Rounded probabilities tie, or reach a threshold, within a few units in the last place.
        few, rest = 16 * unit, 1.0 - rule.cut
        band += few / rest if rest > 4 * few else np.inf
    return rule._replace(band=band, drift=drift)


def _against(index: int) -> FloatArray:
    """Weights for the favourable one of two outputs minus the other."""
    return np.array([1.0, -1.0] if index == 0 else [-1.0, 1.0])


def _acceptance(
    reading: Reading, favourable: Any, threshold: float | None, name: str
) -> Callable[[FloatArray], BoolArray] | None:
    """Whether one sum means the favourable outcome, as a function of it; ``None`` if that depends on several sums."""
    value = reading.value
    if reading.classes is None:
        if threshold is None or favourable not in ("above", "below"):
            raise InvalidParameterError(
                f"{name} predicts numbers: favourable must be 'above' or 'below' and threshold a number; "
                f"got favourable={favourable!r}, threshold={threshold!r}"
            )
        below, limit = favourable == "below", threshold
        return lambda sums: np.asarray(value(sums) <= limit if below else value(sums) >= limit)
    if favourable not in reading.classes:
        raise InvalidParameterError(
            f"favourable must be one of {name}'s classes {list(reading.classes)}; got {favourable!r}"
        )
    index = reading.classes.index(favourable)
    if len(reading.start) == 1:
        if threshold is None:
            return lambda sums: np.asarray(reading.second(sums) == (index == 1))
        least = threshold
        if index == 1:
            return lambda sums: np.asarray(value(sums) >= least)
        if reading.single:
            return lambda sums: np.asarray((np.float32(1.0) - value(sums).astype(np.float32)).astype(float) >= least)
        return lambda sums: np.asarray(1.0 - value(sums) >= least)
    if threshold is not None and (reading.output < 0).all() and not reading.shares:
        least = threshold
        return lambda sums: np.asarray(value(sums) >= least)
    return None


def _smallest_accepted(accept: Callable[[FloatArray], BoolArray], single: bool) -> tuple[float, float]:
    """Sign and cut such that ``sign * sum >= cut`` exactly for the accepted sums."""
    kind = np.float32 if single else np.float64
    top = np.array([float(np.finfo(kind).max)])

    def rounded(sums: FloatArray) -> BoolArray:
        with np.errstate(all="ignore"):
            return accept(sums.astype(kind).astype(np.float64))

    low, high = bool(rounded(-top)[0]), bool(rounded(top)[0])
    if low == high:
        return 1.0, -np.inf if low else np.inf
    last = last_alike(rounded, -top, top)
    if high:
        return 1.0, float(np.nextafter(last, np.inf).astype(kind)[0])
    return -1.0, -float(last.astype(kind)[0])


__all__ = ["TreeEnsemble", "native_categories", "supports"]
