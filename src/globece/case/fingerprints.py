"""Fingerprints: which rows a result is of, and which decisions on them."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from globece.case.affected import Case
from globece.case.ordering import content_hash

DIGITS = 16  # hexadecimal
BATCH = 65_536  # rows at a time: bounds the memory


def fingerprints(case: Case) -> tuple[str, str]:
    """Of the rows, in whatever order, and of the model's decisions on them."""
    rows = np.zeros(len(case.rows), dtype=np.uint64)
    for start in range(0, len(rows), BATCH):
        some = slice(start, start + BATCH)
        part = case.rows[some]
        rows[some] = content_hash(np.column_stack([part.feature(f) for f in case.space.features]))
    order = np.argsort(rows, kind="stable")
    names = "\n".join(f"{f.name} {f.kind} {list(f.categories)}" for f in case.space.features)
    data = sha256(names.encode())
    data.update(np.ascontiguousarray(rows[order]).astype("<u8").tobytes())
    decisions = sha256(data.digest())
    # of rows that are alike the favourable ones first, in whatever order they came
    decisions.update(np.packbits(case.favourable[np.lexsort((~case.favourable, rows))]).tobytes())
    return data.hexdigest()[:DIGITS], decisions.hexdigest()[:DIGITS]
