"""Statlog German Credit."""

from __future__ import annotations

import numpy as np

from globece.datasets._dataset import Backend, Column, Dataset, check_backend, frozen, make_frame, read_embedded

_NAMES = (
    "Existing-Account-Status",
    "Month-Duration",
    "Credit-History",
    "Purpose",
    "Credit-Amount",
    "Savings-Account",
    "Present-Employment",
    "Instalment-Rate",
    "Sex",
    "Guarantors",
    "Residence",
    "Property",
    "Age",
    "Installment",
    "Housing",
    "Existing-Credits",
    "Job",
    "Num-People",
    "Telephone",
    "Foreign-Worker",
)
_CONTINUOUS = ("Month-Duration", "Credit-Amount", "Age")


def load_german_credit(*, backend: Backend = "pandas") -> Dataset:
    """Load German Credit: whether an applicant was a good credit risk.

    1,000 rows, 3 continuous and 17 categorical features, 71 encoded columns. Categories are UCI's codes as strings:
    ``"A11"``, and ``"4"`` where the code is a number.

    Parameters
    ----------
    backend
        Library of the frame: ``"pandas"``, ``"polars"`` or ``"pyarrow"``.

    Examples
    --------
    >>> from globece.datasets import load_german_credit
    >>> german = load_german_credit()
    >>> german.frame.shape, len(german.columns), german.n_train
    ((1000, 20), 71, 800)
    >>> german.columns[:5]
    ['Existing-Account-Status = A11', 'Existing-Account-Status = A12', 'Existing-Account-Status = A13',
     'Existing-Account-Status = A14', 'Month-Duration']
    >>> int(german.outcome.sum())
    700
    """
    check_backend(backend)
    *raw, risk = zip(*map(str.split, read_embedded("german.data").splitlines()), strict=True)
    columns: dict[str, Column] = {
        name: np.array(values, np.int64) if name in _CONTINUOUS else list(values)
        for name, values in zip(_NAMES, raw, strict=True)
    }
    return Dataset(
        name="german_credit",
        frame=make_frame(columns, backend, caller="load_german_credit"),
        outcome=frozen(np.array(risk) == "1"),
        favourable="good credit risk",
        continuous=_CONTINUOUS,
        categorical={name: tuple(sorted(set(columns[name]))) for name in _NAMES if name not in _CONTINUOUS},
        description="Applicants for credit at a German bank, and whether each was a good or a bad risk.",
        source="Hofmann, H. (1994). Statlog (German Credit Data). UCI Machine Learning Repository. doi:10.24432/C5NC77",
        licence="CC BY 4.0",
    )
