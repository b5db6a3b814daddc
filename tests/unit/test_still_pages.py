"""Pages of one table: the rules of AReS, and whom a change helps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import globece as gce
from globece.baselines import ares
from globece.cli import main
from globece.errors import InvalidParameterError
from globece.page.html import allowed
from globece.page.still import STYLE

HOSTILE = "</script><b>own</b>"
ALL = "</script>"


def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    home = rng.choice([HOSTILE, "rent"], 120)
    return pd.DataFrame({"income": rng.normal(size=120).round(2), "home": home, "sex": rng.choice(["f", "m"], 120)})


def model(X: Any) -> Any:
    return (np.asarray(X["income"]) + 2.0 * (np.asarray(X["home"]) == HOSTILE) > 1.5).astype(int)


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("still")
    X = rows()
    X.assign(approved=np.where(model(X), "yes", "no")).to_csv(found / "loans.csv", index=False)
    return found


COMMANDS = {
    "ares": (["ares", "--seed", "0"], "Which rules give recourse"),
    "who-benefits": (["who-benefits", "--change", "income=+2", "--by", "sex"], "Whom does this change help"),
}


@pytest.mark.parametrize("command", list(COMMANDS))
def test_commands_write_their_page(command: str, folder: Path, tmp_path: Path) -> None:
    (name, *options), question = COMMANDS[command]
    page, plain = tmp_path / "page.html", tmp_path / "result.json"
    given = [folder / "loans.csv", "--model", "logistic", "--outcome", "approved", "--favourable", "yes", "--quiet"]
    result = run(name, *given, *options, "--html", page, "--json", plain)
    assert result.exit_code == 0, result.stderr
    text = page.read_text(encoding="utf-8")
    assert plain.exists()
    assert question in text
    assert "Data: loans.csv" in text
    assert "Favourable outcome: yes" in text
    assert text.count("<tr>") > 1


def test_pages_say_what_their_tables_say_and_nothing_runs() -> None:
    found = gce.who_benefits(model, rows(), {"income": 2.0, "home": HOSTILE}, by="sex")
    rules = ares(model, rows(), rng=0)
    for result, said in ((found, f"{found.overall.flipped:,}"), (rules, f"{rules.n_rules} rule(s)")):
        text = html(result)
        assert said in text
        assert ALL not in text
        assert "<script" not in text
        assert f"style-src {allowed(STYLE)}".replace("'", "&#x27;") in text
        assert "default-src &#x27;none&#x27;" in text
        assert not re.findall(r"(?:src|href|url)\s*[=(]", text)
    assert "income +2, home becomes" in html(found)


def test_a_page_without_a_widget_says_so() -> None:
    with pytest.raises(InvalidParameterError, match="none of"):
        gce.who_benefits(model, rows(), {"income": 2.0}).widget()


def html(result: Any) -> str:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        result.save_html(Path(folder, "page.html"))
        return Path(folder, "page.html").read_text(encoding="utf-8")
