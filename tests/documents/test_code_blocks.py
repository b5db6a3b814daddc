"""Every code block of README and docs runs as printed, or says why it does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents.blocks import ROOT, RUN, SHOWN, Block, blocks, pages
from tests.documents.running import printed, shown

TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in pages()}
BLOCKS = {page: blocks(page, text) for page, text in TEXTS.items()}


@pytest.mark.parametrize("page", [page for page, found in BLOCKS.items() if any(block.runs for block in found)])
def test_blocks_run_and_print_what_is_shown(page: str, tmp_path: Path) -> None:
    found = BLOCKS[page]
    for block, said in printed(page, found, tmp_path):
        after = found[found.index(block) + 1] if block is not found[-1] else None
        output = block if block.language == "output" else after
        if output is not None and output.language == "output":
            assert shown(said) == output.code, f"{output}: run python -m tests.documents {page}"


def test_every_block_says_what_it_is() -> None:
    """No language, no fence (an indented block), or an unknown mark: then nobody would run it."""
    wrong = [str(b) for found in BLOCKS.values() for b in found if b.language not in (*RUN, *SHOWN)]
    for page, text in TEXTS.items():
        outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        wrong += [f"{page}: {line}" for line in re.findall(r"\n\n(    [^\s*-].*)", outside)]
    assert wrong == []


NOT_RUN = 8  # more only with a good reason


def test_what_is_not_run_has_a_reason_and_is_counted() -> None:
    found = [block for page in BLOCKS.values() for block in page]
    run = sum(block.runs for block in found)
    left = [block for block in found if block.language in RUN and not block.runs]
    assert all(len(block.not_run) > 10 for block in left)
    assert len(left) == NOT_RUN, "\n".join(f"{b}: {b.not_run}" for b in left)
    assert run > 4 * NOT_RUN


def test_the_reader_of_blocks_sees_marks() -> None:
    text = "<!-- not run: no cluster -->\n```sh\nls\n```\n\n<!-- exit code 3 -->\n```python\n1\n```\n"
    text = f"a\n\n{text}```output\n1\n```\n"
    first, second, third = blocks("x.md", text)
    assert (first.not_run, first.runs, first.line) == ("no cluster", False, 4)
    assert (second.exit_code, second.runs, second.code) == (3, True, "1\n")
    assert (third.language, third.runs) == ("output", False)
    assert isinstance(first, Block)
