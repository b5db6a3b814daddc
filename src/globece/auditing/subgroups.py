"""Which subgroups have the worst recourse? Found on one half of the inputs, confirmed on the other.

However many subgroups were looked at on the first half, only the few that it proposes are tested on the second, so
their p need correcting for those few alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from globece.auditing import statistics as st
from globece.auditing.pool import halves
from globece.errors import check_count, keep_checked, wrong
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray

BEAM = 40  # subgroups that get one more condition
PARTS = 4  # a continuous feature is cut at its quarters
ALIKE = 0.8  # two subgroups that share so much of their inputs are one finding


@dataclass(frozen=True, slots=True)
class Subgroup:
    """A subgroup that one half proposed and the other half judged.

    Attributes
    ----------
    conditions
        What its members have in common, in words.
    n
        Affected inputs in the half that judged, and their share of it.
    share
        Share of that half.
    score, rest
        Its score there, and that of the others.
    gap
        The difference.
    p, p_adjusted
        One-sided: that its recourse is worse; and corrected for all that were proposed.
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
    """Propose subgroups on one half and judge them on the other; the worst confirmed ones first."""
    return _extreme(space, Z, np.minimum(cost, budget), half, _Wish(conditions, top, smallest, permutations), seed)


def best_subgroups(
    space: FeatureSpace, Z: FloatArray, flips: BoolArray, conditions: int, top: int, smallest: int
) -> tuple[Subgroup, ...]:
    """The subgroups of which most flip; their ``score`` is the share that does."""
    half = halves(Z, np.zeros(len(Z), dtype=np.int64), 0)
    return _extreme(space, Z, flips.astype(np.float64), half, _Wish(conditions, top, smallest, 999), 0)


@dataclass(frozen=True, slots=True)
class _Wish:
    """What to look for."""

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
            raise wrong("conditions", "at most 3, or nobody can read them", self.conditions)


def _extreme(
    space: FeatureSpace, Z: FloatArray, charge: FloatArray, half: IntArray, wish: _Wish, seed: int
) -> tuple[Subgroup, ...]:
    if not len(Z) or not half.any():
        return ()
    order = np.lexsort((*Z.T[::-1], charge, half))  # whatever the order of rows
    Z, charge, half = Z[order], charge[order], half[order]
    names, masks = _conditions(space, Z)
    looking, judging = half == 0, half == 1
    proposed = _search(names, masks, charge, looking, judging, wish)
    found = []
    rng = np.random.default_rng([seed, 2])
    for picked in proposed:
        member = _members(masks, picked)[judging]
        found.append((picked, member, *_confirm(charge[judging], member, wish.permutations, rng)))
    adjusted = st.holm(np.array([p for *_, p in found]))
    made = [
        Subgroup(
            tuple(names[i][1] for i in picked), int(member.sum()), float(member.mean()), one, other, one - other,
            p, float(q),
        )
        for (picked, member, one, other, p), q in zip(found, adjusted, strict=True)
    ]  # fmt: skip
    return tuple(sorted(made, key=lambda s: (s.p_adjusted, -s.gap)))


def _conditions(space: FeatureSpace, Z: FloatArray) -> tuple[list[tuple[str, str]], BoolArray]:
    """Single conditions: a category, or a side of a quartile. Feature and words, and who fulfils each."""
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
    looking: BoolArray,
    judging: BoolArray,
    wish: _Wish,
) -> list[tuple[int, ...]]:
    """The subgroups that look worst on one half: conditions are added to the best so far, one at a time."""
    here = masks[:, looking].astype(np.float64)
    centred = charge[looking] - charge[looking].mean()
    spread = max(float(centred.std()), 1e-12)
    # both halves must have enough of them; counting members of the other half looks at no cost there
    there = masks[:, judging].astype(np.float64)
    beam: list[tuple[int, ...]] = [()]
    seen: dict[tuple[int, ...], float] = {}
    for _ in range(wish.conditions):
        level: dict[tuple[int, ...], float] = {}
        for picked in beam:
            rows = [i for i in range(len(names)) if all(names[i][0] != names[j][0] for j in picked)]
            if not rows:
                continue
            so_far = here[list(picked)].all(axis=0) if picked else np.ones(here.shape[1], dtype=bool)
            far = there[list(picked)].all(axis=0) if picked else np.ones(there.shape[1], dtype=bool)
            count, total = here[rows] @ so_far, here[rows] @ (so_far * centred)
            enough = (2 * count >= wish.smallest) & (2 * (there[rows] @ far) >= wish.smallest) & (count < here.shape[1])
            for i, n, t, ok in zip(rows, count, total, enough, strict=True):
                if ok:
                    level[tuple(sorted((*picked, i)))] = float(t / np.sqrt(n) / spread)
        beam = sorted(level, key=lambda k: (-level[k], k))[:BEAM]
        seen |= level
    chosen: list[tuple[int, ...]] = []
    members: list[BoolArray] = []
    for picked in sorted(seen, key=lambda k: (-seen[k], len(k), k)):
        mine = _members(masks, picked)[looking]
        if seen[picked] > 0 and not any((mine & m).sum() > ALIKE * (mine | m).sum() for m in members):
            chosen.append(picked)
            members.append(mine)
        if len(chosen) == wish.top:
            break
    return chosen


def _members(masks: BoolArray, picked: tuple[int, ...]) -> BoolArray:
    return np.asarray(masks[list(picked)].all(axis=0))


def _confirm(
    charge: FloatArray, member: BoolArray, permutations: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Score of the members and of the others, and p of theirs being higher only by chance."""
    n, size = int(member.sum()), len(charge)
    if not 0 < n < size:
        return np.nan, np.nan, 1.0
    one, other = float(charge[member].mean()), float(charge[~member].mean())
    step, reached = max(1, st.CHUNK // size), 0
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
