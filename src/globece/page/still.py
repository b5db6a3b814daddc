"""Pages of results that are one table: no script, nothing to move; otherwise as the others, and as safe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from globece import formatting
from globece.auditing import Beneficiaries
from globece.auditing.exchange import EVERYBODY
from globece.baselines import RecourseSet
from globece.baselines.recourse_set import cells
from globece.page import rests
from globece.page.about import About
from globece.page.html import NONE, allowed

STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;"
    "padding:0 1rem;overflow-wrap:break-word}h1{font-size:1.4rem;margin:0}h2{font-size:1.1rem}"
    ".wide{overflow-x:auto}table{border-collapse:collapse}th,td{padding:.35rem 1.2rem .35rem 0;text-align:left;"
    "vertical-align:top;border-bottom:1px solid #8886}.rests,.aside{color:#777;font-size:.9rem}"
)
NO_CAUSES = "What this does not say: nothing about causes, and not whether a change is feasible for a person."


@dataclass(frozen=True, slots=True)
class Still:
    """What a page of one table says.

    Attributes
    ----------
    title, question
        At its top.
    answer
        Lines of text.
    head, rows
        The table.
    rests
        What the answer rests on.
    """

    title: str
    question: str
    answer: tuple[str, ...]
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    rests: list[str]

    def document(self) -> str:
        """The page as one file of HTML; everything in it is escaped."""
        lines = "".join(f"<p>{escape(line)}</p>" for line in self.answer)
        listed = "".join(f"<li>{escape(line)}</li>" for line in self.rests)
        return (
            "<!doctype html>\n"
            '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{escape(f"{NONE}; style-src {allowed(STYLE)}")}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="referrer" content="no-referrer">\n'
            f"<title>{escape(self.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
            f"<h1>{escape(self.title)}</h1>\n<h2>{escape(self.question)}</h2>\n{lines}\n"
            f'<div class="wide">{formatting.html_table(self.head, self.rows) if self.rows else ""}</div>\n'
            f'<ul class="rests">{listed}</ul>\n<p class="aside">{escape(NO_CAUSES)}</p>\n</body>\n</html>\n'
        )


def rules_page(found: RecourseSet, about: About) -> Still:
    """The page of two-level rules."""
    return Still(
        about.title or f"Recourse rules under {found.provenance.model}",
        about.question or "Which rules give recourse, to whom, and at what cost?",
        tuple(found.summary().splitlines()),
        ("If", "If", "Then", "Applies to", "Covers", "Cost"),
        [cells(record) for record in found.records()],
        rests.first_line(found, about),
    )


def benefits_page(found: Beneficiaries, about: About) -> Still:
    """The page of whom an action helps."""
    ex = found.explanation
    how = "goes as far along it as it takes" if found.scaled else "takes all of it"
    rows = [
        (
            name,
            f"{b.affected:,}",
            f"{b.flipped:,}",
            formatting.share(b.share),
            formatting.cost(b.average_cost),
            f"{b.harmed:,}",
        )
        for name, b in {**found.by_group, EVERYBODY: found.overall}.items()
    ]
    return Still(
        about.title or f"Whom a change helps under {ex.provenance.model}",
        about.question or "Whom does this change help, and whom does it harm?",
        (f"The change: {action_of(found, about)}. Everybody {how}.",),
        ("", "Turned down", "Get it now", "Share", "Average cost", "Others lose it"),
        rows,
        rests.first_line(ex, about),
    )


def action_of(found: Beneficiaries, about: About) -> str:
    """The action in words: "income +500, housing becomes own"."""
    said = []
    for name, value in found.action.items():
        if isinstance(value, (int, float)) and not found.explanation.space[name].is_block:
            unit = about.unit(name)
            said.append(f"{about.label(name)} {value:+g}{f' {unit}' if unit else ''}")
        else:
            said.append(f"{about.label(name)} becomes {value}")
    return ", ".join(said)


STILLS: dict[type, Callable[[Any, About], Still]] = {RecourseSet: rules_page, Beneficiaries: benefits_page}
