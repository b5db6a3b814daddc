"""Explanations as versioned JSON, described by ``explanation.schema.json``.

``n_unknown`` is written only where it is not 0: what a complete run writes is what it always was.

>>> from globece import explain
>>> ex = explain(lambda X: X[:, 0] > 2, np.array([[1.0], [2.0], [3.0]]), rng=0)
>>> text = FORMAT.write(ex)
>>> FORMAT.read(text).coverage == ex.coverage, FORMAT.write(FORMAT.read(text)) == text
(True, True)
>>> FORMAT.schema()["properties"]["version"]
{'const': 1}
"""

from __future__ import annotations

from typing import Any

import numpy as np

from globece.explanation import Explanation
from globece.io.documents import Format, recourse_from, shared_data, shared_from
from globece.io.plain import Node, number, numbers

KEYS = (
    "format", "version", "provenance", "budget", "max_scalar", "n_rows", "n_unknown", "rows", "space", "cost",
    "directions", "inputs", "scalars", "costs",
)  # fmt: skip


def _data(ex: Explanation) -> dict[str, Any]:
    return {
        **shared_data(ex, ex.encoded),
        # No limit and an infinite one are the same.
        "max_scalar": None if ex.max_scalar in (None, np.inf) else number(ex.max_scalar, "max_scalar"),
        **({"n_unknown": int(ex.n_unknown)} if ex.n_unknown else {}),
        "directions": [numbers(delta, f"directions[{i}]") for i, delta in enumerate(ex.directions)],
        "scalars": [numbers(k, f"scalars[{i}]", null=np.inf) for i, k in enumerate(ex.scalars)],
    }


def _read_1(document: Node) -> Explanation:
    given = document.keys(*KEYS, optional=("n_unknown",))
    m, n = len(given["directions"].entries()), len(given["rows"].entries())
    scalars, costs = (recourse_from(given[name], m, n, "direction") for name in ("scalars", "costs"))
    if (np.isinf(costs) != np.isinf(scalars)).any():
        given["costs"].fail("null exactly where scalars is, as both then say that there is no recourse")
    shared, inputs = shared_from(given)
    max_scalar = given["max_scalar"].number(null=np.inf, positive=True)
    return Explanation(
        **shared,
        directions=given["directions"].matrix((m, shared["space"].width), ("direction", "encoded column")),
        encoded=inputs,
        scalars=scalars,
        costs=costs,
        max_scalar=None if max_scalar == np.inf else max_scalar,
        n_unknown=given["n_unknown"].whole() if "n_unknown" in given else 0,
    )


FORMAT = Format("explanation", "an explanation", Explanation, KEYS, _data, {1: _read_1})
