"""No kernel walks through the doubles, or through whole steps, one by one: the effort for an answer is bounded."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

from globece import FeatureSpace, explain, rays
from globece.models.compiling.adapt import Compiled, as_model
from globece.models.crossings import Crossings, _look_between
from globece.models.inputs import identity
from globece.models.linear.half_spaces import LinearModel
from globece.models.networks.network import ReLUNetwork
from globece.models.passing import above, after_steps, pass_edge

STEPS = st.one_of(
    st.floats(1e-300, 1e300), st.sampled_from([5e-324, 1e-310, 1e-300, 1e-8, 0.1, 1.0, 3.0, 1e8, 1e300, 1.7e308])
)
OFFSETS = st.one_of(
    st.sampled_from([0.0, 5e-324, 1e-310, 1e-8, 0.1, 0.6, 0.6000000000000001, 1.0, 1e8, 1e15, 2.0**53, 1e300]),
    st.floats(-1e8, 1e8),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300),
)
NEIGHBOURS = st.integers(-3, 3)


def _near(x: float, away: int) -> float:
    for _ in range(abs(away)):
        x = float(np.nextafter(x, np.inf if away > 0 else -np.inf))
    return x


def _passed(feature: Any, x: float, step: float, edge: float, k: float) -> bool:
    with np.errstate(over="ignore"):
        (z,) = rays.travel(feature, np.array([x]), step, np.array([k]))
    return bool(z > edge) if step > 0 else bool(z <= edge)


def _line(whole: bool) -> Any:
    space = FeatureSpace.from_matrix(np.array([[0.0], [1.0]]), columns=["x"], ranges="unbounded")
    return replace(space.features[0], whole=whole)


@pytest.mark.parametrize("whole", [False, True])
@settings(max_examples=400, deadline=None)
@given(OFFSETS, STEPS, OFFSETS, NEIGHBOURS, st.booleans(), st.booleans())
@example(0.6, 1.0, 0.6, 0, False, True)  # on the edge
@example(0.6, 0.02, 0.6, 1, False, True)  # within rounding of it
@example(0.0, 1e-300, 0.0, 0, False, True)
@example(1e300, 1.0, 1e300, 0, False, True)
def test_an_edge_is_passed_just_beyond_the_k_given(
    whole: bool, x: float, size: float, offset: float, away: int, down: bool, close: bool
) -> None:
    edge = _near(x if close else offset, away)
    step = -size if down else size
    if (x <= edge) if down else (x > edge):
        return  # it is past the edge already
    feature = _line(whole)
    k = pass_edge(x, step, whole, edge)
    if k == np.inf:
        assert not _passed(feature, x, step, edge, float(np.finfo(float).max))
    else:
        assert not _passed(feature, x, step, edge, k)
        assert _passed(feature, x, step, edge, above(k))


@settings(max_examples=400, deadline=None)
@given(
    STEPS, st.one_of(st.integers(0, 10**9).map(float), st.floats(0.0, 1e18), st.sampled_from([2.0**53, 1e17, 1e300]))
)
@example(1.0, 2.5)  # a range that does not end on a whole step
def test_steps_are_counted_as_rows_take_them(size: float, count: float) -> None:
    k = after_steps(size, count)
    with np.errstate(over="ignore"):
        if count == 0.0:
            assert k == 0.0
        elif k == np.inf:
            assert not np.ceil(np.finfo(float).max * size - 0.5) >= count
        else:
            assert np.ceil(k * size - 0.5) < count
            assert np.ceil(above(k) * size - 0.5) >= count


def test_values_on_the_edges_of_bins_do_not_hang() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"utilisation": np.round(rng.random(300), 1), "income": rng.normal(size=300)})
    y = (X.income - X.utilisation > 0).astype(int)
    bins = KBinsDiscretizer(5, encode="onehot-dense", strategy="uniform", quantile_method="averaged_inverted_cdf")
    steps = ColumnTransformer([("b", bins, ["utilisation"]), ("n", StandardScaler(), ["income"])])
    ex = explain(make_pipeline(steps, LogisticRegression()).fit(X, y), X, rng=0)
    assert ex.provenance.method == "exact"
    assert ex.coverage == 1.0


def _opposed(n_rows: int = 5) -> tuple[LinearModel, Any, np.ndarray]:
    """Two whole-numbered columns of a huge range whose weights cancel along (1, -1)."""
    X = np.column_stack([np.arange(n_rows) * 10**9, np.arange(n_rows)[::-1] * 10**9]).astype(float)
    space = FeatureSpace.from_matrix(X, columns=["a", "b"], whole=["a", "b"])
    model = LinearModel(space, np.array([[1.0, 1.0]]), np.array([-8e9]), np.array([False]), np.zeros(2))
    return model, space, X


def test_many_small_steps_that_cancel_are_left_open_and_searched() -> None:
    model, space, X = _opposed()
    # the two take their steps at different k, so the sum goes up and down by one all along the ray
    near = replace(model, intercepts=np.array([-4e9 - 0.5]), weights=np.array([[1.0, 1.0 - 1e-13]]))
    delta, limit = np.array([[1.0, -1.0 + 1e-12]]), np.full((1, len(X)), 1e9)
    k = near.first_flip(X, delta, limit)
    told = np.isfinite(k)
    assert near.favourable(rays.positions(space, X[told[0]], delta[0], k[told])).all()

    class Cancelling:
        classes_ = np.array([0, 1])

        def predict(self, X: np.ndarray) -> np.ndarray:
            return near.favourable(X).astype(int)

    box = as_model(Cancelling(), space, favourable=1, compile=False)
    asked = Compiled(box, _Undecided(space))  # type: ignore[arg-type]
    far = np.full((2, len(X)), 1e9)
    directions = np.array([[1.0, 0.5], [0.5, 1.0]])
    np.testing.assert_array_equal(asked.first_flip(X, directions, far), box.first_flip(X, directions, far))
    assert box.decide.tally.searched_rays == far.size


class _Undecided:
    """A model that never knows."""

    exact = True
    name = "undecided"

    def __init__(self, space: FeatureSpace) -> None:
        self.space = space

    def first_flip(self, Z: Any, directions: Any, limit: Any, start: Any = None) -> np.ndarray:
        return np.full(np.shape(limit), np.nan)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-2.0, 2.0), st.floats(-2.0, 2.0), st.floats(0.01, 1000.0), st.floats(0.01, 1000.0), st.floats(-3000, 3000)
)
def test_whole_steps_of_any_pace_agree_with_every_step(v: float, w: float, p: float, q: float, b: float) -> None:
    """Stretches of many steps are skipped by bounds; trying each step one by one must give the same."""
    X = np.array([[0.0, 5000.0], [5000.0, 0.0], [17.0, 41.0]])
    space = FeatureSpace.from_matrix(X, columns=["a", "b"], whole=["a", "b"])
    model = LinearModel(space, np.array([[v, w]]), np.array([b]), np.array([False]), np.zeros(2))
    for sign in (1.0, -1.0):
        delta, limit = np.array([p, sign * q]), np.full((1, 3), 6000.0 / min(p, q))
        (k,) = model.first_flip(X, delta[None], limit)
        marks = [after_steps(s, n) for s in (p, q) for n in range(1, 5002)]
        points = np.unique([5e-324, *(above(m) for m in marks)])
        points = points[points <= limit[0, 0]]
        for row, found in zip(X, k, strict=True):
            line = rays.positions(space, np.repeat(row[None], len(points), axis=0), delta, points)
            # the kernel asks for a little more than 0, which rounding may take away again
            margins = model.margin(line)
            surely, maybe = points[margins > 1e-9], points[margins > 0.0]
            first = surely[0] if surely.size else np.inf
            if np.isnan(found):  # a margin of nearly 0, which the model itself decides
                assert (np.abs(margins[points < first]) <= 1e-9).any()
                continue
            assert found <= first
            assert found == np.inf or found in maybe


def test_a_network_over_more_steps_than_can_be_counted_says_so() -> None:
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 10, 200).astype(float), rng.normal(size=200)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = MLPClassifier((6,), max_iter=300, random_state=0).fit(X, (X[:, 0] > 6).astype(int))
    space = FeatureSpace.from_matrix(X, columns=["a", "b"], whole=["a"], ranges="unbounded")
    model = ReLUNetwork.from_model(net, space, identity(2), favourable=1)
    low = X[~model.favourable(X)][:4]
    k = model.first_flip(low, np.array([[1e18, 0.0], [1.0, 0.0]]), np.full((2, len(low)), 50.0))
    assert np.isnan(k[0]).all()
    assert np.isfinite(k[1]).all()


def test_a_black_box_that_flips_as_soon_as_a_row_moves_ends() -> None:
    X = np.array([[0.0], [0.0], [-1.0], [3.0]])
    space = FeatureSpace.from_matrix(X, columns=["x"])
    box = as_model(lambda X: X[:, 0] > 0.0, space, favourable=True)
    (k,) = box.first_flip(X[:3], np.array([[1.0]]), np.full((1, 3), 3.0))
    assert (k[:2] < 1e-9).all()
    assert (k > 0).all()
    assert box.decide.tally.calls < 100


def test_searched_scalars_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    model = LogisticRegression().fit(X, (X.sum(axis=1) > 0).astype(int))
    whole = explain(model, X, rng=0)
    assert not whole.provenance.notes
    known = LinearModel.first_flip

    def forgetful(self: LinearModel, Z: Any, directions: Any, limit: Any, start: Any = None) -> np.ndarray:
        k = known(self, Z, directions, limit, start)
        k[:, ::2] = np.nan
        return k

    monkeypatch.setattr(LinearModel, "first_flip", forgetful)
    part = explain(model, X, rng=0)
    assert part.coverage == 1.0
    n = part.n_affected
    assert f"{(n + 1) // 2} of {n} minimum scalars are searched: the rest are exact" in part.provenance.notes
    assert part.average_cost == pytest.approx(whole.average_cost, rel=1e-3)


@pytest.mark.parametrize("length", [5e-324, 1e-322, 1e-300])
def test_stretches_too_short_to_halve_end_the_search_by_scores(length: float) -> None:
    """Seed 4101453 of the adversary: the grid of such a ray is finer than all numbers."""
    calls = 0

    def ask(which: np.ndarray, k: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        assert calls < 100, "this does not end"
        assert len(which) < 100, "nor does this"
        return np.full(len(k), -1.0)

    stretches = np.array([[0.0, length, -1.0, -1.0, np.inf]])
    finest = np.array([length / 16])
    _look_between(ask, Crossings.none(1), np.array([0]), stretches, finest)
