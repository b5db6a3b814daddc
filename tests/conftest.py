"""What all tests share: those that need the paper's data are skipped, with one reason, where it is absent."""

from __future__ import annotations

import pytest

from tests.paper_models import data_folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if data_folder() is None:
        absent = pytest.mark.skip(reason="GLOBECE_DATA is not set: the paper's raw data and models are not at hand")
        for item in items:
            if item.get_closest_marker("paper_data"):
                item.add_marker(absent)
