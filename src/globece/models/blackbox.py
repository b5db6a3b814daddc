"""Any model at all: where nothing is known about it, k is searched for.

A flip can only happen at a one-hot switch, at a whole step, or on a stretch in between. So each row is tried just past
its switches and on a grid, in order and in batches, until it flips; then bisection between the last unfavourable and
the first favourable point finds the smallest k to a relative 1e-6. A model may flip and flip back unseen between two
grid points: that is why this is called searched, and the other models exact.

Where scores tell of the decisions (:mod:`globece.models.guide`), rays are asked for these, at far fewer points
(:mod:`globece.models.crossings`), and the decisions confirm what is found.

The reported k lies slightly past that point, off the boundary. A model that computes in single precision may answer
differently there from one batch to the next; where it has scores, k is increased until they have risen by several
times that variation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from globece.errors import InvalidDataError, ModelError, check_count, check_numbers, wrong
from globece.models.base import Model
from globece.models.clearance import DOUBLE, SINGLE
from globece.models.crossings import first_crossings
from globece.models.decision import Decision, Tally
from globece.models.guide import Guide, guide_of
from globece.models.known import is_kind
from globece.models.probes import drawn
from globece.models.ray_points import SMALLEST, RayPoints
from globece.models.torch_modules import is_double, is_module
from globece.progress import is_timed
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray

ALONE = 16  # rows that are passed to the model one by one
STEADY = 8.0  # multiple of the largest variation seen
FARTHER = 32.0  # most that rounding far out may exceed what was learnt, as a multiple
PERTURBATIONS = 24  # of a row at the end of its ray
PUSHES = 40  # each twice the one before
HALVINGS = 3  # of the last push
NEARLY_ZERO = 1e-6  # as a share of the first favourable k: few rows flip before that
MOST_POINTS = 50_000  # along a ray
REFINED = 1  # times
LARGEST_SCORE = 1e150  # so that differences and slopes are numbers
REMEMBERED = 2**26  # bytes of rows


def check_grid(grid: int) -> int:
    """Validate the number of points along a ray."""
    return check_count("grid", grid, high=MOST_POINTS)


def check_scalars(scalars: Any) -> FloatArray:
    """Validate the scalars to try: ascending, and not negative, which would reverse a direction."""
    allowed = "ascending numbers >= 0, at least one of them > 0"
    given = check_numbers("scalars", scalars, allowed, low=0.0)
    if not given.size or not given[-1] > 0.0 or not (np.diff(given) > 0.0).all() or given.size > MOST_POINTS:
        raise wrong("scalars", allowed, scalars)
    return np.asarray(given)


@dataclass(frozen=True)
class BlackBox(Model):
    """A model of which only the decisions are known.

    Attributes
    ----------
    decide
        The user's model behind :func:`globece.models.decision.decision`.
    space
        The space whose decoded rows the model takes.
    grid
        Points tried between 0 and the limit.
    batch_rows
        Most rows given to the model at once; bounds memory and changes no result.
    scalars
        Scalars to try in place of the grid, without bisection: the paper's protocol.
    precision
        Relative precision of k.
    steady
        Whether to move past the boundary until the answer is the same in every batch; a search need not.
    known
        What was asked already, by row, where rays share rows; ``None`` where they do not.
    """

    decide: Decision
    space: FeatureSpace
    grid: int = 256
    batch_rows: int = 65_536
    scalars: FloatArray | None = None
    precision: float = 1e-6
    steady: bool = True
    known: dict[bytes, float] | None = field(default=None, repr=False, compare=False)

    exact = False

    @property
    def name(self) -> str:
        """The model's name."""
        return self.decide.name

    @property
    def tallies(self) -> list[Tally]:
        """How often the model was called."""
        return [self.decide.tally]

    def rough(self, points: int) -> BlackBox:
        """The same with fewer points, less precision, and no move past the boundary."""
        if self.scalars is not None:
            return self
        return replace(self, grid=min(points, self.grid), precision=1.0 / points, steady=False, known={})

    def thinned(self, points: int) -> BlackBox:
        """The same with fewer points and less precision."""
        if self.scalars is not None:
            return self
        return replace(self, grid=min(points, self.grid), precision=1.0 / points**2)

    @cached_property
    def units(self) -> FloatArray:
        """Unit roundoff of each encoded column as the model sees it; 0 for doubles, which are precise enough."""
        return np.maximum(self.space.rounding, SINGLE if self.is_single else 0.0)

    @property
    def is_single(self) -> bool:
        """Whether the model is a module or a graph that computes in single precision."""
        model = self.decide.model
        if is_kind(model, "globece", ("OnnxClassifier", "OnnxRegressor")):
            return bool(model.is_single)
        return is_module(model) and not is_double(model)

    @property
    def unit(self) -> float:
        """The largest unit roundoff."""
        return max(DOUBLE, float(self.units.max(initial=0.0)))

    @cached_property
    def needed_rise(self) -> float | None:
        """How much a score must rise for the same decision in every batch; ``None`` where there are no scores.

        Derived from how much scores change when a row is passed alone, and when its numbers change in the last digit.
        Measured on synthetic rows, so that it does not depend on the rows that are explained.
        """
        rng = np.random.default_rng(0)
        rows = drawn(self.space, 4 * ALONE, rng)
        others = self._perturbed(rows, 2.0 * rng.choice([-1.0, 1.0], rows.shape))
        try:
            (together, *_) = self.decide.scores(self.space.decode(rows), len(rows)) or (None,)
            if together is None:
                return None
            perturbed = self.decide.scores(self.space.decode(others), len(rows))[0]
            alone = [self.decide.scores(self.space.decode(row[None]), 1)[0][0] for row in rows[:ALONE]]
        except (ModelError, InvalidDataError):
            return None
        if not (np.isfinite(together) & np.isfinite(perturbed)).all():
            return None
        changes = [np.abs(together[:ALONE] - alone).max(), np.abs(together - perturbed).max()]
        return float(STEADY * max(*changes, min(self.unit, SINGLE) * np.abs(together).max()))

    @cached_property
    def guide(self) -> Guide | None:
        """How scores tell where the outcome changes; ``None`` where they do not, or there are none."""
        return guide_of(self, self.cut)

    def _perturbed(self, Z: FloatArray, roundings: FloatArray) -> FloatArray:
        """The same rows with every number that is not whole changed by some units in the last place."""
        out = Z * (1.0 + self.units * roundings)
        for f in self.space.features:
            if f.is_block or f.whole:
                out[:, f.columns] = Z[:, f.columns]
        return np.asarray(out)

    @cached_property
    def widens(self) -> bool:
        """Whether the model also takes the numbers of narrow columns in double precision.

        Steps before the model compute in the type that they are given, and a tree may split what that type rounds.
        """
        if not self.space.is_narrow:
            return False
        row = drawn(self.space, 1, np.random.default_rng(0))
        try:
            self.decide(self.space.decode(row, wide=True), 1)
        except (ModelError, InvalidDataError):
            return False
        return True

    def favourable(self, Z: FloatArray, *, wide: bool = False) -> BoolArray:
        """Whether each row gets the favourable outcome; in batches, which are short under a time limit."""
        out = np.empty(len(Z), dtype=bool)
        for part in self._batches(len(Z)):
            out[part] = self.decide(self.space.decode(Z[part], wide=wide), part.stop - part.start)
        return out

    def confirms(self, Z: FloatArray) -> BoolArray:
        """Whether each row is favourable, both in the user's column types and in double precision."""
        out = self.favourable(Z)
        if out.any() and self.widens:
            out[out] = self.favourable(Z[out], wide=True)
        return out

    def _batches(self, n: int) -> Iterator[slice]:
        pace, start = self.decide.tally.pace, 0
        while start < n:
            part = slice(start, min(n, start + (min(self.batch_rows, pace.size) if is_timed() else self.batch_rows)))
            pace.start()
            yield part
            pace.done(part.stop - start)
            start = part.stop

    @property
    def may_stand_in(self) -> bool:
        """Yes, unless the scalars are given: then only these count."""
        return self.scalars is None

    def scores(self, Z: FloatArray) -> FloatArray | None:
        """Numbers that rise as rows come nearer to the favourable outcome; ``None`` where the model has none."""
        out = np.empty(len(Z))
        for part in self._batches(len(Z)):
            found = self.decide.scores(self.space.decode(Z[part]), part.stop - part.start)
            if not found or not np.isfinite(found[0]).all():
                return None
            out[part] = found[0]
        return out

    def _scores(self, Z: FloatArray) -> FloatArray:
        """The first of the scores that it has, in batches."""
        out = np.empty(len(Z))
        for part in self._batches(len(Z)):
            out[part] = self.decide.scores(self.space.decode(Z[part]), part.stop - part.start)[0]
        return out

    @property
    def cut(self) -> float | None:
        """The first score that is favourable, by what the scores are; see :attr:`Decision.cut`."""
        return self.decide.cut

    def margin(self, Z: FloatArray) -> FloatArray:
        """+1 for a favourable row, -1 for an unfavourable one: only decisions are known.

        While a search looks around, how far the score is above the cut, where there are scores.
        """
        if not self.steady and self.guide is not None:
            with suppress(ModelError):
                return self._once(Z, self._scores) - self.guide.cut
        return np.where(self.favourable(Z), 1.0, -1.0)

    def first_flip(
        self, Z: FloatArray, directions: FloatArray, limit: FloatArray, start: FloatArray | None = None
    ) -> FloatArray:
        """Smallest k found at which each row is favourable; see :meth:`globece.models.base.Model.first_flip`."""
        out = np.empty((len(directions), len(Z)))
        tried = len(self.scalars) if self.scalars is not None else self.grid + len(self.space.blocks)
        most = max(256, 4 * self.batch_rows // tried)  # rays at a time: bounds the memory for their points
        together = max(1, most // max(len(Z), 1))
        for i in range(0, len(directions), together):
            some = slice(i, i + together)
            for j in range(0, len(Z), most):
                rows = slice(j, j + most)
                begin = None if start is None else start[some, rows]
                out[some, rows] = self._search(Z[rows], directions[some], limit[some, rows], begin)
        return out

    def _search(self, Z: FloatArray, directions: FloatArray, limit: FloatArray, start: FloatArray | None) -> FloatArray:
        rays_ = RayPoints.of(self.space, Z, directions, limit, self.grid, self.scalars)
        points = rays_.points
        if start is not None:  # the start itself, and the points beyond it
            begin = np.where(start <= limit, start, np.inf).reshape(-1, 1)
            points = np.sort(np.hstack([begin, np.where(points > begin, points, np.inf)]), axis=1)
            points[points == 0.0] = np.inf
            points.sort(axis=1)
        first = np.zeros(limit.size) if start is None else start.ravel()
        k, left = np.full(limit.size, np.inf), np.arange(limit.size)
        if self.scalars is None and rays_.glides.any() and self.guide is not None:
            with suppress(ModelError):  # there are rows whose score is no number
                k, left = self._search_by_scores(self.guide, rays_, points, first, limit.ravel())
        if left.size:
            k[left] = self._search_by_labels(rays_, left, points, first, limit.ravel())
        return k.reshape(limit.shape)

    def _search_by_scores(
        self, guide: Guide, rays_: RayPoints, points: FloatArray, first: FloatArray, limit: FloatArray
    ) -> tuple[FloatArray, IntArray]:
        """Minimum scalars as far as scores tell of them, and the rays for which they do not."""
        if self.steady and not guide.is_gradual:
            return np.full(len(points), np.inf), np.arange(len(points))

        def ask(which: IntArray, k: FloatArray) -> FloatArray:
            found = self._once(rays_.positions(which, k), self._scores)
            return np.clip(found, -LARGEST_SCORE, LARGEST_SCORE) - guide.cut

        found = first_crossings(ask, points, rays_.past_switches(points), first, self.grid, is_rough=not self.steady)
        if not self.steady:
            for _ in range(REFINED):
                found.refine(ask)
            return found.estimate(), np.zeros(0, dtype=np.int64)
        found.narrow(ask, 0.5 * self.precision)
        k = np.full(len(points), np.inf)
        hit = np.flatnonzero(np.isfinite(found.high) & (found.before < 0.0))
        low, high = self._bisect(rays_, hit, found.low[hit], found.high[hit])
        k[hit] = self._move_clear(rays_, hit, low, high, limit[hit])
        asked = hit[k[hit] > high]  # further on, where the model confirmed them
        others = np.setdiff1d(hit[np.isfinite(k[hit])], asked)
        fails = ~self._favourable_at(rays_, others, k[others])
        wrong = np.isfinite(found.high) & (found.before >= 0.0)
        wrong[others[fails]] = True
        # scores may contradict decisions far from the synthetic rows: that there is no recourse, decisions confirm
        farthest = np.where(np.isfinite(points), points, 0.0).max(axis=1, initial=0.0)
        never = np.flatnonzero(~np.isfinite(found.high) & (farthest > 0.0))
        wrong[never[self._favourable_at(rays_, never, farthest[never])]] = True
        return k, np.flatnonzero(wrong)

    def _search_by_labels(
        self, rays_: RayPoints, which: IntArray, points: FloatArray, first: FloatArray, limit: FloatArray
    ) -> FloatArray:
        """Minimum scalars of some rays by the model's decisions alone."""
        n_points = points.shape[1]
        found = np.full(len(points), n_points)
        waiting = which[np.isfinite(points[which]).any(axis=1)]
        column, width = 0, 1
        while waiting.size and column < n_points:
            # Few points at first, since most rays flip early or not at all; then more at a time.
            width = max(1, min(2 * width, self.batch_rows // waiting.size, n_points - column))
            part = points[waiting, column : column + width]
            real = np.isfinite(part)
            flips = np.zeros(part.shape, dtype=bool)
            flips[real] = self._favourable_at(rays_, np.repeat(waiting, real.sum(axis=1)), part[real])
            flipped = flips.any(axis=1)
            found[waiting[flipped]] = column + flips[flipped].argmax(axis=1)
            column += width
            waiting = waiting[~flipped]
            if column < n_points:
                waiting = waiting[np.isfinite(points[waiting, column])]
        k = np.full(len(points), np.inf)
        hit = np.flatnonzero(found < n_points)
        k[hit] = points[hit, found[hit]]
        if self.scalars is None:
            before = np.where(
                found[hit] > 0, points[hit, np.maximum(found[hit] - 1, 0)], np.minimum(k[hit], first[hit])
            )
            low, high = self._bisect(rays_, hit, before, k[hit])
            k[hit] = self._move_clear(rays_, hit, low, high, limit[hit]) if self.steady else high
        return k[which]

    def _favourable_at(self, rays_: RayPoints, which: IntArray, k: FloatArray) -> BoolArray:
        """Whether each of these rays is favourable at its k; if ``steady``, also in double precision."""
        out = np.empty(len(which), dtype=bool)
        for start in range(0, len(which), self.batch_rows):
            part = slice(start, start + self.batch_rows)
            rows = rays_.positions(which[part], k[part])
            if self.steady:
                out[part] = self.confirms(rows)
            else:
                out[part] = self._once(rows, lambda new: self.favourable(new).astype(np.float64)) > 0.0
        return out

    def _once(self, rows: FloatArray, ask: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Answers of the model for rows, each of which is asked about once."""
        if self.known is None:
            return ask(rows)
        if (len(self.known) + len(rows)) * self.space.width * rows.itemsize > REMEMBERED:
            self.known.clear()
        keys = [row.tobytes() for row in rows]
        new = {key: i for i, key in enumerate(keys) if key not in self.known}
        if new:
            self.known.update(zip(new, ask(rows[list(new.values())]).tolist(), strict=True))
        return np.array([self.known[key] for key in keys])

    def _scores_at(
        self, rays_: RayPoints, which: IntArray, k: FloatArray, roundings: FloatArray | None = None
    ) -> FloatArray:
        """Scores along rays, of rows as they are or changed in their last digit by so many rounding units."""
        rows = rays_.positions(which, k)
        return self._scores(rows if roundings is None else self._perturbed(rows, roundings))

    def _need_at(self, need: float, rays_: RayPoints, which: IntArray, k: FloatArray, scores: FloatArray) -> FloatArray:
        """The same as :attr:`need` at the rows in question: far out, sums and their roundings are larger."""
        rng, changes = np.random.default_rng(1), np.zeros(len(which))
        for _ in range(2):
            roundings = 2.0 * rng.choice([-1.0, 1.0], self.space.width)
            np.maximum(changes, np.abs(self._scores_at(rays_, which, k, roundings) - scores), out=changes)
        return np.asarray(np.clip(np.nan_to_num(STEADY * changes), need, FARTHER * need))

    def _move_clear(
        self, rays_: RayPoints, hit: IntArray, low: FloatArray, high: FloatArray, limit: FloatArray
    ) -> FloatArray:
        """Move past the boundary, by the precision of the search or of the model."""
        k = high.copy()
        glides = np.flatnonzero(rays_.glides[hit] & (high < limit) & (high > SMALLEST))
        single = self.unit > DOUBLE
        need = self.needed_rise if single and rays_.glides[hit].any() else 0.0
        step = 0.5 * self.precision * high
        if need is None:  # no scores to go by
            step = np.maximum(step, 32.0 * self.unit * np.maximum(high, 0.1 * limit))
        if not need:
            on = np.minimum(high[glides] + step[glides], limit[glides])
            stays = self._favourable_at(rays_, hit[glides], on)
            k[glides[stays]] = on[stays]
            return self._drop_fragile(rays_, hit, k, k < limit) if single else k
        first, unclear, clear = np.zeros(len(hit)), high.copy(), np.full(len(hit), need)
        first[glides] = self._scores_at(rays_, hit[glides], low[glides])
        clear[glides] = self._need_at(need, rays_, hit[glides], low[glides], first[glides])
        cleared: list[IntArray] = []
        for _ in range(PUSHES):
            if not glides.size:
                break
            on = np.minimum(high[glides] + step[glides], limit[glides])
            stays = self._favourable_at(rays_, hit[glides], on)
            rise = self._scores_at(rays_, hit[glides], on) - first[glides]
            k[glides[stays]] = on[stays]
            # until it is clear of the boundary, or clearly back on the unfavourable side
            goes_on = np.where(stays, rise < clear[glides], rise > -clear[glides]) & (on < limit[glides])
            cleared.append(glides[stays & (rise >= clear[glides])])
            glides = glides[goes_on]
            unclear[glides] = on[goes_on]
            step[glides] *= 2.0
        sure = np.sort(np.concatenate([*cleared, glides[:0]]))
        self._move_back(rays_, hit, sure, unclear, k, first + clear)
        return self._drop_fragile(rays_, hit, k, np.isin(np.arange(len(hit)), sure))

    def _move_back(
        self, rays_: RayPoints, hit: IntArray, which: IntArray, low: FloatArray, k: FloatArray, score: FloatArray
    ) -> None:
        """Bisect the last push of the rays that are clear, in place: pushes that double may go too far."""
        for _ in range(HALVINGS if which.size else 0):
            middle = 0.5 * (low[which] + k[which])
            clear = self._favourable_at(rays_, hit[which], middle)
            clear &= self._scores_at(rays_, hit[which], middle) >= score[which]
            k[which[clear]], low[which[~clear]] = middle[clear], middle[~clear]

    def _drop_fragile(self, rays_: RayPoints, hit: IntArray, k: FloatArray, is_sure: BoolArray) -> FloatArray:
        """Drop flips that a change in the last digit undoes, for a module in single precision, unless they are sure.

        Those are not sure that reach the limit before they are clear of the boundary. Other models are as reliable at
        the end of a range as anywhere else.
        """
        if not self.is_single:
            return k
        rng = np.random.default_rng(0)
        for _ in range(PERTURBATIONS):
            ends = np.flatnonzero(rays_.glides[hit] & ~is_sure & np.isfinite(k))
            if ends.size:
                rows = rays_.positions(hit[ends], k[ends])
                stays = self.favourable(self._perturbed(rows, rng.uniform(-4.0, 4.0, self.space.width)))
                k[ends[~stays]] = np.inf
        return k

    def _bisect(
        self, rays_: RayPoints, hit: IntArray, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Narrow (low, high] to the relative precision; ``high`` stays favourable throughout."""
        low, high = low.copy(), high.copy()
        precision = 0.5 * self.precision if self.steady else self.precision  # the rest is for moving past the boundary

        def still_open() -> IntArray:
            # where only blocks move, nothing happens between two switches
            return np.flatnonzero(rays_.glides[hit] & (high - low > precision * high))

        # A ray that flips just past a switch, and not just before it, was flipped by that switch.
        wide = still_open()
        wide = wide[(rays_.switches[hit[wide]] == high[wide, None]).any(axis=1)]
        before = np.nextafter(high[wide], 0.0)
        fails = ~self._favourable_at(rays_, hit[wide], before)
        low[wide[fails]] = before[fails]
        # A ray that flips at almost 0 would otherwise take about a thousand halvings.
        for share, reached in ((0.0, 0.0), (NEARLY_ZERO, SMALLEST)):
            wide = still_open()
            wide = wide[low[wide] <= reached]
            at = np.maximum(share * high[wide], SMALLEST)
            flips = self._favourable_at(rays_, hit[wide], at)
            high[wide[flips]], low[wide[~flips]] = at[flips], at[~flips]
            low[high <= SMALLEST] = SMALLEST
        while (wide := still_open()).size:
            near, far = low[wide], high[wide]
            middle = np.where(far > 10.0 / NEARLY_ZERO * near, np.sqrt(near) * np.sqrt(far), 0.5 * (near + far))
            inside = (near < middle) & (middle < far)
            low[wide[~inside]] = far[~inside]  # neighbours
            wide, middle = wide[inside], middle[inside]
            flips = self._favourable_at(rays_, hit[wide], middle)
            high[wide[flips]] = middle[flips]
            low[wide[~flips]] = middle[~flips]
        return low, high


def search_undecided(
    box: BlackBox,
    found: FloatArray,
    Z: FloatArray,
    directions: FloatArray,
    limit: FloatArray,
    start: FloatArray | None = None,
) -> FloatArray:
    """Minimum scalars of a compiled model, with those that it left undecided (NaN) searched; see `Model.first_flip`."""
    for i in np.flatnonzero(np.isnan(found).any(axis=1)):
        rows = np.flatnonzero(np.isnan(found[i]))
        begin = None if start is None else start[i : i + 1, rows]
        found[i, rows] = box.first_flip(Z[rows], directions[i : i + 1], limit[i : i + 1, rows], begin)[0]
        box.decide.tally.searched_rays += rows.size
    return found
