"""Results that are written to files and read back; ``io`` says how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from globece.io.documents import Format
    from globece.page.about import About

FORMATS: dict[type, Format[Any]] = {}  # by kind of result; each format enters itself


class Drawn(Protocol):
    """What draws results as pages."""

    def html(self, result: Any, about: Any) -> str:
        """Return the page as one file's text."""

    def save(self, result: Any, path: Any, about: Any) -> None:
        """Write the page as one file."""

    def quiet(self, result: Any) -> str:
        """Return a short form without scripts."""

    def widget(self, result: Any, about: Any) -> Any:
        """Return the page as a widget."""


DRAWN: list[Drawn] = []  # the page enters itself


class Shown:
    """A result that has a page."""

    def save_html(self, path: Any, *, about: About | None = None) -> None:
        """Write the result as a page: one file that opens from disk, and asks for nothing from anywhere.

        Parameters
        ----------
        path
            Where to.
        about
            Title, units, words for features and values, and whether to list the affected inputs; see
            :class:`globece.page.about.About`. Without it they are left out.
        """
        DRAWN[0].save(self, path, about)

    def widget(self, *, about: About | None = None) -> Any:
        """The same page as a notebook widget; it needs the extra ``notebook``."""
        return DRAWN[0].widget(self, about)

    def _repr_html_(self) -> str:
        """For notebooks: the page's first screen, without scripts and apart from the notebook's styles."""
        return DRAWN[0].quiet(self)


class Saved(Shown):
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
