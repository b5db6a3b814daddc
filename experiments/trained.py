"""The same protocol and ours on the models trained here, where the table of results is about given ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from experiments import methods
from experiments.agreement import mean_interval
from experiments.cells import Cell, Data, Part, Run, Shown
from experiments.markdown import missing_rows, table
from experiments.models import KIND_NAMES, case
from paper.data import DATASETS, NAMES
from paper.models import KINDS
from paper.reference import PAPER

VERSION = 1
DEPENDS: tuple[str, ...] = ()
SEEDS = 3


def compute(run: Run, name: str, kind: str) -> Data:
    """The paper's protocol along exact rays, and ours at its defaults."""
    on = case(replace(run, models=None), name, kind)
    seeds = range(2 if run.quick else SEEDS)
    methods.warm(on)
    samples, rays = (30, 300) if run.quick else (1000, None)
    found = methods.protocol(on, name, seeds, samples)
    found |= {f"ours_{n}": methods.ours(on, n, seeds, rays) for n in (1, 3)}
    return {"dataset": name, "kind": kind, "affected": int(on.affected.sum()), "methods": found}


TEXT = """The same protocol and the same costs on the models that `make paper` trains itself, so that none of the above
hangs on twelve given files. Coverage / average cost and score are means over {seeds} seeds, on training rows; *unseen*
is the score on test rows. GLOBE-CE is followed along exact rays here, so its time is not measured.
"""


def show(found: Mapping[str, Data]) -> Shown:
    """One row a model."""
    rows, better = [], 0
    for r in found.values():
        m = r["methods"]
        better += sum(_score(m[a]) <= _score(m[b]) for a, b in (("ours_1", "globe_ce"), ("ours_3", "dglobe_ce")))
        row = [NAMES[r["dataset"]], KIND_NAMES[r["kind"]], f"{r['affected']:,}"]
        for ours, theirs in (("ours_1", "globe_ce"), ("ours_3", "dglobe_ce")):
            paper = PAPER[r["dataset"], r["kind"], theirs]
            row += [_share(m[theirs]), f"{_score(m[theirs]):.2f}", _share(m[ours]), f"**{_score(m[ours]):.2f}**"]
            row += [f"{m[ours]['test'].get('score', float('nan')):.2f}", f"{paper.coverage:g} / {paper.cost:g}"]
        rows.append(row)
    head = ["data", "model", "affected"]
    for name, n in (("GLOBE-CE", 1), ("dGLOBE-CE", 3)):
        head += [name, "score", f"ours, n = {n}", "score", "unseen", "the paper's model"]
    text = TEXT.format(seeds=SEEDS) + f"\nOurs has the lower score, or the same, in {better} of {2 * len(rows)}.\n\n"
    return Shown(text + table(head, rows) + missing_rows(PART, found) if rows else missing_rows(PART, found))


def _share(method: Data) -> str:
    runs = method["runs"]
    costs = [r["cost"] for r in runs if r["cost"] is not None]
    coverage = mean_interval([r["coverage"] for r in runs])[0]
    return f"{100 * coverage:.1f} / " + (f"{mean_interval(costs)[0]:.2f}" if costs else "-")


def _score(method: Data) -> float:
    return mean_interval([r["score"] for r in method["runs"]])[0]


PART = Part(
    key="trained",
    title="The same on models trained here",
    source="tab:results",
    cells=tuple(
        Cell(f"trained/{name}/{kind}", partial(compute, name=name, kind=kind), needs=(name,))
        for name in DATASETS
        for kind in KINDS
    ),
    show=show,
)
