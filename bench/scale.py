"""Ten million rows: rows a second, memory per worker, and what other ways to do the same take.

`make bench-scale ROWS=1000000` takes fewer. Each measurement runs in processes of its own, one thread each.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from paper.markdown import table
from paper.processes import alone

ROWS = int(os.environ.get("ROWS") or 10_000_000)
FILE_ROWS = 1_000_000
GROUP_ROWS = 250_000
BATCH = 65_536
RAW_ROWS = min(ROWS, 1_000_000)
STAGE_ROWS = 200_000
REPEATS = 3


def run() -> dict[str, Any]:
    folder = Path(tempfile.gettempdir()) / "globece-bench-scale"
    sizes = sorted({*(n for n in (100_000, 1_000_000) if n < ROWS), ROWS})
    found: dict[str, Any] = {"rows": ROWS, "load": os.getloadavg()[0], "cores": os.cpu_count()}
    found["stages"] = alone("bench.scale", "stages")
    print(found["stages"], flush=True)
    for n in sizes:
        write(folder / str(n), n)
    found["pairs"] = pairs(str(folder / str(sizes[-2] if len(sizes) > 1 else ROWS)))
    source = str(folder / str(ROWS))
    found["native"], found["clusters"], found["joblib"] = [], [], []
    for _ in range(REPEATS if ROWS < FILE_ROWS else 1):
        found["native"].append(alone("bench.scale", "native", source))
        for workers in (1, 2):
            found["clusters"].append(alone("bench.scale", "cluster", source, workers))
        found["joblib"].append(alone("bench.scale", "in_chunks", source, 2))
        print(os.getloadavg(), found["native"][-1], found["clusters"][-2:], found["joblib"][-1], flush=True)
    found["memory"] = [alone("bench.scale", "cluster", folder / str(n), 1) for n in sizes[:-1]]
    found["memory"].append(next(c for c in found["clusters"] if c["workers"] == 1))
    print(found["memory"], flush=True)
    found["raw"] = alone("bench.scale", "raw", RAW_ROWS)
    print(found["raw"], flush=True)
    found["load_after"] = os.getloadavg()[0]
    shutil.rmtree(folder)
    return found


def pairs(source: str) -> list[dict[str, Any]]:
    """The library in one thread of one process, and reading and one native predict, in turn."""
    return [{"here": alone("bench.scale", "here", source), "native": alone("bench.scale", "native", source)}
            for _ in range(REPEATS)]  # fmt: skip


# -- rows --------------------------------------------------------------------------------------------------------------


def write(folder: Path, n: int) -> None:
    """HELOC's training rows, resampled, with noise: so that no row is like another."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from paper.cases import case

    if folder.exists():
        return
    heloc = case("heloc", "xgb")
    unfinished = folder.with_name(folder.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    spread = 0.02 * heloc.rows.std(axis=0)
    for i, start in enumerate(range(0, n, FILE_ROWS)):
        rng = np.random.default_rng([7, i])
        rows = min(FILE_ROWS, n - start)
        X = heloc.rows[rng.integers(0, len(heloc.rows), rows)]
        X = X + rng.normal(0.0, spread, X.shape)
        frame = pa.table({name: X[:, j] for j, name in enumerate(heloc.space.names)})
        pq.write_table(frame, unfinished / f"{i:04d}.parquet", row_group_size=GROUP_ROWS)
    unfinished.rename(folder)


def explained(n_directions: int = 1) -> Any:
    """HELOC's XGBoost model, explained."""
    import globece as gce
    from paper.cases import case

    heloc = case("heloc", "xgb")
    asked: dict[str, Any] = {
        "space": heloc.space,
        "cost": heloc.cost,
        "n_directions": n_directions,
        "rng": 0,
        "effort": "quick",
    }
    return gce.explain(heloc.own, heloc.rows, **asked)


# -- ways to do it, each in a process of its own -----------------------------------------------------------------------


def native(source: str) -> dict[str, float]:
    """Read the files and predict once, in one thread."""
    import pyarrow.dataset as ds

    model = explained().model.decide.model
    model.set_params(n_jobs=1)
    n, start, began = 0, time.perf_counter(), time.process_time()
    for batch in ds.dataset(source, format="parquet").to_batches(batch_size=BATCH, use_threads=False):
        X = np.column_stack([batch.column(i).to_numpy() for i in range(batch.num_columns)])
        model.predict(X)
        n += len(X)
    return {"rows": n, "seconds": time.perf_counter() - start, "cpu": time.process_time() - began}


def here(source: str) -> dict[str, float]:
    """The library in this process, in one thread."""
    from globece import distributed
    from globece.distributed import Task, threads

    ex = explained()
    with tempfile.TemporaryDirectory() as out, threads.limited(1, ex.model.decide.model):
        by_batch(Task.of(ex), next(_batches(source)))
        start, began = time.perf_counter(), time.process_time()
        found = distributed.apply(ex, source, out=f"{out}/all")
        return {"rows": found.n_rows, "seconds": time.perf_counter() - start, "cpu": time.process_time() - began}


def cluster(source: str, workers: str) -> dict[str, Any]:
    """The library on a LocalCluster of so many processes with a thread each."""
    import distributed as dask_distributed

    from globece import distributed
    from globece.distributed import Task

    dask: Any = dask_distributed

    ex = explained()
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "memory_limit": 0}
    with (
        tempfile.TemporaryDirectory() as out,
        dask.LocalCluster(n_workers=int(workers), **options) as local,
        dask.Client(local) as client,
    ):
        client.run(by_batch, Task.of(ex), next(_batches(source)))  # compiles, or reads from the disk
        before = sum(client.run(time.process_time).values())
        start = time.perf_counter()
        found = distributed.apply(ex, source, out=f"{out}/all", client=client)
        seconds = time.perf_counter() - start
        cpu = sum(client.run(time.process_time).values()) - before
        peak = max(client.run(peak_mib).values())
        stored = sum(f.stat().st_size for f in Path(out, "all", "rows").glob("part-*"))
        records = sum(f.stat().st_size for f in Path(out, "all", "rows").glob("_part-*"))
        parts = len(list(Path(out, "all", "rows").glob("_part-*")))
    read = sum(f.stat().st_size for f in Path(source).iterdir())
    return {
        "workers": int(workers), "rows": found.n_rows, "affected": found.numbers.n_affected, "seconds": seconds,
        "cpu": cpu, "peak_mib": peak, "read": read, "stored": stored, "records": records, "parts": parts,
    }  # fmt: skip


def in_chunks(source: str, jobs: str) -> dict[str, Any]:
    """The same function by joblib over chunks in memory: nothing is read, written or summed up."""
    import joblib
    import pyarrow as pa
    import pyarrow.parquet as pq

    from globece.distributed import Task

    task = Task.of(explained())
    rows = pq.read_table(source).append_column(task.ids, pa.array(np.arange(_rows(source))))
    chunks = [rows.slice(at, 4 * BATCH) for at in range(0, len(rows), 4 * BATCH)]
    with joblib.Parallel(n_jobs=int(jobs), backend="loky") as pool:
        pool(joblib.delayed(by_batch)(task, chunk.slice(0, BATCH)) for chunk in chunks[: 2 * int(jobs)])
        start = time.perf_counter()
        found = pool(joblib.delayed(by_batch)(task, chunk) for chunk in chunks)
        seconds = time.perf_counter() - start
    return {"jobs": int(jobs), "rows": sum(n for n, _ in found), "seconds": seconds, "cpu": sum(c for _, c in found)}


def by_batch(task: Any, chunk: Any) -> tuple[int, float]:
    """Rows of the results of a chunk, and the time that they took."""
    from globece.distributed import threads

    began = time.process_time()
    with threads.limited(1, task.model.decide.model):
        n = sum(len(task(batch)) for batch in chunk.combine_chunks().to_batches(max_chunksize=BATCH))
    return n, time.process_time() - began


def _batches(source: str) -> Any:
    """Small batches with positions."""
    import pyarrow as pa

    from globece.distributed import Task
    from globece.distributed.sources import parquet

    for batch in parquet(source).parts[0].batches(Task.of(explained()).columns, 2_000):
        yield pa.Table.from_batches([batch])


def _rows(source: str) -> int:
    import pyarrow.dataset as ds

    return int(ds.dataset(source, format="parquet").count_rows())


def peak_mib() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# -- where the time goes -----------------------------------------------------------------------------------------------


def stages() -> dict[str, Any]:
    """Processor time per row of each stage, and how it grows with directions and trees."""
    import pyarrow as pa
    from xgboost import XGBClassifier

    import globece as gce
    from globece.case.affected import Case
    from globece.case.scaling import scale
    from globece.case.verification import confirmed
    from globece.compact import Rows
    from globece.distributed import Task
    from globece.distributed.engines import dumps
    from globece.distributed.sources import parquet
    from globece.distributed.summary import Summary
    from paper.cases import case
    from paper.data import split

    with tempfile.TemporaryDirectory() as name:
        write(Path(name) / "some", STAGE_ROWS)
        part = parquet(Path(name) / "some").parts[0]
        ex = explained()
        task = Task.of(ex)
        ex.model.decide.model.set_params(n_jobs=1)
        seconds: dict[str, float] = {}

        def timed(stage: str, work: Any) -> Any:
            began = time.process_time()
            found = work()
            seconds[stage] = seconds.get(stage, 0.0) + time.process_time() - began
            return found

        for batch in part.batches(task.columns, BATCH):
            task(batch)
            break
        batches = timed("read", lambda: list(part.batches(task.columns, BATCH)))
        affected = 0
        for batch in batches:
            rows = timed("encode", lambda b=batch: Rows.read(task.space, pa.Table.from_batches([b])))
            Z = rows.dense()
            decided = timed("predict", lambda Z=Z: task.model.favourable(Z))
            c = Case(task.model, rows, decided, task.cost, task.budget)
            some = c.part(np.arange(len(c.inputs)))
            affected += len(some.inputs)
            scaled = timed("scale", lambda s=some: scale(s, task.directions))
            timed("confirm", lambda s=some, k=scaled: confirmed(s, task.directions, k))
            outcome = task.outcome(batch)
            timed("sum up", lambda o=outcome: Summary.of(task, o))
            timed("results", lambda o=outcome: o.to_arrow("row"))
        n = sum(len(b) for b in batches)
        more = explained(4)
        by_directions = []
        for m in (1, 2, 4):
            began = time.process_time()
            scale(some, more.directions[:m])
            by_directions.append([m, 1e6 * (time.process_time() - began) / len(some.inputs)])
        heloc, (x, y, _, _) = case("heloc", "xgb"), split("heloc")
        by_trees = []
        for trees in (100, 200, 400):
            model = XGBClassifier(n_estimators=trees, max_depth=3, learning_rate=0.1, n_jobs=1).fit(x, y)
            core = gce.as_model(model, heloc.space).followed
            scale(some, task.directions, model=core)
            began = time.process_time()
            scale(some, task.directions, model=core)
            by_trees.append([trees, 1e6 * (time.process_time() - began) / len(some.inputs)])
    return {
        "rows": n, "affected": affected, "seconds": seconds, "task_bytes": len(dumps(task)),
        "trees": len(task.model.followed.tree_ensemble.trees.roots),  # type: ignore[union-attr]
        "by_directions": by_directions, "by_trees": by_trees,
    }  # fmt: skip


# -- a raw frame with strings ------------------------------------------------------------------------------------------


def raw(n: str) -> dict[str, Any]:
    """A frame with strings, and a LightGBM pipeline: each stage, and one prediction of the pipeline."""
    import pandas as pd
    from lightgbm import LGBMClassifier
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from globece import distributed

    rng = np.random.default_rng(0)
    rows = int(n)
    X = pd.DataFrame({name: rng.gamma(2.0, 20.0, rows).round(2) for name in ("income", "debt", "savings", "age")})
    for name, count in (("job", 40), ("region", 16), ("housing", 3), ("purpose", 8)):
        X[name] = rng.choice([f"{name} {i}" for i in range(count)], rows)
    y = (X["income"] - X["debt"] + 20 * (X["housing"] == "housing 1") + rng.normal(0, 15, rows) > 5).astype(int)
    texts = ["job", "region", "housing", "purpose"]
    steps = make_column_transformer((OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts),
                                    remainder="passthrough")  # fmt: skip
    model = make_pipeline(steps, LGBMClassifier(n_estimators=100, n_jobs=1, verbose=-1))
    some = slice(0, min(rows, 50_000))
    model.fit(X[some], y[some])
    with tempfile.TemporaryDirectory() as folder:
        X.to_parquet(f"{folder}/all.parquet", row_group_size=GROUP_ROWS)
        model.predict(X.head(1000))
        start, began = time.perf_counter(), time.process_time()
        model.predict(X)
        native_ = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - began}
        base = peak_mib()
        del X
        marks: list[tuple[str, float, float]] = []

        def note(progress: Any) -> None:
            marks.append((progress.stage, time.perf_counter(), time.process_time()))

        start, began = time.perf_counter(), time.process_time()
        found = distributed.explain(model, f"{folder}/all.parquet", out=f"{folder}/out", effort="quick", progress=note)
        total = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - began}
        ex = found.explanation
        direct = time.process_time()
        distributed.apply(ex, f"{folder}/all.parquet", out=f"{folder}/again")
        applied = time.process_time() - direct
    by_stage: dict[str, float] = {}
    last = began
    for stage, _, cpu in marks:
        by_stage[stage] = by_stage.get(stage, 0.0) + cpu - last
        last = cpu
    return {
        "rows": rows, "affected": found.numbers.n_affected, "native": native_, "total": total, "apply_cpu": applied,
        "stages": by_stage, "base_mib": base, "peak_mib": peak_mib(), "method": found.method,
    }  # fmt: skip


# -- in words ----------------------------------------------------------------------------------------------------------


def best(found: list[dict[str, Any]], key: str) -> float:
    """The least of some measurements: the others were disturbed."""
    return float(min(f[key] for f in found))


def ratios(result: dict[str, Any]) -> dict[str, float]:
    """What the targets are about, by wall time and by processor time."""
    by = {w: [c for c in result["clusters"] if c["workers"] == w] for w in (1, 2)}
    found: dict[str, float] = {}
    for key in ("seconds", "cpu"):
        one, two = best(by[1], key), best(by[2], key)
        found |= {f"gain_{key}": one / two, f"native_{key}": one / best(result["native"], key)}
        mine, theirs = ([p[side] for p in result["pairs"]] for side in ("here", "native"))
        found[f"here_{key}"] = best(mine, key) / best(theirs, key)
        found |= {f"joblib_{key}": two / best(result["joblib"], key)}
    found["memory"] = result["memory"][-1]["peak_mib"] / result["memory"][0]["peak_mib"]
    raw_ = result["raw"]
    found |= {f"raw_{key}": raw_["total"][key] / raw_["native"][key] for key in ("seconds", "cpu")}
    return found


def render(result: dict[str, Any]) -> str:
    r, n = ratios(result), result["rows"]
    by = {w: [c for c in result["clusters"] if c["workers"] == w] for w in (1, 2)}
    rows = [
        [f"{w} worker{'s' if w > 1 else ''} of a LocalCluster", f"{n / best(by[w], 'seconds'):,.0f}",
         f"{best(by[w], 'seconds'):,.1f}", f"{best(by[w], 'cpu'):,.1f}", f"{best(by[w], 'peak_mib'):,.0f}"]
        for w in (1, 2)
    ]  # fmt: skip
    jobs, alone_ = result["joblib"], result["native"]
    rows.append(["joblib, 2 processes, chunks in memory", f"{n / best(jobs, 'seconds'):,.0f}",
                 f"{best(jobs, 'seconds'):,.1f}", f"{best(jobs, 'cpu'):,.1f}", ""])  # fmt: skip
    rows.append(["reading and one native predict, 1 thread", f"{n / best(alone_, 'seconds'):,.0f}",
                 f"{best(alone_, 'seconds'):,.1f}", f"{best(alone_, 'cpu'):,.1f}", ""])  # fmt: skip
    targets = [
        ["2 workers against 1", "at least 1.7", f"{r['gain_seconds']:.2f}", f"{r['gain_cpu']:.2f} (1: no overhead)"],
        ["1 thread against reading and one native predict in 1 thread, in turn", "at most 4",
         f"{r['here_seconds']:.2f}", f"{r['here_cpu']:.2f}"],
        ["the same for 1 worker of a LocalCluster, all rows", "", f"{r['native_seconds']:.2f}",
         f"{r['native_cpu']:.2f}"],
        ["2 workers against joblib in memory", "at most 1.15", f"{r['joblib_seconds']:.2f}", f"{r['joblib_cpu']:.2f}"],
        ["peak memory per worker, most rows against fewest", "flat", f"{r['memory']:.2f}", ""],
        [f"strings and LightGBM, {result['raw']['rows']:,} rows, against one native predict", "at most 6",
         f"{r['raw_seconds']:.2f}", f"{r['raw_cpu']:.2f}"],
    ]  # fmt: skip
    memory = [[f"{m['rows']:,}", f"{m['peak_mib']:,.0f}"] for m in result["memory"]]
    raw_ = result["raw"]
    parts = [[stage, f"{seconds:.1f}"] for stage, seconds in raw_["stages"].items()]
    parts += [["one native predict", f"{raw_['native']['cpu']:.1f}"]]
    return f"""## Scale

{n:,} rows of HELOC, resampled with noise, in Parquet; its XGBoost model, one direction. The machine had
{result["cores"]} cores and a load of {result["load"]:.1f} before and {result["load_after"]:.1f} after: the higher the
load above the cores, the less wall times mean. Ratios of processor time are in the last column.

{table(["", "rows a second", "seconds", "processor seconds", "peak MiB per worker"], rows)}
{table(["", "target", "by wall time", "by processor time"], targets)}
{table(["rows", "peak MiB of the worker"], memory)}
What is read at a time is a row group, of {GROUP_ROWS:,} rows here and fewer in the smallest table.

A raw frame with strings through a LightGBM pipeline, {raw_["rows"]:,} rows, processor seconds by stage; the peak was
{raw_["peak_mib"]:,.0f} MiB, of which {raw_["base_mib"]:,.0f} before, with the frame in memory:

{table(["stage", "seconds"], parts)}"""


if __name__ == "__main__":
    what: dict[str, Any] = {
        "native": native,
        "here": here,
        "cluster": cluster,
        "in_chunks": in_chunks,
        "stages": stages,
        "raw": raw,
    }
    print(json.dumps(what[sys.argv[1]](*sys.argv[2:])))
