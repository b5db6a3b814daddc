"""UCI default of credit card clients."""

from __future__ import annotations

import io

import numpy as np

from globece.datasets._dataset import Backend, Column, Dataset, check_backend, frozen, make_frame, read_embedded

_CATEGORICAL = ("Sex", "Education", "Marriage", "Pay_0", "Pay_2", "Pay_3", "Pay_4", "Pay_5", "Pay_6")


def load_default_credit(*, backend: Backend = "pandas") -> Dataset:
    """Load Default Credit: whether a credit card client defaulted the next month.

    30,000 rows, 14 continuous and 9 categorical features, 91 encoded columns. Categories are UCI's whole numbers, as
    strings: ``"-2"``.

    Parameters
    ----------
    backend
        Library of the frame: ``"pandas"``, ``"polars"`` or ``"pyarrow"``.

    Examples
    --------
    >>> from globece.datasets import load_default_credit
    >>> default = load_default_credit()
    >>> default.frame.shape, len(default.columns), default.n_train
    ((30000, 23), 91, 24000)
    >>> default.categorical["Pay_6"]
    ('-2', '-1', '0', '2', '3', '4', '5', '6', '7', '8')
    """
    check_backend(backend)
    text = read_embedded("default_credit.csv")
    header = text[: text.index("\n")].split(",")
    table = np.loadtxt(io.StringIO(text), np.int64, delimiter=",", skiprows=1)
    columns: dict[str, Column] = {}
    categorical: dict[str, tuple[str, ...]] = {}
    for name, values in zip(header[1:-1], table.T[1:-1], strict=True):  # between the ID and the outcome
        title = name.title()
        if title in _CATEGORICAL:
            levels, codes = np.unique(values, return_inverse=True)
            categorical[title] = tuple(map(str, levels.tolist()))
            columns[title] = np.array(categorical[title], object)[codes].tolist()
        else:
            columns[title] = values
    return Dataset(
        name="default_credit",
        frame=make_frame(columns, backend, caller="load_default_credit"),
        outcome=frozen(table[:, -1] == 0),
        favourable="did not default next month",
        continuous=tuple(name for name in columns if name not in categorical),
        categorical=categorical,
        description="Credit card clients in Taiwan in 2005, their bills and payments, and whether they then defaulted.",
        source="Yeh, I-C. (2009). Default of Credit Card Clients. UCI Machine Learning Repository. doi:10.24432/C55S3H",
        licence="CC BY 4.0",
    )
