"""What the score hides: burden, choice, cost curves, levels of a control, and a person as a member of another group."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import globece as gce
from globece import Audit, AuditSettings, Climb, FeatureSpace
from globece.auditing import statistics as st

QUICK = AuditSettings(checks=False)


@pytest.fixture(scope="module")
def merit() -> Audit:
    """Group 1 is turned down twice as often, and those turned down pay as much."""
    rng = np.random.default_rng(0)
    n = 4000
    group = np.arange(n) % 2
    low = rng.random(n) < np.where(group == 1, 0.44, 0.22)
    X = np.column_stack([np.where(low, rng.uniform(0, 5, n), rng.uniform(5.01, 10, n)), rng.integers(0, 2, n), group])
    space = FeatureSpace.from_matrix(X, columns=["merit", "site", "g"], immutable=["site"])
    return gce.audit(
        lambda Z: Z[:, 0] > 5, X, by="g", control="site", space=space, favourable=True, rng=0,
        search=Climb(rays=300), audit_settings=QUICK,
    )  # fmt: skip


def test_burden_shows_what_conditioning_on_rejection_hides(merit: Audit) -> None:
    assert merit.verdict.conclusion == "equivalent"
    burden = next(c for c in merit.criteria if c.name == "burden")
    assert burden.gap.high < 0
    assert burden.gap.p_adjusted < 0.001
    assert burden.two == pytest.approx(2 * burden.one, rel=0.25)
    score, rate = merit.by_group["g = 0"].score, merit.by_group["g = 0"].rejection_rate
    assert burden.one == pytest.approx(score * rate, rel=0.05)
    assert "burden" in str(merit.verdict)


def test_every_criterion_has_an_interval_and_a_test(merit: Audit) -> None:
    assert [c.name for c in merit.criteria] == ["burden", "share_within", "cost_of_half", "choice", "distance"]
    for c in merit.criteria:
        assert c.gap.low <= c.gap.value <= c.gap.high
        assert 0.0 <= c.gap.p_adjusted <= 1.0


def test_results_for_each_level_of_the_control(merit: Audit) -> None:
    assert [one.level for one in merit.by_level] == ["site = 0", "site = 1"]
    assert sum(sum(one.n) for one in merit.by_level) == merit.overall.affected


def test_a_person_as_a_member_of_the_other_group() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 10, 600), np.arange(600) % 2])
    space = FeatureSpace.from_matrix(X, columns=["income", "g"])
    model = (np.array([1.0, -1.0]), -6.0)  # group 1 needs one more, which costs 1
    found = gce.audit(model, X, by="g", space=space, rng=0, audit_settings=QUICK)
    one = next(a for a in found.as_other if a.group == "g = 1")
    income = X[(X[:, 1] == 1) & (X[:, 0] <= 7), 0]
    width = np.ptp(X[:, 0]) / 10
    assert one.accepted == pytest.approx((income > 6).mean(), abs=1e-9)
    assert one.gap.value == pytest.approx(np.minimum(7 - income, 1.0).mean() / width, rel=1e-3)
    assert one.gap.low > 0
    masks = {"a": X[:, 1] == 1, "b": X[:, 1] == 0}
    assert (
        gce.audit(model, X, by=masks, space=space.constrain(immutable=["g"]), rng=0, audit_settings=QUICK).as_other
        == ()
    )


def test_quantiles_and_distances_agree_with_scipys() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.exponential(1.0, 200), rng.exponential(1.3, 300)
    value, _ = st.distance(a, b)
    theirs = stats.ks_2samp(a, b)
    assert value == pytest.approx(theirs.statistic)
    side = st.Side.of(np.ones(200), np.zeros(200, dtype=np.int64), None)
    ours = st.quantile_of(side, a, 0.5)
    low, high = stats.quantile_test(a, p=0.5).confidence_interval(0.95)
    assert ours.interval(0.05) == pytest.approx((low, high), abs=0.1)


def test_notebooks_show_every_result_and_escape_its_names(merit: Audit) -> None:
    X = np.array([[1.0, 3.0], [2.0, 9.0], [3.0, 5.0], [8.0, 2.0], [9.0, 7.0]])
    space = FeatureSpace.from_matrix(X, columns=["<b>income</b>", "debt"])
    ex = gce.explain(lambda Z: (Z[:, 0] >= 7).astype(int), X, space=space, rng=0, search=Climb(rays=50))
    benefits = gce.who_benefits(lambda Z: (Z[:, 0] >= 7).astype(int), X, {"<b>income</b>": 5}, space=space)
    for shown in (space, ex.rules_chart(), ex.counterfactuals(), benefits, merit, merit.verdict, merit.by_group):
        html = shown._repr_html_()
        assert html.startswith("<")
        assert "<b>income" not in html
    assert "Favourable outcome: True" in merit.verdict._repr_html_()
    assert benefits.summary().startswith("Favourable outcome: 1.")


def test_groups_are_a_frame_of_the_kind_that_was_given(merit: Audit) -> None:
    frame = merit.by_group.frame
    assert list(frame["group"]) == ["g = 0", "g = 1", "everybody"]
    assert frame["burden"][1] == next(c for c in merit.criteria if c.name == "burden").two
    assert list(merit.decisions()["conclusion"]) == ["equivalent"]
