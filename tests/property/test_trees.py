"""Tree ensembles on numbers made to be awkward: the kernel is its plain twin, and each event comes at the first k."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from globece import rays
from globece.models.doubles import last_alike
from globece.models.inputs import Input, Lookup, Number, Steps
from globece.models.trees.compiling import Category, Conversion, TreeTable
from globece.models.trees.decision_rule import LARGEST, SOFTMAX_DOUBLE, SOFTMAX_SINGLE
from globece.models.trees.ensemble import TreeEnsemble
from globece.models.trees.plain import plain_favourable, plain_first_flip
from globece.models.trees.reading import Reading
from globece.models.trees.slots import LINEAR, WHOLE, flip_at, soonest, value_at
from globece.space import Feature, FeatureSpace

FloatArray = NDArray[np.float64]

numbers = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 1.0, -1.0, 1.5, 2.0, 3.0, 0.1, 1 / 3, 1e-35, -1e-35, 5e-324, 1e9, 1e16, -7.25]),
    st.floats(-1e3, 1e3),
    st.floats(-1e18, 1e18),
    st.integers(-20, 20).map(float),
)
steps = st.one_of(
    st.sampled_from([1.0, -1.0, 2.0, 0.5, 1 / 3, -3.0, 1e-9, -1e9, 0.1, 1e-300]),
    st.floats(-1e6, 1e6).filter(bool),
)


# -- one event -----------------------------------------------------------------------------------------------------


@settings(max_examples=500, deadline=None)
@given(numbers, steps, numbers, st.booleans(), st.one_of(st.none(), st.tuples(numbers, numbers)), st.floats(1e-3, 1e12))
@example(1000.0, 1e-3, 1000.5, False, None, 1e9)  # many scalars round to one value
@example(0.0, 1e-10, 0.0, False, None, 1.0)  # the first change is to a subnormal number
@example(2.0**53, 1.0, 2.0**53 + 4, True, None, 10.0)
@example(-1.0, 1.0, -7e-46, False, None, 5.0)
@example(0.5, 1.0, 3.5, True, (0.0, 9.0), 9.0)
def test_an_event_comes_at_the_first_k(
    x: float, step: float, threshold: float, whole: bool, bounds: tuple[float, float] | None, limit: float
) -> None:
    low, high = (-np.inf, np.inf) if bounds is None else sorted(bounds)
    feature = Feature("f", "continuous", 0, 1, low=low, high=high, whole=whole)

    def above(k: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(rays.travel(feature, np.full(len(k), x), step, k) > threshold)

    kind, ends = (WHOLE if whole else LINEAR), (low, high)
    some = np.array([5e-324, limit / 3, limit])
    there = rays.travel(feature, np.full(3, x), step, some)
    if x > high if step > 0 else x < low:  # led away from its range
        assert (there == x).all()
        return
    origin = float(rays.entered(feature, np.array([x]), step)[0])
    here = [value_at(k, kind, origin, step, *ends, 0.0, 0.0) for k in some.tolist()]
    np.testing.assert_array_equal(here, there)
    if above(np.array([limit]))[0] == (x > threshold):
        return
    last = last_alike(above, np.zeros(1), np.array([limit]))
    k = flip_at(limit, kind, origin, step, *ends, 0.0, threshold)
    assert k == np.nextafter(last, np.inf)[0]
    pace = 1.0 / abs(step) if abs(step) > 1e-300 else 0.0
    assert soonest(kind, origin, step, pace, 0.0, threshold) <= k


@settings(max_examples=200, deadline=None)
@given(numbers, st.floats(-50, 50).filter(bool), numbers)
def test_a_pulled_back_threshold_is_exact(threshold: float, scale: float, shift: float) -> None:
    def answer(z: FloatArray) -> NDArray[np.bool_]:
        with np.errstate(over="ignore"):
            return np.asarray((scale * z + shift).astype(np.float32) <= np.float32(threshold))

    top = np.array([1e200])
    last = last_alike(answer, -top, top)
    assert (answer(last) == answer(-top)).all()
    if last[0] < top[0]:
        assert (answer(np.nextafter(last, np.inf)) != answer(-top)).all()


# -- whole ensembles -----------------------------------------------------------------------------------------------

POOL = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -1.0, -2.5, 0.1, 1 / 3, 1e-35, 1e-9, 7.0])


def random_space(rng: np.random.Generator) -> FeatureSpace:
    """Two continuous features, a whole-numbered one, and two blocks; some with ranges."""
    X = np.zeros((6, 9))
    X[:, 0], X[:, 1] = np.linspace(-3, 7, 6), np.linspace(0, 3, 6)
    X[:, 2] = np.arange(6) - 2.0
    X[np.arange(6), 3 + np.arange(6) % 4] = 1.0
    X[np.arange(6), 7 + np.arange(6) % 2] = 1.0
    names = ["a", "b", "w", "p0", "p1", "p2", "p3", "q0", "q1"]
    ranges = {"a": "unbounded"} if rng.random() < 0.5 else {"b": (0.5, 2.0)}
    groups = {"p": names[3:7], "q": names[7:]}
    return FeatureSpace.from_matrix(X, columns=names, groups=groups, whole=["w"], ranges=ranges)


def random_inputs(rng: np.random.Generator) -> tuple[Input, ...]:
    return (
        Number(0),
        Number(1, lambda z: -2.0 * z + 0.1, -2.0, 0.1),
        Number(2),
        Steps(0, np.array([-1.0, 0.5, 2.0]), rng.choice(POOL, 4), missing=1.0),
        Lookup(3, rng.choice(POOL, 4)),
        Number(4),
        Number(8, lambda z: 1.0 - z, -1.0, 1.0),
        Number(2, fill=3.0),
        Lookup(3, np.array([2.0, 0.0, 1.0, 3.0])),
    )


def random_table(rng: np.random.Generator, n_trees: int, width: int) -> TreeTable:
    """Trees of random shape whose splits repeat thresholds and features, some by category, some with absent values."""
    n_inner = rng.integers(0, 9, n_trees)
    feature, left, right, roots = list[int](), list[int](), list[int](), list[int]()
    for n in n_inner.tolist():
        base = len(feature)
        roots.append(base)
        size = 2 * n + 1
        feature += [-1] * size
        left += [0] * size
        right += [0] * size
        open_, following = [base], base + 1
        for _ in range(n):
            node = open_.pop(int(rng.integers(len(open_))))
            feature[node] = int(rng.integers(0, 9))
            left[node], right[node] = following, following + 1
            open_ += [following, following + 1]
            following += 2
    is_leaf = np.array(feature) < 0
    category = np.where(
        np.isin(feature, [2, 7, 8]) & (rng.random(len(feature)) < 0.5), rng.integers(0, 4, len(feature)), -1
    )
    leaves = rng.choice([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 0.1], (int(is_leaf.sum()), width))
    sets = tuple(
        Category(codes, rng.random(len(codes)) < 0.5, bool(rng.random() < 0.5), bool(rng.random() < 0.5))
        for codes in (np.unique(rng.integers(0, 5, 3)) for _ in range(4))
    )
    return TreeTable(
        np.array(feature),
        rng.choice(POOL, len(feature)),
        rng.random(len(feature)) < 0.5,
        rng.random(len(feature)) < 0.3,
        category,
        np.where(is_leaf, np.cumsum(is_leaf) - 1, left),
        np.where(is_leaf, -1, right),
        np.array(roots),
        leaves,
        Conversion(single=bool(rng.random() < 0.3), absent=(0.5, 1.5)),
        sets,
    )


def random_reading(rng: np.random.Generator) -> Reading:
    n_trees, n_out = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    together = n_out > 1 and rng.random() < 0.5
    table = random_table(rng, n_trees, n_out if together else 1)
    return Reading(
        table,
        np.full(n_trees, -1) if together else rng.integers(0, n_out, n_trees),
        rng.choice([0.0, 0.1, -0.25], n_out),
        bool(rng.random() < 0.5),
        tuple(range(max(2, n_out))),
        lambda sums: 1.0 / (1.0 + np.exp(-sums)),
        lambda sums: sums > 0.0,
        int(rng.choice([LARGEST, SOFTMAX_SINGLE, SOFTMAX_DOUBLE])) if not together else LARGEST,
        float(n_trees) if together else 1.0,
    )


def random_rows(rng: np.random.Generator, n: int) -> FloatArray:
    Z = np.zeros((n, 9))
    Z[:, 0], Z[:, 1] = rng.choice(POOL, n), rng.choice([*POOL, np.nan], n)
    Z[:, 2] = rng.choice([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, np.nan], n)
    Z[np.arange(n), 3 + rng.integers(0, 4, n)] = 1.0
    Z[np.arange(n), 7 + rng.integers(0, 2, n)] = 1.0
    return Z


def random_directions(rng: np.random.Generator, n: int) -> FloatArray:
    """Entries in simple ratios, so that several things happen at one k."""
    D = rng.choice([0.0, 0.0, 1.0, -1.0, 2.0, 0.5, 1 / 3, 3.0], (n, 9))
    D[:, 0] += rng.choice([0.0, 1e-9, 1e6], n, p=[0.8, 0.1, 0.1])
    D[~D.any(axis=1), 0] = 1.0
    return D


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_kernel_is_its_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space, reading = random_space(rng), random_reading(rng)
    assert reading.classes is not None
    favourable = int(rng.integers(len(reading.classes)))
    threshold = None if rng.random() < 0.7 else float(rng.choice([0.0, 0.3, 0.5, 1.0]))
    model = TreeEnsemble.from_reading(reading, space, random_inputs(rng), favourable, threshold)
    Z, directions = random_rows(rng, 6), random_directions(rng, 4)
    np.testing.assert_array_equal(model.favourable(Z), plain_favourable(model.trees, model.rule, space, Z))
    limit = rng.choice([0.0, 0.5, 1.0, 2.0, 10.0, 1e7], (4, 6))
    found = model.first_flip(Z, directions, limit)
    expected = plain_first_flip(model.trees, model.rule, space, Z, directions, limit)
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_kernel_is_its_twin_where_every_split_is_one_comparison(seed: int, ask_again: bool) -> None:
    """Then splits wait as streams; also for rows whose splits are kept from an earlier question."""
    rng = np.random.default_rng(seed)
    space, reading, mixed = random_space(rng), random_reading(rng), random_inputs(rng)
    table = replace(
        reading.table,
        category=np.full(len(reading.table.feature), -1),
        absent=np.zeros(len(reading.table.feature), dtype=bool),
    )
    inputs = (*mixed[:3], Number(0), Number(3), *mixed[5:7], Number(2), Number(6))
    assert reading.classes is not None
    ensemble = TreeEnsemble.from_reading(replace(reading, table=table), space, inputs, reading.classes[0])
    assert not len(ensemble.trees.odd_slot)
    Z, directions = np.ascontiguousarray(random_rows(rng, 9)), random_directions(rng, 4)
    model = ensemble.located(Z) if ask_again else ensemble
    for rows in (slice(0, 3), slice(2, 7), slice(0, 9)):
        limit = rng.choice([0.0, 0.5, 1.0, 2.0, 10.0, 1e7], (4, len(Z[rows])))
        found = model.first_flip(Z[rows], directions, limit)
        expected = plain_first_flip(ensemble.trees, ensemble.rule, space, Z[rows], directions, limit)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(30))
def test_compiled_trees_are_the_table(seed: int) -> None:
    """Each row ends in the leaf that the table itself leads it to."""
    rng = np.random.default_rng(seed)
    space, table, inputs = random_space(rng), random_table(rng, 4, 1), random_inputs(rng)
    reading = Reading(table, np.zeros(4, dtype=int), np.zeros(1), classes=None)
    model = TreeEnsemble.from_reading(reading, space, inputs, "above", 0.0)
    Z = random_rows(rng, 60)
    sums = np.zeros(len(Z))
    with np.errstate(all="ignore"):
        seen = np.column_stack([table.conversion(i.values(Z)) for i in inputs])
    for root in table.roots:
        for row in range(len(Z)):
            node = root
            while table.feature[node] >= 0:
                node = table.left[node] if goes_left(table, node, seen[row, table.feature[node]]) else table.right[node]
            sums[row] += table.outputs[table.left[node], 0]
    np.testing.assert_array_equal(model.margin(Z) >= 0, sums >= 0)
    np.testing.assert_allclose(model.margin(Z), np.where(sums == 0, 0.0, sums), atol=1e-12)


def goes_left(table: TreeTable, node: int, seen: float) -> bool:
    if table.category[node] >= 0:
        split = table.categories[table.category[node]]
        if np.isnan(seen):
            return split.missing_left
        code = int(seen) if seen >= 0 else -1
        return bool(split.left[split.codes == code][0]) if code in split.codes else split.other_left
    low, high = table.conversion.absent
    if np.isnan(seen) or (table.absent[node] and low <= seen <= high):
        return bool(table.missing_left[node])
    return bool(seen <= table.edge[node])
