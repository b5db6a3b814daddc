"""The models of the experiments, each as a problem to explain, and how near the trained ones come to the paper's.

A run is given a folder of models (`--models`, in the form that `paper/models.py` reads) or trains the paper's
models itself. Either way `case` is what every experiment asks.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.cells import Cell, Data, Part, Run, Shown
from experiments.markdown import missing_rows, percent, table
from experiments.training import trained
from paper.cases import Case, case_of
from paper.data import DATASETS, NAMES, split
from paper.models import KINDS, read_model
from paper.reference import MODELS

VERSION = 1
# a folder of models holds all but the last, which has no table in the paper
KIND_NAMES = {"lr": "logistic regression", "xgb": "XGBoost", "dnn": "neural network", "svm": "linear SVM"}
FILES = ("dnn.npz", "lr.npz", "mean.npy", "models.json", "std.npy", "xgb.json")
QUICK_ROWS = 50  # of each outcome


def case(run: Run, name: str, kind: str) -> Case:
    """A model over the training rows with the paper's costs and no ranges.

    A quick run keeps few rows of each outcome, and the costs of all rows.
    """
    on = case_of(model_of(run, name, kind), name, kind)
    if run.quick:
        x = _few(on, on.rows)
        on = replace(on, rows=x, affected=on.predict(x) == 0, test_rows=_few(on, on.test_rows))
    return on


def model_of(run: Run, name: str, kind: str) -> Any:
    """The model itself, with `predict` over encoded rows."""
    if run.models is None or kind not in KINDS:
        return trained(name, kind, run.quick)
    return read_model(run.models / name, kind)


def missing_files(folder: Path) -> list[str]:
    """What a folder of given models lacks."""
    return [f"{name}/{file}" for name in DATASETS for file in FILES if not (folder / name / file).is_file()]


def source(run: Run) -> str:
    """Which models a run explains, for its fingerprint: given ones by their content."""
    if run.models is None:
        return "trained"
    content = hashlib.sha256()
    for name in DATASETS:
        for file in FILES:
            content.update((run.models / name / file).read_bytes())
    return f"given {content.hexdigest()[:12]}"


def _few(on: Case, x: Any) -> Any:
    outcome = on.predict(x)
    return x[np.sort(np.concatenate([np.flatnonzero(outcome == o)[:QUICK_ROWS] for o in (0, 1)]))]


# -- how near the trained ones come -----------------------------------------------------------------------------------


def compute(run: Run, name: str, kind: str) -> Data:
    """Train a model, and say how often it is right."""
    start = time.perf_counter()
    quality = _quality(model_of(replace(run, models=None), name, kind), name)
    found: Data = {"dataset": name, "kind": kind, "trained": quality}
    found["seconds"] = time.perf_counter() - start
    if run.models is not None and kind in KINDS:
        found["given"] = _quality(model_of(run, name, kind), name)
    return found


def _quality(model: Any, name: str) -> Data:
    x, y, test, test_y = split(name)
    outcome = model.predict(x)
    return {
        "train": float((outcome == y).mean()),
        "test": float((model.predict(test) == test_y).mean()),
        "affected": int((outcome == 0).sum()),
        "rows": len(x),
    }


TEXT = """Trained on the first 80 % of the rows, unshuffled, with one seed; widths, depths, dropout, trees, penalties,
iterations and class weights are the paper's (`experiments/recipes.py`). The paper gives no learning rates, epochs or
batches, so these are ours. *Paper* is what its tables say: accuracy on training and test rows, and affected inputs;
*given* are the models of the folder that the run was given. XGBoost's splits are exact, as they were by default when
the paper was written. The linear SVM has no table in the paper."""


def show(found: Mapping[str, Data]) -> Shown:
    """Each model's accuracy beside the paper's."""
    rows = []
    for r in found.values():
        paper = MODELS.get((r["dataset"], r["kind"]))
        ours, given = r["trained"], r.get("given")
        rows.append(
            [
                NAMES[r["dataset"]],
                KIND_NAMES[r["kind"]],
                *_cells(ours),
                "" if paper is None else f"{paper.train} %",
                "" if paper is None else f"{paper.test} %",
                "" if paper is None else f"{paper.affected:,}",
                *(["", "", ""] if given is None else _cells(given)),
            ]
        )
    head = ["data", "model", "train", "test", "affected", "paper train", "test", "affected"]
    head += ["given train", "test", "affected"]
    return Shown(TEXT + "\n\n" + table(head, rows) + missing_rows(PART, found))


def _cells(quality: Data) -> list[str]:
    return [percent(quality["train"]), percent(quality["test"]), f"{quality['affected']:,}"]


PART = Part(
    key="models",
    title="The models",
    source="tab:DNNs, tab:XGB, tab:LR",
    cells=tuple(
        Cell(f"models/{name}/{kind}", partial(compute, name=name, kind=kind), needs=(name,))
        for name in DATASETS
        for kind in KIND_NAMES
    ),
    show=show,
)
