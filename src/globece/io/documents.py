"""What every result file shares: a format and a version at its head, the affected inputs, and where it came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from globece.compact import Rows
from globece.errors import FileFormatError, InvalidDataError
from globece.explanation import Provenance
from globece.io import files, plain
from globece.io.plain import Node
from globece.io.spaces import numbers
from globece.models.clearance import DOUBLE
from globece.space import FeatureSpace, FloatArray
from globece.version import __version__

Result = TypeVar("Result")


def write_document(data: dict[str, Any], path: Any = None) -> str:
    """Write plain data as JSON to ``path``, in one piece or not at all, and return the text."""
    target = None if path is None else files.check_path("path", path)
    text = plain.dump(data)
    if target is not None:
        files.write_text(target, text)
    return text


def parse(source: Any) -> Node:
    """Parse a path, or text that starts with ``{``."""
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return plain.parse(source, "the text given")
    path = files.check_path("source", source)
    return plain.parse(files.read_text(path), path)


def read_document(document: Node, format_: str, what: str, readers: Mapping[int, Callable[[Node], Result]]) -> Result:
    """Read a document with the reader of its version.

    Parameters
    ----------
    document
        The parsed document.
    format_
        The format that its head must name.
    what
        What it is, with its article, for messages.
    readers
        A reader for each version.
    """
    document.key("format").choice(format_)
    version = document.key("version").whole(low=1)
    if version not in readers:
        raise FileFormatError(
            f"{document.source} is {what} of version {version}, and globece {__version__} reads up to version "
            f"{max(readers)}; read it with a newer release"
        )
    return readers[version](document)


def inputs_data(space: FeatureSpace, rows: Rows) -> list[list[Any]]:
    """Affected inputs by feature: values, or positions of their categories, with null for a missing value."""
    found: list[list[Any]] = []
    for f in space.features:
        values = rows.feature(f)
        if not f.is_block:
            found.append(numbers(values, f"inputs of {f.name!r}", null=np.nan))
            continue
        codes = values.astype(np.int64)
        if not rows.is_compact and not np.array_equal(rows.values[:, f.columns], np.eye(f.width)[codes]):
            raise InvalidDataError(f"inputs of {f.name!r} are not one-hot, and cannot be written as categories")
        found.append(codes.tolist())
    return found


def inputs_from(node: Node, space: FeatureSpace, n: int) -> Rows:
    """Encoded rows from what :func:`inputs_data` gave."""
    columns: list[FloatArray] = []
    for f, listed in zip(space.features, node.items(len(space.features), "feature"), strict=True):
        if f.is_block:
            columns.append(listed.places(n, "affected input", f.width).astype(np.float64))
            continue
        values = listed.vector(n, "affected input", null=np.nan)
        if f.kind == "ordinal":
            place = np.where(np.isnan(values), 0.0, values)
            known = (np.rint(place) == place) & (place >= 0) & (place < len(f.categories))
            if not known.all():
                listed.items()[int((~known).argmax())].fail(f"a position among {len(f.categories)} categories, or null")
        else:
            try:
                space.holds(f).check(values, f.sources[0])
            except InvalidDataError as error:
                listed.fail(f"numbers that fit their column ({error})")
        columns.append(values)
    return Rows.from_features(space, n, columns)


def provenance_data(p: Provenance) -> dict[str, Any]:
    """Where a result comes from, as plain data."""
    return {
        "version": p.version,
        "model": p.model,
        "method": p.method,
        "favourable": p.favourable,
        "generator": p.generator,
        "candidates": int(p.candidates),
        "model_calls": int(p.model_calls),
        "model_rows": int(p.model_rows),
        "complete": bool(p.complete),
        **({"clearance": float(p.clearance)} if p.clearance != DOUBLE else {}),
        "notes": list(p.notes),
    }


def provenance_from(node: Node) -> Provenance:
    """Where a result comes from, read back."""
    given = node.keys(
        "version",
        "model",
        "method",
        "favourable",
        "generator",
        "candidates",
        "model_calls",
        "model_rows",
        "complete",
        "notes",
        optional=("clearance",),
    )
    return Provenance(
        version=given["version"].text(),
        model=given["model"].text(),
        method=given["method"].text(),
        favourable=given["favourable"].text(),
        generator=given["generator"].text(),
        candidates=given["candidates"].whole(),
        model_calls=given["model_calls"].whole(),
        model_rows=given["model_rows"].whole(),
        complete=given["complete"].flag(),
        clearance=given["clearance"].number() if "clearance" in given else DOUBLE,
        notes=tuple(note.text() for note in given["notes"].items()),
    )
