"""What comes back to a column fits its type: narrow floats round as told, whole numbers never wrap around."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from globece import FeatureSpace

TENTHS = np.arange(1, 9) / 10


def frames_of_floats() -> list[Any]:
    """Return one column ``a`` in every type of floats of every library, with its rounding."""
    out = []
    for dtype, unit in (("float64", 0.0), ("float32", 2.0**-24), ("float16", 2.0**-11), (">f4", 2.0**-24)):
        out.append(pytest.param(pd.DataFrame({"a": TENTHS.astype(dtype)}), unit, id=f"pandas {dtype}"))
    for dtype, unit in (
        ("Float32", 2.0**-24),
        ("Float64", 0.0),
        ("float[pyarrow]", 2.0**-24),
        ("halffloat[pyarrow]", 2.0**-11),
    ):
        out.append(pytest.param(pd.DataFrame({"a": pd.Series(TENTHS).astype(dtype)}), unit, id=f"pandas {dtype}"))
    for dtype, unit in ((pl.Float32, 2.0**-24), (pl.Float64, 0.0)):
        out.append(pytest.param(pl.DataFrame({"a": pl.Series(TENTHS, dtype=dtype)}), unit, id=f"polars {dtype}"))
    for dtype, unit in ((pa.float16(), 2.0**-11), (pa.float32(), 2.0**-24), (pa.float64(), 0.0)):
        out.append(pytest.param(pa.table({"a": pa.array(TENTHS).cast(dtype)}), unit, id=f"pyarrow {dtype}"))
    for dtype, unit in (("float64", 0.0), ("float32", 2.0**-24), ("float16", 2.0**-11), (">f4", 2.0**-24)):
        out.append(pytest.param(TENTHS.astype(dtype).reshape(-1, 1), unit, id=f"matrix {dtype}"))
    return out


@pytest.mark.parametrize(("X", "unit"), frames_of_floats())
def test_rounding_is_what_decoding_does(X: Any, unit: float) -> None:
    space = FeatureSpace.from_frame(X)
    assert space.rounding.tolist() == [unit]
    assert not space.rounding.flags.writeable
    Z = np.linspace(0.1, 0.8, 999).reshape(-1, 1)
    settled = space.settle(Z)
    np.testing.assert_array_equal(space.encode(space.decode(Z)), settled)
    if unit:
        error = np.abs(settled - Z) / Z
        assert unit / 4 < error.max() <= unit
    else:
        assert settled is Z


def test_only_columns_of_narrow_floats_round() -> None:
    X = pd.DataFrame(
        {
            "n": np.arange(4, dtype=np.int8),
            "c": list("abab"),
            "f": np.float32([0.1, 0.2, 0.3, 0.4]),
            "o": pd.Categorical(list("xyxy"), ordered=True),
            "d": [0.1, 0.2, 0.3, 0.4],
        }
    )
    space = FeatureSpace.from_frame(X)
    assert space.rounding.tolist() == [0, 0, 0, 2.0**-24, 0, 0]
    M = np.array([[1, 0, 0.5], [0, 1, 0.25]], dtype=np.float32)
    grouped = FeatureSpace.from_matrix(M, columns=["g1", "g2", "v"], groups={"g": ["g1", "g2"]})
    assert grouped.rounding.tolist() == [0, 0, 2.0**-24]
