"""Recourse sets as versioned JSON, described by ``recourse_set.schema.json``.

Which inputs a rule matches is not written: it follows from the rule and the inputs.

>>> FORMAT.schema()["properties"]["format"]
{'const': 'globece.recourse_set'}
"""

from __future__ import annotations

from typing import Any

import numpy as np

from globece.baselines.recourse_set import Condition, GroundSetSummary, RecourseSet, TwoLevelRule, matches_of
from globece.io.documents import Format, recourse_from, shared_data, shared_from
from globece.io.plain import Node, number
from globece.io.records import NUMBER, TEXT, WHOLE, Record, listed
from globece.space import FeatureSpace

KEYS = (
    "format", "version", "provenance", "ground_set", "budget", "n_rows", "rows", "space", "cost", "rules", "inputs",
    "costs",
)  # fmt: skip
PARTS = ("outer", "inner", "then")
GROUND_SET = Record(
    GroundSetSummary,
    {
        "method": TEXT,
        **dict.fromkeys(("size", "evaluated", "optimised", "changes"), WHOLE),
        "accuracy": NUMBER,
        "objective": TEXT,
        "trace": listed(NUMBER),
    },
)


def _data(found: RecourseSet) -> dict[str, Any]:
    return {
        **shared_data(found, found.encoded),
        "ground_set": GROUND_SET.data(found.ground_set),
        "rules": [{part: [_condition_data(c) for c in getattr(rule, part)] for part in PARTS} for rule in found.rules],
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


def _read_1(document: Node) -> RecourseSet:
    given = document.keys(*KEYS)
    shared, inputs = shared_from(given)
    space = shared["space"]
    rules = tuple(_rule_from(item, space) for item in given["rules"].items())
    costs = recourse_from(given["costs"], len(rules), len(inputs), "rule")
    matches = matches_of(rules, space, inputs)
    if (np.isfinite(costs) & ~matches).any():
        given["costs"].fail("null wherever a rule does not match the input")
    ground_set = GROUND_SET.read(given["ground_set"])
    return RecourseSet(**shared, rules=rules, encoded=inputs, matches=matches, costs=costs, ground_set=ground_set)


def _rule_from(node: Node, space: FeatureSpace) -> TwoLevelRule:
    given = node.keys(*PARTS)
    outer, inner, then = (tuple(_condition_from(c, space) for c in given[part].items()) for part in PARTS)
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


FORMAT = Format("recourse_set", "a recourse set", RecourseSet, KEYS, _data, {1: _read_1})
