"""Explanations as versioned JSON: strict, checked on reading, the same bytes for the same explanation.

``explanation.schema.json``, beside this file, says the same in public. A change of what is written is a new version,
with a reader of its own in ``READERS``; the readers of the old ones stay. ``n_unknown`` is written only where it is not
0: what a complete run writes is what it always was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.resources import files as resources
from typing import Any

import numpy as np

from globece.errors import check_instance
from globece.explanation import Explanation
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
from globece.space import FloatArray

FORMAT = "globece.explanation"
VERSION = 1


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the files that this release writes.

    >>> schema()["properties"]["version"]
    {'const': 1}
    """
    text = resources("globece.io").joinpath("explanation.schema.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


# -- out --------------------------------------------------------------------------------------------------------------


def to_dict(ex: Explanation) -> dict[str, Any]:
    """An explanation as plain data: dictionaries, lists, text, finite numbers, booleans and ``None``."""
    check_instance("ex", ex, Explanation)
    return {
        "format": FORMAT,
        "version": VERSION,
        "provenance": provenance_data(ex.provenance),
        "budget": number(ex.budget, "budget"),
        # No limit and an infinite one are the same.
        "max_scalar": None if ex.max_scalar in (None, np.inf) else number(ex.max_scalar, "max_scalar"),
        "n_rows": int(ex.n_rows),
        **({"n_unknown": int(ex.n_unknown)} if ex.n_unknown else {}),
        "rows": ex.rows.tolist(),
        "space": space_data(ex.space),
        "cost": cost_data(ex.cost),
        "directions": [numbers(delta, f"directions[{i}]") for i, delta in enumerate(ex.directions)],
        "inputs": inputs_data(ex.space, ex.encoded),
        "scalars": [numbers(k, f"scalars[{i}]", null=np.inf) for i, k in enumerate(ex.scalars)],
        "costs": [numbers(c, f"costs[{i}]", null=np.inf) for i, c in enumerate(ex.costs)],
    }


def write(ex: Explanation, path: Any = None) -> str:
    """Write an explanation as JSON to ``path``, in one piece or not at all, and return the text.

    Parameters
    ----------
    ex
        The explanation; its model is not written.
    path
        Where to; ``None`` only returns the text.

    Examples
    --------
    >>> import numpy as np
    >>> from globece import explain
    >>> ex = explain(lambda X: X[:, 0] > 2, np.array([[1.0], [2.0], [3.0]]), rng=0)
    >>> text = write(ex)
    >>> read(text).coverage == ex.coverage, write(read(text)) == text
    (True, True)
    """
    return write_document(to_dict(ex), path)


# -- back -------------------------------------------------------------------------------------------------------------


def read(source: Any) -> Explanation:
    """Read an explanation from a path, or from the JSON text itself.

    Parameters
    ----------
    source
        A path, or text that starts with ``{``.

    Returns
    -------
    Explanation
        As it was written, without a model. ``counterfactuals()`` gives rows of the library and the column types that
        were explained; where that library is not installed, it alone raises.

    Raises
    ------
    FileFormatError
        If the file is not an explanation, is of a newer version, is cut off, or does not fit together.
    """
    return read_node(parse(source))


def read_node(document: Node) -> Explanation:
    """Read a parsed explanation."""
    return read_document(document, FORMAT, "an explanation", READERS)


def _read_1(document: Node) -> Explanation:
    given = document.keys(
        "format",
        "version",
        "provenance",
        "budget",
        "max_scalar",
        "n_rows",
        "rows",
        "space",
        "cost",
        "directions",
        "inputs",
        "scalars",
        "costs",
        optional=("n_unknown",),
    )
    space = space_from(given["space"])
    n_rows = given["n_rows"].whole()
    rows = given["rows"].places(None, "affected input", n_rows)
    if len(np.unique(rows)) != len(rows):
        given["rows"].fail("different positions")
    m, n = len(given["directions"].entries()), len(rows)
    scalars, costs = _results_from(given["scalars"], m, n), _results_from(given["costs"], m, n)
    if (np.isinf(costs) != np.isinf(scalars)).any():
        given["costs"].fail("null exactly where scalars is, as both then say that there is no recourse")
    max_scalar = given["max_scalar"].number(null=np.inf, positive=True)
    return Explanation(
        space=space,
        cost=cost_from(given["cost"], space),
        budget=given["budget"].number(positive=True),
        directions=given["directions"].matrix((m, space.width), ("direction", "encoded column")),
        encoded=inputs_from(given["inputs"], space, n),
        rows=rows,
        n_rows=n_rows,
        scalars=scalars,
        costs=costs,
        provenance=provenance_from(given["provenance"]),
        max_scalar=None if max_scalar == np.inf else max_scalar,
        n_unknown=given["n_unknown"].whole() if "n_unknown" in given else 0,
    )


def _results_from(node: Node, m: int, n: int) -> FloatArray:
    found = node.matrix((m, n), ("direction", "affected input"), null=np.inf)
    if (found < 0).any():
        node.fail("numbers from 0 on, or null for no recourse")
    return found


READERS: Mapping[int, Callable[[Node], Explanation]] = {1: _read_1}
