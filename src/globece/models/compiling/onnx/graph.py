"""An ONNX graph as plain data: nodes in order, constants as arrays, and what goes in and comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

TEXT = "string"
# Operators that return what they are given, in another shape or type.
PASSING = ("Identity", "Dropout", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze")


@dataclass(frozen=True, slots=True)
class Node:
    """One operator: its name (with the domain, but for ONNX's own), what it takes and gives, and its attributes."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """For messages."""
        return f"operator {self.op} ({', '.join(self.outputs)})"


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a graph.

    Attributes
    ----------
    name
        Its name.
    dtype
        ``"float32"``, ``"float64"``, ``"int64"``, ``"string"`` and so on; ``""`` where the graph does not say.
    width
        Columns of a matrix, if the graph says so; 1 for a vector.
    """

    name: str
    dtype: str
    width: int | None


@dataclass(frozen=True)
class Graph:
    """A graph that takes rows and gives outcomes or scores.

    Attributes
    ----------
    inputs, outputs
        What goes in and comes out.
    nodes
        The operators, each after those that it needs.
    constants
        Tensors that the graph holds, by name.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[str, NDArray[Any]]

    @cached_property
    def maker(self) -> dict[str, Node]:
        """The operator that gives each tensor."""
        return {name: node for node in self.nodes for name in node.outputs}

    def back(self, name: str) -> Iterator[Node]:
        """The operators before a tensor, the last one first, along the first input of each."""
        seen: set[str] = set()
        while name in self.maker and name not in seen:
            seen.add(name)
            node = self.maker[name]
            yield node
            if not node.inputs:
                return
            name = node.inputs[0]

    def source(self, name: str) -> Node | None:
        """The last operator before a tensor that does more than change its shape or type."""
        return next((node for node in self.back(name) if node.op not in PASSING), None)
