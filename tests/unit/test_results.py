"""Explanations as files: exact both ways, strict, checked, in one piece."""

from __future__ import annotations

import copy
import datetime
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator

from globece import CostModel, Explanation, FeatureSpace, Settings, as_model, explain
from globece.costs import Scale
from globece.errors import FileFormatError, GlobeCEError, InvalidDataError, InvalidParameterError
from globece.explanation import Provenance
from globece.io import files, native, plain, results
from globece.space import Feature
from globece.tables import FrameTable, read_table

GOLDEN = Path(__file__).parents[1] / "golden" / "explanation-v1.json"
VALIDATOR = Draft202012Validator(results.FORMAT.schema())
QUICK = Settings(grid=16)

# -- examples ---------------------------------------------------------------------------------------------------------


def pandas_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [20, 35, 50, 28, 61, 44],
            "income": [1.5, 2.25, np.nan, 0.1, 7.75, 2.5],
            "f32": np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], dtype=np.float32),
            "city": ["a", None, "b", "a", "b", "b"],
            "obj": pd.Series(["p", None, "q", "p", "q", "p"], dtype=object),
            "text": pd.array(["u", None, "v", "u", "v", "v"], dtype="string"),
            "python": pd.array(["u", "w", "v", "u", "v", "v"], dtype=pd.StringDtype("python")),
            "own": [True, False, True, True, False, False],
            "maybe": pd.array([True, None, False, True, True, False], dtype="boolean"),
            "nint": pd.array([1, None, 3, 2, 5, 4], dtype="Int64"),
            "arrow": pd.array([1.5, None, 2.5, 3.5, 1.0, 2.0], dtype=pd.ArrowDtype(pa.float64())),
            "cat": pd.Categorical(["x", "y", "x", "y", "x", "x"], categories=["y", "x", "z"]),
            "band": pd.Categorical([1, 2, 1, 3, 2, 1], categories=[3, 2, 1]),
            "size": pd.Categorical(["S", "L", "M", "S", None, "L"], categories=["S", "M", "L"], ordered=True),
        }
    )


def polars_frame() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "age": [20, 35, 50, 28, 61, 44],
            "income": [1.5, 2.25, None, 0.1, 7.75, 2.5],
            "f32": pl.Series([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], dtype=pl.Float32),
            "u8": pl.Series([1, 2, 3, 4, 5, None], dtype=pl.UInt8),
            "city": ["a", None, "b", "a", "b", "b"],
            "own": [True, False, True, True, None, False],
            "cat": pl.Series(["x", "y", "x", "y", "x", "x"], dtype=pl.Categorical),
            "enum": pl.Series(["x", "y", "x", "y", "x", None], dtype=pl.Enum(["y", "x", "z"])),
        }
    )


def arrow_table() -> pa.Table:
    return pa.table(
        {
            "age": [20, 35, 50, 28, 61, 44],
            "income": [1.5, 2.25, None, 0.1, 7.75, 2.5],
            "f32": pa.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], pa.float32()),
            "city": ["a", None, "b", "a", "b", "b"],
            "large": pa.array(["a", "c", "b", "a", "b", "b"], pa.large_string()),
            "own": [True, False, True, True, None, False],
            "cat": pa.array(["x", "y", "x", "y", "x", "x"]).dictionary_encode(),
        }
    )


def age_of(X: Any) -> np.ndarray:
    return X[:, 0] if isinstance(X, np.ndarray) else np.asarray(X["age"]).astype(float)


def elderly(X: Any) -> np.ndarray:
    return (age_of(X) >= 45).astype(int)


def from_frame(make: Callable[[], Any], **space: Any) -> Explanation:
    X = make()
    return explain(elderly, X, space=FeatureSpace.from_frame(X, **space), n_directions=2, rng=0, settings=QUICK)


def from_matrix() -> Explanation:
    X = np.array([[20, 1, 0, 7], [50, 0, 1, 8], [30, 0, 1, 9], [44, 1, 0, 7]], dtype=np.int32)
    names = ["age", "job = a", "job = b", "code"]
    space = FeatureSpace.from_matrix(X, columns=names, groups={"job": names[1:3]}, categorical=["code"])
    return explain(elderly, X, space=space, n_directions=2, rng=0, settings=QUICK)


def with_deciles() -> Explanation:
    X = np.random.default_rng(3).gamma(2.0, 20.0, (60, 3))
    space = FeatureSpace.from_matrix(X, ranges="unbounded", decreasing=["x2"])
    cost = CostModel.deciles(space, X, weights={"x1": 0.1 + 0.2}, norm="l2")
    return explain(lambda X: X[:, 0] - X[:, 1] > 1, X, space=space, cost=cost, budget=2.0, rng=0, settings=QUICK)


def nobody_affected() -> Explanation:
    return explain(lambda X: np.ones(len(X)), pandas_frame(), favourable=1, rng=0)


def nobody_covered() -> Explanation:
    X = np.array([[1.0], [2.0], [3.0]])
    return explain(lambda X: np.zeros(len(X)), X, favourable=1, rng=0, settings=QUICK)


EXAMPLES: dict[str, Callable[[], Explanation]] = {
    "pandas": lambda: from_frame(pandas_frame, categorical=["nint"], immutable=["city"], increasing=["age"]),
    "polars": lambda: from_frame(polars_frame, ordinal={"city": ["b", "c", "a"]}, categorical=["u8"]),
    "pyarrow": lambda: from_frame(arrow_table, permitted={"city": ["a"]}),
    "matrix": from_matrix,
    "deciles": with_deciles,
    "nobody affected": nobody_affected,
    "nobody covered": nobody_covered,
}


@pytest.fixture(scope="module", params=EXAMPLES)
def ex(request: pytest.FixtureRequest) -> Explanation:
    return EXAMPLES[request.param]()


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return document


def equal(a: Any, b: Any) -> bool:
    """The same values of the same types, NaN equal to NaN."""
    if isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b)
        return True
    if isinstance(a, pl.DataFrame):
        return a.schema == b.schema and a.equals(b)
    if isinstance(a, pa.Table):
        return bool(a.equals(b)) and a.schema.equals(b.schema)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if hasattr(a, "__dataclass_fields__"):
        return type(a) is type(b) and all(equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return bool(a == b)


# -- there and back ---------------------------------------------------------------------------------------------------


def test_round_trip_is_exact(ex: Explanation) -> None:
    text = ex.to_json()
    back = Explanation.from_json(text)
    assert back.to_json() == text
    for name in ("directions", "inputs", "scalars", "costs", "rows"):
        ours, theirs = getattr(ex, name), getattr(back, name)
        assert (theirs.dtype, theirs.shape) == (ours.dtype, ours.shape)
        assert np.array_equal(np.isnan(ours), np.isnan(theirs))
        assert np.nan_to_num(ours).tobytes() == np.nan_to_num(theirs).tobytes()
    assert back.space.features == ex.space.features
    assert (back.n_rows, back.budget, back.max_scalar) == (ex.n_rows, ex.budget, ex.max_scalar)
    assert back.provenance == ex.provenance
    assert back.model is None


def test_views_are_the_same_after_reading(ex: Explanation) -> None:
    back = Explanation.from_json(ex.to_json())
    for name in ("coverage", "average_cost", "score"):
        assert getattr(back, name) == getattr(ex, name)
    for name in ("profile", "minimum_costs", "mean_translation", "counterfactuals"):
        assert equal(getattr(ex, name)(), getattr(back, name)()), name
    for i in range(ex.n_directions):
        assert back.rules_chart(i) == ex.rules_chart(i)
    assert back.summary() == ex.summary()
    assert type(back.to_frame()) is type(ex.to_frame())


def test_written_files_fit_the_schema(ex: Explanation) -> None:
    VALIDATOR.validate(json.loads(ex.to_json()))
    assert json.loads(ex.to_json()) == ex.to_dict()


def test_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(results.FORMAT.schema())


def test_text_is_strict_json(ex: Explanation) -> None:
    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is not JSON")

    json.loads(ex.to_json(), parse_constant=refuse)
    assert ex.to_json().isascii()


def test_file_holds_the_text(ex: Explanation, tmp_path: Path) -> None:
    path = tmp_path / "ex.json"
    text = ex.to_json(path)
    assert path.read_bytes() == text.encode()
    assert Explanation.from_json(path).to_json() == text
    assert Explanation.from_json(str(path)).to_json() == text


@pytest.mark.parametrize(
    ("kind", "written", "apart"),
    [
        (Explanation, lambda d: {**d, "encoded": d["inputs"]}, {"model", "n_unknown"}),  # written unless it is 0
        (
            Provenance,
            lambda d: d["provenance"],
            {"clearance", "seed", "data", "decisions", "headroom"},
        ),  # written if known
        (Feature, lambda d: d["space"]["features"][0], set()),
        (CostModel, lambda d: d["cost"], {"space"}),
        (Scale, lambda d: d["cost"]["scales"][0], set()),
    ],
)
def test_every_field_is_written(kind: type, written: Callable[[Any], Any], apart: set[str], golden: Any) -> None:
    # A new field needs a place in the file, and so a new version of the format.
    assert {f.name for f in fields(kind)} - apart <= set(written(golden))


@pytest.mark.parametrize("make", [pandas_frame, polars_frame, arrow_table])
def test_frames_come_back_with_their_types(make: Callable[[], Any]) -> None:
    X = make()
    space = FeatureSpace.from_frame(X)
    described = native.describe(space.table)
    table = native.rebuild(plain.Node(json.loads(json.dumps(described)), "table", "memory"))
    assert native.describe(table) == described
    assert equal(X, FeatureSpace(space.features, table).decode(space.encode(X)))


@pytest.mark.parametrize(
    "dtype",
    ["float16", "float32", "int8", "uint64", "Float32", "UInt8", "int64[pyarrow]", "double[pyarrow]"],
)
def test_types_of_numbers_come_back(dtype: str) -> None:
    X = pd.DataFrame({"age": pd.Series([20, 50, 30], dtype=dtype)})
    ex = explain(elderly, X, rng=0, settings=QUICK)
    assert Explanation.from_json(ex.to_json()).counterfactuals().before["age"].dtype == X["age"].dtype


@pytest.mark.parametrize(
    "column",
    [
        pl.Series("age", [20, 50, 30], dtype=pl.Int16),
        pl.Series("age", ["20", "50", "30"]).cast(pl.Decimal(10, 2)),
        pa.chunked_array([pa.array([20, 50, 30], pa.decimal128(10, 2))]),
        pa.chunked_array([pa.array([20, 50, 30], pa.uint16())]),
    ],
    ids=str,
)
def test_rarer_types_come_back(column: Any) -> None:
    X = pl.DataFrame({"age": column}) if isinstance(column, pl.Series) else pa.table({"age": column})
    described = native.describe(FeatureSpace.from_frame(X).table)
    table = native.rebuild(plain.Node(described, "table", "memory"))
    assert isinstance(table, FrameTable)
    assert table.frame.to_native().schema == X.schema


def test_arrow_dictionary_inside_pandas_comes_back() -> None:
    dtype = pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
    table = read_table(pd.DataFrame({"d": pd.Series([], dtype=dtype)}))
    back = native.rebuild(plain.Node(native.describe(table), "table", "memory"))
    assert isinstance(back, FrameTable)
    assert back.frame.to_native()["d"].dtype == dtype


def test_categories_keep_their_types() -> None:
    values = ["1", 1, 2.0, 2.5, False, None, "", "(missing)", 10**30]
    X = pd.DataFrame({"age": range(40, 40 + len(values)), "v": pd.Series(values, dtype=object)})
    ex = explain(elderly, X, rng=0, settings=QUICK)
    there, back = ex.space["v"].categories, Explanation.from_json(ex.to_json()).space["v"].categories
    assert [(type(c), c) for c in back] == [(type(c), c) for c in there]
    assert {type(c) for c in back} == {str, int, float, bool, type(None)}


def test_categories_that_numpy_gave_are_plain_in_the_file() -> None:
    X = pd.DataFrame({"age": [20, 50, 30], "level": [1, 2, 3]})
    space = FeatureSpace.from_frame(X, ordinal={"level": list(np.array([1, 2, 3]))})
    ex = explain(elderly, X, space=space, rng=0, settings=QUICK)
    assert Explanation.from_json(ex.to_json()).to_json() == ex.to_json()
    assert [type(c) for c in Explanation.from_json(ex.to_json()).space["level"].categories] == [int] * 3


@pytest.mark.parametrize("odd", [datetime.date(2020, 1, 1), ("a", 1), np.inf, b"bytes"], ids=repr)
def test_category_that_json_cannot_hold_is_named(odd: Any, tmp_path: Path) -> None:
    X = pd.DataFrame({"age": [20, 50, 30], "when": pd.Series([odd, None, odd], dtype=object)})
    ex = explain(elderly, X, rng=0, settings=QUICK)
    with pytest.raises(InvalidDataError, match=r"feature 'when' holds .* which a result file cannot hold"):
        ex.to_json(tmp_path / "ex.json")
    assert list(tmp_path.iterdir()) == []


def test_hostile_names_and_values_come_back() -> None:
    names = ["age", "</script>", '"}', "=cmd()", "__proto__", "\u2028", "\x00"]
    X = pd.DataFrame({name: [20, 50, 30] for name in names})
    X["</script>"] = pd.Series(["\ud800", "<img onerror=1>", "\x00"], dtype=object)
    ex = explain(elderly, X, rng=0, settings=QUICK)
    back = Explanation.from_json(ex.to_json())
    assert back.space.names == tuple(names)
    assert back.to_json() == ex.to_json()


def test_other_rows_can_be_explained_after_reading() -> None:
    X = pandas_frame()
    ex = explain(elderly, X, rng=0, settings=QUICK)
    back = Explanation.from_json(ex.to_json())
    model = as_model(elderly, back.space)
    assert equal(back.apply(X.head(3), model=model).scalars, ex.apply(X.head(3), model=model).scalars)
    with pytest.raises(InvalidParameterError, match="read from a file and has no model"):
        back.apply(X)


def test_endless_scalar_is_no_limit() -> None:
    X = np.array([[1.0], [2.0], [3.0]])
    ex = explain(lambda X: X[:, 0] > 2, X, rng=0, settings=Settings(max_scalar=np.inf))
    assert json.loads(ex.to_json())["max_scalar"] is None
    assert Explanation.from_json(ex.to_json()).to_json() == ex.to_json()


# -- the same bytes (promise 2) ---------------------------------------------------------------------------------------

FRESH = """
import sys
import numpy as np, pandas as pd
from globece import FeatureSpace, Settings, explain

rng = np.random.default_rng(5)
X = pd.DataFrame({
    "income": rng.normal(3, 1, 100),
    "age": rng.integers(18, 80, 100),
    "city": pd.Series(rng.choice(["a", "b", "c", "d", None], 100), dtype=object),
    "mixed": pd.Series(rng.choice(np.array([3, "x", True, None, 2.5], dtype=object), 100), dtype=object),
})
model = lambda X: X["income"] + (X["city"] == "b") + X["age"] / 100 > 4.2
ex = explain(model, X, n_directions=3, rng=0, settings=Settings(grid=16))
assert 0 < ex.n_affected < 100 and ex.n_covered
sys.stdout.write(ex.to_json())
"""


def fresh(code: str, *arguments: str, **environment: str) -> str:
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_same_seed_gives_the_same_bytes_in_fresh_processes() -> None:
    first, second = (fresh(FRESH, PYTHONHASHSEED=seed) for seed in ("1", "4242"))
    assert first == second
    assert Explanation.from_json(first).to_json() == first


# -- files that are not what they claim -------------------------------------------------------------------------------


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    text = GOLDEN.read_text(encoding="utf-8").rstrip()
    path = tmp_path / "cut.json"
    for end in range(0, len(text), 7):
        path.write_text(text[:end])
        with pytest.raises(FileFormatError, match=r"cut\.json is not JSON, or is cut off"):
            Explanation.from_json(path)


def edited(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(document)
    at = changed
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = value
    return changed


def without(document: Any, place: tuple[Any, ...]) -> Any:
    changed = copy.deepcopy(document)
    at = changed
    for step in place[:-1]:
        at = at[step]
    del at[place[-1]]
    return changed


def test_a_place_that_no_array_has_is_named(golden: Any, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(edited(edited(golden, ("n_rows",), 10**30), ("rows", 3), 2**63)))
    with pytest.raises(FileFormatError, match=r"rows\[3\] must be a whole number from 0 to 9223372036854775807"):
        Explanation.from_json(path)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("format",), "something.else", r"format must be one of \['globece.explanation'\]; got 'something.else'"),
        (("version",), 2, "of version 2, and globece .* reads up to version 1; read it with a newer release"),
        (("version",), "1", "version must be a whole number from 1 on; got '1'"),
        (("version",), True, "version must be a whole number"),
        (("budget",), 0, "budget must be a finite number above 0; got 0"),
        (("budget",), None, "budget must be a finite number above 0; got null"),
        (("n_rows",), 3, r"rows\[2\] must be a whole number from 0 to 2; got 3"),
        (("rows",), [0, 2, 3], r"scalars\[0\] must have 3 entries, one for each affected input; it has 4"),
        (("rows",), [0, 2, 3, 3], "rows must be different positions"),
        (("rows", 0), 10**30, r"rows\[0\] must be a whole number from 0 to 5"),
        (("inputs",), [], "inputs must have 4 entries, one for each feature; it has 0"),
        (("inputs", 0), [1.0], r"inputs\[0\] must have 4 entries, one for each affected input; it has 1"),
        (("inputs", 0, 1), "50", r"inputs\[0\]\[1\] must be a finite number or null; got '50'"),
        (("inputs", 0, 1), 10**400, r"inputs\[0\]\[1\] must be a finite number or null"),
        (("inputs", 2, 0), 3, r"inputs\[2\]\[0\] must be a whole number from 0 to 2; got 3"),
        (("inputs", 2, 0), None, r"inputs\[2\]\[0\] must be a whole number"),
        (("inputs", 3, 2), 3.0, r"inputs\[3\]\[2\] must be a position among 3 categories, or null; got 3.0"),
        (("inputs", 3, 2), 0.5, r"inputs\[3\]\[2\] must be a position among 3 categories"),
        (("directions", 0), [1.0], r"directions\[0\] must have 6 entries, one for each encoded column; it has 1"),
        (("directions", 1, 0), None, r"directions\[1\]\[0\] must be a finite number; got null"),
        (("directions",), [], "scalars must have 0 entries, one for each direction; it has 2"),
        (("scalars", 0), [1.0], r"scalars\[0\] must have 4 entries"),
        (("scalars", 0, 0), -1.0, "scalars must be numbers from 0 on, or null for no recourse"),
        (("scalars", 0, 0), None, "costs must be null exactly where scalars is"),
        (("costs",), {}, "costs must be a list; got {}"),
        (("cost", "norm"), "l3", r"cost.norm must be one of \['l1', 'l2'\]; got 'l3'"),
        (("cost", "weights"), [1.0], r"cost.weights must have 4 entries, one for each feature; it has 1"),
        (("cost", "weights", 2), 0.0, r"cost.weights\[2\] must be a finite number above 0; got 0.0"),
        (("cost", "scales", 0, "feature"), "housing", r"cost.scales\[0\].feature must be one of \['age', 'income'"),
        (("cost", "scales", 0, "knots"), [2.0, 1.0], r"cost.scales\[0\].knots must be two or more rising numbers"),
        (("cost", "scales", 0, "levels"), [1.0], r"levels must have 2 entries, one for each knot; it has 1"),
        (("space", "features"), [], "space.features must be a list of at least one feature"),
        (("space", "features", 0, "start"), 1, r"space.features\[0\].start must be 0; got 1"),
        (("space", "features", 2, "stop"), 9, r"space.features\[2\].stop must be 5; got 9"),
        (("space", "features", 2, "categories"), ["own"], r"space.features\[2\].stop must be 3; got 5"),
        (
            ("space", "features", 2, "permitted"),
            [True],
            "permitted must have 3 entries, one for each category; it has 1",
        ),
        (("space", "features", 2, "categories", 1), "own", "categories must be 1 or more different values"),
        (("space", "features", 2, "permitted", 1), 1, r"permitted\[1\] must be true or false; got 1"),
        (("space", "features", 0, "kind"), "odd", r"features\[0\].kind must be one of"),
        (("space", "features", 0, "kind"), "ordinal", "categories must be 2 or more different values"),
        (("space", "features", 0, "name"), "income", "features must be features of different names"),
        (("space", "features", 0, "sources"), ["x"], "features whose sources are the columns .* each once"),
        (("space", "features", 0, "sources"), ["age", "x"], "sources must be one column; got"),
        (("space", "table", "kind"), "heap", r"space.table.kind must be one of \['matrix', 'frame'\]"),
        (("space", "table", "columns", 0), "income", "space.table.columns must be different names"),
        (("space", "table", "types"), [], "space.table.types must have 4 entries, one for each column; it has 0"),
        (("provenance", "notes"), "x", "provenance.notes must be a list; got 'x'"),
        (("extra",), 1, r"the document has unknown key\(s\) \['extra'\]"),
    ],
    ids=str,
)
def test_wrong_values_are_named(place: tuple[Any, ...], value: Any, message: str, golden: Any, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(edited(golden, place, value)))
    with pytest.raises(FileFormatError, match=message) as caught:
        Explanation.from_json(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON, or is cut off"),
        ("[]", "the document must be an object; got \\[\\]"),
        ("{}", "the document lacks the key 'format'"),
        ('{"format": "globece.explanation"}', "the document lacks the key 'version'"),
        ('{"format": "globece.explanation", "version": 1}', "the document lacks the key 'provenance'; it has"),
        ('{"format": NaN}', "not strict JSON: NaN is no number of JSON"),
        ('{"a": 1, "a": 2}', "not strict JSON: the key 'a' comes twice in one object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"format": ' + "1" * 5000 + "}", "not strict JSON: Exceeds the limit"),
        ("\x89PNG", "not JSON"),
    ],
    ids=lambda value: value[:20],
)
def test_other_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError, match=message) as caught:
        Explanation.from_json(path)
    assert str(path) in str(caught.value)


def test_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(b"{\xff")
    with pytest.raises(FileFormatError, match=r"other.json is not text in UTF-8: .* at byte 1"):
        Explanation.from_json(path)


def test_numbers_beyond_all_numbers_are_refused() -> None:
    text = GOLDEN.read_text(encoding="utf-8").replace('"budget": 4.5', '"budget": 1e999')
    with pytest.raises(FileFormatError, match="the text given: budget must be a finite number above 0; got inf"):
        Explanation.from_json(text)


def test_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "mark.json"
    path.write_bytes(b"\xef\xbb\xbf" + GOLDEN.read_bytes())
    assert Explanation.from_json(path).n_affected == 4


@pytest.mark.parametrize("rubbish", [None, 3, 1.5, b"x.json", [], "", "a\0b"], ids=repr)
def test_source_must_be_a_path_or_text(rubbish: Any) -> None:
    with pytest.raises(InvalidParameterError, match="source must be a path; got"):
        Explanation.from_json(rubbish)


@pytest.mark.parametrize("rubbish", [3, True, b"x.json", [], "", "a\0b"], ids=repr)
def test_path_must_be_a_path(rubbish: Any) -> None:
    with pytest.raises(InvalidParameterError, match="path must be a path; got"):
        Explanation.from_json(GOLDEN).to_json(rubbish)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        if isinstance(step, int) and 0 < step < len(value) - 1:
            continue  # the ends of a list are enough
        yield from places(inner, (*at, step))


SUBSTITUTES: tuple[Any, ...] = (None, True, -1, 7, 1.5, "age", [], [1, 2], {}, float("inf"))


def damaged(document: dict[str, Any]) -> Iterator[Any]:
    """The document with one part of it missing, doubled, or something else."""
    for place in places(document):
        yield without(document, place)
        for value in SUBSTITUTES:
            yield edited(document, place, value)
        parent = document
        for step in place[:-1]:
            parent = parent[step]
        if isinstance(parent, list):
            yield edited(document, place[:-1], [*parent, parent[place[-1]]])


@pytest.mark.filterwarnings("default")
def test_damage_is_noticed_or_does_no_harm(golden: Any) -> None:
    # Whatever is wrong with a file: it is refused, or everything derived from it works, or says why it does not.
    refused = harmless = 0
    for document in damaged(golden):
        try:
            ex = Explanation.from_json(json.dumps(document).replace("Infinity", "1e999"))
        except FileFormatError:
            refused += 1
            continue
        harmless += 1
        assert Explanation.from_json(ex.to_json()).to_json() == ex.to_json()
        assert 0.0 <= ex.coverage <= 1.0
        ex.profile(), ex.mean_translation(), ex.summary(), ex._repr_html_()
        if isinstance(ex.space.table, native.AbsentTable):
            with pytest.raises(GlobeCEError, match="rows cannot be put back"):
                ex.counterfactuals()
        else:
            ex.counterfactuals()
            VALIDATOR.validate(document)
    assert refused > 1000
    assert harmless > 100


# -- where the library is not at hand ---------------------------------------------------------------------------------


def test_explanation_loads_without_the_library_it_came_from() -> None:
    code = """
        import sys
        sys.modules.update(dict.fromkeys(["pandas", "polars", "pyarrow", "jsonschema"]))
        from globece import Explanation
        from globece.errors import MissingExtraError
        ex = Explanation.from_json(sys.argv[1])
        assert ex.coverage == 0.75 and ex.rules_chart(0).rows
        assert ex.to_json() == open(sys.argv[1]).read()
        try:
            ex.counterfactuals()
        except MissingExtraError as error:
            print(error)
    """
    said = fresh(code, str(GOLDEN))
    assert "rows cannot be put back into the columns they came from" in said
    assert "needs pandas, which is not installed; install it with: pip install 'globece[frames]'" in said


@pytest.mark.parametrize(
    ("place", "value"),
    [(("backend",), "modin"), (("types", 0), {"dtype": "int63"}), (("types", 2), {"dtype": "int64"})],
)
def test_type_that_cannot_be_had_is_said_when_it_is_needed(place: tuple[Any, ...], value: Any, golden: Any) -> None:
    text = plain.dump(edited(golden, ("space", "table", *place), value))
    ex = Explanation.from_json(text)
    assert ex.coverage == 0.75
    assert ex.to_json() == text
    for view in (ex.counterfactuals, ex.to_frame):
        with pytest.raises(InvalidDataError, match="rows cannot be put back into the columns they came from"):
            view()


def test_text_of_a_newer_pandas_is_text_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"dtype": "string", "storage": "pyarrow", "missing": "nan"}
    described = {"kind": "frame", "backend": "pandas", "columns": ["a"], "types": [record]}

    class Old(pd.StringDtype):
        def __init__(self, storage: str) -> None:
            raise AssertionError

    monkeypatch.setattr(pd, "StringDtype", Old)
    table = native.rebuild(plain.Node(described, "table", "memory"))
    assert isinstance(table, FrameTable)
    assert table.frame.to_native()["a"].dtype == object


# -- in one piece or not at all (promise 25) --------------------------------------------------------------------------

KILLED_BEFORE_THE_END = """
    import os, sys, time
    from globece.io import files

    def hang(handle):
        print("written", flush=True)
        time.sleep(600)

    os.fsync = hang
    files.write_text(sys.argv[1], "new " * 1_000_000)
"""
KILLED_ANYWHERE = """
    import sys
    from globece.io import files

    texts = [letter * 20_000_000 for letter in "ab"]
    print("ready", flush=True)
    while True:
        for text in texts:
            files.write_text(sys.argv[1], text)
"""


def killed(code: str, path: Path, after: float = 0.0) -> None:
    """Run code in a process of its own until it has said something, and then for a while, and kill it."""
    command = [sys.executable, "-c", textwrap.dedent(code), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        time.sleep(after)
        process.send_signal(signal.SIGKILL)


@pytest.mark.skipif(os.name != "posix", reason="kills with a signal")
@pytest.mark.parametrize("before", [None, "old"])
def test_kill_before_the_end_leaves_what_was_there(before: str | None, tmp_path: Path) -> None:
    path = tmp_path / "ex.json"
    if before is not None:
        path.write_text(before)
    killed(KILLED_BEFORE_THE_END, path)
    assert (path.read_text() if path.exists() else None) == before


@pytest.mark.skipif(os.name != "posix", reason="kills with a signal")
@pytest.mark.parametrize("after", [0.01, 0.05, 0.11, 0.2])
def test_kill_in_the_middle_leaves_a_whole_file(after: float, tmp_path: Path) -> None:
    path = tmp_path / "ex.json"
    path.write_text("old")
    killed(KILLED_ANYWHERE, path, after)
    found = path.read_text()
    assert found in ("old", "a" * 20_000_000, "b" * 20_000_000)


@pytest.mark.skipif(os.name != "posix", reason="limits the size of a file")
def test_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ex.json"
    path.write_text("old")
    code = """
        import resource, signal, sys
        from globece import Explanation

        ex = Explanation.from_json(sys.argv[1])
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            ex.to_json(sys.argv[2])
        except OSError as error:
            print(error)
    """
    said = fresh(code, str(GOLDEN), str(path))
    assert "cannot write the file: File too large" in said
    assert str(path) in said
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_interrupted_write_leaves_nothing(
    failing: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(type(error)):
        Explanation.from_json(GOLDEN).to_json(tmp_path / "ex.json")
    assert list(tmp_path.iterdir()) == []


def test_errors_of_the_system_name_the_path(tmp_path: Path) -> None:
    ex = Explanation.from_json(GOLDEN)
    with pytest.raises(FileNotFoundError, match=r"cannot write the file: No such file.*absent/ex.json"):
        ex.to_json(tmp_path / "absent" / "ex.json")
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        ex.to_json(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"absent\.json"):
        Explanation.from_json(tmp_path / "absent.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_files_keep_their_permissions_and_links(tmp_path: Path) -> None:
    target, link, new = tmp_path / "target.json", tmp_path / "link.json", tmp_path / "new.json"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    for path in (link, new):
        files.write_text(str(path), "new")
    assert link.is_symlink()
    assert target.read_text() == new.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    (plain_file := tmp_path / "plain").write_text("")
    assert new.stat().st_mode == plain_file.stat().st_mode


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name")
def test_pipe_stays_a_pipe(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    files.write_text(str(pipe), "through")
    reader.join()
    assert read == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everything")
def test_file_that_may_not_be_written_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "ex.json"
    path.write_text("old")
    path.chmod(0o400)
    with pytest.raises(PermissionError, match=r"ex\.json"):
        files.write_text(str(path), "new")
    assert path.read_text() == "old"


def test_fingerprints_do_not_depend_on_the_order_of_rows() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    order = np.random.default_rng(1).permutation(60)

    def model(rows: Any) -> Any:
        return (rows[:, 0] > 0.5).astype(int)

    def prints(X: Any, model: Any, rng: Any = 3) -> tuple[Any, ...]:
        p = explain(model, X, rng=rng, effort="quick").provenance
        return p.seed, p.data, p.decisions

    mine = prints(X, model)
    assert mine[0] == 3
    assert all(mine[1:])
    assert prints(X[order], model) == mine
    other = prints(X, lambda rows: (rows[:, 0] > 0.6).astype(int))
    assert (other[1] == mine[1], other[2] == mine[2]) == (True, False)
    assert prints(np.vstack([X, X[:1]]), model)[1] != mine[1]
    assert prints(X, model, np.random.default_rng(3))[0] is None
