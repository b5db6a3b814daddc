"""From a result to its page: each kind of result enters how, and the page is the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from globece.auditing import Audit
from globece.comparing import Comparison
from globece.errors import InvalidParameterError, check_instance, describe
from globece.explanation import Explanation
from globece.io import files
from globece.page import explained, rests
from globece.page.about import About
from globece.page.arrays import Page
from globece.page.audited import audit_page
from globece.page.compared import comparison_page
from globece.page.html import document, quiet
from globece.page.still import STILLS
from globece.page.widget import widget
from globece.saving import DRAWN, Drawn

VERSION = 1
NOT_SAID = (
    "What this does not say: nothing about causes, and not whether a change is feasible for a person. It says what "
    "this model would answer."
)
MAKERS: dict[type, Callable[[Page, Any, About], None]] = {}


def page_of(result: Any, about: About | None = None) -> Page:
    """The page of a result."""
    said = about_of(about)
    if type(result) not in MAKERS:
        kinds = sorted(kind.__name__ for kind in MAKERS)
        raise InvalidParameterError(f"there are pages of {', '.join(kinds)}, and none of {describe(result)}")
    page = Page({"format": "globece.page", "version": VERSION})
    MAKERS[type(result)](page, result, said)
    return page


def about_of(about: About | None) -> About:
    """The words given, or none."""
    return About() if about is None else check_instance("about", about, About)


def explanation_page(page: Page, ex: Explanation, about: About) -> None:
    """Fill in the page of an explanation."""
    part = explained.explained(page, ex, about)
    again = rests.code(
        ex,
        about,
        ex.provenance.seed if about.seed is None else about.seed,
        "explain",
        (f"n_directions={ex.n_directions}",),
    )
    page.data |= {
        "kind": "explanation",
        **top(ex, about),
        "question": about.question or "What would it take?",
        "answer": explained.headline(ex, about),
        "badge": badge(ex),
        "explanations": {"everybody": part},
        "rests": rests.rests_on(ex, about, again=again),
    }


def top(ex: Explanation, about: About) -> dict[str, Any]:
    """What every page has at its top and its foot."""
    affected = ex.n_affected + ex.n_unknown
    return {
        "title": about.title or f"Recourse under {ex.provenance.model}",
        "facts": [
            about.model or ex.provenance.model,
            f"{ex.n_rows:,} {about.people}",
            f"{affected:,} with the unfavourable outcome",
        ],
        "people": about.people,
        "cost_unit": "cost of recourse",
        "rests_line": rests.first_line(ex, about),
        "not_said": NOT_SAID,
        "features": features(ex, about),
    }


def features(ex: Explanation, about: About, *, live: bool = False) -> list[dict[str, Any]]:
    """What each feature is; live also its range, which a report leaves out: its ends are single people's values."""
    found = []
    for f in ex.space.features:
        entry: dict[str, Any] = {
            "name": f.name,
            "label": about.label(f.name),
            "unit": about.unit(f.name),
            "kind": f.kind,
            "fixed": f.immutable,
            "movable": f.can_move,
            "sense": f.sense,
            "whole": f.whole,
            "weight": ex.cost.weight(f),
        }
        if f.kind != "continuous":
            entry["values"] = [about.value(f, c) for c in f.categories]
            entry["ids"] = [f.label(c) for c in f.categories]
        elif live:
            entry["range"] = [explained.number(f.low), explained.number(f.high)]
            entry["observed"] = list(f.observed)
        found.append(entry)
    return found


def badge(ex: Explanation) -> str:
    """One word for the state of an explanation, where there is more to say than its numbers."""
    if ex.is_empty:
        return "nobody affected"
    if not ex.provenance.complete:
        return "stopped early"
    return "nothing found" if not ex.n_covered else ""


def _audit_page(page: Page, au: Audit, about: About) -> None:
    audit_page(page, au, about, top(au.explained, about))


MAKERS[Explanation] = explanation_page
MAKERS[Audit] = _audit_page
MAKERS[Comparison] = comparison_page


class _Pages(Drawn):
    """How results draw themselves: :class:`globece.saving.Saved` calls this."""

    def html(self, result: Any, about: Any) -> str:
        if type(result) in STILLS:
            return STILLS[type(result)](result, about_of(about)).document()
        return document(page_of(result, about))

    def save(self, result: Any, path: Any, about: Any) -> None:
        files.write_text(files.check_path("path", path), self.html(result, about))

    def quiet(self, result: Any) -> str:
        return quiet(page_of(result))

    def widget(self, result: Any, about: Any) -> Any:
        return widget(page_of(result, about))


DRAWN.append(_Pages())
