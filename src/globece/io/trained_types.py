"""Columns in the types that a model was trained on: a CSV holds text where training had categories.

XGBoost (from 3.1 on) and LightGBM keep the categories of their columns in the model. CatBoost keeps hashes of them, and
takes text.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from globece.errors import InvalidDataError, UnknownCategoryError, require
from globece.models.known import is_kind, library_class
from globece.models.trees.boosters import decoded, xgboost_document

SHOWN = 5  # values in a message


def as_trained(model: Any, frame: Any) -> Any:
    """The frame with the categorical columns of a booster in the type that it was trained on.

    Parameters
    ----------
    model
        A model; only XGBoost's, LightGBM's and CatBoost's change anything.
    frame
        A pandas, Polars or PyArrow frame. Where categories are needed, a pandas frame comes back.

    Raises
    ------
    UnknownCategoryError
        Where a column holds a category that the model was not trained on.

    Examples
    --------
    >>> import pandas as pd, xgboost
    >>> X = pd.DataFrame({"home": ["own", "rent", "own", "rent"]})
    >>> model = xgboost.XGBClassifier(n_estimators=1, enable_categorical=True)
    >>> model = model.fit(X.astype("category"), [1, 0, 1, 0])
    >>> as_trained(model, X)["home"].dtype.name
    'category'
    """
    wanted = trained_categories(model)
    known = {name.replace(" ", "_"): name for name in nw.from_native(frame, eager_only=True).columns}
    known |= {name: name for name in known.values()}
    columns = {known[name]: values for name, values in wanted.items() if name in known}
    if not columns:
        return frame
    pd = require("pandas", extra="frames", caller="a model with categories")
    found = nw.from_native(frame, eager_only=True).to_pandas()
    changed = {}
    for name, values in columns.items():
        column = found[name]
        changed[name] = _text(column, name) if values is None else _category(pd, column, name, values)
    return found.assign(**changed)


def trained_categories(model: Any) -> dict[str, tuple[Any, ...] | None]:
    """The categories of each categorical column by its name in the model; ``None`` for text whose values it hashes."""
    library = getattr(library_class(model), "__module__", "").partition(".")[0]
    if is_kind(model, "globece", ("LightGBMClassifier", "LightGBMRegressor")):
        return dict(model.categories_)
    if library == "catboost":
        names = model.feature_names_
        return {str(names[i]): None for i in model.get_cat_feature_indices()}
    if library == "xgboost" and "c" in (model.get_booster().feature_types or []):
        return _xgboost(model)
    return {}


def _xgboost(model: Any) -> dict[str, tuple[Any, ...] | None]:
    booster = model.get_booster()
    grown = xgboost_document(model)["learner"]["gradient_booster"]
    encodings = grown.get("gbtree", grown)["model"].get("cats", {}).get("enc", [])
    names = booster.feature_names or []
    found: dict[str, tuple[Any, ...] | None] = {}
    for i, (name, kind) in enumerate(zip(names, booster.feature_types, strict=False)):
        if kind == "c":
            found[name] = decoded(encodings[i]) if i < len(encodings) else ()
    return found


def _text(column: Any, name: str) -> Any:
    """A column as text, as CatBoost reads categories; whole numbers and truth values too."""
    missing = int(column.isna().sum())
    if missing:
        raise InvalidDataError(
            f"column {name!r} misses {missing:,} value(s), and CatBoost takes no missing category: replace them by the "
            "same text as in training"
        )
    if column.dtype.kind == "f":
        raise InvalidDataError(f"column {name!r} holds fractions, and the model was trained on it as categories")
    return column.astype(str)


def _category(pd: Any, column: Any, name: str, values: tuple[Any, ...]) -> Any:
    """A column as a pandas category with these values, in this order."""
    if not values:  # a file of XGBoost before 3.1: its categories are codes
        if column.dtype.kind not in "iu":
            raise InvalidDataError(
                f"column {name!r} was categorical in training, and the model does not hold its categories: XGBoost "
                "keeps them from 3.1 on; train it again on a frame with category columns"
            )
        values = tuple(range(int(column.max()) + 1))
    present = column[column.notna()]
    seen = {_key(v, values): v for v in present.unique().tolist()}
    unknown = sorted((str(v) for key, v in seen.items() if key is None or key not in set(values)), key=str)
    if unknown:
        raise UnknownCategoryError(
            f"column {name!r} holds {_listed(unknown)}, which the model was not trained on; it knows {_listed(values)}"
        )
    back = {v: key for key, v in seen.items()}
    cells = np.array(
        [None if v is None else back[v] for v in column.astype(object).where(column.notna(), None)], object
    )
    return pd.Series(pd.Categorical(cells, categories=list(values)), index=column.index)


def _key(value: Any, values: tuple[Any, ...]) -> Any:
    """The category that a value stands for: numbers that were text in training are their digits."""
    if value in values and isinstance(value, bool) == isinstance(values[values.index(value)], bool):
        return values[values.index(value)]
    if isinstance(value, bool | int) and str(value) in values:
        return str(value)
    return value if isinstance(value, str) and value in values else None


def _listed(values: Any) -> str:
    shown = [str(v) for v in list(values)[:SHOWN]]
    more = len(values) - len(shown)
    return ", ".join(map(repr, shown)) + (f" and {more:,} more" if more > 0 else "")
