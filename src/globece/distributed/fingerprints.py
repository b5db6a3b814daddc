"""What a run is of, as digests: two runs with the same digests have the same results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from globece import rays
from globece.compact import Rows
from globece.distributed.sources import Source
from globece.distributed.task import Task
from globece.models.base import Model
from globece.models.decision import Tally
from globece.space import FloatArray

ASKED = 2_000  # inputs about which a model is asked


def of_run(task: Task, source: Source, inputs: Rows | None) -> dict[str, Any]:
    """By name, everything that the results depend on.

    A compiled model is digested as it is; of every model the answers on some inputs count, and on these moved along
    the directions.
    """
    space = task.space
    return {
        "data": [source.described, [[s.path, s.size, s.written] for s in source.stamps]],
        "parts": [[part.first, part.n_rows] for part in source.parts],
        "directions": content(task.directions),
        "space": content(space.features),
        "cost": content([task.cost.scales, [task.cost.weight(f) for f in space.features], task.cost.norm]),
        "budget": [task.budget, task.max_scalar],
        "model": [task.model.name, task.model.is_compiled, content(task.model.followed), _answers(task, inputs)],
        "groups": [repr(task.by), content(dict(task.sets))],
        "row_id": task.row_id,
    }


def _answers(task: Task, inputs: Rows | None) -> str:
    if inputs is None or not len(inputs):
        return ""
    Z = inputs[np.linspace(0, len(inputs) - 1, min(ASKED, len(inputs))).astype(np.int64)].dense()
    answers = [_asked(task.model, Z)]
    for delta in task.directions:
        answers += [_asked(task.model, rays.positions(task.space, Z, delta, k)) for k in (0.5, 1.0, 2.0)]
    return sha256(b"".join(answers)).hexdigest()


def _asked(model: Model, Z: FloatArray) -> bytes:
    return np.packbits(model.unconditioned.favourable(Z)).tobytes()


def content(value: Any) -> str:
    """A digest of arrays, plain data, and dataclasses of these; of anything else only the type counts.

    Examples
    --------
    >>> content([1.0, np.arange(3)]) == content([1.0, np.arange(3)]) != content([1.0, np.arange(4)])
    True
    """
    found = sha256()
    _feed(found, value)
    return found.hexdigest()


def _feed(found: Any, value: Any) -> None:
    found.update(f"{type(value).__qualname__}(".encode())
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        found.update(f"{value.dtype.str}{value.shape}".encode())
        found.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (str, bytes, int, float, np.generic, type(None))):
        found.update(repr(value).encode())
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            _feed(found, [key, value[key]])
    elif isinstance(value, (list, tuple)):
        for part in value:
            _feed(found, part)
    elif is_dataclass(value) and not isinstance(value, (type, Tally)):  # a tally is what happened, not what is asked
        for f in fields(value):
            if f.compare:
                _feed(found, getattr(value, f.name))
    found.update(b")")
