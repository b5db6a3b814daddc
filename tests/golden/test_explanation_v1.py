"""Old result files load: ``explanation-v1.json`` was written by globece 0.1.0 and is never written again.

It explains a loan model (points for income, housing, savings and age) over six rows of a pandas frame, of which four
are affected, along two directions and within a budget of 4.5. Income has a NaN and no range, housing a missing
category, savings is ordinal with a missing value, and one affected input has no recourse.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from globece import Explanation
from globece.io.results import FORMAT

FILE = Path(__file__).parent / "explanation-v1.json"


@pytest.fixture(scope="module")
def ex() -> Explanation:
    return Explanation.from_json(FILE)


def test_it_gives_the_numbers_it_was_written_with(ex: Explanation) -> None:
    assert (ex.n_rows, ex.n_affected, ex.n_directions, ex.n_without_recourse) == (6, 4, 2, 1)
    assert (ex.budget, ex.max_scalar) == (4.5, 50.0)
    assert ex.rows.tolist() == [0, 2, 3, 5]
    assert ex.coverage == 0.75
    paid = [0.8496733912381622, 3.30718954248366, 3.9756097560975605]
    assert ex.average_cost == pytest.approx(sum(paid) / 3, rel=1e-15)
    assert ex.score == pytest.approx((sum(paid) + 4.5) / 4, rel=1e-15)
    assert ex.scalars.tolist() == [
        [2.5571895424836604, np.inf, np.inf, 1.6621735716096548],
        [2.4878048780487805, 4.975609756097561, np.inf, 2.4878048780487805],
    ]
    assert ex.minimum_costs().direction.tolist() == [0, 1, -1, 0]
    assert ex.provenance.version == "0.1.0"
    assert ex.provenance.generator == "TwoDirections()"


def test_it_gives_the_rows_it_was_written_with(ex: Explanation) -> None:
    found = ex.counterfactuals()
    before = pd.DataFrame(
        {
            "age": np.array([20, 50, 44], dtype=np.int64),
            "income": [1.5, np.nan, 2.5],
            "housing": pd.Series(["rent", None, "rent"], dtype=object),
            "savings": pd.Series(["low", "mid", None], dtype=object),
        }
    )
    pd.testing.assert_frame_equal(found.before, before)
    assert found.after["age"].tolist() == [20, 54, 44]
    assert found.after["housing"].tolist() == ["own", "own", "rent"]
    assert found.after["savings"].tolist() == ["low", "high", None]
    assert found.after["income"].round(6).tolist()[::2] == [2.5, 3.15]


def test_it_gives_the_rules_it_was_written_with(ex: Explanation) -> None:
    assert ex.rules_chart(0).records()[-1]["rule"] == "If rent, Then own"
    assert ex.space["income"].low == -np.inf
    assert ex.space["housing"].categories == ("own", "rent", None)
    assert ex.space["age"].sense == 1
    assert ex.cost.weights.tolist() == [1.0, 1.0, 2.0, 1.0]


@pytest.mark.skipif(FORMAT.version != 1, reason="newer versions are written otherwise")
def test_it_is_written_as_it_was(ex: Explanation) -> None:
    assert ex.to_json() == FILE.read_text(encoding="utf-8")
