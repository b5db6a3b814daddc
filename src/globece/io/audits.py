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
from globece.auditing.basis import TRAINING, Basis
from globece.auditing.bygroup import ALL_MEASURES, ByGroup
from globece.auditing.conclusions import CONCLUSIONS, Decision
from globece.auditing.criteria import CRITERIA, REJECTION, AsOther, Criterion, LevelGap
from globece.auditing.curves import Curve
from globece.auditing.exchange import EVERYBODY, Exchange
from globece.auditing.groups import Groups
from globece.auditing.measures import QUANTILES, Comparison, Gap, Measures, Spread
from globece.auditing.result import Audit
from globece.auditing.settings import AuditSettings
from globece.auditing.statistics import MEASURES
from globece.auditing.verdict import Verdict
from globece.explanation import MeanTranslation
from globece.io import audits_v1, results
from globece.io.documents import Format
from globece.io.plain import Node, numbers
from globece.io.records import (
    FLAG,
    NUMBER,
    TEXT,
    WHOLE,
    Codec,
    Record,
    choice,
    listed,
    mapped,
    maybe,
    object_schema,
    paired,
)
from globece.space import FloatArray

KEYS = (
    "format", "version", "favourable", "members", "verdict", "overall", "by_group", "comparisons", "criteria",
    "by_level", "as_other", "spreads",
    "exchange", "checks", "curves", "translations", "settings", "seed", "basis", "groups", "control", "own", "cost",
    "fold", "clusters", "explanation",
)  # fmt: skip
NO_RECOURSE = "no recourse"
MOST_FOLDS = 1000


def _measure_data(value: float, _: str) -> float | str | None:
    if np.isnan(value):
        return None
    return NO_RECOURSE if np.isinf(value) else float(value)


def _measure_from(node: Node) -> float:
    if isinstance(node.value, str) and node.value == NO_RECOURSE:
        return np.inf
    return node.number(null=np.nan)


MEASURE = Codec(_measure_data, _measure_from, {"$ref": "#/$defs/number"})
INTERVAL = listed(MEASURE, 2, "end")
MEASURED = Record(
    Measures,
    {
        "n": WHOLE,
        "affected": WHOLE,
        **dict.fromkeys(ALL_MEASURES, MEASURE),
        "quantiles": listed(MEASURE, len(QUANTILES), "quantile"),
        **{f"{m}_interval": INTERVAL for m in (*MEASURES, "rejection_rate")},
        "judged": FLAG,
        "note": TEXT,
    },
)
GAP = Record(Gap, {f.name: MEASURE for f in fields(Gap)})
DECISION = Record(
    Decision,
    {
        "conclusion": choice(*CONCLUSIONS),
        "margin": MEASURE,
        "within": INTERVAL,
        "p_within": MEASURE,
        "power": MEASURE,
    },
)
COMPARISON = Record(
    Comparison,
    {
        "group": TEXT,
        "other": TEXT,
        "decision": DECISION,
        "gaps": mapped(GAP, *ALL_MEASURES),
        "left_out": listed(WHOLE, 2, "side"),
    },
)
CRITERION = Record(
    Criterion,
    {
        "name": choice(*CRITERIA, REJECTION),
        "group": TEXT,
        "other": TEXT,
        **dict.fromkeys(("one", "two"), MEASURE),
        "gap": GAP,
        "at": MEASURE,
    },
)
LEVEL_GAP = Record(LevelGap, {"level": TEXT, "group": TEXT, "other": TEXT, "n": listed(WHOLE, 2, "side"), "gap": GAP})
AS_OTHER = Record(
    AsOther,
    {
        "group": TEXT,
        "other": TEXT,
        "n": WHOLE,
        **dict.fromkeys(("own", "flipped", "accepted"), MEASURE),
        "gap": GAP,
    },
)
SPREAD = Record(
    Spread,
    {
        "highest": TEXT,
        "lowest": TEXT,
        **dict.fromkeys(("value", "low", "high", "p"), MEASURE),
        "values": listed(MEASURE, 2, "side"),
    },
)
SPREADS = mapped(SPREAD, *MEASURES)
CHECK = Record(
    Check,
    {
        "name": TEXT,
        "scores": paired("group", "score", MEASURE),
        **dict.fromkeys(("gap", "low", "high", "p"), MEASURE),
        "survives": maybe(FLAG),
        "remark": TEXT,
    },
)
VERDICT = Record(
    Verdict,
    {
        "favourable": TEXT,
        "conclusion": choice(*CONCLUSIONS),
        "against": maybe(TEXT),
        "other": maybe(TEXT),
        "also": listed(TEXT),
        "size": MEASURE,
        "interval": INTERVAL,
        "p": MEASURE,
        "margin": MEASURE,
        "power": MEASURE,
        "not_compared": listed(TEXT),
        "model_bias_against": maybe(TEXT),
        "survives": paired("check", "survives", maybe(FLAG)),
        "rests_on": listed(TEXT),
        "warnings": listed(TEXT),
        "text": TEXT,
    },
)
SMALLEST = Codec(
    lambda value, _: value,
    lambda node: "auto" if node.value == "auto" else node.whole(),
    {"anyOf": [WHOLE.schema, {"const": "auto"}]},
)
SETTINGS = Record(
    AuditSettings,
    {
        "level": NUMBER,
        "smallest": SMALLEST,
        "relevant": maybe(NUMBER),
        "relevant_share": NUMBER,
        "permutations": WHOLE,
        "resamples": WHOLE,
        "missing": choice("group", "error"),
        "checks": FLAG,
    },
)
BASIS = Record(
    Basis,
    {
        "favourable": TEXT,
        "guessed": FLAG,
        "model": TEXT,
        "method": TEXT,
        "n_rows": WHOLE,
        "affected": WHOLE,
        "training": maybe(choice(*TRAINING)),
        "by": TEXT,
        "control": maybe(TEXT),
        "clusters": maybe(WHOLE),
        "constraints": paired("feature", "how", TEXT),
        "free": listed(TEXT),
        "cost": TEXT,
        "budget": NUMBER,
        "folds": WHOLE,
        "candidates": WHOLE,
        "seed": maybe(WHOLE),
        "versions": paired("name", "version", TEXT),
        "data": TEXT,
        "model_data": TEXT,
    },
)


def _data(au: Audit) -> dict[str, Any]:
    return {
        "favourable": au.basis.favourable,
        "members": bool(au.members),
        "verdict": VERDICT.data(au.verdict),
        "overall": MEASURED.data(au.overall),
        "by_group": [{"group": name, **MEASURED.data(m)} for name, m in au.by_group.items()],
        "comparisons": [COMPARISON.data(c) for c in au.comparisons],
        "criteria": [CRITERION.data(c) for c in au.criteria],
        "by_level": [LEVEL_GAP.data(c) for c in au.by_level],
        "as_other": [AS_OTHER.data(c) for c in au.as_other],
        "spreads": SPREADS.data(au.spreads, "spreads"),
        "exchange": {
            "directions_of": list(au.exchange.directions_of),
            "applied_to": list(au.exchange.applied_to),
            **{m: [[_measure_data(x, m) for x in row] for row in getattr(au.exchange, m)] for m in MEASURES},
        },
        "checks": [CHECK.data(c) for c in au.checks],
        "settings": SETTINGS.data(au.settings),
        "curves": _curves_data(au),
        "translations": [_translation_data(name, t) for name, t in au.translations.items()],
        "seed": int(au.seed),
        "basis": BASIS.data(au.basis),
        "groups": _groups_data(au.groups),
        "control": None if au.control is None else _groups_data(au.control),
        "own": [{"group": name, "directions": list(picked)} for name, picked in au.own.items()],
        "cost": numbers(au.cost, "cost", null=np.inf),
        "fold": au.fold.tolist(),
        "clusters": None if au.clusters is None else au.clusters.tolist(),
        "explanation": results.FORMAT.to_dict(au.explained),
    }


def _curves_data(au: Audit) -> dict[str, Any]:
    limit = next(iter(au.curves.values())).limit if au.curves else np.zeros(0)
    groups = [
        {"group": name, "n": int(c.n), **{side: numbers(getattr(c, side), side) for side in ("share", "low", "high")}}
        for name, c in au.curves.items()
    ]
    return {"limit": numbers(limit, "limit"), "groups": groups}


def _curves_from(node: Node) -> dict[str, Curve]:
    given = node.keys("limit", "groups")
    points = len(given["limit"].entries())
    limit = given["limit"].vector(points, "point")
    found = {}
    for item in given["groups"].items():
        part = item.keys("group", "n", "share", "low", "high")
        shares = (part[side].vector(points, "point") for side in ("share", "low", "high"))
        found[part["group"].text()] = Curve(part["n"].whole(), limit, *shares)
    return found


def _translation_data(name: str, t: MeanTranslation) -> dict[str, Any]:
    moved = np.flatnonzero(t.share > 0)
    return {
        "group": name,
        "features": [t.features[i] for i in moved],
        **{what: numbers(getattr(t, what)[moved], what) for what in ("change", "share", "cost")},
    }


def _translation_from(node: Node) -> tuple[str, MeanTranslation]:
    given = node.keys("group", "features", "change", "share", "cost")
    features = given["features"].texts()
    values = (given[what].vector(len(features), "feature") for what in ("change", "share", "cost"))
    return given["group"].text(), MeanTranslation(features, *values)


def _groups_data(g: Groups) -> dict[str, Any]:
    labels = [None if i < 0 else i for i in g.labels.tolist()]
    return {"by": g.by, "features": list(g.features), "names": list(g.names), "labels": labels}


def _read_2(document: Node) -> Audit:
    given = document.keys(*KEYS)
    explanation = results.FORMAT.read_node(given["explanation"])
    members = given["members"].flag()
    n, n_rows = explanation.n_affected, explanation.n_rows if members else 0
    groups = _groups_from(given["groups"], n_rows)
    cost = given["cost"].vector(n, "affected input", null=np.inf)
    if (cost < 0).any():
        given["cost"].fail("numbers from 0 on, or null for no recourse")
    parts = [node.keys("group", *MEASURED.fields) for node in given["by_group"].items(len(groups), "group")]
    by_group = {part["group"].choice(*groups.names): MEASURED.build(part) for part in parts}
    overall, more = MEASURED.read(given["overall"]), listed(CRITERION).read(given["criteria"])
    return Audit(
        overall=overall,
        by_group=ByGroup(by_group, overall, more, explanation.space.table),
        comparisons=listed(COMPARISON).read(given["comparisons"]),
        criteria=more,
        by_level=listed(LEVEL_GAP).read(given["by_level"]),
        as_other=listed(AS_OTHER).read(given["as_other"]),
        exchange=_exchange_from(given["exchange"]),
        checks=listed(CHECK).read(given["checks"]),
        verdict=VERDICT.read(given["verdict"]),
        explained=explanation,
        own=_own_from(given["own"], groups, explanation.n_directions),
        curves=_curves_from(given["curves"]),
        translations=dict(_translation_from(node) for node in given["translations"].items()),
        cost=cost,
        fold=given["fold"].places(n, "affected input", MOST_FOLDS),
        groups=groups,
        control=None if given["control"].value is None else _groups_from(given["control"], n_rows),
        clusters=None if given["clusters"].value is None else given["clusters"].places(n_rows, "row", max(n_rows, 1)),
        spreads={} if given["spreads"].value == {} else SPREADS.read(given["spreads"]),
        settings=SETTINGS.read(given["settings"]),
        basis=BASIS.read(given["basis"]),
        seed=given["seed"].whole(),
        members=members,
    )


def _read_1(document: Node) -> Audit:
    given = document.keys(*audits_v1.KEYS)
    explanation = results.FORMAT.read_node(given["explanation"])
    n, n_rows = explanation.n_affected, explanation.n_rows
    groups = _groups_from(given["groups"], n_rows)
    control = None if given["control"].value is None else _groups_from(given["control"], n_rows)
    cost = given["cost"].vector(n, "affected input", null=np.inf)
    own = _own_from(given["own"], groups, explanation.n_directions)
    return Audit(
        **audits_v1.judged_again(given, explanation, groups, control, cost, own),
        exchange=_exchange_from(given["exchange"]),
        criteria=(),
        by_level=(),
        as_other=(),
        explained=explanation,
        own=own,
        cost=cost,
        fold=given["half"].places(n, "affected input", 2),
        groups=groups,
        control=control,
        clusters=None,
        seed=given["seed"].whole(),
    )


def _own_from(node: Node, groups: Groups, n_directions: int) -> dict[str, tuple[int, ...]]:
    own: dict[str, tuple[int, ...]] = {}
    for item in node.items():
        part = item.keys("group", "directions")
        name = part["group"].choice(EVERYBODY, *groups.names)
        own[name] = tuple(part["directions"].places(None, "direction", n_directions).tolist())
    if EVERYBODY not in own:
        node.fail(f"a list with an entry for {EVERYBODY!r}")
    return own


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


def schema() -> dict[str, Any]:
    """The JSON Schema of an audit, out of its parts; ``audit.schema.json`` is a copy of it."""
    number, whole = {"type": "number"}, WHOLE.schema

    def listing(of: Any) -> dict[str, Any]:
        return {"type": "array", "items": of}

    def nullable(of: Any) -> dict[str, Any]:
        return {"anyOf": [of, {"type": "null"}]}

    texts = listing(TEXT.schema)
    groups = object_schema({"by": TEXT.schema, "features": texts, "names": texts, "labels": listing(nullable(whole))})
    by_group = {"group": TEXT.schema, **{name: codec.schema for name, codec in MEASURED.fields.items()}}
    curve = {"group": TEXT.schema, "n": whole, **dict.fromkeys(("share", "low", "high"), listing(number))}
    moved = {"group": TEXT.schema, "features": texts, **dict.fromkeys(("change", "share", "cost"), listing(number))}
    spreads = SPREADS.schema
    properties: dict[str, Any] = {
        "format": {"const": "globece.audit"},
        "version": {"const": FORMAT.version},
        "favourable": TEXT.schema,
        "members": FLAG.schema,
        "verdict": VERDICT.schema,
        "overall": MEASURED.schema,
        "by_group": listing(object_schema(by_group)),
        "comparisons": listing(COMPARISON.schema),
        "criteria": listing(CRITERION.schema),
        "by_level": listing(LEVEL_GAP.schema),
        "as_other": listing(AS_OTHER.schema),
        "spreads": {"anyOf": [spreads, object_schema({})]},
        "exchange": object_schema(
            {"directions_of": texts, "applied_to": texts, **dict.fromkeys(MEASURES, listing(listing(MEASURE.schema)))}
        ),
        "checks": listing(CHECK.schema),
        "curves": object_schema({"limit": listing(number), "groups": listing(object_schema(curve))}),
        "translations": listing(object_schema(moved)),
        "settings": SETTINGS.schema,
        "seed": whole,
        "basis": BASIS.schema,
        "groups": groups,
        "control": nullable(groups),
        "own": listing(object_schema({"group": TEXT.schema, "directions": listing(whole)})),
        "cost": listing(nullable({"type": "number", "minimum": 0})),
        "fold": listing(whole),
        "clusters": nullable(listing(whole)),
        "explanation": {"type": "object", "properties": {"format": {"const": "globece.explanation"}}},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "globece.audit",
        "title": "A recourse-bias audit of globece",
        "description": "Unknown numbers are null, and no recourse is the text 'no recourse'; in cost, null is no "
        "recourse. Without members there is nobody's row, group or cost.",
        **object_schema(properties),
        "$defs": {"number": {"anyOf": [number, {"type": "null"}, {"const": NO_RECOURSE}]}},
    }


FORMAT = Format("audit", "an audit", Audit, KEYS, _data, {1: _read_1, 2: _read_2})
