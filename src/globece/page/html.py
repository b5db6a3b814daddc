"""The page as one file of HTML: everything inlined, nothing fetched, scripts and styles allowed by hash."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib.resources import files as resources
from typing import Any

from globece.errors import MissingExtraError
from globece.page.arrays import Page

NONE = "default-src 'none'; base-uri 'none'; form-action 'none'"


@cache
def bundled(name: str) -> str:
    """A file of the built bundle."""
    file = resources("globece.page").joinpath("bundle", name)
    if not file.is_file():
        raise MissingExtraError(f"the built page lacks {name}; build it with: make page")
    return file.read_text(encoding="utf-8")


def allowed(text: str) -> str:
    """The source expression that lets exactly this script or style run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def policy(*, live: bool = False) -> str:
    """The content security policy of the page; live, it may also talk to its own origin."""
    parts = [NONE, f"script-src {allowed(bundled('page.js'))}", f"style-src {allowed(bundled('page.css'))}"]
    parts += ["img-src data:"]
    if live:
        parts += ["connect-src 'self'", "frame-ancestors 'none'"]
    return "; ".join(parts)


def document(page: Page | None) -> str:
    """The page's file; without data it is the live page, which asks its own server."""
    data = "null" if page is None else page.text()
    title = "globece" if page is None else str(page.data.get("title", "globece"))
    still = "" if page is None else f"<noscript>{_first_screen(page.data)}<p>The charts need JavaScript.</p></noscript>"
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_of_file(page is None))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n'
        f"<style>{bundled('page.css')}</style>\n</head>\n"
        f'<body>\n<div id="globece" class="globece">{still}</div>\n'
        f'<script type="application/json" id="globece-data">{data}</script>\n'
        f'<script type="module">{bundled("page.js")}</script>\n</body>\n</html>\n'
    )


def _of_file(live: bool) -> str:
    """The policy as a file may state it: who may frame a page is for a server's header alone."""
    return policy(live=live).replace("; frame-ancestors 'none'", "")


def _first_screen(data: dict[str, Any]) -> str:
    facts = " · ".join(str(fact) for fact in data["facts"])
    parts = [
        f"<h1>{escape(str(data['title']))}</h1>",
        f"<p>{escape(facts)}</p>",
        f"<h2>{escape(data['question'])}</h2>",
    ]
    badge = f"<strong>[{escape(data['badge'])}]</strong> " if data.get("badge") else ""
    parts.append(f'<p class="answer">{badge}{escape(data["answer"])}</p>')
    directions = data.get("explanations", {}).get("everybody", {}).get("directions", [])
    if directions:
        listed = "".join(f"<li>{escape(d['words'])}</li>" for d in directions)
        parts.append(f"<ol>{listed}</ol>")
    parts.append(f'<ul class="rests">{"".join(f"<li>{escape(line)}</li>" for line in data["rests_line"])}</ul>')
    parts.append(f'<p class="aside">{escape(data["not_said"])}</p>')
    return "".join(parts)


def quiet(page: Page) -> str:
    """The first screen, and the rules chart of each direction, in a frame of its own: no script, no shared style."""
    body = [_first_screen(page.data)]
    for i, d in enumerate(page.data.get("explanations", {}).get("everybody", {}).get("directions", [])):
        body.append(f"<h3>Direction {i + 1}</h3>{_chart(d['chart'])}")
    inner = f"<!doctype html><meta charset='utf-8'><style>{QUIET}</style><body>{''.join(body)}</body>"
    lines = 30 * inner.count("<tr>") + 28 * inner.count("<li>") + 36 * inner.count("<h3>")
    height = min(280 + lines, 900)
    return (
        f'<iframe sandbox title="{escape(str(page.data["title"]))}" srcdoc="{escape(inner)}" '
        f'style="width:100%;height:{height}px;border:0;color-scheme:light dark"></iframe>'
    )


QUIET = (
    ":root{color-scheme:light dark}body{font:14px/1.5 system-ui,sans-serif;margin:0;max-width:60em}h1{font-size:1.1em}"
    "h2,h3{font-size:1em;margin:.8em 0 .2em}table{border-collapse:collapse}td,th{padding:.15em .8em .15em 0;"
    "text-align:left;vertical-align:top;border-bottom:1px solid #8884}.answer{font-size:1.1em}.aside,.rests{color:#777}"
)


def _chart(rows: list[dict[str, Any]]) -> str:
    body = []
    for row in rows:
        for i, (feature, text, _) in enumerate(row["lines"]):
            cost = "none" if row["cost"] is None else f"{row['cost']:.2f}"
            numbers = [f"{row['new_coverage']:+.1%}", f"{row['coverage']:.1%}", cost] if i == 0 else ["", "", ""]
            body.append("<tr>" + "".join(f"<td>{escape(str(c))}</td>" for c in (feature, text, *numbers)) + "</tr>")
    head = "".join(f"<th>{h}</th>" for h in ("Feature", "New rule, and what moves", "New", "All", "Average cost"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
