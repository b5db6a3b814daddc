"""The page, as Markdown and as one HTML file that needs nothing else, from what is stored alone."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from experiments import generality, models, results_table
from experiments.cells import Data, Part
from experiments.store import Places, load
from experiments.store import write as write_file
from paper.data import NAMES, why_missing

TITLE = "The paper, computed again"
SUMMARIES: tuple[Callable[[Mapping[str, Data]], list[str]], ...] = (results_table.summary, generality.summary)
DOTS = 130  # an inch
COLOURS = 128

HEAD = """Every table and figure of *GLOBE-CE: A Translation Based Approach for Global Counterfactual Explanations*
(Ley, Mishra and Magazzeni, ICML 2023) that can be computed or drawn again, beside the paper's own figures. All of it
was written by `make paper` from the data under `experiments/results`; no number on this page is typed by hand, except
those quoted from the paper and from a run of the authors' code (`paper/reference.py`)."""


@dataclass(frozen=True)
class Section:
    """A part, ready to be written."""

    key: str
    title: str
    about: str  # where it comes from, what it took, how to run it
    text: str
    figures: Mapping[str, bytes]  # PNG, by name


def write(where: Places, parts: Sequence[Part]) -> None:
    """Write `paper.md`, `paper.html` and the figures; each is replaced whole."""
    stored = {
        cell.name: found for part in parts for cell in part.cells if (found := load(where, cell.name)) is not None
    }
    sections = [_section(part, stored) for part in parts]
    top = _top(stored)
    for section in sections:
        for name, image in section.figures.items():
            write_file(where.figures / f"{name}.png", image)
    write_file(where.pages / "paper.md", markdown(top, sections).encode())
    write_file(where.pages / "paper.html", html(top, sections).encode())


def _section(part: Part, stored: Mapping[str, Data]) -> Section:
    mine = {cell.name: stored[cell.name] for cell in part.cells if cell.name in stored}
    shown = part.show({name: found["data"] for name, found in mine.items()})
    about = f"In the paper: {part.source}. " if ":" in part.source else f"{part.source.capitalize()}. "
    if mine:
        seconds = sum(found["seconds"] for found in mine.values())
        count = f"{len(mine)} of {len(part.cells)} cells" if len(part.cells) > 1 else "One cell"
        about += f"{count}, {_duration(seconds)} of one core{_explained(mine)}. "
    about += f"Alone: `make paper ONLY={part.key}`"
    about += f", or one cell: `make paper ONLY={part.cells[-1].name}`." if len(part.cells) > 1 else "."
    text = shown.text.strip() + _absent(part, mine)
    return Section(part.key, part.title, about, text, {name: _png(f) for name, f in shown.figures.items()})


def _explained(mine: Mapping[str, Data]) -> str:
    """Which models the cells explained, where they take what the run is given; the table of models has both."""
    taken = [found for name, found in mine.items() if not name.startswith(f"{models.PART.key}/")]
    marks = {found["fingerprint"]["models"].split()[0] for found in taken if "models" in found["fingerprint"]}
    words = {"given": "given models", "trained": "models trained here"}
    return f", on {' and '.join(words[mark] for mark in sorted(marks))}" if marks else ""


def _absent(part: Part, mine: Mapping[str, Data]) -> str:
    """How to get the data sets for which cells are absent."""
    needed = dict.fromkeys(need for cell in part.cells if cell.name not in mine for need in cell.needs)
    reasons = {name: reason for name in needed if (reason := why_missing(name)) is not None}
    return "".join(f"\n\n**{NAMES[name]} is not at hand.** {reason}" for name, reason in reasons.items())


def _top(stored: Mapping[str, Data]) -> str:
    """The computed summary, and what all was computed with."""
    data = {name: found["data"] for name, found in stored.items()}
    lines = [f"- {line}" for summary in SUMMARIES for line in summary(data)]
    if not stored:
        return f"{HEAD}\n\nNothing has been computed yet.\n"
    if any(found["fingerprint"]["quick"] for found in stored.values()):
        lines.insert(0, "- **A smoke run on few rows: no number here means anything.**")
    for machine, versions, count in _made_with(stored):
        lines.append(f"- {count} cells: {machine}; {versions}.")
    total = sum(found["seconds"] for found in stored.values())
    lines.append(f"- All cells together took {_duration(total)} of one core.")
    return HEAD + "\n\n" + "\n".join(lines) + "\n"


def _made_with(stored: Mapping[str, Data]) -> list[tuple[str, str, int]]:
    found: dict[tuple[str, str], int] = {}
    for cell in stored.values():
        key = (cell["machine"], ", ".join(f"{name} {v}" for name, v in cell["versions"].items()))
        found[key] = found.get(key, 0) + 1
    return [(*key, count) for key, count in found.items()]


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _png(figure: Any) -> bytes:
    from PIL import Image

    drawn, out = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=DOTS)
    # a figure has few colours: a palette of them takes a third of the room, in the page and in the repository
    Image.open(drawn).convert("RGB").quantize(COLOURS).save(out, format="png", optimize=True)
    return out.getvalue()


# -- two ways to write it ---------------------------------------------------------------------------------------------


def markdown(top: str, sections: Sequence[Section]) -> str:
    """The page for a reader of the repository; figures lie beside it."""
    pieces = [f"# {TITLE}\n\n{top}", *(_body(s, "figures/paper/{}.png".format) for s in sections)]
    return "\n".join(pieces)


def _body(section: Section, address: Callable[[str], str]) -> str:
    images = "".join(f"\n![{section.title}: {name}]({address(name)})\n" for name in section.figures)
    return f"## {section.title}\n\n*{section.about}*\n\n{section.text}\n{images}"


def html(top: str, sections: Sequence[Section]) -> str:
    """The same in one file: nothing is fetched, and it can be read on a telephone."""
    links = "".join(f'<li><a href="#{escape(s.key)}">{escape(s.title)}</a></li>' for s in sections)
    body = "".join(f'<section id="{escape(s.key)}">{_html(_body(s, str), s.figures)}</section>' for s in sections)
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(TITLE)}</title><style>{STYLE}</style></head><body>"
        f"<header><h1>{escape(TITLE)}</h1>{_html(top, {})}<nav><ul>{links}</ul></nav></header>"
        f"<main>{body}</main></body></html>\n"
    )


def _html(text: str, figures: Mapping[str, bytes]) -> str:
    from markdown_it import MarkdownIt

    made: str = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    made = made.replace("<table>", '<div class="wide" tabindex="0"><table>').replace("</table>", "</table></div>")
    for name, image in figures.items():
        data = base64.b64encode(image).decode()
        made = made.replace(f'<img src="{name}"', f'<img src="data:image/png;base64,{data}"')
    return made


STYLE = """
:root { color-scheme: light; --ink: #1b1f24; --soft: #57606a; --line: #d8dee4; --back: #ffffff; --stripe: #f6f8fa }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1rem; width: fit-content; min-width: min(100%, 60rem); max-width: 100%;
  color: var(--ink); background: var(--back);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: break-word }
h1 { font-size: 1.7rem; line-height: 1.2 } h2 { margin-top: 3rem; padding-top: .6rem; border-top: 2px solid var(--ink) }
h3 { margin-top: 2rem }
p, li { max-width: 48rem }
section > p:first-of-type { color: var(--soft); font-size: .9rem }
nav ul { columns: 16rem; padding-left: 1.2rem }
a { color: #0550ae }
code { font-size: .9em; background: var(--stripe); padding: .1em .25em; border-radius: 3px }
.wide { overflow-x: auto; margin: 1rem 0; border: 1px solid var(--line); border-radius: 6px }
.wide:focus-visible { outline: 2px solid #0550ae }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; width: 100% }
th, td { padding: .35rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
  white-space: nowrap }
td:last-child { white-space: normal; min-width: 12rem }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--back);
  border-right: 1px solid var(--line) }
th, th:first-child { background: var(--stripe) } tr:last-child td { border-bottom: 0 }
img { max-width: min(100%, 70rem); height: auto; display: block; margin: 1rem 0 }
@media print { .wide { overflow: visible } }
"""
