"""Check a compiled model against the original, on rows where the two would differ if something had been misread.

A misread model often agrees on the rows it was given. So the original is called on rows built for this: columns
exchanged between rows, every pair of categories, values between the observed ends and the ends of the ranges, missing
values, and points on both sides of the compiled model's boundary. Where the original has scores, they must rise with
the compiled margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from globece import rays
from globece.errors import ModelError
from globece.models import probes
from globece.models.base import Model
from globece.models.blackbox import BlackBox
from globece.models.clearance import SINGLE
from globece.models.compiling.compose import NotCompiled
from globece.models.linear.half_spaces import LinearModel
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray

BLUR = 1e-6  # share of a typical margin within which the two may round differently
SAMPLE = 256  # of the rows given, from which others are built
MIXED_ROWS = 256  # rows with columns from different rows, or drawn independently
PAIR_ROWS = 160  # rows for pairs of categories
RAY_ROWS, RAY_DIRECTIONS, RAY_LIMIT = 8, 4, 3.0
CLOSE_BY = 1e-4  # relative distance of a point next to the boundary
SCORED = 320  # rows whose scores are compared
# Share of the largest score by which a score may fall by rounding; sigmoids in single precision are less precise.
FALLS, FALLS_SINGLE = 1e-9, 8.0 * SINGLE
SPOT_RAYS = 64  # rays of a result that are checked against the original
SPOT_POINTS = 6  # points on each of them, and one just past every switch


def check(core: Model, box: BlackBox, rows: FloatArray | None = None, outcomes: BoolArray | None = None) -> None:
    """Compare a compiled model with the original; raise :class:`NotCompiled` if they differ.

    Parameters
    ----------
    core
        The compiled model.
    box
        The original.
    rows
        Encoded rows of the user's; drawn from the space by default.
    outcomes
        What the original predicts for these rows, if that is known already.
    """
    rng = np.random.default_rng(0)
    if rows is not None and len(rows):
        known = box.favourable(rows) if outcomes is None else outcomes
        seen = box.space.settle(rows)
        _compare("the rows given", core, seen, core.margin(seen), known)
        some = rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(int)]
        some = np.vstack([some, rows[_missing_rows(rows)]])
    else:
        some = probes.drawn(box.space, 64, rng)
    mixed = _mixed(box.space, some, rng)
    built = np.vstack([mixed, _pairs(box.space, some, rng), *_along_rays(core, np.vstack([some, mixed]), rng)])
    seen = box.space.settle(built)
    margin = core.margin(seen)
    try:
        expected = box.favourable(built)
    except ModelError as error:
        raise NotCompiled(f"it does not take rows that a direction may lead to: {error}") from error
    _compare("the rows built to check it", core, seen, margin, expected)
    asked = _spread(np.arange(len(built)), SCORED)
    try:
        scores = box.decide.scores(box.space.decode(built[asked]), len(asked))
    except ModelError:
        return  # no scores to compare
    unsure = blur(core, seen[asked], margin[asked])
    falls = FALLS_SINGLE if box.is_single else FALLS
    if scores and not any(_rises(margin[asked], s, unsure, falls) for s in scores):
        raise NotCompiled("compiled, it ranks rows differently: its margin does not rise with the model's score")


def _compare(what: str, core: Model, Z: FloatArray, margin: FloatArray, expected: BoolArray) -> None:
    wrong = (margin > 0.0) != expected
    some = _spread(np.arange(len(Z)), 64)  # the sign of the margin and `favourable` agree except for ties
    wrong[some] |= core.favourable(Z[some]) != expected[some]
    if not wrong.any():
        return
    # right on the boundary the two may round differently; the original decides there
    differs = np.flatnonzero(wrong & ~(np.abs(margin) <= blur(core, Z, margin)))
    if differs.size:
        raise NotCompiled(f"compiled, it gives {differs.size:,} of {len(Z):,} of {what} another outcome")


def _rises(margin: FloatArray, score: FloatArray, unsure: FloatArray, falls: float = FALLS) -> bool:
    """Whether a score never falls where the margin rises, up to rounding."""
    known = np.isfinite(margin) & np.isfinite(score)
    order = np.flatnonzero(known)[np.argsort((margin + unsure)[known], kind="stable")]
    if len(order) < 2:
        return True
    m, s, slack = margin[order], score[order], unsure[order]
    most = np.maximum.accumulate(s)
    before = np.searchsorted(m + slack, m - slack, side="left") - 1  # the last row with a clearly smaller margin
    above = np.where(before >= 0, most[np.maximum(before, 0)], -np.inf)
    larger = np.maximum(np.abs(s), np.abs(above, where=before >= 0, out=np.zeros(len(s))))
    close = 1e-6 * larger + falls * np.abs(s).max()
    return bool((above - s <= close).all())


# -- building rows ----------------------------------------------------------------------------------------------------


def _missing_rows(rows: FloatArray) -> IntArray:
    """Indices of rows with missing values: one for every column that has any."""
    columns = np.flatnonzero(np.isnan(rows).any(axis=0))
    return np.unique(np.isnan(rows[:, columns]).argmax(axis=0)) if columns.size else np.zeros(0, np.int64)


def _mixed(space: FeatureSpace, some: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Rows with columns from different rows, and rows with categories and values drawn from the whole space."""
    n = min(MIXED_ROWS, 8 * len(some))
    exchanged = some[rng.integers(len(some), size=n // 2)]
    for f in space.features:
        exchanged[:, f.columns] = some[rng.integers(len(some), size=len(exchanged))][:, f.columns]
    drawn = probes.drawn(space, n - n // 2, rng)
    kept = rng.random((len(drawn), len(space.scalars))) < 0.5  # half of the numbers come from a real row
    base = some[rng.integers(len(some), size=len(drawn))]
    for i, f in enumerate(space.scalars):
        drawn[kept[:, i], f.start] = base[kept[:, i], f.start]
    return np.vstack([exchanged, drawn])


def _pairs(space: FeatureSpace, some: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Rows for pairs of categories: for all pairs of all columns if they are few, for some of them otherwise."""
    blocks = [f for f in space.blocks if f.width > 1]
    out = some[rng.integers(len(some), size=PAIR_ROWS)]
    codes = (
        np.column_stack([probes.codes(f, PAIR_ROWS, rng) for f in blocks]) if blocks else np.zeros((PAIR_ROWS, 0), int)
    )
    pairs = [(i, j) for i in range(len(blocks)) for j in range(i)]
    used = 0
    for i, j in rng.permutation(pairs)[:500] if pairs else ():
        n_i, n_j = blocks[i].width, blocks[j].width
        met = np.zeros(n_i * n_j, dtype=bool)
        met[codes[:, i] * n_j + codes[:, j]] = True
        left = rng.permutation(np.flatnonzero(~met))[: PAIR_ROWS // 2 - used]
        mine = slice(PAIR_ROWS // 2 + used, PAIR_ROWS // 2 + used + len(left))
        codes[mine, i], codes[mine, j] = left // n_j, left % n_j
        used += len(left)
        if used >= PAIR_ROWS // 2:
            break
    for i, f in enumerate(blocks):
        out[:, f.columns] = 0.0
        out[np.arange(len(out)), f.start + codes[:, i]] = 1.0
    return out if blocks else out[:0]


def _along_rays(core: Model, some: FloatArray, rng: np.random.Generator) -> list[FloatArray]:
    """Points on random rays: right before and after the compiled model's first flip, and on the way there."""
    space = core.space
    rows = some[_spread(np.arange(len(some)), 16 * RAY_ROWS)]
    rows = rows[~core.favourable(rows)]
    if not len(rows) or not space.movable:
        return []
    rows = rows[rng.integers(len(rows), size=min(RAY_ROWS, len(rows)))]
    D = np.array([_direction(space, rng) for _ in range(RAY_DIRECTIONS)])
    limit = np.full((len(D), len(rows)), RAY_LIMIT)
    flips = core.first_flip(rows, D, limit)
    found = []
    three = np.vstack([rows, rows, rows])
    for delta, k in zip(D, flips, strict=True):
        end = np.where(np.isfinite(k), k, RAY_LIMIT)
        scalars = np.concatenate([rng.random(len(k)) * end, (1.0 - CLOSE_BY) * end, (1.0 + CLOSE_BY) * end])
        found.append(rays.positions(space, three, delta, scalars))
    return found


def _direction(space: FeatureSpace, rng: np.random.Generator) -> FloatArray:
    """A random direction over a random number of features."""
    delta = np.zeros(space.width)
    movable = list(space.movable)
    for i in rng.permutation(len(movable))[: int(rng.integers(1, len(movable) + 1))]:
        f = movable[i]
        if f.is_block:
            delta[f.columns] = rng.random(f.width)
        else:
            delta[f.start] = (f.sense or rng.choice([-1.0, 1.0])) * rng.random() * (f.observed[1] - f.observed[0])
    return delta


# -- checking a result ------------------------------------------------------------------------------------------------


def spot_check(
    model: Any, Z: FloatArray, directions: FloatArray, scalars: FloatArray, limit: FloatArray, *, most: int = SPOT_RAYS
) -> str | None:
    """Check the original on points before the minimum scalars of the compiled model.

    Parameters
    ----------
    model
        A :class:`globece.models.compiling.adapt.Compiled`, or anything with its ``favourable`` (of the original) and
        ``margin`` (of the compiled model).
    Z, directions
        Encoded rows that are unfavourable to the original, ``(n, width)``, and directions, ``(m, width)``.
    scalars
        Minimum scalars of these rows along these directions, ``(m, n)``; ``inf`` where there is none.
    limit
        How far the rays were followed, ``(m, n)``.
    most
        Number of rays to check; spread evenly, and the same for the same arguments.

    Returns
    -------
    str or None
        Description of a disagreement: a point clearly before the minimum scalar that is favourable to the original.
        ``None`` if the two agree.
    """
    which = _some_rays(scalars, limit, most)
    ray, P, k = _points_before(model.space, Z, directions, np.where(np.isfinite(scalars), scalars, limit), which)
    if not len(P):
        return None
    early = np.flatnonzero(model.favourable(P))
    if early.size:
        seen = model.space.settle(P)  # a narrow column may round a point past the boundary
        margin = model.margin(seen)
        early = early[~(margin[early] > -blur(model, seen, margin)[early])]
    if not early.size:
        return None
    first = early[0]
    i, j = divmod(int(which[ray[first]]), len(Z))
    found = f"not before {scalars[i, j]:.6g}" if np.isfinite(scalars[i, j]) else f"nowhere up to {limit[i, j]:.6g}"
    return (
        f"compiled, {model.name} misses outcomes: along direction {i}, affected input {j} is favourable to the model "
        f"itself at k = {k[first]:.6g}, and to the compiled one {found} "
        f"({len(np.unique(ray[early])):,} of {len(which):,} rays differ)"
    )


def _some_rays(scalars: FloatArray, limit: FloatArray, most: int) -> IntArray:
    """Flat indices into ``(m, n)`` of some rays, at most half of them without a minimum scalar if possible."""
    ends = np.where(np.isfinite(scalars), scalars, limit).ravel()
    usable = np.isfinite(ends) & (ends > 0.0)
    found = np.isfinite(scalars.ravel())
    with_, without = np.flatnonzero(usable & found), np.flatnonzero(usable & ~found)
    n_without = min(len(without), max(most // 2, most - len(with_)))
    return np.sort(np.concatenate([_spread(with_, most - n_without), _spread(without, n_without)]))


def _spread(indices: IntArray, n: int) -> IntArray:
    """At most ``n`` of these, evenly spread."""
    if len(indices) <= n:
        return indices
    return indices[np.linspace(0, len(indices) - 1, n).astype(np.int64)] if n else indices[:0]


def _points_before(
    space: FeatureSpace, Z: FloatArray, directions: FloatArray, ends: FloatArray, which: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Points on these rays before their ends: the ray of each, its position, and its scalar."""
    rng = np.random.default_rng(0)
    n, ray, P, ks = len(Z), [], [], []
    for i in np.unique(which // n):
        mine = np.flatnonzero(which // n == i)
        rows = Z[which[mine] % n]
        end = ends[i, which[mine] % n][:, None]
        share = np.hstack([rng.random((len(mine), SPOT_POINTS - 1)), np.full((len(mine), 1), 1.0 - CLOSE_BY)])
        past = np.nextafter(rays.row_switches(space, rows, directions[i]), np.inf)
        k = np.hstack([share * end, np.where(past < end * (1.0 - 1e-9), past, 0.0)])
        at, column = np.nonzero(k)
        ray.append(mine[at])
        ks.append(k[at, column])
        P.append(rays.positions(space, rows[at], directions[i], ks[-1]))
    if not P:
        return np.zeros(0, np.int64), np.empty((0, space.width)), np.zeros(0)
    return np.concatenate(ray), np.vstack(P), np.concatenate(ks)


def blur(model: Any, P: FloatArray, margin: FloatArray) -> FloatArray:
    """How far from 0 each margin may be and still change its sign by rounding."""
    core = getattr(model, "core", model)
    size = np.abs(margin[np.isfinite(margin)])
    typical = float(np.median(size)) if size.size else 0.0
    return np.maximum(BLUR * typical, 4.0 * _rounding(core, P))


def _rounding(core: Any, P: FloatArray) -> FloatArray:
    """Largest effect of the model's rounding on the margin of each row."""
    if isinstance(core, LinearModel):
        return np.asarray(core.rounding(P).max(axis=1))
    if hasattr(core, "clearance"):
        return np.asarray(np.nan_to_num(core.clearance(core._seen(P))[1]))
    band = getattr(getattr(core, "rule", None), "band", 0.0)
    return np.full(len(P), band if np.isfinite(band) else 0.0)
