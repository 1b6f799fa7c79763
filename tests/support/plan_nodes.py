"""Plan nodes over one small policy, without SQL: for rules of nodes that only rewrites make, or that they mark."""

from __future__ import annotations

from itertools import count

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.derive import derive
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Call, Column, Literal
from dpsql.core.ir.nodes import (
    Aggregate,
    AggregateCall,
    Equality,
    Item,
    Join,
    JoinKind,
    Node,
    Scan,
    SetColumn,
    SetKind,
    SetOperation,
    output_columns,
)
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.types import BIGINT, BOOLEAN, HUGEINT, INTEGER, parse_type
from dpsql.diagnostics.errors import Rejected
from tests.support.planning import policy, sets

POLICY = policy("""
log:
  unit: {rows: 3}
  unique: [[r]]
  max_frequency: [{columns: [k], rows: 2, enforce: assume}]
  columns:
    r: {type: integer, nullable: false}
    k: {type: integer}
    v: {type: integer, nullable: false, bounds: [0, 9]}
    d: {type: double}
    l: {type: "integer[]", max_length: 4}
notes:
  unit: {rows: 1}
  max_frequency: [{columns: [k], rows: 5, enforce: assume}]
  columns: {r: {type: integer, nullable: false}, k: {type: integer}, v: {type: integer}}
free:
  unit: {rows: 1}
  columns: {r: {type: integer}, k: {type: integer}}
people:
  unit: {column: id}
  primary_key: [id]
  columns: {id: {type: integer, nullable: false}, k: {type: integer}, v: {type: integer}}
visits:
  unit: {column: id}
  max_rows_per_unit: {rows: 4, enforce: assume}
  unique: [[a, b]]
  columns:
    id: {type: integer, nullable: false}
    a: {type: integer}
    b: {type: integer}
    k: {type: integer}
    v: {type: integer, bounds: [0, 1]}
    l: {type: "integer[]", max_length: 4}
tests:
  unit: {path: [{columns: [a, b], references: "visits(a, b)"}]}
  columns: {a: {type: integer}, b: {type: integer}, k: {type: integer}}
sized:
  unit: {rows: 1, neighbours: replace_one}
  size: {exact: 10}
  columns: {k: {type: integer}, v: {type: integer}}
one:
  public: true
  unique: [[k]]
  columns: {k: {type: integer, nullable: false}, v: {type: integer}}
""")

_numbers = count(1)


def column(name: str, type_: object = INTEGER) -> Column:
    return Column(next(_numbers), name, type_)  # type: ignore[arg-type]


def scan(name: str) -> Scan:
    table = POLICY.table(name)
    assert table is not None
    found = []
    for c in table.columns.values():
        type_ = parse_type(c.type or "")
        assert type_ is not None
        found.append(column(c.name, type_))
    return Scan(name, tuple(found), None)


def at(node: Node, name: str) -> Column:
    """The first output column of this name."""
    return next(c for c in output_columns(node) if c.name == name)


def join(kind: JoinKind, left: Node, right: Node, *names: str) -> Join:
    """A join on columns of the same names; `a=b` on columns of these two."""
    pairs = [name.split("=") for name in names]
    return Join(kind, left, right, tuple(Equality(at(left, p[0]), at(right, p[-1])) for p in pairs))


def combine(kind: SetKind, every: bool, left: Node, right: Node, *names: str) -> SetOperation:
    """A set operation over columns `name`, or `name=other`."""
    pairs = [name.split("=") for name in names]
    columns = tuple(SetColumn(column(p[0], at(left, p[0]).type), at(left, p[0]), at(right, p[-1])) for p in pairs)
    return SetOperation(kind, every, left, right, columns)


def group(node: Node, keys: str, *calls: str) -> Aggregate:
    """A private aggregate by these columns, e.g. `count`, `sum v`, `count distinct k`."""
    items = tuple(Item(column(k, at(node, k).type), at(node, k)) for k in keys.split())
    made = []
    for text in calls:
        function, *rest = text.split()
        arg = at(node, rest[-1]) if rest else None
        if function in ("sum", "avg") and arg is not None and arg.name == "v":
            arg = Call("clip", (arg, Literal(0, INTEGER), Literal(9, INTEGER)), arg.type)  # type: ignore[assignment]
        type_ = {"count": BIGINT, "sum": HUGEINT}.get(function) or (arg.type if arg is not None else BIGINT)
        made.append(AggregateCall(function, arg, column(function, type_), "distinct" in rest))
    return Aggregate(node, items, tuple(made), inner=True)


def filled(node: Node, name: str) -> Call:
    """`name IS NOT NULL`."""
    return Call("is_not_null", (at(node, name),), BOOLEAN)


def facts_of(node: Node) -> Facts:
    return derive(node, Context(POLICY, PublicFacts())).fact


def stability(node: Node) -> dict[str, str]:
    return {unit: str(cap) for unit, cap in facts_of(node).stability.items()}


def keys(node: Node) -> set[frozenset[str]]:
    return sets(facts_of(node).keys, node)


def refused(node: Node) -> str:
    """The code of the refusal; empty if there is none. Every refusal says how to repair the query or the policy."""
    try:
        facts_of(node)
    except Rejected as refusal:
        assert all(d.help for d in refusal.diagnostics)
        return refusal.diagnostics[0].code
    return ""
