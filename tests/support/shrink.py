"""Makes a plan and databases that break a claim smaller, as long as they still break one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from dpsql.core.ir.nodes import Aggregate, Filter, Join, Node, Project, SetOperation, Truncate, Unnest, inputs
from dpsql.core.ir.walk import with_inputs
from tests.support.operator_databases import Databases

Fails = Callable[[Databases, Node], bool]
MOST_TRIES = 600


def smaller(node: Node) -> Iterator[Node]:
    """Plans with one operator, condition, column or term less. Some are no plans at all: trying them shows."""
    yield from inputs(node)
    match node:
        case Join(equalities=pairs, residual=residual):
            if residual is not None:
                yield replace(node, residual=None)
            for i in range(len(pairs)):
                yield replace(node, equalities=pairs[:i] + pairs[i + 1 :])
        case SetOperation(columns=columns) if len(columns) > 1:
            for i in range(len(columns)):
                yield replace(node, columns=columns[:i] + columns[i + 1 :])
        case Project(items=items) if len(items) > 1:
            for i in range(len(items)):
                yield replace(node, items=items[:i] + items[i + 1 :])
        case Aggregate(keys=keys, calls=calls):
            for i in range(len(keys)):
                if calls or len(keys) > 1:
                    yield replace(node, keys=keys[:i] + keys[i + 1 :])
            for i, call in enumerate(calls):
                if keys or len(calls) > 1:
                    yield replace(node, calls=calls[:i] + calls[i + 1 :])
                if call.filter is not None:
                    yield replace(node, calls=(*calls[:i], replace(call, filter=None), *calls[i + 1 :]))
    below = inputs(node)
    for i, child in enumerate(below):
        if isinstance(child, Filter | Truncate | Unnest):
            yield with_inputs(node, (*below[:i], child.input, *below[i + 1 :]))
        for less in smaller(child):
            yield with_inputs(node, (*below[:i], less, *below[i + 1 :]))


def shrunk(databases: Databases, node: Node, fails: Fails) -> tuple[Databases, Node]:
    """The smallest that is found by taking away one thing at a time."""
    tries = 0
    again = True
    while again and tries < MOST_TRIES:
        again = False
        for less in smaller(node):
            tries += 1
            if tries < MOST_TRIES and _holds(fails, databases, less):
                node, again = less, True
                break
        else:
            for table in databases.world.tables:
                for row in table.rows:
                    rows = [r for t in databases.world.tables if t.name == table.name for r in t.rows]
                    if row not in rows:
                        continue
                    rows.remove(row)
                    fewer = databases.with_rows({table.name: rows})
                    tries += 1
                    if tries < MOST_TRIES and _holds(fails, fewer, node):
                        databases, again = fewer, True
    return databases, node


def _holds(fails: Fails, databases: Databases, node: Node) -> bool:
    try:
        return fails(databases, node)
    except Exception:  # no plan any more
        return False
