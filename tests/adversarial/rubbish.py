"""Rubbish for every parameter of every public callable, and a caller that says what came of it.

A call may succeed, where the value is a legitimate one there, or raise a :class:`globece.GlobeCEError` that names the
parameter. Anything else is *obscure*: another exception, a warning of NumPy's, a message that floods the screen, or
work that does not end within some seconds. ``python -m tests.adversarial.rubbish`` calls everything and lists what is
obscure; with ``--accepted`` it also lists what was accepted, to be judged by eye.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import decimal
import fractions
import itertools
import os
import pathlib
import random
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from globece.errors import GlobeCEError, GlobeCEWarning

SECONDS = 10.0  # of work that one call may take
PATIENCE = 6.0  # times as long on the clock: the machine may have other work to do
MEMORY = 4 * 2**30  # bytes that one call may reserve beyond what the process has
LONGEST = 1500  # letters of a message


class Contrary:
    """An object whose every answer is an error, its own description included."""

    def __repr__(self) -> str:
        raise RuntimeError("no description")

    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __index__(self) -> int:
        raise RuntimeError("no index")

    def __len__(self) -> int:
        raise RuntimeError("no length")


class Vague:
    """An object that has every attribute, all of them nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


def _generator() -> Iterator[str]:
    yield "a"


VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "np.True_": lambda: np.True_,
    "'x'": lambda: "x",
    "''": lambda: "",
    "'a'": lambda: "a",
    "'no\\0path'": lambda: "no\0path",
    "'{}'": lambda: "{}",
    "a long text": lambda: "x" * 100_000,
    "b''": lambda: b"",
    "b'x'": lambda: b"x",
    "1j": lambda: 1j,
    "np.complex128": lambda: np.complex128(1 + 1j),
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "-1": lambda: -1,
    "-1.5": lambda: -1.5,
    "0": lambda: 0,
    "1": lambda: 1,
    "1.5": lambda: 1.5,
    "1e300": lambda: 1e300,
    "5e-324": lambda: 5e-324,
    "10**9": lambda: 10**9,
    "2**63": lambda: 2**63,
    "10**400": lambda: 10**400,
    "-10**400": lambda: -(10**400),
    "10**5000": lambda: 10**5000,
    "np.int8(-1)": lambda: np.int8(-1),
    "np.array(2)": lambda: np.array(2),
    "np.array([])": lambda: np.array([]),
    "np.array([2])": lambda: np.array([2]),
    "np.array([1, 2])": lambda: np.array([1, 2]),
    "np.array(['a'])": lambda: np.array(["a"]),
    "np.array([nan])": lambda: np.array([np.nan]),
    "np.array([None])": lambda: np.array([None]),
    "np.array([True])": lambda: np.array([True, False]),
    "a cube": lambda: np.zeros((2, 2, 2)),
    "a matrix": lambda: np.zeros((3, 2)),
    "a matrix of text": lambda: np.array([["a", "b"]]),
    "a masked array": lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
    "[]": lambda: [],
    "()": lambda: (),
    "{}": lambda: {},
    "set()": lambda: set(),
    "[None]": lambda: [None],
    "['no such']": lambda: ["no such"],
    "['a']": lambda: ["a"],
    "['a', 'a']": lambda: ["a", "a"],
    "('a', 'b')": lambda: ("a", "b"),
    "[['a']]": lambda: [["a"]],
    "[1, 2]": lambda: [1, 2],
    "[2, 1]": lambda: [2.0, 1.0],
    "[-1, 1]": lambda: [-1.0, 1.0],
    "[nan]": lambda: [float("nan")],
    "[10**400]": lambda: [10**400],
    "ragged": lambda: [[1.0], [2.0, 3.0]],
    "nested": lambda: [[[[[]]]]],
    "a huge list": lambda: list(range(100_000)),
    "{'a': None}": lambda: {"a": None},
    "{'a': 1}": lambda: {"a": 1},
    "{'a': 'x'}": lambda: {"a": "x"},
    "{'a': ['x']}": lambda: {"a": ["x"]},
    "{'a': -1}": lambda: {"a": -1},
    "{'a': nan}": lambda: {"a": float("nan")},
    "{'a': 10**400}": lambda: {"a": 10**400},
    "{'a': [1]}": lambda: {"a": [1]},
    "{'a': (2, 1)}": lambda: {"a": (2, 1)},
    "{'a': [[]]}": lambda: {"a": [[]]},
    "{'a': array}": lambda: {"a": np.array([1, 2])},
    "{'a': frame}": lambda: {"a": pd.DataFrame({"a": [1]})},
    "{'c': 'p'}": lambda: {"c": "p"},
    "{'c': ['p']}": lambda: {"c": ["p"]},
    "{'c': {}}": lambda: {"c": {}},
    "{'no such': 1}": lambda: {"no such": 1},
    "{1: 2}": lambda: {1: 2},
    "{None: None}": lambda: {None: None},
    "{('a',): 1}": lambda: {("a",): 1},
    "a defaultdict": lambda: collections.defaultdict(list),
    "object()": object,
    "int": lambda: int,
    "a function": lambda: lambda: None,
    "a function of one": lambda: lambda rows: rows,
    "a function that raises": lambda: lambda *given, **named: 1 / 0,
    "len": lambda: len,
    "a module": lambda: np,
    "an exception": lambda: ValueError("x"),
    "a generator": _generator,
    "an endless one": lambda: itertools.repeat("a"),
    "an endless count": itertools.count,
    "range(3)": lambda: range(3),
    "a frame": lambda: pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}),
    "an empty frame": pd.DataFrame,
    "a frame of lists": lambda: pd.DataFrame({"a": [[1], [2]]}),
    "a Series": lambda: pd.Series([1.0, 2.0], name="a"),
    "a Series of names": lambda: pd.Series(["a"]),
    "an Index": lambda: pd.Index(["a"]),
    "pd.NA": lambda: pd.NA,
    "pd.NaT": lambda: pd.NaT,
    "a Timestamp": lambda: pd.Timestamp("2020-01-01"),
    "a datetime": lambda: datetime.datetime(2020, 1, 1),
    "a timedelta": lambda: datetime.timedelta(1),
    "a datetime64": lambda: np.datetime64("2020-01-01"),
    "a timedelta64": lambda: np.timedelta64(3, "ns"),
    "np.void": lambda: np.void(b"x"),
    "Decimal": lambda: decimal.Decimal("1.5"),
    "Decimal nan": lambda: decimal.Decimal("nan"),
    "Decimal snan": lambda: decimal.Decimal("snan"),
    "Decimal 1e400": lambda: decimal.Decimal("1e400"),
    "Fraction": lambda: fractions.Fraction(3, 2),
    "Fraction 1/10**400": lambda: fractions.Fraction(1, 10**400),
    "Fraction 10**400": lambda: fractions.Fraction(10**400, 1),
    "a path": lambda: pathlib.Path("no such folder/no such file"),
    "a folder": lambda: pathlib.Path("."),
    "a memoryview": lambda: memoryview(b"xy"),
    "a namespace": lambda: SimpleNamespace(space=None, names=("a",)),
    "contrary": Contrary,
    "vague": Vague,
    "a random state": lambda: np.random.RandomState(0),
    "a random generator": lambda: np.random.default_rng(0),
}


class Hang(BaseException):
    """A call took too long."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call: ``"accepted"``, ``"clear"`` or ``"obscure"``, and what was said."""

    kind: str
    said: str


@dataclass(frozen=True)
class Door:
    """A public callable with arguments that it takes, and the parameters to spoil one by one.

    Attributes
    ----------
    name
        What to call it.
    call
        Takes the arguments by name.
    good
        A fresh set of arguments that work.
    parameters
        Which to spoil.
    called
        Words that a message may use for a parameter instead of its name.
    """

    name: str
    call: Callable[..., Any]
    good: Mapping[str, Any]
    parameters: tuple[str, ...]
    called: Mapping[str, tuple[str, ...]]


def tried(door: Door, parameter: str, value: Any, seconds: float = SECONDS) -> Outcome:
    """Call a door with one parameter spoilt."""
    if parameter == "progress" and callable(value) and not isinstance(value, type):
        return Outcome("accepted", "what the user's own function raises is the user's")
    before = {number: signal.signal(number, _alarm) for number in (signal.SIGALRM, signal.SIGPROF)}
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_reserved() + MEMORY, limits[1]))
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * seconds)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", GlobeCEWarning)
            answer = door.call(**{**door.good, parameter: value})
        return Outcome("accepted", type(answer).__name__)
    except GlobeCEError as error:
        return _judged(door, parameter, f"{type(error).__name__}: {error}")
    except OSError as error:
        # what the system says about a file, with its name, is as clear as it gets
        named = error.filename is not None
        return Outcome("clear" if named else "obscure", f"{type(error).__name__}: {error}")
    except Hang:
        return Outcome("obscure", f"no answer within {seconds:g} s")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return Outcome("obscure", f"{type(error).__name__}: {_text(error)[:300]}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _judged(door: Door, parameter: str, said: str) -> Outcome:
    words = (parameter, *door.called.get(parameter, ()))
    if not any(re.search(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", said) for word in words):
        return Outcome("obscure", f"does not name {parameter}: {said[:300]}")
    if len(said) > LONGEST:
        return Outcome("obscure", f"says too much ({len(said):,} letters): {said[:200]}")
    return Outcome("clear", said)


def _alarm(number: int, frame: Any) -> None:
    raise Hang


def _reserved() -> int:
    return int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(it cannot be told)"


def calls(doors: list[Door], values: Mapping[str, Callable[[], Any]]) -> Iterator[tuple[Door, str, str]]:
    """Every door, parameter and name of a value."""
    for door in doors:
        for parameter in door.parameters:
            for name in values:
                yield door, parameter, name


def main() -> None:
    """Call everything, and list what is obscure."""
    from tests.adversarial.doors import all_doors, more_values, warm_up

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--accepted", action="store_true", help="list what was accepted, too")
    parser.add_argument("--clear", action="store_true", help="list the messages, too")
    parser.add_argument("--only", default="", help="doors whose name holds this")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--share", type=float, default=1.0, help="of the calls, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.chdir(tempfile.mkdtemp(prefix="rubbish-"))  # some values are the names of files
    drawn = random.Random(given.seed)
    doors = [d for d in all_doors() if given.only in d.name]
    values = VALUES | more_values()
    warm_up()
    counts: collections.Counter[str] = collections.Counter()
    shown: dict[tuple[str, str], dict[str, list[str]]] = {}
    for door, parameter, name in calls(doors, values):
        if drawn.random() >= given.share:
            continue
        started = time.process_time()
        found = tried(door, parameter, values[name](), given.seconds)
        took = time.process_time() - started
        counts[found.kind] += 1
        if took > 2.0:
            print(f"slow: {door.name}({parameter}={name}) took {took:.1f} s: {found.kind}", flush=True)
        if found.kind == "obscure" or (given.accepted and found.kind == "accepted") or given.clear:
            key = (f"{door.name}({parameter}=)", found.kind)
            said = "" if found.kind == "accepted" else found.said
            shown.setdefault(key, {}).setdefault(said, []).append(name)
    for (where, kind), messages in shown.items():
        print(f"{kind}: {where}")
        for text, names in messages.items():
            print(f"    {', '.join(names)}" + (f"\n        {text}" if text else ""))
    print(f"{sum(counts.values()):,} calls:", ", ".join(f"{n:,} {kind}" for kind, n in sorted(counts.items())))
    sys.exit(bool(counts["obscure"]))


if __name__ == "__main__":
    main()
