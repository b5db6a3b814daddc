"""The same functions in a real local Spark session: `make test-spark` runs it, with a Java runtime.

It has no name that the other tests are collected by: Spark starts a Java machine, and takes a while.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import globece as gce
from globece import distributed
from globece.distributed import on_spark
from globece.errors import InvalidParameterError, UnknownFeatureError
from tests.distributed.problems import KINDS, problem

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("globece")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def frame_of(spark, X):
    return spark.createDataFrame(pa.Table.from_pandas(X, preserve_index=False))


def customers(p):
    return p.X.assign(customer=[f"c{i:05d}" for i in range(len(p.X))])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parts", [1, 3])
def test_map_in_arrow_gives_what_one_machine_gives(spark, kind, parts, tmp_path):
    p = problem(kind)
    X = customers(p)
    X.to_parquet(tmp_path / "all.parquet")
    here = distributed.apply(p.explanation, tmp_path / "all.parquet", out=tmp_path / "out", row_id="customer")
    frame = frame_of(spark, X).repartition(parts)
    found = on_spark.scaled(p.explanation, frame, row_id="customer").toArrow().to_pandas()
    theirs = here.rows().to_pandas().sort_values("customer", ignore_index=True)
    mine = found.sort_values("customer", ignore_index=True)
    for name in ("customer", "affected"):
        assert mine[name].tolist() == theirs[name].tolist()
    affected = theirs["affected"].to_numpy()
    for name in ("direction", "scalar", "cost"):
        one, other = (t.loc[affected, name].to_numpy(dtype=float) for t in (mine, theirs))
        assert one.tobytes() == other.tobytes()
        assert mine.loc[~affected, name].isna().all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_spark_frame_is_a_source_like_any_other(spark, kind, tmp_path):
    p = problem(kind)
    X = customers(p)
    X.to_parquet(tmp_path / "all.parquet")
    here = distributed.apply(p.explanation, tmp_path / "all.parquet", out=tmp_path / "here", row_id="customer")
    frame = frame_of(spark, X).coalesce(3)
    found = distributed.apply(p.explanation, frame, out=tmp_path / "out", row_id="customer")
    assert json.dumps(found.summary.to_dict()) == json.dumps(here.summary.to_dict())
    one, other = (r.rows().cast(found.rows().schema).sort_by("customer") for r in (found, here))
    assert one.equals(other)
    again = distributed.apply(p.explanation, frame, out=tmp_path / "out", row_id="customer")
    assert again.summary.to_dict() == found.summary.to_dict()


def test_a_spark_frame_is_explained(spark):
    p = problem("trees")
    frame = frame_of(spark, customers(p)).coalesce(2)
    found = distributed.explain(p.model, frame, row_id="customer", effort="quick", rng=3)
    whole = gce.explain(p.model, p.X, effort="quick", rng=3)
    assert found.numbers == whole.numbers


def test_errors_of_executors_keep_their_words(spark):
    p = problem("linear")
    X = customers(p).head(100)
    X.loc[99, "housing"] = "boat"
    with pytest.raises(gce.GlobeCEError, match=r"unknown category\(ies\) \['boat'\]"):
        distributed.apply(p.explanation, frame_of(spark, X).coalesce(1), row_id="customer")
    with pytest.raises(InvalidParameterError, match="row_id must name a column"):
        distributed.apply(p.explanation, frame_of(spark, X))
    with pytest.raises(UnknownFeatureError, match="row_id names unknown column 'nobody'"):
        on_spark.scaled(p.explanation, frame_of(spark, X), row_id="nobody")
