"""The last step of a model: the estimator inside its wrappers, and the half-spaces of a linear one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from globece.errors import InvalidParameterError, describe
from globece.models.clearance import Summed
from globece.models.compiling.compose import NotCompiled
from globece.models.decision import SIDES, Decision
from globece.models.known import kind_of, library_class
from globece.space import BoolArray, FloatArray

# Probabilities are the logistic function of the score.
LOGISTIC = ("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis")
# The class with the largest score wins; with two classes, the sign of one score.
CLASSIFIERS = (
    *LOGISTIC,
    *("LinearSVC", "PassiveAggressiveClassifier", "Perceptron", "RidgeClassifier", "RidgeClassifierCV"),
    "SGDClassifier",
)
# With two classes the sign of the score decides; with more, votes between pairs.
PAIRWISE = ("SVC", "NuSVC")
KERNELS = (*PAIRWISE, "SVR", "NuSVR")  # linear if their kernel is
# The prediction is the score.
REGRESSORS = (
    *("ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "HuberRegressor", "Lars", "LarsCV"),
    *("Lasso", "LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "LinearRegression", "LinearSVR", "NuSVR"),
    *("MultiTaskElasticNet", "MultiTaskElasticNetCV", "MultiTaskLasso", "MultiTaskLassoCV"),
    *("OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV", "PassiveAggressiveRegressor", "QuantileRegressor"),
    *("Ridge", "RidgeCV", "SGDRegressor", "SVR", "TheilSenRegressor"),
)
# The prediction is the inverse link of the score.
GENERALISED = ("GammaRegressor", "PoissonRegressor", "TweedieRegressor")
SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")


@dataclass(frozen=True)
class LinearRule:
    """Any (coef, intercept): favourable where ``X @ coef + intercept > 0``."""

    coef_: FloatArray
    intercept_: FloatArray

    @classmethod
    def of(cls, pair: tuple[Any, ...]) -> LinearRule:
        """Check a pair that the user gave."""
        if len(pair) != 2:
            raise InvalidParameterError(f"a linear model is a pair (coef, intercept); got {len(pair)} values")
        try:
            parts = [np.asarray(part) for part in pair]
            numeric = all(part.dtype.kind in "iuf" for part in parts)
        except Exception:  # anything may happen when an arbitrary object is converted
            numeric = False
        if not numeric:
            raise InvalidParameterError(f"a linear model is a pair (coef, intercept) of numbers; got {describe(pair)}")
        coef = np.atleast_2d(parts[0].astype(np.float64))
        intercept = np.atleast_1d(parts[1].astype(np.float64))
        if coef.shape[0] != 1 or intercept.shape != (1,):
            raise InvalidParameterError(f"coef must have one number per column; got shape {coef.shape}")
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise InvalidParameterError("coef and intercept must be finite")
        return cls(coef, intercept)

    @property
    def classes_(self) -> FloatArray:
        """Outcomes 0 and 1."""
        return np.array([0, 1])

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return int(self.coef_.shape[1])

    def predict(self, X: Any) -> Any:
        """1 on the favourable side, 0 on the other."""
        return (np.asarray(X, dtype=np.float64) @ self.coef_[0] + self.intercept_[0] > 0).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Final:
    """A model without its wrappers: the last estimator, its favourable outcome and threshold, and the steps before."""

    estimator: Any
    favourable: Any
    threshold: float | None
    steps: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HalfSpaces:
    """The favourable side of a linear estimator: all of ``coef x + intercept > 0`` (``>= 0`` where closed)."""

    coef: FloatArray
    intercept: FloatArray
    closed: BoolArray
    summed: Summed | None = None


def unwrap(model: Any, decide: Decision) -> Final:
    """Remove pipelines, threshold wrappers, calibration and hyperparameter searches."""
    steps: list[Any] = []
    favourable, threshold = decide.favourable, decide.threshold
    while True:
        kind = kind_of(model)
        if kind == "Pipeline":
            steps += [step for _, step in model.steps[:-1] if not resamples(step)]
            model = model.steps[-1][1]
        elif kind == "ByScore":
            model = model.model
        elif kind in SEARCHES:
            model = model.best_estimator_
        elif kind == "FrozenEstimator":
            model = model.estimator
        elif kind == "Scorecard":
            if model._metric_special or model._metric_missing:
                raise NotCompiled("step Scorecard has metrics of its own for special or missing values")
            steps.append(model.binning_process_)
            model = model.estimator_
        elif kind == "RANSACRegressor":
            model = model.estimator_
        elif kind in ("FixedThresholdClassifier", "TunedThresholdClassifierCV"):
            model, favourable, threshold = _thresholded(model, kind, favourable, threshold)
        elif kind == "CalibratedClassifierCV":
            model, threshold = _calibrated(model, favourable, threshold)
        else:
            return Final(model, favourable, threshold, steps)


def _thresholded(model: Any, kind: str, favourable: Any, threshold: float | None) -> tuple[Any, Any, float | None]:
    if threshold is not None:
        # predict_proba passes straight through the wrapper
        return model.estimator_, favourable, threshold
    cut = model.best_threshold_ if kind == "TunedThresholdClassifierCV" else model.threshold
    positive = model.classes_[1] if getattr(model, "pos_label", None) is None else model.pos_label
    inner = model.estimator_
    by = model.response_method if isinstance(model.response_method, str) else "auto"
    uses_probability = by == "predict_proba" or (by == "auto" and hasattr(inner, "predict_proba"))
    if cut == "auto":
        cut = 0.5 if uses_probability else 0.0
    probability = float(cut) if uses_probability else float(expit(cut))
    if not uses_probability and kind_of(_last(inner)) not in LOGISTIC:
        raise NotCompiled(f"step {kind} applies its threshold to a decision function")
    if favourable == positive:
        return inner, favourable, probability
    # P(positive) < cut is P(other) > 1 - cut: the next number above
    return inner, favourable, float(np.nextafter(1.0 - probability, 1.0))


def _calibrated(model: Any, favourable: Any, threshold: float | None) -> tuple[Any, float | None]:
    """A single calibrator only moves the threshold; the mean of several is not a function of one score."""
    pairs = model.calibrated_classifiers_
    if len(pairs) != 1 or len(model.classes_) != 2:
        raise NotCompiled(f"step CalibratedClassifierCV averages {len(pairs)} calibrated models")
    (pair,) = pairs
    inner, calibrators = pair.estimator, pair.calibrators
    if len(calibrators) != 1 or kind_of(calibrators[0]) not in ("_SigmoidCalibration", "IsotonicRegression"):
        raise NotCompiled(f"step CalibratedClassifierCV(method={model.method!r}) is not compiled")
    (calibrator,) = calibrators
    if hasattr(inner, "decision_function") and kind_of(_last(inner)) not in LOGISTIC:
        raise NotCompiled("step CalibratedClassifierCV is compiled over probabilities and logistic regressions only")
    second = favourable == model.classes_[1]
    wanted = 0.5 if threshold is None else threshold
    by_score = hasattr(inner, "decision_function")

    def reaches(p: float) -> bool:
        calibrated = float(calibrator.predict(np.array([float(logit(p)) if by_score else p]))[0])
        if second:
            return calibrated > wanted if threshold is None else calibrated >= wanted
        return 1.0 - calibrated >= wanted

    low, high = 0.0, 1.0  # the smallest probability of the second class that reaches (or the largest that does)
    if reaches(1e-12) == reaches(1.0 - 1e-12):
        raise NotCompiled("step CalibratedClassifierCV gives everyone the same outcome")
    if reaches(1.0 - 1e-12) != second:
        raise NotCompiled("step CalibratedClassifierCV decreases as the score rises")
    while np.nextafter(low, 1.0) < high:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if reaches(middle) == second:
            high = middle
        else:
            low = middle
    return inner, high if second else float(np.nextafter(1.0 - high, 1.0))


def resamples(step: Any) -> bool:
    """Whether an imbalanced-learn pipeline leaves a step out when it predicts."""
    known = library_class(step)
    return known is not None and known.__module__.startswith("imblearn.") and hasattr(step, "fit_resample")


def _last(model: Any) -> Any:
    while kind_of(model) in ("Pipeline", "FrozenEstimator"):
        model = model.steps[-1][1] if kind_of(model) == "Pipeline" else model.estimator
    return model


def is_linear(estimator: Any) -> bool:
    """Whether this estimator is known to decide by linear scores."""
    kind = kind_of(estimator)
    if kind in KERNELS:
        return bool(estimator.kernel == "linear")
    return kind in ("LinearRule", *CLASSIFIERS, *REGRESSORS, *GENERALISED)


def half_spaces(estimator: Any, favourable: Any, threshold: float | None) -> HalfSpaces | None:
    """Half-spaces of a linear estimator; ``None`` if it is not one."""
    if not is_linear(estimator):
        return None
    found = _half_spaces(estimator, favourable, threshold)
    return replace(found, summed=_over_vectors(estimator)) if kind_of(estimator) in KERNELS else found


def _over_vectors(estimator: Any) -> Summed:
    """What libsvm sums for one score."""
    dual, vectors = (
        np.abs(part.toarray() if hasattr(part, "toarray") else np.asarray(part, dtype=np.float64))
        for part in (estimator.dual_coef_, estimator.support_vectors_)
    )
    return Summed(dual @ vectors, len(vectors))


def _half_spaces(estimator: Any, favourable: Any, threshold: float | None) -> HalfSpaces:
    kind = kind_of(estimator)
    coef = estimator.coef_
    coef = np.atleast_2d(np.asarray(coef.toarray() if hasattr(coef, "toarray") else coef, dtype=np.float64))
    intercept = np.broadcast_to(np.atleast_1d(np.asarray(estimator.intercept_, dtype=np.float64)), (len(coef),))
    classes = getattr(estimator, "classes_", None)
    if classes is None or (favourable in SIDES and favourable not in classes):
        if kind in GENERALISED:
            return _generalised(estimator, coef, intercept, favourable, threshold)
        return _regressor(coef, intercept, favourable, threshold, kind)
    index = np.asarray(classes).tolist().index(favourable)
    if len(classes) == 2 and len(coef) == 1:
        return _two_classes(estimator, coef, intercept, index, threshold)
    if kind in PAIRWISE:
        raise NotCompiled(f"{kind} decides between {len(classes)} classes by votes between pairs of them")
    if threshold is not None or len(coef) != len(classes):
        raise NotCompiled(f"{kind} decides between {len(classes)} classes in a way that is not linear")
    others = [c for c in range(len(classes)) if c != index]
    return HalfSpaces(
        coef[index] - coef[others],
        intercept[index] - intercept[others],
        np.array([c > index for c in others]),
        Summed(np.abs(coef[index]) + np.abs(coef[others]), 0),  # two scores, which may be much alike
    )


def _two_classes(
    estimator: Any, coef: FloatArray, intercept: FloatArray, index: int, threshold: float | None
) -> HalfSpaces:
    kind = kind_of(estimator)
    if threshold is None:
        # predict gives the second class above 0 and the first class at 0 and below; libsvm, which counts votes, gives
        # the second class at 0
        first_at_zero = kind not in KERNELS
        if index == 1:
            return HalfSpaces(coef, intercept, np.array([not first_at_zero]))
        return HalfSpaces(-coef, -intercept, np.array([first_at_zero]))
    if kind not in LOGISTIC and not (kind == "SGDClassifier" and estimator.loss == "log_loss"):
        raise NotCompiled(f"{kind}'s probabilities are not a logistic function of its score")
    if getattr(estimator, "multi_class", None) == "multinomial":  # older releases: a softmax of both signs
        raise NotCompiled(f"{kind}(multi_class='multinomial') doubles the score of two classes")
    if threshold <= 0.0:
        return _constant(coef, True)
    if threshold >= 1.0:
        raise NotCompiled(f"a probability of {threshold:g} is only reached by rounding")
    sign = 1.0 if index == 1 else -1.0
    return HalfSpaces(sign * coef, sign * intercept - float(logit(threshold)), np.array([True]))


def _constant(coef: FloatArray, favourable: bool) -> HalfSpaces:
    """Half-spaces that hold everywhere, or nowhere."""
    return HalfSpaces(np.zeros_like(coef), np.array([1.0 if favourable else -1.0]), np.array([favourable]))


def _generalised(
    estimator: Any, coef: FloatArray, intercept: FloatArray, favourable: Any, threshold: float | None
) -> HalfSpaces:
    """A generalised linear model: the score must reach the link function of the threshold."""
    kind, link = kind_of(estimator), type(estimator._base_loss.link).__name__
    if link == "IdentityLink":
        return _regressor(coef, intercept, favourable, threshold, kind)
    if link != "LogLink":
        raise NotCompiled(f"{kind} predicts through {link}, which is not supported")
    if threshold is not None and threshold <= 0.0:
        if threshold == 0.0 and favourable == "below":
            raise NotCompiled(f"{kind} predicts numbers above 0, and reaches 0 only by rounding")
        return _constant(coef, favourable != "below")
    return _regressor(coef, intercept, favourable, None if threshold is None else float(np.log(threshold)), kind)


def _regressor(
    coef: FloatArray, intercept: FloatArray, favourable: Any, threshold: float | None, kind: str
) -> HalfSpaces:
    if len(coef) != 1:
        raise NotCompiled(f"{kind} predicts {len(coef)} numbers for each row")
    if threshold is None:
        raise NotCompiled(f"{kind} predicts numbers and has no threshold")
    sign = -1.0 if favourable == "below" else 1.0
    return HalfSpaces(sign * coef, sign * (intercept - threshold), np.array([True]))
