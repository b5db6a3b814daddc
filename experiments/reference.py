"""What the experiments are compared with: figures of the paper, and of the authors' public code as it was run.

These are inputs, typed once. *Paper* is Ley, Mishra and Magazzeni, "GLOBE-CE: A Translation Based Approach for Global
Counterfactual Explanations" (ICML 2023): tab:results, tab:DNNs, tab:XGB, tab:LR. *Reference* is one run, seed 0, of the
authors' public code on their own twelve models, with the settings that `experiments/results.py` uses: c = 2, 1,000
samples, n_f = 2 and p = 1 (German Credit: 5 and 5, continuous columns dropped), on one thread of a two-core machine.
"""

from __future__ import annotations

from typing import NamedTuple


class Quality(NamedTuple):
    """A model as the paper's tables have it: accuracy in %, affected training rows."""

    train: int
    test: int
    affected: int


class Figure(NamedTuple):
    """A method's figures: coverage in %, average cost, seconds."""

    coverage: float
    cost: float
    seconds: float
    cut: bool = False  # stopped at a time limit


MODELS = {
    ("compas", "dnn"): Quality(68, 65, 2552),
    ("german_credit", "dnn"): Quality(84, 78, 243),
    ("default_credit", "dnn"): Quality(81, 81, 5232),
    ("heloc", "dnn"): Quality(74, 74, 4334),
    ("compas", "xgb"): Quality(70, 68, 2008),
    ("german_credit", "xgb"): Quality(95, 74, 197),
    ("default_credit", "xgb"): Quality(90, 83, 3744),
    ("heloc", "xgb"): Quality(77, 74, 4323),
    ("compas", "lr"): Quality(67, 65, 1940),
    ("german_credit", "lr"): Quality(79, 76, 180),
    ("default_credit", "lr"): Quality(81, 83, 3858),
    ("heloc", "lr"): Quality(73, 75, 4282),
}
