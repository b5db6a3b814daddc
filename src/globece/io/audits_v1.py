"""Audits of version 1, which were judged by permutations and by one comparison only: they are judged again.

What such a file does not say (the fingerprints, the checks' intervals, what the score hides) is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from globece.auditing import statistics as st
from globece.auditing.artefact import Check
from globece.auditing.basis import Basis, constraints_of, cost_in_words
from globece.auditing.bygroup import ByGroup
from globece.auditing.curves import curves_of
from globece.auditing.exchange import EVERYBODY
from globece.auditing.groups import Groups
from globece.auditing.measures import Compared, Measures, compare, intervals_of, measured, pairs_of, rejections
from globece.auditing.result import part_of
from globece.auditing.settings import AuditSettings
from globece.auditing.verdict import Evidence, Verdict, conclude
from globece.case.recourse import score
from globece.explanation import Explanation
from globece.io.plain import Node
from globece.space import FloatArray, IntArray

KEYS = (
    "format", "version", "verdict", "overall", "by_group", "comparisons", "spreads", "exchange", "checks", "settings",
    "seed", "groups", "control", "own", "cost", "half", "explanation",
)  # fmt: skip
NOT_KNOWN = "unknown"


def settings_from(node: Node) -> AuditSettings:
    """Settings, which had a margin in units of cost."""
    given = node.keys("level", "smallest", "relevant", "permutations", "resamples", "missing", "checks")
    return AuditSettings(
        level=given["level"].number(),
        smallest=given["smallest"].whole(),
        relevant=given["relevant"].number(),
        permutations=given["permutations"].whole(),
        resamples=given["resamples"].whole(),
        missing="error" if given["missing"].choice("group", "error") == "error" else "group",
        checks=given["checks"].flag(),
    )


def check_from(node: Node) -> Check:
    """A check, which compared significance only: whether a gap keeps its size is not known."""
    given = node.keys("name", "scores", "gap", "p", "survives", "remark")
    scores = {}
    for item in given["scores"].items():
        pair = item.keys("group", "score")
        scores[pair["group"].text()] = pair["score"].number(null=np.nan)
    gap, p = (given[name].number(null=np.nan) for name in ("gap", "p"))
    remark = f"{given['remark'].text()}; its interval was not written"
    return Check(given["name"].text(), scores, gap, np.nan, np.nan, p, None, remark)


def judged_again(
    given: Mapping[str, Node],
    explanation: Explanation,
    groups: Groups,
    control: Groups | None,
    cost: FloatArray,
    own: Mapping[str, tuple[int, ...]],
) -> dict[str, Any]:
    """What follows from the costs in the file: measures, comparisons, verdict, curves."""
    settings, checks = settings_from(given["settings"]), tuple(check_from(node) for node in given["checks"].items())
    budget, rows = explanation.budget, explanation.rows
    label = groups.labels[rows]
    names = [name for i, name in enumerate(groups.names) if (label == i).sum() >= settings.least()]
    levels = np.zeros(explanation.n_rows, dtype=np.int64) if control is None else control.labels + 1
    compared, margin = Compared((), (), {}), np.nan
    if names:
        sample = st.Sample(cost, _among(groups, names)[rows], levels[rows], None, budget, len(names)).ordered()
        margin = settings.margin(score(sample.cost, budget))
        compared = _compared(sample, names, given, settings, margin, (groups, levels, explanation))
    by_group = {
        name: _measures(groups.labels == i, label == i, cost, explanation, settings, names, name)
        for i, name in enumerate(groups.names)
    }
    everybody = np.ones(explanation.n_rows, dtype=bool)
    members = {name: np.flatnonzero(label == groups.index(name)) for name in names}
    basis = _basis(explanation, groups, control)
    remark = "judged again from a file of version 1, which does not say all that it rests on"
    evidence = Evidence(compared.comparisons, by_group, checks, settings, basis, (remark,), ("", np.nan))
    verdict: Verdict = conclude(evidence)
    overall = _measures(everybody, np.ones(len(rows), dtype=bool), cost, explanation, settings, ["x"], "x")
    return {
        "overall": overall,
        "by_group": ByGroup(by_group, overall, (), explanation.space.table),
        "comparisons": compared.comparisons,
        "spreads": compared.spreads,
        "checks": checks,
        "settings": settings,
        "verdict": verdict,
        "basis": basis,
        "curves": curves_of(cost, {**members, EVERYBODY: None}, budget, settings),
        "translations": {
            name: part_of(explanation, np.array(own[name], dtype=np.int64), mine).mean_translation()
            for name, mine in {EVERYBODY: np.arange(len(rows)), **members}.items()
            if name in own
        },
    }


def _among(groups: Groups, names: list[str]) -> IntArray:
    index = np.full(len(groups) + 1, -1, dtype=np.int64)
    for i, name in enumerate(names):
        index[groups.index(name)] = i
    return index[groups.labels]


def _compared(
    sample: st.Sample,
    names: list[str],
    given: Mapping[str, Node],
    settings: AuditSettings,
    margin: float,
    rows: tuple[Groups, IntArray, Explanation],
) -> Compared:
    groups, levels, explanation = rows
    others = {node.key("other").text() for node in given["comparisons"].items()}
    reference = names.index(min(others)) if len(names) > 2 and len(others) == 1 and others < set(names) else None
    compared = compare(sample, names, reference, settings, margin)
    affected = np.zeros(explanation.n_rows, dtype=bool)
    affected[explanation.rows] = True
    who = _among(groups, names), levels, None
    gaps = rejections(affected, who, pairs_of(len(names), reference), settings)
    both = zip(compared.comparisons, gaps, strict=True)
    return replace(compared, comparisons=tuple(replace(c, gaps={"rejection_rate": gap, **c.gaps}) for c, gap in both))


def _measures(
    member: Any, mine: Any, cost: FloatArray, explanation: Explanation, settings: AuditSettings, names: Any, name: str
) -> Measures:
    n = int(member.sum())
    side = st.Side.of(np.ones(n), np.zeros(n, dtype=np.int64), None)
    hit = np.sort(np.isin(np.flatnonzero(member), explanation.rows))
    more: dict[str, Any] = {"rejection_rate_interval": st.share_of(side, hit).interval(settings.level)}
    zeros = np.zeros(int(mine.sum()), dtype=np.int64)
    own = st.Sample(cost[mine], zeros, zeros, None, explanation.budget, 1).ordered()
    if name in names:
        more |= intervals_of(own, own.label == 0, settings.level)
    else:
        more |= {"judged": False, "note": f"{len(zeros)} affected: fewer than {settings.least()}, too few to compare"}
    return measured(n, cost[mine], explanation.budget, **more)


def _basis(explanation: Explanation, groups: Groups, control: Groups | None) -> Basis:
    constraints, free = constraints_of(explanation.space)
    p = explanation.provenance
    return Basis(
        favourable=p.favourable,
        guessed=False,
        model=p.model,
        method=p.method,
        n_rows=explanation.n_rows,
        affected=explanation.n_affected + explanation.n_unknown,
        training=None,
        by=groups.by,
        control=None if control is None else control.by,
        clusters=None,
        constraints=constraints,
        free=free,
        cost=cost_in_words(explanation.cost),
        budget=explanation.budget,
        folds=2,
        candidates=p.candidates,
        seed=None,
        versions={"globece": p.version},
        data=NOT_KNOWN,
        model_data=NOT_KNOWN,
    )
