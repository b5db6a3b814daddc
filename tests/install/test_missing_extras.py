"""Without extras, the first step of every page that needs one says which command installs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.install.archives import ROOT
from tests.install.linked import closure, link_package, run
from tests.install.requirements import CORE

COMMAND = "from globece.cli import main; main({!r}.split(), standalone_mode=True)"
EXPLAINED = (
    "import numpy as np, globece as gce; X = np.array([[1.0, 3.0], [2.0, 9.0], [8.0, 2.0], [9.0, 7.0]]); "
    "ex = gce.explain(lambda X: (X[:, 0] > 5).astype(int), X, rng=0, effort='quick'); "
)
STEPS = [
    # page, its first step that needs an extra, the extra
    ("README.md", COMMAND.format("demo --out demo-output"), "plot"),
    ("docs/start.md", COMMAND.format("datasets german-credit --words --out german.csv"), "frames"),
    ("docs/command_line.md", COMMAND.format("init loans.csv --outcome approved --favourable yes"), "frames"),
    ("docs/audit.md", COMMAND.format("audit loans.csv --model logistic --outcome approved --by sex"), "frames"),
    ("docs/reading.md", EXPLAINED + "from globece.plots import ProfileDisplay; "
     "ProfileDisplay.from_explanation(ex).plot()", "plot"),
    ("docs/page.md", EXPLAINED + "ex.widget()", "notebook"),
    ("docs/page.md", COMMAND.format("serve loans.csv --model logistic --outcome approved"), "web"),
    ("docs/scaling.md", "import globece as gce; gce.explain(lambda X: X, 'big.parquet')", "distributed"),
    *(("docs/model_files.md", f"from globece.io.model_files import load_model; load_model('model{ending}')", extra)
      for ending, extra in ((".ubj", "trees"), (".txt", "trees"), (".cbm", "catboost"), (".skops", "onnx"),
                            (".onnx", "onnx"))),
    ("docs/how_to/extend.md", EXPLAINED + "from globece.directions import ItemsetSampling; "
     "gce.explain(lambda X: (X[:, 0] > 5).astype(int), X, generator=ItemsetSampling())", "itemsets"),
    ("docs/how_to/extend.md", EXPLAINED + "from globece.directions import Evolution; "
     "gce.explain(lambda X: (X[:, 0] > 5).astype(int), X, generator=Evolution())", "evolution"),
]  # fmt: skip


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the core alone, and files of the kinds that the steps name."""
    folder = tmp_path_factory.mktemp("bare") / "site"
    link_package(folder, ROOT / "src/globece", closure(CORE))
    (folder.parent / "loans.csv").write_text("income,sex,approved\n10,f,0\n20,m,1\n30,f,1\n")
    (folder.parent / "big.parquet").write_bytes(b"PAR1")
    for ending in ("ubj", "txt", "cbm", "skops", "onnx"):
        (folder.parent / f"model.{ending}").write_bytes(b"tree\nversion=v4\n")
    return folder


@pytest.mark.parametrize(("page", "step", "extra"), STEPS, ids=[f"{page}-{extra}" for page, _, extra in STEPS])
def test_a_missing_extra_is_named_with_its_command(bare: Path, page: str, step: str, extra: str) -> None:
    assert (ROOT / page).is_file()
    done = run(bare, "-c", step)
    assert done.returncode != 0
    assert f"pip install 'globece[{extra}" in done.stderr + done.stdout
