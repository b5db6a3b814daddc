"""FICO's home equity line of credit (HELOC)."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np

from globece.datasets._dataset import Backend, Dataset, check_backend, frozen, make_frame
from globece.errors import FileFormatError, InvalidParameterError, check_path, describe

_N_FEATURES = 23


def load_heloc(path: str | os.PathLike[str] | None = None, *, backend: Backend = "pandas") -> Dataset:
    """Load HELOC: whether a home owner repaid a line of credit.

    9,871 rows and 23 continuous features. FICO provides the file on request and it may not be redistributed, so it is
    not part of globece. Rows in which every feature is missing are dropped; other missing values become the median.

    Parameters
    ----------
    path
        FICO's CSV file; by default ``heloc.csv`` in the folder that the environment variable ``GLOBECE_DATA`` names.
    backend
        Library of the frame: ``"pandas"``, ``"polars"`` or ``"pyarrow"``.

    Examples
    --------
    >>> from globece.datasets import load_heloc
    >>> load_heloc("nowhere.csv")
    Traceback (most recent call last):
    ...
    globece.errors.InvalidParameterError: path must name FICO's HELOC file; got 'nowhere.csv', which does not exist. ...
    """
    check_backend(backend)
    with _locate(path).open(newline="", encoding="utf-8-sig") as file:
        header, *rows = csv.reader(file)
    if header[0] != "RiskPerformance" or len(header) != 1 + _N_FEATURES:
        raise FileFormatError(
            f"a HELOC file has the column RiskPerformance and then {_N_FEATURES} features; got {header[:3]} and so on, "
            f"{len(header)} columns"
        )
    table = np.array([row[1:] for row in rows], np.float64)
    observed = table >= 0  # FICO's codes for missing are -7, -8 and -9
    kept = observed.any(axis=1)
    table = np.where(observed, table, np.nan)[kept]
    table = np.where(np.isnan(table), np.nanmedian(table, axis=0), table)
    return Dataset(
        name="heloc",
        frame=make_frame(dict(zip(header[1:], table.T, strict=True)), backend, caller="load_heloc"),
        outcome=frozen(np.array([row[0] for row in rows])[kept] == "Good"),
        favourable="repaid as agreed (RiskPerformance is Good)",
        continuous=tuple(header[1:]),
        categorical={},
        description="Home owners' applications for a line of credit, and whether they then repaid it.",
        source="FICO (2018). Explainable Machine Learning Challenge.",
        licence="FICO, on request; not redistributable",
    )


def _locate(path: str | os.PathLike[str] | None) -> Path:
    folder = os.environ.get("GLOBECE_DATA")
    if path is not None:
        named = check_path("path", path)
        found, got = Path(named), f"{describe(named)}, which does not exist"
    elif folder:
        found, got = Path(folder, "heloc.csv"), f"None, and $GLOBECE_DATA ({folder}) holds no heloc.csv"
    else:
        found, got = None, "None, and $GLOBECE_DATA is not set"
    if found is None or not os.path.isfile(found):
        raise InvalidParameterError(
            f"path must name FICO's HELOC file; got {got}. FICO provides the file on request (Explainable Machine "
            "Learning Challenge) and it may not be redistributed. Once you have it, call load_heloc('.../heloc.csv'), "
            "or save it as heloc.csv in a folder and set GLOBECE_DATA to that folder."
        )
    return found
