"""From the user's model to a :class:`globece.models.base.Model` over the encoded matrix.

The model is recognised, compiled together with the steps before it, and *checked against the original* on the user's
rows and on synthetic ones. If the two disagree, the model becomes a black box, and a warning says why.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from globece.errors import (
    GlobeCEError,
    GlobeCEWarning,
    InvalidParameterError,
    check_count,
    check_flag,
    check_instance,
    check_matrix,
)
from globece.extensions import extension, extensions
from globece.models.base import Allowance, Model, check_model
from globece.models.blackbox import BlackBox, check_grid, check_scalars, search_undecided
from globece.models.clearance import DOUBLE
from globece.models.compiling.checking import check
from globece.models.compiling.compose import Category, NotCompiled, Symbol, base_row, compose, inputs_of, raw_symbols
from globece.models.compiling.final import KERNELS, Final, LinearRule, half_spaces, is_linear, unwrap
from globece.models.compiling.onnx.compiler import compile_graph
from globece.models.compiling.onnx.compiler import supports as is_graph
from globece.models.compiling.table_vectorizer import vectorized
from globece.models.compiling.weights_of_evidence import binned
from globece.models.decision import Decision, Tally, decision
from globece.models.inputs import Input
from globece.models.known import described, is_kind, kind_of, library_class
from globece.models.linear.half_spaces import LinearModel
from globece.models.networks.network import ReLUNetwork
from globece.models.networks.reading import supports as supports_network
from globece.models.robust import Robust, RobustModel, errors_on, stricter
from globece.models.torch_modules import is_module
from globece.models.trees.ensemble import TreeEnsemble
from globece.models.trees.importing import hashes_categories, native_categories
from globece.models.trees.importing import read as read_trees
from globece.models.trees.importing import supports as supports_trees
from globece.models.votes import Majority, weights_of
from globece.space import BoolArray, FeatureSpace, FloatArray
from globece.tables import MatrixTable

# Steps that take the user's own columns, by their names.
BY_NAME: dict[str, Callable[..., list[Symbol]]] = {"BinningProcess": binned, "TableVectorizer": vectorized}


@dataclass(frozen=True)
class Compiled(Model):
    """A model that is followed exactly, together with the original.

    Outcomes come from the original, so that the user's model decides about every counterfactual; scalars come from the
    compiled model.
    """

    original: BlackBox
    core: Model

    is_compiled = True

    @property
    def allowance(self) -> Allowance:
        """That of the compiled model."""
        return self.core.allowance

    @property
    def followed(self) -> Model:
        """The compiled model."""
        return self.core

    @property
    def half_spaces(self) -> LinearModel | None:
        """Those of the compiled model."""
        return self.core.half_spaces

    @property
    def tree_ensemble(self) -> TreeEnsemble | None:
        """That of the compiled model."""
        return self.core.tree_ensemble

    @property
    def rounding_unit(self) -> float:
        """That of the compiled model."""
        return float(self.core.rounding_unit)

    @property
    def tallies(self) -> list[Tally]:
        """How often the original was called."""
        return self.original.tallies

    def located(self, Z: FloatArray) -> Model:
        """The same with a compiled model that keeps what it finds out about these rows."""
        return replace(self, core=self.core.located(Z))

    def rough(self, points: int) -> Model:
        """A rougher compiled model, where there is one; undecided rays are searched with fewer points."""
        twin = self.core.rough(points)
        if twin is not self.core:
            return twin
        return replace(self, original=replace(self.original, grid=min(points, self.original.grid)))

    def uncompiled(self) -> BlackBox:
        """The original."""
        return self.original

    @property
    def space(self) -> FeatureSpace:
        """The space whose rows it takes."""
        return self.original.space

    @property
    def exact(self) -> bool:
        """Whether scalars are exact."""
        return self.core.exact

    @property
    def name(self) -> str:
        """The original's name."""
        return self.original.name

    @property
    def decide(self) -> Decision:
        """The user's model."""
        return self.original.decide

    def favourable(self, Z: FloatArray) -> BoolArray:
        """What the user's model predicts."""
        return self.original.favourable(Z)

    def confirms(self, Z: FloatArray) -> BoolArray:
        """What the user's model predicts, both in the user's column types and in double precision."""
        return self.original.confirms(Z)

    def margin(self, Z: FloatArray) -> FloatArray:
        """How far each row is on the favourable side."""
        return self.core.margin(Z)

    def first_flip(
        self, Z: FloatArray, directions: FloatArray, limit: FloatArray, start: FloatArray | None = None
    ) -> FloatArray:
        """Smallest k at which each row is favourable; see :meth:`globece.models.base.Model.first_flip`.

        Rays that the compiled model cannot decide are searched with the original, and counted in its tally.
        """
        return search_undecided(
            self.original, self.core.first_flip(Z, directions, limit, start), Z, directions, limit, start
        )


def as_model(
    model: Any,
    space: FeatureSpace,
    *,
    favourable: Any = None,
    threshold: float | None = None,
    rows: FloatArray | None = None,
    compile: bool = True,
    grid: int = 256,
    scalars: tuple[float, ...] | None = None,
    batch_rows: int = 65_536,
    timeout: float | None = None,
) -> BlackBox | Compiled:
    """Wrap the user's model so that it answers at which k a row first flips.

    Parameters
    ----------
    model
        An estimator, a pipeline, a torch module, a function (see :func:`globece.models.decision.decision`), or a
        pair ``(coef, intercept)``.
    space
        The space whose decoded rows the model takes.
    favourable, threshold, timeout
        As for :func:`globece.models.decision.decision`.
    rows
        Encoded rows on which a compiled model is checked against the original.
    compile
        Whether to try to follow the model exactly; ``False`` leaves it a black box.
    grid, scalars, batch_rows
        As for :class:`globece.models.blackbox.BlackBox`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0], [2.0], [9.0]])
    >>> space = FeatureSpace.from_matrix(X, columns=["income"])
    >>> as_model(lambda X: X[:, 0] > 5, space, favourable=True).exact
    False
    >>> as_model((np.array([1.0]), -5.0), space).exact
    True
    """
    check_instance("space", space, FeatureSpace, "see FeatureSpace.from_frame")
    if rows is not None:
        rows = check_matrix("rows", rows, space.width)
    box = black_box(
        model,
        space,
        favourable=favourable,
        threshold=threshold,
        grid=grid,
        scalars=scalars,
        batch_rows=batch_rows,
        timeout=timeout,
    )
    return compiled(box, rows) if check_flag("compile", compile) and scalars is None else box


def black_box(
    model: Any,
    space: FeatureSpace,
    *,
    favourable: Any,
    threshold: float | None,
    grid: int,
    scalars: tuple[float, ...] | None,
    batch_rows: int,
    timeout: float | None,
) -> BlackBox:
    """The user's model as a black box; the parameters are those of :func:`as_model`."""
    if isinstance(model, tuple):
        model = LinearRule.of(model)
    tried = None if scalars is None else check_scalars(scalars)
    decide = replace(decision(model, favourable=favourable, threshold=threshold, timeout=timeout), model=model)
    return BlackBox(decide, space, check_grid(grid), check_count("batch_rows", batch_rows), tried)


def compiled(box: BlackBox, rows: FloatArray | None = None, outcomes: BoolArray | None = None) -> BlackBox | Compiled:
    """Compile a model if possible; if a model that has classes or a threshold cannot be compiled, warn.

    Parameters
    ----------
    box
        The model as a black box.
    rows
        Encoded rows on which the compiled model is checked against the original.
    outcomes
        What the original predicts for these rows, if that is known already.
    """
    decide, model = box.decide, box.decide.model
    module = is_module(model)
    if not (module or hasattr(model, "predict")):
        return box
    if decide.classes is None and decide.threshold is None and not module:
        message = (
            f"{decide.name} has no classes: it is searched as a black box, and a prediction of "
            f"{decide.favourable!r} is taken as the favourable outcome"
        )
        warnings.warn(message, GlobeCEWarning, stacklevel=3)
        return box
    try:
        core = compile_model(model, box.space, decide)
        check(core, box, rows, outcomes)
    except NotCompiled as why:
        message = f"{decide.name} is searched as a black box, not followed exactly: {why}"
        warnings.warn(message, GlobeCEWarning, stacklevel=3)
        return box
    return Compiled(box, core)


def robust_model(box: Model, robust: Robust, rows: FloatArray | None = None) -> RobustModel:
    """Combine a model with what its counterfactuals must survive.

    Parameters
    ----------
    box
        The user's model, as :func:`as_model` gives it.
    robust
        What recourse must survive.
    rows
        Encoded rows on which compiled models are checked against the originals.
    """
    whole = box.uncompiled()
    assert isinstance(whole, BlackBox)
    settings: dict[str, Any] = {
        "rows": rows,
        "compile": box.is_compiled,
        "grid": whole.grid,
        "batch_rows": whole.batch_rows,
        "timeout": box.decide.timeout,
    }
    parts: list[Model] = [box]
    for other in (box.decide.model, *robust.models):
        decide = box.decide
        if other is not box.decide.model:
            wanted = {"favourable": decide.favourable, "threshold": decide.threshold}
            decide = _check_same_features(other, box, wanted)
            if not robust.margin:
                parts.append(as_model(other, box.space, **wanted, **settings))
        if robust.margin:
            asked = stricter(other, decide, robust.margin, robust.scale)
            parts.append(as_model(asked.pop("model"), box.space, **asked, **settings))
    return RobustModel(box, tuple(parts), errors_on(box.space, robust), robust)


def _check_same_features(other: Any, box: Model, wanted: dict[str, Any]) -> Decision:
    """Return the decision of another model if it takes the same features."""
    width, expected = (getattr(m, "n_features_in_", None) for m in (other, box.decide.model))
    if width != expected and None not in (width, expected):
        raise InvalidParameterError(f"models must take the same {expected} features as {box.name}; one takes {width}")
    names, known = (getattr(m, "feature_names_in_", None) for m in (other, box.decide.model))
    if names is not None and known is not None and list(names) != list(known):
        odd = sorted(set(map(str, names)) ^ set(map(str, known))) or "another order"
        raise InvalidParameterError(f"models must take the same features as {box.name}; they disagree in {odd}")
    return decision(other, **wanted)


def compile_model(model: Any, space: FeatureSpace, decide: Decision) -> Model:
    """Compile an estimator with the steps before it, or raise :class:`globece.models.compiling.compose.NotCompiled`."""
    try:
        return _compile(model, space, decide)
    except (NotCompiled, MemoryError):
        raise
    except Exception as error:  # a new release of a library may store its parts differently
        raise NotCompiled(f"reading it raised {type(error).__name__}: {error}") from error


def _compile(model: Any, space: FeatureSpace, decide: Decision) -> Model:
    if is_graph(model):
        return compile_graph(model, space, decide)
    final = unwrap(model, decide)
    estimator, name = final.estimator, type(final.estimator).__name__
    if kind_of(estimator) == "VotingClassifier":
        return _voting(final, space)
    if not (is_linear(estimator) or supports_trees(estimator) or supports_network(estimator)):
        extended = _extended(final, space)
        if extended is not None:
            return extended
        curved = getattr(estimator, "kernel", "linear") if kind_of(estimator) in KERNELS else "linear"
        why = described(estimator) if curved == "linear" else f"{name}'s kernel {curved!r} is not linear"
        raise NotCompiled(f"step {why}")  # before the other steps are blamed
    try:
        planes = half_spaces(estimator, final.favourable, final.threshold)
        by_trees = planes is None and supports_trees(estimator)
        sparse = by_trees and _library(estimator) == "xgboost" and hasattr(_transformed(final.steps, space), "toarray")
        late = by_trees and hashes_categories(estimator)  # which categories there are is known once it is composed
        reading = read_trees(estimator, sparse=sparse) if by_trees and not late else None
    except GlobeCEError as error:
        raise NotCompiled(f"step {name}: {error}") from error
    symbols = raw_symbols(space)
    for step in final.steps:
        if step is not None and not (isinstance(step, str) and step == "passthrough"):
            outputs: Callable[..., list[Symbol]] = BY_NAME.get(kind_of(step), compose)
            made = outputs(step, symbols, space)
            symbols = {str(i): s for i, s in enumerate(made)}
    values = list(symbols.values())
    expected = getattr(estimator, "n_features_in_", len(symbols))
    if hashes_categories(estimator):  # CatBoost forgets the number when it is loaded
        expected = len(estimator.feature_names_)
    if expected != len(symbols):
        raise NotCompiled(f"{name} takes {expected} inputs and its steps give {len(symbols)}")
    if not isinstance(space.table, MatrixTable):
        _check_names(estimator, list(symbols), name)
    try:
        if planes is not None:
            return LinearModel.compose(
                space,
                inputs_of(values, name),
                planes.coef,
                planes.intercept,
                closed=planes.closed,
                name=name,
                probability=final.threshold,
                unit=DOUBLE if _sums_doubles(final, space) else None,
                summed=planes.summed,
            )
        if by_trees:
            inputs = _tree_inputs(estimator, values, name)
            if reading is None:
                reading = read_trees(estimator, categories=_categories(values))
            return TreeEnsemble.from_reading(reading, space, inputs, final.favourable, final.threshold, name)
        return ReLUNetwork.from_model(
            estimator, space, inputs_of(values, name), favourable=final.favourable, threshold=final.threshold
        )
    except (GlobeCEError, ValueError) as error:
        raise NotCompiled(f"step {name}: {error}") from error


def _voting(final: Final, space: FeatureSpace) -> Model:
    """A vote of compiled models between two classes."""
    from sklearn.pipeline import Pipeline  # it loads what the core does without

    voting = final.estimator
    if voting.voting != "hard" or final.threshold is not None or len(voting.classes_) != 2:
        raise NotCompiled("step VotingClassifier is compiled for hard votes between two classes only")
    mine = int(np.flatnonzero(voting.classes_ == final.favourable)[0])
    sides = []
    for side in (mine, 1 - mine):
        models = [Pipeline([*((f"step{i}", s) for i, s in enumerate(final.steps)), ("last", e)]) if final.steps else e
                  for e in voting.estimators_]  # fmt: skip
        sides.append(tuple(_compile(m, space, decision(m, favourable=side)) for m in models))
    return Majority(space, sides[0], sides[1], weights_of(voting), mine == 0, "VotingClassifier")


def _extended(final: Final, space: FeatureSpace) -> Model | None:
    """What an extension that is installed makes of a model without steps before it."""
    if final.steps:
        return None
    for name in extensions("models"):
        made = extension("models", name)(final.estimator, space, favourable=final.favourable, threshold=final.threshold)
        if made is not None:
            return check_model(made, space)
    return None


def _library(estimator: Any) -> str:
    known = library_class(estimator)
    return "" if known is None else known.__module__.split(".")[0]


def _transformed(steps: Sequence[Any], space: FeatureSpace) -> Any:
    """What the steps return for one row."""
    rows = space.decode(base_row(space)[None])
    for step in steps:
        if step is not None and not isinstance(step, str):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = step.transform(rows)
    return rows


def _sums_doubles(final: Final, space: FeatureSpace) -> bool:
    """Whether the estimator sums in double precision, whatever the types of the user's columns are."""
    if kind_of(final.estimator) in KERNELS:
        return True  # libsvm takes doubles only
    if not any(step is not None and not isinstance(step, str) for step in final.steps):
        return False
    return bool(getattr(_transformed(final.steps, space), "dtype", None) == np.float64)


def _check_names(estimator: Any, names: list[str], name: str) -> None:
    """Check that a model that looks its columns up by name has them in this order."""
    if is_kind(estimator, "globece", ("LightGBMClassifier", "LightGBMRegressor")):
        known = [str(n) for n in estimator.feature_names_in_]
        if known != [n.replace(" ", "_") for n in names]:
            raise NotCompiled(f"{name} takes its columns in another order: {known}")


def _categories(symbols: Sequence[Symbol]) -> dict[int, tuple[Any, ...]]:
    """The categories of each input that is a categorical column."""
    return {
        i: tuple(c for c in s.feature.categories if c is not None)
        for i, s in enumerate(symbols)
        if isinstance(s, Category)
    }


def _tree_inputs(estimator: Any, symbols: Sequence[Symbol], name: str) -> list[Input]:
    """Inputs of a tree ensemble: categories that it splits natively enter as its codes for them."""
    categorical = [i for i, s in enumerate(symbols) if isinstance(s, Category)]
    lists = native_categories(estimator, categorical) if categorical else {}
    if hashes_categories(estimator):
        hashed = set(estimator.get_cat_feature_indices())
        lists = {i: values for i, values in _categories(symbols).items() if i in hashed}
    found: list[Input] = []
    for i, s in enumerate(symbols):
        if isinstance(s, Category) and i in lists:
            codes = {value: float(code) for code, value in enumerate(lists[i])}
            unknown = [c for c in s.feature.categories if c is not None and c not in codes]
            if unknown:
                raise NotCompiled(f"{name} was trained without the categories {unknown} of {s.feature.name!r}")
            found.append(s.table([np.nan if c is None else codes[c] for c in s.feature.categories]))
        else:
            found += inputs_of([s], name)
    return found
