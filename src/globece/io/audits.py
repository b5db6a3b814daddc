"""Audits as versioned JSON, in the form of explanations: strict, checked on reading, the same bytes each time.

``audit.schema.json``, beside this file, says the same in public. A number that is unknown (nobody is affected, or the
group is not judged) is null, and no recourse is the text ``"no recourse"``: a file holds neither NaN nor infinity.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib.resources import files as resources
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
from globece.errors import FileFormatError, check_instance
from globece.io import files, plain, results
from globece.io.plain import Node
from globece.io.spaces import numbers
from globece.space import FloatArray
from globece.version import __version__

FORMAT = "globece.audit"
VERSION = 1
NO_RECOURSE = "no recourse"
INTERVALS = tuple(f"{m}_interval" for m in MEASURES)
GAP = tuple(f.name for f in fields(Gap))


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the files that this release writes.

    >>> schema()["properties"]["format"]
    {'const': 'globece.audit'}
    """
    text = resources("globece.io").joinpath("audit.schema.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


# -- out --------------------------------------------------------------------------------------------------------------


def to_dict(au: Audit) -> dict[str, Any]:
    """An audit as plain data."""
    check_instance("au", au, Audit)
    v, s = au.verdict, au.settings
    return {
        "format": FORMAT,
        "version": VERSION,
        "verdict": {
            "conclusion": v.conclusion,
            "against": v.against,
            "other": v.other,
            "size": _number(v.size),
            "interval": [_number(x) for x in v.interval],
            "p": _number(v.p),
            "power": _number(v.power),
            "model_bias_against": v.model_bias_against,
            "survives": _survival_data(v.survives),
            "rests_on": list(v.rests_on),
            "warnings": list(v.warnings),
            "text": v.text,
        },
        "overall": _measures_data(au.overall),
        "by_group": [{"group": name, **_measures_data(m)} for name, m in au.by_group.items()],
        "comparisons": [
            {
                "group": c.group,
                "other": c.other,
                "gaps": {m: {name: _number(getattr(gap, name)) for name in GAP} for m, gap in c.gaps.items()},
            }
            for c in au.comparisons
        ],
        "spreads": {
            m: {
                "highest": x.highest,
                "lowest": x.lowest,
                **{name: _number(getattr(x, name)) for name in ("value", "low", "high", "p")},
            }
            for m, x in au.spreads.items()
        },
        "exchange": {
            "directions_of": list(au.exchange.directions_of),
            "applied_to": list(au.exchange.applied_to),
            **{m: [[_number(x) for x in row] for row in getattr(au.exchange, m)] for m in MEASURES},
        },
        "checks": [
            {
                "name": c.name,
                "scores": [{"group": name, "score": _number(x)} for name, x in c.scores.items()],
                "gap": _number(c.gap),
                "p": _number(c.p),
                "survives": c.survives,
                "remark": c.remark,
            }
            for c in au.checks
        ],
        "settings": {f.name: getattr(s, f.name) for f in fields(s)},
        "seed": int(au.seed),
        "groups": _groups_data(au.groups),
        "control": None if au.control is None else _groups_data(au.control),
        "own": [{"group": name, "directions": list(picked)} for name, picked in au.own.items()],
        "cost": numbers(au.cost, "cost", null=np.inf),
        "half": au.half.tolist(),
        "explanation": results.to_dict(au.explanation),
    }


def write(au: Audit, path: Any = None) -> str:
    """Write an audit as JSON to ``path``, in one piece or not at all, and return the text.

    Parameters
    ----------
    au
        The audit; its model is not written.
    path
        Where to; ``None`` only returns the text.
    """
    target = None if path is None else files.check_path("path", path)
    text = plain.dump(to_dict(au))
    if target is not None:
        files.write_text(target, text)
    return text


def _number(value: float) -> float | str | None:
    if np.isnan(value):
        return None
    return NO_RECOURSE if np.isinf(value) else float(value)


def _measures_data(m: Measures) -> dict[str, Any]:
    return {
        "n": m.n,
        "affected": m.affected,
        **{name: _number(getattr(m, name)) for name in ALL_MEASURES},
        "quantiles": [_number(x) for x in m.quantiles],
        **{name: [_number(x) for x in getattr(m, name)] for name in INTERVALS},
        "judged": m.judged,
        "note": m.note,
    }


def _groups_data(g: Groups) -> dict[str, Any]:
    labels = [None if i < 0 else i for i in g.labels.tolist()]
    return {"by": g.by, "features": list(g.features), "names": list(g.names), "labels": labels}


def _survival_data(survives: Mapping[str, bool | None]) -> list[dict[str, Any]]:
    return [{"check": name, "survives": value} for name, value in survives.items()]


# -- back -------------------------------------------------------------------------------------------------------------


def read(source: Any) -> Audit:
    """Read an audit from a path, or from the JSON text itself.

    Parameters
    ----------
    source
        A path, or text that starts with ``{``.

    Raises
    ------
    FileFormatError
        If the file is not an audit, is of a newer version, is cut off, or does not fit together.
    """
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return _read(plain.parse(source, "the text given"))
    path = files.check_path("source", source)
    return _read(plain.parse(files.read_text(path), path))


def _read(document: Node) -> Audit:
    document.key("format").choice(FORMAT)
    version = document.key("version").whole(low=1)
    if version not in READERS:
        raise FileFormatError(
            f"{document.source} is an audit of version {version}, and globece {__version__} reads up to version "
            f"{VERSION}; read it with a newer release"
        )
    return READERS[version](document)


def _read_1(document: Node) -> Audit:
    given = document.keys(
        "format", "version", "verdict", "overall", "by_group", "comparisons", "spreads", "exchange", "checks",
        "settings", "seed", "groups", "control", "own", "cost", "half", "explanation",
    )  # fmt: skip
    explanation = results.read_node(given["explanation"])
    n, n_rows = explanation.n_affected, explanation.n_rows
    groups = _groups_from(given["groups"], n_rows)
    measures = [node.keys("group", *_measure_keys()) for node in given["by_group"].items(len(groups), "group")]
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
    control = None if given["control"].value is None else _groups_from(given["control"], n_rows)
    return Audit(
        overall=_measures_from(given["overall"].keys(*_measure_keys())),
        by_group={part["group"].choice(*groups.names): _measures_from(part) for part in measures},
        comparisons=tuple(_comparison_from(node) for node in given["comparisons"].items()),
        exchange=_exchange_from(given["exchange"]),
        checks=tuple(_check_from(node) for node in given["checks"].items()),
        verdict=_verdict_from(given["verdict"]),
        explanation=explanation,
        own=own,
        cost=cost,
        half=given["half"].places(n, "affected input", 2),
        groups=groups,
        control=control,
        spreads=_spreads_from(given["spreads"]),
        settings=_settings_from(given["settings"]),
        seed=given["seed"].whole(),
    )


def _measure_keys() -> tuple[str, ...]:
    return ("n", "affected", *ALL_MEASURES, "quantiles", *INTERVALS, "judged", "note")


def _measures_from(given: dict[str, Node]) -> Measures:
    return Measures(
        n=given["n"].whole(),
        affected=given["affected"].whole(),
        rejection_rate=_from_number(given["rejection_rate"]),
        coverage=_from_number(given["coverage"]),
        average_cost=_from_number(given["average_cost"]),
        score=_from_number(given["score"]),
        quantiles=tuple(_from_number(x) for x in given["quantiles"].items(len(QUANTILES), "quantile")),
        coverage_interval=_interval(given["coverage_interval"]),
        average_cost_interval=_interval(given["average_cost_interval"]),
        score_interval=_interval(given["score_interval"]),
        judged=given["judged"].flag(),
        note=given["note"].text(),
    )


def _from_number(node: Node) -> float:
    if node.value == NO_RECOURSE and isinstance(node.value, str):
        return np.inf
    return node.number(null=np.nan)


def _interval(node: Node) -> tuple[float, float]:
    low, high = (_from_number(x) for x in node.items(2, "end"))
    return low, high


def _groups_from(node: Node, n_rows: int) -> Groups:
    given = node.keys("by", "features", "names", "labels")
    names = tuple(x.text() for x in given["names"].items())
    labels = np.full(n_rows, -1, dtype=np.int64)
    listed = given["labels"].entries(n_rows, "row")
    inside = np.array([x is not None for x in listed], dtype=bool)
    kept = Node([x for x in listed if x is not None], given["labels"].where, node.source)
    labels[inside] = kept.places(None, "row", len(names))
    return Groups(names, labels, given["by"].text(), tuple(x.text() for x in given["features"].items()))


def _comparison_from(node: Node) -> Comparison:
    given = node.keys("group", "other", "gaps")
    gaps: dict[str, Gap] = {}
    for m, gap in given["gaps"].keys(*ALL_MEASURES).items():
        part = gap.keys(*GAP)
        gaps[m] = Gap(**{name: _from_number(part[name]) for name in GAP})
    return Comparison(given["group"].text(), given["other"].text(), gaps)


def _spreads_from(node: Node) -> dict[str, Spread]:
    if node.value == {}:
        return {}
    found: dict[str, Spread] = {}
    for m, spread in node.keys(*MEASURES).items():
        x = spread.keys("highest", "lowest", "value", "low", "high", "p")
        value, low, high, p = (_from_number(x[name]) for name in ("value", "low", "high", "p"))
        found[m] = Spread(x["highest"].text(), x["lowest"].text(), value, low, high, p)
    return found


def _exchange_from(node: Node) -> Exchange:
    given = node.keys("directions_of", "applied_to", *MEASURES)
    of, to = (tuple(x.text() for x in given[name].items()) for name in ("directions_of", "applied_to"))

    def matrix(part: Node) -> FloatArray:
        rows = [[_from_number(x) for x in row.items(len(to), "group")] for row in part.items(len(of), "group")]
        return np.array(rows, dtype=np.float64).reshape(len(of), len(to))

    return Exchange(of, to, matrix(given["score"]), matrix(given["coverage"]), matrix(given["average_cost"]))


def _check_from(node: Node) -> Check:
    given = node.keys("name", "scores", "gap", "p", "survives", "remark")
    scores: dict[str, float] = {}
    for item in given["scores"].items():
        part = item.keys("group", "score")
        scores[part["group"].text()] = _from_number(part["score"])
    gap, p = _from_number(given["gap"]), _from_number(given["p"])
    return Check(given["name"].text(), scores, gap, p, _survives(given["survives"]), given["remark"].text())


def _survives(node: Node) -> bool | None:
    return None if node.value is None else node.flag()


def _text_or_none(node: Node) -> str | None:
    return None if node.value is None else node.text()


def _verdict_from(node: Node) -> Verdict:
    given = node.keys(*(f.name for f in fields(Verdict)))
    survives: dict[str, bool | None] = {}
    for item in given["survives"].items():
        part = item.keys("check", "survives")
        survives[part["check"].text()] = _survives(part["survives"])
    return Verdict(
        conclusion=given["conclusion"].choice(BIAS, NONE, UNKNOWN),
        against=_text_or_none(given["against"]),
        other=_text_or_none(given["other"]),
        size=_from_number(given["size"]),
        interval=_interval(given["interval"]),
        p=_from_number(given["p"]),
        power=_from_number(given["power"]),
        model_bias_against=_text_or_none(given["model_bias_against"]),
        survives=survives,
        rests_on=tuple(x.text() for x in given["rests_on"].items()),
        warnings=tuple(x.text() for x in given["warnings"].items()),
        text=given["text"].text(),
    )


def _settings_from(node: Node) -> AuditSettings:
    given = node.keys(*(f.name for f in fields(AuditSettings)))
    missing = given["missing"].choice("group", "error")
    return AuditSettings(
        level=given["level"].number(),
        smallest=given["smallest"].whole(),
        relevant=given["relevant"].number(),
        permutations=given["permutations"].whole(),
        resamples=given["resamples"].whole(),
        missing="group" if missing == "group" else "error",
        checks=given["checks"].flag(),
    )


READERS: Mapping[int, Callable[[Node], Audit]] = {1: _read_1}
