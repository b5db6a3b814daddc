"""A question that can be asked again: the options of ``explain`` and ``audit`` as plain data, and their answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import date as calendar
from typing import Any, Literal

import click
import narwhals as nw

from globece.api import audit as audit_model
from globece.api import explain as explain_model
from globece.auditing import Audit, AuditSettings
from globece.auditing.basis import TRAINING
from globece.cli import options
from globece.cli.audit import _columns
from globece.cli.options import Asked
from globece.cli.task import Task, prepare
from globece.cli.training import KINDS
from globece.errors import FileFormatError, describe
from globece.explanation import Explanation
from globece.io.files import read_text
from globece.io.plain import parse
from globece.page.about import About
from globece.page.evidence import sha256_of
from globece.saving import FORMATS
from globece.search.climb import EFFORTS

RECORDED = (
    "outcome", "favourable", "threshold", "budget", "immutable", "increasing", "decreasing", "categorical", "seed",
)  # fmt: skip


KINDS_OF: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("immutable", "increasing", "decreasing", "categorical", "by", "control"), (tuple,)),
    **dict.fromkeys(("outcome", "favourable", "reference", "training"), (str, type(None))),
    **dict.fromkeys(("seed", "directions"), (int,)),
    "effort": (str,),
}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a model about DATA.

    Attributes
    ----------
    asked
        The shared options.
    directions, effort
        How many directions, and how long to search.
    by, control, reference
        Groups to compare; without ``by`` the question is for an explanation.
    level, relevant, relevant_share
        Settings of an audit.
    training
        Whether the model was trained on these rows.
    """

    asked: Asked
    directions: int = 3
    effort: str = "default"
    by: tuple[str, ...] = ()
    control: tuple[str, ...] = ()
    reference: str | None = None
    level: float = 0.05
    relevant: float | None = None
    relevant_share: float = 0.2
    training: Literal["all", "some", "none"] | None = None

    def data(self) -> dict[str, Any]:
        """The question as plain data, without file names."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "asked"}
        shared = {name: value for name, value in asdict(self.asked).items() if name in RECORDED}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in {**shared, **own}.items()}

    @classmethod
    def again(cls, data: Mapping[str, Any], asked: Asked) -> Question:
        """The recorded question about the data and the model that ``asked`` names."""
        given: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items()}
        own = [f.name for f in fields(cls) if f.name != "asked"]
        missing = [name for name in (*RECORDED, *own) if name not in given]
        if missing or len(given) != len(RECORDED) + len(own):
            raise FileFormatError(f"the recorded question must have the keys {[*RECORDED, *own]}; it lacks {missing}")
        for name, value in given.items():
            if not isinstance(value, KINDS_OF.get(name, (str, int, float, type(None)))) or (
                isinstance(value, tuple) and not all(isinstance(part, str) for part in value)
            ):
                raise FileFormatError(f"the recorded question has a {name} that cannot be: {describe(value)}")
        kept: dict[str, Any] = {name: given[name] for name in RECORDED}
        rest: dict[str, Any] = {name: given[name] for name in own}
        return cls(replace(asked, **kept), **rest)

    def task(self) -> Task:
        """Read DATA, and load the model or train it."""
        return prepare(self.asked)

    def answer(self, task: Task) -> Explanation | Audit:
        """The result."""
        wishes: dict[str, Any] = {**task.wishes, "progress": False, "effort": self.effort}
        if not self.by:
            return explain_model(task.model, task.X, n_directions=self.directions, **wishes)
        columns = [*dict.fromkeys([*task.space.names, *nw.from_native(task.frame, eager_only=True).columns])]
        return audit_model(
            task.model,
            task.frame,
            by=_columns("--by", self.by, columns),
            control=_columns("--control", self.control, columns) if self.control else None,
            reference=self.reference,
            n_directions=self.directions,
            training_rows=self.training or ("some" if task.trained else None),
            audit_settings=AuditSettings(level=self.level, relevant=self.relevant, relevant_share=self.relevant_share),
            **wishes,
        )

    def fingerprints(self) -> dict[str, str]:
        """SHA-256 of the data and the model; a model that is trained on the spot follows from the data and the seed."""
        model = self.asked.model
        return {"data": sha256_of(self.asked.data), "model": "" if model in KINDS else sha256_of(model)}


groups = options._in_order(
    click.option("--by", multiple=True, metavar="COLUMN", help="Compare groups: an audit instead of an explanation."),
    click.option("--control", multiple=True, metavar="COLUMN", help="Compare groups only within levels of this."),
    click.option("--reference", metavar="GROUP", help="Compare the other groups with this one."),
    click.option("--level", type=float, default=0.05, show_default=True, metavar="P", help="Level of the tests."),
    click.option("--relevant", type=float, metavar="GAP", help="Smallest gap that matters.  [default: a share]"),
    click.option(
        "--relevant-share",
        type=float,
        default=0.2,
        show_default=True,
        metavar="SHARE",
        help="The same as a share of the overall score.",
    ),
    click.option("--training", type=click.Choice(TRAINING), help="Whether the model was trained on these rows."),
    click.option("--directions", type=int, default=3, show_default=True, metavar="N", help="How many to find."),
    click.option("--effort", type=click.Choice(list(EFFORTS)), default="default", show_default=True, help="How long."),
)

told = options._in_order(
    click.option("--title", default="", metavar="TEXT", help="What stands at the top."),
    click.option("--question", default="", metavar="TEXT", help="The question that the result answers."),
    click.option(
        "--describe", metavar="FILE", help="JSON with units, labels, values, people, favourable: words for the page."
    ),
    click.option("--date", default=None, metavar="DATE", help="When this was computed.  [default: today]"),
)


def described(describe: str | None, **given: Any) -> About:
    """The words of a page, out of a file and options; an option wins."""
    words: dict[str, Any] = {}
    if describe is not None:
        words = parse(read_text(describe), describe).value
    today = given.get("date") or calendar.today().isoformat()
    return About.from_dict({**words, **{k: v for k, v in given.items() if v not in ("", None)}, "date": today})


def read_result(path: str) -> Explanation | Audit:
    """Read an explanation or an audit, whichever the file holds."""
    document = parse(read_text(path), path)
    said = document.value.get("format") if isinstance(document.value, dict) else None
    for kind in (Explanation, Audit):
        if said == f"globece.{FORMATS[kind].name}":
            found: Explanation | Audit = FORMATS[kind].read_node(document)
            return found
    raise FileFormatError(f"{path} is neither an explanation nor an audit: its format is {said!r}")


def wrapped(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options that describe a model and its data."""
    for option in reversed((groups, told, options.outcome, options.constraints, options.seed, options.loading)):
        command = option(command)
    return command


def asked_of(given: dict[str, Any], data: str, model: str) -> Asked:
    """The shared options out of a command's; what is left stays in ``given``."""
    names = [f.name for f in fields(Asked) if f.name in given]
    return Asked(data=data, model=model, json_path=None, **{name: given.pop(name) for name in names})
