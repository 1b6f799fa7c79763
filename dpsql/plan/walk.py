"""Walking and rebuilding plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from dpsql.plan.nodes import Join, Node, Scan, SetOperation, Values, inputs

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tagged(Generic[T]):
    """A node with something known about it (its facts), and the same for its inputs: facts sit beside the tree."""

    node: Node
    fact: T
    inputs: tuple[Tagged[T], ...]

    def walk(self) -> Iterator[Tagged[T]]:
        """This and everything below, parents first."""
        yield self
        for child in self.inputs:
            yield from child.walk()


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, parents first."""
    yield node
    for child in inputs(node):
        yield from walk(child)


def with_inputs(node: Node, new: tuple[Node, ...]) -> Node:
    """The same node over other inputs; the very same object if the inputs are."""
    if all(a is b for a, b in zip(inputs(node), new, strict=True)):
        return node
    match node:
        case Scan() | Values():
            return node
        case Join() | SetOperation():
            left, right = new
            return replace(node, left=left, right=right)
        case _:
            (child,) = new
            return replace(node, input=child)


def transform(node: Node, change: Callable[[Node], Node]) -> Node:
    """Rebuild bottom-up, applying `change` to every node after its inputs."""
    return change(with_inputs(node, tuple(transform(child, change) for child in inputs(node))))
