"""Each test that docs/promises.md and docs/elsewhere.md name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
DOCS = TESTS.parent / "docs"


@pytest.mark.parametrize(("page", "least"), [("promises.md", 20), ("elsewhere.md", 12)])
def test_every_test_that_a_page_names_exists(page: str, least: int) -> None:
    folders = "unit|property|golden|install|security|contract|e2e|adversarial|distributed"
    named = re.findall(rf"`((?:{folders})/\w+\.py)(?:::(\w+))?`", (DOCS / page).read_text())
    assert len(named) > least
    for path, name in named:
        assert (TESTS / path).is_file(), path
        if name:
            assert f"def {name}(" in (TESTS / path).read_text(), f"{path}::{name}"
