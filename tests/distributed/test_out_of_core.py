"""Parquet on one machine: bounded, resumable, and the same however the rows are divided."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import globece as gce
from globece import distributed
from globece.distributed import drawing, threads
from globece.distributed.engines import Processes, dumps
from globece.distributed.explaining import SAVED
from globece.distributed.manifest import ResultsError
from globece.distributed.sampling import witnesses
from globece.distributed.sources import parquet
from globece.errors import GlobeCEWarning, InvalidDataError, InvalidParameterError, UnknownCategoryError
from tests.distributed.problems import KINDS, cut, fitted, outcome, problem, table

ROOT = Path(__file__).parents[2]


def results(found):
    return found.rows().sort_by("row"), json.dumps(found.summary.to_dict())


@pytest.mark.parametrize("kind", KINDS)
def test_partitions_change_nothing(kind, tmp_path):
    p = problem(kind)
    seen: list[Any] = []
    for parts in (1, 3, 17):
        source = cut(p.X, tmp_path / f"in{parts}", parts)
        found = distributed.explain(p.model, source, out=tmp_path / f"out{parts}", effort="quick", rng=3)
        seen.append((*results(found), found.directions.tobytes()))
    assert seen[0][0].equals(seen[1][0])
    assert seen[0][0].equals(seen[2][0])
    assert seen[0][1:] == seen[1][1:] == seen[2][1:]
    whole = gce.explain(p.model, p.X, effort="quick", rng=3)
    assert found.directions.tobytes() == whole.directions.tobytes()
    assert found.numbers == whole.numbers
    assert found.rows().filter(pa.compute.field("affected"))["row"].to_numpy().tobytes() == whole.rows.tobytes()


def test_explain_takes_a_path(tmp_path):
    p = problem("linear")
    p.X.to_parquet(tmp_path / "all.parquet")
    found = gce.explain(p.model, str(tmp_path / "all.parquet"), effort="quick", rng=0)
    assert isinstance(found, distributed.Portfolio)
    assert found.numbers == gce.explain(p.model, p.X, effort="quick", rng=0).numbers


def test_jobs_are_processes_and_change_nothing(tmp_path):
    p = problem("trees")
    source = cut(p.X, tmp_path / "in", 3)
    one = distributed.apply(p.explanation, source, out=tmp_path / "one")
    two = distributed.apply(p.explanation, source, out=tmp_path / "two", jobs=2)
    assert results(one)[0].equals(results(two)[0])
    assert results(one)[1] == results(two)[1]
    for name in ("part-000000.parquet", "_part-000001.json"):
        assert (tmp_path / "one" / "rows" / name).read_bytes() == (tmp_path / "two" / "rows" / name).read_bytes()


def test_a_process_that_is_killed_is_replaced(tmp_path):
    p = problem("trees")
    source = cut(p.X, tmp_path / "in", 12)
    whole = results(distributed.apply(p.explanation, source, out=tmp_path / "whole"))
    killed: list[int] = []

    def kill(progress):
        if progress.done and not killed:
            victim = multiprocessing.active_children()[0].pid
            assert victim is not None
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    found = results(distributed.apply(p.explanation, source, out=tmp_path / "out", jobs=2, progress=kill))
    assert killed
    assert found[0].equals(whole[0])
    assert found[1] == whole[1]


def test_jobs_share_the_cores(tmp_path):
    """Two processes have half of the cores each, in Numba, OpenMP and the model."""
    source = parquet(cut(problem("trees").X, tmp_path / "in", 2))
    found = list(Processes(2).run(Threads(fitted("trees"), Processes(2).threads), source))
    each = max(1, threads.cores() // 2)
    assert found == [(each, each, str(each))] * 2
    assert fitted("trees")[-1].n_jobs is None, "the user's own model is left alone"


@dataclass(frozen=True)
class Threads:
    """Work that only says how many threads it may use."""

    model: Any
    n: int

    def __call__(self, part):
        with threads.limited(self.n, self.model):
            return numba.get_num_threads(), self.model[-1].n_jobs, os.environ["OMP_NUM_THREADS"]


def test_an_index_of_pandas_is_no_feature(tmp_path):
    X = table(50).sample(frac=1.0, random_state=0)
    X.to_parquet(tmp_path / "all.parquet")
    source = parquet(tmp_path / "all.parquet")
    assert "__index_level_0__" in source.schema.names
    plan = drawing.Plan(model=outcome, space=None, frame="pandas", row_id=None, within=0.01, seed=0)
    assert plan.columns(source) == tuple(X.columns)


def test_constraints_hold_for_a_space_that_is_learnt(tmp_path):
    p = problem("trees")
    source = cut(p.X, tmp_path / "in", 3)
    limits: dict[str, Any] = {"immutable": ["age"], "decreasing": ["debts"], "ordinal": {"job": ["d", "c", "b", "a"]}}
    found = distributed.explain(p.model, source, effort="quick", constraints=limits)
    assert found.explanation.space.features == gce.FeatureSpace.from_frame(p.X, **limits).features
    with pytest.raises(InvalidParameterError, match="constraints are for a space that is learnt"):
        distributed.explain(p.model, source, space=p.explanation.space, constraints=limits)


def test_batches_of_any_size_give_the_same(tmp_path):
    p = problem("network")
    source = cut(p.X, tmp_path / "in", 1)
    found = [results(distributed.apply(p.explanation, source, out=tmp_path / f"{n}", batch_rows=n)) for n in (97, 4096)]
    assert found[0][0].equals(found[1][0])
    assert found[0][1] == found[1][1]


def test_a_large_row_group_is_not_decoded_at_once(tmp_path):
    rows, rng = 2_000_000, np.random.default_rng(0)
    X = pa.table({f"c{i}": rng.normal(size=rows) for i in range(3)})
    pq.write_table(X, tmp_path / "all.parquet", row_group_size=rows)
    (part,) = parquet(tmp_path / "all.parquet").parts
    held = pa.total_allocated_bytes()
    some = []
    for batch in part.batches(X.column_names, 10_000):
        some.append(pa.total_allocated_bytes() - held)
        assert batch.num_rows <= 10_000
    assert len(some) >= 200
    assert max(some) < X.nbytes / 4, (max(some), X.nbytes)


def test_columns_that_folders_hold_and_names_with_dots(tmp_path):
    rows = pa.table({"a": [1, 2, 3], "b": ["x", "y", "x"], "c.d": [1.0, 2.0, 3.0], "c": [4, 5, 6]})
    pq.write_to_dataset(rows, tmp_path / "in", partition_cols=["b"])
    source = parquet(tmp_path / "in")
    for columns in (["c", "b", "c.d"], ["b"], ["c"]):
        read = [batch.select(columns).to_pylist() for part in source.parts for batch in part.batches(columns, 2)]
        found = sorted((row for batch in read for row in batch), key=str)
        assert found == sorted(rows.select(columns).to_pylist(), key=str)


def test_progress_is_reported_by_rows(tmp_path):
    p = problem("linear")
    source = cut(p.X, tmp_path / "in", 3)
    seen: list[Any] = []
    distributed.apply(p.explanation, source, progress=seen.append)
    assert [s.stage for s in seen] == ["scaling rows"] * 4
    assert seen[-1].done == seen[-1].total == len(p.X)
    assert all(a.done < b.done for a, b in pairwise(seen))


# -- the sample -----------------------------------------------------------------------------------------------------


def small_samples(monkeypatch, first=600, pilot=100, fewest=60):
    monkeypatch.setattr(drawing, "FIRST", first)
    monkeypatch.setattr(drawing, "PILOT", pilot)
    monkeypatch.setattr(drawing, "FEWEST", fewest)


def test_the_sample_is_as_large_as_the_interval_asks(tmp_path, monkeypatch):
    small_samples(monkeypatch)
    p = problem("trees")
    X = table(20_000, 5)
    source = cut(X, tmp_path / "in", 3)
    wide, narrow = (distributed.explain(p.model, source, effort="quick", within=w).sampled for w in (0.2, 0.03))
    assert wide is not None
    assert narrow is not None
    for s in (wide, narrow):
        assert s.low <= s.score <= s.high
        assert s.pilot == 100
        assert s.affected < outcome(X).size
    assert wide.searched < narrow.searched < len(X)
    assert narrow.high - narrow.score < 1.3 * 0.03 * narrow.score
    whole = distributed.explain(p.model, source, effort="quick", within=0.03)
    assert 0.9 * narrow.low < whole.score < 1.1 * narrow.high
    assert "95 % interval" in whole.explanation.provenance.notes[-1]


def test_the_sample_is_the_same_in_any_partition(tmp_path, monkeypatch):
    small_samples(monkeypatch)
    p = problem("linear")
    X = table(9_000, 6)
    found = [
        distributed.explain(p.model, cut(X, tmp_path / f"in{k}", k), effort="quick", within=0.1) for k in (1, 3, 17)
    ]
    assert len({f.directions.tobytes() for f in found}) == 1
    assert len({f.sampled for f in found}) == 1
    assert len({json.dumps(f.summary.to_dict()) for f in found}) == 1


def test_rare_affected_inputs_are_fetched_from_all_rows(tmp_path, monkeypatch):
    small_samples(monkeypatch)
    X = table(9_000, 7)
    X["income"] = np.where(np.arange(len(X)) % 1500 == 7, 0.0, 9.0)

    def model(X):
        return (X["income"] >= 4).astype(int).to_numpy()

    found = distributed.explain(model, cut(X, tmp_path / "in", 3), effort="quick")
    assert found.sampled is not None
    assert found.numbers.n_affected == found.sampled.searched == 6
    assert found.coverage == 1.0


def test_a_sample_without_affected_inputs_explains_nothing(tmp_path, monkeypatch):
    small_samples(monkeypatch)

    def model(X):
        return np.ones(len(X), dtype=int)

    found = distributed.explain(model, cut(table(5_000), tmp_path / "in", 3), out=tmp_path / "out", effort="quick")
    assert len(found.directions) == 0
    assert found.numbers.n_affected == 0
    assert str(found).startswith("Nobody is affected: all 5,000 rows")
    assert not found.rows()["affected"].to_numpy().any()


@pytest.mark.parametrize("seed", range(10))
def test_a_space_learnt_from_witnesses_is_that_of_all_rows(seed):
    rng = np.random.default_rng(seed)
    n = 500
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n) * 10.0 ** rng.integers(-3, 6),
            "b": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 9, n)),
            "c": rng.integers(-5, 500, n),
            "d": rng.choice(np.array(["x", "y", None]), n),
            "e": rng.choice([f"v{i}" for i in range(60)], n, p=rng.dirichlet(np.full(60, 0.1))),
            "f": rng.random(n) < 0.01,
            "g": pd.Categorical(rng.choice(["lo", "hi"], n), ["lo", "mid", "hi"], ordered=True),
            "h": rng.normal(size=n).astype(np.float32),
        }
    )
    source = pa.Table.from_pandas(X, preserve_index=False)
    parts = [witnesses(source.slice(at, 77)) for at in range(0, n, 77)]
    few = witnesses(pa.concat_tables(parts, promote_options="default"))
    assert len(few) < 200
    assert gce.FeatureSpace.from_frame(few.to_pandas()).features == gce.FeatureSpace.from_frame(X).features


# -- faults ---------------------------------------------------------------------------------------------------------


def test_a_run_that_was_interrupted_goes_on_where_it_ended(tmp_path):
    p = problem("trees")
    source = cut(p.X, tmp_path / "in", 5)
    whole = distributed.explain(p.model, source, out=tmp_path / "whole", effort="quick")

    class Stop(Exception): ...

    def stop(progress):
        if progress.stage == "scaling rows" and progress.done > 1_000:
            raise Stop

    out = tmp_path / "out"
    with pytest.raises(Stop):
        distributed.explain(p.model, source, out=out, effort="quick", progress=stop)
    finished = {f: f.stat().st_mtime_ns for f in sorted((out / "rows").iterdir())}
    directions = (out / SAVED).stat().st_mtime_ns
    assert 0 < len(finished) < 10
    seen: list[Any] = []
    found = distributed.explain(p.model, source, out=out, effort="quick", progress=seen.append)
    assert {s.stage for s in seen} == {"scaling rows"}, "directions are not searched again"
    assert (out / SAVED).stat().st_mtime_ns == directions
    assert {f: f.stat().st_mtime_ns for f in finished} == finished, "finished parts are not computed again"
    assert results(found)[0].equals(results(whole)[0])
    assert results(found)[1] == results(whole)[1]
    names = sorted(f.name for f in (out / "rows").iterdir())
    assert names == sorted(f.name for f in (tmp_path / "whole" / "rows").iterdir())
    for name in names:
        if name.endswith(".parquet"):
            assert (out / "rows" / name).read_bytes() == (tmp_path / "whole" / "rows" / name).read_bytes()


def test_a_searched_model_goes_on_as_it_was_asked(tmp_path):
    p = problem("linear")
    source = cut(p.X.head(120), tmp_path / "in", 2)
    asked: dict[str, Any] = {"settings": gce.Settings(exact=False, grid=8), "search": gce.Climb(rays=200)}
    first = distributed.explain(p.model, source, out=tmp_path / "out", **asked)
    again = distributed.explain(p.model, source, out=tmp_path / "out", **asked)
    assert again.method == first.method == "searched"
    assert again.directions.tobytes() == first.directions.tobytes()
    assert results(again)[1] == results(first)[1]


def test_a_driver_that_is_killed_loses_no_finished_part(tmp_path):
    p = problem("linear")
    source = cut(p.X, tmp_path / "in", 8)
    whole = distributed.apply(p.explanation, source, out=tmp_path / "whole")
    (tmp_path / "explanation").write_bytes(_pickled(p))
    code = (
        "import pickle, sys, time\n"
        "from globece import distributed\n"
        "ex = pickle.load(open(sys.argv[1] + '/explanation', 'rb'))\n"
        "distributed.apply(ex, sys.argv[1] + '/in', out=sys.argv[1] + '/out', progress=lambda p: time.sleep(0.4))\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT)
    records = tmp_path / "out" / "rows"
    until = time.monotonic() + 60
    while len(list(records.glob("_part-*.json")) if records.exists() else []) < 3 and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    kept = {f: f.stat().st_mtime_ns for f in records.glob("_part-*.json")}
    assert 3 <= len(kept) < 8
    found = distributed.apply(p.explanation, source, out=tmp_path / "out")
    assert {f: f.stat().st_mtime_ns for f in kept} == kept
    assert results(found)[0].equals(results(whole)[0])
    assert results(found)[1] == results(whole)[1]


def _pickled(p):
    return dumps(p.explanation)


def test_a_results_file_that_is_cut_short_is_computed_again(tmp_path):
    p = problem("linear")
    source = cut(p.X, tmp_path / "in", 3)
    whole = results(distributed.apply(p.explanation, source, out=tmp_path / "out"))
    path = tmp_path / "out" / "rows" / "part-000001.parquet"
    path.write_bytes(path.read_bytes()[:-10])
    again = results(distributed.apply(p.explanation, source, out=tmp_path / "out"))
    assert again[0].equals(whole[0])
    assert again[1] == whole[1]


def test_a_part_that_fails_is_named_and_the_others_are_kept(tmp_path):
    p = problem("trees")
    source = cut(p.X, tmp_path / "in", 4)
    broken = sorted(source.iterdir())[2]
    good = broken.read_bytes()
    stat = broken.stat()
    bad = bytearray(good)
    bad[200:400] = bytes(200)
    broken.write_bytes(bytes(bad))
    os.utime(broken, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(gce.GlobeCEError, match=r"part\(s\) 2 failed and the other 3 of 4 are finished.*002\.parquet"):
        distributed.apply(p.explanation, source, out=tmp_path / "out")
    kept = {f: f.stat().st_mtime_ns for f in (tmp_path / "out" / "rows").glob("_part*")}
    assert len(kept) == 3
    broken.write_bytes(good)
    os.utime(broken, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    found = distributed.apply(p.explanation, source, out=tmp_path / "out")
    assert {f: f.stat().st_mtime_ns for f in kept} == kept
    assert found.numbers == p.explanation.apply(p.X).numbers


def test_another_run_in_the_same_folder_is_refused(tmp_path):
    p = problem("linear")
    source = cut(p.X, tmp_path / "in", 2)
    distributed.apply(p.explanation, source, out=tmp_path / "out")
    other = problem("trees").explanation
    with pytest.raises(InvalidParameterError, match=r"holds the results of another run: .*model.* differ"):
        distributed.apply(other, source, out=tmp_path / "out")
    distributed.explain(p.model, source, out=tmp_path / "out2", effort="quick", rng=1)
    with pytest.raises(InvalidParameterError, match="holds the results of another run"):
        distributed.explain(p.model, source, out=tmp_path / "out2", effort="quick", rng=2)


def test_a_model_that_disagrees_with_its_compiled_form_is_searched_for_all_rows(tmp_path):
    p = problem("linear")
    source = cut(p.X.head(600), tmp_path / "in", 3)
    ex = p.explanation
    model: Any = gce.as_model(p.model, ex.space, rows=ex.inputs)
    decide = replace(model.original.decide, ask=Stricter(p.model))
    wrong = replace(model, original=replace(model.original, decide=decide))
    with pytest.warns(GlobeCEWarning, match="searched as a black box"):
        found = distributed.apply(replace(ex, model=wrong), source, out=tmp_path / "out")
    assert found.method == "searched"
    assert (tmp_path / "out" / "searched").exists()
    again = distributed.apply(replace(ex, model=wrong), source, out=tmp_path / "out")
    assert results(again)[1] == results(found)[1]


class Stricter:
    """A model that turns down those with many debts, which its compiled form does not know."""

    def __init__(self, model):
        self.model = model

    def __call__(self, X):
        return np.where(X["debts"] >= 6, 0, self.model.predict(X))


# -- bad input ------------------------------------------------------------------------------------------------------


def test_parts_with_other_columns_or_types_are_refused(tmp_path):
    p = problem("linear")
    source = cut(p.X, tmp_path / "in", 3)
    last = sorted(source.iterdir())[-1]
    good = pd.read_parquet(last)
    good.drop(columns="job").to_parquet(last)
    with pytest.raises(InvalidDataError, match=r"002.parquet and .*000.parquet differ in column\(s\) \['job'\]"):
        distributed.apply(p.explanation, source)
    good.assign(age=good["age"].astype(str)).to_parquet(last)
    with pytest.raises(InvalidDataError, match=r"column 'age' has type (large_)?string in .*002.parquet and int64"):
        distributed.apply(p.explanation, source)


def test_whole_numbers_in_one_part_and_fractions_in_another_are_the_same_column(tmp_path):
    p = problem("linear")
    source = cut(p.X, tmp_path / "in", 3)
    last = sorted(source.iterdir())[-1]
    good = pd.read_parquet(last)
    good.assign(age=good["age"].astype(float)).to_parquet(last)
    assert distributed.apply(p.explanation, source).numbers == p.explanation.apply(p.X).numbers


def test_empty_parts_change_nothing(tmp_path):
    p = problem("linear")
    source = cut(p.X, tmp_path / "in", 2)
    p.X.head(0).to_parquet(source / "000a.parquet")
    p.X.head(0).astype({"age": "int64"}).to_parquet(source / "zzz.parquet")
    assert distributed.apply(p.explanation, source).numbers == p.explanation.apply(p.X).numbers
    shutil.rmtree(source)
    source.mkdir()
    p.X.head(0).to_parquet(source / "a.parquet")
    with pytest.raises(InvalidDataError, match="no rows"):
        distributed.apply(p.explanation, source)


def test_a_category_that_occurs_in_one_part_only_is_learnt(tmp_path):
    X = table(2_000)
    X.loc[1_999, "housing"] = "boat"
    steps = make_column_transformer((OneHotEncoder(), ["housing"]), remainder="passthrough")
    X = X.drop(columns="job")
    model = make_pipeline(steps, DecisionTreeClassifier(max_depth=4)).fit(X, (X["income"] > 3).astype(int))
    found = distributed.explain(model, cut(X, tmp_path / "in", 7), effort="quick")
    assert "boat" in found.explanation.space["housing"].categories
    assert found.numbers == gce.explain(model, X, effort="quick", rng=0).numbers


def test_a_category_that_the_space_does_not_know_names_the_part(tmp_path):
    p = problem("linear")
    X = p.X.copy()
    X.loc[2_999, "housing"] = "boat"
    source = cut(X, tmp_path / "in", 3)
    with pytest.raises(gce.GlobeCEError, match=r"part\(s\) 2 failed .* unknown category\(ies\) \['boat'\]"):
        distributed.apply(p.explanation, source)
    with pytest.raises(UnknownCategoryError):
        distributed.apply(p.explanation, sorted(source.iterdir())[-1])


def test_a_dataset_that_changes_while_it_is_read_is_an_error(tmp_path):
    p = problem("linear")
    source = cut(p.X, tmp_path / "in", 3)
    last = sorted(source.iterdir())[-1]

    def change(progress):
        if progress.done:
            pd.read_parquet(last).iloc[::-1].to_parquet(last)

    with pytest.raises(gce.GlobeCEError, match=r"part\(s\) 2 failed .*002.parquet has changed since the run began"):
        distributed.apply(p.explanation, source, progress=change)
    part = parquet(source).parts[-1]
    reading = part.batches(["age"], 50)
    next(reading)
    last.unlink()
    with pytest.raises(InvalidDataError, match="is gone"):
        list(reading)


def test_no_space_left_keeps_finished_parts(tmp_path):
    """A process that may write no more than a few kilobytes to a file: the same error path as a full disk."""
    p = problem("linear")
    source = cut(p.X, tmp_path / "in", 4)
    code = (
        "import pickle, resource, signal, sys\n"
        "from globece import distributed\n"
        "ex = pickle.load(open(sys.argv[1] + '/explanation', 'rb'))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))\n"
        "try:\n"
        "    distributed.apply(ex, sys.argv[1] + '/in', out=sys.argv[1] + '/out')\n"
        "except distributed.manifest.ResultsError as error:\n"
        "    sys.exit(str(error))\n"
    )
    (tmp_path / "explanation").write_bytes(_pickled(p))
    distributed.apply(p.explanation, source, out=tmp_path / "probe")
    sizes = [max(f.stat().st_size for f in (tmp_path / "probe" / "rows").glob(f"*part-00000{i}.*")) for i in range(4)]
    limit = (sizes[0] + sizes[-1]) // 2
    assert sizes[0] < limit < sizes[-1]
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(limit)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "cannot be written" in done.stderr
    assert "finished parts are kept" in done.stderr
    rows = tmp_path / "out" / "rows"
    assert [f.name for f in rows.iterdir() if f.name.startswith(".")] == []
    kept = {f: f.stat().st_mtime_ns for f in rows.glob("_part*")}
    assert 1 <= len(kept) < 4
    found = distributed.apply(p.explanation, source, out=tmp_path / "out")
    assert {f: f.stat().st_mtime_ns for f in kept} == kept
    assert found.numbers == p.explanation.apply(p.X).numbers
    with pytest.raises(ResultsError, match="cannot be written to"):
        distributed.apply(p.explanation, source, out=tmp_path / "explanation")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"source": "nowhere.parquet"}, "source names nowhere.parquet: there is no such file"),
        ({"source": 3}, "the rows must be a path"),
        ({"row_id": "nobody"}, "row_id names unknown column 'nobody'"),
        ({"batch_rows": 0}, "batch_rows must be"),
        ({"jobs": 0}, "jobs must be"),
    ],
)
def test_rubbish_is_named(given, message, tmp_path):
    p = problem("linear")
    asked = {"source": cut(p.X, tmp_path / "in", 1), **given}
    with pytest.raises(gce.GlobeCEError, match=message):
        distributed.apply(p.explanation, asked.pop("source"), **asked)


def test_results_keep_identifiers_and_can_be_read_anywhere(tmp_path):
    p = problem("linear")
    X = p.X.assign(customer=[f"c{i:05d}" for i in range(len(p.X))])
    X.to_parquet(tmp_path / "all.parquet", row_group_size=500)
    found = distributed.apply(p.explanation, tmp_path / "all.parquet", out=tmp_path / "out", row_id="customer")
    back = pq.read_table(tmp_path / "out" / "rows")
    assert back.column_names == ["customer", "affected", "direction", "scalar", "cost"]
    assert back["customer"].to_pylist() == X["customer"].tolist()
    numbers = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert numbers["coverage"] == found.coverage
    assert numbers["rows"] == len(X)
