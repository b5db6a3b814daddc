"""XGBoost's binary form says what its JSON says, and half of it is an error."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from globece.errors import ModelError
from globece.models.trees.ubjson import loads
from tests.problems import approve_matrix, matrix

xgboost = pytest.importorskip("xgboost")


def booster() -> Any:
    X = matrix(80)
    return xgboost.XGBClassifier(n_estimators=2, max_depth=2).fit(X, approve_matrix(X)).get_booster()


def plain(value: Any) -> Any:
    """Without arrays, and with floats as JSON prints them."""
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value.tolist()]
    if isinstance(value, dict):
        return {name: plain(v) for name, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return float(np.float32(value)) if isinstance(value, float) else value


def test_it_says_what_the_json_says() -> None:
    model = booster()
    assert plain(loads(bytes(model.save_raw("ubj")))) == plain(json.loads(bytes(model.save_raw("json"))))


def test_half_of_it_is_an_error() -> None:
    raw = bytes(booster().save_raw("ubj"))
    for end in (0, 1, len(raw) // 3, len(raw) // 2, len(raw) - 1):
        with pytest.raises(ModelError, match="not UBJSON"):
            loads(raw[:end])
    with pytest.raises(ModelError, match="byte 63 at 0 starts no value"):
        loads(b"?")
