"""New column numbers: for columns that a rewrite adds, and for a second reading of the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import count
from typing import Any, cast

from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Node, made_columns
from dpsql.core.ir.types import SqlType
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.diagnostic import Span


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
