"""ReLU networks: exact rays, confirmed by the network itself.

The kernel follows the network in double precision. The network itself mostly computes in single precision, and right
after the first flip rounding may change its decision. So each answer is tried on the network and increased slightly
until the network agrees by more than its rounding error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from globece import rays
from globece.errors import ModelError
from globece.models import devices
from globece.models.base import Allowance, Model
from globece.models.clearance import unit_of_sum
from globece.models.decision import Decision
from globece.models.inputs import Input, Lookup, Number, Steps, centre_of, evaluate
from globece.models.networks import device_flips
from globece.models.networks.clearance import ASKED, NEEDED, Clearance
from globece.models.networks.glance import glance
from globece.models.networks.layers import Layers, Net, compile_net
from globece.models.networks.modules import read
from globece.models.networks.rays import Search, first_flips
from globece.models.networks.reading import Conditions, Reading, conditions, supports
from globece.models.probes import drawn
from globece.models.torch_modules import is_module
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray

BATCH = 65_536  # rows at a time
TYPICAL = 0.25  # the quantile over rows that is a typical rounding error
# Answers are rounded up to this many bits, so that they do not depend on how the ray was subdivided.
BITS, BITS_DOUBLE = 26, 40


@dataclass(frozen=True)
class Wanted:
    """A network asked for one kind of output; see :attr:`globece.models.networks.reading.Reading.ask`."""

    ask: Callable[[FloatArray, str], FloatArray]
    wanted: str

    def __call__(self, V: FloatArray) -> FloatArray:
        return self.ask(V, self.wanted)


@dataclass(frozen=True)
class ReLUNetwork(Model):
    """A piecewise linear network over the encoded matrix, with exact rays.

    Build one with :meth:`from_model`.

    Attributes
    ----------
    space
        The space whose rows it takes.
    inputs
        The network's inputs, as functions of the encoded matrix.
    reading, asks
        The network as it was read, and the conditions of the favourable outcome on its scores.
    layers
        From the encoded matrix to the conditions, in double precision.
    centre
        Subtracted from each encoded column before the kernel: the value that a scaler maps to 0, so that a column that
        is large compared with its spread loses no digits.
    net
        From the centred encoded matrix to the conditions, laid out for the kernel.
    clearance
        From the network's inputs to the conditions, with their rounding errors.
    fill
        Replaces missing numbers, by encoded column.
    decide
        The network's decision about its inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neural_network import MLPClassifier
    >>> from globece.models.inputs import identity
    >>> X = np.array([[0.0], [1.0], [2.0], [5.0]])
    >>> space = FeatureSpace.from_matrix(X, columns=["income"])
    >>> network = MLPClassifier(4, solver="lbfgs", random_state=0).fit(X, [0, 0, 1, 1])
    >>> model = ReLUNetwork.from_model(network, space, identity(1), favourable=1)
    >>> model.favourable(X)
    array([False, False,  True,  True])
    >>> k = model.first_flip(X[:1], np.array([[1.0]]), np.array([[5.0]]))
    >>> bool(1.0 < k[0, 0] < 2.0)
    True
    """

    space: FeatureSpace
    inputs: tuple[Input, ...]
    reading: Reading
    asks: Conditions
    layers: Layers
    centre: FloatArray
    net: Net
    clearance: Clearance
    fill: FloatArray
    decide: Decision
    glancing: bool = False

    exact = True
    allowance = Allowance(4.0, 7_000, 12_000, rounds=1)  # its rays cost more than others': too few for two rounds

    @classmethod
    def from_model(
        cls,
        estimator: Any,
        space: FeatureSpace,
        inputs: Sequence[Input],
        *,
        favourable: Any,
        threshold: float | None = None,
    ) -> ReLUNetwork:
        """Compile a network.

        Parameters
        ----------
        estimator
            A torch module of layers in order, or a fitted MLPClassifier or MLPRegressor.
        space
            The space whose encoded matrix the compiled model takes.
        inputs
            The network's inputs, in order, as functions of the encoded matrix.
        favourable
            A class; or ``"above"`` / ``"below"`` the threshold, for a network that gives a value.
        threshold
            A probability that the favourable class must reach, or the value that the output must.

        Raises
        ------
        ModelError
            If the network cannot be followed exactly; the message says why.
        """
        return cls.from_reading(
            read(estimator),
            space,
            inputs,
            favourable,
            threshold,
            type(estimator).__name__,
            converts=is_module(estimator),
        )

    @classmethod
    def from_reading(
        cls,
        reading: Reading,
        space: FeatureSpace,
        inputs: Sequence[Input],
        favourable: Any,
        threshold: float | None = None,
        name: str = "network",
        *,
        converts: bool = False,
    ) -> ReLUNetwork:
        """Compile a network that has been read; the parameters are those of :meth:`from_model`.

        ``converts`` says that the network converts its inputs to its own precision; others compute in that of their
        columns.
        """
        expected = len(reading.layers.weights[0])
        if expected != len(inputs):
            raise ModelError(f"{name} takes {expected} inputs and its steps give {len(inputs)}")
        asks = conditions(reading, favourable, threshold, name)
        matrix, shift, fill = _affine(space, inputs)
        centre = centre_of(space, inputs)
        scores = reading.layers.after(asks.matrix, asks.shift)
        # exact at the centre: computed by the steps themselves
        there = [0.0 if isinstance(source, Lookup) else source.values(centre[None])[0] for source in inputs]
        centred = scores.before(matrix, np.array(there))
        probability = None if reading.head is None and threshold is None else 0.5 if threshold is None else threshold
        unit = max(0.5 * reading.precision, 0.0 if converts else unit_of_sum(space, inputs))
        clearance = Clearance.of(scores, asks.closed, reading.powers, asks.matrix, unit, probability)
        classes = reading.classes if reading.classes is not None and favourable in reading.classes else None
        wanted = "value" if classes is None else "class" if threshold is None else "probability"
        decide = Decision(Wanted(reading.ask, wanted), name, favourable, threshold, classes)
        layers, net = scores.before(matrix, shift), compile_net(centred, asks.closed)
        return cls(space, tuple(inputs), reading, asks, layers, centre, net, clearance, fill, decide)

    @property
    def name(self) -> str:
        """The network's name."""
        return self.decide.name

    @property
    def unit(self) -> float:
        """Rounding unit of its arithmetic."""
        return self.clearance.unit

    def favourable(self, Z: FloatArray) -> BoolArray:
        """What the network predicts for each row."""
        out = np.empty(len(Z), dtype=bool)
        for start in range(0, len(Z), BATCH):
            part = Z[start : start + BATCH]
            out[start : start + len(part)] = self.decide(self._seen(part), len(part))
        return out

    def margin(self, Z: FloatArray) -> FloatArray:
        """How far each row is on the favourable side, in the network's scores and double precision."""
        out = np.empty(len(Z))
        for start in range(0, len(Z), BATCH):
            part = Z[start : start + BATCH]
            out[start : start + len(part)] = self._scores(self._seen(part)).min(axis=1)
        return out

    @cached_property
    def _scores(self) -> Layers:
        """From the network's inputs to the conditions, which must be positive."""
        return self.reading.layers.after(self.asks.matrix, self.asks.shift)

    @cached_property
    def _noise(self) -> float:
        """Typical rounding error, on synthetic rows: the same whatever rows are explained."""
        rows = drawn(self.space, 64, np.random.default_rng(0))
        _, error = self.clearance(self._seen(np.where(np.isnan(rows), self.fill, rows)))
        known = error[np.isfinite(error)]
        return ASKED * float(np.quantile(known, TYPICAL)) if known.size else 0.0

    def first_flip(
        self, Z: FloatArray, directions: FloatArray, limit: FloatArray, start: FloatArray | None = None
    ) -> FloatArray:
        """Smallest k at which each row is favourable; see :meth:`globece.models.base.Model.first_flip`."""
        device = None if self.glancing else devices.torch_device_for(limit.size, device_flips.WORTHWHILE, self._module)
        if device is not None:
            devices.count(limit.size)
            return device_flips.on(self, device).first_flip(self, Z, directions, limit, start)
        lost = np.isnan(np.where(np.isnan(Z), self.fill, 0.0)).any(axis=1)  # missing values without a replacement
        if self.glancing and start is None:
            ends = np.where(lost, 0.0, limit)
            return glance(self.net, self._centred, Z - self.centre, self.fill - self.centre, directions, ends)
        begin = np.where(lost, limit, 0.0 if start is None else start)
        search = Search(limit, begin, np.zeros(limit.shape), np.full(len(Z), self._noise))
        found = self._move_clear(Z, directions, self._ask_kernel(Z, directions, search), limit)
        if start is not None:  # the kernel looks past the start, but the start itself counts
            i, j = np.nonzero((start > 0.0) & (start <= limit) & ~lost)
            lead, _ = self._leads(Z, directions, i, j, start[i, j])
            stays = lead > 0.0
            found[i[stays], j[stays]] = start[i[stays], j[stays]]
        return found

    def rough(self, points: int) -> ReLUNetwork:
        """The same with only a glance along each ray: for a search, whose result is followed exactly."""
        return replace(self, glancing=True)

    def _move_clear(self, Z: FloatArray, directions: FloatArray, k: FloatArray, limit: FloatArray) -> FloatArray:
        """The kernel's answers, increased until rounding cannot undo them; NaN where that is not possible nearby."""
        i, j = np.nonzero(np.isfinite(k))
        for needed in NEEDED:
            lead, error = self._leads(Z, directions, i, j, k[i, j])
            unclear = ~(lead > 0.0)
            i, j, lead, error = i[unclear], j[unclear], lead[unclear], error[unclear]
            if not i.size:
                return k
            # positions are rounded as well, which puts them off the kernel's ray
            missing = np.maximum(-lead, 0.0) if needed else 0.0
            need = max(needed, ASKED) * error + needed * missing
            k[i, j] = self._search_on(Z, directions, limit, (i, j), k[i, j], need)
            left = np.isfinite(k[i, j])
            k[i[~left], j[~left]] = np.nan  # a ray that flips, but nowhere clearly, is not "no recourse"
            i, j = i[left], j[left]
        k[i, j] = np.nan
        return k

    @cached_property
    def _centred(self) -> FeatureSpace:
        """The space of the centred encoded matrix."""
        features = tuple(
            f if f.is_block else replace(f, low=f.low - self.centre[f.start], high=f.high - self.centre[f.start])
            for f in self.space.features
        )
        return replace(self.space, features=features)

    @property
    def _bits(self) -> int:
        return BITS if self.reading.precision > 1e-10 else BITS_DOUBLE

    def _ask_kernel(self, Z: FloatArray, directions: FloatArray, search: Search) -> FloatArray:
        k, jumped = first_flips(self.net, self._centred, Z - self.centre, self.fill - self.centre, directions, search)
        glided = np.isfinite(k) & ~jumped
        k[glided] = np.minimum(_rounded_up(k[glided], self._bits), search.limit[glided])
        return k

    def _search_on(
        self,
        Z: FloatArray,
        directions: FloatArray,
        limit: FloatArray,
        which: tuple[IntArray, IntArray],
        start: FloatArray,
        need: FloatArray,
    ) -> FloatArray:
        """Where these rays first exceed the need past the start."""
        (some, i), (rows, j) = (np.unique(w, return_inverse=True) for w in which)
        end = limit[np.ix_(some, rows)]
        from_, needs = end.copy(), np.zeros(end.shape)  # a ray that starts at its end is skipped
        from_[i, j], needs[i, j] = start, need
        return self._ask_kernel(Z[rows], directions[some], Search(end, from_, needs))[i, j]

    def _leads(
        self, Z: FloatArray, directions: FloatArray, i: IntArray, j: IntArray, k: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """By how much these rays exceed the rounding error at the exact inputs of the network; and that error."""
        lead, error = np.empty(len(i)), np.empty(len(i))
        for start in range(0, len(i), BATCH):
            part = slice(start, start + BATCH)
            P = self._positions(Z, directions, i[part], j[part], k[part])
            lead[part], error[part] = self.clearance(self._seen(P))
        return lead, error

    def _positions(self, Z: FloatArray, directions: FloatArray, i: IntArray, j: IntArray, k: FloatArray) -> FloatArray:
        """Where these rays are at k; ``i`` must ascend."""
        out = np.empty((len(i), self.space.width))
        edges = np.searchsorted(i, np.arange(len(directions) + 1))
        for d in np.flatnonzero(np.diff(edges)):
            part = slice(edges[d], edges[d + 1])
            out[part] = rays.positions(self.space, Z[j[part]], directions[d], k[part])
        return out

    def _seen(self, Z: FloatArray) -> FloatArray:
        """The network's inputs for these rows, after rounding to the types of their columns."""
        Z = self.space.settle(Z)
        columns = [_copied(source, self.space) for source in self.inputs]
        if None in columns:
            return evaluate(self.inputs, Z)
        return Z if columns == list(range(self.space.width)) else Z[:, columns]  # type: ignore[index]

    @property
    def _module(self) -> Any:
        """The torch module, if it is one."""
        return getattr(self.reading.ask, "module", None)

    @property
    def copied_columns(self) -> tuple[int, ...] | None:
        """The encoded columns that are the network's inputs; ``None`` if its inputs are anything else."""
        columns = [_copied(source, self.space) for source in self.inputs]
        return None if None in columns or self.space.rounding.any() else tuple(columns)  # type: ignore[arg-type]


def _copied(source: Input, space: FeatureSpace) -> int | None:
    """The encoded column that an input is a copy of, if any."""
    if isinstance(source, Number):
        rounded = source.narrow is not None and space.rounding[source.column] == 0.0  # by the network alone
        return source.column if source.forward is None and source.fill is None and not rounded else None
    if isinstance(source, Lookup):
        index = int(source.table.argmax())
        return source.start + index if (source.table == np.eye(len(source.table))[index]).all() else None
    return None


def _rounded_up(k: FloatArray, bits: int) -> FloatArray:
    share, power = np.frexp(k)
    return np.asarray(np.ldexp(np.ceil(np.ldexp(share, bits)), power - bits))


def _affine(space: FeatureSpace, inputs: Sequence[Input]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Inputs as ``Z @ matrix + shift``, and the replacements for missing numbers before that."""
    matrix, shift, fill = np.zeros((space.width, len(inputs))), np.zeros(len(inputs)), np.full(space.width, np.nan)
    names = {c: f.name for f in space.features for c in range(f.start, f.stop)}
    filled: dict[int, set[float | None]] = {}
    for i, source in enumerate(inputs):
        if isinstance(source, Lookup):
            if not np.isfinite(source.table).all():
                raise ModelError(f"a category of {names[source.start]!r} is not encoded as a number")
            matrix[source.start : source.start + len(source.table), i] = source.table
        elif isinstance(source, Steps):
            raise ModelError(f"column {names[source.column]!r} is binned, which is not supported for networks")
        elif source.scale is None or source.shift is None:
            raise ModelError(f"the steps before the network are not linear in column {names[source.column]!r}")
        else:
            matrix[source.column, i], shift[i] = source.scale, source.shift
            filled.setdefault(source.column, set()).add(source.fill)
    for column, values in filled.items():
        if len(values) > 1:
            raise ModelError(f"column {names[column]!r} is filled in two ways")
        (value,) = values
        fill[column] = np.nan if value is None else value
    fill[[c for c in range(space.width) if c not in filled]] = 0.0  # unused, or never missing
    return matrix, shift, fill


__all__ = ["ReLUNetwork", "supports"]
