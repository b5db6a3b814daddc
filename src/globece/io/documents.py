"""What every result file shares: a format and a version at its head, the affected inputs, and where it came from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files as resources
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from globece.compact import Rows
from globece.errors import FileFormatError, InvalidDataError, check_instance
from globece.explanation import Explanation, Provenance
from globece.io import files, plain
from globece.io.plain import Node, number, numbers
from globece.io.records import FLAG, NUMBER, POSITIVE, TEXT, WHOLE, Record, listed
from globece.io.spaces import cost_data, cost_from, space_data, space_from
from globece.models.clearance import DOUBLE
from globece.saving import FORMATS
from globece.search import Headroom
from globece.space import FeatureSpace, FloatArray
from globece.version import __version__

if TYPE_CHECKING:
    from globece.baselines.recourse_set import RecourseSet

Result = TypeVar("Result")

HEADROOM = Record(
    Headroom,
    {
        **dict.fromkeys(("inputs", "pool"), WHOLE),
        **dict.fromkeys(("score", "score_of_ten"), NUMBER),
        "gap": POSITIVE,
    },
    absent={"gap": None},
)
PROVENANCE = Record(
    Provenance,
    {
        **dict.fromkeys(("version", "model", "method", "favourable", "generator"), TEXT),
        **dict.fromkeys(("candidates", "model_calls", "model_rows"), WHOLE),
        "complete": FLAG,
        "clearance": NUMBER,
        "seed": WHOLE,
        **dict.fromkeys(("data", "decisions"), TEXT),
        "headroom": HEADROOM,
        "notes": listed(TEXT),
    },
    absent={"clearance": DOUBLE, "seed": None, "data": "", "decisions": "", "headroom": None},
)


@dataclass(frozen=True, slots=True)
class Format(Generic[Result]):
    """A kind of result file: strict JSON, versioned, checked on reading, the same bytes for the same result.

    A change of what is written is a new version, with a reader of its own; the readers of the old ones stay. A JSON
    Schema in this folder says the same in public.

    Attributes
    ----------
    name
        What the file says it is: ``"explanation"`` for ``"globece.explanation"``.
    what
        The same with its article, for messages.
    kind
        The result's type.
    keys
        The keys of a document, in the order of the file.
    data
        Gives a result as plain data by key, in any order and without the head.
    readers
        A reader for each version.
    """

    name: str
    what: str
    kind: type[Result]
    keys: tuple[str, ...]
    data: Callable[[Result], Mapping[str, Any]]
    readers: Mapping[int, Callable[[Node], Result]]

    def __post_init__(self) -> None:
        FORMATS[self.kind] = self

    @property
    def version(self) -> int:
        """The version that is written."""
        return max(self.readers)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema (draft 2020-12) of the files that this release writes."""
        text = resources("globece.io").joinpath(f"{self.name}.schema.json").read_text(encoding="utf-8")
        document: dict[str, Any] = json.loads(text)
        return document

    def to_dict(self, result: Result) -> dict[str, Any]:
        """A result as plain data: dictionaries, lists, text, finite numbers, booleans and ``None``."""
        check_instance("result", result, self.kind)
        data = {"format": f"globece.{self.name}", "version": self.version, **self.data(result)}
        return {key: data[key] for key in self.keys if key in data}

    def write(self, result: Result, path: Any = None) -> str:
        """Write a result, without its model, as JSON to ``path``, in one piece or not at all, and return the text.

        Parameters
        ----------
        result
            The result.
        path
            Where to; ``None`` only returns the text.
        """
        target = None if path is None else files.check_path("path", path)
        text = plain.dump(self.to_dict(result))
        if target is not None:
            files.write_text(target, text)
        return text

    def read(self, source: Any) -> Result:
        """Read a result from a path, or from the JSON text itself.

        Parameters
        ----------
        source
            A path, or text that starts with ``{``.

        Returns
        -------
        result
            As it was written, without a model. Where the library of the frame that was explained is not installed,
            only what gives rows back raises.

        Raises
        ------
        FileFormatError
            If the file is of another kind or a newer version, is cut off, or does not fit together.
        """
        if isinstance(source, str) and source.lstrip().startswith("{"):
            return self.read_node(plain.parse(source, "the text given"))
        path = files.check_path("source", source)
        return self.read_node(plain.parse(files.read_text(path), path))

    def read_node(self, document: Node) -> Result:
        """Read a parsed document with the reader of its version."""
        document.key("format").choice(f"globece.{self.name}")
        version = document.key("version").whole(low=1)
        if version not in self.readers:
            raise FileFormatError(
                f"{document.source} is {self.what} of version {version}, and globece {__version__} reads up to version "
                f"{self.version}; read it with a newer release"
            )
        return self.readers[version](document)


# -- what explanations and recourse sets share ------------------------------------------------------------------------


def shared_data(result: Explanation | RecourseSet, inputs: Rows) -> dict[str, Any]:
    """Where the result comes from, the space, what changes cost, and the affected inputs, as plain data."""
    return {
        "provenance": PROVENANCE.data(result.provenance),
        "budget": number(result.budget, "budget"),
        "n_rows": int(result.n_rows),
        "rows": result.rows.tolist(),
        "space": space_data(result.space),
        "cost": cost_data(result.cost),
        "inputs": _inputs_data(result.space, inputs),
        "costs": [numbers(c, f"costs[{i}]", null=np.inf) for i, c in enumerate(result.costs)],
    }


def shared_from(given: Mapping[str, Node]) -> tuple[dict[str, Any], Rows]:
    """The fields that both kinds of result have, and the affected inputs."""
    space, n_rows = space_from(given["space"]), given["n_rows"].whole()
    rows = given["rows"].places(None, "affected input", n_rows)
    if len(np.unique(rows)) != len(rows):
        given["rows"].fail("different positions")
    shared = {
        "space": space,
        "cost": cost_from(given["cost"], space),
        "budget": given["budget"].number(positive=True),
        "rows": rows,
        "n_rows": n_rows,
        "provenance": PROVENANCE.read(given["provenance"]),
    }
    return shared, _inputs_from(given["inputs"], space, len(rows))


def recourse_from(node: Node, m: int, n: int, per: str) -> FloatArray:
    """Numbers from 0 on for each ``per`` and affected input; ``inf`` for null, which is no recourse."""
    found = node.matrix((m, n), (per, "affected input"), null=np.inf)
    if (found < 0).any():
        node.fail("numbers from 0 on, or null for no recourse")
    return found


def _inputs_data(space: FeatureSpace, rows: Rows) -> list[list[Any]]:
    """Affected inputs by feature: values, or positions of their categories, with null for a missing value."""
    found: list[list[Any]] = []
    for f in space.features:
        values = rows.feature(f)
        if not f.is_block:
            found.append(numbers(values, f"inputs of {f.name!r}", null=np.nan))
            continue
        codes = values.astype(np.int64)
        if not rows.is_compact and not np.array_equal(rows.values[:, f.columns], np.eye(f.width)[codes]):
            raise InvalidDataError(f"inputs of {f.name!r} are not one-hot, and cannot be written as categories")
        found.append(codes.tolist())
    return found


def _inputs_from(node: Node, space: FeatureSpace, n: int) -> Rows:
    columns: list[FloatArray] = []
    for f, values_of in zip(space.features, node.items(len(space.features), "feature"), strict=True):
        if f.is_block:
            columns.append(values_of.places(n, "affected input", f.width).astype(np.float64))
            continue
        values = values_of.vector(n, "affected input", null=np.nan)
        if f.kind == "ordinal":
            place = np.where(np.isnan(values), 0.0, values)
            known = (np.rint(place) == place) & (place >= 0) & (place < len(f.categories))
            if not known.all():
                wrong = values_of.items()[int((~known).argmax())]
                wrong.fail(f"a position among {len(f.categories)} categories, or null")
        else:
            try:
                space.holds(f).check(values, f.sources[0])
            except InvalidDataError as error:
                values_of.fail(f"numbers that fit their column ({error})")
        columns.append(values)
    return Rows.from_features(space, n, columns)
