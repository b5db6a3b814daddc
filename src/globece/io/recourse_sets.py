"""Recourse sets as versioned JSON, in the form of explanations: strict, checked on reading, the same bytes each time.

``recourse_set.schema.json``, beside this file, says the same in public. Which inputs a rule matches is not written: it
follows from the rule and the inputs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.resources import files as resources
from typing import Any

import numpy as np

from globece.baselines.recourse_set import Condition, GroundSetSummary, RecourseSet, TwoLevelRule
from globece.compact import Rows
from globece.errors import check_instance
from globece.io.documents import (
    inputs_data,
    inputs_from,
    parse,
    provenance_data,
    provenance_from,
    read_document,
    write_document,
)
from globece.io.plain import Node
from globece.io.spaces import cost_data, cost_from, number, numbers, space_data, space_from
from globece.space import FeatureSpace

FORMAT = "globece.recourse_set"
VERSION = 1


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the files that this release writes.

    >>> schema()["properties"]["format"]
    {'const': 'globece.recourse_set'}
    """
    text = resources("globece.io").joinpath("recourse_set.schema.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


# -- out --------------------------------------------------------------------------------------------------------------


def to_dict(found: RecourseSet) -> dict[str, Any]:
    """A recourse set as plain data."""
    check_instance("found", found, RecourseSet)
    return {
        "format": FORMAT,
        "version": VERSION,
        "provenance": provenance_data(found.provenance),
        "ground_set": _summary_data(found.ground_set),
        "budget": number(found.budget, "budget"),
        "n_rows": int(found.n_rows),
        "rows": found.rows.tolist(),
        "space": space_data(found.space),
        "cost": cost_data(found.cost),
        "rules": [
            {part: [_condition_data(c) for c in getattr(rule, part)] for part in ("outer", "inner", "then")}
            for rule in found.rules
        ],
        "inputs": inputs_data(found.space, Rows(found.space, found.inputs)),
        "costs": [numbers(c, f"costs[{i}]", null=np.inf) for i, c in enumerate(found.costs)],
    }


def write(found: RecourseSet, path: Any = None) -> str:
    """Write a recourse set as JSON to ``path``, in one piece or not at all, and return the text.

    Parameters
    ----------
    found
        The recourse set; its model is not written.
    path
        Where to; ``None`` only returns the text.
    """
    return write_document(to_dict(found), path)


def _summary_data(g: GroundSetSummary) -> dict[str, Any]:
    return {
        "method": g.method,
        "size": int(g.size),
        "evaluated": int(g.evaluated),
        "optimised": int(g.optimised),
        "changes": int(g.changes),
        "accuracy": number(g.accuracy, "accuracy"),
        "objective": g.objective,
        "trace": [number(v, "trace") for v in g.trace],
    }


def _condition_data(c: Condition) -> dict[str, Any]:
    return {
        "feature": c.feature,
        "category": None if c.category < 0 else int(c.category),
        "low": None if c.low == -np.inf else number(c.low, "low"),
        "high": None if c.high == np.inf else number(c.high, "high"),
        "moves_to": [None if np.isinf(v) else number(v, "moves_to") for v in (c.first, c.last)]
        if c.first <= c.last
        else None,
    }


# -- back -------------------------------------------------------------------------------------------------------------


def read(source: Any) -> RecourseSet:
    """Read a recourse set from a path, or from the JSON text itself.

    Parameters
    ----------
    source
        A path, or text that starts with ``{``.

    Raises
    ------
    FileFormatError
        If the file is not a recourse set, is of a newer version, is cut off, or does not fit together.
    """
    return read_document(parse(source), FORMAT, "a recourse set", READERS)


def _read_1(document: Node) -> RecourseSet:
    given = document.keys(
        "format",
        "version",
        "provenance",
        "ground_set",
        "budget",
        "n_rows",
        "rows",
        "space",
        "cost",
        "rules",
        "inputs",
        "costs",
    )
    space = space_from(given["space"])
    n_rows = given["n_rows"].whole()
    rows = given["rows"].places(None, "affected input", n_rows)
    if len(np.unique(rows)) != len(rows):
        given["rows"].fail("different positions")
    rules = tuple(_rule_from(item, space) for item in given["rules"].items())
    inputs = inputs_from(given["inputs"], space, len(rows)).dense()
    costs = given["costs"].matrix((len(rules), len(rows)), ("rule", "affected input"), null=np.inf)
    matches = np.array([rule.matches(space, inputs) for rule in rules], dtype=bool).reshape(costs.shape)
    if (costs < 0).any():
        given["costs"].fail("numbers from 0 on, or null for no recourse")
    if (np.isfinite(costs) & ~matches).any():
        given["costs"].fail("null wherever a rule does not match the input")
    return RecourseSet(
        space=space,
        cost=cost_from(given["cost"], space),
        budget=given["budget"].number(positive=True),
        rules=rules,
        inputs=inputs,
        rows=rows,
        n_rows=n_rows,
        matches=matches,
        costs=costs,
        provenance=provenance_from(given["provenance"]),
        ground_set=_summary_from(given["ground_set"]),
    )


def _summary_from(node: Node) -> GroundSetSummary:
    given = node.keys("method", "size", "evaluated", "optimised", "changes", "accuracy", "objective", "trace")
    return GroundSetSummary(
        method=given["method"].text(),
        size=given["size"].whole(),
        evaluated=given["evaluated"].whole(),
        optimised=given["optimised"].whole(),
        changes=given["changes"].whole(),
        accuracy=given["accuracy"].number(),
        objective=given["objective"].text(),
        trace=tuple(v.number() for v in given["trace"].items()),
    )


def _rule_from(node: Node, space: FeatureSpace) -> TwoLevelRule:
    given = node.keys("outer", "inner", "then")
    outer, inner, then = (
        tuple(_condition_from(c, space) for c in given[k].items()) for k in ("outer", "inner", "then")
    )
    if not then:
        given["then"].fail("a list of at least one condition")
    return TwoLevelRule(outer, inner, then)


def _condition_from(node: Node, space: FeatureSpace) -> Condition:
    given = node.keys("feature", "category", "low", "high", "moves_to")
    feature = space[given["feature"].choice(*space.names)]
    category = -1
    if feature.kind != "continuous":
        category = given["category"].whole(high=len(feature.categories) - 1)
    elif given["category"].value is not None:
        given["category"].fail("null, as the feature is continuous")
    first, last = np.inf, -np.inf  # nobody may move there, or a category, which is one value
    if given["moves_to"].value is not None:
        ends = given["moves_to"].items(2, "end")
        first, last = ends[0].number(null=-np.inf), ends[1].number(null=np.inf)
        if not first <= last:
            given["moves_to"].fail("two rising numbers")
    low, high = given["low"].number(null=-np.inf), given["high"].number(null=np.inf)
    if not low < high:
        given["low"].fail("below high")
    return Condition(feature.name, category, low, high, first, last)


READERS: Mapping[int, Callable[[Node], RecourseSet]] = {1: _read_1}
