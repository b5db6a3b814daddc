"""The function of one batch, and summaries that add up: the same numbers as in memory, to the last digit."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from globece.distributed import Task
from globece.distributed.charts import chart
from globece.distributed.engines import dumps
from globece.distributed.noting import noting
from globece.distributed.sources import with_positions
from globece.distributed.summary import Costs, Summary
from globece.distributed.sums import as_text, exact_sums, from_text, rounded
from globece.errors import GlobeCEWarning, InvalidDataError
from tests.distributed.problems import KINDS, problem


def batches(X, sizes, first=0):
    table = pa.Table.from_pandas(X, preserve_index=False)
    at = 0
    for size in sizes:
        part = table.slice(at, size).combine_chunks().to_batches()
        yield with_positions(part[0] if part else table.schema.empty_table().to_batches()[0], first + at)
        at += size


def split(n, k, seed):
    edges = np.sort(np.random.default_rng(seed).integers(0, n, k - 1))
    return np.diff([0, *edges, n]).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 3, 17])
def test_rows_are_those_of_apply(kind, k):
    p = problem(kind)
    whole = p.explanation.apply(p.X)
    task = Task.of(p.explanation)
    found = pa.Table.from_batches([task(b) for b in batches(p.X, split(len(p.X), k, k))]).to_pandas()
    best = whole.minimum_costs()
    affected = found[found["affected"]]
    assert found["row"].tolist() == list(range(len(p.X)))
    assert affected["row"].to_numpy().tobytes() == whole.rows.tobytes()
    assert affected["scalar"].to_numpy().tobytes() == np.where(best.direction < 0, np.inf, best.scalar).tobytes()
    assert affected["cost"].to_numpy().tobytes() == best.cost.tobytes()
    assert affected["direction"].to_numpy().astype(int).tolist() == best.direction.tolist()
    assert found.loc[~found["affected"], ["direction", "scalar", "cost"]].isna().all(axis=None)


@pytest.mark.parametrize("kind", KINDS)
def test_summaries_add_up_in_any_order(kind):
    p = problem(kind)
    task = Task.of(p.explanation, by=["housing"])
    whole = p.explanation.apply(p.X)
    texts = []
    for k, seed in ((1, 0), (3, 1), (17, 2)):
        parts = [Summary.of(task, task.outcome(b)) for b in batches(p.X, split(len(p.X), k, seed))]
        order = np.random.default_rng(seed).permutation(len(parts))
        total = Summary.none(task)
        for i in order:
            total = total + Summary.from_dict(json.loads(json.dumps(parts[i].to_dict())))
        assert total.everybody.numbers == whole.numbers
        assert total.rows == len(p.X)
        texts.append(json.dumps(total.to_dict()))
    assert len(set(texts)) == 1
    groups = Summary.from_dict(json.loads(texts[0])).groups
    assert {n: g.rows for n, g in groups.items()} == p.X["housing"].value_counts().to_dict()


def test_profile_is_that_of_all_costs_at_its_limits():
    p = problem("trees")
    whole = p.explanation.apply(p.X)
    found = Costs.of(whole.best_costs, whole.budget).profile()
    for i in (0, 1, 137, 500, 1000):
        at = whole.at(cost=float(found.limit[i]))
        assert (found.coverage[i], found.average_cost[i]) == (at.coverage, at.average_cost if at.n_covered else 0.0)


def test_variance_is_that_of_all_costs():
    p = problem("linear")
    whole = p.explanation.apply(p.X)
    paid = np.minimum(whole.best_costs, whole.budget)
    assert Costs.of(whole.best_costs, whole.budget).variance == pytest.approx(paid.var(ddof=1), rel=1e-9)


def test_a_function_is_sent_with_the_model_and_gives_the_same_in_a_fresh_process(tmp_path: Path):
    p = problem("trees")
    task = Task.of(p.explanation)
    batch = next(batches(p.X, [500]))
    data = dumps(task)
    assert len(data) < len(pickle.dumps(p.model)) + 200_000
    (tmp_path / "task").write_bytes(data)
    with pa.OSFile(str(tmp_path / "batch"), "wb") as file, pa.ipc.new_stream(file, batch.schema) as writer:
        writer.write_batch(batch)
    code = (
        "import pickle, sys, pyarrow as pa\n"
        "task = pickle.loads(open(sys.argv[1] + '/task', 'rb').read())\n"
        "batch = pa.ipc.open_stream(open(sys.argv[1] + '/batch', 'rb')).read_next_batch()\n"
        "out = task(batch)\n"
        "with pa.OSFile(sys.argv[1] + '/out', 'wb') as f, pa.ipc.new_stream(f, out.schema) as w:\n"
        "    w.write_batch(out)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, cwd=Path(__file__).parents[2])
    found = pa.ipc.open_stream((tmp_path / "out").read_bytes()).read_next_batch()
    assert found.equals(task(batch))


def test_an_empty_batch_gives_an_empty_result():
    p = problem("linear")
    task = Task.of(p.explanation, by="housing")
    batch = next(batches(p.X, [5])).slice(0, 0)
    assert len(task(batch)) == 0
    assert task(batch).schema.equals(task.schema(batch.schema))
    assert Summary.of(task, task.outcome(batch)).to_dict() == Summary.none(task).to_dict()


def test_identifiers_are_kept_and_must_be_there():
    p = problem("linear")
    X = p.X.head(20).assign(customer=[f"c{i}" for i in range(20)])
    task = Task.of(p.explanation, row_id="customer")
    batch = pa.Table.from_pandas(X, preserve_index=False).to_batches()[0]
    assert task(batch)["customer"].to_pylist() == X["customer"].tolist()
    with pytest.raises(InvalidDataError, match="lacks column"):
        task(batch.drop_columns(["customer"]))
    missing = pa.Table.from_pandas(X.assign(customer=[None, *X["customer"][1:]]), preserve_index=False).to_batches()[0]
    with pytest.raises(InvalidDataError, match="1 missing value"):
        task(missing)


@pytest.mark.parametrize("kind", KINDS)
def test_rules_charts_are_those_of_all_rows(kind):
    """A direction with rules ends its rows at breakpoints: the chart is the same. Otherwise ends may move by a step."""
    p = problem(kind)
    space = p.explanation.space
    ruled, glide = np.zeros((2, space.width))
    ruled[space["housing"].columns] = [0.3, 1.0, 0.0]
    ruled[space["income"].start] = 0.5
    glide[space["income"].start] = 1.0
    directions = np.array([ruled, glide])
    ex = replace(p.explanation, directions=directions)
    whole, task = ex.apply(p.X), Task.of(ex)
    total = Summary.none(task)
    for b in batches(p.X, split(len(p.X), 5, 0)):
        total = total + Summary.of(task, task.outcome(b))
    mine = [chart(whole.cost, delta, total.along[i], whole.n_affected) for i, delta in enumerate(directions)]
    theirs = [whole.rules_chart(i) for i in range(2)]
    assert mine[0] == theirs[0]
    assert sum(len(row.rules) for row in theirs[0].rows) > 1
    assert mine[1].rows[-1].moves == theirs[1].rows[-1].moves
    assert mine[1].rows[-1].coverage == theirs[1].rows[-1].coverage
    assert mine[1].rows[-1].cost == theirs[1].rows[-1].cost
    for one, other in zip(mine[1].rows, theirs[1].rows, strict=True):
        assert other.high <= one.high <= other.high * (1 + 1 / 64)


@pytest.mark.parametrize("seed", range(10))
def test_sums_are_exact(seed):
    """Of numbers of any size and sign, subnormal ones too: what fsum gives, in whatever parts."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=1_000) * 10.0 ** rng.integers(-320, 200, 1_000)
    index = rng.integers(0, 7, 1_000)
    whole = exact_sums(values, index, 7)
    parts = [exact_sums(values[i::3], index[i::3], 7) for i in range(3)]
    assert [sum(p) for p in zip(*parts, strict=True)] == whole
    assert [rounded(s) for s in whole] == [math.fsum(values[index == i].tolist()) for i in range(7)]
    assert [from_text(as_text(s)) for s in whole] == whole


def test_notes_belong_to_their_thread():
    """Two threads of a worker warn at the same time: each batch has its own notes, and the filters come back."""
    begin = threading.Barrier(2)

    def work(name):
        with noting() as notes:
            begin.wait()
            for _ in range(50):
                warnings.warn(name, GlobeCEWarning, stacklevel=1)
            begin.wait()
        return list(notes)

    filters, shown = warnings.filters[:], warnings.showwarning
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, ["a", "b"])) == [["a"], ["b"]]
    assert warnings.filters == filters
    assert warnings.showwarning is shown
