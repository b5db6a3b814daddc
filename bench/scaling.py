"""docs/scaling.md, from what bench/scale.py measured: what a row costs, and the arithmetic past this machine."""

from __future__ import annotations

from typing import Any

from bench.scale import best
from paper.markdown import table

LARGE = 1_000_000_000  # rows
WORKERS = 100
DIRECTIONS = 3
OVERHEAD = 1.25  # workers that wait for the last one, and a scheduler: assumed

HEAD = """# Large tables

Written by `make bench-scale` from `bench/results/scale.json`; no figure here is typed.

## How it works

Directions are searched on a sample; then one pass over all rows scales them. The function of one batch
(`globece.distributed.Task`) takes an Arrow record batch and returns one: identifier, affected, direction, scalar,
cost, group. It carries the space, the costs, the directions, the compiled model and the user's own model, which
confirms every counterfactual. Engines call it on the parts of a table:

| engine | how | for |
|---|---|---|
| this process | `explain("big.parquet")`, `globece explain big.parquet --out DIR` | one machine, all its cores |
| processes | `jobs=4` | one machine, models that use one core |
| Dask | `client=Client(...)`; Parquet or a Dask DataFrame | a cluster |
| Spark | a Spark DataFrame with `row_id=`, or `globece.distributed.on_spark.scaled` | a cluster |

Nothing but the results grows with the rows. A summary is counts, largest values and exact sums (whole numbers of
2**-1074), so it adds up to the same bytes however the rows are divided. A part, at least 200,000 rows or a row group,
is the unit that is lost with a worker: its results are renamed into place, then its record. A run that is started
again in the same folder keeps every part that has a record, if rows, model, directions and costs are the same.

What is known of a large table and what is not:

- `Portfolio.summary` has counts and sums over all rows; the profile is exact at 1,001 limits on cost, the rules chart
  at the breakpoints of its direction.
- Directions are searched on a sample. It is large enough for the score to be known to within 1 % (its 95 % interval),
  for a search that a pilot did; size, score and interval are in `Portfolio.sampled` and in the provenance. The pass
  then gives the score on all rows.
- That the rows are the same when a run is started again is told by the files' paths, sizes and times. A Dask or Spark
  DataFrame has none of these: there only the number of rows of each partition is compared.
- An audit's tests and verdict are of the sample; the groups' measures and intervals are of all rows.
- The model decides about every row and confirms every counterfactual. That compiled and original agree is checked on
  the sample, and in every batch on some rays; if they disagree anywhere, the run starts again and searches with the
  original alone.

## Threads

Here, one part at a time uses all cores: Numba's threads, and those of the model. With `jobs=n` each of n processes
gets its share, set before its libraries are imported (OpenMP, BLAS, Numba) and in the model's `n_jobs`. On Dask and
Spark a task uses one thread, whatever the model's `n_jobs` says; give a cluster as many tasks as cores.

A GPU is a matter of the model: one whose `first_flip` runs there takes the place of the compiled model in
`Task.model`, and `batch_rows` says how many rays it gets at a time.
"""


def page(result: dict[str, Any], machine: str) -> str:
    """The page."""
    s = result["stages"]
    n, affected = s["rows"], s["affected"]
    share = affected / n
    micro = {stage: 1e6 * seconds / n for stage, seconds in s["seconds"].items()}
    whole = best([c for c in result["clusters"] if c["workers"] == 1], "cpu") / result["rows"] * 1e6
    one = next(c for c in result["clusters"] if c["workers"] == 1)
    (m1, k1), *_, (m4, k4) = s["by_directions"]
    more = (k4 - k1) / (m4 - m1) * share
    (t1, c1), *_, (t4, c4) = s["by_trees"]
    tree = (c4 - c1) / (t4 - t1) * share
    parts = one["rows"] / one["parts"]
    rows = [[stage, f"{value:.2f}"] for stage, value in micro.items()]
    rows += [["all of it, in a worker", f"{whole:.2f}"]]
    per_row = whole + (DIRECTIONS - 1) * more
    seconds = per_row * LARGE / 1e6 / WORKERS * OVERHEAD
    read, stored = (one[key] / one["rows"] for key in ("read", "stored"))
    n_parts = LARGE / parts
    plan = [
        ["processor time per row, 1 direction", f"{whole:.2f} us", "measured"],
        ["for each further direction", f"{more:.2f} us per row", "measured"],
        ["for each further tree (depth 3)", f"{1e3 * tree:.1f} ns per row", "measured"],
        [f"per row with {DIRECTIONS} directions", f"{per_row:.2f} us", "computed"],
        [f"{LARGE:,} rows on {WORKERS} workers of one core, if nothing is in the way",
         f"{per_row * LARGE / 1e6 / WORKERS / 60:,.1f} minutes", "extrapolated"],
        [f"the same with {OVERHEAD - 1:.0%} for stragglers and scheduling", f"{seconds / 60:,.1f} minutes",
         "extrapolated; the percentage is assumed"],
        ["read from storage", f"{read:.0f} bytes per row, {read * LARGE / 1e9:,.0f} GB", "measured, extrapolated"],
        ["read by each worker", f"{read * LARGE / WORKERS / seconds / 1e6:,.0f} MB/s", "extrapolated"],
        ["results", f"{stored:.1f} bytes per row, {stored * LARGE / 1e9:,.1f} GB", "measured, extrapolated"],
        ["the function with its model, sent to each worker once",
         f"{s['task_bytes'] / 1e6:.2f} MB, {s['task_bytes'] * WORKERS / 1e6:,.0f} MB in all", "measured, extrapolated"],
        ["summaries, as they are recorded",
         f"{one['records'] / one['parts'] / 1e3:,.0f} kB per part, "
         f"{one['records'] / one['parts'] * n_parts / 1e6:,.0f} MB in {n_parts:,.0f} parts",
         "measured, extrapolated"],
        ["memory per worker", f"{result['memory'][-1]['peak_mib']:,.0f} MiB", "measured; bounded by a row group"],
    ]  # fmt: skip
    return f"""{HEAD}
## What a row costs

Measured on {n:,} rows of HELOC (23 features, {share:.0%} of them affected) with an XGBoost model of {s["trees"]} trees,
one direction, one thread ({machine}); microseconds of processor time per row:

{table(["stage", "per row"], rows)}
Reading and one native predict take {1e6 * best(result["native"], "cpu") / result["rows"]:.2f} in the same way.

## Past this machine

Measured with {result["rows"]:,} rows; more than that, and more than two workers, are extrapolated: that storage
delivers, that a scheduler hands out parts quickly enough, and that workers are alike was not measured.

{table(["", "", ""], plan)}"""
