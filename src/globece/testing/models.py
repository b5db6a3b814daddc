"""The contract of a model: subclass :class:`ModelContract`, define one fixture, and get the tests.

::

    class TestMyModel(ModelContract):
        @pytest.fixture
        def case(self):
            return ModelCase(model, rows)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from globece import rays
from globece.costs import CostModel
from globece.errors import check_count, check_instance, check_matrix, check_number, check_seed, wrong
from globece.models.base import Model
from globece.space import FeatureSpace, FloatArray

GRID = 20_000


@dataclass(frozen=True)
class ModelCase:
    """A model, encoded rows to try it on, and how much effort to spend.

    Attributes
    ----------
    model
        Anything that implements :class:`globece.models.base.Model`. Its ``favourable`` decides about outcomes.
    rows
        Encoded rows; some of them should be unfavourable.
    n_directions, n_rays
        Number of random directions, and of rays on each that are compared with a dense grid.
    precision
        How much later than on the grid a flip may be reported, relative to k; more than 0 for single-precision models.
    """

    model: Model
    rows: FloatArray
    n_directions: int = 20
    n_rays: int = 10
    precision: float = 1e-9

    def __post_init__(self) -> None:
        space = getattr(self.model, "space", None)
        if not callable(getattr(self.model, "first_flip", None)) or not isinstance(space, FeatureSpace):
            raise wrong("model", "a Model with a space and a first_flip method", self.model)
        check_matrix("rows", self.rows, space.width)
        check_count("n_directions", self.n_directions, high=1_000_000)
        check_count("n_rays", self.n_rays)
        check_number("precision", self.precision, high=1.0)


def random_directions(case: ModelCase, seed: int = 0) -> FloatArray:
    """Valid directions of the same nominal cost that move one to four features of any kind."""
    check_instance("case", case, ModelCase)
    space, rng = case.model.space, np.random.default_rng(check_seed("seed", seed))
    movable = space.movable
    D = np.zeros((case.n_directions, space.width))
    for delta in D:
        for i in rng.choice(len(movable), size=min(len(movable), int(rng.integers(1, 5))), replace=False):
            f = movable[i]
            if f.is_block:
                delta[f.columns] = rng.random(f.width)
            else:
                delta[f.start] = (f.sense or rng.choice([-1.0, 1.0])) * rng.random() * (f.observed[1] - f.observed[0])
    return CostModel.bins(space).normalise(D, 2.0)


class ModelContract:
    """Tests for every model. Needs a fixture ``case`` that returns a :class:`ModelCase`."""

    def test_outcomes_are_booleans_and_margins_agree(self, case: ModelCase) -> None:
        outcome, margin = case.model.favourable(case.rows), case.model.margin(case.rows)
        assert outcome.shape == margin.shape == (len(case.rows),)
        assert outcome.dtype == bool
        clear = np.abs(margin) > 1e-6 * np.abs(margin).max()
        np.testing.assert_array_equal(outcome[clear], margin[clear] > 0)

    def test_inputs_are_not_changed(self, case: ModelCase) -> None:
        Z, D = case.rows.copy(), random_directions(case)[:2]
        Z.setflags(write=False)
        D.setflags(write=False)
        case.model.favourable(Z)
        case.model.first_flip(Z, D, np.full((2, len(Z)), 3.0))
        np.testing.assert_array_equal(Z, case.rows)

    def test_reported_scalars_flip_and_no_earlier_one_does(self, case: ModelCase) -> None:
        model, cost = case.model, CostModel.bins(case.model.space)
        affected = case.rows[~model.favourable(case.rows)]
        assert len(affected), "the case needs rows with the unfavourable outcome"
        rng, found = np.random.default_rng(1), 0
        for delta in random_directions(case):
            limit = rays.horizon(cost, affected, delta, 10.0)
            (k,) = model.first_flip(affected, delta[None], limit[None])
            assert not np.isnan(k).any()
            assert (k > 0).all()
            assert ((k <= limit) | np.isinf(k)).all()
            hit = np.isfinite(k)
            found += int(hit.sum())
            after = rays.positions(model.space, affected[hit], delta, k[hit])
            assert model.favourable(after).all(), "a reported scalar does not flip"
            if model.exact:
                for i in rng.choice(len(affected), size=min(case.n_rays, len(affected)), replace=False):
                    self._nothing_earlier(case, affected[i], delta, float(limit[i]), float(k[i]))
        assert found, "no direction flipped anybody: choose a case with recourse"

    def _nothing_earlier(self, case: ModelCase, row: FloatArray, delta: FloatArray, limit: float, k: float) -> None:
        end = min(limit, k * (1.0 - case.precision)) if np.isfinite(k) else limit
        # a dense grid, and just past every switch of this row
        points = np.concatenate([
            np.linspace(0.0, end, GRID + 1)[1:],
            np.nextafter(rays.row_switches(case.model.space, row[None], delta)[0], np.inf),
        ])  # fmt: skip
        points = points[(points < k * (1.0 - case.precision)) & (points <= limit)]
        if points.size:
            line = rays.positions(case.model.space, np.repeat(row[None], points.size, axis=0), delta, points)
            flips = case.model.favourable(line)
            assert not flips.any(), f"flips at {points[flips.argmax()]!r}, reported at {k!r}"

    def test_rows_and_directions_are_independent(self, case: ModelCase) -> None:
        Z, D = case.rows[:40], random_directions(case)[:3]
        limit = np.full((3, len(Z)), 2.5)
        whole = case.model.first_flip(Z, D, limit)
        reverse = case.model.first_flip(Z[::-1], D[::-1], limit)[::-1, ::-1]
        single = np.array([[case.model.first_flip(z[None], d[None], limit[:1, :1])[0, 0] for z in Z[:5]] for d in D])
        np.testing.assert_allclose(reverse, whole, rtol=1e-9)
        np.testing.assert_allclose(single, whole[:, :5], rtol=1e-9)

    def test_a_limit_only_cuts(self, case: ModelCase) -> None:
        Z, D = case.rows[:60], random_directions(case)[:3]
        far = case.model.first_flip(Z, D, np.full((3, len(Z)), 4.0))
        near = case.model.first_flip(Z, D, np.full((3, len(Z)), 1.0))
        if case.model.exact:
            np.testing.assert_array_equal(near, np.where(far <= 1.0, far, np.inf))

    def test_a_start_passes_over_what_lies_before(self, case: ModelCase) -> None:
        Z, D = case.rows[:30], random_directions(case)[:4]
        limit, space = np.full((len(D), len(Z)), 4.0), case.model.space
        first = case.model.first_flip(Z, D, limit)
        close = case.precision if case.model.exact else 1e-5
        # starting at the first flip, or before it, gives the same answer
        for before in (np.where(np.isfinite(first), first, 1.0), np.where(np.isfinite(first), 0.5 * first, 1.0)):
            np.testing.assert_allclose(case.model.first_flip(Z, D, limit, before), first, rtol=2 * close, atol=1e-300)
        begin = np.random.default_rng(2).uniform(0.5, 3.0, limit.shape)
        later = case.model.first_flip(Z, D, limit, begin)
        assert (later >= begin).all()
        for delta, start, k in zip(D, begin, later, strict=True):
            hit = np.isfinite(k)
            assert case.model.favourable(rays.positions(space, Z[hit], delta, k[hit])).all()
            if case.model.exact:
                for i in range(0, len(Z), 7):
                    points = np.linspace(start[i], min(k[i] * (1.0 - case.precision), 4.0), GRID // 10)
                    points = points[points < k[i] * (1.0 - case.precision)]
                    line = rays.positions(space, np.repeat(Z[i : i + 1], points.size, axis=0), delta, points)
                    assert not case.model.favourable(line).any()
