"""AReS and Fast AReS: the ground set, its evaluation, the objectives, the result, and what goes wrong."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from sklearn.linear_model import LogisticRegression

import globece as gce
from globece import CostModel, FeatureSpace
from globece.baselines import AccuracyCost, AresSettings, FourTerms, RecourseSet, ares, fast_ares, several
from globece.baselines.evaluate import evaluate
from globece.baselines.ground_set import GroundSet, reduce_rules
from globece.baselines.items import Items
from globece.baselines.itemsets import combinations_seen, frequent, item_bits, itemsets, pack, unpack
from globece.baselines.objectives import Objective
from globece.baselines.optimise import Limits, optimise
from globece.baselines.rule_sets import ground_set
from globece.baselines.swaps import Ledger
from globece.case.recourse import mean_cost, score
from globece.cli import main
from globece.costs import Norm
from globece.errors import (
    FileFormatError,
    InvalidDataError,
    InvalidParameterError,
    ModelError,
    UnknownFeatureError,
)
from globece.io import recourse_sets, results
from globece.models.compiling.adapt import as_model
from globece.progress import Monitor
from paper.cases import case
from tests.problems import approve, approve_matrix, global_state, matrix, matrix_space, mixed_frame, mixed_space

SETTINGS = AresSettings(support=0.05, bins=4, objective=AccuracyCost(0.1))


@pytest.fixture(scope="module")
def found() -> RecourseSet:
    return ares(approve, mixed_frame(200), space=mixed_space(mixed_frame(200)), rng=0, ares_settings=SETTINGS)


# -- items and itemsets ------------------------------------------------------------------------------------------------


def test_bits_come_back() -> None:
    flags = np.random.default_rng(0).random((5, 131)) < 0.4
    assert (unpack(pack(flags), 131) == flags).all()


def test_a_row_moves_to_the_middle_of_a_bin_or_to_the_nearest_value_in_it() -> None:
    X = np.array([[0.0], [4.0], [9.0], [10.0]])
    space = FeatureSpace.from_matrix(X, columns=["debt"])
    middle = Items.of(space, X, bins=2)
    assert middle.apply(X, [1]).ravel().tolist() == [7.5, 7.5, 9.0, 10.0]
    nearest = Items.of(space, X, bins=2, target="nearest")
    assert nearest.apply(X, [0]).ravel().tolist() == [0.0, 4.0, 5.0, 5.0]
    up = nearest.apply(X, [1]).ravel()
    assert up[0] == np.nextafter(5.0, 6.0)
    assert up[2] == 9.0


def test_whole_features_move_in_whole_numbers_and_within_their_range() -> None:
    X = np.array([[0.0], [1.0], [2.0], [10.0]])
    space = FeatureSpace.from_matrix(X, columns=["n"], whole=["n"], ranges={"n": (0, 6)})
    items = Items.of(space, X, bins=4)
    assert [items.listed[i].middle for i in range(3)] == [1.0, 4.0, 6.0]
    assert not items.reachable(3)  # (7.5, 10] lies outside the range


def test_quantile_bins_hold_about_as_many_rows_each() -> None:
    X = np.exp(np.random.default_rng(0).normal(size=(1000, 1)))
    items = Items.of(FeatureSpace.from_matrix(X), X, binning="quantile")
    assert np.bincount(items.codes(X).ravel()).tolist() == [100] * 10


def test_missing_numbers_have_no_item_and_stay_missing() -> None:
    X = np.array([[0.0], [np.nan], [10.0]])
    items = Items.of(FeatureSpace.from_matrix(X), X, bins=2)
    assert items.codes(X).ravel().tolist() == [0, -1, 1]
    assert np.isnan(items.apply(X, [0])[1, 0])
    assert not items.allowed(0, X, items.codes(X))[1]


@pytest.mark.parametrize("support", [0.03, 0.1, 0.3])
def test_itemsets_are_those_of_mlxtend(support: float) -> None:
    patterns = pytest.importorskip("mlxtend.frequent_patterns")
    X = matrix(300)
    values = matrix_space(X).pack(X)
    items = Items.of(matrix_space(X), values)
    bits = item_bits(items.codes(values), len(items))
    ours = frequent(bits, items.feature_of, len(X), support=support, max_length=4, limit=10_000)
    table = pd.DataFrame(unpack(bits, len(X)).T)
    theirs = patterns.apriori(table, min_support=support, max_len=4)
    assert {frozenset(ours.members(i)) for i in range(len(ours))} == {frozenset(map(int, s)) for s in theirs.itemsets}
    assert len(ours) == len(theirs)


def test_combinations_seen_counts_rows() -> None:
    codes = np.array([[0, 2], [0, 2], [1, 3], [1, -1]])
    assert combinations_seen(codes, [0, 1], 1).tolist() == [[0, 2], [1, 3]]
    assert combinations_seen(codes, [0, 1], 2).tolist() == [[0, 2]]
    huge = np.arange(40).reshape(1, 40) * 1000  # too many combinations for one whole number each
    assert combinations_seen(np.vstack([huge, huge + 999]), list(range(40)), 1).shape == (2, 40)


# -- the ground set ----------------------------------------------------------------------------------------------------


def plain_triples(items: Items, rules: list[tuple[int, ...]], max_width: int) -> set[tuple[Any, ...]]:
    """Every valid triple, by the appendix's loop over SD x RL x RL."""
    feature = items.feature_of
    out = set()
    for d, c, then in product(rules, rules, rules):
        fd, fc, ft = ({int(feature[i]) for i in s} for s in (d, c, then))
        if not fd & fc and len(d) + len(c) <= max_width and fc == ft and c != then:
            out.add((d, c, then))
    return out


def listed(ground: GroundSet) -> set[tuple[Any, ...]]:
    triples = ground.triples(np.arange(len(ground)))
    return {
        (
            ground.outer.members(o),
            ground.inner.members(ground.pair_inner[p]),
            ground.thens.members(ground.pair_then[p]),
        )
        for o, p in zip(triples.outer, triples.pair, strict=True)
    }


@pytest.mark.parametrize("reduce", [False, True])
def test_the_ground_set_is_the_appendix_s_loop(reduce: bool) -> None:
    X = matrix(300)
    space = matrix_space(X, whole=[])
    values, settings = space.compact(X), AresSettings(support=0.1, bins=3, max_width=4, reduce_rules=reduce)
    ground = ground_set(space, values, approve_matrix(X) == 1, None, settings)
    items = ground.items
    rules = frequent(
        item_bits(items.codes(values), len(items)), items.feature_of, 300, support=0.1, max_length=3, limit=999
    )
    expected = plain_triples(items, [rules.members(i) for i in range(len(rules))], 4)
    assert listed(ground) == expected
    assert len(ground) == len(expected)


@pytest.mark.paper_data
@pytest.mark.parametrize(
    ("dataset", "support", "then_support", "size"),
    [
        ("compas", 0.1, None, 7_840),
        ("compas", 0.02, None, 98_636),
        ("german_credit", 0.26, None, 31_680),
        ("german_credit", 0.16, None, 1_263_950),
        ("heloc", 0.6, 1 / 7896, 398_452),
        ("default_credit", 0.9, 1 / 24_000, 15_814),
    ],
)
def test_ground_sets_are_as_large_as_the_reference_s(
    dataset: str, support: float, then_support: float | None, size: int
) -> None:
    on = case(dataset, "lr")
    settings = AresSettings(support=support, then_support=then_support)
    full = ground_set(on.space, on.space.pack(on.rows), ~on.affected, None, settings)
    assert len(full) == size
    if then_support is None:
        reduced = ground_set(
            on.space, on.space.pack(on.rows), ~on.affected, None, AresSettings(support=support, reduce_rules=True)
        )
        assert len(reduced) == size
        assert len(reduced.inner) <= len(full.inner)


def test_rl_reduction_leaves_out_single_combinations() -> None:
    X = matrix(50)
    items = Items.of(matrix_space(X), matrix_space(X).pack(X))
    reduced = reduce_rules(items, itemsets([(0,), (1,), (int(items.starts[3]),)]))
    assert [reduced.members(i) for i in range(len(reduced))] == [(0,), (1,)]


def test_then_generation_gives_the_combinations_that_rows_have() -> None:
    X = matrix(300)
    space = matrix_space(X)
    few = ground_set(space, space.pack(X), approve_matrix(X) == 1, None, AresSettings(support=0.2))
    more = ground_set(
        space, space.pack(X), approve_matrix(X) == 1, None, AresSettings(support=0.2, then_support=1 / 300)
    )
    assert listed(few) < listed(more)
    rare = ground_set(space, space.pack(X), approve_matrix(X) == 1, None, AresSettings(support=0.2, then_support=0.2))
    assert len(rare) < len(more)


def test_thens_from_favourable_rows_only() -> None:
    X = matrix(300)
    space, good = matrix_space(X), approve_matrix(X) == 1
    ground = ground_set(
        space, space.pack(X), good, None, AresSettings(support=0.2, thens_from="favourable", then_support=0.001)
    )
    codes = ground.items.codes(space.pack(X)[good])
    for i in range(len(ground.thens)):
        assert any(set(ground.thens.members(i)) <= set(row.tolist()) for row in codes)


def test_features_need_not_match_when_the_constraint_is_lifted() -> None:
    X = matrix(200)
    space = matrix_space(X)
    settings = AresSettings(support=0.2, bins=3, match_features=False)
    ground = ground_set(space, space.pack(X), approve_matrix(X) == 1, None, settings)
    features = [
        {int(ground.items.feature_of[i]) for i in s.members(k)}
        for s, k in ((ground.inner, ground.pair_inner[0]), (ground.thens, ground.pair_then[0]))
    ]
    pairs = zip(ground.pair_inner, ground.pair_then, strict=True)
    differ = sum(
        {int(ground.items.feature_of[i]) for i in ground.inner.members(a)}
        != {int(ground.items.feature_of[i]) for i in ground.thens.members(b)}
        for a, b in pairs
    )
    assert features
    assert differ > 0
    lifted = ares(approve_matrix, X, space=space, rng=0, ares_settings=settings)
    bound = ares(approve_matrix, X, space=space, rng=0, ares_settings=AresSettings(support=0.2, bins=3))
    assert lifted.coverage >= bound.coverage


# -- evaluation --------------------------------------------------------------------------------------------------------


def test_bits_say_what_one_predict_per_triple_says() -> None:
    X = mixed_frame(150)
    space = mixed_space(X, increasing=["debts"], immutable=["job"])
    Z, cost = space.encode(X), CostModel.bins(space)
    box = as_model(approve, space, compile=False)
    good = box.favourable(Z)
    values = space.pack(Z)
    ground = ground_set(space, values, good, None, AresSettings(support=0.08, bins=3))
    inputs = values[~good]
    numbers = np.random.default_rng(0).choice(len(ground), 200, replace=False)
    made = evaluate(ground, ground.triples(numbers), box, inputs, cost, 10.0, Monitor(), batch_rows=100)
    items, codes = ground.items, ground.items.codes(inputs)
    for t in range(200):
        outer = ground.outer.members(made.triples.outer[t])
        inner = ground.inner.members(made.inner_of[t])
        then = ground.thens.members(ground.pair_then[made.triples.pair[t]])
        match = np.array([set(outer) | set(inner) <= set(row.tolist()) for row in codes])
        after = space.expand(items.apply(inputs, then))
        flips = match & box.favourable(after)
        paid = cost.between(Z[~good], after)
        flips &= paid <= 10.0
        assert made.counts[t] == flips.sum()
        assert np.array_equal(made.costs(t), np.where(flips, paid, np.inf))
        assert made.average_costs[t] == pytest.approx(mean_cost(paid[flips]))


def test_gains_are_those_of_the_plain_twin() -> None:
    X = matrix(200)
    space = matrix_space(X)
    Z = space.encode(X)
    box = as_model(approve_matrix, space, compile=False)
    good = box.favourable(Z)
    ground = ground_set(space, space.pack(Z), good, None, AresSettings(support=0.1, bins=5))
    which = np.random.default_rng(1).choice(len(ground), 60, replace=False)
    objectives: tuple[Objective, ...] = (AccuracyCost(0.1), AccuracyCost(), FourTerms(1, 2, 0.5, 0.25))
    for norm, objective in product(get_args(Norm), objectives):
        cost = CostModel.bins(space, norm=norm)
        made = evaluate(ground, ground.triples(which), box, space.pack(Z)[~good], cost, 10.0, Monitor())
        ledger = Ledger(made, objective.terms(made, cost, 20))
        standing = ledger.standing([3, 17, 40])
        some = np.arange(41, 60)
        assert np.array_equal(ledger.gains(standing, some), ledger.plain_gains(standing, some))
        left = [ledger.standing(r).total - standing.total for r in ([17, 40], [3, 40], [3, 17])]
        assert standing.without(ledger.terms).tolist() == left


def test_the_four_terms_are_the_original_s() -> None:
    X = matrix(200)
    space = matrix_space(X)
    Z, cost = space.encode(X), CostModel.bins(space, weights={"income": 2.0})
    box = as_model(approve_matrix, space, compile=False)
    good = box.favourable(Z)
    inputs = space.pack(Z)[~good]
    ground = ground_set(space, space.pack(Z), good, None, AresSettings(support=0.1, bins=5))
    made = evaluate(ground, ground.triples(np.arange(0, len(ground), 7)), box, inputs, cost, 10.0, Monitor())
    rules, weights = [1, 5, 9], (1.0, 3.0, 0.5, 0.25)
    terms = FourTerms(*weights).terms(made, cost, 20)
    wrong = cover = price = change = 0.0
    matched = np.zeros(len(inputs), dtype=bool)
    for t in rules:
        match = unpack(made.matches(np.array([t]))[0], made.n)
        matched |= match
        wrong += match.sum() - made.counts[t]
        items = ground.items
        inner = {items.feature_of[i]: i for i in ground.inner.members(made.inner_of[t])}
        then = {items.feature_of[i]: i for i in ground.thens.members(ground.pair_then[made.triples.pair[t]])}
        for f, i in then.items():
            if i != inner[f]:
                price += cost.weight(space.features[f])
                change += 1.0 if space.features[f].is_block else abs(i - inner[f])
    cover = float(matched.sum())
    expected = -weights[0] * wrong + weights[1] * cover - weights[2] * price - weights[3] * change
    assert Ledger(made, terms).standing(rules).total / terms.scale == pytest.approx(expected)


# -- the optimisation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"exchanges": 2, "repeats": 3}, {"exchanges": 0}])
def test_local_search_finds_the_best_small_set(options: dict[str, int]) -> None:
    X = matrix(120)
    space = matrix_space(X)
    Z, cost = space.encode(X), CostModel.bins(space)
    box = as_model(approve_matrix, space, compile=False)
    good = box.favourable(Z)
    ground = ground_set(space, space.pack(Z), good, None, AresSettings(support=0.15, bins=4))
    which = np.random.default_rng(0).choice(len(ground), 40, replace=False)
    made = evaluate(ground, ground.triples(which), box, space.pack(Z)[~good], cost, 10.0, Monitor())
    terms = AccuracyCost(0.1).terms(made, cost, 2)
    ledger = Ledger(made, terms)
    best = max(ledger.standing([i, j]).total for i in range(40) for j in range(i)) / terms.scale
    got = optimise(made, terms, Limits(2, 2), Monitor(), **options)
    assert got.value >= 0.63 * best  # what greedy promises
    if options.get("exchanges", 1):
        assert got.value >= 0.95 * best


def test_it_stops_when_accuracy_reaches_its_bound(found: RecourseSet) -> None:
    easy = ares(lambda X: (X["housing"] == "own").astype(int), mixed_frame(100), rng=0, ares_settings=AresSettings())
    assert easy.coverage == easy.ground_set.accuracy == 1.0
    assert found.coverage <= found.ground_set.accuracy


def test_lambda_zero_aims_at_accuracy_alone_and_one_over_budget_at_the_score() -> None:
    X, kept = matrix(300), dict[str, Any]({"support": 0.05, "bins": 5, "max_rules": 3})
    space = matrix_space(X)
    blunt = ares(approve_matrix, X, space=space, ares_settings=AresSettings(**kept, objective=AccuracyCost(0.0)))
    fine = ares(approve_matrix, X, space=space, ares_settings=AresSettings(**kept, objective=AccuracyCost(0.1)))
    assert fine.score <= blunt.score
    assert blunt.coverage >= fine.coverage - 1e-12
    # the trace is 1 - score / budget
    assert fine.ground_set.trace[-1] == pytest.approx(1 - fine.score / 10, abs=1e-6)


# -- the result --------------------------------------------------------------------------------------------------------


def test_the_numbers_are_those_of_the_shared_scorer(found: RecourseSet) -> None:
    assert found.score == score(found.costs.min(axis=0), 10.0)
    finite = found.best_costs[np.isfinite(found.best_costs)]
    assert found.average_cost == mean_cost(finite)
    assert found.coverage == finite.size / found.n_affected
    assert found.n_covered + found.n_without_recourse == found.n_affected


def test_every_counterfactual_flips_and_costs_what_is_said(found: RecourseSet) -> None:
    cf = found.counterfactuals()
    assert len(cf.row) == found.n_covered > 0
    assert (approve(cf.after) == 1).all()
    assert (approve(cf.before) == 0).all()
    space = found.space
    assert np.allclose(found.cost.between(space.encode(cf.before), space.encode(cf.after)), cf.cost)


def test_rules_are_shown_with_coverage_and_cost(found: RecourseSet) -> None:
    text = str(found)
    record = found.records()[0]
    assert f"If {record['inner']}," in text
    assert f"[covers {record['coverage']:.1%}, cost {record['average_cost']:.2f}]" in text
    assert record["applies"] >= record["coverage"]
    assert f"{found.coverage:.1%}" in found.summary()
    assert "RecourseSet(" in repr(found)


def test_hostile_names_are_inert_in_html() -> None:
    X = pd.DataFrame({"<script>": ["<b>", "x"] * 20, "job": ["a", "a", "b", "b"] * 10})
    made = ares(lambda X: (X["<script>"] == "x").astype(int), X, rng=0)
    assert made.n_rules > 0
    assert "<script>" not in made._repr_html_()
    assert "<b>" not in made._repr_html_()


def test_constraints_hold() -> None:
    X = mixed_frame(200)
    space = mixed_space(
        X, immutable=["age"], increasing=["debts", "school"], permitted={"housing": ["rent"]}, ranges={"income": (1, 4)}
    )
    for target in ("middle", "nearest"):
        settings = AresSettings(support=0.05, bins=4, target=target, match_features=target == "middle")
        cf = ares(approve, X, space=space, rng=0, ares_settings=settings).counterfactuals()
        before, after = space.encode(cf.before), space.encode(cf.after)
        assert len(before)
        assert (cf.before["age"] == cf.after["age"]).all()
        assert (cf.after["debts"] >= cf.before["debts"]).all()
        assert (after[:, space["school"].start] >= before[:, space["school"].start]).all()
        moved = cf.before["housing"] != cf.after["housing"]
        assert (cf.after["housing"][moved] == "rent").all()
        changed = (cf.before["income"] != cf.after["income"]) & cf.before["income"].notna()
        assert cf.after["income"][changed].between(1, 4).all()
        assert (cf.before["income"].isna() == cf.after["income"].isna()).all()


def test_the_seed_alone_decides_and_inputs_stay(tmp_path: Path) -> None:
    X = mixed_frame(150)
    before = hashlib.sha256(pd.util.hash_pandas_object(X).to_numpy().tobytes()).hexdigest()
    state = global_state()
    settings = AresSettings(support=0.05, bins=4, evaluate=500, objective=AccuracyCost(0.1), race_rows=50)
    texts = [fast_ares(approve, X, rng=seed, ares_settings=settings).to_json() for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert hashlib.sha256(pd.util.hash_pandas_object(X).to_numpy().tobytes()).hexdigest() == before
    assert global_state() == state


def test_hashing_order_changes_nothing() -> None:
    code = (
        "from tests.problems import *\nfrom globece.baselines import *\n"
        "few = AresSettings(support=0.1, evaluate=300)\n"
        "print(fast_ares(approve, mixed_frame(80), rng=3, ares_settings=few).to_json())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_row_order_and_batches_change_nothing() -> None:
    X = matrix(200)
    space = matrix_space(X)
    order = np.random.default_rng(5).permutation(200)
    kept: dict[str, Any] = {"support": 0.05, "bins": 5, "evaluate": 400, "race_rows": 40}
    kept["objective"] = AccuracyCost(0.1)
    a = fast_ares(approve_matrix, X, space=space, rng=0, ares_settings=AresSettings(**kept))
    b = fast_ares(approve_matrix, X[order], space=space, rng=0, ares_settings=AresSettings(**kept, batch_rows=13))
    assert [r.text(space) for r in a.rules] == [r.text(space) for r in b.rules]
    assert a.score == b.score


def test_several_rule_sets_differ_and_are_good() -> None:
    X = matrix(300)
    settings = AresSettings(support=0.05, bins=5, objective=AccuracyCost(0.1), evaluate=300, max_rules=4)
    sets = several(approve_matrix, X, 4, space=matrix_space(X), rng=0, ares_settings=settings)
    assert len(sets) > 1
    assert [s.score for s in sets] == sorted(s.score for s in sets)
    assert len({s.to_json() for s in sets}) == len(sets)


def test_subgroups_of_the_user() -> None:
    X = mixed_frame(200)
    made = ares(
        approve, X, space=mixed_space(X), subgroups=["housing", ("job", "school")], rng=0, ares_settings=SETTINGS
    )
    names = {tuple(c.feature for c in outer) for outer in made.subgroups}
    assert names <= {("housing",), ("job", "school")}
    for group in made.by_group():
        assert 0 <= group.coverage <= 1
        assert group.rules
    by_housing = {g.group: g for g in made.by_group("housing")}
    assert sum(g.n_affected for g in by_housing.values()) == made.n_affected
    covered = sum(round(g.coverage * g.n_affected) for g in by_housing.values())
    assert covered == made.n_covered
    with pytest.raises(UnknownFeatureError, match="nobody"):
        made.by_group("nobody")
    with pytest.raises(InvalidDataError, match="continuous"):
        made.by_group("income")


def test_no_outer_if_when_subgroups_is_empty() -> None:
    X = np.arange(40.0)[:, None]
    made = ares(lambda X: (X[:, 0] > 20).astype(int), X, subgroups=[], rng=0)
    assert made.coverage == 1.0
    assert {rule.outer for rule in made.rules} == {()}
    assert "If anybody" in str(made)


def test_apply_to_unseen_rows(found: RecourseSet) -> None:
    other = found.apply(mixed_frame(100, seed=9).assign(school="mid"))
    assert other.n_rules == found.n_rules
    assert 0 < other.coverage <= 1
    same = found.apply(mixed_frame(200))
    assert np.array_equal(same.costs, found.costs)
    with pytest.raises(InvalidDataError, match="no rows"):
        found.apply(mixed_frame(0))


def test_nobody_affected() -> None:
    made = ares(lambda X: np.ones(len(X), dtype=int), mixed_frame(20), rng=0)
    assert made.is_empty
    assert made.coverage == 1.0
    assert "Nobody is affected" in made.summary()
    assert RecourseSet.from_json(made.to_json()).is_empty


def test_stopping_early_returns_the_best_so_far() -> None:
    made = ares(approve, mixed_frame(200), rng=0, ares_settings=SETTINGS, time_limit=0)
    assert not made.provenance.complete
    assert any("stopped early" in note for note in made.provenance.notes)

    seen: list[str] = []

    def interrupt(progress: Any) -> None:
        seen.append(progress.stage)
        if progress.stage == "rules" and progress.done == 2:
            raise KeyboardInterrupt

    cut = ares(approve, mixed_frame(200), rng=0, ares_settings=SETTINGS, progress=interrupt)
    assert not cut.provenance.complete
    assert cut.n_rules >= 1
    assert {"changes predicted", "rules"} <= set(seen)


# -- files -------------------------------------------------------------------------------------------------------------


def test_json_round_trips_and_fits_the_schema(found: RecourseSet, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    text = found.to_json(path)
    back = RecourseSet.from_json(path)
    assert back.to_json() == text == path.read_text()
    assert back.rules == found.rules
    assert (back.matches == found.matches).all()
    assert back.score == found.score
    assert str(back) == str(found)
    assert back.counterfactuals().after.equals(found.counterfactuals().after)
    Draft202012Validator.check_schema(recourse_sets.FORMAT.schema())
    Draft202012Validator(recourse_sets.FORMAT.schema()).validate(json.loads(text))
    with pytest.raises(InvalidDataError, match="model="):
        back.apply(mixed_frame(20))


def test_the_schema_shares_its_parts_with_an_explanation_s() -> None:
    ours, theirs = recourse_sets.FORMAT.schema(), results.FORMAT.schema()
    for name, part in theirs["$defs"].items():
        assert ours["$defs"][name] == part
    for name in ("space", "cost", "inputs", "rows", "provenance"):
        assert ours["properties"][name] == theirs["properties"][name]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda d: d.update(version=9), "version 9"),
        (lambda d: d.update(format="globece.explanation"), "format"),
        (lambda d: d["rules"][0]["then"].clear(), "at least one condition"),
        (lambda d: d["rules"][0]["inner"][0].update(feature="nobody"), "one of"),
        (lambda d: d["costs"].pop(), "one for each rule"),
        (lambda d: d.update(costs=[[1.0] * len(c) for c in d["costs"]]), "does not match"),
        (lambda d: d.update(extra=1), "unknown key"),
    ],
)
def test_a_broken_file_is_refused(found: RecourseSet, change: Any, match: str) -> None:
    document = found.to_dict()
    change(document)
    with pytest.raises(FileFormatError, match=match):
        RecourseSet.from_json(json.dumps(document))


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"support": 0.999}, InvalidParameterError, "no itemset is frequent enough"),
        ({"support": 0.001, "max_itemsets": 50}, InvalidParameterError, r"more than 50 itemsets.*raise support"),
        ({"support": 0.02, "max_triples": 100}, InvalidParameterError, r"triples.*max_triples.*fast_ares"),
        ({"support": 0.35}, InvalidDataError, "ground set is empty"),
    ],
)
def test_a_ground_set_too_small_or_too_large(settings: dict[str, Any], error: type[Exception], match: str) -> None:
    X = matrix(300)
    with pytest.raises(error, match=match):
        ares(approve_matrix, X, space=matrix_space(X), ares_settings=AresSettings(**settings))


def test_a_single_feature() -> None:
    with pytest.raises(InvalidDataError, match=r"only one feature.*subgroups=\[\]"):
        ares(lambda X: (X[:, 0] > 20).astype(int), np.arange(40.0)[:, None])


def test_no_favourable_rows() -> None:
    X = matrix(100)
    nobody = lambda X: np.zeros(len(X), dtype=int)  # noqa: E731
    made = ares(nobody, X, space=matrix_space(X), rng=0, ares_settings=AresSettings(support=0.1))
    assert made.coverage == 0.0
    assert made.average_cost == np.inf
    assert made.score == 10.0
    assert any("never occurred" in note for note in made.provenance.notes)
    assert "(no rules)" in str(made)
    assert made.to_json() == RecourseSet.from_json(made.to_json()).to_json()
    settings = AresSettings(support=0.1, thens_from="favourable")
    with pytest.raises(InvalidDataError, match="no row has the favourable outcome"):
        ares(nobody, X, space=matrix_space(X), ares_settings=settings)


def test_nothing_can_move() -> None:
    X = matrix(100)
    space = matrix_space(X, immutable=["income", "debts", "home", "age"])
    with pytest.raises(InvalidDataError, match="no feature can move"):
        ares(approve_matrix, X, space=space)


@pytest.mark.parametrize(
    ("subgroups", "error", "match"),
    [
        (["sex"], UnknownFeatureError, r"subgroups names unknown feature\(s\) \['sex'\]; there are"),
        ([("home", "race")], UnknownFeatureError, "race"),
        ("home", InvalidParameterError, "list of feature names"),
    ],
)
def test_wrong_subgroups(subgroups: Any, error: type[Exception], match: str) -> None:
    X = matrix(50)
    with pytest.raises(error, match=match):
        ares(approve_matrix, X, space=matrix_space(X), subgroups=subgroups)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("support", 0),
        ("support", 1.5),
        ("support", "much"),
        ("bins", 0),
        ("binning", "equally"),
        ("target", "best"),
        ("thens_from", "some"),
        ("max_rules", 0),
        ("max_width", 1),
        ("max_subgroups", -1),
        ("objective", "accuracy"),
        ("exchanges", -1),
        ("repeats", 0),
        ("then_support", 2),
        ("evaluate", 0),
        ("select", 0),
        ("race_rows", 0),
        ("max_itemsets", 0),
        ("max_triples", 0),
        ("batch_rows", 0),
    ],
)
def test_rubbish_settings_are_named(name: str, value: Any) -> None:
    X = matrix(50)
    with pytest.raises(InvalidParameterError, match=name):
        ares(approve_matrix, X, space=matrix_space(X), ares_settings=AresSettings(**{name: value}))


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("budget", 0, InvalidParameterError),
        ("budget", np.inf, InvalidParameterError),
        ("rng", "seed", InvalidParameterError),
        ("rng", -1, InvalidParameterError),
        ("space", "all", InvalidParameterError),
        ("cost", 1, InvalidParameterError),
        ("ares_settings", {}, InvalidParameterError),
        ("progress", 3, InvalidParameterError),
        ("time_limit", -1, InvalidParameterError),
    ],
)
def test_rubbish_parameters_are_named(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=name):
        fast_ares(approve_matrix, matrix(50), **{name: value})


def test_a_lambda_that_outweighs_recourse_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="lam must be at most 1 / budget"):
        ares(approve_matrix, matrix(50), ares_settings=AresSettings(objective=AccuracyCost(0.2)))
    with pytest.raises(InvalidParameterError, match="lam"):
        AccuracyCost(-1)
    with pytest.raises(InvalidParameterError, match="cover"):
        FourTerms(cover=-1)


def test_a_model_that_raises_is_named() -> None:
    def picky(X: np.ndarray) -> np.ndarray:
        if len(X) != 50:
            raise RuntimeError("not today")
        return approve_matrix(X)

    with pytest.raises(ModelError, match=r"picky in call \d+ on"):
        ares(picky, matrix(50), space=matrix_space(matrix(50)), ares_settings=AresSettings(support=0.1))


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "loans.csv"
    X = mixed_frame(200)
    X.assign(approved=approve(X)).to_csv(path, index=False)
    return path


def test_the_command_shows_rules(loans: Path, tmp_path: Path) -> None:
    target = tmp_path / "rules.json"
    said = CliRunner().invoke(
        main,
        f"ares {loans} --model logistic --outcome approved --subgroups housing --rules 5 --json {target}".split(),
    )
    assert said.exit_code == 0, said.output
    made = RecourseSet.from_json(target)
    assert 0 < made.n_rules <= 5
    assert f"{made.coverage:.1%}" in said.output
    assert {c.feature for outer in made.subgroups for c in outer} == {"housing"}


def test_the_plain_command_and_its_errors(loans: Path) -> None:
    asked = ["ares", str(loans), "--model", "logistic", "--outcome", "approved"]
    plain = CliRunner().invoke(main, [*asked, "--plain", "--support", "0.2", "--bins", "3", "--json"])
    assert plain.exit_code == 0, plain.output
    assert json.loads(plain.stdout)["ground_set"]["method"] == "AReS"
    wrong = CliRunner().invoke(main, [*asked, "--subgroups", "nobody"])
    assert wrong.exit_code == 2
    assert "--subgroups names unknown feature(s) ['nobody']" in wrong.output
    high = CliRunner().invoke(main, [*asked, "--support", "0.99"])
    assert high.exit_code == 2
    assert "no itemset is frequent enough" in high.output


@pytest.mark.filterwarnings("ignore:recourse may change")  # age
def test_rules_stand_beside_an_audit() -> None:
    X = matrix(300)
    space, y = matrix_space(X), approve_matrix(X)
    model = LogisticRegression(max_iter=500).fit(X, y)
    old = X[:, 5] > np.median(X[:, 5])
    quick = gce.Climb(rays=400)
    rules = fast_ares(model, X, space=space, rng=0)
    audit = gce.audit(model, X, space=space, by={"old": old, "young": ~old}, favourable=1, rng=0, search=quick)
    groups = rules.beside(audit)
    assert [g.name for g in groups] == ["old", "young"]
    assert sum(g.rules.n_affected for g in groups) == rules.n_affected
    for g in groups:
        assert g.score == audit.by_group[g.name].score
        assert 0.0 <= g.rules.coverage <= 1.0
    part = {"old": old[:200], "young": ~old[:200]}
    some = gce.audit(model, X[:200], space=space, by=part, favourable=1, rng=0, search=quick)
    with pytest.raises(InvalidDataError, match="200 rows"):
        rules.beside(some)
