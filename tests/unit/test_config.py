"""Configuration files: what may be said, and how each mistake is named, with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from globece.cli import main
from globece.cli.config import DEEPEST, FEATURE, KEYS, LARGEST, LONGEST_LINE, FeatureWish, line_of, read_config
from globece.errors import InvalidParameterError

WHOLE = b"""
[data]
file = "loans.csv"
[model]
kind = "logistic"
[outcome]
column = "approved"
favourable = true
[search]
directions = "auto"
seed = 3
[audit]
by = ["sex", "age:25,45"]
[gates]
fail_on = ["relevant"]
[features]
income = { range = [0, 1e5], weight = 2, whole = true }
"a b" = { kind = "ordinal", order = ["low", "high"], may = "rise" }
[features.sex]
may = "fixed"
"""


def test_reads_what_is_said() -> None:
    config = read_config(WHOLE)
    assert config.options() == {
        "data": "loans.csv",
        "model": "logistic",
        "outcome": "approved",
        "favourable": "True",
        "directions": "auto",
        "seed": 3,
        "by": ["sex", "age:25,45"],
        "fail_on": ["relevant"],
    }
    assert config.features == {
        "income": FeatureWish(range=(0, 1e5), weight=2, whole=True),
        "a b": FeatureWish(kind="ordinal", order=("low", "high"), may="rise"),
        "sex": FeatureWish(may="fixed"),
    }
    assert config.features["income"].said() == {"range": [0, 1e5], "weight": 2, "whole": True}
    assert config.get("outcome", "column") == "approved"
    assert config.get("cost", "budget") is None


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_bytes(b"")
    config = read_config(tmp_path / "empty.toml")
    assert not config.options()
    assert not config.features


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[outcome]\n\nfavorable = 1", "line 3: unknown key 'favorable' in [outcome]. Did you mean 'favourable'?"),
        (b"[gate]\nfail_on = []", "line 1: unknown section 'gate'. Did you mean 'gates'?"),
        (b"[audit]\nfail_on = []", "line 2: unknown key 'fail_on' in [audit]. It belongs in [gates]. Allowed: by,"),
        (b"favourable = 1", "line 1: unknown section 'favourable'. It belongs in [outcome]."),
        (b"[features]\nsex = { mays = 'rise' }", "line 2: unknown key 'mays' in [features.sex]. Did you mean 'may'?"),
        (b"[features.sex]\nmay = 'rize'", "line 2: may must be one of 'free', 'rise', 'fall', 'fixed'; got 'rize'"),
        (b"[features.sex]\nmay = 'rize'", "got 'rize'. Did you mean 'rise'?"),
        (b"[features]\nsex = 'fixed'", "line 2: a feature's line must be a table"),
        (b"[features]\na = { kind = 'ordinal' }", "line 2: 'a' is ordinal and needs order"),
        (b"[features]\na = { kind = 'continuous', order = [1] }", "only an ordinal feature has one"),
        (b"[features]\na = { range = [2, 1] }", "range must be [lowest, highest] or 'unbounded'; got [2, 1]"),
        (b"[features]\na = { weight = 0 }", "weight must be a number > 0; got 0"),
        (b"[model]\nfile = 'm.ubj'\nkind = 'forest'", "line 3: [model] has both file and kind"),
        (b"[model]\nallow_pickle = true", "line 2: allow_pickle cannot stand in a configuration"),
        (b"[model]\ntrusted = ['os.system']", "trusted cannot stand in a configuration"),
        (b"[search]\ntime_limit = nan", "line 2: time_limit must be a number; got nan"),
        (b"[search]\nseed = true", "seed must be a whole number >= 0; got True"),
        (b"[outcome]\nfavourable = 2020-01-01", "line 2: favourable must be text, a number, true or false"),
        (b"[[data]]", "'data' must be a section, [data]"),
        (b"data = 3", "line 1: 'data' must be a section, [data]; got 3"),
        (b"[audit\n", "is not TOML: Expected ']'"),
        (b"[audit]\nby = ['\xe9']", "line 2: not UTF-8"),
        (b"a = " + b"[" * 20_000, "is not TOML: it is nested too deeply"),
        (b"a = " + b"1" * 5_000, "is not TOML: Exceeds the limit"),
        (b"\n" + b"a." * 10_000 + b"a = 1", f"line 2: a key of more than {DEEPEST} parts"),
        (b"x = {" + b'"a b".a.' * 400 + b"a = 1}", "line 1: a key of more than"),
        (b"#" * (LONGEST_LINE + 1), "line 1: longer than 32,768 letters"),
        (b"#\n" * LARGEST, "too large"),
    ],
)
def test_each_mistake_is_named_with_its_line(content: bytes, message: str) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        read_config(content)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match=r"nowhere\.toml'?: it does not exist"):
        read_config(tmp_path / "nowhere.toml")
    with pytest.raises(InvalidParameterError, match="it is a folder"):
        read_config(tmp_path)
    (tmp_path / "c.toml").write_text("[audit]\nbi = []\n", encoding="utf-8")
    with pytest.raises(InvalidParameterError, match=r"c\.toml, line 2: unknown key 'bi'"):
        read_config(tmp_path / "c.toml")


def test_lines_are_found_by_the_longest_part_of_the_path() -> None:
    text = '[features]\n"a.b" = { may = "rise" }\n[features."c d"]\nmay = "rise"\n[audit]\nby = []\n'
    assert line_of(text, ("features", "a.b", "may")) == 2
    assert line_of(text, ("features", "c d", "may")) == 4
    assert line_of(text, ("audit", "by")) == 6
    assert line_of(text, ("gates", "by")) is None


TOML = st.recursive(
    st.one_of(
        st.integers(-3, 10**20).map(str), st.sampled_from(["true", "nan", "-inf", "1e400", '"x"', "'sex'", "[]"])
    ),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
    max_leaves=5,
)
LINES = st.one_of(
    st.sampled_from([f"[{section}]" for section in (*KEYS, "features", 'features."a b"', "nothing")]),
    st.tuples(
        st.sampled_from([*FEATURE, *(key for keys in KEYS.values() for key in keys), "typo", '"a.b"', "a.b"]), TOML
    ).map(" = ".join),
    st.tuples(st.sampled_from(["sex", '"a b"']), st.sampled_from([*FEATURE, "typo"]), TOML).map(
        lambda p: f"{p[0]} = {{ {p[1]} = {p[2]} }}"
    ),
    st.text(max_size=12),
)


@given(st.one_of(st.lists(LINES, max_size=8).map(lambda lines: "\n".join(lines).encode()), st.binary(max_size=60)))
def test_any_file_is_read_or_refused(content: bytes) -> None:
    try:
        config = read_config(content)
    except InvalidParameterError:
        return
    for section, values in config.values.items():
        for key, value in values.items():
            assert KEYS[section][key].fits(value)
    said: list[dict[str, Any]] = [wish.said() for wish in config.features.values()]
    assert all(FEATURE[key].fits(value) for wish in said for key, value in wish.items())


def test_what_does_not_fit_the_data_is_said_with_its_line(tmp_path: Path) -> None:
    rows = "".join(f"{20 + i},{'ab'[i % 2]},{i % 2}\n" for i in range(40))
    (tmp_path / "d.csv").write_text(f"age,home,y\n{rows}", encoding="utf-8")
    (tmp_path / "g.toml").write_text("[features]\nage = {}\nhome = { range = [1, 3] }\n", encoding="utf-8")
    given = [tmp_path / "d.csv", "--model", "logistic", "--outcome", "y", "--favourable", "1"]
    result = CliRunner().invoke(main, [str(a) for a in ("explain", *given, "--config", tmp_path / "g.toml")])
    assert result.exit_code == 2
    assert "'home'" in result.stderr
    assert "g.toml, line 3" in result.stderr
