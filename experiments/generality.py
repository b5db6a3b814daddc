"""Beyond the paper: other models, as a user has them, over the raw columns of the same four data sets.

Each model is a scikit-learn pipeline over a frame with text categories and, for HELOC, missing values, handed to
`explain` as it is. Three kinds can be read exactly; a support vector machine with an RBF kernel is a true black box.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

from experiments.cells import Cell, Data, Part, Run, Shown
from experiments.markdown import missing_rows, percent, table
from experiments.methods import measures, on_test
from paper.data import DATASETS, NAMES, load_dataset
from paper.pipelines import pipeline, raw

VERSION = 1
DEPENDS: tuple[str, ...] = ()
KINDS = {
    "lightgbm": "LightGBM",
    "forest": "random forest",
    "histogram": "HistGradientBoosting",
    "svm": "SVM, RBF kernel",
}
SVM_TRAINED = 1500  # rows, as a kernel machine's predictions get slower with each
SVM_EXPLAINED = 600
SVM_RAYS = 2000  # each is searched by many predictions
QUICK_ROWS = 80


def compute(run: Run, name: str, kind: str) -> Data:
    """Fit, explain with three directions, and apply them to unseen rows."""
    from globece import explain

    frame, y, n = raw(name)
    train, test = frame.iloc[:n], frame.iloc[n:]
    trained = slice(0, SVM_TRAINED if kind == "svm" else n)
    if run.quick:
        train, test, trained = train.iloc[:QUICK_ROWS], test.iloc[:QUICK_ROWS], slice(0, QUICK_ROWS)
    model = pipeline(kind, [c for c in frame.columns if c in load_dataset(name).categorical], 10 if run.quick else 100)
    with warnings.catch_warnings():
        # columns change names within a pipeline, a category may be new, and the table says which models are searched
        for known in ("valid feature names", "unknown categories", "searched as a black box"):
            warnings.filterwarnings("ignore", message=f".*{known}.*")
        start = time.process_time()
        model.fit(train.iloc[trained], y[:n][: len(train)][trained])
        fitted = time.process_time() - start
        explained = train.iloc[:SVM_EXPLAINED] if kind == "svm" else train
        start = time.process_time()
        found = explain(model, explained, n_directions=3, rng=0, **_effort(kind, run.quick))
        seconds = time.process_time() - start
        seen = test.iloc[:SVM_EXPLAINED] if kind == "svm" else test
        unseen = found.apply(_known(found.space, seen))
        accuracy = float((model.predict(train) == y[:n][: len(train)]).mean())
        test_accuracy = float((model.predict(test) == y[n:][: len(test)]).mean())
    return {
        "dataset": name,
        "kind": kind,
        "trained": len(train.iloc[trained]),
        "explained": len(explained),
        "accuracy": accuracy,
        "test_accuracy": test_accuracy,
        "method": found.provenance.method,
        "calls": found.provenance.model_calls,
        "rows": found.provenance.model_rows,
        "affected": found.n_affected,
        "missing": int(explained.isna().any(axis=1).sum()),
        "train": measures(found.best_costs),
        "test": on_test([unseen.best_costs]),
        "fit_seconds": fitted,
        "seconds": seconds,
    }


def _effort(kind: str, quick: bool) -> dict[str, Any]:
    from globece import Climb, Settings

    if quick:
        return {"search": Climb(rays=100), "settings": Settings(grid=16)}
    return {"search": Climb(rays=SVM_RAYS)} if kind == "svm" else {}


def _known(space: Any, rows: Any) -> Any:
    """The unseen rows whose categories the training rows have; the others have no place in the space."""
    for f in space.features:
        if f.is_block:
            rows = rows[rows[f.name].isin(list(f.categories))]
    return rows


TEXT = """The paper has three kinds of models over encoded columns. Here each of four others is a scikit-learn pipeline
over the raw columns (text categories; HELOC with its missing values), and `explain(model, frame, n_directions=3)`
gets it as it is, with the library's own ranges and costs, so scores do not compare with those above. *Read* says how
minimum scalars come about: exactly, from the model's own structure, or by search. *Calls* are calls of the model, each
with many rows. The support vector machine is trained on the first {trained:,} rows and explained on the first
{explained:,}, with {rays:,} rays; times are of one core, the first reading of compiled kernels included.
"""


def show(found: Mapping[str, Data]) -> Shown:
    """One row a model."""
    rows = []
    for r in found.values():
        train, test = r["train"], r["test"]
        rows.append(
            [
                NAMES[r["dataset"]],
                KINDS[r["kind"]],
                percent(r["accuracy"]),
                percent(r["test_accuracy"]),
                "exactly" if r["method"] == "exact" else "by search",
                f"{r['affected']:,}",
                _found(train),
                "-" if train["score"] is None else f"**{train['score']:.2f}**",
                f"{test['affected']:,}",
                _found(test) if test["affected"] else "-",
                _interval(test) if test["affected"] else "-",
                f"{r['calls']:,}",
                f"{r['seconds']:.1f} s",
            ]
        )
    head = ["data", "model", "accuracy", "on test", "read", "affected", "coverage / cost", "score"]
    head += ["affected, test", "coverage / cost", "score (95 %)", "calls", "time"]
    text = TEXT.format(trained=SVM_TRAINED, explained=SVM_EXPLAINED, rays=SVM_RAYS)
    return Shown(text + "\n" + (table(head, rows) if rows else "") + missing_rows(PART, found))


def summary(found: Mapping[str, Data]) -> list[str]:
    """What the table comes to, for the top of the page."""
    mine = [data for name, data in found.items() if name.startswith("generality/")]
    if not mine:
        return []
    exact = sum(r["method"] == "exact" for r in mine)
    lowest = min((r["train"]["coverage"] for r in mine if r["affected"]), default=1.0)
    return [
        f"Beyond the paper, {len(mine)} pipelines over raw columns were explained as they are: {exact} read exactly, "
        f"{len(mine) - exact} by search. The lowest coverage with three directions is {percent(lowest)}."
    ]


def _found(m: Data) -> str:
    cost = "-" if m["cost"] is None else f"{m['cost']:.2f}"
    return "-" if m["coverage"] is None else f"{100 * m['coverage']:.1f} / {cost}"


def _interval(m: Data) -> str:
    return f"{m['score']:.2f} ({m['interval'][0]:.2f} to {m['interval'][1]:.2f})"


PART = Part(
    key="generality",
    title="Other models, over raw columns",
    source="beyond the paper",
    cells=tuple(
        Cell(f"generality/{name}/{kind}", partial(compute, name=name, kind=kind), needs=(name,))
        for name in DATASETS
        for kind in KINDS
    ),
    show=show,
)
