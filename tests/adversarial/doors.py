"""Every public callable, with tiny arguments that work."""

from __future__ import annotations

import inspect
import os
import pathlib
import pickle
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import globece as gce
from globece import baselines, datasets, directions, plots, testing
from globece.auditing.result import check_exceeds
from globece.baselines.settings import fast_settings
from globece.bounds import lower_bound
from globece.case.affected import Affected
from globece.datasets import user_studies
from globece.io import audits, frames, model_files, recourse_sets, results
from globece.rules import rules_at, rules_chart
from globece.testing.models import ModelCase, random_directions
from tests.adversarial.rubbish import Door

# What a message may call the rows, the model and what belongs to them.
CALLED: Mapping[str, tuple[str, ...]] = {
    "X": ("in call", "entries", "frame", "matrix", "column", "columns", "column(s)", "feature", "rows"),
    "Z": ("encoded matrix", "rows"),
    "Z_after": ("encoded matrix", "rows"),
    "model": ("models", "f", "function", "in call", "returned"),
    "favourable": ("favourable",),
    "path": ("HELOC file", "table's file name", "cannot tell what kind of model", "cannot read", "cannot load"),
    "source": ("the text given",),
    "pairs": ("pairs",),
    "directions": ("direction", "generator"),
    "generator": ("proposed", "generator"),
    "margins": ("margin",),
    "space": ("columns", "column(s)", "entries", "rows"),
    "columns": ("column names",),
    "by": ("immutable", "no feature can move"),
    "control": ("immutable", "no feature can move"),
    "timeout": ("gave no answer within",),
    "method": ("affected row", "FromLocal"),
    "scalars": ("costs",),
    "ordinal": ("category(ies)",),
}


def f(rows: Any) -> Any:
    """A model of frames."""
    return (rows["a"].to_numpy() > 0.5).astype(int)


@cache
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 12
    return pd.DataFrame(
        {"a": rng.normal(size=n).round(2), "b": rng.integers(0, 9, n), "c": ["p", "q", "r"] * 4, "d": ["lo", "hi"] * 6}
    )


@cache
def space() -> gce.FeatureSpace:
    return gce.FeatureSpace.from_frame(rows(), ordinal={"d": ["lo", "hi"]})


@cache
def cost() -> gce.CostModel:
    return gce.CostModel.bins(space())


QUICK = gce.Settings(grid=4)
CLIMB = gce.Climb(rays=50)
BRIEF = gce.AuditSettings(smallest=2, permutations=19, resamples=20, checks=False)
FEW = directions.FixedDirections(np.array([[1.0, 0, 0, 0, 0, 0], [1.0, 1.0, 0, 0, 0, 0]]))
ANY = directions.UniformSampling()
RACE = gce.Race(ANY, 4)
RULES = baselines.AresSettings(support=0.2, bins=2, max_rules=2, max_width=3)


@cache
def explanation() -> gce.Explanation:
    return gce.explain(f, rows(), space=space(), n_directions=2, rng=0, settings=QUICK, search=CLIMB)


@cache
def linear() -> tuple[Any, Any]:
    """A linear model of a matrix, and its explanation."""
    X = rows()[["a", "b"]].to_numpy()
    model = LogisticRegression().fit(X, (X[:, 0] > 0.5).astype(int))
    return model, gce.explain(model, X, rng=0, settings=QUICK, search=CLIMB)


@cache
def audited() -> gce.Audit:
    asked: dict[str, Any] = {"settings": QUICK, "audit_settings": BRIEF, "generator": FEW}
    return gce.audit(f, rows(), by="d", space=space(), favourable=1, rng=0, **asked)


@cache
def benefited() -> Any:
    return gce.who_benefits(f, rows(), {"a": 1.0}, space=space())


@cache
def ruled() -> baselines.RecourseSet:
    return baselines.ares(f, rows(), space=space(), rng=0, ares_settings=RULES)


@cache
def problem() -> Affected:
    ex = explanation()
    Z = space().encode(rows())
    assert ex.model is not None
    return Affected(ex.model, ex.inputs, ex.cost, ex.budget, None, Z[f(rows()) == 1])


def more_values() -> dict[str, Callable[[], Any]]:
    """The library's own objects, each of them rubbish almost everywhere."""
    return {
        "a FeatureSpace": space,
        "a CostModel": cost,
        "a FeatureSpace class": lambda: gce.FeatureSpace,
        "Settings": lambda: QUICK,
        "AuditSettings": lambda: BRIEF,
        "AresSettings": lambda: RULES,
        "an Explanation": explanation,
        "an Audit": audited,
        "a RecourseSet": ruled,
        "a generator of directions": directions.UniformSampling,
        "a generator's class": lambda: directions.UniformSampling,
        "a model": lambda: explanation().model,
        "an estimator": lambda: linear()[0],
        "an unfitted estimator": LogisticRegression,
        "the rows": rows,
        "the rows, wrong columns": lambda: rows().rename(columns={"a": "z"}),
        "encoded rows": lambda: space().encode(rows()),
        "a feature": lambda: space()["a"],
    }


def _door(name: str, call: Callable[..., Any], *, of: Callable[..., Any] | None = None, **good: Any) -> Door:
    """A door with the parameters of its signature, or of another callable's that it passes on to."""
    kinds = inspect.Parameter
    named = [
        p.name
        for p in inspect.signature(of or call).parameters.values()
        if p.kind not in (kinds.VAR_KEYWORD, kinds.VAR_POSITIONAL)
    ]
    return Door(name, call, good, tuple(named), CALLED)


def all_doors() -> list[Door]:
    """Every door; the same list each time."""
    return [*_front(), *_spaces(), *_settings(), *_generators(), *_results(), *_figures(), *_files()]


def _front() -> list[Door]:
    X, S = rows(), space()
    model, ex = linear()
    matrix = X[["a", "b"]].to_numpy()
    base: dict[str, Any] = {"model": f, "X": X, "space": S, "settings": QUICK}
    rules: dict[str, Any] = {"model": f, "X": X, "space": S, "ares_settings": RULES, "rng": 0}
    return [
        _door("explain", gce.explain, **base, rng=0, search=RACE),
        _door("explain (estimator)", gce.explain, model=model, X=matrix, rng=0, settings=QUICK, search=CLIMB),
        _door("explain (no space)", gce.explain, model=f, X=X, rng=0, settings=QUICK, search=RACE),
        _door("audit", gce.audit, **base, favourable=1, rng=0, by="d", audit_settings=BRIEF, generator=FEW),
        _door(
            "audit (no space)",
            gce.audit,
            model=f,
            X=X[["a"]],
            by=X["d"],
            favourable=1,
            audit_settings=BRIEF,
            generator=directions.FixedDirections([[1.0]]),
        ),
        _door("who_benefits", gce.who_benefits, **base, action={"a": 1.0}),
        _door("who_benefits (scaled)", gce.who_benefits, **base, action={"a": 1.0}, mode="scaled", by="d"),
        _door("as_model", gce.as_model, model=f, space=S, rows=S.encode(X)),
        _door("as_model (estimator)", gce.as_model, model=model, space=ex.space, rows=matrix),
        _door("bradley_terry", gce.bradley_terry, pairs=[("a", "b")]),
        _door("ares", baselines.ares, **rules),
        _door("fast_ares", baselines.fast_ares, **rules),
        _door("several", baselines.several, **rules, n=2),
        _door("fast_settings", fast_settings, space=S),
    ]


def _spaces() -> list[Door]:
    X, S, C = rows(), space(), cost()
    Z = S.encode(X)
    plain = gce.FeatureSpace.from_frame
    matrix = X[["a", "b"]].to_numpy()

    def from_matrix(**given: Any) -> Any:
        given["columns"] = given.pop("columns", ["a", "b"])
        return gce.FeatureSpace.from_matrix(**given)

    def used(build: Callable[..., Any], **good: Any) -> Callable[..., Any]:
        """Build a space and explain with it, so that what is accepted must also work."""
        return lambda **given: gce.explain(f, X, space=build(**(good | given)), rng=0, settings=QUICK, search=RACE)

    def priced(build: Callable[..., Any], **good: Any) -> Callable[..., Any]:
        return lambda **given: gce.explain(
            f, X, space=S, cost=build(**(good | given)), rng=0, settings=QUICK, search=RACE
        )

    doors = [
        _door("FeatureSpace", gce.FeatureSpace, features=S.features, table=S.table),
        _door("from_frame", plain, X=X),
        _door("from_matrix", gce.FeatureSpace.from_matrix, X=matrix),
        replace(_door("from_matrix (named)", from_matrix, of=plain, X=matrix)),
        _door("constrain", S.constrain),
        _door("encode", S.encode, X=X),
        _door("decode", S.decode, Z=Z),
        _door("round", S.round, Z=Z),
        _door("check_directions", S.check_directions, directions=np.eye(S.width)[:1]),
        _door("space[name]", lambda feature: S[feature], feature="a"),
        _door("CostModel", gce.CostModel, space=S, scales=C.scales, weights=C.weights),
        _door("bins", gce.CostModel.bins, space=S),
        _door("deciles", gce.CostModel.deciles, space=S, X=X),
        _door("between", C.between, Z=Z, Z_after=Z),
        _door("nominal", C.nominal, directions=np.eye(S.width)[:1]),
        _door("normalise", C.normalise, directions=np.eye(S.width)[:1]),
        _door("explain(from_frame)", used(plain, X=X), of=plain),
        _door("explain(constrain)", used(S.constrain), of=S.constrain),
        _door("explain(bins)", priced(gce.CostModel.bins, space=S), of=gce.CostModel.bins),
        _door("explain(deciles)", priced(gce.CostModel.deciles, space=S, X=X), of=gce.CostModel.deciles),
    ]
    return doors


def _settings() -> list[Door]:
    X, S = rows(), space()
    model, _ = linear()

    def explained(**given: Any) -> Any:
        return gce.explain(f, X, space=S, rng=0, settings=replace(QUICK, **given), search=CLIMB)

    def climbed(**given: Any) -> Any:
        return gce.explain(f, X, space=S, rng=0, settings=QUICK, search=replace(CLIMB, **given))

    def raced(**given: Any) -> Any:
        return gce.explain(f, X, space=S, rng=0, settings=QUICK, search=replace(RACE, **given))

    def judged(**given: Any) -> Any:
        audit_settings = replace(BRIEF, **given)
        asked: dict[str, Any] = {"settings": QUICK, "audit_settings": audit_settings, "generator": FEW}
        return gce.audit(f, X, by="d", space=S, favourable=1, rng=0, **asked)

    def lasting(**given: Any) -> Any:
        return gce.explain(
            model, X[["a", "b"]].to_numpy(), rng=0, settings=QUICK, robust=gce.Robust(**given), search=RACE
        )

    def rules(**given: Any) -> Any:
        return baselines.ares(f, X, space=S, rng=0, ares_settings=replace(RULES, **given))

    def aimed(objective: Any) -> Callable[..., Any]:
        return lambda **given: rules(objective=objective(**given))

    return [
        _door("Settings", gce.Settings),
        _door("explain(Settings)", explained, of=gce.Settings),
        _door("Climb", gce.Climb),
        _door("explain(Climb)", climbed, of=gce.Climb),
        _door("Race", gce.Race, generator=ANY),
        _door("explain(Race)", raced, of=gce.Race),
        _door("AuditSettings", gce.AuditSettings),
        _door("audit(AuditSettings)", judged, of=gce.AuditSettings),
        _door("Robust", gce.Robust),
        _door("explain(Robust)", lasting, of=gce.Robust),
        _door("AresSettings", baselines.AresSettings),
        _door("ares(AresSettings)", rules, of=baselines.AresSettings),
        _door("AccuracyCost", baselines.AccuracyCost),
        _door("ares(AccuracyCost)", aimed(baselines.AccuracyCost), of=baselines.AccuracyCost),
        _door("FourTerms", baselines.FourTerms),
        _door("ares(FourTerms)", aimed(baselines.FourTerms), of=baselines.FourTerms),
    ]


def _generators() -> list[Door]:
    X, S, P = rows(), space(), problem()
    model, _ = linear()
    matrix = X[["a", "b"]].to_numpy()
    local = directions.nearest_favourable()
    good: dict[Any, dict[str, Any]] = {
        directions.Evolution: {
            "start": directions.UniformSampling(), "samples": 4, "survivors": 1, "generations": 1, "inputs": 4
        },
        directions.FixedDirections: {"directions": np.eye(S.width)[:1]},
        directions.FromLocal: {"method": local, "rows": 5},
        directions.GradientDescent: {"restarts": 1, "steps": 1},
        directions.GreedyChains: {"rays_per_input": 2.0},
        directions.ImportanceSampling: {},
        directions.ItemsetSampling: {"min_support": 0.5, "n_bins": 2},
        directions.MeanDifference: {"n_clusters": 1},
        directions.Mixed: {"generators": [directions.UniformSampling()]},
        directions.UniformSampling: {},
    }  # fmt: skip
    doors = []
    for kind, given in good.items():

        def explained(kind: Any = kind, **named: Any) -> Any:
            return gce.explain(f, X, space=S, rng=0, settings=QUICK, search=gce.Race(kind(**named), 4))

        doors.append(_door(kind.__name__, kind, **given))
        if kind is not directions.GradientDescent:
            doors.append(_door(f"explain({kind.__name__})", explained, of=kind, **given))
            doors.append(_door(f"{kind.__name__}.propose", kind(**given).propose, problem=P, n=3, rng=_rng()))

    def closed(**named: Any) -> Any:
        return gce.explain(model, matrix, rng=0, settings=QUICK, search=gce.Race(directions.ClosedForm(**named), 4))

    def local_rows(**named: Any) -> Any:
        method = directions.nearest_favourable(**named)
        return gce.explain(
            f, X, space=S, rng=0, settings=QUICK, search=gce.Race(directions.FromLocal(method, rows=5), 4)
        )

    rules = directions.FixedDirections.from_rules
    return [
        *doors,
        _door("ClosedForm", directions.ClosedForm),
        _door("explain(ClosedForm)", closed, of=directions.ClosedForm),
        _door("from_rules", rules, space=S, rules={"a": 1.0}),
        _door("nearest_favourable", directions.nearest_favourable),
        _door("explain(nearest_favourable)", local_rows, of=directions.nearest_favourable),
        _door("Affected", directions.Affected, model=P.model, inputs=P.inputs, cost=P.cost, budget=10.0),
        _door("GeneratorCase", testing.GeneratorCase, generator=directions.UniformSampling(), problem=P),
        _door("GeneratorCase.propose", testing.GeneratorCase(directions.UniformSampling(), P).propose),
        _door("ModelCase", ModelCase, model=P.model, rows=P.inputs),
        _door("random_directions", random_directions, case=ModelCase(P.model, P.inputs)),
    ]


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _results() -> list[Door]:
    X, ex, au = rows(), explanation(), audited()
    _, exact = linear()
    rules = ruled()

    def robustness(**given: Any) -> Any:
        return exact.robustness(**given)

    return [
        _door("ex.profile", ex.profile),
        _door("ex.at(coverage)", lambda coverage: ex.at(coverage=coverage), coverage=0.5),
        _door("ex.at(cost)", lambda cost: ex.at(cost=cost), cost=0.5),
        _door("ex.mean_translation", ex.mean_translation),
        _door("ex.rules_chart", ex.rules_chart),
        _door("ex.arrays", ex.arrays, scalars=[0.5, 1.0]),
        _door("ex.apply", ex.apply, X=X),
        _door("ex.robustness", exact.robustness),
        _door("ex.robustness(Robust)", robustness, of=gce.Robust, margins=[0.0]),
        _door("ex.lower_bound", exact.lower_bound),
        _door("lower_bound", lower_bound, problem=Affected(exact.model, exact.inputs, exact.cost, exact.budget)),
        _door("rules_at", rules_at, space=ex.space, delta=ex.directions[0]),
        _door(
            "rules_chart", rules_chart, cost=ex.cost, delta=ex.directions[0], Z=ex.inputs, scalars=ex.scalars[0],
            costs=ex.costs[0],
        ),
        _door("au.difference", au.difference),
        _door("au.ratio", au.ratio),
        _door("au.group_max", au.group_max),
        _door("au.group_min", au.group_min),
        _door("au.costs_of", au.costs_of, group="lo"),
        _door("au.explanation_of", au.explanation_of, group="lo"),
        _door("au.subgroups", au.subgroups, smallest=2),
        _door("check_exceeds", check_exceeds, audit=au, gap=0.5),
        _door("benefits.subgroups", benefited().subgroups, smallest=2),
        _door("rules.by_group", rules.by_group),
        _door("rules.beside", rules.beside, audit=au),
        _door("rules.apply", rules.apply, X=X),
    ]  # fmt: skip


def _figures() -> list[Door]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    def closed(draw: Callable[..., Any]) -> Callable[..., Any]:
        def call(**given: Any) -> Any:
            try:
                return draw(**given)
            finally:
                pyplot.close("all")

        return call

    doors = []
    for name in plots.__all__:
        kind = getattr(plots, name)
        build, source = (
            (kind.from_explanation, {"ex": explanation()})
            if hasattr(kind, "from_explanation")
            else (kind.from_audit, {"au": audited()})
        )
        shown = build(**source)
        doors.append(_door(f"{name}.{build.__name__}", build, **source))
        doors.append(_door(f"{name}.plot", closed(shown.plot), of=shown.plot))
    return doors


@cache
def warm_up() -> dict[str, str]:
    """Call each door with what it takes, and say which did not open.

    It also compiles what the calls need: a compiler that is interrupted by the alarm does not recover.
    """
    model, ex = linear()
    X = rows()[["a", "b"]].to_numpy()
    for robust in (None, gce.Robust(margin=0.1), gce.Robust(noise=0.1, draws=2), gce.Robust(models=(model,))):
        gce.explain(model, X, rng=0, settings=QUICK, search=RACE, robust=robust)
    ex.lower_bound()
    shut = {}
    for door in all_doors():
        try:
            door.call(**door.good)
        except Exception as error:
            shut[door.name] = f"{type(error).__name__}: {error}"
    return shut


@cache
def _model_file() -> str:
    path = pathlib.Path(tempfile.mkdtemp(), "model.pkl")
    path.write_bytes(pickle.dumps(linear()[0]))
    return str(path)


def _table_file() -> str:
    path = pathlib.Path(tempfile.mkdtemp(), "rows.csv")
    rows().to_csv(path, index=False)
    return str(path)


def _files() -> list[Door]:
    ex, au, rules = explanation(), audited(), ruled()
    loaders = [getattr(datasets, name) for name in datasets.__all__ if name.startswith("load_")]
    return [
        *(_door(load.__name__, load) for load in loaders),
        _door("black_box_1", user_studies.black_box_1, n=100),
        _door("black_box_2", user_studies.black_box_2, n=100),
        _door("least_costs", user_studies.least_costs),
        _door("ex.to_json", ex.to_json),
        _door("ex.from_json", gce.Explanation.from_json),
        _door("au.to_json", au.to_json),
        _door("ex.save_html", ex.save_html, path=os.devnull),
        _door("au.save_html", au.save_html, path=os.devnull),
        _door("compare", gce.compare, a=ex, b=ex),
        _door("About", gce.About),
        _door("au.from_json", gce.Audit.from_json),
        _door("rules.to_json", rules.to_json),
        _door("rules.from_json", baselines.RecourseSet.from_json),
        _door("results.write", results.FORMAT.write, result=ex),
        _door("results.to_dict", results.FORMAT.to_dict, result=ex),
        _door("results.read", results.FORMAT.read),
        _door("audits.write", audits.FORMAT.write, result=au),
        _door("audits.to_dict", audits.FORMAT.to_dict, result=au),
        _door("audits.read", audits.FORMAT.read),
        _door("recourse_sets.write", recourse_sets.FORMAT.write, result=rules),
        _door("recourse_sets.read", recourse_sets.FORMAT.read),
        _door("load_model", model_files.load_model, path=_model_file(), allow_pickle=True),
        _door("read_frame", frames.read_frame, path=_table_file()),
    ]
