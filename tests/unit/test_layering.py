"""Imports go one way, and the core imports no more than it may: read from the syntax tree of every file."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import globece

PACKAGE = Path(globece.__file__).parent

# A room may import those on the lines above its own, and on its own line only where BESIDE says so.
ORDER = [
    ["errors", "progress", "version", "parallel", "kept", "saving", "formatting", "extensions"],
    ["numbertypes"],
    ["tables"],
    ["features"],
    ["shaping"],
    ["space"],
    ["compact"],
    ["costs"],
    ["rays", "bundle"],
    ["pricing"],
    ["models"],
    ["settings"],
    ["case"],
    ["directions"],
    ["search"],
    ["rules"],
    ["bounds"],
    ["robustness"],
    ["explanation"],
    ["auditing", "baselines"],
    ["comparing"],
    ["api"],
    ["io"],
    ["page"],
    ["__init__", "testing"],
    ["plots", "distributed", "datasets", "integrations"],
    ["web", "cli"],
]
BESIDE = {
    ("progress", "errors"),
    ("extensions", "errors"),
    ("parallel", "progress"),
    ("cli", "web"),
}
NEVER = {("web", "plots"), ("web", "distributed"), ("plots", "io"), ("page", "plots")}
DELEGATED = {
    ("robustness", "explanation"),  # for its type alone
    ("saving", "io"),  # as well
    ("saving", "page"),  # as well
    ("explanation", "plots"),
    ("explanation", "web"),
}  # only inside a function
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}

CORE = {"numpy", "scipy", "sklearn", "threadpoolctl", "narwhals", "numba"}
MORE = {
    "cli": {"click", "rich"},
    "plots": {"matplotlib"},
    "page": {"anywidget", "traitlets"},
    "web": {"starlette", "uvicorn", "h11"},
    "distributed": {"cloudpickle", "dask", "distributed", "pyarrow", "pyspark"},
    "testing": {"pytest"},
    "integrations": {"pandas", "mlflow", "xgboost", "lightgbm", "matplotlib"},
}
MORE_INSIDE_A_FUNCTION = {"progress": {"rich"}}


class Import(NamedTuple):
    """One import statement's target: a room of globece, or the name of another package."""

    target: str
    ours: bool
    in_function: bool


def imports(source: str, package: tuple[str, ...]) -> Iterator[Import]:
    """Yield what a module imports; ``package`` is the dotted path that a relative import starts from."""

    def visit(node: ast.AST, in_function: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield resolve(alias.name.split("."), in_function)
            elif isinstance(child, ast.ImportFrom):
                start = [*package[: len(package) - child.level + 1]] if child.level else []
                base = start + (child.module.split(".") if child.module else [])
                for alias in child.names:
                    yield resolve([*base, alias.name], in_function)
            else:
                function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                only_types = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
                yield from visit(child, in_function or function or only_types)

    def resolve(path: list[str], in_function: bool) -> Import:
        if path[0] != "globece":
            return Import(path[0], False, in_function)
        room = path[1] if len(path) > 1 and path[1] in LEVEL else "__init__"
        return Import(room, True, in_function)

    return visit(ast.parse(source), False)


def allowed(room: str, found: Import) -> bool:
    """Tell whether a room may import this."""
    if found.ours:
        step = (room, found.target)
        if found.target == room or step in BESIDE or (step in DELEGATED and found.in_function):
            return True
        return LEVEL[found.target] < LEVEL[room] and step not in NEVER
    packages = CORE | MORE.get(room, set())
    if found.in_function:
        packages |= MORE_INSIDE_A_FUNCTION.get(room, set())
    return found.target in packages | sys.stdlib_module_names


def test_no_function_imports_from_the_package() -> None:
    """Such an import hides a cycle; those for types alone are not run."""
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                inside = [n for n in ast.walk(function) if isinstance(n, ast.ImportFrom)]
                found += [f"{file.name}: {n.module}" for n in inside if (n.module or "").startswith("globece")]
    assert found == []


def test_imports_go_one_way() -> None:
    wrong = []
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        assert parts[0] in LEVEL, f"{parts[0]} is a room that ORDER does not know"
        for found in imports(file.read_text(encoding="utf-8"), ("globece", *parts[:-1])):
            if not allowed(parts[0], found):
                wrong.append(f"{'/'.join(parts)}.py imports {found.target}")
    assert wrong == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("space", "from globece.costs import CostModel"),
        ("space", "from globece import models"),
        ("rays", "from globece import explain"),
        ("rays", "from .models.base import Model"),
        ("rays", "from . import models"),
        ("search", "def f():\n    import globece.explanation"),
        ("explanation", "from globece.plots import ProfileDisplay"),
        ("auditing", "def f():\n    from globece.plots import ProfileDisplay"),
        ("rules", "from globece.explanation import Explanation"),
        ("plots", "from globece.io import tables"),
        ("web", "def f():\n    from globece import plots"),
        ("web", "from globece.distributed import explain"),
        ("api", "from globece.datasets import load_compas"),
        ("models", "if True:\n    import torch"),
        ("models", "def f():\n    import xgboost.core"),
        ("progress", "import rich"),
        ("web", "import click"),
    ],
)
def test_checker_sees_a_wrong_import(room: str, source: str) -> None:
    assert [found for found in imports(source, ("globece",)) if not allowed(room, found)] != []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("costs", "from globece.space import FeatureSpace"),
        ("models", "from globece.models.base import Model\nimport numpy as np\nimport threading"),
        ("explanation", "def f():\n    from globece.web import page"),
        ("datasets", "from globece.io import tables"),
        ("cli", "import click\nfrom globece import web, explain"),
        ("progress", "def f():\n    from rich.progress import Progress"),
        ("api", "from globece.auditing import run"),
    ],
)
def test_checker_lets_a_right_import_pass(room: str, source: str) -> None:
    assert [found for found in imports(source, ("globece",)) if not allowed(room, found)] == []


# Inside the larger rooms: a part may import those on the lines above its own, and parts of itself.
INNER = {
    "models": [
        ["clearance", "doubles", "passing", "inputs", "probes", "known", "devices", "cuda"],
        ["torch_modules", "crossings", "ray_points"],
        ["base", "decision"],
        ["guide"],
        ["blackbox"],
        ["linear", "trees", "networks", "robust", "votes"],
        ["compiling"],
    ],
    "case": [
        ["ordering", "recourse"],
        ["affected"],
        ["scaling", "posing", "fingerprints"],
        ["batches"],
        ["verification"],
    ],
}


@pytest.mark.parametrize("room", INNER)
def test_imports_go_one_way_inside_a_room(room: str) -> None:
    level = {part: i for i, parts in enumerate(INNER[room]) for part in parts}
    wrong = []
    for file in sorted((PACKAGE / room).rglob("*.py")):
        parts = file.relative_to(PACKAGE / room).with_suffix("").parts
        if parts[0] == "__init__":
            continue
        assert parts[0] in level, f"{room}/{parts[0]} is a part that INNER does not know"
        for node in ast.walk(ast.parse(_without_types(file.read_text(encoding="utf-8")))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"globece.{room}"):
                named = (node.module or "").split(".")[2:3] or [alias.name for alias in node.names]
                for other in named:
                    if other != parts[0] and level[other] >= level[parts[0]] and (parts[0], other) not in INNER_BESIDE:
                        wrong.append(f"{room}/{'/'.join(parts)}.py imports {other}")
    assert wrong == []


INNER_BESIDE = {("clearance", "inputs"), ("base", "clearance"), ("inputs", "clearance")}


def _without_types(source: str) -> str:
    """The source without what is imported for type checkers only."""
    tree = ast.parse(source)
    tree.body = [n for n in tree.body if not (isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")]
    return ast.unparse(tree)


# Beside the package: which of these folders each may import.
ROOT = Path(__file__).parents[2]
FOLDERS: dict[str, set[str]] = {
    "src": set(),
    "paper": set(),
    "bench": {"paper"},
    "experiments": {"paper"},
    "tests": {"paper"},
}
OF_EXPERIMENTS = "test_experiment"  # how the names of their tests begin


def wrongly_imported(file: Path, source: str) -> set[str]:
    """The folders that a file imports and may not; ``file`` is its path in the repository."""
    folder = file.parts[0]
    may = FOLDERS[folder] | {folder} | ({"experiments"} if file.name.startswith(OF_EXPERIMENTS) else set())
    return {found.target for found in imports(source, file.parts[:-1]) if found.target in FOLDERS} - may


def test_folders_beside_the_package_import_one_way() -> None:
    files = {file.relative_to(ROOT): file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")}
    assert {file.parts[0] for file in files} == FOLDERS.keys()
    wrong = {str(path): found for path, file in files.items() if (found := wrongly_imported(path, file.read_text()))}
    assert wrong == {}


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("src/globece/api.py", "import paper"),
        ("paper/cases.py", "def f():\n    from bench import rays"),
        ("bench/rays.py", "from tests.problems import matrix"),
        ("experiments/models.py", "from bench.__main__ import main"),
        ("tests/unit/test_ares.py", "from experiments.cells import Run"),
        ("tests/unit/test_experiments.py", "import bench.rays"),
    ],
)
def test_checker_sees_a_folder_imported_wrongly(file: str, source: str) -> None:
    assert wrongly_imported(Path(file), source)


def test_no_public_name_hides_a_package() -> None:
    """`import globece.audit.x` would fail if `globece.audit` were a function and a package."""
    hidden = []
    for file in sorted(PACKAGE.rglob("__init__.py")):
        folder = file.parent
        beside = {p.stem for p in folder.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom):
                hidden += [f"{folder.name}.{a.asname or a.name}" for a in node.names if (a.asname or a.name) in beside]
    assert hidden == []


def test_models_answer_for_themselves() -> None:
    """Nobody outside `models/` asks which kind of model it has."""
    kinds = {"BlackBox", "Compiled", "RobustModel", "LinearModel", "TreeEnsemble", "ReLUNetwork"}
    asked = []
    for file in sorted(PACKAGE.rglob("*.py")):
        if file.relative_to(PACKAGE).parts[0] == "models":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                named = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
                asked += [f"{file.name}: {ast.unparse(node)}"] if named & kinds else []
    assert asked == []
