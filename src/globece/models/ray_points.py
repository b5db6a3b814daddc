"""The points at which rays are tried where nothing is known about a model: a grid, and just past each switch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from globece import rays
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray

SMALLEST = 5e-324  # the smallest k at which a row has moved


@dataclass(frozen=True, slots=True)
class RayPoints:
    """All rows along all directions, and the points to try on each ray; ordered by direction, then row.

    Attributes
    ----------
    space, Z, directions
        The space, encoded rows, and directions.
    glides
        Whether a continuous or ordinal feature moves. ``(rays,)``
    switches
        The first k past each switch, or into a range; ``inf`` where there is none. ``(rays, jumps)``
    points
        Ascending, padded with ``inf``. ``(rays, points)``
    """

    space: FeatureSpace
    Z: FloatArray
    directions: FloatArray
    glides: BoolArray
    switches: FloatArray
    points: FloatArray

    @classmethod
    def of(
        cls,
        space: FeatureSpace,
        Z: FloatArray,
        directions: FloatArray,
        limit: FloatArray,
        grid: int,
        scalars: FloatArray | None,
    ) -> RayPoints:
        n, n_rays = len(Z), limit.size
        most = max((sum(1 for _ in rays.switches(space, delta)) for delta in directions), default=0)
        past = np.full((n_rays, most), np.inf)
        glides, enters = np.zeros(n_rays, dtype=bool), np.zeros(n_rays, dtype=bool)
        for i, delta in enumerate(directions):
            mine = slice(i * n, (i + 1) * n)
            bounds = rays.row_switches(space, Z, delta)
            past[mine, : bounds.shape[1]] = np.nextafter(bounds, np.inf)
            glides[mine] = any(True for _ in rays.movers(space, delta))
            for f, step in rays.movers(space, delta):
                x = Z[:, f.start]
                enters[mine] |= x < f.low if step > 0 else x > f.high
        if enters.any():  # a row that starts outside of a range enters it at once
            past = np.hstack([past, np.where(enters, SMALLEST, np.inf)[:, None]])
        end = limit.reshape(-1, 1)
        if scalars is not None:
            points = np.broadcast_to(scalars, (n_rays, len(scalars)))
        elif glides.any():
            steps = np.where(glides[:, None], end * np.linspace(0.0, 1.0, grid + 1)[1:], np.inf)
            points = np.hstack([past, steps])
        else:
            points = past
        points = np.sort(np.where(points <= end, points, np.inf), axis=1)
        return cls(space, Z, directions, glides, past, points)

    def past_switches(self, points: FloatArray) -> BoolArray:
        """Which of these points are just past a switch; a row of them for each ray."""
        return np.asarray(np.isfinite(points) & (points[:, :, None] == self.switches[:, None, :]).any(axis=2))

    def positions(self, which: IntArray, k: FloatArray) -> FloatArray:
        """Where these rays are at k; ``which`` must ascend."""
        n = len(self.Z)
        out = np.empty((len(which), self.space.width))
        edges = np.searchsorted(which, np.arange(len(self.directions) + 1) * n)
        for i in np.flatnonzero(np.diff(edges)):
            part = slice(edges[i], edges[i + 1])
            out[part] = rays.positions(self.space, self.Z[which[part] % n], self.directions[i], k[part])
        return out
