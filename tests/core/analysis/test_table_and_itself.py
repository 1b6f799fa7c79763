"""Joins of a table with itself, and of its rows with groups that they look up."""

from __future__ import annotations

import pytest

from dpsql.core.ir.expressions import Call, Expr, Literal
from dpsql.core.ir.nodes import (
    Filter,
    Item,
    JoinKind,
    Node,
    Project,
    SetKind,
    Truncate,
    output_columns,
)
from dpsql.core.ir.types import BOOLEAN, INTEGER
from tests.support.plan_nodes import at, column, combine, group, join, scan, stability

UNION, INTERSECT, EXCEPT = SetKind.UNION, SetKind.INTERSECT, SetKind.EXCEPT
INNER, LEFT, SEMI, ANTI = JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI


def eq(node: Node, name: str, value: int) -> Expr:
    return Call("eq", (at(node, name), Literal(value, INTEGER)), BOOLEAN)


def where(node: Node, name: str, value: int) -> Filter:
    return Filter(node, eq(node, name, value))


def half(table: str, *, other: bool = False) -> Filter:
    """The rows of a table with v = 1, or the others."""
    node = scan(table)
    return (
        Filter(node, Call("is_distinct_from", (eq(node, "v", 1), Literal(True, BOOLEAN)), BOOLEAN))
        if other
        else where(node, "v", 1)
    )


@pytest.mark.parametrize("kind", [SEMI, ANTI])
def test_a_table_and_itself(kind: JoinKind) -> None:
    """log: 3 rows of a unit, 2 of which have one k; visits: 4 rows of an id."""
    assert stability(join(kind, scan("log"), scan("log"), "k")) == {"log": "6"}
    assert stability(join(kind, half("log"), half("log", other=True), "k")) == {"log": "6"}
    assert stability(join(kind, scan("log"), scan("log"), "k", "v")) == {"log": "6"}
    assert stability(join(kind, scan("log"), scan("log"), "r")) == {"log": "3"}
    assert stability(join(kind, scan("log"), scan("log"), "k=r")) == {"log": "9"}
    assert stability(join(kind, scan("log"), scan("notes"), "k")) == {"log": "3", "notes": "2"}
    assert stability(join(kind, scan("visits"), scan("visits"), "a", "b")) == {"person": "4"}


def test_only_filters_and_projections_of_itself() -> None:
    joined = join(INNER, scan("log"), scan("one"), "k")
    assert stability(join(SEMI, joined, scan("log"), "k")) == {"log": "9"}
    assert stability(join(SEMI, scan("log"), joined, "k")) == {"log": "9"}
    both = combine(SetKind.UNION, True, half("log"), half("log", other=True), "k")
    assert stability(join(SEMI, both, scan("log"), "k")) == {"log": "18"}
    cut = Truncate(table := scan("log"), (at(table, "k"),), 1)
    assert stability(join(SEMI, scan("log"), cut, "k")) == {"log": "15"}


# --- groups that are looked up ----------------------------------------------------------------------------------------


def test_groups_that_are_looked_up_by_their_keys() -> None:
    """notes: one row of a unit; log: 2 rows with one k."""
    assert stability(join(LEFT, scan("log"), group(scan("notes"), "k", "count"), "k")) == {"log": "3", "notes": "4"}
    by_two = join(LEFT, scan("log"), group(scan("notes"), "k v", "count"), "k")
    assert stability(by_two) == {"log": "15", "notes": "4"}
    named = group(scan("notes"), "k v", "count")
    kept = Project(named, tuple(Item(column(c.name, c.type), c) for c in output_columns(named) if c.name != "v"))
    assert stability(join(LEFT, scan("log"), kept, "k")) == {"log": "15", "notes": "4"}


def test_groups_that_are_looked_up_by_a_number() -> None:
    grouped = group(scan("notes"), "k", "count")
    assert stability(join(LEFT, scan("log"), grouped, "k", "v=count")) == {"log": "3", "notes": "8"}
