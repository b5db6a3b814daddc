"""The figures of README.md, between two marks there: written with BENCHMARKS.md, from the same results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paper.markdown import table
from paper.reference import BEST_SEEN

BEGIN = "<!-- Written by `make bench`; do not edit. -->\n"
END = "<!-- End of what `make bench` writes. -->\n"
KINDS = {"lr": "logistic regressions", "xgb": "XGBoost", "dnn": "ReLU networks"}
MILLION_MARK = 4  # times reading and predicting


def figures(results: Mapping[str, Any]) -> str:
    """The table of figures; ``results`` has the result of each benchmark by its name."""
    rows = [row(results[name]) for name, row in ROWS.items() if name in results]
    return "\n" + table(["question", "measured", "by"], rows) + "\n"


def with_figures(readme: str, results: Mapping[str, Any]) -> str:
    """README.md with the figures of these results."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + figures(results) + END + after


def _rays(result: list[dict[str, Any]]) -> list[str]:
    said = []
    for kind, name in KINDS.items():
        times = [r["1"]["free_grid_ms"] / r["1"]["free_ms"] for r in result if r["model"] == kind]
        said.append(f"{name} {min(times):,.0f} to {max(times):,.0f} times")
    return [
        "How much faster is an exact ray than 1,000 steps through the model's own predict?",
        "; ".join(said) + " (one core)",
        "`make bench-rays`",
    ]


def _exactness(result: list[dict[str, Any]]) -> list[str]:
    reported, wrong = sum(r["reported"] for r in result), sum(r["not_flipped"] for r in result)
    return [
        "Does each counterfactual flip the original model?",
        f"{reported:,} reported, along random directions, of {len(result)} models: {wrong:,} do not",
        "`make bench-exactness`",
    ]


def _directions(result: list[dict[str, Any]]) -> list[str]:
    below = sum(round(r["score"], 2) <= BEST_SEEN[r["dataset"], r["model"]][r["n"] // 2] for r in result)
    times = [r["speedup"] for r in result]
    return [
        "How good are the directions, beside the best of the paper, the authors' code and a sweep over its settings?",
        f"score at or below it in {below} of {len(result)} cases, in {min(times):.0f} to {max(times):.0f} times less "
        "time than the paper's protocol",
        "`make bench-directions`",
    ]


def _unseen(result: list[dict[str, Any]]) -> list[str]:
    change = [r["unseen"] / r["training"] - 1 for r in result if r["margin"] == 0]
    models = ", ".join(sorted({r["model"] for r in result}))
    return [
        "Do they hold for rows that neither the model nor the search has seen?",
        f"the score there differs by {min(change):+.0%} to {max(change):+.0%} ({models}); check yours with `ex.apply`",
        "`make bench-unseen`",
    ]


def _calibration(result: dict[str, Any]) -> list[str]:
    alarms = [r["alarms"]["score"] for r in result["alarms"]]
    return [
        "How often does an audit at a level of 5 % find a gap where there is none?",
        f"{min(alarms):.1%} to {max(alarms):.1%}, by design, of {result['alarms'][0]['audits']} audits each",
        "`make bench-calibration`",
    ]


def _million(result: list[dict[str, Any]]) -> list[str]:
    def least(case: str) -> float:
        return float(min(r["cpu_s"] for r in result if r["case"] == case))

    times = least("explain, to JSON") / least("read and predict once")
    mark = "met" if times <= MILLION_MARK else "missed"
    return [
        "What do a million rows take?",
        f"{times:.1f} times the processor time of reading them and predicting once (our mark of {MILLION_MARK} is "
        f"{mark})",
        "`make bench-million`",
    ]


ROWS: dict[str, Callable[[Any], list[str]]] = {
    "rays": _rays,
    "exactness": _exactness,
    "directions": _directions,
    "unseen": _unseen,
    "calibration": _calibration,
    "million": _million,
}
