"""Each test that docs/promises.md names exists."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent.parent
PAGE = TESTS.parent / "docs" / "promises.md"


def test_every_test_that_a_promise_names_exists() -> None:
    folders = "unit|property|golden|install|security|contract|e2e|adversarial|distributed"
    named = re.findall(rf"`((?:{folders})/\w+\.py)(?:::(\w+))?`", PAGE.read_text())
    assert len(named) > 20
    for path, name in named:
        assert (TESTS / path).is_file(), path
        if name:
            assert f"def {name}(" in (TESTS / path).read_text(), f"{path}::{name}"
