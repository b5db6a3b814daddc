"""An audit that the first version wrote: it is read, and judged again by the rules of today."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from globece import Audit

FILE = Path(__file__).parent / "audit-v1.json"


def test_an_audit_of_version_1_is_read_and_judged_again() -> None:
    found = Audit.from_json(FILE)
    old = json.loads(FILE.read_text())
    assert found.verdict.against == old["verdict"]["against"] == "g = 1"
    assert found.by_group["g = 1"].score == old["by_group"][1]["score"]
    assert np.isclose(found.verdict.size, old["verdict"]["size"])
    assert all(check.survives is None for check in found.checks)
    assert found.basis.data == "unknown"
    text = found.to_json(members=True)
    assert Audit.from_json(text).to_json(members=True) == text
