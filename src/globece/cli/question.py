"""A question that can be asked again: the options of ``explain`` and ``audit`` as plain data, and their answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from globece.api import audit as audit_model
from globece.api import explain as explain_model
from globece.auditing import Audit, AuditSettings
from globece.cli import options
from globece.cli.config import wishes_of
from globece.cli.groups import columns, columns_of
from globece.cli.options import Asked
from globece.cli.task import Task, prepare
from globece.cli.training import KINDS
from globece.cli.wording import told
from globece.errors import FileFormatError, describe
from globece.explanation import Explanation
from globece.io.files import read_text
from globece.io.plain import parse
from globece.page.evidence import sha256_of
from globece.saving import FORMATS

RECORDED = (
    "outcome", "favourable", "threshold", "budget", "immutable", "increasing", "decreasing", "categorical", "seed",
)  # fmt: skip


KINDS_OF: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(
        ("immutable", "increasing", "decreasing", "categorical", "movable", "ignore", "by", "control"), (tuple,)
    ),
    **dict.fromkeys(("outcome", "favourable", "reference", "training"), (str, type(None))),
    "seed": (int,),
    "directions": (int, str),
    "effort": (str,),
}
# Recorded only where they are said, so that older reports come out again as they were.
IF_SAID = ("movable", "ignore", "encoding", "scale", "norm")


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
    directions: int | Literal["auto"] = 3
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
        shared = {name: getattr(self.asked, name) for name in RECORDED}
        said = {name: value for name in IF_SAID if (value := getattr(self.asked, name))}
        features = {name: wish.said() for name, wish in self.asked.features.items()}
        plain = {name: list(v) if isinstance(v, tuple) else v for name, v in {**shared, **said, **own}.items()}
        return plain | ({"features": features} if features else {})

    @classmethod
    def again(cls, data: Mapping[str, Any], asked: Asked) -> Question:
        """The recorded question about the data and the model that ``asked`` names."""
        given: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items()}
        features = wishes_of(given.pop("features", {}), "the recorded question")
        own = [f.name for f in fields(cls) if f.name != "asked"]
        missing = [name for name in (*RECORDED, *own) if name not in given]
        if missing or not set(given) <= {*RECORDED, *own, *IF_SAID}:
            raise FileFormatError(f"the recorded question must have the keys {[*RECORDED, *own]}; it lacks {missing}")
        for name, value in given.items():
            if not isinstance(value, KINDS_OF.get(name, (str, int, float, type(None)))) or (
                isinstance(value, tuple) and not all(isinstance(part, str) for part in value)
            ):
                raise FileFormatError(f"the recorded question has a {name} that cannot be: {describe(value)}")
        kept: dict[str, Any] = {name: given[name] for name in (*RECORDED, *IF_SAID) if name in given}
        rest: dict[str, Any] = {name: given[name] for name in own}
        return cls(replace(asked, features=features, **kept), **rest)

    def task(self) -> Task:
        """Read DATA, and load the model or train it."""
        return prepare(self.asked)

    def answer(self, task: Task) -> Explanation | Audit:
        """The result."""
        wishes: dict[str, Any] = {**task.wishes, "effort": self.effort}
        if not self.by:
            return explain_model(task.model, task.X, n_directions=self.directions, **wishes)
        known = columns_of(task)
        return audit_model(
            task.model,
            task.frame,
            by=columns("--by", self.by, known),
            control=columns("--control", self.control, known) if self.control else None,
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
    given = (options.compared, options.directions(3), options.effort, told, options.outcome, options.constraints)
    for option in reversed((*given, options.seed, options.reading, options.volume)):
        command = option(command)
    return command
