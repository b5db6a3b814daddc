"""Damaged and hostile files: models, tables, results and configurations, read by processes that are watched.

``python -m tests.fuzzing_files 100000`` reads so many and prints what came of them. Each input is a file of a real
library, changed at random: bits, pieces, numbers, names, types, parts of other files. A file may load, and then its
model is asked about rows; or reading it raises an error of globece's. A process that dies, another error, a file that
was not named, code that runs, and memory or time without end are failures, and the input is kept.
"""

from __future__ import annotations

import importlib
import io
import json
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from globece.errors import GlobeCEError

MOST_SECONDS = 60.0  # for one input, on a machine that does other things
MOST_GIB = 2.0  # that one process may grow by
ROWS = 5
# How often each kind comes: what is read in a millisecond more often, what costs a process when it crashes less.
OFTEN = {".toml": 8.0, ".csv": 3.0, ".parquet": 3.0, ".arrow": 3.0, ".skops": 0.4, ".cbm": 0.15}
RESULTS = ("explanation.json", "audit.json", "ares.json")
CLOSELY = 8  # one in so many models is compiled too, which takes longer than reading it
TEMPORARY = tempfile.gettempdir()  # asked here: its lock is not for an audit hook
WEIRD_NUMBERS = (0, 1, -1, 2**31 - 1, 2**31, 2**63, -(2**63), 10**30, 1e308, -0.0, 5e-324, "NaN", "Infinity", "1e999")
WEIRD_TEXT = ("", "\x00", "a" * 5000, "../../etc/passwd", "__class__", "\ud800", "{}", "-1", "1e5", "=cmd()")


@dataclass(frozen=True)
class Seed:
    """A file that is as it should be: its name, its bytes, and rows for a model."""

    name: str
    raw: bytes
    rows: Any = None

    @property
    def ending(self) -> str:
        """The ending of its name."""
        return Path(self.name).suffix


# -- what is changed --------------------------------------------------------------------------------------------------


def changed(seed: Seed, others: list[Seed], rng: random.Random) -> bytes:
    """A file that is not quite as it should be."""
    kind = rng.random()
    if kind < 0.03:
        return rng.choice((b"", b"\x00", rng.randbytes(rng.randrange(1, 400)), b"[" * 100_000, b'{"a":' * 50_000))
    if kind < 0.06:
        return rng.choice(others).raw  # a file under another name
    inside = INSIDE.get(seed.ending)
    if inside is not None and kind < 0.65:
        try:
            return inside(seed.raw, rng)
        except (ValueError, KeyError, IndexError, TypeError, RecursionError, zipfile.BadZipFile):
            return _bytes(seed.raw, others, rng)
    return _bytes(seed.raw, others, rng)


def _bytes(raw: bytes, others: list[Seed], rng: random.Random) -> bytes:
    """Bytes changed, cut out, put in or repeated."""
    found = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        if not found:
            break
        at, kind = rng.randrange(len(found)), rng.random()
        if kind < 0.45:
            found[at] = rng.choice((found[at] ^ (1 << rng.randrange(8)), rng.randrange(256), 0, 255))
        elif kind < 0.6:
            del found[at : at + rng.choice((1, 4, 50, len(found)))]
        elif kind < 0.75:
            size = rng.choice((1, 2, 4, 8))
            found[at : at + size] = rng.choice((b"\xff" * size, b"\x00" * size, b"\x7f" + b"\xff" * (size - 1)))
        elif kind < 0.88:
            other = rng.choice(others).raw
            start = rng.randrange(len(other) or 1)
            found[at:at] = other[start : start + rng.choice((4, 40, 400))]
        else:
            end = at + rng.choice((1, 16, 256))
            found[at:at] = found[at:end] * rng.choice((1, 2, 50))
    return bytes(found)


def _words(raw: bytes, rng: random.Random) -> bytes:
    """Words of a text changed: numbers, names and separators."""
    text = raw.decode("utf-8", "replace")
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 6))):
        i = rng.randrange(len(lines))
        words = lines[i].split(rng.choice((" ", "=", ",", ":")))
        separator = rng.choice((" ", "=", ",", ":"))
        j = rng.randrange(len(words))
        kind = rng.random()
        if kind < 0.7:
            words[j] = str(rng.choice((*WEIRD_NUMBERS, *WEIRD_TEXT, rng.randrange(-9, 99))))
            lines[i] = (separator if len(words) > 1 else "").join(words)
        elif kind < 0.8:
            del lines[i]
        elif kind < 0.9:
            lines.insert(rng.randrange(len(lines) + 1), lines[i])
        else:
            lines[i] = lines[i] * rng.choice((2, 100))
        lines = lines or [""]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _json(raw: bytes, rng: random.Random) -> bytes:
    """Values of a document changed, exchanged, removed and repeated."""
    document = json.loads(raw)
    for _ in range(rng.choice((1, 1, 2, 6))):
        document = _value_changed(document, rng)
    return json.dumps(document).encode("utf-8", "surrogatepass")


def _value_changed(document: Any, rng: random.Random) -> Any:
    here: Any = document
    path: list[tuple[Any, Any]] = []
    while isinstance(here, dict | list) and here and (not path or rng.random() < 0.85):
        key = rng.choice(list(here)) if isinstance(here, dict) else rng.randrange(len(here))
        path.append((here, key))
        here = here[key]
    if not path:
        return rng.choice(WEIRD_TEXT)
    parent, key = path[-1]
    kind = rng.random()
    if kind < 0.55:
        parent[key] = _like(here, rng)
    elif kind < 0.7:
        del parent[key]
    elif kind < 0.85 and isinstance(parent, list):
        parent.insert(key, here if rng.random() < 0.7 else _like(here, rng))
    elif isinstance(parent, dict):
        parent[rng.choice((key, "x", *list(parent)))] = here
    return document


def _like(value: Any, rng: random.Random) -> Any:
    """Another value, often of the same type."""
    if rng.random() < 0.25:
        return rng.choice((None, True, [], {}, [[]], *WEIRD_TEXT, *WEIRD_NUMBERS))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return rng.choice((value + 1, -value, value * 1000, rng.randrange(-5, 300), *WEIRD_NUMBERS[:9]))
    if isinstance(value, str):
        if rng.random() < 0.5:
            return str(rng.choice((*WEIRD_NUMBERS, rng.randrange(-5, 300))))
        return rng.choice((value[:-1], value * 2, *WEIRD_TEXT))
    return rng.choice((value, [], {}))


def _ubj(raw: bytes, rng: random.Random) -> bytes:
    """A model as JSON would be changed, in binary: XGBoost itself writes it again."""
    return _bytes(raw, [Seed("x.ubj", raw)], rng)


def _zip(raw: bytes, rng: random.Random) -> bytes:
    """A member of an archive changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        names = source.namelist()
        victim = rng.choice((*names, "schema.json", "schema.json"))
        for name in names:
            content = source.read(name)
            if name == victim:
                content = _json(content, rng) if name.endswith(".json") else _bytes(content, [Seed(name, content)], rng)
            if rng.random() < 0.01:
                content = b"\x00" * 30_000_000
            target.writestr(name, content)
    return out.getvalue()


def _onnx(raw: bytes, rng: random.Random) -> bytes:
    """Fields of a graph changed: names, operators, attributes, shapes and tensors."""
    import onnx

    model = onnx.ModelProto.FromString(raw)
    for _ in range(rng.choice((1, 1, 2, 5))):
        _message_changed(model, rng)
    return bytes(model.SerializeToString())


def _message_changed(message: Any, rng: random.Random, depth: int = 0) -> None:
    fields = message.ListFields()
    if not fields:
        return
    descriptor, value = rng.choice(fields)
    if descriptor.message_type is not None:
        if _repeated(descriptor):
            kind = rng.random()
            if kind < 0.08:
                del value[rng.randrange(len(value))]
            elif kind < 0.14:
                value.add().CopyFrom(rng.choice(list(value)))
            else:
                _message_changed(rng.choice(list(value)), rng, depth + 1)
        else:
            _message_changed(value, rng, depth + 1)
    elif _repeated(descriptor):
        i = rng.randrange(len(value))
        if rng.random() < 0.2:
            del value[i]
        else:
            value[i] = _field(value[i], rng)
    else:
        setattr(message, descriptor.name, _field(value, rng))


def _repeated(descriptor: Any) -> bool:
    return bool(descriptor.is_repeated if hasattr(descriptor, "is_repeated") else descriptor.label == 3)


def _field(value: Any, rng: random.Random) -> Any:
    if isinstance(value, str):
        operators = ("Add", "Loop", "MatMul", "Softmax", "Gather", "Expand", "ConstantOfShape", "Einsum", "Concat")
        return rng.choice(("", "x", "../x", "com.evil", *operators))
    if isinstance(value, bytes):
        more = _bytes(value, [Seed("x", value)], rng)
        return rng.choice((b"", value[:-1], value * 2, b"SOFTMAX", b"BRANCH_EQ", more))
    if isinstance(value, float):
        return rng.choice((0.0, -value, 3e38, float("nan"), float("inf")))
    return rng.choice((0, 1, -1, value ^ 1, min(abs(value) + 1, 100), 2, 7, 8, 127 if value < 128 else 2**31 - 1))


INSIDE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    ".json": _json,
    ".ubj": _ubj,
    ".txt": _words,
    ".csv": _words,
    ".toml": _words,
    ".skops": _zip,
    ".onnx": _onnx,
}


# -- files to change --------------------------------------------------------------------------------------------------


def seeds(folder: Path, only: str = "") -> list[Seed]:
    """Small files of every kind, each written by its own library; those with ``only`` in their names."""
    found = [*_models(folder, only), *(_tables(folder) if "rows." in (only or "rows.") else ())]
    found += _results() if any(only in name for name in RESULTS) else ()
    found.append(Seed("config.toml", CONFIG.encode()))
    return found


def _models(folder: Path, only: str) -> Iterator[Seed]:
    from paper.saved_models import SAVED

    for name, saved in SAVED.items():
        if only not in f"{name}{saved.ending}":
            continue
        frame, y = saved.rows(200)
        file = folder / f"{name}{saved.ending}"
        saved.make(frame, y, file)
        yield Seed(file.name, file.read_bytes(), frame[:ROWS])


def _tables(folder: Path) -> Iterator[Seed]:
    from paper.saved_models import SAVED

    frame, _ = SAVED["lightgbm-text"].rows(40)
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    frame.to_feather(folder / "rows.arrow")
    for name in ("rows.csv", "rows.parquet", "rows.arrow"):
        yield Seed(name, (folder / name).read_bytes())


def _results() -> Iterator[Seed]:
    import pandas as pd

    import globece as gce
    from globece.baselines import ares

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=30), "n": rng.integers(0, 5, 30), "c": rng.choice(["a", "b"], 30)})

    def model(X: Any) -> Any:
        return (np.asarray(X["x"]) + (np.asarray(X["c"]) == "a") > 0.5).astype(int)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield Seed("explanation.json", gce.explain(model, X, rng=0, effort="quick").to_json().encode())
        yield Seed("audit.json", gce.audit(model, X, by="c", rng=0).to_json().encode())
        yield Seed("ares.json", ares(model, X, rng=0).to_json().encode())


CONFIG = """
[outcome]
favourable = 1
[features]
sex = { may = "fixed" }
age = { may = "rise", range = [18, 90] }
housing = { order = ["free", "rent", "own"] }
[search]
directions = 2
"""


# -- reading ----------------------------------------------------------------------------------------------------------


def read(name: str, path: Path, rows: Any, *, closely: bool = True) -> None:
    """Read a file as what its name says it is, and use what comes of it."""
    from globece.cli.config import read_config
    from globece.io.frames import read_frame
    from globece.io.model_files import load_model

    if name.startswith(("rows.",)):
        read_frame(path)
    elif name == "config.toml":
        read_config(path)
    elif name in RESULTS:
        _result(name).from_json(path)
    else:
        _use(load_model(path), rows, closely=closely)


def _result(name: str) -> Any:
    import globece as gce
    from globece.auditing.result import Audit
    from globece.baselines import RecourseSet

    return {"explanation.json": gce.Explanation, "audit.json": Audit, "ares.json": RecourseSet}[name]


def _use(model: Any, rows: Any, *, closely: bool) -> None:
    """Ask a model about a few rows; closely: it is compiled and checked as well."""
    from globece.io.trained_types import as_trained
    from globece.models.compiling.adapt import as_model, black_box
    from globece.space import FeatureSpace

    X = as_trained(model, rows)
    space = FeatureSpace.from_frame(X)
    classes = getattr(model, "classes_", None)
    asked: dict[str, Any] = {"favourable": None, "threshold": 0.5}
    if classes is not None and len(classes) > 1:
        asked = {"favourable": np.asarray(classes).tolist()[-1], "threshold": None}
    if closely:
        as_model(model, space, rows=space.encode(X), **asked)
    black_box(model, space, **asked, grid=256, scalars=None, batch_rows=100, timeout=None).favourable(space.encode(X))


# -- watching ---------------------------------------------------------------------------------------------------------

LIBRARIES = (
    *(
        "catboost",
        "lightgbm",
        "onnx",
        "onnxruntime",
        "pandas",
        "pyarrow.parquet",
        "pyarrow.feather",
        "skops.io",
        "torch",
    ),
    *("xgboost", "sklearn.ensemble", "sklearn.pipeline", "globece", "globece.cli.config", "globece.io.model_files"),
)
EVENTS = ("open", "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect")
RUNS = ("exec", "compile", "ctypes.dlopen", "pickle.find_class")
_seen: list[str] = []
_named: set[str] = set()
_watching = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching or (event not in EVENTS and event not in RUNS):
        return
    what = str(arguments[0])
    if event == "open" and (what in _named or what.isdigit() or _is_of_a_library(what)):
        return
    if (event in RUNS and _is_imported()) or (
        event == "subprocess.Popen" and _comes_from("globece/io/apart.py", "loky")  # joblib counts the cores
    ):
        return
    _seen.append(f"{event} {what[:200]}")


def _is_of_a_library(path: str) -> bool:
    """Parts of Python and of installed packages, and CatBoost's own temporary files."""
    own = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[1] / "src"), "/proc/", "/sys/", "/dev/null")
    return path.startswith((*own, TEMPORARY)) or "site-packages" in path


def _is_imported() -> bool:
    """Whether the code that runs is a module's that is imported: somebody's, but not the file's."""
    return _comes_from("importlib", "ast.py", "dataclasses.py", "typing.py", "numba", "collections")


def _comes_from(*parts: str) -> bool:
    """Whether a file of such a name is among those that are running."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        if any(part in frame.f_code.co_filename for part in parts):
            return True
        frame = frame.f_back
    return False


def work(folder: str, inbox: Any, outbox: Any) -> None:
    """Read what comes in, and say what came of each."""
    global _watching
    os.chdir(folder)
    warnings.simplefilter("ignore")
    sys.addaudithook(_watch)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)  # native readers print
    os.dup2(quiet, 2)
    for module in LIBRARIES:
        importlib.import_module(module)
    outbox.send("ready")
    while True:
        task = inbox.recv()
        if task is None:
            return
        number, name, raw, rows = task
        path = Path(folder, f"f{number}-{name}")
        path.write_bytes(raw)
        _named.add(str(path))
        _seen.clear()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        _watching = True
        try:
            read(name, path, rows, closely=number % CLOSELY == 0 or number < 0)
            found = "read"
        except GlobeCEError as error:
            found = f"refused: {type(error).__name__}"
        except BaseException as error:
            found = f"FAILED: {type(error).__name__}: {str(error)[:200]}"
        _watching = False
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
        if _seen:
            found = f"FAILED: it did {_seen[:3]}"
        if grown > MOST_GIB:
            found = f"FAILED: memory grew by {grown:.1f} GiB"
        _named.discard(str(path))
        path.unlink()
        outbox.send((number, found))


class Reader:
    """A process that reads files; another one takes its place if it dies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.deaths = 0
        self.start()

    def start(self) -> None:
        """Start the process."""
        context = multiprocessing.get_context("spawn")
        inbox, self.inbox = context.Pipe(duplex=False)
        self.outbox, outbox = context.Pipe(duplex=False)
        self.process = context.Process(target=work, args=(str(self.folder), inbox, outbox), daemon=True)
        self.process.start()
        inbox.close()
        outbox.close()
        assert self.outbox.poll(600)
        assert self.outbox.recv() == "ready"

    def ask(self, number: int, seed: Seed, raw: bytes) -> str:
        """What came of one input."""
        try:
            self.inbox.send((number, seed.name, raw, seed.rows))
            if self.outbox.poll(MOST_SECONDS):
                return str(self.outbox.recv()[1])
            what = f"FAILED: no answer within {MOST_SECONDS:g} s"
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self.process.join(10)
            what = f"FAILED: the process died with {self.process.exitcode}"
        self.process.kill()
        self.process.join()
        self.deaths += 1
        self.start()
        return what

    def stop(self) -> None:
        """End the process."""
        self.inbox.send(None)
        self.process.join(10)
        self.process.kill()


def fuzz(n: int, seed: int, keep: Path | None = None, only: str = "") -> tuple[Counter[tuple[str, str]], list[str]]:
    """Read n inputs, and count what came of them by kind of file; and say what failed."""
    tally: Counter[tuple[str, str]] = Counter()
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            every = seeds(Path(folder), only)
        chosen = [s for s in every if only in s.name]
        weights = [4.0 if s.name in RESULTS else OFTEN.get(s.ending, 1.0) for s in chosen]
        reader = Reader(Path(folder))
        for s in chosen:  # as they are: each must be read
            found = reader.ask(-1, s, s.raw)
            if found != "read":
                failed.append(f"{s.name} as it should be: {found}")
        try:
            for number in range(n):
                rng = random.Random(f"{seed}-{number}")
                s = rng.choices(chosen, weights)[0]
                raw = changed(s, every, rng)
                found = reader.ask(number, s, raw)
                tally[s.ending if s.rows is not None else s.name, found.partition(":")[0]] += 1
                if found.startswith("FAILED"):
                    failed.append(f"input {number} of seed {seed}, {s.name}: {found}")
                    print(failed[-1], file=sys.stderr, flush=True)  # at once: the run may be killed
                    if keep is not None:
                        keep.mkdir(exist_ok=True)
                        (keep / f"{number}-{s.name}").write_bytes(raw)
            reader.stop()
        except KeyboardInterrupt:
            failed.append(f"stopped after {sum(tally.values()):,} of {n:,} inputs")
            reader.process.kill()
    return tally, failed


def main() -> None:
    """Read the inputs, and say what came of them."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    start = time.monotonic()
    tally, failed = fuzz(n, seed, Path("fuzzed-files"), only)
    print(f"seed {seed}: {sum(tally.values()):,} files in {time.monotonic() - start:.0f} s")
    for kind in sorted({k for k, _ in tally}):
        print(f"  {kind:18}", ", ".join(f"{count:,} {what}" for (k, what), count in sorted(tally.items()) if k == kind))
    print(f"failed: {len(failed)}", *failed[:50], sep="\n  ")
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
