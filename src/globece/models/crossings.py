"""Where scores along rays first reach zero: few points tell, where scores change gradually.

A ray is asked at points ever further apart, and just past its switches, until one is favourable. Between two points
that are not, it is asked again only where scores change so fast, there or nearby, that they might reach zero, and no
finer than a search without scores would. Root finding then closes in. Each step asks about all rays that are open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize.elementwise import find_root

from globece.space import BoolArray, FloatArray, IntArray

Ask = Callable[[IntArray, FloatArray], FloatArray]  # rays, and where on each: scores, at least 0 where favourable

STEEPEST = 2.0  # scores may change so many times faster between two points than on average there or next to it
SPARSEST = 16  # a ray that is never favourable is asked at so many points at least,
CLOSEST = 4  # or at every fourth point of a coarse grid
TOGETHER = 64  # rows asked at once, where fewer would be a call each
HALVINGS = 20  # of a stretch: far more than there are points on a ray
ITERATIONS = 60  # of root finding


def _far_out() -> np.errstate:
    """Numbers may overflow along very short stretches, and where scores are very large."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


@dataclass(eq=False)
class Crossings:
    """Between which points each ray first becomes favourable, and its scores there; ``inf`` where it never does."""

    low: FloatArray
    high: FloatArray
    before: FloatArray
    after: FloatArray

    @classmethod
    def none(cls, n: int) -> Crossings:
        """Of rays that are never favourable."""
        return cls(*(np.full(n, np.inf) for _ in range(4)))

    def keep_first(
        self, ray: IntArray, low: FloatArray, high: FloatArray, before: FloatArray, after: FloatArray
    ) -> None:
        """Take these instead, where they come before what is known."""
        order = np.lexsort((high, ray))
        best = order[np.unique(ray[order], return_index=True)[1]]
        best = best[high[best] < self.high[ray[best]]]
        which = ray[best]
        self.low[which], self.high[which] = low[best], high[best]
        self.before[which], self.after[which] = before[best], after[best]

    def narrow(self, ask: Ask, precision: float) -> None:
        """Find the crossings to a relative precision."""
        finite = np.flatnonzero(np.isfinite(self.high))
        open_ = finite[self.high[finite] - self.low[finite] > precision * self.high[finite]]
        if not open_.size:
            return
        low, high, before, after = self.low[open_], self.high[open_], self.before[open_], self.after[open_]

        def score(k: FloatArray, which: IntArray) -> FloatArray:
            for end, known in ((low, before), (high, after)):
                if np.array_equal(k, end):
                    return _nonzero(known)
            return _nonzero(ask(which.astype(np.int64), k))

        tolerances = {"xatol": 0.0, "xrtol": precision, "fatol": 0.0, "frtol": 0.0}
        found = find_root(score, (low, high), args=(open_,), tolerances=tolerances, maxiter=ITERATIONS)
        (left, right), (before, after) = found.bracket, found.f_bracket
        done = np.isfinite(left) & np.isfinite(right) & (before < 0.0) & (after > 0.0)
        self.low[open_[done]], self.high[open_[done]] = left[done], right[done]
        self.before[open_[done]], self.after[open_[done]] = before[done], after[done]

    def refine(self, ask: Ask) -> None:
        """Ask once more, where scores would reach zero if they changed evenly."""
        k = self.estimate()
        some = np.flatnonzero((self.low < k) & (k < self.high))
        here = ask(some, k[some])
        flips = here >= 0.0
        self.high[some[flips]], self.after[some[flips]] = k[some[flips]], here[flips]
        self.low[some[~flips]], self.before[some[~flips]] = k[some[~flips]], here[~flips]

    def estimate(self) -> FloatArray:
        """Where scores reach zero if they change evenly between both points."""
        with _far_out():
            share = np.nan_to_num(self.before / (self.before - self.after), nan=1.0)
            k = self.low + share * (self.high - self.low)
            return np.where(np.isfinite(self.high) & (self.low < k), k, self.high)


def first_crossings(
    ask: Ask, points: FloatArray, jumps: BoolArray, start: FloatArray, grid: int, *, is_rough: bool = False
) -> Crossings:
    """Find where rays first become favourable.

    Parameters
    ----------
    ask
        The scores at points of rays.
    points
        Where each ray may be asked, ascending, padded with ``inf``: its grid, and just past each switch.
    jumps
        Which of them are just past a switch.
    start
        Where each ray starts.
    grid
        Points of the grid of a whole ray.
    is_rough
        Whether a ray that is favourable past a switch need not be asked just before it.
    """
    finest = np.where(np.isfinite(points), points, 0.0).max(axis=1, initial=0.0) / grid
    points, jumps = _sparse(points, jumps, grid)
    scores, first = _scanned(ask, points)
    at_once = np.flatnonzero(np.ones(len(points), dtype=bool) if is_rough else scores[:, :1].ravel() >= 0.0)
    here = np.full((len(points), 1), np.nan)
    here[at_once, 0] = ask(at_once, start[at_once])
    points, scores = np.hstack([start[:, None], points]), np.hstack([here, scores])
    # stretches between two points: where they begin and end, and scores there, unknown just before a switch
    ray, i = np.nonzero((np.arange(points.shape[1] - 1) <= first[:, None]) & ~np.isnan(scores[:, :-1] + scores[:, 1:]))
    low, high, before, after = points[ray, i], points[ray, i + 1], scores[ray, i], scores[ray, i + 1]
    crosses, is_jump = after >= 0.0, jumps[ray, i]
    out = Crossings.none(len(points))
    out.keep_first(ray[crosses], low[crosses], high[crosses], before[crosses], after[crosses])
    slopes = np.where(is_jump | (low == high), np.nan, _slope(after - before, high - low))
    steep = _steepness(ray, i, slopes, points.shape)
    high, after = np.where(is_jump, np.nextafter(high, 0.0), high), np.where(is_jump, np.nan, after)
    far = high - low > finest[ray]
    unsure = is_jump & ((far & _may_reach_zero(before, steep, high - low)) | (crosses & (not is_rough)))
    after[unsure] = ask(ray[unsure], high[unsure])
    flipped = is_jump & crosses  # by the switch, unless favourable before it
    out.low[ray[flipped]], out.before[ray[flipped]] = high[flipped], np.fmin(after[flipped], -1e-300)
    sooner = unsure & (after >= 0.0)
    out.keep_first(ray[sooner], low[sooner], high[sooner], before[sooner], after[sooner])
    below = after < 0.0
    stretches = np.column_stack([low, high, before, after, steep])
    _look_between(ask, out, ray[below], stretches[below], finest)
    return out


def _slope(rise: FloatArray, run: FloatArray) -> FloatArray:
    """How fast scores change; ``inf`` where that exceeds all numbers, NaN where it is unknown."""
    with _far_out():
        return np.asarray(rise / run)


def _may_reach_zero(score: FloatArray, steep: FloatArray, length: FloatArray) -> BoolArray:
    """Whether scores may reach zero on a stretch if they change no faster; yes where nobody can tell."""
    with _far_out():
        return np.asarray(~(score + steep * length < 0.0))


def _nonzero(scores: FloatArray) -> FloatArray:
    """Scores of which none is 0, which counts as favourable, nor infinite."""
    return np.clip(np.where(scores == 0.0, 1e-300, scores), -1e300, 1e300)


def _sparse(points: FloatArray, jumps: BoolArray, grid: int) -> tuple[FloatArray, BoolArray]:
    """All points past switches, those of the grid at growing distances, and the last."""
    longest, ladder, step = max(CLOSEST, grid // SPARSEST), [1], 1
    while ladder[-1] < points.shape[1]:
        step = min(2 * step, longest)
        ladder.append(ladder[-1] + step)
    real = np.isfinite(points)
    number = np.cumsum(real & ~jumps, axis=1)
    is_last = real & (number == number[:, -1:]) & ~jumps
    keep = real & (jumps | np.isin(number, ladder) | is_last)
    order = np.argsort(~keep, axis=1, kind="stable")[:, : int(keep.sum(axis=1).max(initial=0))]
    kept = np.take_along_axis(keep, order, axis=1)
    return np.where(kept, np.take_along_axis(points, order, axis=1), np.inf), np.take_along_axis(jumps, order, axis=1)


def _scanned(ask: Ask, points: FloatArray) -> tuple[FloatArray, IntArray]:
    """Scores of each ray up to its first favourable point, and which that is; the number of points if none is."""
    n = points.shape[1]
    scores, first = np.full(points.shape, np.nan), np.full(len(points), n)
    waiting, column = np.arange(len(points)), 0
    while column < n and (waiting := waiting[np.isfinite(points[waiting, column])]).size:
        part = points[waiting, column : column + max(1, TOGETHER // waiting.size)]
        found, real = np.full(part.shape, np.nan), np.isfinite(part)
        found[real] = ask(np.repeat(waiting, real.sum(axis=1)), part[real])
        scores[waiting, column : column + part.shape[1]] = found
        flips = found >= 0.0
        flipped = flips.any(axis=1)
        first[waiting[flipped]] = column + flips[flipped].argmax(axis=1)
        column, waiting = column + part.shape[1], waiting[~flipped]
    return scores, first


def _steepness(ray: IntArray, i: IntArray, slopes: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """How fast scores may change on each stretch, by how fast they do there and next to it; ``inf`` if unknown."""
    known = np.full((shape[0], shape[1] + 1), np.nan)
    known[ray, i + 1] = np.abs(slopes)
    near = np.stack([known[ray, i], known[ray, i + 1], known[ray, i + 2]])
    unknown = np.isnan(near).all(axis=0)
    anywhere = np.where(np.isnan(known).all(axis=1), np.inf, np.nan_to_num(known).max(axis=1, initial=0.0))
    with _far_out():
        return np.asarray(STEEPEST * np.where(unknown, anywhere[ray], np.nan_to_num(near).max(axis=0)))


def _look_between(ask: Ask, out: Crossings, ray: IntArray, stretches: FloatArray, finest: FloatArray) -> None:
    """Ask in the middle of stretches between unfavourable points, as long as scores might reach zero there.

    A stretch is where it begins and ends, the scores there, and how fast they may change.
    """
    for _ in range(HALVINGS):
        low, high, before, after, steep = stretches.T
        middle = low + 0.5 * (high - low)
        might = _may_reach_zero(0.5 * before + 0.5 * after, 0.5 * steep, high - low)
        might &= (high - low > finest[ray]) & (high <= out.high[ray]) & (low < middle) & (middle < high)
        if not might.any():
            return
        ray, middle, (low, high, before, after, steep) = ray[might], middle[might], stretches[might].T
        here = ask(ray, middle)
        flips = here >= 0.0
        out.keep_first(ray[flips], low[flips], middle[flips], before[flips], here[flips])
        steepest = np.abs(_slope(STEEPEST * np.maximum(np.abs(here - before), np.abs(here - after)), middle - low))
        steep = np.maximum(np.where(np.isinf(steep), 0.0, steep), steepest)
        halves = np.stack([[low, middle, before, here, steep], [middle, high, here, after, steep]])
        ray = np.repeat(ray[~flips], 2)  # in order
        stretches = halves[:, :, ~flips].transpose(2, 0, 1).reshape(-1, 5)
