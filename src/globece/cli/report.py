"""``globece report`` and ``globece verify-report``: a page, or the evidence that somebody else can compute again."""

from __future__ import annotations

import platform
from dataclasses import asdict, fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
import numpy as np

from globece.auditing import Audit
from globece.cli import delivery, logs, options
from globece.cli.options import Asked, asked_of, need
from globece.cli.question import Question, read_result, wrapped
from globece.cli.training import KINDS
from globece.cli.wording import described
from globece.errors import FileFormatError, InvalidParameterError
from globece.explanation import Explanation, Provenance
from globece.page import evidence
from globece.page.about import About

COUNTED = ("numpy", "scipy", "scikit-learn", "numba", "narwhals", "xgboost-cpu", "lightgbm", "torch")

HELP = """Write a report on a model and DATA: one page, or a folder or zip that is evidence.

--out PAGE.html writes the page alone. --out FOLDER or REPORT.zip adds tables (CSV), the configuration, versions, and
SHA-256 of data, model and each file, from which globece verify-report computes the same bytes again.

The affected rows are left out unless --include-rows is given, and the page says so. DATA may also be a result file of
globece explain or audit (.json): then there is nothing to run again, and only a page can be written.

\b
Examples:
  globece report loans.csv --model loans.ubj --outcome approved --immutable sex --out report.zip
  globece report loans.csv --model logistic --outcome approved --by sex --out report
  globece report result.json --out page.html
"""


@click.command(no_args_is_help=True, help=HELP)
@options.data
@options.model()
@click.option(
    "--out", "--html", required=True, type=click.Path(), metavar="PATH", help="A page (.html), a .zip, or a new folder."
)
@click.option("--include-rows", is_flag=True, help="List the affected inputs one by one; left out by default.")
@options.time_limit
@wrapped
def report(out: str, **given: Any) -> None:
    """``globece report``."""
    asked = asked_of(given)
    need(asked, "report", "data")
    about = described(**{k: given.pop(k) for k in ("describe", "title", "question", "date", "include_rows")})
    delivery.check_writable("--out", out if out.endswith((".html", ".zip")) else f"{out}.html")
    if not asked.model:
        _from_result(asked.data, out, about)
        return
    given["by"] = tuple(name for name in given["by"] if name)
    question = Question(asked, **given)
    prints = question.fingerprints()
    about = _completed(about, question, prints)
    result = question.answer(question.task())
    if out.endswith(".html"):
        result.save_html(out, about=about)
    else:
        evidence.write(out, evidence.contents(result, _config(question, prints, about), about))
    rows = "The affected rows are listed in it." if about.include_rows else "The affected rows were left out."
    logs.say(f"Report written to {out}. {rows}")
    delivery.finish(result)
    if not _provenance(result).complete and not out.endswith(".html"):
        logs.warn("The time limit ended the search: globece verify-report would search on and find another result.")


def _from_result(data: str, out: str, about: About) -> None:
    if not out.endswith(".html"):
        raise InvalidParameterError(
            "a folder or zip needs DATA and --model, so that it can be computed again; from a result file only a page "
            "(.html) can be written"
        )
    name = Path(data).name
    about = replace(about, command=about.command or f"globece report {name} --out {Path(out).name}")
    read_result(data).save_html(out, about=about)
    logs.say(f"Page written to {out}. It comes from {name}; data, model and seed are not recorded in that file.")


def _provenance(result: Explanation | Audit) -> Provenance:
    return (result.explained if isinstance(result, Audit) else result).provenance


def _completed(about: About, question: Question, prints: dict[str, str]) -> About:
    """The words with what is known about data and model."""
    asked = question.asked
    trained = asked.model in KINDS
    return replace(
        about,
        data=about.data or Path(asked.data).name,
        model=about.model or (f"{asked.model}, trained on the data" if trained else Path(asked.model).name),
        data_sha256=prints["data"],
        model_sha256=prints["model"],
        seed=asked.seed,
        command=about.command or _command(question, about.include_rows),
    )


def _command(question: Question, rows: bool) -> str:
    """The command that computes the result again."""
    usual = Question(question.asked)
    unsaid = {f.name: getattr(usual, f.name) for f in fields(usual)} | {"budget": 10.0}
    parts = ["globece", "report", Path(question.asked.data).name, "--model", Path(question.asked.model).name]
    if question.asked.config.name:
        parts += ["--config", Path(question.asked.config.name).name]
    for name, value in question.data().items():
        if name in ("features", "scale", "norm"):  # of the configuration
            continue
        flag = f"--{name.replace('_', '-')}"
        if value in (None, "", []) or (name in unsaid and value == unsaid[name]):
            continue
        for one in value if isinstance(value, list) else [value]:
            parts += [flag, str(one)]
    parts += ["--include-rows"] if rows else []
    return " ".join(_quoted(part) for part in [*parts, "--out", "report.zip"])


def _quoted(text: str) -> str:
    plain = text and all(c.isalnum() or c in "-_./,:=+" for c in text)
    return text if plain else "'" + text.replace("'", "'\\''") + "'"


def _config(question: Question, prints: dict[str, str], about: About) -> dict[str, Any]:
    words = {name: dict(v) if isinstance(v, (dict,)) else v for name, v in asdict(about).items()}
    return {
        "format": evidence.FORMAT,
        "version": evidence.VERSION,
        "question": question.data(),
        "model_kind": question.asked.model if question.asked.model in KINDS else "",
        "sha256": prints,
        "about": words,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Versions of everything that a number may depend on."""
    found = {"python": platform.python_version(), "machine": platform.machine(), "globece": _version("globece")}
    return found | {name: _version(name) for name in COUNTED}


def _version(name: str) -> str:
    if name == "numpy":
        return np.__version__
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


VERIFY_HELP = """Compute the report at PATH again and say what differs: nothing (exit code 0), or what (3).

First the files are held against the manifest, then data and model against their recorded SHA-256, then everything is
computed again and compared byte by byte. Data and model are not in a report: name them. Nothing in the report decides
what is loaded, and no pickle is unless --allow-pickle says so on this call.

\b
Example:
  globece verify-report report.zip --data loans.csv --model loans.ubj
"""


@click.command("verify-report", no_args_is_help=True, help=VERIFY_HELP)
@click.argument("path", metavar="PATH", type=click.Path())
@click.option("--data", required=True, type=click.Path(), metavar="FILE", help="The data that the report is about.")
@click.option(
    "--model", default="", type=click.Path(), metavar="FILE", help="The model file; none if it was trained on the spot."
)
@options.loading
@options.volume
def verify_report(path: str, data: str, model: str, allow_pickle: bool, trusted: tuple[str, ...]) -> None:
    """``globece verify-report``."""
    found = evidence.read(path)
    problems = evidence.damaged(found, path)
    if problems:
        _fail(path, problems)
    config = evidence.parsed(found, evidence.CONFIG, path)
    try:
        about, kind, told = About.from_dict(config["about"]), config["model_kind"], config["sha256"]
        question_data, then = config["question"], config["versions"]
    except KeyError as error:
        raise FileFormatError(f"{evidence.CONFIG} of {path} lacks {error}") from error
    if not all(isinstance(part, dict) for part in (told, question_data, then)):
        raise FileFormatError(f"{evidence.CONFIG} of {path} must hold sha256, question and versions as objects")
    if kind and kind not in KINDS:
        raise FileFormatError(f"{evidence.CONFIG} of {path} names an unknown kind of model, {kind!r}")
    if not kind and not model:
        raise InvalidParameterError("the report is about a model file: name it with --model")
    asked = Asked(data=data, model=model or kind, allow_pickle=allow_pickle, trusted=trusted)
    question = Question.again(question_data, asked)
    prints = question.fingerprints()
    if kind and model:
        prints["model"] = evidence.sha256_of(model)
    problems = [
        f"{name} is another file: its SHA-256 is {prints[name][:16]}..., and the report says {str(told[name])[:16]}..."
        for name in ("data", "model")
        if prints[name] != told.get(name)
    ]
    if problems:
        _fail(path, problems)
    changed = [f"{n} {then.get(n, 'not recorded')} then, {v} now" for n, v in versions().items() if then.get(n) != v]
    if changed:
        logs.say(f"Versions differ: {'; '.join(changed)}.")
    result = question.answer(question.task())
    again = evidence.contents(result, {**_config(question, prints, about), "versions": then}, about)
    problems = evidence.differences(found, again)
    if problems:
        _fail(path, problems)
    logs.say(f"Verified: {len(found)} files of {path} come out again byte by byte.")


def _fail(path: str, problems: list[str]) -> None:
    for problem in problems:
        logs.warn(f"{problem}.")
    logs.warn(f"Not verified: {len(problems)} thing(s) of {path} differ.")
    click.get_current_context().exit(delivery.GATE_FAILED)
