"""One problem from one seed: draw it, ask every door, let the oracle look, and say what came out."""

from __future__ import annotations

import pickle
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import globece as gce
from globece.errors import GlobeCEWarning, InvalidParameterError, VerificationError
from tests.adversarial import asks, oracle, pipelines, rows, tables
from tests.adversarial.memory import limited
from tests.adversarial.oracle import Case, Failure
from tests.adversarial.walk import Walk

COMPANIES = (0, 1, 2, 3, 4, 5, 6, 7, 9, 12, 15, 20, 26, 33, 47, 63, 100, 150)  # how many others a row comes with


@dataclass(frozen=True)
class Report:
    """What came of one problem.

    Attributes
    ----------
    outcome
        ``"exact"``, ``"searched"``, ``"refused"``, or ``"untrainable"``: nothing was asked.
    message
        Why it was refused, searched or not trained.
    """

    seed: int
    kind: str
    outcome: str
    message: str = ""
    failures: tuple[Failure, ...] = ()
    seconds: float = 0.0
    checks: tuple[str, ...] = field(default=())


def draw(seed: int, *, large: bool = False) -> Case:
    """The problem of a seed; on a table of 20 to 250 rows where it is to be large."""
    table = tables.draw(np.random.default_rng([seed, 0]), large=large)
    subject = pipelines.draw(np.random.default_rng([seed, 1]), table)
    return Case(table, subject, asks.draw(np.random.default_rng([seed, 2]), table), seed)


def solve(seed: int, *, large: bool = False) -> Report:
    """Draw the problem of a seed, ask, and check the answers."""
    started = time.perf_counter()
    try:
        with limited():
            case = draw(seed, large=large)
    except pipelines.Untrainable as why:
        return Report(seed, "-", "untrainable", str(why)[:200])
    with warnings.catch_warnings(record=True) as caught, limited():
        warnings.simplefilter("always")
        answer = _answered(case)
    seconds = time.perf_counter() - started
    return replace(answer, failures=(*answer.failures, *_careless(caught)), seconds=seconds)


def _answered(case: Case) -> Report:
    kind = case.subject.kind
    doors: list[str] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            X = case.table.X
            ex = explained(case, X)
        failures = list(_said(case, ex, caught))
        if not rows.same(X, case.table.X):
            failures.append(Failure("input changed", "the frame given is not what it was"))
        for door, found in _doors(case, ex):
            doors.append(door)
            failures += found
    except VerificationError as error:
        return Report(case.seed, kind, "refused", str(error), (Failure("VerificationError", str(error)),))
    except gce.GlobeCEError as error:
        return Report(case.seed, kind, "refused", f"{type(error).__name__}: {error}", checks=tuple(doors))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        ours = [f for f in traceback.extract_tb(error.__traceback__) if "globece/" in f.filename]
        at = f"{ours[-1].filename.rpartition('globece/')[2]}:{ours[-1].name}" if ours else where.name
        cause = f"obscure {type(error).__name__} in {at}" if ours else f"the adversary itself: {type(error).__name__}"
        return Report(case.seed, kind, "refused", str(error)[:300], (Failure(cause, traceback.format_exc()),))
    why = next((str(w.message) for w in caught if issubclass(w.category, GlobeCEWarning)), "")
    return Report(case.seed, kind, ex.provenance.method, why, tuple(failures), checks=tuple(doors))


FEW = gce.Race(gce.UniformSampling(), 6)


def explained(case: Case, X: Any, **more: Any) -> gce.Explanation:
    """The explanation that is asked for."""
    ask = case.ask
    space = ask.space(case.table)
    robust = None if ask.robust is None else gce.Robust(**ask.robust)
    return gce.explain(
        case.subject.model,
        X,
        space=space,
        cost=ask.price.model(space, X),
        budget=ask.budget,
        n_directions=ask.n_directions,
        settings=gce.Settings(**ask.settings, **more),
        robust=robust,
        search=FEW if ask.climb is None else gce.Climb(**ask.climb),
        rng=case.seed,
        **case.subject.asked,
    )


def _said(case: Case, ex: gce.Explanation, caught: list[warnings.WarningMessage]) -> Iterator[Failure]:
    """A model with a predict method that is searched says so."""
    told = any(issubclass(w.category, GlobeCEWarning) for w in caught)
    asked = case.ask.settings.get("exact", True)
    known = hasattr(case.subject.model, "predict") or hasattr(case.subject.model, "parameters")
    if ex.provenance.method == "searched" and asked and known and not told:
        yield Failure("searched without a word", case.subject.kind)
    if ex.provenance.method not in ("exact", "searched"):
        yield Failure("method", ex.provenance.method)


def _careless(caught: list[warnings.WarningMessage]) -> Iterator[Failure]:
    """Warnings of NumPy that come from the library's own lines."""
    seen = set()
    for w in caught:
        place = str(w.filename)
        if "/globece/" in place and issubclass(w.category, RuntimeWarning):
            where = f"{place.rpartition('globece/')[2]}:{w.lineno}"
            if where not in seen:
                seen.add(where)
                yield Failure(f"careless warning in {place.rpartition('globece/')[2]}", f"{where}: {w.message}")


def _doors(case: Case, ex: gce.Explanation) -> Iterator[tuple[str, list[Failure]]]:
    """Each thing that is tried, and what was found."""
    yield "explain", list(oracle.check(case, ex))
    if ex.provenance.method == "exact" and case.ask.robust is None:
        yield "nothing earlier", list(oracle.nothing_earlier(case, ex))
        yield "search", list(oracle.agrees_with_search(case, ex))
    elif case.ask.robust is None:
        yield "search", []
    for door in case.ask.doors:
        try:
            yield door, list(DOORS[door](case, ex))
        except VerificationError as error:
            yield door, [Failure(f"VerificationError in {door}", str(error))]


def _json(case: Case, ex: gce.Explanation) -> Iterator[Failure]:
    again = gce.Explanation.from_json(ex.to_json())
    for name in ("directions", "inputs", "scalars", "costs", "rows"):
        if not np.array_equal(getattr(ex, name), getattr(again, name), equal_nan=True):
            yield Failure("JSON round trip", name)
    if not rows.same(ex.counterfactuals().after, again.counterfactuals().after):
        yield Failure("JSON round trip", "counterfactuals")


def _pickle(case: Case, ex: gce.Explanation) -> Iterator[Failure]:
    try:
        pickle.dumps(case.subject.model)
    except Exception:
        return
    try:
        again = pickle.loads(pickle.dumps(ex))
    except Exception as error:
        yield Failure("pickle", f"{type(error).__name__}: {error}")
        return
    if not np.array_equal(ex.scalars, again.scalars):
        yield Failure("pickle", "scalars")


def _apply(case: Case, ex: gce.Explanation) -> Iterator[Failure]:
    """The same rows in another order and without the others have the same scalars."""
    if not len(ex.rows):
        return
    place = case.rng().permutation(len(ex.rows))[: max(1, len(ex.rows) // 2)]
    some = rows.take(case.table.X, ex.rows[place])
    if case.subject.decide(some).any():
        return  # the model itself answers differently among other rows
    again = ex.apply(some)
    if len(again.rows) != len(place):
        yield Failure("apply: affected", f"{len(again.rows)} of {len(place)} rows")
        return
    was, now = ex.scalars[:, place], again.scalars
    differs = np.isfinite(was) != np.isfinite(now)
    rtol = 1e-6 if ex.provenance.method == "exact" else 1e-4
    narrow = ex.provenance.method != "exact" and oracle.is_narrow(case)
    if narrow:  # a lead past the boundary may just be over the budget
        differs &= np.minimum(ex.costs[:, place], again.costs) < 0.9 * ex.budget
    if differs.any():
        yield Failure("apply: another outcome among other rows", f"{int(differs.sum())}")
        return
    both = np.isfinite(was) & np.isfinite(now)
    apart = both & ~np.isclose(was, now, rtol=rtol)
    if narrow:
        apart &= ~_within_leads(case, ex, ex.rows[place], was, now, apart)
    if apart.any() and not _depends_on_batch(case, ex, ex.rows[place], np.maximum(was, now), apart):
        yield Failure("apply: another scalar among other rows", f"{float(np.abs(was - now)[apart].max())}")


def _within_leads(
    case: Case, ex: gce.Explanation, row: NDArray[Any], was: NDArray[Any], now: NDArray[Any], which: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether scalars differ by no more than half of how far they lie past the last unfavourable point before them.

    A search in single precision goes on past the boundary, by a few times what the batch changes; it is measured here.
    """
    walk, out = Walk(case.table, case.ask, ex.space), np.zeros(was.shape, dtype=bool)
    for i, j in np.argwhere(which):
        near, far = sorted((float(was[i, j]), float(now[i, j])))
        low, high = 0.0, near
        for _ in range(3):  # each a hundred times finer than the one before
            k = np.linspace(low, high, 101)
            way = walk.at(ex.directions[i], np.repeat(row[j], len(k)), k)
            bad = np.flatnonzero(~case.outcomes(way))
            if not bad.size or bad[-1] == 100:
                break
            low, high = float(k[bad[-1]]), float(k[bad[-1] + 1])
        out[i, j] = far - near <= 0.5 * (far - low)
    return out


def _depends_on_batch(
    case: Case, ex: gce.Explanation, row: NDArray[Any], scalar: NDArray[Any], which: NDArray[np.bool_]
) -> bool:
    """Whether a searched model itself decides differently in other batches somewhere on the way of each of these."""
    if ex.provenance.method == "exact":
        return False
    walk, rng = Walk(case.table, case.ask, ex.space), case.rng()
    for i, j in np.argwhere(which):
        k = scalar[i, j] * np.linspace(0.0, 1.0, 41)[1:]
        way = walk.at(ex.directions[i], np.repeat(row[j], len(k)), k)
        said = []
        for n in COMPANIES:
            mixed = {name: np.concatenate([v[rng.integers(0, case.table.n_rows, n)], way[name]]) for name, v in
                     case.table.values.items()}  # fmt: skip
            order = rng.permutation(n + len(k))
            found = case.outcomes({name: v[order] for name, v in mixed.items()})
            said.append(found[np.argsort(order)][n:])
        said += [np.array([case.outcomes({name: v[p : p + 1] for name, v in way.items()})[0] for p in range(len(k))])]
        if (np.array(said) == said[0]).all():
            return False
    return True


def _bound(case: Case, ex: gce.Explanation, solve: int = 0) -> Iterator[Failure]:
    if case.ask.robust is not None:
        return
    try:
        bound = ex.lower_bound(solve=solve, time_limit=5.0)
    except (InvalidParameterError, VerificationError):
        return  # none is known for this kind of model, or what is compiled turned out to differ, and that was said
    yield from oracle.bound_holds(case, ex, bound)


def _solve(case: Case, ex: gce.Explanation) -> Iterator[Failure]:
    return _bound(case, ex, solve=6)


def _benefits(case: Case, ex: gce.Explanation) -> Iterator[Failure]:
    """An action made of a few features, taken by everybody or as far as each needs."""
    rng, action = case.rng(), {}
    for c in rng.permutation(np.array([c.name for c in case.table.columns]))[:2]:
        column, f = case.table[str(c)], ex.space[str(c)]
        if not f.can_move:
            continue
        if f.is_block:
            allowed = [k for k, ok in zip(f.categories, f.permitted, strict=True) if ok]
            action[f.name] = allowed[int(rng.integers(len(allowed)))]
        else:
            sign = case.ask.sense(f.name) or int(rng.choice([-1, 1]))
            way = 0.4 * float(np.nanmax(column.values) - np.nanmin(column.values)) if column.is_number else 1.0
            action[f.name] = sign * (max(1.0, round(way)) if f.whole else way)
    if not action:
        return
    for mode in ("fixed", "scaled"):
        found = gce.who_benefits(
            case.subject.model,
            case.table.X,
            action,
            mode=mode,
            space=ex.space,
            cost=ex.cost,
            budget=ex.budget,
            settings=gce.Settings(**case.ask.settings),
            **case.subject.asked,
        )
        yield from (Failure(f"benefits: {f.cause}", f.detail) for f in oracle.check(case, found.explanation))


def _audit(case: Case, ex: gce.Explanation) -> Iterator[Failure]:
    half = np.arange(case.table.n_rows) % 2 == 0
    found = gce.audit(
        case.subject.model,
        case.table.X,
        by={"even": half, "odd": ~half},
        space=ex.space,
        cost=ex.cost,
        budget=ex.budget,
        n_directions=2,
        search=FEW,  # an audit searches several times
        settings=gce.Settings(**case.ask.settings),
        audit_settings=gce.AuditSettings(permutations=19, resamples=20, smallest=5, checks=case.seed % 2 == 0),
        rng=case.seed,
        **case.subject.asked,
    )
    yield from (Failure(f"audit: {f.cause}", f.detail) for f in oracle.check(case, found.explanation))


DOORS = {
    "json": _json,
    "pickle": _pickle,
    "apply": _apply,
    "bound": _bound,
    "solve": _solve,
    "benefits": _benefits,
    "audit": _audit,
}
