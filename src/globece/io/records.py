"""Dataclasses as plain data and back: each field is named once, with the codec of its value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from globece.io.plain import Node, number

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Codec:
    """How one kind of value is written as plain data (``where`` is for messages), read back, and described."""

    data: Callable[[Any, str], Any]
    read: Callable[[Node], Any]
    schema: Mapping[str, Any] = field(default_factory=dict)  # JSON Schema


@dataclass(frozen=True, slots=True)
class Record(Generic[Kind]):
    """How a dataclass is written as an object, and read back.

    Attributes
    ----------
    kind
        The dataclass.
    fields
        The codec of each field, in the order of the file.
    absent
        Fields that are left out where they have this value.
    """

    kind: Callable[..., Kind]
    fields: Mapping[str, Codec | Record[Any]]
    absent: Mapping[str, Any] = field(default_factory=dict)

    def data(self, value: Kind, where: str = "") -> dict[str, Any]:
        """The value as an object."""
        given = {name: getattr(value, name) for name in self.fields}
        written = {name: v for name, v in given.items() if name not in self.absent or v != self.absent[name]}
        return {name: self.fields[name].data(v, name) for name, v in written.items()}

    def read(self, node: Node) -> Kind:
        """The value of an object that has these fields and no others."""
        return self.build(node.keys(*self.fields, optional=tuple(self.absent)))

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of the object."""
        return object_schema({name: codec.schema for name, codec in self.fields.items()}, optional=self.absent)

    def build(self, given: Mapping[str, Node]) -> Kind:
        """The value of fields already taken out of their object, which may have had others too."""
        read = {name: codec.read(given[name]) for name, codec in self.fields.items() if name in given}
        return self.kind(**{**self.absent, **read})


def object_schema(properties: Mapping[str, Any], optional: Iterable[str] = ()) -> dict[str, Any]:
    """The JSON Schema of an object that has these properties and no others."""
    required = [name for name in properties if name not in set(optional)]
    return {"type": "object", "additionalProperties": False, "required": required, "properties": dict(properties)}


TEXT = Codec(lambda value, _: str(value), Node.text, {"type": "string"})
FLAG = Codec(lambda value, _: bool(value), Node.flag, {"type": "boolean"})
WHOLE = Codec(lambda value, _: int(value), Node.whole, {"type": "integer", "minimum": 0})
NUMBER = Codec(number, Node.number, {"type": "number"})
POSITIVE = Codec(number, lambda node: node.number(positive=True), {"type": "number", "exclusiveMinimum": 0})


def choice(*allowed: str) -> Codec:
    """One of these texts."""
    return Codec(TEXT.data, lambda node: node.choice(*allowed), {"enum": list(allowed)})


def maybe(codec: Codec) -> Codec:
    """``None``, written as null, or a value."""
    return Codec(
        lambda value, where: None if value is None else codec.data(value, where),
        lambda node: None if node.value is None else codec.read(node),
        {"anyOf": [codec.schema, {"type": "null"}]},
    )


def listed(codec: Codec | Record[Any], length: int | None = None, per: str = "") -> Codec:
    """A tuple, of ``length`` entries where that is given: one for each ``per``."""
    sized = {} if length is None else {"minItems": length, "maxItems": length}
    return Codec(
        lambda values, where: [codec.data(value, where) for value in values],
        lambda node: tuple(codec.read(item) for item in node.items(length, per)),
        {"type": "array", "items": codec.schema, **sized},
    )


def mapped(codec: Codec | Record[Any], *names: str) -> Codec:
    """A mapping with these keys, as an object."""
    return Codec(
        lambda values, where: {name: codec.data(value, where) for name, value in values.items()},
        lambda node: {name: codec.read(item) for name, item in node.keys(*names).items()},
        object_schema(dict.fromkeys(names, codec.schema)),
    )


def paired(key: str, name: str, codec: Codec) -> Codec:
    """A mapping with keys of any text, as a list of objects with ``key`` and ``name``."""

    def read(node: Node) -> dict[str, Any]:
        pairs = [item.keys(key, name) for item in node.items()]
        return {pair[key].text(): codec.read(pair[name]) for pair in pairs}

    return Codec(
        lambda values, where: [{key: k, name: codec.data(v, where)} for k, v in values.items()],
        read,
        {"type": "array", "items": object_schema({key: TEXT.schema, name: codec.schema})},
    )
