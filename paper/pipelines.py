"""Other models than the paper's, as a user has them: pipelines over raw columns of its data sets and of generated ones.

Each is a scikit-learn pipeline over a frame with text categories and, for some, missing values. Three kinds can be read
exactly; a support vector machine with an RBF kernel is a true black box.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paper.data import data_folder, load_dataset

TREES = ("lightgbm", "forest", "histogram")
GENERATED = ("census", "wide", "tiny", "codes")


def raw(name: str) -> tuple[Any, Any, int]:
    """The raw frame, the outcomes, and how many rows are for training; HELOC with its missing values put back."""
    data = load_dataset(name)
    frame = data.frame.copy()
    if name == "heloc":  # the paper fills them with medians, and so does the loader
        import pandas as pd

        folder = data_folder()
        assert folder is not None  # the loader has read it from there
        given = pd.read_csv(folder / "heloc.csv")[list(frame.columns)]
        given = given[(given >= 0).any(axis=1)].reset_index(drop=True)
        frame = given.where(given >= 0).astype(float)
    return frame, np.asarray(data.outcome), data.n_train


def pipeline(kind: str, categorical: list[str], trees: int = 100) -> Any:
    """A pipeline, not fitted: categories become one-hot columns, numbers stay as they are where the model lets them."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import SVC

    numbers: Any = "passthrough"
    if kind == "svm":
        numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((encoder, categorical), remainder=numbers)
    if kind == "lightgbm":
        from lightgbm import LGBMClassifier

        final = LGBMClassifier(n_estimators=trees, random_state=0, n_jobs=1, verbose=-1)
    else:
        final = {
            "forest": RandomForestClassifier(n_estimators=trees, min_samples_leaf=5, random_state=0),
            "histogram": HistGradientBoostingClassifier(max_iter=trees, random_state=0),
            "svm": SVC(random_state=0),
        }[kind]
    return make_pipeline(columns, final)


def generated(name: str) -> tuple[Any, Any, list[str], list[str]]:
    """A table of another shape than the paper's: frame, outcomes, categorical columns, and what nobody can change.

    ``census``: 20,000 people, few of them favourable, skewed and zero-inflated numbers, missing values. ``wide``: 60
    columns of which most do not matter. ``tiny``: 120 rows. ``codes``: categories with up to 60 values.
    """
    import pandas as pd

    rng = np.random.default_rng([GENERATED.index(name), 7])
    n, numbers, blocks = {"census": (20_000, 5, 6), "wide": (3000, 45, 15), "tiny": (120, 3, 3), "codes": (6000, 2, 4)}[
        name
    ]
    columns: dict[str, Any] = {}
    merit = np.zeros(n)
    trait = rng.normal(size=n)  # what columns have in common
    for i in range(numbers):
        x = 0.5 * trait + rng.normal(size=n)
        matters = i < 5
        if matters:
            merit += rng.uniform(0.3, 1.0) * (np.tanh(x) if i % 2 else np.minimum(x, 1.0))
        if i % 3 == 1:
            x = np.exp(x)
        elif i % 3 == 2:
            x = np.where(rng.random(n) < 0.6, 0.0, np.round(20 * np.abs(x)))  # mostly zero
        if name == "census" and i == 0:
            x = np.where(rng.random(n) < 0.1, np.nan, x)
        columns[f"number {i}"] = x
    for i in range(blocks):
        size = {"codes": 60, "wide": 3}.get(name, int(rng.integers(2, 12)))
        code = np.minimum(rng.geometric(2.0 / size, n) - 1 + (trait > 1.0), size - 1)
        gain = rng.normal(scale=0.7, size=size) if i < 6 else np.zeros(size)
        merit += gain[code]
        columns[f"code {i}"] = np.array([f"{c:02d}" for c in range(size)])[code]
    merit += 0.5 * columns["number 1"].clip(0, 2) * (columns["code 0"] == "01") + rng.logistic(scale=0.5, size=n)
    y = (merit > np.quantile(merit, 0.75)).astype(int)
    names = [f"code {i}" for i in range(blocks)]
    return pd.DataFrame(columns), y, names, [names[-1], "number 1"] if name == "census" else []
