"""The comparison's part of a page."""

from __future__ import annotations

from typing import Any

import numpy as np

from globece import formatting
from globece.auditing import Audit
from globece.comparing import GAP, ComparedMeasure, Comparison
from globece.explanation import Explanation
from globece.page import explained, rests
from globece.page.about import About
from globece.page.arrays import Page

NOT_SAID = (
    "What this does not say: why they differ. Intervals are about which people are in the data, and take the "
    "directions as they were found."
)
QUESTIONS = {
    False: "Is recourse more costly under {second} than under {first}?",
    True: "Is recourse less equal under {second} than under {first}?",
}


def comparison_page(page: Page, found: Comparison, about: About) -> None:
    """Fill in the page of a comparison; its two results are shown one at a time."""
    a, b = (r.explanation if isinstance(r, Audit) else r for r in (found.a, found.b))
    first, second = names = found.names
    gaps = isinstance(found.a, Audit)
    row = _decisive(found)
    said = "unknown" if row is None else row.said
    page.data |= {
        "kind": "comparison",
        "title": about.title or f"{second} against {first}",
        "facts": [_fact(name, ex) for name, ex in zip(names, (a, b), strict=True)],
        "people": about.people,
        "cost_unit": "cost of recourse",
        "question": about.question or QUESTIONS[gaps].format(first=first, second=second),
        "answer": _answer(row, found.level, gaps),
        "badge": said,
        "tone": {"worse": "bad", "better": "good", "the same": "good", "unknown": "unknown"}.get(said, "open"),
        "rests_line": [
            *rests.first_line(b, about)[:4],
            f"Intervals: {1 - found.level:.0%}, {'paired by row' if found.paired else 'not paired'}",
        ],
        "not_said": NOT_SAID,
        "features": [],
        "explanations": {n: explained.explained(page, ex, about) for n, ex in zip(names, (a, b), strict=True)},
        "comparison": {
            "names": list(names),
            "text": _heading(row, second, gaps),
            "paired": found.paired,
            "notes": list(found.notes),
            "rows": [
                {
                    "measure": row.measure,
                    "unit": row.unit,
                    "a": _value(row.a),
                    "b": _value(row.b),
                    "difference": _value(row.difference),
                    "low": _value(row.low),
                    "high": _value(row.high),
                    "said": row.said,
                }
                for row in found.rows
            ],
        },
        "rests": rests.rests_on(
            b,
            about,
            [(f"{first}: affected inputs", f"SHA-256 {rests.fingerprint(a)}")],
            again=_again(found),
        ),
    }


def _again(found: Comparison) -> str:
    kind = type(found.a).__name__
    lines = ["import globece as gce", "", f"# The result files of {found.names[0]!a} and {found.names[1]!a}."]
    lines += [f"{side} = gce.{kind}.from_json(...)" for side in "ab"]
    return "\n".join([*lines, f"gce.compare(a, b, names={found.names!a}, level={found.level:g})"])


def _fact(name: str, ex: Explanation) -> str:
    return f"{name}: {ex.provenance.model}, {ex.n_affected:,} of {ex.n_rows:,} affected"


def _decisive(found: Comparison) -> ComparedMeasure | None:
    """The measure that says which is worse: the score, or of two audits the gap that grows most."""
    gaps = [row for row in found.rows if row.measure.startswith(GAP)]
    rows = gaps if isinstance(found.a, Audit) else [found["score"]]
    if np.isnan(found.worse_by):
        return None
    return max(rows, key=lambda row: row.difference)


def _answer(row: ComparedMeasure | None, level: float, gaps: bool) -> str:
    if row is None:
        return "That could not be computed: see below what is unknown."
    a, b = (formatting.cost(float(v), 2) for v in (row.a, row.b))
    sure = "" if np.isnan(row.low) else f", {1 - level:.0%} interval {row.low:+.2f} to {row.high:+.2f}"
    change = f"(a difference of {row.difference:+.2f}{sure})"
    if gaps:
        return f"The {row.measure} is {b} instead of {a} {change}."
    return f"The mean cost is {b} instead of {a}, people without recourse counted as the budget {change}."


def _heading(row: ComparedMeasure | None, second: str, gaps: bool) -> str:
    by = "By the gap between groups" if gaps else "By the score"
    if row is None:
        return f"{by}, the two cannot be compared"
    if row.said in ("better", "worse"):
        return f"{by}, {second} is {row.said} by {abs(row.difference):.2f}"
    return f"{by}, the two are the same" if row.said == "the same" else f"{by}, no difference between the two is shown"


def _value(value: Any) -> Any:
    return value if isinstance(value, str) else explained.number(value)
