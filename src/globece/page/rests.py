"""What a result rests on: settings, constraints, cost, origin, versions, fingerprints and warnings."""

from __future__ import annotations

import hashlib
import platform
from typing import Any

import numpy as np

from globece.baselines import RecourseSet
from globece.explanation import Explanation
from globece.page import words
from globece.page.about import About
from globece.space import FeatureSpace

UNRECORDED = "not recorded"
SHORT = 12  # letters of a fingerprint on the first screen


def fingerprint(ex: Explanation | RecourseSet) -> str:
    """SHA-256 of the affected inputs, as they are encoded, with their positions and columns."""
    digest = hashlib.sha256(repr(ex.space.columns).encode())
    digest.update(np.ascontiguousarray(ex.rows, dtype="<i8").tobytes())
    for f in ex.space.features:
        digest.update(np.ascontiguousarray(ex.encoded.feature(f), dtype="<f8").tobytes())
    return digest.hexdigest()


def favourable(ex: Explanation | RecourseSet, about: About) -> str:
    """The favourable outcome, in the report's words and the model's."""
    said = ex.provenance.favourable
    return f"{about.favourable} ({said})" if about.favourable else said


def held(space: FeatureSpace) -> list[str]:
    """Features that were held fixed."""
    return [f.name for f in space.features if f.immutable]


def limits(space: FeatureSpace, about: About) -> list[str]:
    """Other constraints, one per line."""
    found = []
    for f in space.features:
        if f.immutable:
            continue
        if f.sense:
            found.append(f"{about.label(f.name)} may only {'rise' if f.sense > 0 else 'fall'}")
        if f.kind == "continuous" and f.observed[0] <= f.observed[1] and (f.low, f.high) != f.observed:
            found.append(f"{about.label(f.name)} stays between {f.low:g} and {f.high:g}")
        if f.permitted and not all(f.permitted):
            allowed = [about.value(f, c) for c, ok in zip(f.categories, f.permitted, strict=True) if ok]
            found.append(f"{about.label(f.name)} may become {', '.join(allowed) or 'nothing else'}")
        if not f.can_move:
            found.append(f"{about.label(f.name)} is constant, and cannot move")
    return found


def first_line(ex: Explanation | RecourseSet, about: About) -> list[str]:
    """What the first screen says that the answer rests on."""
    p = ex.provenance
    fixed = [about.label(name) for name in held(ex.space)]
    method = "searched: somebody may have a cheaper way that was not seen" if p.method == "searched" else p.method
    example = f"; {words.cost_example(ex, about)}" if isinstance(ex, Explanation) else ""
    return [
        f"Favourable outcome: {favourable(ex, about)}",
        f"Held fixed: {', '.join(fixed[:8]) + (f' and {len(fixed) - 8} more' if len(fixed) > 8 else '') or 'nothing'}",
        f"Cost: {ex.cost.unit}{example}",
        f"Method: {method}",
        f"Seed: {_first_known(about.seed, p.seed)}",
        named("Data", about.data, _data(ex, about)),
        named("Model", about.model, about.model_sha256[:SHORT] or (p.decisions and f"decisions {p.decisions[:SHORT]}")),
    ]


def named(what: str, name: str, fingerprint: str) -> str:
    """A name and a fingerprint, as far as they are known: "Data: loans.csv, da1841ddf180"."""
    return f"{what}: {', '.join(part for part in (name, fingerprint) if part) or UNRECORDED}"


def _first_known(*seeds: int | None) -> int | str:
    return next((seed for seed in seeds if seed is not None), UNRECORDED)


def _data(ex: Explanation | RecourseSet, about: About) -> str:
    """The data's fingerprint: of the file, of the rows, or of the affected inputs, whichever is known first."""
    if about.data_sha256:
        return about.data_sha256[:SHORT]
    if ex.provenance.data:
        return f"rows {ex.provenance.data[:SHORT]}"
    return f"affected inputs {fingerprint(ex)[:SHORT]}" if len(ex.rows) else ""


def code(ex: Explanation, about: About, seed: int | None, call: str, more: tuple[str, ...]) -> str:
    """Python that computes the result again from the rows and the model; what is not recorded is left open.

    Parameters
    ----------
    ex, about, seed
        The explanation, the words for it, and the seed.
    call, more
        The public function, and further arguments of the call.
    """
    lines = ["import globece as gce", "", "# X: the rows. model: the model. This page holds neither."]
    lines.append(f"space = gce.FeatureSpace.from_frame(X{''.join(f', {a}' for a in _constraints(ex.space))})")
    lines += [
        f"result = gce.{call}(",
        "    model,",
        "    X,",
        *(f"    {line}," for line in more),
        f"    favourable=...,  # {' '.join(favourable(ex, about).split())}",
        "    space=space,",
        f"    budget={ex.budget:g},",
        f"    rng={seed}," if seed is not None else "    rng=...,  # the seed is not recorded",
    ]
    if ex.cost.kind != "bins" or ex.cost.norm != "l1" or (ex.cost.weights != 1.0).any():
        lines.append(f"    cost=...,  # {ex.cost.unit}")
    return "\n".join([*lines, ")"])


def _constraints(space: FeatureSpace) -> list[str]:
    """Arguments of ``FeatureSpace.from_frame`` that the data alone do not give."""
    free = [f for f in space.features if not f.immutable]
    given: dict[str, Any] = {
        "immutable": [f.name for f in space.features if f.immutable],
        "increasing": [f.name for f in free if f.sense > 0],
        "decreasing": [f.name for f in free if f.sense < 0],
        "ordinal": {f.name: [f.label(c) for c in f.categories] for f in space.features if f.kind == "ordinal"},
        "ranges": {
            f.name: (f.low, f.high) if np.isfinite([f.low, f.high]).all() else "unbounded"
            for f in free
            if f.kind == "continuous" and f.observed[0] <= f.observed[1] and (f.low, f.high) != f.observed
        },
        "permitted": {
            f.name: [f.label(c) for c, ok in zip(f.categories, f.permitted, strict=True) if ok]
            for f in free
            if f.permitted and not all(f.permitted)
        },
    }
    return [f"{name}={value!a}" for name, value in given.items() if value]


def rests_on(
    ex: Explanation,
    about: About,
    more: list[tuple[str, str]] | None = None,
    *,
    again: str,
    seed: int | None = None,
    data: str = UNRECORDED,
    inputs: bool = True,
) -> dict[str, Any]:
    """Everything that the result rests on, as pairs of a term and its value.

    Parameters
    ----------
    ex, about
        The explanation, and the words for it.
    more
        Further pairs.
    again
        Code that computes the result again, where no command is known.
    seed
        The seed, if the result knows it.
    data
        What is known about the data where nobody told their fingerprint.
    inputs
        Whether the explanation has its affected inputs.
    """
    p = ex.provenance
    seed = next((s for s in (about.seed, seed, p.seed) if s is not None), None)
    data = f"rows with fingerprint {p.data}" if p.data and data == UNRECORDED else data
    model = f"decisions on the rows with fingerprint {p.decisions}" if p.decisions else UNRECORDED
    pairs = [
        ("Favourable outcome", favourable(ex, about)),
        ("Model", f"{p.model}{f' ({about.model})' if about.model else ''}"),
        (
            "Method",
            "exact: minimum scalars follow from the model's structure"
            if p.method == "exact"
            else "searched: the model was asked along each ray, and an earlier flip between two points may be missed",
        ),
        ("Search", f"{p.generator}; {p.candidates:,} candidates"),
        *([("What is left", p.headroom.described)] if p.headroom is not None else []),
        ("Model calls", f"{p.model_calls:,} calls, {p.model_rows:,} rows"),
        ("Complete", "yes" if p.complete else "no: the search was stopped early, and the result is the best so far"),
        ("Budget", f"{ex.budget:g}"),
        ("Cost", f"{ex.cost.unit}; {words.cost_example(ex, about)}"),
        ("Held fixed", ", ".join(about.label(n) for n in held(ex.space)) or "nothing"),
        (
            "Other constraints",
            "; ".join(limits(ex.space, about)) or "none: each feature stays within the range of the data",
        ),
        ("Rounding", f"counterfactuals tolerate a relative rounding error of {p.clearance:.2g}"),
        ("Seed", str(seed) if seed is not None else UNRECORDED),
        ("Date", about.date or UNRECORDED),
        (
            "Data",
            " ".join(part for part in (about.data, about.data_sha256 and f"SHA-256 {about.data_sha256}") if part)
            or data,
        ),
        ("Affected inputs", f"SHA-256 {fingerprint(ex)} (of the encoded rows)" if inputs else "not in this result"),
        ("Model file", f"SHA-256 {about.model_sha256}" if about.model_sha256 else model),
        ("Versions", f"globece {p.version}; NumPy {np.__version__}; Python {platform.python_version()}"),
        *(more or []),
    ]
    notes = list(p.notes)
    if ex.n_unknown and inputs:
        notes.append(
            f"{ex.n_unknown:,} affected inputs are unknown: they were not reached, and no number includes them"
        )
    return {"pairs": [list(pair) for pair in pairs], "notes": notes, "command": about.command or again}
