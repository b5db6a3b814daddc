"""A compiled model against the original: asked where the two would differ if the compiler had misread something.

A model that was misread often agrees on the rows it was given. So the original is asked about rows built for this:
columns exchanged between rows, every pair of categories, values between the observed ends and the ends of the ranges,
missing values, and points on both sides of the boundary that the compiled model claims. Where the original gives
scores, they must rise with the compiled margin, whatever lies between the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from globece import rays
from globece.models.linear import LinearModel
from globece.space import FeatureSpace, FloatArray, IntArray

BLUR = 1e-6  # share of the largest margin within which the two may round differently
SPOT_RAYS = 192  # rays of a result that the original is asked about
SPOT_POINTS = 6  # points on each of them, and one just past every switch


def spot_check(
    model: Any, Z: FloatArray, directions: FloatArray, scalars: FloatArray, limit: FloatArray, *, most: int = SPOT_RAYS
) -> str | None:
    """Ask the original about points before the minimum scalars that the compiled model gave.

    Parameters
    ----------
    model
        A :class:`globece.models.adapt.Compiled`, or whatever has its ``favourable`` (the original's word) and
        ``margin`` (the compiled one's).
    Z, directions
        Encoded rows that the original does not favour, ``(n, width)``, and directions, ``(m, width)``.
    scalars
        Minimum scalars of these rows along these directions, ``(m, n)``; ``inf`` where there is none.
    limit
        How far the rays were followed, ``(m, n)``.
    most
        Rays to ask about; spread evenly over all of them, and the same for the same arguments.

    Returns
    -------
    str or None
        What the original says otherwise: it favours a point that lies clearly before the minimum scalar. ``None`` if
        the two agree.
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
    said = f"not before {scalars[i, j]:.6g}" if np.isfinite(scalars[i, j]) else f"nowhere up to {limit[i, j]:.6g}"
    return (
        f"compiled, {model.name} misses outcomes: along direction {i} the model itself favours affected input {j} at "
        f"k = {k[first]:.6g}, the compiled one {said} ({len(np.unique(ray[early])):,} of {len(which):,} rays differ)"
    )


def _some_rays(scalars: FloatArray, limit: FloatArray, most: int) -> IntArray:
    """Places of some rays in ``(m, n)``, half of them at most from those without an answer."""
    ends = np.where(np.isfinite(scalars), scalars, limit).ravel()
    usable = np.isfinite(ends) & (ends > 0.0)
    found = np.isfinite(scalars.ravel())
    with_, without = np.flatnonzero(usable & found), np.flatnonzero(usable & ~found)
    n_without = min(len(without), max(most // 2, most - len(with_)))
    return np.sort(np.concatenate([_spread(with_, most - n_without), _spread(without, n_without)]))


def _spread(places: IntArray, n: int) -> IntArray:
    if len(places) <= n:
        return places
    return places[np.linspace(0, len(places) - 1, n).astype(np.int64)] if n else places[:0]


def _points_before(
    space: FeatureSpace, Z: FloatArray, directions: FloatArray, ends: FloatArray, which: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Points on these rays before their ends: the ray of each, where it is, and its scalar."""
    rng = np.random.default_rng(0)
    n, ray, P, ks = len(Z), [], [], []
    for i in np.unique(which // n):
        mine = np.flatnonzero(which // n == i)
        rows = Z[which[mine] % n]
        end = ends[i, which[mine] % n][:, None]
        share = np.hstack([rng.random((len(mine), SPOT_POINTS - 1)), np.full((len(mine), 1), 1.0 - 1e-4)])
        past = np.nextafter(rays.row_switches(space, rows, directions[i]), np.inf)
        k = np.hstack([share * end, np.where(past < end * (1.0 - 1e-9), past, 0.0)])
        at, place = np.nonzero(k)
        ray.append(mine[at])
        ks.append(k[at, place])
        P.append(rays.positions(space, rows[at], directions[i], ks[-1]))
    if not P:
        return np.zeros(0, np.int64), np.empty((0, space.width)), np.zeros(0)
    return np.concatenate(ray), np.vstack(P), np.concatenate(ks)


def blur(model: Any, P: FloatArray, margin: FloatArray) -> FloatArray:
    """How far from 0 a margin may be and still be on the other side by rounding, for each of these rows."""
    core = getattr(model, "core", model)
    size = np.abs(margin[np.isfinite(margin)])
    unit = 2.0**-23 if core.space.rounding.any() else 2.0**-52
    return np.maximum(BLUR * float(size.max(initial=0.0)), 64.0 * _rounding(core, P, unit))


def _rounding(core: Any, P: FloatArray, unit: float) -> FloatArray:
    """What one rounding, in every place, may do to the margin of each row."""
    if isinstance(core, LinearModel):
        size = np.nan_to_num(np.abs(P)) @ np.abs(core.weights).T + np.abs(core.intercepts)
        return np.asarray(unit * size.max(axis=1))
    if hasattr(core, "layers") and hasattr(core, "reading"):
        V = np.where(np.isnan(P), core.fill, P)
        layers = core.layers
        for weight, bias, leak in zip(layers.weights, layers.biases, layers.leaks, strict=False):
            V = V @ weight + bias
            V = np.where(V > 0.0, V, leak * V)
        size = np.nan_to_num(np.abs(V)) @ np.abs(layers.weights[-1]) + np.abs(layers.biases[-1])
        return np.asarray(max(unit, core.reading.precision) * size.max(axis=1))
    band = getattr(getattr(core, "verdict", None), "band", 0.0)
    return np.full(len(P), band if np.isfinite(band) else 0.0)
