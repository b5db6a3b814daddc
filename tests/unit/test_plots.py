"""Displays draw what the explanation's views say, without asking again, and never fail on odd input."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import polars as pl
from matplotlib.axes import Axes

import globece as gce
from globece.errors import InvalidParameterError
from globece.plots import (
    CounterfactualsDisplay,
    MeanTranslationDisplay,
    MinimumCostsDisplay,
    ProfileDisplay,
    RulesChartDisplay,
)
from globece.plots.axes import round_width
from globece.plots.style import colour, number_text, text_width, wrap

DISPLAYS = [ProfileDisplay, MinimumCostsDisplay, MeanTranslationDisplay, RulesChartDisplay, CounterfactualsDisplay]
HOSTILE = "$\\frac{</script> & a_very_long$name, of the questionnaire's 2nd page"


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def rows(n: int = 80) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "income": rng.integers(0, 100, n),
            "debt": rng.normal(50.0, 20.0, n),
            "housing": rng.choice(["own", "rent", "free"], n),
            HOSTILE: rng.choice(["$a", "b$", "</script>"], n),
        }
    )


def lends(X: pl.DataFrame) -> np.ndarray[Any, Any]:
    score = X["income"].to_numpy() - X["debt"].to_numpy() + 20.0 * (X["housing"] == "own").to_numpy()
    return (score + 10.0 * (X[HOSTILE] == "b$").to_numpy() > 30).astype(int)


def explained(n_directions: int = 2, model: Any = lends, **more: Any) -> gce.Explanation:
    return gce.explain(model, rows(), n_directions=n_directions, rng=0, **more)


@pytest.fixture(scope="module")
def ex() -> gce.Explanation:
    return explained()


@pytest.fixture(scope="module")
def empty() -> gce.Explanation:
    return explained(model=lambda X: np.ones(len(X), dtype=int))


@pytest.fixture(scope="module")
def hopeless() -> gce.Explanation:
    return explained(1, model=lambda X: np.zeros(len(X), dtype=int))


def bars_of(ax: Axes) -> list[Any]:
    return list(ax.patches)


def texts(ax: Axes) -> str:
    """Everything written on the axes."""
    if not ax.axison:
        return "\n".join(t.get_text() for t in ax.texts)
    found = [*ax.texts, ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label]  # type: ignore[attr-defined]
    found += [*ax.get_xticklabels(), *ax.get_yticklabels()]
    legend = ax.get_legend()
    found += [] if legend is None else [legend.get_title(), *legend.get_texts()]
    return "\n".join(t.get_text() for t in found)


@pytest.mark.parametrize("display", DISPLAYS)
@pytest.mark.parametrize("size", [(6.4, 4.0), (3.0, 2.6), (1.5, 1.2)])
def test_draws_on_axes_of_any_size(display: Any, size: tuple[float, float], ex: gce.Explanation) -> None:
    figure, ax = plt.subplots(figsize=size)
    made = display.from_explanation(ex)
    assert made.plot(ax=ax) is made
    assert made.ax_ is ax
    assert made.figure_ is figure
    figure.canvas.draw()


@pytest.mark.parametrize("display", DISPLAYS)
def test_makes_a_figure_of_its_own_each_time(display: Any, ex: gce.Explanation) -> None:
    made = display.from_explanation(ex)
    first = made.plot().figure_
    second = made.plot().figure_
    assert first is not second
    second.canvas.draw()


@pytest.mark.parametrize("display", DISPLAYS)
def test_drawing_computes_nothing_again(display: Any, ex: gce.Explanation, monkeypatch: pytest.MonkeyPatch) -> None:
    made = display.from_explanation(ex)
    for view in ("profile", "minimum_costs", "mean_translation", "rules_chart", "counterfactuals"):
        monkeypatch.setattr(gce.Explanation, view, None)
    made.plot()


@pytest.mark.parametrize("display", DISPLAYS)
def test_nobody_affected_is_said(display: Any, empty: gce.Explanation) -> None:
    ax = display.from_explanation(empty).plot().ax_
    assert " ".join(texts(ax).split()) == "Nobody is affected: all 80 rows have the favourable outcome already."


@pytest.mark.parametrize("display", DISPLAYS)
def test_nobody_covered_is_said(display: Any, hopeless: gce.Explanation) -> None:
    written = " ".join(texts(display.from_explanation(hopeless).plot().ax_).split())
    if display is MinimumCostsDisplay:
        assert "0 of 80 have recourse within the budget, 80 have none" in written
        assert "80 (100.0%)" in written
    elif display is RulesChartDisplay:
        assert "gives nobody recourse within the budget of 10" in written
    else:
        assert "None of the 80 affected inputs has recourse within the budget of 10." in written


def test_profile_says_where_it_ends(ex: gce.Explanation) -> None:
    display = ProfileDisplay.from_explanation(ex).plot()
    written = texts(display.ax_)
    assert f"{ex.coverage:.1%} covered at an average cost of {ex.average_cost:.2f}" in written
    assert "limit on cost" in written
    assert "budget" in written
    assert {"all 2 directions", "direction 1 alone", "direction 2 alone"} <= set(written.splitlines())
    together = next(line for line in display.ax_.lines if line.get_label() == "all 2 directions")
    assert np.asarray(together.get_ydata())[-1] == ex.coverage
    assert len(display.alone) == 2
    assert max(p.coverage[-1] for p in display.alone) <= ex.coverage


def test_profile_against_average_cost_is_the_papers(ex: gce.Explanation) -> None:
    display = ProfileDisplay.from_explanation(ex).plot(x="average cost")
    together = next(line for line in display.ax_.lines if line.get_label() == "all 2 directions")
    assert np.asarray(together.get_xdata())[-1] == pytest.approx(ex.average_cost)
    assert "average cost of the covered inputs" in " ".join(texts(display.ax_).split())
    with pytest.raises(InvalidParameterError, match="x must be one of"):
        display.plot(x="k")  # type: ignore[arg-type]


def test_histogram_counts_everybody_once() -> None:
    ex = explained(budget=2.0)
    assert 0 < ex.n_without_recourse < ex.n_affected
    display = MinimumCostsDisplay.from_explanation(ex).plot()
    hatched = [bar for bar in bars_of(display.ax_) if bar.get_hatch()]
    solid = [bar for bar in bars_of(display.ax_) if not bar.get_hatch()]
    assert [bar.get_height() for bar in hatched] == [ex.n_without_recourse]
    assert sum(bar.get_height() for bar in solid) == ex.n_covered
    assert display.n_without_recourse == ex.n_without_recourse
    assert hatched[0].get_x() > ex.budget  # beyond the budget, where nobody is covered


def test_one_changed_category_stands_at_one() -> None:
    X = pl.DataFrame({"housing": ["own", "rent"] * 10, "n": list(range(20))})
    ex = gce.explain(lambda X: (X["housing"] == "own").to_numpy(), X, favourable=True, rng=0)
    display = MinimumCostsDisplay.from_explanation(ex).plot()
    (bar,) = [bar for bar in bars_of(display.ax_) if bar.get_height() and not bar.get_hatch()]
    assert bar.get_x() + bar.get_width() / 2 == pytest.approx(1.0)
    assert "10" in texts(display.ax_).split()  # the budget, beyond the break


def test_mean_translation_shows_only_what_moves_dearest_first(ex: gce.Explanation) -> None:
    display = MeanTranslationDisplay.from_explanation(ex)
    moved = ex.mean_translation()
    assert set(display.features) == {f for f, share in zip(moved.features, moved.share, strict=True) if share}
    assert list(display.costs) == sorted(display.costs, reverse=True)
    assert sum(display.costs) == pytest.approx(ex.average_cost)  # l1: costs add up
    one = MeanTranslationDisplay.from_explanation(ex, direction=1).plot(top=1)
    assert "along direction 2" in texts(one.ax_)
    assert len(one.ax_.patches) == 1


def test_immutable_features_are_not_drawn() -> None:
    space = gce.FeatureSpace.from_frame(rows(), immutable=["income", "housing"])
    display = MeanTranslationDisplay.from_explanation(explained(space=space))
    assert set(display.features) <= {"debt", HOSTILE}


def test_rules_chart_ends_with_the_directions_own_numbers(ex: gce.Explanation) -> None:
    for i in range(ex.n_directions):
        display = RulesChartDisplay.from_explanation(ex, i).plot()
        last = ex.rules_chart(i).rows[-1]
        assert display.rows[-1].coverage == last.coverage
        assert sum(row.new_coverage for row in display.rows) == pytest.approx(last.coverage)
        assert f"Direction {i + 1} covers {last.coverage:.1%}" in texts(display.ax_)
        assert len(display.rows) == len(display.lines)
    with pytest.raises(InvalidParameterError, match="direction must be below"):
        RulesChartDisplay.from_explanation(ex, 9)


def test_additions_are_bounded_by_the_range(ex: gce.Explanation) -> None:
    width = {f.name: f.high - f.low for f in ex.space.scalars}
    seen = 0
    for i in range(ex.n_directions):
        for lines in RulesChartDisplay.from_explanation(ex, i).lines:
            for line in lines:
                if line.text.endswith(" at most"):
                    amount = float(line.text.split()[0].replace("\N{MINUS SIGN}", "-").replace(",", ""))
                    assert abs(amount) <= width[line.feature] * 1.005
                    seen += 1
    assert seen


def test_counterfactuals_list_only_what_changes(ex: gce.Explanation) -> None:
    display = CounterfactualsDisplay.from_explanation(ex, n=5)
    found = ex.counterfactuals()
    assert display.inputs == tuple(found.row[:5].tolist())
    assert display.costs == tuple(found.cost[:5].tolist())
    for i, changes in enumerate(display.changes):
        differing = {n for n in found.before.columns if found.before[n][i] != found.after[n][i]}
        assert {change.feature for change in changes} == differing
    display.plot(most_changes=1)
    assert f"the first 5 of {ex.n_covered} covered inputs" in texts(display.ax_)


def test_one_hot_groups_of_a_matrix_are_shown_as_categories() -> None:
    columns = ["v = a", "v = b", "v = c"]
    space = gce.FeatureSpace.from_matrix(np.eye(3), columns=columns, groups={"v": columns})
    ex = gce.explain(lambda X: X[:, 2] > 0.5, np.eye(3), favourable=True, space=space, rng=0)
    display = CounterfactualsDisplay.from_explanation(ex)
    assert {(c.before, c.after) for changes in display.changes for c in changes} == {("a", "c"), ("b", "c")}


def test_directions_keep_their_colours(ex: gce.Explanation) -> None:
    profile = ProfileDisplay.from_explanation(ex).plot()
    lines = {str(line.get_label()): line.get_color() for line in profile.ax_.lines}
    assert lines["direction 2 alone"] == colour(1)
    costs = MinimumCostsDisplay.from_explanation(ex).plot()
    bars = {str(c.get_label()).split(":")[0]: c[0].get_facecolor() for c in costs.ax_.containers}
    assert matplotlib.colors.to_hex(bars["direction 2"]) == colour(1).lower()
    assert len({colour(i) for i in range(8)}) == 8
    assert colour(8) == colour(0)


def test_wrapping_loses_nothing_and_fits() -> None:
    name = "PercentTradesNeverDelq of_the_last-year " + "x" * 60
    lines = wrap(name, 1.0, 9)
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")
    assert all(text_width(line, 9) <= 1.0 for line in lines)
    assert wrap("", 1.0, 9) == [""]


@pytest.mark.parametrize(
    ("value", "shown"), [(3.0, "3"), (-12345.6, "\N{MINUS SIGN}12,346"), (0.12345, "0.1235"), (1e-7, "1e-07")]
)
def test_numbers_have_about_four_digits(value: float, shown: str) -> None:
    assert number_text(value) == shown


@pytest.mark.parametrize(("width", "rounded"), [(0.04, 0.05), (0.2, 0.2), (0.21, 0.5), (7.0, 10.0)])
def test_bar_widths_are_round(width: float, rounded: float) -> None:
    assert round_width(width) == pytest.approx(rounded)


def test_without_matplotlib_the_extra_is_named() -> None:
    code = """
import sys; sys.modules.update({"matplotlib": None, "matplotlib.pyplot": None})
import numpy as np, globece as gce
from globece.plots import ProfileDisplay
ex = gce.explain(lambda X: X[:, 0] > 1, np.array([[0.0], [1.0], [2.0]]), favourable=True, rng=0)
display = ProfileDisplay.from_explanation(ex)
try:
    display.plot()
except gce.GlobeCEError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "ProfileDisplay.plot needs matplotlib, which is not installed; install it with: pip install 'globece[plot]'"
    )
