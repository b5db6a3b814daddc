"""Every figure of the experiments, on few rows: computed, kept as JSON, and shown from that alone."""

from __future__ import annotations

import json
from io import BytesIO

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("xgboost")
pytest.importorskip("torch")

from experiments.cells import Part, Run, Shown
from experiments.figures import PARTS

QUICK = Run(quick=True)


def _drawn(shown: Shown) -> None:
    """A figure shows some faults, such as labels that are no numbers, only when it is drawn."""
    for figure in shown.figures.values():
        figure.savefig(BytesIO(), format="png", dpi=40)


@pytest.mark.paper_data
@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.key)
def test_a_part_is_computed_kept_and_shown(part: Part) -> None:
    found = {}
    for cell in part.cells:
        text = json.dumps(cell.compute(QUICK), allow_nan=False)
        found[cell.name] = json.loads(text)
    whole = part.show(found)
    assert whole.figures
    assert len(whole.text) > 200
    assert "nan" not in whole.text.lower().split()
    assert "Not computed" not in whole.text
    _drawn(whole)
    first = part.cells[0].name
    some = part.show({first: found[first]})
    if len(part.cells) > 1:
        assert f"`{part.cells[1].name}`" in some.text
    assert some.figures


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.key)
def test_a_part_of_which_nothing_has_run_says_so(part: Part) -> None:
    shown = part.show({})
    assert not shown.figures
    assert all(f"`{cell.name}`" in shown.text for cell in part.cells)


def test_cells_have_names_of_their_own() -> None:
    names = [cell.name for part in PARTS for cell in part.cells]
    assert len(set(names)) == len(names)
    assert all(cell.name.split("/")[0] == part.key for part in PARTS for cell in part.cells)
