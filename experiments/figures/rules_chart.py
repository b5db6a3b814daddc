"""The cumulative rules chart of German Credit's categorical features (`tab:globecegerman`), beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from experiments.cells import Cell, Data, Part, Run, Shown
from experiments.figures.common import case_on
from experiments.figures.methods import as_the_paper, searched
from experiments.markdown import missing_rows, percent, table
from paper.protocol import sampling

NAME = "rules-chart"
# Feature, rule, new coverage in %, cost, coverage of all in %, cost: the paper's table.
PAPER = (
    ("Account Status", "If F2, Then F4", 33.5, 1.00, 33.5, 1.00),
    ("Account Status", "If F3, Then F4", 2.5, 1.00, 36.0, 1.00),
    ("Account Status", "If F1, Then F4", 45.2, 1.00, 81.2, 1.00),
    ("Telephone", "If F2, Then F1", 2.5, 1.80, 83.7, 1.02),
    ("Employment", "If Not F4, Then F4", 10.2, 1.95, 93.9, 1.12),
)
# The paper's rules as a direction: by feature the category to reach, and the scalar beyond which each other switches.
ORDER = {
    "Existing-Account-Status": ("A14", {"A12": 1.0, "A13": 2.0, "A11": 3.0}),
    "Telephone": ("A191", {"A192": 4.0}),
    "Present-Employment": ("A74", {"A71": 5.0, "A72": 5.0, "A73": 5.0, "A75": 5.0}),
}
PAPER_AFFECTED = 197
TITLES = {
    "rules": "the paper's own rules on this model",
    "searched": "the direction found by search",
    "sampled": "the best of the paper's samples, judged after scaling",
}


def compute(run: Run) -> Data:
    """The chart of one direction over the categorical features: as searched, and as the paper samples."""
    on = case_on(run, "german_credit", "xgb", categorical=True)
    ways = {
        "rules": _by_rules(on),
        "searched": searched(run, on),
        "sampled": as_the_paper(run, on, sampling("german_credit", 0), 1, select="scaled"),
    }
    return {"affected": int(on.affected.sum()), **{name: _chart(ex) for name, ex in ways.items()}}


def _by_rules(on: Any) -> Any:
    """The paper's chart as a direction: by Theorem 2 a category switches at k > 1 / (delta_max - delta_i)."""
    from globece import explain
    from globece.directions import FixedDirections

    delta = np.zeros(on.space.width)
    for name, (target, bounds) in ORDER.items():
        feature = on.space[name]
        for place, category in enumerate(feature.categories):
            label = feature.label(category)
            delta[feature.start + place] = 1.0 if label == target else 1.0 - 1.0 / bounds[label]
    return explain(on.own, on.rows, space=on.space, cost=on.cost, generator=FixedDirections([delta], cost=None), rng=0)


def _chart(ex: Any) -> Data:
    """What the display of a chart shows: the words of each row, and its numbers."""
    from globece.plots import RulesChartDisplay

    display = RulesChartDisplay.from_explanation(ex)
    rows = [
        {
            "new_coverage": row.new_coverage,
            "new_cost": row.new_cost if row.new_coverage else None,
            "coverage": row.coverage,
            "cost": row.cost if row.coverage else None,
            "lines": [asdict(line) for line in lines],
        }
        for row, lines in zip(display.rows, display.lines, strict=True)
    ]
    return {"rows": rows, "note": display.note, "coverage": ex.coverage, "cost": ex.average_cost}


def show(found: Mapping[str, Data]) -> Shown:
    """Our charts and the paper's, as tables; ours drawn as the library draws them."""
    if NAME not in found:
        return Shown(missing_rows(PART, found))
    data = found[NAME]
    ends = {name: data[name]["rows"][-1] for name in TITLES if data[name]["rows"]}
    said = "; ".join(
        f"{TITLES[name]}, {percent(end['coverage'])} and {_cost(end['cost'])}" for name, end in ends.items()
    )
    text = f"""The paper's chart ends at {PAPER[-1][4]:g} % of the affected inputs and an average cost of
{PAPER[-1][5]:g}. Its shares are whole numbers of the {PAPER_AFFECTED} inputs that its XGBoost model rejects, so it is
that model's. Here, with {data["affected"]:,} affected inputs: {said}. The paper does not give its direction, but its
rules and their order make one, and that is the first of ours{_agreement(data)}\n\n"""
    head = ["feature", "new rule", "new inputs", "cost", "all inputs", "cost"]
    paper = [[f, r, f"+{a:g} %", f"{b:.2f}", f"{c:g} %", f"{d:.2f}"] for f, r, a, b, c, d in PAPER]
    text += f"The paper:\n\n{table(head, paper)}\n"
    for name in ends:
        text += f"{TITLES[name].capitalize()}:\n\n{table(head, _rows(data[name]))}\n"
    return Shown(text, {f"{NAME}-{name}": _figure(data[name]) for name in ("rules", "searched") if name in ends})


def _agreement(data: Data) -> str:
    """Whether the paper's rules do here what the paper says, to the digits that it gives."""
    rows = data["rules"]["rows"]
    same = len(rows) == len(PAPER) and all(
        abs(100 * row["coverage"] - paper[4]) < 0.1 and row["cost"] is not None and abs(row["cost"] - paper[5]) < 0.01
        for row, paper in zip(rows, PAPER, strict=True)
    )
    if same:
        return ": every row has the paper's coverage and cost."
    return ", on a model that rejects other inputs than the paper's did."


def _rows(chart: Data) -> list[list[str]]:
    return [
        [
            "; ".join(dict.fromkeys(line["feature"] for line in row["lines"])),
            "; ".join(line["text"] for line in row["lines"]),
            f"+{percent(row['new_coverage'])}",
            _cost(row["new_cost"]),
            percent(row["coverage"]),
            _cost(row["cost"]),
        ]
        for row in chart["rows"]
    ]


def _cost(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"


def _figure(chart: Data) -> Any:
    from globece.plots import RulesChartDisplay
    from globece.rules import ChartRow, RuleLine

    def number(value: float | None) -> float:
        return float("inf") if value is None else value

    rows = tuple(
        ChartRow((), 0.0, 0.0, 0.0, r["new_coverage"], number(r["new_cost"]), r["coverage"], number(r["cost"]))
        for r in chart["rows"]
    )
    lines = tuple(tuple(RuleLine(**line) for line in r["lines"]) for r in chart["rows"])
    return RulesChartDisplay(rows, lines, 0, chart["note"]).plot().figure_


PART = Part(
    NAME,
    "The cumulative rules chart of German Credit",
    "tab:globecegerman",
    (Cell(NAME, compute, needs=("german_credit",)),),
    show,
)
