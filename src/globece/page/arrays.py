"""A page's data: plain values, and typed arrays that travel beside them as base64 or as binary.

>>> import numpy as np
>>> page = Page()
>>> page.data = {"counts": page.array(np.array([1, 2, 3]), "u32")}
>>> page.inlined()["buffers"]
['AQAAAAIAAAADAAAA']
>>> Page.read_binary(page.binary()).inlined() == page.inlined()
True
"""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from globece.errors import FileFormatError

TYPES = {"f64": "<f8", "f32": "<f4", "u32": "<u4", "u8": "<u1", "i16": "<i2"}
MAGIC = b"GCE1"
ALIGNED = 8  # bytes: what JavaScript's Float64Array asks for


@dataclass(slots=True)
class Page:
    """What the page shows.

    Attributes
    ----------
    data
        Plain values; an array is a reference ``{"array": i, "type": ..., "length": ...}``.
    buffers
        The arrays' bytes, little-endian.
    """

    data: dict[str, Any] = field(default_factory=dict)
    buffers: list[bytes] = field(default_factory=list)

    def array(self, values: Any, kind: str) -> dict[str, Any]:
        """Add an array and return the reference to it."""
        found = np.ascontiguousarray(values, dtype=TYPES[kind])
        self.buffers.append(found.tobytes())
        return {"array": len(self.buffers) - 1, "type": kind, "length": int(found.size)}

    def values(self, reference: dict[str, Any]) -> np.ndarray[Any, Any]:
        """The array that a reference stands for."""
        return np.frombuffer(self.buffers[reference["array"]], dtype=TYPES[reference["type"]])

    def inlined(self) -> dict[str, Any]:
        """The page with its arrays as base64, for a file."""
        return {**self.data, "buffers": [base64.b64encode(b).decode("ascii") for b in self.buffers]}

    def text(self) -> str:
        """The same as JSON that is inert inside HTML: no ``<``, ``>`` or ``&`` is in it."""
        text = json.dumps(self.inlined(), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

    def binary(self) -> bytes:
        """The page for a live connection: a head in JSON, then the arrays, each aligned."""
        head = {**self.data, "buffers": [len(b) for b in self.buffers]}
        text = json.dumps(head, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")
        parts = [MAGIC, struct.pack("<I", len(text)), text, _gap(len(text))]
        for b in self.buffers:
            parts += [b, _gap(len(b))]
        return b"".join(parts)

    @classmethod
    def read_binary(cls, content: bytes) -> Self:
        """Read what :meth:`binary` wrote."""
        if content[:4] != MAGIC:
            raise FileFormatError("the bytes given are not a page")
        (length,) = struct.unpack("<I", content[4:8])
        data = json.loads(content[8 : 8 + length])
        at, buffers = 8 + length + len(_gap(length)), []
        for size in data.pop("buffers"):
            buffers.append(content[at : at + size])
            at += size + len(_gap(size))
        return cls(data, buffers)


def _gap(length: int) -> bytes:
    return b"\0" * (-length % ALIGNED)
