"""What each extra is for, tried in an environment that has it alone: ``python smoke.py EXTRA ...``.

It imports nothing of the tests, as it runs where they are not.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import globece as gce

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = (X.sum(axis=1) > 0).astype(int)
QUICK: dict[str, Any] = {"favourable": 1, "effort": "quick", "rng": 0}


def core() -> None:
    ex = gce.explain(LogisticRegression().fit(X, Y), X, **QUICK)
    assert ex.provenance.method == "exact"
    assert ex.coverage > 0.9
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        ex.save_html(str(page))
        assert page.stat().st_size > 10_000
        ex.to_json(str(Path(folder) / "ex.json"))
        assert gce.Explanation.from_json(Path(folder) / "ex.json").score == ex.score
    assert gce.audit(LogisticRegression().fit(X, Y), X, by=X[:, 0] > 0, **QUICK).verdict.conclusion


def frames() -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    columns = {"a": X[:, 0], "b": X[:, 1]}
    model = LogisticRegression().fit(pd.DataFrame(columns), Y)
    scores = {gce.explain(model, rows, **QUICK).score for rows in (pd.DataFrame(columns),)}
    scores |= {gce.explain(lambda Z: np.asarray(Z["a"]) > 0, kind(columns), **QUICK).n_rows for kind in
               (pl.DataFrame, pa.table)}  # fmt: skip
    assert scores


def plot() -> None:
    import matplotlib

    matplotlib.use("agg")
    from globece.plots import ProfileDisplay

    shown = ProfileDisplay.from_explanation(gce.explain(LogisticRegression().fit(X, Y), X, **QUICK)).plot()
    assert shown.figure_ is not None


def trees() -> None:
    import lightgbm
    import xgboost

    for model in (xgboost.XGBClassifier(n_estimators=3), lightgbm.LGBMClassifier(n_estimators=3, verbose=-1)):
        assert gce.explain(model.fit(X, Y), X, **QUICK).provenance.method == "exact"


def catboost() -> None:
    from catboost import CatBoostClassifier

    with tempfile.TemporaryDirectory() as folder:
        model = CatBoostClassifier(iterations=3, verbose=False, train_dir=folder).fit(X, Y)
        assert gce.explain(model, X, **QUICK).provenance.method == "exact"


def torch() -> None:
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).eval()
    ex = gce.explain(net, X, effort="quick", favourable=1, rng=0)
    assert ex.provenance.method == "exact"


def evolution() -> None:
    from globece.directions import Evolution

    assert gce.explain(LogisticRegression().fit(X, Y), X, favourable=1, generator=Evolution(), rng=0).coverage > 0


def itemsets() -> None:
    import pandas as pd

    from globece.directions import ItemsetSampling

    rows = pd.DataFrame({"a": np.where(X[:, 0] > 0, "high", "low"), "b": np.where(X[:, 1] > 0, "high", "low")})

    def model(Z: Any) -> Any:
        return ((Z["a"] == "high") & (Z["b"] == "high")).astype(int)

    assert gce.explain(model, rows, favourable=1, generator=ItemsetSampling(), rng=0).coverage > 0


def onnx() -> None:
    import skops.io

    from globece.io.model_files import load_model

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.skops"
        skops.io.dump(LogisticRegression().fit(X, Y), file)
        assert load_model(str(file)) is not None
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401


def web() -> None:
    import globece.web.app
    import globece.web.serving

    assert globece.web.app.__name__ in sys.modules
    assert globece.web.serving.__name__ in sys.modules


def notebook() -> None:
    assert gce.explain(LogisticRegression().fit(X, Y), X, **QUICK).widget() is not None


def distributed() -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), file)
        found = gce.explain(lambda Z: np.asarray(Z["a"]) > 0, str(file), **QUICK)
        assert found.summary is not None
    import dask.dataframe
    import distributed

    assert dask.dataframe
    assert distributed


def mlflow() -> None:
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # a database needs more of MLflow
    import mlflow

    from globece.integrations import log_explanation

    ex = gce.explain(LogisticRegression().fit(X, Y), X, **QUICK)
    with tempfile.TemporaryDirectory() as folder:
        mlflow.set_tracking_uri(f"file://{folder}/runs")
        made = mlflow.create_experiment("recourse", artifact_location=f"file://{folder}/files")
        with mlflow.start_run(experiment_id=made):
            assert log_explanation(ex)["recourse.score"] == ex.score


def spark() -> None:
    import pyspark

    from globece.distributed import on_spark

    assert callable(on_spark.scaled)
    assert pyspark.__version__


def gpu() -> None:
    import cupy

    assert cupy.__version__
    core()


def missing() -> None:
    """Without any extra: what needs one names the command that installs it."""
    ex = gce.explain(LogisticRegression().fit(X, Y), X, **QUICK)
    from globece.plots import ProfileDisplay

    for wish, extra in ((lambda: ProfileDisplay.from_explanation(ex).plot(), "plot"), (ex.widget, "notebook")):
        heard = ""
        try:
            wish()
        except gce.GlobeCEError as error:
            heard = str(error)
        assert f"pip install 'globece[{extra}]'" in heard, heard


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name.replace("-cuda12", "").replace("-cuda13", "")]()
        print("ok:", name)
