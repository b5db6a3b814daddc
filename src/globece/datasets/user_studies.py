"""The two black boxes of the paper's user studies, generated from a seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from globece.costs import CostModel
from globece.datasets._dataset import make_frame
from globece.datasets._heloc import load_heloc
from globece.errors import InvalidParameterError, check_count, check_instance, check_number, check_seed
from globece.space import BoolArray, FeatureSpace, FloatArray, IntArray

MOST_ROWS = 10_000_000
YES, NO = "Yes", "No"
ASSETS = ("Job", "Property", "Savings")


@dataclass(frozen=True, slots=True, eq=False)
class UserStudy:
    """A model, its rows, and the biases that an audit must find.

    Attributes
    ----------
    name
        What it is called in the paper.
    model
        A fitted estimator, or a pair ``(coef, intercept)``.
    X
        The rows.
    space, cost
        What may move, and what that costs.
    by
        The column whose groups are compared.
    recourse_bias_against, model_bias_against
        The true biases; ``None`` if there is none.
    """

    name: str
    model: Any = field(repr=False)
    X: Any = field(repr=False)
    space: FeatureSpace = field(repr=False)
    cost: CostModel = field(repr=False)
    by: str
    recourse_bias_against: str | None
    model_bias_against: str | None


def black_box_1(n: int = 4000, *, seed: int = 0) -> UserStudy:
    """Black Box 1: a decision tree that rejects more females, whose recourse costs males more.

    Everybody needs healthcare, males a job and property, females a job, property and savings. 90 % of the rejected
    females only lack healthcare (cost 1) and 10 % the rest (cost 3); 10 % of the rejected males only lack healthcare
    and 90 % the rest (cost 2). These are the proportions of ``fig:userstudies`` and of the appendix "User Studies".

    Parameters
    ----------
    n
        Number of rows.
    seed
        Random seed.

    Examples
    --------
    >>> study = black_box_1(1000)
    >>> study.X.shape, study.recourse_bias_against, study.model_bias_against
    ((1000, 5), 'Male', 'Female')
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    n = check_count("n", n, low=100, high=MOST_ROWS)
    rng = np.random.default_rng(check_seed("seed", seed))
    female = np.arange(n) % 2 == 0
    # model bias: more females are rejected
    rejected = rng.random(n) < np.where(female, 0.6, 0.4)
    cheap = rng.random(n) < np.where(female, 0.9, 0.1)  # of those rejected: only healthcare is missing
    healthcare = ~rejected | ~cheap
    has_assets = ~rejected | cheap
    has_savings = np.where(female, has_assets, rng.random(n) < 0.5)  # for males savings make no difference
    every = np.array(list(product((False, True), repeat=5)))
    approved = every[:, 1] & every[:, 2] & (every[:, 3] | ~every[:, 0]) & every[:, 4]
    model = make_pipeline(OneHotEncoder(sparse_output=False), DecisionTreeClassifier(random_state=0))
    model.fit(_frame(every), approved.astype(np.int64))
    frame = _frame(np.column_stack([female, has_assets, has_assets, has_savings, healthcare]))
    space = FeatureSpace.from_frame(frame, immutable=["Sex"])
    return UserStudy(
        name="Black Box 1",
        model=model,
        X=frame,
        space=space,
        cost=CostModel.bins(space),
        by="Sex",
        recourse_bias_against="Male",
        model_bias_against="Female",
    )


def black_box_2(n: int = 4000, *, seed: int = 0, gap: float = 1.0) -> UserStudy:
    """Black Box 2: a linear SVM on HELOC, with a synthetic ForeignWorker group whose recourse costs more.

    ForeignWorker is drawn at random. The SVM is trained without it; then the boundary is shifted for foreign workers
    such that recourse costs ``gap`` more (in l2 costs, for which the least cost is known in closed form). With
    ``gap=0`` there is no bias to find.

    Parameters
    ----------
    n
        Number of rows, taken from the beginning of HELOC.
    seed
        Random seed for who is a foreign worker.
    gap
        How much more recourse costs a foreign worker than the same person otherwise.
    """
    from sklearn.svm import LinearSVC

    n, gap = check_count("n", n, low=100), check_number("gap", gap, high=1e6)
    seed = check_seed("seed", seed)
    heloc = load_heloc()
    x = heloc.encoded()[:n]
    y = heloc.outcome[:n]
    low, high = x.min(axis=0), x.max(axis=0)
    moving = high > low
    width = np.where(moving, high - low, 1.0) / 10.0
    mean = x.mean(axis=0)
    svm = LinearSVC(C=0.01, random_state=0).fit((x - mean) / width, y)
    w: FloatArray = np.where(moving, svm.coef_[0], 0.0) / width
    bias = float(svm.intercept_[0] - w @ mean)
    foreign: IntArray = (np.random.default_rng(seed).random(len(x)) < 0.5).astype(np.int64)
    X = np.column_stack([x, foreign])
    names = [*heloc.columns, "ForeignWorker"]
    space = FeatureSpace.from_matrix(X, columns=names, immutable=["ForeignWorker"], ranges="unbounded", whole=[])
    cost = CostModel.bins(space, norm="l2")
    slope = float(np.linalg.norm(w * width))  # the largest gain per unit of cost
    return UserStudy(
        name="Black Box 2",
        model=(np.append(w, -gap * slope), bias),
        X=X,
        space=space,
        cost=cost,
        by="ForeignWorker",
        recourse_bias_against="ForeignWorker = 1" if gap else None,
        model_bias_against="ForeignWorker = 1" if gap else None,
    )


def least_costs(study: UserStudy) -> FloatArray:
    """The closed-form least cost of each row of Black Box 2: its distance to the boundary in units of cost."""
    check_instance("study", study, UserStudy)
    if not isinstance(study.model, tuple):
        raise InvalidParameterError(f"study must be Black Box 2, whose least costs are known; got {study.name}")
    w, bias = study.model
    margin = study.X @ w + bias
    rates = study.cost.rates
    moves = rates > 0
    slope = np.linalg.norm(w[moves] / rates[moves])
    return np.asarray(np.maximum(-margin, 0.0) / slope)


def _frame(flags: BoolArray) -> Any:
    """Female, job, property, savings, healthcare as words."""
    words = {name: [YES if v else NO for v in flags[:, i + 1]] for i, name in enumerate((*ASSETS, "Healthcare"))}
    return make_frame({"Sex": ["Female" if f else "Male" for f in flags[:, 0]]} | words, "pandas", caller="black_box_1")
