"""A feature space and its cost model as plain data, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from globece.costs import CostModel, Norm, Scale
from globece.io import native
from globece.io.plain import Node, number, numbers
from globece.space import Feature, FeatureSpace, Kind
from globece.tables import Table

# -- the space --------------------------------------------------------------------------------------------------------


def space_data(space: FeatureSpace) -> dict[str, Any]:
    """A feature space as plain data."""
    return {"table": native.describe(space.table), "features": [_feature_data(f) for f in space.features]}


def _feature_data(f: Feature) -> dict[str, Any]:
    where = f"feature {f.name!r}"
    return {
        "name": f.name,
        "kind": f.kind,
        "start": f.start,
        "stop": f.stop,
        "categories": [native.plain_value(c, where) for c in f.categories],
        "permitted": [bool(p) for p in f.permitted],
        "low": None if f.low == -np.inf else number(f.low, f"{where}: low"),
        "high": None if f.high == np.inf else number(f.high, f"{where}: high"),
        "observed": [number(v, f"{where}: observed") for v in f.observed],
        "whole": bool(f.whole),
        "sense": int(f.sense),
        "immutable": bool(f.immutable),
        "sources": list(f.sources),
    }


def space_from(node: Node) -> FeatureSpace:
    """A feature space out of plain data."""
    given = node.keys("table", "features")
    table, listed = native.rebuild(given["table"]), given["features"]
    features: list[Feature] = []
    for item in listed.items():
        features.append(_feature_from(item, features[-1].stop if features else 0))
    if not features:
        listed.fail("a list of at least one feature")
    if len({f.name for f in features}) != len(features):
        listed.fail("features of different names")
    sources = [source for f in features for source in f.sources]
    if sorted(sources) != sorted(table.names):
        listed.fail(f"features whose sources are the columns {list(table.names)[:20]}, each once")
    return FeatureSpace(tuple(features), _buildable(table, features))


def _buildable(table: Table, features: list[Feature]) -> Table:
    """The table, tried on one row: types and categories come apart in a file, and may not fit each other."""
    columns: dict[str, Any] = {}
    for f in features:
        if f.kind != "continuous" and len(f.sources) == 1:
            columns[f.sources[0]] = (f.categories, np.zeros(1, dtype=np.int64))
        else:
            columns.update({source: np.zeros(1) for source in f.sources})
    return native.tried(table, columns, 1)


def _feature_from(node: Node, start: int) -> Feature:
    given = node.keys(*(f.name for f in fields(Feature)))
    kind, categories = _kind(given["kind"]), tuple(c.scalar() for c in given["categories"].items())
    stop = start + _width(kind, categories, given)
    least, most = given["observed"].vector(2, "end of the range").tolist()
    return Feature(
        name=given["name"].text(),
        kind=kind,
        start=given["start"].whole(low=start, high=start),
        stop=given["stop"].whole(low=stop, high=stop),
        categories=categories,
        permitted=tuple(p.flag() for p in given["permitted"].items(len(categories), "category")),
        low=given["low"].number(null=-np.inf),
        high=given["high"].number(null=np.inf),
        observed=(least, most),
        whole=given["whole"].flag(),
        sense=given["sense"].whole(low=-1, high=1),
        immutable=given["immutable"].flag(),
        sources=given["sources"].texts(),
    )


def _kind(node: Node) -> Kind:
    kinds: dict[str, Kind] = {"continuous": "continuous", "categorical": "categorical", "ordinal": "ordinal"}
    return kinds[node.choice(*kinds)]


def _width(kind: Kind, categories: tuple[Any, ...], given: dict[str, Node]) -> int:
    """Number of encoded columns; raise where categories, sources and kind do not belong together."""
    least = {"continuous": 0, "ordinal": 2, "categorical": 1}[kind]
    if kind == "continuous" and categories:
        given["categories"].fail("empty, as the feature is continuous")
    if len(categories) < least or len(set(categories)) != len(categories):
        given["categories"].fail(f"{least} or more different values, as the feature is {kind}")
    width = len(categories) if kind == "categorical" else 1
    if len(given["sources"].entries()) not in (1, width):
        given["sources"].fail("one column" if width == 1 else f"one column, or {width} columns")
    return width


# -- the cost model ---------------------------------------------------------------------------------------------------


def cost_data(cost: CostModel) -> dict[str, Any]:
    """A cost model as plain data, without its space."""
    scales = [
        {
            "feature": name,
            "knots": numbers(scale.knots, f"cost: knots of {name!r}"),
            "levels": numbers(scale.levels, f"cost: levels of {name!r}"),
        }
        for name, scale in cost.scales.items()
    ]
    return {"kind": cost.kind, "norm": cost.norm, "weights": numbers(cost.weights, "cost: weights"), "scales": scales}


def cost_from(node: Node, space: FeatureSpace) -> CostModel:
    """A cost model out of plain data."""
    given = node.keys("kind", "norm", "weights", "scales")
    weights = given["weights"].vector(len(space.features), "feature")
    if not (weights > 0).all():
        given["weights"].items()[int((~(weights > 0)).argmax())].number(positive=True)
    scales: dict[str, Scale] = {}
    for item in given["scales"].items():
        scale = item.keys("feature", "knots", "levels")
        name = scale["feature"].choice(*(f.name for f in space.scalars if f.name not in scales))
        scales[name] = _scale_from(scale["knots"], scale["levels"])
    norm: Norm = "l1" if given["norm"].choice("l1", "l2") == "l1" else "l2"
    return CostModel(space, scales, weights, norm, given["kind"].text())


def _scale_from(knots: Node, levels: Node) -> Scale:
    n = len(knots.entries())
    at, place = knots.vector(n, "knot"), levels.vector(n, "knot")
    for node, values in ((knots, at), (levels, place)):
        if n < 2 or (np.diff(values) < 0).any():
            node.fail("two or more rising numbers")
    return Scale(at, place)
