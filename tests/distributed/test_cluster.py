"""A real Dask cluster of separate processes: workers that are killed, partitions of any number, audits."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import dask.array
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.delayed import delayed
from distributed import Client, LocalCluster

import globece as gce
from globece import distributed
from globece.errors import InvalidParameterError
from tests.distributed.problems import KINDS, cut, problem, table


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def results(found):
    return found.rows().sort_by("row"), json.dumps(found.summary.to_dict())


@pytest.mark.parametrize("kind", KINDS)
def test_a_cluster_gives_the_same_as_one_machine(kind, client, tmp_path):
    p = problem(kind)
    seen = [results(distributed.apply(p.explanation, cut(p.X, tmp_path / "in", 3), out=tmp_path / "here"))]
    for parts in (1, 3, 17):
        source = cut(p.X, tmp_path / f"in{parts}", parts)
        seen.append(results(distributed.apply(p.explanation, source, out=tmp_path / f"{parts}", client=client)))
    frame = dd.from_pandas(p.X, npartitions=3)
    seen.append(results(distributed.apply(p.explanation, frame, out=tmp_path / "frame", client=client)))
    for rows, summary in seen[1:]:
        assert rows.equals(seen[0][0])
        assert summary == seen[0][1]


def test_a_dask_frame_is_explained_like_the_rows_in_memory(client):
    p = problem("trees")
    found = distributed.explain(p.model, dd.from_pandas(p.X, npartitions=3), client=client, effort="quick", rng=3)
    whole = gce.explain(p.model, p.X, effort="quick", rng=3)
    assert found.directions.tobytes() == whole.directions.tobytes()
    assert found.numbers == whole.numbers


def test_a_worker_that_is_killed_changes_nothing(client, tmp_path):
    """Killed by its process id while it works: finished parts stay, and no row is lost or counted twice."""
    p = problem("trees")
    X = pd.concat([p.X] * 2, ignore_index=True)
    source = cut(X, tmp_path / "in", 24)
    whole = results(distributed.apply(p.explanation, source, out=tmp_path / "whole"))
    before = client.run(os.getpid)
    killed: list[int] = []

    def kill(progress):
        if progress.stage == "scaling rows" and progress.done and not killed:
            victim = next(iter(before.values()))
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    found = distributed.apply(p.explanation, source, out=tmp_path / "out", client=client, progress=kill)
    assert killed
    until = time.monotonic() + 30
    while len(client.run(os.getpid)) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    assert killed[0] not in client.run(os.getpid).values()
    rows, summary = results(found)
    assert rows.equals(whole[0])
    assert summary == whole[1]
    assert rows["row"].to_pylist() == list(range(len(X)))
    left = sorted(f.name for f in (tmp_path / "out" / "rows").iterdir() if not f.name.startswith("."))
    assert left == sorted(f.name for f in (tmp_path / "whole" / "rows").iterdir())


def test_an_audit_of_parts_is_that_of_the_rows_in_memory(client, tmp_path):
    p = problem("linear")
    X = p.X.assign(sex=np.where(np.arange(len(p.X)) % 3 == 0, "f", "m"))
    space = p.explanation.space.constrain(increasing=["age"])
    asked = {"by": "sex", "effort": "quick", "rng": 0, "n_directions": 1, "space": space, "favourable": 1}
    found = distributed.audit(p.model, cut(X, tmp_path / "in", 5), client=client, out=tmp_path / "out", **asked)
    whole = gce.audit(p.model, X, **asked)
    assert found.sample.verdict.conclusion == whole.verdict.conclusion
    for name in ("f", "m"):
        own = whole.explanation_of(name)
        mine = found.by_group[name]
        assert (mine.coverage, mine.average_cost, mine.score) == (own.coverage, own.average_cost, own.score)
        assert mine.rows == int((X["sex"] == name).sum())
        assert mine.score_interval[0] < mine.score < mine.score_interval[1]
        assert mine.coverage_interval[0] < mine.coverage <= mine.coverage_interval[1]
        assert found.exchange[name][name].score == own.score
    gap = found.gap("f", "m")
    assert gap.value == found.by_group["f"].score - found.by_group["m"].score
    assert gap.interval[0] < gap.value < gap.interval[1]
    rows = found.portfolio.rows().sort_by("row")
    assert rows["group"].to_pylist() == X["sex"].tolist()
    frame = distributed.audit(p.model, dd.from_pandas(X, npartitions=3), client=client, **asked)
    assert frame.by_group == found.by_group


def test_a_partition_of_another_type_is_named(client):
    p = problem("linear")
    frame = dd.from_delayed([_part(p.X.head(50)), _part(p.X.tail(50).assign(age="old"))], verify_meta=False)
    with pytest.raises(gce.GlobeCEError, match=r"column 'age' has type (large_)?string in partition 1"):
        distributed.apply(p.explanation, frame, client=client)


def _part(frame):
    return delayed(frame)


def test_threads_are_shared_among_workers(client, tmp_path):
    import numba

    def seen():
        from globece.distributed.threads import limited

        with limited(1):
            return numba.get_num_threads(), threading.active_count()

    assert {n for n, _ in client.run(seen).values()} == {1}


def test_what_is_no_client_and_no_frame_is_said(client):
    with pytest.raises(InvalidParameterError, match="a DataFrame is needed; got Array"):
        distributed.apply(problem("linear").explanation, dask.array.ones(5), client=client)
    with pytest.raises(InvalidParameterError, match="client must be"):
        distributed.apply(problem("linear").explanation, dd.from_pandas(table(50), npartitions=2), client=3)
