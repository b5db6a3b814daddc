"""What a page's reader has before its first block: a table, a model, a result. README needs nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost as xgb

import globece as gce
from tests.documents.blocks import ROOT

FEATURES = ["income", "debt", "sex"]
CONFIG = """
[data]
file = "loans.csv"
[model]
file = "loans.ubj"
[outcome]
column = "approved"
favourable = 1
[search]
directions = 2
effort = "quick"
[audit]
by = ["sex"]
[features]
income = { may = "rise" }
sex = { may = "fixed" }
"""


def applicants(n: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Made-up applicants for a loan, and who got it: women only with more income."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"income": rng.integers(10, 90, n), "debt": rng.normal(5, 2, n).round(2)})
    frame["sex"] = rng.integers(0, 2, n)
    frame["approved"] = (frame["income"] - 4 * frame["debt"] - 25 * frame["sex"] > 25).astype(int)
    return frame


def lender(rows: pd.DataFrame, trees: int = 20) -> xgb.XGBClassifier:
    """A model of who gets the loan."""
    return xgb.XGBClassifier(n_estimators=trees, max_depth=3, n_jobs=1).fit(rows[FEATURES], rows["approved"])


def explained(names: dict[str, Any]) -> None:
    """A model, rows, unseen rows, a space, and an explanation."""
    rows = applicants()
    model, X = lender(rows), rows[FEATURES]
    space = gce.FeatureSpace.from_frame(X, immutable=["sex"], increasing=["income"])
    names |= {"gce": gce, "np": np, "pd": pd, "model": model, "X": X, "y": rows["approved"], "space": space}
    names |= {"X_new": applicants(200, seed=1)[FEATURES]}
    names["ex"] = gce.explain(model, X, favourable=1, space=space, n_directions=2, effort="quick", rng=0)


def on_disk(names: dict[str, Any]) -> None:
    """The files of the command line: a table, a model, a configuration, and results of two models."""
    explained(names)
    rows = applicants()
    rows.to_csv("loans.csv", index=False)
    names["model"].save_model("loans.ubj")
    with open("globece.toml", "w", encoding="utf-8") as file:
        file.write(CONFIG)
    other = gce.explain(
        lender(rows, 5), names["X"], favourable=1, space=names["space"], n_directions=2, effort="quick", rng=0
    )
    names |= {"champion": names["ex"], "challenger": other}
    names["champion"].to_json("champion.json")
    names["challenger"].to_json("challenger.json")


def in_words(names: dict[str, Any]) -> None:
    """A table alone, whose outcome is yes or no."""
    rows = applicants(400)
    rows["approved"] = np.where(rows["approved"] == 1, "yes", "no")
    rows.to_csv("loans.csv", index=False)


def recipes(names: dict[str, Any]) -> None:
    """The files of the command line, beside the recipes."""
    on_disk(names)
    Path("globece.toml").unlink()
    shutil.copytree(ROOT / "examples", "examples")


def exported(names: dict[str, Any]) -> None:
    """A pipeline over raw columns, and a network, to be exported."""
    import torch
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(40, 9, 99), "housing": rng.choice(["own", "rent"], 99)})
    encode = make_column_transformer((OneHotEncoder(), ["housing"]), remainder="passthrough")
    names["pipeline"] = make_pipeline(encode, LogisticRegression()).fit(X, X["age"] > 40)
    names |= {"torch": torch, "net": torch.nn.Linear(3, 2).eval(), "rows": torch.zeros(9, 3)}


WORLDS: dict[str, Callable[[dict[str, Any]], None]] = {
    "docs/audit.md": on_disk,
    "docs/command_line.md": in_words,
    "docs/costs.md": explained,
    "docs/how_to/extend.md": explained,
    "docs/how_to/gate.md": on_disk,
    "docs/how_to/one_person.md": explained,
    "docs/how_to/robust.md": explained,
    "docs/how_to/tools.md": explained,
    "docs/how_to/training.md": explained,
    "docs/model_files.md": exported,
    "docs/page.md": on_disk,
    "docs/reading.md": explained,
    "examples/README.md": recipes,
}
