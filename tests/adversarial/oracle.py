"""What must be true of any explanation, found out with the user's own model and nothing of the library's inside.

Each check yields failures: a cause, under which they are counted, and what was seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import globece as gce
from tests.adversarial import reach, rows
from tests.adversarial.asks import Ask
from tests.adversarial.pipelines import Subject
from tests.adversarial.tables import FRACTIONS, Table
from tests.adversarial.walk import Rows, Walk

STEPS = 12  # of a number's type: a sum in single precision keeps clear of a dozen roundings
HALF_STEPS, HALVES = 2, ("float16", "halffloat")
NOISE = 40.0  # times the largest rounding error seen: other processors fuse fewer products, and round more often
HERE = 4.0  # the same where the library asks on this very processor, and only the batch is another one
ALONE = 10  # counterfactuals that are asked about one by one
RAYS, POINTS = 8, 150  # rays that are walked in small steps
SEARCHED = 10  # rows that a black box is asked about
BOUNDED = 4  # rows whose bound is attacked
CHANGES = 300  # random changes of each


@dataclass(frozen=True)
class Failure:
    """What is wrong, in short and in full."""

    cause: str
    detail: str


@dataclass(frozen=True)
class Case:
    """One problem: the table, the model, the question."""

    table: Table
    subject: Subject
    ask: Ask
    seed: int

    def rng(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, 99])

    def outcomes(self, values: Rows) -> NDArray[np.bool_]:
        """What the user's own model says of such rows, in the columns' own types."""
        return self.subject.decide(self.table.rows(values))


def check(case: Case, ex: gce.Explanation) -> Iterator[Failure]:
    """Everything that must be true of an explanation by itself."""
    walk = Walk(case.table, case.ask, ex.space)
    yield from _numbers(case, ex)
    found = ex.counterfactuals()
    if not len(found.row):
        return
    before = {name: v[found.row] for name, v in case.table.values.items()}
    try:
        after = rows.values(case.table, found.after)
    except (AssertionError, ValueError, TypeError) as error:
        yield Failure("counterfactual is no row of the table", str(error))
        return
    yield from _types(case, found)
    yield from _constraints(walk, before, after)
    yield from _positions(walk, ex, found, after)
    yield from _costs(walk, found, before, after)
    yield from _flips(case, found)


def _numbers(case: Case, ex: gce.Explanation) -> Iterator[Failure]:
    affected = np.flatnonzero(~case.subject.decide(case.table.X))
    if not np.array_equal(affected, ex.rows) and not _undecided(case, np.setxor1d(affected, ex.rows)):
        yield Failure("affected inputs", f"the model turns down {len(affected)}, the explanation has {len(ex.rows)}")
    best = ex.costs.min(axis=0) if len(ex.costs) else np.full(len(ex.rows), np.inf)
    covered = np.isfinite(best)
    if not (np.isfinite(ex.costs) == np.isfinite(ex.scalars)).all() or np.isnan(ex.costs).any():
        yield Failure("scalars and costs disagree", "one is finite where the other is not")
    if len(best) and not np.isclose(ex.coverage, covered.mean()):
        yield Failure("coverage", f"{ex.coverage} is reported, {covered.mean()} of the costs are finite")
    if len(best) and not np.isclose(ex.score, np.minimum(best, ex.budget).mean()):
        yield Failure("score", f"{ex.score} is reported, {np.minimum(best, ex.budget).mean()} by the costs")


def _undecided(case: Case, which: NDArray[Any]) -> bool:
    """Whether rows lie right on the boundary of a model that rounds coarsely, where the batch decides."""
    if not which.size or case.subject.noise is None or case.subject.score is None:
        return False
    some = case.table.rows({name: v[which] for name, v in case.table.values.items()})
    return bool((np.abs(case.subject.score(some)) < HERE * case.subject.noise(case.table.X)).all())


def _types(case: Case, found: Any) -> Iterator[Failure]:
    X = case.table.X
    was, now = rows.types(X), rows.types(found.after)
    names = case.table.names
    free = {s for c in case.table.columns if c.kind == "whole" and not case.ask.whole[c.name] for s in [c.name]}
    if case.table.backend == "matrix" and free:
        return
    changed = [f"{n}: {a} -> {b}" for n, a, b in zip(names, was, now, strict=True) if a != b and n not in free]
    if changed:
        yield Failure("type changed", "; ".join(changed))
    if rows.count(found.after) != len(found.row):
        yield Failure("rows lost", f"{rows.count(found.after)} counterfactuals for {len(found.row)} inputs")


def _constraints(walk: Walk, before: Rows, after: Rows) -> Iterator[Failure]:
    for c in walk.table.columns:
        x, y = before[c.name], after[c.name]
        if not c.is_number:
            moved = np.array([repr(a) != repr(b) and a != b for a, b in zip(x, y, strict=True)])
        else:
            moved = ~((x == y) | (np.isnan(x) & np.isnan(y)))
        if not moved.any():
            continue
        if c.name in walk.ask.constraints["immutable"]:
            yield Failure("immutable moved", f"{c.name}: {x[moved][0]!r} -> {y[moved][0]!r}")
        if c.kind != "category":
            yield from _ordered(walk, c.name, x[moved], y[moved])
        allowed = walk.ask.permitted(c)
        given = [level for level, ok in zip((*c.levels, None), allowed, strict=True) if ok]
        if not c.is_number:
            bad = [v for v in y[moved] if not any(v == g and (v is None) == (g is None) for g in given)]
            if bad:
                yield Failure("not permitted", f"{c.name}: moved to {bad[0]!r}; permitted are {given}")


def _ordered(walk: Walk, name: str, before: NDArray[Any], after: NDArray[Any]) -> Iterator[Failure]:
    """One column of numbers or ordinal values, the rows that changed."""
    c = walk.table[name]
    x, y = walk.number(c, before), walk.number(c, after)
    if (np.isnan(x) != np.isnan(y)).any():
        i = int((np.isnan(x) != np.isnan(y)).argmax())
        yield Failure("missing value moved", f"{name}: {x[i]} -> {y[i]}")
        return
    sense = walk.ask.sense(name)
    if (sense * (y - x) < 0).any():
        i = int((sense * (y - x) < 0).argmax())
        yield Failure("one-way feature went back", f"{name}: {x[i]!r} -> {y[i]!r}")
    low, high = walk.bounds(c)
    # a column's own type may not hold the end of a range that was asked for
    slack = c.ulp(y) if c.kind == "number" and c.type in FRACTIONS else 0.0
    out = (y < low - slack) | (y > high + slack)
    if out.any():
        i = int(out.argmax())
        where = "started outside" if not low <= x[i] <= high else "started inside"
        yield Failure(f"outside the range, {where}", f"{name}: {x[i]!r} -> {y[i]!r}, range {(low, high)}")
    if walk.is_whole(c) and (np.rint(y) != y).any():
        yield Failure("not whole", f"{name}: {y[np.rint(y) != y][0]!r}")


def _positions(walk: Walk, ex: gce.Explanation, found: Any, after: Rows) -> Iterator[Failure]:
    """The counterfactuals lie where the paper puts them."""
    for i, direction in enumerate(ex.directions):
        mine = np.flatnonzero(found.direction == i)
        there = walk.at(direction, found.row[mine], found.scalar[mine])
        for c in walk.table.columns:
            a, b = there[c.name], after[c.name][mine]
            if c.is_number:
                both = np.nan_to_num(c.narrow(a)), np.nan_to_num(b)
                ends = max(
                    abs(end) for end in (*walk.bounds(c), 0.0) if np.isfinite(end)
                )  # a range's end is rounded too
                largest = np.maximum(np.abs(both[1]), max(ends, float(np.nanmax(np.abs(c.values)))))
                off = np.abs(both[0] - both[1]) > 4 * c.ulp(largest) + 1e-12 * np.abs(both[1])
            else:
                off = np.array([not (p is None and q is None) and p != q for p, q in zip(a, b, strict=True)])
            if off.any():
                j = int(off.argmax())
                yield Failure(
                    "counterfactual is not at its scalar",
                    f"{c.name}: {b[j]!r} is reported, {a[j]!r} lies at k = {found.scalar[mine][j]!r}",
                )
                return


def _costs(walk: Walk, found: Any, before: Rows, after: Rows) -> Iterator[Failure]:
    paid, slack = walk.cost(before, after), walk.slack(before, after)
    off = np.abs(paid - found.cost) > 1e-6 * (1 + paid) + slack
    if off.any():
        i = int(off.argmax())
        yield Failure("cost", f"{found.cost[i]!r} is reported, the change costs {paid[i]!r} ({int(off.sum())} rows)")
    budget = walk.ask.budget
    over = found.cost > budget * (1 + 1e-9)
    if over.any():
        yield Failure("budget", f"{found.cost[over][0]!r} is over {budget}")


def _flips(case: Case, found: Any) -> Iterator[Failure]:
    n, decide = len(found.row), case.subject.decide
    rng = case.rng()
    together = decide(found.after)
    if not together.all():
        yield Failure("does not flip", f"{int((~together).sum())} of {n} in a batch")
        return
    order = rng.permutation(n)
    if not decide(rows.take(found.after, order)).all():
        yield Failure("does not flip in another order", f"of {n}")
    some = rng.permutation(n)[:ALONE]
    try:
        alone = np.array([bool(decide(rows.take(found.after, np.array([i])))[0]) for i in some])
    except ValueError:  # a few models take no single row
        return
    if not alone.all():
        yield Failure("does not flip alone", f"{int((~alone).sum())} of {len(some)} asked one by one")
    wide = _in_doubles(case, found.after)
    if not wide.all():
        yield Failure("does not flip in double precision", f"{int((~wide).sum())} of {n}")


def _in_doubles(case: Case, after: Any) -> NDArray[np.bool_]:
    """What the model decides about the rows in double precision; the same where it takes single precision only."""
    try:
        return case.subject.decide(rows.widened(after))
    except TypeError:
        return case.subject.decide(after)


# -- nothing earlier --------------------------------------------------------------------------------------------------


def tolerance(case: Case, walk: Walk, direction: NDArray[np.float64], row: Any, k: Any) -> Any:
    """How much earlier a flip may lie: the precision of the model, and of each column that moves, in terms of k."""
    narrow = is_narrow(case)
    out = np.abs(k) * (1e-5 if narrow else 1e-6) + (1e-6 if narrow else 1e-9)
    for c in walk.table.columns:
        f = walk.space[c.name]
        step = float(np.abs(direction[f.start]))
        if c.kind == "number" and f.stop - f.start == 1 and step:
            reached = np.abs(np.nan_to_num(c.values[row])) + np.where(np.isfinite(k), k, 0.0) * step
            ulp = c.ulp(reached)
            if case.subject.single:  # the coarser of the two: a column may be kept in half precision
                ulp = np.maximum(ulp, np.spacing(reached.astype(np.float32)))
            out = out + 8.0 * ulp / step
    return out


def _unclear(case: Case) -> float:
    """Scores nearer to the boundary than this may be rounding errors: a clearance may ask for that much."""
    assert case.subject.score is not None
    if not is_narrow(case):
        return 1e-6
    return max(1e-6, 1e-5 * float(np.abs(case.subject.score(case.table.X)).max()))


def is_narrow(case: Case) -> bool:
    """Whether the model computes, or a column is kept, in less than double precision."""
    return case.subject.single or any(c.type in FRACTIONS for c in case.table.columns)


def _stays(case: Case, walk: Walk, direction: NDArray[np.float64], row: int, k: float) -> bool:
    """Whether a flip is more than an accident of rounding.

    Its neighbours are favourable as well, and so it is when each number is off by some steps of the type that it is
    kept in, or that the model computes in: a clearance may ask for that much, and no more.
    """
    return bool(case.outcomes(_near(case, walk, direction, row, k)).all())


def _near(case: Case, walk: Walk, direction: NDArray[np.float64], row: int, k: float) -> Rows:
    """Points next to this one."""
    rng, n = case.rng(), 40
    near = walk.at(direction, np.full(n, row), k * (1.0 + 1e-6 * rng.uniform(-8, 8, n)))
    for c in case.table.columns:
        # whole numbers that are kept as fractions are exact, but a step that scales them rounds as coarsely
        if (c.kind == "number" and case.subject.single) or (c.is_number and c.type in FRACTIONS):
            x = near[c.name]
            ulp = np.spacing(np.abs(x).astype(np.float32)).astype(float) if c.type not in FRACTIONS else c.ulp(x)
            steps = HALF_STEPS if c.type in HALVES else STEPS
            near[c.name] = x + rng.integers(-steps, steps + 1, n) * ulp
    return near


def nothing_earlier(case: Case, ex: gce.Explanation) -> Iterator[Failure]:
    """Along some rays, no point before the scalar is favourable; where there is none, no point at all."""
    walk, rng = Walk(case.table, case.ask, ex.space), case.rng()
    n, m = len(ex.rows), len(ex.directions)
    if not n or not m:
        return
    rays = rng.permutation(n * m)[:RAYS]
    for ray in rays:
        i, j = divmod(int(ray), n)
        direction, row, k = ex.directions[i], ex.rows[j], float(ex.scalars[i, j])
        end = float(walk.end(direction, np.array([row]))[0])
        if ex.max_scalar is not None:
            end = min(end, ex.max_scalar)
        until = min(k, end)
        if not until > 0:
            continue
        points = until * np.concatenate([np.linspace(0, 1, POINTS)[1:], 10.0 ** rng.uniform(-4, 0, POINTS // 4)])
        points = points[points < k - tolerance(case, walk, direction, int(row), until)]
        yield from _favourable_before(case, walk, direction, int(row), k, np.sort(points))


def _favourable_before(
    case: Case, walk: Walk, direction: NDArray[np.float64], row: int, k: float, points: NDArray[np.float64]
) -> Iterator[Failure]:
    if not len(points):
        return
    where = np.full(len(points), row)
    after = walk.at(direction, where, points)
    before = {name: v[where] for name, v in case.table.values.items()}
    within = walk.cost(before, after) <= case.ask.budget * (1 - 1e-6)
    hit = np.flatnonzero(case.outcomes(after) & within)
    for h in hit[:3]:
        alone = {name: v[h : h + 1] for name, v in after.items()}
        native = case.table.rows({name: np.repeat(v, 2) for name, v in alone.items()})
        if not (case.subject.decide(native)[0] and _in_doubles(case, native)[0]):
            continue  # right on the boundary, where the batch decides
        if is_narrow(case) and not _stays(case, walk, direction, row, float(points[h])):
            continue
        if case.subject.noise is not None and case.subject.score is not None:
            # a clearance is a number of standard errors, of which this is the largest seen nearby: in points that are
            # far enough apart to be rounded in ways of their own, and still in the same piece of the network
            apart = np.full(200, row), points[h] * np.linspace(1 - 1e-3, 1 + 1e-3, 200)
            near = case.table.rows(walk.at(direction, *apart))
            if abs(float(case.subject.score(native)[0])) < NOISE * case.subject.noise(near):
                continue
        if case.subject.score is not None and abs(float(case.subject.score(native)[0])) < _unclear(case):
            continue
        what = "recourse missed" if np.isinf(k) else "flips earlier"
        yield Failure(what, f"row {row} is favourable at {points[h]!r}, {k!r} is reported")
        return


def agrees_with_search(case: Case, ex: gce.Explanation) -> Iterator[Failure]:
    """Where a search of the user's model finds a smaller scalar, or any, the exact one is wrong."""
    if not len(ex.rows) or not len(ex.directions):
        return
    walk = Walk(case.table, case.ask, ex.space)
    place = case.rng().permutation(len(ex.rows))[:SEARCHED]
    box = gce.as_model(case.subject.model, ex.space, compile=False, grid=64, **case.subject.asked)
    found = ex.apply(rows.take(case.table.X, ex.rows[place]), model=box)
    for i, direction in enumerate(ex.directions):
        k, mine = found.scalars[i], ex.scalars[i, place]
        until = np.where(np.isfinite(mine), mine, np.where(np.isfinite(k), k, 0.0))
        early = k < mine - tolerance(case, walk, direction, ex.rows[place], until)
        for j in np.flatnonzero(early & np.isfinite(k))[:3]:
            point, row = np.array([k[j]]), int(ex.rows[place[j]])
            yield from _favourable_before(case, walk, direction, row, float(mine[j]), point)


# -- bounds -----------------------------------------------------------------------------------------------------------


def bound_holds(case: Case, ex: gce.Explanation, bound: Any) -> Iterator[Failure]:
    """No real counterfactual is cheaper than its bound, and an exact bound is attained."""
    walk, rng = Walk(case.table, case.ask, ex.space), case.rng()
    best = np.where(np.isfinite(ex.best_costs), ex.best_costs, np.inf)
    below = np.isfinite(best) & (best * (1 + 1e-6) + 1e-6 < bound.cost)
    if below.any():
        i = int(below.argmax())
        yield Failure("bound above the explanation", f"{bound.cost[i]!r} > {ex.best_costs[i]!r}, exact={bound.exact}")
    for j in rng.permutation(len(ex.rows))[:BOUNDED]:
        row = int(ex.rows[j])
        every = reach.everything(walk, row)
        changed = every if every is not None else reach.some(walk, row, CHANGES, rng)
        n = len(next(iter(changed.values())))
        before = {name: np.repeat(v[row : row + 1], n) for name, v in case.table.values.items()}
        good = case.outcomes(changed)
        cost = np.where(good, walk.cost(before, changed), np.inf)
        least, said = float(cost.min()), float(bound.cost[j])
        slack = 1e-5 * (1 + min(least, ex.budget)) + float(walk.slack(before, changed)[int(cost.argmin())])
        if said > least + slack and np.isfinite(least):
            yield Failure("bound above a real cost", f"row {row}: {said!r} > {least!r}, exact={bound.exact}")
            return
        if bound.exact and every is not None and said < min(least, ex.budget) - slack:
            yield Failure("exact bound is not attained", f"row {row}: {said!r} < {least!r}")
            return
