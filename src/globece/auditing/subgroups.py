"""Subgroups with the worst recourse, found on one half of the inputs and tested on the other.

However many subgroups are examined on the first half, only the few that it proposes are tested on the second, so that
p-values need correcting for those few only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from globece.auditing import statistics as st
from globece.auditing.pool import folds
from globece.errors import check_count, keep_checked, wrong
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray

CHUNK = 4_000_000  # labels drawn at once
BEAM = 40  # subgroups to which one more condition is added
PARTS = 4  # a continuous feature is cut at its quartiles
ALIKE = 0.8  # of two subgroups with a larger Jaccard similarity one is dropped


@dataclass(frozen=True, slots=True)
class Subgroup:
    """A subgroup that was found on one half and tested on the other.

    Attributes
    ----------
    conditions
        What its members have in common, in words.
    n
        Affected inputs in the half on which it was tested.
    share
        Share of that half.
    score, rest
        Its score there, and that of the others.
    gap
        The difference.
    p, p_adjusted
        One-sided p-value for worse recourse; and corrected for all that were tested.
    """

    conditions: tuple[str, ...]
    n: int
    share: float
    score: float
    rest: float
    gap: float
    p: float
    p_adjusted: float

    def __str__(self) -> str:
        return " and ".join(self.conditions)


def worst_subgroups(
    space: FeatureSpace,
    Z: FloatArray,
    cost: FloatArray,
    half: IntArray,
    budget: float,
    *,
    conditions: int,
    top: int,
    smallest: int,
    permutations: int,
    seed: int,
) -> tuple[Subgroup, ...]:
    """Find subgroups on one half and test them on the other; the most significant first."""
    return _extreme(space, Z, np.minimum(cost, budget), half, _Options(conditions, top, smallest, permutations), seed)


def best_subgroups(
    space: FeatureSpace, Z: FloatArray, flips: BoolArray, conditions: int, top: int, smallest: int
) -> tuple[Subgroup, ...]:
    """The subgroups that flip most often; their ``score`` is the share that does."""
    half = folds(Z, np.zeros(len(Z), dtype=np.int64), 0, 2)
    return _extreme(space, Z, flips.astype(np.float64), half, _Options(conditions, top, smallest, 999), 0)


@dataclass(frozen=True, slots=True)
class _Options:
    """Options of the search for subgroups."""

    conditions: int
    top: int
    smallest: int
    permutations: int

    def __post_init__(self) -> None:
        keep_checked(
            self,
            conditions=check_count("conditions", self.conditions),
            top=check_count("top", self.top),
            smallest=check_count("smallest", self.smallest),
        )
        if self.conditions > 3:
            raise wrong("conditions", "at most 3", self.conditions)


def _extreme(
    space: FeatureSpace, Z: FloatArray, charge: FloatArray, half: IntArray, options: _Options, seed: int
) -> tuple[Subgroup, ...]:
    if not len(Z) or not half.any():
        return ()
    order = np.lexsort((*Z.T[::-1], charge, half))  # an order that does not depend on that of the rows
    Z, charge, half = Z[order], charge[order], half[order]
    names, masks = _conditions(space, Z)
    searching, testing = half == 0, half == 1
    proposed = _search(names, masks, charge, searching, testing, options)
    found = []
    rng = np.random.default_rng([seed, 2])
    for picked in proposed:
        member = _members(masks, picked)[testing]
        found.append((picked, member, *_confirm(charge[testing], member, options.permutations, rng)))
    adjusted = st.holm(np.array([p for *_, p in found]))
    subgroups = [
        Subgroup(
            tuple(names[i][1] for i in picked), int(member.sum()), float(member.mean()), one, other, one - other,
            p, float(q),
        )
        for (picked, member, one, other, p), q in zip(found, adjusted, strict=True)
    ]  # fmt: skip
    return tuple(sorted(subgroups, key=lambda s: (s.p_adjusted, -s.gap)))


def _conditions(space: FeatureSpace, Z: FloatArray) -> tuple[list[tuple[str, str]], BoolArray]:
    """Single conditions, a category or a side of a quartile: feature and text, and who satisfies each."""
    names: list[tuple[str, str]] = []
    masks: list[BoolArray] = []
    for f in space.features:
        if f.is_block or f.kind == "ordinal":
            codes = space.codes(Z, f)
            for i, c in enumerate(f.categories):
                names.append((f.name, f"{f.name} = {f.label(c)}"))
                masks.append(codes == i)
            continue
        values = Z[:, f.start]
        known = values[~np.isnan(values)]
        if not known.size:
            continue
        for edge in np.unique(np.quantile(known, np.arange(1, PARTS) / PARTS, method="lower")):
            names += [(f.name, f"{f.name} <= {edge:g}"), (f.name, f"{f.name} > {edge:g}")]
            masks += [values <= edge, values > edge]
    return names, np.array(masks, dtype=bool).reshape(len(names), len(Z))


def _search(
    names: list[tuple[str, str]],
    masks: BoolArray,
    charge: FloatArray,
    searching: BoolArray,
    testing: BoolArray,
    options: _Options,
) -> list[tuple[int, ...]]:
    """The worst subgroups on one half, by a beam search over conditions."""
    here = masks[:, searching].astype(np.float64)
    centred = charge[searching] - charge[searching].mean()
    spread = max(float(centred.std()), 1e-12)
    # both halves must have enough members; counting them on the other half does not use its costs
    there = masks[:, testing].astype(np.float64)
    beam: list[tuple[int, ...]] = [()]
    seen: dict[tuple[int, ...], float] = {}
    for _ in range(options.conditions):
        level: dict[tuple[int, ...], float] = {}
        for picked in beam:
            rows = [i for i in range(len(names)) if all(names[i][0] != names[j][0] for j in picked)]
            if not rows:
                continue
            so_far = here[list(picked)].all(axis=0) if picked else np.ones(here.shape[1], dtype=bool)
            far = there[list(picked)].all(axis=0) if picked else np.ones(there.shape[1], dtype=bool)
            count, total = here[rows] @ so_far, here[rows] @ (so_far * centred)
            enough = (2 * np.minimum(count, there[rows] @ far) >= options.smallest) & (count < here.shape[1])
            for i, n, t, ok in zip(rows, count, total, enough, strict=True):
                if ok:
                    level[tuple(sorted((*picked, i)))] = float(t / np.sqrt(n) / spread)
        beam = sorted(level, key=lambda k: (-level[k], k))[:BEAM]
        seen |= level
    chosen: list[tuple[int, ...]] = []
    members: list[BoolArray] = []
    for picked in sorted(seen, key=lambda k: (-seen[k], len(k), k)):
        mine = _members(masks, picked)[searching]
        if seen[picked] > 0 and not any((mine & m).sum() > ALIKE * (mine | m).sum() for m in members):
            chosen.append(picked)
            members.append(mine)
        if len(chosen) == options.top:
            break
    return chosen


def _members(masks: BoolArray, picked: tuple[int, ...]) -> BoolArray:
    return np.asarray(masks[list(picked)].all(axis=0))


def _confirm(
    charge: FloatArray, member: BoolArray, permutations: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Score of the members and of the others, and the p-value for a higher score of the members."""
    n, size = int(member.sum()), len(charge)
    if not 0 < n < size:
        return np.nan, np.nan, 1.0
    one, other = float(charge[member].mean()), float(charge[~member].mean())
    step, reached = max(1, CHUNK // size), 0
    observed = _t(charge[member].sum(), (charge[member] ** 2).sum(), n, charge)
    for start in range(0, permutations, step):
        times = min(step, permutations - start)
        drawn: NDArray[np.bool_] = rng.permuted(np.broadcast_to(member, (times, size)), axis=1)
        weights = drawn.astype(np.float64)
        ts = _t(weights @ charge, weights @ charge**2, n, charge)
        reached += int((ts >= observed - st.TIE * abs(observed)).sum())
    return one, other, (1 + reached) / (1 + permutations)


def _t(total: FloatArray, squares: FloatArray, n: int, charge: FloatArray) -> FloatArray:
    m = len(charge) - n
    a, b = total / n, (charge.sum() - total) / m
    va = np.maximum(squares / n - a**2, 0.0) / max(n - 1, 1)
    vb = np.maximum(((charge**2).sum() - squares) / m - b**2, 0.0) / max(m - 1, 1)
    error = np.sqrt(va + vb)
    scale = np.abs(charge).max() + 1e-300
    return np.where(np.abs(a - b) <= st.TIE * scale, 0.0, (a - b) / np.maximum(error, 1e-9 * scale))
