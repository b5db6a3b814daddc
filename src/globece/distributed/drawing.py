"""The sample on which directions are searched: large enough for its score to be known as precisely as wanted.

First a random sample of rows tells how many of them are affected, and a quick search on a few of these how much their
costs vary. That gives the size of the sample (Cochran 1977, section 4.7: a first sample for the variance). If the first
one has too few affected inputs, another pass over the rows fetches more of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from globece import api
from globece.case.ordering import content_hash, spread_order
from globece.compact import Rows
from globece.distributed.engines import Engine
from globece.distributed.sampling import Survey, Surveyor, frame_of, surveyed
from globece.distributed.sources import Source
from globece.distributed.task import BATCH_ROWS, POSITION, columns_of
from globece.errors import InvalidDataError, InvalidParameterError
from globece.models.base import Model
from globece.models.compiling.adapt import as_model
from globece.progress import Monitor
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray
from globece.tables import MatrixTable

FIRST = 100_000  # rows of the first sample
PILOT = 2_000  # affected inputs that tell how many are needed
FEWEST = 1_000  # affected inputs on which directions are searched, where there are as many
MOST = 200_000  # affected inputs of a sample: bounds the memory
INDEX = "__index_level_"  # what pandas calls an index without a name
Z95 = 1.959963984540054


@dataclass(frozen=True, eq=False)
class Plan:
    """What a sample is drawn for.

    Attributes
    ----------
    model, space
        The user's model, and the space if it was given.
    frame
        The kind of frame that the model takes, if there is no space.
    row_id
        A column that is no feature.
    within
        How precisely the sample must tell the score.
    seed
        Of all random draws.
    wishes
        What else :func:`globece.explain` and :func:`globece.audit` are asked.
    by
        What groups are formed from.
    constraints
        What a space that is learnt is told, as :meth:`globece.FeatureSpace.from_frame` takes it.
    features
        The columns of features, if neither a space nor the model says.
    """

    model: Any
    space: FeatureSpace | None
    frame: str
    row_id: str | None
    within: float
    seed: int
    wishes: dict[str, Any] = field(default_factory=dict)
    by: Any = None
    constraints: Mapping[str, Any] = field(default_factory=dict)
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.constraints and self.space is not None:
            raise InvalidParameterError("constraints are for a space that is learnt; the space given has its own")

    @property
    def categorical(self) -> frozenset[str]:
        """Columns of which each value counts, though they may hold numbers."""
        return frozenset([*self.constraints.get("categorical", ()), *self.constraints.get("ordinal", ())])

    @property
    def trained(self) -> tuple[str, ...] | None:
        """The columns that the model was trained on, if it says."""
        names = getattr(self.model, "feature_names_in_", None)
        return None if names is None else tuple(str(n) for n in names)

    def columns(self, source: Source) -> tuple[str, ...]:
        """The columns of features, and of groups."""
        if self.space is not None:
            wanted = tuple(dict.fromkeys(s for f in self.space.features for s in f.sources))
        elif self.trained is not None:
            wanted = self.trained
        else:
            known = source.schema.names if self.features is None else self.features
            wanted = tuple(n for n in known if n != self.row_id and not n.startswith(INDEX))
        names = tuple(dict.fromkeys([*wanted, *columns_of(self.by)]))
        lacks = [n for n in names if n not in source.schema.names]
        if lacks:
            raise InvalidDataError(f"the rows lack column(s) {lacks}; they have {source.schema.names}")
        return names


@dataclass(frozen=True, eq=False)
class Drawn:
    """A sample.

    Attributes
    ----------
    X
        Its rows, as the model takes them, with the columns of groups.
    space
        The space of all rows.
    affected
        Affected inputs that were drawn, before the sample was made smaller.
    pilot
        Affected inputs that told how many are needed.
    """

    X: Any
    space: FeatureSpace
    affected: int
    pilot: int


def draw(plan: Plan, source: Source, engine: Engine, monitor: Monitor) -> Drawn:
    """Draw a sample that is large enough, in as many passes over the rows as that takes: mostly one."""
    columns, share = plan.columns(source), min(1.0, FIRST / source.n_rows)
    first = Surveyor(columns, share, plan.seed, plan.space is None, BATCH_ROWS, plan.categorical)
    seen = _surveyed(first, source, engine, monitor)
    space = _space(plan, source, seen, columns)
    if not len(seen.sample):
        raise InvalidDataError("the sample has no rows")
    model = _model(plan, space, seen.sample)
    favourable = _favourable(model, Rows.read(space, _features(space, seen.sample)))
    others, affected = seen.sample.filter(pa.array(favourable)), seen.sample.filter(pa.array(~favourable))
    if share == 1.0:  # all rows are at hand
        return Drawn(_native(plan, space, seen.sample), space, len(affected), 0)
    rate, pilot = len(affected) / len(seen.sample), 0
    while True:
        needed = FEWEST
        if len(affected):
            some = _in_front(affected, PILOT, plan.seed)
            needed, pilot = min(max(FEWEST, _needed(plan, space, some)), MOST), len(some)
        if len(affected) >= needed or share == 1.0:
            break
        share = min(1.0, share * max(4.0, 1.2 * needed / len(affected))) if len(affected) else 1.0
        again = replace(first, share=share, learns=False, affected_only=model)
        affected = _surveyed(again, source, engine, monitor).sample
    if not len(affected):
        return Drawn(_native(plan, space, others), space, 0, 0)
    chosen = affected.take(pa.array(np.sort(_spread(model, space, affected, needed, plan.seed))))
    few = others.slice(0, max(1, min(len(others), round(len(chosen) * (1.0 / rate - 1.0)) if rate else len(others))))
    sample = pa.concat_tables([chosen, few], promote_options="default").sort_by(POSITION)
    return Drawn(_native(plan, space, sample), space, len(affected), pilot)


def _space(plan: Plan, source: Source, seen: Survey, columns: tuple[str, ...]) -> FeatureSpace:
    """The space given, or learnt from the witnesses."""
    if plan.space is not None:
        return plan.space
    only_groups = set() if plan.trained is None else set(columns_of(plan.by)) - set(plan.trained)
    witnesses = frame_of(seen.witnesses, [n for n in columns if n not in only_groups], plan.frame)
    return FeatureSpace.from_frame(witnesses, **plan.constraints)


def _surveyed(work: Surveyor, source: Source, engine: Engine, monitor: Monitor) -> Survey:
    def counted() -> Iterator[Survey]:
        done = 0
        for one in engine.run(work, source):
            done += one.rows
            monitor("reading rows", done, source.n_rows)
            yield one

    return surveyed(counted())


def _features(space: FeatureSpace, table: pa.Table) -> pa.Table:
    return table.select(list(dict.fromkeys(s for f in space.features for s in f.sources)))


def _native(plan: Plan, space: FeatureSpace, table: pa.Table) -> Any:
    """Rows of the sample as the user's model takes them."""
    columns = [n for n in table.column_names if n != POSITION]
    if isinstance(space.table, MatrixTable):
        X = Rows.read(space, _features(space, table)).decode()
        more = [n for n in columns_of(plan.by) if n not in space.names]
        if more:
            raise InvalidParameterError(
                f"by names {more}, which are no features; a model that takes a matrix has groups from features only: "
                "give a space that is learnt from a frame"
            )
        return X
    kind = space.table.frame.implementation.name.lower()  # type: ignore[attr-defined]
    return frame_of(table, columns, kind)


def _model(plan: Plan, space: FeatureSpace, table: pa.Table) -> Model:
    wishes = {name: plan.wishes[name] for name in ("favourable", "threshold")}
    Z = Rows.read(space, _features(space, table.slice(0, PILOT))).dense()
    return as_model(plan.model, space, rows=Z, **wishes)


def _favourable(model: Model, rows: Rows) -> BoolArray:
    return np.concatenate([np.zeros(0, dtype=bool), *(model.unconditioned.favourable(Z) for _, Z in rows.chunks())])


def _in_front(table: pa.Table, n: int, seed: int) -> pa.Table:
    """A few rows, at random, by their positions."""
    position = np.asarray(table.column(POSITION)).astype(np.float64)
    order = np.argsort(content_hash(position[:, None], seed + 1), kind="stable")
    return table.take(pa.array(np.sort(order[:n])))


def _needed(plan: Plan, space: FeatureSpace, some: pa.Table) -> int:
    """How many affected inputs tell the score as precisely as wanted, by a quick search on some."""
    X = _native(plan, space, some)
    ex = api.explain(plan.model, X, space=space, effort="quick", rng=plan.seed, **plan.wishes)
    paid = np.minimum(ex.best_costs, ex.budget)
    if len(paid) < 2 or not paid.mean() > 0.0:
        return FEWEST
    return int(np.ceil((Z95 * paid.std(ddof=1) / (plan.within * paid.mean())) ** 2))


def _spread(model: Model, space: FeatureSpace, affected: pa.Table, n: int, seed: int) -> IntArray:
    """So many of the affected inputs, spread evenly over the model's margins: each stratum has its share."""
    if len(affected) <= n:
        return np.arange(len(affected))
    rows = Rows.read(space, _features(space, affected))
    margin: FloatArray = np.concatenate([model.margin(Z) for _, Z in rows.chunks()])
    return spread_order(np.nan_to_num(margin), np.random.default_rng(seed))[:n]
