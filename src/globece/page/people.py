"""The affected inputs one by one, where a page is asked to list them: only what changes, old and new value."""

from __future__ import annotations

from typing import Any

import numpy as np

from globece import formatting, rays
from globece.explanation import Explanation
from globece.features import Feature
from globece.page.about import About
from globece.page.arrays import Page
from globece.space import FloatArray

MOST_PEOPLE = 20_000  # listed; of more, a sample is drawn and the page says so
SAMPLED_BY = 0  # seed of the sample


def people(page: Page, ex: Explanation, about: About) -> dict[str, Any]:
    """The people's part of a page: every affected input, or a sample of many; or that they were left out."""
    if not about.include_rows:
        return {"listed": False, "n": ex.n_affected}
    n = ex.n_affected
    chosen = np.arange(n)
    if n > MOST_PEOPLE:
        chosen = np.sort(np.random.default_rng(SAMPLED_BY).choice(n, MOST_PEOPLE, replace=False))
    best = ex.minimum_costs()
    direction = best.direction[chosen]
    changes, texts = _changes(ex, chosen, direction, best.scalar[chosen], about)
    return {
        "listed": True,
        "n": n,
        "sampled": n > MOST_PEOPLE,
        "row": page.array(ex.rows[chosen], "u32"),
        "direction": page.array(direction, "i16"),
        "cost": page.array(np.where(direction >= 0, best.cost[chosen], -1.0), "f64"),
        "costs": [page.array(np.where(np.isfinite(c), c, -1.0), "f32") for c in ex.costs[:, chosen]],
        "features": [about.label(f.name) for f in ex.space.features],
        "texts": texts,
        **changes_arrays(page, changes),
    }


def changes_arrays(page: Page, changes: list[list[tuple[int, int, int]]]) -> dict[str, Any]:
    """Changes as four arrays: where each person's begin, and by change the feature and its two values' texts."""
    starts = np.concatenate([[0], np.cumsum([len(c) for c in changes], dtype=np.int64)])
    flat = [change for c in changes for change in c]
    columns = np.array(flat, dtype=np.int64).reshape(-1, 3)
    names = ("change_feature", "change_before", "change_after")
    found = {name: page.array(columns[:, j], "u32") for j, name in enumerate(names)}
    return {"change_start": page.array(starts, "u32"), **found}


def _changes(
    ex: Explanation, chosen: np.ndarray[Any, Any], direction: np.ndarray[Any, Any], scalar: FloatArray, about: About
) -> tuple[list[list[tuple[int, int, int]]], list[str]]:
    """For each person the features that change, with positions of the values' texts in a list that they share."""
    texts: dict[str, int] = {}
    found: list[list[tuple[int, int, int]]] = [[] for _ in chosen]
    inputs = ex.encoded[chosen]
    for i, delta in enumerate(ex.directions):
        mine = np.flatnonzero(direction == i)
        if not mine.size:
            continue
        some = inputs[mine]
        for part, Z in some.chunks():
            after = rays.positions(ex.space, Z, delta, scalar[mine[part]])
            for j, f in enumerate(ex.space.features):
                before_f, after_f = ex.space.feature_values(Z, f), ex.space.feature_values(after, f)
                differs = np.flatnonzero((before_f != after_f) & ~(np.isnan(before_f) & np.isnan(after_f)))
                for r in differs:
                    old = texts.setdefault(_text(f, before_f[r], about), len(texts))
                    new = texts.setdefault(_text(f, after_f[r], about), len(texts))
                    found[mine[part][r]].append((j, old, new))
    return found, list(texts)


def _text(feature: Feature, value: float, about: About) -> str:
    if np.isnan(value):
        return "(missing)"
    if feature.kind != "continuous":
        return about.value(feature, feature.categories[int(value)])
    unit = about.unit(feature.name)
    return f"{formatting.plain_number(float(value))} {unit}".rstrip()
