"""Model files of six libraries: whether each loads, predicts as before on every row, and is followed exactly."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from globece.io.frames import read_frame
from globece.io.model_files import load_model
from globece.io.trained_types import as_trained
from globece.models.compiling.adapt import as_model
from globece.space import FeatureSpace
from paper.markdown import table
from paper.saved_models import SAVED


def run() -> list[dict[str, Any]]:
    found = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that train and export
        for name, saved in SAVED.items():
            file, rows = Path(folder, f"{name}{saved.ending}"), Path(folder, "rows.csv")
            frame, y = saved.rows()
            expected = saved.make(frame, y, file)
            frame.to_csv(rows, index=False)
            found.append({"name": name, **_tried(file, rows, expected)})
    return found


def _tried(file: Path, rows: Path, expected: Any) -> dict[str, Any]:
    model = load_model(file)
    X = as_trained(model, read_frame(rows))
    equal = np.asarray(model.predict(X)) == expected
    space = FeatureSpace.from_frame(X)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        asked = as_model(model, space, favourable=1, rows=space.encode(X))
    reasons = [str(w.message).partition("not followed exactly: ")[2] for w in said]
    return {
        "loaded": type(model).__name__,
        "bytes": file.stat().st_size,
        "missing": int(X.isna().sum().sum()),
        "rows": len(equal),
        "equal": int(equal.sum()),
        "followed": type(asked.followed).__name__ if asked.exact else "",
        "why_not": next((r for r in reasons if r), ""),
    }


HOW = {"TreeEnsemble": "trees", "LinearModel": "half-spaces", "ReLUNetwork": "network"}


def render(result: list[dict[str, Any]]) -> str:
    rows = []
    for r in result:
        saved = SAVED[r["name"]]
        how = f"exactly, as {HOW[r['followed']]}" if r["followed"] else f"searched: {r['why_not']}"
        made = r["name"].split("-")[2] if saved.library == "scikit-learn" else r["name"].partition("-")[2]
        rows.append(
            [saved.library, made, f"`{saved.ending}`", saved.columns, f"{r['missing']:,}", f"`{r['loaded']}`", how,
             f"{r['equal']:,} of {r['rows']:,}"]
        )  # fmt: skip
    head = ["saved by", "model", "file", "columns", "missing values", "loads as", "followed", "equal predictions"]
    return (
        "## Model files\n\nModels of German Credit, trained and saved by their own library, loaded by globece and "
        "given the rows of a CSV file. Predictions are compared with those of the library itself, on the frame that it "
        "was trained on; where a model is followed, it was checked against the original as every compiled model is.\n\n"
        + table(head, rows)
    )
