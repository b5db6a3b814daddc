"""Results where people work: fairlearn's frames, flat tables, MLflow, and recourse watched while training."""

from __future__ import annotations

import dataclasses
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression, SGDClassifier

import globece as gce
from globece import rays
from globece.cli import main
from globece.errors import FileFormatError, InvalidDataError, InvalidParameterError, MissingExtraError
from globece.integrations import History, RecourseWatch, flat_table, log_audit, log_explanation, metric_frames

RNG = np.random.default_rng(0)
X = pd.DataFrame({"income": RNG.normal(size=600), "debt": RNG.normal(size=600), "sex": RNG.choice(["f", "m"], 600)})
Y = (X["income"] - X["debt"] - (X["sex"] == "f") > 0).astype(int).to_numpy()


def model(rows: Any) -> Any:
    return (rows["income"] - rows["debt"] - (rows["sex"] == "f") > 0).astype(int)


@pytest.fixture(scope="module")
def au() -> gce.Audit:
    return gce.audit(model, X, by="sex", favourable=1, effort="quick", rng=0)


@pytest.fixture(scope="module")
def ex() -> gce.Explanation:
    space = gce.FeatureSpace.from_frame(X, immutable=["sex"])
    return gce.explain(model, X, favourable=1, space=space, n_directions=2, effort="quick", budget=2.0, rng=0)


# -- fairlearn --------------------------------------------------------------------------------------------------------


def test_frames_have_the_shape_and_numbers_of_fairlearns(au: gce.Audit) -> None:
    fairlearn = pytest.importorskip("fairlearn.metrics")
    theirs = fairlearn.MetricFrame(
        metrics={"count": fairlearn.count, "selection_rate": fairlearn.selection_rate},
        y_true=model(X), y_pred=model(X), sensitive_features=X["sex"],
    )  # fmt: skip
    ours = metric_frames(au)
    assert isinstance(ours.by_group, type(theirs.by_group))
    assert isinstance(ours.overall, type(theirs.overall))
    assert ours.by_group.index.name == theirs.by_group.index.name == "sex"
    assert ours.by_group.index.tolist() == theirs.by_group.index.tolist()
    assert ours.by_group["count"].tolist() == theirs.by_group["count"].tolist()
    np.testing.assert_allclose(1 - ours.by_group["rejection_rate"], theirs.by_group["selection_rate"])
    gap = theirs.difference()["selection_rate"]
    assert ours.difference()["rejection_rate"] == pytest.approx(gap)
    assert ours.by_group.join(theirs.by_group[["selection_rate"]]).shape == (2, 7)


def test_frames_are_the_audits_numbers(au: gce.Audit) -> None:
    frames = metric_frames(au)
    assert frames.by_group["score"].to_dict() == {name: m.score for name, m in au.by_group.items()}
    assert frames.overall["score"] == au.overall.score
    assert frames.difference()["score"] == au.difference("score")
    assert frames.ratio()["score"] == au.ratio("score")
    assert frames.group_max()["score"] == max(m.score for m in au.by_group.values())
    assert frames.group_min()["score"] == min(m.score for m in au.by_group.values())
    with pytest.raises(InvalidParameterError, match="audit"):
        metric_frames("no")  # type: ignore[arg-type]


# -- flat tables ------------------------------------------------------------------------------------------------------


def test_a_flat_table_has_no_infinity_and_says_who_has_recourse(ex: gce.Explanation, au: gce.Audit) -> None:
    assert 0 < ex.n_without_recourse < ex.n_affected
    table = flat_table(ex)
    assert len(table) == ex.n_affected
    assert int((~table["recourse"]).sum()) == table["cost"].isna().sum() == ex.n_without_recourse
    assert table["capped_cost"].mean() == pytest.approx(ex.score)
    assert np.isfinite(table["capped_cost"]).all()
    assert set(table["direction"].unique()) <= {"1", "2", "none"}
    grouped = flat_table(au).groupby("group", observed=True)["capped_cost"].mean()
    for name, measures in au.by_group.items():
        assert grouped[name] == pytest.approx(measures.score)
    with pytest.raises(InvalidParameterError, match="result"):
        flat_table(3)  # type: ignore[arg-type]


# -- MLflow -----------------------------------------------------------------------------------------------------------


def test_results_are_logged_to_mlflow(
    ex: gce.Explanation, au: gce.Audit, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database needs more of MLflow
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"file://{tmp_path}/runs")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("x", artifact_location=f"file://{tmp_path}/files"))
    with mlflow.start_run() as run:
        log_explanation(ex)
        log_audit(au)
    client = mlflow.MlflowClient()
    data = client.get_run(run.info.run_id).data
    assert data.metrics["recourse.score"] == pytest.approx(ex.score)
    assert data.metrics["audit.score.f"] == pytest.approx(au.by_group["f"].score)
    assert data.tags["audit.conclusion"] == au.verdict.conclusion
    kept = {file.path for file in client.list_artifacts(run.info.run_id, "globece")}
    assert kept == {f"globece/{name}.{kind}" for name in ("recourse", "audit") for kind in ("json", "html")}


def test_without_mlflow_the_extra_is_named(ex: gce.Explanation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"globece\[mlflow\]"):
        log_explanation(ex)


# -- watching ---------------------------------------------------------------------------------------------------------


def boosted(library: str, callbacks: list[Any]) -> Any:
    frame = X.assign(sex=X["sex"].astype("category"))
    if library == "xgboost":
        made = xgb.XGBClassifier(n_estimators=30, n_jobs=1, enable_categorical=True, callbacks=callbacks)
        return made.fit(frame, Y)
    return lgb.LGBMClassifier(n_estimators=30, n_jobs=1, verbose=-1).fit(frame, Y, callbacks=callbacks)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_the_last_round_of_a_callback_is_the_fitted_model(library: str) -> None:
    frame = X.assign(sex=X["sex"].astype("category"))
    watch, after = (RecourseWatch(frame, Y, by="sex", every=10) for _ in range(2))
    fitted = boosted(library, [getattr(watch, library)()])
    assert [r.number for r in watch.rounds] == [10, 20, 30]
    after.record(30, fitted)
    assert after.rounds[0] == watch.rounds[-1]
    assert set(watch.rounds[-1].groups) <= {"f", "m"}
    watched = boosted(library, [getattr(RecourseWatch(frame, Y, every=10), library)()])
    np.testing.assert_array_equal(watched.predict_proba(frame), boosted(library, []).predict_proba(frame))


def test_what_is_recorded_is_reached_and_no_cheaper_than_an_explanation() -> None:
    watch = RecourseWatch(X, Y, space=gce.FeatureSpace.from_frame(X, immutable=["sex"]), n_rows=60)
    fitted = LogisticRegression().fit(X[["income", "debt"]], Y)

    def decide(rows: Any) -> Any:
        return fitted.predict(rows[["income", "debt"]])

    watch.record(1, decide)
    assert watch.space is not None
    watched = watch.space.decode(watch._watched)
    bound = gce.explain(decide, watched, favourable=1, space=watch.space, n_directions=3, rng=0)
    assert watch.rounds[0].affected == bound.n_affected
    assert watch.rounds[0].score >= bound.score
    assert watch.rounds[0].coverage > 0.9


def test_an_explanations_directions_can_be_watched(ex: gce.Explanation) -> None:
    watch = RecourseWatch(X, Y, space=ex.space, directions=ex.directions, budget=ex.budget, n_costs=8)
    for step in range(1, 3):
        watch.record(step, model)
    assert watch.rounds[0].score == watch.rounds[1].score
    # its points lie on the explanation's rays
    delta = ex.cost.normalise(ex.directions, 1.0)[0]
    first = rays.positions(ex.space, watch._watched[:1], delta, float(ex.budget))
    assert (watch._points == first).all(axis=1).any()


def test_a_torch_loop_is_watched() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    Z = X[["income", "debt"]].to_numpy(np.float32, copy=True)
    net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    steps, loss = torch.optim.Adam(net.parameters(), lr=0.05), torch.nn.CrossEntropyLoss()
    watch = RecourseWatch(Z, Y)
    for epoch in range(1, 31):
        steps.zero_grad()
        loss(net(torch.from_numpy(Z)), torch.tensor(Y)).backward()
        steps.step()
        if epoch % 10 == 0:
            watch.record(epoch, net)
    assert [r.number for r in watch.rounds] == [10, 20, 30]
    assert watch.rounds[-1].coverage > 0.9


def test_views_of_a_watch() -> None:
    watch, learner = RecourseWatch(X[["income", "debt"]], Y, by=X["sex"]), SGDClassifier(random_state=0)
    for step in (1, 2, 3):
        watch.record(step, learner.partial_fit(X[["income", "debt"]], Y, classes=[0, 1]))
    frame = watch.to_frame()
    assert frame["round"].tolist() == [1, 2, 3]
    assert {"coverage", "score", "gap", "score f", "score m"} <= set(frame.columns)
    assert frame["gap"].iloc[-1] == pytest.approx(abs(frame["score f"].iloc[-1] - frame["score m"].iloc[-1]))
    above, below = watch.plot()
    assert above.get_ylabel() == "coverage"
    assert {text.get_text() for text in below.get_legend().get_texts()} == {"everybody", "f", "m"}


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"every": 0}, "every"),
        ({"n_rows": 1.5}, "n_rows"),
        ({"budget": -1}, "budget"),
        ({"y": Y[:3]}, "y"),
    ],
)
def test_rubbish_is_named(wanted: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameterError, match=said):
        RecourseWatch(**{"X": X, "y": Y, **wanted})


def test_outcomes_that_never_or_always_are_favourable_are_an_error() -> None:
    for favourable, said in ((2, "no rows"), (1, "only")):
        with pytest.raises(InvalidDataError, match=said):
            RecourseWatch(X, np.ones(len(X)), favourable=favourable)


# -- over time --------------------------------------------------------------------------------------------------------


def month(seed: int, penalty: float) -> gce.Audit:
    """An audit of a month's rows, by a model that asks women for more."""
    rng = np.random.default_rng(seed)
    n = 500
    rows = pd.DataFrame(
        {"income": rng.uniform(0, 10, n), "debt": rng.uniform(0, 10, n), "sex": rng.choice(["f", "m"], n)}
    )

    def decide(Z: Any) -> Any:
        return (Z["income"] - 0.3 * Z["debt"] - penalty * (Z["sex"] == "f") > 3.5).astype(int)

    return gce.audit(decide, rows, by="sex", favourable=1, effort="quick", rng=0)


@pytest.fixture(scope="module")
def months() -> list[gce.Audit]:
    return [*(month(seed, 0.5) for seed in range(4)), month(4, 5.0)]


def told(months: list[gce.Audit]) -> History:
    history = History()
    for i, audit in enumerate(months):
        history = history.append(audit, date=f"2026-0{i + 1}-28")
    return history


def test_an_alarm_sounds_where_a_gap_leaves_its_band(months: list[gce.Audit]) -> None:
    assert [f.state for f in told(months[:3]).latest()] == ["reference"]
    (fourth,) = told(months[:4]).latest()
    assert fourth.state == "inside"
    (fifth,) = told(months).latest()
    assert fifth.state == "left"
    assert fifth.band == fourth.band
    assert fifth.gap == pytest.approx(months[4].comparisons[0].gaps["score"].value)
    (wide,) = told(months).latest(width=50.0)
    assert wide.state == "inside"


def test_what_is_no_longer_compared_is_unknown_and_not_forgotten(months: list[gce.Audit]) -> None:
    history = told(months[:4])
    other = dataclasses.replace(history.points[-1], date="2026-05-28", comparison="old against young")
    found = dataclasses.replace(history, points=(*history.points, other)).latest()
    assert {f.comparison: f.state for f in found} == {
        "old against young": "reference",
        history.points[0].comparison: "unknown",
    }


def test_a_gap_without_a_band_after_the_first_audits_is_unknown(months: list[gce.Audit]) -> None:
    history = told(months[:4])
    bare = dataclasses.replace(history, points=tuple(dataclasses.replace(p, margin=None) for p in history.points))
    assert [f.state for f in bare.latest()] == ["unknown"]
    assert [f.state for f in bare.latest(width=50.0)] == ["inside"]


def test_a_history_is_read_back_and_drawn(months: list[gce.Audit], tmp_path: Any) -> None:
    history = told(months)
    history.to_json(tmp_path / "h.json")
    assert History.from_json(tmp_path / "h.json") == history
    ax = history.plot()
    assert len(ax.containers) == 1
    assert ax.get_legend() is not None


def test_a_history_compares_like_with_like(months: list[gce.Audit], tmp_path: Any) -> None:
    history = told(months[:2])
    with pytest.raises(InvalidParameterError, match="after 2026-02-28"):
        history.append(months[2], date="2026-02-28")
    with pytest.raises(InvalidParameterError, match="as in 2026"):
        history.append(months[2], date="June")
    other = gce.audit(model, X, by="sex", favourable=1, budget=5.0, effort="quick", rng=0)
    with pytest.raises(InvalidParameterError, match="budget was '10' and is '5'"):
        history.append(other, date="2026-03-28")
    for text in ("", "{}", '{"format": "globece.history", "version": 1, "question": {}, "points": [{"gap": "x"}]}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(FileFormatError, match=r"bad\.json is no history"):
            History.from_json(tmp_path / "bad.json")


def test_monitor_on_the_command_line(months: list[gce.Audit], tmp_path: Any) -> None:
    codes = []
    for i, audit in enumerate(months):
        audit.to_json(str(tmp_path / "audit.json"))
        asked = ["monitor", tmp_path / "history.json", tmp_path / "audit.json", "--day", f"2026-0{i + 1}-28"]
        done = CliRunner().invoke(main, [str(a) for a in (*asked, "--figure", tmp_path / "gap.png")])
        codes.append(done.exit_code)
    assert codes == [0, 0, 0, 0, 3], done.output
    assert "left" in done.stdout
    assert "Alarm" in done.stderr
    assert (tmp_path / "gap.png").stat().st_size > 5_000
    assert len(History.from_json(tmp_path / "history.json").dates) == 5
    again = CliRunner().invoke(main, [str(a) for a in asked])
    assert again.exit_code == 2
    assert "must be after" in again.stderr
