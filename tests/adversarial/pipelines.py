"""Random pipelines: steps that take the table's columns apart and together, a model behind them, trained quickly.

What comes out is a subject: the model as its user has it, what is asked of it, and the user's own way to read its
answers, written here once more so that nothing of ours stands between.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC

from tests.adversarial import models, networks, oddities, rows
from tests.adversarial.tables import Table


class Untrainable(Exception):
    """This model does not go with this table: no problem of ours; another one is drawn."""


@dataclass(frozen=True)
class Subject:
    """A model as its user has it.

    Attributes
    ----------
    kind
        What the counts call it.
    model
        What is given to globece.
    asked
        ``favourable`` and ``threshold``, as given to globece.
    decide
        Which native rows get the favourable outcome, as the user finds out.
    score
        The number that the decision cuts, where there is one, and the cut: to tell a boundary from an outcome.
    single
        Whether it computes in single precision.
    noise
        How far its scores of such rows are off by its own rounding, where that is known.
    """

    kind: str
    model: Any
    asked: dict[str, Any]
    decide: Callable[[Any], NDArray[np.bool_]] = field(repr=False)
    score: Callable[[Any], NDArray[np.float64]] | None = field(default=None, repr=False)
    single: bool = False
    noise: Callable[[Any], float] | None = field(default=None, repr=False)


def draw(rng: np.random.Generator, table: Table) -> Subject:
    """A trained subject on this table; of several that cannot be trained, the last says why."""
    why: Exception | None = None
    for _ in range(6):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = _subject(rng, table)
                outcomes, noise = found.decide(table.X), _is_noise(found, table)
        except Exception as error:
            why = error
            continue
        if outcomes.shape != (table.n_rows,) or outcomes.all():
            why = ValueError(f"{found.kind}: everybody is favourable")
        elif noise:
            why = ValueError(f"{found.kind}: its scores are rounding errors")
        else:
            return found
    raise Untrainable(f"{type(why).__name__}: {why}")


def _is_noise(subject: Subject, table: Table) -> bool:
    """Whether a model answers about the same rows differently in another batch, by more than rounding.

    One with weights of 1e13 does, and one behind the components of columns that are alike.
    """
    for ask in (None if subject.single else subject.score, _made_by_steps(subject.model)):
        if ask is None:
            continue
        whole = ask(table.X)
        for n in (1, 2, 3, 7, 40):
            index = np.arange(table.n_rows)[-n:]
            try:
                some = ask(rows.take(table.X, index))
            except ValueError:  # a few models take no single row
                continue
            if np.abs(some - whole[index]).max(initial=0.0) > (1e-8 if ask is subject.score else 1e-4) * max(
                np.abs(whole).max(initial=0.0), 1e-300
            ):
                return True
    return False


def _made_by_steps(model: Any) -> Callable[[Any], NDArray[np.float64]] | None:
    """What a pipeline's steps make of rows, if that is a matrix of numbers."""
    while isinstance(model, (FrozenEstimator, oddities.OnPandas)):
        model = getattr(model, "estimator", None) or getattr(model, "model", None)
    if not isinstance(model, Pipeline) or len(model) < 2:
        return None

    def made(X: Any) -> NDArray[np.float64]:
        found = model[:-1].transform(X)
        found = found.toarray() if hasattr(found, "toarray") else np.asarray(found)
        return np.nan_to_num(found.astype(float)) if found.dtype.kind in "fiub" else np.zeros((len(found), 1))

    return made


def _subject(rng: np.random.Generator, table: Table) -> Subject:
    plain = all(c.is_number or c.type in ("onehot", "codes", "bool") for c in table.columns)
    gaps = any(c.missing.any() for c in table.columns)
    which = rng.random()
    if which < 0.08 and plain and not gaps and table.backend in ("matrix", "pandas"):
        return _module(rng, table)
    if which < 0.13:
        return _function(rng, table)
    if which < 0.27:
        return _regression(rng, table)
    if which < 0.3:
        model = _fitted(rng, table, models.detectors(rng), None)
        return _classifier("detector", model, {"favourable": 1}, 1)
    make = models.CLASSIFIERS[int(rng.choice(len(models.CLASSIFIERS), p=models.SHARES))]
    final = make(rng)
    pairs: list[list[Any]] = [[0, 1], ["no", "yes"], [False, True]]
    names = pairs[int(rng.choice(3, p=[0.7, 0.2, 0.1]))]
    if isinstance(final, (xgboost.XGBClassifier, xgboost.XGBRFClassifier)):
        names = [0, 1]
    y = np.array(names)[table.y.astype(int)]
    if rng.random() < 0.08 and names == [0, 1] and not isinstance(final, (oddities.Stubborn, oddities.Bent)):
        y = y + (rng.random(len(y)) < 0.3)  # a third class
    model = _fitted(rng, table, final, y)
    kind = type(final).__name__
    if isinstance(model, oddities.Asking):
        return _classifier(f"function of {kind}", model, {"favourable": names[1]}, names[1], call=True)
    if type(final).__module__.startswith("tests."):
        kind = f"odd {kind}"
    return _asked(rng, kind, model)


def _asked(rng: np.random.Generator, kind: str, model: Any) -> Subject:
    """A classifier, its favourable class and perhaps a threshold."""
    classes = np.asarray(model.classes_).tolist()
    asked: dict[str, Any] = {}
    wanted = classes[1] if len(classes) == 2 else classes[int(rng.integers(len(classes)))]
    if len(classes) != 2 or rng.random() < 0.25:
        wanted = classes[int(rng.integers(len(classes)))]
        asked["favourable"] = wanted
    single = _is_single(model)
    if rng.random() < 0.25 and hasattr(model, "predict_proba"):
        cut = float(rng.choice([0.25, 0.5, 0.6, 0.8]))
        place = classes.index(wanted)
        return Subject(
            kind,
            model,
            {**asked, "threshold": cut},
            lambda X: np.asarray(model.predict_proba(X))[:, place] >= cut,
            lambda X: np.asarray(model.predict_proba(X), dtype=float)[:, place] - cut,
            single,
        )
    return _classifier(kind, model, asked, wanted)


def _classifier(kind: str, model: Any, asked: dict[str, Any], wanted: Any, call: bool = False) -> Subject:
    predict = model if call else model.predict

    def decide(X: Any) -> NDArray[np.bool_]:
        return np.asarray(np.asarray(predict(X)).ravel() == wanted)

    score = None
    if kind == "MLPClassifier" and not call and len(model.classes_) == 2:
        place = list(model.classes_).index(wanted)

        def score(X: Any) -> NDArray[np.float64]:
            return np.asarray(model.predict_proba(X), dtype=float)[:, place] - 0.5

    single = _is_single(model)
    if call or single or not _is_sum(model):
        return Subject(kind, model, asked, decide, score, single)
    sign = 1.0 if model.classes_[1] == wanted else -1.0

    def summed(X: Any) -> NDArray[np.float64]:
        return sign * np.asarray(model.decision_function(X), dtype=float).ravel()

    return Subject(kind, model, asked, decide, summed, single, functools.partial(_off_by, model))


def _is_sum(model: Any) -> bool:
    """Whether a classifier's score of two classes is one sum of products."""
    last = model[-1] if isinstance(model, Pipeline) else model
    if isinstance(last, SVC):
        return bool(last.kernel == "linear" and len(last.classes_) == 2)
    known = type(last).__module__.startswith("sklearn.") and hasattr(last, "decision_function")
    return known and len(getattr(last, "coef_", ())) == 1


def _off_by(model: Any, X: Any) -> float:
    """The largest rounding error of such scores: against their sums in more than double precision.

    Large products may cancel in them: those with coefficients of columns that are nearly alike, or with the support
    vectors of a machine that was stopped early.
    """
    last, seen = (model[-1], model[:-1].transform(X)) if isinstance(model, Pipeline) else (model, X)
    said = np.asarray(last.decision_function(seen)).ravel()
    if isinstance(last, SVC):
        rows, vectors, dual = map(_widened, (seen, last.support_vectors_, last.dual_coef_))
        exact = (rows @ vectors.T) @ dual.ravel()
    else:
        exact = _widened(seen) @ _widened(last.coef_).ravel()
    return float(np.abs(said - exact - np.longdouble(np.ravel(last.intercept_)[0])).max(initial=0.0))


def _widened(matrix: Any) -> NDArray[np.longdouble]:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.longdouble)


def _is_single(model: Any) -> bool:
    """Whether a part of it is known to compute in single precision."""
    parts = [model]
    while parts:
        part = parts.pop()
        if type(part).__module__.partition(".")[0] in ("xgboost", "catboost", "torch"):
            return True
        if isinstance(part, (list, tuple)):
            parts += list(part)
        elif hasattr(part, "get_params") or isinstance(part, (oddities.OnPandas, oddities.Asking)):
            parts += [v for v in vars(part).values() if hasattr(v, "__dict__") or isinstance(v, (list, tuple))]
    return False


def _module(rng: np.random.Generator, table: Table) -> Subject:
    X = oddities.as_matrix(table.X)
    kind, module = networks.draw(rng, X)

    def score(R: Any) -> NDArray[np.float64]:
        return networks.scored(module, oddities.as_matrix(R))

    def decide(R: Any) -> NDArray[np.bool_]:
        return networks.decided(module, oddities.as_matrix(R))

    def noise(R: Any) -> float:
        return networks.noise(module, oddities.as_matrix(R))

    if noise(table.X) > 1e-3 * np.ptp(score(table.X)):
        raise Untrainable("its scores are rounding errors")
    return Subject(kind, module, {}, decide, score, not kind.endswith("double"), noise)


def _function(rng: np.random.Generator, table: Table) -> Subject:
    numeric = [c for c in table.columns if c.is_number]
    if not numeric or (table.backend == "matrix" and len(numeric) < len(table.names)):
        raise Untrainable("no numbers for a function")
    names = [c.name for c in numeric]
    rule = oddities.Rule(
        str(rng.choice(["plane", "circle", "waves", "largest"])), names, table.X, rng.normal(size=len(names))
    )
    return Subject(f"function {rule.kind}", rule, {}, lambda X: rule(X) == 1)


def _regression(rng: np.random.Generator, table: Table) -> Subject:
    final = models.regressors(rng)
    y = 1.0 + table.y + 0.3 * rng.random(table.n_rows)
    model = _fitted(rng, table, final, y)
    if isinstance(model, oddities.Asking):
        model = model.model if table.backend in ("pandas", "matrix") else oddities.OnPandas(model.model)
    said = np.asarray(model.predict(table.X), dtype=float).ravel()
    if np.ptp(said) == 0:
        raise Untrainable("a constant regressor")
    cut = float(rng.choice([float(np.median(said)), float(said[0]), 1.6]))
    side = str(rng.choice(["above", "below"]))

    def score(X: Any) -> NDArray[np.float64]:
        value = np.asarray(model.predict(X), dtype=float).ravel() - cut
        return value if side == "above" else -value

    asked = {"threshold": cut, "favourable": side} if side == "below" or rng.random() < 0.5 else {"threshold": cut}
    kind = type(final).__name__
    return Subject(kind, model, asked, lambda X: score(X) >= 0, score, _is_single(model))


# -- steps ------------------------------------------------------------------------------------------------------------


def _fitted(rng: np.random.Generator, table: Table, final: Any, y: Any) -> Any:
    """The final model behind random steps, trained on the table."""
    native = rng.random() < 0.3 and _takes_categories(final, table)
    if native is not False and native:
        model = native
    else:
        steps = _steps(rng, table)
        model = make_pipeline(*steps, final) if steps else final
        if steps and rng.random() < 0.04:
            model = oddities.Second(model.steps)
    frame = table.X
    if table.backend == "pyarrow" or (table.backend == "polars" and rng.random() < 0.3):
        model.fit(oddities.to_pandas(frame), y)
        return oddities.OnPandas(model) if rng.random() < 0.5 else oddities.Asking(model)
    model.fit(frame, y) if y is not None else model.fit(frame)
    if rng.random() < 0.03:
        return FrozenEstimator(model)
    return oddities.Asking(model) if rng.random() < 0.03 else model


def _takes_categories(final: Any, table: Table) -> Any:
    """The model set up for the table's own categories, where it can take them."""
    name = type(final).__name__
    types = {c.type for c in table.columns if not c.is_number}
    if table.backend != "pandas" or not types <= {"category", "bool", "onehot"}:
        return False
    if name.startswith("HistGradient"):
        return final.set_params(categorical_features="from_dtype")
    if name.startswith("XGB") and getattr(final, "booster", None) != "gblinear":
        return final.set_params(enable_categorical=True, tree_method="hist")
    if name.startswith("LGBM"):
        return final
    if name.startswith("CatBoost") and not any(c.missing.any() for c in table.columns if not c.is_number):
        return final.set_params(cat_features=[c.name for c in table.columns if c.type == "category"])
    return False


def _steps(rng: np.random.Generator, table: Table) -> list[Any]:
    text = [c for c in table.columns if not (c.is_number or c.type in ("onehot", "codes", "bool"))]
    gaps = any(c.missing.any() for c in table.columns if c.is_number)
    if not text:
        if rng.random() < 0.25 and not gaps:
            return []
        if rng.random() < 0.6:
            return _numeric(rng, gaps)
    names = table.names
    places: dict[str, Any] = {n: (i if table.backend == "matrix" else n) for i, n in enumerate(names)}
    left = [s for c in table.columns if c not in text for s in table.sources(c)]
    parts: list[tuple[str, Any, list[Any]]] = []
    while left:
        take = [left.pop(0) for _ in range(min(len(left), int(rng.integers(1, 4)) if rng.random() < 0.6 else 200))]
        steps = _numeric(rng, gaps)
        parts.append((f"n{len(parts)}", make_pipeline(*steps) if steps else "passthrough", [places[n] for n in take]))
    if text:
        names = [places[c.name] for c in text]
        if rng.random() < 0.7 or len(names) == 1:
            parts.append(("t", _of_text(rng), names))
        else:
            half = int(rng.integers(1, len(names)))
            parts += [("t", _of_text(rng), names[:half]), ("u", _of_text(rng), names[half:])]
        if rng.random() < 0.12:
            parts.append(("x", FunctionTransformer(oddities.OF_TEXT[int(rng.integers(2))]), names))
    if rng.random() < 0.05 and len(parts) > 1:
        name, _, where = parts[0]
        parts[0] = (name, "drop", where)
    steps = [ColumnTransformer(parts)]
    if rng.random() < 0.15:
        steps += _numeric(rng, False)
    return steps


def _of_text(rng: np.random.Generator) -> Any:
    choices: list[Any] = [
        OneHotEncoder(handle_unknown="ignore", sparse_output=bool(rng.integers(2))),
        OneHotEncoder(drop="first", sparse_output=False),
        OneHotEncoder(min_frequency=0.2, sparse_output=False, handle_unknown="infrequent_if_exist"),
        OrdinalEncoder(),
        TargetEncoder(cv=2, target_type="binary"),
        oddities.Tied(sparse_output=False),
        make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(sparse_output=False)),
    ]
    return choices[int(rng.choice(len(choices), p=[0.3, 0.12, 0.1, 0.23, 0.1, 0.05, 0.1]))]


def _numeric(rng: np.random.Generator, gaps: bool) -> list[Any]:
    """A few steps over numbers."""
    steps: list[Any] = []
    if gaps or rng.random() < 0.1:
        steps.append(
            [SimpleImputer(), SimpleImputer(strategy="median", add_indicator=True), KNNImputer(n_neighbors=2)][
                int(rng.choice(3, p=[0.75, 0.2, 0.05]))
            ]
        )
    for _ in range(int(rng.choice(3, p=[0.15, 0.75, 0.1]))):
        steps.append(_one_step(rng))
    return steps


def _one_step(rng: np.random.Generator) -> Any:
    scalers = [StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler(), MinMaxScaler(clip=True)]
    if rng.random() < 0.7:
        return scalers[int(rng.integers(len(scalers)))]
    bins = int(rng.integers(2, 6))
    others: list[Callable[[], Any]] = [
        lambda: PowerTransformer(),
        lambda: QuantileTransformer(n_quantiles=10, output_distribution=str(rng.choice(["uniform", "normal"]))),
        lambda: KBinsDiscretizer(bins, encode=str(rng.choice(["onehot-dense", "ordinal"])), quantile_method="linear"),
        lambda: KBinsDiscretizer(bins, encode="onehot", strategy="uniform"),
        lambda: SplineTransformer(n_knots=4),
        lambda: PolynomialFeatures(2, interaction_only=bool(rng.integers(2))),
        lambda: Binarizer(),
        lambda: Normalizer(),
        lambda: PCA(2),
        lambda: SelectKBest(k=1),
        lambda: VarianceThreshold(),
        lambda: FunctionTransformer(oddities.ONE[int(rng.integers(len(oddities.ONE)))]),
        lambda: FunctionTransformer(oddities.SEVERAL[int(rng.integers(len(oddities.SEVERAL)))]),
        lambda: FunctionTransformer(np.log1p if rng.random() < 0.5 else np.sqrt),
        lambda: FunctionTransformer(),
        lambda: oddities.Folding(),
        lambda: oddities.Plus(),
        lambda: FeatureUnion([("a", StandardScaler()), ("b", PCA(1))]),
    ]
    if rng.random() < 0.8:
        return others[int(rng.integers(len(others)))]()
    known = models.estimators("transformer")
    return models.small(known[str(rng.choice(list(known)))])


def described(model: Any) -> str:
    """A model with its steps, in one line."""
    if isinstance(model, (oddities.OnPandas, oddities.Asking, FrozenEstimator)):
        inner = model.estimator if isinstance(model, FrozenEstimator) else model.model
        return f"{type(model).__name__}({described(inner)})"
    if isinstance(model, Pipeline):
        return f"{type(model).__name__}[" + " | ".join(described(step) for _, step in model.steps) + "]"
    if isinstance(model, ColumnTransformer):
        return "Columns{" + ", ".join(f"{where}: {described(step)}" for _, step, where in model.transformers) + "}"
    return " ".join(repr(model).split())
