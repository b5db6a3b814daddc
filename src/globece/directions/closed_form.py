"""Directions of a linear model in closed form (appendix, "Model Specific -- Support Vector Machines")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np

from globece.case.affected import Affected
from globece.directions.constraints import as_directions, movable_features
from globece.directions.protocol import check_asked, check_cost
from globece.directions.rows import mean_row
from globece.errors import InvalidParameterError, keep_checked
from globece.models.base import Model
from globece.models.linear.half_spaces import LinearModel
from globece.space import Feature, FloatArray

PREFIXES = (1, 2, 3, 5)  # how many of the best columns, or blocks, move together
SINGLES = 8
# What the continuous part has cost when a category switches: at once, or after a while.
SWITCH_AFTER = (0.001, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """Propose the cheapest directions of a linear model.

    With l2 costs that is delta = C^-2 w, and no direction is cheaper for continuous features without ranges. With l1
    costs it is the one column with the most weight per unit of cost; it is proposed with the next best ones, alone and
    together, since ranges end. A category has no closed form: the best category of each block joins at several places
    along the way, for those who gain more by it than by going on.

    Parameters
    ----------
    cost
        Nominal cost of each direction.

    Examples
    --------
    >>> import numpy as np
    >>> from globece import CostModel, FeatureSpace, explain
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [4.0, 3.0], [10.0, 10.0]])
    >>> space = FeatureSpace.from_matrix(X, ranges="unbounded")
    >>> cost = CostModel.bins(space, norm="l2")
    >>> w, b = np.array([3.0, 4.0]), -10.0
    >>> ex = explain((w, b), X, space=space, cost=cost, generator=ClosedForm(), rng=0)
    >>> ex.best_costs.round(6)  # -y0 / ||C^-1 w||
    array([2. , 0.6])
    """

    cost: float = 2.0

    def __post_init__(self) -> None:
        keep_checked(self, cost=check_cost(self.cost))

    def propose(self, problem: Affected, n: int, rng: np.random.Generator) -> FloatArray:
        """Return the cheapest directions first; there is nothing random about them."""
        n = check_asked(problem, n, rng)
        movable_features(problem.space)
        model = linear_core(problem.model, "ClosedForm")
        W = slopes(model)
        if len(W) > 1:  # several half-spaces: between them, then each
            W = np.vstack([W.mean(axis=0), W])
        each = [list(_wishes(problem, w)) for w in W]
        in_turn = [wish for wish in chain.from_iterable(zip_longest(*each)) if wish is not None]
        return as_directions(problem, np.array(in_turn).reshape(-1, problem.space.width), n, self.cost)


def linear_core(model: Model, caller: str) -> LinearModel:
    """The half-spaces of a linear model; raise for any other."""
    asked = model.unconditioned  # a margin to keep moves the plane, and its direction stays
    if asked.half_spaces is None:
        raise InvalidParameterError(
            f"{caller} needs a linear model (logistic regression, linear SVM, a pair (coef, intercept), ...); "
            f"{model.name} is followed as a {type(asked.followed).__name__}"
        )
    return asked.half_spaces


def slopes(model: LinearModel) -> FloatArray:
    """What a unit of each column adds to each half-space; a step table counts with its mean slope."""
    W = model.weights.copy()
    features = {f.start: f for f in model.space.scalars}
    for table in model.tables:
        low, high = features[table.column].observed
        ends = np.zeros((2, model.space.width))
        ends[:, table.column] = low, high
        if high > low:
            W[:, table.column] += np.diff(table.values(ends), axis=1)[:, 0] / (high - low)
    return W


@dataclass(frozen=True, slots=True)
class _Switch:
    """A block's best category, and who should move there."""

    feature: Feature
    gain: float  # mean over the inputs, per unit of cost
    rises: FloatArray  # (categories,) what each category gains per unit of cost by moving there

    def entry(self, k: float, least: float) -> FloatArray:
        """Entries that switch, just past k, every category that gains more than ``least``; the others keep theirs."""
        return np.where(self.rises > least, 0.0, 1.0 / k)


def _wishes(problem: Affected, w: FloatArray) -> Iterator[FloatArray]:
    """Directions that raise w x, the best first."""
    space, rates, l2 = problem.space, problem.cost.rates, problem.cost.norm == "l2"
    ratio = np.zeros(space.width)  # gain per unit of cost, signed
    for f in space.scalars:
        if f.can_move and f.sense * w[f.start] >= 0:
            ratio[f.start] = w[f.start] / rates[f.start]
    best = [c for c in np.argsort(-np.abs(ratio), kind="stable") if ratio[c] != 0]
    moves: list[FloatArray] = []
    for group in ([*range(len(best))] if l2 else [], *(range(m) for m in PREFIXES), *([i] for i in range(SINGLES))):
        columns = [best[i] for i in group if i < len(best)]
        if columns:
            share = np.zeros(space.width)
            # l2: cost in proportion to what it gains, which is C^-2 w in the columns' own units; l1: equal shares
            share[columns] = ratio[columns] if l2 else np.sign(ratio[columns])
            size = np.linalg.norm(share) if l2 else np.abs(share).sum()
            moves.append(np.divide(share / size, rates, out=np.zeros(space.width), where=rates > 0))
    switches = sorted(_switches(problem, w), key=lambda s: -s.gain)
    sets = [[s] for s in switches[:SINGLES]] + [switches[:m] for m in PREFIXES[1:] if m <= len(switches)]
    top = float(np.abs(ratio).max(initial=0.0))
    yield from moves[:1]
    for together in sets:  # categories alone, one after the other
        yield _joined(np.zeros(space.width), together, 1.0, 0.0)
    for after in SWITCH_AFTER:
        for least in (top, 0.0):
            for together in sets:
                for move in moves[:4]:
                    yield _joined(move, together, after, least)
    yield from moves[1:]


def _switches(problem: Affected, w: FloatArray) -> Iterator[_Switch]:
    share = mean_row(problem.inputs)  # how many hold each category
    for f in problem.space.blocks:
        if f.can_move:
            part = w[f.columns]
            target = int(np.argmax(np.where(f.permitted, part, -np.inf)))
            rises = (part[target] - part) / problem.cost.weight(f)
            gain = float(np.maximum(rises, 0.0) @ share[f.columns])
            if gain > 0:
                yield _Switch(f, gain, rises)


def _joined(move: FloatArray, together: list[_Switch], after: float, least: float) -> FloatArray:
    wish = move.copy()
    for i, s in enumerate(together):
        wish[s.feature.columns] = s.entry(after * (i + 1), least)
    return wish
