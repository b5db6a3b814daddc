"""What all tests share: those that need the paper's data are skipped, with one reason, where it is absent."""

from __future__ import annotations

import os

# Several workers share the cores: libraries that start threads of their own would only wait for one another. This must
# come before any of them is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest

from paper.data import data_folder

collect_ignore = ["extension"]  # a package of its own; tests/unit/test_extensions.py installs it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if data_folder() is None:
        absent = pytest.mark.skip(reason="GLOBECE_DATA is not set: the paper's raw data and models are not at hand")
        for item in items:
            if item.get_closest_marker("paper_data"):
                item.add_marker(absent)
