"""How a case is posed: validation that all public functions share, before and after the first call of the model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import narwhals as nw
import numpy as np

from globece.case.affected import Case
from globece.compact import Rows
from globece.costs import CostModel
from globece.errors import (
    GlobeCEWarning,
    InvalidParameterError,
    ModelError,
    TimeLimitError,
    check_instance,
    check_number,
    wrong,
)
from globece.models.base import Model
from globece.models.blackbox import BlackBox
from globece.models.compiling.adapt import black_box, compiled, robust_model
from globece.models.compiling.checking import blur
from globece.models.robust import Robust
from globece.progress import TimeUp, is_timed
from globece.settings import Settings
from globece.space import BoolArray, FeatureSpace, FloatArray
from globece.tables import Table, read_table

ASK_AGAIN = 256  # rows on which predictions are compared, where decoding restores them exactly
ASK_AT_ONCE = 65_536  # most rows on which predictions are compared before encoding and after decoding
BUDGETS = (1e-9, 1e9)
LARGEST_SEED = 2**128
Kind = TypeVar("Kind")
Seed = int | np.random.Generator | None


def checked(name: str, value: Any, kind: type[Kind], default: Callable[[], Kind]) -> Kind:
    """Return the value if it is of this kind, or the default for ``None``; otherwise raise."""
    return default() if value is None else check_instance(name, value, kind)


def check_budget(budget: float) -> float:
    """Validate the budget: a finite number above 0."""
    limit = check_number("budget", budget, open_low=True, infinite=True)
    if not np.isfinite(limit):
        raise InvalidParameterError(f"budget must be finite; got {budget!r}")
    return check_number("budget", budget, low=BUDGETS[0], high=BUDGETS[1])


def check_space(space: FeatureSpace | None) -> FeatureSpace | None:
    """Validate an optional space."""
    return space if space is None else check_instance("space", space, FeatureSpace, "see FeatureSpace.from_frame")


@dataclass(frozen=True, eq=False)
class Given:
    """The user's rows, as all public functions take them.

    Attributes
    ----------
    table
        All columns; groups may be formed from any of them.
    X
        The columns that the model takes, in the user's format.
    rows
        The same columns, encoded.
    left_out
        Columns that the model does not take.
    """

    table: Table
    X: Any
    rows: Rows
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: Any, X: Any, space: FeatureSpace | None) -> Given:
        """Read the user's rows; columns that the model was not trained on are left out."""
        known = check_space(space)
        table = read_table(X, columns=known.table.names if known is not None and isinstance(X, np.ndarray) else None)
        mine = _models_columns(model, X, known)
        taken = FeatureSpace.from_frame(mine) if known is None else known
        left_out = () if mine is X else tuple(n for n in table.names if n not in taken.table.names)
        return cls(table, mine, Rows.read(taken, mine), left_out)

    @property
    def space(self) -> FeatureSpace:
        """The space of the rows."""
        return self.rows.space

    def hold(self, features: Iterable[str]) -> Given:
        """The same with these features immutable."""
        space = self.space.constrain(immutable=list(dict.fromkeys(features)))
        return replace(self, rows=replace(self.rows, space=space))


def pose(
    model: Any,
    given: Given,
    *,
    favourable: Any,
    threshold: float | None,
    cost: CostModel | None,
    budget: float,
    settings: Settings,
    robust: Robust | None = None,
) -> Case:
    """Build a case: call the model on the rows, and compile and check it if possible."""
    if robust is not None:
        check_instance("robust", robust, Robust)
    price, rows = cost_on(cost, given.space), given.rows
    box = black_box(
        model,
        given.space,
        favourable=favourable,
        threshold=threshold,
        grid=settings.grid,
        scalars=settings.scalars,
        batch_rows=settings.batch_rows,
        timeout=settings.timeout,
    )
    try:
        decided = outcomes_of(box, given.X, rows)
        follows = settings.exact and settings.scalars is None
        asked: Model = compiled_on(box, rows, decided) if follows else box
        asked = asked if robust is None else robust_model(asked, robust, sample(rows))
    except TimeUp:
        raise TimeLimitError(
            f"time_limit was over before {box.name} was read, checked and called on all {len(rows):,} rows; allow "
            "more time, or give fewer rows"
        ) from None
    return Case(asked, rows, decided, price, budget, settings.max_scalar)


def _models_columns(model: Any, X: Any, space: FeatureSpace | None) -> Any:
    """The columns of a frame that the model takes: those of the space, or else those it was trained on."""
    if isinstance(X, np.ndarray):
        return X
    names = list(nw.from_native(X, eager_only=True).columns)
    if space is not None:
        known = list(space.table.names)
    else:
        trained = getattr(model, "feature_names_in_", None)
        known = names if trained is None else [str(name) for name in trained]
    if set(known) >= set(names) or not set(known) <= set(names):
        return X  # no column to leave out, or an error that encode or the model will raise
    return nw.from_native(X, eager_only=True).select([name for name in names if name in known]).to_native()


def cost_on(cost: CostModel | None, space: FeatureSpace) -> CostModel:
    """The cost model, on this space."""
    cost = checked("cost", cost, CostModel, lambda: CostModel.bins(space))
    unpriced = [f.name for f in space.scalars if f.can_move and f.name not in cost.scales]
    if cost.space.columns != space.columns or unpriced:
        what = f": it has no cost for changes of {unpriced}" if unpriced else ""
        raise InvalidParameterError(f"cost belongs to another space than space; build it from the same one{what}")
    return replace(cost, space=space)


def generator_of(rng: Seed) -> np.random.Generator:
    """The random generator of a call."""
    if isinstance(rng, (bool, np.timedelta64)) or not isinstance(
        rng, (int, np.integer, np.random.Generator, type(None))
    ):
        raise wrong("rng", "a whole number >= 0, a numpy Generator or None", rng)
    if isinstance(rng, (int, np.integer)) and not 0 <= rng < LARGEST_SEED:
        raise wrong("rng", "a whole number >= 0 and below 2**128", rng)
    return np.random.default_rng(rng)


def outcomes_of(box: BlackBox, X: Any, rows: Rows) -> BoolArray:
    """Outcomes of the user's rows, and a check that encoding and decoding does not change them."""
    decided = np.concatenate([np.zeros(0, dtype=bool), *(box.favourable(Z) for _, Z in rows.chunks())])
    if len(rows) > ASK_AT_ONCE:
        return decided
    comes_back = not rows.is_compact and _comes_back(box.space, X, rows.values)
    few = min(ASK_AGAIN, box.decide.tally.pace.size) if is_timed() else ASK_AGAIN
    again = min(len(rows), few) if comes_back else len(rows)
    # A copy, since a model may change what it is given; frames that cannot be changed need none.
    mine, same = (X, decided) if again == len(rows) else (X[:again], box.favourable(rows.values[:again]))
    direct = box.decide(mine.copy() if hasattr(mine, "copy") else mine, again)
    differing = int((direct != same).sum())
    if differing:
        raise ModelError(
            f"{box.name} gives {differing:,} of {again:,} rows another outcome after encode and decode; "
            "does it depend on the index, on something outside the columns, or on random numbers?"
        )
    return decided


def sample(rows: Rows) -> FloatArray:
    """Evenly spread rows, as many as are expanded at a time; all of them if they are few."""
    return rows.some(np.linspace(0, len(rows) - 1, min(rows.at_once, len(rows))).astype(np.int64))


def compiled_on(box: BlackBox, rows: Rows, decided: BoolArray) -> Model:
    """The compiled model if it agrees with the original on all rows; otherwise the original."""
    if len(rows) <= rows.at_once:
        return compiled(box, rows.dense(), decided)
    model = compiled(box, sample(rows))
    if not model.is_compiled:
        return model
    differing = 0
    for part, Z in rows.chunks():
        seen = box.space.settle(Z)
        margin = model.followed.margin(seen)
        wrong = (margin > 0.0) != decided[part]
        if wrong.any():
            differing += int((wrong & ~(np.abs(margin) <= blur(model, seen, margin))).sum())
    if not differing:
        return model
    warnings.warn(
        f"{box.name} is searched as a black box, not followed exactly: compiled, it gives {differing:,} of "
        f"{len(rows):,} of the rows given another outcome",
        GlobeCEWarning,
        stacklevel=4,
    )
    return box


def _comes_back(space: FeatureSpace, X: Any, Z: FloatArray) -> bool:
    """Whether decoding restores the matrix exactly, so that only a random model could predict differently."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
        return False
    back = space.decode(Z)
    if not isinstance(back, np.ndarray) or back.dtype != X.dtype or back.shape != X.shape:
        return False
    differs = back != X
    return not differs.any() or bool(np.isnan(X[differs]).all() and np.isnan(back[differs]).all())
