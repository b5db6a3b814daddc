"""Write what the blocks of README and docs print below them: ``python -m tests.documents [PAGE ...]``."""

from __future__ import annotations

import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from tests.documents.blocks import ROOT, blocks, pages
from tests.documents.running import printed, shown


def main(names: list[str]) -> None:
    for page in names or pages():
        text = (ROOT / page).read_text(encoding="utf-8")
        found = blocks(page, text)
        with tempfile.TemporaryDirectory() as folder:
            said = {block: shown(output) for block, output in printed(page, found, Path(folder))}
        for block, after in reversed([*pairwise(found)]):
            if after.language == "output" and block in said:
                text = text[: after.start] + said[block] + text[after.end :]
        # The command of an output block itself stands before it.
        for block in reversed(found):
            if block.language == "output" and block.instead:
                text = text[: block.start] + said[block] + text[block.end :]
        (ROOT / page).write_text(text, encoding="utf-8")
        print(f"wrote {page}")


if __name__ == "__main__":
    main(sys.argv[1:])
