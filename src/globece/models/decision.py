"""What the user's model decides about native rows: favourable or not, and by how much.

A model is an estimator with ``predict`` / ``predict_proba`` / ``decision_function``, a torch module or a function; the
favourable outcome is a class, or a side of a threshold. A :class:`Decision` hides these differences and validates
every output of the model.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from globece.errors import InvalidParameterError, ModelError, check_limit, check_number, describe, wrong
from globece.models.known import kind_of
from globece.models.torch_modules import Asked, is_module
from globece.progress import Pace, check_time
from globece.space import BoolArray, FloatArray

SIDES = ("above", "below")
CHECKED_LABELS = 1000  # labels of each call whose type is checked
COSTLY = ("GaussianProcessClassifier",)  # whose probabilities take a variance, which decisions do without


@dataclass(slots=True)
class Tally:
    """How often the model was called, on how many rows, and how many undecided rays were searched with it.

    And whether it was seen to answer differently in another batch.
    """

    calls: int = 0
    rows: int = 0
    searched_rays: int = 0
    depends_on_batch: bool = False
    pace: Pace = field(default_factory=lambda: Pace(128), repr=False)  # batch size under a time limit


@dataclass(frozen=True)
class Decision:
    """The user's model, asked one thing: which rows get the favourable outcome?

    Attributes
    ----------
    ask
        Calls the model on native rows and returns its output.
    name
        What to call the model in messages.
    favourable
        The outcome people want: a class, or ``"above"`` / ``"below"`` a threshold.
    threshold
        The limit for probabilities or a regressor's values; ``None`` for the model's default decision.
    classes
        The model's classes, where it has them.
    timeout
        Seconds that one call may take.
    tally
        How often the model was called.
    model
        The user's model.
    labels
        Whether the model returns a class per row, so that a second dimension means several outputs.
    """

    ask: Callable[[Any], Any]
    name: str
    favourable: Any
    threshold: float | None = None
    classes: tuple[Any, ...] | None = None
    timeout: float | None = None
    tally: Tally = field(default_factory=Tally)
    model: Any = None
    labels: bool = False

    @property
    def described(self) -> str:
        """The favourable outcome in words."""
        if self.threshold is None:
            return str(self.favourable)
        if self.favourable in SIDES and self.classes is None:
            return f"{self.favourable} {self.threshold:g}"
        return f"{self.favourable} with probability of at least {self.threshold:g}"

    def __call__(self, rows: Any, n: int) -> BoolArray:
        """Whether each of the ``n`` native rows gets the favourable outcome."""
        answer = self._answer(self.ask, rows, n)
        if answer.ndim == 2:
            return self._from_scores(answer)
        if self.threshold is not None:
            if self.classes is not None:
                raise ModelError(
                    f"{self.name} returned one probability per row; one per class {self.classes} is needed"
                )
            values = self._numbers(answer)
            return np.asarray(values <= self.threshold if self._below else values >= self.threshold)
        if answer.dtype.kind == "f" and self.classes is None and not np.isin(answer, (0.0, 1.0)).all():
            raise ModelError(
                f"{self.name} returned numbers such as {answer[~np.isin(answer, (0.0, 1.0))][0]!r}, not outcomes; "
                "say which are favourable with threshold= (and favourable='above' or 'below')"
            )
        some = answer[:CHECKED_LABELS]
        if some.dtype.kind != "O":  # each label once
            some = np.concatenate([some[:1], np.unique(some)])
        self._check_labels(some.tolist())
        return np.asarray(answer == self.favourable, dtype=bool)

    def scores(self, rows: Any, n: int) -> tuple[FloatArray, ...]:
        """Scores, if the model has them: numbers that rise as a row comes nearer to the favourable outcome.

        With more than two classes several candidates are returned, one of which rises. Empty for a model that gives
        labels only.
        """
        model, classes = self.model, self.classes
        if is_module(model):
            return self._module_scores(self._answer(Asked(model, values=True), rows, n))
        if classes is None:
            if self.threshold is None or self.favourable not in SIDES:
                return ()
            values = self._answer(self.ask, rows, n)
            return () if values.ndim != 1 else (self._numbers(values) * (-1.0 if self.favourable == "below" else 1.0),)
        index, by_score = classes.index(self.favourable), getattr(model, "decision_function", None)
        if self.threshold is None and by_score is not None:
            found = self._numbers(self._answer(by_score, rows, n))
            if found.ndim == 1:
                return (found if index == 1 else -found,) if len(classes) == 2 else ()
            return (_lead(found, index),) if found.shape[1] == len(classes) else ()
        by_probability = getattr(model, "predict_proba", None)
        if by_probability is None or type(_last_step(model)).__name__ in COSTLY:
            return ()
        probabilities = self._numbers(self._answer(by_probability, rows, n))
        if probabilities.ndim != 2 or probabilities.shape[1] != len(classes):
            return ()
        if len(classes) == 2 or self.threshold is not None:
            return (probabilities[:, index],)
        with np.errstate(divide="ignore", invalid="ignore"):
            return tuple(_lead(s, index) for s in (probabilities, np.log(probabilities), logit(probabilities)))

    @property
    def cut(self) -> float | None:
        """The first of the :meth:`scores` at and above which the outcome is favourable, by what the scores are.

        ``None`` for a torch module, whose outputs may be scores or probabilities, and where there are no scores. A
        model may decide otherwise, as one with a tuned threshold does: compare with its outcomes.
        """
        if is_module(self.model):
            return None
        if self.classes is None:
            if self.threshold is None or self.favourable not in SIDES:
                return None
            return -self.threshold if self.favourable == "below" else self.threshold
        if self.threshold is not None:
            return self.threshold
        if hasattr(self.model, "decision_function") or len(self.classes) > 2:
            return 0.0
        return 0.5 if hasattr(self.model, "predict_proba") else None

    def _module_scores(self, found: NDArray[Any]) -> tuple[FloatArray, ...]:
        """Scores from the outputs of a torch module."""
        if found.ndim == 1:
            return (self._numbers(found) * (-1.0 if self.favourable in (0, "below") else 1.0),)
        if self.favourable not in range(found.shape[1]):
            return ()
        scores = self._numbers(found)
        with np.errstate(divide="ignore", invalid="ignore"):
            in_logs = () if found.shape[1] == 2 else (_lead(np.log(scores), int(self.favourable)),)
        unchanged = () if self.threshold is None else (scores[:, int(self.favourable)],)
        return (*unchanged, _lead(scores, int(self.favourable)), *in_logs)

    def _check_labels(self, labels: list[Any]) -> None:
        """Check that the labels could include the favourable one."""
        odd = next((v for v in labels if isinstance(v, (list, tuple, dict, set, np.ndarray))), None)
        if odd is not None:
            raise ModelError(f"{self.name} returned {odd!r} for a row; one outcome per row is needed")
        if any(v is None or _is_missing(v) for v in labels):
            raise ModelError(f"{self.name} returned no outcome (a missing value) for some rows")
        if self.classes is not None:
            unknown = [v for v in set(labels) if v not in self.classes]
            if unknown:
                raise ModelError(
                    f"{self.name} returned {unknown[0]!r}, which is not one of its classes {list(self.classes)}"
                )
            return
        text = [isinstance(v, str) for v in labels]
        if not isinstance(self.favourable, str) and any(text):
            raise ModelError(
                f"{self.name} returned text such as {labels[text.index(True)]!r}, and favourable is "
                f"{describe(self.favourable)}; name the outcome people want: favourable must be one of "
                f"{sorted({v for v in labels if isinstance(v, str)})[:10]}"
            )
        if isinstance(self.favourable, str) and labels and not any(text):
            hint = " (a side needs a threshold=)" if self.favourable in SIDES else ""
            raise ModelError(
                f"{self.name} returned {labels[0]!r}, which is no text, and favourable is the text "
                f"{describe(self.favourable)}{hint}; it would never occur: name one of the outcomes that are returned"
            )
        numbers = labels and all(isinstance(v, (bool, int, float)) for v in labels)
        if numbers and isinstance(self.favourable, (bytes, date, np.datetime64)):
            raise ModelError(
                f"{self.name} returned numbers such as {labels[0]!r}, and favourable is {describe(self.favourable)}; "
                "it would never occur: name one of the outcomes that are returned"
            )

    @property
    def _below(self) -> bool:
        if self.favourable not in (*SIDES, 1):
            raise InvalidParameterError(
                f"favourable must be 'above' or 'below' with a threshold on {self.name}'s values; "
                f"got {describe(self.favourable)}"
            )
        return bool(self.favourable == "below")

    def _from_scores(self, scores: NDArray[Any]) -> BoolArray:
        if self.labels:
            raise ModelError(_several(self.name, scores.shape[1]))
        if self.favourable in SIDES:
            raise ModelError(
                f"{self.name} returned {scores.shape[1]} numbers for each row, and favourable={self.favourable!r} "
                "needs one; wrap the model in a function that returns the one that matters"
            )
        values = self._numbers(scores)
        index = self._column(values.shape[1])
        if self.threshold is not None:
            return np.asarray(values[:, index] >= self.threshold)
        return np.asarray(values.argmax(axis=1) == index)

    def _column(self, n_columns: int) -> int:
        classes = self.classes if self.classes is not None else tuple(range(n_columns))
        if len(classes) != n_columns or self.favourable not in classes:
            raise ModelError(
                f"{self.name} returned {n_columns} columns, one per class; favourable must be one of "
                f"{list(range(n_columns))}; got {describe(self.favourable)}"
            )
        return classes.index(self.favourable)

    def _numbers(self, answer: NDArray[Any]) -> FloatArray:
        try:
            return answer.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"{self.name} returned {answer.dtype} values such as {answer.flat[0]!r}, which have no threshold; "
                "name a class with favourable= instead"
            ) from error

    def _answer(self, ask: Callable[[Any], Any], rows: Any, n: int) -> NDArray[Any]:
        check_time()
        self.tally.calls += 1
        self.tally.rows += n
        where = f"{self.name} in call {self.tally.calls} on {n:,} row(s)"
        try:
            raw = ask(rows) if self.timeout is None else _within(self.timeout, ask, rows, where)
        except ModelError:
            raise
        except Exception as error:
            message = str(error).partition("\n")[0]  # some libraries append a stack trace
            raise ModelError(f"{where} raised {type(error).__name__}: {message}") from error
        if isinstance(raw, (list, tuple)) and len(raw) and np.ndim(raw[0]) == 2:  # probabilities of several outputs
            raise ModelError(_several(self.name, len(raw)))
        try:
            answer = np.asarray(raw)
        except ValueError as error:  # ragged
            raise ModelError(f"{where} returned rows of different lengths; one outcome per row is needed") from error
        if answer.ndim == 2 and answer.shape[1] == 1:
            answer = answer[:, 0]
        if answer.ndim not in (1, 2) or len(answer) != n:
            raise ModelError(f"{where} returned shape {answer.shape}; one outcome per row is needed: ({n},)")
        if answer.dtype.kind == "f" and np.isnan(answer).any():
            bad = np.isnan(answer.reshape(n, -1)).any(axis=1)
            raise ModelError(f"{where} returned NaN for {int(bad.sum()):,} row(s)")
        return answer


def decision(
    model: Any, *, favourable: Any = None, threshold: float | None = None, timeout: float | None = None
) -> Decision:
    """Determine how to call the model, and which outcome is favourable.

    Parameters
    ----------
    model
        An estimator, a torch module, or a function of native rows that returns outcomes, scores or class
        probabilities. A module's columns are its classes 0, 1 and so on; one column is the score of class 1 against
        0, or its probability where the module ends in a sigmoid.
    favourable
        The outcome people want. By default the positive class: the second of two classes, or 1. For a regressor or
        a scoring function ``"above"`` (default) or ``"below"`` the threshold.
    threshold
        A probability for classifiers, a value for regressors and scoring functions.
    timeout
        Seconds that one call of the model may take; ``None`` for no limit.

    Examples
    --------
    >>> import numpy as np
    >>> rejects_debt = decision(lambda X: (X[:, 0] < 5).astype(int))
    >>> rejects_debt(np.array([[3.0], [7.0]]), 2)
    array([ True, False])
    >>> decision(lambda X: X[:, 0], threshold=5, favourable="below").described
    'below 5'
    """
    limit = check_limit("timeout", timeout)
    cut = None if threshold is None else check_number("threshold", threshold, low=-np.inf)
    if favourable is not None:
        favourable = _outcome(favourable)
    name = getattr(model, "__name__", None) or type(model).__name__
    _check_fitted(model, name)
    if is_module(model):
        return _of_module(model, name, favourable, cut, limit)
    known = _classes_of(model, name)
    if known is not None:
        wanted = _class_of(favourable, known, name)
        if cut is None:
            return Decision(model.predict, name, wanted, None, known, limit, labels=True)
        if not 0 <= cut <= 1:
            raise InvalidParameterError(f"threshold must be a probability in [0, 1] for {name}; got {threshold!r}")
        if not hasattr(model, "predict_proba"):
            raise InvalidParameterError(f"threshold needs predict_proba, which {name} lacks; leave threshold out")
        return Decision(model.predict_proba, name, wanted, cut, known, limit)
    for method, default_cut in (("predict", None), ("predict_proba", None), ("decision_function", 0.0)):
        if hasattr(model, method):
            ask, cut = getattr(model, method), default_cut if cut is None else cut
            break
    else:
        ask = model
    if not callable(ask):
        raise InvalidParameterError(
            f"model must be a function, or have predict, predict_proba or decision_function; got {name}"
        )
    default = 1 if cut is None or hasattr(model, "predict_proba") else "above"
    return Decision(ask, name, default if favourable is None else favourable, cut, None, limit)


def _outcome(favourable: Any) -> Any:
    """Validate the favourable outcome: a single, non-missing, finite value."""
    if isinstance(favourable, np.ndarray) and favourable.ndim == 0:
        favourable = favourable[()]
    kinds = (str, bytes, Real, np.bool_, np.datetime64, Decimal, date, Enum)
    finite = favourable.is_finite() if isinstance(favourable, Decimal) else not _is_too_large(favourable)
    if (
        not isinstance(favourable, kinds)
        or isinstance(favourable, np.timedelta64)
        or _is_missing(favourable)
        or not finite
    ):
        raise wrong("favourable", "one outcome: a class such as 1, True or 'yes', or 'above' or 'below'", favourable)
    return favourable


def _of_module(module: Any, name: str, favourable: Any, threshold: float | None, timeout: float | None) -> Decision:
    if favourable in SIDES:
        return Decision(Asked(module, values=True), name, favourable, threshold, None, timeout)
    if threshold is not None and not 0 <= threshold <= 1:
        raise InvalidParameterError(f"threshold must be a probability in [0, 1] for {name}; got {threshold!r}")
    ask = Asked(module, by_probability=threshold is not None)
    return Decision(ask, name, 1 if favourable is None else favourable, threshold, None, timeout)


def _is_too_large(value: Any) -> bool:
    """Whether the value is infinite, or an integer that no array can hold."""
    if isinstance(value, int):
        return abs(value) >= 2**64
    return isinstance(value, (float, np.floating)) and bool(np.isinf(value))


def _is_missing(value: Any) -> bool:
    return type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)


def _classes_of(model: Any, name: str) -> tuple[Any, ...] | None:
    """The classes of a classifier; ``None`` for other models, some of which have an empty ``classes_``."""
    classes = getattr(model, "classes_", None)
    if kind_of(model) == "Scorecard":  # optbinning's, which has none of its own
        classes = getattr(model.estimator_, "classes_", None)
    if classes is None or not len(classes):
        return None
    if any(np.ndim(c) for c in classes):
        raise InvalidParameterError(_several(name, len(classes)))
    return tuple(np.asarray(classes).tolist())


def _several(name: str, n: int) -> str:
    return (
        f"{name} predicts {n} outcomes for each row (several outputs or labels); explain one at a time: give the "
        "estimator of that output, or a function that returns its outcome"
    )


def _last_step(model: Any) -> Any:
    """What a pipeline ends in; any other model itself."""
    steps = getattr(model, "steps", None)
    return _last_step(steps[-1][1]) if isinstance(steps, list) and steps else model


def _lead(scores: FloatArray, index: int) -> FloatArray:
    """How far one column is ahead of the largest other one."""
    return np.asarray(scores[:, index] - np.delete(scores, index, axis=1).max(axis=1))


def _class_of(favourable: Any, classes: tuple[Any, ...], name: str) -> Any:
    if favourable is None:
        if len(classes) == 2:
            return classes[1]
        raise InvalidParameterError(f"{name} has {len(classes)} classes; favourable must be one of {list(classes)}")
    if favourable not in classes:
        raise InvalidParameterError(
            f"favourable must be one of {name}'s classes {list(classes)}; got {describe(favourable)}"
        )
    return favourable


def _check_fitted(model: Any, name: str) -> None:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if isinstance(model, type):
        raise InvalidParameterError(f"model must be a fitted estimator, not the class {name}; create and fit one")
    if isinstance(model, BaseEstimator):
        try:
            check_is_fitted(model)
        except NotFittedError as error:
            raise InvalidParameterError(f"model {name} is not fitted; call fit first") from error
        except TypeError:  # an estimator without fit, such as a user's wrapper: nothing to check
            return


def _within(seconds: float, ask: Callable[[Any], Any], rows: Any, where: str) -> Any:
    """Call the model in a separate thread, and raise if it takes too long."""
    result: dict[str, Any] = {}

    def work() -> None:
        try:
            result["value"] = ask(rows)
        except BaseException as error:
            result["error"] = error

    # in the caller's context, which says how to pass rows to a module
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    thread.join(min(seconds, threading.TIMEOUT_MAX))
    if thread.is_alive():
        raise ModelError(f"{where} gave no answer within {seconds:g} s")
    if "error" in result:
        raise result["error"]
    return result["value"]
