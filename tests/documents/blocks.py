"""The code blocks of README and docs, and what their marks say.

A block of Python or shell runs, in the order of its page. An ``output`` block after one is what that prints. A comment
before a block changes that::

    <!-- not run: the reason -->
    <!-- run instead: a command that does the same, or prints what is shown -->
    <!-- exit code 3 -->
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = ("python", "sh")
SHOWN = ("output", "toml", "yaml", "text", "json", "css")  # languages that do not run
BLOCK = re.compile(
    r"(?P<marks>(?:^<!-- (?:not run|run instead|exit code).*? -->\n)*)"
    r"^(?P<open>```(?P<language>[\w+-]*)(?P<rest>[^\n]*)\n)(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
MARK = re.compile(r"<!-- (?:(not run|run instead): (.*?)|exit code (\d+)) -->")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page.

    Attributes
    ----------
    line
        Line of its first fence.
    start, end
        Where its text lies in the page.
    not_run
        Why it is not run, or empty.
    instead
        The command that runs instead, or empty.
    exit_code
        What its last command ends with.
    """

    page: str
    line: int
    language: str
    code: str
    start: int
    end: int
    not_run: str
    instead: str
    exit_code: int

    @property
    def runs(self) -> bool:
        return bool(self.instead) or (self.language in RUN and not self.not_run)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """README and every page of the docs, as paths from the root."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found if "_build" not in path.parts)


def blocks(page: str, text: str) -> list[Block]:
    """The fenced blocks of a page, in its order."""
    found = []
    for match in BLOCK.finditer(text):
        marks = {name or "exit code": reason or code for name, reason, code in MARK.findall(match["marks"])}
        found.append(
            Block(
                page,
                text.count("\n", 0, match.start("open")) + 1,
                match["language"] + match["rest"].strip(),
                match["code"],
                match.start("code"),
                match.end("code"),
                marks.get("not run", ""),
                marks.get("run instead", ""),
                int(marks.get("exit code", 0)),
            )
        )
    return found
