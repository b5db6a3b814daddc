"""The comparison's part of a page."""

from __future__ import annotations

from typing import Any

import numpy as np

from globece.auditing import Audit
from globece.comparing import Comparison
from globece.explanation import Explanation
from globece.page import explained, rests
from globece.page.about import About
from globece.page.arrays import Page

NOT_SAID = (
    "What this does not say: why they differ. Intervals are about which people are in the data, and take the "
    "directions as they were found."
)


def comparison_page(page: Page, found: Comparison, about: About) -> None:
    """Fill in the page of a comparison; its two results are shown one at a time."""
    a, b = (r.explanation if isinstance(r, Audit) else r for r in (found.a, found.b))
    first, second = names = found.names
    worse = found.worse_by
    what = "the gap between groups" if isinstance(found.a, Audit) else "the score"
    answer = f"{found['score'].b:.2f} instead of {found['score'].a:.2f} on average, people without recourse included."
    if np.isnan(worse):
        answer, tone = "That could not be computed: see below what is unknown.", "unknown"
    elif isinstance(found.a, Audit):
        answer, tone = f"The largest change of a gap in score is {worse:+.2f}.", "bad" if worse > 0 else "good"
    else:
        said = found["score"].said
        tone = {"worse": "bad", "better": "good"}.get(said, "open")
        answer = f"{said.capitalize()}: {answer}"
    page.data |= {
        "kind": "comparison",
        "title": about.title or f"{second} against {first}",
        "facts": [_fact(name, ex) for name, ex in zip(names, (a, b), strict=True)],
        "people": about.people,
        "cost_unit": "cost of recourse",
        "question": about.question or f"Is recourse more costly under {second} than under {first}?",
        "answer": answer,
        "badge": "",
        "tone": tone,
        "rests_line": [
            *rests.first_line(b, about)[:4],
            f"Intervals: {1 - found.level:.0%}, {'paired by row' if found.paired else 'not paired'}",
        ],
        "not_said": NOT_SAID,
        "features": [],
        "explanations": {n: explained.explained(page, ex, about) for n, ex in zip(names, (a, b), strict=True)},
        "comparison": {
            "names": list(names),
            "text": f"Side by side: by {what}, {second} is {_by(worse)}",
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


def _by(worse: float) -> str:
    if np.isnan(worse):
        return "not comparable"
    return f"{'worse' if worse > 0 else 'better'} by {abs(worse):.2f}" if worse else "the same"


def _value(value: Any) -> Any:
    return value if isinstance(value, str) else explained.number(value)
