"""ProPublica's two-year COMPAS file."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from datetime import datetime

import numpy as np

from globece.datasets._dataset import Backend, Column, Dataset, check_backend, frozen, make_frame, read_embedded

_AGES = ("Less than 25", "25 - 45", "Greater than 45")


def load_compas(*, backend: Backend = "pandas") -> Dataset:
    """Load COMPAS: whether a defendant reoffended within two years.

    6,172 rows, 2 continuous and 4 categorical features, 15 encoded columns; the rows that ProPublica's own analysis
    keeps. ``Time_Served`` is in whole days.

    Parameters
    ----------
    backend
        Library of the frame: ``"pandas"``, ``"polars"`` or ``"pyarrow"``.

    Examples
    --------
    >>> from globece.datasets import load_compas
    >>> compas = load_compas(backend="polars")
    >>> compas.frame.shape, len(compas.columns), compas.n_train
    ((6172, 6), 15, 4937)
    >>> compas.continuous
    ('Priors_Count', 'Time_Served')
    """
    check_backend(backend)
    rows = [row for row in csv.DictReader(read_embedded("compas.csv").splitlines()) if _kept(row)]
    columns: dict[str, Column] = {
        name: [row[name.lower()] for row in rows] for name in ("Sex", "Age_Cat", "Race", "C_Charge_Degree")
    }
    categorical = {name: tuple(sorted(set(values))) for name, values in columns.items()} | {"Age_Cat": _AGES}
    columns["Priors_Count"] = np.array([row["priors_count"] for row in rows], np.int64)
    columns["Time_Served"] = np.array([_days_served(row) for row in rows], np.int64)
    return Dataset(
        name="compas",
        frame=make_frame(columns, backend, caller="load_compas"),
        outcome=frozen(np.array([row["two_year_recid"] for row in rows]) == "0"),
        favourable="did not reoffend within two years",
        continuous=("Priors_Count", "Time_Served"),
        categorical=categorical,
        description="Defendants screened in Broward County, Florida, 2013-2014, and whether they then reoffended.",
        source="Larson, J., Mattu, S., Kirchner, L. and Angwin, J. (2016). How We Analyzed the COMPAS Recidivism "
        "Algorithm. ProPublica.",
        licence="published by ProPublica, from public records",
    )


def _kept(row: Mapping[str, str]) -> bool:
    """Whether ProPublica's analysis keeps the row."""
    days = row["days_b_screening_arrest"]
    return (
        days != ""
        and abs(float(days)) <= 30
        and row["is_recid"] != "-1"
        and row["c_charge_degree"] != "O"
        and row["score_text"] != "N/A"
    )


def _days_served(row: Mapping[str, str]) -> int:
    served = datetime.fromisoformat(row["c_jail_out"]) - datetime.fromisoformat(row["c_jail_in"])
    return max(served.days, 0)
