"""The audit's part of a page: the one place that knows how an audit looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from globece import formatting
from globece.auditing import Audit
from globece.auditing.conclusions import EQUIVALENT, NEGLIGIBLE, OPEN, RELEVANT, UNKNOWN
from globece.auditing.curves import Curve
from globece.auditing.exchange import EVERYBODY
from globece.auditing.measures import Comparison, Measures
from globece.auditing.settings import AuditSettings
from globece.auditing.verdict import SAYS_NOT, headline, who_pays, worst_first
from globece.page import explained, rests, words
from globece.page.about import About
from globece.page.arrays import Page
from globece.page.explained import number
from globece.page.series import Grid, series
from globece.space import FloatArray, IntArray

TONES = {RELEVANT: "bad", OPEN: "open", UNKNOWN: "unknown", NEGLIGIBLE: "good", EQUIVALENT: "good"}
MEASURES = {"coverage": "share", "average_cost": "cost", "rejection_rate": "share"}
BINS = 40
MOST_GROUPS = 8  # whose own directions the page shows
SAID = {True: "yes", False: "no", None: "cannot be told"}
MEANS = {
    RELEVANT: "this one is larger",
    OPEN: "this one may be larger or smaller",
    UNKNOWN: "these rows rule out neither no gap nor one as large as that",
    NEGLIGIBLE: "this one is smaller",
    EQUIVALENT: "one as large as that is ruled out",
}


def audited(page: Page, au: Audit, about: About) -> dict[str, Any]:
    """An audit as plain data with arrays."""
    named = {**au.by_group, EVERYBODY: au.overall}
    ranked = worst_first(au.comparisons)
    return {
        "by": au.groups.by,
        "members": au.members,
        "finding": finding(ranked),
        "verdict": au.verdict.text.split("\n"),
        "level": au.settings.level,
        "limits": page.array(_limits(au), "f64"),
        "groups": [_group(page, au, name, m) for name, m in named.items()],
        "decisions": [_decision(c) for c in ranked],
        "gaps": [_gap(c, measure) for c in ranked for measure in MEASURES if measure in c.gaps],
        "exchange": _exchange(au),
        "checks": [{"name": c.name, "said": SAID[c.survives], "remark": c.remark} for c in au.checks],
        "subgroups": _subgroups(au),
        "warnings": list(au.verdict.warnings),
    }


def answer(au: Audit, about: About) -> str:
    """The answer in a sentence with the gap in a feature's own units, and what the verdict's name means here."""
    if not au.basis.affected:
        return f"Nobody is affected: all {au.basis.n_rows:,} have the favourable outcome."
    if not au.overall.coverage:
        return f"Nobody in any group has recourse within the budget of {au.basis.budget:g}."
    main = headline(au.comparisons)
    if main is None or not np.isfinite(au.verdict.size):
        return "That cannot be told: no gap between the groups can be computed from these rows."
    gap, (worse, better) = main.gaps["score"], who_pays(main)
    low, high = (gap.low, gap.high) if gap.value >= 0 else (-gap.high, -gap.low)
    sure = f"{1 - au.settings.level:.0%} interval {formatting.cost(low, 2)} to {formatting.cost(high, 2)}"
    worth = words.worth(au.explained, about, abs(gap.value))
    told = f"{worse} pay {formatting.cost(abs(gap.value), 2)} more than {better} ({sure})"
    told = f"{told}, {worth}." if worth else f"{told}."
    margin, means = main.decision.margin, MEANS[main.decision.conclusion]
    if not np.isfinite(margin):
        return told
    return f"{told} A gap of {formatting.cost(margin, 2)} or more counts as relevant: {means}."


def finding(ranked: list[Comparison]) -> str:
    """What the decisions come to, as a heading."""
    if not ranked:
        return "No two groups can be compared"
    c = ranked[0]
    conclusion = c.decision.conclusion
    size = c.gaps["score"].value
    worse, better = who_pays(c)
    pays = f"{worse} pay {formatting.cost(abs(size), 2)} more than {better}"
    text = {
        RELEVANT: f"{pays}, and that is relevant",
        OPEN: f"{pays}; whether that is relevant is open",
        UNKNOWN: f"There is not enough evidence to tell {c.group} from {c.other}",
        NEGLIGIBLE: f"{pays}, which is detectable but negligible",
        EQUIVALENT: f"{c.group} pay as much as {c.other}, up to what counts as relevant",
    }[conclusion]
    more = sum(d.decision.conclusion == conclusion for d in ranked) - 1
    return f"{text} (and {more} more like it)" if more else text


def parts(page: Page, au: Audit, about: About) -> dict[str, dict[str, Any]]:
    """The directions that everybody chose, and those of each group, as explanations; none without members."""
    if not au.members:
        return {}
    labels = au.labels()
    everybody = au.explanation_of(EVERYBODY)
    members = {name: np.flatnonzero(labels == i) for i, name in enumerate(au.groups.names)}
    found = {EVERYBODY: explained.explained(page, everybody, about, _some(members))}
    judged = [name for name, m in au.by_group.items() if m.judged and name in au.own]
    for name in judged[:MOST_GROUPS]:
        found[name] = explained.explained(page, au.explanation_of(name), about)
    return found


def _some(members: Mapping[str, IntArray]) -> dict[str, IntArray]:
    return dict(list(members.items())[:MOST_GROUPS])


def _group(page: Page, au: Audit, name: str, m: Measures) -> dict[str, Any]:
    curve = au.curves.get(name)
    found: dict[str, Any] = {
        "name": name,
        "n": m.n,
        "affected": m.affected,
        **{measure: number(getattr(m, measure)) for measure in ("rejection_rate", "coverage", "average_cost", "score")},
        "score_interval": [number(end) for end in m.score_interval],
        "quantiles": [number(q) for q in m.quantiles],
        "judged": m.judged,
        "whole": name == EVERYBODY,
        "note": m.note,
        "series": None,
        "curve": None if curve is None else _curve(page, curve),
        "histogram": _histogram(curve),
    }
    if au.members:
        costs: FloatArray = au.cost if name == EVERYBODY else au.costs_of(name)
        found["series"] = series(page, costs, _limits(au))
    return found


def _limits(au: Audit) -> FloatArray:
    """The limits on cost at which the page knows each group's coverage."""
    return Grid.of(au.cost, au.explained.budget).limits


def _curve(page: Page, curve: Curve) -> dict[str, Any]:
    arrays = {name: page.array(getattr(curve, name), "f32") for name in ("limit", "share", "low", "high")}
    return {"n": curve.n, **arrays}


def _histogram(curve: Curve | None) -> dict[str, Any]:
    """Shares of a group by cost, from its curve, and the share without recourse."""
    if curve is None or not curve.n:
        return {"edges": [0.0, 1.0], "shares": [0.0], "none": 0.0}
    at = np.unique(np.linspace(0, len(curve.limit) - 1, BINS + 1).round().astype(int))
    shares = np.diff(np.concatenate([[0.0], curve.share[at[1:]]]))
    return {
        "edges": curve.limit[at].tolist(),
        "shares": [float(s) for s in shares],
        "none": float(1.0 - curve.share[-1]),
    }


def _decision(c: Comparison) -> dict[str, Any]:
    gap, d = c.gaps["score"], c.decision
    left = sum(c.left_out)
    return {
        "group": c.group,
        "other": c.other,
        "conclusion": d.conclusion,
        "tone": TONES[d.conclusion],
        "value": number(gap.value),
        "low": number(gap.low),
        "high": number(gap.high),
        "p": number(gap.p_adjusted),
        "margin": number(d.margin),
        "power": number(d.power),
        "note": f"{left:,} have nobody to be compared with" if left else "",
    }


def _gap(c: Comparison, measure: str) -> dict[str, Any]:
    gap = c.gaps[measure]
    return {
        "group": c.group,
        "other": c.other,
        "measure": measure.replace("_", " "),
        "unit": MEASURES[measure],
        "value": number(gap.value),
        "low": number(gap.low),
        "high": number(gap.high),
        "p": number(gap.p_adjusted),
    }


def _exchange(au: Audit) -> dict[str, Any]:
    found = au.exchange

    def cell(value: float) -> float | str | None:
        return None if np.isnan(value) else "none" if np.isinf(value) else float(value)

    return {
        "of": list(found.directions_of),
        "to": list(found.applied_to),
        "measures": {
            name: [[cell(v) for v in row] for row in getattr(found, name)]
            for name in ("score", "coverage", "average_cost")
        },
    }


def _subgroups(au: Audit) -> list[dict[str, Any]]:
    if not au.members or not len(au.cost):
        return []
    return [
        {"name": str(s), "n": s.n, "score": number(s.score), "rest": number(s.rest), "p": number(s.p_adjusted)}
        for s in au.subgroups()
    ]


def audit_page(page: Page, au: Audit, about: About, top: dict[str, Any]) -> None:
    """Fill in the page of an audit; ``top`` is what every page has."""
    basis = au.basis
    short = rests.first_line(au.explained, about)
    pairs = [("The audit" if not i else "", text) for i, text in enumerate(basis.sentences())]
    guessed = " (guessed: nobody said so)" if basis.guessed else ""
    data = (about.data_sha256 or basis.data)[: rests.SHORT]
    model = about.model_sha256[: rests.SHORT] or f"decisions {basis.model_data[: rests.SHORT]}"
    asked = [
        f"Favourable outcome: {rests.favourable(au.explained, about)}{guessed}",
        *short[1:4],
        f"Seed: {basis.seed if basis.seed is not None else rests.UNRECORDED}",
        rests.named("Data", about.data, data),
        rests.named("Model", about.model, model),
    ]
    page.data |= {
        "kind": "audit",
        **top,
        "question": about.question or f"Is recourse as costly for every group of {au.groups.by}?",
        "answer": answer(au, about),
        "badge": au.verdict.conclusion,
        "tone": TONES[au.verdict.conclusion],
        "facts": [
            about.model or basis.model,
            f"{basis.n_rows:,} {about.people}",
            f"{basis.affected:,} with the unfavourable outcome",
        ],
        "rests_line": asked,
        "not_said": SAYS_NOT,
        "explanations": parts(page, au, about),
        "audit": audited(page, au, about),
        "rests": rests.rests_on(
            au.explained,
            about,
            pairs,
            again=_again(au, about),
            seed=basis.seed,
            data=f"rows with fingerprint {basis.data}",
            inputs=au.members,
        ),
    }


def _again(au: Audit, about: About) -> str:
    """Python that computes the audit again."""
    basis = au.basis

    def column(given: str) -> str:
        known = given in au.explained.space.names
        return ascii(given) if known else f"...,  # {' '.join(given.split())}"

    more = [f"by={column(basis.by)}"]
    if basis.control is not None:
        more.append(f"control={column(basis.control)}")
    if basis.training is not None:
        more.append(f"training_rows={basis.training!a}")
    usual = AuditSettings()
    changed = [f.name for f in fields(usual) if getattr(au.settings, f.name) != getattr(usual, f.name)]
    if changed:
        named = ", ".join(f"{name}={getattr(au.settings, name)!a}" for name in changed)
        more.append(f"audit_settings=gce.AuditSettings({named})")
    more.append(f"n_directions={max((len(chosen) for chosen in au.own.values()), default=1)}")
    return rests.code(au.explained, about, about.seed if about.seed is not None else basis.seed, "audit", tuple(more))
