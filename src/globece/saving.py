"""Results that are written to files and read back; ``io`` says how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from globece.io.documents import Format

FORMATS: dict[type, Format[Any]] = {}  # by kind of result; each format enters itself


class Saved:
    """A result with a file format of its own."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, as it is written to JSON."""
        return FORMATS[type(self)].to_dict(self)

    def to_json(self, path: Any = None) -> str:
        """Write versioned JSON to ``path``, in one piece or not at all, and return it as text."""
        return FORMATS[type(self)].write(self, path)

    @classmethod
    def from_json(cls, source: Any) -> Self:
        """Read what :meth:`to_json` wrote, from a path or from the text itself."""
        found: Self = FORMATS[cls].read(source)
        return found
