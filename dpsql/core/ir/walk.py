"""Walking, rebuilding and renumbering plans; what their nodes evaluate."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import fields, is_dataclass
from itertools import count
from operator import is_
from typing import Any, Generic, TypeVar, cast

from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.nodes import (
    ONE_INPUT,
    Aggregate,
    AggregateCall,
    BoundContributions,
    Filter,
    GroupKeys,
    Join,
    Limit,
    Node,
    Project,
    Release,
    Scan,
    SetOperation,
    Sort,
    Truncate,
    Unnest,
    Values,
    Window,
    inputs,
    made_columns,
)
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import SqlType
from dpsql.core.value_classes import replace, value
from dpsql.diagnostics.diagnostic import Span

T = TypeVar("T")
K = TypeVar("K")


@value(frozen=True, slots=True)
class Tagged(Generic[T]):
    """A node with something known about it (its facts), and the same for its inputs: facts sit beside the tree."""

    node: Node
    fact: T
    inputs: tuple[Tagged[T], ...]

    def walk(self) -> list[Tagged[T]]:
        """This and everything below, parents first."""
        found: list[Tagged[T]] = []
        waiting = [self]
        while waiting:
            tagged = waiting.pop()
            found.append(tagged)
            waiting += tagged.inputs[::-1]
        take(len(found))
        return found


def walk(node: Node) -> list[Node]:
    """The node and all below it, parents first."""
    found: list[Node] = []
    waiting: list[Any] = [node]
    while waiting:
        below = waiting.pop()
        found.append(below)
        while type(below) in ONE_INPUT:
            below = below.input
            found.append(below)
        if isinstance(below, (Join, SetOperation)):
            waiting += (below.right, below.left)
    take(len(found))
    return found


def children_first(node: Node, known: Container[Node]) -> list[Node]:
    """The node and all below it that are not known, each behind its inputs, the left one first."""
    found: list[Node] = []
    waiting: list[Any] = [node]
    while waiting:
        below = waiting.pop()
        while below not in known:
            found.append(below)
            if type(below) not in ONE_INPUT:
                waiting += inputs(below)
                break
            below = below.input
    return found[::-1]


def arguments(call: AggregateCall) -> tuple[Expr, ...]:
    """What an aggregate is called with: none, one or two."""
    return tuple(e for e in (call.arg, call.second) if e is not None)


def expressions(node: Node) -> tuple[Expr, ...]:
    """The expressions a node evaluates over its input's rows."""
    match node:
        case Filter(predicate=predicate):
            return (predicate,)
        case Project(items=items) | GroupKeys(items=items):
            return tuple(i.expr for i in items)
        case Join(equalities=pairs, residual=residual):
            both = tuple(e for p in pairs for e in (p.left, p.right))
            return both if residual is None else (*both, residual)
        case SetOperation(columns=set_columns):
            return tuple(e for c in set_columns for e in (c.left, c.right))
        case Unnest(list=listed):
            return (listed,)
        case Truncate(columns=truncated):
            return truncated
        case Window(calls=windows):
            return tuple(e for w in windows for e in (*w.args, *w.partition, *(k.expr for k in w.order)))
        case Aggregate(keys=keys, calls=calls):
            called = tuple(e for c in calls for e in (*arguments(c), c.filter) if e is not None)
            return (*(k.expr for k in keys), *called)
        case Sort(keys=sort_keys):
            return tuple(k.expr for k in sort_keys)
        case Release(components=components):
            return tuple(e for c in components for e in c.expressions)
        case Scan() | Values() | Limit() | BoundContributions():
            return ()


def with_inputs(node: Node, new: tuple[Node, ...]) -> Node:
    """The same node over other inputs; the very same object if the inputs are."""
    return _over(node, inputs(node), new)


def _over(node: Node, old: tuple[Node, ...], new: tuple[Node, ...]) -> Node:
    if all(map(is_, old, new)):
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


def kinds(node: Node) -> frozenset[type]:
    """The kinds of the node and of all below it; looked for once, and kept with each of them."""
    above: list[Any] = []
    while (found := getattr(node, "kinds", None)) is None and type(node) in ONE_INPUT:
        above.append(node)
        node = above[-1].input
    if found is None:
        found = frozenset((type(node),)).union(*map(kinds, inputs(node)))
        object.__setattr__(node, "kinds", found)
    for over in reversed(above):
        found = found if type(over) in found else found | {type(over)}
        object.__setattr__(over, "kinds", found)
    return found


def transform(root: Node, kind: type[K], change: Callable[[K], Node]) -> Node:
    """Rebuild bottom-up, applying `change` to every node of a kind after its inputs."""
    if kind not in kinds(root):
        return root
    above: list[Any] = [root]
    while type(above[-1]) in ONE_INPUT and kind in above[-1].input.kinds:
        above.append(above[-1].input)
    take(len(above))
    node: Node = above.pop()
    if isinstance(node, (Join, SetOperation)):
        left, right = transform(node.left, kind, change), transform(node.right, kind, change)
        if left is not node.left or right is not node.right:
            node = replace(node, left=left, right=right)
    found = change(node) if isinstance(node, kind) else node
    for over in reversed(above):
        over = over if over.input is found else replace(over, input=found)
        found = change(over) if type(over) is kind else over
    return found


def unused_numbers(root: Node) -> Iterator[int]:
    """Column numbers that no node of the plan has, upwards; looked for when the first is needed."""
    yield from count(1 + max((c.uid for n in walk(root) for c in made_columns(n)), default=0))


def renumbered(node: Node, fresh: Callable[[Column], Column]) -> tuple[Node, dict[int, Column]]:
    """A copy of a bound plan in which every column is the `fresh` one made from it, and old number → new column."""
    known: dict[int, Column] = {}

    def copy(value: Any) -> Any:
        match value:
            case Column():
                if value.uid not in known:
                    known[value.uid] = fresh(value)
                return replace(known[value.uid], span=value.span)
            case Span() | SqlType():
                return value
            case tuple():
                return tuple(copy(v) for v in value)
            case _ if is_dataclass(value) and not isinstance(value, type):
                return replace(value, **{f.name: copy(getattr(value, f.name)) for f in fields(value)})
            case _:
                return value

    return cast(Node, copy(node)), known
