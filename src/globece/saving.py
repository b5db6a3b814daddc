"""Results that are written to files and read back; how is the business of ``io``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from globece.io.documents import Format


class Saved:
    """A result with a file format of its own."""

    @staticmethod
    def _format() -> Format[Any]:
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, as it is written to JSON."""
        return self._format().to_dict(self)

    def to_json(self, path: Any = None) -> str:
        """Write versioned JSON to ``path``, in one piece or not at all, and return it as text."""
        return self._format().write(self, path)

    @classmethod
    def from_json(cls, source: Any) -> Self:
        """Read what :meth:`to_json` wrote, from a path or from the text itself."""
        found: Self = cls._format().read(source)
        return found
