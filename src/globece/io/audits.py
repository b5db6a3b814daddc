"""Audits as versioned JSON, described by ``audit.schema.json``.

A number that is unknown (nobody is affected, or the group is not judged) is null, and no recourse is the text
``"no recourse"``: a file holds neither NaN nor infinity.

>>> FORMAT.schema()["properties"]["format"]
{'const': 'globece.audit'}
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from globece.auditing.artefact import Check
from globece.auditing.exchange import EVERYBODY, Exchange
from globece.auditing.groups import Groups
from globece.auditing.measures import QUANTILES, Comparison, Gap, Measures, Spread
from globece.auditing.result import ALL_MEASURES, Audit
from globece.auditing.settings import AuditSettings
from globece.auditing.statistics import MEASURES
from globece.auditing.verdict import BIAS, NONE, UNKNOWN, Verdict
from globece.io import results
from globece.io.documents import Format
from globece.io.plain import Node, numbers
from globece.io.records import FLAG, NUMBER, TEXT, WHOLE, Codec, Record, choice, listed, mapped, maybe, paired
from globece.space import FloatArray

KEYS = (
    "format", "version", "verdict", "overall", "by_group", "comparisons", "spreads", "exchange", "checks", "settings",
    "seed", "groups", "control", "own", "cost", "half", "explanation",
)  # fmt: skip
NO_RECOURSE = "no recourse"


def _measure_data(value: float, _: str) -> float | str | None:
    if np.isnan(value):
        return None
    return NO_RECOURSE if np.isinf(value) else float(value)


def _measure_from(node: Node) -> float:
    if isinstance(node.value, str) and node.value == NO_RECOURSE:
        return np.inf
    return node.number(null=np.nan)


MEASURE = Codec(_measure_data, _measure_from)
INTERVAL = listed(MEASURE, 2, "end")
MEASURED = Record(
    Measures,
    {
        "n": WHOLE,
        "affected": WHOLE,
        **dict.fromkeys(ALL_MEASURES, MEASURE),
        "quantiles": listed(MEASURE, len(QUANTILES), "quantile"),
        **{f"{m}_interval": INTERVAL for m in MEASURES},
        "judged": FLAG,
        "note": TEXT,
    },
)
GAP = Record(Gap, {f.name: MEASURE for f in fields(Gap)})
COMPARISON = Record(Comparison, {"group": TEXT, "other": TEXT, "gaps": mapped(GAP, *ALL_MEASURES)})
SPREAD = Record(
    Spread, {"highest": TEXT, "lowest": TEXT, "value": MEASURE, "low": MEASURE, "high": MEASURE, "p": MEASURE}
)
SPREADS = mapped(SPREAD, *MEASURES)
CHECK = Record(
    Check,
    {
        "name": TEXT,
        "scores": paired("group", "score", MEASURE),
        "gap": MEASURE,
        "p": MEASURE,
        "survives": maybe(FLAG),
        "remark": TEXT,
    },
)
VERDICT = Record(
    Verdict,
    {
        "conclusion": choice(BIAS, NONE, UNKNOWN),
        "against": maybe(TEXT),
        "other": maybe(TEXT),
        "size": MEASURE,
        "interval": INTERVAL,
        "p": MEASURE,
        "power": MEASURE,
        "model_bias_against": maybe(TEXT),
        "survives": paired("check", "survives", maybe(FLAG)),
        "rests_on": listed(TEXT),
        "warnings": listed(TEXT),
        "text": TEXT,
    },
)
SETTINGS = Record(
    AuditSettings,
    {
        "level": NUMBER,
        "smallest": WHOLE,
        "relevant": NUMBER,
        "permutations": WHOLE,
        "resamples": WHOLE,
        "missing": choice("group", "error"),
        "checks": FLAG,
    },
)


def _data(au: Audit) -> dict[str, Any]:
    return {
        "verdict": VERDICT.data(au.verdict),
        "overall": MEASURED.data(au.overall),
        "by_group": [{"group": name, **MEASURED.data(m)} for name, m in au.by_group.items()],
        "comparisons": [COMPARISON.data(c) for c in au.comparisons],
        "spreads": SPREADS.data(au.spreads, "spreads"),
        "exchange": {
            "directions_of": list(au.exchange.directions_of),
            "applied_to": list(au.exchange.applied_to),
            **{m: [[_measure_data(x, m) for x in row] for row in getattr(au.exchange, m)] for m in MEASURES},
        },
        "checks": [CHECK.data(c) for c in au.checks],
        "settings": SETTINGS.data(au.settings),
        "seed": int(au.seed),
        "groups": _groups_data(au.groups),
        "control": None if au.control is None else _groups_data(au.control),
        "own": [{"group": name, "directions": list(picked)} for name, picked in au.own.items()],
        "cost": numbers(au.cost, "cost", null=np.inf),
        "half": au.half.tolist(),
        "explanation": results.FORMAT.to_dict(au.explanation),
    }


def _groups_data(g: Groups) -> dict[str, Any]:
    labels = [None if i < 0 else i for i in g.labels.tolist()]
    return {"by": g.by, "features": list(g.features), "names": list(g.names), "labels": labels}


def _read_1(document: Node) -> Audit:
    given = document.keys(*KEYS)
    explanation = results.FORMAT.read_node(given["explanation"])
    n, n_rows = explanation.n_affected, explanation.n_rows
    groups = _groups_from(given["groups"], n_rows)
    by_group = [node.keys("group", *MEASURED.fields) for node in given["by_group"].items(len(groups), "group")]
    own: dict[str, tuple[int, ...]] = {}
    for node in given["own"].items():
        part = node.keys("group", "directions")
        name = part["group"].choice(EVERYBODY, *groups.names)
        own[name] = tuple(part["directions"].places(None, "direction", explanation.n_directions).tolist())
    if EVERYBODY not in own:
        given["own"].fail(f"a list with an entry for {EVERYBODY!r}")
    cost = given["cost"].vector(n, "affected input", null=np.inf)
    if (cost < 0).any():
        given["cost"].fail("numbers from 0 on, or null for no recourse")
    return Audit(
        overall=MEASURED.read(given["overall"]),
        by_group={part["group"].choice(*groups.names): MEASURED.build(part) for part in by_group},
        comparisons=listed(COMPARISON).read(given["comparisons"]),
        exchange=_exchange_from(given["exchange"]),
        checks=listed(CHECK).read(given["checks"]),
        verdict=VERDICT.read(given["verdict"]),
        explanation=explanation,
        own=own,
        cost=cost,
        half=given["half"].places(n, "affected input", 2),
        groups=groups,
        control=None if given["control"].value is None else _groups_from(given["control"], n_rows),
        spreads={} if given["spreads"].value == {} else SPREADS.read(given["spreads"]),
        settings=SETTINGS.read(given["settings"]),
        seed=given["seed"].whole(),
    )


def _groups_from(node: Node, n_rows: int) -> Groups:
    given = node.keys("by", "features", "names", "labels")
    names = given["names"].texts()
    labels = np.full(n_rows, -1, dtype=np.int64)
    entries = given["labels"].entries(n_rows, "row")
    inside = np.array([x is not None for x in entries], dtype=bool)
    kept = Node([x for x in entries if x is not None], given["labels"].where, node.source)
    labels[inside] = kept.places(None, "row", len(names))
    return Groups(names, labels, given["by"].text(), given["features"].texts())


def _exchange_from(node: Node) -> Exchange:
    given = node.keys("directions_of", "applied_to", *MEASURES)
    of, to = given["directions_of"].texts(), given["applied_to"].texts()
    rows = listed(listed(MEASURE, len(to), "group"), len(of), "group")

    def matrix(part: Node) -> FloatArray:
        return np.array(rows.read(part), dtype=np.float64).reshape(len(of), len(to))

    return Exchange(of, to, matrix(given["score"]), matrix(given["coverage"]), matrix(given["average_cost"]))


FORMAT = Format("audit", "an audit", Audit, KEYS, _data, {1: _read_1})
